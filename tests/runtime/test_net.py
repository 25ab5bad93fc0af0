"""Libraries of the prediction alone (mtc --shared --predict-only): what they compute, what they refuse, threads, the examples that use them."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request

import numpy as np
import pytest

from conftest import MTC, ROOT
from embedded import TRAIN, Model, Session
from fake_data import pack, unpack
from runtime_library import SANITIZERS, build_program

EMBED = ROOT / "examples" / "embed"
sys.path.insert(0, str(EMBED))

from net import Net  # noqa: E402

pytestmark = pytest.mark.quick

MODEL = """\
param scale = 2 in 0..10

data {
  train = idx("image", "kind", "label")
  image : f32[2, 6, 6]
  kind  : class[3]
  label : class[5]
}

model {
  seen   = relu(conv2d(normalize(image), 4, 3))
  mixed  = concat([flatten(seen), embedding(kind, 3, 4)], axis = 0)
  logits = linear(mixed, 5) * scale
}

train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = adam(0.01)
  ema       = 0.5
  batch     = 8
  epochs    = 4
}
"""
EXAMPLES = 21  # two batches, and one that is not full


def data(count=EXAMPLES, seed=0):
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, count).astype(np.uint8)
    return random.standard_normal((count, 2, 6, 6)).astype(np.float32) * 3 + 1, kind, ((kind * 2) % 5).astype(np.uint8)


def compiled(folder, output, *flags, code=0, model="m.mt"):
    done = subprocess.run([MTC, model, "-o", output, "--target", "cpu", "--shared", "--keep", folder, *flags], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the libraries, of a checkpoint w, and what the library that trains predicts with it."""
    folder = tmp_path_factory.mktemp("net")
    (folder / "m.mt").write_text(MODEL)
    compiled(folder, "full.so")
    compiled(folder, "libnet.so", "--predict-only")
    with Session(Model(folder / "full.so")) as session:
        session.set_data(TRAIN, data(64, 1))
        session.set_knob("scale", 3)
        session.fit(4)
        session.save(folder / "w")
        session.load(folder / "w")  # takes the moving averages
        expected = session.predict(data())
    return folder, expected


def close(got, expected):
    assert got.shape == expected.shape and np.allclose(got, expected, rtol=1e-4, atol=1e-6)


def test_it_predicts_what_the_training_library_does(built):
    folder, expected = built
    net = Net(folder / "libnet.so", folder / "w")
    assert [(field.name, field.type, field.shape, field.classes) for field in net.inputs] == [
        (b"image", b"f32", (2, 6, 6), 0), (b"kind", b"u8", (), 3)]
    assert (net.output.name, net.output.type, net.output.shape, net.output.classes) == (b"prediction", b"f32", (5,), 5)
    image, kind, _ = data()
    close(net(image, kind), expected)
    assert all(np.array_equal(net(image[i:i + 1], kind[i:i + 1])[0], net(image, kind)[i]) for i in (0, 8, 20))
    other = net.share()
    net.close()
    close(other(image, kind), expected)
    other.close()


def test_what_is_in_it(built):
    """The forward pass: no training, no optimizer, no readers; and its size says so."""
    folder, _ = built
    symbols = subprocess.run(["nm", "-D", "--defined-only", folder / "libnet.so"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    assert names == {f"mtc_net_{name}" for name in "open share close error inputs input output class run".split()}
    assert (folder / "libnet.so").stat().st_size < 150_000 < (folder / "full.so").stat().st_size
    source = subprocess.run([MTC, "m.mt", "--target", "cpu", "--shared", "--predict-only", "--emit=c"], cwd=folder, capture_output=True, text=True, check=True)
    assert "train_phases" not in source.stdout and "int main" not in source.stdout and "label_" not in source.stdout


def alone(folder):
    """The weights as others write them."""
    header, content = unpack((folder / "w").read_bytes())
    header.pop("__metadata__")
    return {name: np.frombuffer(content[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"]) for name, entry in header.items()
            if not name.endswith((".m", ".v", ".ema"))}


def written(path, arrays, metadata=None):
    header, content = {"__metadata__": metadata} if metadata else {}, b""
    for name, array in arrays.items():
        kind = {"<f4": "F32", "<f8": "F64", "<f2": "F16", "<i8": "I64", "|i1": "I8"}[array.dtype.str]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(content), len(content) + array.nbytes]}
        content += array.tobytes()
    path.write_bytes(pack(header, content))
    return path


def test_files_of_others(built, tmp_path):
    """Floats of any width; no averages, and the model's own value of a param."""
    folder, _ = built
    image, kind, _ = data()
    weights = alone(folder)
    answers = {}
    for type_ in ("<f4", "<f8", "<f2"):
        net = Net(folder / "libnet.so", written(tmp_path / "w", {name: array.astype(type_) for name, array in weights.items()}))
        answers[type_] = net(image, kind)
        net.close()
    assert np.array_equal(answers["<f4"], answers["<f8"]) and np.allclose(answers["<f4"], answers["<f2"], atol=0.02)
    words = {"mtc.param.scale": "3", "mtc.encoding": json.dumps({"label": {"words": list("abcde")}, "kind": {"words": ["x", "y", "é"]}})}
    net = Net(folder / "libnet.so", written(tmp_path / "w", weights, words))
    assert not np.allclose(net(image, kind), answers["<f4"])
    assert [net.class_name(i) for i in range(6)] == [*"abcde", "5"] and net.class_name(2, 1) == "é" and net.class_name(0, 0) == "0"
    net.close()


def test_files_that_are_wrong(built, tmp_path):
    folder, _ = built
    weights = alone(folder)
    name = "seen.weight" if "seen.weight" in weights else next(name for name in weights if weights[name].ndim == 4)
    less = {key: value for key, value in weights.items() if key != name}
    cases = [({**less}, f"has no tensor '{name}"), ({**less, name: weights[name][:2]}, "expected floats of shape [4, 2, 3, 3], found [2, 2, 3, 3] of type F32"),
             ({**less, name: weights[name].astype("<i8")}, "found [4, 2, 3, 3] of type I64"),
             ({**less, name: np.where(weights[name] == weights[name].max(), np.nan, weights[name]).astype("<f4")}, "] is NaN")]
    for arrays, says in cases:
        with pytest.raises(RuntimeError) as failed:
            Net(folder / "libnet.so", written(tmp_path / "bad", arrays))
        assert "bad: " in str(failed.value) and says in str(failed.value)
    for value, says in ("11", "'scale' is from 0 to 10, not 11"), ("nan", "'scale' is an integer, not nan"), ("3x", "'mtc.param.scale' of its metadata is no number: '3x'"):
        with pytest.raises(RuntimeError, match=f"bad: .*{says}"):
            Net(folder / "libnet.so", written(tmp_path / "bad", weights, {"mtc.param.scale": value}))
    damaged = bytearray((folder / "w").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "bad").write_bytes(damaged)
    with pytest.raises(RuntimeError, match="is damaged"):
        Net(folder / "libnet.so", tmp_path / "bad")
    with pytest.raises(RuntimeError, match="the library carries no weights: name a file, or compile it with --embed"):
        Net(folder / "libnet.so")


def test_weights_in_the_library(built, tmp_path):
    folder, expected = built
    (tmp_path / "m.mt").write_text(MODEL)
    shutil.copy(folder / "w", tmp_path / "w.safetensors")
    compiled(tmp_path, "libnet.so", "--predict-only", "--embed", "w.safetensors")
    (tmp_path / "w.safetensors").unlink()
    net = Net(tmp_path / "libnet.so")
    close(net(*data()[:2]), expected)
    net.close()
    (carried,) = tmp_path.glob("m-*.safetensors")  # what the assembler took, in the folder of --keep
    header, _ = unpack(carried.read_bytes())
    assert header.pop("__metadata__") == {"format": "pt", "mtc.param.scale": "3"}
    assert "logits.weight.ema" in header and not any(name.endswith((".m", ".v")) or name == "logits.weight" for name in header)


def test_weights_that_cannot_be_carried(tmp_path):
    (tmp_path / "m.mt").write_text(MODEL)
    written(tmp_path / "w", {"logits.bias": np.zeros(5, "<f4")})
    (tmp_path / "text").write_text("none")
    missing = compiled(tmp_path, "libnet.so", "--predict-only", "--embed", "w", code=65)
    name = missing.split("w: has no tensor '")[1].split("'")[0]
    written(tmp_path / "w", {name: np.zeros((1, 3), "<f4")})
    assert f"w: tensor '{name}': expected floats of shape [" in (said := compiled(tmp_path, "libnet.so", "--predict-only", "--embed", "w", code=65))
    assert said.strip().endswith("found [1, 3] of type F32")
    assert "text: is not a safetensors file" in compiled(tmp_path, "libnet.so", "--predict-only", "--embed", "text", code=65)
    assert sorted(os.listdir(tmp_path)) == ["m.mt", "text", "w"]


def test_weights_of_another_shape_cannot_be_carried(built, tmp_path):
    folder, _ = built
    (tmp_path / "m.mt").write_text(MODEL)
    weights = alone(folder)
    name = "seen.weight"
    written(tmp_path / "w", {**weights, name: weights[name][:2]})
    said = compiled(tmp_path, "libnet.so", "--predict-only", "--embed", "w", code=65)
    assert f"w: tensor '{name}': expected floats of shape [4, 2, 3, 3], found [2, 2, 3, 3] of type F32" in said
    written(tmp_path / "w", {**weights, name: np.zeros((4, 2, 3, 3), "i1")})
    assert "found [4, 2, 3, 3] of type I8" in compiled(tmp_path, "libnet.so", "--predict-only", "--embed", "w", code=65)


# ---- integers ----


def test_weights_of_integers(built, tmp_path):
    """What is left of floats that are integers times scales is the rounding of inputs."""
    folder, _ = built
    (tmp_path / "m.mt").write_text(MODEL)
    compiled(tmp_path, "lib8.so", "--predict-only", "--precision", "int8")
    weights = alone(folder)
    name = "seen.weight"
    whole = np.clip(np.rint(weights[name] * 300), -127, 127).astype("i1")
    image, kind, _ = data()
    floats = Net(folder / "libnet.so", written(tmp_path / "w", {**weights, name: (whole / 300).astype("f4")}))
    scales = {f"{name}.scale": np.full(4, 1 / 300, "f4"), f"{name}.input_scale": np.array(4 / 127, "f4")}
    good = {**weights, name: whole, **scales}
    net = Net(tmp_path / "lib8.so", written(tmp_path / "w8", good))
    answers, near = net(image, kind), floats(image, kind)
    assert np.abs(answers - near).max() < 0.02 and not np.array_equal(answers, near)
    compiled(tmp_path, "carried.so", "--predict-only", "--precision", "int8", "--embed", "w8")
    assert np.array_equal(Net(tmp_path / "carried.so")(image, kind), answers)
    low = whole.copy()
    low[1, 0, 2, 1] = -128
    cases = [({name: weights[name]}, "expected integers of 8 bits of shape [4, 2, 3, 3], found [4, 2, 3, 3] of type F32\n  the command quantize"),
             ({name: low}, f"tensor '{name}': [1, 0, 2, 1] is -128, and integers of weights are from -127 to 127"),
             ({f"{name}.input_scale": np.array(0, "f4")}, f"'{name}.input_scale' is 0, and a scale is above 0")]
    for changed, says in cases:
        with pytest.raises(RuntimeError) as failed:
            Net(tmp_path / "lib8.so", written(tmp_path / "bad", {**good, **changed}))
        assert says in str(failed.value)
    with pytest.raises(RuntimeError, match="it has integers, for libraries of 'mtc --precision int8'"):
        Net(folder / "libnet.so", tmp_path / "w8")


def test_under_sanitizers(built, tmp_path):
    folder, _ = built
    (tmp_path / "m.mt").write_text(MODEL)
    source = subprocess.run([MTC, "m.mt", "--target", "cpu", "--shared", "--predict-only", "--emit=c"], cwd=tmp_path, capture_output=True, text=True, check=True)
    (tmp_path / "m.c").write_text(source.stdout)
    sources = [tmp_path / "m.c", ROOT / "tests" / "runtime" / "net.c", *(ROOT / "runtime" / "embed").glob("*.c")]
    program = build_program(tmp_path / "net", sources, "-Wno-unknown-pragmas", library_flags=SANITIZERS)
    done = subprocess.run([program, folder / "w"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("flags, says", [
    (["--predict-only"], "--predict-only goes with --shared"),
    (["--shared", "--predict-only", "--target", "cuda"], "--predict-only makes libraries for the cpu target"),
    (["--shared", "--predict-only", "--arch", "sm_90"], "--predict-only makes libraries for the cpu target"),
    (["--shared", "--predict-only", "--real", "f64", "--target", "cpu"], "--predict-only does not go with --standalone or --real f64"),
    (["--shared", "--embed", "w"], "--embed goes with --predict-only"),
    (["--shared", "--predict-only", "--embed", "none"], "none"),
])
def test_wrong_calls(tmp_path, flags, says):
    (tmp_path / "m.mt").write_text(MODEL)
    done = subprocess.run([MTC, "m.mt", *flags], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (64, 65) and says in done.stderr and os.listdir(tmp_path) == ["m.mt"]


# ---- the examples ----


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """models/mnist.mt as a library, weights, images, and what NumPy says of them."""
    folder = tmp_path_factory.mktemp("digits")
    compiled(folder, "libnet.so", "--predict-only", "--batch", "1", model=ROOT / "models" / "mnist.mt")
    random = np.random.default_rng(0)
    weights = {name: (random.standard_normal(shape) / 10).astype("<f4") for name, shape in
               {"h.weight": (128, 784), "h.bias": (128,), "logits.weight": (10, 128), "logits.bias": (10,)}.items()}
    written(folder / "w.safetensors", weights)
    images = random.integers(0, 256, (3, 784)).astype(np.uint8)
    for i, image in enumerate(images):
        (folder / f"{i}.pgm").write_bytes(b"P5\n28 28\n255\n" + image.tobytes())
    (folder / "bad.pgm").write_bytes(b"P5\n27 28\n255\n" + bytes(784))
    h = np.maximum(images / 255 @ weights["h.weight"].T.astype(float) + weights["h.bias"], 0)
    logits = h @ weights["logits.weight"].T.astype(float) + weights["logits.bias"]
    scores = np.exp(logits - logits.max(1, keepdims=True))
    return folder, images, scores / scores.sum(1, keepdims=True)


def check_example(digits, *command):
    folder, _, scores = digits
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run([*command, "w.safetensors", "0.pgm", "1.pgm", "2.pgm"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{i}.pgm: {row.argmax()} ({row.max():.3f})\n" for i, row in enumerate(scores))
    done = subprocess.run([*command, "w.safetensors", "bad.pgm"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "bad.pgm: is no PGM of 28 x 28" in done.stderr
    done = subprocess.run([*command, "none", "0.pgm"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "none" in done.stderr


def test_c(digits):
    folder = digits[0]
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", EMBED / "classify.c", "-I", ROOT / "runtime" / "embed", "-L.", "-lnet", "-Wl,-rpath,.",
                    "-o", "classify_c"], cwd=folder, check=True)
    check_example(digits, folder / "classify_c")


def test_python(digits):
    check_example(digits, sys.executable, EMBED / "classify.py", "./libnet.so")


def test_rust(digits):
    folder = digits[0]
    if not shutil.which("rustc") or subprocess.run(["rustc", "--edition", "2021", "--print", "sysroot"], capture_output=True).returncode:
        pytest.skip("no rustc that knows the edition 2021")
    subprocess.run(["rustc", "--edition", "2021", EMBED / "classify.rs", "-L", ".", "-C", "link-arg=-Wl,-rpath,.", "-o", "classify_rs"], cwd=folder, check=True)
    check_example(digits, folder / "classify_rs")


def test_server(digits):
    """On a port that the system chooses; several requests at once."""
    folder, images, scores = digits
    with subprocess.Popen([sys.executable, EMBED / "server.py", "./libnet.so", "w.safetensors", "--port", "0"], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as server:
        try:
            address = f"http://{server.stdout.readline().split()[-1]}/predict"
            answers = {}

            def ask(i):
                with urllib.request.urlopen(address, images[i % 3:].tobytes(), timeout=60) as answer:
                    answers[i] = np.array(json.load(answer))

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for i in range(6):
                close(answers[i], scores[i % 3:])
            with pytest.raises(urllib.error.HTTPError, match="400"):
                urllib.request.urlopen(address, b"short", timeout=60)
        finally:
            server.terminate()


def test_the_server_has_60_lines():
    assert len((EMBED / "server.py").read_text().splitlines()) <= 60


@pytest.mark.vectors
def test_copies_of_vectors_are_no_calls(tmp_path, monkeypatch):
    """Also of a compiler that has copies check their sizes, as Ubuntu's does unasked."""
    monkeypatch.setenv("CC", f"{os.environ['CC']} -D_FORTIFY_SOURCE=3")
    (tmp_path / "m.mt").write_text(MODEL)
    compiled(tmp_path, "libnet.so", "--predict-only")
    names = subprocess.run(["nm", "-D", tmp_path / "libnet.so"], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"mem\w+_chk", names)
