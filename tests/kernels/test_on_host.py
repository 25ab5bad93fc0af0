"""CUDA programs whose kernels run on the processor, block by block (tests/support/cuda_on_host): gradients and predictions beside float64. Lanes,
packs, rows, patches, panels and fragments are where they are on a GPU."""

import platform
import shutil
import subprocess

import pytest
from conftest import ROOT

pytestmark = [pytest.mark.skipif(platform.machine() != "x86_64", reason="shared memory below 4 GB is asked for as x86-64 has it"),
              pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here")]

POOLED = """data {
  train = npy("x", "y")
  x : u8[3, 32, 32]
  y : class[10]
}
model {
  h      = relu(conv2d(x / 255, 32, 3, padding = 1))
  logits = linear(global_avg_pool(h), 10)
}
train {
  loss      = cross_entropy(logits, y)
  predict   = logits
  optimizer = sgd(0, momentum = 0.5)
  batch     = 32
}
"""


def fuzz(*arguments):
    done = subprocess.run([ROOT / "tools" / "fuzz_gpu", "--on-host", "--jobs", "1", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_gradients_behind_a_pool(tmp_path):
    """Threads that have four neighbours of a row read the pool's gradient at the place of each."""
    path = tmp_path / "pooled.mt"
    path.write_text(POOLED)
    assert "1 networks on the processor, 0 with a fault" in fuzz("--precisions", "fp32,bf16", path)


@pytest.mark.parametrize("first", [5, 6])
def test_random_networks(first):
    """One each; `tools/fuzz_gpu` takes more."""
    assert "1 networks on the processor, 0 with a fault" in fuzz("--first", first, "--models", 1)
