"""Convolutions with a filter for each channel, of compiled programs, against NumPy in float64: the outputs, and the gradients of the
image and of the filters. On a GPU threads have patches of outputs (kernels_lib/cuda/patch.cuh), of images that are large enough."""

import numpy as np
import pytest
from library import Library
from test_conv import taps
from test_ops_compiled import mtc

#        batch, channels, rows, columns; outputs a channel, kernel; stride, padding, dilation
CASES = {
    "same": (64, (96, 24, 24), (1, (3, 3)), (1, 1), (1, 1), (1, 1)),
    "halved": (64, (64, 32, 32), (1, (3, 3)), (2, 2), (1, 1), (1, 1)),
    "odd": (192, (96, 7, 21), (1, (5, 3)), (1, 1), (2, 1), (1, 1)),
    "dilated": (64, (40, 28, 30), (1, (3, 3)), (1, 1), (1, 2), (1, 2)),
    "far": (96, (36, 48, 72), (1, (3, 5)), (3, 2), (1, 2), (1, 1)),
    "pairs": (96, (30, 24, 24), (1, (3, 3)), (1, 1), (1, 1), (1, 1)),
    "twice": (64, (48, 24, 24), (2, (3, 3)), (1, 1), (1, 1), (1, 1)),
    "line": (64, (64, 1, 512), (1, (1, 7)), (1, 1), (0, 3), (1, 1)),
    "small": (2, (8, 5, 6), (1, (3, 3)), (1, 2), (1, 0), (1, 1)),
}
#        precision: largest error, of results that are about 1
PRECISIONS = {"fp32": 1e-5, "bf16": 4e-2}
TARGETS = [("cpu", "fp32"), *(pytest.param(("cuda", p), marks=pytest.mark.gpu) for p in PRECISIONS)]


def convolve(x, w, probe, case):
    """y, and the gradients of sum(y * y * probe) by the image and by the filters, [channels times, kernel]."""
    times, padding = case[2][0], case[4]
    padded = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding))).repeat(times, 1)
    rows, columns = taps(case)
    y, dw, d_padded = np.zeros(probe.shape), np.zeros(w.shape), np.zeros_like(padded)
    at = [
        ((i, j), (slice(None), slice(None), rows[:, i, None], columns[None, :, j]))
        for i in range(rows.shape[1])
        for j in range(columns.shape[1])
    ]
    for (i, j), seen in at:
        y += padded[seen] * w[:, i, j, None, None]
    dy = 2 * y * probe
    for (i, j), seen in at:
        dw[:, i, j] = (padded[seen] * dy).sum((0, 2, 3))
        d_padded[seen] += dy * w[:, i, j, None, None]
    (p, q), (n, c, h, v) = padding, x.shape
    dx = d_padded[:, :, p : p + h, q : q + v]
    return y, dx.reshape(n, c, times, h, v).sum(2), dw


def model(case, outputs, batch):
    _, (c, h, w), (times, kernel), stride, padding, dilation = case
    return f"""data {{
  train = idx("x", "probe")
  x : f32[{c}, {h}, {w}]
  probe : f32[{times * c}, {outputs[0]}, {outputs[1]}]
}}
model {{
  scale = weight([{c}, {h}, {w}], init = zeros())
  shift = weight([{c}, {h}, {w}], init = zeros())
  y = conv2d(x * (1 + scale) + shift, {times * c}, {list(kernel)}, stride = {list(stride)}, padding = {list(padding)}, dilation = {list(dilation)}, groups = {c}, bias = false)
}}
train {{
  loss = sum(y * y * probe)
  predict = flatten(y)
  optimizer = sgd(0, momentum = 0.9)
  batch = {batch}
}}
"""


def errors(path, case, batch):
    """Of y, and of the gradients by the image, also times the image, and by the filters: the largest error, of results of about 1."""
    _, shape, (times, kernel), *_ = case
    rows, columns = taps(case)
    library = Library(path)
    random = np.random.default_rng(6)
    x = random.uniform(-1, 1, (batch, *shape)).astype(np.float32)
    w = (random.uniform(-1, 1, (times * shape[0], *kernel)) / (kernel[0] * kernel[1]) ** 0.5).astype(np.float32)
    probe = random.uniform(-1, 1, (batch, times * shape[0], len(rows), len(columns))).astype(np.float32)
    library.set("y.weight", w)
    library.set_data([x, probe])
    y = library.predict([x, probe], probe[0].size).reshape(probe.shape)
    library.train(1, 1)
    d_shift, d_scale = (library.get(f"{name}.momentum", shape) * batch for name in ("shift", "scale"))
    d_w = library.get("y.weight.momentum", w.shape) * batch
    library.close()
    expected, dx, dw = convolve(*(values.astype(np.float64) for values in (x, w, probe)), case)
    return [
        abs(got - exact.reshape(got.shape)).max() / max(1, abs(exact).max())
        for got, exact in ((y, expected), (d_shift, dx.sum(0)), (d_scale, (dx * x).sum(0)), (d_w, dw))
    ]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(target))
def test_depthwise(target, case, tmp_path):
    target, precision = target
    path = tmp_path / "conv.mt"
    batch = case[0] if target == "cuda" else 2
    path.write_text(model(case, [len(outputs) for outputs in taps(case)], batch))
    flags = ["--precision", precision] if precision != "fp32" else []
    mtc(path, "--shared", "-o", tmp_path / "conv.so", "--keep", tmp_path, "--target", target, *flags)
    assert max(errors(tmp_path / "conv.so", case, batch)) < PRECISIONS[precision]


@pytest.mark.parametrize("case", [case for name, case in CASES.items() if name != "small"])
def test_threads_have_patches(case, tmp_path):
    """Forward, and for both gradients."""
    path = tmp_path / "conv.mt"
    path.write_text(model(case, [len(outputs) for outputs in taps(case)], case[0]))
    source = mtc(path, "--emit", "cu", "--arch", "sm_90")
    assert source.count("sum_taps<") >= 2
    assert source.count("sum_outputs<") == 1


#        batch, channels, rows, columns; kernel, stride, padding
POOLS = {
    "halved": (64, (64, 48, 48), 3, 2, 1),
    "pairs": (64, (64, 48, 48), 2, 2, 0),
    "overlapping": (64, (48, 24, 42), 3, 1, 1),
}


def pool_model(case, outputs, batch):
    _, (c, h, w), kernel, stride, padding = case
    return f"""data {{
  train = idx("x", "probe")
  x : f32[{c}, {h}, {w}]
  probe : f32[{c}, {outputs[0]}, {outputs[1]}]
}}
model {{
  scale = weight([{c}, {h}, {w}], init = zeros())
  shift = weight([{c}, {h}, {w}], init = zeros())
  y = max_pool(x * (1 + scale) + shift, {kernel}, stride = {stride}, padding = {padding})
}}
train {{
  loss = sum(y * probe)
  predict = flatten(y)
  optimizer = sgd(0, momentum = 0.9)
  batch = {batch}
}}
"""


def pool_taps(case):
    _, shape, kernel, stride, padding = case
    return list(taps((0, shape, (1, (kernel, kernel)), (stride,) * 2, (padding,) * 2, (1, 1))))


def pool_errors(path, case, batch):
    """Of the gradient of sum(y * probe) by the image, and times the image."""
    _, shape, _, _, padding = case
    rows, columns = pool_taps(case)
    library = Library(path)
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, (batch, *shape)).astype(np.float32)
    probe = random.uniform(-1, 1, (batch, shape[0], len(rows), len(columns))).astype(np.float32)
    library.set_data([x, probe])
    library.train(1, 1)
    d_shift, d_scale = (library.get(f"{name}.momentum", shape) * batch for name in ("shift", "scale"))
    library.close()
    around = ((0, 0), (0, 0), *((padding, padding),) * 2)
    padded = np.pad(x, around, constant_values=-np.inf)
    seen = np.stack([padded[:, :, rows[:, i, None], columns[None, :, j]] for i in range(rows.shape[1]) for j in range(columns.shape[1])])
    d_padded, largest = np.zeros(padded.shape), seen.argmax(0)
    for tap in range(len(seen)):
        i, j = divmod(tap, columns.shape[1])
        d_padded[:, :, rows[:, i, None], columns[None, :, j]] += np.where(largest == tap, probe, 0)
    dx = d_padded[:, :, padding : padding + shape[1], padding : padding + shape[2]]
    return [abs(got - exact).max() for got, exact in ((d_shift, dx.sum(0)), (d_scale, (dx * x).sum(0)))]


@pytest.mark.parametrize("case", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(target))
def test_gradients_of_pools(target, case, tmp_path):
    target, precision = target
    batch = case[0] if target == "cuda" else 2
    path = tmp_path / "pool.mt"
    path.write_text(pool_model(case, [len(outputs) for outputs in pool_taps(case)], batch))
    mtc(path, "--shared", "-o", tmp_path / "pool.so", "--keep", tmp_path, "--target", target, "--precision", precision)
    assert max(pool_errors(tmp_path / "pool.so", case, batch)) < (1e-4 if precision == "fp32" else 0.1)


@pytest.mark.parametrize("case", POOLS.values(), ids=POOLS)
def test_threads_have_patches_of_what_pools_see(case, tmp_path):
    path = tmp_path / "pool.mt"
    path.write_text(pool_model(case, [len(outputs) for outputs in pool_taps(case)], case[0]))
    assert mtc(path, "--emit", "cu", "--arch", "sm_90").count("sum_terms<") == 1


STORED = """data {
  train = npy("x", "y")
  x : f32[8, 3, 12]
  y : f32[12]
}
model {
  h   = relu(conv2d(permute(layer_norm(x), [2, 0, 1]), 12, 3, padding = 1, groups = 12, bias = false))
  out = linear(max(h, axis = [1, 2]), 12)
}
train {
  loss      = mse(out, y)
  optimizer = sgd(0.1)
  batch     = 48
}
"""


def test_what_was_stored_of_windows_is_read(tmp_path):
    """The kernel of a small layer stores the products of its gradient with windows; they are summed as they lie, without patches."""
    path = tmp_path / "stored.mt"
    path.write_text(STORED)
    assert "sum_outputs<" not in mtc(path, "--emit", "cu", "--arch", "sm_90")
