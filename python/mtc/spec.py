"""What layers, losses, optimizers and schedules share: fields that are checked, and a line of model text.

A kind of layer is a class with annotated fields and a template:

    class Linear(Layer):
        in_features: Size
        out_features: Size
        bias: Flag = True

        text = "linear({x}, {out_features}, bias={bias})"

The annotations say which values are allowed; the arguments, the representation and the text follow from the fields. A
piece `, word={field}` of a template, without spaces around `=`, is written only where the field has another value than
its default.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from dataclasses import FrozenInstanceError, dataclass, fields
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Callable,
    ClassVar,
    Dict,
    Iterable,
    Mapping,
    NoReturn,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
    get_type_hints,
)

from .errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """Tells type checkers that subclasses are data classes; nothing at run time."""
        return lambda decorated: decorated


def keyword(*, default: Any, kw_only: bool) -> Any:
    """For type checkers: a field that comes after all others."""


S = TypeVar("S", bound="Spec")

# ---- text ----


def number_text(value: float) -> str:
    """A number as a person writes it, and exactly: 128, 0.5, 1e-3, 2.5e-4."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    decimal = repr(float(value))
    if "e" in decimal:
        mantissa, exponent = decimal.split("e")
    else:
        digits = decimal.replace(".", "").replace("-", "").strip("0")
        exponent = str(math.floor(math.log10(abs(value))))
        mantissa = ("-" if value < 0 else "") + digits[0] + ("." + digits[1:] if digits[1:] else "")
    scientific = f"{mantissa}e{int(exponent)}"
    shorter = len(scientific) < len(decimal) or "e" in decimal
    return scientific if shorter and float(scientific) == value else decimal


def value_text(value: Any) -> str:
    """A Python value in the words of the language. A str is text of the language already."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "mt"):
        return str(value.mt())
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return value if isinstance(value, str) else number_text(value)


def quoted(text: str) -> str:
    """A string of the language."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


def shape_text(shape: Iterable[Any]) -> str:
    """[3, 32, 32]"""
    return "[" + ", ".join(map(str, shape)) + "]"


# ---- fields: what an annotation allows ----


def whole(value: Any, what: str, least: int) -> int:
    """A whole number that is at least `least` and fits 64 bits; UsageError names `what`."""
    try:
        if not isinstance(value, bool) and operator.index(value) >= 2**63:
            raise UsageError(f"{what} is at most 2^63 - 1, not {value!r}")
        if not isinstance(value, bool) and operator.index(value) >= least:
            return operator.index(value)
    except TypeError:
        pass
    raise UsageError(f"{what} is a whole number from {least} on, not {value!r}")


class Whole:
    """Whole numbers from `least` on; with `optional` also None."""

    def __init__(self, least: int, optional: bool = False) -> None:
        self.least, self.optional = least, optional

    def __call__(self, value: Any, what: str) -> Optional[int]:
        return None if value is None and self.optional else whole(value, what, self.least)


class Pair:
    """A whole number, or two: (rows, columns). Two equal ones stay two in repr(), and are one in the text."""

    def __init__(self, least: int, optional: bool = False) -> None:
        self.least, self.optional = least, optional

    def __call__(self, value: Any, what: str) -> Union[None, int, "Sizes2"]:
        if value is None and self.optional:
            return None
        if not isinstance(value, (tuple, list)):
            return whole(value, what, self.least)
        if len(value) != 2:
            raise UsageError(f"{what} is a whole number or two, (rows, columns), not {value!r}")
        return Sizes2(whole(size, what, self.least) for size in value)


class Sizes2(Tuple[int, ...]):
    """Rows and columns."""

    def mt(self) -> str:
        return str(self[0]) if self[0] == self[1] else shape_text(self)


def both(value: Union[int, Tuple[int, ...]]) -> Tuple[int, int]:
    """Rows and columns of a size that is one number for both, or two."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


class Shape:
    """A shape: a whole number or several; `least` -1 allows one -1."""

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def __call__(self, value: Any, what: str) -> Tuple[int, ...]:
        sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        sizes = tuple(whole(size, f"each size of {what}", self.least) for size in sizes)
        if 0 in sizes or sizes.count(-1) > 1:
            raise UsageError(f"{what} has sizes from 1 on, and one -1 at most, not {value!r}")
        return sizes


class Number:
    """Finite numbers from low to high, without high itself if it is `open`, without low itself if they are `above` it;
    with `optional` also None."""

    def __init__(
        self,
        low: float = -math.inf,
        high: float = math.inf,
        open: bool = False,
        optional: bool = False,
        above: bool = False,
    ) -> None:
        self.low, self.high, self.open, self.optional, self.above = low, high, open, optional, above

    def __call__(self, value: Any, what: str) -> Optional[float]:
        if value is None and self.optional:
            return None
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        fits = math.isfinite(number) and self.low <= number <= self.high
        fits = fits and not (self.open and number == self.high) and not (self.above and number == self.low)
        if not fits or isinstance(value, (bool, str)):
            raise UsageError(f"{what} is a number{self._range()}, not {value!r}")
        return number

    def _range(self) -> str:
        if self.low == -math.inf:
            return ""
        if self.high == math.inf:
            return f" above {self.low:g}" if self.above else f" from {self.low:g} on"
        return f" from {self.low:g} to {'below ' if self.open else ''}{self.high:g}"


class Ends(Tuple[float, ...]):
    """The least and the most."""

    def mt(self) -> str:
        return "[" + ", ".join(map(number_text, self)) + "]"


class Interval:
    """Two such numbers, the least and the most; with `optional` also None."""

    def __init__(self, number: Number, optional: bool = False) -> None:
        self.number, self.optional = number, optional

    def __call__(self, value: Any, what: str) -> Optional[Ends]:
        if value is None and self.optional:
            return None
        ends = tuple(value) if isinstance(value, (list, tuple)) else ()
        if len(ends) != 2:
            raise UsageError(f"{what} is two numbers, (least, most), not {value!r}")
        least, most = (cast(float, self.number(end, what)) for end in ends)
        if least > most:
            raise UsageError(f"{what} is (least, most), not {value!r}")
        return Ends((least, most))


class Words:
    """One of some words; with `optional` also None."""

    def __init__(self, *words: str, optional: bool = False) -> None:
        self.words, self.optional = words, optional

    def __call__(self, value: Any, what: str) -> Optional[str]:
        if value is None and self.optional:
            return None
        if value not in self.words:
            raise UsageError(f"{what} is one of {', '.join(map(repr, self.words))}, not {value!r}{nearest(value, self.words)}")
        return str(value)


class String(str):
    """A string of the language."""

    def mt(self) -> str:
        return quoted(self)


class Strings(Words):
    """One of some words that are strings of the language."""

    def __call__(self, value: Any, what: str) -> Optional[str]:
        word = super().__call__(value, what)
        return None if word is None else String(word)


class Boolean:
    """True or False."""

    def __call__(self, value: Any, what: str) -> bool:
        if type(value).__name__ not in ("bool", "bool_"):
            raise UsageError(f"{what} is True or False, not {value!r}")
        return bool(value)


class Patterns(Tuple[str, ...]):
    """Patterns of the names of weights."""

    def mt(self) -> str:
        return "[" + ", ".join(map(quoted, self)) + "]"


class PatternList:
    """Names of weights, in which * stands for any characters: one, or a list; with `optional` also None."""

    def __init__(self, optional: bool = False) -> None:
        self.optional = optional

    def __call__(self, value: Any, what: str) -> Optional[Patterns]:
        if value is None and self.optional:
            return None
        patterns = [value] if isinstance(value, str) else value
        if not isinstance(patterns, (tuple, list)) or not all(isinstance(pattern, str) for pattern in patterns):
            raise UsageError(f"{what} is a list of names of weights, such as ['linear1.*'], not {value!r}")
        return Patterns(patterns)


class Initial:
    """An initialiser of the language: "he_normal", "normal(0, 0.02)"; or None, the layer's own."""

    def __call__(self, value: Any, what: str) -> Optional[str]:
        if value is None:
            return None
        from .operators import named  # which imports this module

        kinds = named("initialiser")
        match = re.fullmatch(r"(\w+)\s*(\([^()]*\))?", value) if isinstance(value, str) else None
        if not match or match[1] not in kinds:
            raise UsageError(f"{what} is one of {', '.join(kinds)}, such as 'normal(0, 0.02)', not {value!r}")
        return match[1] + (match[2] or "()")


Size = Annotated[int, Whole(1)]
OptionalSize = Annotated[Optional[int], Whole(1, optional=True)]
Count = Annotated[int, Whole(0)]
Axis = Annotated[int, Whole(-8)]
Kernel = Annotated[Union[int, Tuple[int, ...]], Pair(1)]
OptionalKernel = Annotated[Union[None, int, Tuple[int, ...]], Pair(1, optional=True)]
Padding = Annotated[Union[int, Tuple[int, ...]], Pair(0)]
Extents = Annotated[Union[int, Tuple[int, ...]], Shape(1)]
Real = Annotated[float, Number()]
Positive = Annotated[float, Number(0)]
OptionalPositive = Annotated[Optional[float], Number(0, optional=True)]
Above = Annotated[float, Number(0, above=True)]
Share = Annotated[float, Number(0, 1, open=True)]
Degrees = Annotated[float, Number(0, 180)]
Part = Annotated[float, Number(0, 1)]
OptionalShare = Annotated[Optional[float], Number(0, 1, open=True, optional=True)]
Flag = Annotated[bool, Boolean()]
Init = Annotated[Optional[str], Initial()]
OptionalPatterns = Annotated[Union[None, str, Sequence[str]], PatternList(optional=True)]


# ---- the class ----


def _checked_names(kind: Type["Spec"]) -> Callable[..., None]:
    """The class's __init__, which tells what arguments there are where a call has others: Adam(learning_rate=0)."""
    made = kind.__init__

    @functools.wraps(made)
    def init(self: "Spec", *values: Any, **named: Any) -> None:
        known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        strange = [name for name in named if name not in known]
        if strange:
            from .habits import ARGUMENTS, hint as cure

            hint = cure(strange[0], ARGUMENTS, known) or f"; its arguments are {', '.join(known)}"
            raise TypeError(f"{kind.__name__} has no argument '{strange[0]}'{hint}")
        made(self, *values, **named)

    return init


@functools.lru_cache(maxsize=None)
def _checks(kind: Any) -> Dict[str, Callable[[Any, str], Any]]:
    """What each field's annotation allows."""
    hints = get_type_hints(kind, include_extras=True)
    annotated = ((field.name, hints[field.name]) for field in fields(kind))
    return {name: hint.__metadata__[0] for name, hint in annotated if hasattr(hint, "__metadata__")}


def _unchanged(self: Any, name: str, value: Any) -> NoReturn:
    """Of what is frozen: which habit that was."""
    from .habits import LAYER, hint

    raise FrozenInstanceError(f"cannot assign to field {name!r}{hint(name, LAYER, ())}")


@dataclass_transform(frozen_default=True, field_specifiers=(keyword,))
class Spec:
    """What a line of the model text describes. Each subclass that is not abstract is a frozen data class."""

    text: ClassVar[str] = ""
    called: ClassVar[str] = ""  # in messages; the class's name unless given
    omitted: ClassVar[Dict[str, Any]] = {}  # of properties in the text: the values that are not written

    def __init_subclass__(cls, abstract: bool = False) -> None:
        super().__init_subclass__()
        if not abstract:
            dataclass(frozen=True, repr=False)(cls)
            cls.__init__ = _checked_names(cls)  # type: ignore[method-assign]
            cls.__setattr__ = _unchanged  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        for name, check in _checks(type(self)).items():  # type: ignore[arg-type]
            object.__setattr__(self, name, check(getattr(self, name), f"{self.called or type(self).__name__}: {name}"))

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self._defaults()}
        shown = (f"{name}={value!r}" for name, value in values.items() if value is not None)
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def _defaults(cls: Any) -> Dict[str, Any]:
        """The fields, with the values that they have by default."""
        return {field.name: field.default for field in fields(cls)}

    def render(self, template: str = "", **values: str) -> str:
        """The template, or the class's own `text`, with fields, properties and the given values put in."""
        defaults = {**self._defaults(), **self.omitted}

        def option(match: "re.Match[str]") -> str:
            value = getattr(self, match[2])
            return "" if value == defaults[match[2]] else f", {match[1]} = {value_text(value)}"

        def place(match: "re.Match[str]") -> str:
            return values[match[1]] if match[1] in values else value_text(getattr(self, match[1]))

        with_options = re.sub(r", (\w+)=\{(\w+)\}", option, template or self.text)
        return re.sub(r"\{(\w+)\}", place, with_options)


F = TypeVar("F", bound=Callable[..., None])


def told_arguments(
    names: Mapping[str, str] = MappingProxyType({}), refuse: Callable[..., None] = lambda *_: None
) -> Callable[[F], F]:
    """For an __init__ with many arguments: a call with an unknown one is told which was meant. `names` are those of
    other packages; `refuse` gets the class and the values without names, before Python counts them."""

    def decorated(made: F) -> F:
        @functools.wraps(made)
        def init(self: Any, *values: Any, **named: Any) -> None:
            kind = type(self)
            refuse(kind, values)
            arguments = [each for each in inspect.signature(made).parameters.values() if each.name != "self"]
            known = [each.name for each in arguments]
            placed = [each.name for each in arguments if each.kind is each.POSITIONAL_OR_KEYWORD]
            if len(values) > len(placed):
                raise TypeError(f"{kind.__name__} takes {', '.join(placed)} without their names, and all else by name; "
                                f"got {len(values)} without")
            strange = next((name for name in named if name not in known), None)
            if strange is not None:
                meant = f"; did you mean {names[strange]!r}?" if strange in names else nearest(strange, known)
                hint = meant or f"; its arguments are {', '.join(known)}"
                raise TypeError(f"{kind.__name__} has no argument '{strange}'{hint}")
            made(self, *values, **named)

        return cast(F, init)

    return decorated


def chosen(
    kinds: Dict[str, Type[S]], choice: Any, base: Type[S], what: str, aliases: Mapping[str, str] = MappingProxyType({})
) -> S:
    """An object of `base`: the choice itself, or the default one of the kind that it names. `aliases` are names that
    other packages have, for the message: in lower case, without _, - and what it is at the end."""
    if isinstance(choice, base):
        return choice
    if isinstance(choice, str) and choice in kinds:
        return kinds[choice]()
    if isinstance(choice, type) and issubclass(choice, base):
        raise UsageError(f"{what} is an object, such as mtc.{choice.__name__}(), not the class itself")
    example = next(iter(kinds.values())).__name__
    known = f"{', '.join(map(repr, kinds))}, or an object such as mtc.{example}()"
    raise UsageError(f"{what} is one of {known}, not {choice!r}{_meant(choice, kinds, what, aliases)}")


def _meant(choice: Any, kinds: Iterable[str], what: str, aliases: Mapping[str, str]) -> str:
    """"; did you mean 'mse'?" of "MSE", "MSELoss" or torch.nn.MSELoss(), else what is near."""
    kind = choice if isinstance(choice, type) else type(choice)
    word = choice if isinstance(choice, str) else kind.__name__
    plain = re.sub(r"[\W_]", "", word).lower()
    shorter = plain[: -len(what)] if plain.endswith(what) and plain != what else plain
    same = {re.sub("_", "", known): known for known in kinds}
    meant = next((found[name] for name in (plain, shorter) for found in (same, aliases) if name in found), None)
    return f"; did you mean {meant!r}?" if meant else nearest(choice, kinds)


def nearest(word: Any, words: Iterable[str]) -> str:
    """"; did you mean 'adam'?" where a word is close, else nothing."""
    import difflib

    close = difflib.get_close_matches(word, list(words), 1) if isinstance(word, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""
