"""Products whose panels are copied ahead (kernels_lib/cuda/pipelined.cuh), without a GPU: fibers stand for a block's threads. With one:
tests/kernels/test_matmul.py and test_conv.py."""

import re
import subprocess

import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("flags", [[], ["-D__CUDA_ARCH__=750"]], ids=["as planned", "of 64 KB"])
def test_on_the_host(flags, tmp_path):
    """Outputs and sums of lines against float64, whether copies are done at once or not until they are waited for: lines that lie either
    way, whole panels and ragged ones, fewer panels than are under way."""
    source, stubs = ROOT / "tests/kernels/pipelined_host.cpp", ROOT / "tests/support/cuda_on_host/include"
    flags = ["-std=c++17", "-O1", "-Wno-unknown-pragmas", "-ffp-contract=off", "-I", ROOT / "kernels_lib", "-I", stubs, *flags]
    subprocess.run(["g++", *flags, "-o", tmp_path / "host", source], check=True)
    lines = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == 5 * 3 + 2 * 2
    for line in lines:
        assert all(float(error) < 1e-5 for error in re.search(r": (\S+) (\S+)$", line).groups()), line
