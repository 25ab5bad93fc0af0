"""Optimizers and schedules of the learning rate: every one that the language has (operators.py).

    mtc.Adam(1e-3)
    mtc.SGD(mtc.OneCycle(0.4), momentum=0.9, nesterov=True, weight_decay=5e-4)
    mtc.AdamW(mtc.Cosine(1e-3, warmup=0.05))
    [mtc.AdamW(1e-3), mtc.SGD(0.1, weights="*.bias")]

Their formulas are those of the page of operators.
"""

from __future__ import annotations

import math
from copy import copy
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Type,
    Union,
)

from .errors import UsageError
from .operators import Operator, classes, made
from .spec import Number, Positive, Spec, chosen, number_text, value_text, whole


__all__ = ["Optimizer", "Schedule", "Epochs"]


class Knob(NamedTuple):
    """A number that is a flag of the program: it may change without a new compile. `usual` is what the compiled program
    has in its place: networks that differ in this number only are compiled once."""

    name: str
    value: float
    usual: float
    help: str

    def text(self, value: float) -> str:
        """A value, and what is allowed: 1e-3 in 0..1"""
        number = value_text(value)
        high = 1.0 if self.value <= 1 else 10.0 ** math.ceil(math.log10(self.value))
        return f"{number}{'' if 'e' in number or '.' in number else '.0'} in 0..{number_text(high)}"


# ---- how long ----


class Epochs(Spec):
    """A time in epochs, for `warmup` of a schedule and `every` of Step: mtc.Step(0.1, every=mtc.Epochs(30))."""

    count: Positive

    def mt(self) -> str:
        """In steps, as the program counts them."""
        return "steps_per_epoch" if self.count == 1 else f"{number_text(self.count)} * steps_per_epoch"


class TrainingShare(float):
    """A time as a part of the whole training."""

    def mt(self) -> str:
        """In steps, as the program counts them."""
        return f"{number_text(self)} * total_steps"


class Duration:
    """A whole number of steps, a part of the training (a number below 1), or Epochs; with `optional` also None."""

    def __init__(self, least: int, optional: bool = False) -> None:
        self.least = least
        self.optional = optional

    def __call__(self, value: Any, what: str) -> Union[None, int, TrainingShare, Epochs]:
        if isinstance(value, Epochs) or (value is None and self.optional):
            return value
        if isinstance(value, float) and 0 < value < 1:
            return TrainingShare(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        try:
            return whole(value, what, self.least)
        except UsageError:
            raise UsageError(
                f"{what} is a number of steps, a part of the training between 0 and 1, or mtc.Epochs(n), not {value!r}"
            ) from None


Time = Annotated[Union[int, float, Epochs], Duration(0)]
LongerTime = Annotated[Union[int, float, Epochs], Duration(1)]
OptionalTime = Annotated[Union[None, int, float, Epochs], Duration(1, optional=True)]


def _time(parameter: Any) -> Any:
    if parameter.get("default", 0) is None:
        return OptionalTime
    return LongerTime if parameter.get("above") else Time


# ---- schedules ----


class Schedule(Spec, abstract=True):
    """A learning rate that changes from step to step. `lr` is the highest; it stays a knob of the compiled model."""

    rate: ClassVar[str] = "lr"


def _schedule(operator: Operator) -> Type[Schedule]:
    return made(operator, Schedule, __name__, {"lr": "{rate}"}, annotations={"steps": _time})


classes("schedule", globals(), _schedule)


class Rate:
    """A learning rate: a number from 0 on, or a schedule."""

    def __call__(self, value: Any, what: str) -> Union[float, Schedule]:
        if isinstance(value, Schedule):
            return value
        try:
            number = Number(0)(value, what)
        except UsageError:
            known = "a number from 0 on, or a schedule such as mtc.Cosine(1e-3)"
            raise UsageError(f"{what} is {known}, not {value!r}") from None
        assert number is not None
        return number


LearningRate = Annotated[Union[float, Schedule], Rate()]

# ---- optimizers ----


class Optimizer(Spec, abstract=True):
    """Makes new weights of gradients. Its learning rate, and a weight decay that is given, are knobs of the compiled
    model: `model.set(lr=1e-4)` needs no compile."""

    omitted = {"decay": None}
    place: ClassVar[str] = ""  # of several optimizers, "2", "3", ...: what the names of their knobs end with

    @property
    def rate(self) -> str:
        """The learning rate in the words of the language."""
        lr, rate = vars(self)["lr"], f"lr{self.place}"
        return lr.render(rate=rate) if isinstance(lr, Schedule) else rate

    @property
    def decay(self) -> Optional[str]:
        """The weight decay in the words of the language; None: it is the language's default."""
        given = vars(self).get("weight_decay")
        return f"weight_decay{self.place}" if given != getattr(type(self), "weight_decay", None) else None

    @property
    def knobs(self) -> List[Knob]:
        """The numbers that are flags of the program."""
        lr: Any = vars(self)["lr"]
        decay: Any = vars(self).get("weight_decay")
        peak = vars(lr)["lr"] if isinstance(lr, Schedule) else lr
        what = "highest learning rate" if isinstance(lr, Schedule) else "learning rate"
        knobs = [Knob(f"lr{self.place}", peak, 1e-3, what)]
        return [*knobs, Knob(self.decay, decay, 0.01, "weight decay")] if self.decay else knobs


def _optimizer(operator: Operator) -> Type[Optimizer]:
    places = {"lr": "{rate}", "weight_decay": "{decay}"}
    return made(operator, Optimizer, __name__, places, annotations={"lr": lambda _: LearningRate})


OPTIMIZERS: Dict[str, Type[Optimizer]] = classes("optimizer", globals(), _optimizer)


class Several(Tuple[Optimizer, ...]):
    """Optimizers, each for some of the weights. The knobs of the second are lr2 and weight_decay2."""

    def __new__(cls, optimizers: Iterable[Optimizer]) -> "Several":
        made = [copy(optimizer) for optimizer in optimizers]
        for index, optimizer in enumerate(made[1:]):
            object.__setattr__(optimizer, "place", str(index + 2))
        return super().__new__(cls, made)

    @property
    def knobs(self) -> List[Knob]:
        """The numbers that are flags of the program."""
        return [knob for optimizer in self for knob in optimizer.knobs]

    def render(self) -> str:
        """In the words of the language."""
        return "[" + ", ".join(optimizer.render() for optimizer in self) + "]"


def optimizers_of(choice: Any) -> Union[Optimizer, Several]:
    """An optimizer or its name, or several, in a list."""
    if not isinstance(choice, (list, tuple)):
        return chosen(OPTIMIZERS, choice, Optimizer, "optimizer")
    if not choice:
        raise UsageError("optimizer is a list without optimizers: give one, such as mtc.Adam(1e-3)")
    return Several(chosen(OPTIMIZERS, each, Optimizer, "each optimizer") for each in choice)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
