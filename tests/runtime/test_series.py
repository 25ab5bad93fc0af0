"""Windows of rows in the order of time: which rows a window has, which parts have it, what is predicted from the newest."""

import json
import struct

import numpy as np
import pytest

pytestmark = pytest.mark.quick

USAGE, BAD_DATA = 64, 65
ROWS, PAST, NEXT, GAP, STRIDE = 90, 5, 3, 2, 2
LENGTH = PAST + GAP + NEXT
# What is predicted are the windows themselves, beside a weight that is trained and never moves them.
TABLE = f"""data {{
  examples = csv("load.csv", stride = {STRIDE})
  split    = 70 / 30
  past     : f32[{PAST}, 2] = columns("load", "wind", missing = "mean")
  next     : f32[{NEXT}]    = column("load", from = {PAST + GAP}, missing = "mean")
  day      : class[4][{LENGTH}] = column("day", from = 0)
}}
model {{
  h = linear(flatten(normalize(past)), 1)
  y = concat([flatten(past), next, flatten(one_hot(day, 4))], axis = 0)
}}
train {{
  loss      = mse(h, next[:1])
  predict   = y
  optimizer = sgd(0.001)
  batch     = 8
  epochs    = 1
}}
"""
ARRAYS = f"""data {{
  train = npy("load.npy", "both.npy", "load.npy", stride = 1)
  test  = npy("load.npy", "both.npy", "load.npy", stride = {STRIDE})
  level : f32
  past  : f32[{PAST}, 2]
  next  : f32[{NEXT}]
}}
model {{
  h = linear(flatten(past), {NEXT})
}}
train {{
  loss      = mse(h, next - level)
  predict   = flatten(past)
  optimizer = sgd(0.001)
  batch     = 8
  epochs    = 1
}}
"""


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """A folder with the rows as a table and as arrays, and the rows: load, wind, day."""
    folder, random = tmp_path_factory.mktemp("series"), np.random.default_rng(3)
    rows = np.stack([random.normal(size=ROWS), random.normal(size=ROWS), np.arange(ROWS) % 4], 1).astype("f4")
    (folder / "load.csv").write_text(table(rows))
    np.save(folder / "both.npy", rows[:, :2])
    np.save(folder / "load.npy", rows[:, 0])
    return folder, rows


def table(rows):
    days = ["fri", "mon", "sat", "sun"]
    return "load,wind,day\n" + "".join(f"{load:.9g},{wind:.9g},{days[int(day)]}\n" for load, wind, day in rows)


@pytest.fixture(scope="module")
def trained(compile_model, series):
    program = compile_model(TABLE)
    program("--data", series[0], "--save", series[0] / "w.safetensors", cwd=series[0])
    return program


def predicted(program, folder, *flags):
    program("predict", "--data", folder, "--load", folder / "w.safetensors", *flags, "--output", folder / "p.npy", cwd=folder)
    return np.load(folder / "p.npy")


def saved(path, name):
    bytes = path.read_bytes()
    size = struct.unpack("<Q", bytes[:8])[0]
    header = json.loads(bytes[8 : 8 + size])[name]
    begin, end = header["data_offsets"]
    return np.frombuffer(bytes[8 + size + begin : 8 + size + end], "f4").reshape(header["shape"])


def window(rows, at):
    past, next = rows[at : at + PAST, :2], rows[at + PAST + GAP : at + LENGTH, 0]
    return np.concatenate([past.ravel(), next, np.eye(4)[rows[at : at + LENGTH, 2].astype(int)].ravel()])


@pytest.mark.parametrize("split, begin, end", [("train", 0, 63), ("test", 63, ROWS)])
def test_windows_of_a_table_lie_within_their_part(trained, series, split, begin, end):
    folder, rows = series
    expected = [window(rows, at) for at in range(begin, end - LENGTH + 1, STRIDE)]
    np.testing.assert_array_equal(predicted(trained, folder, "--split", split), np.float32(expected))


def test_normalize_knows_the_training_part_alone(trained, series):
    folder, rows = series
    windows = np.stack([rows[at : at + PAST, :2] for at in range(0, 63 - LENGTH + 1, STRIDE)])
    np.testing.assert_allclose(saved(folder / "w.safetensors", "past.mean"), windows.mean(0), atol=1e-6)
    np.testing.assert_allclose(saved(folder / "w.safetensors", "past.std"), windows.std(0), atol=1e-6)


def test_the_newest_window_is_predicted(trained, series):
    folder, rows = series
    (folder / "new.csv").write_text(table(rows[: ROWS - 7]))
    np.testing.assert_array_equal(predicted(trained, folder, "--input", folder / "new.csv"), [np.float32(window(rows, ROWS - 7 - LENGTH))])


def test_what_stands_in_is_the_mean_of_the_rows_that_train(trained, series):
    folder, rows = series
    (folder / "new.csv").write_text(table(rows[:LENGTH]).replace(f"{rows[1, 1]:.9g}", "", 1))
    found = predicted(trained, folder, "--input", folder / "new.csv")
    assert found[0, 3] == pytest.approx(rows[:63, 1].mean(), abs=1e-6)


def test_arrays_have_windows_with_a_stride_for_each_set(compile_model, series, tmp_path):
    folder, rows = tmp_path, series[1]
    for name in ["both.npy", "load.npy"]:
        (folder / name).write_bytes((series[0] / name).read_bytes())
    program = compile_model(ARRAYS)
    program("--data", folder, "--save", folder / "w.safetensors", cwd=folder)
    for split, stride in [("train", 1), ("test", STRIDE)]:
        expected = [rows[at + 1 : at + 1 + PAST, :2].ravel() for at in range(0, ROWS - PAST - NEXT, stride)]
        np.testing.assert_array_equal(predicted(program, folder, "--split", split), expected)
    np.testing.assert_array_equal(predicted(program, folder, "--input", folder / "both.npy"), [rows[-PAST:, :2].ravel()])
    np.save(folder / "flat.npy", rows[:, :1])
    done = program("predict", "--load", folder / "w.safetensors", "--input", folder / "flat.npy", check=False)
    assert done.returncode == BAD_DATA and "expects examples of shape [2], found [1]" in done.stderr


def test_too_few_rows_and_rows_left_out_are_refused(trained, series, tmp_path):
    folder, rows = series
    (tmp_path / "load.csv").write_text(table(rows[:30]))
    done = trained("--data", tmp_path, cwd=tmp_path, check=False)
    assert done.returncode == BAD_DATA and "'test', 30% of it, has 9 rows, and a window has 10" in done.stderr
    (tmp_path / "few.csv").write_text(table(rows[:4]))
    done = trained("predict", "--load", folder / "w.safetensors", "--data", folder, "--input", tmp_path / "few.csv", check=False)
    assert done.returncode == BAD_DATA and "few.csv: has 4 rows, and a window has 10" in done.stderr
    lines = table(rows[:40]).splitlines(keepends=True)
    for wrong in ["\n", "a" + lines[7][1:], lines[7][:-1] + ",1\n"]:
        (tmp_path / "load.csv").write_text("".join([*lines[:7], wrong, *lines[8:]]))
        done = trained("--data", tmp_path, cwd=tmp_path, check=False)
        assert done.returncode == BAD_DATA and "load.csv:8:" in done.stderr and "--bad-rows skip" not in done.stderr, done.stderr
    done = trained("--data", folder, "--bad-rows", "skip", cwd=folder, check=False)
    assert done.returncode == USAGE and "one that is left out tears those that it is in" in done.stderr
