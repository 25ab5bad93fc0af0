"""A training step with tensors of more than 2^31 elements against NumPy in float64: a gather and its gradient, a product, a softmax
with its sums, a convolution, a pool, what is copied and added up on the way back. Few examples are different, so that NumPy
computes little; a number that is read or written at another's place shows in the gradients all the same. Tensors have more than 2^32
elements: what would wrap around is half of the gradients, and what would do so as an unsigned number a hundredth at least. Sums
of a hundred thousand terms in fp32 are off by three ten thousandths.

Needs a GPU of 40 GB; the same models with small tensors run everywhere, and say that NumPy's side is right."""

import json

import numpy as np
import pytest

from fake_data import pack, tensors

TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
RATE, DIFFERENT = 4096.0, 7

WORDS = """data {{
  train = npy("t", "y")
  t : class[{classes}]
  y : class[{classes}]
}}
model {{
  table  = weight([{classes}, 16])
  logits = linear(gather(table, t), {classes})
}}
train {{
  loss      = cross_entropy(logits, y)
  optimizer = sgd({rate})
  batch     = {batch}
}}
"""

IMAGES = """data {{
  train = npy("x", "y")
  x : f32[1, {side}, {side}]
  y : f32[3]
}}
model {{
  h = max_pool(relu(conv2d(x, 64, 3, padding = 1)), 2)
  s = linear(global_avg_pool(h), 3)
}}
train {{
  loss      = mse(s, y)
  optimizer = sgd({rate})
  batch     = {batch}
}}
"""


def write_weights(path, weights):
    header, data = {}, b""
    for name, value in weights.items():
        content = value.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    path.write_bytes(pack(header, data))


def gradients(program, folder, data, weights):
    """What one step takes off the weights, by the rate; the loss."""
    for name, values in data.items():
        np.save(folder / name, values)
        (folder / f"{name}.npy").rename(folder / name)
    write_weights(folder / "before", weights)
    program("--data", folder, "--init-from", folder / "before", "--limit-steps", 1, "--save", folder / "after", "--log", folder / "log",
            "--log-every", 1, "--quiet")
    after = tensors((folder / "after").read_bytes())
    loss, = (event["loss"] for event in map(json.loads, (folder / "log").read_text().splitlines()) if event["event"] == "train")
    return {name: (value.astype("<f4").astype(float) - after[name]) / RATE for name, value in weights.items()}, loss


def agree(found, expected, most):
    for name, value in expected.items():
        assert np.abs(found[name] - value).max() <= most * np.abs(value).max(), name


@pytest.mark.parametrize("target", TARGETS)
def test_words(target, compile_model, tmp_path):
    classes, batch = (32768, 140000) if target == "cuda" else (96, 70)
    random, n = np.random.default_rng(0), np.arange(batch)
    t, y = n % DIFFERENT * 13, n * 31 % classes
    weights = {"table": random.normal(0, 1, (classes, 16)), "logits.weight": random.normal(0, 0.3, (classes, 16)),
               "logits.bias": random.normal(0, 0.3, classes)}
    program = compile_model(WORDS.format(classes=classes, batch=batch, rate=RATE), target=target)
    found, loss = gradients(program, tmp_path, {"t": t.astype("i4"), "y": y.astype("i4")}, weights)

    rows = np.arange(DIFFERENT) * 13
    h = weights["table"][rows]
    logits = h @ weights["logits.weight"].T + weights["logits.bias"]
    log_p = logits - logits.max(1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(1, keepdims=True))
    named = np.zeros((DIFFERENT, classes))
    np.add.at(named, (n % DIFFERENT, y), 1)
    d = (np.exp(log_p) * named.sum(1, keepdims=True) - named) / batch
    table = np.zeros((classes, 16))
    table[rows] = d @ weights["logits.weight"]
    assert loss == pytest.approx(-(log_p * named).sum() / batch, rel=1e-5)
    agree(found, {"table": table, "logits.weight": d.T @ h, "logits.bias": d.sum(0)}, 2e-3 if target == "cuda" else 1e-5)


def convolve(image, filters, bias):
    side = image.shape[-1]
    padded = np.pad(image, 1)
    windows = np.stack([padded[i:i + side, j:j + side] for i in range(3) for j in range(3)])
    return windows, np.tensordot(filters.reshape(64, 9), windows, 1) + bias[:, None, None]


@pytest.mark.parametrize("target", TARGETS)
def test_images(target, compile_model, tmp_path):
    side, batch = (256, 1040) if target == "cuda" else (8, 16)
    random, n = np.random.default_rng(1), np.arange(batch)
    images, wanted = random.normal(0, 1, (DIFFERENT, 1, side, side)).astype("f4"), random.normal(0, 1, (DIFFERENT, 3)).astype("f4")
    weights = {"h.weight": random.normal(0, 0.3, (64, 1, 3, 3)), "h.bias": random.normal(0, 0.3, 64),
               "s.weight": random.normal(0, 0.3, (3, 64)), "s.bias": random.normal(0, 0.3, 3)}
    program = compile_model(IMAGES.format(side=side, batch=batch, rate=RATE), target=target)
    found, loss = gradients(program, tmp_path, {"x": images[n % DIFFERENT], "y": wanted[n % DIFFERENT]}, weights)

    expected, total = {name: np.zeros(value.shape) for name, value in weights.items()}, 0
    for k, times in enumerate(np.bincount(n % DIFFERENT)):
        windows, h = convolve(images[k, 0].astype(float), weights["h.weight"], weights["h.bias"])
        blocks = np.maximum(h, 0).reshape(64, side // 2, 2, side // 2, 2)
        most = blocks.max((2, 4))
        mean = most.mean((1, 2))
        error = weights["s.weight"] @ mean + weights["s.bias"] - wanted[k]
        total += times * (error ** 2).mean()
        ds = 2 * error / 3 * times / batch
        first = (blocks == most[:, :, None, :, None]) & (blocks > 0)
        dh = first.reshape(64, side, side) * (ds @ weights["s.weight"])[:, None, None] / (side // 2) ** 2
        for name, value in {"s.weight": np.outer(ds, mean), "s.bias": ds, "h.bias": dh.sum((1, 2)),
                            "h.weight": np.tensordot(dh, windows, ([1, 2], [1, 2])).reshape(64, 1, 3, 3)}.items():
            expected[name] += value
    assert loss == pytest.approx(total / batch, rel=1e-5)
    agree(found, expected, 2e-4 if target == "cuda" else 1e-5)
