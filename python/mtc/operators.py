"""Classes made of the compiler's table of functions: an activation, a loss, an optimizer or a schedule that the language
has is one here too, with its arguments, their defaults and their bounds.

`make` writes the table beside the compiler, and a wheel carries it, so that neither importing nor describing a network
runs the compiler. A package that has neither, beside sources that were never built, asks the compiler that it finds.
What has more to say than the table is written by hand, and then is no further class of that name.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Annotated, Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar

from .spec import Axis, Flag, Init, Interval, Kernel, Number, OptionalKernel, OptionalPatterns, OptionalSize, Size, Spec, Strings
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
    "sizes": lambda parameter: OptionalKernel if _optional(parameter) else Kernel,
    "pixels": lambda parameter: OptionalKernel if _optional(parameter) else Kernel,
    "init": lambda _: Init,
    "interval": _interval,
    "word": _word,
    "patterns": lambda _: OptionalPatterns,
}


def _of_the_model(parameter: Parameter) -> bool:
    """It takes a value of the model, which no object here is: the loss, or where nothing else is said, a tensor."""
    return parameter.get("kind") == "loss" or ("kind" not in parameter and _optional(parameter))


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
    title: str = "",
    order: Sequence[str] = (),
) -> Type[S]:
    """The class of an operator. `places` are the parameters that are no fields, or others than the line has, with what
    the line says for them; what `base` works out is no field either. `names` is what arguments are called here; `annotations` those of
    kinds, or of parameters; `members` what else the class has, beside `pixels`, the field of an image's size; `title` its name, where it is not the table's; `order` the arguments that come
    before the others."""
    known = {**ANNOTATIONS, **annotations}
    own: Dict[str, Any] = {"__doc__": _renamed(operator["doc"], names), "__module__": module}
    hints: Dict[str, Any] = {}
    words: List[str] = []
    for parameter in operator["parameters"]:
        word = parameter["name"]
        name = names.get(word, word)
        if _of_the_model(parameter):
            continue
        if places.get(word, "") not in ("{x}", "{y}") and not hasattr(base, name):
            hints[name] = known[word if word in annotations else parameter["kind"]](parameter)
            if "default" in parameter:
                own[name] = _value(parameter)
        place = places.get(word, f"{{{name}}}")
        words.append(place if "default" not in parameter or place == "{rate}" else f"{word}={place}")
        if parameter.get("kind") == "pixels":
            own["pixels"] = name
    own["__annotations__"] = {name: hints[name] for name in dict.fromkeys([*order, *hints]) if name in hints}
    own["text"] = f"{operator['name']}({', '.join(words)})"
    return type(title or operator["class"], (base,), {**own, **members})


def _renamed(doc: str, names: Mapping[str, str]) -> str:
    """What a page says of arguments, by the names that they have here."""
    return re.sub(r"`(\w+)`", lambda word: f"`{names.get(word[1], word[1])}`", doc)


def layer_of(function: str, base: Type[S], module: str, names: Mapping[str, str] = {}, **how: Any) -> Any:
    """The layer that calls a function of the language, whose first parameter is what the layer takes; arguments, defaults and bounds
    are the table's, and `base` has what it does to shapes. `how` is said as to `made`."""
    found = operator(function)
    return made(found, base, module, {found["parameters"][0]["name"]: "{x}"}, names, **how)


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
