"""mtc gradcheck: gradients that are right pass, whatever else the training step does with them; wrong ones do not."""

import os
import re
import subprocess

import numpy as np
import pytest

from conftest import MTC
from fake_data import idx_bytes

pytestmark = pytest.mark.quick

USAGE, BAD_DATA = 64, 65

MODEL = """param hidden = 8
param drop = 0.3
data {{
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}}
model {{
  h      = dropout(relu(linear(x, hidden)), drop)
  logits = {logits}
}}
train {{
  loss      = cross_entropy(logits, label)
  optimizer = adam(0.1)
  batch     = 16
  epochs    = 1
{settings}}}
"""
RIGHT, WRONG = "linear(h, 3)", "linear(h * stop_gradient(h), 3)"


@pytest.fixture
def gradcheck(tmp_path):
    """gradcheck(text of a model, *arguments, code): what it printed and what it complained about."""
    (tmp_path / "tmp").mkdir()

    def run(model, *args, code=0):
        (tmp_path / "m.mt").write_text(model)
        environment = {**os.environ, "NO_COLOR": "1", "TMPDIR": str(tmp_path / "tmp"), "OMP_NUM_THREADS": "2"}
        done = subprocess.run([MTC, "gradcheck", "m.mt", *map(str, args)], cwd=tmp_path, capture_output=True, text=True,
                              env=environment)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        assert not any((tmp_path / "tmp").iterdir()) and not (tmp_path / "build").exists()
        return done.stdout, done.stderr

    run.folder = tmp_path
    return run


def model(logits=RIGHT, *settings):
    return MODEL.format(logits=logits, settings="".join(f"  {line}\n" for line in settings))


def write_data(folder, rows=40):
    random = np.random.default_rng(3)
    (folder / "x").write_bytes(idx_bytes(random.normal(size=(rows, 6)).astype("f4")))
    (folder / "label").write_bytes(idx_bytes(random.integers(0, 3, rows).astype("u1")))


def rows(table):
    """{tensor: (elements checked, error)}"""
    found = re.findall(r"^(\S+) +\[[\d, ]*\] +(\d+) +([\d.e+-]+|inf) ", table, re.M)
    return {name: (int(checked), float(error)) for name, checked, error in found}


def test_right_gradients_on_data(gradcheck):
    write_data(gradcheck.folder)
    table, complaint = gradcheck(model())
    assert complaint == "" and "real data" in table and "gradients agree with finite differences: 4 tensors" in table
    assert {name: checked for name, (checked, _) in rows(table).items()} == {
        "h.weight": 48, "h.bias": 8, "logits.weight": 24, "logits.bias": 3}
    assert all(error < 1e-6 for _, error in rows(table).values())
    assert "9: h = dropout(relu(linear(x, hidden)), drop)" in table


def test_random_data_and_samples(gradcheck):
    table, _ = gradcheck(model(), "--set", "hidden=300", "--samples", 5, "--seed=3", "--drop", 0.5)
    assert "random data, seed 3" in table
    assert [checked for checked, _ in rows(table).values()] == [5, 5, 5, 3]


def test_what_training_does_with_gradients_does_not_matter(gradcheck):
    table, _ = gradcheck(model(RIGHT, "clip_norm = 0.001", "accumulate = 4", "ema = 0.9"))
    assert "gradients agree" in table


LOOKUPS = """data {
  train  = table([[0, 3, 1, 6, 2], [5, 5, 0, 4, 1]])
  window : class[7][5]
}
fn activated(index, rows) {
  x = embedding(index, rows, 8, init = normal(0, 1))
  return x * sigmoid(x)
}
model {
  seen   = slice(window, 0, 0, 4)
  logits = linear(activated(seen, 7) + activated(seen, 9), 7)
}
train {
  loss      = cross_entropy(logits, slice(window, 0, 1, 5))
  optimizer = sgd(0.1)
  batch     = 2
}
"""


def test_maps_of_two_lookups(gradcheck):
    """Who computes the maps again does so from the field, not from the index that is put in memory later, for the tables' gradients."""
    assert "gradients agree" in gradcheck(LOOKUPS)[0]


def test_wrong_gradient(gradcheck):
    """Half of the gradient of a square gets lost."""
    table, complaint = gradcheck(model(WRONG), code=BAD_DATA)
    errors = {name: error for name, (_, error) in rows(table).items()}
    assert errors["h.weight"] > 0.4 and errors["h.bias"] > 0.4
    assert errors["logits.weight"] < 1e-6 and errors["logits.bias"] < 1e-6
    assert "'h.weight' at [" in complaint and "m.mt:9: h = dropout" in complaint and "'logits" not in complaint
    assert complaint.endswith("where the model has stop_gradient: differences see what it keeps from gradients\n")
    assert "agree" not in table


def test_on_a_kink(gradcheck):
    table, _ = gradcheck(model("linear(h, 3) + relu(weight([3], init = constant(0)))"))
    assert "3 elements lie on a kink" in table and "gradients agree" in table


def test_frozen_weights_are_not_checked(gradcheck):
    table, _ = gradcheck(model(RIGHT, 'freeze = ["h.*"]'))
    assert list(rows(table)) == ["logits.weight", "logits.bias"]
    assert "'h.weight' is frozen: not checked" in table and "'h.bias' is frozen: not checked" in table


def test_buffers_are_not_checked(gradcheck):
    write_data(gradcheck.folder)
    table, _ = gradcheck(model("linear(normalize(x), 3) + linear(h, 3)"))
    assert "x.mean" not in rows(table) and "'x.mean' is a buffer: not checked" in table
    assert "gradients agree" in table


def test_one_gradient_for_two_weights(gradcheck):
    table, _ = gradcheck(model("linear(h, 3) + weight([3])"))
    assert len(rows(table)) == 5 and "gradients agree" in table


def test_options(gradcheck):
    assert "gradcheck has no option --target" in gradcheck(model(), "--target", "cuda", code=USAGE)[1]
    assert "did you mean --samples?" in gradcheck(model(), "--", "--sampels", 3, code=USAGE)[1]


def test_other_programs_refuse(compile_model):
    done = compile_model(model())("gradcheck", check=False)
    assert done.returncode == USAGE and "mtc gradcheck" in done.stderr


def test_help(mtc):
    assert "usage: mtc gradcheck MODEL.mt" in mtc("gradcheck", "--help").stdout
    assert "mtc gradcheck MODEL.mt" in mtc("--help").stdout


def test_weights_that_are_called_as_gradients_are(gradcheck):
    """The gradient of `logits` is not the weight `logits.gradient`."""
    write_data(gradcheck.folder)
    scaled = "fn scaled(x) {\n  gradient = weight([3])\n  return x * weight([3]) + gradient\n}\n"
    table, complaint = gradcheck(scaled + model('scaled(linear(h, 3, name = "wide"))'))
    assert complaint == "" and {"logits", "logits.gradient"} < rows(table).keys()
