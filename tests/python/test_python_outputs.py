"""Files of another kind are not replaced from Python either: refused before anything is done."""

import fcntl
import json
import os
import re
import warnings

import numpy as np
import pytest

from python_package import BLOBS, blobs

import mtc
from conftest import MTC, ROOT
from mtc import outputs, plotting, weightfile

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]

TABLE = b"size,price\n1,2\n"
CHECKPOINT, LOG, PICTURE = "checkpoint (safetensors)", "log of a run (JSON lines)", "picture"
DATA = blobs(40)


@pytest.fixture(scope="module")
def model():
    with mtc.compile(BLOBS, target="cpu") as made:
        made.fit(*DATA, epochs=1, verbose=0)
        yield made


WRITERS = {
    "save": (lambda model, path: model.save(path), CHECKPOINT),
    "checkpoint": (lambda model, path: model.fit(*DATA, epochs=1, checkpoint=path, verbose=0), CHECKPOINT),
    "save_best": (lambda model, path: model.fit(*DATA, epochs=1, save_best=path, verbose=0), CHECKPOINT),
    "log": (lambda model, path: model.fit(*DATA, epochs=1, log=path, verbose=0), LOG),
    "to_jsonl": (lambda model, path: model.history.to_jsonl(path), LOG),
    "plot": (lambda model, path: mtc.plot(model.history, output=path), PICTURE),
    "svg": (lambda model, path: plotting.Svg("<svg></svg>").save(path), PICTURE),
}


def refused(path, kind, write):
    before = path.read_bytes()
    with pytest.raises(mtc.FileError) as caught:
        write()
    assert str(caught.value) == f"{path}: would replace a file that is no {kind}\n  choose another name, or remove the file"
    assert caught.value.code == 73 and path.read_bytes() == before


@pytest.mark.parametrize("content", [TABLE, b"{}", b"x", b"\x93NUMPY\x01\x00"])
@pytest.mark.parametrize("writer", WRITERS)
def test_files_of_another_kind(writer, content, model, tmp_path):
    write, kind = WRITERS[writer]
    path = tmp_path / ("notes.svg" if kind == PICTURE else "notes")
    path.write_bytes(content)
    steps = model.status["step"]
    refused(path, kind, lambda: write(model, path))
    refused(path, kind, lambda: write(model, str(path)))
    assert model.status["step"] == steps and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("writer", WRITERS)
def test_what_it_wrote_itself_and_what_is_empty(writer, model, tmp_path):
    write, _ = WRITERS[writer]
    path = tmp_path / ("own.svg" if WRITERS[writer][1] == PICTURE else "own")
    path.write_bytes(b"")
    write(model, path)
    assert path.stat().st_size > 0
    write(model, path)


def test_links_count_as_what_they_lead_to(model, tmp_path):
    (tmp_path / "table").write_bytes(TABLE)
    (tmp_path / "link").symlink_to("table")
    refused(tmp_path / "link", CHECKPOINT, lambda: model.save(tmp_path / "link"))
    model.fit(*DATA, epochs=1, log="/dev/null", verbose=0)


def test_nothing_is_done_before(model, tmp_path):
    """Neither the seed's weights nor those of the checkpoint are there, and the end of the file is not cut."""
    model.save(tmp_path / "w")
    model.fit(*DATA, epochs=1, verbose=0)
    before = model.state_dict()
    (tmp_path / "table").write_bytes(TABLE + b"cut")
    for beginning in ({"seed": 5}, {"resume": tmp_path / "w"}):
        refused(tmp_path / "table", LOG, lambda: model.fit(*DATA, log=tmp_path / "table", verbose=0, **beginning))
    assert all(np.array_equal(model.state_dict()[name], before[name]) for name in before)


def test_the_best_weights_beside_the_checkpoint(model, tmp_path):
    best = tmp_path / "m-best.safetensors"
    best.write_bytes(TABLE)
    refused(best, CHECKPOINT, lambda: model.fit(*DATA, checkpoint=tmp_path / "m.safetensors", save_best=True, verbose=0))
    assert os.listdir(tmp_path) == [best.name]


def test_weights_of_others_are_not_replaced(model, tmp_path):
    """As mtc import and PyTorch write them: no training would bring them back. A model that has loaded them may save there."""
    path, header = tmp_path / "theirs.safetensors", {"__metadata__": {"format": "pt"}}
    numbers = b"".join(values.tobytes() for values in model.state_dict().values())
    at = 0
    for name, values in model.state_dict().items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at := at + values.nbytes]}
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + numbers)
    before = path.read_bytes()
    for write in (lambda: model.save(path), lambda: model.fit(*DATA, epochs=1, verbose=0, checkpoint=path),
                  lambda: model.load(path).fit(*DATA, epochs=1, verbose=0, seed=1, checkpoint=path)):
        with pytest.raises(mtc.FileError, match=f"{path}: would replace weights that no training of mtc has written") as refusal:
            write()
        assert refusal.value.code == 73 and path.read_bytes() == before
    model.load(path).fit(*DATA, epochs=1, verbose=0, checkpoint=path)
    assert weightfile.step_of(path) == model.status["step"]


def test_a_checkpoint_does_not_replace_the_log_of_its_training(model, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(mtc.UsageError, match=f"{path}: checkpoint and log are one file; each needs its own"):
        model.fit(*DATA, epochs=1, log=path, checkpoint=path, verbose=0)
    assert not path.exists()


def test_what_cannot_be_written(model, tmp_path):
    with pytest.raises(mtc.FileError, match="no/run.jsonl: cannot write: No such file or directory"):
        model.history.to_jsonl(tmp_path / "no" / "run.jsonl")


def test_what_cannot_be_read_is_not_replaced(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(TABLE)

    def locked(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(outputs, "open", locked, raising=False)
    with pytest.raises(mtc.FileError, match="file: cannot read what it would replace: Permission denied"):
        outputs.check(tmp_path / "file", outputs.LOG)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "ps", "eps", "jpg", "tiff", "webp", "gif"])
def test_pictures_of_matplotlib_are_replaced(ending, model, tmp_path):
    pytest.importorskip("matplotlib")
    for _ in range(2):
        mtc.plot(model.history, output=tmp_path / f"curves.{ending}")


def test_a_page_with_a_drawing_is_no_picture(model, tmp_path):
    page = tmp_path / "page.svg"
    page.write_text("<!doctype html><svg></svg>")
    refused(page, PICTURE, lambda: mtc.plot(model.history, output=page))


@pytest.mark.parametrize("writer, name, promised, written", [
    ("save", "m.pt", "a pickle of PyTorch", ".safetensors"), ("save", "m.H5", "HDF5", ".safetensors"),
    ("checkpoint", "cp.h5", "HDF5", ".safetensors"), ("save_best", "b.npz", "an archive of NumPy", ".safetensors"),
    ("log", "l.csv", "CSV", ".jsonl, .json and .txt"), ("to_jsonl", "l.safetensors", "safetensors", ".jsonl, .json and .txt")])
def test_names_that_promise_another_kind(writer, name, promised, written, model, tmp_path):
    """In the words of programs, before anything is done."""
    path, steps = tmp_path / name, model.status["step"]
    with pytest.raises(mtc.UsageError) as caught:
        WRITERS[writer][0](model, path)
    assert str(caught.value) == f"{path}: the name promises {promised}; what can be written is {written}"
    assert model.status["step"] == steps and not path.exists()


def test_names_promise_what_programs_say():
    table = (ROOT / "runtime/base/ending.c").read_text().split("formats[]")[1].split("};")[0]
    assert outputs._PROMISED == dict(re.findall(r'{"(.+)", "(.+)"}', table))


# ---- one training at a time ----

OUTPUTS = {"checkpoint": "w.safetensors", "save_best": "w.safetensors", "log": "l.jsonl"}


@pytest.fixture
def other():
    with mtc.compile(BLOBS, target="cpu") as made:
        yield made


@pytest.mark.parametrize("argument", OUTPUTS)
def test_a_file_that_another_training_writes(argument, model, other, tmp_path):
    """Of this process, in the midst of it, as programs lock it; and of another process."""
    path = tmp_path / OUTPUTS[argument]
    lock = tmp_path / f".{path.name}.mtc-lock"
    said = []

    def meanwhile(*_):
        said.append(lock.read_text())
        with pytest.raises(mtc.FileInUse) as caught:
            model.fit(*DATA, epochs=1, verbose=0, seed=5, **{argument: path})
        said.append(str(caught.value))

    seed = model.status["seed"]
    other.fit(*DATA, epochs=1, verbose=0, callbacks=[meanwhile], **{argument: path})
    assert said == [f"process {os.getpid()} of {os.uname().nodename}\n",
                    f"{argument} {path}: another training of this process writes it\n  choose another name, or wait until that one has ended"]
    assert model.status["seed"] == seed and not lock.exists()
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("process 12 of there\n")
        file.flush()
        with pytest.raises(mtc.FileInUse, match="another training writes it: process 12 of there") as caught:
            model.fit(*DATA, epochs=1, verbose=0, **{argument: path})
    assert caught.value.code == 73 and isinstance(caught.value, mtc.FileError)
    warned(lambda: model.fit(*DATA, epochs=1, verbose=0, **{argument: path}))  # nobody holds what is left of it
    assert os.listdir(tmp_path) == [path.name]


def test_an_interrupt_leaves_no_file_locked(model, monkeypatch, tmp_path):
    """Ctrl-C that comes while a file is being locked is raised when the call has returned."""
    functions, path = model.library.functions, tmp_path / "w.safetensors"
    locked = functions.mtc_lock_file

    def interrupted(*arguments):
        locked(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(functions, "mtc_lock_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*DATA, epochs=1, verbose=0, checkpoint=path)
    monkeypatch.undo()
    model.fit(*DATA, epochs=1, verbose=0, checkpoint=path)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("argument", ["checkpoint", "save_best"])
def test_what_a_killed_training_left_goes(argument, model, tmp_path):
    """Not what a process that lives is writing, and what has another name."""
    path, others = tmp_path / OUTPUTS[argument], [f"{OUTPUTS[argument]}.{end}" for end in ("12.tmp", "old.tmp", "13.tmp")]
    for name in others:
        (tmp_path / name).write_bytes(b"half")
    with open(tmp_path / others[0]) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        model.fit(*DATA, epochs=1, verbose=0, **{argument: path})
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, *others[:2]])


def test_a_training_that_raises_lets_go(model, tmp_path):
    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        model.fit(*DATA, epochs=1, verbose=0, checkpoint=tmp_path / "w.safetensors", callbacks=[fail])
    assert not list(tmp_path.glob(".*"))


def test_two_outputs_in_one_file(model, tmp_path):
    path = tmp_path / "w.safetensors"
    with pytest.raises(mtc.UsageError, match="checkpoint and save_best are one file"):
        model.fit(*DATA, epochs=1, verbose=0, checkpoint=path, save_best=tmp_path / "." / path.name)
    model.fit(*DATA, epochs=1, verbose=0, log="/dev/null", checkpoint="/dev/null")


def warned(call):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in told if issubclass(each.category, mtc.TrainingWarning)]


def test_a_checkpoint_of_another_training_is_told_of(model, other, tmp_path):
    """Not where it is this training's own, or the one that it goes on from."""
    path = tmp_path / "w.safetensors"

    def trains(model, **options):
        return warned(lambda: model.fit(*DATA, epochs=1, verbose=0, checkpoint=path, **options))

    model.reset()
    assert trains(model) == trains(model) == []
    replaced = f"{path} is there already, of step {model.status['step']}: this training replaces it"
    assert trains(other.reset()) == [replaced]
    other.reset().resume(path)
    assert trains(other) == [] and trains(other.reset().load(path)) == []
    model.save(best := tmp_path / "w-best.safetensors")
    assert trains(other.reset().load(best)) == []
    path.write_bytes(b"")
    assert trains(other.reset()) == []
