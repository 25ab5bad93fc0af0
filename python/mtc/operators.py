"""Classes made of the compiler's table of functions: an activation, a loss, an optimizer or a schedule that the language
has is one here too, with its arguments, their defaults and their bounds.

`make` writes the table beside the compiler, and a wheel carries it, so that neither importing nor describing a network
runs the compiler. A package that has neither, beside sources that were never built, asks the compiler that it finds.
What has more to say than the table is written by hand, and then is no further class of that name.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Annotated, Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar

from .spec import Axis, Flag, Interval, Kernel, Number, OptionalKernel, OptionalPatterns, OptionalSize, Size, Spec, Strings
from .toolchain import beside, run

S = TypeVar("S", bound=Spec)
Operator = Dict[str, Any]  # an entry of `mtc --operators --json`
Parameter = Dict[str, Any]


@functools.lru_cache(maxsize=None)
def table() -> List[Operator]:
    """The functions of the language, as `mtc --operators --json` has them."""
    places = (folder / "operators.json" for folder in beside())
    text = next((place.read_text(encoding="utf-8") for place in places if place.exists()), None)
    found: List[Operator] = json.loads(run(["--operators", "--json"]).stdout if text is None else text)
    return found


def operator(name: str) -> Operator:
    """The function of the language that is called so."""
    return next(each for each in table() if each["name"] == name)


def named(kind: str) -> List[str]:
    """The names of the functions of a kind."""
    return [operator["name"] for operator in table() if operator["kind"] == kind]


def _optional(parameter: Parameter) -> bool:
    return parameter.get("default", 0) is None


def _bounded(parameter: Parameter, optional: bool = False) -> Number:
    low, high = (float(parameter.get(end, sign + "inf")) for end, sign in (("low", "-"), ("high", "")))
    return Number(low, high, parameter.get("below", False), optional, parameter.get("above", False))


def _number(parameter: Parameter) -> Any:
    optional = _optional(parameter)
    return Annotated[Optional[float] if optional else float, _bounded(parameter, optional)]


def _interval(parameter: Parameter) -> Any:
    return Annotated[Optional[Sequence[float]], Interval(_bounded(parameter), _optional(parameter))]


def _word(parameter: Parameter) -> Any:
    return Annotated[Optional[str], Strings(*parameter["words"], optional=_optional(parameter))]


ANNOTATIONS: Mapping[str, Callable[[Parameter], Any]] = {
    "number": _number,
    "bool": lambda _: Flag,
    "axis": lambda _: Axis,
    "size": lambda parameter: OptionalSize if _optional(parameter) else Size,
    "pixels": lambda parameter: OptionalKernel if _optional(parameter) else Kernel,
    "interval": _interval,
    "word": _word,
    "patterns": lambda _: OptionalPatterns,
}


UNWRITTEN = ("loss",)  # kinds of parameters that take a value of the model, which no object here is


def _value(parameter: Parameter) -> Any:
    """The default; numbers are floats."""
    default = parameter["default"]
    return float(default) if parameter["kind"] == "number" and default is not None else default


def made(
    operator: Operator,
    base: Type[S],
    module: str,
    places: Mapping[str, str],
    names: Mapping[str, str] = {},
    annotations: Mapping[str, Callable[[Parameter], Any]] = {},
    members: Mapping[str, Any] = {},
) -> Type[S]:
    """The class of an operator. `places` are the parameters that are no fields, or others than the line has, with what
    the line says for them; `names` what arguments are called here; `annotations` those of kinds, or of parameters; `members` what else the
    class has."""
    known = {**ANNOTATIONS, **annotations}
    own: Dict[str, Any] = {**members, "__doc__": operator["doc"], "__module__": module, "__annotations__": {}}
    words: List[str] = []
    for parameter in operator["parameters"]:
        word = parameter["name"]
        name = names.get(word, word)
        if parameter.get("kind") in UNWRITTEN:
            continue
        if places.get(word, "") not in ("{x}", "{y}"):
            own["__annotations__"][name] = known[word if word in annotations else parameter["kind"]](parameter)
            if "default" in parameter:
                own[name] = _value(parameter)
        place = places.get(word, f"{{{name}}}")
        words.append(place if "default" not in parameter or place == "{rate}" else f"{word}={place}")
    own["text"] = f"{operator['name']}({', '.join(words)})"
    return type(operator["class"], (base,), own)


def classes(kind: str, home: Dict[str, Any], make: Callable[[Operator], Type[S]]) -> Dict[str, Type[S]]:
    """The classes of a kind, by the names of their functions. Those that the module `home` lacks are made, and public."""
    found: Dict[str, Type[S]] = {}
    for operator in (each for each in table() if each["kind"] == kind):
        title = operator["class"]
        if title not in home:
            home[title] = make(operator)
            home["__all__"].append(title)
        found[operator["name"]] = home[title]
    return found
