"""What numbers a loss takes as y: checked before training, for a loss of others is a number too, and means nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Sequence

from .errors import DataError

if TYPE_CHECKING:
    import numpy as np

SHOWN = 8  # numbers of a row that a message has
ROUNDING = 0.01  # of a sum of probabilities, which may be float16


class Shares(NamedTuple):
    """Numbers from 0 to 1."""

    loss: str

    def check(self, y: "np.ndarray", what: str) -> None:
        """DataError names the first that is none. NaN is found where y is converted."""
        wrong = (y < 0) | (y > 1)
        if wrong.any():
            place = _place(wrong)
            hint = self._hint(y, _variable(what))
            raise DataError(f"{what}: {_place_text(place)} is {y[tuple(place)]:g}; the loss '{self.loss}' takes "
                            f"numbers from 0 to 1{hint}")

    @staticmethod
    def _hint(y: "np.ndarray", what: str) -> str:
        if ((y == -1) | (y == 1)).all():
            return f"; -1 and 1 become 0 and 1 by ({what} + 1) / 2"
        low, high = y.min(), y.max()
        if low == 0 and ((y == 0) | (y == high)).all():
            return f"; 0 and {high:g} become 0 and 1 by {what} / {high:g}"
        if ((y == 1) | (y == 2)).all():
            return f"; 1 and 2 become 0 and 1 by {what} - 1"
        return ""


class Distributions(NamedTuple):
    """Along the last axis numbers from 0 on whose sum is 1."""

    loss: str

    def check(self, y: "np.ndarray", what: str) -> None:
        """DataError names the first row that is none. NaN is found where y is converted."""
        sums = y.sum(axis=-1, dtype="f8")
        wrong = (y < 0).any(axis=-1) | (abs(sums - 1) > ROUNDING)
        if wrong.any():
            place = _place(wrong)
            row = y[tuple(place)]
            numbers = ", ".join(f"{number:g}" for number in row[:SHOWN]) + (", ..." if len(row) > SHOWN else "")
            scaled = (y >= 0).all() and (sums > 0).all()
            name = _variable(what)
            hint = f"; {name} / {name}.sum(axis=-1, keepdims=True) are such" if scaled else ""
            raise DataError(f"{what}: {_place_text(place)} is [{numbers}], with the sum {sums[tuple(place)]:g}; "
                            f"the loss '{self.loss}' takes distributions: numbers from 0 to 1 whose sum is 1{hint}")


def _variable(what: str) -> str:
    """"validation y" is y in the user's program."""
    return what.rsplit(" ", 1)[-1]


def _place(wrong: "np.ndarray") -> Sequence[int]:
    """The index of the first that is wrong."""
    return [int(i) for i in next(zip(*wrong.nonzero()))]


def _place_text(place: Sequence[int]) -> str:
    first, *rest = place
    return f"example {first}" + (f", element {rest}" if rest else "")
