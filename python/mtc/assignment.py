"""Which of the arrays that users give is for which field of a model."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import numpy as np

from .arrays import Field, refuse_batches, shape_text, to_numpy, type_text
from .errors import DataError, UsageError
from .spec import nearest

Given = dict[str, tuple[Any, str]]
"""For fields by name: what was given, and what to call it in messages."""


def by_name(given: Mapping[str, Any], names: Sequence[str], what: str) -> Given:
    for name in given:
        if name not in names:
            raise UsageError(f"{what} has '{name}', which is no field of the model{nearest(str(name), names)}; "
                             f"its fields are {', '.join(names)}")
    return {name: (value, f"{what}['{name}']") for name, value in given.items()}


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def _columns_of(fields: Sequence[Field], value: Any, what: str) -> Given:
    """A table with a column for each of some fields that are single numbers."""
    table = to_numpy(value, what)
    if table.ndim != 2 or table.shape[1] != len(fields):
        names = ", ".join(field["name"] for field in fields)
        raise DataError(f"{what}: expected a table [N, {len(fields)}] with the columns {names}, "
                        f"got {shape_text(table)}")
    return {field["name"]: (table[:, i], f"{what}[:, {i}]") for i, field in enumerate(fields)}


def assign(fields: Sequence[Field], value: Any, what: str) -> Given:
    """What was given as ``what`` (X or y) for these fields, of which each has one array.

    One field: an array. Several: a dict by name, a data frame with such columns, a tuple in their order, or, where each
    is a single number, a table with a column for each. Raises UsageError.
    """
    names = [field["name"] for field in fields]
    if isinstance(value, Mapping):
        return by_name(value, names, what)
    if _is_frame(value) and all(name in list(value.columns) for name in names):
        return {name: (value[name], f"{what}['{name}']") for name in names}
    if isinstance(value, tuple) and len(value) == len(fields):
        return {name: (value[i], f"{what}[{i}]" if len(fields) > 1 else what) for i, name in enumerate(names)}
    if len(fields) == 1:
        return {names[0]: (value, what)}
    if not fields:
        raise UsageError(f"the model has no field for {what}: leave it out")
    if all(not field["shape"] for field in fields) and not isinstance(value, tuple):
        return _columns_of(fields, value, what)
    types = ", ".join(f"{field['name']} {type_text(field)}" for field in fields)
    raise UsageError(f"{what}: the model has {len(fields)} fields for it, {types}: "
                     f"give a dict {{'{names[0]}': ..., '{names[1]}': ...}}, or a tuple in this order")


def reads_nothing(fields: Sequence[Field]) -> bool:
    """Whether the prediction is drawn, of no field."""
    return not any(field["predicts"] for field in fields)


def weight_of(fields: Sequence[Field]) -> Optional[Field]:
    """The field that is given as sample_weight: what an example counts, and nothing else."""
    return next((field for field in fields if field["weighs"] and not field["predicts"]), None)


def _divided(fields: Sequence[Field]) -> tuple[list[Field], list[Field]]:
    """What is given as X, and what as y: the fields that the prediction depends on, and the others. Where it depends on
    none, all of them are what the model learns from, and none is an answer to another."""
    weight = weight_of(fields)
    fields = [field for field in fields if field is not weight]
    if reads_nothing(fields):
        return list(fields), []
    return [each for each in fields if each["predicts"]], [each for each in fields if not each["predicts"]]


def _complete(given: Given, names: Sequence[str], what: str) -> Given:
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError(f"{what} lacks {', '.join(map(repr, missing))}: expected {', '.join(names)}")
    return given


def _of_frame(X: Any, names: Sequence[str], needed: Sequence[str]) -> Optional[dict[str, Any]]:
    """The columns of a data frame that are fields; None: it is none, or lacks one that is needed."""
    columns = list(X.columns) if _is_frame(X) else []
    return {name: X[name] for name in names if name in columns} if columns and all(name in columns for name in needed) else None


def _weighted(fields: Sequence[Field], given: Given, weight: Any, what: str) -> Given:
    """With what was given for the weights of the examples: else, each counts as one."""
    field = weight_of(fields)
    if field is None:
        if weight is None:
            return given
        raise UsageError(f"{what}: the model weighs no examples; a field `w : f32` in the data block and `example_weight = w` in "
                         "the train block make one that does")
    if weight is not None and field["name"] in given:
        raise UsageError(f"{what} and {given[field['name']][1]} are both the weights of the examples: give one of them")
    if weight is None and field["name"] not in given:
        weight = np.ones(max(len(value) for value, _ in given.values()), np.float32)
    return given if weight is None else {**given, field["name"]: (weight, what)}


def everything(fields: Sequence[Field], X: Any, y: Any, weight: Any = None,
               what: tuple[str, str, str] = ("X", "y", "sample_weight")) -> Given:
    """What was given for each field, all of them: y for those that the prediction does not depend on, unless X, as a
    dict or data frame, has them too; weights of the examples, or ones. Raises UsageError."""
    refuse_batches(X, what[0])
    inputs, labels = _divided(fields)
    names, needed = [field["name"] for field in fields], [field["name"] for field in (*inputs, *labels)]
    columns = _of_frame(X, names, needed) if y is None else None
    if y is None and isinstance(X, Mapping):
        given = by_name(X, names, what[0])
    elif columns is not None:
        given = by_name(columns, names, what[0])
    elif y is None and labels:
        missing = ", ".join(f"'{field['name']}' {type_text(field)}" for field in labels)
        alike = [field["shape"] for field in inputs] == [field["shape"] for field in labels]
        hint = f"; where the network is to give what it reads, {what[0]} is both" if alike else ""
        raise UsageError(f"{what[1]} is missing: the model needs {missing}{hint}")
    else:
        given = {**assign(inputs, X, what[0]), **({} if y is None else assign(labels, y, what[1]))}
    return _weighted(fields, _complete(given, needed, what[0]), weight, what[2])


def inputs_only(fields: Sequence[Field], X: Any) -> Given:
    """What was given for each field that the prediction depends on. A dict may name others too, which nothing reads."""
    inputs, _ = _divided(fields)
    names = [field["name"] for field in inputs]
    given = assign(fields if isinstance(X, Mapping) else inputs, X, "X")
    return _complete({name: given[name] for name in names if name in given}, names, "X")


def unnamed_columns(fields: Sequence[Field], X: Any) -> Optional[list[str]]:
    """The names of the columns of a data frame that is one field, of several numbers: they are taken in their order.
    None: X is none, or they are only numbered."""
    inputs, _ = _divided(fields)
    if len(inputs) != 1 or not _is_frame(X):
        return None
    columns = list(X.columns)
    named = columns and inputs[0]["name"] not in columns and all(isinstance(name, str) for name in columns)
    return columns if named else None


def check_columns(known: Optional[Sequence[str]], given: Optional[Sequence[str]], what: str) -> None:
    """Raises DataError where a data frame has other columns than that of fit, or in another order."""
    if known is None or given is None or list(known) == list(given):
        return
    same = sorted(known) == sorted(given)
    variable = what.rsplit(" ", 1)[-1]  # "validation X" is X in the user's program
    help = f"{variable}[{_some(known)}] has them in that order" if same else "give those of fit, in that order"
    differs = "its columns in another order" if same else "other columns"
    raise DataError(f"{what} has {differs} than the data frame of fit\n"
                    f"  fit: {_some(known)}\n  {what}: {_some(given)}\n"
                    f"  {help}; {variable}.to_numpy() goes by position alone")


def _some(names: Sequence[str]) -> str:
    """A list as Python writes it, of its first and last names where there are many."""
    shown = list(map(repr, names))
    return f"[{', '.join(shown if len(shown) <= 20 else [*shown[:18], '...', shown[-1]])}]"


def has_labels(fields: Sequence[Field]) -> bool:
    """Whether there is a y beside X."""
    return bool(_divided(fields)[1])


def label_of(fields: Sequence[Field]) -> Optional[Field]:
    """The field of the labels, where there is exactly one that the prediction does not depend on."""
    _, labels = _divided(fields)
    return labels[0] if len(labels) == 1 else None
