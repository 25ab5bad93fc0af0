"""Images: what the layout pass takes out, batch norm and its running statistics, ties of pooling, chance. As graphs, and in
compiled programs against their graphs."""

import re

import numpy as np
import pytest
from conftest import ROOT, run_mtc
from library import Library
from random_port import block, permutation, shuffle_key, uniform
from evaluator import evaluate, parse
from ops_cases import conv2d
from test_ops_graph import assert_gradient, dump

BATCH = 4


def model(lines, image="f32[2, 5, 4]", out=3, optimizer="sgd(0, momentum = 0.9)", batch=BATCH):
    """A model whose last statement makes a vector h of each example; its loss is the sum of h times the field `probe`."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"""data {{
  train = idx("images", "probes")
  image : {image}
  probe : f32[{out}]
}}
model {{
{body}
}}
train {{
  loss      = sum(h * probe)
  predict   = h
  optimizer = {optimizer}
  batch     = {batch}
}}
"""


def leaves_of(graph, seed=1):
    """Random values for all leaves; states are 0, variances positive."""
    random, leaves = np.random.default_rng(seed), {}
    for node in graph:
        if node.op in ("field", "weight"):
            leaves[node.name] = random.normal(size=node.shape) + (3 if node.op == "field" and len(node.shape) > 2 else 0)
            if node.name.endswith("running_var"):
                leaves[node.name] = random.uniform(0.5, 2, node.shape)
        if node.op == "state":
            leaves[node.name] = np.full(node.shape, 256.0 if node.name == "update.loss_scale" else 0.0)
    return leaves


def in_files(w):
    """Filters [O, KH, KW, C] of a graph as files have them."""
    return w.transpose(0, 3, 1, 2)


# ---- layout ----

RESIDUAL = ["x = relu(batch_norm(conv2d(image, 6, 3, padding = 1, bias = false)))",
            "y = batch_norm(conv2d(dropout(x, 0.1), 6, 3, padding = 1, bias = false))",
            "z = relu(y + batch_norm(conv2d(x, 6, 1, bias = false)))",
            "p = relu(group_norm(max_pool(z * weight([6, 1, 1]), 3, stride = 2, padding = 1), 2))",
            "h = linear(global_avg_pool(upsample(p, 2)), 3)"]


def image_transposes(graph):
    return [node for node in graph if node.op == "transpose" and len(node.shape) == 4 and node.shape[0] == BATCH]


@pytest.mark.parametrize("kind, transposed", [("train", ["field", "random"]), ("eval", ["field"])])
def test_images_stay_channels_last(kind, transposed, tmp_path):
    """Only the first layer's input is transposed, and the numbers of a dropout, which lie nowhere."""
    graphs = {stage: dump(tmp_path, model(RESIDUAL), stage)[kind] for stage in ("graph", "simple")}
    assert len(image_transposes(graphs["graph"])) > 10
    assert [graphs["simple"][node.inputs[0]].op for node in image_transposes(graphs["simple"])] == transposed


def test_layout_keeps_the_numbers(tmp_path):
    text = model(RESIDUAL)
    random = np.random.default_rng(2).uniform(size=(BATCH, 6, 5, 4))
    results = []
    for stage in ("graph", "grad", "simple"):
        graph = dump(tmp_path, text, stage)["train"]
        leaves = leaves_of(dump(tmp_path, text, "grad")["train"])
        results.append(evaluate(graph, leaves, random=lambda stream, shape: random).reports["loss"])
    assert results == pytest.approx([results[0]] * 3, rel=1e-9)


def test_flatten_has_the_order_of_the_language(tmp_path):
    lines = ["c = relu(conv2d(image, 3, 3, bias = false))", "h = linear(flatten(c), 3, bias = false)"]
    graph = dump(tmp_path, model(lines), "simple")["eval"]
    leaves = leaves_of(graph)
    c = np.maximum(conv2d(leaves["image"], in_files(leaves["c.weight"])), 0)
    np.testing.assert_allclose(evaluate(graph, leaves).output, c.reshape(BATCH, -1) @ leaves["h.weight"].T, rtol=1e-9)


# ---- batch norm ----

NORMED = ["y = batch_norm(conv2d(image, 3, 3, bias = false), momentum = 0.2)", "h = global_avg_pool(square(relu(y)))"]


@pytest.mark.parametrize("rows", [BATCH, BATCH - 1])
def test_batch_norm_in_training(rows, tmp_path):
    """The examples that fill up a batch take no part in it."""
    for stage in ("graph", "simple"):
        graph = dump(tmp_path, model(NORMED), stage)["train"]
        leaves = leaves_of(dump(tmp_path, model(NORMED), "grad")["train"])
        result = evaluate(graph, leaves, rows=rows)
        x = conv2d(leaves["image"][:rows], in_files(leaves["y.0.weight"]))
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        y = (x - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None]
        y = y * leaves["y.1.weight"][:, None, None] + leaves["y.1.bias"][:, None, None]
        h = (np.maximum(y, 0) ** 2).mean((2, 3))
        assert result.reports["loss"] == pytest.approx((h * leaves["probe"][:rows]).sum() / rows, rel=1e-9)
        running = {"running_mean": mean, "running_var": x.transpose(1, 0, 2, 3).reshape(3, -1).var(1, ddof=1)}
        for name, batch in running.items():
            expected = 0.8 * leaves[f"y.1.{name}"] + 0.2 * batch
            np.testing.assert_allclose(result.assigned[f"y.1.{name}"], expected, rtol=1e-9, err_msg=name)


def test_batch_norm_in_evaluation(tmp_path):
    graph = dump(tmp_path, model(NORMED), "simple")["eval"]
    leaves = leaves_of(graph)
    x = conv2d(leaves["image"], in_files(leaves["y.0.weight"]))
    column = {name: leaves[f"y.1.{name}"][:, None, None] for name in ("weight", "bias", "running_mean", "running_var")}
    y = (x - column["running_mean"]) / np.sqrt(column["running_var"] + 1e-5) * column["weight"] + column["bias"]
    np.testing.assert_allclose(evaluate(graph, leaves).output, (np.maximum(y, 0) ** 2).mean((2, 3)), rtol=1e-9)


@pytest.mark.parametrize("lines", [NORMED, ["h = batch_norm(linear(flatten(image), 3), affine = false)"],
                                   ["h = global_avg_pool(square(batch_norm(image)))"]])
@pytest.mark.parametrize("rows", [BATCH, BATCH - 1])
def test_batch_norm_gradient(lines, rows, tmp_path):
    lines = [*lines[:-1], lines[-1] + " * weight([3])" if "image)))" not in lines[-1] else lines[-1] + " * weight([2])"]
    text = model(lines, out=2 if "image)))" in lines[-1] else 3)
    graph, simple = (dump(tmp_path, text, stage)["train"] for stage in ("grad", "simple"))
    leaves = leaves_of(graph)
    result, after = evaluate(graph, leaves, rows=rows), evaluate(simple, leaves, rows=rows)
    for name in [name.removesuffix(".momentum") for name in leaves if name.endswith(".momentum")]:
        for assigned in (result.assigned, after.assigned):
            assert_gradient(assigned[f"{name}.momentum"], graph, leaves, name, rows)


def test_batch_norm_sums(tmp_path):
    """Of each batch norm there are four sums over the pixels of the batch: two of values, two of gradients."""
    lines = ["a = relu(batch_norm(conv2d(image, 6, 3, padding = 1, bias = false)))",
             "b = relu(batch_norm(conv2d(a, 6, 3, padding = 1, bias = false)) + a)", "h = linear(global_avg_pool(b), 3)"]
    graph = dump(tmp_path, model(lines), "simple")["train"]
    over_pixels = [n for n in graph if n.op == "sum" and n.attrs["axes"] == [0, 1, 2] and len(graph[n.inputs[0]].shape) == 4]
    assert len(over_pixels) == 4 * 2


# ---- pooling ----

def test_the_first_of_equal_elements_gets_the_gradient(tmp_path):
    lines = ["x = image * 0 + weight([1, 3, 3])", "h = flatten(max_pool(x, 2, stride = 1))"]
    graph = dump(tmp_path, model(lines, image="f32[1, 3, 3]", out=4), "simple")["train"]
    leaves = leaves_of(graph) | {"x.weight": np.array([[[1, 1, 0], [1, 1, 2], [0, 2, 2]]]) * 1.0}
    name = next(name for name in leaves if name.endswith(".momentum"))
    leaves[name.removesuffix(".momentum")] = np.array([[[1.0, 1, 0], [1, 1, 2], [0, 2, 2]]])
    a, b, c, d = leaves["probe"].mean(0)  # of the four outputs
    np.testing.assert_allclose(evaluate(graph, leaves).assigned[name], [[[a, 0, 0], [0, 0, b + d], [0, c, 0]]], atol=1e-12)


@pytest.mark.parametrize("function", ["max", "min"])
def test_equal_extremes_share_the_gradient(function, tmp_path):
    lines = ["x = image * 0 + weight([1, 3, 4])", f"h = flatten({function}(x, axis = 2))"]
    graph = dump(tmp_path, model(lines, image="f32[1, 3, 4]"), "simple")["train"]
    rows = np.array([[[5.0, 5, 1, 5], [2, 7, 3, 1], [4, 4, 4, 4]]])
    leaves = leaves_of(graph)
    name = next(name for name in leaves if name.endswith(".momentum"))
    leaves[name.removesuffix(".momentum")] = rows if function == "max" else -rows
    largest = rows[0] == rows[0].max(1, keepdims=True)
    expected = largest / largest.sum(1, keepdims=True) * leaves["probe"].mean(0)[:, None]
    np.testing.assert_allclose(evaluate(graph, leaves).assigned[name], expected[None], atol=1e-12)


@pytest.mark.parametrize("function", ["maximum", "minimum"])
def test_the_first_of_equal_operands_gets_the_gradient(function, tmp_path):
    lines = ["a = weight([3])", "b = weight([3])", f"h = flatten(image) * 0 + {function}(a, b)"]
    graph = dump(tmp_path, model(lines, image="f32[3, 1, 1]"), "simple")["train"]
    leaves = leaves_of(graph) | {"a": np.array([1.0, 2, 3]), "b": np.array([1.0, 5, -1])}
    assigned, probe = evaluate(graph, leaves).assigned, leaves["probe"].mean(0)
    first = np.array([1, 0, 1]) if function == "maximum" else np.array([1, 1, 0])
    np.testing.assert_allclose(assigned["a.momentum"], first * probe, atol=1e-12)
    np.testing.assert_allclose(assigned["b.momentum"], (1 - first) * probe, atol=1e-12)


# ---- chance ----

CHANCE = ["x = cutout(random_flip(random_crop(image, 1)), 2)", "h = linear(flatten(x), 3)"]


def test_images_change_in_training_only(tmp_path):
    graphs = dump(tmp_path, model(CHANCE), "simple")
    drawn = [(node.op, node.attrs["index"]) for node in graphs["train"] if node.op in ("random_crop", "random_flip", "random")]
    assert drawn == [("random_crop", 0), ("random_flip", 1), ("random", 2), ("random", 3)]
    assert not {node.op for node in graphs["eval"]} & {"random_crop", "random_flip", "random"}


def test_crops_of_what_a_mirror_shows(tmp_path):
    lines = ["x = random_crop(image, 2, mode = \"reflect\")", "h = linear(flatten(x), 3, bias = false)"]
    graphs = dump(tmp_path, model(lines), "simple")
    leaves, u = leaves_of(graphs["train"]), np.random.default_rng(5).uniform(size=(BATCH, 2))
    padded = np.pad(leaves["image"], ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect")
    x = np.stack([padded[n][:, int(5 * i) :, int(5 * j) :][:, :5, :4] for n, (i, j) in enumerate(u)])
    loss = ((x.reshape(BATCH, -1) @ leaves["h.weight"].T) * leaves["probe"]).sum() / BATCH
    assert evaluate(graphs["train"], leaves, random=lambda stream, shape: u).reports["loss"] == pytest.approx(loss)
    assert not {node.op for node in graphs["eval"]} & {"random_crop", "reflect"}


def test_flips_alternate(tmp_path):
    """Each example in every other epoch, half of them in the first: example n is [1, 0] 2^n, and the loss the sum of 2^n for those
    that are not flipped, less that of the others."""
    lines = ["x = random_flip(image, alternate = true)", "h = flatten(x) * weight([2], init = constant(1))"]
    (tmp_path / "case.mt").write_text(model(lines, image="f32[1, 1, 2]", out=2, batch=3))
    made = run_mtc(tmp_path / "case.mt", "--shared", "-o", tmp_path / "library.so", "--target", "cpu")
    assert made.returncode == 0, made.stderr
    library, rows, seed = Library(tmp_path / "library.so", seed=7), 10, 7
    images = np.zeros((rows, 1, 1, 2), np.float32)
    images[:, 0, 0, 0] = 2.0 ** np.arange(rows)
    library.set_data([images, np.tile(np.float32([1, -1]), (rows, 1))])
    losses = library.train(12, 1)[:, 0].reshape(3, 4) * [3, 3, 3, 1]
    library.close()
    bits = np.array([block(seed, 0, 0, n >> 2)[n & 3] >> 31 for n in range(rows)])
    assert 0 < bits.sum() < rows
    for epoch in range(3):
        signs = np.where((bits + epoch) % 2, -1, 1) * 2.0 ** np.arange(rows)
        ordered = signs[permutation(shuffle_key(seed, epoch), rows)]
        np.testing.assert_allclose(losses[epoch], [ordered[i : i + 3].sum() for i in range(0, rows, 3)], rtol=1e-6)


def test_cutout(tmp_path):
    graph = dump(tmp_path, model(["x = cutout(image, 3)", "h = linear(flatten(x), 3, bias = false)"]), "simple")["train"]
    leaves, u = leaves_of(graph), np.random.default_rng(4).uniform(size=(2, BATCH))
    x = leaves["image"].copy()
    for n in range(BATCH):
        rows, columns = (max(int(u[k, n] * size) - 1, 0) for k, size in enumerate((5, 4)))
        ends = [int(u[k, n] * size) + 2 for k, size in enumerate((5, 4))]
        x[n, :, rows : ends[0], columns : ends[1]] = 0
    loss = ((x.reshape(BATCH, -1) @ leaves["h.weight"].T) * leaves["probe"]).sum() / BATCH
    assert evaluate(graph, leaves, random=lambda stream, shape: u[stream]).reports["loss"] == pytest.approx(loss)


def test_what_is_drawn_is_drawn_once_for_all_lanes(mtc, tmp_path):
    """A pixel has four channels for tensor cores, of which a thread writes all: the fourth is padding, which draws nothing."""
    path = tmp_path / "m.mt"
    path.write_text(model(["x = cutout(random_flip(random_crop(image, padding = 2)), 8)",
                           "h = linear(global_avg_pool(conv2d(x, 64, 3, padding = 1)), 3)"], image="u8[3, 32, 32]"))
    source = mtc("--emit=cu", path, "--arch", "sm_90a", "--precision", "bf16", "--batch", "256").stdout
    kernel = next(text for text in source.split("\nstruct ") if "random_mirror(" in text and "for (int v" in text)
    before, lanes = kernel.split("for (int v", 1)
    draws = re.findall(r"\b(random_mirror|random_shift|uniform)\(", before)
    assert sorted(draws) == ["random_mirror", "random_shift", "random_shift", "uniform", "uniform"]
    assert not re.search(r"\b(random_mirror|random_shift|uniform)\(", lanes.split("\n};")[0])


def test_color_jitter(tmp_path):
    """As torchvision's functions, in this order, of a number drawn for each example; kept between 0 and white after each."""
    line = "x = color_jitter(image, 0.4, contrast = 0.5, saturation = 0.9, white = 2)"
    graphs = dump(tmp_path, model([line, "h = linear(flatten(x), 3, bias = false)"], image="f32[3, 4, 5]"), "simple")
    leaves, u = leaves_of(graphs["train"]), np.random.default_rng(4).uniform(size=(3, BATCH))
    factors = [1 + strength * (2 * drawn - 1) for strength, drawn in zip((0.4, 0.5, 0.9), u)]
    x, grey = leaves["image"], lambda x: np.einsum("nchw,c->nhw", x, [0.299, 0.587, 0.114])[:, None]
    for base, factor in zip((lambda x: 0, lambda x: grey(x).mean((1, 2, 3), keepdims=True), grey), factors):
        x = np.clip(base(x) + factor[:, None, None, None] * (x - base(x)), 0, 2)
    loss = ((x.reshape(BATCH, -1) @ leaves["h.weight"].T) * leaves["probe"]).sum() / BATCH
    assert (x == 0).any() and (x == 2).any()
    assert evaluate(graphs["train"], leaves, random=lambda stream, shape: u[stream]).reports["loss"] == pytest.approx(loss)
    assert "random" not in {node.op for node in graphs["eval"]}


@pytest.mark.parametrize("call, said", [
    ("color_jitter(image, 0.4)", ""),
    ("color_jitter(image / 255, 0.4, white = 1)", ""),
    ("color_jitter(image / 255, 0.4)", "these colours go from 0 to 1, and color_jitter takes them for 0 to 255"),
    ("color_jitter(random_flip(image) / 255, 0.4)", "say what white is: color_jitter(..., white = 1)"),
    ("color_jitter(image, 0.4, white = 1)", "these colours go from 0 to 255, and color_jitter takes them for 0 to 1"),
    ("color_jitter(1 - image / 127.5, 0.4, white = 1)", "takes colours from 0 on: shift them behind it"),
])
def test_what_color_jitter_takes_for_white(call, said, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(model([f"x = {call}", "h = linear(flatten(x), 3)"], image="u8[3, 5, 6]"))
    done = run_mtc("--emit=graph", path)
    assert done.returncode == 0 and said in done.stderr and ("warning" in done.stderr) == bool(said), done.stderr


def bilinear(image, row, column, fill=None):
    """The image [C, H, W] at the place, outside `fill`; without one, as if its border went on."""
    rows, columns = image.shape[1:]
    value = 0
    for i in (int(np.floor(row)), int(np.floor(row)) + 1):
        for j in (int(np.floor(column)), int(np.floor(column)) + 1):
            inside = 0 <= i < rows and 0 <= j < columns
            seen = image[:, min(max(i, 0), rows - 1), min(max(j, 0), columns - 1)] if inside or fill is None else fill
            value = value + (1 - abs(row - i)) * (1 - abs(column - j)) * seen
    return value


def seen_from(images, shape, place, fill=None):
    pixels = [[[bilinear(image, *place(n, i, j), fill) for j in range(shape[1])] for i in range(shape[0])] for n, image in enumerate(images)]
    return np.moveaxis(np.array(pixels), 3, 1)


def changed(tmp_path, line, u, expected):
    """The loss of a linear model of the changed images."""
    graphs = dump(tmp_path, model([line, "h = linear(flatten(x), 3, bias = false)"], image="f32[2, 5, 6]"), "simple")
    leaves = leaves_of(graphs["train"])
    loss = ((expected(leaves["image"]).reshape(BATCH, -1) @ leaves["h.weight"].T) * leaves["probe"]).sum() / BATCH
    assert evaluate(graphs["train"], leaves, random=lambda stream, shape: u[stream]).reports["loss"] == pytest.approx(loss)
    return graphs["eval"]


def test_rotate(tmp_path):
    """Counter-clockwise about the middle: a pixel is what was at its place turned back."""
    u = np.random.default_rng(4).uniform(size=(1, BATCH))
    u[0, :2] = 1, 0.5

    def place(n, i, j):
        angle = np.radians(90 * (2 * u[0, n] - 1))
        i, j = i - 2, j - 2.5
        return 2 + np.sin(angle) * j + np.cos(angle) * i, 2.5 + np.cos(angle) * j - np.sin(angle) * i

    def expected(image):
        turned = seen_from(image, (5, 6), place, 7)
        np.testing.assert_allclose(turned[1], image[1])
        np.testing.assert_allclose(turned[0, :, 2, 2:4], (image[0, :, 1:3, 2] + image[0, :, 1:3, 3] + image[0, :, 2:4, 2] + image[0, :, 2:4, 3]) / 4)
        return turned

    plain = changed(tmp_path, "x = rotate(image, 90, fill = 7)", u, expected)
    assert not {node.op for node in plain} & {"random", "pixels"}


@pytest.mark.parametrize("size", [(5, 6), (3, 4)])
def test_random_resized_crop(size, tmp_path):
    """Regions as torchvision draws them: the first of ten that fits, of a share of the pixels and a ratio; else the middle."""
    rng = np.random.default_rng(4)
    u = [rng.uniform(size=(BATCH, 10)), rng.uniform(size=(BATCH, 10)), rng.uniform(size=BATCH), rng.uniform(size=BATCH)]
    u[0][0], u[1][0] = 1, 1  # of the first example, none fits
    regions = []
    for n in range(BATCH):
        area, ratio = 30 * (0.2 + 0.8 * u[0][n]), np.exp(np.log(0.5) + np.log(4) * u[1][n])
        rows, columns = np.rint(np.sqrt(area / ratio)), np.rint(np.sqrt(area * ratio))
        fits = [k for k in range(10) if 1 <= rows[k] <= 5 and 1 <= columns[k] <= 6]
        k = fits[0] if fits else None
        regions.append((0, 0, 5, 6) if k is None else (int(u[2][n] * (6 - rows[k])), int(u[3][n] * (7 - columns[k])), rows[k], columns[k]))
    assert regions[0] == (0, 0, 5, 6) and len(set(regions)) > 2

    def place(n, i, j):
        top, left, rows, columns = regions[n]
        return (top + np.clip((i + 0.5) * rows / size[0] - 0.5, 0, rows - 1),
                left + np.clip((j + 0.5) * columns / size[1] - 0.5, 0, columns - 1))

    line = f"x = random_resized_crop(image, {list(size)}, scale = [0.2, 1], ratio = [0.5, 2])"
    plain = changed(tmp_path, line, u, lambda image: seen_from(image, size, place))
    assert ("pixels" in {node.op for node in plain}) == (size != (5, 6)) and "random" not in {node.op for node in plain}


# ---- two examples ----

def mixed(tmp_path, line, expected, alpha, rows, draws):
    """Loss and predictions of what `expected` makes of images, targets and shares that it is given."""
    lines = [f"x, other, s = {line}", "h = linear(flatten(x), 3, bias = false) * s + other * (2 - s)"]
    graphs = dump(tmp_path, model(lines, image="f32[2, 5, 6]"), "simple")
    leaves, u = leaves_of(graphs["train"]), np.random.default_rng(4).uniform(size=(draws, BATCH))
    image, probe = leaves["image"], leaves["probe"]
    behind = [n + 1 if n + 1 < rows else 0 for n in range(BATCH)]
    q, c = (1 - u[0]) ** (1 / alpha), np.cos(2 * np.pi * u[1])
    x, s = expected(image, image[behind], 0.5 + 0.5 * c * np.sqrt((1 - q) / (q + (1 - q) * c**2)), u)
    h = (x.reshape(BATCH, -1) @ leaves["h.weight"].T) * s[:, None] + probe[behind] * (2 - s)[:, None]
    loss = (h * probe)[:rows].sum() / rows
    assert evaluate(graphs["train"], leaves, rows=rows, random=lambda stream, shape: u[stream]).reports["loss"] == pytest.approx(loss)
    plain = image.reshape(BATCH, -1) @ leaves["h.weight"].T + probe
    np.testing.assert_allclose(evaluate(graphs["eval"], leaves).output, plain)


@pytest.mark.parametrize("rows", [BATCH, BATCH - 1, 1])
def test_mixup(rows, tmp_path):
    """With the example behind; the last of a smaller batch with its first, and one that is alone with itself."""
    def expected(image, other, s, u):
        part = s[:, None, None, None]
        return part * image + (1 - part) * other, s
    mixed(tmp_path, "mixup(image, probe, 0.4)", expected, 0.4, rows, draws=2)


@pytest.mark.parametrize("rows", [BATCH, BATCH - 1])
def test_cutmix(rows, tmp_path):
    """As torchvision's: a box of the other image, cut off at the border, of which the share is what is there."""
    def expected(image, other, s, u):
        x, share = image.copy(), np.ones(BATCH)
        for n in range(BATCH):
            ends = []
            for k, size in enumerate((5, 6)):
                half, centre = int(size * 0.5 * np.sqrt(1 - s[n])), int(u[2 + k, n] * size)
                ends.append((max(centre - half, 0), min(centre + half, size)))
            (top, bottom), (left, right) = ends
            x[n, :, top:bottom, left:right] = other[n, :, top:bottom, left:right]
            share[n] = 1 - (bottom - top) * (right - left) / 30
        assert len(set(share)) > 2
        return x, share
    mixed(tmp_path, "cutmix(image, probe)", expected, 1, rows, draws=4)


@pytest.mark.parametrize("alpha", [0.2, 1, 3])
def test_shares_are_beta(alpha, tmp_path):
    lines, examples = [f"x, other, s = mixup(image, probe, {alpha})", "h = linear(flatten(x), 3) * s + other"], 20000
    graph = dump(tmp_path, model(lines, image="f32[1, 1, 3]", batch=examples), "graph")["train"]
    u, rng = np.random.default_rng(1).random((2, examples)), np.random.default_rng(2)
    shares = next(value for node, value in zip(graph, evaluate(graph, leaves_of(graph), random=lambda stream, shape: u[stream]).values)
                  if node.name == "s")
    at = np.linspace(0.02, 0.98, 25)[:, None]
    np.testing.assert_allclose((shares < at).mean(1), (rng.beta(alpha, alpha, 200000) < at).mean(1), atol=0.015)


# ---- compiled ----

COMPILED = ["m, other, s = mixup(image, probe, 0.4)", "c, another, t = cutmix(random_flip(m), other)", "x = cutout(random_flip(random_crop(random_resized_crop(rotate(color_jitter(c, 0.4, 0.5, white = 2), 20)), 2)), 3)", "y = conv2d(x, 4, 3, padding = 1, bias = false)",
            "z = max_pool(relu(batch_norm(y, momentum = 0.3)), 2)",
            "r = relu(batch_norm(conv2d(z, 6, 3, stride = 2, padding = 1)) + conv2d(z, 6, 1, stride = 2, bias = false))",
            "h = linear(global_avg_pool(group_norm(r, 2)), 3) * s + another * t"]


# What lies beyond the image is a number that all of its elements have, and those in it have not.
PADDED = ["h = batch_norm(exp(pad(conv2d(image, 4, 1, bias = false), 1, after = 1)))"]


def shown(value):
    """A tensor as files and the C interface have it."""
    return in_files(value) if value.ndim == 4 else value


TARGETS = [pytest.param(["--target", "cpu", "--real", "f64"], np.float64, 1e-5, id="cpu-f64"),
           pytest.param(["--target", "cpu"], np.float32, 1e-3, id="cpu"),
           pytest.param(["--target", "cuda"], np.float32, 1e-3, id="cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("flags, real, tolerance", TARGETS)
@pytest.mark.parametrize("lines, out", [pytest.param(COMPILED, [3], id="augmented"), pytest.param(PADDED, [4, 8, 6], id="padded")])
def test_a_step_of_training(lines, out, flags, real, tolerance, tmp_path):
    """Each tensor after a step on a partial batch, and what it predicts then, as the graph has it. The first examples of an
    epoch are those that its permutation begins with."""
    text, path, rows = model(lines, "f32[2, 7, 6]", str(out)[1:-1], "sgd(0.1)", 8), tmp_path / "library.so", 5
    graphs = dump(tmp_path, text, "grad")
    leaves = leaves_of(graphs["train"])
    made = run_mtc(tmp_path / "case.mt", "--shared", "-o", path, *flags)
    assert made.returncode == 0, made.stderr
    library = Library(path, real)
    data = {name: leaves[name][:rows].astype(np.float32) for name in ("image", "probe")}
    library.set_data(list(data.values()))
    weights = [name for name in leaves if name not in data]
    leaves = {name: value.astype(np.float32) for name, value in leaves.items()}
    for name in weights:
        library.set(name, shown(leaves[name]))
    order = permutation(shuffle_key(1, 0), rows)
    batch = {name: np.concatenate([values[order], np.repeat(values[order][:1], 8 - rows, 0)]) for name, values in data.items()}
    loss = library.train(1, 1)[0, 0]
    result = evaluate(graphs["train"], leaves | batch, rows=rows, random=lambda stream, shape: uniform(1, stream, 1, shape))
    assert loss == pytest.approx(result.reports["loss"], rel=tolerance)
    for name in weights:
        expected = shown(result.assigned[name])
        np.testing.assert_allclose(library.get(name, expected.shape), expected, rtol=tolerance, atol=tolerance, err_msg=name)
    whole = {name: np.concatenate([values, np.zeros((8 - rows, *values.shape[1:]))]) for name, values in data.items()}
    expected = evaluate(graphs["eval"], leaves | result.assigned | whole, rows=rows).output
    predicted = library.predict(list(data.values()), int(np.prod(out)))
    np.testing.assert_allclose(predicted, expected[:rows].reshape(rows, -1), rtol=tolerance, atol=tolerance)
    library.close()


# ---- what the user sees ----

def test_summary_has_the_shapes_of_the_language(tmp_path):
    lines = ["a = relu(conv2d(image, 6, 3, padding = 1, stride = 2))", "b = batch_norm(conv2d(a, 4, 2))", "w = weight([4, 1, 1])",
             "h = linear(flatten(b * w), 3)"]
    dump(tmp_path, model(lines), "simple")
    for flags in ([], ["--precision", "bf16"]):
        shown = run_mtc("--summary", *flags, tmp_path / "case.mt").stdout
        shapes = {name: shape for name, shape in re.findall(r"^ +\d+  (\S+) +(f32(?:\[[^]]*\])?)", shown, re.M)}
        assert {name: shapes[name] for name in "abwh"} == {"a": "f32[6, 3, 2]", "b": "f32[4, 2, 1]", "w": "f32[4, 1, 1]", "h": "f32[3]"}
        assert "bf16[" not in shown


def test_names_of_torchvision():
    """The tensors of the state dict of resnet18, in its order."""
    done = run_mtc("--emit=graph", "models/resnet18.mt", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    made = dict.fromkeys(re.findall(r"= weight index=\d+ : \S+(?: \d+\])* (\S+)", re.sub(r", ", ",", done.stdout)))
    norm = ["weight", "bias", "running_mean", "running_var"]
    expected = ["conv1.weight", *(f"bn1.{n}" for n in norm)]
    for stage in range(1, 5):
        for block in range(2):
            prefix = f"layer{stage}.{block}"
            for k in (1, 2):
                expected += [f"{prefix}.conv{k}.weight", *(f"{prefix}.bn{k}.{n}" for n in norm)]
            if stage > 1 and block == 0:
                expected += [f"{prefix}.downsample.0.weight", *(f"{prefix}.downsample.1.{n}" for n in norm)]
    assert set(made) == {*expected, "fc.weight", "fc.bias"}
