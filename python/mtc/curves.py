"""The curves of trainings, read from histories and from logs (.jsonl), for plotting."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

SPLITS = {"train": "training", "validation": "validation", "val": "validation", "test": "test", "batch": "training"}
NO_METRICS = ("event", "step", "epoch", "seconds")


@dataclass
class Curve:
    """Points of one metric of one split, in the order of training."""

    metric: str
    split: str  # "training", "validation", "test"
    within: bool = False  # means over parts of epochs, not over whole ones
    points: list[tuple[float, float, float, float]] = field(default_factory=list)  # step, epoch, seconds, value

    def add(self, step: float, epoch: float, seconds: float, value: float) -> None:
        """Steps that a resumed training does again replace those that were lost."""
        while self.points and not self.points[-1][0] < step:
            self.points.pop()
        self.points.append((step, epoch, seconds, value))


@dataclass
class Run:
    """The curves of one training."""

    name: str
    model: str = ""
    curves: list[Curve] = field(default_factory=list)

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(curve.metric for curve in self.curves))

    def curve(self, key: str, within: bool = False) -> Curve:
        """That of "loss", "val_loss", "test_loss"; a prefix counts only where the rest is a metric by itself."""
        prefix, _, rest = key.partition("_")
        metric, split = (rest, SPLITS[prefix]) if prefix in SPLITS and rest in self.metrics else (key, "training")
        for curve in self.curves:
            if (curve.metric, curve.split, curve.within) == (metric, split, within):
                return curve
        self.curves.append(Curve(metric, split, within))
        return self.curves[-1]


def is_numbers(value: object) -> TypeGuard[Sequence[float]]:
    """Whether this is a list of a history."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and all(isinstance(item, (int, float)) or hasattr(item, "__float__") for item in value)
    )


def is_history(source: object) -> bool:
    return isinstance(source, Mapping) and bool(source) and all(is_numbers(values) for values in source.values())


def read_history(history: Mapping[str, Sequence[float]], name: str) -> Run:
    """A History, or any mapping of names such as "loss" and "val_loss" to a number for each epoch."""
    run = Run(name, getattr(history, "model", ""))
    count = max((len(values) for values in history.values()), default=0)
    epochs, seconds = numbers_of(history, "epochs", count), numbers_of(history, "seconds", count)
    steps = getattr(history, "steps_per_epoch", None) or math.nan
    epochs = epochs or [float(number + 1) for number in range(count)]
    for key in sorted(history, key=lambda key: key.startswith("val_")):
        curve = run.curve(key)
        # A metric of fewer numbers, such as of a validation that only a later fit had, ends with the last epoch.
        first = count - len(history[key])
        for index, value in enumerate(history[key], first):
            step = epochs[index] * (1 if math.isnan(steps) else steps)
            curve.add(step, epochs[index], seconds[index] if seconds else math.nan, float(value))
        if math.isnan(steps):
            curve.points = [(math.nan, *point[1:]) for point in curve.points]
    return run


def numbers_of(history: object, attribute: str, count: int) -> list[float]:
    """A list of the history that goes with its numbers; [] where it has none."""
    values = getattr(history, attribute, None)
    return [float(value) for value in values] if is_numbers(values) and len(values) == count else []


def read_log(path: Path, name: str) -> Run:
    """A .jsonl of `fit(log=...)` or of a program's --log. FileError, DataError: it cannot be read, or is none."""
    from .errors import FileError

    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror}") from error
    reader = LogReader(path, Run(name))
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        # A program that was killed may have left a part of its last line.
        reader.read(line, number, cut=number == len(lines) > 1 and not text.endswith("\n"))
    return reader.run


class LogReader:
    """Adds line after line to a run."""

    def __init__(self, path: Path, run: Run) -> None:
        self.path = path
        self.run = run
        self.steps_per_epoch = math.nan
        self.seconds = self.seconds_before = 0.0  # as last seen; of the trainings that this one goes on from
        self.configured = False

    def read(self, line: str, number: int, cut: bool) -> None:
        from .errors import DataError

        try:
            values = json.loads(line)
        except ValueError:
            values = None
        event = values.get("event") if isinstance(values, dict) else None
        if event is None and not cut:
            raise DataError(
                f"{self.path}:{number}: this is no log of a training, whose lines are JSON objects with an 'event'; "
                "fit(log=FILE) writes one"
            )
        if event == "config":
            self.read_config(values)
        elif event in ("train", "epoch", "test"):
            self.read_numbers(values, within=event == "train")

    def read_config(self, config: Mapping[str, Any]) -> None:
        """A second one begins a training that goes on where the one before stopped."""
        self.seconds_before = self.seconds
        if self.configured:
            return
        self.configured = True
        self.run.model = str(config.get("model", ""))
        steps, batch, examples = (config.get(key) for key in ("steps_per_epoch", "batch", "train_examples"))
        if steps is None and batch and examples:
            steps = math.ceil(examples / batch)
        self.steps_per_epoch = float(steps or math.nan)

    def read_numbers(self, line: Mapping[str, Any], within: bool) -> None:
        step, epoch, seconds = (as_float(line.get(key)) for key in ("step", "epoch", "seconds"))
        if not math.isnan(self.steps_per_epoch):
            epoch = step / self.steps_per_epoch
        self.seconds = self.seconds_before + (0 if math.isnan(seconds) else seconds)
        for key, value in line.items():
            if key not in NO_METRICS and (value is None or isinstance(value, (int, float))):
                self.run.curve(key, within).add(step, epoch, self.seconds, as_float(value))


def as_float(value: Any) -> float:
    """Of a log: null is a number that is NaN or infinite, or none."""
    return math.nan if value is None else float(value)


def read_runs(source: object) -> list[Run]:
    """A history, the path of a log, what has a history (a model, an estimator), or a list or a dict of those.

    Runs of a dict have its keys as names, logs the names of their files, histories "run 1", "run 2".
    UsageError: it is none of those, or holds no numbers.
    """
    from .errors import UsageError

    runs = [read_run(item, name) for item, name in named_sources(source)]
    if not any(curve.points for run in runs for curve in run.curves):
        raise UsageError("there is nothing to plot yet: no epoch is in the history or the log")
    return [run for run in runs if run.curves]


def named_sources(source: object) -> Iterable[tuple[object, str]]:
    if isinstance(source, Mapping) and not is_history(source) and not hasattr(source, "epochs"):
        return [(item, str(name)) for name, item in source.items()]
    if isinstance(source, (list, tuple)):
        names = [name_of(item, f"run {number}") for number, item in enumerate(source, 1)]
        whole = [str(item) if names.count(name) > 1 else name for item, name in zip(source, names)]
        return list(zip(source, whole))
    return [(source, name_of(source, "training"))]


def name_of(source: object, otherwise: str) -> str:
    return Path(source).stem if isinstance(source, (str, os.PathLike)) else otherwise


def read_run(source: object, name: str) -> Run:
    from .errors import UsageError

    if isinstance(source, (str, os.PathLike)):
        return read_log(Path(source), name)
    if isinstance(source, Mapping) and (not source or is_history(source)):
        return read_history(source, name)
    inner = getattr(source, "history_", getattr(source, "history", source))
    if inner is None or (inner is source and hasattr(source, "fit")):
        raise UsageError(f"there is nothing to plot yet: the {type(source).__name__} was not fitted")
    if isinstance(inner, Mapping) and inner is not source:
        return read_run(inner, name)
    raise UsageError(
        "plot() takes a History (what fit returns), the path of a log (.jsonl), or a list or dict of those, "
        f"not {type(source).__name__}"
    )
