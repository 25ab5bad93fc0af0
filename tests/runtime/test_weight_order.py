"""Weights whose axes files have in another order than memory, and files of others: 16-bit numbers, counts of batches."""

import ctypes
import os
import subprocess

import numpy as np
import pytest

from conftest import ROOT
from fake_data import pack, tensors, unpack, weights_alone
from runtime_library import SANITIZERS, build_program

pytest_plugins = ["fake_model"]

BAD_DATA = 65
MEMORY, FILE, ORDER = (3, 4, 2, 2), (3, 2, 4, 2), (0, 3, 1, 2)


@pytest.fixture
def both(fake, fake_filters, folder):
    """The checkpoints of two programs that differ in nothing but the order of axes in files."""
    fake(folder, "--save", "plain", "--quiet")
    fake_filters(folder, "--save", "permuted", "--quiet")
    return (folder / "plain").read_bytes(), (folder / "permuted").read_bytes()


def rewritten(content, change):
    """The weights of a checkpoint as somebody else writes them, after change(tensors)."""
    values = {name: value for name, value in tensors(weights_alone(content)).items()}
    change(values)
    header, data = {}, b""
    for name, (dtype, value) in ((name, value if isinstance(value, tuple) else ("F32", value)) for name, value in values.items()):
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    return pack(header, data)


def test_files_have_the_other_order(both):
    plain, permuted = map(tensors, both)
    for name in ("logits.weight", "logits.weight.momentum"):
        assert permuted[name].shape == FILE
        assert np.array_equal(permuted[name], plain[name].reshape(MEMORY).transpose(ORDER))
    assert np.array_equal(permuted["logits.bias"], plain["logits.bias"])


@pytest.mark.parametrize("threads", [1, 4])
def test_every_element_has_its_place(threads, tmp_path):
    """Of many shapes, in squares and parts of them."""
    program = build_program(tmp_path / "permuted", [ROOT / "tests/runtime/permuted.c"], library_flags=SANITIZERS)
    done = subprocess.run([program], env={**os.environ, "OMP_NUM_THREADS": str(threads)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_round_trip(both, fake_filters, folder):
    fake_filters(folder, "--init-from", "permuted", "--save", "again", "--lr", "0", "--limit-steps", "1", "--quiet")
    assert np.array_equal(tensors((folder / "again").read_bytes())["logits.weight"], tensors(both[1])["logits.weight"])


def test_resume_ends_with_the_same_bytes(both, fake_filters, folder):
    fake_filters(folder, "--save", "half", "--limit-steps", "31", "--quiet")
    fake_filters(folder, "--resume", "half", "--save", "whole", "--quiet")
    assert unpack((folder / "whole").read_bytes())[1] == unpack(both[1])[1]


def test_predictions_are_the_same(both, fake, fake_filters, folder):
    assert fake_filters(folder, "predict", "--load", "permuted") == fake(folder, "predict", "--load", "plain")


def test_the_shape_of_memory_is_refused(both, fake_filters, folder):
    (folder / "memory").write_bytes(rewritten(both[0], lambda w: w.update({"logits.weight": w["logits.weight"].reshape(MEMORY)})))
    message = fake_filters(folder, "--init-from", "memory", code=BAD_DATA)
    assert "logits.weight: expected [3, 2, 4, 2] of type F32, found [3, 4, 2, 2] of type F32" in message


def test_info_shows_the_shape_of_files(both, fake_filters, folder):
    assert "[3, 2, 4, 2]" in fake_filters(folder, "info") and "[3, 4, 2, 2]" not in fake_filters(folder, "info")
    shown = fake_filters(folder, "info", "permuted")
    assert "[3, 2, 4, 2]" in shown and "it fits this program" in shown


def test_elements_are_counted_as_files_have_them(fake_filters, folder):
    """Memory [1][5] of [3][16] is [1, 1, 0, 1] of [3, 4, 2, 2]: [1, 1, 1, 0] of the file."""
    assert "'logits.weight': element [1, 1, 1, 0] is NaN" in fake_filters(folder, "--poison", "27", code=BAD_DATA)


def test_a_library_gives_and_takes_the_order_of_files(fake_filters_library, fake_library):
    from test_runtime_abi import Session
    plain, permuted = Session(fake_library), Session(fake_filters_library)
    weight = permuted.tensor("logits.weight", *FILE)
    assert np.array_equal(weight, plain.tensor("logits.weight", *MEMORY).transpose(ORDER))
    changed = np.arange(48, dtype=np.float32).reshape(FILE)
    assert permuted.set(b"logits.weight", changed.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(changed.nbytes)) == 0
    assert np.array_equal(permuted.tensor("logits.weight", *FILE), changed)


# ---- files of others ----

def halves(value):
    return value.astype(np.float16)


def brain(value):
    """The upper halves, towards zero: numbers that bf16 has."""
    return (np.ascontiguousarray(value).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("dtype, narrow, widen", [
    ("F16", halves, lambda value: value.astype(np.float32)),
    ("BF16", brain, lambda value: (value.astype(np.uint32) << 16).view(np.float32)),
])
def test_16_bit_weights_become_floats(both, fake_filters, folder, dtype, narrow, widen):
    value = narrow(tensors(both[1])["logits.weight"])
    (folder / "narrow").write_bytes(rewritten(both[1], lambda w: w.update({"logits.weight": (dtype, value)})))
    fake_filters(folder, "--init-from", "narrow", "--save", "wide", "--lr", "0", "--limit-steps", "1", "--quiet")
    assert np.array_equal(tensors((folder / "wide").read_bytes())["logits.weight"], widen(value))
    assert "it fits this program" in fake_filters(folder, "info", "narrow")


def test_every_half_is_read(both, fake_filters, folder):
    """Subnormal, least and largest halves, in a weight of 48."""
    values = np.array([0x0001, 0x03FF, 0x0400, 0x7BFF, 0x8001, 0xFBFF, 0x0000, 0x3C00] * 6, np.uint16).view(np.float16).reshape(FILE)
    (folder / "narrow").write_bytes(rewritten(both[1], lambda w: w.update({"logits.weight": ("F16", values)})))
    fake_filters(folder, "--init-from", "narrow", "--save", "wide", "--lr", "0", "--limit-steps", "1", "--quiet")
    assert np.array_equal(tensors((folder / "wide").read_bytes())["logits.weight"], values.astype(np.float32))


def test_infinite_halves_are_refused(both, fake_filters, folder):
    values = np.zeros(FILE, np.float16)
    values[2, 1, 3, 0] = np.inf
    (folder / "narrow").write_bytes(rewritten(both[1], lambda w: w.update({"logits.weight": ("F16", values)})))
    assert "'logits.weight' is not finite: element [2, 1, 3, 0] is inf" in fake_filters(folder, "--init-from", "narrow", code=BAD_DATA)


def test_counts_of_batches_are_left_out(both, fake, folder):
    (folder / "theirs").write_bytes(rewritten(both[0], lambda w: w.update(
        {"bn1.num_batches_tracked": ("I64", np.array(7, np.int64)), "bn2.num_batches_tracked": ("I64", np.array(7, np.int64))})))
    assert "2 num_batches_tracked left out" in fake(folder, "--init-from", "theirs", "--limit-steps", "1")
    assert "it fits this program" in fake(folder, "info", "theirs")
    fake(folder, "eval", "--load", "theirs")


def test_other_integers_are_not(both, fake, folder):
    (folder / "theirs").write_bytes(rewritten(both[0], lambda w: w.update({"bn1.count": ("I64", np.array(7, np.int64))})))
    assert "bn1.count: is no weight of this model" in fake(folder, "--init-from", "theirs", code=BAD_DATA)
