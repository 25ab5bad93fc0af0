"""What the estimators take from scikit-learn, and a stand-in for where it is not installed.

With scikit-learn 1.6 or newer the base classes and checks are its own: clone, pipelines, searches, pictures and
error texts come with them. Without it, `MinimalEstimator` has the same get_params and set_params, and the checks below
accept any 2-D array-like of finite numbers.
"""

from __future__ import annotations

import inspect
import numbers
import warnings
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

Array = Any  # numpy.ndarray of whichever type


class MinimalEstimator:
    """get_params, set_params and repr from the arguments of __init__."""

    n_features_in_: int
    feature_names_in_: Array

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of __init__ by name; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Any:
        """Sets arguments of __init__; returns self. ValueError: there is no such argument."""
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                known = ", ".join(names)
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; its parameters are {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = (f"{name}={value!r}" for name, value in self.get_params().items()
                   if repr(value) != repr(defaults[name].default))
        return f"{type(self).__name__}({', '.join(changed)})"


class MinimalClassifierMixin:
    """score() of a classifier."""

    _estimator_type = "classifier"

    def score(self, X: Any, y: Any) -> float:
        """The share of rows of X that are given their class of y."""
        return float(np.mean(self.predict(X) == np.ravel(y)))  # type: ignore[attr-defined]


class MinimalRegressorMixin:
    """score() of a regressor."""

    _estimator_type = "regressor"

    def score(self, X: Any, y: Any) -> float:
        """R^2 = 1 - sum (y - prediction)^2 / sum (y - mean)^2, the mean over the columns of y."""
        y = np.asarray(y, np.float64)
        wrong = np.sum((y - self.predict(X).reshape(y.shape)) ** 2, axis=0)  # type: ignore[attr-defined]
        all_of_it = np.sum((y - y.mean(axis=0)) ** 2, axis=0)
        return float(np.mean(1 - wrong / np.where(all_of_it == 0, 1, all_of_it)))


class MinimalNotFittedError(ValueError, AttributeError):
    """A method was called that needs fit() first."""


class MinimalConversionWarning(UserWarning):
    """An array was taken in another shape than it has."""


def minimal_columns(X: Any) -> Optional[Array]:
    """The names of a data frame's columns, where all of them are strings."""
    columns = list(getattr(X, "columns", ()))
    named = bool(columns) and all(isinstance(name, str) for name in columns)
    return np.asarray(columns, dtype=object) if named else None


def minimal_validate(estimator: MinimalEstimator, X: Any, reset: bool) -> Array:
    """X as f32 [rows, columns]; the estimator keeps what the columns are (reset), or has them compared."""
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X holds complex numbers, expected real ones")
    if array.ndim != 2:
        raise ValueError(f"X has shape {list(array.shape)}; expected a 2-D array [rows, columns]"
                         " (reshape(-1, 1) makes one column, reshape(1, -1) one row)")
    if 0 in array.shape:
        raise ValueError(f"X has shape {list(array.shape)}: it is empty; expected at least one row and one column")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"X contains NaN, infinity or a number too large for float32, first at [{row}, {column}]")
    columns = minimal_columns(X)
    if reset:
        estimator.n_features_in_ = array.shape[1]
        if columns is not None:
            estimator.feature_names_in_ = columns
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif array.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {array.shape[1]} features, but {type(estimator).__name__} is expecting"
                         f" {estimator.n_features_in_} features as input")
    return array


def minimal_targets(y: Any, rows: int, multi_output: bool) -> Array:
    """y as an array with one entry (multi_output: or one row) for each of X's rows."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected; ravel() gives one",
                      MinimalConversionWarning, stacklevel=4)
        array = array.ravel()
    if array.ndim != 1 and not (multi_output and array.ndim == 2):
        raise ValueError(f"y should be a 1d array, got an array of shape {list(array.shape)} instead")
    if len(array) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(array)}; expected as many")
    return array


if TYPE_CHECKING:
    HAVE_SCIKIT = False
    BaseEstimator = MinimalEstimator
    ClassifierMixin = MinimalClassifierMixin
    RegressorMixin = MinimalRegressorMixin
    NotFittedError = MinimalNotFittedError
    validate_data: Any
    column_or_1d: Any
    check_classification_targets: Any
    check_random_state: Any
else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
        from sklearn.exceptions import NotFittedError
        from sklearn.utils import check_random_state
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import column_or_1d, validate_data

        HAVE_SCIKIT = True
    except ImportError:
        BaseEstimator, ClassifierMixin, RegressorMixin = MinimalEstimator, MinimalClassifierMixin, MinimalRegressorMixin
        NotFittedError = MinimalNotFittedError
        HAVE_SCIKIT = False


def checked(estimator: BaseEstimator, *given: Any, **options: Any) -> Any:
    """scikit-learn's checks of X, or of X and y. X becomes f32; what is too large for that is told as infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return validate_data(estimator, *given, dtype=np.float32, order="C", **options)


def features(estimator: BaseEstimator, X: Any) -> Array:
    """X as finite f32 [rows, columns], with the columns that fit had. ValueError, TypeError: it is not."""
    return checked(estimator, X, reset=False) if HAVE_SCIKIT else minimal_validate(estimator, X, False)


def labelled(estimator: BaseEstimator, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
    """X as `features` gives it, and y as one label of any kind for each row. reset: the estimator keeps X's columns."""
    if HAVE_SCIKIT:
        X, y = checked(estimator, X, y, reset=reset)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return X, y
    X = minimal_validate(estimator, X, reset)
    y = minimal_targets(y, len(X), False)
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        raise ValueError("Unknown label type: y holds fractions, expected classes; mtc.Regressor takes numbers")
    return X, y


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def measured(estimator: BaseEstimator, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
    """X as `features` gives it, and y as finite f32 [rows] or [rows, outputs]. reset: as for `labelled`."""
    word = next((each for each in np.asarray(y).flat if isinstance(each, str)), None) if np.asarray(y).dtype.kind in "OU" else None
    if word is not None and not _is_number(word):
        raise ValueError(f"y has words, such as {str(word)!r}, and Regressor predicts numbers; mtc.Classifier takes labels of any kind")
    if HAVE_SCIKIT:
        X, y = checked(estimator, X, y, reset=reset, multi_output=True, y_numeric=True)
        y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
    else:
        X = minimal_validate(estimator, X, reset)
        y = minimal_targets(y, len(X), True)
    with np.errstate(over="ignore"):
        y = np.ascontiguousarray(y, np.float32)
    if not np.isfinite(y).all():
        raise ValueError("Input y contains NaN, infinity or a number too large for float32")
    return X, y


def weights(sample_weight: Any, X: Array) -> Optional[Array]:
    """What each row of X counts, f32 [rows]: a number for all of them, or one for each. None: one each."""
    if sample_weight is None:
        return None
    with np.errstate(over="ignore"):
        counts = np.asarray(sample_weight, np.float32)
    counts = np.full(len(X), counts) if counts.ndim == 0 else counts
    if counts.shape != (len(X),):
        raise ValueError(f"sample_weight.shape == {counts.shape}, expected {(len(X),)}: one for each row of X")
    wrong = np.flatnonzero(~((counts >= 0) & np.isfinite(counts)))
    if wrong.size:
        raise ValueError(f"sample_weight[{wrong[0]}] is {counts[wrong[0]]}: a weight is a finite number from 0 on")
    if len(counts) and not counts.any():
        raise ValueError("sample_weight is zero for all rows: there is nothing to train on")
    return counts


def seed_of(random_state: Any) -> int:
    """A seed from None (a new one each time), a whole number (itself) or a NumPy generator (drawn from it)."""
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            raise ValueError(f"random_state is {random_state}; expected a whole number from 0")
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**32))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if HAVE_SCIKIT:
        return int(check_random_state(random_state).randint(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(f"random_state is {random_state!r}; expected None, a whole number or a NumPy generator")
