"""Attention at one position, by several blocks for a head (kernels_lib/cuda/attention_step.cuh), without a GPU: fibers stand for a
block's threads. With one: tests/runtime/test_generate.py."""

import re
import subprocess

import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick


def test_on_the_host(tmp_path):
    """Some positions against float64: parts that have nothing yet, windows, shared keys, heads that lanes do not divide."""
    source = ROOT / "tests/kernels/attention_step_host.cpp"
    flags = ["-std=c++17", "-O1", "-Wno-unknown-pragmas", "-ffp-contract=off", "-I", ROOT / "kernels_lib"]
    subprocess.run(["g++", *flags, "-o", tmp_path / "host", source], check=True)
    lines = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [int(re.search(r"parts (\d+)", line)[1]) for line in lines] == [1, 2, 2, 2, 4, 1, 1, 4]
    for line in lines:
        assert 0 < float(line.split()[-1]) < 2e-6, line
