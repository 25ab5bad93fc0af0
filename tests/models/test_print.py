"""print(x): statistics of a value before a step, and a training that is the same to the bit."""

import json
import re

import numpy as np
import pytest

pytestmark = pytest.mark.quick

MODEL = """
param rate = 0.2

data {
  train = npy("x.npy", "y.npy")
  x : f32[3]
  y : f32[1]
}

model {
  h = relu(linear(%s, 8))
  repeat i in 0..2 {
    h = h + %s
  }
  guess = linear(batch_norm(h), 1)
}

train {
  loss      = mse(guess, y)
  metric    = %s
  optimizer = adam(1e-2)
  batch     = 32
  epochs    = 2
}
"""
PLAIN = ("x", "dropout(linear(h, 8), rate)", "mae(guess, y)")
PRINTS = MODEL % tuple(f"print({value})" for value in PLAIN)
LINE = re.compile(r"step (\d+)  m\w+.mt:(\d+)  (.*?)  (\S+)  mean (\S+), deviation (\S+), from (\S+) to (\S+), (\d+) NaN(?:, (\d+) infinite)? of (\d+)")


@pytest.fixture
def data(tmp_path):
    chance = np.random.default_rng(1)
    x, y = chance.normal(3, 1, (100, 3)).astype("f4"), chance.normal(0, 1, (100, 1)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    return x


def printed(done):
    return [match.groups() for match in map(LINE.match, done.stdout.splitlines()) if match]


def test_values_of_a_step(compile_model, data, tmp_path):
    """Of the batch of that step, with its dropout: the metric is the mean that the step reports; a smaller last batch counts its own."""
    program, log = compile_model(PRINTS), tmp_path / "log.jsonl"
    shown = printed(program("--data", tmp_path, "--print-every", 1, "--log", log, "--log-every", 1))
    assert [row[2] for row in shown[:4]] == ["x", "dropout(linear(h, 8), rate)", "dropout(linear(h, 8), rate)", "mae(guess, y)"]
    assert [row[3] for row in shown[:4]] == ["f32[3]", "f32[8]", "f32[8]", "f32"] and [row[1] for row in shown[:4]] == ["11", "13", "13", "20"]
    assert [int(row[10]) for row in shown if row[2] == "x"] == [96, 96, 96, 12] * 2
    reported = [line["mae"] for line in map(json.loads, log.read_text().splitlines()) if line["event"] == "train"]
    assert np.allclose([float(row[4]) for row in shown if row[3] == "f32"], reported, rtol=1e-5) and len(reported) == 8
    rows = [[float(number) for number in row[4:8]] + [int(row[10])] for row in shown[:16] if row[2] == "x"]
    mean = sum(row[0] * row[4] for row in rows) / 300
    spread = sum((row[1] ** 2 + (row[0] - mean) ** 2) * row[4] for row in rows) / 300
    found = [mean, spread ** 0.5, min(row[2] for row in rows), max(row[3] for row in rows)]
    assert np.allclose(found, [data.mean(dtype="f8"), data.std(dtype="f8"), data.min(), data.max()], rtol=2e-5)


def test_a_value_of_several_lines_is_one(compile_model, data, tmp_path):
    text = MODEL % (PLAIN[0], "print(dropout(linear(h, 8),  # of each\n                rate))", PLAIN[2])
    shown = printed(compile_model(text)("--data", tmp_path))
    assert [row[2] for row in shown] == ["dropout(linear(h, 8), rate)"] * len(shown) and shown


def test_bits_of_a_training_stay(compile_model, mtc, data, tmp_path):
    program, plain = compile_model(PRINTS), compile_model(MODEL % PLAIN)
    files = []
    for run, flags in ((program, ["--print-every", 1]), (program, ["--print-every", 3]), (plain, [])):
        run("--data", tmp_path, "--save", tmp_path / "w.safetensors", *flags)
        raw = (tmp_path / "w.safetensors").read_bytes()
        header = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])
        begin = 8 + int.from_bytes(raw[:8], "little")
        files.append({name: raw[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
                      for name, entry in header.items() if name != "__metadata__"})
    assert files[0] == files[1] == files[2] and len(files[0]) > 10
    texts = []
    for text in (PRINTS, MODEL % PLAIN):
        (tmp_path / "m.mt").write_text(text)
        steps = mtc(tmp_path / "m.mt", "--emit=schedule", "--target", "cuda").stdout.split("eval: ")[0]
        texts.append(steps)
    assert texts[0] == texts[1]


def test_numbers_that_are_none(compile_model, data, tmp_path):
    """Of those that are, the mean is told all the same."""
    text = (MODEL % PLAIN).replace("  metric ", "  predict   = print(log(x - 3))\n  metric ")
    shown = printed(compile_model(text)("--data", tmp_path, "--print-every", 1))
    assert sum(int(row[8]) for row in shown) == 2 * (data < 3).sum() and {row[9] for row in shown} == {None}
    mean = sum(float(row[4]) * (int(row[10]) - int(row[8])) for row in shown) / (2 * (data > 3).sum())
    assert np.isclose(mean, np.log(data[data > 3] - 3.0, dtype="f8").mean(), rtol=1e-4)


def test_metrics_keep_their_names(mtc, tmp_path):
    (tmp_path / "m.mt").write_text((MODEL % PLAIN).replace("mae(guess, y)", "[print(mae(guess, y)), print(print(mse(guess, y)))]"))
    done = mtc(tmp_path / "m.mt", "--emit=graph")
    assert done.returncode == 0 and {"mae", "mse"} <= set(re.findall(r" = report\(.* (\w+)  #", done.stdout)), done.stderr


@pytest.mark.parametrize("flags", [["--quiet"], ["--print-every", 9]])
def test_when_it_is_silent(flags, compile_model, data, tmp_path):
    shown = printed(compile_model(PRINTS)("--data", tmp_path, *flags))
    assert len(shown) == (0 if "--quiet" in flags else 4)  # the first step of eight


@pytest.mark.parametrize("old, new, flags, said", [
    ("print(x)", "x", ["--shards", "2"], "print(x) is of a batch that is computed whole, not of --shards"),
    ("print(x)", "sum(print(batch(x)))", [], "print what batch(x) is made of"),
    ("adam(1e-2)", "adam(print(1e-2))", [], "print(x) shows values of the model, of loss, metric and predict alone")])
def test_where_it_cannot_be(old, new, flags, said, mtc, tmp_path):
    text = PRINTS if "adam" not in old else MODEL % PLAIN
    (tmp_path / "m.mt").write_text(text.replace(old, new))
    done = mtc(tmp_path / "m.mt", "--emit=graph", *flags)
    assert done.returncode == 65 and said in done.stderr


@pytest.mark.nvcc
@pytest.mark.parametrize("batch", ["batch     = 32", "batch     = 16\n  accumulate = 2"], ids=["whole", "accumulated"])
def test_cuda_takes_it(batch, cuda_takes):
    """C++ wants what a program tells of itself in the order of MtcModel."""
    cuda_takes(PRINTS.replace("batch     = 32", batch))
