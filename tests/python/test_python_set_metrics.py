"""Metrics over a set of examples in Python: under the names of the language and of scikit-learn, made of the compiler's table."""

import numpy as np
import pytest

import mtc
from conftest import MTC, ROOT
from mtc.losses import LOSSES

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.filterwarnings("error"), pytest.mark.quick]


@pytest.fixture(scope="module")
def blobs():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 4, 600)
    return (generator.normal(size=(600, 5)) + y[:, None] * [1, 0, -1, 0.5, 0]).astype("f4"), y


def test_both_names_of_each_metric(blobs):
    """One under a name of scikit-learn's is a value of that name; both are one number."""
    X, y = blobs
    network = mtc.Sequential([mtc.Linear(5, 4)], metrics=["f1", "f1_score", "roc_auc_score", "perplexity"], batch=32, target="cpu")
    assert "f1_score      = f1(linear1, y)" in network.source
    assert "roc_auc_score = roc_auc(softmax(linear1), y)" in network.source
    history = network.fit(X[:400], y[:400], epochs=2, validation_data=(X[400:], y[400:]), verbose=0)
    assert set(history) >= {"loss", "val_loss", "val_f1", "val_f1_score", "val_roc_auc_score", "val_perplexity"}
    assert not {"f1", "f1_score", "perplexity"} & set(history), "of training's own steps there are means alone"
    assert history["val_f1"] == history["val_f1_score"]
    found = network.evaluate(X[400:], y[400:])
    assert {f"val_{name}": value for name, value in found.items()} == {name: values[-1] for name, values in history.items() if name[:4] == "val_"}
    predicted = network.predict(X[400:])
    scores = [2 * ((predicted == k) & (y[400:] == k)).sum() / ((predicted == k).sum() + (y[400:] == k).sum()) for k in range(4)]
    assert found["f1_score"] == pytest.approx(np.mean(scores), rel=1e-12)


def test_yes_or_no_and_numbers(blobs):
    X, y = blobs
    yes = (y > 1).astype("f4")[:, None]
    layers = [mtc.Linear(5, 1)]
    for last in [], [mtc.Sigmoid()]:
        network = mtc.Sequential(layers + last, loss="bce", metrics=["precision_score", "recall", "average_precision_score"], batch=32, target="cpu")
        with pytest.warns(mtc.TrainingWarning, match="precision_score is a metric over a set, and there are neither validation nor"):
            network.fit(X, yes, epochs=3, verbose=0)
        p, found = network.predict_proba(X).reshape(600, -1)[:, -1], network.evaluate(X, yes)
        assert found["recall"] == pytest.approx((p[yes[:, 0] == 1] > 0.5).mean(), rel=1e-12), last
    network = mtc.Sequential([mtc.Linear(5, 1)], loss="mse", metrics=["r2_score", "root_mean_squared_error"], normalize_target=True,
                             batch=32, target="cpu")
    price = 100 * y.astype("f4")[:, None]
    with pytest.warns(mtc.TrainingWarning, match="r2_score is a metric over a set"):
        network.fit(X, price, epochs=2, verbose=0)
    residual = network.predict(X).reshape(-1, 1).astype("f8") - price
    found = network.evaluate(X, price)
    assert found["root_mean_squared_error"] == pytest.approx(np.sqrt((residual**2).mean()), rel=1e-6)
    assert found["r2_score"] == pytest.approx(1 - (residual**2).mean() / price.astype("f8").var(), rel=1e-6)


def test_early_stopping_needs_validation_data(blobs):
    X, y = blobs
    network = mtc.Sequential([mtc.Linear(5, 4)], metrics="f1_score", batch=32, target="cpu")
    with pytest.raises(mtc.UsageError, match="there is no 'f1_score' to monitor; there are no validation data"):
        network.fit(X, y, epochs=2, verbose=0, early_stopping=mtc.EarlyStopping("f1_score"))
    data = (X[400:], y[400:])
    with pytest.raises(mtc.UsageError, match="did you mean 'val_f1_score'"):
        network.fit(X, y, epochs=2, verbose=0, early_stopping=mtc.EarlyStopping("f1_score"), validation_data=data)
    history = network.fit(X, y, epochs=2, verbose=0, early_stopping=mtc.EarlyStopping("val_f1_score"), validation_data=data)
    assert len(history["val_f1_score"]) == 2


def test_what_fits_the_loss():
    """By what a metric takes, as the table says: no list of names."""
    assert {"f1", "f1_score", "roc_auc", "perplexity", "top_k_accuracy_score"} <= set(LOSSES["cross_entropy"].metrics)
    assert {"f1", "average_precision_score"} <= set(LOSSES["bce"].metrics) and "perplexity" not in LOSSES["bce"].metrics
    assert {"rmse", "mean_absolute_percentage_error"} <= set(LOSSES["huber"].metrics) and "f1" not in LOSSES["mse"].metrics
    assert next(iter(LOSSES["cross_entropy"].metrics)) == "accuracy" and next(iter(LOSSES["mse"].metrics)) == "mae"


def test_confusion_matrix(blobs):
    X, y = blobs
    network = mtc.Sequential([mtc.Linear(5, 4)], metrics=["accuracy", "confusion_matrix"], batch=32, target="cpu")
    history = network.fit(X, y, epochs=3, validation_data=(X, y), verbose=0)
    assert set(history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    predicted = network.predict(X)
    expected = [[((y == i) & (predicted == j)).sum() for j in range(4)] for i in range(4)]
    assert network.confusion_matrix(X, y).tolist() == expected
    without = mtc.Sequential([mtc.Linear(5, 4)], batch=32, target="cpu")
    without.fit(X, y, epochs=1, verbose=0)
    with pytest.raises(mtc.UsageError, match=r"has no confusion.*Sequential\(..., metrics=\['accuracy', 'confusion'\]\) has it"):
        without.confusion_matrix(X, y)
    with pytest.raises(mtc.UsageError, match="cannot have it: its loss, MSE, is of numbers and not of classes"):
        mtc.Sequential([mtc.Linear(5, 4)], loss="mse", target="cpu").confusion_matrix(X, np.zeros((500, 4)))
    with pytest.raises(mtc.UsageError, match=r"has no confusion.*metric = \[accuracy\(scores, label\), confusion\(scores, label\)\] in the train block"):
        mtc.compile(ROOT / "models" / "mnist.mt", target="cpu").confusion_matrix(X, y)
