"""Attention on a GPU, kernels_lib/cuda/attention.cuh, against float64 in PyTorch: forward, logarithms of sums and gradient, and that
two runs give the same bits. bench/attention.cu has the cases: lengths that fill tiles and odd ones, heads of 8 to 128 numbers,
causal and not, grouped heads, windows; in bf16 on tensor cores, by warps and by groups of warps, and otherwise without."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

INCLUDES = [f"-I{ROOT / folder}" for folder in ("kernels_lib", "runtime", "bench")]


def nvcc(architecture, cases, output, *options):
    number = architecture.rpartition("_")[2]
    target = f"-gencode=arch=compute_{number},code={architecture}"
    return subprocess.run(["nvcc", "-std=c++17", "-O3", target, *options, *INCLUDES, f'-DCASES="{cases}"',
                           ROOT / "bench/attention.cu", "-o", output], check=True, capture_output=True, text=True)


@pytest.mark.gpu
@pytest.mark.parametrize("architecture", ["sm_90", "sm_90a", "compute_86"])  # the last: PTX, within 99 KB of shared memory
def test_attention(architecture, tmp_path):
    pytest.importorskip("torch")
    library = tmp_path / "attention.so"
    nvcc(architecture, "attention_check.inc", library, "-shared", "-Xcompiler", "-fPIC")
    subprocess.run([sys.executable, ROOT / "bench/attention.py", library, "--check"], check=True)


@pytest.mark.nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_compiles(architecture, tmp_path):
    """For wgmma without registers in memory, and without products that wait for one another: ptxas says so (C75..)."""
    (tmp_path / "one.inc").write_text("make<bfloat16, 1, 200, 4, 2, 64, true, 50>(),\n")
    listing = nvcc(architecture, "one.inc", tmp_path / "attention.cubin", "-cubin", f"-I{tmp_path}", "-Xptxas", "-v").stderr
    spills = [line for line in listing.splitlines() if "spill stores" in line]
    assert spills, listing
    if architecture == "sm_90a":
        assert all("0 bytes spill stores" in line for line in spills), listing
        assert "(C75" not in listing, listing


@pytest.mark.nvcc
def test_two_blocks_of_small_heads_share_a_multiprocessor(tmp_path):
    """By their registers: with one, little hides what its threads wait for."""
    (tmp_path / "one.inc").write_text("make<bfloat16, 64, 128, 4, 4, 16, true, 0>(),\n")
    listing = nvcc("sm_90a", "one.inc", tmp_path / "attention.cubin", "-cubin", f"-I{tmp_path}", "-Xptxas", "-v").stderr
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", listing)]
    assert registers and max(registers) <= 128, listing
