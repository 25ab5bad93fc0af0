"""Programs of a sanitized build: mtc compiles them with the flags that lie beside the library, as `make asan` lays them there, and they
train, save, go on, evaluate and predict without a report."""

import numpy as np
import pytest
from conftest import ROOT, Program
from runtime_library import SANITIZERS, runtime_library
from test_predict import QUOTES

CONVOLUTIONS = """data {
  train = npz("t.npz")
  x : u8[1, 8, 8]
  y : class[3]
}
model {
  h = relu(batch_norm(conv2d(x / 255, 8, 3)))
  h = dropout(max_pool(h, 2), 0.1)
  logits = linear(flatten(h), 3)
}
train {
  loss      = cross_entropy(logits, y)
  metric    = accuracy(logits, y)
  optimizer = adamw(0.01)
  batch     = 8
  epochs    = 2
}
"""
CHARACTERS = """data {
  examples = text("t.txt")
  split    = 90 / 10
  window   : class[32][9]
}
model {
  seen   = slice(window, 0, 0, 8)
  next   = slice(window, 0, 1, 9)
  h      = embedding(seen, 32, 16)
  logits = linear(layer_norm(h + attention(h, h, h, heads = 2, causal = true)), 32)
}
train {
  loss      = cross_entropy(logits, next)
  optimizer = adam(0.01)
  batch     = 5
  epochs    = 2
}
"""

# Of one channel, so that what lies in memory is the same for all that the innermost loop counts; beside the image nothing may be read.
WINDOWS = """data {
  train = npz("t.npz")
  x : u8[1, 8, 8]
  y : class[3]
}
model {
  edge   = weight([1, 8, 8], normal(1, 0.1))
  h      = avg_pool(silu(x / 255), 3, stride = 3, padding = 1) + avg_pool(square(x / 255 - edge), 3, stride = 3, padding = 1)
  logits = linear(flatten(h), 3)
}
train {
  loss      = cross_entropy(logits, y)
  optimizer = adamw(0.01)
  batch     = 8
  epochs    = 2
}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder, library = tmp_path_factory.mktemp("home"), runtime_library(*SANITIZERS)
    for path in (ROOT / "runtime", ROOT / "kernels_lib", library, library.with_suffix(".flags")):
        (folder / path.name).symlink_to(path)
    return folder


def write_data(folder):
    random = np.random.default_rng(0)
    (folder / "t.csv").write_text("a,b,y\n1,2,3\n2,3,4\n2,1,4\n")
    (folder / "t.txt").write_text("to be or not to be that is the question " * 4)
    np.savez(folder / "t.npz", x=random.integers(0, 256, (21, 1, 8, 8), "u1"), y=random.integers(0, 3, 21).astype("u1"))


@pytest.mark.parametrize("text", [QUOTES, CONVOLUTIONS, WINDOWS, CHARACTERS], ids=["table", "convolutions", "windows", "characters"])
def test_trains_without_a_report(text, home, mtc, tmp_path, monkeypatch):
    write_data(tmp_path)
    (tmp_path / "m.mt").write_text(text)
    monkeypatch.setenv("MTC_HOME", str(home))
    done = mtc("m.mt", "--target", "cpu", "-o", "m", "--no-cache", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"__asan_init" in (tmp_path / "m").read_bytes()
    program = Program(tmp_path / "m")
    for flags in (["--save", "w"], ["--resume", "w", "--epochs", "4"], ["eval", "--load", "w", "--split", "train"],
                  ["predict", "--load", "w", "--split", "train", "--output", "p.csv"], ["info", "w"]):
        done = program(*flags, cwd=tmp_path, check=False)
        assert done.returncode == 0 and "Sanitizer" not in done.stderr + done.stdout, done.stderr


def test_flags_are_not_for_nvcc(home, mtc, tmp_path, monkeypatch):
    monkeypatch.setenv("MTC_HOME", str(home))
    (tmp_path / "m.mt").write_text(QUOTES)
    done = mtc("m.mt", "--target", "cuda", cwd=tmp_path)
    assert done.returncode and "libmtc_runtime.a is compiled with flags that nvcc does not take: --target cpu" in done.stderr
