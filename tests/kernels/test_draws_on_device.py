"""Tokens that a GPU draws (kernels_lib/cuda/draw.cuh), without one: fibers stand for a block's threads."""

import subprocess

import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick


def test_on_the_host(tmp_path):
    """The tokens that the runtime draws of the same predictions, greedily and by chance, with a penalty and without; none of no numbers."""
    includes = [f"-I{ROOT / folder}" for folder in ("kernels_lib", "runtime")]
    source, runtime = ROOT / "tests/kernels/draw_host.cpp", ROOT / "build/libmtc_runtime.a"
    subprocess.run(["g++", "-std=c++17", "-O1", "-Wno-unknown-pragmas", *includes, "-o", tmp_path / "host", source, runtime, "-lm", "-ldl",
                    "-lpthread"], check=True)
    *drawn, none = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert drawn == ["6 0"] * 24 and none == "none -1"
