"""The orders of the examples: an epoch's permutation is the same, however many epochs are trained at a time."""

import numpy as np
import pytest

from fake_data import idx_bytes, unpack

MODEL = """data {{
  train = idx("x", "y")
  x : f32[3]
  y : f32[1]
}}
model {{ y_hat = linear(x, 1) }}
train {{
  loss      = mse(y_hat, y)
  optimizer = sgd(0.1)
  batch     = {batch}
}}
"""


@pytest.mark.parametrize("batch", [4, 5, 9], ids=["two-steps", "partial", "one-step"])
def test_epochs_together_and_one_by_one(batch, compile_model, tmp_path):
    random = np.random.default_rng(2)
    (tmp_path / "x").write_bytes(idx_bytes(random.standard_normal((8, 3)).astype(np.float32)))
    (tmp_path / "y").write_bytes(idx_bytes(random.standard_normal((8, 1)).astype(np.float32)))
    program, weights = compile_model(MODEL.format(batch=batch)), set()
    for every in (1, 3, 1000):
        saved = tmp_path / f"{every}.safetensors"
        program("--data", tmp_path, "--limit-steps", 101, "--every", every, "--save", saved, "--quiet")
        weights.add(unpack(saved.read_bytes())[1])
    assert len(weights) == 1
