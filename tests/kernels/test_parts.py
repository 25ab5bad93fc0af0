"""Products of few tiles whose k the blocks of a cluster have in parts (split_in_cluster), in whole programs, of odd sizes, against float64: on a
GPU, and on the processor, which has no clusters: there one block has all of k. The products alone: test_tensor.py."""

import os
import platform
import re
import shutil

import numpy as np
import pytest
from conftest import ROOT
from library import Library

MODEL = """data {{
  train = idx("x", "probe")
  x     : f32[{k}]
  probe : f32[{n}]
}}
model {{
  y = linear(x, {n}, bias = false, name = "product")
}}
train {{
  loss      = sum(y * probe)
  predict   = y
  optimizer = sgd(0, momentum = 0.9)
  precision = {precision}
  batch     = {m}
}}
"""
# precision, m, k, n, parts
CASES = [("bf16", 33, 1003, 35, 8), ("bf16", 130, 2051, 66, 8), ("bf16", 1029, 700, 515, 4), ("tf32", 130, 2051, 66, 8), ("tf32", 321, 517, 131, 4)]
SMALL = [("bf16", 33, 1003, 35, 8), ("tf32", 33, 1003, 35, 8)]
ROUNDING = {"bf16": 2**-8, "tf32": 2**-10}  # of operands, and of what is stored


def model(case):
    precision, m, k, n, _ = case
    return MODEL.format(precision=precision, m=m, k=k, n=n)


def name(case):
    precision, m, k, n, parts = case
    return f"{precision}-{m}x{k}x{n}-{parts}"


def check_numbers(path, case):
    """Operands as they are rounded are small whole numbers: sums are exact in any order, and a result is at most rounded."""
    precision, m, k, n, _ = case
    random = np.random.default_rng(k)
    x, w, probe = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (n, k), (m, n)))
    library = Library(path)
    library.set("product.weight", w)
    library.set_data([x, probe])
    y = [library.predict([x, probe], n) for _ in range(2)]
    loss = library.train(1, 1)[0, 0]
    gradient = library.get("product.weight.momentum", w.shape)
    library.close()
    exact = x.astype(np.float64) @ w.T
    assert (np.abs(y[0] - exact) <= ROUNDING[precision] * np.abs(exact)).all() and np.array_equal(*y)
    np.testing.assert_allclose(loss, (exact * probe).sum() / m, atol=ROUNDING[precision] * np.abs(exact * probe).sum() / m)
    expected = probe.T.astype(np.float64) @ x / m
    assert np.linalg.norm(gradient - expected) <= ROUNDING[precision] * np.linalg.norm(expected)


@pytest.mark.parametrize("case", CASES + SMALL[1:], ids=name)
def test_k_is_in_parts(case, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(model(case))
    source = mtc("--emit=cu", "--arch", "sm_90a", "--schedule", "graph", tmp_path / "m.mt").stdout
    assert re.findall(r"\w+, (\d)>;", "\n".join(re.findall("TensorTile<.*", source))) == 2 * [str(case[-1])]  # in training, and as a prediction
    assert source.count(f"InCluster<{case[-1]}, ") == 2


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=name)
def test_numbers(case, compile_model):
    check_numbers(compile_model(model(case), "--shared", "--schedule", "graph", target="cuda").path, case)


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("c++"), reason="no kernels on the processor here")
@pytest.mark.parametrize("case", SMALL, ids=name)
def test_numbers_of_one_block(case, mtc, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{ROOT / 'tests/support/cuda_on_host/bin'}:{os.environ['PATH']}")
    (tmp_path / "m.mt").write_text(model(case))
    done = mtc("m.mt", "--target", "cuda", "--arch", "sm_90", "--schedule", "graph", "--no-cache", "--shared", "-o", "m.so", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_numbers(tmp_path / "m.so", case)
