"""CUDA programs whose kernels run on the processor, block by block (tests/support/cuda_on_host): gradients and predictions beside float64. Lanes,
packs, rows, patches, panels and fragments are where they are on a GPU; the same models run there, where there is one."""

import os
import platform
import re
import shutil
import subprocess

import pytest
from conftest import MTC, ROOT

pytestmark = [pytest.mark.skipif(platform.machine() != "x86_64", reason="shared memory below 4 GB is asked for as x86-64 has it"),
              pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here")]
WHERE = ["on the processor", pytest.param("on a GPU", marks=pytest.mark.gpu)]

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


# The largest of a normalized row is found again in the backward pass, by its bits: in another kernel, from a root that was stored.
LARGEST = """data {
  train = npy("x", "y")
  x : f32[48, 20]
  y : class[10]
}
model {
  h      = max(rms_norm(linear(x, 20)), axis = 1)
  logits = linear(h, 10)
}
train {
  loss      = cross_entropy(logits, y)
  predict   = logits
  optimizer = sgd(0, momentum = 0.5)
  batch     = 128
}
"""


# A matrix for each example, and one example: nothing goes from matrix to matrix.
ALONE = """data {
  train = npy("x", "y")
  x : f32[24, 20]
  y : class[10]
}
model {
  h      = linear(x, 16)
  scores = softmax(matmul(h, h, transpose_b = true) / 4)
  logits = linear(mean(matmul(scores, h), axis = 0), 10)
}
train {
  loss      = cross_entropy(logits, y)
  predict   = logits
  optimizer = sgd(0, momentum = 0.5)
  batch     = 1
}
"""


# Norms and their gradients behind the tiles of products.
FOLLOWED = """data {
  train = npy("x", "y")
  x : f32[32, 24]
  y : class[10]
}
model {
  a      = linear(x, 32)
  b      = a + linear(gelu(layer_norm(a)), 32)
  c      = b + linear(gelu(layer_norm(b)), 32)
  logits = linear(mean(layer_norm(c), axis = 0), 10)
}
train {
  loss      = cross_entropy(logits, y)
  predict   = logits
  optimizer = sgd(0, momentum = 0.5)
  batch     = 64
}
"""


# Heads of 12 and of 5 numbers, of which threads have whole rows, and warps the same ones: with a window, and without.
SMALL_HEADS = """data {
  train = npy("x", "y")
  x : f32[30, 16]
  y : class[10]
}
model {
  q      = linear(x, 48)
  a      = attention(q, linear(x, 24), linear(x, 24), heads = 4, kv_heads = 2, causal = true, window = 12)
  b      = attention(linear(a, 10), linear(a, 10), linear(a, 10), heads = 2, causal = true)
  logits = linear(mean(b, axis = 0), 10)
}
train {
  loss      = cross_entropy(logits, y)
  predict   = logits
  optimizer = sgd(0, momentum = 0.5)
  batch     = 4
}
"""


# Few places for each channel: a team has the statistics of one, and the moving mean that they are measured from.
STATISTICS = """data {
  train = npy("x", "y")
  x : f32[6, 4, 4]
  y : class[10]
}
model {
  h      = relu(batch_norm(conv2d(x, 6, 3, padding = 1, bias = false)))
  logits = linear(flatten(h), 10)
}
train {
  loss      = cross_entropy(logits, y)
  predict   = logits
  optimizer = sgd(0, momentum = 0.5)
  batch     = 32
}
"""


def check(where, *arguments):
    """That one network has no fault."""
    on_host = ["--on-host"] if where == "on the processor" else []
    done = subprocess.run([ROOT / "tools" / "fuzz_gpu", *on_host, "--jobs", "1", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"1 networks {where}, 0 with a fault" in done.stdout


def test_a_whole_training(tmp_path):
    """A program, no library: xor.mt learns what it does on a GPU."""
    program, path = tmp_path / "xor", f"{ROOT / 'tests/support/cuda_on_host/bin'}:{os.environ['PATH']}"
    build = [MTC, ROOT / "models" / "xor.mt", "--target", "cuda", "--arch", "sm_90", "--no-cache", "-o", program]
    done = subprocess.run([*map(str, build)], capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program, "--epochs", "3"], capture_output=True, text=True)
    assert done.returncode == 0 and "epoch 3/3" in done.stdout, done.stdout + done.stderr


WRITING = """data {
  examples = text("t.txt")
  split    = 90 / 10
  window   : class[32][13]
}
model {
  h      = embedding(window[:12], 32, 16)
  q      = rotary(linear(h, 16), 4)
  k      = rotary(linear(h, 8), 2)
  h      = h + linear(attention(q, k, linear(h, 8, name = "v"), heads = 4, kv_heads = 2, causal = true), 16, name = "o")
  scores = linear(rms_norm(h), 32)
}
train {
  loss      = cross_entropy(scores, window[1:])
  optimizer = adam(0.01)
  batch     = 4
  epochs    = 3
}
"""


# products whose sums are two at a time, of warps and of blocks
BROAD = WRITING.replace("32, 16)", "32, 272)").replace('), 16, name = "o")', '), 272, name = "o") + linear(gelu(linear(layer_norm(h), 2112)), 272)')

# three sums of a warp, and a norm that each block computes, which a later launch reads too
LATER = BROAD.replace("linear(layer_norm(h), 2112)), 272)", "linear(n, 3168)), 272) + n").replace("  h      = h + linear(", "  n      = layer_norm(h)\n  h      = h + linear(")


@pytest.mark.parametrize("model", [WRITING, BROAD, LATER], ids=["small", "broad", "later"])
def test_a_text_is_written(model, mtc, tmp_path, monkeypatch):
    """One token after the other, drawn where they are decoded: what the processor's program writes of the same weights."""
    (tmp_path / "m.mt").write_text(model)
    (tmp_path / "t.txt").write_text("to be or not to be that is the question " * 12)
    monkeypatch.setenv("PATH", f"{ROOT / 'tests/support/cuda_on_host/bin'}:{os.environ['PATH']}")
    assert mtc("m.mt", "--target", "cpu", "-o", "cpu", cwd=tmp_path).returncode == 0
    done = mtc("m.mt", "--target", "cuda", "--arch", "sm_90a", "--no-cache", "-o", "cuda", cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    def said(program, *flags):
        return subprocess.run([f"./{program}", *flags], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    said("cpu", "--save", "w", "--quiet")
    for flags in (["--temperature", "0"], ["--seed", "3"], ["--top-k", "4", "--min-p", "0.05"], ["--batch", "2", "--repetition-penalty", "1.2"]):
        texts = [said(program, "generate", "--load", "w", "--prompt", "to be", "--tokens", "16", *flags) for program in ("cpu", "cuda")]
        assert texts[0] == texts[1] and len(texts[0]) > 16


@pytest.mark.parametrize("where", WHERE)
def test_gradients_behind_a_pool(where, tmp_path):
    """Threads that have four neighbours of a row read the pool's gradient at the place of each."""
    path = tmp_path / "pooled.mt"
    path.write_text(POOLED)
    check(where, "--precisions", "fp32,bf16", path)


@pytest.mark.parametrize("where", WHERE)
def test_gradients_of_the_largest_behind_a_norm(where, tmp_path):
    path = tmp_path / "largest.mt"
    path.write_text(LARGEST)
    check(where, "--precisions", "fp32", path)


@pytest.mark.parametrize("where", WHERE)
def test_rows_behind_the_tiles_of_products(where, tmp_path, mtc):
    path = tmp_path / "followed.mt"
    path.write_text(FOLLOWED)
    for precision in ("tf32", "bf16"):
        schedule = mtc("--emit=schedule", "--target", "cuda", "--arch", "sm_90", "--precision", precision, path).stdout
        assert schedule.partition("eval:")[0].count(", behind ") == 5
    check(where, "--precisions", "tf32,bf16", path)


@pytest.mark.parametrize("where", WHERE)
def test_attention_of_small_heads(where, tmp_path):
    path = tmp_path / "heads.mt"
    path.write_text(SMALL_HEADS)
    check(where, "--precisions", "fp32,bf16", path)


@pytest.mark.parametrize("where", WHERE)
def test_statistics_are_written_when_all_have_read_them(where, tmp_path):
    """On the processor one thread of a team goes on until all meet: it wrote the new mean before the others had read the old one."""
    path = tmp_path / "statistics.mt"
    path.write_text(STATISTICS)
    check(where, "--precisions", "bf16", path)


@pytest.mark.parametrize("where", WHERE)
def test_products_of_one_example(where, tmp_path):
    path = tmp_path / "alone.mt"
    path.write_text(ALONE)
    check(where, "--precisions", "fp32,bf16", path)


def test_roots_are_what_they_are_everywhere(mtc, tmp_path):
    """nvcc makes another instruction of 1 / sqrt(x), with other bits than the reciprocal of a stored root: it sees none."""
    path = tmp_path / "largest.mt"
    path.write_text(LARGEST)
    source = mtc("--emit=cu", "--arch", "sm_90a", path).stdout
    assert "root(" in source and not re.search(r"^[^/\n]*\bsqrt\(", source, re.M)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("first", [5, 6])
def test_random_networks(where, first):
    """One each; `tools/fuzz_gpu` takes more."""
    check(where, "--first", first, "--models", 1)
