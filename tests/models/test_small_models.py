"""models/unet.mt, siamese.mt, vae.mt, contrastive.mt, word2vec.mt, pinn.mt and dcgan.mt on what the tools draw: they learn what they are for."""

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT


def run_tool(name, *arguments):
    subprocess.run([sys.executable, ROOT / "tools" / name, *map(str, arguments)], check=True, capture_output=True)


def measures_of(shown):
    """The measures of the test data behind each epoch."""
    lines = [line.split("| test")[1].split("|")[0] for line in shown.splitlines() if line.startswith("epoch")]
    return [{name: float(value) for name, value in re.findall(r"(\w+) +([-\d.e+]+)", line)} for line in lines]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder that holds mnist/: drawn digits."""
    folder = tmp_path_factory.mktemp("digits")
    run_tool("make_digits.py", folder / "mnist", "--train", 2000, "--test", 400)
    return folder


def test_shapes_are_what_their_masks_say(tmp_path):
    run_tool("make_shapes.py", "--count", 50, "--output", tmp_path)
    data = np.load(tmp_path / "shapes.npz")
    assert data["image"].shape == (50, 1, 32, 32) and data["mask"].shape == (50, 32, 32)
    assert [(data["mask"] == kind).any() for kind in range(5)] == [True] * 4 + [False]


@pytest.mark.quick
@pytest.mark.parametrize("words, least", [(["make_shapes.py"], 1), (["make_pairs.py", "mnist"], 5), (["make_sequences.py", "names"], 1),
                                          (["make_sequences.py", "series"], 420), (["make_words.py"], 20), (["make_heat.py"], 4)])
def test_tools_refuse_what_is_too_little(words, least, digits, tmp_path):
    def tool(count):
        command = [sys.executable, ROOT / "tools" / words[0], *words[1:], "--count", str(count), "--output", tmp_path]
        return subprocess.run(command, cwd=digits, capture_output=True, text=True)

    refused = tool(least - 1)
    assert refused.returncode == 2 and f"--count {least - 1}: " in refused.stderr and f"{least} or more" in refused.stderr
    assert tool(least).returncode == 0 and all(len(array) for file in tmp_path.glob("*.npz") for array in np.load(file).values())


@pytest.mark.quick
def test_pairs_are_of_files_that_are_there(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "tools/make_pairs.py", tmp_path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "has no train-images-idx3-ubyte" in done.stderr


def test_unet(compile_model, tmp_path):
    run_tool("make_shapes.py", "--count", 700, "--output", tmp_path)
    program = compile_model(ROOT / "models/unet.mt")
    found = measures_of(program("--data", tmp_path, "--epochs", 4).stdout)
    ground = (np.load(tmp_path / "shapes.npz")["mask"] == 0).mean()
    assert found[-1]["accuracy"] > ground + 0.04


def test_siamese(compile_model, digits, tmp_path):
    run_tool("make_pairs.py", digits / "mnist", "--count", 2000, "--output", tmp_path)
    pairs = np.load(tmp_path / "pairs-test.npz")
    assert len(pairs["same"]) == 400 and 0.4 < pairs["same"].mean() < 0.6
    program = compile_model(ROOT / "models/siamese.mt")
    found = measures_of(program("--data", tmp_path, "--epochs", 4, "--save", tmp_path / "w.safetensors").stdout)
    assert found[-1]["correct"] > 0.9
    listed = program("info", tmp_path / "w.safetensors").stdout
    assert len(re.findall(r"^ *\S*conv1\.weight ", listed, re.M)) == 1  # one tower


@pytest.mark.full  # 25 epochs: vector code saves more than it takes to compile
def test_vae(compile_model, digits):
    program = compile_model(ROOT / "models/vae.mt")
    first, *_, last = measures_of(program("--data", digits, "--epochs", 25).stdout)
    assert last["restored"] < 0.8 * first["restored"] and last["apart"] > 3  # the code is in use
    assert last["loss"] == pytest.approx(last["restored"] + last["apart"], rel=1e-4)


def test_halves_find_each_other(compile_model, digits):
    """Of 16 drawn digits the right one, after a few steps."""
    program = compile_model(ROOT / "models/contrastive.mt", "--batch", "16")
    found = measures_of(program("--data", digits, "--epochs", 2).stdout)
    assert found[-1]["accuracy"] > 0.5 and found[-1]["loss"] < found[0]["loss"]


def test_words_that_are_used_alike_lie_near_each_other(compile_model, tmp_path):
    run_tool("make_words.py", "--count", 4000, "--output", tmp_path / "words")
    program = compile_model(ROOT / "models/word2vec.mt")
    found = measures_of(program("--data", tmp_path, "--epochs", 6).stdout)
    assert found[-1]["same_kind"] > 0.9


@pytest.mark.quick
def test_a_network_solves_the_heat_equation(compile_model, tmp_path):
    """It is told no value; where it begins, the start that stays, it is off by 0.23."""
    run_tool("make_heat.py", "--count", 1024, "--output", tmp_path / "heat")
    program = compile_model(ROOT / "models/pinn.mt")
    found = measures_of(program("--data", tmp_path, "--epochs", 15, "--lr", 5e-3).stdout)
    assert found[-1]["mae"] < 0.01


def test_dcgan_draws_as_much_as_is_written(compile_model, digits):
    """A digit that nobody has learned to draw is half ink; the mean of those that are drawn comes near that of the data."""
    data = np.frombuffer((digits / "mnist/t10k-images-idx3-ubyte").read_bytes()[16:], np.uint8).mean() / 255
    program = compile_model(ROOT / "models/dcgan.mt")
    found = measures_of(program("--data", digits, "--epochs", 4).stdout)
    assert abs(found[-1]["ink"] - data) < 0.1
    assert found[-1]["told"] > 0.5 and found[-1]["loss"] > 0.1
