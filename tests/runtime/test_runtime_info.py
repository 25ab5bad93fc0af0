"""info FILE: what is in a checkpoint, or in any safetensors file, and whether it fits the program."""

import json
import math
import struct

import numpy as np
import pytest

pytest_plugins = ["fake_model"]

USAGE, BAD_DATA, NO_INPUT = 64, 65, 66


def write_file(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape, bytes)"""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def row_of(text, name):
    """The words of a tensor's line; its statistics as numbers."""
    line, = (line for line in text.splitlines() if line.startswith(f"  {name} "))
    return line.split()


def statistics(text, name):
    return [float(word) for word in row_of(text, name)[-4:]]


def test_checkpoint(fake, folder):
    fake(folder, "--save", "w.safetensors", "--lr", "0.25", "--quiet")
    text = fake(folder, "info", "w.safetensors")
    assert text.startswith("w.safetensors: ") and "written by a program of this very model\n" in text
    assert "  mtc.model_hash       0123abcd\n" in text and "it fits this program" in text
    assert row_of(text, "logits.weight")[1:5] == ["F32", "[3,", "16]", "192"]


def test_statistics(fake, folder):
    random = np.random.default_rng(3)
    values = random.normal(3, 2, (5, 7)).astype("<f4")
    write_file(folder / "a", {"x": ("F32", [5, 7], values.tobytes())})
    expected = [values.min(), values.max(), values.mean(dtype=float), values.std(dtype=float)]
    assert statistics(fake(folder, "info", "a"), "x") == pytest.approx(expected, rel=1e-4)


def test_numbers_that_are_none(fake, folder):
    values = np.array([1, math.nan, 3, math.inf, math.nan], "<f4")
    write_file(folder / "a", {"x": ("F32", [5], values.tobytes()), "y": ("F32", [1], values[1:2].tobytes())})
    text = fake(folder, "info", "a")
    assert row_of(text, "x")[-8:] == ["1", "3", "2", "1", "2", "NaN", "1", "infinite"]
    assert row_of(text, "y")[-2:] == ["1", "NaN"]


FLOATS = {"F64": ("<f8", 1e300, -2.5), "F32": ("<f4", 1.5, -2.5), "F16": ("<f2", 6e-8, -2.5)}
WHOLES = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1"}


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype, fake, folder):
    kind, large, small = FLOATS[dtype]
    write_file(folder / "a", {"x": (dtype, [2], np.array([large, small], kind).tobytes())})
    assert statistics(fake(folder, "info", "a"), "x")[:2] == pytest.approx([small, float(np.array(large, kind))], rel=1e-4)


@pytest.mark.parametrize("dtype", WHOLES)
def test_whole_numbers(dtype, fake, folder):
    info = np.iinfo(WHOLES[dtype])
    write_file(folder / "a", {"x": (dtype, [2], np.array([info.min, info.max], WHOLES[dtype]).tobytes())})
    assert statistics(fake(folder, "info", "a"), "x")[:2] == pytest.approx([info.min, info.max], rel=1e-4)


@pytest.mark.parametrize("dtype, content, least, largest", [
    ("BF16", struct.pack("<HH", 0x3FC0, 0xC020), -2.5, 1.5),
    ("F8_E5M2", bytes([0x3E, 0xC1, 0x01]), -2.5, 1.5),
    ("F8_E4M3", bytes([0x7E, 0xC2]), -2.25 - 0.25, 448),
    ("BOOL", bytes([0, 1]), 0, 1),
])
def test_small_types(dtype, content, least, largest, fake, folder):
    count = len(content) // (2 if dtype == "BF16" else 1)
    write_file(folder / "a", {"x": (dtype, [count], content)})
    assert statistics(fake(folder, "info", "a"), "x")[:2] == [least, largest]


def test_not_a_number_of_small_types(fake, folder):
    write_file(folder / "a", {"x": ("F8_E4M3", [2], bytes([0x7F, 0xFF])), "y": ("F8_E5M2", [2], bytes([0x7D, 0x7C]))})
    text = fake(folder, "info", "a")
    assert row_of(text, "x")[-2:] == ["2", "NaN"] and row_of(text, "y")[-4:] == ["1", "NaN", "1", "infinite"]


def test_foreign_file(fake, folder):
    write_file(folder / "a", {"logits.weight": ("F32", [16, 3], bytes(192)), "extra": ("I64", [], bytes(8)), "empty": ("F32", [0, 4], b"")})
    text = fake(folder, "info", "a")
    assert "not written by a program of mtc" in text and "metadata" not in text and "it does not fit this program" in text
    assert "  logits.weight: expected [3, 16] of type F32, found [16, 3] of type F32\n" in text
    assert "  logits.bias: is missing\n" in text and "  extra: is no tensor of this program\n" in text


def test_another_model(fake, fake_other, folder):
    fake_other(folder, "--save", "w", "--quiet")
    text = fake(folder, "info", "w")
    assert "written by a program of another model, or of another version of this one" in text and "it fits" in text


def test_damaged(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    content = bytearray((folder / "w").read_bytes())
    content[-3] ^= 1
    (folder / "w").write_bytes(content)
    assert "w: " in fake(folder, "info", "w", code=BAD_DATA)


def test_long_metadata(fake, folder):
    write_file(folder / "a", {}, {"vocabulary": "wörter " * 40})
    line, = (line for line in fake(folder, "info", "a").splitlines() if "vocabulary" in line)
    assert line.endswith("... (320 bytes)") and len(line.encode()) < 120


@pytest.mark.parametrize("args, code, message", [
    (["nothing"], NO_INPUT, "nothing"),
    (["fake/train-images"], BAD_DATA, "is not a safetensors file"),
    (["a", "b"], USAGE, "'b' is no flag"),
])
def test_refused(args, code, message, fake, folder):
    assert message in fake(folder, "info", *args, code=code)


def test_help(fake, folder):
    assert "info [FILE]" in fake(folder, "info", "--help")
