"""Models and data for the tests of the Python package."""

import numpy as np

import conftest  # noqa: F401  (puts the package on the path, in processes of their own too)

# Three fields' worth of what models may have, so small that it compiles and trains at once.
BLOBS = """
param hidden = 8
param lr     = 0.05 in 0..1

data {
  train = npz("train.npz")
  test  = npz("test.npz")
  x : f32[2, 3]
  y : class[3]
}
model {
  h      = relu(linear(flatten(x), hidden))
  scores = linear(h, 3)
}
train {
  loss      = cross_entropy(scores, y)
  metric    = accuracy(scores, y)
  optimizer = adam(lr)
  batch     = 16
  epochs    = 4
}
"""

LINE = """
param lr = 0.05
data {
  train = npz("train.npz")
  a : f32
  b : f32
  y : f32[1]
}
model {
  p = linear(concat([reshape(a, [1]), reshape(b, [1])], axis = 0), 1)
}
train {
  loss      = mse(p, y)
  optimizer = adam(lr)
  batch     = 10
  epochs    = 3
}
"""


def blobs(count, seed=0):
    """Examples for BLOBS: three clouds of points."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, count).astype(np.uint8)
    centres = np.random.default_rng(99).normal(size=(3, 2, 3)) * 2
    return (centres[y] + random.normal(size=(count, 2, 3))).astype(np.float32), y


def line(count, seed=0):
    """Examples for LINE: y = 2 a - b + 1."""
    table = np.random.default_rng(seed).normal(size=(count, 2)).astype(np.float32)
    return table, (2 * table[:, :1] - table[:, 1:] + 1).astype(np.float32)
