"""A small network of convolutions and batch norms, trained on the CPU target: weights, momenta and running statistics after
each step against a reference in float64 NumPy, with gradients written out by hand; and the precisions of products."""

import numpy as np
import pytest
from conftest import run_mtc
from library import Library

EXAMPLES, CLASSES, MOMENTUM, EPS = 8, 4, 0.1, 1e-5
RATE, HEAVY = 0.05, 0.9

MODEL = """data {{
  train = idx("x", "label")
  x     : f32[3, 9, 7]
  label : class[4]
}}
model {{
  a = relu(batch_norm(conv2d(x, 8, 3, padding = 1, bias = false)))
  b = batch_norm(conv2d(a, 16, 3, stride = 2, padding = 1, bias = false))
  r = relu(b + conv2d(a, 16, 1, stride = 2))
  p = max_pool(r, 3, 2, padding = 1)
  y = linear(global_avg_pool(p), 4)
}}
train {{
  loss      = cross_entropy(y, label)
  optimizer = sgd({rate}, momentum = {heavy})
  batch     = {batch}
  precision = {precision}
}}
"""


# ---- the reference: each layer returns its result and what makes of dy the gradients ----


def patches(x, kernel, stride, padding):
    """[N, C, H, W] -> [N, C, KH, KW, OH, OW] with their places in the padded image."""
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    h, w = ((size - kernel) // stride + 1 for size in padded.shape[2:])
    i = np.arange(kernel)[:, None, None, None] + stride * np.arange(h)[:, None]
    j = np.arange(kernel)[:, None, None] + stride * np.arange(w)
    i, j = np.broadcast_arrays(i, j)
    return padded[:, :, i, j], (padded.shape, i, j, padding)


def scatter(d, place):
    shape, i, j, padding = place
    dx = np.zeros(shape)
    np.add.at(dx, (slice(None), slice(None), i, j), d)
    return dx[:, :, padding : shape[2] - padding, padding : shape[3] - padding]


def conv(x, w, stride, padding):
    seen, place = patches(x, w.shape[2], stride, padding)
    y = np.einsum("ncpqij,ocpq->noij", seen, w)

    def back(dy):
        return scatter(np.einsum("noij,ocpq->ncpqij", dy, w), place), np.einsum("noij,ncpqij->ocpq", dy, seen)

    return y, back


def batch_norm(x, weight, bias):
    axes, per_channel = (0, 2, 3), (slice(None), None, None)
    mean, var = x.mean(axes), x.var(axes)
    inverse = 1 / np.sqrt(var + EPS)
    z = (x - mean[per_channel]) * inverse[per_channel]

    def back(dy):
        dz = dy * weight[per_channel]
        dx = inverse[per_channel] * (dz - dz.mean(axes)[per_channel] - z * (dz * z).mean(axes)[per_channel])
        return dx, (dy * z).sum(axes), dy.sum(axes)

    return z * weight[per_channel] + bias[per_channel], (mean, var, x.size // x.shape[1]), back


def max_pool(x, kernel, stride, padding):
    seen, place = patches(x - x.min() + 1, kernel, stride, padding)  # so that padding, 0, is never the largest
    n, c, _, _, h, w = seen.shape
    first = seen.reshape(n, c, -1, h, w).argmax(2)
    chosen = (np.arange(kernel * kernel)[:, None, None] == first[:, :, None]).reshape(seen.shape)

    def back(dy):
        return scatter(chosen * dy[:, :, None, None], place)

    return (seen * chosen).sum((2, 3)) + x.min() - 1, back


class Reference:
    def __init__(self, weights, rows):
        self.w = {name: value.copy() for name, value in weights.items()}
        self.momenta = {name: np.zeros_like(value) for name, value in weights.items()}
        self.rows = rows

    def keep(self, name, statistics):
        mean, var, count = statistics
        for key, value in (("mean", mean), ("var", var * count / (count - 1))):
            running = self.w[f"{name}.running_{key}"]
            running += MOMENTUM * (value - running)

    def step(self, x, label):
        w, g = self.w, {}
        c1, back_c1 = conv(x, w["a.0.weight"], 1, 1)
        n1, statistics_1, back_n1 = batch_norm(c1, w["a.1.weight"], w["a.1.bias"])
        a = np.maximum(n1, 0)
        c2, back_c2 = conv(a, w["b.0.weight"], 2, 1)
        n2, statistics_2, back_n2 = batch_norm(c2, w["b.1.weight"], w["b.1.bias"])
        c3, back_c3 = conv(a, w["r.weight"], 2, 0)
        before = n2 + c3 + w["r.bias"][:, None, None]
        p, back_p = max_pool(np.maximum(before, 0), 3, 2, 1)
        pooled = p.mean((2, 3))
        y = pooled @ w["y.weight"].T + w["y.bias"]
        e = np.exp(y - y.max(1, keepdims=True))
        q = e / e.sum(1, keepdims=True)
        loss = -np.log(q[np.arange(len(x)), label]).mean()

        dy = (q - np.eye(CLASSES)[label]) / len(x)
        g["y.weight"], g["y.bias"] = dy.T @ pooled, dy.sum(0)
        dp = np.broadcast_to((dy @ w["y.weight"])[:, :, None, None] / p[0, 0].size, p.shape)
        dr = back_p(dp) * (before > 0)
        dn2, g["b.1.weight"], g["b.1.bias"] = back_n2(dr)
        da_2, g["b.0.weight"] = back_c2(dn2)
        da_3, g["r.weight"] = back_c3(dr)
        g["r.bias"] = dr.sum((0, 2, 3))
        dn1, g["a.1.weight"], g["a.1.bias"] = back_n1((da_2 + da_3) * (n1 > 0))
        g["a.0.weight"] = back_c1(dn1)[1]
        for name, gradient in g.items():
            self.momenta[name] = HEAVY * self.momenta[name] + gradient
            w[name] -= RATE * self.momenta[name]
        self.keep("a.1", statistics_1)
        self.keep("b.1", statistics_2)
        return loss


# ---- the compiled program ----

SHAPES = {"a.0.weight": (8, 3, 3, 3), "a.1.weight": (8,), "a.1.bias": (8,), "a.1.running_mean": (8,), "a.1.running_var": (8,),
          "b.0.weight": (16, 8, 3, 3), "b.1.weight": (16,), "b.1.bias": (16,), "b.1.running_mean": (16,),
          "b.1.running_var": (16,), "r.weight": (16, 8, 1, 1), "r.bias": (16,), "y.weight": (4, 16), "y.bias": (4,)}


def compiled(folder, batch, precision="fp32", real=np.float64):
    model, library = folder / "m.mt", folder / "m.so"
    model.write_text(MODEL.format(rate=RATE, heavy=HEAVY, batch=batch, precision=precision))
    run_mtc(model, "--shared", "--target", "cpu", "--real", "f64" if real == np.float64 else "f32", "-o", library)
    return Library(library, real)


def start():
    random = np.random.default_rng(7)
    weights = {}
    for name, shape in SHAPES.items():
        fan_in = np.prod(shape[1:]) if len(shape) > 1 else 4
        weights[name] = random.normal(size=shape) / np.sqrt(fan_in)
        if name.endswith(("1.weight", "running_var")):
            weights[name] = random.uniform(0.5, 1.5, shape)
    x = random.normal(size=(EXAMPLES, 3, 9, 7)).astype(np.float32)
    return weights, x, random.integers(0, CLASSES, EXAMPLES).astype(np.uint8)


def trained(library, weights, x, label, steps):
    library.set_data([x, label])
    for name, value in weights.items():
        library.set(name, value)
    return library.train(steps, 1)[:, 0]


@pytest.mark.parametrize("batch", [EXAMPLES, EXAMPLES + 5], ids=["whole batch", "partial batch"])
def test_steps_match_numpy(batch, tmp_path):
    library = compiled(tmp_path, batch)
    weights, x, label = start()
    reference = Reference(weights, EXAMPLES)
    library.set_data([x, label])
    for name, value in weights.items():
        library.set(name, value)
    for step in range(4):
        assert library.train(1, 1)[0, 0] == pytest.approx(reference.step(x.astype(np.float64), label), rel=1e-10)
        for name, value in reference.w.items():
            np.testing.assert_allclose(library.get(name, value.shape), value, rtol=1e-8, atol=1e-11, err_msg=f"{name}, step {step}")
            if "running" not in name:
                momentum = library.get(f"{name}.momentum", value.shape)
                np.testing.assert_allclose(momentum, reference.momenta[name], rtol=1e-8, atol=1e-11, err_msg=name)
    library.close()


def test_evaluation_uses_running_statistics(tmp_path):
    library = compiled(tmp_path, EXAMPLES)
    weights, x, label = start()
    trained(library, weights, x, label, 0)
    before = library.evaluate(1)[0]
    library.set("b.1.running_mean", weights["b.1.running_mean"] + 1)
    assert abs(library.evaluate(1)[0] - before) > 1e-3
    library.close()


@pytest.mark.parametrize("precision, digits", [("fp32", 1e-4), ("tf32", 1e-4), ("bf16", 0.05)])
def test_precisions_stay_near(precision, digits, tmp_path):
    library = compiled(tmp_path, EXAMPLES, precision, np.float32)
    weights, x, label = start()
    reference = Reference(weights, EXAMPLES)
    losses = trained(library, weights, x, label, 6)
    expected = [reference.step(x.astype(np.float64), label) for _ in range(6)]
    np.testing.assert_allclose(losses, expected, rtol=digits)
    assert precision != "bf16" or np.abs(losses - expected).max() > 1e-6
    library.close()
