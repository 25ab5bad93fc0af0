"""The losses and metrics of mtc.Sequential. A loss decides what y is, what is reported, and what the model predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Mapping, Optional, Type, Union

from .errors import UsageError
from .layer import Value
from .layers import Sigmoid, Softmax
from .operators import classes, made, table
from .spec import Share, Spec, shape_text
from .targets import Distributions, Shares


__all__ = ["Loss", "CrossEntropy", "SoftCrossEntropy", "BCE"]


@dataclass(frozen=True)
class Metric:
    """A report beside the loss: how it is written, with {p} for the prediction in y's scale, {x} for the last layer,
    {probability} for that of yes, and {score} for what is above 0 where that says 1. One with a `definition`, or that
    is `called` otherwise than its function, is a value of the model block."""

    text: str
    definition: str = ""
    called: bool = False


BINARY_ACCURACY = """\
# A score above 0 says 1, below it 0.
fn binary_accuracy(score[n], target[n]) {
  s = reshape(score, [n, 1])
  t = reshape(target, [n, 1])
  return accuracy(concat([0 * s, s], axis = 1), argmax(concat([1 - t, t], axis = 1)))
}
"""
PAIR = {"prediction": "{x}", "target": "{y}"}


def _listed(places: Mapping[str, str], y: str = "y", needs: str = "") -> Dict[str, Metric]:
    """The metrics of the table under its names and scikit-learn's: those whose first parameter has a place, and, where
    something is needed, that have a parameter of that name."""
    found: Dict[str, Metric] = {}
    for operator in table():
        names = [parameter["name"] for parameter in operator["parameters"]]
        if operator["kind"] == "metric" and names[0] in places and (not needs or names[0] == "p" or needs in names):
            text = f"{operator['name']}({places[names[0]]}, {y})"
            found[operator["class"]] = Metric(text, called=True)
            found[operator["name"]] = Metric(text)
    return found


DISTANCES = {
    "mae": Metric("mae({p}, y)"),
    "mse": Metric("mse({p}, y)"),
    "mean_absolute_error": Metric("mae({p}, y)", called=True),
    "mean_squared_error": Metric("mse({p}, y)", called=True),
    **_listed({"prediction": "{p}"}),
}
SCORES = {"x": "{x}", "p": "softmax({x})"}


class Loss(Spec, abstract=True):
    """What training minimises: the mean of one number for each example. `metrics` are those that it can report, by
    default the first."""

    metrics: ClassVar[Dict[str, Metric]] = DISTANCES
    definition: ClassVar[str] = ""
    measures: ClassVar[bool] = False  # y is numbers on a scale of their own: normalize_target is possible
    targets: ClassVar[Union[None, Shares, Distributions]] = None  # what y must be, beside its type

    def target(self, output: Value) -> str:
        """The type of y in the words of the language. UsageError where the last layer does not fit the loss."""
        return "f32" + (shape_text(output.shape) if output.shape else "")

    def write(self, output: Value, y: str) -> str:
        """The loss in the words of the language."""
        return self.render(x=output.name, y=y)


class Distance(Loss, abstract=True):
    """Of numbers: what a loss of the table is, beside those of classes and probabilities, which are below."""

    measures = True


class CrossEntropy(Loss):
    """Of scores [..., n] and classes from 0 to n - 1. The softmax is part of it."""

    label_smoothing: Share = 0.0

    text = "cross_entropy({x}, {y}, label_smoothing={label_smoothing})"
    metrics = {"accuracy": Metric("accuracy({x}, y)"), **_listed(SCORES)}

    def target(self, output: Value) -> str:
        """class[n], for each of further axes."""
        _check_scores(self, output)
        *axes, classes = output.shape
        return f"class[{classes}]" + (shape_text(axes) if axes else "")


class SoftCrossEntropy(Loss):
    """Of scores [..., n] and a distribution over the n classes, such as one-hot rows. The softmax is part of it."""

    text = "cross_entropy({x}, {y})"
    metrics = {"accuracy": Metric("accuracy({x}, argmax(y))"), **_listed(SCORES, "argmax(y)")}
    targets = Distributions("soft_cross_entropy")

    def target(self, output: Value) -> str:
        """f32[..., n]"""
        _check_scores(self, output)
        return super().target(output)


class BCE(Loss):
    """Binary cross-entropy, of one score or several and as many numbers from 0 to 1. The last layer gives scores, or
    probabilities if it is a Sigmoid."""

    text = "bce({x}, {y}, from_logits = true)"
    probabilities: ClassVar[str] = "bce({x}, {y})"
    metrics = {
        "accuracy": Metric("binary_accuracy({score}, y)", BINARY_ACCURACY),
        **_listed({"x": "{probability}", "p": "{probability}"}, needs="threshold"),
    }
    targets = Shares("bce")

    def target(self, output: Value) -> str:
        """f32[n]"""
        if len(output.shape) != 1:
            given = f"{output.maker} gives {shape_text(output.shape)}"
            raise UsageError(f"the loss BCE takes a vector [n] of scores, but {given}: put mtc.Flatten() behind it; "
                             "y may have its shape all the same")
        return super().target(output)

    def write(self, output: Value, y: str) -> str:
        """With or without the sigmoid."""
        return self.render(self.probabilities if isinstance(output.layer, Sigmoid) else self.text, x=output.name, y=y)


LOSSES: Dict[str, Type[Loss]] = {
    "cross_entropy": CrossEntropy,
    "soft_cross_entropy": SoftCrossEntropy,
    "bce": BCE,
    **classes("loss", globals(), lambda operator: made(operator, Distance, __name__, PAIR)),
}

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


# What other packages call them, in lower case, without _, - and "loss" at the end.
ALIASES: Dict[str, str] = {
    "ce": "cross_entropy",
    "nll": "cross_entropy",
    "negativeloglikelihood": "cross_entropy",
    "logloss": "cross_entropy",
    "log": "cross_entropy",
    "softmax": "cross_entropy",
    "crossentropy": "cross_entropy",
    "sparsecategoricalcrossentropy": "cross_entropy",
    "categoricalcrossentropy": "soft_cross_entropy",
    "softcrossentropy": "soft_cross_entropy",
    "binarycrossentropy": "bce",
    "bcewithlogits": "bce",
    "binarycrossentropywithlogits": "bce",
    "meansquarederror": "mse",
    "squarederror": "mse",
    "l2": "mse",
    "meanabsoluteerror": "mae",
    "absoluteerror": "mae",
    "l1": "mae",
    "smoothl1": "huber",
}


def _check_scores(loss: Loss, output: Value) -> None:
    kind = type(loss).__name__
    if not output.shape or output.shape[-1] < 2:
        raise UsageError(
            f"the loss {kind} takes scores of 2 classes or more, but {output.maker} gives {shape_text(output.shape)}: "
            "use loss='bce' for one yes or no, loss='mse' for a number"
        )
    if isinstance(output.layer, Softmax):
        raise UsageError(
            f"the loss {kind} has the softmax in it: leave out {output.maker}; predict_proba() gives the probabilities"
        )
