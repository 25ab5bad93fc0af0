"""Windows of 3 x 3 taps by squares of outputs (kernels_lib/cuda/winograd.cuh), without a GPU: fibers stand for a block's threads. With
one: tests/kernels/test_conv.py."""

import re
import subprocess

import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("flags", [[], ["-D__CUDA_ARCH__=750"]], ids=["as planned", "of 64 KB"])
def test_on_the_host(flags, tmp_path):
    """Outputs and their sums over tiles against float64: odd extents, taps that go either way, columns that fill no tile; and no more
    than twice what sums one after the other are off by."""
    source = ROOT / "tests/kernels/winograd_host.cpp"
    flags = ["-std=c++17", "-O1", "-Wno-unknown-pragmas", "-ffp-contract=off", "-I", ROOT / "kernels_lib", *flags]
    subprocess.run(["g++", *flags, "-o", tmp_path / "host", source], check=True)
    lines = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == 6
    for line in lines:
        largest, squares, plain, folds = map(float, re.findall(r"[\d.]+e-\d+", line))
        assert largest < 1e-5 and folds < 2e-6 and 0 < squares < 2 * plain, line
