"""models/gru_names.mt and models/lstm_forecast.mt on the data of tools/make_sequences.py: they learn what they are for."""

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

pytestmark = pytest.mark.full


def sequences(folder, what, count):
    subprocess.run([sys.executable, ROOT / "tools/make_sequences.py", what, "--count", str(count), "--output", folder], check=True)


def last_test(shown):
    """The measures of the test data behind the last epoch."""
    line = [line for line in shown.splitlines() if line.startswith("epoch")][-1]
    return {name: float(value) for name, value in re.findall(r"(\w+) +([-\d.e+]+)", line.split("| test")[1].split("|")[0])}


def test_letters_alone_do_not_tell_the_language(tmp_path):
    """All languages have each letter equally often, up to chance."""
    sequences(tmp_path, "names", 4000)
    data = np.load(tmp_path / "names.npz")
    counts = np.stack([np.bincount(data["letter"][data["language"] == k].ravel(), minlength=27)[:26] for k in range(5)])
    parts = counts / counts.sum(1, keepdims=True)
    assert abs(parts - 1 / 26).max() < 0.01
    assert (data["letter"] == 26).sum(1).tolist() == (16 - data["length"].astype(int)).tolist()


def test_names(compile_model, tmp_path):
    sequences(tmp_path, "names", 8000)
    program = compile_model(ROOT / "models/gru_names.mt")
    shown = program("--data", tmp_path, "--epochs", 6).stdout
    assert last_test(shown)["accuracy"] > 0.93  # of guesses: 0.2
    one, two = (last_test(program("--data", tmp_path, "--epochs", 1, threads=threads).stdout) for threads in (1, 2))
    assert one == two


def test_forecast(compile_model, tmp_path):
    sequences(tmp_path, "series", 6000)
    shown = compile_model(ROOT / "models/lstm_forecast.mt", "--set", "units=24")("--data", tmp_path, "--epochs", 7).stdout
    found = last_test(shown)
    assert found["mae"] < 0.8 * found["as_day"]
