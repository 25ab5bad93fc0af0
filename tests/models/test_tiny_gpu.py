"""Models too small for a whole GPU: one block that keeps everything in shared memory, and a cluster of blocks. The same
numbers as the CPU target, the same bits in every run and schedule, clean under compute-sanitizer. Run by `make
check-gpu`."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from conftest import ROOT
from fake_data import idx_bytes, unpack

pytestmark = pytest.mark.gpu

GOLDEN = ROOT / "tests" / "golden"
MODELS = {"tiny-solo": 2, "tiny-cluster": 19}  # inputs of an example
SCHEDULES = ["persistent", "graph"]


@pytest.fixture(scope="module", params=MODELS)
def model(request, tmp_path_factory):
    """The model file, beside data of its own; the last batch of an epoch is not full."""
    folder = tmp_path_factory.mktemp(request.param)
    path, inputs = folder / f"{request.param}.mt", MODELS[request.param]
    path.write_bytes((GOLDEN / path.name).read_bytes())
    examples = {"tiny-solo": 6, "tiny-cluster": 640}[request.param]
    random = np.random.default_rng(1)
    x = random.standard_normal((examples, inputs)).astype(np.float32)
    (folder / "x").write_bytes(idx_bytes(x))
    (folder / "y").write_bytes(idx_bytes(np.tanh(x[:, :1] * x[:, 1:2])))
    return path


def train(program, model, folder, *flags):
    """The events of the log, the bytes of the tensors."""
    folder.mkdir(exist_ok=True)
    log, weights = folder / "log.jsonl", folder / "weights.safetensors"
    program("--data", model.parent, "--log", log, "--log-every", 1, "--save", weights, "--quiet", *flags)
    return [json.loads(line) for line in log.read_text().splitlines()], unpack(weights.read_bytes())[1]


def losses(log):
    return [event["loss"] for event in log if event["event"] == "train"]


def test_losses_are_those_of_the_cpu(model, compile_model, tmp_path):
    flags = "--epochs", 100, "--limit-steps", 50
    cpu = losses(train(compile_model(model), model, tmp_path / "cpu", *flags)[0])
    assert len(cpu) == 50
    for schedule in SCHEDULES:
        program = compile_model(model, "--schedule", schedule, target="cuda")
        gpu = losses(train(program, model, tmp_path / schedule, *flags)[0])
        assert gpu == pytest.approx(cpu, rel=1e-4)


def test_same_bits_in_every_run_and_schedule(model, compile_model, tmp_path):
    weights = set()
    for schedule in SCHEDULES:
        program = compile_model(model, "--schedule", schedule, target="cuda")
        for every in (1, 7, 1000):  # epochs that are one launch
            flags = "--epochs", 1000, "--limit-steps", 500, "--every", every
            weights.add(train(program, model, tmp_path / f"{schedule}{every}", *flags)[1])
    assert len(weights) == 1


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not installed")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_sanitizer(model, compile_model, tool):
    program = compile_model(model, "--schedule", "persistent", target="cuda")
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", program.path, "--data", model.parent]
    done = subprocess.run([*command, "--limit-steps", "20", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR SUMMARY: 0 errors" in done.stdout or "0 hazards" in done.stdout, done.stdout
