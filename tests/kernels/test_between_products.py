"""Operators between products: gradients of compiled programs, in each precision, against the graph in float64.

What an operator reads is made of multiply-adds, by the kernel of one pass and, computed again, by that of another; and products read
what it gives. Maxima, sorts and choices find their elements again by comparing the two: were one of them rounded otherwise, gradients
would go to nobody, or to the wrong one."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import MTC
from evaluator import evaluate, parse, to_bf16
from library import Library

pytestmark = pytest.mark.quick

BATCH = 5

# Of s and t, [4, 6] for each example, and of i and j, [3, 4, 4]: all are sums of products, of which i and j are images.
OPERATORS = {
    "abs": "abs(s) * t",
    "floor": "s * floor(2 * t)",
    "maximum": "maximum(s, t)",
    "clamp": "clamp(s, low = t, high = 1)",
    "where": "where(s > t, s * t, s)",
    "equal": "where(s == max(s, axis = 1, keep = true), s * t, t)",
    "variance": "variance(s, axis = 0)",
    "max": "max(s) * t",
    "max_columns": "max(s, axis = 1) * t[:, 0]",
    "max_of_products": "max(s * t + s, axis = 1)",
    "max_between_maps": "relu(max(2 * s - t, axis = 0)) * s",
    "min": "min(s, axis = 1, keep = true) * t",
    "prod": "prod(s, axis = 0)",
    "softmax": "softmax(s, axis = 0) * t",
    "layer_norm": "layer_norm(s) * t",
    "cumsum": "cumsum(s, axis = 1) * t",
    "argmax": "gather(t, argmax(s, axis = 0)) * s[0, 0]",
    "sort": "sort(s, axis = 0) * t",
    "argsort": "s * argsort(t)",
    "stack": "max(stack([s, t, s * t]), axis = 0)",
    "max_pool": "max_pool(i, 2) + max_pool(i * j, 2)",
    "max_pool_overlapping": "max_pool(i * i + j, 3, stride = 1, padding = 1) * i",
    "pool_feeds_product": "conv2d(max_pool(i * j + i, 2), 3, 2, padding = 1)",
    "product_pooled": "max_pool(relu(conv2d(i, 3, 3, padding = 1)), 2)",
}

DATA = """data {
  train = idx("u", "v", "target")
  u : f32[4, 5]
  v : f32[4, 6]
  target : f32[3]
}
"""

SHARED = """
  p = linear(u, 6)
  q = linear(u, 6, bias = false)
"""
PIECE = """
  NAME_a = weight([4, 6])
  NAME_b = weight([4, 6])
  NAME_s = p * NAME_a + v * NAME_b
  NAME_t = q * NAME_b - p * v
  NAME_y = OPERATOR
  NAME_z = linear(flatten(NAME_y), 3, bias = false) + NAME_t[0, :3] + NAME_s[1, :3]
"""
IMAGES = """
  NAME_i = reshape(concat([NAME_s, NAME_t]), [3, 4, 4])
  NAME_j = reshape(concat([NAME_t * NAME_a + p, NAME_s]), [3, 4, 4])
"""


def piece(name):
    """The lines of one operator."""
    operator = re.sub(r"\b([stij])\b", rf"{name}_\1", OPERATORS[name])
    images = IMAGES if re.search(r"\b[ij]\b", OPERATORS[name]) else ""
    return PIECE.replace("  NAME_y", images + "  NAME_y").replace("OPERATOR", operator).replace("NAME", name)


def model(names):
    losses = " + ".join(f"mse({name}_z, target)" for name in names)
    train = f"loss = {losses}\n predict = p\n optimizer = sgd(0, momentum = 0.9)\n batch = {BATCH}\n epochs = 1"
    return f"{DATA}\nmodel {{\n{SHARED}{''.join(map(piece, names))}\n}}\ntrain {{\n{train}\n}}\n"


# Those that find elements by comparing.
CHOICES = ["max", "max_columns", "max_of_products", "max_between_maps", "equal", "sort", "pool_feeds_product"]

# Of the largest element of a gradient. What a draw may lose where its numbers are rounded to 8 bits is half of what bf16 may.
TOLERANCE = {"fp32": 1e-5, "fp16": 1e-2, "bf16": 5e-2}


def mtc(*arguments, **environment):
    run = subprocess.run([MTC, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment})
    assert run.returncode == 0, run.stderr
    return run.stdout


def gradients(graph, leaves):
    """In float64."""
    states = {node.name: np.zeros(node.shape) for node in graph if node.op == "state"}
    assigned = evaluate(graph, leaves | states).assigned
    return {name.removesuffix(".momentum"): value for name, value in assigned.items() if name.endswith(".momentum")}


def distance(gradient, wanted):
    return np.abs(gradient - wanted).max() / np.abs(wanted).max()


def owner(weight):
    """The operator whose weight it is; the shared ones are their own."""
    return re.sub(r"_(a|b|z\.weight|y\.weight|y\.bias)$", "", weight)


def draw(graph):
    """Fields and weights at which no gradient jumps, not even where all are rounded to 8 bits: an operator that does takes its next draw."""
    random = np.random.default_rng(3)
    fields = {node.name: random.uniform(-1, 1, node.shape).astype(np.float32) for node in graph if node.op == "field"}
    shapes = {node.name: node.shape for node in graph if node.op == "weight"}
    weights, unsettled = {}, {owner(name) for name in shapes}
    for seed in range(200):
        for place, name in enumerate(shapes):
            if owner(name) in unsettled:
                weights[name] = np.random.default_rng([seed, place]).uniform(-1, 1, shapes[name]).astype(np.float32)
        leaves = fields | weights
        exact, near = gradients(graph, leaves), gradients(graph, {name: to_bf16(value) for name, value in leaves.items()})
        far = {owner(name) for name in weights if distance(near[name], exact[name]) > TOLERANCE["bf16"] / 2}
        if not far:
            return fields, weights, exact
        unsettled = far - {"p.weight", "p.bias", "q.weight"}
    raise AssertionError(f"no such draw of {unsettled}")


def in_files(value):
    """Filters have their channels last in graphs alone."""
    return value.transpose(0, 3, 1, 2) if value.ndim == 4 else value


def check(folder, names, precision, **environment):
    (folder / "m.mt").write_text(model(names))
    mtc(folder / "m.mt", "--shared", "-o", folder / "m.so", "--target", "cpu", "--precision", precision, "--keep", folder, "--no-cache",
        **environment)
    fields, weights, wanted = draw(parse(mtc(folder / "m.mt", "--emit=grad"))["train"])
    library = Library(folder / "m.so")
    library.set_data(fields.values())
    for name, value in weights.items():
        library.set(name, in_files(value))
    library.train(1, 1)
    far = {name: distance(library.get(f"{name}.momentum", in_files(value).shape), in_files(wanted[name])) for name, value in weights.items()}
    library.close()
    assert {name: value for name, value in far.items() if not value < TOLERANCE[precision]} == {}


@pytest.mark.full  # vector code is what fuses otherwise than the elements behind it
@pytest.mark.parametrize("compiler", ["cc", "clang"])
def test_choices_find_their_elements(tmp_path, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    check(tmp_path, CHOICES if compiler == "cc" else CHOICES[:4], "fp32", **{"CC": compiler} if compiler == "clang" else {})


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_gradients(tmp_path, precision):
    check(tmp_path, OPERATORS if precision == "bf16" else CHOICES, precision)
