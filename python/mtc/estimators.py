"""scikit-learn's face: mtc.Classifier and mtc.Regressor, networks of fully connected layers for tables of numbers.

    search = GridSearchCV(mtc.Classifier(random_state=0), {"hidden": [(32,), (64, 32)], "learning_rate": [1e-3, 1e-2]})
    search.fit(X, y).score(X_test, y_test)

A network is compiled for its shape (columns, hidden sizes, outputs, batch) and kind; rates, decay, epochs and seed need
no new compile, and mtc's cache serves what was compiled before, in another process too. All numbers are float32.
scikit-learn is not needed: without it the estimators have get_params, set_params, fit, predict and score of their own.

They pass scikit-learn's check_estimator, but that a sample of weight 2 is not the same as two samples: batches are others.
Classifier has no labels of several columns, which is not checked then; sparse matrices are refused, and numbers beyond float32 count as infinite.

An estimator pickles as its arguments and a checkpoint; where it is loaded, the first call compiles the network, or finds
it in the cache. The same random_state gives the same weights, to the bit, on the same target.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

import numpy as np

from . import scikit
from .errors import UsageError
from .network import Hidden, OptimizerLike, layers_of, optimizer_of, sizes_of
from .processes import tell_of_forks
from .spec import told_arguments, whole
from .training import EarlyStopping, History

if TYPE_CHECKING:
    from .optimizers import Optimizer
    from .sequential import Sequential

Array = Any  # numpy.ndarray of whichever type


@dataclass(frozen=True)
class Plan:
    """A network that is to be compiled."""

    inputs: int
    hidden: Tuple[int, ...]
    outputs: int
    activation: str
    dropout: float
    normalize: bool
    loss: str
    optimizer: Optimizer
    batch: int
    seed: int
    target: Optional[str]
    precision: Optional[str]
    gpus: Optional[int]
    processes: Optional[int]

    def build(self) -> Sequential:
        """The network, with the weights that the seed draws."""
        from .layers import Normalize
        from .sequential import Sequential

        layers = layers_of(self.inputs, self.hidden, self.outputs, self.activation, self.dropout)
        network = Sequential([Normalize(), *layers] if self.normalize else layers, loss=self.loss,
                          optimizer=self.optimizer, batch=self.batch, input_shape=(self.inputs,), seed=self.seed,
                          target=self.target, precision=self.precision, gpus=self.gpus, processes=self.processes,
                          normalize_target=self.normalize and self.loss != "cross_entropy")
        network.advised = False  # there may be fewer rows than a batch has, and columns are normalized
        return network


class Trained:
    """A network and its weights. It pickles as its plan and a checkpoint, with which training goes on too."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._forked()
        self._checkpoint: Optional[bytes] = None
        self._model: Optional[Sequential] = plan.build()
        tell_of_forks(self, Trained._forked)

    def _forked(self) -> None:
        """In a fork no thread holds the lock."""
        self._lock = threading.Lock()

    @property
    def model(self) -> Sequential:
        """The network; where it was pickled, compiled now."""
        with self._lock:
            if self._model is None:
                model = self.plan.build()
                if self._checkpoint is not None:
                    model.loads(self._checkpoint)
                self._model, self._checkpoint = model, None
            return self._model

    def __getstate__(self) -> Dict[str, Any]:
        with self._lock:
            checkpoint = self._checkpoint if self._model is None else self._model.dumps()
        return {"plan": self.plan, "_checkpoint": checkpoint}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state, _model=None)
        self._forked()
        tell_of_forks(self, Trained._forked)


class NetworkEstimator(scikit.BaseEstimator):
    """What both estimators share. Arguments are checked by fit, as scikit-learn has it."""

    _loss: str

    @told_arguments({"batch": "batch_size", "lr": "learning_rate", "learning_rate_init": "learning_rate",
                     "seed": "random_state", "hidden_layer_sizes": "hidden", "max_iter": "epochs",
                     "solver": "optimizer", "alpha": "weight_decay", "patience": "n_iter_no_change"})
    def __init__(self, hidden: Hidden = (100,), activation: str = "relu", *, learning_rate: Optional[float] = None,
                 optimizer: OptimizerLike = "adam", weight_decay: Optional[float] = None, dropout: float = 0.0,
                 normalize: bool = True, batch_size: int = 64, epochs: int = 50, early_stopping: bool = False,
                 validation_fraction: float = 0.1, n_iter_no_change: int = 10, random_state: Any = None,
                 target: Optional[str] = None, precision: Optional[str] = None, gpus: Optional[int] = None,
                 processes: Optional[int] = None, verbose: Union[int, str] = 0) -> None:
        """The arguments, which get_params and set_params know too:

        hidden               neurons of the hidden layer, or of each: 100, (64, 32); () makes a linear model
        activation           "relu", "tanh", "gelu", "silu", "logistic", "identity", ...
        learning_rate        None: the optimizer's own
        optimizer            "adam", "adamw", "sgd", "rmsprop", "lion", or an object such as mtc.SGD(0.1, momentum=0.9)
        weight_decay         None: the optimizer's own
        dropout              the share of hidden neurons that each step leaves out
        normalize            whether columns of X, and y of a regression, are brought to mean 0 and deviation 1, with
                             numbers of the training rows, which are kept with the weights
        batch_size           rows of a step; there may be fewer rows
        epochs               passes over the rows; with early_stopping, at most
        early_stopping       whether validation_fraction of the rows is held back, and training ends after
                             n_iter_no_change epochs in which their loss got no better; the best weights are kept
        random_state         a whole number, a NumPy generator, or None: other weights each time
        target, precision, gpus, processes   as for mtc.compile
        verbose              as for Model.fit: 0 nothing, 1 a bar, 2 a line for each epoch
        """
        self.hidden = hidden
        self.activation = activation
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.normalize = normalize
        self.batch_size = batch_size
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.target = target
        self.precision = precision
        self.gpus = gpus
        self.processes = processes
        self.verbose = verbose

    def _optimizer(self) -> Optimizer:
        return optimizer_of(self.optimizer, self.learning_rate, self.weight_decay)

    def _start(self, outputs: int) -> None:
        """A network with new weights."""
        batch, seed = whole(self.batch_size, "batch_size", 1), scikit.seed_of(self.random_state)
        plan = Plan(self.n_features_in_, sizes_of(self.hidden), outputs, self.activation, self.dropout,
                    bool(self.normalize), self._loss, self._optimizer(), batch, seed, self.target, self.precision, self.gpus,
                    self.processes)
        self._trained = Trained(plan)
        self.loss_curve_: List[float] = []
        self.n_iter_ = 0

    def _train(self, X: Array, y: Array, weight: Optional[Array], epochs: int, validation: Any = None,
               stopping: Optional[EarlyStopping] = None) -> None:
        model = self._trained.model
        self.history_: History = model.fit(X, y, sample_weight=weight, epochs=epochs, validation_data=validation,
                                           early_stopping=stopping, verbose=self.verbose)
        self.loss_curve_ = [*self.loss_curve_, *self.history_["loss"]]
        self.n_iter_ += len(self.history_.epochs)

    def _train_anew(self, X: Array, y: Array, weight: Optional[Array], outputs: int) -> None:
        """fit: all epochs, of all examples or of those that early stopping leaves."""
        epochs = whole(self.epochs, "epochs", 1)
        validation, stopping = None, None
        self._start(outputs)
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise UsageError(f"early_stopping is True or False, not {self.early_stopping!r}: how many epochs without a "
                             "better one end the training is n_iter_no_change")
        if self.early_stopping:
            stopping = EarlyStopping(patience=whole(self.n_iter_no_change, "n_iter_no_change", 1))
            kept, held = self._divide(y)
            validation = (X[held], y[held], None if weight is None else weight[held])
            X, y, weight = X[kept], y[kept], None if weight is None else weight[kept]
        self._train(X, y, weight, epochs, validation, stopping)

    def _divide(self, y: Array) -> Tuple[Array, Array]:
        """Rows to train on and rows that decide when to stop, drawn by the seed; of each class about the same part."""
        part = self.validation_fraction
        if isinstance(part, bool) or not isinstance(part, (int, float, np.floating)) or not 0 < part < 1:
            raise UsageError(f"validation_fraction is between 0 and 1, not {part!r}")
        count = len(y)
        if count < 2:
            raise UsageError(f"early_stopping holds rows of X back, and X has {count} sample")
        order = np.random.default_rng(self._trained.plan.seed).permutation(count)
        if self._loss == "cross_entropy":
            order = order[np.argsort(y[order], kind="stable")]
        held = min(max(round(count * part), 1), count - 1)
        chosen = np.zeros(count, bool)
        chosen[order[(np.arange(held) * count + count // 2) // held]] = True
        return np.flatnonzero(~chosen), np.flatnonzero(chosen)

    def _go_on(self, X: Array, y: Array, weight: Optional[Array]) -> None:
        """partial_fit: one epoch more, with the rates that the estimator has now."""
        self._trained.model.set(**{knob.name: knob.value for knob in self._optimizer().knobs})
        self._train(X, y, weight, 1)

    def _fitted(self) -> Sequential:
        if not hasattr(self, "_trained"):
            name = type(self).__name__
            raise scikit.NotFittedError(f"This {name} instance is not fitted yet. Call 'fit' before using it.")
        return self._trained.model

    @property
    def model_(self) -> Sequential:
        """The mtc.Sequential behind it: source, summary(), params, save()."""
        return self._fitted()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_trained")


def _plain(labels: Any) -> Array:
    """Labels as an array; words in objects, as data frames have them, as an array of words."""
    array = np.asarray(labels)
    words = array.dtype == object and array.size and all(isinstance(label, str) for label in array.flat)
    return array.astype(str) if words else array


class Classifier(scikit.ClassifierMixin, NetworkEstimator):
    """A network that tells classes apart: an estimator of scikit-learn. Labels are of any kind; 2 classes or more.

    After fit: classes_, n_features_in_, feature_names_in_ (of a data frame), n_iter_ (epochs), loss_curve_, history_
    (mtc.History), and model_, the mtc.Sequential behind it.
    """

    _loss = "cross_entropy"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Classifier:
        """Trains anew on X [rows, columns] and a label for each row; sample_weight is what each row counts. Returns self."""
        X, y = scikit.labelled(self, X, y, reset=True)
        weight = scikit.weights(sample_weight, X)
        classes, numbers = np.unique(_plain(y), return_inverse=True)
        self._set_classes(classes)
        self._train_anew(X, numbers, weight, len(classes))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Classifier:
        """Trains for one epoch more. The first call, where nothing was fitted before, needs all `classes`."""
        new = not hasattr(self, "_trained")
        X, y = scikit.labelled(self, X, y, reset=new)
        if new:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit: all labels there will be")
            self._set_classes(np.unique(_plain(classes)))
        elif classes is not None and not np.array_equal(np.unique(_plain(classes)), self.classes_):
            raise ValueError(f"classes is {classes!r}, on the first call it was {self.classes_.tolist()}")
        numbers = self._numbers(y)
        if new:
            self._start(len(self.classes_))
        self._go_on(X, numbers, scikit.weights(sample_weight, X))
        return self

    def _set_classes(self, classes: Array) -> None:
        if len(classes) < 2:
            raise ValueError(f"y has one class only, {classes.tolist()[0]!r}; Classifier tells 2 classes or more apart")
        self.classes_ = classes

    def _numbers(self, y: Array) -> Array:
        """The number of each label among classes_."""
        numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        strange = np.flatnonzero(self.classes_[numbers] != y)
        if strange.size:
            label = y[strange].tolist()[0]
            raise ValueError(f"y has the label {label!r}, which is none of classes_: {self.classes_.tolist()}")
        return numbers

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        model = self._fitted()
        return self.classes_[model.predict(scikit.features(self, X))]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, f64 [rows, classes] in the order of classes_."""
        model = self._fitted()
        scores = model.predict_proba(scikit.features(self, X)).astype(np.float64)
        return scores / scores.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities, f64 [rows, classes]."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class Regressor(scikit.RegressorMixin, NetworkEstimator):
    """A network that predicts a number, or several: an estimator of scikit-learn. It minimises the mean squared error.

    After fit: n_features_in_, feature_names_in_ (of a data frame), n_iter_ (epochs), loss_curve_ (of the normalized y),
    history_ (mtc.History), and model_, the mtc.Sequential behind it.
    """

    _loss = "mse"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Trains anew on X [rows, columns] and y [rows] or [rows, outputs]; sample_weight is what each row counts.
        Returns self."""
        X, y = scikit.measured(self, X, y, reset=True)
        weight = scikit.weights(sample_weight, X)
        self._one_number = y.ndim == 1
        self._train_anew(X, y.reshape(len(y), -1), weight, y.size // len(y))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Trains for one epoch more, or begins. Where values are normalized, then by the numbers of the first rows."""
        new = not hasattr(self, "_trained")
        X, y = scikit.measured(self, X, y, reset=new)
        if new:
            self._one_number = y.ndim == 1
            self._start(y.size // len(y))
        elif y.size // len(y) != self._trained.plan.outputs:
            raise ValueError(f"y has {y.size // len(y)} outputs, on the first call it had {self._trained.plan.outputs}")
        self._go_on(X, y.reshape(len(y), -1), scikit.weights(sample_weight, X))
        return self

    def predict(self, X: Any) -> Array:
        """The numbers of each row, f64 [rows] or [rows, outputs]."""
        model = self._fitted()
        answer = model.predict(scikit.features(self, X)).astype(np.float64)
        return answer.ravel() if self._one_number else answer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.multi_output = True
        return tags
