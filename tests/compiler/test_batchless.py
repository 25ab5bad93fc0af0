"""Values without a batch beside values with one: the same for each example, whatever operator they meet in. Each operator of
the reference, with each choice of its operands without a batch, has the loss and the gradients that it has when every operand
is one of each example."""

import itertools
import zlib

import numpy as np
import pytest
from evaluator import evaluate, parse
from test_operators import ENTRIES, TABLE

BATCH = 3


def call(text, functions="", **shapes):
    """An expression of operands with these shapes; `functions` names what else it is about."""
    return pytest.param(text, shapes, id=text), {text.partition("(")[0], *functions.split()}


VECTOR, MATRIX, IMAGE = (4,), (3, 4), (2, 6, 4)
MAPS = "exp expm1 log1p abs sign erf floor round sin cos square stop_gradient"
CALLS = [
    call("a + b - a * b / (2 + b * b)", "add sub mul div", a=MATRIX, b=VECTOR),
    call("where(a > b and not (c < 0) or b != c, a, -c)", "where gt and lt not or ne neg", a=MATRIX, b=VECTOR, c=(3, 1)),
    call("where(a == b, a, where(a <= b, 2 * a, where(a >= 3, a, b)))", "eq le ge", a=VECTOR, b=VECTOR),
    call("pow(2 + sin(a), b)", a=MATRIX, b=VECTOR), call("maximum(a, b)", a=MATRIX, b=VECTOR),
    call("minimum(a, b)", a=VECTOR, b=MATRIX), *(call(f"{name}(a)", a=VECTOR) for name in MAPS.split()),
    call("log(2 + sin(a)) + sqrt(2 + cos(a))", "log sqrt", a=VECTOR),
    call("matmul(a, batch(b), transpose_b = true)", "batch", a=VECTOR, b=VECTOR), call("reshape(a, [2, 6])", a=MATRIX), call("flatten(a)", a=MATRIX), call("transpose(a)", a=MATRIX),
    call("permute(a, [1, 0])", a=MATRIX), call("flip(a, 0)", a=MATRIX), call("roll(a, 1, 1)", a=MATRIX),
    call("stack([a, b], axis = 1)", a=MATRIX, b=MATRIX), call("slice(a, 1, 1, 3)", a=MATRIX), call("pad(a, 0, 1, 2)", a=MATRIX),
    call("concat([a, b, c], axis = 1)", a=MATRIX, b=(3, 1), c=MATRIX), call("concat([iota(4), a], axis = 0)", a=VECTOR),
    call("sum(a, axis = 1)", a=MATRIX), call("mean(a)", a=MATRIX), call("max(a, axis = 0)", a=MATRIX), call("min(a)", a=MATRIX),
    call("clamp(a, b, 1)", a=MATRIX, b=VECTOR), call("prod(a, axis = 0)", a=MATRIX), call("cumsum(a, axis = 0)", a=MATRIX), call("cumsum(a)", a=MATRIX),
    call("sort(a, axis = 0)", a=MATRIX), call("a * argsort(a)", "argsort", a=MATRIX), call("logsumexp(a, axis = 1)", a=MATRIX),
    call("variance(a)", a=MATRIX), call("std(a, axis = 0)", a=MATRIX), call("norm(a, axis = 1)", a=MATRIX),
    call("where(any(a > b, axis = 0) or all(a < 1, axis = 0), a, 2)", "any all", a=MATRIX, b=VECTOR),
    call("a * argmax(a)", "argmax", a=VECTOR), call("print(a) * b", a=VECTOR, b=MATRIX), call("softmax(a)", a=MATRIX), call("log_softmax(a, axis = 0)", a=MATRIX),
    call("matmul(a, b)", a=(3, 4), b=(4, 5)), call("matmul(a, b)", a=(2, 3, 4), b=(2, 4, 5)),
    call("matmul(a, b)", a=(3, 4), b=(2, 4, 5)), call("matmul(a, b)", a=(2, 3, 4), b=(4, 5)),
    call("matmul(a, b)", a=(2, 1, 3, 4), b=(3, 4, 5)), call("matmul(a, b)", a=(4,), b=(4, 5)),
    call("matmul(a, b)", a=(4,), b=(2, 4, 5)), call("matmul(a, b)", a=(2, 3, 4), b=(4,)), call("matmul(a, b)", a=(4,), b=(4,)),
    call("matmul(a, b, transpose_a = true, transpose_b = true)", a=(2, 4, 3), b=(5, 4)),
    call("matmul(a, b, transpose_a = true)", a=(4, 3), b=(2, 4, 5)),
    call('einsum("hij,jk->hki", [a, b])', a=(2, 3, 4), b=(4, 5)), call('einsum("hij,hjk->ik", [a, b])', a=(2, 3, 4), b=(2, 4, 5)),
    call("linear(a, 5)", a=VECTOR), call("linear(a, 5)", a=MATRIX), call("linear(a, 5, transposed = true)", a=(2, 3, 4)),
    call("unembed(a, weight([5, 4]))", a=VECTOR), call("unembed(a, weight([5, 4]))", a=MATRIX),
    call("attention(a, b, c, heads = 2, causal = true)", a=MATRIX, b=MATRIX, c=MATRIX), call("rotary(a, 2)", a=MATRIX),
    call("layer_norm(a)", a=VECTOR), call("layer_norm(a, axes = 2)", a=(2, 3, 4)), call("rms_norm(a)", a=MATRIX),
    call("group_norm(a, 2)", a=(4, 3, 2)), call("batch_norm(a)", a=IMAGE),
    call("conv1d(a, 3, 3, padding = 1)", a=MATRIX), call("conv2d(a, 3, 3, padding = 1)", a=IMAGE),
    call("conv_transpose2d(a, 3, 3, stride = 2, padding = 1)", a=IMAGE), call("conv2d(a, 4, 2, stride = 2, groups = 2)", a=IMAGE),
    call("conv2d(a, 4, 3, stride = 2, padding = 1)", a=(4, 6, 5)), call("conv2d(conv2d(a, 3, 1), 2, 3)", a=(3, 6, 4)),
    call("max_pool(a, 2)", a=IMAGE), call("avg_pool(a, 3, stride = 1, padding = 1)", a=IMAGE),
    call("global_avg_pool(a)", a=IMAGE), call("global_max_pool(a)", a=IMAGE), call("instance_norm(a)", a=IMAGE), call("adaptive_avg_pool(a, 3)", a=IMAGE), call("upsample(a, 2)", a=IMAGE), call('upsample(a, [3, 2], "bilinear")', a=IMAGE),
    call("gru(a, 2, lengths = c, start = b)", a=MATRIX, b=(2,), c=()), call("lstm(a, 2, layers = 2, bidirectional = true)", a=MATRIX),
    call("lstm(a, 4, start = b, cell = c, reverse = true)", a=MATRIX, b=VECTOR, c=VECTOR), call("rnn(a, 2)", a=MATRIX),
    call("gather(weight([4, 2]), argmax(a))", a=MATRIX), call("embedding(argmax(a), 4, 2)", a=MATRIX),
    call("gather(a, argmax(b)) + sum(b)", a=MATRIX, b=(2, 3)), call("scatter_add(argmax(a), a, 5)", a=MATRIX),
    call("scatter_add(iota(3), a, 5)", a=MATRIX),
    call("one_hot(argmax(a), 4) * a", "one_hot", a=VECTOR), call("denormalize(a, shift)", a=()),
    call("mse(a, b)", a=MATRIX, b=MATRIX), call("bce(sigmoid(a), sigmoid(b))", a=VECTOR, b=VECTOR),
    call("bce(a, sigmoid(b), from_logits = true)", a=MATRIX, b=MATRIX), call("cross_entropy(a, softmax(b))", a=MATRIX, b=MATRIX),
    call("cross_entropy(a, argmax(b))", a=(3, 5), b=(3, 5)), call("sum(a) * accuracy(a, argmax(b))", "accuracy", a=VECTOR, b=VECTOR),
    call("cross_entropy(a, label)", a=(5,)), call("sum(a) * accuracy(a, label)", a=(5,)),
]  # fmt: skip

NAMED = set().union(*(names for _, names in CALLS))
OPERANDS = {"activation": ("a", {"a": VECTOR}), "loss": ("a, b", {"a": VECTOR, "b": VECTOR})}
CALLS += [call(f"{name}({OPERANDS[op['kind']][0]})", **OPERANDS[op["kind"]][1]) for name, op in TABLE.items()
          if op["kind"] in OPERANDS and name not in NAMED]

# No operands that are computed: of data only, drawn for each element, numbers, initialisers, optimizers; or two values, those of sort.
WITHOUT = "random_crop random_flip cutout color_jitter rotate random_resized_crop mixup cutmix normalize dropout random_normal random_uniform bernoulli topk iota batch_place grad sinusoid weight size whiten training"
IN_TRAINING = ("initialiser", "optimizer", "schedule", "metric")


def model(text, shapes, batchless):
    fields = "".join(f"  no_{name} : f32{list(shape) or ''}\n" for name, shape in shapes.items())
    files = ", ".join(f'"{k}"' for k in range(len(shapes) + 2))
    lines = [f"  {name}_w = weight({list(shape)})\n  {name} = {name}_w{'' if name in batchless else f' + no_{name}'}"
             for name, shape in shapes.items()]
    return "\n".join([f"data {{\n  train = idx({files})\n{fields}  shift : f32\n  label : class[5]\n}}", "model {", *lines,
                      f"  y = {text}", "}", "train {", f"  loss = sum(sin(y + shift)) + sum(one_hot(label, 5)){''.join(f' + sum({name}_w)' for name in shapes)}",
                      "  predict = shift * 1", "  optimizer = sgd(0, momentum = 0.9)", f"  batch = {BATCH}", "}"])


def values_of(nodes):
    """Each weight has values of its own, by its name."""
    leaves = {}
    for node in nodes:
        random = np.random.default_rng(zlib.crc32((node.name or "").encode()))
        if node.op == "weight":
            leaves[node.name] = random.uniform(0.5 if node.name.endswith((".std", "_var")) else -2, 2, node.shape)
        elif node.op == "state":
            leaves[node.name] = np.zeros(node.shape)
        elif node.op == "field":
            leaves[node.name] = np.zeros(node.shape) if node.name.startswith("no_") else random.integers(0, 5, node.shape)
    return leaves


def trained(mtc, folder, text, shapes, batchless, stage):
    (folder / "m.mt").write_text(model(text, shapes, batchless))
    done = mtc(f"--emit={stage}", folder / "m.mt")
    assert done.returncode == 0, done.stderr
    nodes = parse(done.stdout)["train"]
    result = evaluate(nodes, values_of(nodes))
    return {"loss": result.reports["loss"], **result.assigned}


@pytest.mark.parametrize("text, shapes", [param for param, _ in CALLS])
def test_means_the_same_for_each_example(mtc, tmp_path, text, shapes):
    wanted = trained(mtc, tmp_path, text, shapes, (), "grad")
    for count in range(1, len(shapes) + 1):
        for batchless in itertools.combinations(shapes, count):
            for stage in ("grad", "simple"):
                found = trained(mtc, tmp_path, text, shapes, batchless, stage)
                assert found.keys() == wanted.keys()
                for name, value in wanted.items():
                    np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=f"{name}, {batchless}")


def test_every_operator_is_here():
    called = {name for name, entry in ENTRIES.items() if f"`{name}(" in entry or f"y = {name}" in entry}
    here = set().union(*(names for _, names in CALLS)) | set(WITHOUT.split())
    assert {name for name in called - here if name not in TABLE or TABLE[name]["kind"] not in IN_TRAINING} == set()


# ---- what remains refused says why ----


@pytest.mark.parametrize("text, says", [
    ("concat([weight([2, 8]), x])", "concat: f32[8] does not continue f32[2, 8]"),
    ("matmul(weight([5, 12, 16]), x)", "do not fit together: the inner sizes are 16 and 8"),
    ("mse(weight([6, 4]), x)", "the target is f32[8], but the prediction is f32[6, 4]"),
    ("random_crop(weight([3, 8, 8]), 1)", "random_crop needs images [channels, rows, columns] of the data, found f32[3, 8, 8], which is the same for all"),
    ("linear(weight([]), 3)", "linear needs a vector, found f32"),
])
def test_refusals(mtc, tmp_path, text, says):
    (tmp_path / "m.mt").write_text(f"""data {{
  train = idx("a")
  x : f32[8]
}}
model {{
  y = {text}
}}
train {{
  loss = sum(y) + sum(x)
  predict = x
  optimizer = sgd(0.1)
}}
""")
    done = mtc("--emit=graph", tmp_path / "m.mt")
    assert done.returncode and says in done.stderr, done.stderr
