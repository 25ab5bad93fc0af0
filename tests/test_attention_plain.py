"""kernels_lib/cuda/attention_plain.cuh, attention in f32 on CUDA cores, against float64 NumPy."""

import ctypes
import subprocess

import numpy as np
import pytest
from attention_reference import SHAPES, Shape, attention, dots_of, random_qkv
from conftest import ROOT
from test_kernels_cpu import pointer, rounded

# Tiles of 128 and of 64 rows, which only larger batches have.
LARGER = [Shape(16, 130, 4, 2, 16, True), Shape(16, 260, 8, 4, 64, True), Shape(16, 130, 8, 8, 34, False),
          Shape(16, 260, 8, 2, 48, True, 70), Shape(24, 65, 4, 2, 128, True)]
CASES = [(number, shape) for number in ("float", "bfloat16") for shape in SHAPES + LARGER]
SAMPLE = [("float", SHAPES[1]), ("bfloat16", SHAPES[5]), ("float", LARGER[0])]
ERROR = {"float": 5e-6, "bfloat16": 2**-8}  # of what is stored


def compiled(folder, cases, *architectures):
    library, listing = folder / "attention.so", folder / "cases.inc"
    arguments = [f"{number}, {s.batch}, {s.length}, {s.queries}, {s.keys}, {s.size}, {int(s.causal)}, {s.window}"
                 for number, s in cases]
    listing.write_text("".join(f"CASE({i}, {text})\n" for i, text in enumerate(arguments)))
    targets = [f"-gencode=arch=compute_{name[3:]},code={name}" for name in architectures] or ["-arch=native"]
    subprocess.run(["nvcc", "-std=c++17", "-O3", *targets, "-Werror=all-warnings", "-shared", "-Xcompiler", "-fPIC",
                    f"-I{ROOT}/kernels_lib", f'-DCASES="{listing}"', ROOT / "tests/attention_plain.cu", "-o", library],
                   check=True)
    return library


@pytest.mark.nvcc
def test_compiles_for_every_device(tmp_path):
    compiled(tmp_path, SAMPLE, "sm_75", "sm_90a")


def check(library, case, number, shape):
    narrow, scale = number == "bfloat16", shape.size**-0.5
    stored, qkv = rounded(random_qkv(shape, 1)) if narrow else (random_qkv(shape, 1).astype(np.float32),) * 2
    d = np.ascontiguousarray(random_qkv(shape, 2)[..., : shape.out[-1]])
    stored_d, d_out = rounded(d) if narrow else (d.astype(np.float32),) * 2
    exact = attention(shape, scale, qkv, d_out)
    dots = np.ascontiguousarray(dots_of(shape, exact[0], d_out).astype(np.float32))
    out, d_qkv = (np.full(of, 0x7FC0, np.uint16) if narrow else np.full(of, np.nan, np.float32) for of in (shape.out, shape.qkv))
    again, sums = d_qkv.copy(), np.full(shape.sums, np.nan, np.float32)
    backward = getattr(library, f"backward_{case}")
    assert getattr(library, f"forward_{case}")(pointer(stored), pointer(out), pointer(sums), ctypes.c_float(scale)) == 0
    for result in (d_qkv, again):
        assert backward(*map(pointer, (stored, sums, dots, stored_d, result)), ctypes.c_float(scale)) == 0
    assert d_qkv.tobytes() == again.tobytes()
    for result, expected, limit in ((out, exact[0], ERROR[number]), (sums, exact[1], 5e-6), (d_qkv, exact[2], ERROR[number])):
        values = (result.astype(np.uint32) << 16).view(np.float32) if result.dtype == np.uint16 else result
        assert np.abs(values - expected).max() <= limit * max(1, np.abs(expected).max()), (number, str(shape))


@pytest.mark.gpu
def test_against_float64(tmp_path):
    library = ctypes.CDLL(str(compiled(tmp_path, CASES)))
    for case, (number, shape) in enumerate(CASES):
        check(library, case, number, shape)
