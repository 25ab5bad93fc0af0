"""Optimizers that look at whole matrices, Muon and Adafactor, against their formulas in NumPy, twenty steps on the dumped graph."""

import numpy as np
import pytest
from evaluator import evaluate
from matrix_optimizers import adafactor, muon
from test_ops_graph import dump

STEPS, BATCH = 20, 3
OPTIMIZERS = {
    "muon()": (muon(), 0.02),
    "muon(0.1, momentum = 0.8, weight_decay = 0.1, nesterov = false, iterations = 3)": (muon(0.8, 0.1, False, 3), 0.1),
    "muon(0.2, momentum = 0.6, keep_length = true)": (muon(0.6, keep_length=True), 0.2),
    "adafactor()": (adafactor(), 0.01),
    "adafactor(0.5, beta2_decay = 0.6, eps = 0.2, clip = 0.3, weight_decay = 0.1)": (adafactor(0.6, 0.2, 0.3, 0.1), 0.5),
}
SHAPES = [(3, 7), (7, 3), (5, 5), (1, 6), (4, 3, 2, 2), (9,), ()]
CASES = [(text, shape) for text in OPTIMIZERS for shape in SHAPES if "muon" not in text or len(shape) > 1]


def model(shape, optimizer, settings=""):
    """The gradient of w is the mean of g over the batch."""
    sizes = f"[{', '.join(map(str, shape))}]"
    return f"""\
data {{
  train = idx("g")
  g     : f32{sizes if shape else ""}
}}
model {{
  w = weight({sizes if shape else "[1]"}, init = normal(0, 1))
  y = sum(w * g)
}}
train {{
  loss      = y
  predict   = y
  optimizer = {optimizer}
  batch     = {BATCH}
  {settings}
}}
"""


@pytest.mark.parametrize("text, shape", CASES)
@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_steps(text, shape, stage, tmp_path):
    (update, rate), random = OPTIMIZERS[text], np.random.default_rng(4)
    graph = dump(tmp_path, model(shape, text), stage)["train"]
    w = random.normal(size=shape or 1)
    leaves = {node.name: np.zeros(node.shape) for node in graph if node.op == "state"} | {"w": w}
    state = {}
    for step in range(1, STEPS + 1):
        g = random.normal(size=(BATCH, *shape))
        leaves |= evaluate(graph, leaves | {"g": g}, step=step).assigned
        w = update(w, g.mean(0).reshape(w.shape), state, rate, step, True)
        np.testing.assert_allclose(leaves["w"], w, rtol=1e-9, atol=1e-12, err_msg=f"step {step}")


def test_muon_moves_along_all_directions_alike():
    """The reference itself: after five iterations the singular values lie around 1, whatever they were."""
    random = np.random.default_rng(2)
    left, _ = np.linalg.qr(random.normal(size=(30, 20)))
    right, _ = np.linalg.qr(random.normal(size=(20, 20)))
    g = left * np.geomspace(0.05, 3, 20) @ right
    step = -muon(0, nesterov=False)(np.zeros((30, 20)), g, {}, 1, 1, True) / np.sqrt(1.5)
    values = np.linalg.svd(step, compute_uv=False)
    assert 0.6 < values.min() and values.max() < 1.3


def test_adafactor_keeps_a_number_for_each_row_and_column(tmp_path):
    graph = dump(tmp_path, model((6, 4), "adafactor()"), "simple")["train"]
    assert {node.name: tuple(node.shape) for node in graph if node.op == "state"} == {"w.rows": (6,), "w.columns": (4,)}


def test_without_an_update_matrices_and_their_states_stay(tmp_path):
    for text in ("muon()", "adafactor()"):
        graph = dump(tmp_path, model((4, 6), text, "accumulate = 2"), "simple")["train"]
        random = np.random.default_rng(1)
        leaves = {node.name: random.random(node.shape) for node in graph if node.op in ("state", "weight")}
        done = evaluate(graph, leaves | {"g": random.normal(size=(BATCH, 4, 6))}, step=1).assigned
        for name in leaves:
            assert np.array_equal(done[name], leaves[name]) == (not name.endswith(".gradient")), (text, name)
