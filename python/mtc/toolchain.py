"""Finds the compiler and runs it: a model becomes a shared library, which mtc's cache serves if it was made before."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Mapping, NamedTuple, Optional, Union

from .errors import CompileError, CompilerMissing, CompileWarning, FileError, UsageError, users_frame
from .flags import PRECISIONS, of_mtc, of_summary
from .processes import scratch
from .spec import whole

_HERE = Path(__file__).resolve().parent


class Source(NamedTuple):
    """A model: a file, or a text that has no file. ``name`` is what messages call it."""

    path: Optional[Path]
    text: str
    name: str


AnyModel = Union[str, "os.PathLike[str]", Source]


def source_of(model: AnyModel, name: str = "model") -> Source:
    """A path (of any type but str; or a str that ends in .mt), or the text of a model, which has several lines.

    Raises UsageError for what is neither, FileError for a file that cannot be read.
    """
    if isinstance(model, Source):
        return model
    if isinstance(model, str) and "\n" in model:
        return Source(None, model, f"<{name}>")
    if isinstance(model, str) and not model.endswith(".mt"):
        raise UsageError("expected the path of a model, which ends in .mt, or the text of one, which has several "
                         f"lines; got {model!r}")
    if not isinstance(model, (str, os.PathLike)):
        raise UsageError(f"expected the path or the text of a model, got {type(model).__name__}")
    path = Path(os.fspath(model))
    try:
        return Source(path, path.read_text(encoding="utf-8", errors="surrogateescape"), str(path))
    except OSError as error:
        raise FileError(f"cannot read the model '{path}': {error.strerror}") from None


# ---- the compiler ----


def beside() -> list[Path]:
    """Where what `make` writes beside the compiler lies: in this package's wheel, in the source tree which has this
    package."""
    return [_HERE / "_toolchain" / "lib" / "mtc", _HERE.parent.parent / "build"]


def find_compiler() -> str:
    """The path of mtc: ``$MTC_COMPILER``; the one in this package's wheel; that of the source tree which has this package;
    else the first on ``PATH``. Raises CompilerMissing."""
    chosen = os.environ.get("MTC_COMPILER")
    if chosen:
        found = shutil.which(chosen)
        if not found:
            raise CompilerMissing(f"MTC_COMPILER is '{chosen}', which is no program that can be run")
        return os.path.abspath(found)
    for place in (_HERE / "_toolchain" / "bin" / "mtc", _HERE.parent.parent / "build" / "mtc"):
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("mtc")
    if found:
        return os.path.abspath(found)
    raise CompilerMissing(
        "the compiler mtc was not found: neither in this package, nor beside its source tree, nor on PATH\n"
        "  install the wheel, which carries it ('make wheel'), or run 'make' in the source tree, or set MTC_COMPILER")


def default_target() -> Optional[str]:
    """``"cpu"`` where no GPU is to be seen, which takes no compiler to see; else None: mtc chooses."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = visible is not None and visible.strip() in ("", "-1", "NoDevFiles")
    present = glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/dxg")
    return None if present and not hidden else "cpu"


def chosen_target(target: Optional[str] = None, arch: Optional[str] = None, schedule: Optional[str] = None) -> Optional[str]:
    """What is compiled for; None: mtc chooses."""
    return target if target is not None or arch or schedule else default_target()


def run(arguments: list[str], *, cwd: Optional[Path] = None) -> subprocess.CompletedProcess[str]:
    """mtc with these arguments. Raises CompileError with its text where it fails; its warnings become Python's."""
    compiler = find_compiler()
    environment = {**os.environ, "NO_COLOR": "1"}
    try:
        done = subprocess.run([compiler, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              encoding="utf-8", errors="surrogateescape", env=environment, cwd=cwd)
    except OSError as error:
        raise CompilerMissing(f"the compiler '{compiler}' cannot be run: {error.strerror}") from None
    said = of_mtc(done.stderr.strip("\n"))
    if done.returncode:
        raise _fault(said or f"mtc ended with {done.returncode} and said nothing")
    if "warning:" in said:
        warnings.warn(said, CompileWarning, stacklevel=users_frame()[0])
    return done


_INSTALLED_BY = {
    "C compiler": "install gcc or clang (Debian, Ubuntu: apt install gcc), or set CC",
    "nvcc": "install NVIDIA's CUDA toolkit, or set CUDA_HOME to the folder that it is in",
}


def _fault(text: str) -> CompileError:
    """The exception for what mtc said."""
    missing = re.search(r"^mtc: error: no (C compiler|nvcc)\b", text, re.MULTILINE)
    return CompilerMissing(f"{text}\n  {_INSTALLED_BY[missing[1]]}") if missing else CompileError(text)


_LOG_LINES = 30  # of what cc or nvcc said


def _with_log(text: str) -> str:
    """What cc or nvcc said, in place of the name of the file that it is in."""
    named = re.search(r"^mtc: note: all that (\S+) said is in (.+)$", text, re.MULTILINE)
    try:
        said = Path(named[2]).read_text(encoding="utf-8", errors="replace").splitlines() if named else []
    except OSError:
        said = []
    if not named or not said:
        return text
    rest = len(said) - _LOG_LINES
    lines = [f"{named[1]} said:", *(f"  {line}" for line in said[:_LOG_LINES])]
    lines += [f"  ... {rest} lines more"] if rest > 0 else []
    shown = {f"mtc: note: {line.strip()}" for line in said}
    before = [line for line in text[: named.start()].splitlines() if line not in shown]
    return "\n".join([*before, *lines]) + text[named.end() :]


def _run_on(source: Source, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """A text is compiled as a file of that name in a folder of its own, so that messages name it and nothing else. The
    finished program looks for its data in its own working folder."""
    if source.path is not None:
        return run([str(source.path), *arguments])
    folder = Path(tempfile.mkdtemp(dir=scratch()))
    try:
        (folder / source.name).write_text(source.text, encoding="utf-8", errors="surrogateescape")
        return run([source.name, *arguments], cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- its options ----


def number_text(value: object, name: str) -> str:
    """A param's value as the command line has it. Raises UsageError for what is no number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(f"the param '{name}' is a number, got {value!r}") from None
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


_INT8 = ("precision='int8' is of programs that do not train: 'mtc --precision int8 MODEL.mt' makes one, which quantizes the weights "
         "that model.save(FILE) writes (docs/program.md#weights-in-int8)")
_CHOICES = {"target": ("cuda", "cpu"), "precision": PRECISIONS, "schedule": ("graph", "persistent")}


def options(*, target: Optional[str] = None, arch: Optional[str] = None, batch: Optional[int] = None,
            precision: Optional[str] = None, schedule: Optional[str] = None, recompute: Optional[bool] = None,
            shards: Optional[int] = None, set: Mapping[str, object] = {}) -> list[str]:
    """The compiler's flags. ``target=None``: a GPU where there is one, or where ``arch`` or ``schedule`` asks for it, else the CPU."""
    flags: list[str] = []
    chosen = chosen_target(target, arch, schedule)
    for name, value in (("target", chosen), ("arch", arch), ("precision", precision), ("schedule", schedule)):
        if (name, value) == ("precision", "int8"):
            raise UsageError(_INT8)
        if name in _CHOICES and value not in (None, *_CHOICES[name]):
            raise UsageError(f"{name} is {' or '.join(map(repr, _CHOICES[name]))}, not {value!r}")
        if value is not None:
            flags += [f"--{name}", str(value)]
    if batch is not None:
        flags += ["--batch", str(whole(batch, "batch", 1))]
    if recompute is not None:
        flags.append("--recompute" if recompute else "--no-recompute")
    if shards is not None:
        flags += ["--shards", str(whole(shards, "shards", 1))]
    for name, number in set.items():
        flags += ["--set", f"{name}={number_text(number, name)}"]
    return flags


# ---- what it makes ----


def compile_library(model: AnyModel, *, target: Optional[str] = None, arch: Optional[str] = None,
                    batch: Optional[int] = None, precision: Optional[str] = None, schedule: Optional[str] = None,
                    recompute: Optional[bool] = None, shards: Optional[int] = None, set: Mapping[str, object] = {},
                    name: str = "model") -> Path:
    """Compiles a model (a path, or a text that messages call ``<name>``). The same library has the same path.

    Served from mtc's cache it takes some hundredths of a second, else what cc or nvcc takes. Raises CompileError.
    """
    source = source_of(model, name)
    flags = options(target=target, arch=arch, batch=batch, precision=precision, schedule=schedule, recompute=recompute,
                    shards=shards, set=set)
    folder = Path(tempfile.mkdtemp(dir=scratch()))
    made = folder / "model.so"
    try:
        _run_on(source, ["--shared", "-o", str(made), "--keep", str(folder), *flags])
        library = scratch() / f"{hashlib.sha256(made.read_bytes()).hexdigest()[:32]}.so"
        if not library.exists():  # what is loaded already stays what it is
            os.replace(made, library)
        return library
    except CompileError as error:
        raise type(error)(_with_log(str(error))) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def emit(stage: str, model: AnyModel, *, name: str = "model", **chosen: object) -> str:
    """A stage of the compilation as text: ``graph``, ..., ``plan.svg``, ``cu``. Options as for compile_library."""
    return _run_on(source_of(model, name), [f"--emit={stage}", *options(**chosen)]).stdout  # type: ignore[arg-type]


def generated(model: AnyModel, *, target: str, name: str = "model", **chosen: object) -> str:
    """The CUDA C++ or C that a model becomes."""
    return emit("cu" if target == "cuda" else "c", model, name=name, target=target, **chosen)


def _summary(model: AnyModel, name: str, chosen: Mapping[str, object]) -> str:
    return _run_on(source_of(model, name), ["--summary", *options(**chosen)]).stdout  # type: ignore[arg-type]


def summary(model: AnyModel, *, name: str = "model", **chosen: object) -> str:
    """What ``mtc --summary`` prints: layers, shapes, parameters, arithmetic and memory. Params are called as in Python."""
    return of_summary(_summary(model, name, chosen))


def changeable(model: AnyModel, *, name: str = "model", **chosen: object) -> frozenset[str]:
    """The params of a model that are not fixed when compiling: a change of them needs no new library."""
    text = _summary(model, name, chosen)
    return frozenset(re.findall(r"^ +(?:params +)?(\w+) = \S+, a flag of the program", text, re.MULTILINE))


def format_text(text: str) -> str:
    """A model's text in the standard layout (``mtc --format``)."""
    return _run_on(source_of(text), ["--format"]).stdout


def version() -> str:
    """The compiler's version."""
    return run(["--version"]).stdout.split()[-1]
