"""sample_weight of fit and evaluate: of models whose text says what an example counts, of mtc.Sequential, of the estimators."""

import numpy as np
import pytest

import mtc
from conftest import MTC

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]

TEXT = """data {
  train = npz("train.npz")
  x     : f32[4]
  label : class[3]
  w     : f32
}
model { s = linear(x, 3) }
train {
  loss           = cross_entropy(s, label)
  metric         = [accuracy(s, label), f1(s, label), confusion(s, label)]
  example_weight = w
  optimizer      = sgd(0.1)
  batch          = 16
}
"""
RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(90, 4)).astype("f4")
LABEL = RANDOM.integers(0, 3, 90)
WEIGHT = RANDOM.integers(0, 4, 90)
REPEATED = np.repeat(np.arange(90), WEIGHT)


def untrained(**options):
    return mtc.Sequential([mtc.Linear(4, 8), mtc.ReLU(), mtc.Linear(8, 3)], metrics=["accuracy", "f1"], batch=16, seed=1, target="cpu", **options)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("weighted") / "m.mt"
    path.write_text(TEXT)
    return mtc.compile(path, target="cpu", seed=1)


def test_evaluation_counts_examples_as_they_weigh(model):
    """As those that come so many times; without weights all count the same."""
    repeated, plain = model.evaluate(X[REPEATED], LABEL[REPEATED]), model.evaluate(X, LABEL)
    assert model.evaluate(X, LABEL, sample_weight=WEIGHT) == {key: pytest.approx(value, rel=1e-5) for key, value in repeated.items()}
    assert model.evaluate({"x": X, "label": LABEL, "w": WEIGHT}) == model.evaluate(X, LABEL, sample_weight=WEIGHT)
    assert model.evaluate(X, LABEL, sample_weight=np.full(90, 2.0)) == {key: pytest.approx(value, rel=1e-5) for key, value in plain.items()}
    matrix = model.confusion_matrix(X, LABEL, sample_weight=WEIGHT / 2)
    assert matrix.tolist() == (model.confusion_matrix(X[REPEATED], LABEL[REPEATED]) / 2).tolist()
    with pytest.raises(mtc.UsageError, match=r"sample_weight and X\['w'\] are both the weights of the examples"):
        model.evaluate({"x": X, "label": LABEL, "w": WEIGHT}, sample_weight=WEIGHT)
    assert [field["name"] for field in model.fields if field["weighs"]] == ["w"] and len(model.predict(X)) == 90


def test_a_network_weighs_where_it_is_asked_to():
    """What weighs nothing changes nothing, whatever its label is; its text and summary tell of the weights."""
    wrong, weight = (LABEL + 1) % 3, (np.arange(90) < 45).astype("f4")
    finds = []
    for y in LABEL, np.where(weight > 0, LABEL, wrong):
        network = untrained()
        assert "example_weight" not in network.source and "val_accuracy" not in network.metrics
        history = network.fit(X, y, sample_weight=weight, validation_data=(X, y, weight), epochs=3, verbose=0)
        finds.append((dict(history), network.state_dict()["linear1.weight"].tobytes()))
    assert finds[0] == finds[1] and "example_weight = sample_weight" in " ".join(network.source.split())
    assert network.summary_text() and list(finds[0][0]) == ["loss", "accuracy", "val_loss", "val_accuracy", "val_f1"]
    ones = untrained()
    ones.fit(X, LABEL, sample_weight=np.ones(90), epochs=2, verbose=0)
    plain = untrained()
    plain.fit(X, LABEL, epochs=2, verbose=0)
    for name, value in plain.state_dict().items():
        np.testing.assert_allclose(ones.state_dict()[name], value, atol=1e-6)


def test_weights_of_a_network_stay_where_examples_begin_to_weigh():
    network = untrained()
    network.load_state_dict({"linear1.bias": np.arange(8, dtype="f4")}, strict=False)
    evaluated = network.evaluate(X, LABEL)
    assert network.evaluate(X, LABEL, sample_weight=np.ones(90)) == {key: pytest.approx(value, rel=1e-6) for key, value in evaluated.items()}
    assert network.state_dict()["linear1.bias"].tolist() == list(range(8))
    trained = untrained()
    trained.fit(X, LABEL, epochs=1, verbose=0)
    with pytest.raises(mtc.UsageError, match=r"trained without sample_weight, .*: reset\(\) begins anew"):
        trained.fit(X, LABEL, sample_weight=WEIGHT)
    trained.reset().fit(X, LABEL, sample_weight=WEIGHT, epochs=1, verbose=0)


def test_params_stay_where_examples_begin_to_weigh():
    for begin in lambda network: network, lambda network: network.reset():
        network = begin(untrained(optimizer=mtc.SGD(0.1)).set(lr=0))
        before = network.state_dict()["linear1.weight"]
        network.fit(X, LABEL, sample_weight=WEIGHT, epochs=1, verbose=0)
        assert network.status["params"]["lr"] == 0 and (network.state_dict()["linear1.weight"] == before).all()


def test_three_fields_without_labels_are_no_weights():
    text = """data {
      train = npz("train.npz")
      a : f32[1]
      b : f32[1]
      c : f32[1]
    }
    model { y = linear(concat([a, b, c], axis = 0), 3) }
    train { loss = mse(y, concat([a, b, c], axis = 0))
      optimizer = sgd(0.1) }"""
    three = tuple(X[:, k : k + 1] for k in range(3))
    with mtc.compile(text, target="cpu") as model:
        assert list(model.fit(three, validation_data=three, epochs=1, verbose=0)) == ["loss", "val_loss"]


def test_what_no_weights_are():
    network = untrained()
    for weight, error in (-WEIGHT, "example .* is -[123]: it is the weight of its example"), (WEIGHT[:9], "sample_weight has 9 examples"):
        with pytest.raises(mtc.DataError, match=error):
            network.fit(X, LABEL, sample_weight=weight, verbose=0)
    with pytest.raises(mtc.UsageError, match="belong to X"):
        network.fit(sample_weight=WEIGHT)


@pytest.mark.parametrize("kind, y", [(mtc.Classifier, LABEL), (mtc.Regressor, X[:, 0] - X[:, 1])], ids=["classifier", "regressor"])
def test_estimators(kind, y):
    """Rows of weight 0 are not there; early stopping holds some back, with their weights."""
    weight = (np.arange(90) < 60).astype("f8")
    other = np.where(weight > 0, y, y[::-1])
    answers = []
    for values in y, other:
        fitted = kind(hidden=8, random_state=3, target="cpu", epochs=4, early_stopping=True, normalize=False).fit(X, values, sample_weight=weight)
        answers.append(fitted.predict(X).tolist())
        fitted.partial_fit(X, values, sample_weight=weight)
    if kind is mtc.Regressor:  # labels decide which rows a classifier holds back
        assert answers[0] == answers[1]
    plain = kind(hidden=8, random_state=3, target="cpu", epochs=2).fit(X, y)
    ones = kind(hidden=8, random_state=3, target="cpu", epochs=2).fit(X, y, sample_weight=1)
    assert np.mean(plain.predict(X) == ones.predict(X)) > 0.9 or np.allclose(plain.predict(X), ones.predict(X), atol=1e-4)
    for bad, error in (-weight - 1, r"sample_weight\[0\] is -2.0"), (weight[:5], r"sample_weight.shape == \(5,\), expected \(90,\)"):
        with pytest.raises(ValueError, match=error):
            plain.fit(X, y, sample_weight=bad)
