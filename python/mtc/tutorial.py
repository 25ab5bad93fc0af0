"""What the module cuda_nn offers: NeuralNetworkGPU with the arguments, lines and results that tutorials give it.

    from cuda_nn import NeuralNetworkGPU

    nn = NeuralNetworkGPU(input_size=784, hidden_size=128, output_size=10, batch_size=64)
    nn.fit(X_train, y_train, epochs=10, learning_rate=0.001, validation_data=(X_test, y_test))
    print(f"{nn.evaluate(X_test, y_test) * 100:.2f}%")

A thin layer over mtc.NeuralNetworkGPU, which is `nn.network`: whatever else a network can do is asked of that.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from . import network
from .model import Model
from .training import Callback, History, PathLike


class NeuralNetworkGPU:
    """Fully connected layers that tell classes apart, on a GPU, or on the processor where there is none.

    input_size     numbers of an example
    hidden_size    neurons of the hidden layer, or a list with those of each
    output_size    classes, 2 or more
    batch_size     examples of a step
    options        those of mtc.NeuralNetworkGPU: optimizer, activation, dropout, seed, target, precision

    X is [N, input_size], or images [N, ...] of as many numbers; bytes are divided by 255. y is classes [N], or one-hot
    rows [N, output_size]. Raises UsageError and DataError, as mtc.NeuralNetworkGPU does.
    """

    def __init__(self, input_size: int, hidden_size: Union[int, Sequence[int]], output_size: int, batch_size: int = 64,
                 **options: Any) -> None:
        self.network = network.NeuralNetworkGPU(input_size, hidden_size, output_size, batch_size, **options)

    def fit(self, X: Any, y: Any, epochs: int = 10, learning_rate: Optional[float] = None, validation_data: Any = None,
            verbose: bool = True, **options: Any) -> History:
        """Trains, and with `verbose` prints a line for each epoch. Another fit goes on from there.

        learning_rate  None: as it was; at first the optimizer's own, 0.001 of Adam
        options        those of mtc.Model.fit, such as early_stopping and checkpoint
        """
        if learning_rate is not None:
            self.network.set(lr=learning_rate)
        watchers = _listed(options.pop("callbacks", ()))
        if verbose:
            watchers = [_Lines(epochs), *watchers]
        return self.network.fit(X, y, epochs=epochs, validation_data=validation_data, verbose=0, callbacks=watchers,
                                **options)

    def predict(self, X: Any) -> Any:
        """The probability of each class, f32 [N, output_size]; `.argmax(axis=1)` are the classes."""
        return self.network.predict_proba(X)

    def evaluate(self, X: Any, y: Any) -> float:
        """The share of examples that are given their class of y, from 0 to 1."""
        return self.network.score(X, y)

    def save(self, path: PathLike) -> None:
        """Writes the weights, as a safetensors file."""
        self.network.save(path)

    def load(self, path: PathLike) -> None:
        """Reads what `save` wrote."""
        self.network.load(path)

    def __repr__(self) -> str:
        return repr(self.network)


class _Lines(Callback):
    """Epoch 1/10 - Loss: 0.1234 - Val Acc: 0.9712; without validation data the accuracy of the training data, Acc."""

    def __init__(self, epochs: int) -> None:
        self.epoch, self.epochs = 0, epochs

    def on_epoch(self, model: Model, epoch: int, logs: dict[str, float]) -> None:
        """`epoch` counts those of the fits before, too: a fit's lines begin with 1."""
        self.epoch += 1
        name, accuracy = ("Val Acc", "val_accuracy") if "val_accuracy" in logs else ("Acc", "accuracy")
        print(f"Epoch {self.epoch}/{self.epochs} - Loss: {logs['loss']:.4f} - {name}: {logs[accuracy]:.4f}", flush=True)


def _listed(callbacks: Any) -> list[Any]:
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
