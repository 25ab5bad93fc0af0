"""Reads arrays of the IDX format, in which MNIST is published: bytes 0 0 TYPE RANK, then RANK sizes, then the elements, all
numbers big-endian."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from .errors import DataError, FileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP = b"\x1f\x8b"
_MOST_AXES = 8


def read_idx(path: Union[str, os.PathLike[str]]) -> NDArray[Any]:
    """An array of an IDX file, compressed with gzip or not, in its own type, such as u8 [60000, 28, 28].

    Where there is no such file, ``path`` with ``.gz`` after it is read. Raises FileError where it cannot be read,
    DataError where it is no IDX file, is damaged, or has fewer or more elements than its header says.
    """
    found = Path(path)
    compressed = Path(f"{os.fspath(path)}.gz")
    if not os.path.exists(found) and os.path.exists(compressed):
        found = compressed
    content = _content(found)
    kind, shape, begin = _header(found, content)
    elements, size = math.prod(shape), np.dtype(kind).itemsize
    if len(content) - begin != elements * size:
        raise DataError(f"{found}: its header says {list(shape)}, {elements * size} bytes of elements, but "
                        f"{len(content) - begin} follow it")
    try:
        values = np.frombuffer(content, kind, elements, begin).reshape(shape)
    except ValueError as error:  # no elements, of sizes that no array has
        raise DataError(f"{found}: its header says {list(shape)}: {error}") from None
    return values.astype(values.dtype.newbyteorder("="))  # the caller's own, to be written to


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot read: {error.strerror}") from None
    except ValueError as error:  # a character of code 0
        raise FileError(f"'{path}' is no path: {error}") from None
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: is not a whole gzip file: {error}") from None


def _header(path: Path, content: bytes) -> tuple[str, tuple[int, ...], int]:
    """The type, the shape, and where the elements begin."""
    if not content:
        raise DataError(f"{path}: is empty")
    if content[:2] != b"\0\0"[: len(content)]:
        raise DataError(f"{path}: is not an IDX file: expected it to begin with bytes 00 00, found {content[:2].hex(' ')}")
    rank = content[3] if len(content) > 3 else 0
    begin = 4 + 4 * rank
    if len(content) < max(begin, 4):
        raise DataError(f"{path}: ends within the header of an IDX file")
    if content[2] not in _TYPES:
        raise DataError(f"{path}: is not an IDX file: no element type has the code 0x{content[2]:02x}")
    if not 1 <= rank <= _MOST_AXES:
        raise DataError(f"{path}: expected 1 to {_MOST_AXES} dimensions, found {rank}")
    return _TYPES[content[2]], struct.unpack_from(f">{rank}I", content, 4), begin
