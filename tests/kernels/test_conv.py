"""Convolutions of compiled programs against NumPy in float64: the outputs, and the gradients of the image and of the filters,
which are products that read windows of images. Odd sizes, strides, paddings, dilations, groups, and 1 to 64 channels. And sums over
the pixels of each example beside them, which tiles of such products may compute."""

import numpy as np
import pytest
from evaluator import evaluate, parse
from library import Library
from test_ops_compiled import mtc

#        batch, channels, rows, columns; outputs, kernel; stride, padding, dilation, groups
CASES = {
    "grey": (5, (1, 9, 7), (8, (3, 3)), (1, 1), (1, 1), (1, 1), 1),
    "stem": (3, (3, 15, 14), (16, (7, 7)), (2, 2), (3, 3), (1, 1), 1),
    "odd": (3, (5, 7, 9), (7, (3, 3)), (2, 1), (1, 1), (1, 1), 1),
    "dilated": (2, (8, 11, 9), (12, (3, 3)), (1, 1), (0, 2), (2, 3), 1),
    "wide": (2, (3, 6, 10), (5, (1, 5)), (1, 3), (0, 2), (1, 1), 1),
    "pixel": (4, (16, 5, 5), (24, (1, 1)), (2, 2), (0, 0), (1, 1), 1),
    "deep": (2, (64, 8, 8), (64, (3, 3)), (1, 1), (1, 1), (1, 1), 1),
    "halved": (2, (64, 8, 8), (128, (3, 3)), (2, 2), (1, 1), (1, 1), 1),
    "resident": (32, (64, 24, 24), (64, (3, 3)), (1, 1), (1, 1), (1, 1), 1),  # tiles of 288 pixels divide the images' (cuda/tensor_resident.cuh)
    "large": (33, (64, 28, 28), (128, (3, 3)), (1, 1), (1, 1), (1, 1), 1),
    "squares": (41, (64, 15, 13), (72, (3, 3)), (1, 1), (1, 1), (1, 1), 1),  # in fp32, of 2 x 2 outputs (cuda/winograd.cuh): odd, and fewer at edges
    "padded squares": (67, (64, 14, 9), (128, (3, 3)), (1, 1), (2, 0), (1, 1), 1),
    "even": (31, (48, 28, 28), (72, (3, 3)), (2, 2), (1, 1), (1, 1), 1),
    "few": (40, (3, 10, 11), (6, (5, 5)), (1, 1), (2, 2), (1, 1), 1),  # outputs of the filters' gradient, and a long sum
    "far": (2, (4, 4, 4), (8, (3, 3)), (3, 3), (2, 2), (1, 1), 1),
    "one": (1, (32, 17, 19), (40, (3, 3)), (1, 1), (1, 1), (1, 1), 1),
    "three": (3, (16, 31, 29), (24, (5, 3)), (2, 1), (2, 1), (1, 1), 1),
    "sixty-four": (64, (24, 13, 11), (32, (3, 3)), (1, 1), (1, 1), (1, 1), 1),
    "groups": (3, (24, 9, 11), (36, (3, 3)), (1, 1), (1, 1), (1, 1), 3),
    "dilated groups": (1, (16, 12, 10), (8, (3, 3)), (1, 1), (2, 2), (2, 2), 2),
    "depthwise": (64, (40, 15, 13), (40, (3, 3)), (1, 1), (1, 1), (1, 1), 40),
    "strided depthwise": (3, (24, 12, 9), (24, (5, 5)), (2, 2), (2, 2), (1, 1), 24),
}
#        precision: largest error, of results that are about 1
PRECISIONS = {"fp32": 1e-5, "tf32": 4e-3, "tf32x3": 1e-5, "bf16": 4e-2}
TARGETS = [("cpu", "fp32"), *(pytest.param(("cuda", p), marks=pytest.mark.gpu) for p in PRECISIONS)]


def taps(case):
    """For each axis, the positions [outputs, taps] in the padded image."""
    _, (_, *size), (_, kernel), stride, padding, dilation, *_ = case
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        outputs = (n + 2 * p - d * (k - 1) - 1) // s + 1
        yield np.arange(outputs)[:, None] * s + np.arange(k)[None, :] * d


def convolve(x, w, probe, case):
    """y, and the gradients of sum(y * probe) by the image and by the filters; of each group alone."""
    groups = case[-1]
    parts = zip(*(np.split(values, groups, axis) for values, axis in ((x, 1), (w, 0), (probe, 1))))
    results = zip(*(convolve_group(*part, case) for part in parts))
    return [np.concatenate(values, axis) for values, axis in zip(results, (1, 1, 0))]


def convolve_group(x, w, probe, case):
    padding = case[4]
    padded = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    rows, columns = taps(case)
    index = rows[:, None, :, None], columns[None, :, None, :]
    seen = padded[:, :, *index]
    y = np.einsum("nchwij,ocij->nohw", seen, w, optimize=True)
    dw = np.einsum("nchwij,nohw->ocij", seen, probe, optimize=True)
    d_padded = np.zeros_like(padded)
    np.add.at(d_padded, (slice(None), slice(None), *index), np.einsum("nohw,ocij->nchwij", probe, w, optimize=True))
    (p, q), (h, v) = padding, x.shape[2:]
    return y, d_padded[:, :, p : p + h, q : q + v], dw


def model(case, outputs):
    batch, shape, (out, kernel), stride, padding, dilation, groups = case
    c, h, w = shape
    return f"""data {{
  train = idx("x", "probe")
  x : f32[{c}, {h}, {w}]
  probe : f32[{out}, {outputs[0]}, {outputs[1]}]
}}
model {{
  shift = weight([{c}, {h}, {w}], init = zeros())
  y = conv2d(x + shift, {out}, {list(kernel)}, stride = {list(stride)}, padding = {list(padding)}, dilation = {list(dilation)}, groups = {groups}, bias = false)
}}
train {{
  loss = sum(y * probe)
  predict = flatten(y)
  optimizer = sgd(0, momentum = 0.9)
  batch = {batch}
}}
"""


def computed_and_exact(case, target, precision, tmp_path):
    """Outputs, the gradient of the image, summed over the batch, and that of the filters; each with what it is in float64."""
    batch, shape, (out, kernel), *_ = case
    rows, columns = taps(case)
    outputs = len(rows), len(columns)
    path = tmp_path / "conv.mt"
    path.write_text(model(case, outputs))
    flags = ["--precision", precision] if precision != "fp32" else []
    mtc(path, "--shared", "-o", tmp_path / "conv.so", "--keep", tmp_path, "--target", target, *flags)
    library = Library(tmp_path / "conv.so")
    random = np.random.default_rng(6)
    channels = shape[0] // case[-1]
    depth = channels * kernel[0] * kernel[1]
    x = random.uniform(-1, 1, (batch, *shape)).astype(np.float32)
    w = (random.uniform(-1, 1, (out, channels, *kernel)) / depth**0.5).astype(np.float32)
    probe = random.uniform(-1, 1, (batch, out, *outputs)).astype(np.float32)
    library.set("y.weight", w)
    library.set_data([x, probe])
    y = library.predict([x, probe], out * outputs[0] * outputs[1]).reshape(batch, out, *outputs)
    library.train(1, 1)
    d_shift = library.get("shift.momentum", shape) * batch
    d_w = library.get("y.weight.momentum", w.shape) * batch
    library.close()
    expected, dx, dw = convolve(*(values.astype(np.float64) for values in (x, w, probe)), case)
    return (y, expected), (d_shift, dx.sum(0)), (d_w, dw)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(target))
def test_convolution(target, case, tmp_path):
    target, precision = target
    for got, exact in computed_and_exact(case, target, precision, tmp_path):
        assert abs(got - exact).max() < PRECISIONS[precision] * max(1, abs(exact).max())


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_two_terms_are_nearly_as_exact_as_fp32(case, tmp_path):
    """The distance from float64 is at most twice that of fp32. (`bench/errors` shows the largest error of each.)"""

    def distances(precision):
        (tmp_path / precision).mkdir()
        results = computed_and_exact(CASES[case], "cuda", precision, tmp_path / precision)
        return [np.linalg.norm(got - exact) / np.linalg.norm(exact) for got, exact in results]

    for terms, plain in zip(distances("tf32x3"), distances("fp32")):
        assert terms <= 2 * plain, (terms, plain)


# the second: few outputs of its filters' gradient, and a long sum over pixels, which is split (cuda/deep.cuh)
OF_FIELDS = {
    "short": (6, (1, 9, 8), (8, (3, 3)), (1, 1), (1, 1), (1, 1), 1),
    "long": (64, (1, 12, 10), (6, (5, 5)), (1, 1), (2, 2), (1, 1), 1),
}


@pytest.mark.parametrize("case", OF_FIELDS.values(), ids=OF_FIELDS)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(target))
def test_convolution_of_a_data_field(target, case, tmp_path):
    """In fp32 on a GPU, the bytes of the data set become numbers as the product loads them; around the image are zeros."""
    target, precision = target
    batch, (channels, rows, columns), (out, kernel), *_ = case
    path = tmp_path / "conv.mt"
    shape = f"[{channels}, {rows}, {columns}]"
    text = model(case, (rows, columns)).replace(f"x : f32{shape}", f"x : u8{shape}").replace("x + shift", "1 - x / 255")
    path.write_text("".join(line for line in text.splitlines(True) if "shift" not in line))
    mtc(path, "--shared", "-o", tmp_path / "conv.so", "--keep", tmp_path, "--target", target, "--precision", precision)
    library = Library(tmp_path / "conv.so")
    random = np.random.default_rng(7)
    x = random.integers(0, 256, (batch, channels, rows, columns), dtype=np.uint8)
    sizes = (out, channels, *kernel), (batch, out, rows, columns)
    w, probe = (random.uniform(-1, 1, size).astype(np.float32) / 3 for size in sizes)
    library.set("y.weight", w)
    library.set_data([x, probe])
    y = library.predict([x, probe], out * rows * columns).reshape(probe.shape)
    library.train(1, 1)
    d_w = library.get("y.weight.momentum", w.shape) * batch
    library.close()
    expected, _, dw = convolve(1 - x / 255, w.astype(np.float64), probe.astype(np.float64), case)
    for got, exact in (y, expected), (d_w, dw):
        assert abs(got - exact).max() < PRECISIONS[precision] * max(1, abs(exact).max())


EXCITED = """data {{
  train = idx("x", "probe")
  x : f32[16, {rows}, {columns}]
  probe : f32[16, {less_rows}, {less_columns}]
}}
model {{
  h    = silu(conv2d(x, 64, 3, stride = 2, padding = 1))
  gate = sigmoid(linear(relu(linear(global_avg_pool(h), 4)), 64))
  y    = conv2d(h * reshape(gate, [64, 1, 1]), 16, 3, stride = 2, padding = 1)
}}
train {{
  loss = sum(y * probe)
  predict = flatten(y)
  optimizer = sgd(0, momentum = 0.9)
  batch = 6
}}
"""


def in_files(weight):
    """Filters lie channels last in a graph."""
    return np.moveaxis(weight, -1, 1) if weight.ndim == 4 else weight


def excited_leaves(graph):
    """Weights and fields. Examples of different brightness tell the sums of one from those of another."""
    random = np.random.default_rng(8)
    shapes = {node.name: node.shape for node in graph if node.op in ("weight", "field")}
    leaves = {name: random.uniform(-1, 1, shape) / np.prod(shape[1:]) ** 0.5 for name, shape in shapes.items()}
    brightness = np.array([0.1, 2, 0.5, 4, 1, 0.2]).reshape(6, 1, 1, 1)
    leaves["x"] = brightness * random.uniform(0, 1, shapes["x"])
    return {name: value.astype(np.float32).astype(np.float64) for name, value in leaves.items()}


@pytest.mark.parametrize("size", [(16, 16), (16, 32), (32, 32)], ids=["64-pixels", "128-pixels", "256-pixels"])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(target))
def test_sums_of_each_example(target, size, tmp_path):
    """Squeeze and excite between strides: the mean of what a product computes, and the gate's gradient from a data gradient, whose
    tiles need not have the pixels of one example."""
    target, precision = target
    rows, columns = size
    less_rows, less_columns = rows // 4, columns // 4
    path = tmp_path / "excited.mt"
    path.write_text(EXCITED.format(rows=rows, columns=columns, less_rows=less_rows, less_columns=less_columns))
    mtc(path, "--shared", "-o", tmp_path / "excited.so", "--keep", tmp_path, "--target", target, "--precision", precision)
    graph = parse(mtc("--emit=grad", path))["train"]
    leaves = excited_leaves(graph)
    weights = {name: value for name, value in leaves.items() if name not in ("x", "probe")}
    fields = [leaves[name].astype(np.float32) for name in ("x", "probe")]
    library = Library(tmp_path / "excited.so")
    for name, value in weights.items():
        library.set(name, in_files(value))
    library.set_data(fields)
    y = library.predict(fields, fields[1][0].size).reshape(fields[1].shape)
    library.train(1, 1)
    gradients = {name: library.get(f"{name}.momentum", in_files(value).shape) for name, value in weights.items()}
    library.close()
    step = evaluate(graph, leaves | {f"{name}.momentum": np.zeros_like(value) for name, value in weights.items()})
    exact = {name: in_files(step.assigned[f"{name}.momentum"]) for name in weights}
    exact_y = next(value for node, value in zip(graph, step.values) if node.name == "y" and node.shape == y.shape)
    for got, wanted in (y, exact_y), *((gradients[name], exact[name]) for name in weights):
        assert np.linalg.norm(got - wanted) < PRECISIONS[precision] * np.linalg.norm(wanted)
