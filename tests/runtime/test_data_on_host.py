"""Training data that stay in host memory: the same bytes come out, whatever is cut from an epoch at a time."""

import subprocess

import numpy as np
import pytest

from conftest import ROOT
from fake_data import unpack
from runtime_library import SANITIZERS, build_program
from test_sockets import begun, ended

pytestmark = pytest.mark.quick

pytest_plugins = ["fake_model"]


USAGE, BAD_DATA = 64, 65
EXAMPLE, BATCH = 17, 8


def window(steps):
    return {"MTC_WINDOW": str(steps * EXAMPLE * BATCH)}


def saved(folder, name):
    return unpack((folder / name).read_bytes())[1]


@pytest.fixture
def expected(fake, folder):
    fake(folder, "--save", "device", "--data-on", "device", "--quiet")


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 25, 26, 1000])
def test_same_bytes(fake, folder, expected, steps):
    """203 examples are 26 steps, the last one of 3."""
    fake(folder, "--save", "host", "--data-on", "host", "--quiet", env=window(steps))
    assert saved(folder, "host") == saved(folder, "device")


def test_same_bytes_across_a_resume_in_an_epoch(fake, folder, expected):
    for limit, steps in ((31, 3), (45, 2), (60, 26)):
        resume = ["--resume", "part"] if limit > 31 else []
        fake(folder, *resume, "--save", "part", "--data-on", "host", "--limit-steps", limit, "--quiet", env=window(steps))
    fake(folder, "--resume", "part", "--save", "host", "--data-on", "device", "--quiet")
    assert saved(folder, "host") == saved(folder, "device")


def test_windows_of_another_seed_are_gathered_anew(built, fake, folder):
    """What is on the device may be of the same epoch, but in the order of the seed that the session had."""
    program = build_program(built / "other_seed", [ROOT / f"tests/runtime/{name}.c" for name in ("other_seed", "fake")]
                            + [ROOT / "runtime/base/device_cpu.c"], library_flags=SANITIZERS)
    fake(folder, "--seed", 2, "--save", "ten", "--limit-steps", 10, "--quiet")
    fake(folder, "--resume", "ten", "--save", "device", "--limit-steps", 15, "--quiet")
    subprocess.run([program, "ten", "host"], cwd=folder.path, check=True, timeout=60)
    assert saved(folder, "host") == saved(folder, "device")


def test_divergence_is_found(fake, folder):
    device = fake(folder, "--poison", "27", code=BAD_DATA)
    assert fake(folder, "--poison", "27", "--data-on", "host", code=BAD_DATA, env=window(2)) == device


def test_overfitting_one_batch(fake, folder):
    fake(folder, "--overfit-batch", "--data-on", "host", "--save", "host", "--quiet", env=window(1))
    fake(folder, "--overfit-batch", "--save", "device", "--quiet")
    assert saved(folder, "host") == saved(folder, "device")


def test_what_needs_data_on_the_device(fake, folder):
    assert '"pass":"forward"' in fake(folder, "bench", "--forward", "--data-on", "host", "--steps", "5", "--runs", "1", env=window(2))
    assert '"pass":"training"' in fake(folder, "bench", "--data-on", "host", "--steps", "50", "--runs", "1", env=window(2))
    assert "--data-on is host or device, not 'disk'" in fake(folder, "--data-on", "disk", code=USAGE)


MODEL = """data {
  train = npy("x.npy", "y.npy")
  x : f32[3]
  y : f32[1]
}
model {
  turned = random_flip(reshape(x, [1, 1, 3]), alternate = true)
  p      = linear(tanh(linear(normalize(x), 8)) + linear(flatten(turned), 8), 1)
}
train {
  loss      = mse(p, y)
  optimizer = adam(0.01)
  batch     = 16
  epochs    = 5
}
"""


def test_statistics_of_fields(compile_model, tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", random.normal(5, 3, (333, 3)).astype(np.float32))
    np.save(tmp_path / "y.npy", random.normal(0, 1, (333, 1)).astype(np.float32))
    program = compile_model(MODEL)
    program("--data", tmp_path, "--save", tmp_path / "device", "--quiet")
    for steps in (1, 4, 21):
        monkeypatch.setenv("MTC_WINDOW", str(steps * 16 * 16))
        program("--data", tmp_path, "--save", tmp_path / "host", "--data-on", "host", "--quiet")
        assert saved(tmp_path, "host") == saved(tmp_path, "device")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_each_rank_gathers_its_own(compile_model, tmp_path, monkeypatch, ranks):
    """Shards of a step have 5, 5, 5 and 3 examples, those of an epoch's last one 5, 4, none and none."""
    random = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", random.normal(5, 3, (333, 3)).astype(np.float32))
    np.save(tmp_path / "y.npy", random.normal(0, 1, (333, 1)).astype(np.float32))
    program = compile_model(MODEL, "--shards", 4, "--batch", 18)
    program("--data", tmp_path, "--save", tmp_path / "device", "--quiet")
    for steps in (1, 2, 7, 21):
        monkeypatch.setenv("MTC_WINDOW", str(steps * 18 * 16))
        codes, _, told = ended(begun(program, tmp_path, ranks, "--save", "host", "--data-on", "host", "--quiet"))
        assert not any(codes) and saved(tmp_path, "host") == saved(tmp_path, "device"), told


@pytest.mark.gpu
def test_same_bytes_on_a_gpu(compile_model, tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", random.normal(5, 3, (3333, 3)).astype(np.float32))
    np.save(tmp_path / "y.npy", random.normal(0, 1, (3333, 1)).astype(np.float32))
    for schedule in ("graph", "persistent"):
        program = compile_model(MODEL, "--schedule", schedule, target="cuda")
        program("--data", tmp_path, "--save", tmp_path / "device", "--quiet")
        for steps in (1, 40, 300):
            monkeypatch.setenv("MTC_WINDOW", str(steps * 16 * 16))
            program("--data", tmp_path, "--save", tmp_path / "host", "--data-on", "host", "--quiet")
            assert saved(tmp_path, "host") == saved(tmp_path, "device")
