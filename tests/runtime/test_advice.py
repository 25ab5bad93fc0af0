"""Trainings that are not wrong but go nowhere: a warning, once, that names the cure."""

import subprocess

import numpy as np
import pytest

from fake_data import examples, idx_bytes

pytestmark = pytest.mark.quick

pytest_plugins = ["fake_model"]


def warnings(program, folder, *flags):
    done = subprocess.run([program, *map(str, flags)], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [line.partition(": warning: ")[2] for line in done.stderr.splitlines() if ": warning: " in line]


def test_batch_larger_than_the_data(fake, folder):
    assert warnings(fake.program, folder.path) == []
    for count, expected in ((8, 0), (7, 1)):
        image, label = examples(count)
        folder.write("train-images", idx_bytes(image))
        folder.write("train-labels", idx_bytes(label))
        found = warnings(fake.program, folder.path)
        assert len(found) == expected
    assert found[0].startswith("a batch has 8 examples and the training data only 7: an epoch is a single step; mtc --batch N ")
    assert warnings(fake.program, folder.path, "--overfit-batch") == []


@pytest.mark.parametrize("flags, still", [(["--lr", 0], True), (["--lr", 1e-8], True), ([], False), (["--lr", 0.01], False)], ids=str)
def test_loss_that_stands_still(flags, still, fake, folder):
    found = warnings(fake.program, folder.path, *flags, "--save", "w")
    assert not still or "in the one before" in found[0]
    assert len(found) == still
    if still:
        assert found[0].startswith("the loss has not moved in an epoch: ") and f"--lr is {flags[1]:g}" in found[0]
    assert warnings(fake.program, folder.path, *flags, "--resume", "w", "--epochs", 4) == []


MODEL = """
data {
  train = npy("x.npy", "y.npy")
  x : f32[3]
  y : f32[1]
}

model {
  guess = linear(tanh(linear(%s, 8)) + linear(x, 8), 1)
}

train {
  loss      = mse(guess, y)
  optimizer = adam(1e-3)
  batch     = 32
  epochs    = 2
}
"""


def test_a_balance_of_losses_and_a_training_without_an_update(compile_model, tmp_path):
    """A loss that stands still is no failure of optimizers that have another; one that comes too late never works."""
    chance = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", chance.normal(0, 1, (640, 3)).astype("f4"))
    np.save(tmp_path / "y.npy", chance.normal(0, 1, (640, 1)).astype("f4"))
    alone = MODEL % "x"
    two = alone.replace("adam(1e-3)", '[adam(1e-9), adam(1e-9, weights = "guess.0.*", loss = mae(guess, y), every = 50)]')
    found = warnings(compile_model(alone.replace("adam(1e-3)", "adam(1e-9)\n  accumulate = 41")).path, tmp_path, "--data", tmp_path)
    assert len(found) == 2 and found[1].startswith("the loss has not moved in an epoch")
    assert found[0].startswith("the training ends with step 40, and some weights would have their first update in step 41, ")
    program = compile_model(two).path
    assert warnings(program, tmp_path, "--data", tmp_path, "--epochs", 3) == []
    found = warnings(program, tmp_path, "--data", tmp_path)
    assert len(found) == 1 and found[0].startswith("the training ends with step 40, and some weights would have their first update in step 50, ")


@pytest.mark.parametrize("rows, told", [
    ([[1, 0, 0], [0.2, 0.5, 0.3]], None), ([[0, 1, 0], [1, 1, 0]], "'y' in example 1 sum to 2: several labels at once"),
    ([[0.5, 0.5, 0], [-0.5, 1.5, 0]], "'y' in example 1 sum to 1, some below 0: ")])
def test_a_target_that_is_no_distribution(rows, told, compile_model, tmp_path):
    text = MODEL.replace("y : f32[1]", "y : f32[3]").replace("+ linear(x, 8), 1)", ", 3)").replace("mse", "cross_entropy") % "x"
    np.save(tmp_path / "x.npy", np.random.default_rng(1).normal(0, 1, (64, 3)).astype("f4"))
    np.save(tmp_path / "y.npy", np.array(rows * 32, "f4"))
    found = warnings(compile_model(text).path, tmp_path, "--data", tmp_path)
    assert len(found) == (told is not None) and (not told or told in found[0])


def test_inputs_far_from_zero(compile_model, tmp_path):
    chance = np.random.default_rng(1)
    x = chance.normal(5e4, 1e3, (320, 3)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", chance.normal(0, 1, (320, 1)).astype("f4"))
    found = warnings(compile_model(MODEL % "x").path, tmp_path, "--data", tmp_path)
    assert len(found) == 1 and found[0].startswith("the first loss is ")
    assert ": field 'x' has numbers up to 5" in found[0] and found[0].endswith("in the model, normalize(x) brings them there")
    np.save(tmp_path / "x.npy", x / 5e4)
    assert warnings(compile_model(MODEL % "x").path, tmp_path, "--data", tmp_path) == []
    np.save(tmp_path / "x.npy", x)
    x[:, 0] = np.arange(320) * 1000  # as those of a time, a number or a price: the first are small
    np.save(tmp_path / "x.npy", x * [[1, 0, 0]])
    assert ": field 'x' has numbers up to 319000" in warnings(compile_model(MODEL % "x").path, tmp_path, "--data", tmp_path)[0]
    np.save(tmp_path / "x.npy", x)
    normalized = compile_model(MODEL.replace("linear(x, 8)", "linear(normalize(x), 8)") % "normalize(x)").path
    assert warnings(normalized, tmp_path, "--data", tmp_path) == []


def test_what_has_converged_is_no_standstill(compile_model, tmp_path):
    """Data that say little: the loss falls by a few hundredths of itself in some epochs, then stays at their noise."""
    chance = np.random.default_rng(1)
    x = chance.normal(0, 0.1, (3200, 3)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", (2 * x[:, :1] + chance.normal(0, 1, (3200, 1))).astype("f4"))
    assert warnings(compile_model(MODEL % "x").path, tmp_path, "--data", tmp_path, "--epochs", 40) == []


@pytest.mark.parametrize("read, target, blamed", [
    ("x / 366", "y", "y"), ("normalize(x)", "y", "y"), ("x / 366", "normalize(y)", None),
    ("reshape(x, [3]) / 366", "100 * y", None)])
def test_what_a_huge_first_loss_is_of(read, target, blamed, compile_model, tmp_path):
    """Of the target, where its numbers are as large; never of a field that the model scales."""
    chance = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", chance.integers(1, 348, (320, 3)).astype("f4"))
    np.save(tmp_path / "y.npy", chance.normal(288, 60, (320, 1)).astype("f4"))
    text = MODEL.replace("linear(x, 8)", f"linear({read}, 8)").replace("mse(guess, y)", f"mse(guess, {target})\n  predict   = guess")
    found = warnings(compile_model(text % read).path, tmp_path, "--data", tmp_path)
    assert [line.partition(";")[0].partition("'")[2].partition("'")[0] for line in found] == ([blamed] if blamed else [])
    assert blamed != "y" or "normalize(y) is a target near 0" in found[0]


@pytest.mark.parametrize("target, found", [("y", 1), ("y / 255", 0)])
def test_a_target_of_bytes(target, found, compile_model, tmp_path):
    chance = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", chance.normal(0, 1, (320, 3)).astype("f4"))
    np.save(tmp_path / "y.npy", chance.integers(0, 255, (320, 1)).astype("u1"))
    text = MODEL.replace("y : f32[1]", "y : u8[1]").replace("mse(guess, y)", f"mse(guess, {target})\n  predict   = guess") % "x"
    said = warnings(compile_model(text).path, tmp_path, "--data", tmp_path)
    assert len(said) == found and all("'y', bytes, are some 1" in line and "y / 255 is from 0 to 1" in line for line in said)


def test_bytes_that_are_scaled_do_not_stand_for_the_target(compile_model, tmp_path):
    """A price of an image: both are as large as the loss."""
    chance = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", chance.integers(0, 255, (320, 3)).astype("u1"))
    np.save(tmp_path / "y.npy", chance.normal(100, 10, (320, 1)).astype("f4"))
    text = MODEL.replace("x : f32", "x : u8").replace("linear(x, 8)", "linear(x / 255, 8)") % "x / 255"
    [said] = warnings(compile_model(text).path, tmp_path, "--data", tmp_path)
    assert "the numbers of 'y', which is to be predicted" in said


@pytest.mark.parametrize("source, cell, cure", [
    ('column("a")', "Berlin", "its field in the model is a class: class[n]"),
    ('column("a")', "$1,200", "a number is written 1234.5, without signs of thousands, currency or percent"),
    ('weekday("a")', "31/12/2020", 'the model says which: format = "%d/%m/%Y"'),
    ('column("a")', "", None)])
def test_a_cell_that_is_not_what_the_model_says(source, cell, cure, compile_model, tmp_path):
    """The cure of the model stands before --bad-rows, which is that of single rows."""
    (tmp_path / "t.csv").write_text("a,y\n" + f'"{cell}",1\n' * 4)
    text = MODEL.replace('npy("x.npy", "y.npy")', 'csv("t.csv")').replace("x : f32[3]", f"x : f32[1] = {source}") % "x"
    done = subprocess.run([compile_model(text).path, "--data", tmp_path], cwd=tmp_path, capture_output=True, text=True)
    notes = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ")]
    assert done.returncode == 65 and notes[-1] == "--bad-rows skip leaves out rows that are wrong"
    assert len(notes) == 1 + bool(cure) and (not cure or cure in notes[0])
