"""The runtime under a compiled model: training, checkpoints, predictions and the diagnosis of a NaN, on the CPU target."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT
import random_port
from fake_data import idx_bytes, tensors

pytestmark = pytest.mark.quick

MNIST = ROOT / "models" / "mnist.mt"

DIVERGING = """
param lr = 1e-3

data {
  train = idx("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte")
  image : u8[28, 28]
  label : class[10]
}

model {
  x      = flatten(image) / 255
  h      = relu(linear(x, 16))
  scores = log(linear(h, 10))
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(lr)
  batch     = 32
  epochs    = 1
}
"""

FIELDS = """
data {
  train = idx("a", "kind", "b", "label")
  test  = idx("a", "kind", "b", "label")
  a     : f32[4]
  kind  : class[3]
  b     : f32[2]
  label : class[2]
}

model {
  scores = linear(concat([a, b, USED]), 2)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 8
  epochs    = 2
}
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, ROOT / "tools/make_digits.py", folder / "mnist", "--train", "3000", "--test", "700"], check=True)
    return folder


def read_idx(path):
    content = path.read_bytes()
    return np.frombuffer(content, "u1", offset=4 + 4 * content[3]).reshape(-1, *([28, 28] if content[3] == 3 else []))


def test_drawn_digits(digits):
    images, labels = read_idx(digits / "mnist/t10k-images-idx3-ubyte"), read_idx(digits / "mnist/t10k-labels-idx1-ubyte")
    assert images.shape == (700, 28, 28) and labels.shape == (700,) and set(labels) == set(range(10))
    assert 20 < images.mean() < 60 and images.max() > 200


def test_training_learns(digits, compile_model):
    lines = compile_model(MNIST)("--data", digits, "--epochs", 5).stdout.splitlines()
    losses = [float(line.split()[3]) for line in lines[:5]]
    assert losses == sorted(losses, reverse=True) and float(lines[4].split("accuracy")[2].split()[0]) > 0.9


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bytes_with_any_number_of_threads(threads, digits, compile_model, tmp_path):
    program = compile_model(MNIST)
    for name, count in (("a", threads), ("b", 1)):
        program("--data", digits, "--epochs", 1, "--save", tmp_path / name, "--quiet", threads=count)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_checkpoint(digits, compile_model, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    program, path = compile_model(MNIST), tmp_path / "w.safetensors"
    program("--data", digits, "--epochs", 2, "--save", path, "--quiet")
    weights = safetensors.load_file(path)
    assert {name: value.shape for name, value in weights.items()} == {
        "h.weight": (128, 784), "h.bias": (128,), "logits.weight": (10, 128), "logits.bias": (10,)}

    images, labels = read_idx(digits / "mnist/t10k-images-idx3-ubyte"), read_idx(digits / "mnist/t10k-labels-idx1-ubyte")
    h = np.maximum(images.reshape(700, 784) / 255 @ weights["h.weight"].T + weights["h.bias"], 0)
    scores = h @ weights["logits.weight"].T + weights["logits.bias"]
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)

    program("predict", "--data", digits, "--load", path, "--output", tmp_path / "p.npy")
    assert np.allclose(np.load(tmp_path / "p.npy"), p, atol=2e-6)
    text = program("eval", "--data", digits, "--load", path).stdout
    loss, accuracy = float(text.split("loss ")[1].split()[0]), float(text.split("accuracy ")[1])
    assert loss == pytest.approx(-np.log(p[np.arange(700), labels]).mean(), rel=1e-5)
    assert accuracy == pytest.approx((p.argmax(1) == labels).mean(), abs=1e-6)


def test_double_program(digits, compile_model, tmp_path):
    single, double = compile_model(MNIST), compile_model(MNIST, "--real", "f64")
    single("--data", digits, "--limit-steps", 3, "--save", tmp_path / "w", "--quiet")
    losses = [float(program("eval", "--data", digits, "--load", tmp_path / "w").stdout.split("loss ")[1].split()[0])
              for program in (single, double)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_nan_is_traced(digits, compile_model, tmp_path):
    done = compile_model(DIVERGING)("--data", digits, "--save", tmp_path / "w", check=False)
    assert done.returncode == 65 and not (tmp_path / "w").exists()
    assert "training diverged: the loss of step 1 (epoch 1) is NaN" in done.stderr
    assert ":13: scores = log(linear(h, 10))\n" in done.stderr


def test_initial_weights(digits, compile_model, tmp_path):
    compile_model(MNIST)("--data", digits, "--limit-steps", 1, "--lr", 0, "--seed", 7, "--save", tmp_path / "w", "--quiet")
    bound, weights = 1 / np.sqrt(784), tensors((tmp_path / "w").read_bytes())
    weight = weights["h.weight"]
    assert abs(weight).max() <= bound and weight.std() == pytest.approx(bound / np.sqrt(3), rel=0.02)
    # a seed gives these numbers in every version, in the order in which they lie in memory: of the third tensor, those of its stream
    drawn = (2 * random_port.uniform(7, (1 << 30) + 2, 0, (10, 128)) - 1) / np.sqrt(128)
    assert np.allclose(np.sort(weights["logits.weight"].ravel()), np.sort(drawn.ravel()), rtol=1e-6, atol=0)


def test_initial_weights_of_several_pieces(digits, compile_model, tmp_path, monkeypatch):
    """Threads share a tensor, which goes to the device in pieces of 2^22 numbers: each is that of its place."""
    program, hidden = compile_model(MNIST, "--set", "hidden=6000"), 6000
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        program("--data", digits, "--limit-steps", 1, "--lr", 0, "--seed", 7, "--save", tmp_path / threads, "--quiet")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()
    drawn = tensors((tmp_path / "1").read_bytes())["h.weight"].ravel()
    assert len(drawn) == 784 * hidden
    for element in (0, (1 << 14) - 1, 1 << 14, (1 << 22) - 1, 1 << 22, 784 * hidden - 1):
        words = random_port.block(7, 1 << 30, 0, element >> 2)
        assert drawn[element] == pytest.approx((2 * (words[element & 3] >> 8) * 2.0**-24 - 1) / 28, rel=1e-6), element


@pytest.mark.gpu
@pytest.mark.parametrize("start", ["normal(0.5, 0.25)", "uniform(-1, 3)"])
def test_initial_weights_are_the_same_bits_on_a_gpu(start, digits, compile_model, tmp_path):
    model = MNIST.read_text().replace("linear(x, hidden)", f"matmul(x, weight([784, hidden], {start}))")
    for target in ("cpu", "cuda"):
        program = compile_model(model, "--set", "hidden=300", target=target)
        program("--data", digits, "--limit-steps", 1, "--lr", 0, "--seed", 7, "--save", tmp_path / target, "--quiet")
    here, there = (tensors((tmp_path / target).read_bytes()) for target in ("cpu", "cuda"))
    for name in "h", "logits.weight":  # not the optimizer's states, which are of a step's gradients
        assert here[name].tobytes() == there[name].tobytes()


def test_library_of_the_documentation(digits, mtc, tmp_path):
    text = (ROOT / "docs" / "program.md").read_text()
    (tmp_path / "user.c").write_text(text.split("```c\n")[1].split("```")[0])
    assert mtc(MNIST, "--shared", "--target", "cpu", "-o", tmp_path / "libmodel.so", "--keep", tmp_path).returncode == 0
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/runtime", tmp_path / "user.c", tmp_path / "libmodel.so",
                    "-o", tmp_path / "user", f"-Wl,-rpath,{tmp_path}"], check=True)
    environment = {**os.environ, "MTC_DATA_DIR": str(digits), "OMP_NUM_THREADS": "2"}
    done = subprocess.run([tmp_path / "user"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    told = [re.fullmatch(r"epoch (\d): loss ([\d.]+), test loss ([\d.]+)", line).groups() for line in done.stdout.splitlines()]
    assert [row[0] for row in told] == ["1", "2", "3"] and float(told[0][1]) > 2 * float(told[2][1])
    assert float(told[2][2]) < float(told[0][1]) and (tmp_path / "model.safetensors").exists()


def test_library_offers_only_its_interface(mtc, tmp_path):
    assert mtc(MNIST, "--shared", "--target", "cpu", "-o", tmp_path / "libmodel.so", "--keep", tmp_path).returncode == 0
    listing = subprocess.run(["nm", "-D", "--defined-only", tmp_path / "libmodel.so"], capture_output=True, text=True, check=True)
    offered = {line.split()[2] for line in listing.stdout.splitlines()}
    header = (ROOT / "runtime" / "mtc.h").read_text()
    assert offered <= set(re.findall(r"mtc_\w+", header))


# ---- several fields ----


def write_fields(folder, **bad):
    random = np.random.default_rng(3)
    arrays = {"a": random.normal(size=(30, 4)).astype("f4"), "kind": random.integers(0, 3, 30).astype("u1"),
              "b": random.normal(size=(30, 2)).astype("f4"), "label": random.integers(0, 2, 30).astype("u1")}
    for name, index in bad.items():
        arrays[name][index] = np.nan
    for name, array in arrays.items():
        (folder / name).write_bytes(idx_bytes(array))


@pytest.mark.parametrize("used", ["a * 2", "one_hot(kind, 3)"])
def test_an_input_for_each_field(used, compile_model, tmp_path):
    program = compile_model(FIELDS.replace("USED", used))
    write_fields(tmp_path)
    flags = ["predict", "--data", tmp_path, "--load", tmp_path / "w"]

    def predict(*files, **options):
        return program(*flags, *(f"--input={tmp_path / name}" for name in files), **options)

    program("--data", tmp_path, "--save", tmp_path / "w", "--quiet")
    expected = predict().stdout
    assert len(expected.splitlines()) == 31
    assert predict("a", "kind", "b", "label").stdout == predict("a", "kind", "b").stdout == expected
    few = predict("a", check=False)
    missing = "'kind', 'b'" if "kind" in used else "'b'"
    assert few.returncode == 64 and f"no --input for {missing}\n  give a file for each of the fields, in this order: 'a', 'kind', 'b', 'label'" in few.stderr
    without = predict("a", "b", check=False)
    if "kind" in used:
        assert without.returncode == 64 and "no --input for 'b'\n" in without.stderr
    else:
        assert without.stdout == expected
    (tmp_path / "b").write_bytes(idx_bytes(np.zeros((7, 2), "f4")))
    uneven = predict("a", "kind", "b", check=False)
    assert uneven.returncode == 65 and "b: holds 7 examples, but " in uneven.stderr


@pytest.mark.parametrize("flags", [["train"], ["eval", "--load", "w"]], ids=lambda flags: flags[0])
def test_nan_in_the_data(flags, compile_model, tmp_path):
    program = compile_model(FIELDS.replace("USED", "a * 2"))
    write_fields(tmp_path)
    program("--data", tmp_path, "--save", tmp_path / "w", "--quiet")
    write_fields(tmp_path, b=(21, 1))
    done = program(*flags, "--data", tmp_path, check=False, cwd=tmp_path)
    split = "train" if flags == ["train"] else "test"
    assert done.returncode == 65 and f"such a number is in the data: field 'b' of example 21 of '{split}': element [1] is NaN" in done.stderr
    assert "\n  check the data file b\n" in done.stderr and "learning rate" not in done.stderr


def test_idx_files_of_the_documentation(compile_model, tmp_path):
    text = (ROOT / "docs" / "program.md").read_text().split("```python\n")[1].split("```")[0]
    names = {}
    exec(text, names)
    write_fields(tmp_path)
    for dtype in ("u1", "i4", "f4"):
        array = np.arange(24).reshape(2, 3, 4).astype(dtype)
        names["write_idx"](tmp_path / "x", array)
        assert (tmp_path / "x").read_bytes() == idx_bytes(array)
