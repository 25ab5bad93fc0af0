"""`mtc import`: what becomes of an ONNX file. Files are written by tests/support/onnx_file.py; the node tests of the package onnx
are run where it is installed. Texts are evaluated in NumPy (evaluator.py): what they compute must be what ONNX says."""

import errno
import importlib
import json
import os
import pkgutil
import re
import resource
import subprocess
import warnings
from collections import defaultdict

import numpy as np
import pytest

import onnx_file as onnx
from conftest import MTC, ROOT
from evaluator import evaluate, parse

pytestmark = pytest.mark.quick
F4 = np.float32


def some(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(F4)


@pytest.fixture
def import_file(mtc, tmp_path):
    """import_file(bytes, *flags): the text that it becomes; with `code`, the report of a refusal."""

    def run(content, *flags, code=0, name="net"):
        (tmp_path / f"{name}.onnx").write_bytes(content)
        done = mtc("import", f"{name}.onnx", *flags, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        text = tmp_path / f"{name}.mt"
        if code:
            assert not text.exists()
            return done.stderr.removeprefix(f"mtc: error: {name}.onnx: ").strip()
        assert mtc("--format", "--check", text.name, cwd=tmp_path).returncode == 0
        return text.read_text()

    return run


def weights_of(path):
    if not path.exists():
        return {}
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    entries = json.loads(raw[8:begin])
    return {name: np.frombuffer(raw[begin + e["data_offsets"][0]:begin + e["data_offsets"][1]], "<f4").reshape(e["shape"])
            for name, e in entries.items() if name != "__metadata__"}


def fields_of(text):
    data = text[text.index("data {"):text.index("model {")]
    return dict(re.findall(r"^  (\w+) *: (\S.*)$", data, re.M))


def block(text, name):
    return re.search(rf"^{name} {{\n(.*?)^}}", text, re.M | re.S)[1]


class Evaluated:
    """What the text in a folder predicts, whatever it is: also where nothing in it can be trained."""

    def __init__(self, mtc, folder):
        self.mtc, self.folder = mtc, folder

    def graph(self, text, prediction, batch):
        model = text[:text.index("train {")].replace("model {\n", "model {\n  trained = weight([1])\n")
        train = f"train {{\n  loss = sum(trained)\n  optimizer = sgd(0.1)\n  predict = {prediction}\n  batch = {batch}\n}}\n"
        (self.folder / "evaluated.mt").write_text(model + train)
        done = self.mtc("--emit=graph", "evaluated.mt", cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __call__(self, text, inputs, name="net", prediction=None):
        fields = fields_of(text)
        sizes = re.search(r"\[([\d, ]*)\]$", next(iter(fields.values()))) if fields else None
        whole = np.ndim(inputs[0]) == (len(sizes[1].split(",")) if sizes else 0)  # all of it is one example
        graph = self.graph(text, prediction or re.search(r"predict += (.*)", text)[1], 1 if whole else len(inputs[0]))
        leaves = {"trained": np.zeros(1), **{field: np.asarray(x)[None] if whole else x for field, x in zip(fields, inputs)}}
        for dims, field in re.findall(r"= field index=\d+ : \w+(?:\[(.*?)\])? (\w+)", graph):
            leaves.setdefault(field, np.zeros([int(size) for size in dims.split(",") if size.strip()]))
        for layer, array in weights_of(self.folder / f"{name}.safetensors").items():
            leaves[layer] = in_graph(array, re.search(rf": f32\[(.*)\] {re.escape(layer)}(?: |$)", graph, re.M), text, layer)
        result = evaluate(parse(graph)["eval"], leaves).output
        return result[0] if whole else result


def in_graph(array, match, text, layer):
    """Filters lie with their channels last; those of sequences are filters of images with one row."""
    shape = tuple(int(size) for size in match[1].split(","))
    path = layer.removesuffix(".weight")
    call = rf"(?:^  {re.escape(path)} *=.*|.*name = \"{re.escape(path)}\".*)$"
    if layer.endswith(".weight") and any("conv" in line for line in re.findall(call, text, re.M)):
        array = array[:, :, None] if array.ndim == 3 else array
        order = (0, 2, 3, 1) if array.shape[0] == shape[0] else (2, 3, 1, 0)  # with a filter for each channel, that is last
        array = array.transpose(order)
    assert array.shape == shape
    return array.astype(float)


@pytest.fixture
def evaluated(mtc, tmp_path):
    return Evaluated(mtc, tmp_path)


# ---- texts ----


def perceptron():
    return onnx.model(
        [onnx.node("Flatten", ["image"], ["flat"], axis=1), onnx.node("Cast", ["flat"], ["real"], to=1),
         onnx.node("Div", ["real", "scale"], ["scaled"]),
         onnx.node("Gemm", ["scaled", "fc1.weight", "fc1.bias"], ["/fc1/Gemm_output_0"], "/fc1/Gemm", transB=1),
         onnx.node("Relu", ["/fc1/Gemm_output_0"], ["/Relu_output_0"], "/Relu"),
         onnx.node("MatMul", ["/Relu_output_0", "onnx::MatMul_9"], ["/fc2/MatMul_output_0"]),
         onnx.node("Add", ["fc2.bias", "/fc2/MatMul_output_0"], ["scores"]), onnx.node("Softmax", ["scores"], ["output"], axis=-1)],
        [onnx.value("image", ["batch", 2, 3], 2)], [onnx.value("output", ["batch", 3])],
        [onnx.tensor("scale", F4(255)), onnx.tensor("fc1.weight", some(4, 6)), onnx.tensor("fc1.bias", some(4)),
         onnx.tensor("onnx::MatMul_9", some(4, 3)), onnx.tensor("fc2.bias", some(3))])


def test_a_perceptron(import_file, tmp_path):
    assert import_file(perceptron()) == """\
# Imported from net.onnx, made by tests 1.
# Its weights are in net.safetensors: ./PROGRAM predict --load net.safetensors, or --init-from net.safetensors to train on.

data {
  # To be edited: where the examples are, and what is known of each. The last field is what the network is to say.
  train = npz("train.npz")
  image : u8[2, 3]
  label : class[3]
}

model {
  fc1    = relu(linear(flatten(image) / 255, 4))
  fc2    = linear(fc1, 3)
  output = softmax(fc2)
}

train {
  # To be edited: the loss, and how it is made smaller.
  loss      = cross_entropy(fc2, label)
  metric    = accuracy(fc2, label)
  predict   = output
  optimizer = adam(1e-4)
}
"""
    weights = weights_of(tmp_path / "net.safetensors")
    assert sorted(weights) == ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"]
    assert np.array_equal(weights["fc2.weight"], some(4, 3).T)  # as PyTorch's layers have it


def residual():
    norm = [f"bn.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
    return onnx.model(
        [onnx.node("Conv", ["x", "stem.0.weight"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
         onnx.node("BatchNormalization", ["c", *norm], ["n"], epsilon=0.125), onnx.node("Sigmoid", ["n"], ["s"]), onnx.node("Mul", ["n", "s"], ["silu"]),
         onnx.node("Conv", ["silu", "w"], ["/block/conv/Conv_output_0"], group=4, dilations=[2, 1], pads=[2, 1, 2, 1]),
         onnx.node("Add", ["/block/conv/Conv_output_0", "silu"], ["sum"]), onnx.node("GlobalAveragePool", ["sum"], ["pooled"]),
         onnx.node("Shape", ["pooled"], ["shape"]), onnx.node("Gather", ["shape", "zero"], ["n_examples"], axis=0),
         onnx.node("Unsqueeze", ["n_examples", "first"], ["row"]), onnx.node("Concat", ["row", "rest"], ["target"], axis=0),
         onnx.node("Reshape", ["pooled", "target"], ["y"])],
        [onnx.value("x", ["N", 3, 8, 8])], [onnx.value("y", ["N", 4])],
        [onnx.tensor("stem.0.weight", some(4, 3, 3, 3)), onnx.tensor("w", some(4, 1, 3, 3, seed=1)),
         *[onnx.tensor(name, np.abs(some(4, seed=2)) + F4(0.5)) for name in norm], onnx.tensor("zero", np.int64(0)),
         onnx.tensor("first", np.int64([0])), onnx.tensor("rest", np.int64([-1]))])


def test_a_residual_network(import_file, evaluated):
    text = import_file(residual())
    assert block(text, "model") == """\
  stem_0     = conv2d(x, 4, 3, stride = 2, padding = 1, bias = false, name = "stem.0")
  bn         = batch_norm(stem_0, eps = 0.125)
  silu       = bn * sigmoid(bn)
  block_conv = conv2d(silu, 4, 3, padding = [2, 1], dilation = [2, 1], groups = 4, bias = false, name = "block.conv")
  pooled     = global_avg_pool(block_conv + silu)
"""
    x = some(2, 3, 8, 8, seed=3)
    assert evaluated(text, [x]) == pytest.approx(reference_of_residual(x), rel=1e-5)


def windows(x, kernel, stride, padding, dilation):
    """[N, C, OH, OW, KH, KW]"""
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    seen = np.lib.stride_tricks.sliding_window_view(x, span, axis=(2, 3))
    return seen[:, :, ::stride, ::stride, ::dilation[0], ::dilation[1]]


def reference_of_residual(x):
    scale = np.abs(some(4, seed=2)) + F4(0.5)
    column = scale.astype(float)[:, None, None]
    c = np.einsum("nchwij,ocij->nohw", windows(x, (3, 3), 2, (1, 1), (1, 1)), some(4, 3, 3, 3))
    n = (c - column) / np.sqrt(column + 0.125) * column + column
    silu = n / (1 + np.exp(-n))
    deep = np.einsum("nchwij,cij->nchw", windows(silu, (3, 3), 1, (2, 1), (2, 1)), some(4, 1, 3, 3, seed=1)[:, 0])
    return (deep + silu).mean(axis=(2, 3))


@pytest.mark.parametrize("shape, layer", [((4, 1, 1), True), ((1, 4, 1, 1), True), ((4,), False), ((1, 1, 4), False)])
def test_a_bias_of_filters(import_file, evaluated, shape, layer):
    """What is added to a Conv is its bias where there is a number for each channel, not one for each column."""
    text = import_file(onnx.model([onnx.node("Conv", ["x", "w"], ["c"]), onnx.node("Add", ["c", "b"], ["y"])], [onnx.value("x", ["N", 3, 4, 4])],
                                  [onnx.value("y", ["N"])], [onnx.tensor("w", some(4, 3, 1, 1)), onnx.tensor("b", some(*shape, seed=1))]))
    x = some(2, 3, 4, 4, seed=2)
    assert ("bias = false" not in text) == layer
    assert evaluated(text, [x]) == pytest.approx(np.einsum("nchw,oc->nohw", x, some(4, 3)) + some(*shape, seed=1), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("op, flags, pads", [
    ("MaxPool", {}, [0, 0, 0, 0]), ("MaxPool", {"ceil_mode": 1}, [0, 1, 2, 1]), ("AveragePool", {}, [1, 1, 1, 1]),
    ("AveragePool", {"count_include_pad": 1}, [0, 1, 1, 0]), ("AveragePool", {"ceil_mode": 1}, [1, 0, 0, 0]),
    ("AveragePool", {"ceil_mode": 1, "count_include_pad": 1}, [1, 1, 1, 1])])
def test_pools(import_file, evaluated, op, flags, pads):
    text = import_file(onnx.model([onnx.node(op, ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], pads=pads, **flags)],
                                  [onnx.value("x", ["N", 2, 7, 6])], [onnx.value("y", ["N"])]))
    x = some(2, 2, 7, 6)
    top, left, bottom, right = pads
    inside = np.pad(np.ones_like(x), [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=flags.get("count_include_pad", 0))
    beyond = flags.get("ceil_mode", 0)  # so many rows and columns more than the pads say, which no mean counts
    numbers = np.pad(x, [(0, 0), (0, 0), (top, bottom + beyond), (left, right + beyond)], constant_values=-np.inf if op == "MaxPool" else 0)
    counted = np.pad(inside, [(0, 0), (0, 0), (0, beyond), (0, beyond)])
    seen, counts = (windows(array, (3, 2), 2, (0, 0), (1, 1)) for array in (numbers, counted))
    expected = seen.max(axis=(4, 5)) if op == "MaxPool" else seen.sum(axis=(4, 5)) / counts.sum(axis=(4, 5))
    got = evaluated(text, [x])
    rows, columns = got.shape[2:]
    assert got == pytest.approx(expected[:, :, :rows, :columns], rel=1e-5)
    sizes = [(size + before + after - kernel + beyond) / 2 for size, before, after, kernel in ((7, top, bottom, 3), (6, left, right, 2))]
    assert (rows, columns) == tuple(int(size) + 1 for size in sizes)


def test_heads_and_batch_in_one_axis(import_file, evaluated):
    """As PyTorch exports attention: rows first, then the batch times the heads."""
    text = import_file(onnx.model(
        [onnx.node("Transpose", ["x"], ["rows"], perm=[1, 0, 2]), onnx.node("Shape", ["rows"], ["shape"]),
         onnx.node("Gather", ["shape", "one"], ["n"]), onnx.node("Mul", ["n", "two"], ["n2"]), onnx.node("Unsqueeze", ["n2", "first"], ["n2s"]),
         onnx.node("Concat", ["three", "n2s", "four"], ["split"], axis=0), onnx.node("Reshape", ["rows", "split"], ["q"]),
         onnx.node("Transpose", ["q"], ["heads"], perm=[1, 0, 2]), onnx.node("Transpose", ["q"], ["keys"], perm=[1, 2, 0]),
         onnx.node("MatMul", ["heads", "keys"], ["scores"]), onnx.node("Softmax", ["scores"], ["mixed"], axis=-1),
         onnx.node("MatMul", ["mixed", "heads"], ["seen"]), onnx.node("Transpose", ["seen"], ["back"], perm=[1, 0, 2]),
         onnx.node("Reshape", ["back", "joined"], ["all"]), onnx.node("Transpose", ["all"], ["y"], perm=[1, 0, 2])],
        [onnx.value("x", ["N", 3, 8])], [onnx.value("y", ["N", 3, 8])],
        [onnx.tensor(name, np.int64(number)) for name, number in
         [("one", 1), ("two", 2), ("first", [0]), ("three", [3]), ("four", [4]), ("joined", [3, -1, 8])]]))
    x = some(2, 3, 8)
    heads = x.reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)
    weights = np.exp(heads @ heads.swapaxes(-1, -2))
    expected = (weights / weights.sum(-1, keepdims=True) @ heads).transpose(0, 2, 1, 3).reshape(2, 3, 8)
    assert evaluated(text, [x]) == pytest.approx(expected, rel=1e-5)


def test_a_diagonal_beyond_the_matrix(import_file):
    text = import_file(one("Trilu", ["x", "k"], [onnx.tensor("k", np.int64(-(1 << 60)))]))
    assert block(text, "model") == "  y = where(iota(3) - reshape(iota(2), [2, 1]) >= -2147483647, x, 0)\n"


def test_a_causal_mask_is_a_formula(import_file, evaluated):
    text = import_file(onnx.model(
        [onnx.node("Range", ["zero", "n", "one"], ["place"]), onnx.node("Unsqueeze", ["place", "last"], ["row"]),
         onnx.node("LessOrEqual", ["place", "row"], ["mask"]), onnx.node("Where", ["mask", "x", "low"], ["scores"]),
         onnx.node("Softmax", ["scores"], ["y"], axis=-1)],
        [onnx.value("x", ["N", 40, 40])], [onnx.value("y", ["N", 40, 40])],
        [onnx.tensor("zero", np.int64(0)), onnx.tensor("n", np.int64(40)), onnx.tensor("one", np.int64(1)), onnx.tensor("last", np.int64([1])),
         onnx.tensor("low", F4(-1e30))]))
    assert "where(iota(40) <= reshape(iota(40), [40, 1]), x, -1e+30)" in text
    x = some(2, 40, 40)
    e = np.tril(np.exp(x))
    assert evaluated(text, [x]) == pytest.approx(e / e.sum(-1, keepdims=True), rel=1e-5, abs=1e-7)


def test_tokens_are_classes_and_tied_tables_one_weight(import_file, tmp_path):
    text = import_file(onnx.model(
        [onnx.node("Gather", ["wte", "tokens"], ["h"]), onnx.node("Transpose", ["wte"], ["turned"], perm=[1, 0]),
         onnx.node("MatMul", ["h", "turned"], ["scores"])],
        [onnx.value("tokens", ["N", "T"], 7)], [onnx.value("scores", ["N", "T", 5])], [onnx.tensor("wte", some(5, 2))]), "--set", "T=4")
    assert fields_of(text)["tokens"] == "class[5][4]"
    assert block(text, "model") == """\
  wte    = weight([5, 2])
  scores = matmul(gather(wte, tokens), transpose(wte))
"""
    assert list(weights_of(tmp_path / "net.safetensors")) == ["wte"]


def test_it_compiles_predicts_and_trains_on(import_file, compile_model, tmp_path):
    import_file(perceptron())
    program = compile_model(tmp_path / "net.mt")
    image = np.random.default_rng(1).integers(0, 256, (40, 2, 3), np.uint8)
    np.savez(tmp_path / "train.npz", image=image, label=(image[:, 0, 0] // 86).astype(np.uint8))
    np.save(tmp_path / "image.npy", image)
    program("predict", "--load", tmp_path / "net.safetensors", "--input", tmp_path / "image.npy", "--output", tmp_path / "y.npy")
    h = np.maximum(image.reshape(40, 6) / 255 @ some(4, 6).T + some(4), 0)
    e = np.exp(h @ some(4, 3) + some(3))
    assert np.load(tmp_path / "y.npy") == pytest.approx(e / e.sum(1, keepdims=True), rel=1e-5)
    log = tmp_path / "log.jsonl"
    program("--data", tmp_path, "--init-from", tmp_path / "net.safetensors", "--epochs", 2, "--log", log, "--quiet")
    assert len([line for line in log.read_text().splitlines() if '"epoch"' in line]) >= 2


# ---- files ----


def test_what_is_there_is_not_replaced_unasked(import_file, mtc, tmp_path):
    text = import_file(perceptron())
    done = mtc("import", "net.onnx", cwd=tmp_path)
    assert done.returncode == 73
    assert done.stderr == "mtc: error: cannot write 'net.mt': it is there already; --force replaces it, -o chooses another name\n"
    (tmp_path / "net.mt").unlink()
    assert "'net.safetensors': it is there already" in mtc("import", "net.onnx", cwd=tmp_path).stderr
    assert not (tmp_path / "net.mt").exists()
    assert mtc("import", "net.onnx", "--force", cwd=tmp_path).returncode == 0
    assert (tmp_path / "net.mt").read_text() == text
    assert mtc("import", "net.onnx", "-o", "net.onnx", "--force", cwd=tmp_path).returncode == 64
    (tmp_path / "net.safetensors").write_text("mine")
    assert "it would replace a checkpoint of a training, or a file that is no safetensors" in mtc("import", "net.onnx", "--force", cwd=tmp_path).stderr


def relu_of(initializer):
    return onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [onnx.value("x", ["N", 2])], [onnx.value("y", ["N", 2])], [initializer])


def test_data_beside_the_model(import_file, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"skip" + np.array([3, 4], F4).tobytes())
    import_file(relu_of(onnx.external("w", [2], location="data.bin", offset=4, length=8)))
    assert np.array_equal(weights_of(tmp_path / "net.safetensors")["w"], [3, 4])


OUTSIDE = "which is not in the folder of the model: it is not read. The file is '{}'; copy it into that folder, and let the model say its name alone"


@pytest.mark.parametrize("entries, why", [
    ({"location": "../secret"}, "its data are in '../secret', " + OUTSIDE),
    ({"location": "link"}, "its data are in 'link', " + OUTSIDE),
    ({"location": "none"}, "its data are in 'none', beside the model: No such file or directory"),
    ({}, "its data are in another file, and none is named"),
    ({"location": "short"}, "its data are 8 bytes from byte 0 on of 'short', which has 4"),
    ({"location": "short", "offset": "-1"}, "the offset of its data in another file is '-1', which is no number of bytes"),
])
def test_data_elsewhere(import_file, tmp_path_factory, tmp_path, entries, why):
    (tmp_path.parent / "secret").write_bytes(bytes(8))
    (tmp_path / "short").write_bytes(bytes(4))
    os.symlink(tmp_path.parent / "secret", tmp_path / "link")
    secret = os.path.realpath(tmp_path.parent / "secret")
    assert import_file(relu_of(onnx.external("w", [2], **entries)), code=65) == f"tensor 'w': {why.format(secret)}"


# ---- refusals ----

X, Y = [onnx.value("x", ["N", 2, 3])], [onnx.value("y", ["N"])]
IMAGE = [onnx.value("x", ["N", 1, 5, 5])]
FILTER = onnx.tensor("w", some(1, 1, 3, 3))
HUGE = 1 << 40


def one(op, inputs=("x",), initializers=(), x=X, version=20, **attributes):
    return onnx.model([onnx.node(op, list(inputs), ["y"], "node", **attributes)], x, Y, initializers, version)


def ints(name, *numbers):
    return onnx.tensor(name, np.array(numbers, np.int64))


REFUSED = {
    "unknown": (one("NonZero"), "node 0, 'node' (NonZero): mtc does not know this operator; docs/onnx.md lists those that it knows, and how to do "
                                "without others"),
    "misspelt": (one("Rellu"), "node 0, 'node' (Rellu): mtc does not know this operator; did you mean 'Relu'?; docs/onnx.md lists those that it "
                               "knows, and how to do without others"),
    "version": (one("Relu", version=3), "its operators are those of version 3; mtc knows 7 to 28. onnx.version_converter makes another version of a "
                                        "file"),
    "missing": (one("Add", ["x", "nowhere"]), "node 0, 'node' (Add): its input 1, 'nowhere', is made nowhere: it is no input, no initializer and no "
                                              "node's output"),
    "circle": (onnx.model([onnx.node("Add", ["x", "b"], ["a"], "first"), onnx.node("Relu", ["a"], ["b"])], X, [onnx.value("b", ["N"])]),
               "node 0, 'first' (Add): its input 1, 'b', is made behind it: nodes stand behind those whose outputs they read, and not in a circle"),
    "twice": (onnx.model([onnx.node("Relu", ["x"], ["y"]), onnx.node("Relu", ["x"], ["y"], "second")], X, Y),
              "node 1, 'second' (Relu): 'y' is made twice: every name is that of one value"),
    "output": (onnx.model([onnx.node("Relu", ["x"], ["z"])], X, Y), "the output 'y' is made nowhere"),
    "name": (onnx.model([onnx.node("Relu", ["x"], [b"\xff\xfe"])], X, Y), "node 0, '\\377\\376' (Relu): the name of an output is no UTF-8: '\\377\\376'"),
    "attribute": (one("Relu", fast=1), "node 0, 'node' (Relu): it has an attribute 'fast', which mtc does not know of this operator"),
    "attribute type": (one("Softmax", axis=1.5), "node 0, 'node' (Softmax): attribute axis is no whole number"),
    "axis": (one("Softmax", axis=3), "node 0, 'node' (Softmax): attribute axis is 3, and there are 3 axes"),
    "batch": (one("Softmax", axis=0), "node 0, 'node' (Softmax): it works along axis 0 of [batch, 2, 3], the batch: the text speaks of one example"),
    "inputs": (one("Add"), "node 0, 'node' (Add): it has 1 inputs, where 2 to 2 are expected"),
    "shapes": (one("Add", ["x", "w"], [onnx.tensor("w", some(4))]), "node 0, 'node' (Add): shapes [batch, 2, 3] and [4] do not go together"),
    "open axis": (one("Relu", x=[onnx.value("x", ["N", "T"])]), "input 'x': axis 1 is 'T', any size; --set T=N says which"),
    "negative": (one("Relu", x=[onnx.value("x", ["N", -2])]), "input 'x': axis 1 has the size -2"),
    "huge": (one("Relu", x=[onnx.value("x", ["N", HUGE])]), f"the shape [1, {HUGE}] is too large: an axis has at most 2147483647 elements, a tensor "
                                                            "2^40"),
    "raw data": (one("Add", ["x", "w"], [onnx.raw_tensor("w", 1, [3], bytes(11))]), "tensor 'w': [3] of FLOAT has 3 elements, but its data have 2"),
    "more raw data": (one("Add", ["x", "w"], [onnx.raw_tensor("w", 1, [3], bytes(16))]),
                      "tensor 'w': [3] of FLOAT has 3 elements of 4 bytes, but its data have 16 bytes"),
    "tensor sizes": (one("Add", ["x", "w"], [onnx.raw_tensor("w", 1, [1 << 33, 1 << 33], bytes(4))]),
                     "the shape [8589934592, 8589934592] is too large: an axis has at most 2147483647 elements, a tensor 2^40"),
    "tensor size": (one("Add", ["x", "w"], [onnx.raw_tensor("w", 1, [-3], b"")]), "tensor 'w': axis 0 has the size -3"),
    "tensor type": (one("Add", ["x", "w"], [onnx.raw_tensor("w", 8, [1], b"")]),
                    "tensor 'w' has elements of type 8, which is none of numbers that mtc knows (FLOAT is 1, INT64 7)"),
    "empty": (one("Add", ["x", "w"], [onnx.raw_tensor("w", 1, [0, 3], b"")]), "node 0, 'node' (Add): shapes [batch, 2, 3] and [0, 3] do not go together"),
    "kernel": (one("Conv", ["x", "w"], [FILTER], IMAGE, kernel_shape=[5, 5]),
               "node 0, 'node' (Conv): attribute kernel_shape is [5, 5], and its filter [1, 1, 3, 3]"),
    "channels": (one("Conv", ["x", "w"], [onnx.tensor("w", some(1, 2, 3, 3))], IMAGE),
                 "node 0, 'node' (Conv): its filter is [1, 2, 3, 3], for 1 channels in 1 groups"),
    "stride": (one("Conv", ["x", "w"], [FILTER], IMAGE, strides=[0, 1]), "node 0, 'node' (Conv): attribute strides has 0"),
    "pads": (one("Conv", ["x", "w"], [FILTER], IMAGE, pads=[-1, 0, 0, 0]), "node 0, 'node' (Conv): attribute pads has -1"),
    "kernel size": (one("MaxPool", x=IMAGE, kernel_shape=[9, 9]), "node 0, 'node' (MaxPool): its kernel spans 9, and the padded image has 5"),
    "reshape": (one("Reshape", ["x", "w"], [ints("w", 0, 7)]), "node 0, 'node' (Reshape): [batch, 2, 3] does not become [1, 7]"),
    "mixed": (one("Reshape", ["x", "w"], [ints("w", 2, -1)]), "node 0, 'node' (Reshape): [batch, 2, 3] becomes [2, 3], which mixes the batch with other "
                                                              "axes"),
    "modulo": (onnx.model([onnx.node("Mod", ["a", "zero"], ["m"], "node"), onnx.node("Reshape", ["x", "m"], ["y"])], X, Y, [ints("a", 4), ints("zero", 0)]),
               "node 0, 'node' (Mod): the remainder of a division by 0 is asked for"),
    "overflow": (onnx.model([onnx.node("Mul", ["a", "a"], ["m"], "node"), onnx.node("Reshape", ["x", "m"], ["y"])], X, Y, [ints("a", 1 << 62)]),
                 "node 0, 'node' (Mul): whole numbers that are computed when importing pass 64 bits"),
    "large constant": (onnx.model([onnx.node("ConstantOfShape", ["a"], ["m"], "node"), onnx.node("Add", ["x", "m"], ["y"])], X, Y,
                                  [ints("a", 1 << 20, 1 << 20)]),
                       "node 0, 'node' (ConstantOfShape): constants are computed when importing, and these are too large: [1048576, 1048576]"),
    "large whole number": (one("Mul", ["x", "w"], [ints("w", HUGE)]), f"node 0, 'node' (Mul): a constant is {HUGE}; whole numbers of the text have 32 "
                                                                      "bits"),
    "no ONNX": (b"solid cube", "is no ONNX file: its bytes are not the message that such a file is"),
    "no graph": (b"", "is no ONNX file: its bytes are not the message that such a file is"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(import_file, name):
    content, why = REFUSED[name]
    assert import_file(content, code=65) == why


def test_other_flags_are_not_of_import(mtc, tmp_path):
    assert mtc("import", "x.onnx", "--batch", "3", cwd=tmp_path).stderr == (
        "mtc: error: import has no option --batch; 'mtc import --help' lists its options\n")
    assert mtc("--force", "x.mt", cwd=tmp_path).stderr.startswith("mtc: error: --force is an option of 'mtc import'\n")
    assert mtc("import", "none.onnx", cwd=tmp_path).returncode == 66
    assert mtc("import", cwd=tmp_path).returncode == 64


# ---- what a file means ----


def test_a_file_name_is_no_code(import_file):
    text = import_file(perceptron(), name='net\n"; include "x')
    assert all(line.startswith("#") for line in text[:text.index("data {")].splitlines() if line)


def test_names_are_no_code(import_file, evaluated, tmp_path):
    """Whatever a file calls its values, the text has identifiers."""
    names = ['"; import os', "relu", "layer\n}", "\\\"", "linear", "é", "weight", "train { loss"]
    nodes = [onnx.node("Add", [before, "w\"\\n"], [name], name) for before, name in zip(["x", *names], names)]
    text = import_file(onnx.model(nodes, [onnx.value("x", ["N", 3])], [onnx.value(names[-1], ["N", 3])], [onnx.tensor('w"\\n', some(3))]))
    assert re.fullmatch(r"[\w\s.,:+*=()\[\]{}#/\"<>-]*", text[text.index("data {"):]) and "import os" not in text
    weight, = weights_of(tmp_path / "net.safetensors").values()
    x = some(2, 3, seed=1)
    assert np.allclose(evaluated(text, [x]), x + 8 * weight)


@pytest.mark.parametrize("edited", [False, True])
def test_a_full_disk_leaves_neither_file(tmp_path, edited):
    """The text has room, and the weights have not."""
    content = onnx.model([onnx.node("Add", ["x", "w"], ["y"])], [onnx.value("x", ["N", 900])], [onnx.value("y", ["N", 900])], [onnx.tensor("w", some(900))])
    (tmp_path / "net.onnx").write_bytes(content)
    if edited:
        (tmp_path / "net.mt").write_text("# mine\n")
    done = subprocess.run([MTC, "import", "net.onnx", "--force"], cwd=tmp_path, capture_output=True, text=True, restore_signals=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
    assert done.returncode == 74 and os.strerror(errno.EFBIG) in done.stderr, done.stderr
    assert sorted(os.listdir(tmp_path)) == (["net.mt", "net.onnx"] if edited else ["net.onnx"])
    assert not edited or (tmp_path / "net.mt").read_text() == "# mine\n"


def test_whole_numbers_stay_whole(import_file):
    """What ONNX divides as whole numbers is not divided as others."""
    wholes, y = [onnx.value("a", ["N", 4], 7), onnx.value("b", ["N", 4], 7)], [onnx.value("y", ["N", 4], 7)]
    for nodes in ([onnx.node("Max", ["a", "b"], ["m"])], [onnx.node("Min", ["a", "b"], ["m"])], [onnx.node("CumSum", ["a", "one"], ["m"])],
                  [onnx.node("ReduceSum", ["a", "axes"], ["m"])], [onnx.node("ReduceMax", ["a", "axes"], ["m"])],
                  [onnx.node("TopK", ["a", "axes"], ["m", "where"])]):
        content = onnx.model([*nodes, onnx.node("Div", ["m", "b"], ["y"], "node")], wholes, y, [onnx.tensor("axes", np.array([1])), onnx.tensor("one", np.int64(1))])
        assert import_file(content, code=65) == "node 1, 'node' (Div): of whole numbers that are computed when the model runs mtc has no such operator"
    mean = onnx.model([onnx.node("ReduceMean", ["a"], ["y"], "node", axes=[1])], wholes[:1], y, version=13)
    assert import_file(mean, code=65) == "node 0, 'node' (ReduceMean): of whole numbers mtc has no such operator"


def test_slices_from_behind(import_file, evaluated):
    """A beginning ahead of the first element is the first."""
    lists = [onnx.tensor(name, np.array([number])) for name, number in dict(start=-10, end=-20, axis=1, step=-1).items()]
    text = import_file(onnx.model([onnx.node("Slice", ["x", "start", "end", "axis", "step"], ["y"])], [onnx.value("x", ["N", 3])],
                                  [onnx.value("y", ["N", 1])], lists))
    x = some(2, 3)
    assert np.array_equal(evaluated(text, [x]), x[:, :1].astype(float))


def test_infinity_bounds_nothing(import_file):
    bounds = [onnx.tensor("low", F4(-np.inf)), onnx.tensor("high", F4(0.1))]
    content = onnx.model([onnx.node("Clip", ["x", "low", "high"], ["y"])], [onnx.value("x", ["N", 3])], [onnx.value("y", ["N", 3])], bounds)
    assert "= clamp(x, high = 0.1)" in import_file(content)


@pytest.mark.parametrize("kind, nodes, rows", [
    (7, [onnx.node("Add", ["x", "one"], ["i"])], lambda x: x + 1),
    (7, [onnx.node("Sub", ["five", "x"], ["d"]), onnx.node("Unsqueeze", ["d", "one"], ["u"]), onnx.node("Squeeze", ["u", "one"], ["i"])],
     lambda x: 5 - x),
    (1, [onnx.node("Cast", ["x"], ["i"], to=7)], np.trunc),
    (1, [onnx.node("Floor", ["x"], ["f"]), onnx.node("Cast", ["f"], ["c"], to=6), onnx.node("Max", ["c", "one"], ["i"])],
     lambda x: np.maximum(np.floor(x), 1))])
def test_indices_that_are_computed_in_f32(kind, nodes, rows, import_file, evaluated):
    """The language looks up by whole numbers: they become some again."""
    whole = [onnx.tensor("one", np.array([1])), onnx.tensor("five", np.array(5))]
    nodes = [*nodes, onnx.node("Gather", ["w", "i"], ["y"])]
    x = np.array([[0, 3, 1], [2, 2, 4]], np.int64) if kind == 7 else F4([[0.5, 3.2, 1], [2.9, 2, 4.4]])

    def content(size):
        return onnx.model(nodes, [onnx.value("x", ["N", 3], kind)], [onnx.value("y", ["N", 3, 2])], [*whole, onnx.tensor("w", some(size, 2))])

    text = import_file(content(6), "--force")
    assert "== iota(6))" in text
    np.testing.assert_allclose(evaluated(text, [x]), some(6, 2)[rows(x).astype(int)], rtol=1e-6)


def test_more_rows_than_are_compared(import_file):
    content = onnx.model([onnx.node("Add", ["x", "one"], ["i"]), onnx.node("Gather", ["w", "i"], ["y"], "look")], [onnx.value("x", ["N", 3], 7)],
                         [onnx.value("y", ["N", 3, 2])], [onnx.tensor("one", np.array(1)), onnx.tensor("w", some(5000, 2))])
    report = import_file(content, code=65)
    assert "node 1, 'look' (Gather): it looks up one of 5000 rows by an index that the language computes in f32" in report


def test_graphs_without_inputs(import_file):
    content = onnx.model([onnx.node("Relu", ["w"], ["y"])], [], [onnx.value("y", [3])], [onnx.tensor("w", some(3))])
    assert "it has no inputs: what it computes is the same for every example" in import_file(content, code=65)


@pytest.mark.parametrize("version, bounds", [(20, {}), (10, {"min": 2.0, "max": 0.5})])
def test_bounds_that_cross_leave_the_upper_one(version, bounds, import_file, evaluated):
    """Min(max, Max(min, x)), as ONNX has it; the language refuses such bounds."""
    given = [] if bounds else [onnx.tensor("low", F4(2)), onnx.tensor("high", F4(0.5))]
    content = onnx.model([onnx.node("Clip", ["x", *("low", "high")[:len(given)]], ["y"], **bounds)], [onnx.value("x", ["N", 3])],
                         [onnx.value("y", ["N", 3])], given, version)
    assert (evaluated(import_file(content), [some(4, 3)]) == 0.5).all()


def test_slices_of_nothing(import_file):
    lists = [onnx.raw_tensor("none", 7, [0], b""), onnx.tensor("sizes", np.array([-1, 2, 3]))]
    lists += [onnx.tensor(name, np.array([number])) for name, number in dict(start=-5, end=-9, axis=0, step=-1).items()]
    nodes = [onnx.node("Slice", ["none", "start", "end", "axis", "step"], ["s"]), onnx.node("Concat", ["s", "sizes"], ["all"], axis=0),
             onnx.node("Reshape", ["x", "all"], ["y"])]
    assert "reshape(x, [2, 3])" in import_file(onnx.model(nodes, [onnx.value("x", ["N", 6])], [onnx.value("y", ["N", 2, 3])], lists))


@pytest.mark.parametrize("fmod, rest", [(0, 2), (1, -1)])
def test_remainders_of_shapes(import_file, fmod, rest):
    """-7 by 3, with the sign of either; -1 is the size that is left."""
    sizes = [onnx.tensor("a", np.array([-7])), onnx.tensor("b", np.array([3])), onnx.tensor("c", np.array([2, 3]))]
    nodes = [onnx.node("Mod", ["a", "b"], ["m"], fmod=fmod), onnx.node("Concat", ["m", "c"], ["s"], axis=0), onnx.node("Reshape", ["x", "s"], ["y"], "node")]
    content = onnx.model(nodes, [onnx.value("x", ["N", 6])], [onnx.value("y", ["N", 2, 3])], sizes)
    if rest == -1:
        assert "reshape(x, [2, 3])" in import_file(content)
    else:
        assert import_file(content, code=65).startswith("node 2, 'node' (Reshape): ")


def test_empty_tensors_of_any_size(import_file):
    most = 2**31 - 1
    sizes = [onnx.raw_tensor("empty", 1, [0, most, most, most], b""), onnx.tensor("i", np.array([0]))]
    content = onnx.model([onnx.node("Gather", ["empty", "i"], ["y"], axis=1)], [onnx.value("x", ["N", 3])], [onnx.value("y", [1])], sizes)
    assert "is too large: an axis has at most 2147483647 elements, a tensor 2^40" in import_file(content, code=65)


def test_rows_from_behind_are_warned_of(mtc, tmp_path):
    nodes = [onnx.node("Sub", ["i", "one"], ["j"]), onnx.node("Gather", ["table", "j"], ["y"], "look")]
    (tmp_path / "net.onnx").write_bytes(onnx.model(nodes, [onnx.value("i", ["N"], 2)], [onnx.value("y", ["N", 4])],
                                                   [onnx.tensor("one", np.uint8(1)), onnx.tensor("table", some(5, 4))]))
    done = mtc("import", "net.onnx", cwd=tmp_path)
    assert done.returncode == 0 and "net.onnx: node 1, 'look' (Gather): its indices are computed: below 0, ONNX counts rows from" in done.stderr


# ---- the node tests of the package onnx ----

# Operators whose tests are all of shapes that only the running model knows, or of numbers of 64 bits.
NEVER = {"ConstantOfShape", "Range", "ReduceLogSumExp"}
AGAIN = ("training", "_random", "_expanded", "_negative_axis", "negative_axes")  # chance of its own, and what others have tested


def known_operators():
    rows = (ROOT / "compiler" / "import" / "operators.def").read_text()
    return set(re.findall(r"^(?:OPERATOR|MAP|REDUCE)\((\w+)", rows, re.M))


def node_cases(names):
    """The package makes a case when the module of its operator is imported. Those of two pools take ten seconds: test_pools."""
    from onnx.backend.test.case import node
    wanted = {name.lower() for name in names} | {"batchnorm"}
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        for module in pkgutil.iter_modules(node.__path__):
            if module.name.replace("_", "") in wanted - {"averagepool", "maxpool"}:
                importlib.import_module(f"{node.__name__}.{module.name}")
    return getattr(node, "_NodeTestCases", [])


def is_of_floats(case):
    arrays = [np.asarray(array) for kind in case.data_sets[0] for array in kind if isinstance(array, np.ndarray) or np.isscalar(array)]
    return len(arrays) == sum(map(len, case.data_sets[0])) and all(a.dtype in (F4, np.int64, np.int32, bool, np.uint8) for a in arrays) and \
        any(a.dtype == F4 for a in arrays)


def with_weights(package, model, inputs):
    """All inputs but the first become initializers, as weights and sizes of a model are."""
    other = package.ModelProto()
    other.CopyFrom(model)
    for info, array in zip(list(other.graph.input)[1:], inputs[1:]):
        other.graph.initializer.append(package.numpy_helper.from_array(np.asarray(array), info.name))
        other.graph.input.remove(info)
    return other


def test_node_cases(mtc, tmp_path, evaluated):
    package = pytest.importorskip("onnx", reason="the package onnx is not installed: its node tests")
    cases = node_cases(known_operators())
    right, wrong = defaultdict(int), []

    def run(case, model, inputs):
        for leftover in tmp_path.glob("net.*"):
            leftover.unlink()
        (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
        done = mtc("import", "net.onnx", cwd=tmp_path)
        assert done.returncode in (0, 65), done.stderr
        if done.returncode:
            return None
        text = (tmp_path / "net.mt").read_text()
        classes = [field for field, kind in fields_of(text).items() if kind.startswith("class")]
        if any((np.asarray(x) < 0).any() for field, x in zip(fields_of(text), inputs) if field in classes):
            return None  # the program would refuse such an example
        expected = np.asarray(case.data_sets[0][1][0], float)
        with np.errstate(all="ignore"):
            got = np.asarray(evaluated(text, inputs), float)
        return got.shape == expected.shape and np.allclose(got, expected, rtol=1e-5, atol=1e-6, equal_nan=True)

    for case in cases:
        nodes = case.model.graph.node
        known = len(nodes) == 1 and nodes[0].op_type in known_operators() - {"Constant", "Shape", "Size"}  # which are no prediction
        if not known or any(part in case.name for part in AGAIN) or not is_of_floats(case):
            continue
        inputs = case.data_sets[0][0]
        verdict = run(case, case.model, inputs)
        if verdict is None and len(inputs) > 1:
            verdict = run(case, with_weights(package, case.model, inputs), inputs[:1])
        right[nodes[0].op_type] += bool(verdict)
        if verdict is False:
            wrong.append(case.name)
    assert not wrong
    assert {op for op in right if not right[op]} <= NEVER
    assert sum(right.values()) > 250
