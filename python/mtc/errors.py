"""What can go wrong, as exceptions.

Each exception of this package is an :class:`MtcError` and, where Python has a class for that kind of fault, of that
class too, so that ``except ValueError`` catches what is wrong with values.
"""

from __future__ import annotations

import os
import re
import sys

from .flags import of_program

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class MtcError(Exception):
    """Any fault that mtc reports. ``code`` is the exit code that a generated program would end with."""

    code = 70

    def __str__(self) -> str:  # OSError shows its own way
        return str(self.args[0]) if self.args else ""


class CompileError(MtcError):
    """A model that does not compile. The text is the compiler's: file, line and column, the line itself, and a caret.

    ``file``, ``line`` and ``column`` are those of the first message, ``None`` where it names no place.
    """

    code = 65

    def __init__(self, text: str):
        super().__init__(text)
        place = re.search(r"^(.+?):(\d+):(\d+): error", text, re.MULTILINE)
        self.file = place.group(1) if place else None
        self.line = int(place.group(2)) if place else None
        self.column = int(place.group(3)) if place else None

    def __reduce__(self) -> tuple[type[CompileError], tuple[str]]:
        return type(self), (str(self),)


class CompilerMissing(CompileError):
    """There is no mtc on this machine, or none that runs; or not the compiler that mtc needs: cc, or nvcc for GPUs."""

    code = 69


class UsageError(MtcError, ValueError):
    """An argument, name or call that the model does not have."""

    code = 64


class DataError(MtcError, ValueError):
    """Data or a checkpoint that do not fit the model: shapes, types, ranges, NaN, another model's file."""

    code = 65


class DivergedError(DataError):
    """A loss, a metric or a weight became NaN or infinite in training. The text names the first tensor and its line."""


class FileError(MtcError, OSError):
    """A file that cannot be read or written."""

    code = 66


class FileInUse(FileError):
    """A checkpoint or log that another training writes, of this process, another one or a program."""

    code = 73


class DeviceError(MtcError, RuntimeError):
    """No such device, too little memory, or a fault that the device reported."""

    code = 69


class ProcessError(MtcError, RuntimeError):
    """One of the processes that train together was killed, or hangs."""

    code = 80


class InternalError(MtcError):
    """A fault of mtc itself."""

    code = 70


class ConversionNotice(UserWarning):
    """A word about the copy that was made because an array's type or layout is not the field's."""


class CompileWarning(UserWarning):
    """What the compiler warned of while it compiled a model."""


class TrainingWarning(UserWarning):
    """What programs warn of too: a training that replaces the checkpoint of another one, or that will lead nowhere."""


def users_frame() -> tuple[int, str, int]:
    """The first caller that is not of this package: its level for warnings, file and line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level, frame.f_code.co_filename, frame.f_lineno


_BY_CODE: dict[int, type[MtcError]] = {
    64: UsageError,
    65: DataError,
    66: FileError,
    69: DeviceError,
    70: InternalError,
    73: FileError,
    74: FileError,
    80: ProcessError,
}


def by_code(code: int, text: str) -> MtcError:
    """The exception for a code of sysexits.h and the text that a compiled model has for it."""
    text = of_program(text)
    kind = _BY_CODE.get(code, InternalError)
    if kind is DataError and text.startswith("training diverged"):
        kind = DivergedError
    error = kind(text)
    error.code = code
    return error
