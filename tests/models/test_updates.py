"""Updates of weights whose gradients are made of weights alone, as penalties' are: what an update reads of other elements, or of weights that
others overwrite, is what they were before the step. Against NumPy, in float64."""

import numpy as np
import pytest
from library import Library

pytestmark = pytest.mark.quick
TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
EXAMPLES, BATCH, STEPS = 6, 3, 4


def neighbours(w, c, k):
    """mean(w[1:] * w[:8])"""
    return np.pad(w[1:], (0, 1)) / 8 + np.pad(w[:-1], (1, 0)) / 8, np.zeros_like(c)


def smoothness(w, c, k):
    """sum((w[1:] - w[:8])^2)"""
    return 2 * (np.pad(np.diff(w), (1, 0)) - np.pad(np.diff(w), (0, 1))), np.zeros_like(c)


def part(w, c, k):
    """mean(tanh(w[1:]))"""
    return np.pad(1 - np.tanh(w[1:]) ** 2, (1, 0)) / 8, np.zeros_like(c)


def turned(w, c, k):
    """mean(w * flip(w, 0))"""
    return 2 * w[::-1] / 9, np.zeros_like(c)


def one_of_another(w, c, k):
    """sum(reshape(w, [3, 3]) * c)"""
    return c.ravel(), w.reshape(3, 3)


def across(w, c, k):
    """sum(transpose(reshape(w, [3, 3]), 0, 1) * c)"""
    return c.T.ravel(), w.reshape(3, 3).T


def looked_up(w, c, k):
    """mean(gather(w, k)) + w[4, 0]"""
    return np.bincount(k, minlength=9) / len(k) + np.eye(9)[4], np.zeros_like(c)


def shorter(w, c, k):
    """sum(c * w[:8])"""
    return np.append(c, 0), w[:8]


def in_a_sum(w, c, k):
    """sum(w * c)"""
    return c.sum(1), np.repeat(w[:, None], 9, 1)


def of_all(w, c, k):
    """sum(w * c) + sum(square(c))"""
    return c.sum(), w + 2 * c


SHAPES = {looked_up: ([9, 1], [3, 3]), shorter: ([9], [8]), in_a_sum: ([9, 1], [9, 9]), of_all: ([1], [3, 3])}


def model(gradient, settings):
    shape, other = SHAPES.get(gradient, ([9], [3, 3]))
    return f"""data {{
  train = idx("k", "x")
  k : class[9]
  x : f32[2]
}}
model {{
  w = weight({shape})
  c = weight({other})
}}
train {{
  loss = {gradient.__doc__} + 0 * sum(c)
  predict = x
  optimizer = sgd({settings}
  batch = {BATCH}
}}
"""


LOSSES = [neighbours, smoothness, part, turned, one_of_another, across, looked_up, shorter, in_a_sum, of_all]


@pytest.mark.parametrize("settings", ["0.25)", "0.25, momentum = 0.5)", "0.25)\n  accumulate = 2"], ids=["plain", "momentum", "accumulate"])
@pytest.mark.parametrize("gradient", LOSSES, ids=lambda g: g.__name__)
@pytest.mark.parametrize("target", TARGETS)
def test_old_elements_are_read(target, gradient, settings, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(model(gradient, settings))
    precision = ["--real", "f64"] if target == "cpu" else []
    done = mtc("m.mt", "--shared", "-o", tmp_path / "m.so", "--target", target, *precision, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    real, random = np.float64 if target == "cpu" else np.float32, np.random.default_rng(7)
    library = Library(tmp_path / "m.so", real)
    own, other = SHAPES.get(gradient, ([9], [3, 3]))
    w, c = random.uniform(-1, 1, np.prod(own)), random.uniform(-1, 1, other)
    k = np.full(EXAMPLES, 5, np.uint8)  # whatever the order of examples
    library.set("w", w.astype(real))
    library.set("c", c.astype(real))
    library.set_data([k, np.zeros((EXAMPLES, 2), np.float32)])
    library.train(STEPS, 1)
    kept, sums = [0, 0], [0, 0]
    for step in range(STEPS):
        d = gradient(w, c, k[:BATCH])
        if "accumulate" in settings:
            sums = [s + g / 2 for s, g in zip(sums, d)]
            if step % 2 == 0:
                continue
            d, sums = sums, [0, 0]
        kept = [(0.5 if "momentum" in settings else 0) * m + g for m, g in zip(kept, d)]
        w, c = w - 0.25 * kept[0], c - 0.25 * kept[1]
    bound = 1e-12 if target == "cpu" else 1e-5
    np.testing.assert_allclose(library.get("w", w.shape), w, rtol=bound, atol=bound)
    np.testing.assert_allclose(library.get("c", c.shape), c, rtol=bound, atol=bound)
    library.close()


IN_FP16 = f"""data {{
  train = idx("k", "x")
  k : class[9]
  x : f32[2]
}}
model {{
  c = weight([9])
  w = weight([9])
}}
train {{
  loss = sum(square(c))
  optimizer = [
    sgd(0.125, weights = "c"),
    sgd(0.125, weights = "w", loss = sum(square(w - flip(c, 0)))),
  ]
  predict = x
  batch = {BATCH}
}}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_updates_that_wait_for_one_number(target, mtc, tmp_path):
    """In fp16: that all gradients are finite."""
    (tmp_path / "m.mt").write_text(IN_FP16)
    done = mtc("m.mt", "--shared", "-o", tmp_path / "m.so", "--target", target, "--precision", "fp16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    library, random = Library(tmp_path / "m.so"), np.random.default_rng(7)
    w, c = random.uniform(-1, 1, (2, 9)).astype(np.float32)
    library.set("w", w)
    library.set("c", c)
    library.set_data([np.zeros(EXAMPLES, np.uint8), np.zeros((EXAMPLES, 2), np.float32)])
    library.train(1, 1)
    np.testing.assert_allclose(library.get("c", c.shape), c - 0.25 * c, rtol=1e-5)
    np.testing.assert_allclose(library.get("w", w.shape), w - 0.25 * (w - c[::-1]), rtol=1e-5, atol=1e-6)
    library.close()
