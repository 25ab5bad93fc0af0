"""Places of 64 bits, as tensors of more than 2^31 elements have them, in programs of small ones: an int is given no more than a row has. They
compute the same bits."""

import numpy as np
import pytest
from conftest import ROOT
from fake_data import tensors
from ops_cases import CASES
from test_ops_compiled import Compiled, groups_of

pytestmark = pytest.mark.quick


def widened(patched, holds):
    patched.setenv("MTC_INT_HOLDS", str(holds))


@pytest.mark.parametrize("cases", groups_of(CASES)[::4], ids=lambda cases: f"{cases[0].id}..{cases[-1].id}")
def test_operators(cases, compile_model, tmp_path, monkeypatch):
    programs = []
    for name in ("small", "wide"):
        (tmp_path / name).mkdir()
        programs.append(Compiled("cpu", cases, tmp_path / name, compile_model))
        widened(monkeypatch, 32)
    small, wide = programs
    assert small.path.read_bytes() != wide.path.read_bytes()
    assert small.loss == wide.loss and np.array_equal(small.losses, wide.losses)
    for name, gradient in small.gradients.items():
        assert np.array_equal(gradient, wide.gradients[name]), name
    for program in programs:
        program.library.close()


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["cnn", "char_gpt", "gpt2", "lstm_forecast", "unet", "vae"])
def test_cuda_takes_them(name, cuda_takes, mtc, monkeypatch):
    """In templates and calls of the kernels' library too."""
    widened(monkeypatch, 512)
    model = ROOT / "models" / f"{name}.mt"
    assert mtc(model, "--target", "cuda", "--emit=cu").stdout.count("(int64_t)") > 20
    cuda_takes(model.read_text().replace('include "', f'include "{ROOT}/models/'))


IMAGES = """data {
  train = npy("x", "y")
  x : u8[3, 16, 16]
  y : class[10]
}
model {
  s = relu(batch_norm(conv2d(x / 255, 64, 3, padding = 1, bias = false)))
  h = relu(s + batch_norm(conv2d(s, 64, 3, padding = 1, bias = false)))
  u = concat([upsample(max_pool(h, 2), 2), s], axis = 0)
  v = relu(conv2d(u, 32, 3, padding = 1))
  logits = linear(global_avg_pool(v), 10)
}
train {
  loss      = cross_entropy(logits, y)
  optimizer = sgd(4096)
  batch     = 16
}
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_convolutions(target, precision, compile_model, tmp_path, monkeypatch):
    """Norms, pools, windows and concatenations together, forward and back. On a GPU, other kernels may add up in another order."""
    draw = np.random.default_rng(3)
    for name, array in ("x", draw.integers(0, 256, (16, 3, 16, 16)).astype("u1")), ("y", draw.integers(0, 10, 16).astype("i4")):
        with open(tmp_path / name, "wb") as file:
            np.save(file, array)
    found = []
    for holds in None, 32:
        if holds:
            widened(monkeypatch, holds)
        program, saved = compile_model(IMAGES, "--precision", precision, target=target), tmp_path / f"{holds}.safetensors"
        program("--data", tmp_path, "--limit-steps", "1", "--quiet", "--save", saved)
        found.append(tensors(saved.read_bytes()))
    assert found[0].keys() == found[1].keys()
    for name, small in found[0].items():
        most = 0 if target == "cpu" else 1e-3 * np.abs(small).max()
        assert np.abs(small - found[1][name]).max() <= most, name
