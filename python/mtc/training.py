"""A training in epochs: what it records, what may watch it, and what ends it.

The program trains; Python is called some 20 times a second to show where it stands, and at the end of each epoch.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import numbers
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Collection, Iterator, Mapping, NamedTuple, NoReturn, Optional, Sequence, Union

from . import outputs
from .errors import FileError, MtcError, TrainingWarning, UsageError, users_frame
from .habits import EARLY_STOPPING, hint
from .spec import nearest, whole

if TYPE_CHECKING:
    from .library import Library
    from .model import Model
    from .ranks import Ranks

PathLike = Union[str, "os.PathLike[str]"]


class History(dict[str, list[float]]):
    """What a training reported: for each name ("loss", "accuracy", "val_loss", ...) a list of a number for each epoch.

    epochs     the numbers of these epochs, counted from the first that the weights ever saw
    seconds    how long the training took
    stopped    why it ended before its last epoch: "early_stopping", "callback", "interrupted"; else None
    best_epoch the epoch that early stopping or save_best found best; else None
    model, batch, steps_per_epoch    whose training it was
    """

    def __init__(self, model: str = "", batch: int = 0, steps_per_epoch: int = 0):
        super().__init__()
        self.model, self.batch, self.steps_per_epoch = model, batch, steps_per_epoch
        self.epochs: list[int] = []
        self.seconds = 0.0
        self.stopped: Optional[str] = None
        self.best_epoch: Optional[int] = None

    def __missing__(self, name: str) -> list[float]:
        hint = f"; it is an attribute: history.{name}" if name in vars(self) else nearest(name, self)
        raise KeyError(f"{name!r} is not recorded; recorded are {', '.join(self)}{hint}")

    @property
    def history(self) -> History:
        """Itself, where Keras has another object: ``history.history["loss"]``."""
        return self

    def __repr__(self) -> str:
        from .display import history_repr

        return history_repr(self)

    def _repr_html_(self) -> str:
        from .display import history_html

        return history_html(self)

    def to_jsonl(self, path: PathLike) -> None:
        """Writes it as a log that ``mtc plot`` reads. Raises FileError: it cannot, or the file is one of another
        kind."""
        from .plotting import log_of

        outputs.write_text(path, log_of(self), outputs.LOG)

    def append(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Adds an epoch."""
        self.epochs.append(epoch)
        for name, value in logs.items():
            self.setdefault(name, []).append(value)


class Callback:
    """Watches a training. Subclasses define what they need; each is called by the thread that called ``fit``.

    At the end of an epoch nothing is in flight: the model may be evaluated, saved, asked, and its params set.
    """

    def on_begin(self, model: Model) -> None:
        """Before the first step."""

    def on_epoch(self, model: Model, epoch: int, logs: dict[str, float]) -> Optional[bool]:
        """After each epoch, with its number, from 1 and over all trainings, and its reports. True ends the training."""

    def on_end(self, model: Model, history: History) -> None:
        """After the last step, also where something was raised."""


class _FunctionCallback(Callback):
    """A function as a callback: ``function(model, epoch, logs)``."""

    def __init__(self, function: Callable[..., Optional[bool]]):
        self.on_epoch = function  # type: ignore[method-assign]


def as_callback(given: Any) -> Callback:
    """A Callback, what has its methods, or a function (model, epoch, logs) -> bool or None. Raises UsageError."""
    if isinstance(given, type):
        raise UsageError(f"callbacks are objects: {given.__name__}(), not the class")
    if callable(getattr(given, "on_epoch", None)):
        return given if isinstance(given, Callback) else _Adapted(given)
    if callable(given):
        return _FunctionCallback(given)
    raise UsageError(f"a callback is an mtc.Callback, or a function (model, epoch, logs), not {type(given).__name__}")


class _Adapted(Callback):
    """An object with some of Callback's methods."""

    def __init__(self, given: Any):
        for name in ("on_begin", "on_epoch", "on_end"):
            if hasattr(given, name):
                setattr(self, name, getattr(given, name))


# ---- which epoch is best ----


class EarlyStopping:
    """Ends a training that gets no better.

    monitor       "val_loss", "accuracy", ...; None: the model's ``monitor``, of the validation data where there are any
    patience      epochs without a better one, after which training ends
    restore_best  whether the model then has the weights of the best epoch: also where training came to its last epoch
    min_delta     by how much a better epoch must be better
    """

    def __init__(self, monitor: Optional[str] = None, patience: int = 5, restore_best: bool = True,
                 min_delta: float = 0.0, **unknown: NoReturn):
        if unknown:
            name, known = next(iter(unknown)), ("monitor", "patience", "restore_best", "min_delta")
            raise TypeError(f"EarlyStopping has no argument '{name}'{hint(name, EARLY_STOPPING, known)}")
        patience = whole(patience, "patience, epochs without a better one,", 1)
        if monitor is not None and not isinstance(monitor, str):
            raise UsageError(f"monitor is the name of a report, such as 'val_loss', not {monitor!r}; "
                             f"early_stopping={monitor!r} is a patience")
        if not isinstance(min_delta, numbers.Real) or not min_delta >= 0:
            raise UsageError(f"min_delta is 0 or more, not {min_delta!r}")
        self.monitor, self.patience, self.restore_best, self.min_delta = monitor, patience, restore_best, min_delta

    def __repr__(self) -> str:
        return (f"EarlyStopping(monitor={self.monitor!r}, patience={self.patience}, restore_best={self.restore_best}, "
                f"min_delta={self.min_delta})")


def as_early_stopping(given: Union[None, bool, int, EarlyStopping]) -> Optional[EarlyStopping]:
    """None or False: none; True: with its defaults; a number: its patience."""
    if given is None or isinstance(given, EarlyStopping):
        return given
    if type(given).__name__ in ("bool", "bool_"):
        return EarlyStopping() if given else None
    if isinstance(given, numbers.Integral):
        return EarlyStopping(patience=int(given))
    raise UsageError(f"early_stopping is a number of epochs or an mtc.EarlyStopping, not {given!r}")


def watchers_of(callbacks: Any, early_stopping: Union[None, bool, int, EarlyStopping]) -> tuple[list[Callback], Optional[EarlyStopping]]:
    """The callbacks, and when to stop, which may stand among them as in Keras. Raises UsageError."""
    given = callbacks if isinstance(callbacks, Sequence) else [] if callbacks is None else [callbacks]
    among = [each for each in given if isinstance(each, EarlyStopping)]
    rules = [rule for rule in (*among, as_early_stopping(early_stopping)) if rule]
    if len(rules) > 1:
        raise UsageError(f"there are {len(rules)} rules of early stopping, {', '.join(map(repr, rules))}: give one")
    return [as_callback(each) for each in given if each not in among], rules[0] if rules else None


class Judge:
    """Which epoch had the best value of a report."""

    def __init__(self, name: str, rises: bool, min_delta: float = 0.0):
        self.name, self.rises, self.min_delta = name, rises, min_delta
        self.best, self.best_epoch, self.since = math.nan, 0, 0

    def better(self, epoch: int, logs: Mapping[str, float]) -> bool:
        """Whether this epoch is the best so far."""
        value = logs[self.name]
        gain = value - self.best if self.rises else self.best - value
        first = math.isnan(self.best) and not math.isnan(value)
        if first or gain > self.min_delta:
            self.best, self.best_epoch, self.since = value, epoch, 0
            return True
        self.since += 1
        return False


def judge_of(model_description: Mapping[str, Any], monitor: Optional[str], validated: bool,
             min_delta: float = 0.0) -> Judge:
    """The judge for a name such as "val_loss". Raises UsageError, with the nearest name."""
    rises = {report["name"]: bool(report["rises"]) for report in model_description["reports"]}
    over_set = {report["name"] for report in model_description["reports"] if report["over_set"]}
    names = [*(name for name in rises if name not in over_set), *(f"val_{name}" for name in rises if validated)]
    if monitor is None:
        monitor = ("val_" if validated else "") + model_description["monitor"]
    if monitor not in names:
        unseen = (monitor.startswith("val_") or monitor in over_set) and not validated
        why = "; there are no validation data" if unseen else nearest(monitor, names)
        raise UsageError(f"there is no '{monitor}' to monitor{why or '; there are ' + ', '.join(names)}")
    return Judge(monitor, rises[monitor] if monitor in rises else rises[monitor[len("val_") :]], min_delta)


def best_path(checkpoint: PathLike) -> Path:
    """``m-best.safetensors`` beside ``m.safetensors``, as programs call it."""
    path = Path(checkpoint)
    return path.with_name(f"{path.stem}-best.safetensors")


def best_file(save_best: Union[bool, PathLike], checkpoint: Optional[PathLike]) -> Optional[Path]:
    """Where ``fit`` keeps the best epoch's weights. Raises UsageError: beside a checkpoint that there is not."""
    if save_best is True and checkpoint is None:
        raise UsageError("save_best=True writes beside the checkpoint: give checkpoint='m.safetensors', or "
                         "save_best='best.safetensors'")
    if save_best is True and checkpoint is not None:
        return best_path(checkpoint)
    return None if isinstance(save_best, bool) else Path(save_best)


class Files(NamedTuple):
    """The files that a training writes."""

    checkpoint: Optional[PathLike] = None
    best: Optional[PathLike] = None  # save_best
    log: Optional[PathLike] = None

    def check(self, own: Collection[str]) -> None:
        """Raises FileError where one would replace a file of another kind, or weights of others that the training does not go on from;
        UsageError where two are one file; before anything is done. ``own`` as of `note_replaced`."""
        for path in (self.checkpoint, self.best):
            if path is not None:
                outputs.check_weights(path, own)
        if self.log is not None:
            outputs.check(self.log, outputs.LOG)
        named = [(name, os.fspath(path), os.path.realpath(path)) for name, path in self._asdict().items() if path is not None]
        for (name, path, real), (other, _, same) in itertools.combinations(named, 2):
            if real == same and (os.path.isfile(path) or not os.path.exists(path)):
                raise UsageError(f"{path}: {_ARGUMENTS[name]} and {_ARGUMENTS[other]} are one file; each needs its own")

    @contextlib.contextmanager
    def alone(self, library: Library) -> Iterator[None]:
        """Files that no other training writes meanwhile. Raises FileInUse."""
        with contextlib.ExitStack() as held:
            for name in ("log", "checkpoint", "best"):  # the order of programs
                path = getattr(self, name)
                if path is not None:
                    held.enter_context(library.alone(_ARGUMENTS[name], path))
            yield

    def note_replaced(self, own: Collection[str]) -> None:
        """Warns of a checkpoint of another training that this one's replaces. ``own``: the real paths of those that this one has
        written or goes on from; a name behind the checkpoint's, as m-best is behind m, is one of the same training."""
        if self.checkpoint is None or not os.path.isfile(self.checkpoint) or not os.path.getsize(self.checkpoint):
            return
        if outputs.is_named_after(os.path.realpath(self.checkpoint), own):
            return
        from .weightfile import step_of

        step = step_of(self.checkpoint)
        what = "" if step is None else f", of step {step}"
        warnings.warn(f"{os.fspath(self.checkpoint)} is there already{what}: this training replaces it", TrainingWarning,
                      stacklevel=users_frame()[0])


_ARGUMENTS = {"checkpoint": "checkpoint", "best": "save_best", "log": "log"}  # what fit calls them


# ---- the log ----


def _number(value: float) -> Optional[float]:
    return value if math.isfinite(value) else None


class Log:
    """A log as programs write it: JSON, one object a line, which ``mtc plot`` reads (docs/program.md)."""

    def __init__(self, path: PathLike, *, goes_on: bool):
        self.path = os.fspath(path)
        try:
            if goes_on and os.path.exists(self.path):
                _cut_last_line(self.path)
            self.file = open(self.path, "a" if goes_on else "w", encoding="utf-8")
        except OSError as error:
            raise FileError(f"{self.path}: cannot write: {error.strerror}") from None
        self.began = time.perf_counter()

    def write(self, event: str, **numbers: Any) -> None:
        """A line, which is in the file when this returns."""
        line = {name: _number(value) if isinstance(value, float) else value for name, value in numbers.items()}
        self.file.write(json.dumps({"event": event, **line}, ensure_ascii=False) + "\n")
        self.file.flush()

    @property
    def seconds(self) -> float:
        """Since it was opened."""
        return time.perf_counter() - self.began

    def close(self) -> None:
        """Ends it."""
        self.file.close()


def _cut_last_line(path: str) -> None:
    """What a killed program wrote of a last line is cut off."""
    with open(path, "r+b") as file:
        text = file.read()
        file.truncate(text.rfind(b"\n") + 1)


# ---- the training ----


class Plan(NamedTuple):
    """What a training does beside training."""

    epochs: int  # the last, counted from the first of all
    examples: int
    watched: Optional[str]  # "validation" or "test": which data are evaluated after each epoch
    verbose: Any = "auto"
    callbacks: Sequence[Callback] = ()
    early_stopping: Optional[EarlyStopping] = None
    files: Files = Files()
    resumed: Optional[PathLike] = None


class Training:
    """One call of ``fit``. Exceptions of what it calls end the training, and are raised after the program returned."""

    def __init__(self, model: Model, plan: Plan):
        self.model, self.plan, self.session = model, plan, model.session
        about = self.session.description
        self.reports = [str(report["name"]) for report in about["reports"]]
        self.means = [str(report["name"]) for report in about["reports"] if not report["over_set"]]
        self.batch = int(about["batch"])
        self.steps_per_epoch = -(-plan.examples // self.batch)
        self.at = self.session.status()
        self.history = History(str(about["name"]).strip("<>"), self.batch, self.steps_per_epoch)
        self.raised: Optional[BaseException] = None  # by what the program called
        self.failed = False
        self.interrupted = False
        rule, watched = plan.early_stopping, bool(plan.watched)
        self.stopping = judge_of(about, rule.monitor, watched, rule.min_delta) if rule else None
        self.saving = judge_of(about, rule.monitor if rule else None, watched) if plan.files.best else None
        self.best: dict[str, Any] = {}  # tensors of the best epoch
        self.best_step = 0
        self.log: Optional[Log] = None

    # ---- from the first step to the last ----

    def run(self) -> History:
        """Trains. Raises what a callback raised, KeyboardInterrupt, or what the program failed with."""
        plan, began = self.plan, time.perf_counter()
        step, epoch = int(self.at["step"]), int(self.at["epoch"])
        last = step - int(self.at["epoch_step"]) + (plan.epochs - epoch) * self.steps_per_epoch
        from .progress import progress

        self.progress = progress(plan.verbose, last, plan.epochs, self.means, first_step=step, first_epoch=epoch,
                                 batch=self.batch)
        try:
            if plan.files.log is not None:
                self._open_log(last)
            for callback in plan.callbacks:
                callback.on_begin(self.model)
            with self.model.ranks() as ranks:
                self._train(ranks)
        except BaseException as error:
            self.failed = True
            self._write_log("fault", message=str(error) or type(error).__name__)
            raise
        finally:
            self.history.seconds = time.perf_counter() - began
            self._end()
        if self.interrupted:
            raise KeyboardInterrupt(self._interruption())
        return self.history

    def _train(self, ranks: Optional[Ranks]) -> None:
        plan = self.plan
        pauses = bool(plan.callbacks or plan.early_stopping or plan.files.checkpoint or plan.files.best)
        with deferred_interrupt(self._interrupt):
            try:
                self.session.fit(plan.epochs, self._guard(self._on_steps), self._guard(self._on_epoch), pauses=pauses,
                                 warn=self._on_warning if self.model.advised else None, ranks=ranks)
            except MtcError:
                if self.raised is None:
                    raise
        if self.raised is not None:
            raise self.raised

    def _end(self) -> None:
        """In the order of what must not be left out; where more than one fails, Python tells of all."""
        with contextlib.ExitStack() as last:
            for callback in reversed(self.plan.callbacks):
                last.callback(callback.on_end, self.model, self.history)
            if self.log:
                last.callback(self.log.close)
            last.callback(self.progress.close)
            if self.stopping and self.best:
                last.callback(self._restore_best)
            if not self.failed:
                steps = self.session.status()["step"]
                last.callback(self._write_log, "end", steps=steps, train_seconds=self.history.seconds)
            if self.interrupted:
                self.history.stopped = "interrupted"
                if self.plan.files.checkpoint is not None:  # the steps of the running epoch are not lost
                    last.callback(self.model.save, self.plan.files.checkpoint)

    def _interruption(self) -> str:
        """What a user wants to know after Ctrl-C."""
        at, file = self.session.status(), self.plan.files.checkpoint
        steps = int(at["step"]) - int(self.at["step"])
        where = f"in epoch {int(at['epoch']) + 1}" if at["epoch_step"] else f"at the end of epoch {int(at['epoch'])}"
        text = f"training was interrupted after {steps} step{'s' * (steps != 1)}, {where}"
        if file is None:
            return f"{text}; no checkpoint was written (checkpoint=FILE); the model keeps what it has learned"
        return f"{text}; the checkpoint was written: fit(..., resume={os.fspath(file)!r}) goes on from that step"

    def _interrupt(self) -> None:
        self.interrupted = True

    def _guard(self, function: Callable[..., bool]) -> Callable[..., bool]:
        """ctypes would print an exception and go on."""

        def guarded(*arguments: Any) -> bool:
            if self.raised is not None or self.interrupted:
                return True
            try:
                return function(*arguments) or self.interrupted
            except BaseException as error:
                self.raised = error
                return True

        return guarded

    # ---- what the program calls ----

    def _on_steps(self, step: int, means: Any) -> bool:
        values = means[: len(self.means)]
        self.progress.update(step, values)
        if self.log:
            self._log_steps(step, values)
        return False

    def _on_warning(self, text: str) -> None:
        """Where warnings are errors, it ends the training."""
        try:
            warnings.warn(self.model.advice(text), TrainingWarning, stacklevel=users_frame()[0])
        except BaseException as error:
            self.raised = self.raised or error

    def _on_epoch(self, epoch: int, means: Any, watched: Any) -> bool:
        logs = dict(zip(self.means, means[: len(self.means)]))
        if watched:
            logs.update(zip((f"val_{name}" for name in self.reports), watched[: len(self.reports)]))
        self.history.append(epoch, logs)
        if self.log:
            self._log_epoch(epoch, logs)
        self.progress.epoch(epoch, logs)
        stop = self._judge(epoch, logs)
        if self.plan.files.checkpoint is not None:
            self.model.save(self.plan.files.checkpoint)
        return self._ask_callbacks(epoch, logs) or stop

    def _ask_callbacks(self, epoch: int, logs: dict[str, float]) -> bool:
        """All of them are asked, whatever the first says."""
        answers = [callback.on_epoch(self.model, epoch, logs) for callback in self.plan.callbacks]
        if any(answers):
            self.history.stopped = "callback"
        return any(answers)

    # ---- which epoch is best ----

    def _judge(self, epoch: int, logs: Mapping[str, float]) -> bool:
        if self.saving and self.saving.better(epoch, logs):
            self.history.best_epoch = epoch
            self.model.save(self.plan.files.best)  # type: ignore[arg-type]
        stopping, rule = self.stopping, self.plan.early_stopping
        if not stopping or not rule:
            return False
        if stopping.better(epoch, logs):
            self.history.best_epoch, self.best_step = epoch, int(self.session.status()["step"])
            self.best = self._tensors() if rule.restore_best else {}
        if stopping.since < rule.patience:
            return False
        self.history.stopped = "early_stopping"
        epochs = f"{rule.patience} epoch{'s' * (rule.patience > 1)}"
        self.progress.say(f"stopped: {epochs} without a better {stopping.name} than {stopping.best:.6g}, of epoch "
                          f"{stopping.best_epoch}")
        return True

    def _tensors(self) -> dict[str, Any]:
        """Copies of weights, buffers and states: what evaluation reads, and what further training begins with."""
        kept = [name for name, about in self.session.library.tensors.items() if about["role"] != "value"]
        return {name: self.session.get(name) for name in kept}

    def _restore_best(self) -> None:
        if self.session.status()["step"] == self.best_step:
            return
        for name, values in self.best.items():
            self.session.set(name, values)
        if self.history.stopped == "early_stopping" and self.plan.files.checkpoint is not None:
            self.model.save(self.plan.files.checkpoint)  # the file is what the model is, as those of programs are then

    # ---- the log ----

    def _open_log(self, last: int) -> None:
        plan, about = self.plan, self.session.description
        self.log = Log(plan.files.log, goes_on=plan.resumed is not None)  # type: ignore[arg-type]
        self.log_every = -(-self.steps_per_epoch // 10)
        # The last line's step, the step that its epoch began at, and the sums of its reports from there on.
        self.logged = (int(self.at["step"]), int(self.at["step"]), [0.0] * len(self.means))
        params = {**self.at["params"], **{each["name"]: each["value"] for each in about["fixed"]}}
        config = {key: about[key] for key in ("model_hash", "target", "schedule", "batch", "monitor")}
        self.log.write("config", model=about["name"].strip("<>"), source=about["source"], **config,
                       device=self.at["device"], seed=self.at["seed"], epochs=plan.epochs, steps=last,
                       steps_per_epoch=self.steps_per_epoch, log_every=self.log_every,
                       patience=plan.early_stopping.patience if plan.early_stopping else 0,
                       resumed_from=None if plan.resumed is None else os.fspath(plan.resumed),
                       train_examples=plan.examples, train=about["train"], params=params)

    def _write_log(self, event: str, **numbers: Any) -> None:
        if self.log:
            self.log.write(event, **numbers)

    def _examples(self, steps: int) -> int:
        """Of the first so many steps of an epoch: the last batch may be smaller."""
        return min(steps * self.batch, self.plan.examples)

    def _log_steps(self, step: int, means: Sequence[float]) -> None:
        """Means since the last line, from those over the running epoch."""
        before, begin, sums = self.logged
        in_epoch = (step - 1 - self.first_of_epochs) % self.steps_per_epoch + 1
        epoch_begin = step - in_epoch
        if step - before < self.log_every:
            return
        if epoch_begin != begin:
            before, sums = max(before, epoch_begin), [0.0] * len(sums)
        now = [mean * self._examples(in_epoch) for mean in means]
        examples = self._examples(in_epoch) - self._examples(before - epoch_begin)
        if examples > 0 and self.log:
            since = {name: (new - old) / examples for name, new, old in zip(self.means, now, sums)}
            epoch = int(self.at["epoch"]) + (epoch_begin - self.first_of_epochs) // self.steps_per_epoch + 1
            self.log.write("train", step=step, epoch=epoch, **since, seconds=self.log.seconds)
        self.logged = (step, epoch_begin, now)

    @property
    def first_of_epochs(self) -> int:
        """The step before the first one of the epoch that this training began in."""
        return int(self.at["step"]) - int(self.at["epoch_step"])

    def _log_epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        watched = {f"val_{name}": f"{self.plan.watched}_{name}" for name in self.reports}
        numbers = {name if name in self.means else watched[name]: value for name, value in logs.items()}
        step = self.first_of_epochs + (epoch - int(self.at["epoch"])) * self.steps_per_epoch
        self._write_log("epoch", epoch=epoch, step=step, **numbers, seconds=self.log.seconds if self.log else 0)


@contextlib.contextmanager
def deferred_interrupt(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls ``interrupt`` meanwhile: a KeyboardInterrupt could come between two lines that belong together. A
    handler that the user set stays; threads other than the main one get no signals."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
