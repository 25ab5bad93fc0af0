"""models/mnist.mt, from its text to trained weights, on the CPU target.

Real MNIST where $MTC_DATA_DIR or the user's cache has it, else drawn digits.
"""

import ctypes
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT
from random_port import permutation, shuffle_key

sys.path.insert(0, str(ROOT / "tools"))
import mnist as mnist_data  # noqa: E402

pytestmark = pytest.mark.full

MODEL = ROOT / "models" / "mnist.mt"
SEED, LR, BATCH, STEPS = 7, 1e-3, 64, 20


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """(folder that holds mnist/, is it the real one)"""
    given = os.environ.get("MTC_DATA_DIR")
    for folder in filter(None, (given and Path(given).resolve(), mnist_data.cache_folder())):
        if mnist_data.holds_mnist(folder):
            return folder, True
    return mnist_data.generate(tmp_path_factory.mktemp("digits")), False


@pytest.fixture(scope="module")
def program(compile_model):
    return compile_model(MODEL)


def train(program, data, folder, *flags, threads=2):
    """The lines of the log, the bytes of the weights."""
    log, weights = folder / "log.jsonl", folder / "weights.safetensors"
    program("--data", data[0], "--seed", SEED, "--log", log, "--save", weights, "--quiet", *flags, threads=threads)
    return [json.loads(line) for line in log.read_text().splitlines()], weights.read_bytes()


def test_accuracy(program, data, tmp_path):
    log, _ = train(program, data, tmp_path, "--epochs", 4)
    accuracies = [line["test_accuracy"] for line in log if line["event"] == "epoch"]
    assert len(accuracies) == 4
    assert accuracies[-1] > (0.97 if data[1] else 0.9)


def test_same_bits_with_any_number_of_threads(program, data, tmp_path):
    runs = []
    for threads in (1, 2, 3):
        folder = tmp_path / str(threads)
        folder.mkdir()
        log, weights = train(program, data, folder, "--limit-steps", 300, threads=threads)
        runs.append((weights, [line["loss"] for line in log if line["event"] == "train"]))
    assert runs[0] == runs[1] == runs[2]


# ---- the first steps against float64 NumPy ----


def read_idx(folder, name):
    plain = folder / "mnist" / name
    content = plain.read_bytes() if plain.exists() else gzip.decompress(plain.with_name(name + ".gz").read_bytes())
    rank = content[3]
    shape = np.frombuffer(content, ">i4", rank, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


class Library:
    """A program compiled with --shared, through the C interface of runtime/mtc.h."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.mtc_error.restype = ctypes.c_char_p
        self.session = ctypes.c_void_p()
        model = ctypes.c_char.in_dll(self.library, "mtc_model")
        self.call("create", ctypes.byref(model), ctypes.c_uint64(SEED), 0, ctypes.byref(self.session))

    def call(self, name, *args):
        code = getattr(self.library, f"mtc_{name}")(*args)
        assert code == 0, self.library.mtc_error(self.session).decode()

    def get(self, name, *shape):
        values = np.empty(shape, np.float32)
        self.call("get", self.session, name.encode(), values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes))
        return values.astype(np.float64)

    def train(self, folder, steps):
        reports = np.empty((steps, 2))
        self.call("load_data", self.session, 0, str(folder).encode())
        self.call("train", self.session, ctypes.c_int64(steps), reports.ctypes.data_as(ctypes.c_void_p))
        self.library.mtc_destroy(self.session)
        return reports


def step_of_numpy(w, m, v, t, x, label):
    """One step of Adam on the weights `w`, in place; returns loss and accuracy before it."""
    a = x @ w["h.weight"].T + w["h.bias"]
    h = np.maximum(a, 0)
    s = h @ w["logits.weight"].T + w["logits.bias"]
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    rows = np.arange(len(x))
    loss, accuracy = -np.log(p[rows, label]).mean(), (s.argmax(axis=1) == label).mean()
    p[rows, label] -= 1
    ds = p / len(x)
    da = ds @ w["logits.weight"] * (a > 0)
    gradient = {"h.weight": da.T @ x, "h.bias": da.sum(axis=0), "logits.weight": ds.T @ h, "logits.bias": ds.sum(axis=0)}
    for name, g in gradient.items():
        m[name] = 0.9 * m[name] + 0.1 * g
        v[name] = 0.999 * v[name] + 0.001 * g * g
        w[name] -= LR * m[name] / (1 - 0.9**t) / (np.sqrt(v[name] / (1 - 0.999**t)) + 1e-8)
    return loss, accuracy


def test_first_steps(data, compile_model):
    library = Library(compile_model(MODEL, "--shared").path)
    shapes = {"h.weight": (128, 784), "h.bias": (128,), "logits.weight": (10, 128), "logits.bias": (10,)}
    w = {name: library.get(name, *shape) for name, shape in shapes.items()}
    assert abs(w["h.weight"]).max() <= 784**-0.5 and w["h.weight"].std() == pytest.approx(784**-0.5 / 3**0.5, rel=0.01)

    image = read_idx(data[0], "train-images-idx3-ubyte").reshape(-1, 784)
    label = read_idx(data[0], "train-labels-idx1-ubyte")
    order = permutation(shuffle_key(SEED, 0), len(label))
    assert sorted(order) == list(range(len(label)))
    m, v = ({name: np.zeros(shape) for name, shape in shapes.items()} for _ in range(2))
    expected = []
    for t in range(STEPS):
        rows = order[t * BATCH : (t + 1) * BATCH]
        expected.append(step_of_numpy(w, m, v, t + 1, image[rows] / 255, label[rows]))
    assert library.train(data[0], STEPS) == pytest.approx(np.array(expected), rel=1e-5)


def test_needs_nothing_but_libc(program):
    listing = subprocess.run(["ldd", program.path], capture_output=True, text=True, check=True).stdout
    libraries = {line.split()[0].split(".so")[0].rsplit("/", 1)[-1] for line in listing.splitlines()}
    assert libraries <= {"linux-vdso", "libc", "libm", "libgomp", "libz", "ld-linux-x86-64", "ld-linux-aarch64"}
