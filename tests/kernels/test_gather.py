"""Lookups in compiled programs, and the gradient of the table that was looked up: its kernels alone and in programs, against NumPy."""

import ctypes
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from library import Library, pointer
from once import folder_of_all_workers, made_once
from test_ops_compiled import mtc

TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def skewed(random, rows, count):
    """Most of the rows are named never or seldom, the first ones often."""
    return np.minimum((rows * random.uniform(0, 1, count) ** 6).astype(np.int32), rows - 1)


def table_gradient(index, dy, rows):
    gradient = np.zeros((rows, dy.shape[-1]))
    np.add.at(gradient, index.ravel(), dy.reshape(-1, dy.shape[-1]).astype(np.float64))
    return gradient


# ---- programs ----


def model(rows, width, extra="", y="gather(table, label)", train=""):
    return f"""data {{
  train = idx("label", "probe")
  label : class[{rows}]
  probe : f32[{width}]
}}
model {{
  table = weight([{rows}, {width}])
{extra}  y = {y}
}}
train {{
  loss = sum(y * probe)
  predict = y
  optimizer = sgd(0, momentum = 0.9)
  batch = {EXAMPLES}
{train}}}
"""


EXAMPLES = 96


@pytest.mark.parametrize("size", [(2, 1), (7, 5), (65, 64), (251, 12), (90, 132)], ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_lookup_and_gradient(target, size, tmp_path):
    rows, width = size
    (tmp_path / "table.mt").write_text(model(rows, width))
    mtc(tmp_path / "table.mt", "--shared", "-o", tmp_path / "table.so", "--keep", tmp_path, "--target", target)
    library, random = Library(tmp_path / "table.so"), np.random.default_rng(3)
    table = random.uniform(-1, 1, (rows, width)).astype(np.float32)
    probe = random.uniform(-1, 1, (EXAMPLES, width)).astype(np.float32)
    label = skewed(random, rows, EXAMPLES)
    fields = [label.astype(np.uint8), probe]
    library.set("table", table)
    library.set_data(fields)
    assert np.array_equal(library.predict(fields, width), table[label])
    loss = library.train(1, 1)[0, 0]
    gradient = library.get("table.momentum", table.shape)
    library.close()
    assert loss == pytest.approx((table[label] * probe).sum() / EXAMPLES, rel=1e-4, abs=1e-5)
    order = np.argsort(np.random.default_rng(0).uniform(size=EXAMPLES))  # sums may run in another order
    np.testing.assert_allclose(gradient, table_gradient(label[order], probe[order] / EXAMPLES, rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_tied_table_in_bf16(target, tmp_path):
    """A table that is also the matrix of a product: its gradients add up, each of numbers of 8 bits."""
    rows, width = 48, 32
    extra = "  h = relu(gather(table, label))\n  scores = matmul(h, table, transpose_b = true)\n"
    text = model(rows, width, extra, "matmul(scores, weight([48, 32]))", "  precision = bf16\n")
    (tmp_path / "tied.mt").write_text(text)
    mtc(tmp_path / "tied.mt", "--shared", "-o", tmp_path / "tied.so", "--keep", tmp_path, "--target", target)
    library, random = Library(tmp_path / "tied.so"), np.random.default_rng(5)
    table, mixing = (random.uniform(-1, 1, (rows, width)).astype(np.float32) for _ in range(2))
    probe, label = random.uniform(-1, 1, (EXAMPLES, width)).astype(np.float32), skewed(random, rows, EXAMPLES)
    library.set("table", table)
    library.set("y", mixing)
    library.set_data([label.astype(np.uint8), probe])
    library.train(1, 1)
    gradient = library.get("table.momentum", table.shape)
    library.close()
    h = np.maximum(table[label], 0).astype(np.float64)
    d_scores = probe.astype(np.float64) / EXAMPLES @ mixing.T
    expected = d_scores.T @ h + table_gradient(label, d_scores @ table * (h > 0), rows)
    assert abs(gradient - expected).max() < 0.02 * abs(expected).max()


COMPUTED = """data {
  train = idx("x")
  x : f32[3, 9]
}
model {
  place = argmax(x)
  y = gather(weight([5, 4]), place) + gather(weight([3, 4]), iota(3))
}
train {
  loss = sum(y)
  predict = y
  optimizer = sgd(0, momentum = 0.9)
  batch = 8
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_computed_index(target, tmp_path):
    """An index outside of the table is taken for the nearest row, in the value and in the gradient."""
    (tmp_path / "place.mt").write_text(COMPUTED.replace("argmax(x)", "argmax(x, axis = 1)"))
    mtc(tmp_path / "place.mt", "--shared", "-o", tmp_path / "place.so", "--keep", tmp_path, "--target", target)
    library, random = Library(tmp_path / "place.so"), np.random.default_rng(6)
    x = random.uniform(-1, 1, (8, 3, 9)).astype(np.float32)
    table, shift = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((5, 4), (3, 4)))
    place = np.minimum(x.argmax(2), 4)
    library.set("y.0", table)
    library.set("y.1", shift)
    library.set_data([x])
    y = library.predict([x], 12).reshape(8, 3, 4)
    library.train(1, 1)
    gradient = library.get("y.0.momentum", table.shape)
    library.close()
    np.testing.assert_allclose(y, table[place] + shift, rtol=1e-6)
    np.testing.assert_allclose(gradient, table_gradient(place, np.full((8, 3, 4), 1 / 8), 5), rtol=1e-6)


# ---- the kernel of the CPU ----

C_SOURCE = """
typedef float real;
#include <stdint.h>
#include <string.h>
#include "cpu/gather.h"
void of_floats(int64_t count, int64_t rows, int64_t width, const int *index, const float *dy, float *out) {
    const GatherGrad shape = {count, rows, width};
#pragma omp parallel
    gather_grad(&shape, index, dy, out);
}
void of_halves(int64_t count, int64_t rows, int64_t width, const int *index, const bfloat16 *dy, float *out) {
    const GatherGrad shape = {count, rows, width};
#pragma omp parallel
    gather_grad(&shape, index, dy, out);
}
"""

SIZES = [(1, 1, 1), (100, 1, 7), (1000, 65, 64), (500, 2003, 33), (4100, 9, 4)]


def halves(x):
    """The upper 16 bits of each float."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def as_floats(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


@pytest.fixture(scope="module")
def c_kernel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gather")
    (folder / "gather.c").write_text(C_SOURCE)
    flags = ["-std=gnu11", "-O3", "-fopenmp", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT}/kernels_lib"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", folder / "gather.so", folder / "gather.c"], check=True)
    return ctypes.CDLL(str(folder / "gather.so"))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_c_kernel(c_kernel, size):
    count, rows, width = size
    random = np.random.default_rng(count)
    index, dy = skewed(random, rows, count), random.uniform(-1, 1, (count, width)).astype(np.float32)
    threads, before = ctypes.CDLL("libgomp.so.1").omp_set_num_threads, ctypes.CDLL("libgomp.so.1").omp_get_max_threads()
    sizes = [ctypes.c_int64(n) for n in size]
    results = []
    for number in (1, 2, 5):
        threads(number)
        out = np.full((rows, width), np.nan, np.float32)
        c_kernel.of_floats(*sizes, pointer(index), pointer(dy), pointer(out))
        results.append(out)
    narrow = np.full((rows, width), np.nan, np.float32)
    c_kernel.of_halves(*sizes, pointer(index), pointer(halves(dy)), pointer(narrow))
    threads(before)
    np.testing.assert_allclose(results[0], table_gradient(index, dy, rows), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(narrow, table_gradient(index, as_floats(halves(dy)), rows), rtol=1e-4, atol=1e-4)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


# ---- the kernel of the GPU ----

SHAPES = [("float", 1, 1, 1), ("float", 100, 7, 5), ("float", 5000, 1, 4), ("bfloat16", 5000, 13, 36), ("float", 8192, 65, 64),
          ("bfloat16", 3000, 4001, 132), ("float", 32768, 50257, 768), ("bfloat16", 32768, 50257, 768), ("float", 8192, 4096, 8)]


def build_cuda(output, folder, architecture):
    number = architecture[3:]
    (folder / "shapes.inc").write_text("".join(f"SHAPE({k}, {', '.join(map(str, s))})\n" for k, s in enumerate(SHAPES)))
    subprocess.run(["nvcc", "-std=c++17", "-O3", "-fmad=false", f"-gencode=arch=compute_{number},code={architecture}", "-shared",
                    "-Xcompiler", "-fPIC", f"-I{ROOT}/kernels_lib", f"-I{ROOT}/runtime", f"-I{folder}",
                    ROOT / "tests/kernels/gather.cu", "-o", output], check=True)


@pytest.fixture
def built_cuda(tmp_path, tmp_path_factory):
    """built_cuda(architecture): the library of the kernels for it."""
    folder = folder_of_all_workers(tmp_path_factory)
    return lambda architecture: made_once(folder / f"gather-{architecture}.so", lambda output: build_cuda(output, tmp_path, architecture))


@pytest.mark.nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_cuda_kernel_compiles(architecture, built_cuda):
    built_cuda(architecture)


@pytest.fixture
def cuda_kernel(built_cuda):
    return ctypes.CDLL(str(built_cuda("sm_90a")))


RACE = """
import ctypes, sys
import numpy as np
kernel, random = ctypes.CDLL(sys.argv[1]), np.random.default_rng(1)
for shape, count, rows, width in ((2, 5000, 1, 4), (3, 5000, 13, 36), (4, 8192, 65, 64), (8, 8192, 4096, 8)):
    for index in (random.integers(0, rows, count), np.minimum(random.integers(0, 4 * rows, count), rows - 1),
                  random.integers(0, rows, count) // 512 * 512):
        index, dy, out = index.astype(np.int32), np.ones((count, width), np.float32), np.zeros((rows, width), np.float32)
        assert kernel.gather_table(shape, *(array.ctypes.data_as(ctypes.c_void_p) for array in (index, dy, out))) == 0
"""


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not installed")
def test_no_thread_reads_what_another_writes(built_cuda):
    """Every barrier of the kernel is needed: without one of them, racecheck finds a hazard in shared memory. The last shape has
    eight rows in a tile, so that many indices name several rows of one."""
    library = built_cuda("sm_90a")
    done = subprocess.run(["compute-sanitizer", "--tool", "racecheck", "--target-processes", "all", "--error-exitcode", "9",
                           sys.executable, "-c", RACE, library], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "0 hazards displayed" in done.stdout, done.stdout[-2000:]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", range(len(SHAPES)), ids=lambda k: "x".join(map(str, SHAPES[k])))
def test_cuda_kernel(cuda_kernel, shape):
    kind, count, rows, width = SHAPES[shape]
    random = np.random.default_rng(count)
    for index in (skewed(random, rows, count), random.integers(0, rows, count).astype(np.int32),
                  np.full(count, rows - 1, np.int32)):
        dy = random.uniform(-1, 1, (count, width)).astype(np.float32)
        numbers = halves(dy) if kind == "bfloat16" else dy
        dy = as_floats(numbers) if kind == "bfloat16" else dy
        results = [np.full((rows, width), np.nan, np.float32) for _ in range(2)]
        for out in results:
            assert cuda_kernel.gather_table(shape, pointer(index), pointer(numbers), pointer(out)) == 0
        expected = table_gradient(index, dy, rows)
        assert abs(results[0] - expected).max() < 1e-6 * max(np.bincount(index).max(), 10)
        assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.gpu
def test_rows_that_many_name_take_turns(cuda_kernel):
    """Tiles have four rows of 128 places each, and between them four of 33, in which most groups have none: these groups are ready
    with a row while the sums of the row before are still being added up."""
    _, count, rows, width = SHAPES[8]
    slices, random = 512, np.random.default_rng(7)
    named = [row * slices + k for k in range(12) for row in range(rows // slices) for _ in range(33 if row % 2 else 128)]
    index = random.permutation(np.resize(named, count).astype(np.int32))
    dy = random.uniform(-1, 1, (count, width)).astype(np.float32)
    out = np.full((rows, width), np.nan, np.float32)
    assert cuda_kernel.gather_table(8, pointer(index), pointer(dy), pointer(out)) == 0
    assert abs(out - table_gradient(index, dy, rows)).max() < 1e-6 * np.bincount(index).max()
