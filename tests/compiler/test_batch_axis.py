"""Losses over a batch: an example beside the others of its batch, where rows that fill a batch up neither count nor contribute."""

import numpy as np
import pytest
from evaluator import evaluate, parse

pytestmark = pytest.mark.quick

BATCH, ROWS = 6, 4
MODEL = """data {{
  train = npz("x.npz")
  test  = npz("t.npz")
  a     : f32[3]
  b     : f32[3]
}}
model {{
  s = weight([3], init = constant(0.5))
  p = a * s
  q = b * s
  y = {loss}
}}
train {{
  loss      = y
  metric    = [cross_entropy(matmul(p, batch(q), transpose_b = true), batch_place())]
  predict   = p
  optimizer = sgd(0, momentum = 0.9)
  batch     = 6
}}
"""


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def info_nce(p, q):
    return -np.log(np.diag(softmax(p @ q.T, 1)))


# A loss, and what it is in NumPy: of the examples that there are, one for each.
LOSSES = [
    ("cross_entropy(matmul(p, batch(q), transpose_b = true), batch_place())", info_nce),
    ("exp(p[0] - logsumexp(batch(p[0]))) * q[1]", lambda p, q: softmax(p[:, 0], 0) * q[:, 1]),
    ("mean(square(p - batch(q)))", lambda p, q: ((p[:, None] - q[None]) ** 2).mean((1, 2))),
    ("p[0] * mean(matmul(transpose(batch(p)), batch(q)))", lambda p, q: p[:, 0] * (p.T @ q).mean()),
    ("p[0] * sum(matmul(batch(p), batch(q), transpose_b = true))", lambda p, q: p[:, 0] * (p @ q.T).sum()),
    ("min(batch(p[0])) * prod(batch(q[1]) + 1) + max(batch(q[2]))",
     lambda p, q: np.full(len(p), p[:, 0].min() * (q[:, 1] + 1).prod() + q[:, 2].max())),
    ("p[0] * mean(square(batch(matmul(p, batch(q), transpose_b = true))))", lambda p, q: p[:, 0] * ((p @ q.T) ** 2).mean()),
    ("sum(matmul(square(p - batch(q)), [1, 2, 3])) + 0 * p[0]", lambda p, q: (((p[:, None] - q) ** 2) @ [1, 2, 3]).sum(1)),
]  # fmt: skip

def graphs(mtc, folder, loss, stage="grad"):
    (folder / "m.mt").write_text(MODEL.format(loss=loss))
    done = mtc(f"--emit={stage}", folder / "m.mt")
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


def leaves(rows):
    """What fills the batch up would be seen: unlike programs, which repeat an example, it is far off here."""
    random = np.random.default_rng(3)
    fields = {name: random.normal(size=(BATCH, 3)) for name in "ab"}
    for field in fields.values():
        field[rows:] = 5 * random.normal(size=field[rows:].shape)
    return fields | {"s": np.array([0.5, -1.5, 2]), "s.momentum": np.zeros(3)}


@pytest.mark.parametrize("rows", [BATCH, ROWS])
@pytest.mark.parametrize("loss, value", LOSSES, ids=[loss for loss, _ in LOSSES])
def test_is_of_the_examples_that_there_are(mtc, tmp_path, loss, value, rows):
    given = leaves(rows)

    def mean_loss(s):
        return value(given["a"][:rows] * s, given["b"][:rows] * s).mean()

    slopes = [(mean_loss(given["s"] + step) - mean_loss(given["s"] - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    for stage in ("grad", "simple"):
        found = evaluate(graphs(mtc, tmp_path, loss, stage)["train"], given, rows=rows)
        assert found.reports["loss"] == pytest.approx(mean_loss(given["s"]), rel=1e-9)
        np.testing.assert_allclose(found.assigned["s.momentum"], slopes, rtol=1e-6, atol=1e-8)


def test_a_program_evaluates_a_smaller_last_batch(compile_model, tmp_path):
    """Five examples behind six, in a program of batches of six."""
    random = np.random.default_rng(1)
    test = {field: random.normal(size=(11, 3)).astype("f4") for field in "ab"}
    np.savez(tmp_path / "x.npz", **test)
    np.savez(tmp_path / "t.npz", **test)
    (tmp_path / "m.mt").write_text(MODEL.format(loss=LOSSES[2][0]))
    program = compile_model(tmp_path / "m.mt")
    program("--data", tmp_path, "--epochs", 1, "--save", tmp_path / "w.safetensors", "--log", tmp_path / "log.jsonl")
    said = program("eval", "--data", tmp_path, "--load", tmp_path / "w.safetensors").stdout.split()
    parts = [slice(0, 6), slice(6, 11)]
    for name, value in (("loss", LOSSES[2][1]), ("cross_entropy", info_nce)):
        wanted = np.mean(np.concatenate([value(test["a"][part] / 2, test["b"][part] / 2) for part in parts]))
        assert float(said[said.index(name) + 1]) == pytest.approx(wanted, rel=2e-6)


REFUSED = [
    ("flatten(batch(p))[0]", "reshape cannot be applied along the examples of a batch"),
    ("batch(p)[0, 0] + p[0]", "slice cannot be applied along the examples of a batch"),
    ("sum(concat([batch(p), batch(q)], axis = 0)) + p[0]", "pad cannot be applied along the examples of a batch"),
    ("sum(batch(p - batch(q))[:, 0]) + p[0]", "slice cannot be applied along the examples of a batch"),
    ("sum(flip(batch(p), 0)) + p[0]", "flip cannot be applied along the examples of a batch"),
    ("sum(cumsum(batch(p[0]))) + p[0]", "cumsum cannot be applied along the examples of a batch"),
    ("variance(batch(p[0])) + p[0]", "variance is not for the examples of a batch"),
    ("sum(sort(batch(p[0]))) + p[0]", "sort is not for the examples of a batch"),
    ("sum(layer_norm(batch(p[0]), affine = false)) + p[0]", "layer_norm is not for the examples of a batch"),
    ("cross_entropy(matmul(p, batch(q), transpose_b = true), batch_place(), label_smoothing = 0.1)", "cross_entropy is not for the examples"),
    ("sum(gather(batch(p), argmax(q))) + p[0]", "gather cannot be applied along the examples of a batch"),
]  # fmt: skip


def refusal(mtc, folder, loss, *flags):
    (folder / "m.mt").write_text(MODEL.format(loss=loss))
    done = mtc("--emit=graph", folder / "m.mt", *flags)
    assert done.returncode == 65
    return done.stderr


@pytest.mark.parametrize("loss, why", REFUSED, ids=[loss for loss, _ in REFUSED])
def test_what_would_part_or_count_the_examples_is_refused(mtc, tmp_path, loss, why):
    said = refusal(mtc, tmp_path, loss)
    assert why in said and "m.mt:11:" in said


def test_needs_the_whole_of_a_batch(mtc, tmp_path):
    said = refusal(mtc, tmp_path, LOSSES[0][0], "--shards", "2")
    assert "with --shards each part of it knows its own alone" in said and "m.mt:11:" in said
    assert "a batch of 1 has no others" in refusal(mtc, tmp_path, LOSSES[0][0], "--batch", "1")


def test_a_prediction_of_others_is_a_warning(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(MODEL.format(loss="p[0]").replace("predict   = p", "predict   = p - mean(batch(p), axis = 0)"))
    said = mtc("--emit=graph", tmp_path / "m.mt")
    assert said.returncode == 0 and "depends on the others of its batch" in said.stderr
