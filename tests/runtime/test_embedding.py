"""A compiled model as a library: trainings in epochs, lent memory, threads, and nothing that is left behind. The same tests
for the CPU and, by `make check-gpu`, for both schedules of a GPU."""

import ctypes
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

from conftest import ROOT
from embedded import BAD_DATA, TEST, TRAIN, UNAVAILABLE, USAGE, VALIDATION, Failed, Model, Session
from fake_data import idx_bytes, unpack

pytestmark = pytest.mark.shares("built")

MODEL = """\
param lr = 0.02 in 0..1

data {
  train = idx("x", "kind", "label")
  test  = idx("test-x", "test-kind", "test-label")
  x     : f32[6]
  kind  : class[5]
  label : class[300]
}

model {
  seen   = concat([normalize(x), embedding(kind, 5, 4)], axis = 0)
  h      = dropout(relu(linear(seen, 16)), 0.1)
  logits = linear(h, 300)
}

train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = adam(cosine_lr(lr))
  batch     = 8
  epochs    = 4
}
"""
EXAMPLES, STEPS = 75, 10  # of an epoch; its last batch has three examples
BUILDS = {"cpu": ["--target", "cpu"], "graph": ["--target", "cuda", "--schedule", "graph"],
          "persistent": ["--target", "cuda", "--schedule", "persistent"]}


def data(count=EXAMPLES, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((count, 6)).astype(np.float32)
    kind = random.integers(0, 5, count).astype(np.uint8)
    return x, kind, (np.argmax(x[:, :3], 1) + 3 * (kind == 2) + 290).astype(np.int32)


@pytest.fixture(scope="module", params=["cpu", *(pytest.param(name, marks=pytest.mark.gpu) for name in ("graph", "persistent"))])
def built(request, tmp_path_factory, compile_model):
    """The folder with the library, the program, their model file and its data."""
    folder = tmp_path_factory.mktemp(f"embedding-{request.param}")
    (folder / "m.mt").write_text(MODEL)
    for prefix, count, seed in (("", EXAMPLES, 0), ("test-", 20, 1)):
        for name, array in zip(("x", "kind", "label"), data(count, seed)):
            (folder / f"{prefix}{name}").write_bytes(idx_bytes(array))
    _, target, *schedule = BUILDS[request.param]
    for output, flags in (("m.so", ["--shared"]), ("m", [])):
        os.link(compile_model(folder / "m.mt", *flags, *schedule, target=target).path, folder / output)
    return folder


@pytest.fixture(scope="module")
def model(built):
    return Model(built / "m.so")


@pytest.fixture
def session(model):
    with Session(model) as opened:
        yield opened


def fitted(model, seed=1, epochs=4):
    """The weights of a training that nothing disturbs."""
    with Session(model, seed) as session:
        session.set_data(TRAIN, data())
        session.fit(epochs)
        return session.weights()


# ---- what a model is ----


def test_description(model, session):
    about = model.description
    assert [field["name"] for field in about["fields"]] == ["x", "kind", "label"]
    assert about["fields"][2] == {"name": "label", "type": "i32", "shape": [], "classes": 300, "predicts": False, "windows": False, "weighs": False}
    assert about["params"] == [{"name": "lr", "value": 0.02, "help": None, "integer": False, "low": 0, "high": 1}]
    assert about["splits"] == ["train", "test"] and about["reports"][1] == {"name": "accuracy", "rises": True, "over_set": False}
    assert about["prediction"] == {"shape": [300], "classes": True, "yes": False} and about["no_decode"] is None
    assert about["train"]["optimizer"] == "adam(cosine_lr(lr))" and about["batch"] == 8 and about["epochs"] == 4
    weight = next(entry for entry in about["tensors"] if entry["name"] == "h.weight")
    assert (weight["role"], weight["shape"], weight["strides"], weight["type"]) == ("weight", [16, 10], [10, 1], "f32")
    assert {"line": weight["line"], "text": "h = dropout(relu(linear(seen, 16)), 0.1)"} in about["statements"]


def test_memory_is_what_was_told(built, mtc, model):
    """To the byte: by `info`, by the plan, and by what a session asks its device for, but for what it does for the data."""
    kind, = re.findall("embedding-([a-z]+)", built.name)
    plan = mtc(built / "m.mt", "--emit=plan", *BUILDS[kind]).stdout
    info = subprocess.run([built / "m", "info"], capture_output=True, text=True, check=True).stdout
    told, = re.findall(r"^device .* beside the data \((\d+) bytes\): arena ", info, re.M)
    with Session(model) as session:
        opened = session.status["bytes"]
        session.set_data(TRAIN, data())
        ready = session.status["bytes"]
        session.fit(1)
        assert ready > opened and session.status["bytes"] - (ready - opened) == int(told)
    assert re.search(rf"^  all +{told}$", plan, re.M)


def test_status(session):
    begun = session.status
    assert {key: begun[key] for key in ("seed", "step", "epoch", "epoch_step", "epochs", "params", "words")} == {
        "seed": 1, "step": 0, "epoch": 0, "epoch_step": 0, "epochs": 0, "params": {"lr": 0.02}, "words": {}}
    assert begun["arena"] == session.locate("h.weight") - next(
        entry["offset"] for entry in session.model.description["tensors"] if entry["name"] == "h.weight")
    session.set_data(TRAIN, data())
    session.set_knob("lr", 0.125)
    session.fit(3, epoch=lambda *_: True)  # ends after the steps in flight, which may be of the next epoch
    status = session.status
    assert (status["epochs"], status["params"]) == (3, {"lr": 0.125}) and 1 <= status["epoch"] <= 3
    assert status["step"] == STEPS * status["epoch"] + status["epoch_step"] and status["bytes"] > begun["bytes"] and status["device"]


NO_LOCALE = 77
COMMA = f"NO_LOCALE = {NO_LOCALE}" + """
import locale, sys
try:
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
except locale.Error:
    sys.exit(NO_LOCALE)
assert locale.str(1.5) == "1,5"
from embedded import Model, Session
with Session(Model(sys.argv[1])) as session:
    session.set_knob("lr", 0.125)
    session.save(sys.argv[2])
with Session(Model(sys.argv[1])) as session:
    session.resume(sys.argv[2])
    assert session.status["params"] == {"lr": 0.125}
assert locale.str(1.5) == "1,5"
"""


def test_numbers_have_a_point_in_every_locale(built, tmp_path):
    """JSON and checkpoints, in a program whose own numbers have a comma."""
    command = shutil.which("localedef")
    if command:
        subprocess.run([command, "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], capture_output=True)
    done = subprocess.run([sys.executable, "-c", COMMA, built / "m.so", tmp_path / "w"], capture_output=True, text=True,
                          env={**os.environ, "LOCPATH": str(tmp_path), "PYTHONPATH": str(ROOT / "tests" / "support")})
    if done.returncode == NO_LOCALE:
        pytest.skip("no German locale can be made here")
    assert done.returncode == 0, done.stderr


def offered(library):
    return subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout


def test_only_functions_of_the_interface_are_offered(built):
    """No symbol that another model's library in the same process could share."""
    names = offered(built / "m.so")
    assert {line.split()[1] for line in names.splitlines()} <= {"T", "D"}, names
    assert all(line.split()[2].startswith("mtc_") for line in names.splitlines()), names


@pytest.mark.nvcc
@pytest.mark.parametrize("schedule", ["graph", "persistent"])
def test_libraries_for_gpus_offer_what_those_of_processors_do(schedule, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(MODEL)
    for name, flags in (("cpu.so", ["--target", "cpu"]), ("gpu.so", ["--target", "cuda", "--arch", "sm_90a", "--schedule", schedule])):
        done = mtc("m.mt", "--shared", "-o", name, *flags, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    cpu, gpu = ({line.split()[2] for line in offered(tmp_path / name).splitlines()} for name in ("cpu.so", "gpu.so"))
    assert gpu == cpu


# ---- trainings in epochs ----


def test_fit_is_the_training_of_the_program(built, model, tmp_path):
    subprocess.run([built / "m", "--epochs", "4", "--seed", "3", "--save", tmp_path / "w", "--log", tmp_path / "log", "--quiet"],
                   cwd=built, check=True)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    expected = [(line["epoch"], line["loss"], line["accuracy"], line["test_loss"], line["test_accuracy"])
                for line in lines if line["event"] == "epoch"]
    for pauses in (False, True):
        told = []
        with Session(model, seed=3) as session:
            session.load_data(TRAIN, built)
            session.load_data(TEST, built)
            session.fit(4, pauses=pauses, epoch=lambda epoch, means, test: told.append((epoch, *means, *test)))
            session.save(tmp_path / "own")
        assert [row[0] for row in told] == [1, 2, 3, 4] and np.allclose(told, expected, rtol=1e-8)
        own, program = unpack((tmp_path / "own").read_bytes()), unpack((tmp_path / "w").read_bytes())
        assert own[1] == program[1]
        for key in ("step", "epoch", "epoch_step", "epochs", "epoch_sums", "data", "seed"):
            assert own[0]["__metadata__"][f"mtc.{key}"] == program[0]["__metadata__"][f"mtc.{key}"]


def test_means_weigh_examples_alike(model, session):
    """An epoch's means are over its examples: the last batch, which is smaller, counts less."""
    told, rows = [], np.array([8] * 9 + [3])
    session.set_data(TRAIN, data())
    session.set_knob("lr", 0)
    session.fit(1, epoch=lambda _, means, watched: told.append((means, watched)))
    with Session(model) as steps:
        steps.set_data(TRAIN, data())
        steps.set_knob("lr", 0)
        assert np.allclose(told[0][0], rows @ steps.train(STEPS) / EXAMPLES) and told[0][1] is None


@pytest.mark.parametrize("pauses", [False, True])
def test_every(pauses, session):
    session.set_data(TRAIN, data())
    told = []
    session.fit(7, every=3, pauses=pauses, epoch=lambda epoch, *_: told.append(epoch))
    assert told == [3, 6, 7]
    session.fit(7, epoch=lambda epoch, *_: told.append(epoch))
    session.fit(2, epoch=lambda epoch, *_: told.append(epoch))
    assert told == [3, 6, 7]


def test_steps(session):
    session.set_data(TRAIN, data())
    told = []
    session.fit(40, steps=lambda step, means: told.append((step, means)))
    steps = [step for step, _ in told]
    assert steps == sorted(set(steps)) and steps[-1] == 40 * STEPS and np.isfinite([means for _, means in told]).all()


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("pauses", [False, True])
def test_stopped_and_gone_on_with(pauses, resumed, model, tmp_path):
    """After a stop, in an epoch's midst as it happens, the next fit goes on as if there had been none; so does another session."""
    whole = fitted(model)
    with Session(model) as session:
        session.set_data(TRAIN, data())
        if pauses:
            session.fit(4, pauses=True, epoch=lambda epoch, *_: epoch == 2)
            assert session.status["step"] == 2 * STEPS
        else:
            session.fit(4, steps=lambda *_: True)
            assert 0 < session.status["step"] < 4 * STEPS and session.status["epoch_step"] > 0
        if not resumed:
            session.fit(4)
            assert session.weights() == whole
            return
        session.save(tmp_path / "w")
    with Session(model, seed=9) as other:
        other.resume(tmp_path / "w")
        other.set_data(TRAIN, data())
        other.fit(4)
        assert other.weights() == whole


def test_more_epochs_and_other_data(session):
    session.set_data(TRAIN, data())
    session.fit(2)
    session.set_data(TRAIN, data(33, 7))
    told = []
    session.fit(4, epoch=lambda epoch, *_: told.append(epoch))
    assert told == [3, 4] and session.status["step"] == 2 * STEPS + 2 * 5


def test_a_pause_is_for_the_caller(session, tmp_path):
    """The session may be used, but for what would pull the ground from under the training."""
    session.set_data(TRAIN, data())
    session.set_data(TEST, data(20, 1))
    refused = []

    def epoch(number, means, watched):
        assert np.array_equal(session.evaluate(TEST), watched) and session.predict(data(3)).shape == (3, 300)
        session.save(tmp_path / f"{number}")
        for action in (lambda: session.set_data(TEST, data(9)), lambda: session.fit(9), lambda: session.train(1),
                       lambda: session.drop_data(TRAIN), lambda: session.load(tmp_path / "1")):
            with pytest.raises(Failed, match="training is running") as failed:
                action()
            refused.append(failed.value.code)

    session.fit(3, pauses=True, epoch=epoch)
    assert refused == [USAGE] * 15
    with Session(session.model) as alone:
        alone.set_data(TRAIN, data())
        alone.fit(3)
        assert alone.weights() == session.weights()


def test_a_diverged_training(session):
    session.set_data(TRAIN, data())
    session.set_knob("lr", 1)
    weight = session.tensor("h.weight")
    weight[:] = 3e38
    session.call("set", b"h.weight", ctypes.c_void_p(weight.ctypes.data), ctypes.c_size_t(weight.nbytes))
    with pytest.raises(Failed, match="diverged") as failed:
        session.fit(4)
    assert failed.value.code == BAD_DATA and "\n  try a smaller learning rate: lr = 0.1" in str(failed.value)


def test_fit_without_data(session):
    with pytest.raises(Failed, match="no data to train on"):
        session.fit(1)
    session.set_data(TRAIN, data())
    session.drop_data(TRAIN)
    with pytest.raises(Failed, match="no data to train on"):
        session.fit(1)
    session.drop_data(VALIDATION)


def test_more_epochs_than_steps_can_be_counted(session):
    session.set_data(TRAIN, data())
    with pytest.raises(Failed, match="9223372036854775807 epochs have more steps") as failed:
        session.fit(2**63 - 1, steps=lambda *_: True)
    assert failed.value.code == USAGE and session.status["step"] == 0


# ---- data ----


def test_own_data_that_are_refused_leave_none(model, built, tmp_path):
    x, kind, label = data()
    x[3, 2] = np.nan
    for name, array in zip(("x", "kind", "label"), (x, kind, label)):
        (tmp_path / name).write_bytes(idx_bytes(array))
    with Session(model) as session:
        session.load_data(TEST, built)
        with pytest.raises(Failed) as failed:
            session.load_data(TRAIN, tmp_path)
        assert failed.value.code == BAD_DATA and session.status["examples"] == {"train": 0, "test": 20, "validation": 0}
        with pytest.raises(Failed, match="no data to train on"):
            session.fit(1)


@pytest.mark.parametrize("field, dtype, value", [(1, np.uint8, 5), (2, np.int32, 300), (2, np.int32, -1)])
@pytest.mark.parametrize("lent", [False, True])
def test_classes_are_checked(lent, field, dtype, value, session):
    arrays = [*data()]
    session.set_data(TRAIN, arrays)
    arrays[field] = arrays[field].astype(dtype)
    arrays[field][70] = value
    name, classes = (("kind", 5), ("label", 300))[field - 1]
    message = re.escape(f"field '{name}' of example 70 is {value}: it has {classes} classes, numbered from 0 to {classes - 1}")
    memory = session.memory_of(arrays[field]) if lent else None
    if lent:
        arrays[field] = memory
    for action in (lambda: session.predict(arrays), lambda: session.lend_data(TRAIN, EXAMPLES, arrays)):
        with pytest.raises(Failed, match=message) as failed:
            action()
        assert failed.value.code == BAD_DATA
    if lent:
        session.memory_free(memory)
    session.set_data(TRAIN, data())
    session.fit(1)


def test_lent_data(model, session, tmp_path):
    """Trained with to the same bits as copied data; to a checkpoint they are the same."""
    arrays = data()
    memory = [session.memory_of(array) for array in arrays]
    test = [session.memory_of(array) for array in data(20, 1)]
    session.lend_data(TRAIN, EXAMPLES, [memory[0], arrays[1], memory[2]])
    session.lend_data(TEST, 20, test)
    told = []
    session.fit(4, epoch=lambda _, means, watched: told.append(watched))
    assert session.weights() == fitted(model) and np.array_equal(told[-1], session.evaluate(TEST))
    session.save(tmp_path / "w")
    session.lend_data(TRAIN, EXAMPLES, memory)
    session.drop_data(TRAIN)
    session.set_data(TEST, data(20, 1))
    assert np.array_equal(told[-1], session.evaluate(TEST))
    for array, place in zip(arrays, memory):
        assert np.array_equal(session.memory_read(place, array), array)
        session.memory_free(place)
    for place in test:
        session.memory_free(place)
    with Session(model) as other:
        other.set_data(TRAIN, arrays)
        other.resume(tmp_path / "w")
        other.fit(5)


def test_lent_data_are_aligned(session):
    arrays = [*data()]
    memory = session.memory_of(arrays[0])
    with pytest.raises(Failed, match="field 'x' is lent at .*, which is no multiple of 16 bytes") as failed:
        session.lend_data(TRAIN, EXAMPLES - 1, [memory + 4, *arrays[1:]])
    assert failed.value.code == USAGE
    session.memory_free(memory)


@pytest.mark.gpu
def test_memory_of_the_host_is_not_lent(session):
    arrays = [*data()]
    if session.model.description["target"] == "cuda":
        for action in (lambda: session.lend_data(TRAIN, EXAMPLES, [arrays[0].ctypes.data, *arrays[1:]]),
                       lambda: session.predict(arrays, out=arrays[0].ctypes.data)):
            with pytest.raises(Failed, match="memory of the host") as failed:
                action()
            assert failed.value.code == USAGE


def test_prediction_from_and_to_the_device(session):
    arrays = data(21, 3)
    expected = session.predict(arrays)
    memory, out = [session.memory_of(array) for array in arrays], session.memory_of(np.zeros_like(expected))
    assert np.array_equal(session.predict(memory, examples=21), expected)
    assert session.predict([memory[0], arrays[1], None], out, examples=21) is None
    assert np.array_equal(session.memory_read(out, expected), expected)
    assert np.array_equal(session.predict([arrays[0], memory[1], None], examples=21), expected)
    for place in (*memory, out):
        session.memory_free(place)


def test_tensors_lie_where_they_are_located(session):
    session.set_data(TRAIN, data())
    session.fit(1)
    weight = session.tensor("logits.weight")
    assert np.array_equal(session.memory_read(session.locate("logits.weight"), weight), weight)
    with pytest.raises(Failed, match="did you mean 'logits.weight'"):
        session.locate("logits.weigth")


# ---- several sessions ----


def in_threads(*actions):
    failed = []

    def guarded(action):
        try:
            action()
        except Exception as error:  # for the thread that waits
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def test_two_threads(model):
    expected = {seed: fitted(model, seed, 60) for seed in (1, 2)}

    def train(seed):
        for _ in range(3):
            assert fitted(model, seed, 60) == expected[seed]

    in_threads(lambda: train(1), lambda: train(2))


def test_sessions_come_and_go(model):
    """Beside one that trains; none takes from it what all of them share."""
    expected = fitted(model, 5, 200)

    def others():
        for _ in range(15):
            fitted(model, 6, 1)

    def trains():
        assert fitted(model, 5, 200) == expected

    in_threads(trains, others)
    with Session(model, 5) as session:
        session.set_data(TRAIN, data())
        session.fit(100, epoch=lambda epoch, *_: fitted(model, 6, 1) and epoch == 2, pauses=True)
        fitted(model, 6, 1)
        session.fit(200)


def test_a_session_moves_between_threads(model):
    with Session(model) as session:
        in_threads(lambda: session.set_data(TRAIN, data()))
        in_threads(lambda: session.fit(4))
        assert session.weights() == fitted(model)


def test_two_models_in_one_process(built, model, mtc, tmp_path):
    (tmp_path / "other.mt").write_text(MODEL.replace("300", "310").replace("linear(seen, 16)", "linear(seen, 8)"))
    flags = BUILDS["cpu"] if model.description["target"] == "cpu" else BUILDS[model.description["schedule"]]
    assert mtc(tmp_path / "other.mt", "-o", tmp_path / "other.so", "--shared", "--keep", tmp_path, *flags).returncode == 0
    other = Model(tmp_path / "other.so")
    expected, expected_other = fitted(model), fitted(other)
    with Session(model) as one, Session(other) as two:
        for session in (one, two):
            session.set_data(TRAIN, data())
        for session in (one, two, one, two):
            session.fit(4, pauses=True, epoch=lambda epoch, *_: epoch == 2)
        assert one.weights() == expected and two.weights() == expected_other


def test_one_device(model, session):
    with pytest.raises(Failed) as failed:
        Session(model, device=1)
    assert failed.value.code == UNAVAILABLE


# ---- nothing is left behind ----


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def device_bytes_free():
    driver = ctypes.CDLL("libcuda.so.1")
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value


def test_sessions_leave_no_memory(model):
    on_gpu = model.description["target"] == "cuda"
    out = np.empty((EXAMPLES, 300), np.float32)

    def cycle():
        with Session(model) as session:
            session.set_data(TRAIN, data())
            session.set_data(TEST, data(20, 1))
            session.fit(1, epoch=lambda *_: False)
            session.drop_data(TEST)
            out[:] = session.predict(data())
            assert session.status and model.json("describe", model.pointer)

    for _ in range(50):
        cycle()
    gc.collect()
    before, lost = resident(), []
    for _ in range(5 if on_gpu else 1):  # others may use the GPU meanwhile: what is lost is lost each time
        free = device_bytes_free() if on_gpu else 0
        for _ in range(40 if on_gpu else 1000):
            cycle()
        gc.collect()
        lost.append(free - device_bytes_free() if on_gpu else 0)
    assert resident() - before < (16 << 20 if on_gpu else 2 << 20)
    assert min(lost) <= 4 << 20


def test_faults_leave_no_memory(model, tmp_path):
    (tmp_path / "bad").write_bytes(b"nothing")
    before = 0
    for number in range(400):
        with Session(model) as session:
            for action in (lambda: session.load(tmp_path / "bad"), lambda: session.load_data(TRAIN, tmp_path),
                           lambda: session.fit(1), lambda: session.locate("none"), lambda: Session(model, device=99)):
                with pytest.raises(Failed):
                    action()
        if number == 100:
            before = resident()
    assert resident() - before < 4 << 20


def test_nothing_is_printed(model, built, tmp_path, capfd):
    arrays = [*data()]
    arrays[0][:, 2] = 1  # of which a program warns
    with Session(model) as session:
        session.set_data(TRAIN, arrays)
        session.load_data(TRAIN, built)
        session.fit(2)
        session.save(tmp_path / "w")
        session.load(tmp_path / "w")
        with pytest.raises(Failed):
            session.resume(tmp_path / "none")
    assert capfd.readouterr() == ("", "")
