"""Arrays and the model's own data become data sets of a session."""

from __future__ import annotations

import math
import numbers
import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

import numpy as np

from .arrays import Column, Field, to_column, to_field
from .assignment import Given
from .errors import DataError, UsageError
from .library import DTYPES, TEST, TRAIN, VALIDATION, Session

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPLITS = {"train": TRAIN, "test": TEST, "validation": VALIDATION}


def row_bytes(field: Field) -> int:
    """The bytes of an example."""
    return math.prod(field["shape"]) * DTYPES[field["type"]].itemsize


def words_of(session: Session, field: Field) -> Optional[list[str]]:
    """What the classes of a field are called, where its data were words."""
    words: Mapping[str, list[str]] = session.status()["words"] if field["classes"] else {}
    return words.get(field["name"])


def columns_of(session: Session, given: Given) -> dict[str, Column]:
    """The arrays that were given, converted and checked, of as many examples each. Raises DataError."""
    columns: dict[str, Column] = {}
    for field in session.description["fields"]:
        if field["name"] in given:
            value, what = given[field["name"]]
            columns[field["name"]] = to_column(session, field, value, what, words_of(session, field))
    _check_counts({given[name][1]: column.examples for name, column in columns.items()})
    return columns


def _check_counts(counts: Mapping[str, int]) -> None:
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{what} has {count} examples" for what, count in counts.items())
        raise DataError(f"{each}: expected as many in each")


def give(session: Session, which: int, given: Given) -> int:
    """Makes arrays a data set of a session; returns how many examples."""
    columns = columns_of(session, given)
    ordered = [columns[field["name"]] for field in session.description["fields"]]
    pointers, lent = [each.pointer for each in ordered], [each.lent for each in ordered]
    session.lend_data(which, ordered[0].examples, pointers, lent, [each.owner for each in ordered])
    return ordered[0].examples


def load(session: Session, split: str, folder: Union[str, os.PathLike[str], None]) -> int:
    """Makes a split of the model's own data one of a session; returns how many examples."""
    own = session.description["splits"]
    if split not in own or split not in SPLITS:
        names = ", ".join(map(repr, own)) or "none"
        raise UsageError(f"the model's own data have no split '{split}'; they have {names}")
    session.load_data(SPLITS[split], folder)
    return int(session.status()["examples"][split])


def divide(session: Session, given: Given, part: float) -> tuple[Given, Given]:
    """A part of the examples, which the session's seed draws, and before it the rest: each in their order."""
    if not isinstance(part, numbers.Real) or not 0 < part < 1:
        raise UsageError(f"validation_split is a part between 0 and 1, not {part!r}")
    arrays: dict[str, NDArray[Any]] = {}
    for field in session.description["fields"]:
        value, what = given[field["name"]]
        arrays[field["name"]] = to_field(field, value, what, words_of(session, field))
    _check_counts({given[name][1]: len(array) for name, array in arrays.items()})
    count = len(next(iter(arrays.values())))
    kept = count - round(count * part)
    if kept in (0, count):
        left_out = "train on" if kept == 0 else "validate"
        raise DataError(f"validation_split={part} of {count} examples leaves none to {left_out}")
    order = np.random.default_rng(session.status()["seed"]).permutation(count)
    first, second = ({name: (array[np.sort(rows)], given[name][1]) for name, array in arrays.items()}
                     for rows in (order[:kept], order[kept:]))
    return first, second
