"""mtc.read_idx: what it gives, and what it says of files that are none."""

import gzip
import struct

import numpy as np
import pytest

import mtc

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(array):
    """An array as the bytes of a file."""
    array = np.asarray(array)
    kind = array.dtype.str[1:]
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, CODES[kind], array.ndim, *array.shape)
    return head + array.astype(f">{kind}").tobytes()


IMAGES = np.arange(24, dtype="u1").reshape(2, 3, 4)


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("shape", [(3,), (2, 0), (2, 3, 4), (1, 2, 1, 2, 1, 2, 1, 2)], ids=str)
def test_arrays_of_each_type(kind, shape, tmp_path):
    array = (np.arange(np.prod(shape)) - 4).reshape(shape).astype(kind)
    (tmp_path / "a").write_bytes(idx(array))
    found = mtc.read_idx(tmp_path / "a")
    assert found.dtype == np.dtype(kind) and found.dtype.isnative and found.shape == shape and np.array_equal(found, array)
    found[...] = 0  # it is the caller's own


@pytest.mark.parametrize("name", ["a", "a.gz", "a.idx"])
def test_compressed(name, tmp_path):
    (tmp_path / name).write_bytes(gzip.compress(idx(IMAGES)))
    assert np.array_equal(mtc.read_idx(str(tmp_path / name)), IMAGES)


def test_with_gz_after_its_name(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(IMAGES)))
    assert np.array_equal(mtc.read_idx(tmp_path / "a"), IMAGES)
    (tmp_path / "a").write_bytes(idx(IMAGES + 1))
    assert np.array_equal(mtc.read_idx(tmp_path / "a"), IMAGES + 1)


WHOLE = idx(IMAGES)
PACKED = gzip.compress(WHOLE)


@pytest.mark.parametrize("content, text", [
    (b"", "is empty"),
    (b"\x89PNG\r\n", "is not an IDX file: expected it to begin with bytes 00 00, found 89 50"),
    (b"\1" + WHOLE[1:], "is not an IDX file: expected it to begin with bytes 00 00, found 01 00"),
    (WHOLE[:2] + b"\x07" + WHOLE[3:], "is not an IDX file: no element type has the code 0x07"),
    (b"\0\0\x08\0", "expected 1 to 8 dimensions, found 0"),
    (b"\0\0\x08\x09" + bytes(36), "expected 1 to 8 dimensions, found 9"),
    (WHOLE[:1], "ends within the header of an IDX file"),
    (WHOLE[:3], "ends within the header of an IDX file"),
    (WHOLE[:15], "ends within the header of an IDX file"),
    (WHOLE[:-1], "its header says [2, 3, 4], 24 bytes of elements, but 23 follow it"),
    (WHOLE + b"\0", "its header says [2, 3, 4], 24 bytes of elements, but 25 follow it"),
    (b"\0\0\x0e\2" + b"\xff" * 8, "its header says [4294967295, 4294967295], 147573952520956936200 bytes of elements, but 0 follow it"),
    (b"\0\0\x08\3" + bytes(4) + b"\xff" * 8, "its header says [0, 4294967295, 4294967295]: array is too big"),
    (PACKED[:-9], "is not a whole gzip file: "),
    (PACKED[:5], "is not a whole gzip file: "),
    (PACKED[:20] + b"\xff\xff\xff" + PACKED[23:], "is not a whole gzip file: "),
    (PACKED[:-8] + b"\0" * 8, "is not a whole gzip file: ")])
def test_files_that_are_none(content, text, tmp_path):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(mtc.DataError) as caught:
        mtc.read_idx(tmp_path / "a")
    assert str(caught.value).startswith(f"{tmp_path / 'a'}: {text}")


def test_files_that_cannot_be_read(tmp_path):
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(mtc.FileError) as caught:
            mtc.read_idx(path)
        assert str(caught.value) == f"{path}: cannot read: {why}"
    with pytest.raises(mtc.FileError, match="cannot read: File name too long"):
        mtc.read_idx(tmp_path / ("a" * 300))
    with pytest.raises(mtc.FileError, match="is no path: embedded null byte"):
        mtc.read_idx("a\0b")
