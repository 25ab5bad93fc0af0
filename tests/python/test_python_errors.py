"""What the Python package says when something is wrong. The texts are a product: they are compared here."""

import fcntl
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from python_package import BLOBS, LINE, blobs, line

import mtc
from conftest import MTC, ROOT
from mtc import processes
from mtc.errors import by_code

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]

IMAGES = """
data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[4]
}
model { scores = linear(flatten(image), 4) }
train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
}
"""


@pytest.fixture(scope="module")
def model():
    return mtc.compile(BLOBS, target="cpu")


@pytest.fixture(scope="module")
def images():
    return mtc.compile(IMAGES, target="cpu")


@pytest.fixture(scope="module")
def of_line():
    return mtc.compile(LINE, target="cpu")


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


X, Y = blobs(50)
IMAGE = np.zeros((10, 3, 8, 8), np.uint8)
TABLE, _ = line(10)
X_IS = "X: field 'x' is f32[2, 3]: expected an array [N, 2, 3] or [N, 6], got "
Y_IS = "field 'y' is class[3], which takes classes 0 to 2"
IMAGE_IS = "field 'image' is u8[3, 8, 8], which takes whole numbers 0 to 255"


@pytest.mark.parametrize("X, y, kind, text", [
    (X[:, :, :2], Y, mtc.DataError, X_IS + "float32 [50, 2, 2]"),
    (X[0], Y, mtc.DataError, X_IS + "float32 [2, 3]; a single example is X[None]"),
    (3.0, Y, mtc.DataError, X_IS + "a single number"),
    (X[:0], Y, mtc.DataError, X_IS + "float32 [0, 2, 3]: there are no examples"),
    (changed(X, (7, 1, 2), np.nan), Y, mtc.DataError, "X: example 7, element [1, 2] is NaN; field 'x' takes finite numbers"),
    (changed(X, 7, np.inf), Y, mtc.DataError, "X: example 7, element [0, 0] is inf, and 5 more; field 'x' takes finite numbers"),
    (changed(X.astype(float), (3, 0, 1), 1e300), Y, mtc.DataError,
     "X: example 3, element [0, 1] is 1e+300, too large for field 'x', which is f32[2, 3]"),
    (np.ma.masked_less(X, 0), Y, mtc.DataError,
     f"X: {(X < 0).sum()} elements are masked; fill them, or leave those examples out"),
    (X * 1j, Y, mtc.DataError, "X: complex numbers are not supported; give real and imaginary parts as two arrays"),
    (np.zeros(X.shape, "M8[s]"), Y, mtc.DataError, "X: expected numbers, got datetime64[s] [50, 2, 3]"),
    ([[1, 2], [3]], Y, mtc.DataError, "X: the examples of the list have different shapes, or are no numbers; those of a field have one shape: fill shorter ones up, sequences with a "
     "number that stands for nothing else"),
    ("abc", Y, mtc.DataError, "X: expected an array, got str"),
    (X, np.full(50, 3), mtc.DataError, "y: example 0 is 3; " + Y_IS),
    (X, np.arange(50) % 3 + 1, mtc.DataError, "y: example 2 is 3; " + Y_IS + "; they seem to begin with 1: subtract it"),
    (X, -Y.astype(int) - 1, mtc.DataError, f"y: example 0 is {-int(Y[0]) - 1}; " + Y_IS),
    (X, changed(Y.astype(float), 4, 0.5), mtc.DataError, "y: example 4 is 0.5; " + Y_IS),
    (X, Y[:40], mtc.DataError, "X has 50 examples, y has 40 examples: expected as many in each"),
    (X, None, mtc.UsageError, "y is missing: the model needs 'y' class[3]"),
    (None, Y, mtc.UsageError, "y, sample_weight and validation_split belong to X, which is missing"),
    ({"z": X}, Y, mtc.UsageError, "X has 'z', which is no field of the model; its fields are x"),
    ({"x": X}, None, mtc.UsageError, "X lacks 'y': expected x, y")])
def test_data(model, X, y, kind, text):
    with pytest.raises(kind) as caught:
        model.fit(X, y, verbose=0)
    assert str(caught.value) == text and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("X, text", [
    (IMAGE / 2 + 0.25, "X: example 0, element [0, 0, 0] is 0.25; " + IMAGE_IS + "; if 1 stands for 255: np.rint(X * 255)"),
    (IMAGE + np.int64(300), "X: example 0, element [0, 0, 0] is 300; " + IMAGE_IS),
    (IMAGE.transpose(0, 2, 3, 1), "X: field 'image' is u8[3, 8, 8]: expected an array [N, 3, 8, 8] or [N, 192], got uint8 [10, 8, 8, 3]: "
     "the axes are in another order; channels are the first axis here: np.moveaxis(array, -1, 1)")])
def test_images(images, X, text):
    with pytest.raises(mtc.DataError) as caught:
        images.predict(X)
    assert str(caught.value) == text


def test_several_fields(of_line):
    for given, text in ((np.zeros((5, 3)), "X: expected a table [N, 2] with the columns a, b, got float64 [5, 3]"),
                        ((TABLE[:, 0],), "X: the model has 2 fields for it, a f32, b f32: give a dict {'a': ..., 'b': ...}, or a tuple in this order")):
        with pytest.raises((mtc.DataError, mtc.UsageError), match=re.escape(text)):
            of_line.predict(given)
    with pytest.raises(mtc.DataError, match=re.escape("X['a'] has 10 examples, X['b'] has 9 examples: expected as many in each")):
        of_line.predict({"a": TABLE[:, 0], "b": TABLE[:9, 1]})


def test_sparse(model):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(mtc.DataError, match=re.escape("X: a sparse matrix; a model reads dense arrays: X.toarray()")):
        model.predict(sparse.eye(6))


def test_a_param_is_bound_as_what_it_is_given_to():
    text = LINE.replace("optimizer", "clip_norm = limit\n  optimizer")
    model = mtc.compile("param limit = 1.0\n" + text, target="cpu")
    assert model.description["params"][0]["bound"] == "goes to clip_norm: above 0"
    with pytest.raises(mtc.UsageError, match=re.escape("'limit' goes to clip_norm: above 0, not -1")):
        model.set(limit=-1)


@pytest.mark.parametrize("call, text", [
    (lambda m: m.set(lrr=3), "the model has no param 'lrr'; did you mean 'lr'?"),
    (lambda m: m.set(hidden=3), "the param 'hidden' is compiled in, as 8: give it to mtc.compile"),
    (lambda m: m.set(lr=3), "'lr' is from 0 to 1, not 3"),
    (lambda m: m.set(lr="high"), "the param 'lr' is a number, got 'high'"),
    (lambda m: m.fit(X, Y, epochs=0), "epochs is a whole number from 1 on, not 0"),
    (lambda m: m.fit(X, Y, early_stopping="val_loss"), "early_stopping is a number of epochs or an mtc.EarlyStopping, not 'val_loss'"),
    (lambda m: m.fit(X, Y, early_stopping=mtc.EarlyStopping("val_loss")), "there is no 'val_loss' to monitor; there are no validation data"),
    (lambda m: m.fit(X, Y, early_stopping=mtc.EarlyStopping("acuracy")), "there is no 'acuracy' to monitor; did you mean 'accuracy'?"),
    (lambda m: mtc.EarlyStopping(3), "monitor is the name of a report, such as 'val_loss', not 3; early_stopping=3 is a patience"),
    (lambda m: mtc.EarlyStopping(min_delta="a"), "min_delta is 0 or more, not 'a'"),
    (lambda m: m.fit(X, Y, validation_split="0.2"), "validation_split is a part between 0 and 1, not '0.2'"),
    (lambda m: mtc.EarlyStopping(patience=0), "patience, epochs without a better one, is a whole number from 1 on, not 0"),
    (lambda m: m.fit(X, Y, callbacks=[3]), "a callback is an mtc.Callback, or a function (model, epoch, logs), not int"),
    (lambda m: m.fit(X, Y, callbacks=mtc.Callback), "callbacks are objects: Callback(), not the class"),
    (lambda m: m.fit(X, Y, save_best=True),
     "save_best=True writes beside the checkpoint: give checkpoint='m.safetensors', or save_best='best.safetensors'"),
    (lambda m: m.fit(X, Y, validation_split=2), "validation_split is a part between 0 and 1, not 2"),
    (lambda m: m.fit(X, Y, validation_split=0.5, validation_data=(X, Y)), "validation_data or validation_split, not both"),
    (lambda m: m.fit(X, Y, validation_data=X), "validation y is missing: the model needs 'y' class[3]"),
    (lambda m: m.fit(X, Y, resume="w", seed=3), "seed begins a training anew, resume goes on with one: give one of them"),
    (lambda m: m.fit(X, Y, data="folder"), "data is the folder of the model's own data: leave it out, or X and y"),
    (lambda m: m.evaluate(split="validation"), "the model's own data have no split 'validation'; they have 'train', 'test'"),
    (lambda m: mtc.compile("mnist"),
     "expected the path of a model, which ends in .mt, or the text of one, which has several lines; got 'mnist'"),
    (lambda m: mtc.compile(3), "expected the path or the text of a model, got int"),
    (lambda m: mtc.compile(BLOBS, target="cpu", hiden=3),
     "the model has no param 'hiden'; did you mean 'hidden'?\n  its params are 'hidden' and 'lr'"),
    (lambda m: mtc.compile(BLOBS, tarjet="cpu"), "the param 'tarjet' is a number, got 'cpu'; did you mean 'target'?"),
    (lambda m: mtc.compile(BLOBS, target="cpu", seed=-1), "seed is a whole number from 0 on, not -1"),
    (lambda m: mtc.compile(BLOBS, target="cpu", device=0.5), "device is a whole number from 0 on, not 0.5")])
def test_usage(model, call, text):
    with pytest.raises(mtc.UsageError) as caught:
        call(model)
    assert str(caught.value) == text and isinstance(caught.value, ValueError) and caught.value.code == 64


def test_mistyped_keyword(model):
    with pytest.raises(TypeError, match=re.escape("fit() got an unexpected keyword argument 'epoch'; did you mean 'epochs'?")):
        model.fit(X, Y, epoch=3)


def test_pickle(model):
    with pytest.raises(TypeError, match="a Model cannot be pickled or copied: save its weights"):
        pickle.dumps(model)


# ---- compiling ----


def test_compile_error_is_the_compilers_text(tmp_path, mtc, monkeypatch):
    import mtc as package

    (tmp_path / "bad.mt").write_text(BLOBS.replace("linear(h, 3)", "linear(h, 4)"))
    expected = mtc("bad.mt", "--target", "cpu", cwd=tmp_path).stderr.strip("\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(package.CompileError) as caught:
        package.compile("bad.mt", target="cpu")
    error = caught.value
    assert str(error) == expected and "^~~~" in expected and (error.file, error.line, error.column) == ("bad.mt", 16, 29)
    assert str(pickle.loads(pickle.dumps(error))) == expected
    with pytest.raises(package.CompileError) as caught:
        package.compile((tmp_path / "bad.mt").read_text(), target="cpu")
    assert str(caught.value) == expected.replace("bad.mt", "<model>")


def test_param_out_of_range():
    with pytest.raises(mtc.CompileError, match=r"^<model>:3:1: error: lr=3: outside the range 0..1\n +3 \| param lr "):
        mtc.compile(BLOBS, target="cpu", lr=3)


@pytest.mark.parametrize("options, text", [
    ({"target": "cpu", "arch": "sm_90"}, "arch names GPUs; it does not go with the cpu target"),
    ({"target": "cpu", "schedule": "graph"}, "schedule is of the cuda target; it does not go with the cpu target"),
    ({"target": "cpu", "hidden": 2.5}, "hidden=2.5: 'hidden' is a whole number")])
def test_arguments_are_called_as_in_python(options, text):
    with pytest.raises(mtc.CompileError) as caught:
        mtc.compile(BLOBS, **options)
    assert f"error: {text}" in str(caught.value) and "--" not in str(caught.value)


@pytest.mark.parametrize("said, told", [
    ("no CUDA device: none is visible\n  to train on the CPU: mtc my models/m.mt --target cpu --shared",
     "no CUDA device: none is visible\n  to train on the CPU: mtc.compile(..., target='cpu')"),
    ("this library was built for sm_75; device 0, H200, is sm_90\n  rebuild it: mtc m.mt --arch sm_90 --shared",
     "this library was built for sm_75; device 0, H200, is sm_90\n  rebuild it: mtc.compile(..., arch='sm_90')"),
    ("images of other sizes are scaled with resize = true in the model, or with predict --resize",
     "images of other sizes are scaled with resize = true in the model"),
    ("2 of 9 files cannot be used; --bad-rows skip leaves such files out", "2 of 9 files cannot be used")])
def test_what_programs_advise(said, told):
    assert str(by_code(69, said)) == told


def test_a_line_of_the_model_stays_as_it_is():
    text = BLOBS.replace("linear(h, 3)", "linaer(h, 3)  # --set hidden=3, --target cpu")
    with pytest.raises(mtc.CompileError, match=re.escape("# --set hidden=3, --target cpu\n")):
        mtc.compile(text, target="cpu")


def test_no_such_model():
    with pytest.raises(mtc.FileError, match="^cannot read the model 'nowhere.mt': No such file or directory$") as caught:
        mtc.compile("nowhere.mt")
    assert isinstance(caught.value, OSError)


def test_missing_compiler(monkeypatch, tmp_path):
    from mtc import toolchain

    monkeypatch.setenv("MTC_COMPILER", "/nowhere/mtc")
    with pytest.raises(mtc.CompilerMissing, match="^MTC_COMPILER is '/nowhere/mtc', which is no program that can be run$"):
        mtc.compile(BLOBS)
    monkeypatch.delenv("MTC_COMPILER")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "_HERE", tmp_path / "site" / "mtc")
    with pytest.raises(mtc.CompilerMissing, match="the compiler mtc was not found.*\n  install the wheel.*'make wheel'.*MTC_COMPILER") as caught:
        mtc.compile(BLOBS)
    assert isinstance(caught.value, mtc.CompileError)


def test_missing_c_compiler(monkeypatch):
    monkeypatch.setenv("CC", "/nowhere/cc")
    with pytest.raises(mtc.CompileError, match="/nowhere/cc"):
        mtc.compile(BLOBS.replace("hidden = 8", "hidden = 11"), target="cpu")


def test_no_library_of_a_model(tmp_path):
    from mtc.library import Library

    (tmp_path / "model.so").write_text("no library")
    with pytest.raises(mtc.UsageError, match="model.so' is no library of a model: "):
        Library(tmp_path / "model.so")


# ---- devices ----


def test_no_such_device(capsys):
    """Told by what needs it, each time; what describes the model does not."""
    model = mtc.compile(BLOBS, target="cpu", device=3)
    model.summary()
    assert "scores" in capsys.readouterr().out and "x f32[2, 3]" in repr(model) and model.batch == 16
    for call in (lambda: model.fit(X, Y), lambda: model.predict(X), lambda: model.score(X, Y), lambda: model.state_dict(),
                 lambda: model.save("w"), lambda: model.load("w"), lambda: model.status, lambda: model.set(lr=0.1)):
        with pytest.raises(mtc.DeviceError, match="^no device 3: this library runs on the CPU, which is device 0$") as caught:
            call()
        assert isinstance(caught.value, RuntimeError) and caught.value.code == 69


@pytest.mark.nvcc
def test_no_gpu():
    """What the device says is an exception, and the interpreter goes on."""
    script = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
import conftest, python_package, mtc
model = mtc.compile(python_package.BLOBS, target="cuda", arch="sm_80")
print(model)
try:
    model.fit(*python_package.blobs(20))
except mtc.DeviceError as error:
    print(error)
print(mtc.compile(python_package.BLOBS).description["target"])
"""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=300)
    shown, first, hint, target = done.stdout.splitlines()
    assert "batch 16, cuda sm_80" in shown and first.startswith("no CUDA device: ") and target == "cpu", done.stdout + done.stderr
    assert hint == "  to train on the CPU: mtc.compile(..., target='cpu')"


@pytest.mark.parametrize("visible, target", [("", "cpu"), ("-1", "cpu"), (" NoDevFiles ", "cpu"), ("0", None), (None, None)])
def test_gpus_that_are_hidden(visible, target, monkeypatch):
    from mtc import toolchain

    monkeypatch.setattr(toolchain.glob, "glob", lambda pattern: ["/dev/nvidia0"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert toolchain.default_target() == target


# ---- files ----


def test_files(model, of_line, tmp_path):
    (tmp_path / "text").write_text("no weights")
    (tmp_path / "network.onnx").write_bytes(b"\x08\x08\x12\x07pytorch")
    of_line.save(tmp_path / "other")
    before = model.state_dict()
    for call, kind, text in (
            (lambda: model.load(tmp_path / "nothing"), mtc.FileError, "nothing: cannot open: No such file or directory"),
            (lambda: model.load(tmp_path / "text"), mtc.DataError, "text: is not a safetensors file"),
            (lambda: model.load(tmp_path / "other"), mtc.DataError, "does not hold the weights of this model: 4 missing, 2 unexpected\n  h.weight: is "),
            (lambda: model.load(tmp_path / "text", partial=True), mtc.DataError, "text: is not a safetensors file: its first 8 bytes"),
            (lambda: model.load(tmp_path / "network.onnx", partial=True), mtc.DataError, "is not a safetensors file, but a network of ONNX"),
            (lambda: model.load(tmp_path / "other", partial=True), mtc.DataError, "none of its tensors has the name and shape of one of the"),
            (lambda: model.load(tmp_path / "nothing", partial=True), mtc.FileError, "nothing: cannot read: No such file"),
            (lambda: model.fit(X, Y, resume=tmp_path / "other"), mtc.DataError, "does not hold the weights of this model"),
            (lambda: model.save(tmp_path / "no" / "w"), mtc.FileError, "cannot write: there is no folder"),
            (lambda: model.fit(X, Y, log=tmp_path / "no" / "l", verbose=0), mtc.FileError, "cannot write: No such file or directory"),
            (lambda: model.fit(data=tmp_path), mtc.FileError,
             "no data file 'train.npz'; tried\n.*\n  say where it is with data='FOLDER' or .MTC_DATA_DIR$")):
        with pytest.raises(kind, match=f"(?s){text}"):
            call()
    assert all(np.array_equal(before[name], values) for name, values in model.state_dict().items())


@pytest.mark.parametrize("value, shown", [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_weights_of_files_are_finite(model, value, shown, tmp_path):
    """The first bad one is that of the last tensor: none before it was taken."""
    model.fit(X, Y, epochs=1, verbose=0)
    before = model.state_dict()
    write_weights(tmp_path / "w", {**before, "scores.weight": changed(before["scores.weight"], (2, 1), value)})
    for partial, text in ((False, f"{tmp_path / 'w'}: 'scores.weight' is not finite: element [2, 1] is {shown}"),
                          (True, f"'scores.weight': element [2, 1] is {shown}; weights are finite numbers; nothing was changed")):
        with pytest.raises(mtc.DataError) as caught:
            model.load(tmp_path / "w", partial=partial)
        assert str(caught.value) == text
    assert all(np.array_equal(before[name], values) for name, values in model.state_dict().items())
    write_weights(tmp_path / "w", {name: values + 1 for name, values in before.items()})
    model.load(tmp_path / "w")
    assert np.array_equal(model.params["h.weight"], before["h.weight"] + 1)
    model.load_state_dict(before)


def write_weights(path, arrays):
    """A safetensors file, as other programs write it."""
    header, at = {}, 0
    for name, values in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(values.tobytes() for values in arrays.values()))


ROWS = """
data {
  train = csv("rows.csv")
  size : f32[1] = column("size")
  kind : class[2] = column("kind")
}
model { scores = linear(size, 2) }
train {
  loss = cross_entropy(scores, kind)
  optimizer = sgd(0.1)
}
"""


@pytest.mark.parametrize("rows", ["size,kind\n1,a\n2,b\n3\n", "size,kind\n1,a\n2,b\nlarge,a\n"])
def test_bad_rows(rows, tmp_path):
    """Without advice that only programs can take."""
    (tmp_path / "rows.csv").write_text(rows)
    with mtc.compile(ROWS, target="cpu") as of_rows, pytest.raises(mtc.DataError, match="rows.csv:4:1: ") as caught:
        of_rows.fit(data=tmp_path)
    assert "--" not in str(caught.value)


def test_checkpoint_that_cannot_be_written(tmp_path):
    with mtc.compile(BLOBS, target="cpu") as model:
        with pytest.raises(mtc.FileError, match="cannot write"):
            model.fit(X, Y, checkpoint=tmp_path / "no" / "w", verbose=0)
        assert model.fit(X, Y, epochs=1, verbose=0).epochs == [2]


# ---- after the end ----


def test_closed():
    model = mtc.compile(BLOBS, target="cpu")
    model.close()
    model.close()
    for call in (lambda: model.fit(X, Y), lambda: model.predict(X), lambda: model.save("w"), lambda: model.status, lambda: model.set(lr=0.1)):
        with pytest.raises(mtc.UsageError, match="^the model is closed$"):
            call()
    assert "x f32[2, 3]" in repr(model)


def in_a_fork(check):
    """Whether the function returned True in a child process."""
    child = os.fork()
    if not child:
        try:
            os._exit(0 if check() else 2)
        finally:
            os._exit(1)
    for _ in range(300):
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def test_a_fork_has_no_models():
    model = mtc.compile(BLOBS, target="cpu")
    model.predict(X)

    def refused():
        with pytest.raises(mtc.UsageError, match="belongs to the process that this one was forked from: compile it again"):
            model.predict(X)
        return True

    assert in_a_fork(refused)
    assert model.predict(X).shape == (50,)


def test_a_fork_waits_for_no_thread_of_its_parent():
    """What another thread held when the process was forked, nobody lets go of in the child."""
    model, fitted = mtc.compile(BLOBS, target="cpu"), mtc.Classifier((4,), epochs=1, random_state=0, target="cpu").fit(X.reshape(50, -1), Y)
    held, go_on = threading.Event(), threading.Event()

    def hold(*_):
        with fitted._trained._lock, processes._making:
            held.set()
            go_on.wait()

    thread = threading.Thread(target=lambda: model.fit(X, Y, epochs=1, callbacks=[hold], verbose=0))
    thread.start()
    held.wait()

    def refused():
        for call in (lambda: model.predict(X), lambda: model.fit(X, Y), model.reset, lambda: fitted.predict(X.reshape(50, -1))):
            with pytest.raises(mtc.UsageError, match="belongs to the process that this one was forked from"):
                call()
        return processes.scratch().is_dir()

    try:
        assert in_a_fork(refused)
    finally:
        go_on.set()
        thread.join()
    assert model.status["epoch"] == 1 and fitted.predict(X.reshape(50, -1)).shape == (50,)


def scratch_of(folder, after, before=""):
    """What a process leaves behind that has a folder in this one."""
    code = f"import os, signal, multiprocessing\nfrom mtc.processes import scratch\n{before}\nprint(scratch())\n{after}"
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=not after, stdout=subprocess.DEVNULL)
    return list(folder.iterdir())


def test_processes_leave_no_folders(tmp_path):
    """Also those of multiprocessing, which end without what atexit runs; of one that was killed the next process removes it, but
    not of one that lives."""
    lives = tmp_path / "mtc-python-lives"
    lives.mkdir()
    lock = os.open(lives, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert len(scratch_of(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")) == 2
    assert scratch_of(tmp_path, "") == [lives]
    forked = "child = multiprocessing.get_context('fork').Process(target=scratch)\nchild.start()\nchild.join()"
    assert scratch_of(tmp_path, "", forked) == [lives]
    os.close(lock)
    assert scratch_of(tmp_path, "") == []


def test_a_fork_can_make_its_own():
    """Also where the parent's OpenMP threads, which the child does not have, have been at work."""
    images, labels = np.zeros((200, 28, 28), np.uint8), np.arange(200) % 10
    path = ROOT / "models" / "mnist.mt"
    parent = mtc.compile(path, target="cpu")
    expected = dict(parent.fit(images, labels, epochs=2, verbose=0))
    assert in_a_fork(lambda: dict(mtc.compile(path, target="cpu").fit(images, labels, epochs=2, verbose=0)) == expected)


# ---- what else new users do ----


def test_networks_that_answer_otherwise():
    """What the first networks of other kinds meet, each told with what to do: an answer for each position, an autoencoder, a head of
    other classes."""
    text = mtc.Sequential([mtc.Embedding(5, 4), mtc.GRU(4, 3), mtc.Linear(3, 2)], input_shape=(6,), target="cpu")
    with pytest.raises(mtc.DataError, match="the model answers for each of 6 positions: for one answer, last=True of a recurrent layer"):
        text.fit(np.zeros((20, 6), "i4"), np.zeros(20, "i4"))
    repeats = mtc.Sequential([mtc.Flatten(), mtc.Linear(6, 6), mtc.Reshape((2, 3))], "mse", input_shape=(2, 3), target="cpu")
    with pytest.raises(mtc.UsageError, match=r"y is missing: the model needs 'y' f32\[2, 3\]; where the network is to give what it reads, X is both"):
        repeats.fit(X)
    with pytest.raises(mtc.UsageError, match=r"takes a vector \[n\] of scores, but .* gives \[2, 3\]: put mtc.Flatten\(\) behind it"):
        mtc.Sequential(repeats, "bce", input_shape=(2, 3))


def test_weights_of_another_head(tmp_path):
    first, second = (mtc.Sequential([mtc.Linear(3, n, name="head")], target="cpu") for n in (4, 2))
    first.save(tmp_path / "first.safetensors")
    with pytest.raises(mtc.DataError, match=r"of this model: 2 different; load\(FILE, partial=True\) takes those that fit\n  head.weight: expected"):
        second.load(tmp_path / "first.safetensors")


@pytest.mark.parametrize("name, cure", [
    ("CSVLogger", "fit(log=FILE)"), ("TensorBoard", "--tensorboard"), ("LearningRateScheduler", "model.set(lr=...)"), ("ZeroPadding2D", "padding= of mtc.Conv2d"),
    ("RandomZoom", "mtc.RandomResizedCrop"), ("to_categorical", "soft_cross_entropy")])
def test_habits_of_keras(name, cure):
    with pytest.raises(AttributeError, match=re.escape(cure)):
        getattr(mtc, name)


def test_what_the_c_compiler_said(tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nfor i in $(seq 1 33); do echo x.c:$i:2: error: nope >&2; done\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(mtc.CompileError) as caught:
        mtc.compile(BLOBS, target="cpu", hidden=9)
    text = str(caught.value)
    assert "could not compile the generated program" in text and "cc said:\n  x.c:1:2: error: nope\n" in text
    assert "  x.c:30:2: error: nope\n  ... 3 lines more" in text and ".log" not in text and type(caught.value) is mtc.CompileError


def test_no_c_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-cc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(mtc.CompilerMissing, match="no C compiler: 'no-such-cc' .*\n  install gcc or clang"):
        mtc.compile(BLOBS, target="cpu", hidden=9)


def test_no_nvcc(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(mtc.CompilerMissing, match="no nvcc in PATH .*; target='cpu' needs none\n  install NVIDIA's CUDA toolkit"):
        mtc.compile(BLOBS, target="cuda", hidden=9)


def test_weights_are_finite(model):
    before = model.state_dict()
    broken = {**before, "h.weight": changed(before["h.weight"], (2, 1), np.nan)}

    def element():
        model.params["h.weight"][1, 2] = np.inf

    def all_of_it():
        model.params["h.bias"] = np.nan

    for call, text in ((lambda: model.load_state_dict(broken), "'h.weight': element [2, 1] is NaN"), (element, "'h.weight': element [1, 2] is inf"),
                       (all_of_it, "'h.bias': the value is NaN")):
        with pytest.raises(mtc.DataError) as caught:
            call()
        assert str(caught.value) == f"{text}; weights are finite numbers; nothing was changed"
    assert all(np.array_equal(before[name], values) for name, values in model.state_dict().items())


class Loader:
    """As torch.utils.data.DataLoader is one."""

    dataset, batch_size = X, 16

    def __iter__(self):
        return iter([(X, Y)])


@pytest.mark.parametrize("make, name", [(Loader, "Loader"), (lambda: ((X, Y) for _ in range(3)), "generator"), (lambda: iter([X]), "list_iterator")])
def test_batches(model, make, name):
    for call in (lambda: model.fit(make()), lambda: model.fit(make(), Y), lambda: model.predict(make())):
        with pytest.raises(mtc.DataError, match=f"^X: mtc takes whole arrays, not a {name}: give X and y with all examples"):
            call()


def test_arguments_of_fit_given_to_compile():
    for value in (3, "many"):
        with pytest.raises(mtc.UsageError, match=r"; epochs is an argument of fit: model.fit\(X, y, epochs=...\)"):
            mtc.compile(BLOBS, target="cpu", epochs=value)


def test_weights_of_examples(model):
    """Of a model that weighs none: the text is the user's own."""
    with pytest.raises(TypeError, match="'class_weight': sample_weight has what each example counts"):
        model.fit(X, Y, class_weight={0: 1})
    for call in model.fit, model.evaluate:
        with pytest.raises(mtc.UsageError, match="sample_weight: the model weighs no examples; .*`example_weight = w`"):
            call(X, Y, sample_weight=np.ones(len(X)))


def test_epochs_of_a_checkpoint_count(tmp_path):
    with mtc.compile(BLOBS, target="cpu") as model:
        model.fit(X, Y, epochs=3, verbose=0, checkpoint=tmp_path / "c")
        with pytest.warns(UserWarning, match="^nothing to train: the checkpoint has 3 epochs already, and epochs=2 counts them$") as told:
            assert model.fit(X, Y, epochs=2, verbose=0, resume=tmp_path / "c").epochs == []
        assert told[0].filename == __file__


def test_what_ctrl_c_says(tmp_path, hears_ctrl_c):
    def interrupt(model, epoch, logs):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)

    with mtc.compile(BLOBS, target="cpu") as model:
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(X, Y, verbose=0, callbacks=interrupt)
        assert str(caught.value) == ("training was interrupted after 4 steps, at the end of epoch 1; no checkpoint was written "
                                     "(checkpoint=FILE); the model keeps what it has learned")
        file = tmp_path / "c"
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(X, Y, verbose=0, callbacks=interrupt, checkpoint=file)
        assert str(caught.value) == ("training was interrupted after 4 steps, at the end of epoch 2; the checkpoint was written: "
                                     f"fit(..., resume={str(file)!r}) goes on from that step")
