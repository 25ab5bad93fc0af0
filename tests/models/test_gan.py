"""Optimizers with losses of their own: two networks that learn from each other, in one step."""

import json

import numpy as np
import pytest
from evaluator import evaluate, parse
from fake_data import idx_bytes

pytestmark = pytest.mark.quick

BATCH = 4


def game(optimizer, loss="sum(p * q * x)", settings=""):
    return f"""\
data {{
  train = idx("x")
  x     : f32[3]
}}
model {{
  p = weight([3], init = constant(1))
  q = weight([3], init = constant(2))
  y = {loss}
  w = sum(p * p * q)
}}
train {{
  loss      = y
  predict   = sum(x)
  optimizer = {optimizer}
  batch     = {BATCH}
  {settings}
}}
"""


def steps(text, stage, mtc, tmp_path, count=8):
    """The weights after each step, and the mean of x."""
    (tmp_path / "m.mt").write_text(text)
    graph = parse(mtc(f"--emit={stage}", tmp_path / "m.mt").stdout)["train"]
    random = np.random.default_rng(3)
    leaves = {node.name: np.zeros(node.shape) for node in graph if node.op == "state"}
    leaves |= {"p": np.full(3, 1.0), "q": np.full(3, 2.0)}
    for step in range(1, count + 1):
        x = random.normal(size=(BATCH, 3)) + 1
        leaves |= evaluate(graph, leaves | {"x": x}, step=step).assigned
        yield x.mean(0), leaves


@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_one_maximises_what_the_other_minimises(stage, mtc, tmp_path):
    """Both gradients are of the weights before the step."""
    p, q = np.full(3, 1.0), np.full(3, 2.0)
    for x, leaves in steps(game('[sgd(0.1), sgd(0.2, weights = "q", loss = -y)]'), stage, mtc, tmp_path):
        p, q = p - 0.1 * q * x, q + 0.2 * p * x
        np.testing.assert_allclose(leaves["p"], p, 1e-12)
        np.testing.assert_allclose(leaves["q"], q, 1e-12)


@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_losses_may_be_of_the_same_weights(stage, mtc, tmp_path):
    """The gradient of a loss goes to no weight of another optimizer; clipping and accumulation come after."""
    optimizer = '[sgd(0.1, weights = "p", loss = w), sgd(0.2)]'
    p, q, held = np.full(3, 1.0), np.full(3, 2.0), [0, 0]
    text = game(optimizer, settings="accumulate = 2\n  clip_value = 1.5")
    for step, (x, leaves) in enumerate(steps(text, stage, mtc, tmp_path), 1):
        held = [held[0] + 2 * p * q / 2, held[1] + p * x / 2]
        if step % 2 == 0:
            p, q = p - 0.1 * np.clip(held[0], -1.5, 1.5), q - 0.2 * np.clip(held[1], -1.5, 1.5)
            held = [0, 0]
        np.testing.assert_allclose(leaves["p"], p, 1e-12)
        np.testing.assert_allclose(leaves["q"], q, 1e-12)


@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_optimizers_take_turns(stage, mtc, tmp_path):
    """p in the updates 3, 6, q in 1, 4, 7, of two steps each; the norm is of the gradients that are used."""
    p, q, held, m = np.full(3, 1.0), np.full(3, 2.0), [0, 0], 0
    optimizer = '[sgd(0.1, weights = "p", every = 3, momentum = 0.5), sgd(0.2, every = 3, at = 1)]'
    text = game(optimizer, settings="accumulate = 2\n  clip_norm = 0.5\n  ema = 0.9")
    average = 0  # states are 0 here
    for step, (x, leaves) in enumerate(steps(text, stage, mtc, tmp_path, 14), 1):
        held = [held[0] + q * x / 2, held[1] + p * x / 2]
        if step % 2 == 0:
            p_works, q_works = step // 2 % 3 == 0, step // 2 % 3 == 1
            norm = np.sqrt(p_works * (held[0] ** 2).sum() + q_works * (held[1] ** 2).sum())
            factor = min(1, 0.5 / (norm + 1e-6))
            m = 0.5 * m + factor * held[0] if p_works else m
            p, q, held = p - 0.1 * m * p_works, q - 0.2 * factor * held[1] * q_works, [0, 0]
            average = 0.9 * average + 0.1 * p if p_works else average
        np.testing.assert_allclose(leaves["p"], p, 1e-12)
        np.testing.assert_allclose(leaves["q"], q, 1e-12)
        np.testing.assert_allclose(leaves["p.ema"], average, 1e-12)


@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_adam_counts_its_own_updates(stage, mtc, tmp_path):
    p, m, v, t = np.full(3, 1.0), 0, 0, 0
    text = game('[adam(0.1, weights = "p", every = 3, at = 2), sgd(0, every = 2)]')
    for step, (x, leaves) in enumerate(steps(text, stage, mtc, tmp_path, 9), 1):
        if step % 3 == 2:
            t, m, v = t + 1, 0.9 * m + 0.1 * 2 * x, 0.999 * v + 0.001 * (2 * x) ** 2
            p = p - 0.1 / (1 - 0.9**t) * m / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(leaves["p"], p, 1e-9)


@pytest.mark.parametrize("turn, why", [
    ("every = 0", "expected a whole number from 1 to 1024"), ("every = 3, at = 4", "expected a whole number from 1 to 3"),
    ("at = 2", "'at' says which of so many updates is its own; say how many: every = 2"), ("at = 1", "say how many: every = 2"),
])  # fmt: skip
def test_a_turn_that_there_is_not_is_refused(turn, why, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(game(f'[sgd(0.1, weights = "p", {turn}), sgd(0.2)]'))
    done = mtc(tmp_path / "m.mt", "--emit=graph")
    assert done.returncode == 65 and why in done.stderr


def test_programs_take_turns_as_graphs_do(compile_model, tmp_path):
    text = game('[sgd(0.1, weights = "p", every = 2), sgd(0.2, every = 2, at = 1)]')
    (tmp_path / "x").write_bytes(idx_bytes(np.ones((BATCH, 3), np.float32)))
    program = compile_model(text)
    program("--data", tmp_path, "--epochs", 3, "--save", tmp_path / "w.safetensors", cwd=tmp_path)
    data = (tmp_path / "w.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    weights = {name: np.frombuffer(data[8 + size :], "<f4", 3, header[name]["data_offsets"][0]) for name in "pq"}
    q = 2 - 0.2 * 1.0
    p = 1 - 0.1 * q
    np.testing.assert_allclose(weights["p"], p, 1e-6)
    np.testing.assert_allclose(weights["q"], q - 0.2 * p, 1e-6)


def test_a_loss_that_nobody_minimises_is_warned_of(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(game('[sgd(0.1, weights = "p", loss = w), sgd(0.2, loss = -w)]'))
    warned = mtc(tmp_path / "m.mt", "--emit=graph")
    assert "no optimizer minimises this loss" in warned.stderr


PLANE = """\
data {
  train = idx("real")
  test  = idx("real")
  x     : f32[2]
}
fn judge(v) {
  return linear(leaky_relu(linear(v, 32), slope = 0.2), 1)
}
model {
  layer discriminator(v) = judge(v)
  hidden    = relu(linear(random_normal([4], in_evaluation = true), 32))
  generator = linear(hidden, 2)
  real      = discriminator(x)
  fake      = discriminator(generator)
  telling   = mean(bce(real, 1, from_logits = true)) + mean(bce(fake, 0, from_logits = true))
}
train {
  loss      = mean(bce(fake, 1, from_logits = true))
  metric    = telling
  predict   = generator
  optimizer = [
      adam(2e-3, beta1 = 0.5),
      adam(2e-3, beta1 = 0.5, weights = "discriminator.*", loss = telling),
  ]
  batch     = 64
  epochs    = 100
}
"""


def test_a_generator_finds_where_the_data_are(compile_model, tmp_path):
    random = np.random.default_rng(0)
    real = (random.normal(size=(1024, 2)) * [0.5, 1] + [3, -2]).astype(np.float32)
    (tmp_path / "real").write_bytes(idx_bytes(real))
    program = compile_model(PLANE)
    program("train", "--data", tmp_path, "--save", tmp_path / "w", "--quiet", "--seed", 1, cwd=tmp_path)
    done = program("predict", "--load", tmp_path / "w", "--data", tmp_path, cwd=tmp_path)
    made = np.array([line.split() for line in done.stdout.splitlines()], float)
    np.testing.assert_allclose(made.mean(0), [3, -2], atol=0.4)


@pytest.mark.parametrize("schedule", ["graph", "persistent"])
def test_nvcc_takes_the_text(schedule, cuda_takes):
    cuda_takes(PLANE, "--schedule", schedule)
