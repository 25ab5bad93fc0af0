"""plateau_lr: a learning rate that falls when evaluations have been no better for long enough.

The gradient of the one weight is 1, so that a step takes the learning rate from it; an epoch is a step. The test loss is the test
example times the weight: with -1 it rises while the weight falls, and only the first evaluation is the best so far."""

import json

import numpy as np
import pytest
from fake_data import idx_bytes

pytestmark = pytest.mark.quick

EPOCHS = 12
TEST = 'test  = idx("test")'


def model(optimizer, settings="", test=TEST):
    return f"""\
data {{
  train = idx("train")
  {test}
  x     : f32[1]
}}
model {{
  w = weight([1], init = constant(0))
  y = sum(w * x)
}}
train {{
  loss      = y
  predict   = y
  optimizer = {optimizer}
  epochs    = {EPOCHS}
  {settings}
}}
"""


def write_data(folder, test):
    (folder / "train").write_bytes(idx_bytes(np.ones((4, 1), np.float32)))
    (folder / "test").write_bytes(idx_bytes(np.full((3, 1), test, np.float32)))


def trained(program, folder, *flags, name="w"):
    """The weight, and what the program said."""
    done = program("train", "--data", folder, "--save", folder / name, *flags)
    content = (folder / name).read_bytes()
    header = int.from_bytes(content[:8], "little")
    assert json.loads(content[8 : 8 + header])["w"]["data_offsets"] == [0, 4]
    return np.frombuffer(content, np.float32, 1, offset=8 + header)[0], done.stdout


def way(epochs, patience, factor, least=0.0):
    """The sum of the rates, the first of which is 1, where only the first evaluation is better than those before."""
    rate, waited, total = 1.0, 0, 0.0
    for epoch in range(1, epochs + 1):
        total += max(rate, least)
        waited = waited + 1 if epoch > 1 else 0
        if waited == patience:
            rate, waited = rate * factor, 0
    return total


@pytest.mark.parametrize("patience, factor, least", [(2, 0.5, 0), (1, 0.25, 0.1), (3, 0, 0), (20, 0.5, 0)])
def test_the_rate_falls_when_nothing_was_better_for_long_enough(patience, factor, least, compile_model, tmp_path):
    write_data(tmp_path, -1)
    rate = f"plateau_lr(1.0, factor = {factor}, patience = {patience}, min_lr = {least})"
    weight, output = trained(compile_model(model(f"sgd({rate})")), tmp_path)
    assert weight == pytest.approx(-way(EPOCHS, patience, factor, least), rel=1e-6)
    assert output.count("the learning rate falls: ") == (EPOCHS - 1) // patience


def test_it_stays_while_evaluations_get_better(compile_model, tmp_path):
    write_data(tmp_path, 1)
    weight, output = trained(compile_model(model("sgd(plateau_lr(1.0, factor = 0.5, patience = 2))")), tmp_path)
    assert weight == -EPOCHS and "falls" not in output


def test_two_of_them_wait_each_for_itself(compile_model, tmp_path):
    """The sum of two rates, and the warm-up of one."""
    write_data(tmp_path, -1)
    rate = "plateau_lr(1.0, factor = 0.5, patience = 2) + plateau_lr(1.0, factor = 0.1, patience = 3, warmup = 2)"
    weight, _ = trained(compile_model(model(f"sgd({rate})")), tmp_path)
    expected = way(EPOCHS, 2, 0.5) + way(EPOCHS, 3, 0.1) - 0.5
    assert weight == pytest.approx(-expected, rel=1e-6)


@pytest.mark.parametrize("stop", range(1, 9))
def test_a_resumed_training_waits_on(stop, compile_model, tmp_path):
    write_data(tmp_path, -1)
    program = compile_model(model("sgd(plateau_lr(1.0, factor = 0.3, patience = 3))"))
    straight, _ = trained(program, tmp_path)
    trained(program, tmp_path, "--limit-steps", stop, name="part")
    resumed, _ = trained(program, tmp_path, "--resume", tmp_path / "part", name="part")
    assert resumed == straight
    assert (tmp_path / "part").read_bytes()[-4:] == (tmp_path / "w").read_bytes()[-4:]


def test_without_data_to_evaluate_there_is_nothing_to_wait_for(compile_model, tmp_path):
    write_data(tmp_path, -1)
    program = compile_model(model("sgd(plateau_lr(1.0))", test=""))
    done = program("train", "--data", tmp_path, check=False)
    assert done.returncode == 64 and "plateau_lr needs data to evaluate" in done.stderr


def test_the_library_judges_too(tmp_path):
    mtc = pytest.importorskip("mtc")
    (tmp_path / "m.mt").write_text(model("sgd(plateau_lr(1.0, factor = 0.5, patience = 2))"))
    compiled = mtc.compile(tmp_path / "m.mt", target="cpu")
    ones = np.ones((4, 1), np.float32)
    compiled.fit(ones, validation_data=-ones, verbose=0)
    assert compiled.params["w"].numpy()[0] == pytest.approx(-way(EPOCHS, 2, 0.5), rel=1e-6)
    with pytest.raises(mtc.MtcError, match="plateau_lr needs data to evaluate"):
        mtc.compile(tmp_path / "m.mt", target="cpu").fit(ones, verbose=0)


@pytest.mark.parametrize("seconds", ["1e9", "0"])
def test_a_search_for_a_bad_number_repeats_the_rates(seconds, compile_model, tmp_path, monkeypatch):
    """The root's argument is below 0 after seven steps: 1 + 1 + 1 + 1 + 1/2 + 1/2 + 1/2; with the last rate for all it would not be."""
    write_data(tmp_path, -1)
    monkeypatch.setenv("MTC_SNAPSHOT_SECONDS", seconds)
    text = model("sgd(plateau_lr(1, factor = 0.5, patience = 3))").replace("loss      = y", "loss      = y + 1e-9 * sqrt(5.2 + y)")
    done = compile_model(text)("train", "--data", tmp_path, check=False)
    assert done.returncode == 65 and "the loss of step 8 (epoch 8) is NaN" in done.stderr
    assert "first bad tensor is the " in done.stderr and "is NaN, in step 8\n" in done.stderr
