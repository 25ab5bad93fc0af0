"""models/mnist.mt on a GPU: the same numbers as the CPU target, the same bits in every run and schedule, clean under
compute-sanitizer. Run by `make check-gpu`."""

import json
import shutil
import subprocess

import pytest

from conftest import ROOT
from test_mnist import data  # noqa: F401 (a fixture)

pytestmark = pytest.mark.gpu

MODEL = ROOT / "models" / "mnist.mt"
SCHEDULES = ["persistent", "graph"]


@pytest.fixture(scope="module", params=SCHEDULES)
def program(request, compile_model):
    return compile_model(MODEL, "--schedule", request.param, target="cuda")


def train(program, data, folder, *flags):
    """The events of the log, the bytes of the weights."""
    folder.mkdir(exist_ok=True)
    log, weights = folder / "log.jsonl", folder / "weights.safetensors"
    program("--data", data[0], "--log", log, "--log-every", 1, "--save", weights, "--quiet", *flags)
    return [json.loads(line) for line in log.read_text().splitlines()], weights.read_bytes()


def losses(log):
    return [event["loss"] for event in log if event["event"] == "train"]


def test_first_losses_are_those_of_the_cpu(program, compile_model, data, tmp_path):  # noqa: F811
    gpu, _ = train(program, data, tmp_path / "gpu", "--limit-steps", 20)
    cpu, _ = train(compile_model(MODEL), data, tmp_path / "cpu", "--limit-steps", 20)
    assert len(losses(gpu)) == 20
    assert losses(gpu) == pytest.approx(losses(cpu), rel=1e-5)


def test_same_bits_in_every_run_and_schedule(compile_model, data, tmp_path):  # noqa: F811
    weights = []
    for schedule in SCHEDULES:
        program = compile_model(MODEL, "--schedule", schedule, target="cuda")
        for run in range(2):
            weights.append(train(program, data, tmp_path / f"{schedule}{run}", "--epochs", 2)[1])
    assert weights[0] == weights[1] == weights[2] == weights[3]


def test_accuracy_over_five_seeds(program, data, tmp_path):  # noqa: F811
    accuracies = []
    for seed in range(5):
        log, _ = train(program, data, tmp_path / str(seed), "--epochs", 10, "--seed", seed)
        accuracies.append([event["test_accuracy"] for event in log if event["event"] == "epoch"][-1])
    print("accuracies", accuracies, "mean", sum(accuracies) / 5)
    assert sum(accuracies) / 5 > (0.975 if data[1] else 0.9)


@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not installed")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_sanitizer(program, data, tool):  # noqa: F811
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
    done = subprocess.run([*command, program.path, "--data", data[0], "--limit-steps", "20", "--quiet"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR SUMMARY: 0 errors" in done.stdout or "0 hazards" in done.stdout, done.stdout
