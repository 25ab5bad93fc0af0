"""dirac(): filters that pass a channel on, and behind them those of default()."""

import numpy as np
import pytest
from fake_data import tensors

pytestmark = pytest.mark.quick

MODEL = """data {
  train = npz("d.npz")
  image : f32[3, 5, 4]
}
model {
  more   = conv2d(image, 5, [3, 2], bias = false, init = dirac())
  fewer  = conv2d(more, 4, 1, bias = false, init = dirac())
  line   = conv1d(reshape(fewer, [4, 9]), 4, 5, bias = false, init = dirac())
  linear = linear(flatten(line), 25, bias = false, init = dirac())
  plain  = linear(linear, 2, bias = false)
}
train {
  loss      = sum(plain)
  predict   = plain
  optimizer = sgd(0)
  batch     = 4
  epochs    = 1
}
"""


def test_dirac(compile_model, tmp_path):
    np.savez(tmp_path / "d.npz", image=np.ones((8, 3, 5, 4), np.float32))
    compile_model(MODEL)("--data", tmp_path, "--save", tmp_path / "w", "--quiet")
    found = tensors((tmp_path / "w").read_bytes())
    for name, shape, middle in (("more", (5, 3, 3, 2), (1, 1)), ("fewer", (4, 5, 1, 1), (0, 0)), ("line", (4, 4, 5), (2,)), ("linear", (25, 20), ())):
        weight, count = found[f"{name}.weight"], min(shape[:2])
        expected = np.zeros((count, *shape[1:]))
        expected[(np.arange(count), np.arange(count), *middle)] = 1
        assert weight.shape == shape
        np.testing.assert_array_equal(weight[:count], expected)
        rest, bound = weight[count:], np.prod(shape[1:]) ** -0.5
        assert (rest != 0).all() and (np.abs(rest) <= bound).all() and (not rest.size or rest.std() > 0.4 * bound)
