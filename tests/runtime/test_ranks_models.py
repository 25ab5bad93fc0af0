"""Four models in 2 and 4 processes over MPI: fifty steps as in one process, in 32 and in 64 bits."""

import shutil
import subprocess
import sys

import pytest
import test_ranks
from conftest import ROOT
from fake_data import unpack
from test_sockets import letters

pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun: tools/install-deps --all")
STEPS = 50  # fewer than an epoch has


def digits(folder):
    subprocess.run([sys.executable, ROOT / "tools/make_digits.py", folder / "mnist", "--train", "1000", "--test", "20"], check=True)


def sales(folder):
    subprocess.run([sys.executable, ROOT / "tools/make_sales.py", "--rows", "17000", "--output", folder / "sales.tsv"], check=True)


def verses(folder):
    letters(folder)
    file = folder / "tinyshakespeare/input.txt"
    file.write_text(4 * file.read_text())


# model: what writes its data, flags of mtc
MODELS = {
    "mnist": (digits, ["--batch", 16]),
    "sales": (sales, []),
    "cnn": (digits, ["--batch", 16]),
    "char_gpt": (verses, ["--set", "layers=1", "--set", "width=16", "--set", "context=16", "--set", "examples=8"]),
}


def trained(program, ranks, folder, name, steps, *flags):
    """The loss of each step, the mean of all with all its digits, and what was saved."""
    losses, saved = test_ranks.trained(program, ranks, folder, name, *flags, steps=steps)
    examples, total = map(float, unpack(saved)[0]["__metadata__"]["mtc.epoch_sums"].split()[:2])
    return losses, total / examples, saved


def apart(found, expected):
    """Relative to losses above 1."""
    return abs(found - expected) / max(1, abs(expected))


@pytest.mark.parametrize("real, near", [("f32", 1e-6), ("f64", 1e-13)])
@pytest.mark.parametrize("name", MODELS)
def test_losses_are_those_of_one_process(compile_model, tmp_path, name, real, near):
    """A second run of as many ends with the same bytes, and so does what 4 began and 2 went on with."""
    make, flags = MODELS[name]
    make(tmp_path)
    plain, cut = (compile_model(ROOT / f"models/{name}.mt", "--real", real, *flags, *more) for more in ([], ["--shards", 4]))
    expected, mean, _ = trained(plain, 1, tmp_path, "plain", STEPS)
    assert len(set(expected)) == STEPS
    saved = []
    for ranks in 2, 4, 4:
        losses, same_mean, bytes_now = trained(cut, ranks, tmp_path, f"of{ranks}", STEPS)
        assert max(map(apart, losses, expected)) <= near and apart(same_mean, mean) <= near
        saved.append(bytes_now)
    trained(cut, 4, tmp_path, "part", STEPS // 2)
    saved.append(trained(cut, 2, tmp_path, "part", STEPS, "--resume", "part")[2])
    assert len(set(saved)) == 1
