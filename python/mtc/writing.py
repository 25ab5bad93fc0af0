"""Writes the model text of mtc.Sequential: what a person would have written, in the layout of `mtc --format`."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from .errors import UsageError
from .flags import PRECISIONS
from .habits import operator_called
from .layer import Layer, Sizes, Value, known_shape
from .layers import Sigmoid
from .losses import Loss, Metric
from .optimizers import Optimizer, Several
from .spec import (
    OptionalPositive,
    OptionalShare,
    OptionalSize,
    PatternList,
    Size,
    Spec,
    Whole,
    Words,
    nearest,
    quoted,
    shape_text,
    value_text,
)

RESERVED = set("fn repeat in if else assert return and or not true false none x y sample_weight loss prediction".split())
NAME = r"\w+(\.\w+)*"
OTHER, SHARE = "other", "share"  # of a layer that mixes examples: the target of the example that was mixed in, the share of the own one


class Training(Spec):
    """The settings of the train block that are no objects. Those that differ from the defaults are written."""

    called = "Sequential"

    batch: Size = 64
    epochs: Size = 10
    seed: Annotated[Optional[int], Whole(0, optional=True)] = None
    accumulate: Size = 1
    clip_value: OptionalPositive = None
    clip_norm: OptionalPositive = None
    ema: OptionalShare = None
    freeze: Annotated[Sequence[str], PatternList()] = ()
    no_decay: Annotated[Sequence[str], PatternList()] = ()
    monitor: Optional[str] = None
    patience: OptionalSize = None
    precision: Annotated[Optional[str], Words(*PRECISIONS, optional=True)] = None

    def lines(self) -> List["Line"]:
        """Lines of the train block."""
        changed = {name: value for name, value in vars(self).items() if value != getattr(type(self), name)}
        written = {"batch": self.batch, "epochs": self.epochs, **changed}
        if self.monitor is not None:
            written["monitor"] = quoted(self.monitor)
        return [Line(name, value_text(written[name])) for name in vars(self) if name in written]


class Line(NamedTuple):
    """`name = value  # comment`, or with another mark."""

    name: str
    value: str
    comment: str = ""
    mark: str = "="


def laid_out(lines: Sequence[Line]) -> List[str]:
    """Lines with the marks under each other, and the comments of neighbours too."""
    widest = max(len(line.name) for line in lines)
    codes = [f"{line.name:<{widest}} {line.mark} {line.value}" for line in lines]
    rows: List[str] = []
    for commented, group in groupby(zip(codes, lines), key=lambda row: bool(row[1].comment)):
        neighbours = list(group)
        column = max(len(code) for code, _ in neighbours)
        rows += [f"{code:<{column}}  # {line.comment}" if commented else code for code, line in neighbours]
    return rows


def block(name: str, lines: Sequence[Line]) -> str:
    """A block of the file."""
    return f"{name} {{\n" + "".join(f"  {row}\n" for row in laid_out(lines)) + "}\n"


def parts(layer: Layer) -> Tuple[Layer, ...]:
    """The layers in a layer."""
    return (*vars(layer).get("layers", ()), *vars(layer).get("shortcut", ()))


def every(layers: Sequence[Layer]) -> Iterator[Layer]:
    """The layers, and those in them."""
    for layer in layers:
        yield layer
        yield from every(parts(layer))


class Names:
    """Names of layers: name=, or the kind and a number, linear1. Values of the text have names without points."""

    def __init__(self, layers: Sequence[Layer], reserved: Set[str]) -> None:
        self._values: Dict[str, str] = {}  # name of a value -> whose it is
        self._taken = {layer.name for layer in every(layers)} | reserved
        self._reserved = reserved
        self._counts: Dict[str, int] = {}

    def of(self, layer: Layer) -> Tuple[str, str]:
        """What the layer's weights and its value are called. UsageError for a name that is none, or taken."""
        name = layer.name or self._next(layer.kind)
        if not isinstance(name, str) or not re.fullmatch(NAME, name, re.ASCII) or len(name) > 80:
            raise UsageError(f"{layer!r}: a name is letters, digits, _ and points between them, not {name!r}")
        value = name.replace(".", "_")
        value = f"{layer.kind}_{value}" if value[0].isdigit() else value
        if value in self._reserved:
            raise UsageError(f"{layer!r}: the name {name!r} has another meaning in the text")
        if value in self._values:
            raise UsageError(f"two layers are called {name!r}: {self._values[value]} and {layer!r}")
        self._values[value] = repr(layer)
        return name, value

    def _next(self, kind: str) -> str:
        while True:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            name = f"{kind}{self._counts[kind]}"
            if name not in self._taken:
                return name


class Place(NamedTuple):
    """A layer that is being written."""

    layer: Layer
    number: str  # "3", or "3.2": the second layer in the third
    name: str
    value: str


class ModelBlock:
    """The statements of the model block: a Writer of layers.py."""

    def __init__(self, layers: Sequence[Layer], reserved: Set[str]) -> None:
        self.lines: List[Line] = []
        self.definitions: List[str] = []
        self._names = Names(layers, reserved)
        self._places: List[Place] = []
        self._trained: Dict[int, str] = {}
        self.mixed: Optional[Place] = None  # the layer that mixes examples

    def stack(self, layers: Sequence[Layer], x: Value) -> Value:
        """Adds the lines of layers, one after the other."""
        prefix = f"{self._places[-1].number}." if self._places else ""
        for index, layer in enumerate(layers):
            place = Place(layer, f"{prefix}{index + 1}", *self._names.of(layer))
            self._places.append(place)
            self._check_once(place)
            self._check_mixed(place)
            self.define(layer.definition)
            x = layer.build(self, x)
            self._places.pop()
        return x

    def statement(self, expression: str, shape: Sizes, x: Value) -> Value:
        """Adds a layer's line. Where its name cannot be that of a value, the call says it."""
        layer, number, name, value = self._places[-1]
        if layer.trained and name != value:
            expression = f"{expression[:-1]}, name = {quoted(name)})"
        changed = shape != x.shape and max(len(shape), len(x.shape)) > 1
        names = f"{value}, {OTHER}, {SHARE}" if layer.mixes else value
        self.lines.append(Line(names, expression, shape_text(shape) if changed else ""))
        return Value(value, shape, None, x.from_data and layer.views, f"layer {number} ({name})", layer)

    def define(self, definition: str) -> None:
        """Adds functions that lines call, once."""
        if definition and definition not in self.definitions:
            self.definitions.append(definition)

    def fail(self, problem: str) -> UsageError:
        """An error that says where the layer stands."""
        layer, number, name, _ = self._places[-1]
        return UsageError(f"layer {number} ({name}): {layer!r} {problem}")

    def _check_once(self, place: Place) -> None:
        if not place.layer.trained:
            return
        first = self._trained.setdefault(id(place.layer), place.number)
        if first != place.number:
            raise self.fail(f"stands in the network as layer {first} too; layers share no weights: make a second one")

    def _check_mixed(self, place: Place) -> None:
        """The loss knows two targets, of examples that all layers behind it see mixed."""
        if not place.layer.mixes:
            return
        if self.mixed:
            raise self.fail(f"mixes examples that layer {self.mixed.number}, {self.mixed.layer!r}, has mixed already; the loss is of two "
                            "examples: leave one of the layers out")
        if len(self._places) > 1:
            raise self.fail("mixes what the whole network sees: it stands among its first layers, not in another layer")
        self.mixed = place


class Network(NamedTuple):
    """What a text is written from."""

    layers: Tuple[Layer, ...]
    loss: Loss
    optimizer: Union[Optimizer, Several]
    metrics: Optional[Tuple[str, ...]]  # None: the loss's own
    training: Training
    input_shape: Optional[Sizes]
    input_type: str  # f32, u8 or i32
    normalize_target: bool
    weighted: bool = False  # examples have weights

    @property
    def shape(self) -> Optional[Sizes]:
        """The shape of x for one example; None: nobody said."""
        return known_shape(self.layers) if self.input_shape is None else self.input_shape

    def names(self) -> List[str]:
        """What the layers are called, in the order of `every`. UsageError for names that are none."""
        names = Names(self.layers, self._reserved)
        return [names.of(layer)[0] for layer in every(self.layers)]

    @property
    def _reserved(self) -> Set[str]:
        own = {OTHER, SHARE} if any(layer.mixes for layer in every(self.layers)) else set()
        return RESERVED | {knob.name for knob in self.optimizer.knobs} | set(self.reported) | own

    def text(self, compiled: bool = False) -> str:
        """The model file. `compiled`: what is compiled, which has no seed and the usual numbers of the knobs, so
        that networks that differ in them alone are compiled once. UsageError: layers, loss and metrics do not fit."""
        training = replace(self.training, seed=None) if compiled else self.training
        model = ModelBlock(self.layers, self._reserved)
        x = self._input()
        output = model.stack(self.layers, x)
        y = self.loss.target(output)
        reports = self._reports(model, output)
        parts = [
            "# Written by mtc.Sequential.\n" + self._params(compiled),
            *model.definitions,
            block("data", self._data(x, y)),
            block("model", model.lines),
            block("train", self._train(self._loss(model, output), reports) + training.lines()),
        ]
        return "\n".join(parts)

    def _params(self, compiled: bool) -> str:
        numbers = [(knob, knob.usual if compiled else knob.value) for knob in self.optimizer.knobs]
        lines = [Line(f"param {knob.name}", knob.text(number), knob.help) for knob, number in numbers]
        return "".join(f"{row}\n" for row in laid_out(lines))

    def _input(self) -> Value:
        if self.shape is None:
            raise UsageError(
                f"the first layer, {self.layers[0]!r}, does not tell the shape of an example: give input_shape=, "
                "without the batch, such as (1, 28, 28) of images [channels, rows, columns] or (64,) of 64 numbers"
            )
        return Value("x", self.shape, self.layers[0].classes, from_data=True)

    def _data(self, x: Value, y: str) -> List[Line]:
        sizes = shape_text(x.shape) if x.shape else ""
        kind = f"class[{x.classes}]" if x.classes else self.input_type
        return [
            Line("train", 'npz("train.npz")', "with arrays x, y and sample_weight" if self.weighted else "with arrays x and y"),
            Line("test", 'npz("test.npz")'),
            Line("x", kind + sizes, mark=":"),
            Line("y", y, mark=":"),
            *([Line("sample_weight", "f32", "what the example counts", mark=":")] if self.weighted else []),
        ]

    @property
    def reported(self) -> Tuple[str, ...]:
        """The names of its metrics."""
        return tuple(self.loss.metrics)[:1] if self.metrics is None else self.metrics

    def _reports(self, model: ModelBlock, output: Value) -> List[str]:
        """The metrics in the words of the language. Adds to the model block what they and the loss need."""
        model.define(self.loss.definition)
        prediction = output.name
        if self.normalize_target:
            prediction = "prediction"
            model.lines.append(Line(prediction, f"denormalize({output.name}, y)"))
        is_probability = isinstance(output.layer, Sigmoid)
        score = f"{output.name} - 0.5" if is_probability else output.name
        probability = output.name if is_probability else f"sigmoid({output.name})"
        values = {"p": prediction, "x": output.name, "score": score, "probability": probability}
        return [self._report(model, name, **values) for name in self.reported]

    def _report(self, model: ModelBlock, name: str, **values: str) -> str:
        metric = self.loss.metrics.get(name) or self._metric_called(name)
        if metric is None:
            known = ", ".join(map(repr, self.loss.metrics))
            near = nearest(name, self.loss.metrics)
            raise UsageError(f"metrics of the loss {type(self.loss).__name__} are {known}, not {name!r}{near}")
        text = metric.text.format(**values)
        if not metric.definition and not metric.called:
            return text
        model.define(metric.definition)
        model.lines.append(Line(name, text))
        return name

    def _metric_called(self, name: str) -> Optional[Metric]:
        """The metric of the loss that other packages call so."""
        operator = operator_called(name)
        metric = operator and self.loss.metrics.get(operator["name"])
        return replace(metric, called=True) if metric else None

    def _loss(self, model: ModelBlock, output: Value) -> str:
        """The loss in the words of the language; of mixed examples, of both, each by its share."""
        if model.mixed and self.normalize_target:
            raise UsageError(f"normalize_target does not go with {model.mixed.layer!r}, which mixes examples with their y as they are: "
                             "give y that is normalized")
        own = self.loss.write(output, "normalize(y)" if self.normalize_target else "y")
        return f"{SHARE} * {own} + (1 - {SHARE}) * {self.loss.write(output, OTHER)}" if model.mixed else own

    def _train(self, loss: str, reports: Sequence[str]) -> List[Line]:
        watched = ("loss", *self.reported)
        if self.training.monitor not in (None, *watched):
            raise UsageError(f"monitor is one of {', '.join(map(repr, watched))}, not {self.training.monitor!r}")
        lines = [Line("loss", loss)]
        if reports:
            lines.append(Line("metric", reports[0] if len(reports) == 1 else value_text(list(reports))))
        if self.weighted:
            lines.append(Line("example_weight", "sample_weight"))
        if self.normalize_target:
            lines.append(Line("predict", "prediction"))
        return [*lines, Line("optimizer", self.optimizer.render())]
