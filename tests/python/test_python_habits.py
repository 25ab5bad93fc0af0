"""What people who know Keras, PyTorch or scikit-learn write from habit: told what to write instead, or understood."""

import re

import numpy as np
import pytest

import mtc
from conftest import MTC

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]


def no_network(**options):
    return mtc.Sequential([mtc.Linear(4, 2)], target="cpu", **options)


X, Y = np.zeros((8, 4), "f4"), np.zeros(8, "i4")
HABITS = {
    "mtc.Dense": (lambda net: mtc.Dense, AttributeError, "no attribute 'Dense'; it is called mtc.Linear"),
    "mtc.MaxPooling2D": (lambda net: mtc.MaxPooling2D, AttributeError, "it is called mtc.MaxPool2d"),
    "mtc.BatchNormalization": (lambda net: mtc.BatchNormalization, AttributeError, "mtc.BatchNorm1d or mtc.BatchNorm2d"),
    "mtc.CosineAnnealingLR": (lambda net: mtc.CosineAnnealingLR, AttributeError, "it is called mtc.Cosine"),
    "mtc.CrossEntropyLoss": (lambda net: mtc.CrossEntropyLoss, AttributeError, "it is called mtc.CrossEntropy or mtc.SoftCrossEntropy"),
    "mtc.F1Score": (lambda net: mtc.F1Score, AttributeError, r"it is a metric: mtc.Sequential\(..., metrics=\['f1'\]\)"),
    "mtc.BMM": (lambda net: mtc.BMM, AttributeError, r"it is matmul\(...\) in the text of a model"),
    "mtc.load_model": (lambda net: mtc.load_model, AttributeError, r"mtc.compile\(MODEL\).load\(FILE\)"),
    "mtc.Bidirectional": (lambda net: mtc.Bidirectional, AttributeError, "it is bidirectional=True of mtc.RNN"),
    "mtc.GlobalAveragePooling1D": (lambda net: mtc.GlobalAveragePooling1D, AttributeError, r"mtc.Mean\(1\) of channels .* mtc.Mean\(0\) of a seq"),
    "mtc.MaxPool1d": (lambda net: mtc.MaxPool1d, AttributeError, r"mtc.Reshape\(\(8, 1, 60\)\), and then mtc.MaxPool2d\(\(1, 2\)\)"),
    "a function as a loss": (lambda net: no_network(loss=lambda p, t: abs(p - t)), mtc.UsageError, "loss is no function of Python.*mtc.compile"),
    "a function as a metric": (lambda net: no_network(metrics=[lambda p, t: p == t]), mtc.UsageError, "metrics are no functions of Python.*mtc.compile"),
    "a metric that is none": (lambda net: no_network(metrics=3), mtc.UsageError, "metrics are names, such as 'accuracy', not 3"),
    "layer.trainable": (lambda net: setattr(net[0], "trainable", False), AttributeError, r"'trainable': .* freeze=\['linear1"),
    "model.trainable": (lambda net: setattr(net, "trainable", False), AttributeError, r"'trainable' of a 'Sequential': .* freeze=\['linear1"),
    "model.lr": (lambda net: setattr(net, "lr", 0.1), AttributeError, r"model.set\(lr=1e-3\)"),
    "model.stop_training": (lambda net: setattr(net, "stop_training", True), AttributeError, "a callback that returns True"),
    "model.batch": (lambda net: setattr(net, "batch", 8), AttributeError, "it is given when a model is made"),
    "model.freeze": (lambda net: setattr(net, "freeze", "*"), AttributeError, "it is given when a model is made"),
    "model.trainible": (lambda net: setattr(net, "trainible", False), AttributeError, "did you mean 'trainable'"),
    "weight.requires_grad": (lambda net: setattr(net.params["linear1.weight"], "requires_grad", False), AttributeError, "freeze="),
    "weight.data": (lambda net: setattr(net.params["linear1.weight"], "data", X), AttributeError, r"\[...\] = values writes it"),
    "mtc.Linaer": (lambda net: mtc.Linaer, AttributeError, "did you mean 'Linear'"),
    "compile": (lambda net: net.compile("adam"), AttributeError, "'Sequential' object has no attribute 'compile': a model has its loss"),
    "train": (lambda net: net.train(), AttributeError, "leave it out"),
    "to": (lambda net: net.to("cuda"), AttributeError, "target='cuda'"),
    "parameters": (lambda net: net.parameters(), AttributeError, "model.params"),
    "sumary": (lambda net: net.sumary(), AttributeError, "did you mean 'summary'"),
    "trainable": (lambda net: net.trainable, AttributeError, "no attribute 'trainable'$"),
    "called": (lambda net: net(X), TypeError, r"model.predict\(X\)"),
    "shuffle": (lambda net: net.fit(X, Y, shuffle=False), TypeError, "keyword argument 'shuffle': each epoch"),
    "steps_per_epoch": (lambda net: net.fit(X, Y, steps_per_epoch=3), TypeError, "an epoch is all examples once"),
    "fit(X, y, 10)": (lambda net: net.fit(X, Y, 10), TypeError, "takes X and y without their names"),
    "evaluate()": (lambda net: net.evaluate(), mtc.UsageError, "give X and y: a Sequential has no data of its own, unless test.npz"),
    "fit()": (lambda net: net.fit(), mtc.UsageError, "unless train.npz"),
    "weights of validation": (lambda net: net.fit(X, Y, validation_data=(X, Y, Y, Y)), mtc.UsageError, r"validation_data is \(X, y\) or \(X, y, sample_weight\), not a tuple of 4"),
    "restore_best_weights": (lambda net: mtc.EarlyStopping(restore_best_weights=True), TypeError, "it is restore_best"),
    "activation": (lambda net: mtc.Linear(4, 8, activation="relu"), TypeError, r"Linear has no argument 'activation': .* mtc.ReLU\(\)"),
    "return_sequences": (lambda net: mtc.LSTM(4, 8, return_sequences=True), TypeError, "unless last=True"),
    "patence": (lambda net: mtc.EarlyStopping(patence=3), TypeError, "did you mean 'patience'"),
    "two rules": (lambda net: net.fit(X, Y, early_stopping=3, callbacks=[mtc.EarlyStopping()]), mtc.UsageError, "there are 2 rules of early stopping"),
    "alpha": (lambda net: mtc.Regressor(alpha=1e-4), TypeError, "did you mean 'weight_decay'"),
    "a plateau of nothing": (lambda net: no_network(optimizer=mtc.Adam(mtc.Plateau(1e-2))).fit(X, Y), mtc.UsageError,
                             r"plateau_lr needs data to evaluate: .*; fit\(validation_split=0.1\)"),
    "words for numbers": (lambda net: mtc.Regressor().fit(X, ["a"] * 8), ValueError, "y has words, such as 'a', and Regressor predicts numbers; mtc.Classifier"),
}


@pytest.mark.parametrize("habit", HABITS)
def test_habits_of_other_packages(habit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    act, kind, cure = HABITS[habit]
    with pytest.raises(kind, match=cure):
        act(no_network())


def test_habits_that_mean_what_they_say():
    """Keras's way to stop early, its history and its names of metrics."""
    network = no_network(metrics=["acc", "categorical_accuracy"])
    history = network.fit(X, Y, epochs=9, verbose=0, callbacks=[mtc.EarlyStopping(monitor="acc", patience=2)])
    assert history.stopped == "early_stopping" and history.history["acc"] == history["acc"]
    assert list(history) == ["loss", "acc", "categorical_accuracy"]


def test_what_a_habit_names_exists():
    from mtc import habits

    names = {*dir(mtc), *dir(mtc.Model), "Sequential"}
    for cures in (habits.MODULE, habits.MODEL, habits.FIT, habits.ARGUMENTS, habits.SETTINGS, habits.PARAMETER, habits.EARLY_STOPPING):
        for word, cure in cures.items():
            assert cures is not habits.MODULE or word not in dir(mtc)
            assert cures is not habits.MODEL or not hasattr(mtc.Model, word)
            named = re.findall(r"\b(?:mtc|model)\.(\w+)", cure)
            assert set(named) <= names, (word, cure)
