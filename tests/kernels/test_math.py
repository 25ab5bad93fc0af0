"""kernels_lib/cuda/math.cuh and pack.cuh: what stands for exp where products are rounded, and roundings to 16 bits, of one number and of
packs. Where a kernel says which, for each target and precision; on a GPU, the values."""

import ctypes
import re
import subprocess

import numpy as np
import pytest
from conftest import ROOT

MODEL = """data {{
  train = npy("x", "label")
  x     : f32[32]
  label : class[64]
}}

model {{
  scores = linear(x, 64)
}}

train {{
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.5)
  precision = {precision}
  batch     = 64
}}
"""
SOURCE = """#include "cuda/pack.cuh"
__global__ void kernel(const float *x, float *results, int count) {
    float *power = results, *rounded = results + count, *pair = results + 2 * count;
    float *upper = results + 3 * count, *positive = results + 4 * count;
    Pack<float, 2> two = load_pack<2>(x + 2 * threadIdx.x + 512 * blockIdx.x);
    Pack<Narrow, 2> both = ROUND(two);
    for (int v = 0; v < 2; v++) {
        int i = 512 * blockIdx.x + 2 * threadIdx.x + v;
        power[i] = near_exp(two[v]);
        rounded[i] = ROUND_FLOAT(two[v]);
        pair[i] = to_float(both[v]) == to_float(ROUND(two[v])) || two[v] != two[v] ? to_float(both[v]) : -12345;
        upper[i] = UPPER;
        positive[i] = relu(two[v]);
    }
}
extern "C" int run(int blocks, const float *x, float *results) {
    float *on_device;
    long bytes = 512l * blocks * sizeof(float);
    cudaMalloc(&on_device, 6 * bytes);
    cudaMemcpy(on_device, x, bytes, cudaMemcpyHostToDevice);
    kernel<<<blocks, 256>>>(on_device, on_device + 512 * blocks, 512 * blocks);
    cudaMemcpy(results, on_device + 512 * blocks, 5 * bytes, cudaMemcpyDeviceToHost);
    cudaFree(on_device);
    return (int)cudaGetLastError();
}
"""


@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "tf32x3", "bf16"])
def test_exp_is_near_where_cuda_rounds_products(precision, target, mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(MODEL.format(precision=precision))
    done = mtc("--emit=cu" if target == "cuda" else "--emit=c", path, "--target", target)
    assert done.returncode == 0, done.stderr
    code = [line for line in done.stdout.splitlines() if not line.lstrip().startswith("//")]
    near, exact = (sum(f" {name}(" in line for line in code) for name in ("near_exp", "exp"))
    assert (near > 0, exact > 0) == ((True, False) if target == "cuda" and precision not in ("fp32", "tf32x3") else (False, True))


def test_error_of_near_exp_before_the_instruction():
    """Its factor and its product are floats: 2 to the power of what they make of x is within 1.25 |x| 2^-24 of exp(x)."""
    source = (ROOT / "kernels_lib/cuda/math.cuh").read_text()
    factor = re.search(r"near_exp\(float x\) {\n +constexpr float log2_e = ([\d.]+)f;\n +return exp2_approximate\(log2_e \* x\);", source)[1]
    x = np.random.default_rng(1).uniform(-87, 87, 1_000_000).astype(np.float32)
    power = np.exp2((np.float32(factor) * x).astype(np.float64))
    error = np.abs(power / np.exp(x.astype(np.float64)) - 1)
    assert (error <= 1.25 * np.abs(x) * 2.0**-24 + 1e-12).all()


def to_bf16(x):
    """To the nearest, of two as near to the even one; a NaN stays one."""
    bits = x.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded)


def to_float16(x):
    return x.astype(np.float16).astype(np.float32)


# How kernels name what they do, and what stands for it here.
NARROW = {"bf16": (["-DROUND=to_bf16", "-DROUND_FLOAT=round_bf16", "-DUPPER=__uint_as_float(upper_bf16(two[v]) & 0xffff0000)"], to_bf16),
          "f16": (["-DMTC_FLOAT16", "-DROUND=to_f16", "-DROUND_FLOAT=round_f16", "-DUPPER=to_float(to_f16(two[v]))"], to_float16)}


@pytest.mark.gpu
@pytest.mark.parametrize("narrow", NARROW)
def test_values(narrow, tmp_path):
    flags, round_to = NARROW[narrow]
    (tmp_path / "m.cu").write_text(SOURCE)
    subprocess.run(["nvcc", "-std=c++17", "-O3", "-fmad=false", "-arch=native", "-shared", "-Xcompiler", "-fPIC",
                    f"-I{ROOT / 'kernels_lib'}", *flags, tmp_path / "m.cu", "-o", tmp_path / "m.so"], check=True)
    random, blocks = np.random.default_rng(2), 4096
    x = random.uniform(-87, 88, 512 * blocks).astype(np.float32)
    x[: x.size // 2] = random.integers(0, 2**32, x.size // 2, dtype=np.uint32).view(np.float32)
    x[:6] = [np.inf, -np.inf, np.nan, 0, -0.0, -200]
    x[1006:2006] = random.integers(0, 2**15 - 2**10, 1000, dtype=np.uint16).view(np.float16) + np.float32(2.0**-25)
    x[6:1006] = ((random.integers(0, 2**15, 1000, dtype=np.uint32) << 16) + 0x8000).view(np.float32)  # between two numbers of bf16
    results = np.empty((5, x.size), np.float32)
    pointer = ctypes.POINTER(ctypes.c_float)
    run = ctypes.CDLL(str(tmp_path / "m.so")).run
    assert run(blocks, x.ctypes.data_as(pointer), results.ctypes.data_as(pointer)) == 0
    power, rounded, pair, upper, positive = results
    assert power[0] == np.inf and power[1] == 0 and np.isnan(power[2]) and (power[3:5] == 1).all() and power[5] == 0
    assert (np.isnan(power) == np.isnan(x)).all()
    inside = np.abs(x) <= 87
    error = np.abs(power[inside] / np.exp(x[inside].astype(np.float64)) - 1)
    assert (error <= 2.0**-22 + 1.25 * np.abs(x[inside]) * 2.0**-24).all()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(rounded, round_to(x))
        np.testing.assert_array_equal(pair, round_to(x))
        np.testing.assert_array_equal(upper, round_to(x))
    np.testing.assert_array_equal(positive, np.where(x < 0, np.float32(0), x))  # a NaN stays one
