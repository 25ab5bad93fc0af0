"""Metrics over a set of examples against scikit-learn's definitions, written here in NumPy and float64."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.quick

NUMBERS = """param lr = 0.01
data {
  train = npz("train.npz")
  test  = npz("test.npz")
  x : f32[3]
  y : f32[OUT]
}
model { p = linear(x, OUT) }
train {
  loss      = mse(p, y)
  metric    = [rmse(p, y), mae(p, y), r2(p, y), mape(p, y)]
  optimizer = adam(lr)
  batch     = 32
  epochs    = 4
}
"""


def rmse(p, y):
    return np.mean(np.sqrt(np.mean((p - y) ** 2, axis=0)))


def r2(p, y):
    left, all_of_it = ((p - y) ** 2).sum(axis=0), ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    return np.mean(np.where(all_of_it > 0, 1 - left / np.where(all_of_it > 0, all_of_it, 1), left == 0))


def mape(p, y):
    return np.mean(np.abs(p - y) / np.maximum(np.abs(y), np.finfo(np.float64).eps))


def write(folder, rows, **arrays):
    """The last rows are the test data."""
    np.savez(folder / "train.npz", **{name: array[:-rows] for name, array in arrays.items()})
    np.savez(folder / "test.npz", **{name: array[-rows:] for name, array in arrays.items()})


def numbers(count, out, offset):
    generator = np.random.default_rng(count)
    x = generator.normal(size=(count, 3)).astype("f4")
    y = (x @ generator.normal(size=(3, out)) + offset + 0.1 * generator.normal(size=(count, out))).astype("f4")
    return {"x": x, "y": y}


def logged(path, event):
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["event"] == event]


def train(program, folder, *flags):
    """What the training says of the test data at its end, and what it predicts for them then."""
    program("--data", folder, "--save", folder / "w", "--log", folder / "log", "--quiet", *flags)
    program("predict", "--data", folder, "--load", folder / "w", "--split", "test", "--output", folder / "p.npy")
    return logged(folder / "log", "epoch")[-1], np.load(folder / "p.npy").astype("f8")


@pytest.mark.parametrize("count, out, offset", [(303, 1, 3), (77, 2, 3), (100_000, 1, 1000)])
def test_metrics_of_numbers(count, out, offset, compile_model, tmp_path):
    """The last batch is smaller. Where the mean is a thousand deviations, sums of squares would leave no digit of r2."""
    data = numbers(count + 9, out, offset)
    write(tmp_path, count, **data)
    line, p = train(compile_model(NUMBERS.replace("OUT", str(out))), tmp_path)
    y = data["y"][-count:].astype("f8")
    assert {name: line[f"test_{name}"] for name in ("rmse", "r2", "mape")} == {
        name: pytest.approx(value, rel=1e-6) for name, value in (("rmse", rmse(p, y)), ("r2", r2(p, y)), ("mape", mape(p, y)))}
    assert "rmse" not in line and line["test_mae"] == pytest.approx(np.abs(p - y).mean(), rel=1e-5)


def test_a_target_that_is_the_same_in_all_examples(compile_model, tmp_path):
    data = {"x": np.zeros((40, 3), "f4"), "y": np.full((40, 2), 0.5, "f4")}
    write(tmp_path, 20, **data)
    program = compile_model(NUMBERS.replace("linear(x, OUT)", "linear(x, 2, bias = false)").replace("OUT", "2"))
    line, p = train(program, tmp_path, "--lr", 0)
    assert line["test_r2"] == 0 and not p.any()
    data["y"][:, 1] = 0
    write(tmp_path, 20, **data)
    line, _ = train(program, tmp_path, "--lr", 0)
    assert line["test_r2"] == 0.5 and line["test_mape"] == 0.5


def test_of_a_target_that_is_0_the_error_in_percent_is_huge(compile_model, tmp_path):
    data = {"x": np.ones((40, 3), "f4"), "y": np.zeros((40, 1), "f4")}
    write(tmp_path, 20, **data)
    line, p = train(compile_model(NUMBERS.replace("OUT", "1")), tmp_path)
    assert line["test_mape"] == pytest.approx(mape(p, np.zeros((20, 1))), rel=1e-6) and line["test_mape"] > 1e9


def test_the_same_bits_whatever_the_threads_and_after_resuming(compile_model, tmp_path):
    write(tmp_path, 303, **numbers(900, 1, 3))
    program = compile_model(NUMBERS.replace("OUT", "1"))

    def run(threads, log, *flags):
        program("--data", tmp_path, "--log", tmp_path / log, "--quiet", *flags, threads=threads)
        return [{key: value for key, value in line.items() if key != "seconds"} for line in logged(tmp_path / log, "epoch")]

    whole = run(1, "a")
    assert run(2, "b") == whole
    run(2, "c", "--save", tmp_path / "w", "--limit-steps", 30)
    assert run(1, "c", "--resume", tmp_path / "w")[-1] == whole[-1]


def test_best_weights_by_a_metric_over_the_set(compile_model, tmp_path):
    """r2 is best where it is highest, rmse where it is lowest; both at the same step."""
    write(tmp_path, 303, **numbers(900, 1, 3))
    program = compile_model(NUMBERS.replace("OUT", "1"))
    for name, best in ("r2", max), ("rmse", min):
        done = program("--data", tmp_path, "--save", tmp_path / "w", "--log", tmp_path / "log", "--monitor", name)
        value = best(line[f"test_{name}"] for line in logged(tmp_path / "log", "epoch"))
        assert f"best test {name} {value:.6g} after step 76" in done.stdout, done.stdout
    refused = program("--data", tmp_path, "--monitor", "r3", check=False)
    assert "the model has no metric 'r3'; did you mean 'r2'?" in refused.stderr
    assert "it has loss, mae, rmse, r2, mape" in refused.stderr


def test_eval_computes_them_of_any_split(compile_model, tmp_path):
    data = numbers(1300, 1, 3)
    write(tmp_path, 303, **data)
    program = compile_model(NUMBERS.replace("OUT", "1"))
    line, _ = train(program, tmp_path)
    done = program("eval", "--data", tmp_path, "--load", tmp_path / "w")
    assert f"r2 {line['test_r2']:.6g}" in done.stdout
    done = program("eval", "--data", tmp_path, "--load", tmp_path / "w", "--split", "train")
    program("predict", "--data", tmp_path, "--load", tmp_path / "w", "--split", "train", "--output", tmp_path / "p.npy")
    expected = r2(np.load(tmp_path / "p.npy").astype("f8"), data["y"][:-303].astype("f8"))
    assert f"r2 {expected:.6g}" in done.stdout


def test_a_metric_that_is_not_finite_ends_training(compile_model, tmp_path):
    data = numbers(400, 1, 3)
    data["y"][-1] = np.inf
    write(tmp_path, 300, **data)
    text = NUMBERS.replace("OUT", "1").replace("= mse(p, y)", "= mse(p, sum(x))").replace("mae(p, y)", "mae(p, sum(x))")
    done = compile_model(text)("--data", tmp_path, check=False)
    assert done.returncode == 65 and "the rmse over the data set 'test' is inf" in done.stderr


SCORES = """data {
  train = npz("train.npz")
  test  = npz("test.npz")
  x : f32[3]
  y : class[5]
}
model { s = linear(x, 5) }
train {
  loss      = cross_entropy(s, y)
  metric    = perplexity(s, y)
  optimizer = adam(0.01)
  batch     = 32
  epochs    = 3
}
"""


def test_perplexity(compile_model, tmp_path):
    generator = np.random.default_rng(3)
    x = generator.normal(size=(500, 3)).astype("f4")
    write(tmp_path, 303, x=x, y=generator.integers(0, 5, 500).astype("u1"))
    line, _ = train(compile_model(SCORES), tmp_path)
    assert line["test_perplexity"] == pytest.approx(np.exp(line["test_loss"]), rel=1e-6)


@pytest.mark.parametrize("flags", [["--schedule", "graph"], ["--schedule", "persistent"], ["--precision", "bf16"]], ids=lambda flags: flags[1])
def test_cuda_takes_them(flags, cuda_takes):
    cuda_takes(NUMBERS.replace("OUT", "2"), *flags)
