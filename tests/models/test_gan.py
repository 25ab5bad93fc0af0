"""Optimizers with losses of their own: two networks that learn from each other, in one step."""

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
