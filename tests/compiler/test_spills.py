"""Registers suffice: nvcc, which says so, spills none of them in kernels that once had too few."""

import re
import subprocess

import pytest
from conftest import CUDA_INCLUDES
from cuda_front_end import kernels_command

# Squares of outputs of images of odd size (cuda/winograd.cuh), with residuals, forward and back.
BLOCK = """data {
  train = npy("x.npy", "y.npy")
  x : f32[512, 7, 7]
  y : class[10]
}
fn basic(x) {
  h = relu(batch_norm(conv2d(x, 512, 3, padding = 1, bias = false)))
  r = relu(x + batch_norm(conv2d(h, 512, 3, padding = 1, bias = false)))
  return r
}
model {
  a  = conv2d(x, 512, 1)
  h  = basic(basic(a))
  fc = linear(global_avg_pool(h), 10)
}
train {
  loss      = cross_entropy(fc, y)
  optimizer = sgd(0.1)
  batch     = 16
}
"""

# Slices of the stem's weight gradient, and sums over pixels in columns of eight lanes.
STEM = """data {
  train = npy("x.npy", "y.npy")
  x : f32[3, 224, 224]
  y : class[10]
}
model {
  h  = relu(batch_norm(conv2d(x, 64, 7, stride = 2, padding = 3, bias = false)))
  fc = linear(global_avg_pool(max_pool(h, 3, stride = 2, padding = 1)), 10)
}
train {
  loss      = cross_entropy(fc, y)
  optimizer = sgd(0.1)
  batch     = 256
}
"""


def spills(mtc, folder, model, precision):
    """(bytes of a thread, kernel) of those that spill, in code for sm_90a; and how many kernels there are."""
    (folder / "m.mt").write_text(model)
    (folder / "m.cu").write_text(mtc("--emit=cu", "--arch", "sm_90a", "--precision", precision, folder / "m.mt").stdout)
    command = kernels_command(folder / "m.cu", folder / "m.fatbin", ["sm_90a"], CUDA_INCLUDES, "-Xptxas", "-v")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores", done.stderr, re.S)
    return [(int(size), name) for name, size in found if int(size)], len(found)


@pytest.mark.nvcc
@pytest.mark.parametrize("model, precision", [(BLOCK, "fp32"), (STEM, "fp32"), (STEM, "bf16")], ids=["squares", "slices", "columns"])
def test_no_kernel_spills(mtc, tmp_path, model, precision):
    found, kernels = spills(mtc, tmp_path, model, precision)
    assert kernels > 8 and not found
