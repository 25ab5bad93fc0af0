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
    targets = [f"-gencode=arch=compute_{name.rpartition('_')[2]},code={name}" for name in architectures] or ["-arch=native"]
    subprocess.run(["nvcc", "-std=c++17", "-O3", *targets, "-Werror=all-warnings", "-shared", "-Xcompiler", "-fPIC",
                    f"-I{ROOT}/kernels_lib", f'-DCASES="{listing}"', ROOT / "tests/kernels/attention_plain.cu", "-o", library],
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


@pytest.mark.gpu
def test_with_less_shared_memory(tmp_path):
    """The PTX of sm_75, where a block has 64 KB; larger heads have no gradient there."""
    cases = [(number, shape) for number, shape in CASES if shape.size <= 176]
    library = ctypes.CDLL(str(compiled(tmp_path, cases, "compute_75")))
    for case, (number, shape) in enumerate(cases):
        check(library, case, number, shape)


# ---- what no row of a warp sees ----

WINDOWED = Shape(16, 260, 8, 4, 64, True, 17)  # a window's edge is that of a block of 64, or of 32, for one warp and not for others


def blocks(step, first, last):
    """Positions in blocks of `step` with any of first .. last."""
    at = np.arange(WINDOWED.length)
    return (at // step * step <= last) & (at // step * step + step > first)


class Poisoned:
    """Attention whose operands are no numbers at all positions but some."""

    def __init__(self, library):
        shape, rng = WINDOWED, np.random.default_rng(3)
        self.library, self.scale = library, shape.size**-0.5
        self.qkv = random_qkv(shape, 1).astype(np.float32)
        self.d_out = rng.standard_normal(shape.out).astype(np.float32)
        out, self.sums, self.d_qkv = attention(shape, self.scale, self.qkv.astype(np.float64), self.d_out.astype(np.float64))
        self.out, self.dots = out, dots_of(shape, out, self.d_out.astype(np.float64))

    def forward(self, keys):
        qkv, out = self.qkv.copy(), np.full(WINDOWED.out, np.nan, np.float32)
        qkv[:, ~keys, WINDOWED.queries * WINDOWED.size:] = np.nan
        sums = np.full(WINDOWED.sums, np.nan, np.float32)
        assert self.library.forward_0(pointer(qkv), pointer(out), pointer(sums), ctypes.c_float(self.scale)) == 0
        return out

    def backward(self, keys, queries):
        qkv, d_qkv, d_out = self.qkv.copy(), np.full(WINDOWED.qkv, np.nan, np.float32), self.d_out.copy()
        sums, dots = (np.ascontiguousarray(of.astype(np.float32)) for of in (self.sums, self.dots))
        qkv[:, ~keys, WINDOWED.queries * WINDOWED.size:] = np.nan
        for of_queries in (qkv[:, :, :WINDOWED.queries * WINDOWED.size], d_out, sums, dots):
            of_queries[:, ~queries] = np.nan
        assert self.library.backward_0(*map(pointer, (qkv, sums, dots, d_out, d_qkv)), ctypes.c_float(self.scale)) == 0
        return d_qkv


@pytest.mark.gpu
def test_what_a_warp_does_not_see(tmp_path):
    """Blocks that no row of a warp sees add nothing to it, not even 0 times what is no number."""
    library = ctypes.CDLL(str(compiled(tmp_path, [("float", WINDOWED)])))
    forms = [(ctypes.c_int * 3)() for _ in range(2)]
    library.forms_0(*forms)
    (rows, warp_rows, step), (back_rows, back_warp_rows, back_step) = forms
    at, everywhere, queries = Poisoned(library), np.full(WINDOWED.length, True), WINDOWED.queries * WINDOWED.size

    def same(result, expected, own):
        assert np.abs(result[:, own] - expected[:, own]).max() <= 5e-6 * max(1, np.abs(expected).max()), own

    for first in range(rows, 2 * rows, warp_rows):
        own, keys = slice(first, first + warp_rows), blocks(step, first - WINDOWED.window + 1, first + warp_rows - 1)
        same(at.forward(keys), at.out, own)
    for first in range(back_rows, 2 * back_rows, back_warp_rows):
        own, last = slice(first, first + back_warp_rows), first + back_warp_rows - 1
        keys, seeing = blocks(back_step, first - WINDOWED.window + 1, last), blocks(back_step, first, last + WINDOWED.window - 1)
        same(at.backward(keys, everywhere)[..., :queries], at.d_qkv[..., :queries], own)
        same(at.backward(everywhere, seeing)[..., queries:], at.d_qkv[..., queries:], own)
