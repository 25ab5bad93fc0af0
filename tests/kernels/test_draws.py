"""Numbers that a model draws: those of kernels_lib/random.h to the bit, by step and element in training, by the place in the set in
evaluation."""

import numpy as np
import pytest

from library import Library
from test_random import library, numbers  # noqa: F401

EXAMPLES, BATCH, SET_STREAM = 10, 4, 1 << 29

TRAINED = """data {
  train = idx("x")
  x     : f32
}
model {
  a = weight([5, 6])
  b = weight([7])
  c = weight([40])
}
train {
  loss      = sum(a * random_normal([5, 6])) + sum(b * random_uniform([7])) + sum(c * bernoulli(0.3, [40])) + x
  predict   = x
  optimizer = sgd(0, momentum = 0)
  batch     = 1
}
"""
EVALUATED = """param low = -1
data {
  train = idx("x")
  x     : f32
}
model {
  a = random_normal([3], mean = 2, std = 3, in_evaluation = true)
  b = random_uniform([2, 2], low, 7, in_evaluation = true)
  c = bernoulli(sigmoid(x), in_evaluation = true)
  d = random_normal([2], mean = 5) + random_uniform([2], low, 7) + bernoulli(0.25, [2])
  w = weight([])
}
train {
  loss      = sum(a) + sum(b) + c + sum(d) + w * x
  predict   = concat([a, flatten(b), reshape(c, [1]), d])
  optimizer = sgd(0.1)
  batch     = 4
}
"""


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def session(request, mtc, tmp_path):
    def opened(text):
        (tmp_path / "m.mt").write_text(text)
        done = mtc(tmp_path / "m.mt", "--shared", "-o", tmp_path / "m.so", "--target", request.param)
        assert done.returncode == 0, done.stderr
        return Library(tmp_path / "m.so")

    return opened


def test_training_draws_by_step(session, library):  # noqa: F811
    """The gradient of a factor is what it is multiplied with, and what a step at rate 1 takes from it."""
    model = session(TRAINED.replace("sgd(0, momentum = 0)", "sgd(1)"))
    model.set_data([np.zeros(EXAMPLES, np.float32)])
    for step in 1, 2, 3:
        for name, shape in (("a", 30), ("b", 7), ("c", 40)):
            model.set(name, np.zeros(shape))
        model.train(1, 1)
        a, b, c = (-model.get(name, shape) for name, shape in (("a", 30), ("b", 7), ("c", 40)))
        assert np.array_equal(a, numbers(library.normals, 30, 1, 0, step))
        assert np.array_equal(b, numbers(library.uniforms, 7, 1, 1, step))
        assert np.array_equal(c, numbers(library.uniforms, 40, 1, 2, step) < np.float32(0.3)) and 0 < c.sum() < 40
    model.close()


def expected(library, x):  # noqa: F811
    """Batch for batch, the last one smaller."""
    rows = []
    for first in range(0, EXAMPLES, BATCH):
        a = 2 + 3 * numbers(library.normals, 3 * BATCH, 1, SET_STREAM, first).reshape(BATCH, 3)
        b = -1 + 8 * numbers(library.uniforms, 4 * BATCH, 1, SET_STREAM + 1, first).reshape(BATCH, 4)
        seen = x[first : first + BATCH]
        c = numbers(library.uniforms, BATCH, 1, SET_STREAM + 2, first)[: len(seen)] < 1 / (1 + np.exp(-seen))
        rows.append(np.column_stack([a[: len(seen)], b[: len(seen)], c, np.full((len(seen), 2), 5 + 3 + 0.25)]))
    return np.concatenate(rows)


def test_evaluation_draws_by_the_place_in_the_set(session, library):  # noqa: F811
    x = np.linspace(-2, 2, EXAMPLES, dtype=np.float32)
    model, wanted = session(EVALUATED), expected(library, x)
    model.set_data([x])
    model.set("w", np.zeros(()))
    np.testing.assert_allclose(model.predict([x], 10), wanted, rtol=1e-6, atol=1e-6)
    assert 0 < wanted[:, 7].sum() < EXAMPLES and len(np.unique(wanted[:, 0])) == EXAMPLES
    assert model.evaluate(1)[0] == pytest.approx(wanted.sum(1).mean(), rel=1e-5)
    model.train(7, 1)
    np.testing.assert_allclose(model.predict([x], 10), wanted, rtol=1e-6, atol=1e-6)
    model.close()
