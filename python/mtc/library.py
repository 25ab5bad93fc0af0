"""A compiled model's C interface (runtime/mtc.h), through ctypes. The interpreter is free while the library works.

A :class:`Session` is used by one thread at a time; :class:`mtc.Model` has the lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import threading
import weakref
from ctypes import byref, c_bool, c_char, c_double, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Collection, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import outputs
from .abi import EPOCH, STEPS, WARN, Fitting, Generation, Piece, bind
from .errors import FileInUse, InternalError, MtcError, UsageError, by_code
from .spec import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .dlpack import DeviceArray
    from .ranks import Ranks

TRAIN, TEST, VALIDATION = 0, 1, 2
LENT_ALIGNMENT = 16
"""Bytes that an array's address must be a multiple of, for the library to read it where it lies."""

# How arrays of a type are held. bf16 has no NumPy type: its bits.
DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(code) for name, code in (
    ("f32", "f4"), ("i32", "i4"), ("u8", "u1"), ("bool", "?"), ("f64", "f8"), ("bf16", "u2"), ("u16", "u2"), ("f16", "f2"))}


class Library:
    """A shared library that ``mtc --shared`` made. Raises UsageError for any other."""

    def __init__(self, path: Union[str, os.PathLike[str]]):
        # Waiting threads of OpenMP would spin, on processors that others need; it reads this once, when it is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self.path = Path(path)
        try:
            self.functions = ctypes.CDLL(str(self.path))
            self.model = byref(c_char.in_dll(self.functions, "mtc_model"))
        except (OSError, ValueError) as error:
            raise UsageError(f"'{self.path}' is no library of a model: {error}") from None
        missing = bind(self.functions)
        if missing:
            raise UsageError(f"'{self.path}' has no function {missing}: this version's 'mtc --shared' has not made it")
        self.description: dict[str, Any] = self.json(self.functions.mtc_describe(self.model))
        self.tensors: dict[str, dict[str, Any]] = {each["name"]: each for each in self.description["tensors"]}

    def json(self, text: Optional[int]) -> dict[str, Any]:
        """What a text of the library says, which is freed."""
        if not text:
            raise InternalError("out of memory")
        return dict(json.loads(self._taken(text)))

    def _taken(self, text: int) -> bytes:
        """The caller's text, which is freed."""
        try:
            return ctypes.string_at(text)
        finally:
            self.functions.mtc_free(text)

    @contextlib.contextmanager
    def alone(self, what: str, path: Union[str, os.PathLike[str]]) -> Iterator[None]:
        """A file that no other training writes meanwhile, of a program or of this package: the lock of runtime/base/lock.h.
        Raises FileInUse: another one does; which, and how it may be called, the text says."""
        lock = c_void_p()
        try:  # Ctrl-C comes when the call returns: the file would stay locked
            refusal = self.functions.mtc_lock_file(what.encode(), os.fsencode(path), byref(lock))
            if refusal:
                raise FileInUse(self._taken(refusal).decode("utf-8", "replace"))
            yield
        finally:
            if lock:
                self.functions.mtc_unlock_file(lock)


_loaded: dict[tuple[Path, int], Library] = {}
_loading = threading.Lock()


def load(path: Path, device: int) -> Library:
    """The library of that path, loaded once. All sessions of one library are on one device: each device has a copy."""
    with _loading:
        first = _loaded.get((path, -1)) or _loaded.setdefault((path, -1), Library(path))
        if first.description["target"] == "cpu":
            return first
        if (path, device) not in _loaded:
            users = [each for (owner, number), each in _loaded.items() if owner == path and number >= 0]
            own = path.with_suffix(f".{device}.so")
            _loaded[path, device] = Library(shutil.copyfile(path, own)) if users else first
        return _loaded[path, device]


def _after_fork() -> None:
    """OpenMP's waiting threads are the parent's: the child would wait for them for ever, so its thread works alone.
    Results do not depend on the number of threads."""
    global _loading
    _loading = threading.Lock()
    for library in _loaded.values():
        if library.description["target"] == "cpu" and hasattr(library.functions, "omp_set_num_threads"):
            library.functions.omp_set_num_threads(1)


os.register_at_fork(after_in_child=_after_fork)


class Handle:
    """A session's memory. Whoever reads it where it lies keeps its handle; with the last one the session ends.

    memories   what memory_new gave to owners that keep this handle. Where they and it are garbage of one cycle, it goes
               first: what is left is freed with the session
    """

    def __init__(self, library: Library, pointer: int):
        self.pointer, self.process = pointer, os.getpid()
        self.memories: set[int] = set()
        self._end = weakref.finalize(self, _destroy, library.functions, pointer, self.process, self.memories)
        self._end.atexit = False  # then the process's end frees all, and a thread may still be training


def _destroy(functions: ctypes.CDLL, pointer: int, process: int, memories: set[int]) -> None:
    if process == os.getpid():  # what a fork inherits is its parent's
        with contextlib.suppress(Exception):
            while memories:
                functions.mtc_memory_free(pointer, memories.pop())
            functions.mtc_destroy(pointer)


def _pointer(array: Any) -> Any:
    return array.ctypes.data


class DataSet(NamedTuple):
    """A data set of a session, as it was given: an address for each field, or the folder of the model's own files."""

    examples: int = 0
    fields: Sequence[Optional[int]] = ()
    lent: Sequence[bool] = ()
    owner: Any = None  # of what the library reads where it lies
    folder: Union[str, os.PathLike[str], None] = None


class Session:
    """A model on a device: weights, states, data. Each method raises what the code of its C function stands for."""

    def __init__(self, library: Library, seed: int, device: int):
        self.library, self.description, self.device = library, library.description, device
        pointer = c_void_p()
        code = library.functions.mtc_create(library.model, seed, device, byref(pointer))
        self.handle: Optional[Handle] = Handle(library, pointer.value or 0)
        self.data: dict[int, DataSet] = {}
        if code:
            error = by_code(code, self._text())
            self.close()
            raise error

    def close(self) -> None:
        """Ends the session, as soon as nobody reads its memory any more."""
        self.handle = None
        self.data = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- calls ----

    @property
    def pointer(self) -> int:
        """The MtcSession. Raises UsageError where it is closed, or another process's."""
        if self.handle is None:
            raise UsageError("the model is closed")
        if self.handle.process != os.getpid():
            raise UsageError("the model belongs to the process that this one was forked from: compile it again here; an estimator "
                             "comes to another process pickled")
        return self.handle.pointer

    def _text(self) -> str:
        return (self.library.functions.mtc_error(self.pointer) or b"").decode("utf-8", "replace")

    def fault(self, code: int) -> MtcError:
        """The exception of a code that a function has just returned."""
        return by_code(code, self._text())

    def call(self, name: str, *arguments: Any) -> None:
        """``mtc_<name>(session, ...)``."""
        code = getattr(self.library.functions, f"mtc_{name}")(self.pointer, *arguments)
        if code:
            raise self.fault(code)

    def status(self) -> dict[str, Any]:
        """Where it stands: mtc_status."""
        return self.library.json(self.library.functions.mtc_status(self.pointer))

    # ---- data ----

    def lend_data(self, which: int, examples: int, fields: Sequence[Optional[int]], lent: Sequence[bool],
                  owner: Any) -> None:
        """Gives a data set, an address for each field. What is ``lent`` is read where it lies; ``owner`` is kept."""
        try:
            self.call("lend_data", which, examples, *_columns(fields, lent))
        except BaseException:  # Ctrl-C comes when the call returns: nobody would keep what is lent
            self.drop_data(which)
            raise
        self.data[which] = DataSet(examples, fields, lent, owner)

    def load_data(self, which: int, folder: Union[str, os.PathLike[str], None] = None) -> None:
        """The model's own split."""
        self.call("load_data", which, None if folder is None else os.fsencode(folder))
        self.data[which] = DataSet(folder=folder)

    def drop_data(self, which: int) -> None:
        """Forgets a data set."""
        self.call("drop_data", which)
        self.data.pop(which, None)

    # ---- training ----

    def set_knob(self, name: str, value: float) -> None:
        """Sets a param."""
        self.call("set_knob", name.encode(), value)

    def train(self, steps: int) -> NDArray[np.float64]:
        """Trains so many steps; the means of each, [steps, reports that are means]."""
        means = [report for report in self.description["reports"] if not report["over_set"]]
        reports = np.empty((steps, len(means)))
        self.call("train", steps, _pointer(reports))
        return reports

    def fit(self, epochs: int, steps: Callable[..., bool], epoch: Callable[..., bool], *, pauses: bool = False,
            every: int = 1, warn: Optional[Callable[[str], None]] = None, ranks: Optional[Ranks] = None) -> None:
        """Trains to the end of that epoch, counted from the first of all. ``steps(step, means)`` and
        ``epoch(epoch, means, watched)`` get addresses of doubles, must not raise, and end the training by True. ``warn(text)``
        hears of what goes nowhere, and must not raise either. With ``ranks`` other processes train beside this one."""
        heard = WARN(lambda _, text: warn(text.decode("utf-8", "replace"))) if warn else WARN()
        fitting = Fitting(epochs, every, pauses, None, STEPS(lambda _, *given: steps(*given)),
                          EPOCH(lambda _, *given: epoch(*given)), heard)
        if ranks is None:
            self.call("fit", byref(fitting))
        else:
            ranks.fit(self, fitting)

    def evaluate(self, which: int) -> list[float]:
        """All reports over a data set."""
        reports = (c_double * len(self.description["reports"]))()
        self.call("evaluate", which, reports)
        return list(reports)

    def confusion(self) -> NDArray[Any]:
        """The confusion matrix of the last evaluation: whole numbers, or what examples weigh."""
        classes = self.description["confusion"]
        counts = np.zeros((classes, classes), np.float64)
        self.call("confusion", _pointer(counts))
        return counts if any(field["weighs"] for field in self.description["fields"]) else counts.astype(np.int64)

    def predict(self, examples: int, fields: Sequence[Optional[int]], lent: Sequence[bool], out: int,
                out_lent: bool) -> None:
        """Writes the predictions of so many examples to ``out``; ``lent`` tells which addresses are of the device."""
        self.call("predict_lent", examples, *_columns(fields, lent), out, out_lent)

    def generator(self, how: Generation) -> Generator:
        """Texts that go on from a prompt."""
        pointer = c_void_p()
        self.call("generator_new", byref(how), byref(pointer))
        return Generator(self, pointer.value or 0)

    # ---- tensors ----

    def tensor(self, name: str) -> dict[str, Any]:
        """The description of a tensor. Raises UsageError, with the nearest name."""
        if name not in self.library.tensors:
            raise UsageError(unknown("tensor", name, self.library.tensors))
        return self.library.tensors[name]

    def get(self, name: str, values: Optional[NDArray[Any]] = None) -> NDArray[Any]:
        """A copy of a tensor, with the axes that it has in files; in ``values`` (C order, its type) where given."""
        tensor = self.tensor(name)
        if values is None:
            values = np.empty(tensor["shape"], DTYPES[tensor["type"]])
        self.call("get", name.encode(), _pointer(values), values.nbytes)
        return values

    def set(self, name: str, values: NDArray[Any]) -> None:
        """Writes a tensor: an array of its shape, converted to its type."""
        tensor = self.tensor(name)
        array = np.ascontiguousarray(values, DTYPES[tensor["type"]])
        self.call("set", name.encode(), _pointer(array), array.nbytes)

    def locate(self, name: str) -> int:
        """The address of a tensor in the device's memory, good as long as ``handle`` lives."""
        address = c_void_p()
        self.call("locate", name.encode(), byref(address))
        return address.value or 0

    # ---- memory of the device ----

    def array(self, pointer: int, shape: Sequence[int], dtype: str, *,
              strides: Optional[Sequence[int]] = None) -> DeviceArray:
        """An array in the session's memory, which stays as long as the array and what shares it."""
        from .lending import session_array

        return session_array(self, pointer, shape, dtype, strides=strides)

    def memory_new(self, size: int) -> int:
        """Memory of the device, for memory_free."""
        memory = c_void_p()
        self.call("memory_new", size, byref(memory))
        return memory.value or 0

    def memory_free(self, memory: int) -> None:
        """Frees what memory_new gave."""
        self.call("memory_free", memory)

    def memory_read(self, host: int, memory: int, size: int) -> None:
        """Copies from the device to the host."""
        self.call("memory_read", host, memory, size)

    def memory_write(self, memory: int, host: int, size: int) -> None:
        """Copies from the host to the device."""
        self.call("memory_write", memory, host, size)

    # ---- files ----

    def save(self, path: Union[str, os.PathLike[str]], own: Collection[str] = ()) -> None:
        """Writes a checkpoint: the file is the old one or the whole new one. A file that is none is not replaced, nor one that others
        wrote, but for those whose real paths are ``own``."""
        outputs.check_weights(path, own)
        self.call("save", os.fsencode(path))

    def export(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the network as ONNX, in the same way."""
        outputs.check(path, outputs.NETWORK)
        self.call("export", os.fsencode(path))

    def load(self, path: Union[str, os.PathLike[str]]) -> None:
        """Weights and buffers of a file."""
        self.call("load", os.fsencode(path))

    def resume(self, path: Union[str, os.PathLike[str]]) -> None:
        """Everything of a checkpoint: training goes on as if it had not stopped."""
        self.call("resume", os.fsencode(path))


class Generator:
    """An MtcGenerator of a session, which may be closed before it."""

    def __init__(self, session: Session, pointer: int):
        self.session, self.piece = session, Piece()
        self.pointer = pointer
        self.close = weakref.finalize(self, session.library.functions.mtc_generator_free, pointer)
        self.close.atexit = False

    def next(self) -> tuple[int, bytes]:
        """The number of a text, and what is known next of it; -1: all texts are there."""
        self.session.pointer  # noqa: B018 (raises where it is closed)
        code = self.session.library.functions.mtc_generator_next(self.pointer, byref(self.piece))
        if code:
            raise self.session.fault(code)
        return self.piece.text, ctypes.string_at(self.piece.bytes, self.piece.count) if self.piece.count else b""


def _columns(fields: Sequence[Optional[int]], lent: Sequence[bool]) -> tuple[Any, Any]:
    return (c_void_p * len(fields))(*fields), (c_bool * len(lent))(*lent)


def unknown(what: str, name: object, names: Mapping[str, Any]) -> str:
    """A message: there is no such name, but these."""
    known = ", ".join(f"'{each}'" for each in list(names)[:12]) + (", ..." if len(names) > 12 else "")
    return f"the model has no {what} '{name}'{nearest(str(name), names) or (f'; it has {known}' if names else '')}"
