"""Numbers that matter: how many kernels and launches a step takes, how many bytes the arena has."""

import os
import re
import subprocess
import time

import pytest

from conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"


def kernels(mtc, model, *flags):
    """The kernels of a training step by name: the text of each."""
    text = mtc("--emit=fused", model, *flags).stdout.partition("\neval:")[0]
    return {name: body for _, name, body in re.findall(r"^  (contract|loop) (\w+)\n((?:    .*\n?)*)", text, re.M)}


def phases_of(text):
    """The names of the kernels of each launch."""
    return [re.findall(r"^    (\w+)", phase, re.M) for phase in text.split("\n  phase ")[1:]]


def phases(mtc, model, *flags):
    """... of a training step."""
    return phases_of(mtc("--emit=schedule", model, *flags).stdout.partition("\neval:")[0])


def totals(mtc, model, *flags):
    table = mtc("--emit=plan", model, *flags).stdout.partition("\ntotal\n")[2]
    return {name: int(number) for name, number in re.findall(r"^  (\S.*?) +(\d+)$", table, re.M)}


@pytest.mark.parametrize("target, launches", [("cuda", 3), ("cpu", 4)])
def test_mnist_launches(mtc, target, launches):
    """One more on the CPU, which stores the images as numbers first."""
    assert len(phases(mtc, "models/mnist.mt", "--target", target)) == launches


def test_linear_bias_relu_is_one_kernel(mtc):
    h = kernels(mtc, GOLDEN / "fuse-epilogue.mt")["h"]
    assert "%7:h" in h.splitlines()[0] and "h.bias" in h


def test_classifier_and_its_gradient_are_one_kernel(mtc):
    fused = kernels(mtc, GOLDEN / "fuse-classifier.mt")
    assert len(fused) == 5
    loop = next(body for name, body in fused.items() if "stage" in body and "products" in body)
    assert loop.count("products") == 2
    assert "loss_part" in loop and "d_z" in loop and "d_h" in loop


@pytest.mark.parametrize("target, batch, tiles", [("cpu", 128, True), ("cpu", 16, False), ("cuda", 128, False)])
def test_small_weights_are_read_by_each_row_or_in_tiles(mtc, target, batch, tiles):
    """A processor's thread computes many rows in tiles; on a GPU each row reads the whole weight."""
    text = mtc("--emit=fused", "models/autoencoder.mt", "--target", target, "--batch", str(batch)).stdout
    assert ("contract encoder_2\n" in text) == tiles and ("loop encoder_2\n" in text) != tiles


@pytest.mark.parametrize("model, weights", [("fuse-update", 1), ("fuse-classifier", 4), ("gradient", 2)])
def test_updates_are_in_the_gradients_kernels(mtc, model, weights):
    """Every weight is stored by a kernel of the last launch, and no gradient of a weight goes to memory."""
    last = phases(mtc, GOLDEN / f"{model}.mt")[-1]
    fused = kernels(mtc, GOLDEN / f"{model}.mt")
    text = mtc("--emit=simple", GOLDEN / f"{model}.mt").stdout.partition("\ngraph eval")[0]
    assigned = re.findall(r"= assign\(%\d+, (%\d+)\)", text)
    stores = {name: re.findall(r"%\d+", re.search(r"stores (.*)", body)[1]) for name, body in fused.items()}
    assert len(assigned) >= weights
    assert set(assigned) <= {value for name in last for value in stores[name]}
    names = dict(re.findall(r"^(%\d+) = .* : \S+(?:\[.*?\])? (d_\S+\.(?:weight|bias))  #", text, re.M))
    assert not any(value in names for values in stores.values() for value in values)


@pytest.mark.parametrize("optimizer", [
    "adam(1e-3)", "adamw(1e-3)\n  ema = 0.9", "lion(1e-3)", "adagrad(1e-3)", "sgd(1e-3, momentum = 0.9, nesterov = true)",
    "rmsprop(1e-3, momentum = 0.9, centered = true)", "adam(1e-3)\n  accumulate = 4", "adam(1e-3, weight_decay = 0.1, every = 2)",
    "rmsprop(1e-3, momentum = 0.9, centered = true, weight_decay = 0.1, every = 2)\n  accumulate = 2\n  ema = 0.9",
])
def test_all_states_of_a_weight_are_one_kernel(mtc, tmp_path, optimizer):
    """Of a gradient that is a buffer already, the sum over shards, which is read once; all weights are updated in one launch."""
    model = tmp_path / "m.mt"
    model.write_text((GOLDEN / "fuse-update.mt").read_text().replace("adam(1e-3)", optimizer).replace(", bias = false", ""))
    done = mtc("--emit=schedule", "--shards", "2", model)
    update = phases_of(done.stdout.partition("\nupdate:")[2])
    assert len(update) == 1 and len(update[0]) == 2, done.stdout + done.stderr


def test_chain_of_maps_is_computed_where_it_is_used(mtc):
    """Five maps, the loss and their gradients: a kernel over the examples, one over the weights, one for the mean."""
    assert list(kernels(mtc, GOLDEN / "fuse-chain.mt")) == ["loss_part", "report_loss", "update_w"]


def test_reports_are_kernels_side_by_side(mtc):
    """As stages of one kernel they would be computed one after another, and all would wait for the loss."""
    reports = [[name for name in phase if name.startswith("report_")] for phase in phases(mtc, "models/sales.mt")]
    assert reports == [["report_baseline"], ["report_loss", "report_mae"]]


TWO_REPORTS = """\
data {{
  train = idx("x", "y")
  x : f32[2]
  y : f32[1]
}}
model {{
  p = sigmoid(linear(sigmoid(linear(x, 4)), 1))
}}
train {{
  loss      = mse(p, y)
  metric    = mae(p, y)
  optimizer = sgd(0.1)
  batch     = {batch}
}}
"""


@pytest.mark.parametrize("batch, reports", [(4, ["report_loss"]), (32, ["report_loss"]), (33, ["report_loss", "report_mae"])])
def test_reports_of_few_examples(mtc, tmp_path, batch, reports):
    """They are one kernel while each lane of a warp loads one number of each report."""
    path = tmp_path / "m.mt"
    path.write_text(TWO_REPORTS.format(batch=batch))
    assert [name for name in kernels(mtc, path) if name.startswith("report_")] == reports


@pytest.mark.parametrize("model", ["models/mnist.mt", GOLDEN / "plan-sharing.mt", GOLDEN / "fuse-residual.mt"], ids=str)
def test_arena(mtc, model):
    bytes_ = totals(mtc, model)
    assert bytes_["arena"] == bytes_["floor"]
    assert bytes_["arena"] < bytes_["without sharing"]


def test_arena_of_mnist(mtc):
    assert totals(mtc, "models/mnist.mt")["arena"] < 1_300_000


MODEL = """\
data {{
  train = idx("x", "y")
  x     : f32[{width}]
  label : class[3]
}}
model {{
{statements}
  y = linear(h, 3)
}}
train {{
  loss      = cross_entropy(y, label)
  optimizer = adam(1e-3)
}}
"""


@pytest.fixture
def compiled(mtc, tmp_path):
    """compiled(statements, *flags): what mtc prints for a model whose last value is h."""

    def run(statements, *flags, width=64):
        path = tmp_path / "m.mt"
        path.write_text(MODEL.format(statements=statements, width=width))
        done = mtc(*flags, path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_sums_over_the_same_rows_are_one_kernel(compiled):
    """The gradients of a layer norm's scale and shift."""
    text = compiled("h = layer_norm(linear(x, 64))", "--emit=fused")
    assert re.search(r"folds %\d+:d_h\.1\.weight %\d+:d_h\.1\.bias$", text, re.M)


@pytest.mark.parametrize("flag", ["--emit=cu", "--emit=c"])
@pytest.mark.parametrize(
    "statements",
    [
        "h = x\nrepeat i in 0..300 { h = relu(linear(h, 64)) }",
        "h = linear(x, 64)\nrepeat i in 0..660 { h = tanh(h) * 0.9 + x }",
        "h = linear(x, 64)\nrepeat i in 0..100 { h = softmax(h + x) }",
        "h = linear(x, 64)\nrepeat i in 0..40 { h = h * tanh(h) + h }",
        "h = x\nrepeat i in 0..40 { h = h * tanh(h) + h }",
        "w = weight([64, 64])\nrepeat i in 0..40 { w = w * tanh(w) + w }\nh = matmul(x, w)",
    ],
    ids=["layers", "maps", "softmaxes", "shared", "shared-field", "shared-weight"],
)
def test_large_models_compile_fast(compiled, statements, flag):
    """Well under a second each; a step that is quadratic or worse in the nodes takes minutes."""
    start = time.process_time() + sum(os.times()[2:4])
    compiled(statements, flag)
    assert time.process_time() + sum(os.times()[2:4]) - start < 4


def test_transposed_reader_does_not_overwrite(mtc):
    """g reads h transposed: an element of g written over h would be read by another thread."""
    plan = mtc("--emit=plan", GOLDEN / "plan-transposed.mt").stdout
    assert re.search(r"eval_g\b", plan) and "in place of" not in re.search(r".* eval_g\b.*", plan)[0]


@pytest.mark.parametrize("statements", [
    "a = reshape(linear(x, 12), [3, 4])\nh = flatten(transpose(a, 0, 1))",
    "a = reshape(linear(x, 600), [20, 30])\nh = sum(a, axis = 0) + max(a, axis = 0)",
    "a = reshape(linear(x, 24), [2, 3, 4])\nh = flatten(transpose(a, 0, 2) + 1)",
], ids=["operand", "columns", "map"])
def test_product_that_is_read_in_another_order_is_kept(compiled, statements):
    """In the kernel that computes a product, its row is complete before another stage reads it through a view."""
    compiled(statements, "--emit=cu", width=6)
    compiled(statements, "--emit=c", width=6)


@pytest.mark.parametrize("flag", ["--emit=cu", "--emit=c"])
def test_field_that_is_put_in_memory_late(mtc, tmp_path, flag):
    """A gradient needs x as it lies in memory; the kernel that puts it there comes before all that read x, so nothing joins it."""
    path = tmp_path / "m.mt"
    path.write_text("""data {
  train = npy("x", "y")
  x : f32[32]
  y : f32[32]
}
model {
  a = rms_norm(rms_norm(x))
  b = linear(x, 32)
  c = rms_norm(b)
  out = linear(a * b + rms_norm(b) + c, 32)
}
train {
  loss = mse(out, y)
  optimizer = sgd(0.1)
  batch = 8
}
""")
    done = mtc(flag, path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("flag", ["--emit=cu", "--emit=c"])
def test_fold_of_a_map_that_lies_nowhere(compiled, flag):
    """A fold of squares of a product's result: they are computed again by each reader, and the fold waits for the product."""
    statements = "v = linear(x, 32)\na = batch_norm(v * x / (1 + x^2))\nh = v * v / (1 + v^2) + a + rms_norm(v)"
    compiled(statements, flag, width=32)


@pytest.mark.quick
def test_random_models():
    """Some of those that `make fuzz` compiles for longer."""
    done = subprocess.run([ROOT / "tools" / "fuzz_models", "--models", "16"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "16 models, 0 with a fault" in done.stdout, done.stdout


def test_rider_loads_nothing_twice(mtc):
    """The bias gradient reads the product's operand, not what the operand was computed from."""
    product = kernels(mtc, GOLDEN / "fuse-columns.mt")["d_h_weight"]
    assert "rides along" in product and re.search(r"loads (.*)", product)[1].count("d_") == 1


VECTORS = """data {
  train = npy("x", "y")
  x : f32[4, 6, 10]
  y : f32[4]
}
model {
  h   = relu(linear(global_avg_pool(x), 1))
  out = global_max_pool(x * reshape(sigmoid(linear(h, 1)), [1, 1, 1]))
}
train {
  loss      = mse(out, y)
  optimizer = sgd(0.1, momentum = 0.5)
  precision = fp16
  batch     = 20
}
"""


@pytest.mark.parametrize("flag", ["--emit=cu", "--emit=c"])
def test_rider_stores_what_is_made_of_it(mtc, tmp_path, flag):
    """The squares of a weight of one row are a vector, as the gradient of the bias that rides along is: each is stored where it is made."""
    path = tmp_path / "vectors.mt"
    path.write_text(VECTORS)
    fused = kernels(mtc, path)
    assert any("rides along" in kernel and "squares_d_" in kernel for kernel in fused.values()), fused
    done = mtc(flag, path)
    assert done.returncode == 0, done.stderr


def test_long_rows_are_not_kept(compiled):
    """A row of 16384 numbers is the operand of a product of its own, not 64 KB of a block's shared memory."""
    fused = compiled("h = linear(x / 255, 1)", "--emit=fused", width=16384)
    assert re.match(r"train: .*\n  contract h\n", fused) and "f32[32, 16384]" not in fused


ROUNDED = """data {
  train = npy("x", "y")
  x : f32[128]
  y : f32[128]
}
model {
  a   = relu(linear(x, 128))
  b   = linear(silu(linear(x, 512)), 128)
  c   = layer_norm(a + a)
  out = linear(a + b + c, 128)
}
train {
  loss      = mse(out, y)
  optimizer = sgd(1e-3)
  batch     = 64
  precision = bf16
}
"""


def test_a_row_keeps_floats(cuda_takes):
    """A product's result that is rounded for several readers: the row's memory is of floats."""
    cuda_takes(ROUNDED)


BETWEEN = """data {
  train = npy("x", "y")
  x : f32[32]
  y : f32[32]
}
model {
  v   = softmax(x)
  a   = relu(linear(v, 32))
  b   = linear(v, 32)
  out = linear(batch_norm(layer_norm(a + b)), 32)
}
train {
  loss      = mse(out, y)
  optimizer = sgd(0.1)
  batch     = 64
}
"""


def test_a_row_keeps_what_is_read(mtc, tmp_path):
    """Of a product and a sum that it is a part of, the sum, if that is all that later stages read."""
    (tmp_path / "m.mt").write_text(BETWEEN)
    program = mtc("m.mt", "--target", "cpu", "--emit=fused", cwd=tmp_path).stdout
    kept = [line for line in program.split("\n") if line.startswith("      keeps ")]
    assert kept and not any(":a" in line for line in kept), kept


@pytest.mark.parametrize("batch, tables", [(16, 0), (512, 2)])
def test_slow_maps_that_serve_many(mtc, tmp_path, batch, tables):
    """Sines and cosines of positions are a table for all heads and examples, layers and passes, where these are many."""
    path = tmp_path / "rotary.mt"
    path.write_text("""data {
  train = idx("sequences", "labels")
  x     : f32[128, 64]
  label : class[4]
}

fn turn(x) {
  return linear(rotary(x, 2), 64)
}

model {
  z = linear(flatten(turn(turn(x))), 4)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 512
}
""")
    graph = mtc("--emit=simple", path, "--batch", str(batch)).stdout.partition("\neval:")[0]
    waves = set(re.findall(r"^(%\d+) = (?:sin|cos)\(", graph, re.M))
    stored = [name for body in kernels(mtc, path, "--batch", str(batch)).values()
              for name in re.findall(r"%\d+", (re.findall(r"^    stores (.*)", body, re.M) or [""])[0])]
    assert len(waves) == 2 and len(waves & set(stored)) == tables


def test_sums_leave_a_product_that_they_would_cost_its_squares(mtc):
    """Squares of 2 x 2 outputs are no groups of neighbouring rows in images of 7 x 7; in those of 14 x 14 the sums are over others."""
    schedule = mtc("--emit=schedule", "--precision", "fp32", "--arch", "sm_90a", "models/resnet18.mt").stdout
    train = schedule[: schedule.index("\neval")]
    assert re.search(r" layer4_1_conv1_layer .* tile 128x64x8", train) and re.search(r" layer4_1_bn1_partial +784 tiles", train)
    assert re.search(r" layer3_1_conv1 .* tile 128x64x8", train)
