"""Reads the tensors of a safetensors file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from .errors import DataError, FileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
          "U8": "u1", "BOOL": "?"}


def read_weights(path: Union[str, os.PathLike[str]]) -> dict[str, NDArray[Any]]:
    """All tensors by name; BF16, which NumPy does not have, as float32. Raises FileError; DataError: no such file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: cannot read: {error.strerror}") from None
    try:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        return {name: _tensor(content, 8 + size, about) for name, about in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, MemoryError, OverflowError):
        raise DataError(f"{os.fspath(path)}: no safetensors file, or a damaged one") from None


def step_of(path: Union[str, os.PathLike[str]]) -> Optional[int]:
    """The step that a checkpoint of mtc was written at; None: it is none."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            return int(json.loads(file.read(size))["__metadata__"]["mtc.step"])
    except (OSError, ValueError, KeyError, TypeError, MemoryError, OverflowError):
        return None


def _tensor(content: bytes, base: int, about: dict[str, Any]) -> NDArray[Any]:
    begin, end = about["data_offsets"]
    values = np.frombuffer(content[base + begin : base + end], _TYPES[about["dtype"]]).reshape(about["shape"])
    return (values.astype(np.uint32) << 16).view(np.float32) if about["dtype"] == "BF16" else values
