"""Files of another kind are not replaced from Python either: refused before anything is done."""

import os
import re

import numpy as np
import pytest

from python_package import BLOBS, blobs

import mtc
from conftest import MTC, ROOT
from mtc import outputs, plotting

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


def test_a_checkpoint_does_not_replace_the_log_of_its_training(model, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(mtc.FileError, match="would replace a file that is no checkpoint"):
        model.fit(*DATA, epochs=1, log=path, checkpoint=path, verbose=0)
    assert path.read_bytes().startswith(b'{"event": "config"')


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
