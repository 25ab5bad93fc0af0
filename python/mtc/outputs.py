"""Files that are written. One of another kind is not replaced: a wrong name then destroys nothing. The rule is
that of programs (runtime/outputs.c)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, NamedTuple, Union

from .errors import FileError, by_code

PathLike = Union[str, "os.PathLike[str]"]

_HEAD = 512  # bytes that tell
_CANT_CREATE = 73
_EVENT = b'{"event"'
_PICTURES = (b"\x89PNG", b"%PDF", b"%!PS", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")


class Kind(NamedTuple):
    """What a file is, in words, and whether one begins like that."""

    name: str
    begins: Callable[[bytes], bool]


def _is_checkpoint(head: bytes) -> bool:
    """The length of its JSON, as 8 bytes, then the JSON."""
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 40


def _is_log(head: bytes) -> bool:
    return head[: len(_EVENT)] == _EVENT[: len(head)]


def _is_picture(head: bytes) -> bool:
    svg = head.startswith((b"<svg", b"<?xml")) and b"<svg" in head
    return svg or head.startswith(_PICTURES) or head[8:12] == b"WEBP"


CHECKPOINT = Kind("checkpoint (safetensors)", _is_checkpoint)
LOG = Kind("log of a run (JSON lines)", _is_log)
PICTURE = Kind("picture", _is_picture)


def check(path: PathLike, kind: Kind) -> None:
    """Raises FileError where a file is there that is neither of this kind nor empty, or cannot be read. What is no
    file, such as /dev/null, may be written to."""
    shown = os.fsdecode(path)
    if not os.path.isfile(shown):
        return
    try:
        with open(shown, "rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise FileError(f"{shown}: cannot read what it would replace: {error.strerror}") from None
    if head and not kind.begins(head):
        raise by_code(_CANT_CREATE, f"{shown}: would replace a file that is no {kind.name}\n"
                                    "  choose another name, or remove the file")


def write_text(path: PathLike, text: str, kind: Kind) -> None:
    """Writes a file, in UTF-8. Raises FileError: it cannot, or `check` refuses it."""
    check(path, kind)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: cannot write: {error.strerror}") from error
