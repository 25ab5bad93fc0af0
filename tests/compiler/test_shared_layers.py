"""Layers that are called several times: the weights are there once, and get the sum of the gradients of all calls."""

import re

import numpy as np
import pytest

from evaluator import evaluate, parse
from library import Library

pytestmark = pytest.mark.quick

STEPS, FEATURES, WIDTH, BATCH = 5, 3, 4, 4
DATA = f"""data {{
  train = npy("x.npy", "other.npy", "y.npy")
  x     : f32[{STEPS}, {FEATURES}]
  other : f32[{STEPS}, {FEATURES}]
  y     : f32[{WIDTH}]
}}
"""
CELL = """fn lstm(x, h, c, width) {
  gates = linear(concat([x, h]), 4 * width)
  c     = sigmoid(gates[width:2 * width]) * c + sigmoid(gates[:width]) * tanh(gates[2 * width:3 * width])
  return sigmoid(gates[3 * width:]) * tanh(c), c
}
fn recurrent(x[steps, _], h, c, width) {
  layer cell(x, h, c) = lstm(x, h, c, width)
  repeat t in 0..steps {
    h, c = cell(x[t], h, c)
  }
  return h
}
"""
TRAIN = f"""train {{
  loss      = mse(out, y)
  optimizer = sgd(0.1, momentum = 0.9)
  batch     = {BATCH}
}}
"""


def model(statements, top=""):
    return f"{DATA}{top}model {{\n{statements}\n}}\n{TRAIN}"


RECURRENT = model(f"  start = weight([{WIDTH}])\n  out = recurrent(x, start, start * 2, {WIDTH})", CELL)
SIAMESE = model("""  layer tower(v) = tanh(linear(tanh(linear(flatten(v), 6)), 4))
  straight = linear(flatten(other), 4)
  out      = tower(x) * tower(other) + tower(x + other) + straight""")
TOWERS = model(f"""  layer tower(v) = recurrent(v, 0 * slice(flatten(v), 0, 0, {WIDTH}), 1, {WIDTH})
  out = tower(x) - tower(other)""", CELL)


@pytest.fixture
def emit(mtc, tmp_path):
    def run(text, stage):
        (tmp_path / "m.mt").write_text(text)
        done = mtc(f"--emit={stage}", "m.mt", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def leaves_of(text, rng):
    """Random numbers for each weight and field; zeros for each state."""
    leaves = {}
    for kind, shape, name in re.findall(r"= (weight|field|state) index=\d+ : f32\[([\d, ]*)\] (\S+)", text):
        shape = tuple(map(int, shape.split(",")))
        leaves[name] = np.zeros(shape) if kind == "state" else rng.normal(0, 0.5, shape)
    return leaves


def weights(text):
    return list(dict.fromkeys(re.findall(r"= weight index=\d+ : f32\[[\d, ]*\] (\S+)", text)))


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def lstm(x, h, c, weight, bias):
    for t in range(x.shape[1]):
        i, f, g, o = np.split(np.concatenate([x[:, t], h], axis=1) @ weight.T + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def test_a_recurrent_cell_by_hand(emit):
    text = emit(RECURRENT, "graph")
    leaves = leaves_of(text, np.random.default_rng(2))
    start = np.broadcast_to(leaves["start"], (BATCH, WIDTH))
    out = lstm(leaves["x"], start, 2 * start, leaves["out.cell.gates.weight"], leaves["out.cell.gates.bias"])
    loss = evaluate(parse(text)["train"], leaves).reports["loss"]
    assert loss == pytest.approx(((out - leaves["y"]) ** 2).mean(), rel=1e-12)


@pytest.mark.parametrize("text", [RECURRENT, SIAMESE, TOWERS], ids=["recurrent", "siamese", "towers"])
def test_gradients_add_up(text, emit):
    dump = emit(text, "grad")
    leaves, graph = leaves_of(dump, np.random.default_rng(3)), parse(dump)["train"]
    gradients = evaluate(graph, leaves).assigned
    for name in weights(dump):
        direction = np.random.default_rng(4).normal(size=leaves[name].shape)
        ends = [evaluate(graph, {**leaves, name: leaves[name] + s * direction}).reports["loss"] for s in (1e-5, -1e-5)]
        assert (gradients[f"{name}.momentum"] * direction).sum() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6), name


@pytest.mark.parametrize("text", [RECURRENT, SIAMESE], ids=["recurrent", "siamese"])
def test_gradcheck(text, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(text)
    done = mtc("gradcheck", "m.mt", cwd=tmp_path)
    assert done.returncode == 0 and "gradients agree with finite differences" in done.stdout, done.stdout + done.stderr


def test_names_are_those_of_the_declaration(emit):
    assert weights(emit(SIAMESE, "graph")) == [
        "straight.weight", "straight.bias", "tower.0.weight", "tower.0.bias", "tower.1.weight", "tower.1.bias"]
    assert weights(emit(SIAMESE.replace("6)", '6, name = "in")'), "graph"))[2:] == [
        "in.weight", "in.bias", "tower.weight", "tower.bias"]
    assert weights(emit(TOWERS, "graph")) == ["tower.cell.gates.weight", "tower.cell.gates.bias"]


IMAGE = "reshape(v, [3, 1, 5])"


@pytest.mark.parametrize("layer, count", [
    ("linear(v, 2)", 2), ("linear(v, 2, transposed = true)", 2), ("conv1d(v, 2, 3)", 2), ("conv1d(v, 5, 3, groups = 5)", 2),
    (f"conv2d({IMAGE}, 2, 1)", 2), (f"conv2d({IMAGE}, 3, 1, groups = 3)", 2), (f"conv_transpose2d({IMAGE}, 2, 1)", 2),
    ("embedding(argmax(v), 3, 2)", 1), ("batch_norm(flatten(v))", 4), ("layer_norm(v)", 2), ("rms_norm(v)", 1),
    (f"group_norm({IMAGE}, 3)", 2), (f"instance_norm({IMAGE}, affine = true)", 2), ("v * weight([3])", 1),
])
def test_each_layer_of_the_library_is_shared(layer, count, emit):
    text = model(f"  layer f(v) = {layer}\n  out = linear(flatten(f(x) - f(other)), 4, bias = false)")
    names = weights(emit(text, "graph"))
    assert len(set(names) - {"out.weight"}) == count and all(name == "out.weight" or name.startswith("f") for name in names)


@pytest.mark.parametrize("first, second", [("false", "true"), ("true", "false")])
def test_matrices_that_lie_otherwise_in_files_are_not_shared(first, second, mtc, tmp_path):
    layer = "  layer f(v, t) = linear(v, 3, bias = false, transposed = t)\n"
    (tmp_path / "m.mt").write_text(model(f"{layer}  out = linear(flatten(f(x, {first}) + f(other, {second})), 4)"))
    done = mtc("--emit=graph", "m.mt", cwd=tmp_path)
    assert done.returncode == 65 and "this weight f32[3, 3] would begin otherwise than in the first call" in done.stderr


def test_a_declaration_in_a_repeat_is_a_layer_each_time(emit):
    text = model("""  h = flatten(x)
  repeat i in 0..2 {
    layer twice(v) = tanh(linear(v, 15, bias = false))
    layer named(v) = tanh(linear(v, 15, bias = false, name = "stage{i}"))
    h = named(twice(twice(h)))
  }
  out = linear(twice(h), 4, bias = false)""")
    assert weights(emit(text, "graph")) == ["twice.0.weight", "stage0.weight", "twice.1.weight", "stage1.weight", "out.weight"]


def test_a_layer_sees_what_stood_above_it(emit):
    """Its parameters hide other names; what is assigned later is not meant."""
    text = model("""  width = 4
  h     = flatten(x)
  layer f(x) = linear(x, width, bias = false) + mean(h)
  h     = flatten(other)
  width = 5
  out   = f(h) + f(flatten(x))""")
    dump = emit(text, "graph")
    leaves = leaves_of(dump, np.random.default_rng(5))
    a, b = (leaves[name].reshape(BATCH, -1) for name in ("x", "other"))
    out = (a + b) @ leaves["f.weight"].T + 2 * a.mean(1, keepdims=True)
    assert evaluate(parse(dump)["train"], leaves).reports["loss"] == pytest.approx(((out - leaves["y"]) ** 2).mean(), rel=1e-12)


def test_layer_is_no_reserved_word(emit):
    text = model("""  layer = linear(flatten(x), 4)
  repeat data in 0..2 { layer = tanh(layer) }
  out = layer""")
    assert weights(emit(text, "graph")) == ["layer.weight", "layer.bias"]


def test_statistics_move_with_each_call(compile_model):
    """As PyTorch's: the second call begins where the first one left them."""
    statements = """  layer norm(v) = batch_norm(flatten(v), affine = false)
  h   = norm(x) + norm(other)
  out = linear(h, 4)"""
    rng = np.random.default_rng(6)
    x, other = (rng.normal(shift, 2, (BATCH, STEPS, FEATURES)).astype("f4") for shift in (1, -3))
    library = Library(compile_model(model(statements), "--shared", target="cpu").path)
    library.set_data([x, other, rng.normal(size=(BATCH, WIDTH)).astype("f4")])
    library.train(1, 2)
    mean, variance = library.get("norm.running_mean", 15), library.get("norm.running_var", 15)
    library.close()
    kept_mean, kept_variance = 0, 1
    for batch in (x, other):
        rows = batch.reshape(BATCH, -1).astype("f8")
        kept_mean = 0.9 * kept_mean + 0.1 * rows.mean(0)
        kept_variance = 0.9 * kept_variance + 0.1 * rows.var(0, ddof=1)
    np.testing.assert_allclose(mean, kept_mean, rtol=1e-5)
    np.testing.assert_allclose(variance, kept_variance, rtol=1e-5)


def test_frozen_weights_are_shared(emit):
    """Each graph makes its calls of the layer: also those that come when it is known which weights are frozen."""
    text = model(SIAMESE.split("model {\n")[1].split("\n}\n")[0]).replace("sgd(0.1, momentum = 0.9)", 'sgd(0.1)\n  freeze = "tower.0.*"')
    assert emit(text, "graph").count(" tower.0.weight ") == 2
