"""Layers that change the data at random in training, or mix examples: those of the compiler's table, but for two that know more of
their arguments than it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Dict, Optional, Sequence, Type

from .layer import Layer, Sizes, Value
from .operators import Operator, classes, made
from .spec import Interval, Kernel, Size, Words, both

__all__ = ["RandomCrop", "RandomResizedCrop"]

IMAGE = "channels rows columns"


class RandomCrop(Layer):
    """In training, an image with `padding` pixels on each side, cut at a random place to its size again. Beyond the image are
    "zeros", or with mode="reflect" what a mirror in its first and last pixels shows."""

    padding: Size
    mode: Annotated[str, Words("zeros", "reflect")] = "zeros"

    takes = gives = IMAGE
    text = "random_crop({x}, {padding}{how})"

    @property
    def how(self) -> str:
        """The argument, unless it is the language's own default."""
        return "" if self.mode == "zeros" else f', mode = "{self.mode}"'


class RandomResizedCrop(Layer):
    """In training, a part of an image, of a share of its pixels within `scale`, (0.08, 1), and columns for each row within
    `ratio`, (3/4, 4/3), at another size: a number or (rows, columns). In evaluation all of the image at that size."""

    size: Kernel
    scale: Annotated[Optional[Sequence[float]], Interval(most=1)] = None
    ratio: Annotated[Optional[Sequence[float]], Interval()] = None

    takes = gives = IMAGE
    text = "random_resized_crop({x}, {size}, scale={scale}, ratio={ratio})"

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """The size that it is given."""
        found["rows"], found["columns"] = ((size,) for size in both(self.size))
        return None


class Augmentation(Layer, abstract=True):
    """Of data of any shape."""


class OfImages(Augmentation, abstract=True):
    """Of images of the data."""

    takes = gives = IMAGE


class Mixture(Layer, abstract=True):
    """Of data of any shape and their target: in training the loss knows the target of the example that was mixed in too."""

    mixes = True

    def expression(self, x: Value) -> str:
        """A call of x and its target, which gives three values."""
        return self.render(x=x.name, y="y")


class MixtureOfImages(Mixture, abstract=True):
    """Of images of the data and their target."""

    takes = gives = IMAGE


# ---- of the table ----


def _layer(operator: Operator, of_any: Type[Layer], of_images: Type[Layer]) -> Type[Layer]:
    """The class of a function whose first parameters are the data and, of a mixture, their target."""
    data, *rest = operator["parameters"]
    base = of_images if data.get("kind") == "image" else of_any
    targets = {parameter["name"]: "{y}" for parameter in rest[:1] if base.mixes}
    return made(operator, base, __name__, {data["name"]: "{x}", **targets})


AUGMENTATIONS = classes("augmentation", globals(), lambda operator: _layer(operator, Augmentation, OfImages))
MIXTURES = classes("mixture", globals(), lambda operator: _layer(operator, Mixture, MixtureOfImages))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
