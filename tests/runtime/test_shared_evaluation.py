"""Evaluations that several processes share: the numbers of one, whatever their number; each computes its part of the batches."""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT, Program
from runtime_library import build_program
from test_shards import folder  # noqa: F401: a fixture
from test_sockets import ended, free_port, torchrun

pytestmark = pytest.mark.quick
USAGE = 64

MODEL = """data {
  train      = npz("d.npz")
  validation = npz("v.npz")
  test       = npz("t.npz")
  image : f32[3, 8, 8]
  label : class[5]
}

model {
  h = tanh(linear(flatten(image + 0.1 * random_normal([3, 8, 8])), 6))
  y = linear(h, 5)
}

train {
  loss      = cross_entropy(y, label)
  metric    = [accuracy(y, label), f1(y, label), perplexity(y, label), confusion(y, label)]
  optimizer = adam(0.01)
  batch     = 10
  epochs    = 4
}
"""


@pytest.fixture
def sets(folder):  # noqa: F811
    rng = np.random.default_rng(5)
    for name, count in ("v", 31), ("t", 52):
        np.savez(folder / f"{name}.npz", image=rng.normal(size=(count, 3, 8, 8)).astype(np.float32),
                 label=rng.integers(0, 5, count).astype(np.uint8))
    return folder


@pytest.fixture(scope="module")
def counted(mtc, tmp_path_factory):
    """A program that says how many batches it has evaluated."""
    place = tmp_path_factory.mktemp("counted")
    (place / "m.mt").write_text(MODEL)
    (place / "m.c").write_text(mtc(place / "m.mt", "--target", "cpu", "--emit=c", "--shards", 4).stdout)
    sources = [place / "m.c", ROOT / "tests/runtime/counted.c", ROOT / "runtime/base/device_cpu.c"]
    return Program(build_program(place / "counted", sources, "-Wno-unknown-pragmas", "-Wl,--wrap=mtc_keep_set_values"))


def run(program, folder, count, *words, code=0, own=lambda rank: []):  # noqa: F811
    """What is said of an evaluation or a training in so many processes, and how many batches each evaluated."""
    port = free_port()
    codes, out, told = ended([subprocess.Popen([str(program.path), *map(str, [*words, *own(rank)])], cwd=folder, stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1", **(
                                                   torchrun(rank, count, port) if count > 1 else {})}) for rank in range(count)])
    assert set(codes) == {code}, out + told
    return out, told, [int(number) for number in re.findall(r"^evaluated (\d+)$", told, re.M)]


def evaluations(folder, name):  # noqa: F811
    lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines if line["event"] in ("epoch", "test")]


def test_each_evaluates_its_part_and_all_know_the_whole(counted, sets):
    """31 and 52 examples in batches of 3: 11 and 18."""
    logs, saved, flags = [], [], ["--data", ".", "--patience", 2, "--epochs", 30, "--save", "w.safetensors", "--log", "log"]
    for count in 1, 2, 4:
        out, _, batches = run(counted, sets, count, *flags)
        logs.append(evaluations(sets, "log"))
        saved.append([(sets / name).read_bytes() for name in ("w.safetensors", "w-best.safetensors")])
        rounds = len(logs[0]) - 1
        assert "stopped: 2 evaluations" in out and sum(batches) == 11 * rounds + 18 and max(batches) - min(batches) <= rounds + 1
        for name in "w.safetensors", "w-best.safetensors", "log":
            (sets / name).unlink()
    assert logs[0][-1]["weights"] == "best" and logs[0] == logs[1] == logs[2] and saved[0] == saved[1] == saved[2]


def test_examples_with_weights(compile_model, sets):
    """Means, metrics over a set and gradients are sums over all processes, divided by what all of their examples weigh."""
    text = MODEL.replace("label : class[5]", "label : class[5]\n  w : f32").replace("loss   ", "example_weight = w\n  accumulate = 2\n  loss   ")
    program = compile_model(text, "--shards", 2)
    for name in "dvt":
        data = dict(np.load(sets / f"{name}.npz"))
        w = np.random.default_rng(7).uniform(0.1, 3, len(data["label"])).astype(np.float32)
        w[::3] = w[10:17] = 0
        np.savez(sets / f"{name}.npz", **data, w=w)
    logs, saved, flags = [], [], ["--data", ".", "--epochs", 2, "--save", "w.safetensors", "--log", "log"]
    for count in 1, 2:
        run(program, sets, count, *flags)
        logs.append(evaluations(sets, "log"))
        saved.append((sets / "w.safetensors").read_bytes())
        (sets / "log").unlink()
    assert len(logs[0]) == 3 and logs[0] == logs[1] and saved[0] == saved[1]
    alone, shared = (run(program, sets, count, "eval", "--load", "w.safetensors", "--data", ".")[0] for count in (1, 2))
    assert alone == shared and "f1" in alone


def test_eval_is_printed_once(counted, sets):
    """Also of numbers that shards do not divide, and of more processes than batches."""
    run(counted, sets, 1, "--data", ".", "--epochs", 1, "--save", "w", "--quiet")
    alone, _, (all_of_them,) = run(counted, sets, 1, "eval", "--load", "w", "--data", ".", "--split", "validation")
    for count in 3, 12:
        out, told, batches = run(counted, sets, count, "eval", "--load", "w", "--data", ".", "--split", "validation")
        assert out == alone and "31 examples" in out and told.count("\n") == len(batches), out + told
        assert sum(batches) == all_of_them == 11 and set(batches) <= {11 // count, 11 // count + 1}


def test_what_is_evaluated_is_the_same_for_all(compile_model, sets):
    program = compile_model(MODEL, "--shards", 2)
    run(program, sets, 1, "--data", ".", "--epochs", 1, "--save", "w", "--quiet")
    (sets / "other").mkdir()
    for name in "d.npz", "v.npz", "t.npz":
        shutil.copy(sets / name, sets / "other" / name)
    shutil.copy(sets / "t.npz", sets / "other/v.npz")

    def elsewhere(rank):
        return ["--data", "other" if rank else "."]

    _, told, _ = run(program, sets, 2, "--epochs", 1, "--quiet", code=USAGE, own=elsewhere)
    assert told.count("error: ") == 1 and "has another validation data than rank 0" in told and "52 examples" in told, told
    _, told, _ = run(program, sets, 2, "eval", "--load", "w", "--split", "validation", code=USAGE, own=elsewhere)
    assert told.count("error: ") == 1 and "has another data set to evaluate than rank 0" in told, told
