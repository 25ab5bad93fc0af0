"""Layers that change images of the data at random in training."""

from __future__ import annotations

from typing import Annotated, Dict, Optional, Sequence

from .layer import Layer, Sizes
from .spec import Above, Degrees, Flag, Interval, Kernel, Part, Real, Size, Words, both

__all__ = ["RandomCrop", "RandomFlip", "Cutout", "ColorJitter", "Rotate", "RandomResizedCrop"]


class RandomCrop(Layer):
    """In training, an image with `padding` pixels on each side, cut at a random place to its size again. Beyond the image are
    "zeros", or with mode="reflect" what a mirror in its first and last pixels shows."""

    padding: Size
    mode: Annotated[str, Words("zeros", "reflect")] = "zeros"

    takes = gives = "channels rows columns"
    text = "random_crop({x}, {padding}{how})"

    @property
    def how(self) -> str:
        """The argument, unless it is the language's own default."""
        return "" if self.mode == "zeros" else f', mode = "{self.mode}"'


class RandomFlip(Layer):
    """In training, an image mirrored left to right in half of all cases; with alternate=True, in every other epoch."""

    alternate: Flag = False

    takes = gives = "channels rows columns"
    text = "random_flip({x}, alternate={alternate})"


class Cutout(Layer):
    """In training, an image with 0 in a square of `size` around a random pixel."""

    size: Size

    takes = gives = "channels rows columns"
    text = "cutout({x}, {size})"


class ColorJitter(Layer):
    """In training, an image of other brightness, contrast and saturation; its colours go from 0 to `white`."""

    brightness: Part = 0
    contrast: Part = 0
    saturation: Part = 0
    white: Above = 255

    takes = gives = "channels rows columns"
    text = "color_jitter({x}, {brightness}, {contrast}, {saturation}, {white})"


class Rotate(Layer):
    """In training, an image turned about its middle by an angle up to `degrees` either way; `fill` where it sees nothing."""

    degrees: Degrees
    fill: Real = 0

    takes = gives = "channels rows columns"
    text = "rotate({x}, {degrees}, fill={fill})"


class RandomResizedCrop(Layer):
    """In training, a part of an image, of a share of its pixels within `scale`, (0.08, 1), and columns for each row within
    `ratio`, (3/4, 4/3), at another size: a number or (rows, columns). In evaluation all of the image at that size."""

    size: Kernel
    scale: Annotated[Optional[Sequence[float]], Interval(most=1)] = None
    ratio: Annotated[Optional[Sequence[float]], Interval()] = None

    takes = gives = "channels rows columns"
    text = "random_resized_crop({x}, {size}, scale={scale}, ratio={ratio})"

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """The size that it is given."""
        found["rows"], found["columns"] = ((size,) for size in both(self.size))
        return None
