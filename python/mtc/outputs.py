"""Files that are written. One of another kind is not replaced: a wrong name then destroys nothing. The rule is
that of programs (runtime/commands/outputs.c)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from typing import Callable, Collection, NamedTuple, Union

from .errors import FileError, UsageError, by_code

PathLike = Union[str, "os.PathLike[str]"]

_HEAD = 512  # bytes that tell
_METADATA = 4096  # bytes that begin with what a checkpoint of ours says of itself
_VERSION = b'"mtc.version":"'
_CANT_CREATE = 73
_EVENT = b'{"event"'
_PICTURES = (b"\x89PNG", b"%PDF", b"%!PS", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")


# What a name promises, as programs have it (runtime/base/ending.c).
_PROMISED = {
    ".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet", ".feather": "Feather", ".arrow": "Arrow",
    ".xlsx": "a workbook of Excel", ".json": "one value of JSON", ".jsonl": "JSON lines", ".npy": "an array of NumPy",
    ".npz": "an archive of NumPy", ".mat": "a file of MATLAB", ".pt": "a pickle of PyTorch",
    ".pth": "a pickle of PyTorch", ".pkl": "a pickle of Python", ".pickle": "a pickle of Python", ".h5": "HDF5",
    ".hdf5": "HDF5", ".keras": "a model of Keras", ".onnx": "ONNX", ".gguf": "GGUF", ".safetensors": "safetensors",
    ".svg": "SVG", ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".gif": "GIF", ".webp": "WebP", ".tif": "TIFF",
    ".tiff": "TIFF", ".bmp": "a bitmap", ".pdf": "PDF", ".ps": "PostScript", ".eps": "PostScript", ".html": "HTML",
    ".gz": "a file of gzip", ".zip": "a zip archive", ".txt": "text", ".md": "text", ".py": "a program of Python",
    ".ipynb": "a notebook", ".mt": "a model of mtc", ".c": "C", ".h": "C", ".cu": "CUDA C++", ".cpp": "C++", ".cc": "C++",
    ".cxx": "C++",
    ".sh": "a script of a shell", ".o": "an object file", ".a": "a library of object files",
    ".so": "a shared library", ".dylib": "a shared library of macOS", ".dll": "a shared library of Windows",
    ".exe": "a program of Windows",
}


class Kind(NamedTuple):
    """What a file is, in words, whether one begins like that, and the endings that its name may have ("": any)."""

    name: str
    begins: Callable[[bytes], bool]
    endings: str = ""


def _is_checkpoint(head: bytes) -> bool:
    """The length of its JSON, as 8 bytes, then the JSON."""
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 40


def _is_log(head: bytes) -> bool:
    return head[: len(_EVENT)] == _EVENT[: len(head)]


def _is_network(head: bytes) -> bool:
    """The version of the format comes first."""
    return len(head) > 1 and head[0] == 8 and 0 < head[1] < 128


def _is_picture(head: bytes) -> bool:
    svg = head.startswith((b"<svg", b"<?xml")) and b"<svg" in head
    return svg or head.startswith(_PICTURES) or head[8:12] == b"WEBP"


CHECKPOINT = Kind("checkpoint (safetensors)", _is_checkpoint, ".safetensors")
LOG = Kind("log of a run (JSON lines)", _is_log, ".jsonl, .json and .txt")
PICTURE = Kind("picture", _is_picture)
NETWORK = Kind("network (ONNX)", _is_network, ".onnx")


def _check_ending(path: str, kind: Kind) -> None:
    ending = os.path.splitext(path.lower())[1]
    promised = _PROMISED.get(ending)
    if kind.endings and promised and ending not in re.findall(r"[.]\w+", kind.endings):
        raise UsageError(f"{path}: the name promises {promised}; what can be written is {kind.endings}")


def check(path: PathLike, kind: Kind) -> None:
    """Raises UsageError where the name promises another kind, and FileError where a file is there that is neither of
    this kind nor empty, or cannot be read. What is no file, such as /dev/null, may be written to."""
    shown = os.fsdecode(path)
    _check_ending(shown, kind)
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


def check_weights(path: PathLike, own: Collection[str] = ()) -> None:
    """As `check`, for checkpoints; and weights that no program of mtc wrote, which no training makes again, are replaced only where the
    model has begun with them: ``own`` are the real paths of those."""
    check(path, CHECKPOINT)
    shown = os.fsdecode(path)
    if not os.path.isfile(shown) or os.path.getsize(shown) == 0 or is_named_after(os.path.realpath(shown), own):
        return
    with open(shown, "rb") as file:
        head = file.read(_METADATA)
    if _VERSION not in head:
        raise by_code(_CANT_CREATE, f"{shown}: would replace weights that no training of mtc has written\n"
                                    "  choose another name, or remove the file; a model that has loaded them may save there")


def is_named_after(real: str, own: Collection[str]) -> bool:
    """It is one of them, or one has a name behind its, as m-best is behind m."""
    return real in own or any(path.startswith(os.path.splitext(real)[0] + "-") for path in own)


def _write_whole(path: str, content: bytes) -> None:
    """As runtime/base/file.h writes: beside the file and into its place in one move, with its mode and where a link leads to.
    What is no plain file is written through, and what nobody may write is refused."""
    target = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path) or target.startswith(("/proc/", "/dev/")):
        with open(path, "wb") as file:
            file.write(content)
        return
    before = os.stat(target) if os.path.exists(target) else None
    if before and (not before.st_mode & 0o222 or not os.access(target, os.W_OK)):
        raise OSError(errno.EACCES, "it is read-only; chmod u+w makes it writable")
    beside = f"{target}.{os.getpid()}.tmp"
    with contextlib.suppress(OSError):  # of a program that had our number, or a link that somebody laid there
        os.unlink(beside)
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if before else 0o666), "wb") as file:
            file.write(content)
            if before:
                _make_like(file.fileno(), before)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _make_like(file: int, before: os.stat_result) -> None:
    with contextlib.suppress(OSError):  # whoever may not give files away keeps the mode all the same
        os.fchown(file, before.st_uid, before.st_gid)
    os.fchmod(file, before.st_mode & 0o777)


def write_text(path: PathLike, text: str, kind: Kind) -> None:
    """Writes a file, in UTF-8. Raises FileError: it cannot, or `check` refuses it."""
    write_bytes(path, text.encode(), kind)


def write_bytes(path: PathLike, content: bytes, kind: Kind) -> None:
    check(path, kind)
    try:
        _write_whole(os.fspath(path), content)
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: cannot write: {error.strerror}") from error
