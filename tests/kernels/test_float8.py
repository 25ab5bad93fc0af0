"""Numbers of 8 bits (kernels_lib/cuda/float8.cuh and cpu/float8.h) against their definition: all values, what lies halfway between two and beside that, and
numbers that were drawn. On the processor in instructions that every device has, on a GPU in those of its own."""

import subprocess

import numpy as np
import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick
SOURCE = ROOT / "tests/kernels/float8.cpp"
NOT_A_NUMBER = 0x7F


def values():
    """Of bytes 0 .. 0x7e, in float64: a fraction of 3 bits behind a 1, or, with the least exponent, behind a 0."""
    byte = np.arange(NOT_A_NUMBER)
    exponent, fraction = byte >> 3, byte & 7
    return np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7))


def numbers():
    all_values = values()
    halfway = (all_values[1:] + all_values[:-1]) / 2
    exact = np.concatenate([all_values, halfway, [464, 480, 3e38, 1e-30]]).astype(np.float32)
    beside = np.concatenate([exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(np.inf))])
    drawn = np.random.default_rng(3).integers(0, 2**32, 1 << 20, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array([0, np.inf, np.nan], np.float32)
    return np.concatenate([beside, -beside, special, -special, drawn])


def nearest(x):
    """Bytes: the nearest value, of two the one with an even byte; the largest for what is beyond it."""
    known = values()
    size = np.minimum(np.abs(np.where(np.isnan(x), 0, x)).astype(np.float64), known[-1])
    above = np.searchsorted(known, size)
    below = np.maximum(above - 1, 0)
    to_above, to_below = known[above] - size, size - known[below]
    byte = np.where((to_below < to_above) | ((to_below == to_above) & (below % 2 == 0)), below, above)
    return np.where(np.isnan(x), NOT_A_NUMBER, byte | (np.signbit(x) << 7))


def check(program):
    x = numbers()
    out = subprocess.run([program], input=x.tobytes(), capture_output=True, check=True).stdout
    result = np.frombuffer(out, [("byte", np.int32), ("value", np.float32)])
    is_number = ~np.isnan(x)
    expected = nearest(x)
    assert (result["byte"][is_number] == expected[is_number]).all()
    assert (result["byte"][~is_number] & 0x7F == NOT_A_NUMBER).all() and np.isnan(result["value"][~is_number]).all()
    value = values()[expected[is_number] & 0x7F].astype(np.float32)
    assert (result["value"][is_number] == np.where(expected[is_number] >> 7, -value, value)).all()


@pytest.mark.parametrize("flags", [[], ["-DOF_CPU"]], ids=["cuda", "cpu"])
def test_on_the_host(flags, tmp_path):
    subprocess.run(["g++", "-std=c++17", "-O1", *flags, "-I", ROOT / "kernels_lib", SOURCE, "-o", tmp_path / "host"], check=True)
    check(tmp_path / "host")


@pytest.mark.gpu
@pytest.mark.parametrize("architecture", ["sm_90a", "compute_80"])
def test_on_a_gpu(architecture, tmp_path):
    target = f"-gencode=arch=compute_{architecture.rpartition('_')[2]},code={architecture}"
    subprocess.run(["nvcc", "-x", "cu", "-std=c++17", "-O1", target, "-I", ROOT / "kernels_lib", SOURCE, "-o", tmp_path / "gpu"],
                   check=True)
    check(tmp_path / "gpu")
