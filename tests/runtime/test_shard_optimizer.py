"""--shard-optimizer: each of several processes keeps the optimizer's states of a part of the weights. The bytes of a checkpoint are those of the
program without it, whatever the number of processes."""

import json
import os
import re
import subprocess

import numpy as np
import pytest
from fake_data import unpack
from test_shards import DATA, MODELS, folder, text  # noqa: F401: a fixture
from test_sockets import begun, ended

pytestmark = pytest.mark.quick
STEPS = 7
DENSE = "  h = tanh(linear(flatten(image), 6))"
CASES = {
    "momentum": text(DENSE, train="optimizer = sgd(0.1, momentum = 0.9)"),
    "adam": text("  h = relu(conv2d(image, 4, 3))"),
    "decay": text(DENSE, train='optimizer = adamw(cosine_lr(0.02), weight_decay = 0.1)\n  no_decay = "*.bias"'),
    "no states": text(DENSE, train="optimizer = sgd(0.1)"),
    "two optimizers": text("  h = relu(conv2d(image, 4, 3))",
                           train='optimizer = [muon(0.02, weights = "*.weight"), adam(0.01)]'),
    "adafactor": text(DENSE, train='optimizer = [adafactor(weights = "h.*"), lion(0.01)]'),
    "clipped": text(DENSE, train="optimizer = adamw(0.02)\n  clip_norm = 0.3\n  clip_value = 0.2\n  ema = 0.9"),
    "accumulated": text(DENSE, train='optimizer = rmsprop(0.01, momentum = 0.5)\n  accumulate = 3\n  clip_value = 0.2\n  ema = 0.9'),
    "frozen": text(DENSE, train='optimizer = adam(0.01)\n  freeze = ["h.bias"]'),
    "buffers": text("  h = flatten(batch_norm(normalize(image)))"),
    "weighted": text(DENSE, loss="cross_entropy(y, label)\n  example_weight = w", train="optimizer = adam(0.01)\n  clip_norm = 0.3").replace(
        "label : class[5]", "label : class[5]\n  w : f32"),
    "halves": text(DENSE, train="optimizer = adam(0.01)\n  precision = fp16"),
    "turns": text(DENSE, train='optimizer = [adam(0.01, weights = "h.*", every = 2, at = 1), sgd(0.1, momentum = 0.9)]'),
    "names": text("  own_first = weight([192])\n  part_begin = flatten(image) * own_first\n  h = tanh(part_begin)",
                  train="optimizer = adamw(cosine_lr(0.02))"),
    "wide": text("  h = tanh(linear(flatten(image), 500))"),
    "scalar": text("  w = weight([])\n  h = flatten(image) * w"),
}


def trained(program, folder, processes, *flags):  # noqa: F811
    words = ["--limit-steps", STEPS, "--save", "w", *flags]
    (folder / "w").unlink(missing_ok=True)
    if processes == 1:
        program("--data", ".", *words, cwd=folder)
    else:
        codes, _, told = ended(begun(program, folder, processes, *words))
        assert not any(codes), told
    header, data = unpack((folder / "w").read_bytes())
    for name in "mtc.checksum", "mtc.model":  # programs that are compiled apart have names of their own
        del header["__metadata__"][name]
    return json.dumps(header), data


@pytest.mark.parametrize("name", CASES)
def test_bytes_are_those_without_it(compile_model, folder, name):  # noqa: F811
    fields = dict(np.load(folder / "d.npz"))
    np.savez(folder / "d.npz", **fields, w=1 + fields["label"].astype(np.float32))
    plain, cut = (compile_model(CASES[name], "--shards", 4, *more) for more in ([], ["--shard-optimizer"]))
    expected = trained(plain, folder, 1)
    for processes in 1, 2, 4:
        assert trained(cut, folder, processes) == expected, processes


def test_three_processes_and_doubles(compile_model, folder):  # noqa: F811
    """Of three, two have parts; the same bits as with all states in each."""
    plain, cut = (compile_model(CASES["clipped"], "--real", "f64", "--batch", 12, "--shards", 6, *more) for more in ([], ["--shard-optimizer"]))
    assert trained(cut, folder, 3) == trained(plain, folder, 3) == trained(cut, folder, 3)
    assert trained(cut, folder, 2) == trained(plain, folder, 2)


@pytest.mark.parametrize("name", ["adam", "accumulated"])
def test_a_training_goes_on_with_others(compile_model, folder, name):  # noqa: F811
    """States are dealt out again: to as many as there are."""
    program = compile_model(CASES[name], "--shards", 4, "--shard-optimizer")
    expected = trained(program, folder, 1)
    part = {"processes": 4, "steps": 2}, {"processes": 1, "steps": 3}, {"processes": 2, "steps": 5}
    for k, each in enumerate(part):
        words = ["--limit-steps", each["steps"], "--save", "part", *(["--resume", "part"] if k else [])]
        if each["processes"] == 1:
            program("--data", ".", *words, cwd=folder)
        else:
            codes, _, told = ended(begun(program, folder, each["processes"], *words))
            assert not any(codes), told
    assert trained(program, folder, 4, "--resume", "part") == expected


WATCHED = """data {
  train      = npz("d.npz")
  validation = npz("v.npz")
  test       = npz("t.npz")
  image : f32[3, 8, 8]
  label : class[5]
}

model {
  h = tanh(linear(flatten(image), 6))
  y = linear(h, 5)
}

train {
  loss      = cross_entropy(y, label)
  metric    = accuracy(y, label)
  optimizer = adam(0.05)
  ema       = 0.8
  batch     = 10
  epochs    = 30
}
"""


def test_what_is_saved_on_the_way_is_whole(compile_model, folder):  # noqa: F811
    """Numbered checkpoints, the best weights, and the last ones, which are the best: with the states of the step that they are of."""
    rng = np.random.default_rng(5)
    for name, count in ("v", 31), ("t", 52):
        np.savez(folder / f"{name}.npz", image=rng.normal(size=(count, 3, 8, 8)).astype(np.float32),
                 label=rng.integers(0, 5, count).astype(np.uint8))
    flags = ["--patience", 3, "--save", "w.safetensors", "--save-every", 4, "--keep", 3, "--log", "log"]
    program, found = compile_model(WATCHED, "--shards", 4, "--shard-optimizer"), []
    for processes in 1, 2, 4:
        if processes == 1:
            program("--data", ".", *flags, cwd=folder)
        else:
            codes, _, told = ended(begun(program, folder, processes, *flags))
            assert not any(codes), told
        log = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        saved = {path.name: path.read_bytes() for path in folder.glob("w*")}
        found.append((saved, [line[name] for line in log for name in ("loss", "accuracy") if name in line]))
        for path in folder.glob("w*"):
            path.unlink()
    assert len(found[0][0]) == 5 and found[0] == found[1] == found[2]


def test_each_process_has_memory_for_its_part(compile_model, folder):  # noqa: F811
    """Two moments of two layers: each of four processes has a quarter, or 64 elements more."""
    program, arena = compile_model(CASES["wide"], "--shards", 4, "--shard-optimizer"), {}
    for processes in 1, 4:
        codes, told, _ = ended(begun(program, folder, processes, "--dry-run"))
        assert not any(codes)
        number, unit = re.search(r"model ([0-9.]+) ([KM])B", told).groups()
        arena[processes] = float(number) * {"K": 1e3, "M": 1e6}[unit]
    said = re.search(r"states of the optimizer \((\d+) bytes\): of N processes, each has 1/N of them", program("info").stdout)
    states, elements = int(said[1]), 192 * 500 + 500 + 500 * 5 + 5
    assert 2 * 4 * elements <= states <= 2 * 4 * (elements + 4 * 64)
    assert abs(arena[1] - arena[4] - states * 3 / 4) < 1.1e5  # said in tenths of a megabyte


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["adam", "two optimizers", "clipped", "accumulated"])
def test_cuda_takes_it(cuda_takes, name):
    cuda_takes(CASES[name], "--shards", "4", "--shard-optimizer")
