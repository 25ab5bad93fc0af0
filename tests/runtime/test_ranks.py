"""Trainings in several processes over MPI (over sockets: test_sockets.py): the bytes of one process, whatever their number, and an end for all where one fails."""

import atexit
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from fake_data import unpack
from runtime_library import build_program
from test_shards import MODELS, folder, text  # noqa: F401: a fixture

pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun: tools/install-deps --all")

STEPS, USAGE, UNAVAILABLE, RANK_LOST = 12, 64, 69, 80
# Of mpirun: a folder for the files of its own, whose sockets have short names; and PMIx without a store in shared memory, whose beginning now and
# then ends in a segmentation fault: its developers' advice (open-mpi/ompi, issue 7516).
PLACE = tempfile.mkdtemp(prefix="mtc-mpi-", dir="/tmp")
atexit.register(shutil.rmtree, PLACE, ignore_errors=True)
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1", "TMPDIR": PLACE, "PMIX_MCA_gds": "hash"}


def processes(program, ranks, *flags):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), program.path, *map(str, flags)]


def run(program, ranks, folder, *flags, code=0, command="train"):  # noqa: F811
    words = processes(program, ranks, command, "--data", folder, *flags)
    done = subprocess.run(words, cwd=folder, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def trained(program, ranks, folder, name, *flags, steps=STEPS):  # noqa: F811
    run(program, ranks, folder, "--limit-steps", steps, "--save", name, "--log", f"{name}.jsonl", "--log-every", 1, *flags)
    lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    return np.array([line["loss"] for line in lines if "loss" in line and "step" in line][:steps]), (folder / name).read_bytes()


@pytest.mark.parametrize("name", ["convolution", "chance", "updates", "normalize", "whole statistics"])
def test_bytes_do_not_depend_on_ranks(compile_model, folder, name):  # noqa: F811
    program = compile_model(MODELS[name], "--shards", 4)
    whole = [trained(program, ranks, folder, f"w{ranks}") for ranks in (1, 2, 4, 4)]
    assert all(saved == whole[0][1] for _, saved in whole)
    assert all(np.array_equal(losses, whole[0][0]) for losses, _ in whole)


@pytest.mark.parametrize("real, near", [("f32", 1e-6), ("f64", 1e-13)])
def test_three_ranks_train_as_one_program(compile_model, folder, real, near):  # noqa: F811
    """The tree of three is no part of that of six."""
    expected, before = trained(compile_model(MODELS["updates"], "--real", real), 1, folder, "plain")
    losses, after = trained(compile_model(MODELS["updates"], "--real", real, "--shards", 6, "--batch", 12), 3, folder, "three")
    same, _ = trained(compile_model(MODELS["updates"], "--real", real, "--batch", 12), 1, folder, "whole")
    assert len(losses) == STEPS and np.allclose(losses, same, rtol=near, atol=near) and not np.allclose(losses, expected)


def test_a_training_goes_on_with_others(compile_model, folder):  # noqa: F811
    program = compile_model(MODELS["updates"], "--shards", 4)
    _, expected = trained(program, 1, folder, "whole")
    run(program, 4, folder, "--limit-steps", 3, "--save", "part")
    run(program, 1, folder, "--limit-steps", 8, "--save", "part", "--resume", "part")
    run(program, 2, folder, "--limit-steps", STEPS, "--save", "part", "--resume", "part")
    assert (folder / "part").read_bytes() == expected


def test_rank_0_speaks_for_all(compile_model, folder):  # noqa: F811
    program = compile_model(MODELS["updates"], "--shards", 4)
    done = run(program, 4, folder, "--limit-steps", STEPS)
    assert done.stdout.count("steps in") == 1
    done = run(program, 4, folder, "--dry-run")
    assert done.stdout.count("dry run") == 1 and done.stdout.count("nothing was saved") == 1


def test_profile_shows_who_waits_for_whom(compile_model, folder):  # noqa: F811
    """By rank 0 alone, of both."""
    program = compile_model(MODELS["convolution"], "--shards", 2)
    told, = map(json.loads, run(program, 2, folder, "--runs", 2, "--json", command="profile").stdout.splitlines())
    assert len(told["ranks"]) == 2 and all(rank["us_own"] > 0 and rank["us_waited"] >= 0 for rank in told["ranks"])
    shown = run(program, 2, folder, "--runs", 2, command="profile").stdout
    assert all(f"work of rank {rank}" in shown for rank in (0, 1)) and "us for sums and for others" in shown


def test_other_commands_are_done_once(compile_model, folder):  # noqa: F811
    program = compile_model(MODELS["updates"], "--shards", 2)
    program("--data", ".", "--limit-steps", 2, "--save", "w", "--quiet", cwd=folder)
    data = ["--data", folder]
    for words, told in (["eval", "--load", "w", "--split", "train", *data], "46 examples"), (["info", "w"], "tensors"), (["help"], "usage:"):
        words = processes(program, 2, *words)
        done = subprocess.run(words, cwd=folder, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=60)
        alone = program(*words[words.index(program.path) + 1:], cwd=folder)
        assert done.returncode == 0 and told in done.stdout and done.stdout == alone.stdout, done.stdout + done.stderr


def test_limits_of_files_that_open_mpi_hangs_at_are_refused(compile_model, folder):  # noqa: F811
    program = compile_model(MODELS["updates"], "--shards", 2)
    words = shlex.join(map(str, processes(program, 2, "--data", folder, "--limit-steps", 2)))
    done = subprocess.run(["sh", "-c", f"ulimit -f 1000; exec {words}"], cwd=folder, env={**os.environ, **SETTINGS},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == UNAVAILABLE and "Open MPI needs files of 5 MiB" in done.stderr, done.stderr


def test_rank_0_warns_for_all(compile_model, folder):  # noqa: F811
    """Of a batch that is larger than the data, of a field that is the same in all examples."""
    text = MODELS["normalize"].replace("batch  = 10", "batch  = 100")
    np.savez(folder / "d.npz", image=np.ones((46, 3, 8, 8), np.float32), label=np.load(folder / "d.npz")["label"])
    done = run(compile_model(text, "--shards", 2), 2, folder, "--epochs", 1)
    assert done.stderr.count("a batch has 100 examples") == 1 and done.stderr.count("the same in all 46") == 1
    assert done.stderr.count("warning: ") == 2, done.stderr


def test_other_numbers_of_ranks_need_another_program(compile_model, folder):  # noqa: F811
    done = run(compile_model(MODELS["updates"], "--shards", 4), 3, folder, code=USAGE)
    assert done.stderr.count("3 processes cannot have equally many of this program's 4 shards") == 1
    assert "--target cpu --shards 3 -o" in done.stderr
    done = run(compile_model(MODELS["updates"]), 2, folder, code=USAGE)
    assert "this program computes a batch whole, and was started 2 times" in done.stderr and "--shards 2 -o" in done.stderr


def test_what_differs_is_found_before_the_first_step(compile_model, folder):  # noqa: F811
    program, other = compile_model(MODELS["updates"], "--shards", 2), compile_model(MODELS["convolution"], "--shards", 2)
    one = ["-n", "1", program.path, "--data", folder]
    np.savez(folder / "e.npz", **{name: values[::-1] for name, values in np.load(folder / "d.npz").items()})
    (folder / "other").mkdir()
    shutil.copy(folder / "e.npz", folder / "other/d.npz")
    for second, what in (
        ([program.path, "--data", folder, "--seed", 7], "beginning than rank 0"),
        ([program.path, "--data", folder, "--limit-steps", 7], "length of training than rank 0"),
        ([program.path, "--data", folder / "other"], "training data than rank 0"),
        ([other.path, "--data", folder], "program than rank 0"),
    ):
        words = ["mpirun", "--oversubscribe", *one, ":", "-n", "1", *second]
        done = subprocess.run([*map(str, words)], cwd=folder, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=60)
        assert done.returncode == USAGE and done.stderr.count(f"has another {what}") == 1, done.stderr
        assert "step" not in done.stdout


def test_other_weights_are_found(compile_model, folder):  # noqa: F811
    """Of the same step and seed: what each rank begins with is compared, not only where it says that this is."""
    program = compile_model(MODELS["updates"], "--shards", 2)
    for name, seed in ("a", 3), ("b", 4):
        program("--data", ".", "--limit-steps", 2, "--seed", seed, "--save", name, "--quiet", cwd=folder)
    words = ["mpirun", "--oversubscribe", *("-n", "1", program.path, "--data", folder, "--init-from", "a", ":"),
             *("-n", "1", program.path, "--data", folder, "--init-from", "b")]
    done = subprocess.run([*map(str, words)], cwd=folder, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=60)
    assert done.returncode == USAGE and "rank 1 (" in done.stderr, done.stderr
    assert "has another set of weights and states than rank 0" in done.stderr


def test_learning_rates_fall_where_rank_0_says(compile_model, folder):  # noqa: F811
    """Evaluations may differ: here, by what decides which is better."""
    content = text("  h = tanh(linear(flatten(image), 6))", train="optimizer = adam(plateau_lr(0.1, patience = 1))\n"
                   "  metric = accuracy(y, label)").replace('train = npz("d.npz")', 'train = npz("d.npz")\n  test = npz("d.npz")')
    program, saved = compile_model(content, "--shards", 2), []
    for second in "accuracy", "loss":
        first, second = [[program.path, "--data", folder, "--limit-steps", 60, "--monitor", name] for name in ("accuracy", second)]
        words = ["mpirun", "--oversubscribe", "-n", "1", *first, "--save", "w", ":", "-n", "1", *second]
        done = subprocess.run([*map(str, words)], cwd=folder, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "the learning rate falls" in done.stdout, done.stdout + done.stderr
        saved.append((folder / "w").read_bytes())
    assert saved[0] == saved[1]


@pytest.mark.parametrize("work, late, code", [(0, 0.1, 0), (0, 1, RANK_LOST), (1.2, 1.2, 0), (0.2, 1.5, RANK_LOST)])
def test_who_worked_for_long_waits_as_long(work, late, code, tmp_path):
    """An evaluation takes each rank its own time: the timeout is what may be lost beside."""
    program = build_program(tmp_path / "waiting", [ROOT / "tests/runtime/waiting.c", ROOT / "runtime/base/device_cpu.c"])
    assert int(subprocess.run([program, str(work), str(late)], capture_output=True, text=True, check=True).stdout) == code


def parent(process):
    """Of a folder of /proc; None: it has just ended."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def children(pid):
    """Processes that another one started and has not waited for, in the order of their numbers."""
    return sorted(int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit() and parent(process) == pid)


def runs(pid):
    """What is dead may still wait for whoever adopted it to look."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def begun(program, folder, *flags):  # noqa: F811
    """mpirun with two ranks, once they have saved w, and their processes."""
    words = processes(program, 2, "--data", folder, "--save", "w", "--quiet", *flags)
    job = subprocess.Popen(words, cwd=folder, env={**os.environ, **SETTINGS}, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (folder / "w").exists() and time.monotonic() < until:
        time.sleep(0.01)
    ranks = children(job.pid)
    assert len(ranks) == 2
    return job, ranks


WATCHED = MODELS["updates"].replace('train = npz("d.npz")', 'train = npz("d.npz")\n  test = npz("d.npz")').replace(
    "cosine_lr(0.02)", "plateau_lr(0.02, patience = 1)")


def test_a_signal_to_one_rank_leaves_all_in_step(compile_model, folder):  # noqa: F811
    """It once ended the evaluations of that rank, whose rate then fell at other times, and which waited for what nobody sent."""
    program, flags = compile_model(WATCHED, "--shards", 2), ["--epochs", 4000, "--save-every", 100]
    job, ranks = begun(program, folder, *flags)
    os.kill(ranks[1], signal.SIGTERM)
    time.sleep(1.2)
    assert runs(ranks[1])
    os.kill(ranks[1], signal.SIGTERM)
    _, told = job.communicate(timeout=120)
    saved = (folder / "w").read_bytes()
    program("--data", ".", "--save", "whole", "--quiet", *flags, cwd=folder)
    assert "error" not in told and saved == (folder / "whole").read_bytes(), told


def test_a_signal_to_all_saves(compile_model, folder):  # noqa: F811
    job, ranks = begun(compile_model(WATCHED, "--shards", 2), folder, "--epochs", 10000000, "--save-every", 100)
    for pid in reversed(ranks):
        os.kill(pid, signal.SIGTERM)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGTERM and told.count("terminated after") == 1 and "error" not in told, told
    assert unpack((folder / "w").read_bytes())


@pytest.mark.parametrize("how, codes", [(signal.SIGSTOP, {RANK_LOST}), (signal.SIGKILL, {128 + signal.SIGKILL, RANK_LOST})])
def test_all_end_with_one(compile_model, folder, how, codes):  # noqa: F811
    program = compile_model(MODELS["convolution"], "--shards", 2)
    patience = 5 if how == signal.SIGSTOP else 60  # on a busy machine a rank says nothing for seconds
    job, ranks = begun(program, folder, "--epochs", 100000000, "--save-every", 5, "--rank-timeout", patience)
    os.kill(ranks[1], how)
    stopped = time.monotonic()
    _, told = job.communicate(timeout=60)
    assert job.returncode in codes and time.monotonic() - stopped < 50, told
    if how == signal.SIGSTOP:
        assert "rank 0 of 2 (" in told and "waits for rank 1 (" in told and "--resume goes on" in told
    assert not any(runs(pid) for pid in ranks)
    assert unpack((folder / "w").read_bytes())
