"""mtc.Classifier, mtc.Regressor and mtc.NeuralNetworkGPU. Without scikit-learn the tests that need it are skipped, and
the others test what stands in for it."""

import copy
import importlib.util
import pickle
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest


import mtc
from conftest import MTC, ROOT
from mtc import network, scikit, toolchain

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.filterwarnings("error"), pytest.mark.quick]
needs_scikit = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="no scikit-learn here")

# Checks of scikit-learn that an estimator does not pass, with the reason. check_estimator itself leaves out those of what an
# estimator does not have: labels of several columns.
FAILING = {"check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is in one batch, two rows are in two"}
SMALL = {"hidden": 8, "learning_rate": 0.02, "random_state": 3, "target": "cpu"}


@pytest.fixture(scope="module")
def digits():
    """Drawn digits as bytes [600, 28, 28], and their numbers."""
    spec = importlib.util.spec_from_file_location("make_digits", ROOT / "tools" / "make_digits.py")
    make_digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_digits)
    generator = random.Random(1)
    labels = np.arange(600) % 10
    images = b"".join(make_digits.draw(digit, generator) for digit in labels)
    return np.frombuffer(images, np.uint8).reshape(600, 28, 28), labels


def clouds(count=120, seed=0):
    """Rows of 4 columns of different scales, and a word for each."""
    generator = np.random.default_rng(seed)
    kinds = generator.integers(0, 3, count)
    rows = generator.normal(size=(count, 4)) + 3 * np.eye(3, 4)[kinds]
    return rows * [1, 10, 100, 1000] + [5, 0, -50, 0], np.array(["ash", "birch", "cedar"])[kinds]


def waves(count=200, seed=0):
    """Rows of 3 columns, and two numbers for each."""
    rows = np.random.default_rng(seed).normal(size=(count, 3))
    return rows, np.stack([100 + 20 * rows[:, 0] + 5 * rows[:, 1] ** 2, rows[:, 2] - rows[:, 0]], axis=1)


def classifier(**arguments):
    return mtc.Classifier(**{**SMALL, "epochs": 10, **arguments})


def regressor(**arguments):
    return mtc.Regressor(**{**SMALL, "epochs": 30, **arguments})


def weights(estimator):
    return {name: values.tobytes() for name, values in estimator.model_.state_dict().items()}


# ---- classifier ----


def test_classifier_tells_words_apart():
    X, y = clouds()
    fitted = classifier()
    assert fitted.fit(X, y) is fitted
    assert fitted.classes_.tolist() == ["ash", "birch", "cedar"]
    assert fitted.predict(X).dtype == y.dtype
    assert fitted.score(*clouds(seed=1)) > 0.85
    assert (fitted.n_features_in_, fitted.n_iter_, len(fitted.loss_curve_)) == (4, 10, 10)
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0]
    assert sorted(fitted.history_) == ["accuracy", "loss"]


def test_probabilities_add_up_and_decide():
    X, y = clouds()
    fitted = classifier().fit(X, y)
    probabilities = fitted.predict_proba(X)
    assert probabilities.shape == (120, 3) and probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(X)).all()
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), probabilities)
    np.testing.assert_array_equal(fitted.predict_proba(X[5:6]), probabilities[5:6])


@pytest.mark.parametrize("labels", [[False, True], [-1, 7], [0.0, 2.0], ["no", "yes"]])
def test_two_classes_of_any_kind(labels):
    X, y = clouds()
    y = np.array(labels)[(y == "ash").astype(int)]
    fitted = classifier().fit(X.tolist(), y.tolist())
    assert fitted.classes_.tolist() == labels
    assert fitted.score(X, y) > 0.85


def test_the_seed_decides_every_bit():
    X, y = clouds()
    first, second, other = (classifier(dropout=0.2, random_state=seed).fit(X, y) for seed in (5, 5, 6))
    assert weights(first) == weights(second) != weights(other)
    assert first.loss_curve_ == second.loss_curve_
    assert weights(first.fit(X, y)) == weights(second)


@pytest.mark.parametrize("state", [None, np.random.default_rng(4), np.random.RandomState(4)])
def test_seeds_are_drawn(state):
    assert scikit.seed_of(state) != scikit.seed_of(state)


def test_a_bad_seed_is_refused():
    for state in (-1, "seven"):
        with pytest.raises(ValueError, match="seven|-1"):
            classifier(random_state=state).fit(*clouds(20))


def test_rates_epochs_and_seeds_need_no_compile(monkeypatch):
    X, y = clouds()
    made = set()
    compile_library = toolchain.compile_library

    def compiled(*arguments, **options):
        made.add(compile_library(*arguments, **options))
        return next(iter(made))

    monkeypatch.setattr(toolchain, "compile_library", compiled)
    slow, fast = (classifier(learning_rate=rate, weight_decay=rate / 9, epochs=5, random_state=seed).fit(X, y)
                  for seed, rate in ((1, 1e-5), (2, 0.05)))
    assert len(made) == 1
    assert slow.loss_curve_[-1] > fast.loss_curve_[-1]


@pytest.mark.parametrize("rows", [2, 5, 63, 64, 65])
def test_rows_fewer_than_a_batch(rows):
    X, y = clouds(rows)
    y[:2] = ["ash", "birch"]
    assert classifier(epochs=60, batch_size=64).fit(X, y).score(X, y) > 0.8


def test_early_stopping_keeps_the_best():
    X, y = clouds()
    fitted = classifier(epochs=200, early_stopping=True, n_iter_no_change=3, learning_rate=0.2).fit(X, y)
    losses = fitted.history_["val_loss"]
    assert fitted.n_iter_ == len(losses) < 200
    assert np.argmin(losses) == len(losses) - 4
    kept, held = fitted._divide(np.unique(y, return_inverse=True)[1])
    assert len(held) == 12 and len(kept) == 108 and not set(kept) & set(held)
    counts = [np.unique(y[rows], return_counts=True)[1] / len(rows) for rows in (kept, held)]
    np.testing.assert_allclose(*counts, atol=0.09)


def test_partial_fit_goes_on():
    X, y = clouds()
    fitted = classifier()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        fitted.partial_fit(X, y)
    for _ in range(10):
        fitted.partial_fit(X, y, classes=["cedar", "birch", "ash"])
    whole = classifier().fit(X, y)
    assert weights(fitted) == weights(whole) and fitted.loss_curve_ == whole.loss_curve_ and fitted.n_iter_ == 10
    fitted.set_params(learning_rate=1e-9).partial_fit(X[:30], y[:30])
    np.testing.assert_allclose(fitted.predict_proba(X), whole.predict_proba(X), atol=1e-5)
    with pytest.raises(ValueError, match="label 'oak', which is none of classes_"):
        fitted.partial_fit(X[:1], ["oak"])
    with pytest.raises(ValueError, match="on the first call it was"):
        fitted.partial_fit(X, y, classes=["ash", "oak"])


# ---- regressor ----


def test_regressor_of_one_number():
    X, y = waves()
    fitted = regressor().fit(X, y[:, 0])
    assert fitted.predict(X).shape == (200,) and fitted.predict(X).dtype == np.float64
    assert fitted.score(*(each if each.shape[1] == 3 else each[:, 0] for each in waves(seed=1))) > 0.9


def test_regressor_of_several_numbers():
    X, y = waves()
    fitted = regressor().fit(X, y)
    assert fitted.predict(X).shape == (200, 2)
    assert fitted.score(X, y) > 0.9
    assert sorted(fitted.history_) == ["loss", "mae"]


def test_a_column_of_y_comes_with_a_word():
    X, y = waves()
    with pytest.warns(UserWarning, match="column-vector y was passed when a 1d array was expected"):
        fitted = regressor(epochs=2).fit(X, y[:, :1])
    assert fitted.predict(X).shape == (200,)
    with pytest.warns(UserWarning, match="column-vector"):
        classifier(epochs=2).fit(*(each.reshape(120, -1) for each in clouds()))


def test_normalize_is_a_choice():
    X, y = waves()
    raw = regressor(normalize=False, epochs=2).fit(X, y[:, 0])
    assert "normalize" not in raw.model_.source and "normalize" in regressor(epochs=2).fit(X, y[:, 0]).model_.source
    assert raw.score(X, y[:, 0]) < 0


def test_regressor_partial_fit():
    X, y = waves()
    fitted = regressor()
    for _ in range(30):
        fitted.partial_fit(X, y)
    assert weights(fitted) == weights(regressor().fit(X, y))
    with pytest.raises(ValueError, match="y has 1 outputs, on the first call it had 2"):
        fitted.partial_fit(X, y[:, 0])


# ---- as objects ----


def test_parameters():
    made = classifier(hidden=(16, 8), activation="tanh")
    assert made.get_params()["hidden"] == (16, 8)
    assert made.set_params(hidden=4, epochs=7) is made and made.hidden == 4
    assert "hidden=4" in repr(made) and "dropout" not in repr(made)
    with pytest.raises(ValueError, match="depth"):
        made.set_params(depth=3)


@pytest.mark.parametrize("arguments, text", [
    ({"hidden": 0}, "each number of hidden is a whole number from 1 on, not 0"),
    ({"hidden": "64"}, "hidden is the neurons of the hidden layer, or a list with those of each, not '64'"),
    ({"activation": "relv"}, "activation is one of 'relu', .* not 'relv'; did you mean 'relu'"),
    ({"optimizer": "adm"}, "optimizer is one of .*did you mean 'adam'"),
    ({"learning_rate": -1}, "lr"),
    ({"batch_size": 0}, "batch_size is a whole number from 1 on"),
    ({"epochs": 0}, "epochs is a whole number from 1 on"),
    ({"validation_fraction": 1.5, "early_stopping": True}, "validation_fraction is between 0 and 1, not 1.5"),
    ({"n_iter_no_change": 0, "early_stopping": True}, "n_iter_no_change is a whole number from 1 on"),
])
def test_bad_arguments_are_told_by_fit(arguments, text):
    with pytest.raises(ValueError, match=text):
        classifier(**arguments).fit(*clouds(20))


@pytest.mark.parametrize("change, text", [
    (lambda X, y: (X[:, 0], y), "1-?[dD]|shape|2D array"),
    (lambda X, y: (np.where(X > 200, np.nan, X), y), "NaN"),
    (lambda X, y: (X * 1e200, y), "infinity"),
    (lambda X, y: (X + 1j, y), "Complex data not supported"),
    (lambda X, y: (X[:0], y[:0]), "minimum of 1 is required|is empty"),
    (lambda X, y: (X, y[:-1]), "19|inconsistent"),
    (lambda X, y: (X, None), "requires y to be passed"),
    (lambda X, y: (X, X), "y should be a 1d array"),
    (lambda X, y: (X, X[:, 0]), "Unknown label type"),
    (lambda X, y: (X, y * 0 + 1 if y.dtype.kind != "U" else np.full(20, "ash")), "one class only, .*'ash'"),
])
def test_bad_data(change, text):
    with pytest.raises(ValueError, match=text):
        classifier(epochs=1).fit(*change(*clouds(20)))


def test_other_columns_are_refused():
    X, y = clouds()
    fitted = classifier(epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but Classifier is expecting 4 features as input"):
        fitted.predict(X[:, :3])


def test_what_is_not_fitted_says_so():
    for made in (classifier(), regressor()):
        assert not hasattr(made, "model_")
        with pytest.raises(scikit.NotFittedError, match=f"{type(made).__name__} instance is not fitted yet"):
            made.predict(np.zeros((1, 3)))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda fitted: pickle.loads(pickle.dumps(fitted))])
def test_copies_predict_and_go_on_alike(again):
    X, y = clouds()
    fitted = classifier(epochs=3).fit(X, y)
    copied = again(again(fitted))
    np.testing.assert_array_equal(copied.predict_proba(X), fitted.predict_proba(X))
    assert weights(copied.partial_fit(X, y)) == weights(fitted.partial_fit(X, y))
    assert again(classifier()).get_params() == classifier().get_params()


def test_another_process_finds_the_library(tmp_path):
    X, y = clouds()
    fitted = classifier(epochs=3).fit(X, y)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "fitted.pickle").write_bytes(pickle.dumps(fitted))
    code = (f"import sys, pickle; sys.path.insert(0, {str(ROOT / 'python')!r}); import numpy as np;"
            "fitted = pickle.load(open('fitted.pickle', 'rb'));"
            "np.save('p.npy', fitted.predict_proba(np.load('x.npy')))")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), fitted.predict_proba(X))


def test_the_package_does_not_import_scikit():
    code = (f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import mtc; mtc.NeuralNetworkGPU;"
            "print([name for name in sys.modules if name.startswith(('sklearn', 'scipy', 'pandas'))])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# ---- the stand-in, where scikit-learn is too ----


class Minimal(scikit.MinimalClassifierMixin, scikit.MinimalEstimator):
    def __init__(self, size=3, kind="a"):
        self.size, self.kind = size, kind

    def predict(self, X):
        return np.asarray(X)[:, 0]


def test_the_stand_in_has_parameters_and_scores():
    made = Minimal(kind="b")
    assert made.get_params() == {"kind": "b", "size": 3} and repr(made) == "Minimal(kind='b')"
    assert made.set_params(size=4).size == 4
    assert made.score([[1], [2]], [1, 3]) == 0.5
    regressor = type("MinimalRegressor", (scikit.MinimalRegressorMixin, Minimal), {})()
    assert regressor.score([[1.0], [2.0]], [1, 2]) == 1 and regressor.score([[1.0], [3.0]], [1, 2]) == -1
    assert regressor.score([[1.0], [2.0]], [2, 2]) == 0  # of a constant: as if its deviation were 1
    with pytest.raises(ValueError, match="Minimal has no parameter 'sise'; its parameters are kind, size"):
        made.set_params(sise=1)


def test_the_stand_in_knows_columns():
    class Frame:
        columns = ["a", "b"]

        def __array__(self, dtype=None, copy=None):
            return np.zeros((2, 2))

    made = Minimal()
    assert scikit.minimal_validate(made, Frame(), True).dtype == np.float32
    assert made.feature_names_in_.tolist() == ["a", "b"]
    scikit.minimal_validate(made, np.zeros((2, 2)), True)
    assert not hasattr(made, "feature_names_in_")


# ---- with scikit-learn ----


@needs_scikit
@pytest.mark.parametrize("kind", [mtc.Classifier, mtc.Regressor])
def test_check_estimator(kind):
    """All checks that scikit-learn has for such an estimator; it tells their results one by one since 1.6."""
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(kind(target="cpu"), on_fail=None, on_skip=None, expected_failed_checks=FAILING)
    assert {each["check_name"]: str(each["exception"]) for each in results if each["status"] == "failed"} == {}
    without = set() if importlib.util.find_spec("pandas") else {"check_classifier_data_not_an_array", "check_regressor_data_not_an_array",
                                                                   "check_sample_weights_pandas_series"}
    assert {each["check_name"] for each in results if each["status"] == "skipped"} <= {"check_array_api_input"} | without
    assert len(results) > 45


@needs_scikit
@pytest.mark.vectors  # trains for seconds
def test_cross_validation_and_search(digits):
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    X, y = digits[0].reshape(600, -1), digits[1]
    made = make_pipeline(MinMaxScaler(), classifier(hidden=32, epochs=20, normalize=False, learning_rate=5e-3))
    scores = cross_val_score(made, X, y, cv=3)
    assert scores.min() > 0.8
    np.testing.assert_array_equal(cross_val_score(made, X, y, cv=3), scores)
    grid = {"classifier__hidden": [(16,), (32,)], "classifier__learning_rate": [1e-5, 5e-3]}
    search = GridSearchCV(made, grid, cv=3).fit(X, y)
    assert search.best_params_["classifier__learning_rate"] == 5e-3 and search.best_score_ >= scores.mean()
    assert search.score(X, y) > 0.9


@needs_scikit
def test_search_in_processes():
    from sklearn.model_selection import GridSearchCV

    X, y = waves()
    grid = {"learning_rate": [1e-4, 0.02], "optimizer": ["adam", mtc.SGD(mtc.Cosine(0.1), momentum=0.9)]}
    alone, together = (GridSearchCV(regressor(), grid, cv=2, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"])
    assert together.best_score_ > 0.8 and together.best_params_["learning_rate"] == 0.02


@needs_scikit
def test_clone_and_joblib(tmp_path):
    import joblib
    from sklearn.base import clone

    X, y = clouds()
    fitted = classifier(epochs=3, optimizer=mtc.AdamW(weight_decay=0.1)).fit(X, y)
    fresh = clone(fitted)
    assert not hasattr(fresh, "classes_") and fresh.optimizer is not fitted.optimizer
    assert weights(fresh.fit(X, y)) == weights(fitted)
    joblib.dump(fitted, tmp_path / "fitted.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "fitted.joblib").predict(X), fitted.predict(X))


@needs_scikit
def test_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = clouds()
    frame = pandas.DataFrame(X, columns=["height", "width", "age", "cost"])
    fitted = classifier(epochs=2).fit(frame, pandas.Series(y))
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[["width", "height", "age", "cost"]])


# ---- NeuralNetworkGPU ----


def neural_network(hidden=32, **arguments):
    return mtc.NeuralNetworkGPU(784, hidden, 10, **{"target": "cpu", "seed": 1, "learning_rate": 3e-3, **arguments})


def test_three_numbers(digits):
    images, labels = digits
    made = neural_network()
    history = made.fit(images[:500], labels[:500], epochs=10, validation_data=(images[500:], labels[500:]), verbose=0)
    assert sorted(history) == ["accuracy", "loss", "val_accuracy", "val_loss"] and len(history["loss"]) == 10
    assert made.history is history
    assert made.score(images[500:], labels[500:]) > 0.85
    result = made.evaluate(images[500:], labels[500:])
    assert result["accuracy"] == pytest.approx(history["val_accuracy"][-1]) and sorted(result) == ["accuracy", "loss"]
    assert made.predict(images[:7]).shape == (7,)
    assert made.predict_proba(images[:7]).shape == (7, 10)


def test_bytes_images_and_rows_are_the_same(digits, tmp_path):
    images, labels = digits
    rows, one_hot = images.reshape(600, 784).astype(np.float32) / 255, np.eye(10)[labels]
    made, other = neural_network(), neural_network()
    first = made.fit(images, labels, epochs=2, validation_data=(images, one_hot), verbose=0)
    assert first == other.fit(rows, one_hot, epochs=2, validation_data=(rows, labels), verbose=0)
    np.testing.assert_array_equal(made.predict_proba(images), other.predict_proba(rows))
    assert made.score(images, one_hot) == made.score(rows, labels)
    assert made.evaluate(images, one_hot) == made.evaluate(rows, labels)
    made.save(tmp_path / "m.safetensors")
    loaded = neural_network(seed=9)
    np.testing.assert_array_equal(loaded.load(tmp_path / "m.safetensors").predict(images), made.predict(images))


def test_several_hidden_layers():
    made = neural_network([64, 32], activation="tanh", dropout=0.1, optimizer=mtc.SGD(momentum=0.9))
    assert repr(made) == "NeuralNetworkGPU(784, [64, 32], 10, batch_size=64, target='cpu')"
    for line in ("linear(x, 64)", "tanh(linear1)", "dropout(tanh1, 0.1)", "linear(dropout1, 32)",
                 "linear(dropout2, 10)", "sgd(lr, momentum = 0.9)", "batch     = 64"):
        assert line in made.source
    assert "linear(x, 10)" in neural_network([]).source


@pytest.mark.parametrize("arguments, text", [
    ((784, 128, 1), "outputs, the number of classes, is a whole number from 2 on, not 1"),
    ((0, 128, 10), "inputs, the numbers of an example, is a whole number from 1 on, not 0"),
    ((784, 128.5, 10), "hidden is the neurons of the hidden layer, or a list with those of each, not 128.5"),
    ((784, 128, 10, 0), "batch_size is a whole number from 1 on, not 0"),
])
def test_wrong_numbers(arguments, text):
    with pytest.raises(mtc.UsageError, match=text):
        mtc.NeuralNetworkGPU(*arguments, target="cpu")


def test_wrong_data(digits):
    images, labels = digits
    made = neural_network()
    with pytest.raises(mtc.DataError, match=r"y: example 3 is \[0.0, .* expected a one-hot row, of one 1 and 9 zeros"):
        made.fit(images, np.eye(10)[labels] - 2 * (np.arange(600) == 3)[:, None] * np.eye(10)[labels])
    with pytest.raises(mtc.DataError, match="'x' is f32.784.: expected an array"):
        made.predict(images[:, :20])
    with pytest.raises(mtc.DataError, match="example 9 is 10; field 'y'"):
        made.fit(images, labels + 1)


@pytest.fixture
def machine(monkeypatch):
    """Sets what the machine seems to have."""

    def have(gpu, nvcc):
        monkeypatch.setattr(toolchain, "default_target", lambda: None if gpu else "cpu")
        monkeypatch.setattr(network, "has_nvcc", lambda: nvcc)
        monkeypatch.setattr(mtc.NeuralNetworkGPU, "_told", False)

    return have


def test_a_gpu_is_taken_where_one_is(machine):
    machine(gpu=True, nvcc=True)
    assert "target='cuda'" in repr(mtc.NeuralNetworkGPU(784, 128, 10))


@pytest.mark.parametrize("gpu, text", [(False, "there is no GPU here: "), (True, "there is a GPU here, but no nvcc")])
def test_a_processor_says_so_once(machine, gpu, text):
    machine(gpu, nvcc=False)
    with pytest.warns(UserWarning, match=text) as told:
        first = mtc.NeuralNetworkGPU(784, 128, 10)
    assert told[0].filename == __file__ and "target='cpu'" in repr(first)
    mtc.NeuralNetworkGPU(784, 64, 10)
    with pytest.raises(mtc.UsageError, match="target is 'cuda', 'cpu', or None .*, not 'gpu'"):
        mtc.NeuralNetworkGPU(784, 128, 10, target="gpu")


# ---- what new users give ----


@pytest.mark.parametrize("given", [5, "yes", None, mtc.EarlyStopping(patience=2)])
def test_early_stopping_is_a_bool(given):
    with pytest.raises(mtc.UsageError, match="^early_stopping is True or False, not .*n_iter_no_change$"):
        classifier(early_stopping=given).fit(*clouds())
    assert classifier(early_stopping=np.True_, epochs=2).fit(*clouds()).n_iter_ == 2


@pytest.mark.parametrize("make, text", [
    (lambda: mtc.Classifier(batch=3), "Classifier has no argument 'batch'; did you mean 'batch_size'?"),
    (lambda: mtc.Regressor(hidden_layer_sizes=3), "Regressor has no argument 'hidden_layer_sizes'; did you mean 'hidden'?"),
    (lambda: mtc.Regressor(epoch=3), "Regressor has no argument 'epoch'; did you mean 'epochs'?"),
    (lambda: mtc.Classifier(3, "relu", 4), "Classifier takes hidden, activation without their names, and all else by name; got 3 without"),
])
def test_unknown_arguments(make, text):
    with pytest.raises(TypeError) as refused:
        make()
    assert str(refused.value) == text


def test_words_of_a_data_frame():
    X, words = clouds()
    for y in (words, words.astype(object), words.tolist()):
        model = classifier(epochs=1).fit(X, y)
        assert model.classes_.dtype == words.dtype and model.predict(X).dtype == words.dtype
    model = classifier().partial_fit(X, words.astype(object), classes=np.array(["cedar", "ash", "birch"], object))
    assert model.classes_.tolist() == ["ash", "birch", "cedar"] and model.classes_.dtype.kind == "U"
    model.partial_fit(X, words.astype(object), classes=["ash", "birch", "cedar"])
