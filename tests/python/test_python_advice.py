"""What programs warn of, from Python: the same words of the same code, with Python's cures."""

import warnings

import numpy as np
import pytest

import mtc
from conftest import MTC

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]

X = np.random.default_rng(1).random((3000, 4), np.float32)
Y = (X[:, 0] > 0.5).astype("i4")
BYTES = np.random.default_rng(1).integers(240, 256, (128, 4), np.uint8)


def network(loss="cross_entropy", lr=1e-3, **options):
    outputs = 2 if loss == "cross_entropy" else 1
    return mtc.Sequential([mtc.Linear(4, outputs)], loss=loss, optimizer=mtc.SGD(lr), target="cpu", seed=1, **options)


def told(model, *data, epochs=1, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(*data, epochs=epochs, verbose=0, **options)
    assert all(each.category is mtc.TrainingWarning and each.filename == __file__ for each in found)
    return [str(each.message) for each in found]


@pytest.mark.parametrize("layer, data, options, says, cure", [
    ("cross_entropy", (X * 1000 + 3000, Y), {}, "field 'x' has numbers up to", "; mtc.Normalize() as the first layer brings them there"),
    ("mse", (X, X[:, 0] * 1000 + 200), {}, "the numbers of 'y', which is to be predicted", "; with normalize_target=True the network learns"),
    ("mse", (BYTES, X[:128, 0]), {"input_dtype": "u8"}, "the numbers of 'x', bytes", "; mtc.Rescaling(1 / 255) as the first layer"),
    ("cross_entropy", (X[:50], Y[:50]), {}, "a batch has 64 examples and the training data only 50", "; batch=N makes a model of smaller ones"),
    ("cross_entropy", (X, Y), {"metrics": "f1"}, "f1 is a metric over a set", "; evaluate does"),
], ids=["input", "target", "bytes", "batch", "metric"])
def test_what_goes_nowhere(layer, data, options, says, cure):
    [text] = told(network(layer, **options), *data)
    assert says in text and cure in text and "--" not in text


def test_a_loss_that_does_not_move():
    model = network(lr=1e-9)
    [text] = told(model, X, Y, epochs=4)
    assert text.startswith("the loss has not moved in an epoch") and "(lr is 1e-09)" in text and "--" not in text
    assert told(model, X, Y, epochs=3) == []


def test_weights_that_have_learned_may_stand_still(tmp_path):
    first, second, third = network(lr=1e-9), network(lr=1e-9), network(lr=1e-9)
    first.save(tmp_path / "w.safetensors")
    second.load(tmp_path / "w.safetensors")
    third.load_state_dict(first.state_dict())
    assert told(second, X, Y, epochs=3) == told(third, X, Y, epochs=3) == []
    assert len(told(first, X, Y, epochs=3)) == 1


def test_a_warning_that_is_an_error_ends_the_training():
    model = network(lr=1e-9)
    with warnings.catch_warnings(), pytest.raises(mtc.TrainingWarning, match="has not moved"):
        warnings.simplefilter("error")
        model.fit(X, Y, epochs=9, verbose=0)
    assert 2 <= model.status["epoch"] < 9


def test_usual_trainings_are_silent():
    assert told(network(), X, Y, epochs=2) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mtc.Classifier(hidden=(), epochs=1, random_state=0).fit(X[:40] * 1000, Y[:40])
