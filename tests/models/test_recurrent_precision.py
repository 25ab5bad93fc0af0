"""Recurrent layers whose neighbours are products in bf16: further results of their kernels stay those of the kernel, and training goes
as it does in fp32."""

import numpy as np
import pytest
from library import Library

EXAMPLES, STEPS, WIDTH = 16, 6, 16
MODEL = f"""data {{
  train = idx("x", "y")
  x : f32[{STEPS}, {WIDTH}]
  y : f32[{STEPS}, {WIDTH}]
}}
model {{
  h = CALL
  o = linear(h, {WIDTH})
}}
train {{
  loss      = mse(o, y)
  optimizer = adam(1e-2)
  batch     = {EXAMPLES}
}}
"""


@pytest.mark.parametrize("call", [
    "rnn(x, 16, layers = 2)",
    "gru(x, 16, layers = 2)",
    "lstm(x, 16, layers = 2)",
    "lstm(x, 16, start = weight([16], zeros()), cell = weight([16], zeros()))",
])
def test_bf16_beside_a_recurrent_layer(call, compile_model):
    losses = {}
    x, y = (np.random.default_rng(k).normal(size=(EXAMPLES, STEPS, WIDTH)).astype("f4") for k in range(2))
    for precision in ("fp32", "bf16"):
        library = Library(compile_model(MODEL.replace("CALL", call), "--shared", "--precision", precision).path, np.float32)
        library.set_data([x, y])
        losses[precision] = library.train(40, 1)[:, 0]
        library.close()
    np.testing.assert_allclose(losses["bf16"], losses["fp32"], rtol=5e-3)
    assert not np.array_equal(losses["bf16"], losses["fp32"])
    assert losses["bf16"][-1] < 0.9 * losses["bf16"][0]
