"""Layers of images [channels, rows, columns] and, along one axis, of sequences [channels, length]: convolutions, pooling and sizes."""

from __future__ import annotations

from typing import Annotated, Any, Callable, Dict, Optional, Type, Union

from .errors import UsageError
from .layer import Layer, Sizes
from .operators import layer_of
from .spec import Padding, Pair, Size, Whole, Words, both

__all__ = [
    "Conv2d", "ConvTranspose2d", "Conv1d", "InstanceNorm", "MaxPool2d", "AvgPool2d", "GlobalMaxPool2d", "GlobalAvgPool2d",
    "AdaptiveAvgPool2d", "Upsample",
]


IMAGE = "channels rows columns"


class OfImages(Layer, abstract=True):
    """Of images [channels, rows, columns], which keep their size where no field says another."""

    takes = gives = IMAGE
    pixels = ""  # that field: of rows and columns

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """The size that the field says."""
        size = getattr(self, self.pixels, None)
        if size is not None:
            found["rows"], found["columns"] = ((each,) for each in both(size))
        return None


class Windowed(Layer, abstract=True):
    """A layer that looks through windows at images [channels, rows, columns]."""

    takes = gives = IMAGE

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """How many windows fit."""
        fields = vars(self)
        stride = fields["stride"] if fields["stride"] is not None else fields["kernel_size"]
        sizes = fields["kernel_size"], stride, fields["padding"], fields.get("dilation", 1)
        settings = [both(size) for size in sizes]
        for axis, (kernel, step, padding, dilation) in zip(("rows", "columns"), zip(*settings)):
            room = found[axis][0] + 2 * padding - dilation * (kernel - 1) - 1
            if room < 0:
                extent = dilation * (kernel - 1) + 1
                size = found[axis][0]
                return f"has a kernel of {extent} {axis}, which {size} with a padding of {padding} do not hold"
            found[axis] = (room // step + 1,)
        return None


def check_groups(layer: Layer) -> None:
    """That a convolution's groups have as many channels each."""
    fields = vars(layer)
    for what in ("in_channels", "out_channels"):
        if fields[what] % fields["groups"]:
            kind = type(layer).__name__
            raise UsageError(f"{kind}: groups, {fields['groups']}, do not divide {what}, {fields[what]}")


class SamePadding:
    """The padding of a convolution: a size, or one for each axis of images, "valid" (none), or "same" (as many rows and columns
    as before)."""

    def __init__(self, sizes: Callable[[Any, str], Any]) -> None:
        self.sizes = sizes

    def __call__(self, value: Any, what: str) -> Any:
        return Words("same", "valid")(value, what) if isinstance(value, str) else self.sizes(value, what)


def named_padding(layer: Layer) -> Sizes:
    """Of rows and columns, or of a length twice: what "same" and "valid" mean for the layer's kernel."""
    fields = vars(layer)
    extents = [dilation * (kernel - 1) for dilation, kernel in zip(both(fields["dilation"]), both(fields["kernel_size"]))]
    if fields["padding"] == "valid":
        return (0, 0)
    if both(fields["stride"]) != (1, 1) or any(extent % 2 for extent in extents):
        raise UsageError(f"{type(layer).__name__}: padding='same' needs a stride of 1 and a kernel of odd size; give a number")
    return tuple(extent // 2 for extent in extents)


# ---- convolutions ----


class _Filtered(Layer, abstract=True):
    in_channels: Size

    trained = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_groups(self)
        if isinstance(vars(self)["padding"], str):
            object.__setattr__(self, "padding", self._padded(named_padding(self)))

    def _padded(self, sizes: Sizes) -> Any:
        """As the line has it: one size where both axes have the same."""
        return sizes[0] if sizes[0] == sizes[1] else sizes


class _Seen(_Filtered, Windowed, abstract=True):
    takes = "in_channels rows columns"
    gives = "out_channels rows columns"
    kind = "conv"


class _Grown(_Filtered, abstract=True):
    takes = "in_channels rows columns"
    gives = "out_channels rows columns"

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """As many windows as pixels, one beside the other."""
        fields = vars(self)
        settings = (both(fields[name]) for name in ("kernel_size", "stride", "padding", "output_padding", "dilation"))
        for axis, (kernel, step, padding, behind, dilation) in zip(("rows", "columns"), zip(*settings)):
            size = (found[axis][0] - 1) * step + dilation * (kernel - 1) + 1 + behind - 2 * padding
            if size < 1:
                return f"makes {size} {axis}: its padding of {padding} takes all of them away"
            found[axis] = (size,)
        return None


class _Along(_Filtered, abstract=True):
    takes = "in_channels length"
    gives = "out_channels length"

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """How many windows fit."""
        fields, length = vars(self), found["length"][0]
        extent = fields["dilation"] * (fields["kernel_size"] - 1) + 1
        room = length + 2 * fields["padding"] - extent
        if room < 0:
            return f"has a kernel of {extent}, which {length} with a padding of {fields['padding']} do not hold"
        found["length"] = (room // fields["stride"] + 1,)
        return None


TORCH = {"out": "out_channels", "kernel": "kernel_size"}  # what PyTorch calls arguments of convolutions


def _filtered(function: str, base: Type[Layer], padding: Any = Padding) -> Any:
    annotations: Dict[str, Callable[..., Any]] = {"padding": lambda _: padding, "output_padding": lambda _: Padding}
    return layer_of(function, base, __name__, TORCH, annotations=annotations)


Conv2d = _filtered("conv2d", _Seen, Annotated[Union[int, str, Sizes], SamePadding(Pair(0))])
ConvTranspose2d = _filtered("conv_transpose2d", _Grown)
Conv1d = _filtered("conv1d", _Along, Annotated[Union[int, str], SamePadding(Whole(0))])


# ---- one channel by itself ----


class _Channelwise(Layer, abstract=True):
    num_features: Size

    takes = gives = "num_features rows columns"
    trained = True


InstanceNorm = layer_of("instance_norm", _Channelwise, __name__)


# ---- pooling and sizes of images ----


class _Global(Layer, abstract=True):
    takes = IMAGE
    gives = "channels"


class _Enlarged(Layer, abstract=True):
    takes = gives = IMAGE

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """Rows and columns, multiplied."""
        for axis, factor in zip(("rows", "columns"), both(vars(self)["scale_factor"])):
            found[axis] = (found[axis][0] * factor,)
        return None


def _pooled(function: str, title: str) -> Any:
    return layer_of(function, Windowed, __name__, TORCH, annotations={"padding": lambda _: Padding}, title=title)


MaxPool2d = _pooled("max_pool", "MaxPool2d")
AvgPool2d = _pooled("avg_pool", "AvgPool2d")
GlobalMaxPool2d = layer_of("global_max_pool", _Global, __name__, title="GlobalMaxPool2d")
GlobalAvgPool2d = layer_of("global_avg_pool", _Global, __name__, title="GlobalAvgPool2d")
AdaptiveAvgPool2d = layer_of("adaptive_avg_pool", OfImages, __name__, {"out": "output_size"}, title="AdaptiveAvgPool2d")
Upsample = layer_of("upsample", _Enlarged, __name__, {"factor": "scale_factor"})
