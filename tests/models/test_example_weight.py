"""Weights of examples: means over a batch are sum(w l) / sum(w), in the training, in evaluations and in the metrics over a set. The
reference is NumPy in float64; metrics with whole weights are those of examples that come so many times."""

import json
import math

import numpy as np
import pytest
from fake_data import unpack
from library import Library
from random_port import permutation, shuffle_key

pytestmark = pytest.mark.quick

EXAMPLES, BATCH, EPOCHS, SEED, RATE, HIDDEN = 25, 4, 4, 1, 0.2, 6
PER_EPOCH = math.ceil(EXAMPLES / BATCH)
SHAPES = {"h.weight": (HIDDEN, 5), "h.bias": (HIDDEN,), "y.weight": (2, HIDDEN), "y.bias": (2,)}

MODEL = """data {
  train  = npz("train.npz")
  test   = npz("test.npz")
  x      : f32[5]
  target : f32[2]
  w      : f32
}
model {
  h = tanh(linear(x, 6))
  y = linear(h, 2)
}
train {
  loss           = mse(y, target)
  metric         = mae(y, target)
  example_weight = w
  optimizer      = sgd(0.2, momentum = 0.5)
  batch          = 4
  epochs         = 4
  EXTRA
}
"""


def model(extra=""):
    return MODEL.replace("EXTRA", extra)


def examples(count=EXAMPLES):
    """Every fifth weighs nothing, and has no target."""
    random = np.random.default_rng(count)
    x, w = random.normal(size=(count, 5)).astype("f4"), random.uniform(0.1, 3, count).astype("f4")
    target = (2 * np.sin(x[:, :2]) + random.normal(size=(count, 2))).astype("f4")
    w[::5], target[::5] = 0, np.nan
    return x, target, w


def batch_of(step):
    epoch, position = divmod(step, PER_EPOCH)
    return permutation(shuffle_key(SEED, epoch), EXAMPLES)[position * BATCH : (position + 1) * BATCH]


def gradient_sums(weights, x, target, w):
    """Of sum(w l), and that sum; over examples that weigh something."""
    x, target, w = (array[w > 0].astype("f8") for array in (x, target, w))
    h = np.tanh(x @ weights["h.weight"].T + weights["h.bias"])
    left = h @ weights["y.weight"].T + weights["y.bias"] - target
    d_y = w[:, None] * left  # 2 left / 2 numbers
    d_h = d_y @ weights["y.weight"] * (1 - h * h)
    gradients = {"h.weight": d_h.T @ x, "h.bias": d_h.sum(0), "y.weight": d_y.T @ h, "y.bias": d_y.sum(0)}
    return gradients, (w * (left**2).mean(1)).sum(), (w * np.abs(left).mean(1)).sum()


def ratio(a, b):
    return a / b if b else 0 * a


def reference(weights, data, accumulate):
    """Weights behind all steps, and loss and mae of each."""
    speed, reports = {name: 0 for name in SHAPES}, []
    sums, weight = {name: 0 for name in SHAPES}, 0
    for step in range(EPOCHS * PER_EPOCH):
        x, target, w = (array[batch_of(step)] for array in data)
        gradients, loss, mae = gradient_sums(weights, x, target, w)
        reports.append([ratio(loss, w.sum(dtype="f8")), ratio(mae, w.sum(dtype="f8"))])
        sums, weight = {name: sums[name] + gradients[name] for name in SHAPES}, weight + w.sum(dtype="f8")
        if (step + 1) % accumulate:
            continue
        speed = {name: 0.5 * speed[name] + ratio(sums[name], weight) for name in SHAPES}
        weights = {name: weights[name] - RATE * speed[name] for name in SHAPES}
        sums, weight = {name: 0 for name in SHAPES}, 0
    return weights, np.array(reports)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("shards", [0, 2])
def test_training_is_that_of_the_equation(accumulate, shards, compile_model):
    """Batches of 4, the last of 1; one whose examples all weigh nothing; shards without weight and without examples."""
    data = examples()
    data[2][batch_of(2)] = 0
    flags = ["--real", "f64", "--shared"] + (["--shards", shards] if shards else [])
    library = Library(compile_model(model(f"accumulate = {accumulate}"), *flags).path, np.float64, SEED)
    library.set_data(data)
    begin = {name: library.get(name, shape) for name, shape in SHAPES.items()}
    reports = library.train(EPOCHS * PER_EPOCH, 2)
    weights, expected = reference(begin, data, accumulate)
    assert (expected[2] == 0).all() and (reports[2] == 0).all()
    np.testing.assert_allclose(reports, expected, 1e-8, 1e-12)
    for name, shape in SHAPES.items():
        np.testing.assert_allclose(library.get(name, shape), weights[name], 1e-8, 1e-11, err_msg=name)
    _, loss, mae = gradient_sums(weights, *data)
    np.testing.assert_allclose(library.evaluate(2), np.array([loss, mae]) / data[2].sum(dtype="f8"), 1e-8)
    library.close()


def save_data(folder, **test):
    data = dict(zip(("x", "target", "w"), examples()))
    np.savez(folder / "train.npz", **data)
    np.savez(folder / "test.npz", **{name: array[:11] for name, array in data.items()} | test)


def logged(path, event):
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["event"] == event]


def tensors(path):
    header, data = unpack(path.read_bytes())
    header.pop("__metadata__")
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}


def test_log_and_resumed_training(compile_model, tmp_path):
    """An epoch's mean is over what its examples weigh, and goes on from a checkpoint amid it, between two updates."""
    save_data(tmp_path)
    program = compile_model(model("accumulate = 3").replace("sgd(0.2, momentum = 0.5)", "sgd(0)"))

    def run(name, *flags):
        program("--data", ".", "--log", f"{name}.jsonl", "--save", f"{name}.save", "--quiet", *flags, cwd=tmp_path)
        return {key: value for key, value in logged(tmp_path / f"{name}.jsonl", "epoch")[-1].items() if key != "seconds"}

    whole = run("whole")
    run("part", "--limit-steps", 11)
    (tmp_path / "resumed.jsonl").write_bytes((tmp_path / "part.jsonl").read_bytes())
    assert run("resumed", "--resume", "part.save") == whole
    assert tensors(tmp_path / "resumed.save") == tensors(tmp_path / "whole.save")
    assert not any("example_weight" in key for key in whole)
    weights = {name: np.frombuffer(tensors(tmp_path / "whole.save")[name], "f4").reshape(shape) for name, shape in SHAPES.items()}
    x, target, w = examples()
    _, loss, mae = gradient_sums(weights, x, target, w)
    assert [whole["loss"], whole["mae"]] == pytest.approx([loss / w.sum(), mae / w.sum()], rel=1e-5)
    _, loss, _ = gradient_sums(weights, x[:11], target[:11], w[:11])
    assert whole["test_loss"] == pytest.approx(loss / w[:11].sum(), rel=1e-5)


def test_gradients_agree_with_finite_differences(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(model("accumulate = 3"))
    save_data(tmp_path)
    done = mtc("gradcheck", "m.mt", cwd=tmp_path)
    assert done.returncode == 0 and "4 tensors" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("flags", [["--precision", "fp16"], ["--precision", "fp16", "--shards", 2]], ids=len)
def test_in_halves(flags, compile_model, tmp_path):
    save_data(tmp_path)
    losses = []
    for extra in [], flags:
        compile_model(model("accumulate = 2"), *extra)("--data", ".", "--log", "log", "--quiet", cwd=tmp_path)
        losses.append([line["loss"] for line in logged(tmp_path / "log", "epoch")])
    assert losses[0][-1] < 0.8 * losses[0][0] and losses[1] == pytest.approx(losses[0], rel=2e-2)


METRICS = """data {
  train = npz("train.npz")
  test  = npz("test.npz")
  x     : f32[3]
  y     : f32[2]
  label : class[4]
  yes   : f32
  w     : f32
}
model {
  p = linear(x, 2)
  s = linear(x, 4)
  z = linear(x, 1)
  q = softmax(s)
  macro = f1(s, label)
  micro = f1(s, label, average = "micro")
  heavy = precision(s, label, average = "weighted")
  area  = roc_auc(z, yes)
}
train {
  loss      = mse(p, y) + cross_entropy(s, label)
  metric    = [mae(p, y), accuracy(s, label), rmse(p, y), r2(p, y), mape(p, y), perplexity(s, label), macro, micro, heavy,
               recall(z, yes, threshold = 0), area, roc_auc(q, label), average_precision(z, yes), confusion(s, label)]
  predict   = p
  optimizer = sgd(0.01)
  batch     = 16
  epochs    = 1
  freeze    = "z.*"
  WEIGHT
}
"""


def metric_data(rows, weights):
    random = np.random.default_rng(3)
    x = np.round(random.normal(size=(rows, 3)), 1).astype("f4")  # equal scores, too
    data = {"x": x, "y": (x[:, :2] + random.normal(size=(rows, 2))).astype("f4"), "label": random.integers(0, 4, rows).astype("u1"),
            "yes": (random.normal(size=rows) + x[:, 0] > 0).astype("f4"), "w": weights.astype("f4")}
    data["y"][weights == 0] = np.nan
    return data


def evaluated(program, folder, data):
    """What the first evaluation says, of the initial weights."""
    np.savez(folder / "train.npz", **{name: array[:1] * 0 for name, array in data.items()} | {"w": np.ones(1, "f4")})
    np.savez(folder / "test.npz", **data)
    program("--data", ".", "--lr", 0, "--log", "log", "--quiet", cwd=folder)
    return {key: value for key, value in logged(folder / "log", "epoch")[-1].items() if key.startswith("test_")}


def test_metrics_count_an_example_as_it_weighs(compile_model, tmp_path):
    """A whole weight is as if the example came so many times; all weights may be any times as large."""
    weights = np.random.default_rng(8).integers(0, 4, 150)
    text = METRICS.replace("sgd(0.01)", "sgd(lr)").replace("data {", "param lr = 0.1\ndata {", 1)
    data = metric_data(150, weights)
    repeated = {name: np.repeat(array, weights, axis=0) for name, array in data.items()}
    plain = evaluated(compile_model(text.replace("WEIGHT", "")), tmp_path, repeated)
    weighted = compile_model(text.replace("WEIGHT", "example_weight = w"))
    for factor in 1, 0.25:
        found = evaluated(weighted, tmp_path, data | {"w": (factor * weights).astype("f4")})
        matrix = found.pop("test_confusion")
        assert np.array(matrix) == pytest.approx(factor * np.array(plain["test_confusion"]))
        assert found == {key: pytest.approx(value, rel=2e-6) for key, value in plain.items() if key != "test_confusion"}
    assert len(found) == 14


def test_a_weight_may_be_computed(compile_model, tmp_path):
    """What is below 0 counts as 0; the gradient takes weights as they are, so that they may be of a trained value."""
    save_data(tmp_path)
    losses = []
    for text in "w", "1.5 * w - 0 * sum(h)", "where(w > 0, 1.5 * w, -1)", "stop_gradient(exp(0 * y[0]) * w)":
        compile_model(model().replace("example_weight = w", f"example_weight = {text}"))("--data", ".", "--log", "log", "--quiet", cwd=tmp_path)
        losses.append(logged(tmp_path / "log", "epoch")[-1]["test_loss"])
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-4)


def test_weights_of_the_data_that_are_none(compile_model, tmp_path):
    save_data(tmp_path)
    program = compile_model(model())
    x, target, w = examples()
    for bad, shown in (-1, "-1"), (np.nan, "NaN"), (np.inf, "inf"), (2e30, "2e+30"), (5e-31, "5e-31"):
        w[7] = bad
        np.savez(tmp_path / "train.npz", x=x, target=target, w=w)
        done = program("--data", tmp_path, check=False)
        assert done.returncode == 65 and f"w.npy: example 7 has the weight {shown}; the weight of an example is 0 or a number from 1e-30 to 1e30" in done.stderr
    save_data(tmp_path, w=np.zeros(11, "f4"))
    done = program("--data", tmp_path, check=False)
    assert done.returncode == 65 and "all 11 examples to evaluate have the weight 0" in done.stderr


def test_weights_in_a_table(compile_model, tmp_path):
    """The row is named; so is one that the model says itself."""
    text = ('data {\n  train = csv("t.csv")\n  x : f32\n  y : f32\n  w : f32\n}\nmodel { p = linear(reshape(x, [1]), 1) }\n'
            "train {\n  loss = mse(p, y)\n  example_weight = w\n  optimizer = sgd(0.1)\n}\n")
    (tmp_path / "t.csv").write_text("x,y,w\n1,2,1\n2,3,0\n3,4,-0.5\n")
    done = compile_model(text)("--data", tmp_path, check=False)
    assert "t.csv:4:5: expected the weight of an example, 0 or a number from 1e-30 to 1e30, in column 'w', found -0.5" in done.stderr
    done = compile_model(text.replace('csv("t.csv")', "table([[1, 2, 1], [2, 3, -1]])"))(check=False)
    assert "field 'w' of example 1 is -1: it is the weight of its example, 0 or a number from 1e-30 to 1e30" in done.stderr


def test_an_epoch_that_weighs_nothing_is_told(compile_model, tmp_path):
    """Once; what begins to weigh is learned."""
    x, target, w = examples()
    save_data(tmp_path)
    program, warning = compile_model(model()), "warning: all 25 examples of the epoch have the weight 0: nothing is learned from them"
    assert "nothing is learned" not in program("--data", tmp_path).stderr
    np.savez(tmp_path / "train.npz", x=x, target=target, w=np.zeros_like(w))
    assert program("--data", tmp_path).stderr.count(warning) == 1


@pytest.mark.nvcc
@pytest.mark.parametrize("flags", [["--schedule", "graph"], ["--schedule", "persistent"], ["--shards", "2"], ["--precision", "bf16"]], ids=lambda flags: flags[1])
def test_cuda_takes_them(flags, cuda_takes):
    cuda_takes(model("accumulate = 2"), *flags)
