"""Values of a model can have any name: also those that the C and CUDA code, its headers and its libraries use."""

import os
import re
import subprocess

import pytest

from conftest import ROOT

TEMPLATE = """data {{
  train = npy("x", "y")
  first : f32[4, 6, 6]
  label : f32[3]
}}
model {{
  {values}
  last = linear(flatten({end}), 3)
}}
train {{
  loss      = mse(last, label)
  optimizer = sgd(0.1)
  batch     = 4
}}
"""
INCLUDES = [f"-I{ROOT / folder}" for folder in ("kernels_lib", "runtime")]
AT_A_TIME = 40


def model(names):
    """Each a kernel's own result."""
    values = [f"{name} = relu(conv2d({before}, 4, 3, padding = 1))" for before, name in zip(["first", *names], names)]
    return TEMPLATE.format(values="\n  ".join(values), end=names[-1])


def preprocessed(text, *flags):
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-fopenmp", *flags, "-x", "c", "-", *INCLUDES]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def words_of(text):
    """All that is called something in a program and its headers, macros too; what begins with _ is the compiler's own."""
    everything = text + preprocessed(text)
    found = set(re.findall(r"\b[A-Za-z]\w*", re.sub(r'"[^"\n]*"|//.*', "", everything)))
    return sorted(found | set(re.findall(r"#define ([A-Za-z]\w*)", preprocessed(text, "-dM"))))


def is_free(mtc, name, tmp_path):
    """The language has no function or word of that name."""
    path = tmp_path / "free.mt"
    path.write_text(model([name]))
    return mtc(path, "--emit=ast").returncode == 0 and mtc(path, "--emit=graph").returncode == 0


def test_all_words_of_a_c_program(mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(model(["value"]))
    words = words_of(mtc(path, "--target", "cpu", "--emit=c").stdout)
    names = [word for word in words if is_free(mtc, word, tmp_path)]
    assert len(names) > 800 and {"count", "kernel", "time", "window", "memcpy", "Axis"} <= set(names)
    for first in range(0, len(names), AT_A_TIME):
        path.write_text(model(names[first : first + AT_A_TIME]))
        emitted = mtc(path, "--target", "cpu", "--emit=c")
        assert emitted.returncode == 0, emitted.stderr
        compiler = [os.environ.get("CC", "cc"), "-std=c11", "-D_XOPEN_SOURCE=700", "-fopenmp", "-fsyntax-only", "-w", "-x", "c", "-"]
        done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]


def test_a_kernel_that_cannot_have_its_name(mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(model(["count", "sum_of"]))
    source = mtc(path, "--target", "cpu", "--emit=c").stdout
    assert "static void count_kernel(" in source and "static void sum_of(" in source
    assert "static __device__ void count(" in mtc(path, "--target", "cuda", "--emit=cu").stdout


@pytest.mark.nvcc
def test_names_of_a_cuda_program(compile_model):
    names = "count kernel filter window time clock round y1 j0 truth Axis Tile Product folds_of Run part_of memcpy grid warp gate"
    compile_model(model(names.split()), "--arch", "sm_90a", target="cuda")
