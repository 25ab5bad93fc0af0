"""The layers of mtc.Sequential, by the names and with the arguments that PyTorch has. layer.py has what a layer is.

Here are those that know a shape, or other arguments than the language has, but for layers of images (images.py), recurrent ones
(recurrent.py) and those that change the data (augmentation.py); activations are the table's (operators.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Dict, Optional, Type, Union

from . import augmentation, images, recurrent
from .augmentation import *  # noqa: F403
from .errors import UsageError
from .images import *  # noqa: F403
from .layer import Layer, Sizes, Value, Writer, known_shape, nested
from .operators import classes, made
from .recurrent import *  # noqa: F403
from .spec import (
    Axis, Extents, Flag, Init, Positive, Real, Shape, Share, Size, Words, number_text, shape_text, value_text,
)

__all__ = [
    "Layer", "Linear", "Flatten", "Reshape", "Transpose", "Mean", "GELU", "Dropout", "Rescaling", "Normalize",
    "BatchNorm1d", "BatchNorm2d", "LayerNorm", "RMSNorm", "GroupNorm", "Embedding", "OneHot", "PositionalEmbedding",
    "SinusoidalEncoding", "SelfAttention", "Residual",
]
__all__ += images.__all__
__all__ += recurrent.__all__
__all__ += augmentation.__all__


# ---- products ----


class Linear(Layer):
    """x W^T + b over the last axis: [..., in_features] -> [..., out_features]. Weights `weight` [out_features,
    in_features] and `bias` [out_features]."""

    in_features: Size
    out_features: Size
    bias: Flag = True
    init: Init = None
    bias_init: Init = None

    takes = "... in_features"
    gives = "... out_features"
    trained = True
    text = "linear({x}, {out_features}, bias={bias}, init={init}, bias_init={bias_init})"


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


class Dropout(Layer):
    """In training 0 with probability p, else x / (1 - p); in evaluation x."""

    p: Share = 0.5

    text = "dropout({x}, {p})"


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
    eps: Positive = 1e-5
    momentum: Share = 0.1
    affine: Flag = True
    sync: Flag = False

    kind = "batch_norm"
    trained = True
    text = "batch_norm({x}, momentum={momentum}, eps={eps}, affine={affine}, sync={sync})"


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of vectors [num_features], or of channels [num_features, length]. Weights `weight`, `bias`; statistics
    `running_mean`, `running_var`."""

    takes = gives = "num_features"

    def output(self, writer: Writer, x: Value) -> Sizes:
        """The shape of x: a channel's numbers are normalized together."""
        return x.shape if len(x.shape) == 2 and x.shape[0] == self.num_features else super().output(writer, x)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images [num_features, rows, columns]. Weights `weight`, `bias`; statistics `running_mean`,
    `running_var`."""

    takes = gives = "num_features rows columns"


class _LastAxesNorm(Layer, abstract=True):
    takes = gives = "... normalized_shape"
    trained = True
    omitted = {"axes": 1}

    @property
    def axes(self) -> int:
        """How many axes one norm is over."""
        return len(vars(self)["normalized_shape"])


class LayerNorm(_LastAxesNorm):
    """(x - mean) / std * weight + bias over the last axes, those of normalized_shape."""

    normalized_shape: Extents
    eps: Positive = 1e-5
    elementwise_affine: Flag = True

    kind = "layer_norm"
    text = "layer_norm({x}, axes={axes}, eps={eps}, affine={elementwise_affine})"


class RMSNorm(_LastAxesNorm):
    """x / sqrt(mean of x^2 + eps) * weight over the last axes, those of normalized_shape."""

    normalized_shape: Extents
    eps: Positive = 1e-5

    kind = "rms_norm"
    text = "rms_norm({x}, axes={axes}, eps={eps})"


class GroupNorm(Layer):
    """Normalisation of images over groups of neighbouring channels."""

    num_groups: Size
    num_channels: Size
    eps: Positive = 1e-5
    affine: Flag = True

    takes = gives = "num_channels rows columns"
    trained = True
    text = "group_norm({x}, {num_groups}, eps={eps}, affine={affine})"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_channels % self.num_groups:
            sizes = f"num_groups, {self.num_groups}, do not divide num_channels, {self.num_channels}"
            raise UsageError(f"GroupNorm: {sizes}")


# ---- classes and sequences ----


class Embedding(Layer):
    """A learned vector for each class: whole numbers below num_embeddings of any shape -> [..., embedding_dim]. The
    first layer; it makes the input whole numbers. Weight `weight` [num_embeddings, embedding_dim]."""

    num_embeddings: Size
    embedding_dim: Size
    init: Init = None

    gives = "... embedding_dim"
    trained = True
    text = "embedding({x}, {num_embeddings}, {embedding_dim}, init={init})"

    @property
    def classes(self) -> Optional[int]:
        """Rows of the table."""
        return self.num_embeddings


class OneHot(Layer):
    """1 at the class, 0 elsewhere: whole numbers below num_classes of any shape -> [..., num_classes]. The first layer;
    it makes the input whole numbers."""

    num_classes: Size

    gives = "... num_classes"
    text = "one_hot({x}, {num_classes})"

    @property
    def classes(self) -> Optional[int]:
        """The size of the new axis."""
        return self.num_classes


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
