"""Places of 64 bits, as tensors of more than 2^31 elements have them, in programs of small ones: an int is given no more than a row has. They
compute the same bits."""

import numpy as np
import pytest
from conftest import ROOT
from test_ops_compiled import GROUPS, Compiled

pytestmark = pytest.mark.quick


def widened(patched, holds):
    patched.setenv("MTC_INT_HOLDS", str(holds))


@pytest.mark.parametrize("cases", GROUPS[::4], ids=lambda cases: f"{cases[0].id}..{cases[-1].id}")
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
