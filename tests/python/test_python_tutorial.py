"""cuda_nn.NeuralNetworkGPU, and the script of a tutorial that uses it, as it stands."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import mtc
from conftest import MTC, ROOT
from cuda_nn import NeuralNetworkGPU
from test_mnist import data  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]


def clouds(count=300):
    """Rows of 4 numbers, and which of three clouds each is of."""
    generator = np.random.default_rng(0)
    kinds = generator.integers(0, 3, count)
    return (generator.normal(size=(count, 4)) + 4 * np.eye(3, 4)[kinds]).astype("f4"), kinds


def small(**options):
    return NeuralNetworkGPU(input_size=4, hidden_size=16, output_size=3, batch_size=16, target="cpu", seed=1, **options)


def test_fit_predict_evaluate(capsys):
    X, y = clouds()
    made = small()
    history = made.fit(X, y, epochs=12, learning_rate=0.01, validation_data=(X, y), verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"Epoch {epoch}/12 - Loss: {loss:.4f} - Val Acc: {accuracy:.4f}" for epoch, loss, accuracy
                     in zip(range(1, 13), history["loss"], history["val_accuracy"], strict=True)]
    probabilities, accuracy = made.predict(X), made.evaluate(X, y)
    assert probabilities.shape == (300, 3) and probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert isinstance(accuracy, float) and accuracy == np.mean(probabilities.argmax(axis=1) == y) > 0.9
    assert accuracy == made.evaluate(X, np.eye(3)[y]) == pytest.approx(history["val_accuracy"][-1])


def test_another_fit_goes_on_and_counts_anew(capsys):
    X, y = clouds()
    made, whole = small(), small()
    made.fit(X, y, 2, 0.01, verbose=False)
    assert capsys.readouterr().out == ""
    made.fit(X, y, 1)
    assert re.fullmatch(r"Epoch 1/1 - Loss: \d\.\d{4} - Acc: \d\.\d{4}\n", capsys.readouterr().out)
    seen = []
    whole.fit(X, y, 3, 0.01, callbacks=lambda model, epoch, logs: seen.append(epoch))
    assert seen == [1, 2, 3] and len(capsys.readouterr().out.splitlines()) == 3
    np.testing.assert_array_equal(made.predict(X), whole.predict(X))


def test_options_are_the_networks(tmp_path):
    X, y = clouds()
    made = small(optimizer=mtc.SGD(0.1), activation="tanh")
    assert "tanh(linear1)" in made.network.source and "sgd(lr)" in made.network.source
    made.fit(X, y, 1, verbose=False)
    assert made.network.status["params"]["lr"] == pytest.approx(0.1)
    made.save(tmp_path / "m.safetensors")
    other = small(activation="tanh")
    other.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(made.predict(X), other.predict(X))
    with pytest.raises(mtc.UsageError, match="'lr' is from 0 to 1, not -1"):
        made.fit(X, y, 1, learning_rate=-1)
    with pytest.raises(TypeError, match="'epoch'; did you mean 'epochs'?"):
        made.fit(X, y, epoch=1)


@pytest.mark.filterwarnings("error")
def test_warnings_name_the_users_line(monkeypatch):
    monkeypatch.setattr(mtc.NeuralNetworkGPU, "_told", False)
    monkeypatch.setattr(mtc.toolchain, "default_target", lambda: "cpu")
    with pytest.warns(UserWarning, match="there is no GPU here") as told:
        NeuralNetworkGPU(4, 8, 3)
    assert told[0].filename == __file__


@pytest.mark.full  # a training of ten epochs: vector code saves more than it takes to compile
def test_the_tutorial_as_it_stands(data, tmp_path):  # noqa: F811
    script = ROOT / "examples" / "tutorial_mnist.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "MTC_DATA_DIR": str(data[0]), "CUDA_VISIBLE_DEVICES": "",
                   "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("Epoch ")]
    assert [bool(re.fullmatch(rf"Epoch {epoch}/10 - Loss: \d\.\d{{4}} - Val Acc: 0\.\d{{4}}", line))
            for epoch, line in enumerate(lines, 1)] == [True] * 10
    accuracy = float(re.search(r"^Test accuracy: (\d\d\.\d\d)%$", done.stdout, re.M)[1])
    assert accuracy > (97 if data[1] else 90)
    assert accuracy / 100 == pytest.approx(float(lines[-1].split()[-1]), abs=1e-4)
