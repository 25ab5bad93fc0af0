"""What a layer is: what it takes, what it gives, and how its line of the model text is written.

    class Linear(Layer):
        in_features: Size
        out_features: Size
        bias: Flag = True

        takes = "... in_features"
        gives = "... out_features"
        text = "linear({x}, {out_features}, bias={bias})"

In `takes` and `gives` a word is a field, which is one size or several, or a name for a size that may be any; `...` are
any axes before. Shapes are those of one example: the batch is none of their axes.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Dict, List, Optional, Protocol, Sequence, Tuple, Union

from .errors import UsageError
from .spec import Spec, keyword, shape_text

Sizes = Tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """What a layer reads or makes: a name of the model text, and the shape that it has for one example."""

    name: str
    shape: Sizes
    classes: Optional[int] = None  # whole numbers below this
    from_data: bool = False  # a field of the data, at most in another shape
    maker: str = "the input"
    layer: Optional["Layer"] = None


class Writer(Protocol):
    """Takes the statements of the model block (see writing.py). It knows which layer it is at."""

    def statement(self, expression: str, shape: Sizes, x: Value) -> Value:
        """Adds the layer's line, `name = expression`, and returns what it makes of x."""

    def stack(self, layers: Sequence["Layer"], x: Value) -> Value:
        """Adds the lines of layers within the layer."""

    def fail(self, problem: str) -> UsageError:
        """An error that says where the layer stands."""


def _annotated(kind: type) -> Dict[str, Any]:
    """The fields that a class itself declares."""
    return kind.__annotations__ if sys.version_info >= (3, 10) else kind.__dict__.get("__annotations__", {})


class Layer(Spec, abstract=True):
    """One step of a network. Every layer takes name=..., which its weights and its line in the text are called. An abstract one may
    have the first arguments of those that are made of it."""

    takes: ClassVar[str] = "..."
    gives: ClassVar[str] = "..."
    kind: ClassVar[str] = ""  # what it is called without name=; by default the function of the language
    definition: ClassVar[str] = ""  # functions of the language that its line calls
    trained: ClassVar[bool] = False  # it has weights
    views: ClassVar[bool] = False  # the same numbers in another shape
    mixes: ClassVar[bool] = False  # its line gives the target of the example that was mixed in, and the share of the own one, too

    if TYPE_CHECKING:
        name: Optional[str] = keyword(default=None, kw_only=True)

    def __init_subclass__(cls, abstract: bool = False) -> None:
        if not abstract:
            cls.__annotations__ = {**cls._fields(), "name": Optional[str]}
            cls.name = None
            cls.kind = cls.kind or cls.text.split("(")[0]
        super().__init_subclass__(abstract)

    @classmethod
    def _fields(cls) -> Dict[str, Any]:
        """What bases ask for, then the layer's own arguments, then what bases may be given."""
        own = _annotated(cls)
        bases = (each for each in reversed(cls.__mro__[1:]) if issubclass(each, Layer) and each is not Layer)
        inherited = {name: kind for each in bases for name, kind in _annotated(each).items()}
        asked = {name: kind for name, kind in inherited.items() if not hasattr(cls, name) or name in own}
        return {**asked, **own, **{name: kind for name, kind in inherited.items() if name not in own}}

    @property
    def classes(self) -> Optional[int]:
        """The classes that a layer reads in place of numbers; None: it reads numbers."""
        return None

    def input_shape(self) -> Optional[Sizes]:
        """The shape of what it reads as far as it knows: of a first layer that is the input's."""
        wanted = [word for word in self._words(self.takes) if word != "..."]
        sizes = tuple(word for word in wanted if isinstance(word, int))
        return sizes if sizes and len(sizes) == len(wanted) else None

    @property
    def keeps_shape(self) -> bool:
        """Any shape fits and stays."""
        return type(self).output is Layer.output and self.takes == self.gives == "..."

    def build(self, writer: Writer, x: Value) -> Value:
        """Writes the layer's statement and returns what it makes of x."""
        if (self.classes is None) != (x.classes is None):
            raise writer.fail(self._class_problem(x))
        shape = self.output(writer, x)
        return writer.statement(self.expression(x), shape, x)

    def expression(self, x: Value) -> str:
        """The right-hand side of the statement."""
        return self.render(x=x.name)

    def output(self, writer: Writer, x: Value) -> Sizes:
        """The shape that it gives; UsageError where x does not fit."""
        found = self._match(x.shape)
        if found is None:
            given = f"{x.maker} gives {shape_text(x.shape)}{self._hint(x.shape)}"
            raise writer.fail(f"takes {self._wanted(x.shape)}, but {given}")
        problem = self.work_out(found)
        if problem:
            raise writer.fail(f"{problem}; {x.maker} gives {shape_text(x.shape)}")
        shape: List[int] = []
        for word in self.gives.split():
            shape += found[word] if word in found else self._sizes(word)
        return tuple(shape)

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """Replaces sizes that were found by those that the layer gives; or returns what is wrong with them."""

    def _sizes(self, word: str) -> Sizes:
        size = getattr(self, word)
        return tuple(size) if isinstance(size, tuple) else (size,)

    def _words(self, pattern: str) -> List[Union[int, str]]:
        wanted: List[Union[int, str]] = []
        for word in pattern.split():
            wanted += self._sizes(word) if hasattr(self, word) else [word]
        return wanted

    def _match(self, shape: Sizes) -> Optional[Dict[str, Sizes]]:
        wanted, found = self._words(self.takes), {}
        if "..." in wanted:
            leading = len(shape) - len(wanted) + 1
            if leading < 0:
                return None
            found["..."] = shape[:leading]
            wanted, shape = wanted[1:], shape[leading:]
        if len(wanted) != len(shape) or any(isinstance(w, int) and w != size for w, size in zip(wanted, shape)):
            return None
        return {**found, **{str(w): (size,) for w, size in zip(wanted, shape) if isinstance(w, str)}}

    def _wanted(self, shape: Sizes) -> str:
        words = self._words(self.takes)
        return shape_text(word for word in words if word != "..." or len(shape) != len(words) - 1)

    def _hint(self, shape: Sizes) -> str:
        words = [word for word in self._words(self.takes) if word != "..."]
        if len(words) == 1 and words[0] == math.prod(shape) and len(shape) > 1:
            return ": put mtc.Flatten() before it"
        if len(words) == 3 and len(shape) == 2:
            return _as_image(words[0], *shape)
        return ""

    def _class_problem(self, x: Value) -> str:
        if self.classes is None:
            return f"takes numbers, but {x.maker} gives classes: put mtc.Embedding or mtc.OneHot before it"
        return "takes classes: it has to be the first layer"


def _as_image(channels: Union[int, str], first: int, second: int) -> str:
    """What makes an image of two axes: rows and columns of one channel, or channels of one row."""
    image, row = f"mtc.Reshape((1, {first}, {second}))", f"mtc.Reshape(({first}, 1, {second}))"
    if channels == "channels":
        return f": put {row} before it where the first axis is channels, as of Conv1d, and {image} where it is rows"
    return f": put {image if channels == 1 else row} before it" if channels in (1, first) else ""


def known_shape(layers: Sequence[Layer]) -> Optional[Sizes]:
    """The input's shape, where the first layer that is not indifferent to it knows it."""
    for layer in layers:
        shape = layer.input_shape()
        if shape is not None or not layer.keeps_shape:
            return shape
    return None


def nested(layers: Any, what: str) -> Tuple[Any, ...]:
    """A list of layers as a tuple: lists in it, and other networks, stand for their layers. UsageError for all else."""
    if isinstance(layers, Layer) or isinstance(layers, str) or not hasattr(layers, "__iter__"):
        raise UsageError(f"{what} is a list of layers, not {layers!r}")
    flat: List[Layer] = []
    for layer in layers:
        if isinstance(layer, type) and issubclass(layer, Layer):
            kind = layer.__name__
            raise UsageError(f"{what} has the class {kind} in it; a layer is an object, mtc.{kind}(...)")
        if isinstance(layer, Layer):
            flat.append(layer)
        elif isinstance(layer, (list, tuple)):
            flat += nested(layer, what)
        elif isinstance(getattr(layer, "layers", None), tuple):
            flat += layer.layers
        else:
            raise UsageError(f"{what} has {layer!r} in it, which is no layer of mtc")
    return tuple(flat)
