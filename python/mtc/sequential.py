"""Networks from lists of layers, as Keras and PyTorch write them.

    nn = mtc.Sequential([mtc.Linear(784, 128), mtc.ReLU(), mtc.Linear(128, 10)], optimizer=mtc.Adam(1e-3), batch=64)
    nn.fit(X_train, y_train, epochs=10, validation_data=(X_test, y_test))
    print(nn.source)

A Sequential writes a model file, `source`, and is the Model that mtc makes of it. The file works from the command line,
too, with the arrays x and y in train.npz and test.npz.
"""

from __future__ import annotations

from typing import Any, FrozenSet, Iterator, Optional, Sequence, Tuple, Union

from .arrays import to_numpy
from .assignment import Given
from .errors import DataError, FileError, UsageError
from .flags import of_network
from .habits import OF_ONES_OWN
from .layer import Layer, nested
from .library import Session
from .losses import ALIASES, LOSSES, CrossEntropy, Loss
from .model import Model, PathLike
from .optimizers import Optimizer, Several, optimizers_of
from .spec import chosen, nearest, told_arguments, whole
from .toolchain import Source
from .writing import Network, Training, parts

# Names of NumPy, PyTorch and the language for the numbers of x.
INPUT_TYPES = {"float32": "f32", "f32": "f32", "uint8": "u8", "u8": "u8", "int32": "i32", "i32": "i32"}


def _refuse_layers(kind: type, values: Tuple[Any, ...]) -> None:
    if values and isinstance(values[0], Layer):
        shown = ", ".join(f"{type(value).__name__}(...)" for value in values if isinstance(value, Layer))
        raise UsageError(f"{kind.__name__} is a list of layers, not {values[0]!r}: {kind.__name__}([{shown}])")


class Sequential(Model):
    """A network whose layers follow each other, with its training. Compiled when that is first needed.

    layers           layers; lists in the list, and other networks, stand for their layers
    loss             "cross_entropy" (y: classes), "bce" (y: numbers from 0 to 1), "mse", "mae", "huber" (y: numbers),
                     "soft_cross_entropy" (y: distributions), or an object such as mtc.Huber(delta=2)
    optimizer        mtc.Adam(1e-3), mtc.SGD(mtc.OneCycle(0.4), momentum=0.9), ..., or its name, "adam"; or a
                     list, each for some weights: [mtc.AdamW(1e-3), mtc.SGD(0.1, weights="*.bias")]
    batch            examples of a step; 64 where it is not given, also of data that are fewer, and 32 in a text of one's own
    metrics          what is reported beside the loss; None: "accuracy" of classes, "mae" of numbers
    input_shape      the shape of one example of x, where the first layer does not tell it: (1, 28, 28) for Conv2d
    input_dtype      how x is stored: "f32", "u8" or "i32". Where an Embedding or OneHot comes first, x is classes
    normalize_target the network learns (y - mean) / std of the training examples, and predicts in y's own scale
    label_smoothing  of "cross_entropy"
    epochs           fit's default
    seed             of initial weights, order of examples and dropout
    accumulate       steps whose gradients make one update
    clip_value, clip_norm   limits of each element of a gradient, and of the length of all together
    ema              decay of the moving average of the weights that evaluation uses
    freeze, no_decay patterns of names of weights that are not trained, or have no weight decay: "linear1.*"
    monitor          the report that decides which weights are best: "loss", or a metric
    patience         training ends after so many evaluations without a better one
    precision        "fp32", "tf32", "tf32x3", "bf16", "fp16" or "fp8": what products are computed in
    target, arch, schedule, recompute, device, gpus, processes, shards, sums   as for mtc.compile

    The learning rate, and a weight decay that is given, are changed by `set(lr=...)` and need no new compile; sizes do.
    Raises UsageError for layers that do not fit each other, before anything is compiled.
    """

    __slots__ = ("_network",)

    @told_arguments({"batch_size": "batch", "lr": "optimizer", "learning_rate": "optimizer"}, refuse=_refuse_layers)
    def __init__(
        self,
        layers: Sequence[Any],
        loss: Union[str, Loss] = "cross_entropy",
        optimizer: Union[str, Optimizer, Sequence[Union[str, Optimizer]]] = "adam",
        batch: int = 64,
        *,
        metrics: Union[None, str, Sequence[str]] = None,
        input_shape: Union[None, int, Sequence[int]] = None,
        input_dtype: Any = "f32",
        normalize_target: bool = False,
        label_smoothing: float = 0.0,
        epochs: int = 10,
        seed: Optional[int] = None,
        accumulate: int = 1,
        clip_value: Optional[float] = None,
        clip_norm: Optional[float] = None,
        ema: Optional[float] = None,
        freeze: Union[str, Sequence[str]] = (),
        no_decay: Union[str, Sequence[str]] = (),
        monitor: Optional[str] = None,
        patience: Optional[int] = None,
        precision: Optional[str] = None,
        target: Optional[str] = None,
        arch: Optional[str] = None,
        schedule: Optional[str] = None,
        recompute: Optional[bool] = None,
        device: int = 0,
        gpus: Optional[int] = None,
        processes: Optional[int] = None,
        shards: Optional[int] = None,
        sums: Optional[str] = None,
    ) -> None:
        training = Training(
            batch=batch,
            epochs=epochs,
            seed=seed,
            accumulate=accumulate,
            clip_value=clip_value,
            clip_norm=clip_norm,
            ema=ema,
            freeze=freeze,
            no_decay=no_decay,
            monitor=monitor,
            patience=patience,
            precision=precision,
        )
        self._network = Network(
            layers=_layers(layers),
            loss=_loss(loss, label_smoothing, normalize_target),
            optimizer=optimizers_of(optimizer),
            metrics=None if metrics is None else _words(metrics),
            training=training,
            input_shape=None if input_shape is None else _shape(input_shape),
            input_type=_input_type(input_dtype),
            normalize_target=bool(normalize_target),
        )
        if self._network.shape is None:  # it may be a part of another network, which tells the shape
            self._network.names()
        else:
            self._network.text()
        knobs = {knob.name: knob.value for knob in self._network.optimizer.knobs}
        super().__init__(
            target=target,
            arch=arch,
            schedule=schedule,
            recompute=recompute,
            device=device,
            gpus=gpus,
            processes=processes,
            shards=shards,
            sums=sums,
            seed=training.seed,
            params=knobs,
            name="sequential",
        )

    @property
    def source(self) -> str:
        """The model file that it wrote, in the layout of `mtc --format`."""
        return self._network.text()

    def _compiled(self) -> Source:
        return Source(None, self._network.text(compiled=True), f"<{self._name}>")

    def _changeable(self, source: Source) -> FrozenSet[str]:
        return frozenset(self._params)  # its params are written as flags of the program

    def _given(
        self, X: Any, y: Any, weight: Any = None, what: Tuple[str, str, str] = ("X", "y", "sample_weight")
    ) -> Given:
        if weight is not None:
            self._weigh()
        given = super()._given(X, y, weight, what)
        if "y" in given:
            self._check_targets(*given["y"])
        return given

    def _weigh(self) -> None:
        """The text says that examples have weights. Where it was compiled without them, that is another program: weights of the
        network and params go over to it, but no training."""
        if self._network.weighted:
            return
        before = self._session
        if before is not None and before.status()["step"]:
            raise UsageError(
                "the network was trained without sample_weight, and with it is compiled to another program: reset() begins anew; "
                "give sample_weight to the first fit, ones where each example counts the same"
            )
        kept = None if before is None else self.state_dict()
        params = {**self._knobs, **({} if before is None else before.status()["params"])}
        self._network = self._network._replace(weighted=True)
        self._library = None
        self._drop_session()
        if params:
            self.set(**params)
        if kept is not None:
            self.load_state_dict(kept)

    def _confusion_cure(self) -> str:
        if "confusion" not in self.loss.metrics:
            return f", and cannot have it: its loss, {type(self.loss).__name__}, is of numbers and not of classes"
        reported = [*self._network.reported, "confusion"]
        return (f": mtc.Sequential(..., metrics={reported}) has it counted in evaluations; other.load_state_dict(this.state_dict()) "
                "takes the weights over")

    def advice(self, text: str) -> str:
        return of_network(super().advice(text))

    def _load_own(self, session: Session, split: str, folder: Optional[PathLike]) -> int:
        try:
            return super()._load_own(session, split, folder)
        except FileError as error:
            raise UsageError(f"give X and y: a {type(self).__name__} has no data of its own, unless {split}.npz, with arrays x and y, "
                             f"lies in the working folder or in data=FOLDER") from error

    def _check_targets(self, y: Any, what: str) -> None:
        """That y is what the loss takes. What is no such array at all is told where it is converted."""
        if self.loss.targets is None:
            return
        try:
            numbers = to_numpy(y, what)
        except DataError:
            return
        shape = next(tuple(field["shape"]) for field in self.fields if field["name"] == "y")
        if numbers.size and numbers.dtype.kind in "biuf" and (numbers.shape[1:] or (1,)) == shape:
            self.loss.targets.check(numbers, what)

    @property
    def layers(self) -> Tuple[Layer, ...]:
        """The layers, in order."""
        return self._network.layers

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self._network.loss

    @property
    def optimizer(self) -> Union[Optimizer, Several]:
        """The optimizer, with the learning rate that it began with; several, where a list was given."""
        return self._network.optimizer

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __getitem__(self, index: int) -> Layer:
        return self.layers[index]

    def __repr__(self) -> str:
        settings = f"loss={self.loss!r}, optimizer={self.optimizer!r}, batch={self._network.training.batch}"
        rows = [*_tree(self.layers, iter(self._network.names())), settings]
        return "Sequential(\n" + "".join(f"  {row}\n" for row in rows) + ")"


def _tree(layers: Sequence[Layer], names: Iterator[str]) -> Iterator[str]:
    """A row for each layer; layers in layers are indented."""
    for layer in layers:
        name, inner = next(names), parts(layer)
        yield f"({name}): {type(layer).__name__ + '(' if inner else repr(layer)}"
        if inner:
            yield from (f"  {row}" for row in _tree(inner, names))
            yield ")"


def _layers(layers: Any) -> Tuple[Layer, ...]:
    flat = nested(layers, "Sequential")
    if not flat:
        raise UsageError("Sequential has no layers: give a list of them, such as [mtc.Linear(784, 10)]")
    return flat


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _loss(loss: Any, label_smoothing: float, normalize_target: bool) -> Loss:
    if _is_function(loss):
        raise UsageError(f"loss is no function of Python, which no step calls: {OF_ONES_OWN}")
    made: Loss = chosen(LOSSES, loss, Loss, "loss", ALIASES)
    if label_smoothing:
        if not isinstance(made, CrossEntropy):
            raise UsageError(f"label_smoothing belongs to the loss 'cross_entropy', not to {made!r}")
        made = CrossEntropy(label_smoothing)
    if normalize_target and not made.measures:
        measuring = ", ".join(repr(name) for name, kind in LOSSES.items() if kind.measures)
        raise UsageError(f"normalize_target is for y that are numbers, with one of {measuring}, not for {made!r}")
    return made


def _words(metrics: Union[str, Sequence[str]]) -> Tuple[str, ...]:
    words = (metrics,) if isinstance(metrics, str) or not hasattr(metrics, "__iter__") else tuple(metrics)
    for word in words:
        if _is_function(word):
            raise UsageError(f"metrics are no functions of Python, which no step calls: {OF_ONES_OWN}")
        if not isinstance(word, str):
            raise UsageError(f"metrics are names, such as 'accuracy', not {word!r}")
    if len(set(words)) != len(words):
        raise UsageError(f"metrics names one twice: {', '.join(map(repr, words))}")
    return words


def _shape(shape: Union[int, Sequence[int]]) -> Tuple[int, ...]:
    sizes = shape if hasattr(shape, "__iter__") else (shape,)
    return tuple(whole(size, "each size of input_shape, the shape of one example,", 1) for size in sizes)


def _input_type(dtype: Any) -> str:
    word = str(getattr(dtype, "__name__", None) or dtype).rsplit(".", 1)[-1]
    if word not in INPUT_TYPES:
        raise UsageError(f"input_dtype is 'f32', 'u8' or 'i32', not {dtype!r}{nearest(word, INPUT_TYPES)}")
    return INPUT_TYPES[word]
