"""Operators as graphs, without compiling anything: values against NumPy, gradients against finite differences, and
simplification against both. Runs the dumps of mtc in tests/support/evaluator.py."""

import math
import subprocess

import numpy as np
import pytest
from conftest import MTC
from evaluator import evaluate, parse
from ops_cases import CASES, Sample

STEP = 1e-6
DIRECTIONS = 64


def dump(tmp_path, text, stage):
    path = tmp_path / "case.mt"
    path.write_text(text)
    run = subprocess.run([MTC, f"--emit={stage}", path], capture_output=True, text=True)
    assert run.returncode == 0, f"{text}\n{run.stderr}"
    return parse(run.stdout)


def directions(shape):
    """Along each element; of a large weight as many at random, each of which moves every element by as much."""
    size = math.prod(shape)
    if size <= DIRECTIONS:
        return np.eye(size).reshape(size, *shape)
    return np.random.default_rng(0).choice([-1, 1], (DIRECTIONS, *shape)) / math.sqrt(size)


def finite_differences(nodes, leaves, name, along, rows=None):
    """d loss / d leaf along each of these directions, by central differences of what comes up to the loss."""
    forward = nodes[:1 + next(k for k, node in enumerate(nodes) if node.op == "report" and node.name == "loss")]
    slopes = []
    for direction in along:
        above, below = (evaluate(forward, {**leaves, name: leaves[name] + step * direction}, rows=rows).reports["loss"]
                        for step in (STEP, -STEP))
        slopes.append((above - below) / (2 * STEP))
    return slopes


def assert_gradient(gradient, nodes, leaves, name, rows=None):
    along = directions(gradient.shape)
    np.testing.assert_allclose(np.tensordot(along, gradient, axes=gradient.ndim), finite_differences(nodes, leaves, name, along, rows),
                               rtol=1e-5, atol=1e-7, err_msg=name)


def with_states(leaves, weights):
    return {**leaves, **{f"{name}.momentum": np.zeros(leaves[name].shape) for name in weights}}


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def sample(request):
    return Sample(request.param)


def test_value(sample, tmp_path):
    graph = dump(tmp_path, sample.model(), "graph")["train"]
    assert evaluate(graph, sample.leaves()).reports["loss"] == pytest.approx(sample.loss(), rel=1e-9, abs=1e-12)


def test_gradient(sample, tmp_path):
    if not sample.case.gradient:
        pytest.skip("no gradient by definition")
    leaves = with_states(sample.leaves(), sample.weights)
    graph = dump(tmp_path, sample.model(), "grad")["train"]
    result = evaluate(graph, leaves)
    for name in sample.weights:
        assert_gradient(result.assigned[f"{name}.momentum"], graph, leaves, name)


def test_simplify_keeps_the_numbers(sample, tmp_path):
    leaves = with_states(sample.leaves(), sample.weights)
    full = dump(tmp_path, sample.model(), "grad")["train"]
    simple = dump(tmp_path, sample.model(), "simple")["train"]
    before, after = evaluate(full, leaves), evaluate(simple, leaves)
    assert len(simple) <= len(full) or sample.case.grows
    assert after.reports["loss"] == pytest.approx(before.reports["loss"], rel=1e-12, abs=1e-14)
    for name, value in before.assigned.items():
        np.testing.assert_allclose(after.assigned[name], value, rtol=1e-10, atol=1e-14, err_msg=name)


PIECES = [  # value of w, and its gradient, where two pieces meet and beside
    ("elu(w)", [0, -1e-12, 1e-12, -2, 3], [1, 1, 1, math.exp(-2), 1]),
    ("elu(w, 0.5)", [0, 1e-12, -1], [0.5, 1, 0.5 * math.exp(-1)]),
    ("mish(w)", [0, 1e4, -1e4], [math.tanh(math.log(2)), 1, 0]),
    ("4 * huber(w, 0 * w, delta = 2)", [2, 2 + 1e-12, -2, 0.5], [2, 2, -2, 0.5]),
    ("relu(w)", [0, -1, 1], [0, 0, 1]),
    ("clamp(w, -1, 2)", [-2, -1, 0, 2, 3], [0, 1, 1, 1, 0]),
    ("clamp(w, low = 0)", [-1, 0, 1], [0, 1, 1]),
    ("prod(w)", [2, 3, 5], [15, 10, 6]),
    ("prod(w)", [2, 0, 5], [0, 10, 0]),
    ("prod(w)", [0, 0, 5], [0, 0, 0]),
    ("norm(w)", [0, 0], [0, 0]),
    ("norm(w)", [3, -4], [0.6, -0.8]),
    ("norm(w, p = 1)", [0, -4], [0, -1]),
    ("norm(w, p = 1.5)", [0, 0], [0, 0]),
    ("norm(w, p = 1.5)", [0, -4], [0, -1]),
    ("std(w)", [7, 7], [0, 0]),
    ("std(w)", [1, 3], [-0.5, 0.5]),
    ("logsumexp(w)", [1e4, 1e4], [0.5, 0.5]),
]


@pytest.mark.parametrize("text, values, slopes", PIECES, ids=[f"{text} at {at}" for text, at, _ in PIECES])
def test_gradient_where_pieces_meet(text, values, slopes, tmp_path):
    lines = ["data {", '  train = idx("x")', "  x : f32", "}", "model {", f"  w = weight([{len(values)}])", f"  y = {text}", "}",
             "train {", "  loss = sum(y) + 0 * x", "  predict = x", "  optimizer = sgd(1, momentum = 0.9)", "  batch = 1", "}"]
    graph = dump(tmp_path, "\n".join(lines) + "\n", "grad")["train"]
    names = [node.name for node in graph if node.op == "weight"]
    leaves = {names[0]: np.array(values, float), f"{names[0]}.momentum": np.zeros(len(values)), "x": np.zeros(1)}
    found = evaluate(graph, leaves).assigned[f"{names[0]}.momentum"]
    np.testing.assert_allclose(found, slopes, rtol=1e-9, atol=1e-11)


TOPK = """data {
  train = idx("x", "probe")
  x     : f32[7, 2]
  probe : f32[3, 2]
}
model {
  w         = weight([7, 2])
  top, rows = topk(x + w, 3, axis = 0)
  _, first  = topk(w, k = 1, axis = 1)
}
train {
  loss      = sum(top * probe) + sum(rows * probe) / 8
  metric    = sum(first)
  predict   = x
  optimizer = sgd(0, momentum = 0.9)
  batch     = 4
}
"""


def test_topk(tmp_path):
    random = np.random.default_rng(5)
    graph = dump(tmp_path, TOPK, "grad")["train"]
    x, w, probe = random.normal(size=(4, 7, 2)), random.normal(size=(7, 2)), random.normal(size=(4, 3, 2))
    w[3] = 0.5  # equal ones: the first
    leaves = {"x": x, "w": w, "probe": probe, "w.momentum": np.zeros((7, 2))}
    result = evaluate(graph, leaves)
    order = (-(x + w)).argsort(1)[:, :3]
    top = np.take_along_axis(x + w, order, 1)
    assert result.reports["loss"] == pytest.approx((top * probe + order * probe / 8).sum() / 4)
    expected = np.zeros((4, 7, 2))
    np.put_along_axis(expected, order, probe / 4, 1)
    np.testing.assert_allclose(result.assigned["w.momentum"], expected.sum(0), atol=1e-12)
    report = evaluate(dump(tmp_path, TOPK, "graph")["eval"], leaves).reports
    assert next(value for name, value in report.items() if name != "loss") == w.argmax(1).sum()
