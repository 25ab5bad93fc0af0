"""Layers that go over a sequence, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .layer import Layer, Sizes, Value, Writer
from .operators import layer_of, operator
from .spec import Flag, Size

__all__ = ["RNN", "GRU", "LSTM"]


class _Recurrent(Layer, abstract=True):
    """A layer that goes over a sequence [length, input_size], step by step, and gives its states; the last one alone where
    `last` is true."""

    input_size: Size
    last: Flag = False

    takes, gives = "length input_size", "length width"
    trained = True

    if TYPE_CHECKING:
        hidden_size: int
        bidirectional: bool
        reverse: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last and self.bidirectional:
            kind = type(self).__name__
            raise UsageError(f"{kind}: with bidirectional=True there is no last row that has read all; leave out last=True; mtc.Mean(0) behind it makes one row of all")

    @property
    def width(self) -> int:
        """Numbers of a row: a state for each direction."""
        return self.hidden_size * (1 + self.bidirectional)

    def output(self, writer: Writer, x: Value) -> Sizes:
        shape = super().output(writer, x)
        return shape[1:] if self.last else shape

    def expression(self, x: Value) -> str:
        """The last state of a layer that goes backwards is the first row."""
        return super().expression(x) + (f"[{0 if self.reverse else -1}]" if self.last else "")


# PyTorch's names and order of arguments.
TORCH = {"units": "hidden_size", "layers": "num_layers", "activation": "nonlinearity"}
ORDER = ("hidden_size", "num_layers", "nonlinearity", "bias", "bidirectional")


def _recurrent(function: str) -> Any:
    doc = operator(function)["doc"] + " last: the last state alone, [units]."
    return layer_of(function, _Recurrent, __name__, TORCH, order=ORDER, members={"__doc__": doc})


RNN, GRU, LSTM = map(_recurrent, ("rnn", "gru", "lstm"))
