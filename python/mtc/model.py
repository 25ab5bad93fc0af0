"""A compiled model: trained, asked, saved."""

from __future__ import annotations

import contextlib
import inspect
import os
import tempfile
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NoReturn, Optional, Sequence, TypeVar, Union

import numpy as np

from . import toolchain
from .answers import Answers
from .arrays import Field
from .assignment import Given, check_columns, everything, has_labels, label_of, unnamed_columns
from .errors import CompileError, DataError, UsageError, users_frame
from .feeding import SPLITS, divide, give, load
from .flags import of_warning
from .habits import FIT, MODEL, SETTINGS, hint, unexpected
from .library import TEST, TRAIN, VALIDATION, Library, Session, unknown
from .library import load as load_library
from .processes import scratch, tell_of_forks
from .ranks import Ranks, team_of
from .spec import nearest, whole
from .training import (Callback, EarlyStopping, Files, History, PathLike, Plan, Training, best_file,
                       watchers_of)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .parameters import LoadResult, Parameters, Rename

T = TypeVar("T")


def compile(model: PathLike, *, target: Optional[str] = None, arch: Optional[str] = None,
            batch: Optional[int] = None, precision: Optional[str] = None, schedule: Optional[str] = None,
            recompute: Optional[bool] = None, device: int = 0, seed: Optional[int] = None, gpus: Optional[int] = None,
            processes: Optional[int] = None, shards: Optional[int] = None, sums: Optional[str] = None, **params: float) -> Model:
    """Compiles a model file, or the text of one, for a device, which is opened by what first needs it.

    model      the path of a model file (ends in .mt), or its text (has several lines)
    target     "cuda" or "cpu"; None: CUDA where a GPU and nvcc are, else the CPU
    arch       GPUs to compile for, "native" or "sm_80,sm_90"; None: the one that is present
    batch      examples of a step; None: as the model says
    precision  "fp32", "tf32", "tf32x3", "bf16", "fp16" or "fp8": what products are computed in; None: as the model says
    schedule   "graph" or "persistent": how a step is launched on a GPU; None: what mtc --schedule auto takes
    recompute  less memory for more time: the backward pass computes values again rather than keep them; None: as the
               model says
    device     the number of the GPU
    seed       of initial weights, order of examples and dropout; None: the model's
    gpus       how many GPUs train, from number 0 on: ``fit`` starts a process for each further one
    processes  the same on the target "cpu": so many processes train, which share the processors
    shards     parts that a batch is computed in; None: as many as GPUs or processes, which must divide it
    sums       how GPUs add up: "peers", in each other's memory; "nccl", by NVIDIA's library; "host", through the host's
               memory; None: the first of these that they can
    params     values for the ``param``s of the model: those that shapes depend on are compiled in, ``set`` changes the
               others

    mtc's cache serves what was compiled before. Raises CompileError with the compiler's text. What only describes the
    model (summary, source, generated, fields, ...) needs no device; where there is no such device, or too little
    memory, the first use that needs it raises DeviceError.
    """
    made = Model(model, target=target, arch=arch, batch=batch, precision=precision, schedule=schedule, recompute=recompute,
                 device=device, seed=seed, gpus=gpus, processes=processes, shards=shards, sums=sums, params=params)
    made.library  # what is wrong with the model is told here
    return made


def _nearest_option(name: str) -> str:
    own = [*inspect.signature(compile).parameters, "X", "y", "data", "log", "self", "unknown"]
    if name in inspect.signature(Model.fit).parameters and name not in own:
        return f"; {name} is an argument of fit: model.fit(X, y, {name}=...)"
    return nearest(name, [each for each in inspect.signature(compile).parameters if each not in ("model", "params")])


def _count_unnamed(rest: Sequence[Any]) -> None:
    if rest:
        raise TypeError(f"fit() takes X and y without their names, and all else by name, such as epochs=10; got {2 + len(rest)} without: "
                        "the batch is the model's")


class Model(Answers):
    """A network with its training, on a device. Made by :func:`mtc.compile`, or by :class:`mtc.Sequential`.

    Any thread may use it: each method waits until those before have ended. Models are independent of each other.
    """

    # No others: what is set from habit, as model.trainable = False, would do nothing. Classes derived elsewhere have their own.
    __slots__ = ("lock", "history", "advised", "_source", "_name", "_options", "_device", "_seed", "_team", "_params", "_knobs", "_library",
                 "_session", "_closed", "_columns", "_held", "_checkpoints", "__weakref__")

    def __init__(self, model: Optional[PathLike] = None, *, target: Optional[str] = None, arch: Optional[str] = None,
                 batch: Optional[int] = None, precision: Optional[str] = None, schedule: Optional[str] = None,
                 recompute: Optional[bool] = None, device: int = 0, seed: Optional[int] = None, gpus: Optional[int] = None,
                 processes: Optional[int] = None, shards: Optional[int] = None, sums: Optional[str] = None,
                 params: Mapping[str, float] = {}, name: str = "model"):
        self.lock = threading.RLock()
        tell_of_forks(self, Model._forked)
        self.history: Optional[History] = None
        """Of the last training, also where it was interrupted."""
        self.advised = True  # hears of what a program would warn of
        self._source = None if model is None else toolchain.source_of(model, name)
        self._name = name
        self._device = whole(device, "device", 0)
        self._team = team_of(gpus, processes, sums, shards, self._device)
        self._team.check(toolchain.chosen_target(target, arch, schedule))
        parts = self._team.size if shards is None and self._team.size > 1 else shards
        self._options: dict[str, Any] = {"target": target, "arch": arch, "batch": batch, "precision": precision,
                                         "schedule": schedule, "recompute": recompute, "shards": parts}
        self._seed = None if seed is None else whole(seed, "seed", 0)
        self._params = {name: self._number(name, value) for name, value in params.items()}
        self._knobs: dict[str, float] = {}  # set at run time
        self._library: Optional[Library] = None
        self._session: Optional[Session] = None
        self._closed = False
        self._columns: Optional[list[str]] = None  # of the data frame that it was fitted with
        self._held: set[int] = set()  # data sets of the training that runs
        self._checkpoints: set[str] = set()  # that it has written or come from since it began

    # ---- what it is ----

    @property
    def source(self) -> str:
        """The text of the model."""
        return self._source.text if self._source else ""

    def _compiled(self) -> toolchain.Source:
        """What is compiled: a file, or the text of ``source``."""
        return self._source or toolchain.Source(None, self.source, f"<{self._name}>")

    @property
    def library(self) -> Library:
        """The compiled library; compiled when this is first read."""
        with self.lock:
            if self._library is None:
                self._library = self._compile()
            return self._library

    def _compile(self) -> Library:
        source = self._compiled()
        self._knobs = {}
        if self._params:
            changeable = self._changeable(source)
            self._knobs = {name: float(value) for name, value in self._params.items() if name in changeable}
        path = toolchain.compile_library(source, **self._compile_options())
        library = load_library(path, self._device)
        self._team.check(library.description["target"])
        return library

    def _compile_options(self) -> dict[str, Any]:
        fixed = {name: value for name, value in self._params.items() if name not in self._knobs}
        return {**self._options, "set": fixed}

    def _changeable(self, source: toolchain.Source) -> frozenset[str]:
        try:
            return toolchain.changeable(source, **self._options, set=self._params)
        except CompileError as error:
            strange = [name for name in self._params if f"error: {name}: the model has no param" in str(error)]
            if not strange:
                raise
            raise UsageError(self._unknown_param(strange[0], str(error))) from None

    @staticmethod
    def _number(name: str, value: Any) -> float:
        try:
            return float(toolchain.number_text(value, name))
        except UsageError as error:
            raise UsageError(f"{error}{_nearest_option(name)}") from None

    @staticmethod
    def _unknown_param(name: str, text: str) -> str:
        """What the compiler said of a param; and, since they are given together, which option may have been meant."""
        lines = text.replace(f"mtc: error: {name}: ", "").replace("mtc: note: ", "  ").split("\n")
        return "\n".join([lines[0] + ("" if "did you mean" in lines[0] else _nearest_option(name)), *lines[1:]])

    @property
    def session(self) -> Session:
        """The program's session; the device is opened when this is first read. Raises UsageError where the model is
        closed, DeviceError where there is no such device or too little memory."""
        with self.lock:
            if self._closed:
                raise UsageError("the model is closed")
            if self._session is None:
                self._session = self._open()
            return self._session

    def _open(self) -> Session:
        library = self.library
        session = Session(library, library.description["seed"] if self._seed is None else self._seed, self._device)
        try:
            for name, value in self._knobs.items():
                session.set_knob(name, value)
        except BaseException:
            session.close()
            raise
        return session

    @property
    def description(self) -> dict[str, Any]:
        """What the program says of itself: fields, tensors, params, memory, ... (mtc_describe, docs/program.md)."""
        return self.library.description

    @property
    def status(self) -> dict[str, Any]:
        """Where it stands: device, seed, steps and epochs done, params, bytes of the device's memory."""
        with self.lock:
            return self.session.status()

    @property
    def path(self) -> Path:
        """The compiled library, a file of this process."""
        return self.library.path

    @property
    def generated(self) -> str:
        """The CUDA C++ or C that it was compiled from."""
        return self.emit("cu" if self.description["target"] == "cuda" else "c")

    @property
    def batch(self) -> int:
        """Examples of a step."""
        return int(self.description["batch"])

    @property
    def precision(self) -> str:
        """What products are computed in: "fp32", "tf32", "tf32x3", "bf16", "fp16" or "fp8"."""
        return str(self._options["precision"] or self.description["train"].get("precision", "fp32"))

    @property
    def fields(self) -> list[Field]:
        """The fields of an example: name, type, shape, classes."""
        return list(self.description["fields"])

    @property
    def metrics(self) -> list[str]:
        """What is reported: "loss", and the names of the metrics."""
        return [str(report["name"]) for report in self.description["reports"]]

    @property
    def params(self) -> Parameters:
        """Weights and buffers by name: ``model.params["h.weight"]``."""
        from .parameters import Parameters

        return Parameters(self)

    def emit(self, stage: str) -> str:
        """A stage of the compilation as text, as ``mtc --emit=STAGE`` prints it: "graph", "plan.svg", ..."""
        with self.lock:
            return toolchain.emit(stage, self._compiled(), **self._emit_options())

    def summary_text(self) -> str:
        """Layers with shapes, parameters, arithmetic and memory."""
        with self.lock:
            return toolchain.summary(self._compiled(), **self._emit_options())

    def _emit_options(self) -> dict[str, Any]:
        return {**self._options, "set": self._params}

    def summary(self, print_fn: Callable[[str], object] = print) -> None:
        """Prints layers with shapes, parameters, arithmetic and memory."""
        print_fn(self.summary_text().rstrip("\n"))

    def __getattr__(self, name: str) -> NoReturn:
        """Of what there is not: what other packages call so, or which name is near."""
        public = [each for each in dir(type(self)) if not each.startswith("_")]
        near = "" if name.startswith("_") else hint(name, MODEL, public)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{near}")

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except AttributeError:
            raise AttributeError(f"cannot set '{name}' of a '{type(self).__name__}'{self._set_elsewhere(name)}") from None

    def _set_elsewhere(self, name: str) -> str:
        given = name in inspect.signature(type(self).__init__).parameters
        return ": it is given when a model is made" if given and name not in SETTINGS else hint(name, SETTINGS, ("history", *SETTINGS))

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a model is not called: model.predict(X) predicts, and model.predict_proba(X) has the probabilities of classes")

    def __repr__(self) -> str:
        if self._library is None:
            return f"<{type(self).__name__}, not compiled yet>"
        from .display import model_repr

        return model_repr(self)

    def _repr_html_(self) -> str:
        from .display import model_html

        return model_html(self)

    # ---- beginning and end ----

    def _begins_with(self, seed: Optional[int], resume: Optional[PathLike]) -> set[str]:
        """The real paths of the files that a training goes on from, or that it has written."""
        if resume is not None:
            return {os.path.realpath(resume)}
        return self._checkpoints if seed is None else set()

    def reset(self, seed: Optional[int] = None) -> Model:
        """Begins anew, with the initial weights of a seed; None: of the one before. Params stay. Returns the model."""
        with self._not_training("reset"):
            if seed is not None:
                self._seed = whole(seed, "seed", 0)
            elif self._session is not None:
                self._seed = int(self._session.status()["seed"])
            self._columns = None
            self._checkpoints = set()
            self._drop_session()
        return self

    def close(self) -> None:
        """Ends the model, and frees the device's memory; tensors that share it keep it until they are gone."""
        with self._not_training("close"):
            self._drop_session()
            self._closed = True

    def _drop_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    @contextlib.contextmanager
    def _not_training(self, what: str) -> Iterator[None]:
        with self.lock:
            if self._held:
                raise UsageError(f"{what} was called by a callback, while the model is training")
            yield

    def _forked(self) -> None:
        """In a fork no thread holds the lock, and nothing trains."""
        self.lock = threading.RLock()
        self._held = set()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied: save its weights (save, or state_dict) "
                        "and compile it again; mtc.Classifier and mtc.Regressor can be pickled")

    def set(self, **params: float) -> Model:
        """Sets params that are not compiled in, such as a learning rate: ``model.set(lr=1e-4)``. Returns the model."""
        with self.lock:
            known = {each["name"]: each for each in self.description["params"]}
            fixed = {each["name"]: each for each in self.description["fixed"]}
            for name, value in params.items():
                if name in fixed:
                    value = fixed[name]["value"]
                    raise UsageError(f"the param '{name}' is compiled in, as {value:g}: give it to mtc.compile")
                if name not in known:
                    raise UsageError(unknown("param", name, {**known, **fixed}))
                toolchain.number_text(value, name)
                self.session.set_knob(name, float(value))
                self._knobs[name] = float(value)
        return self

    # ---- training ----

    def fit(self, X: Any = None, y: Any = None, *rest: NoReturn, epochs: Optional[int] = None, validation_data: Any = None,
            validation_split: float = 0.0, sample_weight: Any = None,
            callbacks: Union[None, Callback, Callable[..., Any], Sequence[Any]] = (),
            verbose: Union[int, str] = "auto", early_stopping: Union[None, bool, int, EarlyStopping] = None,
            checkpoint: Optional[PathLike] = None, save_best: Union[bool, PathLike] = False,
            resume: Optional[PathLike] = None, log: Optional[PathLike] = None, seed: Optional[int] = None,
            data: Optional[PathLike] = None, **unknown: NoReturn) -> History:
        """Trains: the data are uploaded once, and the program trains by itself. Another ``fit`` goes on from there.

        X, y              arrays: X for the field that the prediction depends on (several: a dict by name, a tuple, a
                          data frame), y for the other one. Without X: the model's own data, of the folder ``data``
        epochs            so many; with ``resume`` in all, those before included. None: as the model says
        sample_weight     what each example counts in the loss and the metrics, [N]; None: one. Of a model whose train
                          block has ``example_weight = w``, a field; a Sequential has it where it is asked for
        validation_data   (X, y), or (X, y, sample_weight), evaluated after each epoch: "val_loss", ... Own data: the split validation, else test
        validation_split  a part of X and y to take for that instead, drawn by the seed
        callbacks         mtc.Callback objects, or functions (model, epoch, logs) that return True to end the training
        verbose           0 nothing, 1 a bar, 2 a line for each epoch, "auto": a bar on terminals and in notebooks
        early_stopping    epochs without a better one after which training ends, or mtc.EarlyStopping(...); the best
                          weights are restored
        checkpoint        a file that is written after each epoch, whole or not at all
        save_best         True: the best epoch's, as FILE-best.safetensors beside it; or a file of its own
        resume            a checkpoint to go on from, as if training had not stopped
        log               a file of JSON lines, which ``mtc plot`` and mtc.plot draw; with ``resume`` it goes on
        seed              begins anew with this seed

        Returns a History. Ctrl-C ends training after the steps in flight with KeyboardInterrupt; the model stays
        usable, and ``model.history`` has what was done. Raises DataError for what does not fit, DivergedError where the
        loss is NaN, FileError where checkpoint, save_best or log is a file of another kind. ``reset`` begins anew.
        """
        _count_unnamed(rest)
        if unknown:
            raise TypeError(self._unknown_argument(list(unknown)[0]))
        with self._not_training("fit"):
            if seed is not None and resume is not None:
                raise UsageError("seed begins a training anew, resume goes on with one: give one of them")
            if X is None and (y is not None or validation_split or sample_weight is not None):
                raise UsageError("y, sample_weight and validation_split belong to X, which is missing")
            if X is not None and data is not None:
                raise UsageError("data is the folder of the model's own data: leave it out, or X and y")
            asked = None if epochs is None else whole(epochs, "epochs", 1)
            watchers, stopping = watchers_of(callbacks, early_stopping)
            files = Files(checkpoint, best_file(save_best, checkpoint), log)
            files.check(self._begins_with(seed, resume))
            with files.alone(self.library):
                if seed is not None:
                    self.reset(seed)
                if sample_weight is not None:
                    self._weigh()
                if resume is not None:
                    self.resume(resume)
                files.note_replaced(self._checkpoints)
                try:
                    examples, watched = self._prepare(X, y, sample_weight, validation_data, validation_split, data)
                    plan = Plan(self._last_epoch(asked, resume is not None), examples, watched, verbose, watchers,
                                stopping, files, resume)
                    training = Training(self, plan)
                    self.history = training.history
                    return training.run()
                finally:
                    self._drop_data()

    def _unknown_argument(self, name: str) -> str:
        """What Python would say, and what else users of other packages look for."""
        if name == "batch_size":
            batch = f": a batch has {self.batch} examples; mtc.compile(..., batch=...) and mtc.Sequential change that"
            return unexpected(Model.fit, name, batch)
        return unexpected(Model.fit, name, hint(name, FIT, ()))

    def _last_epoch(self, asked: Optional[int], resumed: bool) -> int:
        status = self.session.status()
        if resumed:
            last, done = asked or int(status["epochs"]) or int(self.description["epochs"]), int(status["epoch"])
            if asked and done >= last:
                warnings.warn(f"nothing to train: the checkpoint has {done} epoch{'s' * (done > 1)} already, and "
                              f"epochs={last} counts them", stacklevel=users_frame()[0])
            return last
        return int(status["epoch"]) + (asked or int(self.description["epochs"]))

    def _prepare(self, X: Any, y: Any, weight: Any, validation: Any, part: float,
                 folder: Optional[PathLike]) -> tuple[int, Optional[str]]:
        """Gives the session its data. Returns how many examples train, and what is evaluated after each epoch."""
        if validation is not None and part:
            raise UsageError("validation_data or validation_split, not both")
        check_columns(self._columns, unnamed_columns(self.fields, X), "X")
        before, self._columns = self._columns, unnamed_columns(self.fields, X) or self._columns
        try:
            return self._give_all(X, y, weight, validation, part, folder)
        except BaseException:
            self._columns = before
            raise

    def _give_all(self, X: Any, y: Any, weight: Any, validation: Any, part: float,
                  folder: Optional[PathLike]) -> tuple[int, Optional[str]]:
        rest = None if validation is None else self._validation(validation)
        watched = None
        if X is None:
            examples = self._hold("train", folder)
            own = [each for each in ("validation", "test") if each in self.description["splits"]]
            if own and rest is None:
                watched = own[0]
                self._hold(watched, folder)
        else:
            given = self._given(X, y, weight)
            if part:
                given, rest = divide(self.session, given, part)
            self._held.add(TRAIN)
            examples = give(self.session, TRAIN, given)
        if rest is not None:
            watched = "validation"
            self._held.add(VALIDATION)
            give(self.session, VALIDATION, rest)
        return examples, watched

    def _hold(self, split: str, folder: Optional[PathLike]) -> int:
        """Loads a split of the model's own data for a training; returns how many examples."""
        self._held.add(SPLITS[split])
        return self._load_own(self.session, split, folder)

    def _load_own(self, session: Session, split: str, folder: Optional[PathLike]) -> int:
        return load(session, split, folder)

    def _validation(self, given: Any) -> Given:
        parts = list(given) if isinstance(given, (tuple, list)) and len(given) <= self._VALIDATION_PARTS else [given]
        if len(parts) == self._VALIDATION_PARTS and parts[1] is not None and not has_labels(self.fields):
            parts = [given]  # without labels: what the model reads
        if isinstance(given, tuple) and len(given) > self._VALIDATION_PARTS and label_of(self.fields):
            raise UsageError(f"validation_data is (X, y) or (X, y, sample_weight), not a tuple of {len(given)}")
        X, y, weight = (*parts, None, None)[: self._VALIDATION_PARTS]
        return self._given(X, y, weight, ("validation X", "validation y", "validation sample_weight"))

    _VALIDATION_PARTS = 3

    def _given(self, X: Any, y: Any, weight: Any = None,
               what: tuple[str, str, str] = ("X", "y", "sample_weight")) -> Given:
        """What was given for each field."""
        check_columns(self._columns, unnamed_columns(self.fields, X), what[0])
        return everything(self.fields, X, y, weight, what)

    def _weigh(self) -> None:
        """Examples get weights, where the model's text is written by us: a Sequential's."""

    def _check_targets(self, y: Any, what: str) -> None:
        """That y is what the loss takes, where that is more than its field says: a Sequential knows its loss."""

    def advice(self, text: str) -> str:
        """What a program warns of, in the words of Python."""
        return of_warning(text)

    @contextlib.contextmanager
    def ranks(self) -> Iterator[Optional[Ranks]]:
        """The processes that train beside this one, for a training whose data the session has; None: it trains alone."""
        if self._team.size == 1:
            yield None
            return
        with tempfile.TemporaryDirectory(dir=scratch()) as folder, Ranks(self.session, self._team, Path(folder)) as ranks:
            yield ranks

    def _drop_data(self) -> None:
        held, self._held = self._held, set()
        with contextlib.ExitStack() as last:  # the others too, where one fails
            if self._session is not None:
                for which in held:
                    last.callback(self._session.drop_data, which)

    # ---- evaluation and prediction ----

    def evaluate(self, X: Any = None, y: Any = None, *, sample_weight: Any = None, split: str = "test",
                 data: Optional[PathLike] = None) -> dict[str, float]:
        """The means of loss and metrics over all examples of X and y, or of a split of the model's own data, of the
        folder ``data`` where given. sample_weight is as for ``fit``."""
        return self._evaluated((X, y, sample_weight), split, data, self._reports)

    def confusion_matrix(self, X: Any = None, y: Any = None, *, sample_weight: Any = None, split: str = "test",
                         data: Optional[PathLike] = None) -> NDArray[Any]:
        """Of a model with ``confusion(...)`` among its metrics: row i, column j is how many examples of class i are
        predicted to be of class j, or what these weigh. Data are as for ``evaluate``. Raises UsageError for another model."""
        if not self.description["confusion"]:
            raise UsageError(f"the model has no confusion(...) among its metrics{self._confusion_cure()}")
        return self._evaluated((X, y, sample_weight), split, data, self._confusion)

    def _evaluated(self, data_given: tuple[Any, Any, Any], split: str, data: Optional[PathLike],
                   asked: Callable[[Session, int], T]) -> T:
        X, y, weight = data_given
        with self.lock:
            if X is None and (y is not None or weight is not None):
                raise UsageError("y and sample_weight belong to X, which is missing")
            given = None if X is None else self._given(X, y, weight)
            if X is None and SPLITS.get(split) in self._held:
                return asked(self.session, SPLITS[split])
            with self._beside() as session:
                which = TEST if given is not None else SPLITS.get(split, TEST)
                try:
                    if given is None:
                        self._load_own(session, split, data)
                    else:
                        give(session, which, given)
                    return asked(session, which)
                finally:
                    session.drop_data(which)

    def _reports(self, session: Session, which: int) -> dict[str, float]:
        return dict(zip(self.metrics, session.evaluate(which)))

    def _confusion_cure(self) -> str:
        """How to have it counted."""
        return ": metric = [accuracy(scores, label), confusion(scores, label)] in the train block has it counted in evaluations"

    def _confusion(self, session: Session, which: int) -> NDArray[Any]:
        session.evaluate(which)
        return session.confusion()

    @contextlib.contextmanager
    def _beside(self) -> Iterator[Session]:
        """A session that data can be given to: the model's own or, while it is training, another with its weights."""
        if not self._held:
            yield self.session
            return
        with Session(self.library, self.session.status()["seed"], self._device) as other, _temporary_file() as file:
            self.session.save(file)
            other.load(file)
            for name, value in self.session.status()["params"].items():
                other.set_knob(name, value)
            yield other

    # ---- weights ----

    def save(self, path: PathLike) -> None:
        """Writes a checkpoint, in safetensors: weights, and all that a training needs to go on. The file is the old one
        or the whole new one. Raises DataError where a weight is NaN or infinite, FileError where it cannot be
        written, is a file of another kind, or has weights that others wrote and the model has not loaded."""
        with self.lock:
            self.session.save(path, self._checkpoints)
            self._checkpoints.add(os.path.realpath(path))

    def export(self, path: PathLike) -> None:
        """Writes what predicts as a file of ONNX, which others run without mtc (docs/program.md). Raises UsageError where the
        prediction draws random numbers or needs the other examples of its batch; else as `save`."""
        with self.lock:
            self.session.export(path)

    def load(self, path: PathLike, partial: bool = False) -> Model:
        """Reads weights and buffers from a safetensors file, of mtc or not; optimizer states begin anew. A checkpoint's params
        that evaluation computes with come too, unless they were set; others, such as a learning rate, stay.

        partial: takes what fits by name and shape. Else raises DataError where the file lacks a weight or has another;
        in any case where a number is NaN or infinite; FileError where it cannot be read. Nothing is changed then.
        Returns the model.
        """
        with self.lock:
            if partial:
                self._load_partly(path)
            else:
                self.session.load(path)
                self._columns = None
            self._checkpoints.add(os.path.realpath(path))
        return self

    def _load_partly(self, path: PathLike) -> None:
        from .weightfile import read_weights

        own = self.params
        try:
            found = read_weights(path)
        except DataError:
            self.session.load(path)  # which knows other formats, and how their weights are had
            raise
        fitting = {name: found[name] for name in found if name in own and own[name].shape == found[name].shape}
        if not fitting:
            raise DataError(f"{os.fspath(path)}: none of its tensors has the name and shape of one of the model's")
        own.load_state_dict(fitting, strict=False)

    def resume(self, path: PathLike) -> Model:
        """Reads all of a checkpoint, params included: the next ``fit`` goes on as if training had not stopped."""
        with self._not_training("resume"):
            self.session.resume(path)
            self._columns = None
            self._checkpoints.add(os.path.realpath(path))
        return self

    def state_dict(self, rename: Rename = None) -> dict[str, NDArray[Any]]:
        """Copies of all weights and buffers, by name."""
        return self.params.state_dict(rename)

    def load_state_dict(self, mapping: Mapping[str, Any], rename: Rename = None, strict: bool = True) -> LoadResult:
        """Writes weights and buffers from arrays or tensors (see Parameters.load_state_dict)."""
        return self.params.load_state_dict(mapping, rename, strict)

    def dumps(self) -> bytes:
        """A checkpoint as bytes."""
        with _temporary_file() as file, self.lock:
            self.session.save(file)
            return file.read_bytes()

    def loads(self, checkpoint: bytes) -> Model:
        """Resumes from the bytes of a checkpoint."""
        with _temporary_file() as file:
            file.write_bytes(checkpoint)
            return self.resume(file)


@contextlib.contextmanager
def _temporary_file() -> Iterator[Path]:
    """The path of a file that is gone afterwards."""
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        yield Path(folder, "weights")
