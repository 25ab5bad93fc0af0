"""Products on tensor cores, kernels_lib/cuda/tensor.cuh, against PyTorch in float64: plain ones in every orientation, and the
three products of a convolution, in bf16, tf32 and tf32x3, of sizes that fill tiles and of odd ones; those whose k the blocks of a cluster
have in 2, 4 and 8 parts, also where there is none; forward ones of integers, which are exact, and of floats of 8 bits. bench/tensor.cu has them."""

import subprocess
import sys

import pytest
from conftest import ROOT

# sm_90: by warps, as on every device since sm_80; sm_90a: by groups of warps; the PTX of sm_86: within 99 KB of shared memory
ARCHITECTURES = ["sm_90", "sm_90a", "compute_86"]
CASES = [(architecture, cases) for cases in ("tensor_check.inc", "tensor_check_parts.inc") for architecture in ARCHITECTURES]
CASES += [(architecture, "tensor_check_float8.inc") for architecture in ("sm_90", "sm_90a")]


@pytest.mark.gpu
@pytest.mark.parametrize("architecture, cases", CASES)
def test_products(architecture, cases, tmp_path):
    pytest.importorskip("torch")
    library, number = tmp_path / "tensor.so", architecture.rpartition("_")[2]
    includes = [f"-I{ROOT / folder}" for folder in ("kernels_lib", "runtime", "bench")]
    target = f"-gencode=arch=compute_{number},code={architecture}"
    subprocess.run(["nvcc", "-std=c++17", "-O3", target, "-shared", "-Xcompiler", "-fPIC", *includes,
                    f'-DCASES="{cases}"', ROOT / "bench/tensor.cu", "-o", library], check=True)
    subprocess.run([sys.executable, ROOT / "bench/tensor.py", library, "--check"], check=True)
