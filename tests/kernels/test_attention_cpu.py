"""kernels_lib/cpu/attention.h against float64 NumPy: of float and double, stored so or as bf16, with any number of threads."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from attention_reference import SHAPES, attention, dots_of, random_qkv
from test_kernels_cpu import FLAGS, pointer, rounded

pytestmark = pytest.mark.full

SOURCE = Path(__file__).parent / "attention_cpu.c"
KINDS = {"float": ("float", "real"), "double": ("double", "real"), "float as bf16": ("float", "bfloat16")}  # real, stored
REALS = {"float": np.float32, "double": np.float64}
# Of results as they are stored, and of sums, which are real.
ERRORS = {"float": (3e-6, 1e-6), "double": (1e-14, 1e-14), "float as bf16": (2**-8, 1e-6)}


def compiled(folder, kind, *flags):
    library, (real, stored) = folder / "attention.so", KINDS[kind]
    subprocess.run([os.environ.get("CC", "cc"), *FLAGS, *flags, f"-DREAL={real}", f"-DSTORED={stored}", "-o", library,
                    SOURCE, "-lm"], check=True)
    return library


class Kernels:
    def __init__(self, library, kind):
        self.library, self.kind = ctypes.CDLL(str(library)), kind
        self.real, self.narrow = REALS[KINDS[kind][0]], KINDS[kind][1] == "bfloat16"

    def store(self, x):
        """As the kernels read it, and the numbers that this stands for."""
        return rounded(x) if self.narrow else (x.astype(self.real), x.astype(self.real))

    def numbers(self, stored):
        return (stored.astype(np.uint32) << 16).view(np.float32) if stored.dtype == np.uint16 else stored

    def room(self, extents):
        return np.full(extents, 0x7FC0, np.uint16) if self.narrow else np.full(extents, np.nan, self.real)

    def run(self, shape, threads):
        """out, sums and the gradient of qkv, of random numbers, and what they should be."""
        scale = shape.size**-0.5
        (stored, qkv), (stored_d, d_out) = (self.store(random_qkv(shape, seed)[..., :width])
                                            for seed, width in ((1, shape.qkv[-1]), (2, shape.out[-1])))
        exact = attention(shape, scale, qkv, d_out)
        dots, sums = dots_of(shape, exact[0], d_out).astype(self.real), np.full(shape.sums, np.nan, self.real)
        stored_d, dots = np.ascontiguousarray(stored_d), np.ascontiguousarray(dots)
        out, d_qkv, extents = self.room(shape.out), self.room(shape.qkv), shape.numbers()
        start = threads, pointer(extents), ctypes.c_double(scale)
        self.library.forward(*start, *map(pointer, (stored, out, sums)))
        self.library.backward(*start, *map(pointer, (stored, sums, dots, stored_d, d_qkv)))
        return (out, sums, d_qkv), exact

    def check(self, shape, threads):
        results, expected = self.run(shape, threads)
        stored, real = ERRORS[self.kind]
        for result, exact, limit in zip(results, expected, (stored, real, stored)):
            assert np.abs(self.numbers(result) - exact).max() <= limit * max(1, np.abs(exact).max())


@pytest.fixture(scope="module", params=KINDS)
def kernels(request, tmp_path_factory):
    return Kernels(compiled(tmp_path_factory.mktemp("attention"), request.param), request.param)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_against_float64(kernels, shape):
    kernels.check(shape, 2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_bits_with_any_number_of_threads(kernels, shape):
    """Few threads compute each weight of a gradient once, many do so twice: for its query and for its key."""
    one, two, three = ([x.tobytes() for x in kernels.run(shape, threads)[0]] for threads in (1, 2, 3))
    assert one == two == three


@pytest.mark.parametrize("kind", KINDS)
def test_reads_and_writes_nothing_else(kind, tmp_path):
    library = compiled(tmp_path, kind, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wno-error")
    sanitizer = subprocess.run([os.environ.get("CC", "cc"), "-print-file-name=libasan.so"], capture_output=True, text=True).stdout
    environment = {**os.environ, "LD_PRELOAD": sanitizer.strip(), "ASAN_OPTIONS": "detect_leaks=0",
                   "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, __file__, library, kind], env=environment, check=True)


if __name__ == "__main__":
    for each in SHAPES:
        for threads in (1, 2):
            Kernels(*sys.argv[1:]).check(each, threads)
