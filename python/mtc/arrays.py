"""What users have becomes what a model reads: arrays of each field's type and shape, one example behind the other.

An array that is so already is read where it lies. Others are converted, with a ConversionNotice where the copy is
large. What cannot be converted without changing what it says is refused with a DataError, which names the field, what
it expects, and what came.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

import numpy as np

from . import dlpack, lending
from .errors import ConversionNotice, DataError, users_frame
from .library import DTYPES, LENT_ALIGNMENT, Session
from .spec import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTICE_BYTES = 1 << 20
"""Copies below this size take no time that anybody would notice, and are made without a word."""

_noticed: set[tuple[str, int, str]] = set()
_BLOCK = 1 << 20  # elements that are checked at a time

Field = Mapping[str, Any]
"""A field as mtc_describe has it: name, type, shape, classes, predicts, windows."""


@dataclass(frozen=True)
class Column:
    """The examples of one field, where the program reads them. ``lent``: without a copy, as long as ``owner`` lives."""

    examples: int
    pointer: int
    lent: bool
    owner: Any


# ---- texts ----


def type_text(field: Field) -> str:
    """A field as the language writes it: ``u8[28, 28]``, ``class[10]``."""
    shape = f"[{', '.join(map(str, field['shape']))}]" if field["shape"] else ""
    return f"class[{field['classes']}]{shape}" if field["classes"] else f"{field['type']}{shape}"


def _elements(field: Field) -> int:
    return int(np.prod(field["shape"], dtype=np.int64))


def _expected(field: Field) -> str:
    """What an array for the field looks like."""
    shape = ", ".join(["N", *map(str, field["shape"])])
    flat = f" or [N, {_elements(field)}]" if len(field["shape"]) > 1 else ""
    numbers = f" of classes 0 to {field['classes'] - 1}" if field["classes"] else ""
    return f"field '{field['name']}' is {type_text(field)}: expected an array [{shape}]{flat}{numbers}"


def shape_text(array: Any) -> str:
    return f"{array.dtype} [{', '.join(map(str, array.shape))}]"


def size_text(size: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _place(array: NDArray[Any], flat: int) -> str:
    """``example 3, element [5, 7]``, of an index into an array of examples."""
    first, *rest = (int(i) for i in np.unravel_index(flat, array.shape))
    return f"example {first}" + (f", element {rest}" if rest else "")


# ---- any array-like, on the host ----


def to_numpy(value: Any, what: str) -> NDArray[Any]:
    """A NumPy array of numbers or words: without a copy where that is possible. Raises DataError for what is none."""
    if hasattr(value, "mask") and np.ma.is_masked(value):  # in this order: numpy.ma takes long to import
        masked = int(np.ma.getmaskarray(value).sum())
        raise DataError(f"{what}: {masked} elements are masked; fill them, or leave those examples out")
    if hasattr(value, "nnz") and hasattr(value, "toarray"):
        raise DataError(f"{what}: a sparse matrix; a model reads dense arrays: {what}.toarray()")
    if value is None or isinstance(value, (str, bytes)) or callable(getattr(value, "read", None)):
        raise DataError(f"{what}: expected an array, got {type(value).__name__}")
    refuse_batches(value, what)
    array = _as_array(value, what)
    if array.dtype == object:
        array = _from_objects(array, what)
    if array.dtype.kind == "c":
        raise DataError(f"{what}: complex numbers are not supported; give real and imaginary parts as two arrays")
    if array.dtype.kind not in "biufUST":
        raise DataError(f"{what}: expected numbers, got {shape_text(array)}")
    return array


_LOADERS = ("torch.utils.data", "tensorflow.python.data")


def refuse_batches(value: Any, what: str) -> None:
    """Raises DataError for a loader of batches, a data set of PyTorch or TensorFlow, or a generator."""
    if isinstance(value, (np.ndarray, list, tuple)):
        return
    loader = hasattr(value, "__iter__") and hasattr(value, "dataset") and hasattr(value, "batch_size")
    foreign = any(kind.__module__.startswith(_LOADERS) for kind in type(value).__mro__)
    if loader or foreign or hasattr(value, "__next__"):
        raise DataError(f"{what}: mtc takes whole arrays, not a {type(value).__name__}: give X and y with all "
                        "examples; the program draws the batches from them")


def _as_array(value: Any, what: str) -> NDArray[Any]:
    try:
        if not isinstance(value, np.ndarray) and dlpack.has_dlpack(value):
            return dlpack.to_host(value)
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        if isinstance(value, (list, tuple)):
            raise DataError(f"{what}: the examples of the list have different shapes, or are no numbers; those of a field have one shape: fill "
                            "shorter ones up, sequences with a number that stands for nothing else") from None
        raise DataError(f"{what}: no array can be made of {type(value).__name__}: {error}") from None


def _from_objects(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Objects, as data frames of several types have them: numbers, or words."""
    if array.size and all(isinstance(each, str) for each in array.flat):
        return array.astype(str)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        bad = next((i for i, each in enumerate(array.flat) if not _is_number(each)), 0)
        raise DataError(f"{what}: expected numbers, found {array.flat[bad]!r} ({type(array.flat[bad]).__name__})"
                        f"{' in ' + _place(array, bad) if array.ndim else ''}") from None


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


# ---- shapes ----


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [int(extent) for extent in shape if extent != 1]


def _shape_hint(field: Field, shape: Sequence[int], what: str) -> str:
    """What the usual mistakes need."""
    wanted = tuple(field["shape"])
    if field["classes"] and shape[1:] == (*wanted, field["classes"]):
        return f"; one-hot rows become class numbers by {what}.argmax(axis=-1)"
    if shape == wanted or shape == (_elements(field),):
        return f"; a single example is {what}[None]"
    if field["classes"] and len(shape) == 1 and len(wanted) == 1 and not field["predicts"]:
        return (f"; the model answers for each of {wanted[0]} positions: for one answer, last=True of a recurrent layer or a mean over the "
                "positions leaves one row")
    if len(shape) == 2 and shape[0] == _elements(field):
        return f"; examples are rows: {what}.T"
    if len(shape) > 2 and shape[:-1] == wanted:
        return f"; examples go along the first axis: np.moveaxis({what}, -1, 0)"
    return ""


def _shaped(field: Field, array: Any, what: str) -> Any:
    """[N, *shape], of a NumPy array or a DeviceArray. Axes may be joined, split or of one element; numbers keep their
    order."""
    shape, wanted = array.shape, tuple(field["shape"])
    if array.ndim == 0:
        raise DataError(f"{what}: {_expected(field)}, got a single number")
    if shape[0] == 0:
        raise DataError(f"{what}: {_expected(field)}, got {shape_text(array)}: there are no examples")
    if shape[1:] == wanted:
        return array
    came = f"{what}: {_expected(field)}, got {shape_text(array)}"
    if int(np.prod(shape[1:], dtype=np.int64)) != _elements(field):
        raise DataError(came + _shape_hint(field, shape, what))
    given, own = _without_ones(shape[1:]), _without_ones(wanted)
    if given != own and sorted(given) == sorted(own):
        last = given[:-1] == own[1:] and len(own) > 2
        moved = "; channels are the first axis here: np.moveaxis(array, -1, 1)" if last else ""
        raise DataError(f"{came}: the axes are in another order{moved}")
    return array.reshape(shape[0], *wanted)


# ---- numbers ----


def _check_finite(array: NDArray[Any], field: Field, what: str) -> None:
    """In blocks that stay in the cache. A finite sum has finite terms; one that is not may only be large."""
    flat = array.reshape(-1) if array.flags.c_contiguous else None
    pieces = array if flat is None else (flat[i : i + _BLOCK] for i in range(0, flat.size, _BLOCK))
    with np.errstate(over="ignore", invalid="ignore"):
        if all(np.isfinite(piece.sum()) or np.isfinite(piece).all() for piece in pieces):
            return
    bad = np.flatnonzero(~np.isfinite(array))
    value = array.flat[bad[0]]
    many = f", and {bad.size - 1} more" if bad.size > 1 else ""
    raise DataError(f"{what}: {_place(array, bad[0])} is {'NaN' if np.isnan(value) else value}{many}; "
                    f"field '{field['name']}' takes finite numbers")


def _limits(field: Field) -> tuple[int, int]:
    if field["classes"]:
        return 0, int(field["classes"]) - 1
    if field["type"] == "bool":
        return 0, 1
    info = np.iinfo(DTYPES[field["type"]])
    return int(info.min), int(info.max)


def _refuse_whole(array: NDArray[Any], bad: NDArray[np.bool_], field: Field, what: str) -> None:
    first = int(np.flatnonzero(bad)[0])
    low, high = _limits(field)
    kind = f"classes {low} to {high}" if field["classes"] else f"whole numbers {low} to {high}"
    hint = ""
    pixels = array.dtype.kind == "f" and not field["classes"] and field["type"] == "u8"
    if pixels and array.min() >= 0 and array.max() <= 1:
        hint = f"; if 1 stands for 255: np.rint({what} * 255)"
    if field["classes"] and array.dtype.kind in "iu" and array.min() == 1 and array.max() == high + 1:
        hint = "; they seem to begin with 1: subtract it"
    raise DataError(f"{what}: {_place(array, first)} is {array.flat[first]}; field '{field['name']}' is "
                    f"{type_text(field)}, which takes {kind}{hint}")


def _check_whole(array: NDArray[Any], field: Field, what: str) -> None:
    """Whole numbers in the field's range: of whichever type."""
    low, high = _limits(field)
    if array.dtype == DTYPES[field["type"]] and not field["classes"]:
        return
    if array.dtype.kind == "f":
        _check_finite(array, field, what)
        broken = array != np.trunc(array)
        if broken.any():
            _refuse_whole(array, broken, field, what)
    if array.dtype.kind != "b" and (array.min() < low or array.max() > high):
        _refuse_whole(array, (array < low) | (array > high), field, what)


def _from_words(array: NDArray[Any], field: Field, what: str, words: Optional[Sequence[str]]) -> NDArray[Any]:
    """Class numbers of words."""
    if not field["classes"] or not words:
        known = f"; number the words: np.unique({what}, return_inverse=True)[1]" if field["classes"] else ""
        example = str(array.flat[0]) if array.size else ""
        raise DataError(f"{what}: {_expected(field)}, got text such as {example!r}{known}")
    numbers = {word: number for number, word in enumerate(words)}
    distinct, inverse = np.unique(array, return_inverse=True)
    strange = [str(word) for word in distinct if str(word) not in numbers]
    if strange:
        raise DataError(f"{what}: {strange[0]!r} is none of the {len(words)} words of field '{field['name']}'"
                        f"{nearest(strange[0], words)}")
    table = np.array([numbers[str(word)] for word in distinct])
    return table[inverse].reshape(array.shape)


def _stored(array: NDArray[Any], field: Field, what: str) -> NDArray[Any]:
    """The numbers in the field's type."""
    dtype = DTYPES[field["type"]]
    if dtype.kind == "f":
        if array.dtype != dtype:
            with np.errstate(over="ignore"):
                converted = array.astype(dtype)
            _check_finite(array, field, what)
            _check_reached(converted, array, field, what)
            return converted
        _check_finite(array, field, what)
        return array
    _check_whole(array, field, what)
    return array.astype(dtype, copy=False)


def _check_reached(converted: NDArray[Any], array: NDArray[Any], field: Field, what: str) -> None:
    """No finite number became infinite."""
    if array.dtype.kind == "f" and array.dtype.itemsize > converted.dtype.itemsize:
        lost = np.flatnonzero(np.isinf(converted))
        if lost.size:
            raise DataError(f"{what}: {_place(array, lost[0])} is {array.flat[lost[0]]:g}, too large for field "
                            f"'{field['name']}', which is {type_text(field)}")


def to_field(field: Field, value: Any, what: str, words: Optional[Sequence[str]] = None) -> NDArray[Any]:
    """An array-like as [N, *shape] of the field's type, C order: ``value`` itself where it is so.

    Numbers are refused that are NaN, infinite, out of range, or not whole where the field's are. ``words``: of the
    field's classes, in their order. Raises DataError.
    """
    given = to_numpy(value, what)
    array = _from_words(given, field, what, words) if given.dtype.kind in "UST" else given
    array = _stored(_shaped(field, array, what), field, what)
    stored = np.require(array, DTYPES[field["type"]], ["C", "A"])
    if not np.may_share_memory(stored, given):
        _notice(given, stored, field, what)
    return stored


# ---- a word about the copy ----


def notice(text: str, key: str) -> None:
    """A ConversionNotice, once for each line of the user's program and key."""
    level, file, line = users_frame()
    if (file, line, key) not in _noticed:
        _noticed.add((file, line, key))
        warnings.warn(text, ConversionNotice, stacklevel=level)


def _notice(given: NDArray[Any], stored: NDArray[Any], field: Field, what: str) -> None:
    if field["classes"] or max(given.nbytes, stored.nbytes) < NOTICE_BYTES:  # labels are int64 everywhere
        return
    layout = "aligned" if given.flags.c_contiguous else "contiguous"
    why = f", which is not {layout}," if given.dtype == stored.dtype else ""
    notice(f"{what}: {shape_text(given)} ({size_text(given.nbytes)}){why} was copied as {stored.dtype} "
           f"({size_text(stored.nbytes)}) for field '{field['name']}'; a contiguous array "
           f"of {stored.dtype} is read where it lies", f"{what} {field['name']}")


# ---- where the program reads them ----


def to_column(session: Session, field: Field, value: Any, what: str, words: Optional[Sequence[str]] = None) -> Column:
    """Any array-like or tensor for a session's program; in its device's memory it is read where it lies, if it fits."""
    if not isinstance(value, np.ndarray) and dlpack.has_dlpack(value):
        value = lending.borrow(session, field, value, what)
        if isinstance(value, dlpack.DeviceArray):
            value = _shaped(field, value, what)
            return Column(len(value), value.pointer, True, value)
    array = to_field(field, value, what, words)
    pointer = array.ctypes.data
    return Column(len(array), pointer, session.description["target"] == "cpu" and pointer % LENT_ALIGNMENT == 0, array)
