"""The Python package's models: trained, asked, saved, and what arrays they take."""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from python_package import BLOBS, LINE, blobs, line

import mtc
from conftest import MTC, ROOT
from test_recompute import SEQUENCES

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]


def compile_blobs(**options):
    return mtc.compile(BLOBS, target="cpu", **options)


def weights_of(model):
    return {name: values for name, values in model.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.fixture
def model():
    with compile_blobs() as made:
        yield made


@pytest.fixture
def data():
    return blobs(203)


# ---- training ----


def test_learns(model, data):
    history = model.fit(*data, epochs=12, validation_data=blobs(100, 1), verbose=0)
    assert list(history) == ["loss", "accuracy", "val_loss", "val_accuracy"]
    assert history.epochs == list(range(1, 13)) and history.stopped is None and history.seconds > 0
    assert history["accuracy"][-1] > 0.95 and history["val_accuracy"][-1] > 0.95
    assert model.history is history
    test = blobs(100, 1)
    assert model.evaluate(*test) == {"loss": history["val_loss"][-1], "accuracy": history["val_accuracy"][-1]}
    assert model.score(*test) == pytest.approx(history["val_accuracy"][-1])


def test_the_same_as_the_program(compile_model, data, tmp_path):
    """From arrays in Python and from files on the command line come the same weights."""
    np.savez(tmp_path / "train.npz", x=data[0], y=data[1])
    np.savez(tmp_path / "test.npz", x=data[0][:20], y=data[1][:20])
    program = compile_model(BLOBS)
    program("--data", tmp_path, "--save", tmp_path / "program.safetensors", "--quiet")
    with compile_blobs() as from_arrays, compile_blobs() as from_files:
        from_arrays.fit(*data, verbose=0)
        own = from_files.fit(data=tmp_path, verbose=0)
        trained = mtc.compile(BLOBS, target="cpu").load(tmp_path / "program.safetensors")
        assert same(weights_of(from_arrays), weights_of(trained)) and same(weights_of(from_files), weights_of(trained))
        assert list(own) == ["loss", "accuracy", "val_loss", "val_accuracy"]  # of the test data
        assert own["val_loss"][-1] == from_files.evaluate(data=tmp_path)["loss"] == from_arrays.evaluate(data[0][:20], data[1][:20])["loss"]


def test_fit_goes_on_and_reset_begins_anew(data):
    with compile_blobs() as whole, compile_blobs() as parts:
        whole.fit(*data, epochs=5, verbose=0)
        first = parts.fit(*data, epochs=2, verbose=0)
        second = parts.fit(*data, epochs=3, verbose=0)
        assert first.epochs == [1, 2] and second.epochs == [3, 4, 5]
        assert same(weights_of(whole), weights_of(parts))
        parts.reset().fit(*data, epochs=5, verbose=0)
        assert same(weights_of(whole), weights_of(parts))
        parts.fit(*data, epochs=5, seed=7, verbose=0)
        assert not same(weights_of(whole), weights_of(parts)) and parts.status["seed"] == 7


def test_epochs_are_the_models_unless_given(model, data):
    assert len(model.fit(*data, verbose=0).epochs) == 4


def test_history_names_what_it_has(model, data):
    history = model.fit(*data, epochs=1, verbose=0)
    with pytest.raises(KeyError, match="did you mean 'accuracy'"):
        history["acuracy"]
    with pytest.raises(KeyError, match="'epochs' is not recorded; recorded are loss, accuracy; it is an attribute: history.epochs"):
        history["epochs"]


def test_validation_split(model, data):
    history = model.fit(*data, epochs=2, validation_split=0.25, verbose=0)
    assert history.steps_per_epoch == -(-152 // 16) and "val_accuracy" in history
    again = model.reset().fit(*data, epochs=2, validation_split=0.25, verbose=0)
    assert dict(again) == dict(history)


@pytest.mark.parametrize("watching", [{}, {"callbacks": [lambda model, epoch, logs: None]}, {"early_stopping": 50}])
def test_what_watches_changes_nothing(data, watching):
    with compile_blobs() as plain, compile_blobs() as watched:
        plain.fit(*data, epochs=3, validation_data=blobs(50, 1), verbose=0)
        watched.fit(*data, epochs=3, validation_data=blobs(50, 1), verbose=0, **watching)
        assert same(weights_of(plain), weights_of(watched))


def test_callbacks_may_use_the_model(data, tmp_path):
    """Evaluating, predicting, saving and setting params at the end of an epoch leave the training as it is."""
    seen = []

    class Watch(mtc.Callback):
        def on_begin(self, model):
            seen.append("begin")

        def on_epoch(self, model, epoch, logs):
            test = blobs(37, 5)
            seen.append((epoch, model.evaluate(*test)["accuracy"], (model.predict(test[0]) == test[1]).mean(), logs["val_loss"]))
            model.save(tmp_path / f"{epoch}.safetensors")
            model.set(lr=0.05)

        def on_end(self, model, history):
            seen.append("end")

    with compile_blobs() as plain, compile_blobs() as watched:
        expected = plain.fit(*data, epochs=3, validation_data=blobs(50, 1), verbose=0)
        history = watched.fit(*data, epochs=3, validation_data=blobs(50, 1), callbacks=Watch(), verbose=0)
        assert dict(history) == dict(expected) and same(weights_of(plain), weights_of(watched))
    assert seen[0] == "begin" and seen[-1] == "end" and [each[0] for each in seen[1:-1]] == [1, 2, 3]
    assert all(evaluated == pytest.approx(predicted) for _, evaluated, predicted, _ in seen[1:-1])
    assert [each[3] for each in seen[1:-1]] == history["val_loss"] and len(list(tmp_path.iterdir())) == 3


def test_callback_ends_training(model, data):
    history = model.fit(*data, epochs=9, callbacks=lambda model, epoch, logs: epoch == 3, verbose=0)
    assert history.epochs == [1, 2, 3] and history.stopped == "callback" and model.status["step"] == 3 * 13


def test_exception_of_a_callback(model, data):
    def fail(model, epoch, logs):
        raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        model.fit(*data, epochs=9, callbacks=fail, verbose=0)
    assert model.history.epochs == [1]
    model.fit(*data, epochs=1, verbose=0)
    assert model.status["epoch"] == 2


@pytest.mark.parametrize("what", ["fit", "close", "reset"])
def test_callbacks_cannot_end_the_model(model, data, what):
    with pytest.raises(mtc.UsageError, match="by a callback, while the model is training"):
        model.fit(*data, callbacks=lambda model, *_: getattr(model, what)(), verbose=0)


def test_early_stopping_restores_the_best(model, tmp_path):
    train, test = blobs(40), blobs(60, 1)
    seen = {}

    def remember(model, epoch, logs):
        seen[epoch] = weights_of(model)

    model.set(lr=0.5)
    history = model.fit(*train, epochs=200, validation_data=test, early_stopping=3, callbacks=remember,
                        checkpoint=tmp_path / "m.safetensors", verbose=0)
    best = int(np.argmin(history["val_loss"])) + 1
    assert history.stopped == "early_stopping" and history.best_epoch == best == history.epochs[-1] - 3
    assert same(weights_of(model), seen[best]) and model.evaluate(*test)["loss"] == min(history["val_loss"])
    with compile_blobs() as other:  # what another process finds is this model
        assert same(weights_of(other.load(tmp_path / "m.safetensors")), seen[best])
        assert other.fit(*train, epochs=history.epochs[-1] + 1, resume=tmp_path / "m.safetensors", verbose=0).epochs == [history.epochs[-1] + 1]


def test_an_epoch_that_is_equal_is_no_better(model, data):
    history = model.set(lr=0).fit(*data, validation_data=data, epochs=50, early_stopping=2, verbose=0)
    assert history.epochs == [1, 2, 3] and history.best_epoch == 1 and len(set(history["val_loss"])) == 1


def test_early_stopping_monitors_what_is_asked_for(model, data):
    stop = mtc.EarlyStopping("accuracy", patience=2, restore_best=False, min_delta=1)
    history = model.fit(*data, epochs=50, early_stopping=stop, verbose=0)
    assert history.epochs == [1, 2, 3] and history.best_epoch == 1


@pytest.mark.parametrize("given, patience", [
    (np.int64(2), 2), (mtc.EarlyStopping(patience=np.int32(2)), 2), (np.True_, 5), (np.False_, None), (None, None)], ids=str)
def test_early_stopping_by_numbers_of_numpy(model, data, given, patience):
    """As searches over settings give them; callbacks=None are none, as in Keras."""
    history = model.set(lr=0).fit(*data, validation_data=data, epochs=8, early_stopping=given, callbacks=None, verbose=0)
    assert history.epochs[-1] == (8 if patience is None else patience + 1)


def test_checkpoint_and_resume(data, tmp_path):
    """A training that goes on from a checkpoint in another process's model ends with the same bytes."""
    first, last = tmp_path / "first.safetensors", tmp_path / "last.safetensors"
    with compile_blobs(lr=0.02) as whole, compile_blobs(lr=0.02) as part, compile_blobs(seed=5) as other:
        expected = whole.fit(*data, epochs=6, checkpoint=last, verbose=0)
        part.fit(*data, epochs=4, checkpoint=first, verbose=0)
        history = other.fit(*data, epochs=6, resume=first, checkpoint=tmp_path / "resumed.safetensors", verbose=0)
        assert history.epochs == [5, 6] and history["loss"] == expected["loss"][4:]
        assert same(weights_of(whole), weights_of(other)) and other.status["params"] == {"lr": pytest.approx(0.02)}
        assert (tmp_path / "resumed.safetensors").read_bytes() == last.read_bytes()
        assert other.fit(*data, resume=last, verbose=0).epochs == []  # all six are done


def test_save_best(model, data, tmp_path):
    history = model.fit(*blobs(40), epochs=12, validation_data=blobs(60, 1), checkpoint=tmp_path / "m.safetensors", save_best=True, verbose=0)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m-best.safetensors", "m.safetensors"]
    assert model.load(tmp_path / "m-best.safetensors").evaluate(*blobs(60, 1))["loss"] == min(history["val_loss"])
    model.fit(*data, epochs=1, save_best=tmp_path / "own", verbose=0)
    assert (tmp_path / "own").exists()


def test_log(data, tmp_path, mtc):
    """What mtc plot reads: the same events as a program's log."""
    log, checkpoint = tmp_path / "run.jsonl", tmp_path / "c.safetensors"
    with compile_blobs() as model:
        model.fit(*data, epochs=2, validation_data=blobs(50, 1), log=log, checkpoint=checkpoint, verbose=0)
        history = model.history
    with open(log, "a") as file:
        file.write('{"event": "tra')  # of a process that was killed
    with compile_blobs() as model:
        model.fit(*data, epochs=3, resume=checkpoint, log=log, verbose=0)
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    config = lines[0]
    assert [each["event"] for each in lines if each["event"] != "train"] == ["config", "epoch", "epoch", "end", "config", "epoch", "end"]
    assert config["params"] == {"lr": 0.05, "hidden": 8} and config["steps"] == 26 and config["train_examples"] == 203
    assert config["train"]["optimizer"] == "adam(lr)" and config["target"] == "cpu"
    epochs = [each for each in lines if each["event"] == "epoch"]
    assert [each["validation_loss"] for each in epochs[:2]] == history["val_loss"] and [each["step"] for each in epochs] == [13, 26, 39]
    done = mtc("plot", log, "-o", tmp_path / "curves.svg")
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_log_of_steps(model, tmp_path):
    """Lines within an epoch hold the means since the line before, from those over the epoch, however often the program tells them."""
    from mtc.training import Files, Plan, Training

    random, examples, steps = np.random.default_rng(0), 203, 13
    loss = random.random(2 * steps)
    rows = np.array([16] * 12 + [11])
    training = Training(model, Plan(2, examples, None, files=Files(log=tmp_path / "run.jsonl")))
    training._open_log(2 * steps)
    told = sorted({*random.choice(np.arange(1, 2 * steps), 15, replace=False), steps, 2 * steps})
    for step in told:
        epoch, done = divmod(int(step) - 1, steps)
        mean = np.average(loss[epoch * steps : step], weights=rows[: done + 1])
        training._log_steps(int(step), [mean, 0.0])
    lines = [json.loads(text) for text in (tmp_path / "run.jsonl").read_text().splitlines()][1:]
    before = 0
    for each in lines:
        epoch = each["epoch"] - 1
        first = max(before, epoch * steps)
        weights = rows[first - epoch * steps : each["step"] - epoch * steps]
        assert each["loss"] == pytest.approx(np.average(loss[first : each["step"]], weights=weights))
        before = each["step"]
    assert len(lines) >= 4 and all(later["step"] - line["step"] >= 2 for line, later in zip(lines, lines[1:]))


def test_interrupted_or_diverged_the_best_is_restored(model, data):
    """Also where training ends within the epoch after the best one."""
    seen = {}

    def break_it(model, epoch, logs):
        seen[epoch] = weights_of(model)
        if epoch == 3:
            model.params["h.weight"][...] = np.float32(3e38)

    with pytest.raises(mtc.DivergedError):
        model.fit(*data, epochs=9, early_stopping=mtc.EarlyStopping("loss"), callbacks=break_it, verbose=0)
    assert model.history.epochs == [1, 2, 3] and same(weights_of(model), seen[model.history.best_epoch])


def test_diverged(model, data, tmp_path):
    model.params["h.weight"][...] = np.float32(3e38)
    with pytest.raises(mtc.DivergedError, match="training diverged: the loss of step .* is") as caught:
        model.fit(*data, log=tmp_path / "run.jsonl", verbose=0)
    last = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[-1])
    assert last == {"event": "fault", "message": str(caught.value)}
    assert model.reset().fit(*data, verbose=0)["loss"][-1] < 1


INTERRUPTED = """
import os, signal, sys, threading, time
sys.path[:0] = [{tests!r}]
import conftest, python_package as package, mtc
model = mtc.compile(package.BLOBS, target="cpu")
data = package.blobs(5000)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    model.fit(*data, epochs=10**6, verbose=0{more})
    print("came to its end")
except KeyboardInterrupt:
    assert model.history.stopped == "interrupted" and len(model.history.epochs) > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    step = model.status["step"]
    if "c.safetensors" in {more!r}:
        assert mtc.Model(package.BLOBS, target="cpu").resume("c.safetensors").status["step"] == step
    model.fit(*data, epochs=1, verbose=0)
    assert model.status["step"] > step > 0
    print("interrupted, and usable", model.evaluate(*data)["accuracy"] > 0.9)
"""


@pytest.mark.parametrize("more", ["", ", callbacks=lambda *_: None", ", checkpoint='c.safetensors'"])
def test_interrupt(more, tmp_path):
    script = INTERRUPTED.format(tests=str(ROOT / "tests"), more=more)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.stdout == "interrupted, and usable True\n" and not done.stderr, done.stderr


# ---- answers ----


def test_predictions(model, data):
    X, y = data
    model.fit(X, y, epochs=3, verbose=0)
    probabilities, classes = model.predict_proba(X), model.predict(X)
    assert probabilities.shape == (203, 3) and probabilities.dtype == np.float32 and np.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert classes.shape == (203,) and np.array_equal(classes, probabilities.argmax(1))
    for rows in (1, 15, 16, 17, 100):
        assert np.allclose(model.predict_proba(X[:rows]), probabilities[:rows], atol=1e-6)
    assert np.array_equal(model.predict({"x": X}), classes) and np.array_equal(model.predict({"x": X, "y": y}), classes)


def test_many_rows_in_parts(model, data, monkeypatch):
    from mtc import answers as module

    expected = model.predict(data[0])
    monkeypatch.setattr(module, "_CHUNK", 12 * 32)
    assert np.array_equal(model.predict(data[0]), expected)


def test_numbers(data):
    table, y = line(200)
    with mtc.compile(LINE, target="cpu") as model:
        model.fit(table, y, epochs=30, verbose=0)
        assert model.predict(table).shape == (200, 1) and model.score(table, y) > 0.999
        as_dict = model.predict({"a": table[:, 0], "b": table[:, 1]})
        assert np.array_equal(model.predict(table), as_dict) and np.array_equal(model.predict((table[:, 0], table[:, 1])), as_dict)
        assert model.evaluate({"a": table[:, 0], "b": table[:, 1], "y": y})["loss"] < 1e-3
        with pytest.raises(mtc.UsageError, match=r"the model predicts numbers \[1\], not classes"):
            model.predict_proba(table)


DRAWN = """
data {
  train = npz("points.npz")
  at    : f32[2]
}
model {
  layer critic(v) = linear(tanh(linear(v, 8)), 1)
  drawn = linear(tanh(linear(random_normal([4], in_evaluation = true), 8, name = "first")), 2, name = "second")
  told  = (mean(bce(critic(at), 1, from_logits = true)) + mean(bce(critic(drawn), 0, from_logits = true))) / 2
}
train {
  loss      = mean(bce(critic(drawn), 1, from_logits = true))
  predict   = drawn
  optimizer = [adam(1e-2, weights = "critic.*", loss = told), adam(1e-2)]
}
"""


def test_a_prediction_of_no_field_is_drawn():
    """All fields are what is learned from; to be asked, the model needs to know how many."""
    at = np.random.default_rng(1).normal(3, 0.1, (200, 2)).astype("f4")
    with mtc.compile(DRAWN, target="cpu") as model:
        history = model.fit(at, epochs=2, verbose=0, validation_split=0.1)
        assert len(history["val_loss"]) == 2 and model.evaluate(at)["loss"] > 0
        drawn = model.predict(70)
        assert drawn.shape == (70, 2) and len(np.unique(drawn, axis=0)) == 70
        assert np.array_equal(model.predict(at[:70]), drawn) and np.array_equal(model.predict({"at": at[:70]}), drawn)
        with pytest.raises(mtc.UsageError, match="the number of examples to be drawn, is a whole number from 1 on, not 2.5"):
            model.predict(2.5)
        with pytest.raises(mtc.UsageError, match="no field for y: leave it out"):
            model.fit(at, at, verbose=0)


def test_sequences():
    text = """
data {
  train = npz("t.npz")
  window : class[5][9]
}
model {
  e = embedding(slice(window, 0, 0, 8), 5, 8)
  s = linear(e, 5)
}
train {
  loss = cross_entropy(s, slice(window, 0, 1, 9))
  optimizer = adam(0.02)
}
"""
    with mtc.compile(text, target="cpu") as model:
        window = (np.arange(9) + np.random.default_rng(0).integers(0, 5, (200, 1))) % 5
        model.fit(window, epochs=20, verbose=0)
        assert model.predict(window[:7]).shape == (7, 8) and model.predict_proba(window[:7]).shape == (7, 8, 5)
        assert np.array_equal(model.predict(window), window[:, 1:])


def test_binary():
    text = BLOBS.replace("y : class[3]", "y : f32").replace("linear(h, 3)", "sum(linear(h, 1))").replace(
        "cross_entropy(scores, y)", "bce(scores, y, from_logits = true)").replace("  metric    = accuracy(scores, y)\n", "")
    X, y = blobs(300)
    with mtc.compile(text, target="cpu") as model:
        model.fit(X, y == 1, epochs=20, verbose=0)
        proba = model.predict_proba(X)
        assert proba.shape == (300, 2) and np.allclose(proba.sum(1), 1) and model.score(X, y == 1) > 0.9
        assert np.array_equal(proba[:, 1], model.predict(X).reshape(-1))


# ---- arrays ----


@pytest.mark.parametrize("change", [
    lambda X: X.astype(np.float64), lambda X: X.reshape(len(X), 6), lambda X: X.tolist(), lambda X: np.asfortranarray(X),
    lambda X: np.repeat(X, 2, axis=0)[::2], lambda X: memoryview(X), lambda X: X[:, None], lambda X: X.astype(">f4"),
    lambda X: np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape), lambda X: X.astype(object)])
def test_what_an_array_may_be(model, data, change):
    X, y = data
    expected = model.predict_proba(X)
    assert np.array_equal(model.predict_proba(change(X)), expected)
    assert model.evaluate(change(X), y) == model.evaluate(X, y)


def test_labels_of_any_type(model, data):
    X, y = data
    expected = model.evaluate(X, y)
    for labels in (y.astype(np.int64), y.astype(float), y.tolist(), y[:, None], y.astype(np.int32)[::1]):
        assert model.evaluate(X, labels) == expected


def test_the_users_arrays_are_read_where_they_lie(model, data):
    from mtc import arrays

    X, y = data
    assert X.ctypes.data % 16 == 0
    column = arrays.to_column(model.session, model.fields[0], X, "X")
    assert column.lent and column.owner is X and column.pointer == X.ctypes.data
    before = X.copy()
    model.fit(X, y, verbose=0)
    assert np.array_equal(X, before)


def test_arrays_are_released(model):
    X, y = blobs(100)
    alive = weakref.ref(X)
    model.fit(X, y, validation_data=(X, y), verbose=0)
    model.evaluate(X, y), model.predict(X)
    del X
    assert alive() is None and model.status["examples"] == {"train": 0, "test": 0, "validation": 0}


def test_a_word_about_the_copy(model, recwarn):
    X, y = blobs(60000)
    for _ in range(3):
        model.predict(X.astype(np.float64))
    model.predict(X[::-1])
    model.predict(X), model.predict(X[:100].astype(np.float64)), model.predict(X.tolist()[:1000])
    notices = [each for each in recwarn if each.category is mtc.ConversionNotice]
    assert len(notices) == 2 and notices[0].filename == __file__
    assert "X: float64 [60000, 2, 3] (2.9 MB) was copied as float32 (1.4 MB) for field 'x'" in str(notices[0].message)
    assert "which is not contiguous, was copied" in str(notices[1].message)


def test_no_word_about_labels(model, recwarn):
    X, y = blobs(200000)
    assert y.astype(np.int64).nbytes > 1 << 20
    model.fit(X, y.astype(np.int64), epochs=1, verbose=0)
    assert not [each for each in recwarn if each.category is mtc.ConversionNotice]


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    table, y = line(200)
    with mtc.compile(LINE, target="cpu") as model:
        frame = pandas.DataFrame({"b": table[:, 1], "a": table[:, 0], "y": y[:, 0]})
        model.fit(frame, epochs=30, verbose=0)
        assert model.score(table, y) > 0.999 and np.array_equal(model.predict(frame), model.predict(table))


# ---- weights, params ----


def test_save_and_load(model, data, tmp_path):
    model.fit(*data, verbose=0)
    model.save(tmp_path / "w.safetensors")
    expected = model.predict_proba(data[0])
    with compile_blobs(seed=3) as other:
        assert other.load(tmp_path / "w.safetensors") is other
        assert np.array_equal(other.predict_proba(data[0]), expected)
        assert np.array_equal(other.params["h.weight"], model.params["h.weight"])
    with compile_blobs(seed=4) as third:
        third.loads(model.dumps())
        assert third.status["step"] == model.status["step"] and np.array_equal(third.predict_proba(data[0]), expected)


def test_a_checkpoint_brings_params_of_evaluation(tmp_path):
    """Unless they were set, before or after; a rate of the optimizer stays whoever begins with the weights."""
    text = LINE.replace("param lr", "param heat = 1 in 0.1..10\nparam lr").replace("axis = 0), 1)", "axis = 0), 1) / heat")
    x, y = line(40)
    with mtc.compile(text, target="cpu") as model:
        model.set(heat=4, lr=0.01).fit(x, y, epochs=1, verbose=0)
        expected = model.predict(x)
        model.save(tmp_path / "w.safetensors")
    with mtc.compile(text, target="cpu", seed=3) as other:
        rate = other.status["params"]["lr"]
        assert np.array_equal(other.load(tmp_path / "w.safetensors").predict(x), expected)
        assert other.status["params"] == {"heat": 4, "lr": rate}
        assert np.allclose(other.set(heat=2).predict(x), 2 * expected, rtol=1e-5)
        assert other.load(tmp_path / "w.safetensors").status["params"]["heat"] == 2
        assert other.resume(tmp_path / "w.safetensors").status["params"] == {"heat": 4, "lr": pytest.approx(0.01)}


def test_load_partly(data, tmp_path):
    with compile_blobs() as model, mtc.compile(BLOBS.replace("linear(h, 3)", "linear(h, 3, bias = false)"), target="cpu", seed=9) as other:
        model.fit(*data, verbose=0)
        model.save(tmp_path / "w")
        other.load(tmp_path / "w", partial=True)
        assert all(np.array_equal(values, model.params[name]) for name, values in other.state_dict().items())
    with compile_blobs(hidden=5) as wider:
        before = wider.params["h.weight"].numpy()
        wider.load(tmp_path / "w", partial=True)
        assert np.array_equal(wider.params["h.weight"], before)
        assert np.array_equal(wider.params["scores.bias"], other_bias(tmp_path / "w"))


def other_bias(path):
    from mtc.weightfile import read_weights

    return read_weights(path)["scores.bias"]


def test_params(data):
    with compile_blobs(hidden=5, lr=0.25, seed=3) as model:
        assert model.params["h.weight"].shape == (5, 6) and model.status["params"] == {"lr": 0.25} and model.status["seed"] == 3
        path = model.path
        assert model.set(lr=0.5) is model and model.status["params"] == {"lr": 0.5}
        assert model.reset().status["params"] == {"lr": 0.5}
    with compile_blobs(hidden=5, lr=0.125) as other:
        assert other.path == path  # a learning rate needs no other program


def test_what_a_model_says_of_itself(model, capsys, tmp_path):
    (tmp_path / "own.mt").write_text(BLOBS)
    of_file = mtc.compile(str(tmp_path / "own.mt"), target="cpu")
    assert of_file.source == model.source == BLOBS and of_file.batch == 16 and of_file.metrics == ["loss", "accuracy"]
    assert [field["name"] for field in model.fields] == ["x", "y"] and of_file.description["name"] == "own"
    assert "mtc_main(&mtc_model" in model.generated and "graph train" in model.emit("graph")
    model.summary()
    shown = capsys.readouterr().out
    assert "scores" in shown and "hidden = 8, fixed when compiling: mtc.compile(..., hidden=...)\n" in shown
    assert "lr = 0.05, changed by set(lr=...)\n" in shown and "--" not in shown and of_file.path.exists()
    assert mtc.compile(tmp_path / "own.mt", target="cpu").path == of_file.path
    assert "x f32[2, 3]" in repr(model)


def test_words():
    """Classes that are words in the model's own data are so in arrays."""
    text = """
data {
  train = csv("words.csv")
  size : f32[1] = column("size")
  kind : class[3] = column("kind")
}
model { scores = linear(normalize(size), 3) }
train {
  loss = cross_entropy(scores, kind)
  optimizer = sgd(0.1)
}
"""
    with mtc.compile(text, target="cpu") as model:
        size = np.arange(6, dtype=np.float32)
        with pytest.raises(mtc.DataError, match="got text such as 'cat'; number the words"):
            model.fit(size, ["cat", "dog"] * 3, verbose=0)
        folder = Path(mtc.toolchain.scratch())
        (folder / "words.csv").write_text("size,kind\n" + "".join(f"{i},{'cat' if i < 10 else 'dog'}\n" for i in range(20)))
        model.fit(data=folder, epochs=2, verbose=0)
        numbers = model.evaluate(size, [0] * 6)
        assert model.evaluate(size, ["cat"] * 6) == numbers and model.evaluate(size, np.array(["cat"] * 6, object)) == numbers
        with pytest.raises(mtc.DataError, match="'dig' is none of the 2 words of field 'kind'; did you mean 'dog'?"):
            model.evaluate(size, ["cat", "dig"] * 3)


# ---- when the device is opened ----


@pytest.fixture
def opened(monkeypatch):
    """The sessions that models open."""
    from mtc import model

    made = []

    class Counted(model.Session):
        def __init__(self, *arguments):
            made.append(self)
            time.sleep(0.05)  # a device takes its time, in which other threads may come
            super().__init__(*arguments)

    monkeypatch.setattr(model, "Session", Counted)
    return made


def test_what_describes_a_model_opens_no_device(opened, data, capsys):
    with compile_blobs(hidden=5, lr=0.25, seed=3) as model:
        model.summary()
        str(model), model._repr_html_(), model.source, model.generated, model.emit("plan"), model.fields, model.metrics
        assert model.params["h.weight"].shape == (5, 6) and len(model.params.states()) == 8 and model.path.exists()
        assert "Parameter('h.bias', f32[5]" in repr(model.params) and model.reset(seed=4) is model and not opened
        assert model.status["params"] == {"lr": 0.25} and model.status["seed"] == 4 and len(opened) == 1
        model.fit(*data, verbose=0)
        model.predict(data[0])
        assert len(opened) == 1
    closed = compile_blobs()
    closed.close()
    with pytest.raises(mtc.UsageError, match="^the model is closed$"):
        closed.predict(data[0])
    assert len(opened) == 1


def test_the_first_use_by_many_threads_opens_one_device(opened, data):
    model, answers = compile_blobs(), []
    threads = [threading.Thread(target=lambda: answers.append(model.predict_proba(data[0]))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(opened) == 1 and len(answers) == 8 and all(np.array_equal(each, answers[0]) for each in answers)


YES_OR_NO = """
data {
  train = npz("train.npz")
  x : f32[3]
  y : f32[1]
}
FUNCTIONS
model { z = linear(x, 1) }
train {
  loss = LOSS
  optimizer = sgd(0.1)
}
"""


@pytest.mark.parametrize("loss, yes", [
    ("bce(z, y, from_logits = true)", True),
    ("3 * bce(z, y, from_logits = true) + bce(z, y, from_logits = true)", True),
    ("bce(sigmoid(z), y)", True),
    ("bce(z, y, from_logits = true) + mean(z^2)\n  predict = sigmoid(z)", True),
    ("bce(z, y, from_logits = true)\n  predict = z", False),
    ("mse(sigmoid(z), y)\n  predict = sigmoid(z)", False),
    ("bce(z, y)\n  predict = z", False),
], ids=range(7))
def test_what_predicts_yes_or_no(loss, yes):
    """As the compiler says it of the loss and the prediction, whatever the text looks like; in the last a function of the model's own is called so."""
    own = "fn bce(a, b) {\n  return mean((a - b)^2)\n}\n" if loss.startswith("bce(z, y)\n") else ""
    model = mtc.compile(YES_OR_NO.replace("LOSS", loss).replace("FUNCTIONS", own), target="cpu")
    X, y = np.float32([[1, 2, 3], [-1, 2, 0]]), [0, 1]
    assert model.description["prediction"] == {"shape": [1], "classes": False, "yes": yes}
    if yes:
        np.testing.assert_allclose(model.predict_proba(X), np.hstack([1 - model.predict(X), model.predict(X)]))
        assert model.score(X, y) == ((model.predict(X).ravel() > 0.5) == y).mean()
        return
    with pytest.raises(mtc.UsageError, match="the model predicts numbers"):
        model.predict_proba(X)


# ---- several at once, and none left behind ----


def test_threads(data):
    """Models in threads of their own, and one that all of them use."""
    shared, results, faults = compile_blobs(), {}, []
    shared.fit(*data, epochs=2, verbose=0)
    expected = shared.predict(data[0])

    def work(number):
        try:
            with compile_blobs(seed=number % 2) as own:
                own.fit(*data, epochs=3, verbose=0)
                results[number] = weights_of(own)
            assert all(np.array_equal(shared.predict(data[0]), expected) for _ in range(10))
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not faults and all(same(results[number], results[number % 2]) for number in results) and len(results) == 6
    assert not same(results[0], results[1])


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_no_leak(data):
    """A thousand models that were made, trained and closed, or forgotten: no more memory than a hundred."""
    from mtc.library import load

    library = compile_blobs().library
    X, y = data[0][:32], data[1][:32]

    def cycle(number):
        model = mtc.Model(BLOBS, target="cpu")
        model._library = library  # compiled once
        if number % 5 == 0:
            model.fit(X, y, epochs=1, verbose=0, callbacks=lambda *_: None)
            model.predict(X), model.evaluate(X, y)
        assert model.session.handle
        if number % 2:
            model.close()

    for number in range(100):
        cycle(number)
    gc.collect()
    before = resident()
    for number in range(1000):
        cycle(number)
    gc.collect()
    assert resident() - before < 4 << 20 and load(library.path, 0) is library


def test_forgotten_models_end_at_once(data):
    model = compile_blobs()
    model.fit(*data, epochs=1, verbose=0, callbacks=lambda *_: None)
    handle = weakref.ref(model.session.handle)
    gc.disable()
    try:
        del model
        assert handle() is None
    finally:
        gc.enable()


def test_at_the_end_of_the_interpreter():
    script = f"""
import sys, threading
sys.path[:0] = [{str(ROOT / "tests")!r}]
import conftest, python_package as package, mtc
model = mtc.compile(package.BLOBS, target="cpu")
data = package.blobs(100)
threading.Thread(target=lambda: model.fit(*data, epochs=10**7, verbose=0), daemon=True).start()
import time; time.sleep(0.3)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


# ---- what is done once, or not before it is needed ----


def test_import_waits_with_numpy():
    script = "import sys, mtc; print('numpy' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment).stdout == "False\n"


def test_a_compiled_model_is_compiled_once(tmp_path, monkeypatch):
    """The second time it comes out of the cache."""
    counting = tmp_path / "cc"
    counting.write_text(f'#!/bin/sh\necho >> {tmp_path / "calls"}\nexec cc "$@"\n')
    counting.chmod(0o755)
    monkeypatch.setenv("CC", str(counting))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(3):
        compile_blobs().close()
        assert (tmp_path / "calls").read_text() == "\n"


def test_recompute():
    """Less memory: the backward pass computes values again."""
    text = SEQUENCES.replace("PRECISION", "fp32")
    plain, again = (mtc.compile(text, target="cpu", recompute=flag) for flag in (False, True))
    assert again.description["arena_bytes"] < 0.9 * plain.description["arena_bytes"]
    x = np.random.default_rng(0).normal(size=(20, 16, 32)).astype(np.float32)
    losses = [model.fit(x, -x, epochs=3, verbose=0)["loss"] for model in (plain, again)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_batch():
    """Of compile, as the model's text may say it; and what users of other packages call it."""
    with mtc.compile(LINE, target="cpu", batch=4) as model:
        assert model.batch == 4
        with pytest.raises(TypeError, match=r"a batch has 4 examples; mtc\.compile\(\.\.\., batch=\.\.\.\)"):
            model.fit(np.zeros((4, 2)), np.zeros(4), batch_size=8)
    with pytest.raises(mtc.UsageError, match="batch is a whole number from 1 on, not 0"):
        mtc.compile(LINE, target="cpu", batch=0)
    with pytest.raises(mtc.UsageError, match="'batch_size'; did you mean 'batch'"):
        mtc.compile(LINE, target="cpu", batch_size=4)


@pytest.mark.parametrize("asked, flags", [(None, []), (True, ["--recompute"]), (False, ["--no-recompute"])])
def test_recompute_as_a_flag(asked, flags):
    assert mtc.toolchain.options(target="cpu", recompute=asked) == ["--target", "cpu", *flags]


def test_params_are_judged_as_they_are_computed_with(tmp_path):
    """In f32: what is 1 there is no share of what is dropped."""
    (tmp_path / "m.mt").write_text("""param p = 0.5
data { train = table([[0, 0], [1, 1]])
  x : f32[1]
  y : f32[1] }
model { z = linear(dropout(x, p), 1) }
train { loss = mse(z, y)
  optimizer = sgd(0.1) }
""")
    model = mtc.compile(tmp_path / "m.mt")
    with pytest.raises(mtc.UsageError, match="'p' goes to dropout: at least 0 and below 1, not 0.99999999999$"):
        model.set(p=0.99999999999)
    assert model.set(p=0.9999).status["params"] == {"p": 0.9999}
