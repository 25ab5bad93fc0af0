"""Trainings on several GPUs of this machine, with what adds up there: the bytes of one, whatever their number, and an end for all where one
fails. test_gpus.py asks the same of a device that is not there."""

import json
import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import ROOT
from fake_data import unpack
from gpus_here import nccl_found, nccl_settings, visible_gpus
from test_checkpoint import load_tool
from test_ranks import children, runs
from test_shards import IN_TURNS, folder  # noqa: F401: a fixture
from test_sockets import RANK_LOST, UNAVAILABLE, digits, letters

pytestmark = pytest.mark.gpu
GPUS = len(visible_gpus())
COUNTS = [count for count in (2, 4) if count <= GPUS]
WAYS = ["nccl", "host", "peers"]
needs_two = pytest.mark.skipif(GPUS < 2, reason=f"{GPUS or 'no'} GPU here, and this is about several")
needs_nccl = pytest.mark.skipif(GPUS > 1 and not nccl_found(), reason="no libnccl.so.2: it is of NVIDIA's libnccl2, or of the wheel nvidia-nccl-cu13")
LONG = 600  # epochs of mnist: about a second, where no other test has the same GPUs
GRACE = 13  # seconds: --rank-timeout, and those that the first process gives others to end


def photos(folder):
    """CIFAR-10 with few of its images, which are noise."""
    place = folder / "cifar10/cifar-10-batches-bin"
    place.mkdir(parents=True)
    draw = np.random.default_rng(1)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        records = draw.integers(0, 256, (64, 3073), np.uint8)
        records[:, 0] %= 10
        records.tofile(place / f"{name}.bin")


def tokens(folder):
    (folder / "gpt2").mkdir()
    draw = np.random.default_rng(2)
    for name in "train", "val":
        draw.integers(0, 256, 65 * 64, np.uint16).tofile(folder / f"gpt2/{name}.bin")


def settings(*words):
    return [word for setting in words for word in ("--set", setting)]


# model: what writes its data, steps, flags of mtc; all have four shards
MODELS = {
    "mnist": (digits, 50, ["--batch", 16]),
    "cnn": (digits, 50, ["--batch", 16]),
    "resnet18_cifar": (photos, 8, settings("examples=32")),
    "char_gpt": (letters, 50, settings("layers=1", "width=32", "context=16", "examples=16")),
    "gpt2": (tokens, 50, settings("layers=2", "heads=2", "width=64", "context=64", "vocab=256", "examples=8")),
}


def compiled(compile_model, name):
    return compile_model(ROOT / f"models/{name}.mt", "--shards", 4, *MODELS[name][2], target="cuda")


def environment(**more):
    """Each worker of pytest-xdist begins with another GPU."""
    own = visible_gpus()
    first = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) * 2 % len(own)
    return {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(own[first:] + own[:first]), "OMP_NUM_THREADS": "2",
            **nccl_settings(), **more}


def begun(program, count, folder, *flags, sums=None, **more):
    """Without a way to add up, the program takes the first that works."""
    several = ["--gpus", count, *(["--sums", sums] if sums else [])] if count > 1 else []
    return subprocess.Popen([*map(str, [program.path, "--data", folder, *flags, *several])], cwd=folder, env=environment(**more),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def skip_where_apart(told):
    if "GPUs do not reach each other's memory" in told:
        pytest.skip(told.partition("error: ")[2].splitlines()[0])


def trained(program, count, folder, steps, *flags, sums=None):
    """The losses of the steps and the bytes of the checkpoint."""
    (folder / "log").unlink(missing_ok=True)
    job = begun(program, count, folder, "--limit-steps", steps, "--epochs", 1000, "--save", "w", "--log", "log", "--log-every", 1, "--quiet", *flags,
                sums=sums)
    _, told = job.communicate(timeout=120)
    skip_where_apart(told)
    assert job.returncode == 0 and "error" not in told, told
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return [line["loss"] for line in lines if line["event"] == "train"], (folder / "w").read_bytes()


@needs_two
@needs_nccl
@pytest.mark.parametrize("name", MODELS)
def test_bytes_do_not_depend_on_gpus(compile_model, tmp_path, name):
    """Nor do losses, nor on the way that sums go; and what four began, two end."""
    make, steps, _ = MODELS[name]
    make(tmp_path)
    program = compiled(compile_model, name)
    expected = trained(program, 1, tmp_path, steps)
    assert len(expected[0]) == steps and len(set(expected[0])) > steps // 2
    for count in COUNTS:
        for sums in WAYS:
            found = trained(program, count, tmp_path, steps, sums=sums)
            assert found[0] == expected[0], f"losses on {count} GPUs by {sums}"
            assert found[1] == expected[1], f"checkpoint on {count} GPUs by {sums}"
    trained(program, COUNTS[-1], tmp_path, steps // 2)
    assert trained(program, 2, tmp_path, steps, "--resume", "w")[1] == expected[1]


WIDE = settings("layers=3", "width=512", "context=32", "examples=16")


@needs_two
@pytest.mark.parametrize("name, make, flags, buckets", [("mnist", digits, ["--batch", 16], 0), ("resnet18_cifar", photos, settings("examples=32"), 4),
                                                        ("char_gpt", letters, WIDE, 4)])
def test_sums_beside_the_backward_pass(compile_model, mtc, tmp_path, name, make, flags, buckets):
    """Where each GPU has one shard: those that are complete early have gone when it ends; small ones meet once."""
    make(tmp_path)
    model = ROOT / f"models/{name}.mt"
    assert mtc(model, "--emit=schedule", "--shards", COUNTS[-1], *flags).stdout.count("  bucket ") == buckets
    program = compile_model(model, "--shards", COUNTS[-1], *flags, target="cuda")
    expected = trained(program, 1, tmp_path, 50)
    for _ in range(3):
        assert trained(program, COUNTS[-1], tmp_path, 50, sums="peers") == expected


@needs_two
@needs_nccl
def test_sums_that_the_room_cannot_hold_go_in_turns(compile_model, folder):  # noqa: F811
    """By NCCL, half of 144 MB through room of 64 MiB."""
    program = compile_model(IN_TURNS, "--shards", 2, target="cuda")
    expected = trained(program, 1, folder, 4)
    assert trained(program, 2, folder, 4, sums="nccl") == trained(program, 2, folder, 4, sums="peers") == expected


@needs_two
def test_two_runs_are_one(compile_model, tmp_path):
    """Of so many steps that ranks come in any order."""
    digits(tmp_path)
    program = compiled(compile_model, "mnist")
    first, second = (trained(program, COUNTS[-1], tmp_path, 400) for _ in range(2))
    assert first == second


@needs_two
@needs_nccl
@pytest.mark.parametrize("sums, seed", [(None, 0), (None, 1), ("nccl", 2), ("host", 3)])
def test_killed_ranks_leave_what_goes_on(compile_model, tmp_path, sums, seed):
    """Three times each: the others end by themselves with exit code 80, and what goes on comes to the bytes of one process."""
    digits(tmp_path)
    random.seed(seed)
    flags = ["--data", str(tmp_path), "--epochs", str(LONG), "--rank-timeout", "3", *(["--sums", sums] if sums else [])]
    tool = load_tool("kill_test")
    tool.begin_ranks = with_environment(tool.begin_ranks)
    assert tool.kill_test(compiled(compile_model, "mnist").path, 3, "200", 0.5, flags, tmp_path, ranks=COUNTS[-1]) >= 2


def with_environment(begin):
    """The processes of kill_test, in ours."""
    def begin_here(command, ranks):
        before = dict(os.environ)
        os.environ.update(environment())
        try:
            return begin(command, ranks)
        finally:
            os.environ.clear()
            os.environ.update(before)
    return begin_here


def left(pids, seconds):
    """Those that still run behind so many."""
    until = time.monotonic() + seconds
    while any(runs(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
    return [pid for pid in pids if runs(pid)]


def wait_for(file, job):
    until = time.monotonic() + 60
    while not file.exists() and job.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    if not file.exists():
        job.terminate()
        told = job.communicate(timeout=60)[1]
        skip_where_apart(told)
        pytest.fail(f"nothing was saved: {told}")


@needs_two
@needs_nccl
@pytest.mark.parametrize("how, codes", [(signal.SIGKILL, {128 + signal.SIGKILL, RANK_LOST}), (signal.SIGSTOP, {RANK_LOST})])
@pytest.mark.parametrize("sums", WAYS)
def test_all_end_with_one(compile_model, tmp_path, how, codes, sums):
    digits(tmp_path)
    flags = ["--epochs", 10000000, "--save", "w", "--save-every", 200, "--quiet", "--rank-timeout", 3]
    job = begun(compiled(compile_model, "cnn"), COUNTS[-1], tmp_path, *flags, sums=sums)
    wait_for(tmp_path / "w", job)
    ranks = children(job.pid)
    os.kill(ranks[-1], how)
    struck = time.monotonic()
    _, told = job.communicate(timeout=60)
    assert job.returncode in codes and time.monotonic() - struck < GRACE and not left(ranks, 1), told
    assert unpack((tmp_path / "w").read_bytes())


@needs_two
@needs_nccl
@pytest.mark.parametrize("sums, seed", [(None, 0), ("nccl", 1), (None, 2), ("nccl", 3)])
def test_nobody_stays_wherever_one_was_killed(compile_model, tmp_path, sums, seed):
    """While ranks meet, while NCCL joins them, while they train: with the patience that is usual."""
    digits(tmp_path)
    job = begun(compiled(compile_model, "mnist"), COUNTS[-1], tmp_path, "--epochs", 10000000, "--quiet", sums=sums)
    time.sleep(0.3 + 2 * seed + random.Random(seed).uniform(0, 1.5))
    ranks = children(job.pid)
    assert len(ranks) == COUNTS[-1]
    os.kill(ranks[seed % len(ranks)], signal.SIGKILL)
    struck = time.monotonic()
    _, told = job.communicate(timeout=60)
    assert job.returncode and time.monotonic() - struck < GRACE and not left(ranks, 1), told


@needs_two
def test_a_signal_to_all_saves(compile_model, tmp_path):
    digits(tmp_path)
    program = compiled(compile_model, "mnist")
    job = begun(program, 2, tmp_path, "--epochs", 10000000, "--save", "w", "--save-every", 500, "--quiet")
    wait_for(tmp_path / "w", job)
    ranks = children(job.pid)
    os.kill(job.pid, signal.SIGTERM)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGTERM and "error" not in told and not left(ranks, 5), told
    assert unpack((tmp_path / "w").read_bytes())


@needs_two
def test_a_library_that_is_not_there_is_named(compile_model, tmp_path):
    digits(tmp_path)
    job = begun(compiled(compile_model, "mnist"), 2, tmp_path, "--limit-steps", 2, sums="nccl", MTC_NCCL="/nowhere/libnccl.so.2")
    _, told = job.communicate(timeout=60)
    assert job.returncode == UNAVAILABLE and told.count("error: ") == 1, told
    assert "NCCL cannot be loaded: /nowhere/libnccl.so.2" in told and "MTC_NCCL=FILE says where it lies" in told, told


@needs_two
def test_steps_of_all_are_measured(compile_model):
    program = compiled(compile_model, "mnist")
    words = [program.path, "bench", "--random-data", "--runs", "2", "--gpus", "2"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    line, = map(json.loads, done.stdout.splitlines())
    assert line["ranks"] == 2 and line["batch"] == 16 and line["us_per_step"] > 0
