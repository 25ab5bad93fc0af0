"""The layers of mtc.Sequential, by the names and with the arguments that PyTorch has. layer.py has what a layer is.

Arguments, their defaults and bounds are those of the compiler's table (operators.py), under PyTorch's names; here is what a layer does to
shapes, and layers that call no one function of the language. Layers of images are in images.py, recurrent ones in recurrent.py, those
that change the data in augmentation.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Dict, Optional, Type, Union

from . import augmentation, images, recurrent
from .augmentation import *  # noqa: F403
from .errors import UsageError
from .images import *  # noqa: F403
from .layer import Layer, Sizes, Value, Writer, known_shape, nested
from .operators import classes, layer_of, made
from .recurrent import *  # noqa: F403
from .spec import Axis, Extents, Flag, Real, Shape, Size, Words, number_text, shape_text, value_text

__all__ = [
    "Layer", "Linear", "Flatten", "Reshape", "Transpose", "Mean", "GELU", "Dropout", "Rescaling", "Normalize",
    "BatchNorm1d", "BatchNorm2d", "LayerNorm", "RMSNorm", "GroupNorm", "Embedding", "OneHot", "PositionalEmbedding",
    "SinusoidalEncoding", "SelfAttention", "Residual",
]
__all__ += images.__all__
__all__ += recurrent.__all__
__all__ += augmentation.__all__


# ---- products ----


class _Product(Layer, abstract=True):
    in_features: Size

    takes = "... in_features"
    gives = "... out_features"
    trained = True


Linear = layer_of("linear", _Product, __name__, {"out": "out_features"})


# ---- shapes ----


class Flatten(Layer):
    """All of an example's numbers as one vector."""

    views = True
    text = "flatten({x})"

    def output(self, writer: Writer, x: Value) -> Sizes:
        """One axis."""
        return (math.prod(x.shape),)


class Reshape(Layer):
    """The same numbers in the same order in another shape: mtc.Reshape((1, 28, 28)). One size may be -1: the rest."""

    shape: Annotated[Union[int, Sizes], Shape(-1)]

    views = True
    text = "reshape({x}, {shape})"

    def output(self, writer: Writer, x: Value) -> Sizes:
        """The shape, with the number for -1."""
        shape = self._sizes("shape")
        numbers, known = math.prod(x.shape), math.prod(size for size in shape if size != -1)
        if numbers % known or (-1 not in shape and numbers != known):
            given = f"{x.maker} gives {shape_text(x.shape)}, {numbers} numbers"
            raise writer.fail(f"makes {shape_text(shape)}, but {given}")
        return tuple(numbers // known if size == -1 else size for size in shape)


class Transpose(Layer):
    """Two axes exchanged; -1 is the last."""

    dim0: Axis = -2
    dim1: Axis = -1

    views = True
    text = "transpose({x}, a={dim0}, b={dim1})"

    def output(self, writer: Writer, x: Value) -> Sizes:
        """The sizes of the axes, exchanged."""
        shape, rank = list(x.shape), len(x.shape)
        if any(not -rank <= axis < rank for axis in (self.dim0, self.dim1)):
            raise writer.fail(f"exchanges axes {self.dim0} and {self.dim1}, but {x.maker} gives {shape_text(x.shape)}")
        shape[self.dim0], shape[self.dim1] = shape[self.dim1], shape[self.dim0]
        return tuple(shape)


class Mean(Layer):
    """The mean over an axis: of a sequence [length, features], axis 0 gives [features]."""

    dim: Axis = 0

    text = "mean({x}, axis = {dim})"

    def output(self, writer: Writer, x: Value) -> Sizes:
        """Without that axis."""
        rank = len(x.shape)
        if not -rank <= self.dim < rank:
            raise writer.fail(f"takes the mean over axis {self.dim}, but {x.maker} gives {shape_text(x.shape)}")
        return tuple(size for axis, size in enumerate(x.shape) if axis != self.dim % rank)


# ---- element by element ----


class GELU(Layer):
    """x times the normal distribution's share below x; approximate="tanh" is the common approximation."""

    approximate: Annotated[str, Words("none", "tanh")] = "none"

    text = "gelu({x}, exact={exact})"
    omitted = {"exact": False}

    @property
    def exact(self) -> bool:
        """By the error function."""
        return self.approximate == "none"


Dropout = layer_of("dropout", Layer, __name__, members={"p": 0.5})  # PyTorch's default; the language has none


class Rescaling(Layer):
    """x * scale + offset: mtc.Rescaling(1 / 255) makes numbers from 0 to 1 of bytes."""

    scale: Real
    offset: Real = 0.0

    kind = "rescaling"

    def expression(self, x: Value) -> str:
        """A division, where the scale is one part of a whole number."""
        parts = 1 / self.scale if self.scale else 0
        divides = abs(parts) > 1 and abs(parts - round(parts)) < 1e-9
        scaled = f"{x.name} / {number_text(round(parts))}" if divides else f"{x.name} * {number_text(self.scale)}"
        scaled = x.name if self.scale == 1 else scaled
        if not self.offset:
            return scaled
        return f"{scaled} {'-' if self.offset < 0 else '+'} {number_text(abs(self.offset))}"


# ---- normalisation ----


class Normalize(Layer):
    """(x - mean) / std of the input, element by element, with mean and std of the training examples, which the program
    finds before the first step and keeps with the weights. Only Flatten, Reshape and Transpose may stand before it."""

    text = "normalize({x})"

    def build(self, writer: Writer, x: Value) -> Value:
        """Checks that x is the input."""
        if not x.from_data:
            raise writer.fail(f"normalizes the input, not what a layer computes, but {x.maker} comes before it")
        return super().build(writer, x)


class _BatchNorm(Layer, abstract=True):
    num_features: Size

    kind = "batch_norm"
    trained = True


class _OfChannels(_BatchNorm, abstract=True):
    takes = gives = "num_features"

    def output(self, writer: Writer, x: Value) -> Sizes:
        """The shape of x, a vector, or channels [num_features, length], of which the numbers of one are normalized together."""
        return x.shape if len(x.shape) == 2 and x.shape[0] == self.num_features else super().output(writer, x)


class _OfImages(_BatchNorm, abstract=True):
    takes = gives = "num_features rows columns"


def _batch_norm(base: Type[Layer], title: str) -> Any:
    """In PyTorch's order of arguments."""
    return layer_of("batch_norm", base, __name__, title=title, order=("eps", "momentum"))


BatchNorm1d = _batch_norm(_OfChannels, "BatchNorm1d")
BatchNorm2d = _batch_norm(_OfImages, "BatchNorm2d")


class _LastAxesNorm(Layer, abstract=True):
    normalized_shape: Extents

    takes = gives = "... normalized_shape"
    trained = True
    omitted = {"axes": 1}

    @property
    def axes(self) -> int:
        """How many axes one norm is over."""
        return len(vars(self)["normalized_shape"])


LayerNorm = layer_of("layer_norm", _LastAxesNorm, __name__, {"affine": "elementwise_affine"})
RMSNorm = layer_of("rms_norm", _LastAxesNorm, __name__, title="RMSNorm")


class _Grouped(Layer, abstract=True):
    num_groups: Size
    num_channels: Size

    takes = gives = "num_channels rows columns"
    trained = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_channels % self.num_groups:
            sizes = f"num_groups, {self.num_groups}, do not divide num_channels, {self.num_channels}"
            raise UsageError(f"{type(self).__name__}: {sizes}")


GroupNorm = layer_of("group_norm", _Grouped, __name__, {"groups": "num_groups"})


# ---- classes and sequences ----


class _OfClasses(Layer, abstract=True):
    """The first layer, which makes the input whole numbers. `counted` is the field that they are below."""

    counted: ClassVar[str]

    @property
    def classes(self) -> Optional[int]:
        """How many there are."""
        return int(getattr(self, self.counted))


class _Looked(_OfClasses, abstract=True):
    counted = "num_embeddings"
    gives = "... embedding_dim"
    trained = True


class _Marked(_OfClasses, abstract=True):
    counted = "num_classes"
    gives = "... num_classes"


Embedding = layer_of("embedding", _Looked, __name__, {"count": "num_embeddings", "width": "embedding_dim"})
OneHot = layer_of("one_hot", _Marked, __name__, {"classes": "num_classes"})


class PositionalEmbedding(Layer):
    """x + a learned vector for each position of a sequence [length, features]."""

    takes = gives = "length features"
    kind = "positions"
    trained = True

    def expression(self, x: Value) -> str:
        """A sum with a weight, which has the statement's name."""
        return f"{x.name} + weight({value_text(x.shape)}, init = normal(0, 0.02))"


class SinusoidalEncoding(Layer):
    """x + waves that tell the positions of a sequence [length, features] apart; nothing is learned."""

    takes = gives = "length features"
    kind = "positions"

    def expression(self, x: Value) -> str:
        """A sum with the waves."""
        return f"{x.name} + sinusoid({x.shape[0]}, {x.shape[1]})"


class SelfAttention(Layer):
    """Attention of a sequence [length, embed_dim] to itself with num_heads heads; causal: to no later positions.
    Weights `qkv` (queries, keys and values one after the other) and `proj`, each with `weight` and `bias`."""

    embed_dim: Size
    num_heads: Size
    causal: Flag = False

    takes = gives = "length embed_dim"
    kind = "attention"
    trained = True
    text = "self_attention({x}, {num_heads}, causal={causal})"
    definition = """\
fn self_attention(x[t, width], heads, causal = false) {
  qkv  = linear(x, 3 * width)
  q    = slice(qkv, 1, 0, width)
  k    = slice(qkv, 1, width, 2 * width)
  v    = slice(qkv, 1, 2 * width, 3 * width)
  proj = linear(attention(q, k, v, heads, causal = causal), width)
  return proj
}
"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.embed_dim % self.num_heads:
            raise UsageError(f"SelfAttention: num_heads, {self.num_heads}, do not divide embed_dim, {self.embed_dim}")


# ---- layers of layers ----


class Residual(Layer):
    """x + layers(x), or shortcut(x) + layers(x). Both sides have one shape."""

    layers: Any
    shortcut: Any = ()

    gives = ""
    kind = "residual"

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("layers", "shortcut"):
            object.__setattr__(self, what, nested(getattr(self, what), f"Residual: {what}"))

    def input_shape(self) -> Optional[Sizes]:
        """That of its first layer."""
        return known_shape(self.layers)

    def build(self, writer: Writer, x: Value) -> Value:
        """The layers' statements, the shortcut's, and the sum."""
        inner = writer.stack(self.layers, x)
        outer = writer.stack(self.shortcut, x)
        if inner.shape != outer.shape:
            sides = f"{shape_text(inner.shape)} and {'its shortcut' if self.shortcut else x.maker}"
            raise writer.fail(f"adds equal shapes, but its layers give {sides} gives {shape_text(outer.shape)}")
        return writer.statement(f"{outer.name} + {inner.name}", inner.shape, inner)


# ---- of the table ----

TORCH = {"slope": "negative_slope", "axis": "dim"}  # what PyTorch calls arguments of activations
ACTIVATIONS: Dict[str, Type[Layer]] = classes(
    "activation", globals(), lambda operator: made(operator, Layer, __name__, {"x": "{x}"}, TORCH)
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
