"""The C ABI, as another language calls it."""

import ctypes
import os
import resource
import subprocess

import numpy as np
import pytest

from fake_data import examples, unpack
from conftest import ROOT
from runtime_library import SANITIZERS, build_program

pytest_plugins = ["fake_model"]

TRAIN, TEST = 0, 1
USAGE, BAD_DATA, UNAVAILABLE = 64, 65, 69


class Session:
    def __init__(self, library, seed=1, device=0):
        self.library, self.pointer = library, ctypes.c_void_p()
        model = ctypes.c_char.in_dll(library, "mtc_model")
        self.code = library.mtc_create(ctypes.byref(model), ctypes.c_uint64(seed), device, ctypes.byref(self.pointer))

    def __getattr__(self, name):
        function = getattr(self.library, f"mtc_{name}")
        return lambda *args: function(self.pointer, *args)

    def message(self):
        return self.library.mtc_error(self.pointer).decode()

    def fields(self, arrays):
        return (ctypes.c_void_p * 2)(*[array.ctypes.data if array is not None else None for array in arrays])

    def give(self, which, image, label):
        return self.set_data(which, ctypes.c_int64(len(image)), self.fields([image, label]))

    def steps(self, count):
        reports = np.empty((count, 2))
        return self.train(ctypes.c_int64(count), reports.ctypes.data_as(ctypes.c_void_p)), reports

    def tensor(self, name, *shape):
        values = np.empty(shape, np.float32)
        assert self.get(name.encode(), values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes)) == 0
        return values


@pytest.fixture
def session(fake_library):
    made = Session(fake_library)
    assert made.code == 0
    yield made
    made.destroy()


@pytest.fixture
def trained(session):
    assert session.give(TRAIN, *examples(203)) == 0 and session.give(TEST, *examples(50, 1)) == 0
    assert session.steps(78)[0] == 0
    return session


def test_training_in_pieces_is_the_same(fake_library):
    whole, pieces = Session(fake_library), Session(fake_library)
    for each in (whole, pieces):
        each.give(TRAIN, *examples(203))
    _, expected = whole.steps(60)
    parts = [pieces.steps(count)[1] for count in (1, 24, 2, 33)]
    assert np.array_equal(np.concatenate(parts), expected)
    assert np.array_equal(whole.tensor("logits.weight", 3, 16), pieces.tensor("logits.weight", 3, 16))
    assert expected[-10:, 0].mean() < expected[:10, 0].mean() / 4


def test_same_as_the_program(fake_library, fake, folder):
    session = Session(fake_library)
    assert session.load_data(TRAIN, str(folder.path).encode()) == 0, session.message()
    session.steps(78)
    fake(folder, "--save", "w", "--quiet")
    assert session.save(str(folder / "own").encode()) == 0
    own, program = (unpack((folder / name).read_bytes()) for name in ("own", "w"))
    assert own[1] == program[1]
    for key in ("step", "epoch", "epoch_step", "seed", "data", "model_hash", "param.lr"):
        assert own[0]["__metadata__"][f"mtc.{key}"] == program[0]["__metadata__"][f"mtc.{key}"]


def test_evaluate_and_predict(trained):
    image, label = examples(50, 1)
    reports, out = np.empty(2), np.empty((50, 3), np.float32)
    assert trained.evaluate(TEST, reports.ctypes.data_as(ctypes.c_void_p)) == 0
    assert trained.predict(ctypes.c_int64(50), trained.fields([image, None]), out.ctypes.data_as(ctypes.c_void_p)) == 0
    assert reports[0] == pytest.approx(-np.log(out[np.arange(50), label]).mean(), rel=1e-5)
    assert reports[1] == (out.argmax(1) == label).mean() == 1
    zeros = np.empty((3, 3), np.float32)
    assert trained.predict(ctypes.c_int64(3), None, zeros.ctypes.data_as(ctypes.c_void_p)) == 0
    assert np.array_equal(zeros[0], zeros[2])


def test_predict_needs_no_data_set(session):
    out = np.empty((20, 3), np.float32)
    assert session.predict(ctypes.c_int64(20), session.fields([examples(20)[0], None]), out.ctypes.data_as(ctypes.c_void_p)) == 0
    assert np.allclose(out.sum(1), 1, atol=1e-5)


def test_tensors(trained):
    weight = trained.tensor("logits.weight", 3, 16)
    assert np.isfinite(weight).all() and trained.tensor("logits.weight.momentum", 3, 16).any()
    weight[:] = 0
    assert trained.set(b"logits.weight", weight.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(weight.nbytes)) == 0
    assert not trained.tensor("logits.weight", 3, 16).any()
    assert trained.get(b"logits.wieght", None, ctypes.c_size_t(1)) == USAGE
    assert trained.message() == "there is no tensor 'logits.wieght'; did you mean 'logits.weight'?"
    assert trained.get(b"logits.bias", None, ctypes.c_size_t(8)) == USAGE
    assert trained.message() == "tensor 'logits.bias' is [3] of type f32, 12 bytes; given 8"


def test_initial_values(fake_library):
    first, same, other = Session(fake_library, 1), Session(fake_library, 1), Session(fake_library, 2)
    weight = first.tensor("logits.weight", 3, 16)
    assert (abs(weight) <= 0.25).all() and weight.std() > 0.1
    assert np.array_equal(weight, same.tensor("logits.weight", 3, 16))
    assert not np.array_equal(weight, other.tensor("logits.weight", 3, 16))


def test_knobs(trained):
    before = trained.tensor("logits.weight", 3, 16)
    assert trained.set_knob(b"lr", ctypes.c_double(0)) == 0 and trained.steps(5)[0] == 0
    assert np.array_equal(before, trained.tensor("logits.weight", 3, 16))
    for name, value, message in ((b"lr", -1, "'lr' is from 0 to 1e+38, not -1"), (b"lr", np.nan, "'lr' is from"),
                                 (b"warmup", 0.5, "'warmup' is an integer, not 0.5"),
                                 (b"warmup", 1e300, "'warmup' is a finite float, not 1e+300"), (b"warmup", np.inf, "not inf"), (b"warmpu", 1, "did you mean 'warmup'?")):
        assert trained.set_knob(name, ctypes.c_double(value)) == USAGE and message in trained.message()


@pytest.mark.parametrize("data_first", [True, False])
def test_resume(data_first, trained, fake_library, folder):
    """In either order of data and checkpoint, also within an epoch, training goes on as if it had not stopped."""
    file = str(folder / "w").encode()
    assert trained.set_knob(b"lr", ctypes.c_double(0.125)) == 0 and trained.steps(11)[0] == 0 and trained.save(file) == 0
    _, expected = trained.steps(60)
    other = Session(fake_library, seed=5)
    actions = [lambda: other.give(TRAIN, *examples(203)), lambda: other.resume(file)]
    for action in actions if data_first else reversed(actions):
        assert action() == 0, other.message()
    assert np.array_equal(other.steps(60)[1], expected)
    assert np.array_equal(other.tensor("logits.weight", 3, 16), trained.tensor("logits.weight", 3, 16))
    other.destroy()


def test_resume_on_other_data(trained, fake_library, folder):
    file = str(folder / "w").encode()
    assert trained.save(file) == 0
    other = Session(fake_library)
    assert other.give(TRAIN, *examples(203, 8)) == 0 and other.resume(file) == 0
    assert other.steps(1)[0] == BAD_DATA and "not those of the checkpoint" in other.message()
    other.destroy()


def test_data_can_change(trained):
    assert trained.give(TRAIN, *examples(40)) == 0 and trained.steps(11)[0] == 0
    assert trained.give(TRAIN, *examples(900, 5)) == 0 and trained.steps(200)[0] == 0


def test_data_too_large_leaves_none(trained):
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**34, hard))
    code = trained.set_data(TRAIN, ctypes.c_int64(2**31 - 1), trained.fields(examples(1)))
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert code == UNAVAILABLE
    assert trained.steps(1)[0] == USAGE and "no data to train on" in trained.message()
    assert trained.give(TRAIN, *examples(203)) == 0 and trained.steps(30)[0] == 0


def test_faults(session, fake_library):
    assert session.steps(1)[0] == USAGE and "no data to train on" in session.message()
    assert session.evaluate(TEST, None) == USAGE and "no data to evaluate" in session.message()
    assert session.set_data(TRAIN, ctypes.c_int64(0), None) == BAD_DATA
    assert session.set_data(3, ctypes.c_int64(1), None) == USAGE and "not 3" in session.message()
    assert session.set_data(TRAIN, ctypes.c_int64(1), None) == USAGE and "no array for the field" in session.message()
    assert session.train(ctypes.c_int64(-1), None) == USAGE
    assert session.load(b"/nowhere") == 66 and "/nowhere: cannot open" in session.message()
    missing = Session(fake_library, device=3)
    assert missing.code == UNAVAILABLE and "no device 3" in missing.message()
    missing.destroy()
    fake_library.mtc_destroy(None)


def test_nan(session):
    session.give(TRAIN, *examples(203))
    session.set_knob(b"poison", ctypes.c_double(7))
    assert session.steps(30)[0] == BAD_DATA
    assert "element [1, 5] is NaN, in step 7" in session.message()


def test_bad_weights_are_not_saved(trained, tmp_path):
    bias = np.array([0, np.inf, 0], np.float32)
    assert trained.set(b"logits.bias", bias.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(bias.nbytes)) == 0
    assert trained.save(str(tmp_path / "w").encode()) == BAD_DATA and not list(tmp_path.iterdir())
    assert "'logits.bias' is not finite: element [1] is inf\n  fake.mt:9: logits = " in trained.message()


# ---- a program in C ----

WRAPPED = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc", "posix_memalign")]


def run_embed(built, folder, name, command, *flags, library_flags=(), **environment):
    sources = [ROOT / "tests" / "runtime" / name for name in ("embed.c", "fake.c")] + [ROOT / "runtime" / "base" / "device_cpu.c"]
    program = build_program(built / name, sources, *flags, library_flags=library_flags)
    done = subprocess.run([program, command, folder.path], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("sanitizers", [SANITIZERS, ["-fsanitize=thread"]], ids=["address", "thread"])
def test_threads_under_sanitizers(sanitizers, built, folder):
    name = "embed-" + sanitizers[0].partition("=")[2].replace(",", "-")
    done = run_embed(built, folder, name, "sessions", library_flags=sanitizers)
    assert not done.stdout and not done.stderr


def test_allocations_that_fail(built, folder):
    """Each of them in turn: the library says so, and the process lives."""
    done = run_embed(built, folder, "embed-short", "short", "-DSHORT", *WRAPPED, OMP_NUM_THREADS="2")
    assert int(done.stdout.split()[0]) > 100 and not done.stderr
