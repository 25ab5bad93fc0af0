"""The language models: that small ones of them learn, to the same bits in every run, and that full ones are generated."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from conftest import ROOT, run_mtc

TEXT = "the quick brown fox jumps over the lazy dog. " * 150
SMALL = {
    "char_gpt": {"layers": 2, "heads": 2, "width": 32, "context": 24, "examples": 8},
    "gpt2": {"layers": 2, "heads": 2, "width": 32, "context": 24, "vocab": 131, "examples": 8},
    "llama_tiny": {"layers": 2, "heads": 4, "kv_heads": 2, "width": 32, "hidden": 48, "context": 24, "examples": 8},
    "vit_tiny": {"layers": 1, "heads": 2, "width": 32, "patch": 8, "examples": 32},
}
TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def settings(sizes):
    return [word for name, value in sizes.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a text, tokens, and images, small and easy."""
    folder, random = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name in "tinyshakespeare", "gpt2", "cifar10/cifar-10-batches-bin":
        (folder / name).mkdir(parents=True)
    (folder / "tinyshakespeare/input.txt").write_text(TEXT)
    tokens = np.arange(8000) * 7 % SMALL["gpt2"]["vocab"]
    for name in "train", "val":
        tokens.astype("<u2").tofile(folder / f"gpt2/{name}.bin")
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        label = random.integers(0, 10, 64)
        pixels = random.integers(0, 60, (64, 3072)) + 19 * label[:, None]
        records = np.concatenate([label[:, None], pixels], axis=1).astype(np.uint8)
        records.tofile(folder / f"cifar10/cifar-10-batches-bin/{name}.bin")
    return folder


def model_text(model):
    """For a file elsewhere."""
    return (ROOT / f"models/{model}.mt").read_text().replace('include "gpt.mt"', f'include "{ROOT}/models/gpt.mt"')


@pytest.mark.gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
@pytest.mark.parametrize("model, precision", [("char_gpt", "fp32"), ("char_gpt", "bf16"), ("llama_tiny", "bf16")])
def test_sanitizer(compile_model, data, tmp_path, model, precision, tool):
    if not shutil.which("compute-sanitizer"):
        pytest.skip("compute-sanitizer is not installed")
    program = compile_model(ROOT / f"models/{model}.mt", *settings(SMALL[model]), "--precision", precision, target="cuda")
    done = subprocess.run(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", program.path, "--data", data,
                           "--limit-steps", "2", "--quiet"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("target", TARGETS)
def test_same_bits_resumed_and_not(compile_model, data, tmp_path, target):
    program = compile_model(ROOT / "models/char_gpt.mt", *settings(SMALL["char_gpt"]), "--precision", "bf16", target=target)
    for name in "one", "two":
        program("--data", data, "--limit-steps", 12, "--save", name, "--quiet", cwd=tmp_path)
    program("--data", data, "--limit-steps", 5, "--save", "half", "--quiet", cwd=tmp_path)
    program("--data", data, "--limit-steps", 12, "--resume", "half", "--save", "resumed", "--quiet", cwd=tmp_path)
    one, two, resumed = ((tmp_path / name).read_bytes() for name in ("one", "two", "resumed"))
    assert one == two and one == resumed


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", SMALL)
def test_small_models_learn(compile_model, data, tmp_path, model, target):
    program = compile_model(ROOT / f"models/{model}.mt", *settings(SMALL[model]), target=target)
    program("--data", data, "--epochs", 8 if model == "vit_tiny" else 4, "--lr", 1e-2, "--log", "log", "--quiet", cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    losses = [line["test_loss"] for line in lines if line["event"] == "epoch"]
    assert losses[-1] < 0.7 * losses[0] and losses[-1] < 1.6


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("stage", ["cu", "c"])
def test_full_size_is_generated(model, stage):
    made = run_mtc(f"--emit={stage}", ROOT / f"models/{model}.mt")
    assert made.returncode == 0, made.stderr


def test_layouts():
    for model in [*SMALL, "gpt"]:
        assert run_mtc("--format", "--check", ROOT / f"models/{model}.mt").returncode == 0, model
