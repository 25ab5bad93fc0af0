"""NeuralNetworkGPU: a classifier from three numbers, as tutorials write it; and the layers that estimators have too."""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import replace
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Tuple, Type, Union

import numpy as np

from . import layers, toolchain
from .arrays import to_numpy
from .errors import DataError, UsageError, users_frame
from .optimizers import OPTIMIZERS, Optimizer, Schedule
from .sequential import Sequential
from .spec import chosen, nearest, told_arguments, whole
from .training import History

Array = Any  # numpy.ndarray of whichever type
Hidden = Union[int, Sequence[int]]
OptimizerLike = Union[str, Optimizer]
TARGETS = ("cuda", "cpu")
# Those that look at one number: softmax, with an axis, is no activation of a hidden layer.
ACTIVATIONS: Dict[str, Optional[Type[layers.Layer]]] = {
    **{name: kind for name, kind in layers.ACTIVATIONS.items() if not hasattr(kind, "dim")},
    "logistic": layers.Sigmoid,
    "identity": None,
}

# ---- what the arguments mean ----


def sizes_of(hidden: Hidden) -> Tuple[int, ...]:
    """The neurons of each hidden layer, from one number or several; () has none: a linear model."""
    sizes: Any = [hidden] if hasattr(hidden, "__index__") and np.ndim(hidden) == 0 else hidden
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__iter__"):
        raise UsageError(f"hidden is the neurons of the hidden layer, or a list with those of each, not {hidden!r}")
    return tuple(whole(size, "each number of hidden", 1) for size in sizes)


def layers_of(inputs: int, hidden: Sequence[int], outputs: int, activation: str, dropout: float) -> List[layers.Layer]:
    """Linear layers, each but the last followed by the activation and, where there is any, by dropout."""
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise UsageError(f"activation is one of {', '.join(map(repr, ACTIVATIONS))}, not {activation!r}"
                         f"{nearest(activation, ACTIVATIONS)}")
    kind = ACTIVATIONS[activation]
    between: List[layers.Layer] = [*([kind()] if kind else []), *([layers.Dropout(dropout)] if dropout else [])]
    stack: List[layers.Layer] = []
    for read, made in zip([inputs, *hidden], hidden):
        stack += [layers.Linear(read, made), *between]
    return [*stack, layers.Linear([inputs, *hidden][-1], outputs)]


def optimizer_of(optimizer: OptimizerLike, learning_rate: Optional[float] = None,
                 weight_decay: Optional[float] = None) -> Optimizer:
    """An optimizer by name, or an object, with the numbers that are given in place of its own."""
    made: Any = chosen(OPTIMIZERS, optimizer, Optimizer, "optimizer")
    if learning_rate is not None:
        own: Any = made.lr
        scheduled = isinstance(own, Schedule)
        made = replace(made, lr=replace(own, lr=learning_rate) if scheduled else learning_rate)
    chosen_optimizer: Optimizer = made if weight_decay is None else replace(made, weight_decay=weight_decay)
    return chosen_optimizer


class Choice(NamedTuple):
    """A target, and why it is not "cuda": empty where it is, or where it was asked for."""

    target: str
    reason: str


def has_nvcc() -> bool:
    """Whether nvcc is in PATH or in $CUDA_HOME, where mtc looks for it."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return bool(shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(home, "bin")))


def choose_target(target: Optional[str] = None) -> Choice:
    """The target asked for, else "cuda" where a GPU and nvcc are, else "cpu". UsageError: there is no such target."""
    if target is not None:
        if target not in TARGETS:
            raise UsageError(f"target is 'cuda', 'cpu', or None for a GPU where there is one, not {target!r}")
        return Choice(target, "")
    if toolchain.default_target() == "cpu":
        return Choice("cpu", "there is no GPU here")
    if not has_nvcc():
        return Choice("cpu", "there is a GPU here, but no nvcc in PATH or $CUDA_HOME/bin to compile for it")
    return Choice("cuda", "")


# ---- the class ----


class NeuralNetworkGPU(Sequential):
    """A network of fully connected layers that tells classes apart, on a GPU, or on the processor where there is none.

        clf = mtc.NeuralNetworkGPU(784, 128, 10, batch_size=64)
        clf.fit(X_train, y_train, epochs=10, validation_data=(X_test, y_test))
        clf.predict(X_test), clf.evaluate(X_test, y_test)["accuracy"]

    inputs         numbers of an example
    hidden         neurons of the hidden layer, or a list with those of each
    outputs        classes, 2 or more
    batch_size     examples of a step
    learning_rate  None: the optimizer's own
    optimizer      "adam", "sgd", "adamw", "rmsprop", "lion", or an object such as mtc.SGD(0.1, momentum=0.9)
    activation     "relu", "tanh", "gelu", ...
    dropout        the share of hidden neurons that each step leaves out
    seed           decides initial weights, order of the examples and dropout: the same to the bit each time
    target         "cuda", "cpu", or None: a GPU where there is one and nvcc, else the processor; a warning says so once
    precision      "fp32", "tf32", "tf32x3", "bf16", "fp16" or "fp8": what products are computed in
    gpus           how many GPUs train; on the processor processes, which share it

    X is [N, inputs], or images [N, ...] of as many numbers. Bytes (uint8) are divided by 255; other numbers are taken
    as they are. y is classes from 0 to outputs - 1, [N], or their one-hot rows, [N, outputs].

    It is an mtc.Sequential, and so an mtc.Model, with all that these have: summary(), save(), load(), source, ...
    """

    __slots__ = ("inputs", "outputs", "hidden", "batch_size", "target")

    _told = False  # the warning comes once in a process

    @told_arguments({"batch": "batch_size", "lr": "learning_rate", "random_state": "seed"})
    def __init__(self, inputs: int, hidden: Hidden, outputs: int, batch_size: int = 64, *,
                 learning_rate: Optional[float] = None, optimizer: OptimizerLike = "adam", activation: str = "relu",
                 dropout: float = 0.0, seed: Optional[int] = None, target: Optional[str] = None,
                 precision: Optional[str] = None, gpus: Optional[int] = None, processes: Optional[int] = None) -> None:
        self.inputs = whole(inputs, "inputs, the numbers of an example,", 1)
        self.outputs = whole(outputs, "outputs, the number of classes,", 2)
        self.hidden = sizes_of(hidden)
        self.batch_size = whole(batch_size, "batch_size", 1)
        self.target, reason = choose_target(target)
        super().__init__(layers_of(self.inputs, self.hidden, self.outputs, activation, dropout), loss="cross_entropy",
                         optimizer=optimizer_of(optimizer, learning_rate), batch=self.batch_size,
                         input_shape=(self.inputs,), seed=seed, target=self.target, precision=precision, gpus=gpus,
                         processes=processes)
        if reason and not NeuralNetworkGPU._told:
            NeuralNetworkGPU._told = True
            warnings.warn(f"{reason}: NeuralNetworkGPU trains on the processor; with target='cpu' it does so "
                          "without a word", stacklevel=users_frame()[0])

    def __repr__(self) -> str:
        hidden = self.hidden[0] if len(self.hidden) == 1 else list(self.hidden)
        return (f"NeuralNetworkGPU({self.inputs}, {hidden}, {self.outputs}, batch_size={self.batch_size}, "
                f"target={self.target!r})")

    def fit(self, X: Any = None, y: Any = None, *rest: NoReturn, validation_data: Any = None, **options: Any) -> History:
        """Trains on X and y. `epochs`, `validation_split`, `callbacks`, `verbose`, ... are those of Model.fit."""
        if isinstance(validation_data, (tuple, list)) and len(validation_data) in (2, 3):
            X_val, y_val, *weight = validation_data
            validation_data = (as_examples(X_val), self._class_numbers(y_val, "validation y"), *weight)
        return super().fit(as_examples(X), self._class_numbers(y), *rest, validation_data=validation_data, **options)

    def evaluate(self, X: Any = None, y: Any = None, **options: Any) -> Dict[str, float]:
        """{"loss": ..., "accuracy": ...}: the means over X and y."""
        return super().evaluate(as_examples(X), self._class_numbers(y), **options)

    def predict(self, X: Any) -> Any:
        """The most probable class of each example, [N]."""
        return super().predict(as_examples(X))

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, f32 [N, outputs]."""
        return super().predict_proba(as_examples(X))

    def score(self, X: Any, y: Any) -> float:
        """The share of examples that are given their class of y."""
        return super().score(X, self._class_numbers(y))

    def _class_numbers(self, y: Any, what: str = "y") -> Any:
        """Class numbers, where y is one-hot rows; else y. DataError: rows that are no one-hot rows."""
        if y is None or len(getattr(y, "shape", np.shape(y))) != 2:
            return y
        rows = to_numpy(y, what)
        if rows.shape[1] != self.outputs:
            return y  # which Model checks
        strange = np.flatnonzero(((rows != 0) & (rows != 1)).any(axis=1) | (rows.sum(axis=1) != 1))
        if strange.size:
            raise DataError(f"{what}: example {strange[0]} is {rows[strange[0]].tolist()}; expected a one-hot row, "
                            f"of one 1 and {self.outputs - 1} zeros, or {what} of class numbers [N]")
        return rows.argmax(axis=1)


def as_examples(X: Any) -> Any:
    """Bytes as numbers from 0 to 1; everything else as it is."""
    if not str(getattr(X, "dtype", "")).endswith("uint8"):
        return X
    return np.divide(to_numpy(X, "X"), 255, dtype=np.float32)
