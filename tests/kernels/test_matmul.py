"""Matrix products of compiled programs in f32 against float64: [M, K] times [K, N], the right operand as it lies (NN) or
transposed (NT), and the gradient of the right operand, a product with a transposed left operand (TN).

The inputs lie in [-1, 1] / sqrt(depth), so that results are about 1; the largest error must stay below 1e-4."""

import numpy as np
import pytest
from library import Library
from test_ops_compiled import mtc

SIZES = [(1, 1, 1), (16, 16, 16), (17, 17, 17), (1000, 1, 77), (3000, 8, 5), (5000, 25, 6), (256, 512, 128), (1024, 1024, 1024)]
LARGE = [pytest.param(size, marks=pytest.mark.gpu) for size in [(1001, 1005, 1003), (3136, 512, 4608), (4096, 4096, 4096)]]
TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
LIMIT = 1e-4


def model(size, transposed):
    m, k, n = size
    weight, flag = (f"[{n}, {k}]", ", transpose_b = true") if transposed else (f"[{k}, {n}]", "")
    return f"""data {{
  train = idx("x", "probe")
  x : f32[{k}]
  probe : f32[{n}]
}}
model {{
  w = weight({weight})
  y = matmul(x, w{flag})
}}
train {{
  loss = sum(y * probe)
  predict = y
  optimizer = sgd(0, momentum = 0.9)
  batch = {m}
}}
"""


@pytest.mark.parametrize("transposed", [False, True], ids=["NN", "NT"])
@pytest.mark.parametrize("size", [*SIZES, *LARGE], ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("target", TARGETS)
def test_product_and_gradient(target, size, transposed, tmp_path):
    if target == "cpu" and size[0] > 1024:
        pytest.skip("too large for a CPU")
    (tmp_path / "product.mt").write_text(model(size, transposed))
    mtc(tmp_path / "product.mt", "--shared", "-o", tmp_path / "product.so", "--keep", tmp_path, "--target", target)
    library = Library(tmp_path / "product.so")
    m, k, n = size
    random = np.random.default_rng(4)
    x = (random.uniform(-1, 1, (m, k)) / k**0.5).astype(np.float32)
    w = random.uniform(-1, 1, (n, k) if transposed else (k, n)).astype(np.float32)
    probe = (random.uniform(-1, 1, (m, n)) * m**0.5).astype(np.float32)
    library.set("w", w)
    library.set_data([x, probe])
    y = library.predict([x, probe], n)
    loss = library.train(1, 1)[0, 0]
    gradient = library.get("w.momentum", w.shape)
    library.close()
    x, w, dy = x.astype(np.float64), w.astype(np.float64), probe.astype(np.float64) / m
    expected = x @ (w.T if transposed else w)
    assert abs(y - expected).max() < LIMIT
    assert loss == pytest.approx((expected * dy).sum(), rel=1e-5, abs=1e-4 * n**0.5)
    assert abs(gradient - (dy.T @ x if transposed else x.T @ dy)).max() < LIMIT
