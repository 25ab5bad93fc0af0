"""Batch norm of numbers that lie far from 0, as raw columns of a table do: a year, a price in cents."""

import re

import numpy as np
import pytest

from library import Library

BATCH = 64
MODEL = f"""data {{
  train = npy("x.npy", "y.npy")
  x : f32[4]
  y : f32[1]
}}
model {{
  b      = batch_norm(x, affine = false)
  h      = linear(b, 1)
  square = mean(b * b)
}}
train {{
  loss      = mse(h, y)
  metric    = square
  optimizer = sgd(0.01)
  batch     = {BATCH}
}}
"""


@pytest.mark.parametrize("mean", [0, 1e3, 1e5])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_far_from_zero(target, precision, mean, compile_model):
    """Whatever products are rounded to: nothing has rounded the columns."""
    rng = np.random.default_rng(5)
    x = (mean + rng.normal(0, 1, (BATCH, 4))).astype(np.float32)
    library = Library(compile_model(MODEL, "--shared", "--precision", precision, target=target).path)
    library.set_data([x, rng.normal(size=(BATCH, 1)).astype(np.float32)])
    squares = library.train(20, 2)[:, 1]
    mean_kept, variance_kept = library.get("b.running_mean", 4), library.get("b.running_var", 4)
    library.close()
    exact = x.astype(np.float64)
    assert squares == pytest.approx(np.ones(20), rel=1e-3)  # of what has mean 0 and variance 1
    kept = 0.9**20
    assert mean_kept == pytest.approx((1 - kept) * exact.mean(0), rel=1e-5, abs=1e-5)
    assert variance_kept == pytest.approx(kept + (1 - kept) * exact.var(0, ddof=1), rel=1e-3)


PRODUCT = MODEL.replace("batch_norm(x, affine = false)", "batch_norm(linear(x, 4), affine = false)")


@pytest.mark.parametrize("mean, below, above", [(0, 1e-3, 1e-3), (100, 0.01, 0.01), (1e5, 1, 0.01)])
@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_product_far_from_zero(target, precision, mean, below, above, compile_model):
    """Variance from the pass of the mean: where that loses it, it is taken for too large, and nothing diverges."""
    rng = np.random.default_rng(5)
    x = (mean + rng.normal(0, 1, (BATCH, 4))).astype(np.float32)
    library = Library(compile_model(PRODUCT, "--shared", "--precision", precision, target=target).path)
    library.set_data([x, rng.normal(size=(BATCH, 1)).astype(np.float32)])
    squares = library.train(20, 2)[:, 1]
    library.close()
    rounded = 0.3 if precision == "bf16" and mean else 0
    assert (squares > 1 - below - rounded).all() and (squares < 1 + above + rounded).all()


def test_a_thread_without_a_column_reads_none(mtc, tmp_path):
    """37 columns leave threads of a block without one: nothing is read at column i but in loops of those that exist."""
    text = MODEL.replace("x : f32[4]", "x : f32[37]").replace(", affine = false", "")
    (tmp_path / "m.mt").write_text(re.sub(r"\bb\b", "normed", text))
    source = mtc("--emit=cu", tmp_path / "m.mt").stdout
    kernel = source[source.index("\nstruct normed {") :].split("\n};\n")[0].splitlines()
    assert "        bool exists = i < X;" in kernel and [line for line in kernel if line.startswith(" " * 12) and "[i]" in line]
    assert not [line for line in kernel if "t." in line and not line.startswith((" " * 12, " " * 8 + "//"))], kernel
