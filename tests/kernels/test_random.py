"""kernels_lib/random.h: Philox's known answers, distributions, permutations; the same in C and in NumPy."""

import ctypes
import subprocess

import numpy as np
import pytest

from conftest import ROOT
import random_port


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("random") / "random.so"
    subprocess.run(["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", f"-I{ROOT}/kernels_lib",
                    ROOT / "tests/kernels/random_test.c", "-o", path, "-lm"], check=True)
    return ctypes.CDLL(str(path))


def draw(function, count, *args, dtype=np.float32):
    out = np.empty(count, dtype)
    function(*args, out.ctypes.data_as(ctypes.c_void_p))
    return out


def numbers(function, count, seed=1, stream=2, step=3):
    return draw(function, count, ctypes.c_uint64(seed), stream, ctypes.c_uint64(step), ctypes.c_int64(count))


def permutation(library, count, seed=1, epoch=0):
    return draw(library.permutation, count, ctypes.c_uint64(seed), ctypes.c_uint64(epoch), count, dtype=np.uint32)


# of the paper's authors (Random123, kat_vectors)
KNOWN = [
    (0, [0, 0, 0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    (2**64 - 1, [2**32 - 1] * 4, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (0x299F31D0A4093822, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]


@pytest.mark.parametrize("key, counter, expected", KNOWN)
def test_known_answers(key, counter, expected, library):
    counter = np.array(counter, np.uint32)
    out = draw(library.words, 4, ctypes.c_uint64(key), counter.ctypes.data_as(ctypes.c_void_p), dtype=np.uint32)
    assert list(out) == expected == random_port.philox(key, list(map(int, counter)))


def test_uniform(library):
    u = numbers(library.uniforms, 400_000)
    assert u.min() >= 0 and u.max() < 1 and np.array_equal(u * 2**24, np.floor(u * 2**24))
    counts, _ = np.histogram(u, 100, (0, 1))
    assert ((counts - 4000) ** 2 / 4000).sum() < 150  # chi-square, 99 degrees of freedom


def test_normal(library):
    n = 1_000_000
    moments = np.array([[(x**k).mean() for k in (1, 2, 3, 4)]
                        for x in (numbers(library.normals, n, seed).astype(float) for seed in range(4))])
    error = np.sqrt(np.array([1, 2, 15, 96]) / (4 * n))
    assert (abs(moments.mean(0) - [0, 1, 0, 3]) < 4 * error).all()
    x = numbers(library.normals, n)
    assert np.isfinite(x).all() and abs(x).max() < 6 and abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(n)


def test_streams_differ(library):
    draws = [numbers(library.uniforms, 1000, seed, stream, step) for seed in (1, 2) for stream in (0, 1) for step in (0, 2**33)]
    correlation = np.corrcoef(draws)
    assert abs(correlation - np.eye(len(draws))).max() < 0.15


def test_functions(library):
    x = (np.arange(1, 2**24 + 1, 97) / 2**24).astype(np.float32)
    log = draw(library.logarithms, len(x), ctypes.c_int64(len(x)), x.ctypes.data_as(ctypes.c_void_p))
    exact = np.log(x.astype(float))
    assert (abs(log - exact) <= 3e-7 * abs(exact)).all()
    turns = x - np.float32(2**-24)
    for sine, function in ((0, np.cos), (1, np.sin)):
        out = draw(library.cosines, len(x), ctypes.c_int64(len(x)), turns.ctypes.data_as(ctypes.c_void_p), sine)
        assert abs(out - function(2 * np.pi * turns.astype(float))).max() < 1.2e-7


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 64, 127, 128, 129, 255, 256, 257, 1000, 4096, 60000, 65536, 65537])
def test_permutation(count, library):
    order = permutation(library, count)
    assert np.array_equal(np.sort(order), np.arange(count))
    assert np.array_equal(order, random_port.permutation(random_port.shuffle_key(1, 0), count))


def test_permutations_are_fair(library):
    """Every one of the 24 orders of four, and every place of element 3 of ten, about equally often."""
    four = [tuple(permutation(library, 4, 1, epoch)) for epoch in range(24000)]
    counts = np.unique(four, axis=0, return_counts=True)[1]
    assert len(counts) == 24 and ((counts - 1000) ** 2 / 1000).sum() < 55
    places = np.bincount([permutation(library, 10, 1, epoch)[3] for epoch in range(20000)], minlength=10)
    assert ((places - 2000) ** 2 / 2000).sum() < 30


def test_epochs_differ(library):
    first, second = permutation(library, 60000, 1, 0), permutation(library, 60000, 1, 1)
    assert (first == second).sum() < 10 and abs(np.corrcoef(first, second)[0, 1]) < 0.02
    assert abs(np.corrcoef(first, np.arange(60000))[0, 1]) < 0.02 and abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.02
