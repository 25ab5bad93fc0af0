"""Layers that go over a sequence, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from .errors import UsageError
from .layer import Layer, Sizes, Value, Writer
from .spec import Flag, Size, Strings

__all__ = ["RNN", "GRU", "LSTM"]


class _Recurrent(Layer, abstract=True):
    """A layer that goes over a sequence [length, input_size], step by step, and gives its states."""

    takes, gives = "length input_size", "length width"
    trained = True

    if TYPE_CHECKING:
        hidden_size: int
        bidirectional: bool
        last: bool

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
        return super().expression(x) + ("[-1]" if self.last else "")


class RNN(_Recurrent):
    """Over a sequence [length, input_size]: h = nonlinearity(W x + b + U h + d), with nonlinearity "tanh" or "relu"; gives the
    states [length, hidden_size], the last one where last is true, both directions beside each other where bidirectional is.
    num_layers on top of each other. Weights as PyTorch's RNN: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`."""

    input_size: Size
    hidden_size: Size
    num_layers: Size = 1
    nonlinearity: Annotated[str, Strings("tanh", "relu")] = "tanh"
    bias: Flag = True
    bidirectional: Flag = False
    last: Flag = False

    text = "rnn({x}, {hidden_size}, layers={num_layers}, bidirectional={bidirectional}, bias={bias}, activation={nonlinearity})"


class _Gated(_Recurrent, abstract=True):
    """A recurrent layer with gates: their functions are not chosen."""

    input_size: Size
    hidden_size: Size
    num_layers: Size = 1
    bias: Flag = True
    bidirectional: Flag = False
    last: Flag = False


class GRU(_Gated):
    """Over a sequence [length, input_size], by gates r and z: h = (1 - z) n + z h; gives the states [length, hidden_size], the
    last one where last is true, both directions beside each other where bidirectional is. num_layers on top of each other.
    Weights as PyTorch's GRU: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, of gates r, z, n."""

    text = "gru({x}, {hidden_size}, layers={num_layers}, bidirectional={bidirectional}, bias={bias})"


class LSTM(_Gated):
    """Over a sequence [length, input_size], with a memory: c = f c + i g, h = o tanh(c); gives the states [length, hidden_size],
    the last one where last is true, both directions beside each other where bidirectional is. num_layers on top of each
    other. Weights as PyTorch's LSTM: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, of gates i, f, g, o."""

    text = "lstm({x}, {hidden_size}, layers={num_layers}, bidirectional={bidirectional}, bias={bias})"
