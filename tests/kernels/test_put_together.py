"""Elements that are put together of several values: a branch computes each, where all threads of a warp are in one of them. What the
branches read; on a GPU, the numbers of the CPU."""

import re

import numpy as np
import pytest
from library import Library

MODEL = """data {{
  train = npy("x", "y")
  x : f32[32, 64]
  y : f32[32, 64]
}}

model {{
  a = linear(x, {a})
  b = linear(x, 128)
  c = linear(x, 128)
  z = linear(concat([sigmoid(a), b * b, sin(c)], axis = 1), 64)
}}

train {{
  loss      = mse(z, y)
  optimizer = sgd(0.5)
  precision = bf16
  batch     = 512
}}
"""


def kernel(mtc, folder, a):
    """What puts the values together, as text."""
    path = folder / "m.mt"
    path.write_text(MODEL.format(a=a))
    done = mtc("--emit=cu", path, "--target", "cuda", "--schedule", "graph")
    assert done.returncode == 0, done.stderr
    return re.search(r"^struct to_z \{.*?^\};", done.stdout, re.M | re.S).group()


def test_each_branch_reads_what_is_there(mtc, tmp_path):
    branches = re.split(r"\} else ", kernel(mtc, tmp_path, a=256).partition("        if (column < 256) {")[2])
    assert [branch.partition("{")[0] for branch in branches[1:]] == ["if (column < 384) ", ""]
    for branch, name, function in zip(branches, ["t.a_", "t.b_", "t.c_"], ["", "*", "sin"]):
        assert re.findall(r"load_pack<4>\((t\.[abc]_)", branch) == [name]
        assert function in branch.partition("for ")[2] and "?" not in branch and "0.0f" not in branch


def test_a_warp_may_be_in_two_of_them(mtc, tmp_path):
    """A border that lies within a warp: its threads ask for each value."""
    text = kernel(mtc, tmp_path, a=192)
    assert "if (column" not in text and "column < 192 ?" in text


def test_cuda_is_right(cuda_takes):
    cuda_takes(MODEL.format(a=256))


def losses(path):
    random = np.random.default_rng(0)
    program = Library(path, np.float32)
    program.set_data([random.standard_normal((1024, 32, 64)).astype(np.float32) for _ in range(2)])
    found = program.train(4, 1)[:, 0]
    program.close()
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("a", [192, 256])
def test_losses_are_those_of_the_cpu(a, compile_model):
    cpu, gpu = (losses(compile_model(MODEL.format(a=a), "--shared", target=target).path) for target in ("cpu", "cuda"))
    assert cpu[-1] < 0.99 * cpu[0]
    np.testing.assert_allclose(gpu, cpu, rtol=1e-3)
