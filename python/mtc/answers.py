"""What a model answers: predictions, probabilities, text, and how right it is."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, Mapping, NoReturn, Optional

import numpy as np

from . import dlpack, lending
from .arrays import Column, Field, to_field, to_numpy
from .assignment import check_columns, inputs_only, label_of, reads_nothing, unnamed_columns
from .errors import DataError, UsageError
from .feeding import columns_of, row_bytes, words_of
from .habits import unexpected
from .library import LENT_ALIGNMENT, Session
from .spec import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK = 1 << 26  # bytes of predictions that are held at a time where only their classes are asked for


class Answers:
    """The part of a Model that asks it; the rest is in model.py."""

    __slots__ = ()

    lock: threading.RLock
    _columns: Optional[list[str]]

    if TYPE_CHECKING:

        @property
        def session(self) -> Session: ...

        @property
        def description(self) -> dict[str, Any]: ...

        @property
        def fields(self) -> list[Field]: ...

        def _check_targets(self, y: Any, what: str) -> None: ...

    def predict(self, X: Any) -> Any:
        """The prediction for each example: class numbers [N] where the model tells classes apart, of each position
        [N, T] where there are several; else its numbers, f32 [N, ...]. A tensor of another library gives one of that
        library, on the same device. Where the prediction is drawn, of no field, X may be a number of examples."""
        return self._answer(X, classes=bool(self.description["prediction"]["classes"]))

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, f32 [N, classes]; of a model that ends in ``bce``, [N, 2] for one output, else
        [N, outputs]. Raises UsageError for a model that predicts numbers."""
        prediction = self.description["prediction"]
        if prediction["classes"]:
            return self._answer(X, classes=False)
        if not prediction["yes"]:
            raise UsageError(f"the model predicts numbers {prediction['shape']}, not classes: predict has them")
        with self.lock:
            answer = self._answer(X, classes=False)
            if len(answer) != to_numpy(answer, "X").size:
                return answer
            yes = to_numpy(answer, "X").reshape(-1)
            return lending.as_given(self.session, np.stack([1 - yes, yes], 1), answer)

    def _answer(self, X: Any, classes: bool) -> Any:
        with self.lock:
            if reads_nothing(self.fields) and np.ndim(X) == 0 and not isinstance(X, Mapping):
                count = whole(X, "X, the number of examples to be drawn,", 1)
                return self._classes({}, count) if classes else self._numbers({}, count)
            check_columns(self._columns, unnamed_columns(self.fields, X), "X")
            given = inputs_only(self.fields, X)
            columns = columns_of(self.session, given)
            count = next(iter(columns.values())).examples
            values = [value for value, _ in given.values() if not isinstance(value, np.ndarray)]
            tensors = [value for value in values if dlpack.has_dlpack(value)]
            on_device = tensors and not dlpack.device_of(tensors[0]).is_host and self.description["target"] == "cuda"
            if on_device:
                answer = dlpack.like(self._numbers_on_device(columns, count), tensors[0])
                return answer.argmax(-1) if classes else answer
            numbers = self._classes(columns, count) if classes else self._numbers(columns, count)
            return dlpack.like(numbers, tensors[0]) if tensors else numbers

    def _writes(self, array: NDArray[Any]) -> bool:
        """Whether the program writes its predictions where the array lies."""
        return self.description["target"] == "cpu" and array.ctypes.data % LENT_ALIGNMENT == 0

    def _pointers(self, columns: Mapping[str, Column], first: int) -> tuple[list[Optional[int]], list[bool]]:
        """Of the examples from ``first`` on."""
        pointers: list[Optional[int]] = []
        for field in self.fields:
            column = columns.get(field["name"]) if field["predicts"] else None
            pointers.append(None if column is None else column.pointer + first * row_bytes(field))
        return pointers, [bool(field["name"] in columns and columns[field["name"]].lent) for field in self.fields]

    def _classes(self, columns: Mapping[str, Column], count: int) -> NDArray[np.int64]:
        """The most probable class of each example. Of the probabilities, a part at a time is held."""
        shape = tuple(self.description["prediction"]["shape"])
        row = 4 * math.prod(shape)
        rows = min(count, max(16, _CHUNK // row // 16 * 16))  # of 16: then each part begins at an aligned address
        answer = np.empty((count, *shape[:-1]), np.int64)
        part = np.empty((rows, *shape), np.float32)
        for first in range(0, count, rows):
            now = min(rows, count - first)
            self._predict(columns, first, now, part.ctypes.data, self._writes(part))
            answer[first : first + now] = part[:now].argmax(-1)
        return answer

    def _numbers(self, columns: Mapping[str, Column], count: int) -> NDArray[np.float32]:
        answer = np.empty((count, *self.description["prediction"]["shape"]), np.float32)
        self._predict(columns, 0, count, answer.ctypes.data, self._writes(answer))
        return answer

    def _numbers_on_device(self, columns: Mapping[str, Column], count: int) -> dlpack.DeviceArray:
        answer = lending.new_array(self.session, (count, *self.description["prediction"]["shape"]))
        self._predict(columns, 0, count, answer.pointer, True)
        return answer

    def _predict(self, columns: Mapping[str, Column], first: int, count: int, out: int, out_lent: bool) -> None:
        pointers, lent = self._pointers(columns, first)
        self.session.predict(count, pointers, lent, out, out_lent)

    def generate(self, prompt: Any = "", tokens: int = 200, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
                 min_p: float = 0.0, repetition_penalty: float = 1.0, stop: Any = (), beams: int = 1,
                 batch: Optional[int] = None, seed: Optional[int] = None, stream: bool = False, **unknown: NoReturn) -> Any:
        """Text of a language model: the prompt and so many tokens after it, as the program's ``generate`` has them.

        prompt       what the text begins with; numbers with spaces between, where tokens are no text. "": it begins
                     behind a line end, if the model knows that character. Several in a list give a list
        temperature  below 1 the likelier tokens become likelier still; 0: always the likeliest one
        top_k        only the so many likeliest tokens are drawn from; 0: all
        top_p        of those, only the likeliest that have this probability together; 1: all
        min_p        of those, only what is at least so many times as probable as the likeliest; 0: all
        repetition_penalty  what the logarithm of the probability is multiplied by of tokens that the text has; 1: none
        stop         a text, or several, before which what is generated ends
        beams        above 1 nothing is drawn: a search for the likeliest text, which keeps so many
        batch        gives a list of so many texts, each with draws of its own; of beams the best
        seed         of the draws: the same seed gives the same text; None: the model's
        stream       gives an iterator instead: the prompt, then what each token adds, as it is made. Between two parts the model
                     may be used for anything else

        Raises UsageError for a model that generates no text, DataError for a character that it does not know.
        """
        from .generation import USUAL, generation_of, pieces, texts

        if unknown:
            name = list(unknown)[0]
            raise TypeError(unexpected(Answers.generate, name, f"; did you mean '{USUAL[name]}'?" if name in USUAL else ""))
        how = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "stop": stop, "beams": beams,
               "repetition_penalty": repetition_penalty}
        if stream and (batch is not None or not isinstance(prompt, str)):
            raise UsageError("stream gives one text as it is made: a prompt, and no batch")
        if isinstance(prompt, (list, tuple)):
            return [self.generate(each, tokens, batch=batch, seed=seed, **how) for each in prompt]
        with self.lock:
            drawn = self.session.status()["seed"] if seed is None else whole(seed, "seed", 0)
        asked = generation_of(prompt, tokens, batch=1 if batch is None else batch, seed=drawn, **how)
        if stream:
            return (part for _, part in pieces(self.session, self.lock, asked))
        found = texts(self.session, self.lock, asked)
        return found[0] if batch is None else found

    def score(self, X: Any, y: Any) -> float:
        """Accuracy of a model that tells classes apart, else the coefficient of determination R^2, the mean over its
        outputs."""
        with self.lock:
            label = label_of(self.fields)
            self._check_targets(y, "y")
            answer = to_numpy(self.predict(X), "X")
            truth = to_field(label, y, "y", words_of(self.session, label)) if label else to_numpy(y, "y")
        if truth.size != answer.size or len(truth) != len(answer):
            shapes = f"y is {list(truth.shape)}, the predictions for X are {list(answer.shape)}"
            raise DataError(f"{shapes}: expected as many")
        truth = truth.reshape(answer.shape)
        prediction = self.description["prediction"]
        if prediction["classes"]:
            return float((answer == truth).mean())
        if prediction["yes"]:
            return float(((answer > 0.5) == (truth > 0.5)).mean())
        return _determination(*(each.reshape(len(each), -1).astype(np.float64) for each in (truth, answer)))


def _determination(truth: NDArray[np.float64], answer: NDArray[np.float64]) -> float:
    """R^2 of each output, and their mean. An output that is always the same counts 1 where it is hit, else 0."""
    wrong = ((truth - answer) ** 2).sum(0)
    spread = ((truth - truth.mean(0)) ** 2).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(spread > 0, 1 - wrong / spread, np.where(wrong > 0, 0.0, 1.0))
    return float(scores.mean())
