"""kernels_lib/cpu against float64 NumPy."""

import ctypes
import itertools
import os
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT

FLAGS = ["-std=gnu11", "-O3", "-march=native", "-fopenmp", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
         "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT}/kernels_lib"]
SHAPES = [(1, 1, 1), (16, 16, 16), (17, 17, 17), (1000, 1, 77), (256, 512, 128), (64, 128, 784), (10, 3, 1025), (300, 200, 513)]
DTYPES = {"float": np.float32, "double": np.float64}


@pytest.fixture(scope="module", params=DTYPES)
def kernels(request, tmp_path_factory):
    library = tmp_path_factory.mktemp("kernels") / "kernels.so"
    source = Path(__file__).parent / "kernels_cpu.c"
    subprocess.run([os.environ.get("CC", "cc"), *FLAGS, f"-DREAL={request.param}", "-o", library, source, "-lm"], check=True)
    return ctypes.CDLL(str(library)), DTYPES[request.param]


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def product(kernels, a, b, ta, tb):
    library, dtype = kernels
    stored_a, stored_b = (np.ascontiguousarray(x.T if t else x) for x, t in ((a, ta), (b, tb)))
    c = np.full((len(a), b.shape[1]), np.nan, dtype)
    library.product(len(a), b.shape[1], len(b), ta, tb, pointer(stored_a), pointer(stored_b), pointer(c))
    return c


def operands(dtype, m, n, k):
    rng = np.random.default_rng(m * n + k)
    return (rng.uniform(-1, 1, (m, k)) / np.sqrt(k)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_matmul(kernels, shape):
    a, b = operands(kernels[1], *shape)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    results = [product(kernels, a, b, *stored) for stored in itertools.product((0, 1), repeat=2)]
    assert np.abs(results[0] - exact).max() < 20 * np.finfo(kernels[1]).eps
    for result in results[1:]:
        assert result.tobytes() == results[0].tobytes()


def test_matmul_keeps_infinities_and_nans(kernels):
    a, b = operands(kernels[1], 20, 40, 300)
    a[3, 7], a[11, 290] = np.inf, np.nan
    c = product(kernels, a, b, 0, 0)
    assert np.isinf(c[3]).all() and np.isnan(c[11]).all()
    assert np.isfinite(np.delete(c, (3, 11), axis=0)).all()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="other processors do as they do")
def test_subnormal_numbers_are_zero_in_a_step(kernels):
    library, dtype = kernels
    tiny = np.finfo(dtype).tiny
    for a, b, expected in ((tiny, 0.5, 0.5 * tiny), (tiny / 4, 2, tiny / 2), (tiny, 3, 3 * tiny)):
        values = [np.array([x], dtype) for x in (a, b, np.nan, np.nan)]
        library.tiny_product(*map(pointer, values))
        assert values[2][0] == (expected if expected >= tiny else 0) and values[3][0] == expected


FUNCTIONS = {
    "exp": (np.exp, -104, 89),
    "log": (np.log, 1e-37, 1e38),
    "tanh": (np.tanh, -20, 20),
    "relu": (lambda x: np.where(x < 0, 0, x), -2, 2),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 80),
    "softplus": (lambda x: np.logaddexp(x, 0), -80, 80),
    "sign": (lambda x: np.where(np.isnan(x), 0, np.sign(x)), -2, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(kernels, name):
    library, dtype = kernels
    function, low, high = FUNCTIONS[name]
    spread = np.geomspace if low > 0 else np.linspace
    special = [0, -0.0, 1, -1, 1e-30, -1e-30, 1e-42, 300, -300, np.inf, -np.inf, np.nan]
    x = np.concatenate([spread(low, high, 200_000), special]).astype(dtype)
    y = np.empty_like(x)
    getattr(library, f"map_{name}")(x.size, pointer(x), pointer(y))
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64)).astype(dtype)
        unit = np.spacing(np.maximum(np.abs(exact), np.finfo(dtype).tiny))
        same = (y == exact) | (np.isnan(y) & np.isnan(exact)) | (np.abs(y - exact) <= 4 * unit)
    assert same.all(), x[~same][:5]


def test_maximum_and_minimum(kernels):
    library, dtype = kernels
    x = np.array([-2, -0.0, 0, 3, np.inf, -np.inf, np.nan], dtype)
    for name in ("fmax", "fmin"):
        y = np.empty_like(x)
        getattr(library, f"map_{name}")(x.size, pointer(x), pointer(y))
        assert np.array_equal(y, getattr(np, name)(x, dtype(0)))
