"""Layers of images [channels, rows, columns] and, along one axis, of sequences [channels, length]: convolutions, pooling and sizes."""

from __future__ import annotations

from typing import Annotated, Any, Callable, Dict, Mapping, Optional, Tuple, Type, Union

from .errors import UsageError
from .layer import Layer, Sizes
from .operators import Parameter, made, operator
from .spec import Flag, Init, Kernel, OptionalKernel, Padding, Pair, Size, Strings, Whole, Words, both

__all__ = [
    "Conv2d", "ConvTranspose2d", "Conv1d", "InstanceNorm", "MaxPool2d", "AvgPool2d", "GlobalMaxPool2d", "GlobalAvgPool2d",
    "AdaptiveAvgPool2d", "Upsample",
]


class Windowed(Layer, abstract=True):
    """A layer that looks through windows at images [channels, rows, columns]."""

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


class Conv2d(Windowed):
    """Convolution of images [in_channels, rows, columns]; sizes are a number or (rows, columns). padding="same" keeps
    rows and columns. Weights `weight` [out_channels, in_channels / groups, rows, columns] and `bias` [out_channels]."""

    in_channels: Size
    out_channels: Size
    kernel_size: Kernel
    stride: Kernel = 1
    padding: Annotated[Union[int, str, Tuple[int, ...]], SamePadding(Pair(0))] = 0
    dilation: Kernel = 1
    groups: Size = 1
    bias: Flag = True
    init: Init = None
    bias_init: Init = None

    takes = "in_channels rows columns"
    gives = "out_channels rows columns"
    kind = "conv"
    trained = True
    text = (
        "conv2d({x}, {out_channels}, {kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, "
        "groups={groups}, bias={bias}, init={init}, bias_init={bias_init})"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_groups(self)
        if isinstance(self.padding, str):
            half = named_padding(self)
            object.__setattr__(self, "padding", half[0] if half[0] == half[1] else half)


# ---- with the table's arguments ----


class _Filtered(Layer, abstract=True):
    in_channels: Size

    trained = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_groups(self)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(vars(self)["padding"], str):
            object.__setattr__(self, "padding", named_padding(self)[0])

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """How many windows fit."""
        fields, length = vars(self), found["length"][0]
        extent = fields["dilation"] * (fields["kernel_size"] - 1) + 1
        room = length + 2 * fields["padding"] - extent
        if room < 0:
            return f"has a kernel of {extent}, which {length} with a padding of {fields['padding']} do not hold"
        found["length"] = (room // fields["stride"] + 1,)
        return None


class _Channelwise(Layer, abstract=True):
    num_features: Size

    takes = gives = "num_features rows columns"
    trained = True


TORCH = {"out": "out_channels", "kernel": "kernel_size"}  # what PyTorch calls arguments of convolutions
ARGUMENTS: Mapping[str, Callable[[Parameter], Any]] = {
    "sizes": lambda _: Kernel, "init": lambda _: Init, "output_padding": lambda _: Padding,
}


def of_table(function: str, base: Type[Layer], padding: Any = Padding) -> Type[Layer]:
    """The layer of a function of the language, whose arguments, defaults and bounds are the table's; `base` has what it does to
    shapes."""
    annotations = {**ARGUMENTS, "padding": lambda _: padding}
    return made(operator(function), base, __name__, {"x": "{x}"}, TORCH, annotations)


ConvTranspose2d = of_table("conv_transpose2d", _Grown)
Conv1d = of_table("conv1d", _Along, Annotated[Union[int, str], SamePadding(Whole(0))])
InstanceNorm = of_table("instance_norm", _Channelwise)


# ---- pooling and sizes of images ----


class MaxPool2d(Windowed):
    """The largest number of each window; stride is kernel_size unless it is given."""

    kernel_size: Kernel
    stride: OptionalKernel = None
    padding: Padding = 0
    dilation: Kernel = 1

    takes = gives = "channels rows columns"
    text = "max_pool({x}, {kernel_size}, stride={stride}, padding={padding}, dilation={dilation})"


class AvgPool2d(Windowed):
    """The mean of each window, padding counted as 0; stride is kernel_size unless it is given."""

    kernel_size: Kernel
    stride: OptionalKernel = None
    padding: Padding = 0

    takes = gives = "channels rows columns"
    text = "avg_pool({x}, {kernel_size}, stride={stride}, padding={padding})"


class GlobalMaxPool2d(Layer):
    """The largest number of each channel: [channels, rows, columns] -> [channels]."""

    takes = "channels rows columns"
    gives = "channels"
    text = "global_max_pool({x})"


class GlobalAvgPool2d(Layer):
    """The mean of each channel: [channels, rows, columns] -> [channels]."""

    takes = "channels rows columns"
    gives = "channels"
    text = "global_avg_pool({x})"


class AdaptiveAvgPool2d(Layer):
    """Images of output_size rows and columns, each pixel the mean of its part."""

    output_size: Kernel

    takes = gives = "channels rows columns"
    text = "adaptive_avg_pool({x}, {output_size})"

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """Rows and columns as asked for."""
        rows, columns = both(self.output_size)
        found.update(rows=(rows,), columns=(columns,))
        return None


class Upsample(Layer):
    """scale_factor times as many rows and columns: of the nearest pixel or, with mode="bilinear", between the nearest four."""

    scale_factor: Kernel
    mode: Annotated[str, Strings("nearest", "bilinear")] = "nearest"

    takes = gives = "channels rows columns"
    text = "upsample({x}, {scale_factor}, mode={mode})"

    def work_out(self, found: Dict[str, Sizes]) -> Optional[str]:
        """Rows and columns, multiplied."""
        for axis, factor in zip(("rows", "columns"), both(self.scale_factor)):
            found[axis] = (found[axis][0] * factor,)
        return None
