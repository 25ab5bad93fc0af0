"""Optimizers against PyTorch's formulas in NumPy, several steps on the dumped graph; dropout; partial batches."""

import numpy as np
import pytest
from evaluator import evaluate
from ops_cases import BATCH, CASES, Sample
from test_ops_graph import dump

LINEAR = next(case for case in CASES if case.id == "linear")
STEPS = 5


def sgd(lr, momentum=0.0, weight_decay=0.0, nesterov=False):
    def update(w, g, state, step):
        g = g + weight_decay * w
        if momentum:
            state["b"] = momentum * state["b"] + g if "b" in state else g
            g = g + momentum * state["b"] if nesterov else state["b"]
        return w - lr * g

    return update


def adam(lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, decoupled=False):
    def update(w, g, state, step):
        if decoupled:
            w = w * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * w
        state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
        state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
        denominator = np.sqrt(state["v"]) / np.sqrt(1 - beta2**step) + eps
        return w - lr / (1 - beta1**step) * state["m"] / denominator

    return update


def adagrad(lr=0.01, eps=1e-10, weight_decay=0.0):
    def update(w, g, state, step):
        g = g + weight_decay * w
        state["sum"] = state.get("sum", 0) + g * g
        return w - lr * g / (np.sqrt(state["sum"]) + eps)

    return update


OPTIMIZERS = {
    "sgd(0.1)": sgd(0.1),
    "sgd(0.1, momentum = 0.9)": sgd(0.1, 0.9),
    "sgd(0.1, momentum = 0.9, nesterov = true)": sgd(0.1, 0.9, nesterov=True),
    "sgd(0.1, momentum = 0.9, weight_decay = 0.01)": sgd(0.1, 0.9, 0.01),
    "sgd(0.1, weight_decay = 0.01)": sgd(0.1, weight_decay=0.01),
    "adam(0.01)": adam(0.01),
    "adam(0.01, beta1 = 0.8, beta2 = 0.9, eps = 0.001)": adam(0.01, 0.8, 0.9, 1e-3),
    "adam(0.01, beta1 = 0)": adam(0.01, 0.0),
    "adam(0.01, weight_decay = 0.1)": adam(0.01, weight_decay=0.1),
    "adamw(0.01)": adam(0.01, weight_decay=0.01, decoupled=True),
    "adagrad()": adagrad(),
    "adagrad(0.1, eps = 0.001, weight_decay = 0.1)": adagrad(0.1, 1e-3, 0.1),
    "adamw(0.01, weight_decay = 0.1)": adam(0.01, weight_decay=0.1, decoupled=True),
}


def gradients(sample, weights):
    """Of mean over the batch of sum((x W^T + b) probe)."""
    piece = sample.pieces[0]
    x = sample.pool.value(piece.parts["x"]) + weights["linear_x_weight"]
    probe = sample.pool.value(piece.parts["probe"]) / BATCH
    w = weights["linear_y.weight"]
    return {"linear_x_weight": (probe @ w).sum(0), "linear_y.weight": probe.T @ x, "linear_y.bias": probe.sum(0)}


def check_steps(text, update_of, stage, tmp_path):
    """Each weight is updated as `update_of(its name)` says."""
    sample = Sample(LINEAR)
    graph = dump(tmp_path, sample.model(text), stage)["train"]
    leaves = sample.leaves()
    leaves |= {node.name: np.zeros(node.shape) for node in graph if node.op == "state"}
    weights = {name: leaves[name] for name in sample.weights}
    states = {name: {} for name in weights}
    for step in range(1, STEPS + 1):
        gradient = gradients(sample, weights)
        leaves |= evaluate(graph, leaves, step=step).assigned
        weights = {name: update_of(name)(w, gradient[name], states[name], step) for name, w in weights.items()}
        for name, expected in weights.items():
            np.testing.assert_allclose(leaves[name], expected, rtol=1e-9, atol=1e-12, err_msg=f"{name}, step {step}")


@pytest.mark.parametrize("text", OPTIMIZERS)
@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_steps(text, stage, tmp_path):
    check_steps(text, lambda name: OPTIMIZERS[text], stage, tmp_path)


GROUPS = {
    'sgd(0.1, weights = "*")': lambda name: sgd(0.1),
    '[adamw(0.01, weights = "*.weight"), sgd(0.1)]': lambda name: (
        adam(0.01, weight_decay=0.01, decoupled=True) if name.endswith(".weight") else sgd(0.1)
    ),
    '[sgd(0.1, 0.9, weights = ["linear_x*", "*.bias"]), sgd(0.02, weight_decay = 0.5)]': lambda name: (
        sgd(0.02, weight_decay=0.5) if name == "linear_y.weight" else sgd(0.1, 0.9)
    ),
    '[adam(0.01, weights = ["!*.bias", "linear_y.*"]), sgd(0.1)]': lambda name: (
        adam(0.01) if name == "linear_y.weight" else sgd(0.1)
    ),
    '[adam(0.01, weights = "!linear_y.*"), sgd(0.1)]': lambda name: (
        adam(0.01) if name == "linear_x_weight" else sgd(0.1)
    ),
}


@pytest.mark.parametrize("text", GROUPS)
@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_each_weight_has_the_optimizer_whose_pattern_chooses_it(text, stage, tmp_path):
    check_steps(text, GROUPS[text], stage, tmp_path)


def test_states_are_named_after_their_weights(tmp_path):
    graph = dump(tmp_path, Sample(LINEAR).model("adam(0.01)"), "simple")["train"]
    states = {node.name for node in graph if node.op == "state"}
    assert states == {f"linear_{weight}.{state}" for weight in ("x_weight", "y.weight", "y.bias") for state in "mv"}


def test_plain_sgd_has_no_state(tmp_path):
    graph = dump(tmp_path, Sample(LINEAR).model("sgd(0.1)"), "simple")["train"]
    assert not [node for node in graph if node.op == "state"]


def test_rows_that_fill_up_a_batch_count_nothing(tmp_path):
    sample = Sample(LINEAR)
    graph = dump(tmp_path, sample.model(), "simple")["train"]
    leaves = sample.leaves() | {f"{name}.momentum": np.zeros(value.shape) for name, value in sample.weights.items()}
    result = evaluate(graph, leaves, rows=2)
    leaves["pool"] = np.concatenate([leaves["pool"][:2], leaves["pool"][:1] + 7])
    again = evaluate(graph, leaves, rows=2)
    assert result.reports["loss"] == pytest.approx(sample.losses()[:2].sum() / 2, rel=1e-6)
    assert again.reports == result.reports
    for name, value in result.assigned.items():
        np.testing.assert_array_equal(again.assigned[name], value)


def dropout_model(p):
    lines = ["data {", '  train = idx("x", "p")', "  x : f32[40]", "  probe : f32[40]", "}", "model {"]
    lines += ["  w = weight([40])", f"  a = dropout(x + w, {p})", f"  y = dropout(a, {p})", "}"]
    lines += ["train {", "  loss = sum(y * probe)", "  predict = y"]
    lines += ["  optimizer = sgd(0, momentum = 0.9)", f"  batch = {BATCH}", "}"]
    return "\n".join(lines) + "\n"


def test_dropout(tmp_path):
    random = np.random.default_rng(3)
    graphs = dump(tmp_path, dropout_model(0.25), "simple")
    x, w, probe = random.normal(size=(BATCH, 40)), random.normal(size=40), random.normal(size=(BATCH, 40))
    streams = [random.random((BATCH, 40)) for _ in range(2)]
    leaves = {"x": x, "w": w, "probe": probe, "w.momentum": np.zeros(40)}
    result = evaluate(graphs["train"], leaves, random=lambda stream, shape: streams[stream])
    kept = np.prod([(s >= 0.25) / 0.75 for s in streams], axis=0)
    assert result.reports["loss"] == pytest.approx(((x + w) * kept * probe).sum() / BATCH)
    np.testing.assert_allclose(result.assigned["w.momentum"], (kept * probe).sum(0) / BATCH)
    result = evaluate(graphs["eval"], leaves)
    assert result.reports["loss"] == pytest.approx(((x + w) * probe).sum() / BATCH)
