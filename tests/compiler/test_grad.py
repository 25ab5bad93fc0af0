"""grad(y, x) in a loss: each operator's derivative as the text asks for it, and the gradient of a loss that is made of it."""

import re

import numpy as np
import pytest
from evaluator import evaluate, parse
from ops_cases import CASES, Sample

pytestmark = pytest.mark.quick

STEP = 1e-6
FIRST_ONLY = "attention|rnn|gru|lstm"  # whose gradients are kernels of their own


def of_x(case):
    return re.search(r"\bx\b", case.y) and case.gradient and not case.id.startswith("batch") and "stop_gradient" not in case.y


def one_of_each():
    """A case for each function that a case begins with; there are several for most."""
    found = {}
    for case in filter(of_x, CASES):
        found.setdefault(re.sub(r"[\d.]+", "", case.y.partition("(")[0]), case)
    return list(found.values())


def dumped(mtc, folder, case, loss, stage="grad"):
    (folder / "m.mt").write_text(Sample(case).model().replace(f"loss = {case.id}_loss", f"loss = {loss} + 0 * {case.id}_loss"))
    return mtc(f"--emit={stage}", folder / "m.mt")


@pytest.mark.parametrize("case", one_of_each(), ids=lambda case: case.id)
def test_its_gradient_is_that_of_the_loss(case, mtc, tmp_path):
    """Along one direction for each weight."""
    sample, slope = Sample(case), f"grad({case.id}_loss, {case.id}_x)"
    done = dumped(mtc, tmp_path, case, f"sum(sin({slope}))")
    if re.search(rf"\b({FIRST_ONLY})\([^)]*\bx\b", case.y):
        assert done.returncode == 65 and "and no second one" in done.stderr
        done = dumped(mtc, tmp_path, case, f"0 * sum({slope})", "graph")
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 0, done.stderr
    graph = parse(done.stdout)["train"]
    leaves = sample.leaves()
    leaves |= {f"{name}.momentum": np.zeros(leaves[name].shape) for name in sample.weights}
    found = evaluate(graph, leaves).assigned
    for name in sample.weights:
        along = np.random.default_rng(0).normal(size=leaves[name].shape)
        losses = [evaluate(graph, leaves | {name: leaves[name] + step * along}).reports["loss"] for step in (STEP, -STEP)]
        slope = (losses[0] - losses[1]) / (2 * STEP)
        assert (found[f"{name}.momentum"] * along).sum() == pytest.approx(slope, rel=1e-5, abs=1e-5), name


MODEL = """data {{
  train = npz("x.npz")
  test  = npz("x.npz")
  x     : f32[2]
  a     : i32
}}
model {{
  w = weight([2], init = constant(0.5))
  p = x * w
  u = sin(p[0]) * p[1] * p[1]
  {lines}
}}
train {{
  loss      = square({loss}) + u
  predict   = {predict}
  optimizer = sgd(0)
  batch     = 4
}}
"""


def refusal(mtc, folder, lines, loss="y"):
    (folder / "m.mt").write_text(MODEL.format(lines=lines, loss=loss, predict="u"))
    done = mtc("--emit=graph", folder / "m.mt")
    assert done.returncode == 65
    return done.stderr


@pytest.mark.parametrize("lines, why", [
    ("y = sum(grad(p, x))", "grad is of one number for each example, not f32[2]; take an element, y[0], or sum(y)"),
    ("y = sum(grad(u, w))", "grad is of each example, and this is the same for all"),
    ("y = grad(u * a, a)", "a gradient is with respect to numbers, and i32 is whole"),
    ("y = sum(grad(u, 2 * x + 1))", "what is differentiated does not depend on this value"),
    ("y = sum(grad(1 * (u > 0), x))", "a number for each example"),
    ("y = sum(grad(u * mean(batch(u)), x))", "here each depends on the others of its batch"),
    ("y = sum(grad(sum(batch_norm(p)), x))", "here each depends on the others of its batch"),
])  # fmt: skip
def test_what_has_no_gradient_is_refused(mtc, tmp_path, lines, why):
    said = refusal(mtc, tmp_path, lines)
    assert (why in said or why.startswith("a number") and "grad is of one number" in said) and "m.mt:11:" in said


def test_a_program_trains_with_gradients_of_gradients(compile_model, mtc, tmp_path):
    """u = sin(w0 x0) (w1 x1)^2: its second derivative by x1 is 2 w1^2 sin(w0 x0)."""
    lines = "g = grad(u, x)\n  h = grad(g[1], x)"
    (tmp_path / "m.mt").write_text(MODEL.format(lines=lines, loss="h[1]", predict="concat([g, h])"))
    x = np.random.default_rng(2).normal(size=(4, 2)).astype("f4")
    np.savez(tmp_path / "x.npz", x=x, a=np.zeros(4, "i4"))
    program = compile_model(tmp_path / "m.mt")
    program("--data", tmp_path, "--epochs", 1, "--save", tmp_path / "w.safetensors")
    done = program("predict", "--load", tmp_path / "w.safetensors", "--data", tmp_path)
    p = x / 2
    sin, cos = np.sin(p[:, 0]), np.cos(p[:, 0])
    wanted = np.stack([cos * p[:, 1] ** 2 / 2, sin * p[:, 1], cos * p[:, 1] / 2, sin / 2], axis=1)
    np.testing.assert_allclose([[float(word) for word in line.split()] for line in done.stdout.splitlines()], wanted, atol=2e-5)
    assert mtc("gradcheck", tmp_path / "m.mt", "--data", tmp_path).returncode == 0
