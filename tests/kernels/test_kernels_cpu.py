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

pytestmark = pytest.mark.full

FLAGS = ["-std=gnu11", "-O3", "-march=native", "-fopenmp", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
         "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT}/kernels_lib"]
SHAPES = [(1, 1, 1), (16, 16, 16), (17, 17, 17), (1000, 1, 77), (256, 512, 128), (64, 128, 784), (10, 3, 1025), (300, 200, 513)]
DTYPES = {"float": np.float32, "double": np.float64}


def compiled(folder, *flags):
    library = folder / "kernels.so"
    source = Path(__file__).parent / "kernels_cpu.c"
    subprocess.run([os.environ.get("CC", "cc"), *FLAGS, *flags, "-o", library, source, "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module", params=DTYPES)
def kernels(request, tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("kernels"), f"-DREAL={request.param}"), DTYPES[request.param]


@pytest.fixture(scope="module")
def large_tiles(tmp_path_factory):
    """As high, and as wide, as tiles of a program are."""
    return compiled(tmp_path_factory.mktemp("kernels"), "-DREAL=float", "-DTILE_M=256", "-DTILE_N=192"), np.float32


@pytest.fixture(scope="module")
def float16_kernels(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("kernels"), "-DREAL=float", "-DMTC_FLOAT16"), np.float32


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


def rounded(x):
    """To bf16, as its 16 bits and as numbers."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    upper = (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)
    upper = np.where(np.isnan(x), (bits >> 16 | 0x40).astype(np.uint16), upper)
    return upper, (upper.astype(np.uint32) << 16).view(np.float32)


def numbers_to_round():
    rng = np.random.default_rng(1)
    any_bits = rng.integers(0, 1 << 32, 200_000, np.uint64).astype(np.uint32).view(np.float32)
    ties = (rng.integers(0, 1 << 16, 10_000).astype(np.uint32) << 16 | 0x8000).view(np.float32)
    return np.concatenate([any_bits, ties, np.array([0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-40], np.float32)])


def test_rounding_to_bf16(kernels):
    x = numbers_to_round()
    bits, numbers = np.empty(x.size, np.uint16), np.empty_like(x)
    kernels[0].round_to_narrow(x.size, pointer(x), pointer(bits), pointer(numbers))
    with np.errstate(invalid="ignore"):
        expected = rounded(x)
    assert np.array_equal(bits, expected[0])
    assert np.array_equal(numbers, expected[1], equal_nan=True)


def test_rounding_to_float16(float16_kernels):
    """Against NumPy: any float, those around all numbers of 16 bits and between two of them; and all of them as floats."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    finite = every[np.abs(every) < 65504]
    between = (finite + np.abs(np.spacing(finite.astype(np.float16))).astype(np.float32) / 2).astype(np.float32)
    limits = np.array([65519.99, 65520, -65520, 65504, 2.0**-25, 1.0000001 * 2.0**-25, 2.0**-14, 0.99999 * 2.0**-14], np.float32)
    x = np.concatenate([numbers_to_round(), every, between, np.nextafter(between, np.float32(0)), limits])
    bits, numbers = np.empty(x.size, np.uint16), np.empty_like(x)
    float16_kernels[0].round_to_narrow(x.size, pointer(x), pointer(bits), pointer(numbers))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(np.float16)
    there = ~np.isnan(x)
    assert np.array_equal(bits[there], expected.view(np.uint16)[there]) and (bits[~there] & 0x7FFF == 0x7E00).all()
    assert np.array_equal(numbers, expected.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_product_of_bf16(kernels, shape):
    a, b = (rounded(x) for x in operands(np.float32, *shape))
    exact = a[1].astype(np.float64) @ b[1].astype(np.float64)
    for ta, tb in itertools.product((0, 1), repeat=2):
        stored_a, stored_b = (np.ascontiguousarray(x[0].T if t else x[0]) for x, t in ((a, ta), (b, tb)))
        c = np.full(exact.shape, np.nan, kernels[1])
        kernels[0].narrow_product(*exact.shape, shape[2], ta, tb, pointer(stored_a), pointer(stored_b), pointer(c))
        assert np.abs(c - exact).max() < 20 * np.finfo(kernels[1]).eps


def whole_flags():
    """The machine's own vectors, none, and those of AVX-VNNI on a machine that lacks them."""
    flags = {"own": [], "plain": ["-mno-avx", "-mno-avx2"] if platform.machine() == "x86_64" else ["-O1"]}
    cpu = Path("/proc/cpuinfo")
    words = cpu.read_text().split() if cpu.exists() else []
    if "avx2" in words:
        flags["vnni"] = ["-mno-avx512f", "-DEMULATED_VNNI"]
    return flags


@pytest.fixture(scope="module", params=whole_flags())
def whole_kernels(request, tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("kernels"), "-DREAL=float", *whole_flags()[request.param])


def integers(rng, *shape):
    """From -127 to 127, and many of these two."""
    return np.clip(rng.integers(-150, 151, shape), -127, 127).astype(np.int8)


def whole_product(library, a, b, shape=None, rows=None):
    c = np.full((rows or len(a), len(b)), -1, np.int32)
    sizes = np.array(shape, np.int32) if shape else None
    library.whole_product(None if sizes is None else pointer(sizes), *c.shape, b.shape[1], pointer(a), pointer(b), pointer(c))
    return c


@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (17, 17, 17), (3, 130, 77), (64, 128, 784), (10, 3, 1025), (50, 83, 513), (1, 64, 64)],
                         ids=lambda shape: "x".join(map(str, shape)))
def test_product_of_integers_is_exact(whole_kernels, shape):
    m, n, k = shape
    rng = np.random.default_rng(m * n + k)
    a, b = integers(rng, m, k), integers(rng, n, k)
    assert np.array_equal(whole_product(whole_kernels, a, b), a.astype(np.int64) @ b.T.astype(np.int64))


def test_deepest_sum_of_integers_fits(whole_kernels):
    """I8_DEEPEST products of the largest integers, of either sign: one more would not fit."""
    deepest = (2**31 - 1) // 127**2
    a, b = np.full((2, deepest), 127, np.int8), np.full((3, deepest), 127, np.int8)
    a[1], b[2] = -127, -127
    c = whole_product(whole_kernels, a, b)
    assert np.array_equal(c, a.astype(np.int64) @ b.T.astype(np.int64)) and c[0, 0] == deepest * 127**2


@pytest.mark.parametrize("channels", [1, 4, 24])
def test_windows_of_integers(whole_kernels, channels):
    rng = np.random.default_rng(channels)
    images = integers(rng, 2, 7, 9, channels)
    rows, columns = (4, 3, 2, 1, 1, 1), (9, 3, 1, 1, 1, 1)
    seen = np.ascontiguousarray(windows(images, rows, columns).astype(np.int8))
    b = integers(rng, 5, seen.shape[1])
    c = whole_product(whole_kernels, images, b, (7, 9, channels, *rows, *columns), len(seen))
    assert np.array_equal(c, seen.astype(np.int64) @ b.T.astype(np.int64))


def test_rounding_to_integers(whole_kernels):
    x = np.concatenate([numbers_to_round(), np.arange(-140, 140, 0.25, np.float32)])
    q = np.empty(x.size, np.int8)
    whole_kernels.round_to_i8(x.size, pointer(x), pointer(q))
    assert np.array_equal(q, np.where(np.isnan(x), -127, np.clip(np.rint(np.nan_to_num(x)), -127, 127)))


def seen_along(size, outputs, taps, stride, dilation, pad, spread):
    """Element [o, k] is the one that output o sees at tap k; -1: none."""
    p = np.arange(outputs)[:, None] * stride + np.arange(taps) * dilation - pad
    return np.where((p >= 0) & (p % spread == 0) & (p // spread < size), p // spread, -1)


def windows(images, rows, columns):
    """[N, H, W, C] -> [N * OH * OW, KH * KW * C]"""
    n, height, width, channels = images.shape
    h, w = seen_along(height, *rows), seen_along(width, *columns)
    seen = images[:, h[:, None, :, None], w[None, :, None, :]]
    seen = np.where((h >= 0)[:, None, :, None, None] & (w >= 0)[:, None, :, None], seen, 0)
    return seen.reshape(n * rows[0] * columns[0], rows[1] * columns[1] * channels)


# N, H, W, C, then outputs, taps, stride, dilation, pad, spread along the rows and the columns
WINDOWS = {
    "3x3": (2, 7, 9, 5, (7, 3, 1, 1, 1, 1), (9, 3, 1, 1, 1, 1)),
    "one channel": (3, 28, 28, 1, (26, 3, 1, 1, 0, 1), (26, 3, 1, 1, 0, 1)),
    "1x1, strided": (2, 8, 8, 40, (4, 1, 2, 1, 0, 1), (4, 1, 2, 1, 0, 1)),
    "7x7, strided": (1, 21, 20, 3, (11, 7, 2, 1, 3, 1), (10, 7, 2, 1, 3, 1)),
    "dilated": (2, 9, 11, 4, (9, 3, 1, 2, 2, 1), (7, 3, 1, 2, 0, 1)),
    "not square": (2, 5, 12, 17, (4, 2, 1, 1, 0, 1), (10, 5, 1, 1, 1, 1)),
    "of a gradient": (2, 7, 9, 5, (7, 3, 1, -1, -1, 1), (9, 3, 1, -1, -1, 1)),
    "of a gradient, strided": (2, 4, 5, 6, (8, 3, 1, -1, -1, 2), (9, 3, 1, -1, -1, 2)),
    "more padding than image": (1, 2, 2, 3, (8, 5, 1, 1, 5, 1), (6, 3, 1, 1, 3, 1)),
    "a part of a line": (1, 5, 40, 12, (5, 3, 1, 1, 1, 1), (40, 3, 1, 1, 1, 1)),
    "many images": (9, 2, 3, 9, (2, 3, 1, 1, 1, 1), (3, 3, 1, 1, 1, 1)),
    "too wide for a copy": (1, 3, 4, 6000, (2, 2, 2, 1, 1, 1), (3, 2, 2, 1, 1, 1)),
    "in pairs": (2, 7, 8, 36, (7, 3, 1, 1, 1, 1), (8, 3, 1, 1, 1, 1)),
    "in pairs and one": (2, 7, 9, 36, (7, 3, 1, 1, 1, 1), (9, 3, 1, 1, 1, 1)),
    "in pairs, of a gradient": (2, 7, 9, 36, (7, 3, 1, -1, -1, 1), (9, 3, 1, -1, -1, 1)),
    "in pairs, rows strided": (2, 8, 5, 33, (3, 4, 2, 1, 0, 1), (3, 3, 1, 1, 0, 1)),
    "in pairs, rows of a gradient, strided": (2, 4, 3, 32, (8, 3, 1, -1, -1, 2), (3, 3, 1, -1, -1, 1)),
    "in pairs, deep": (1, 3, 3, 150, (3, 3, 1, 1, 1, 1), (3, 3, 1, 1, 1, 1)),
    "in pairs, more padding than image": (1, 2, 2, 33, (8, 5, 1, 1, 5, 1), (6, 3, 1, 1, 3, 1)),
}


def seen_product(kernels, is_window, shape, stored, seen, part=(0, 0)):
    """Every way in which what is seen can be an operand, of reals and of bf16."""
    library, dtype = kernels
    seen = seen[part[0] :, part[1] :]
    options = np.array([*shape, *part], np.int32)
    for narrow, turned, left in itertools.product((0, 1), repeat=3):
        s = seen.T if turned else seen
        rng = np.random.default_rng(5)
        x = rng.uniform(-1, 1, (s.shape[1], 70) if left else (21, s.shape[0])).astype(dtype)
        exact = s.astype(np.float64) @ x if left else x.astype(np.float64) @ s
        c = np.full(exact.shape, np.nan, dtype)
        source = rounded(stored)[0] if narrow else stored.astype(dtype)
        m, n = exact.shape
        library.seen_product(is_window, narrow, turned, left, pointer(options), m, n, s.shape[1] if left else s.shape[0],
                             pointer(source), pointer(x), pointer(c))
        bound = np.abs(s).astype(np.float64) @ np.abs(x) if left else np.abs(x).astype(np.float64) @ np.abs(s)
        assert (np.abs(c - exact) <= 20 * np.finfo(dtype).eps * bound).all(), (narrow, turned, left)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("part", [(0, 0), (7, 0), (7, 4)], ids=["whole", "rows", "part"])
def test_windows(kernels, name, part):
    n, height, width, channels, rows, columns = WINDOWS[name]
    images = rounded(np.random.default_rng(3).uniform(-1, 1, (n, height, width, channels)))[1]
    seen_product(kernels, 1, (height, width, channels, *rows, *columns), images, windows(images, rows, columns), part)


LARGE = {
    "in pairs": (2, 15, 15, 36, (15, 3, 1, 1, 1, 1), (15, 3, 1, 1, 1, 1)),
    "in pairs, lines of three": (40, 3, 3, 32, (3, 3, 1, 1, 1, 1), (3, 3, 1, 1, 1, 1)),
    "strided": (2, 28, 28, 40, (14, 3, 2, 1, 1, 1), (14, 3, 2, 1, 1, 1)),
    "too wide for a copy": (5, 8, 8, 500, (8, 3, 1, 1, 1, 1), (8, 2, 1, 1, 0, 1)),
}


@pytest.mark.parametrize("window", LARGE.values(), ids=LARGE)
def test_windows_in_large_tiles(large_tiles, window):
    n, height, width, channels, rows, columns = window
    images = rounded(np.random.default_rng(6).uniform(-1, 1, (n, height, width, channels)))[1]
    seen_product(large_tiles, 1, (height, width, channels, *rows, *columns), images, windows(images, rows, columns))


@pytest.mark.parametrize("shape", [(300, 200, 513), (513, 400, 77)], ids=str)
def test_tiles_of_all_sizes_give_the_same_bits(large_tiles, float16_kernels, shape):
    a, b = operands(np.float32, *shape)
    for stored in itertools.product((0, 1), repeat=2):
        assert product(large_tiles, a, b, *stored).tobytes() == product(float16_kernels, a, b, *stored).tobytes()


@pytest.mark.parametrize("channels", [32, 64, 200])
def test_sums_in_pairs_are_as_exact_as_others(kernels, channels):
    """Windows of three taps and the same rows as a matrix, both against float64: the root of the mean square of what they are off."""
    library, dtype = kernels
    rng, axis = np.random.default_rng(channels), (12, 3, 1, 1, 1, 1)
    images = np.maximum(rng.normal(size=(2, 12, 12, channels)), 0).astype(dtype)
    seen, x = windows(images, axis, axis).astype(dtype), rng.normal(size=(9 * channels, 70)).astype(dtype)
    exact, c = seen.astype(np.longdouble) @ x.astype(np.longdouble), np.empty((len(seen), 70), dtype)
    options = np.array([12, 12, channels, *axis, *axis, 0, 0], np.int32)
    library.seen_product(1, 0, 0, 1, pointer(options), *c.shape, len(x), pointer(images), pointer(x), pointer(c))
    in_pairs, one_by_one = (np.sqrt(np.mean((y - exact) ** 2)) for y in (c, product(kernels, seen, x, 0, 0)))
    assert in_pairs < one_by_one


@pytest.mark.parametrize("shape, part", [((4, 9, 5), (0, 0)), ((4, 9, 5), (3, 1)), ((70, 9, 33), (0, 0)), ((70, 9, 33), (69, 32)),
                                         ((1, 1, 1), (0, 0)), ((300, 25, 3), (301, 0))], ids=str)
def test_filters(kernels, shape, part):
    filters = rounded(np.random.default_rng(4).uniform(-1, 1, shape))[1]
    seen_product(kernels, 0, shape, filters, filters.transpose(1, 0, 2).reshape(-1, shape[2]), part)


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


CALLS = """
typedef float real;
#include "cpu/math.h"
void many(float *x, int n) {
    for (int i = 0; i < n; i++)
        x[i] = exp(x[i]) + exp(x[i] + 1) * log(x[i]) + log(x[i] + 2) - tanh(x[i]) * tanh(x[i] + 3) + sigmoid(x[i]) * softplus(x[i] + 4);
}
"""


def test_functions_of_floats_are_part_of_expressions(tmp_path):
    """However large the program is that calls them: a call would keep a loop from being vector code."""
    (tmp_path / "calls.c").write_text(CALLS)
    flags = ["-std=gnu11", "-Os", "-ffp-contract=off", "-fno-math-errno", f"-I{ROOT}/kernels_lib", f"-I{ROOT}/runtime"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-c", tmp_path / "calls.c", "-o", tmp_path / "calls.o"], check=True)
    symbols = subprocess.run(["nm", tmp_path / "calls.o"], capture_output=True, text=True, check=True).stdout
    assert "many" in symbols and not [name for name in ("float_exp", "float_log", "float_tanh", "sigmoid", "softplus") if name in symbols]
