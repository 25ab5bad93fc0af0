"""mtc.Sequential: the text that it writes, what it checks before mtc runs, and that the text computes what the layers say."""

import copy
import dataclasses
import inspect
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import mtc
from conftest import MTC
from mtc import augmentation
from mtc import layers as layer_module
from mtc import losses as loss_module
from mtc import operators
from mtc import optimizers as optimizer_module
from mtc.layer import Layer
from mtc.spec import Size, number_text

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.filterwarnings("error"), pytest.mark.quick]

MLP = """\
# Written by mtc.Sequential.
param lr = 1e-3 in 0..1  # learning rate

data {
  train = npz("train.npz")  # with arrays x and y
  test  = npz("test.npz")
  x     : f32[784]
  y     : class[10]
}

model {
  linear1 = linear(x, 128)
  relu1   = relu(linear1)
  linear2 = linear(relu1, 10)
}

train {
  loss      = cross_entropy(linear2, y)
  metric    = accuracy(linear2, y)
  optimizer = adam(lr)
  batch     = 64
  epochs    = 10
}
"""

IMAGES = """\
# Written by mtc.Sequential.
param lr           = 0.4 in 0..1   # highest learning rate
param weight_decay = 5e-4 in 0..1  # weight decay

data {
  train = npz("train.npz")  # with arrays x and y
  test  = npz("test.npz")
  x     : u8[1, 28, 28]
  y     : class[10]
}

model {
  rescaling1       = x / 255
  stem             = conv2d(rescaling1, 8, 3, padding = 1, bias = false)  # [8, 28, 28]
  batch_norm1      = batch_norm(stem)
  relu1            = relu(batch_norm1)
  max_pool1        = max_pool(relu1, 2)  # [8, 14, 14]
  conv1            = conv2d(max_pool1, 8, 3, padding = 1)
  relu2            = relu(conv1)
  conv2            = conv2d(relu2, 8, 3, padding = 1)
  residual1        = max_pool1 + conv2
  conv3            = conv2d(residual1, 16, 3, stride = 2, padding = 1)                    # [16, 7, 7]
  down_0           = conv2d(residual1, 16, 1, stride = 2, bias = false, name = "down.0")  # [16, 7, 7]
  residual2        = down_0 + conv3
  global_avg_pool1 = global_avg_pool(residual2)  # [16]
  dropout1         = dropout(global_avg_pool1, 0.2)
  linear1          = linear(dropout1, 10, init = he_normal())
}

train {
  loss       = cross_entropy(linear1, y, label_smoothing = 0.1)
  metric     = accuracy(linear1, y)
  optimizer  = sgd(one_cycle_lr(lr), momentum = 0.9, weight_decay = weight_decay, nesterov = true)
  batch      = 128
  epochs     = 5
  seed       = 3
  accumulate = 2
  clip_norm  = 1
  ema        = 0.99
  freeze     = ["stem.*", "down.*"]
  no_decay   = ["*.bias"]
  monitor    = "accuracy"
  patience   = 3
  precision  = bf16
}
"""


def mlp(**options):
    network = [mtc.Linear(784, 128), mtc.ReLU(), mtc.Linear(128, 10)]
    return mtc.Sequential(network, loss="cross_entropy", optimizer=mtc.Adam(1e-3), target="cpu", **options)


def test_a_list_of_optimizers_has_one_for_each_group_of_weights():
    optimizers = [mtc.AdamW(mtc.Cosine(1e-2), weight_decay=0.1), mtc.SGD(0.5, weights="linear1.*")]
    network = mtc.Sequential([mtc.Linear(4, 3), mtc.Linear(3, 2)], optimizer=optimizers, batch=4, target="cpu")
    text = '[adamw(cosine_lr(lr), weight_decay = weight_decay), sgd(lr2, weights = ["linear1.*"])]'
    assert f"optimizer = {text}\n" in network.source
    assert "param lr2          = 0.5 in 0..1" in network.source
    assert [optimizer.lr for optimizer in network.optimizer] == [optimizers[0].lr, 0.5]
    x, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    before = network.params["linear1.weight"].numpy().copy()
    network.set(lr2=0.0)
    network.fit(x, y, epochs=1, verbose=0)
    np.testing.assert_array_equal(network.params["linear1.weight"].numpy(), before)
    assert {name for name in network.params.states()} == {
        f"linear2.{weight}.{state}" for weight in ("weight", "bias") for state in "mv"
    }
    with pytest.raises(mtc.UsageError, match="a list without optimizers"):
        mtc.Sequential([mtc.Linear(4, 3)], optimizer=[])


def images(**options):
    return mtc.Sequential(
        [
            mtc.Rescaling(1 / 255),
            [mtc.Conv2d(1, 8, 3, padding="same", bias=False, name="stem"), mtc.BatchNorm2d(8), mtc.ReLU(), mtc.MaxPool2d(2)],
            mtc.Residual([mtc.Conv2d(8, 8, 3, padding=1), mtc.ReLU(), mtc.Conv2d(8, 8, (3, 3), padding=(1, 1))]),
            mtc.Residual(
                [mtc.Conv2d(8, 16, 3, stride=2, padding=1)], shortcut=[mtc.Conv2d(8, 16, 1, stride=2, bias=False, name="down.0")]
            ),
            mtc.GlobalAvgPool2d(),
            mtc.Dropout(0.2),
            mtc.Linear(16, 10, init="he_normal"),
        ],
        optimizer=mtc.SGD(mtc.OneCycle(0.4), momentum=0.9, nesterov=True, weight_decay=5e-4),
        batch=128,
        input_shape=(1, 28, 28),
        input_dtype=np.uint8,
        label_smoothing=0.1,
        epochs=5,
        seed=3,
        accumulate=2,
        clip_norm=1,
        ema=0.99,
        freeze=["stem.*", "down.*"],
        no_decay="*.bias",
        monitor="accuracy",
        patience=3,
        precision="bf16",
        target="cpu",
        **options,
    )


def assert_formatted(text):
    formatted = subprocess.run([MTC, "--format", "-"], input=text, capture_output=True, text=True)
    assert formatted.returncode == 0 and formatted.stdout == text, formatted.stderr


# ---- the text ----


def test_perceptron():
    assert mlp().source == MLP
    assert_formatted(MLP)


def test_images():
    assert images().source == IMAGES
    assert_formatted(IMAGES)
    assert "to_bf16" in images().emit("simple")


def test_text_works_from_the_command_line(tmp_path):
    """As a file: compiled, and trained with the arrays x and y of npz files."""
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 6)).astype(np.float32)
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=x, y=(x[:, 0] > 0).astype(np.int32))
    (tmp_path / "net.mt").write_text(mtc.Sequential([mtc.Linear(6, 2)], optimizer=mtc.SGD(0.5), batch=16).source)
    made = subprocess.run([MTC, "net.mt", "-o", "net", "--target", "cpu", "--keep", "."], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0 and not made.stderr, made.stderr
    trained = subprocess.run(["./net", "--epochs", "20", "--lr", "0.3"], cwd=tmp_path, capture_output=True, text=True)
    assert trained.returncode == 0, trained.stderr
    assert "accuracy" in trained.stdout + trained.stderr


def test_knobs_and_seed_are_no_part_of_what_is_compiled():
    def compiled(lr, decay, seed):
        network = mtc.Sequential([mtc.Linear(4, 2)], optimizer=mtc.AdamW(lr, weight_decay=decay), seed=seed)
        return network._compiled().text, network.source

    (first, source), (second, other) = compiled(1e-3, 0.1, 1), compiled(3e-4, 0.02, 2)
    assert first == second and source != other
    assert "param lr           = 3e-4 in 0..1" in other and "seed      = 2" in other


@pytest.mark.parametrize(
    "value, text",
    [(0.001, "1e-3"), (0.5, "0.5"), (0.01, "0.01"), (128, "128"), (1.0, "1"), (2.5e-4, "2.5e-4"), (1e-8, "1e-8"), (1e-5, "1e-5")]
    + [(-0.25, "-0.25"), (0.999, "0.999"), (1e20, "1e20"), (-1.5e-7, "-1.5e-7"), (1 / 3, "0.3333333333333333"), (0, "0")],
)
def test_numbers(value, text):
    assert number_text(value) == text and float(text) == value


# ---- every layer, loss, optimizer and schedule ----

SEQUENCE, IMAGE = (6, 8), (4, 8, 8)
LAYERS = [  # a layer, the shape that it reads, the shape that it gives
    (mtc.Linear(8, 3, init="normal(0, 0.02)", bias_init="zeros"), SEQUENCE, (6, 3)),
    (mtc.Linear(8, 3, bias=False, name="heads.0"), (8,), (3,)),
    (mtc.Conv2d(4, 6, 3), IMAGE, (6, 6, 6)),
    (mtc.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(0, 2), dilation=(2, 1), groups=2), IMAGE, (6, 2, 8)),
    (mtc.Conv2d(4, 4, 3, padding="same", dilation=2, groups=4), IMAGE, (4, 8, 8)),
    (mtc.MaxPool2d(3, stride=2, padding=1), IMAGE, (4, 4, 4)),
    (mtc.MaxPool2d(2, dilation=2), IMAGE, (4, 3, 3)),
    (mtc.AvgPool2d((2, 4)), IMAGE, (4, 4, 2)),
    (mtc.AvgPool2d(3, 1, 1), IMAGE, (4, 8, 8)),
    (mtc.GlobalAvgPool2d(), IMAGE, (4,)),
    (mtc.AdaptiveAvgPool2d(3), IMAGE, (4, 3, 3)),
    (mtc.Upsample((2, 1)), IMAGE, (4, 16, 8)),
    (mtc.Upsample(2, mode="bilinear"), IMAGE, (4, 16, 16)),
    (mtc.GlobalMaxPool2d(), IMAGE, (4,)),
    (mtc.ConvTranspose2d(4, 6, 2, stride=2), IMAGE, (6, 16, 16)),
    (mtc.ConvTranspose2d(4, 6, (3, 4), (2, 3), padding=(1, 0), output_padding=(1, 2), dilation=(1, 2), groups=2), IMAGE, (6, 16, 30)),
    (mtc.Conv1d(6, 9, 3, padding="same", dilation=2), SEQUENCE, (9, 8)),
    (mtc.Conv1d(6, 9, 3, padding="valid"), SEQUENCE, (9, 6)),
    (mtc.Conv1d(6, 9, 3, stride=2, padding=2, dilation=2, groups=3, bias=False), SEQUENCE, (9, 4)),
    (mtc.InstanceNorm(4, eps=1e-3, affine=True), IMAGE, IMAGE),
    (mtc.Flatten(), IMAGE, (256,)),
    (mtc.Reshape((2, -1)), IMAGE, (2, 128)),
    (mtc.Transpose(), IMAGE, (4, 8, 8)),
    (mtc.Transpose(0, -1), SEQUENCE, (8, 6)),
    (mtc.Mean(), SEQUENCE, (8,)),
    (mtc.Mean(-1), SEQUENCE, (6,)),
    (mtc.ReLU(), IMAGE, IMAGE),
    (mtc.LeakyReLU(0.2), IMAGE, IMAGE),
    (mtc.ELU(0.5), IMAGE, IMAGE),
    (mtc.GELU(), IMAGE, IMAGE),
    (mtc.GELU("tanh"), IMAGE, IMAGE),
    (mtc.SiLU(), IMAGE, IMAGE),
    (mtc.Mish(), IMAGE, IMAGE),
    (mtc.Sigmoid(), IMAGE, IMAGE),
    (mtc.Tanh(), IMAGE, IMAGE),
    (mtc.Softplus(), IMAGE, IMAGE),
    (mtc.Softmax(dim=0), IMAGE, IMAGE),
    (mtc.LogSoftmax(), IMAGE, IMAGE),
    (mtc.Dropout(0.1), IMAGE, IMAGE),
    (mtc.Rescaling(1 / 128, -1), IMAGE, IMAGE),
    (mtc.Normalize(), IMAGE, IMAGE),
    (mtc.BatchNorm1d(8, eps=1e-3, momentum=0.2, affine=False), (8,), (8,)),
    (mtc.BatchNorm1d(8), (8, 5), (8, 5)),
    (mtc.BatchNorm2d(4), IMAGE, IMAGE),
    (mtc.BatchNorm2d(4, sync=True), IMAGE, IMAGE),
    (mtc.LayerNorm(8, eps=1e-6, elementwise_affine=False), SEQUENCE, SEQUENCE),
    (mtc.LayerNorm((6, 8)), SEQUENCE, SEQUENCE),
    (mtc.RMSNorm(8), SEQUENCE, SEQUENCE),
    (mtc.GroupNorm(2, 4, affine=False), IMAGE, IMAGE),
    (mtc.Embedding(9, 5, init="uniform(-1, 1)"), (7,), (7, 5)),
    (mtc.Embedding(9, 5), (), (5,)),
    (mtc.OneHot(9), (2, 7), (2, 7, 9)),
    (mtc.PositionalEmbedding(name="p.q"), SEQUENCE, SEQUENCE),
    (mtc.SinusoidalEncoding(), SEQUENCE, SEQUENCE),
    (mtc.SelfAttention(8, 2, causal=True), SEQUENCE, SEQUENCE),
    (mtc.RNN(8, 5, nonlinearity="relu"), SEQUENCE, (*SEQUENCE[:1], 5)),
    (mtc.GRU(8, 3, num_layers=2, last=True), SEQUENCE, (3,)),
    (mtc.GRU(8, 3, reverse=True, last=True, init="he_normal"), SEQUENCE, (3,)),
    (mtc.LSTM(8, 4, bidirectional=True, bias=False), SEQUENCE, (*SEQUENCE[:1], 8)),
    (mtc.RandomCrop(1), IMAGE, IMAGE),
    (mtc.RandomCrop(1, mode="reflect"), IMAGE, IMAGE),
    (mtc.RandomFlip(), IMAGE, IMAGE),
    (mtc.RandomFlip(alternate=True), IMAGE, IMAGE),
    (mtc.Cutout(2), IMAGE, IMAGE),
    (mtc.ColorJitter(0.4, contrast=0.2, white=1), IMAGE, IMAGE),
    (mtc.Rotate(30, fill=1), IMAGE, IMAGE),
    (mtc.RandomResizedCrop((3, 5), scale=(0.5, 1)), IMAGE, (*IMAGE[:1], 3, 5)),
    (mtc.RandomResizedCrop(ratio=(0.5, 2)), IMAGE, IMAGE),
    (mtc.MixUp(0.2), SEQUENCE, SEQUENCE),
    (mtc.CutMix(name="p.q"), IMAGE, IMAGE),
    (mtc.Residual([mtc.LayerNorm(8), mtc.SelfAttention(8, 1)]), SEQUENCE, SEQUENCE),
    (mtc.Residual([mtc.Linear(8, 3)], shortcut=[mtc.Linear(8, 3)]), SEQUENCE, (6, 3)),
]
# Those of the table that need no more than it says: they are here by themselves.
LAYERS += [(kind(), SEQUENCE, SEQUENCE) for kind in layer_module.ACTIVATIONS.values() if kind not in {type(layer) for layer, _, _ in LAYERS}]


@pytest.mark.parametrize("layer, read, gives", LAYERS, ids=lambda each: type(each).__name__ if isinstance(each, Layer) else "")
def test_layer(layer, read, gives):
    """mtc compiles its line, in the standard layout, to a value of the shape that was foretold."""
    size = int(np.prod(gives))
    layers = [layer, mtc.Flatten(name="flat"), mtc.Linear(size, 3, name="last")]
    network = mtc.Sequential(layers, input_shape=read, batch=5, target="cpu")
    assert_formatted(network.source)
    graph = network.emit("graph")
    assert re.search(rf" : f32\[3, {size}\] last\.weight", graph)
    value = re.search(r" flat += flatten\((\w+)\)", network.source)[1]
    shapes = re.findall(rf" : \w+\[([\d, ]*)\] {value}\b", graph)
    assert shapes[-1] == ", ".join(map(str, (5, *gives)))


def classes_of(module, base):
    return {name for name in module.__all__ if issubclass(getattr(module, name), base)} - {base.__name__}


def test_arguments_are_those_of_the_table():
    """A class written by hand calls a function that there is, with its defaults unless PyTorch has others."""
    others = {("gelu", "exact")}
    functions = {each["name"]: {p["name"]: p for p in each["parameters"]} for each in operators.table()}
    kinds = [getattr(module, name) for module in (layer_module, loss_module, optimizer_module) for name in module.__all__]
    calls = [(kind, re.match(r"(\w+)\(", kind.text)) for kind in kinds if kind.text]
    assert len(calls) > 40
    for kind, call in calls:
        if f"fn {call[1]}(" in getattr(kind, "definition", ""):
            continue
        for word, field in re.findall(r", (\w+)=\{(\w+)\}", kind.text):
            default = functions[call[1]][word].get("default")
            own = kind._defaults().get(field, kind.omitted.get(field) if field != "decay" else default)
            assert (call[1], word) in others or own == default, (kind, word)


# What a list of layers has no words for.
STARTED = {"lengths", "start"}
ELSEWHERE = {"mean": {"keep"}, "rnn": STARTED, "gru": STARTED, "lstm": STARTED | {"cell"}}


def test_the_last_state_of_a_layer_that_goes_backwards_is_its_first_row():
    rows = [line.split("  #")[0].strip() for line in mtc.Sequential([mtc.RNN(8, 4, reverse=True, last=True)], mtc.MSE(), input_shape=SEQUENCE).source.splitlines() if "rnn(" in line]
    assert rows == ["rnn1 = rnn(x, 4, reverse = true)[0]"]


def test_no_option_is_left_out():
    """What a function has to be told, or may be, its layer takes."""
    for kind in (getattr(layer_module, name) for name in layer_module.__all__):
        function = next((each for each in operators.table() if each["name"] == kind.text.split("(")[0]), None)
        if function and not kind.definition:
            options = {parameter["name"] for parameter in function["parameters"] if "default" in parameter}
            written = kind.text + "".join(inspect.getsource(each.fget) for each in vars(kind).values() if isinstance(each, property))
            assert {word for word in options if not re.search(rf"\b{word} ?=|\{{{word}\}}", written)} == ELSEWHERE.get(function["name"], set()), kind


def test_bounds_are_those_of_the_table():
    for make, text in [(lambda: mtc.Huber(0), "Huber: delta is a number above 0, not 0"), (lambda: mtc.SGD(momentum=1), "from 0 to below 1, not 1"),
                       (lambda: mtc.Adam(eps=-1), "Adam: eps is a number above 0, not -1"), (lambda: mtc.WSD(0.1, decay=2), "from 0 to 1, not 2")]:
        with pytest.raises(mtc.UsageError, match=re.escape(text)):
            make()


def test_a_new_function_is_a_new_class(tmp_path):
    """A package that finds another table has other classes: no line of it names them."""
    package = shutil.copytree(Path(mtc.__file__).parent, tmp_path / "python" / "mtc")
    new = [{"name": "crooked", "kind": "activation", "class": "Crooked", "doc": "", "parameters": [{"name": "x"}]},
           {"name": "far_off", "kind": "loss", "class": "FarOff", "doc": "", "parameters": [{"name": "prediction"}, {"name": "target"}]},
           {"name": "downhill", "kind": "optimizer", "class": "Downhill", "doc": "", "parameters": [
               {"name": "lr", "kind": "number", "low": 0}, {"name": "share", "kind": "number", "low": 0, "high": 1, "default": 0.5}]}]
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "operators.json").write_text(json.dumps(operators.table() + new))
    command = "import mtc; net = mtc.Sequential([mtc.Crooked(), mtc.Linear(3, 1)], mtc.FarOff(), mtc.Downhill(1, share=0.1), input_shape=(3,)); print(net.source)"
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "MTC_COMPILER": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line in ("crooked1 = crooked(x)", "loss      = far_off(linear1, y)", "optimizer = downhill(lr, share = 0.1)"):
        assert f"  {line}\n" in done.stdout


def test_no_layer_is_left_out():
    assert {type(layer).__name__ for layer, _, _ in LAYERS} == classes_of(layer_module, Layer)


RATES = [
    (0.1, "lr"),
    (mtc.Constant(0.1, warmup=10), "constant_lr(lr, warmup = 10)"),
    (mtc.Step(0.1, mtc.Epochs(30), factor=0.5), "step_lr(lr, 30 * steps_per_epoch, factor = 0.5)"),
    (mtc.Step(0.1, 100), "step_lr(lr, 100)"),
    (mtc.Cosine(0.1, final=1e-4, warmup=0.05), "cosine_lr(lr, final = 1e-4, warmup = 0.05 * total_steps)"),
    (mtc.LinearDecay(0.1, warmup=mtc.Epochs(1)), "linear_lr(lr, warmup = steps_per_epoch)"),
    (mtc.OneCycle(0.1, rise=0.2, start=0.01, final=0), "one_cycle_lr(lr, rise = 0.2, start = 0.01, final = 0)"),
    (mtc.WSD(0.1, decay=0.1, warmup=5), "wsd_lr(lr, decay = 0.1, warmup = 5)"),
    (mtc.Plateau(0.1, factor=0.5, patience=3), "plateau_lr(lr, factor = 0.5, patience = 3)"),
]
ADAM = "beta1 = 0.8, beta2 = 0.99, eps = 1e-6, weight_decay = weight_decay"
OPTIMIZERS = [
    (mtc.SGD(0.1, 0.9, 1e-4, nesterov=True), "sgd(lr, momentum = 0.9, weight_decay = weight_decay, nesterov = true)"),
    (mtc.Adam(0.1, 0.8, 0.99, 1e-6, 1e-4), f"adam(lr, {ADAM})"),
    (mtc.AdamW(0.1, 0.8, 0.99, 1e-6, 1e-4), f"adamw(lr, {ADAM})"),
    (
        mtc.RMSProp(0.1, 0.9, 1e-6, 0.5, 1e-4, centered=True),
        "rmsprop(lr, rho = 0.9, eps = 1e-6, momentum = 0.5, weight_decay = weight_decay, centered = true)",
    ),
    (mtc.Lion(0.1, 0.8, 0.9, 1e-4), "lion(lr, beta1 = 0.8, beta2 = 0.9, weight_decay = weight_decay)"),
]
_listed = {type(each) for each, _ in OPTIMIZERS}
OPTIMIZERS += [(kind(lr=0.1), f"{name}(lr)") for name, kind in optimizer_module.OPTIMIZERS.items() if kind not in _listed]


@pytest.mark.parametrize(
    "optimizer, text",
    [(mtc.Adam(rate), f"adam({text})") for rate, text in RATES] + OPTIMIZERS + [(name, f"{name}(lr)") for name in ("sgd", "lion")],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_optimizer(optimizer, text):
    network = mtc.Sequential([mtc.Linear(4, 2, bias=False)], optimizer=optimizer, target="cpu")  # a matrix, as Muon needs
    assert f"  optimizer = {text}\n" in network.source
    assert_formatted(network.source)
    network.emit("graph")


def test_no_optimizer_is_left_out():
    assert {type(each).__name__ for each, _ in OPTIMIZERS} == classes_of(optimizer_module, mtc.Optimizer)
    assert {type(each).__name__ for each, _ in RATES[1:]} == classes_of(optimizer_module, mtc.Schedule)


LOSSES = [  # loss, options, the last layer's shape, lines of the text
    ("cross_entropy", {"metrics": []}, (4,), ["y     : class[4]", "loss      = cross_entropy(last, y)"]),
    ("cross_entropy", {}, (5, 4), ["y     : class[4][5]", "metric    = accuracy(last, y)"]),
    ("soft_cross_entropy", {}, (4,), ["y     : f32[4]", "metric    = accuracy(last, argmax(y))"]),
    ("bce", {}, (3,), ["y     : f32[3]", "loss      = bce(last, y, from_logits = true)", "accuracy = binary_accuracy(last, y)"]),
    ("mse", {}, (2,), ["y     : f32[2]", "loss      = mse(last, y)", "metric    = mae(last, y)"]),
    ("mae", {"metrics": ["mse", "mae"]}, (1,), ["metric    = [mse(last, y), mae(last, y)]"]),
    ("huber", {}, (1,), ["loss      = huber(last, y)", "metric    = mae(last, y)"]),
    (mtc.Huber(2), {"normalize_target": True}, (1,), ["loss      = huber(last, normalize(y), delta = 2)"]),
    ("mse", {"normalize_target": True}, (1,), ["prediction = denormalize(last, y)", "metric    = mae(prediction, y)"]),
]
_listed = {each for each, *_ in LOSSES if isinstance(each, str)}
LOSSES += [(name, {}, (1,), [f"loss      = {name}(last, y)"]) for name in loss_module.LOSSES if name not in _listed]


@pytest.mark.parametrize("loss, options, shape, lines", LOSSES, ids=lambda each: each if isinstance(each, str) else "")
def test_loss(loss, options, shape, lines):
    network = [mtc.Linear(8, shape[-1], name="last")]
    model = mtc.Sequential(network, loss=loss, input_shape=(*shape[:-1], 8), target="cpu", **options)
    assert all(f"  {line}\n" in model.source for line in lines), model.source
    assert_formatted(model.source)
    model.emit("graph")


def test_bce_after_a_sigmoid_takes_probabilities():
    model = mtc.Sequential([mtc.Linear(4, 1), mtc.Sigmoid()], loss="bce", target="cpu")
    assert "loss      = bce(sigmoid1, y)\n" in model.source
    assert "accuracy = binary_accuracy(sigmoid1 - 0.5, y)\n" in model.source
    model.emit("graph")


def test_no_loss_is_left_out():
    assert {kind.__name__ for kind in loss_module.LOSSES.values()} == classes_of(loss_module, mtc.Loss)
    assert {each for each, *_ in LOSSES if isinstance(each, str)} == set(loss_module.LOSSES)


# ---- what is refused, before mtc runs ----

HIDDEN = [mtc.Linear(784, 128), mtc.ReLU()]
REFUSED = [
    (
        lambda: mtc.Sequential([*HIDDEN, mtc.Linear(64, 10)]),
        "layer 3 (linear2): Linear(in_features=64, out_features=10, bias=True, transposed=False) takes [64], but layer 2 (relu1) gives [128]",
    ),
    (
        lambda: mtc.Sequential([mtc.Conv2d(1, 4, 3), mtc.Linear(2704, 10)], input_shape=(1, 28, 28)),
        "layer 2 (linear1): Linear(in_features=2704, out_features=10, bias=True, transposed=False) takes [..., 2704], but layer 1 (conv1) gives "
        "[4, 26, 26]: put mtc.Flatten() before it",
    ),
    (lambda: mtc.Sequential([mtc.Conv2d(1, 4, 3)], input_shape=(28, 28)), "gives [28, 28]: put mtc.Reshape((1, 28, 28)) before it"),
    (
        lambda: mtc.Sequential([mtc.Conv1d(1, 8, 5), mtc.GlobalAvgPool2d()], input_shape=(1, 64)),
        "gives [8, 60]: put mtc.Reshape((8, 1, 60)) before it where the first axis is channels, as of Conv1d, and mtc.Reshape((1, 8, 60)) where it is rows",
    ),
    (lambda: mtc.Sequential([mtc.Conv1d(1, 8, 5), mtc.Conv2d(8, 4, (1, 3))], input_shape=(1, 64)), "gives [8, 60]: put mtc.Reshape((8, 1, 60)) before it"),
    (
        lambda: mtc.Sequential([mtc.Conv2d(3, 4, 11, padding=1)], input_shape=(3, 8, 8)),
        "has a kernel of 11 rows, which 8 with a padding of 1 do not hold; the input gives [3, 8, 8]",
    ),
    (
        lambda: mtc.Sequential([mtc.Linear(8, 8), mtc.Residual([mtc.Linear(8, 4)])]),
        "adds equal shapes, but its layers give [4] and layer 1 (linear1) gives [8]",
    ),
    (
        lambda: mtc.Sequential([mtc.Residual([mtc.ReLU(), mtc.Linear(9, 4, name="inner")])], input_shape=8),
        "layer 1.2 (inner): Linear(in_features=9, out_features=4, bias=True, transposed=False, name='inner') takes [9], but layer 1.1 (relu1) gives [8]",
    ),
    (lambda: mtc.Sequential([mtc.Conv2d(1, 4, 3)]).source, "give input_shape=, without the batch, such as (1, 28, 28)"),
    (lambda: mtc.Sequential([mtc.Linear(4, 1)]), "gives [1]: use loss='bce' for one yes or no, loss='mse' for a number"),
    (lambda: mtc.Sequential([mtc.Linear(4, 3), mtc.Softmax()]), "has the softmax in it: leave out layer 2 (softmax1)"),
    (lambda: mtc.Sequential([mtc.ReLU(), mtc.Embedding(3, 4)], input_shape=2), "takes classes: it has to be the first layer"),
    (lambda: mtc.Sequential([mtc.Linear(4, 4), mtc.Normalize()]), "normalizes the input, not what a layer computes, but layer 1"),
    (lambda: mtc.Sequential([mtc.Linear(4, 2, name="a"), mtc.Linear(2, 2, name="a")]), "two layers are called 'a'"),
    (lambda: mtc.Sequential([mtc.Linear(4, 2, name="lr")]), "the name 'lr' has another meaning in the text"),
    (lambda: mtc.Sequential([mtc.Linear(4, 2, name="a b")]), "a name is letters, digits, _ and points between them, not 'a b'"),
    (lambda: mtc.Sequential([SQUARE, mtc.ReLU(), SQUARE]), "as layer 1 too; layers share no weights: make a second one"),
    (lambda: mtc.Sequential([mtc.ReLU]), "has the class ReLU in it; a layer is an object, mtc.ReLU(...)"),
    (lambda: mtc.Sequential([mtc.Linear(4, 2), "relu"]), "has 'relu' in it, which is no layer of mtc"),
    (lambda: mtc.Sequential([]), "has no layers"),
    (lambda: mtc.Sequential(SQUARE), "Sequential is a list of layers, not Linear("),
    (lambda: mtc.Sequential([SQUARE], loss="crossentropy"), "did you mean 'cross_entropy'?"),
    (lambda: mtc.Sequential([SQUARE], optimizer="adm"), "not 'adm'; did you mean 'adam'?"),
    (lambda: mtc.Sequential([SQUARE], optimizer=mtc.Adam), "optimizer is an object, such as mtc.Adam(), not the class itself"),
    (lambda: mtc.Sequential([SQUARE], metrics=["mae"]), "metrics of the loss CrossEntropy are 'accuracy', 'accuracy_score', 'precision_score', "),
    (lambda: mtc.Sequential([SQUARE], monitor="acc"), "monitor is one of 'loss', 'accuracy', not 'acc'"),
    (lambda: mtc.Sequential([SQUARE], loss="mse", label_smoothing=0.1), "label_smoothing belongs to the loss 'cross_entropy'"),
    (lambda: mtc.Sequential([SQUARE], normalize_target=True), "normalize_target is for y that are numbers"),
    (lambda: mtc.Sequential([SQUARE], input_dtype="f64"), "input_dtype is 'f32', 'u8' or 'i32', not 'f64'"),
    (lambda: mtc.Sequential([SQUARE], freeze=3), "freeze is a list of names of weights, such as ['linear1.*'], not 3"),
    (lambda: mtc.Sequential([SQUARE], batch=0), "batch is a whole number from 1 on, not 0"),
    (lambda: mtc.Sequential([SQUARE], precision="fp4"), "precision is one of 'fp32', 'tf32', 'tf32x3', 'bf16', 'fp16', 'fp8', not 'fp4'"),
    (lambda: mtc.Sequential([SQUARE], input_shape=(4.5,)), "the shape of one example, is a whole number from 1 on, not 4.5"),
    (lambda: mtc.Linear(784, 0), "Linear: out_features is a whole number from 1 on, not 0"),
    (lambda: mtc.Linear(784, 2.5), "Linear: out_features is a whole number from 1 on, not 2.5"),
    (lambda: mtc.Linear(2, 2, bias=1), "Linear: bias is True or False, not 1"),
    (lambda: mtc.Linear(2, 2, init="he"), "Linear: init is one of zeros, constant,"),
    (lambda: mtc.Conv2d(3, 4, (3, 3, 3)), "Conv2d: kernel_size is a whole number or two, (rows, columns), not (3, 3, 3)"),
    (lambda: mtc.Conv2d(3, 4, 3, groups=2), "groups, 2, do not divide in_channels, 3"),
    (lambda: mtc.Conv1d(3, 4, 3, stride=2, padding="same"), "Conv1d: padding='same' needs a stride of 1 and a kernel of odd size"),
    (lambda: mtc.Conv1d(3, 4, 3, padding="some"), "'same'"),
    (lambda: mtc.Conv2d(3, 4, 2, padding="same"), "padding='same' needs a stride of 1 and a kernel of odd size"),
    (lambda: mtc.Dropout(1), "Dropout: p is a number from 0 to below 1, not 1"),
    (lambda: mtc.ColorJitter(1.5), "ColorJitter: brightness is a number from 0 to 1, not 1.5"),
    (lambda: mtc.ColorJitter(0.4, white=0), "ColorJitter: white is a number above 0, not 0"),
    (lambda: mtc.Rotate(200), "Rotate: degrees is a number from 0 to 180, not 200"),
    (lambda: mtc.RandomResizedCrop(8, scale=(0.5, 2)), "RandomResizedCrop: scale is a number from 0 to 1, not 2"),
    (lambda: mtc.RandomResizedCrop(8, ratio=(2, 1)), "RandomResizedCrop: ratio is (least, most), not (2, 1)"),
    (lambda: mtc.RandomResizedCrop(8, scale=0.5), "RandomResizedCrop: scale is two numbers, (least, most), not 0.5"),
    (lambda: mtc.RandomResizedCrop((8, 8, 3)), "RandomResizedCrop: size is a whole number or two, (rows, columns), not (8, 8, 3)"),
    (lambda: mtc.RandomCrop(4, "reflekt"), "RandomCrop: mode is one of 'zeros', 'reflect', not 'reflekt'; did you mean 'reflect'?"),
    (lambda: mtc.SelfAttention(8, 3), "num_heads, 3, do not divide embed_dim, 8"),
    (lambda: mtc.GRU(8, 4, bidirectional=True, last=True), "no last row that has read all; leave out last=True; mtc.Mean(0) behind it makes one row of all"),
    (lambda: mtc.Adam(-1), "Adam: lr is a number from 0 on, or a schedule such as mtc.Cosine(1e-3), not -1"),
    (lambda: mtc.Adam(float("nan")), "Adam: lr is a number from 0 on"),
    (lambda: mtc.Step(0.1, every=-3), "Step: every is a number of steps, a part of the training between 0 and 1, or mtc.Epochs(n)"),
]
SQUARE = mtc.Linear(4, 4)


@pytest.mark.parametrize("make, text", REFUSED, ids=lambda each: each[:40] if isinstance(each, str) else "")
def test_refused(make, text, monkeypatch):
    monkeypatch.setenv("MTC_COMPILER", "/no/such/program")
    with pytest.raises(mtc.UsageError) as refused:
        make()
    assert text in str(refused.value)


# ---- repr ----


def test_repr():
    assert repr(mtc.Linear(784, 128)) == "Linear(in_features=784, out_features=128, bias=True, transposed=False)"
    assert repr(mtc.ReLU()) == "ReLU()" and repr(mtc.Dropout(0.2, name="d")) == "Dropout(p=0.2, name='d')"
    assert repr(mtc.Adam(mtc.Cosine(1e-3, warmup=0.1))).startswith("Adam(lr=Cosine(lr=0.001, final=0.0, warmup=0.1), beta1=0.9,")
    network = mtc.Sequential([mtc.Linear(8, 8), mtc.Residual([mtc.Linear(8, 8), mtc.ReLU()])], optimizer=mtc.Lion(), batch=16)
    assert repr(network) == (
        "Sequential(\n"
        "  (linear1): Linear(in_features=8, out_features=8, bias=True, transposed=False)\n"
        "  (residual1): Residual(\n"
        "    (linear2): Linear(in_features=8, out_features=8, bias=True, transposed=False)\n"
        "    (relu1): ReLU()\n"
        "  )\n"
        "  loss=CrossEntropy(label_smoothing=0.0), optimizer=Lion(lr=0.0001, beta1=0.9, beta2=0.99, weight_decay=0.0), batch=16\n"
        ")"
    )


def test_networks_in_networks():
    """Lists, and networks, in a list stand for their layers; a part needs no input shape of its own."""
    part = mtc.Sequential([mtc.Conv2d(1, 4, 3), mtc.ReLU()])
    whole = mtc.Sequential([part, [mtc.Flatten(), mtc.Linear(144, 4)]], input_shape=(1, 8, 8))
    assert [type(layer).__name__ for layer in whole.layers] == ["Conv2d", "ReLU", "Flatten", "Linear"]
    assert len(whole) == 4 and whole[0] is part[0] and list(mtc.Sequential(whole, input_shape=(1, 8, 8))) == list(whole)


def test_same_activation_twice():
    relu = mtc.ReLU()
    source = mtc.Sequential([mtc.Linear(4, 4), relu, mtc.Linear(4, 4), relu]).source
    assert "relu1   = relu(linear1)" in source and "relu2   = relu(linear2)" in source


def test_values():
    """Equal by what they say; copied and pickled, as searches over arguments do."""
    made = mtc.SGD(mtc.Cosine(0.1, warmup=0.05, final=1e-3), momentum=0.9)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), mtc.SGD(mtc.Cosine(0.1, 1e-3, 0.05), np.float64(0.9))):
        assert other == made and other.render() == made.render() and hash(other) == hash(made)
    assert mtc.Conv2d(np.int64(1), 2, [3, 3]) == mtc.Conv2d(1, 2, (3, 3)) != mtc.Conv2d(1, 2, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.lr = 1


def test_a_layer_of_ones_own():
    class Gate(Layer):
        """Half of the numbers, each times the sigmoid of one of the others."""

        takes = "... width"
        gives = "... width"
        kind = "gate"
        text = "gate({x}, {half})"
        definition = "fn gate(x[n], half) {\n  return slice(x, 0, 0, half) * sigmoid(slice(x, 0, half, n))\n}\n"

        half: Size

        def work_out(self, found):
            if found["width"] != (2 * self.half,):
                return f"halves {2 * self.half} numbers"
            found["width"] = (self.half,)

    network = mtc.Sequential([mtc.Linear(4, 6), Gate(3), mtc.Linear(3, 2)], target="cpu")
    assert "  gate1   = gate(linear1, 3)\n" in network.source
    network.emit("graph")
    with pytest.raises(mtc.UsageError, match=r"layer 2 \(gate1\): Gate\(half=4\) halves 8 numbers; layer 1 \(linear1\) gives \[6\]"):
        mtc.Sequential([mtc.Linear(4, 6), Gate(4)])


def test_a_function_of_ones_own_hides_the_library(tmp_path):
    """In a layer's definition and in a model's text, whatever the library has by that name."""

    class Mine(Layer):
        text = "mish({x})"
        definition = "fn mish(x) { return x + 41 }\n"

    network = mtc.Sequential([mtc.Linear(4, 2), Mine()], loss="mse", metrics=[], target="cpu")
    assert "value=41" in network.emit("graph") and "tanh" not in network.emit("graph")
    text = network.source.replace("mse(", "huber(").replace("\nfn mish", "\nfn huber(p, t) { return sum(p - 3 * t) }\nfn mish")
    with mtc.compile(text.replace("optimizer =", "predict   = mish1\n  optimizer ="), target="cpu") as model:
        assert "value=3" in model.emit("graph") and "abs(" not in model.emit("graph")


# ---- it computes what it says ----


def relu(x):
    return np.maximum(x, 0)


def predicted(network, X):
    """The prediction without warnings of copies, and the weights by name."""
    with warnings.catch_warnings(), network:
        warnings.simplefilter("ignore")
        return network.predict(X), {name: np.asarray(value, np.float64) for name, value in network.state_dict().items()}


def test_perceptron_against_numpy():
    layers = [mtc.Linear(6, 8), mtc.ELU(0.5), mtc.Residual([mtc.LayerNorm(8), mtc.Linear(8, 8), mtc.GELU("tanh")]), mtc.Linear(8, 2, name="0")]
    x = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    got, w = predicted(mtc.Sequential(layers, loss="mse", target="cpu"), x)
    h = x @ w["linear1.weight"].T + w["linear1.bias"]
    h = np.where(h > 0, h, 0.5 * np.expm1(h))
    n = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5) * w["layer_norm1.weight"] + w["layer_norm1.bias"]
    n = n @ w["linear2.weight"].T + w["linear2.bias"]
    h = h + n / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (n + 0.044715 * n**3)))
    assert np.allclose(got, h @ w["0.weight"].T + w["0.bias"], atol=1e-5)


def convolved(x, weight, bias):
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight) + bias[:, None, None]


def test_images_against_numpy():
    layers = [mtc.Rescaling(1 / 255, -0.5), mtc.Conv2d(2, 4, 3, padding="same"), mtc.ReLU(), mtc.MaxPool2d(2), mtc.Flatten(), mtc.Linear(36, 3)]
    x = np.random.default_rng(0).integers(0, 256, size=(4, 2, 6, 6)).astype(np.uint8)
    network = mtc.Sequential(layers, loss="mse", input_shape=(2, 6, 6), input_dtype="uint8", target="cpu")
    got, w = predicted(network, x)
    h = relu(convolved(x / 255 - 0.5, w["conv1.weight"], w["conv1.bias"]))
    h = h.reshape(4, 4, 3, 2, 3, 2).max((3, 5)).reshape(4, 36)
    assert np.allclose(got, h @ w["linear1.weight"].T + w["linear1.bias"], atol=1e-5)


def torch_twin(layer, torch):
    """PyTorch's layer with the same arguments."""
    kind = type(layer).__name__
    arguments = {name: value for name, value in vars(layer).items() if name not in ("name", "init", "bias_init")}
    twins = {"GlobalAvgPool2d": lambda: torch.nn.AdaptiveAvgPool2d(1), "Dropout": torch.nn.Dropout, "InstanceNorm": torch.nn.InstanceNorm2d}
    arguments = {} if kind == "GlobalAvgPool2d" else arguments
    return twins.get(kind, getattr(torch.nn, kind, None))(**arguments)


IMAGE_STACK = [
    *(mtc.Conv2d(2, 8, (3, 5), stride=(1, 2), padding=(1, 2), bias=False), mtc.BatchNorm2d(8, eps=1e-3), mtc.LeakyReLU(0.2)),
    *(mtc.MaxPool2d(3, stride=2, padding=1), mtc.Conv2d(8, 12, 3, padding=2, dilation=2, groups=4), mtc.GroupNorm(3, 12)),
    *(mtc.SiLU(), mtc.Upsample(2), mtc.ConvTranspose2d(12, 6, 3, stride=2, padding=1, output_padding=1, groups=2), mtc.InstanceNorm(6, affine=True)),
    *(mtc.Upsample(2, mode="bilinear"), mtc.Conv2d(6, 12, 1), mtc.AvgPool2d(3, stride=1, padding=1), mtc.Mish(), mtc.AdaptiveAvgPool2d((3, 2))),
    *(mtc.Softmax(dim=-1), mtc.Dropout(0.3), mtc.Flatten(), mtc.Linear(72, 16), mtc.BatchNorm1d(16), mtc.GELU(), mtc.Linear(16, 9)),
    *(mtc.Softplus(), mtc.LogSoftmax(), mtc.Tanh(), mtc.ELU(0.7), mtc.GELU("tanh"), mtc.Sigmoid(), mtc.ReLU()),
]
SEQUENCE_STACK = [
    *(mtc.Embedding(11, 16), mtc.LayerNorm(16, eps=1e-3), mtc.Linear(16, 8), mtc.RMSNorm((5, 8)), mtc.Tanh()),
    *(mtc.LayerNorm((5, 8)), mtc.Flatten(), mtc.Linear(40, 3)),
]
SIGNAL_STACK = [mtc.Conv1d(4, 8, 3, stride=2, padding=1), mtc.Tanh(), mtc.Conv1d(8, 6, 2, dilation=2, groups=2, bias=False), mtc.Flatten()]


@pytest.mark.parametrize(
    "stack, shape, classes", [(IMAGE_STACK, (2, 12, 14), None), (SEQUENCE_STACK, (5,), 11), (SIGNAL_STACK, (4, 11), None)],
    ids=["images", "sequence", "signal"]
)
def test_against_torch(stack, shape, classes):
    """The layers mean what PyTorch's mean, with the same arguments and the same weights."""
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    x = random.normal(size=(7, *shape)).astype(np.float32) if classes is None else random.integers(0, classes, (7, *shape))
    network = mtc.Sequential(stack, loss="mse", input_shape=shape, target="cpu")
    with network:
        twins = torch.nn.ModuleDict(dict(zip(network._network.names(), (torch_twin(layer, torch) for layer in stack)))).eval()
        weights = {name: random.uniform(0.2, 1, size=value.shape).astype(np.float32) for name, value in network.state_dict().items()}
        network.load_state_dict(weights)
        loaded = twins.load_state_dict({name: torch.tensor(value) for name, value in weights.items()}, strict=False)
        assert not loaded.unexpected_keys and all(name.endswith(".num_batches_tracked") for name in loaded.missing_keys)
        truth = torch.tensor(x)
        with torch.no_grad():
            for layer in twins.values():
                truth = layer(truth)
        assert np.allclose(network.predict(x), truth.numpy(), atol=1e-5)


def test_trains():
    """Words as classes, to one yes or no: one word decides. The learning rate changes without a compile."""
    random = np.random.default_rng(0)
    x = random.integers(0, 10, size=(256, 6))
    y = (x == 3).any(1).astype(np.float32)
    layers = [mtc.Embedding(10, 8), mtc.PositionalEmbedding(), mtc.Mean(), mtc.Linear(8, 1)]
    network = mtc.Sequential(layers, "bce", mtc.Adam(0.5), 32, input_shape=(6,), seed=1, target="cpu")
    with network:
        assert network.status["params"] == {"lr": 0.5} and network.status["seed"] == 1
        library = network.path
        network.set(lr=0.02)
        history = network.fit(x, y, epochs=40, verbose=0)
        assert network.path == library and history["accuracy"][-1] > 0.95
        assert network.score(x, y) > 0.95 and network.predict_proba(x).shape == (256, 2)
        assert "value = 0.5" in network.generated  # as the source says


# ---- examples that are mixed ----


def test_changes_of_the_data_are_those_of_the_table():
    """A class of each, and its shapes by what the table says of the data."""
    names = {kind: set(operators.named(kind)) for kind in ("augmentation", "mixture")}
    assert set(augmentation.AUGMENTATIONS) == names["augmentation"] and set(augmentation.MIXTURES) == names["mixture"]
    assert {*augmentation.AUGMENTATIONS.values(), *augmentation.MIXTURES.values()} <= {type(layer) for layer, _, _ in LAYERS}  # see test_layer
    assert mtc.MixUp.takes == "..." and mtc.CutMix.takes == mtc.Rotate.takes == mtc.RandomCrop.takes == "channels rows columns"


@pytest.mark.parametrize("loss, own", [
    ("cross_entropy", "cross_entropy(linear1, {})"),
    (mtc.CrossEntropy(0.1), "cross_entropy(linear1, {}, label_smoothing = 0.1)"),
    ("soft_cross_entropy", "cross_entropy(linear1, {})"),
    ("bce", "bce(linear1, {}, from_logits = true)"),
    (mtc.Huber(2), "huber(linear1, {}, delta = 2)"),
], ids=str)
def test_the_loss_is_of_both_examples(loss, own):
    network = mtc.Sequential([mtc.MixUp(0.5), mtc.Linear(4, 3)], loss, batch=5, target="cpu")
    assert f"loss      = share * {own.format('y')} + (1 - share) * {own.format('other')}\n" in network.source
    assert_formatted(network.source)
    classes, yes = "cross_entropy" in own, "bce" in own
    assert network.description["prediction"] == {"shape": [3], "classes": classes, "yes": yes}


def test_mixed_examples_are_learned_from():
    """In evaluation nothing is mixed: what is right then, is more than what is in training."""
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 300)
    X = (random.normal(size=(300, 3)) / 2 + 3 * np.eye(3)[y]).astype("f4")
    network = mtc.Sequential([mtc.MixUp(), mtc.Linear(3, 3)], optimizer=mtc.Adam(0.05), batch=30, seed=1, target="cpu")
    history = network.fit(X, y, epochs=8, validation_data=(X, y), verbose=0)
    assert network.score(X, y) == pytest.approx(history["val_accuracy"][-1]) and history["val_accuracy"][-1] > 0.98
    assert history["val_loss"][-1] < 0.8 * history["loss"][-1] and history["accuracy"][-1] < 0.95


MIXED_WRONGLY = {
    "layer 2 (cutmix1): CutMix(alpha=1.0) mixes examples that layer 1, MixUp(alpha=1.0), has mixed already": ([mtc.MixUp(), mtc.CutMix()], {}),
    "layer 1 (cutmix1): CutMix(alpha=1.0) takes [channels, rows, columns], but the input gives [4]": ([mtc.CutMix()], {"input_shape": 4}),
    "layer 1.1 (mixup1): MixUp(alpha=1.0) mixes what the whole network sees": ([mtc.Residual([mtc.MixUp()])], {}),
    "normalize_target does not go with MixUp(alpha=1.0)": ([mtc.MixUp()], {"loss": "mse", "normalize_target": True}),
    "the name 'share' has another meaning in the text": ([mtc.MixUp(), mtc.ReLU(name="share")], {}),
}


@pytest.mark.parametrize("message", MIXED_WRONGLY)
def test_what_cannot_be_mixed(message):
    layers, options = MIXED_WRONGLY[message]
    with pytest.raises(mtc.UsageError, match=re.escape(message)):
        mtc.Sequential([*layers, mtc.Flatten()], **{"input_shape": (1, 2, 2), **options})


# ---- what the loss takes as y ----

SIGN = np.where(np.arange(40) % 3, 1, -1)
POINTS = np.random.default_rng(0).normal(size=(40, 3)).astype("f4")
ROWS = abs(POINTS)


@pytest.fixture(scope="module")
def yes_or_no():
    return mtc.Sequential([mtc.Linear(3, 1)], loss="bce", batch=32, target="cpu")


@pytest.fixture(scope="module")
def shares():
    return mtc.Sequential([mtc.Linear(3, 3)], loss="soft_cross_entropy", batch=32, target="cpu")


@pytest.mark.parametrize("y, text", [
    (SIGN, "y: example 0 is -1; the loss 'bce' takes numbers from 0 to 1; -1 and 1 become 0 and 1 by (y + 1) / 2"),
    (SIGN[:, None], "y: example 0, element [0] is -1; the loss 'bce' takes numbers from 0 to 1; -1 and 1 become 0 and 1 by (y + 1) / 2"),
    ((SIGN > 0).astype("u1") * 255, "y: example 1 is 255; the loss 'bce' takes numbers from 0 to 1; 0 and 255 become 0 and 1 by y / 255"),
    ((SIGN + 3) // 2, "y: example 1 is 2; the loss 'bce' takes numbers from 0 to 1; 1 and 2 become 0 and 1 by y - 1"),
    ([0.5, 1.25] * 20, "y: example 1 is 1.25; the loss 'bce' takes numbers from 0 to 1"),
])
def test_targets_of_bce(yes_or_no, y, text):
    before = yes_or_no.state_dict()
    for call in (yes_or_no.fit, yes_or_no.evaluate, yes_or_no.score):
        with pytest.raises(mtc.DataError) as refused:
            call(POINTS, y)
        assert str(refused.value) == text
    with pytest.raises(mtc.DataError, match="^" + re.escape("validation " + text)):
        yes_or_no.fit(POINTS, SIGN > 0, validation_data=(POINTS, y))
    assert all(np.array_equal(before[name], values) for name, values in yes_or_no.state_dict().items())


def test_targets_of_bce_that_are_taken(yes_or_no):
    for y in (SIGN > 0, (SIGN > 0).tolist(), (SIGN > 0).astype("f8")[:, None], np.full(40, 0.25)):
        assert yes_or_no.fit(POINTS, y, epochs=1, verbose=0)["loss"][0] > 0
        assert yes_or_no.evaluate(POINTS, y)["loss"] > 0 and 0 <= yes_or_no.score(POINTS, y) <= 1
    with pytest.raises(mtc.DataError, match="^y: example 0, element .0. is NaN, and 39 more"):
        yes_or_no.fit(POINTS, np.full(40, np.nan))


def test_targets_of_soft_cross_entropy(shares):
    takes = "; the loss 'soft_cross_entropy' takes distributions: numbers from 0 to 1 whose sum is 1"
    for y, text in ((2 * np.eye(3)[np.arange(40) % 3], "y: example 0 is [2, 0, 0], with the sum 2" + takes
                     + "; y / y.sum(axis=-1, keepdims=True) are such"),
                    (np.tile([0.5, 0.25, 0.3], (40, 1)), "y: example 0 is [0.5, 0.25, 0.3], with the sum 1.05" + takes
                     + "; y / y.sum(axis=-1, keepdims=True) are such"),
                    (np.tile([0.5, 1, -0.5], (40, 1)), "y: example 0 is [0.5, 1, -0.5], with the sum 1" + takes),
                    (POINTS[:, :2], "y: field 'y' is f32[3]: expected an array [N, 3], got float32 [40, 2]")):
        with pytest.raises(mtc.DataError) as refused:
            shares.fit(POINTS, y)
        assert str(refused.value) == text
    for y in (ROWS / ROWS.sum(1, keepdims=True), np.eye(3, dtype=int)[np.arange(40) % 3],
              (ROWS / ROWS.sum(1, keepdims=True)).astype("f2")):
        assert shares.fit(POINTS, y, epochs=1, verbose=0)["loss"][0] > 0


# ---- names of other packages ----


class MSELoss:
    """As torch.nn has it."""


@pytest.mark.parametrize("given, meant", [
    ("sparse_categorical_crossentropy", "cross_entropy"), ("categorical_crossentropy", "soft_cross_entropy"),
    ("BinaryCrossentropy", "bce"), ("mean_squared_error", "mse"), ("MSE", "mse"), ("ce", "cross_entropy"),
    ("nll", "cross_entropy"), ("NLLLoss", "cross_entropy"), ("Cross-Entropy", "cross_entropy"), ("mse_loss", "mse"),
    ("CrossEntropyLoss", "cross_entropy"), ("BCEWithLogitsLoss", "bce"), ("L1Loss", "mae"), ("Huber", "huber"),
    ("mze", "mse"), (MSELoss(), "mse"), (MSELoss, "mse"), ("hinge", None),
])
def test_losses_of_other_packages(given, meant):
    with pytest.raises(mtc.UsageError) as refused:
        mtc.Sequential([mtc.Linear(3, 3)], loss=given)
    assert str(refused.value).endswith(f"; did you mean {meant!r}?" if meant else "not 'hinge'")


def test_aliases_are_losses():
    assert set(loss_module.ALIASES.values()) <= set(loss_module.LOSSES)


@pytest.mark.parametrize("make, text", [
    (lambda **given: mtc.Sequential([mtc.Linear(3, 3)], **given), "Sequential has no argument 'batch_size'; did you mean 'batch'?"),
    (lambda **given: mtc.Sequential([mtc.Linear(3, 3)], optimiser="adam"), "Sequential has no argument 'optimiser'; did you mean 'optimizer'?"),
    (lambda **given: mtc.Sequential([mtc.Linear(3, 3)], zzz=1), "Sequential has no argument 'zzz'; its arguments are layers, loss, "),
    (lambda **given: mtc.NeuralNetworkGPU(3, 4, 3, batch=1), "NeuralNetworkGPU has no argument 'batch'; did you mean 'batch_size'?"),
    (lambda **given: mtc.NeuralNetworkGPU(3, 4, 3, 8, 0.1), "NeuralNetworkGPU takes inputs, hidden, outputs, batch_size without their names"),
])
def test_unknown_arguments(make, text):
    with pytest.raises(TypeError) as refused:
        make(batch_size=3)
    assert str(refused.value).startswith(text)


def test_layers_are_a_list():
    for more in ((), (mtc.ReLU(),), (mtc.ReLU(),) * 6):
        shown = ", ".join(["Linear(...)", *["ReLU(...)"] * len(more)])
        with pytest.raises(mtc.UsageError) as refused:
            mtc.Sequential(mtc.Linear(3, 2), *more)
        assert str(refused.value).endswith(f": Sequential([{shown}])")


def test_settings_are_of_sequential():
    with pytest.raises(mtc.UsageError, match="^Sequential: batch is a whole number from 1 on, not 0$"):
        mtc.Sequential([mtc.Linear(3, 3)], batch=0)


# ---- data frames ----


def test_columns_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame, y = pandas.DataFrame(POINTS, columns=["red", "green", "blue"]), np.arange(40) % 3
    other = frame[["blue", "green", "red"]]
    network = mtc.Sequential([mtc.Linear(3, 3)], target="cpu")
    network.fit(POINTS, y, epochs=1, verbose=0)
    network.predict(other)  # of an array nobody knows what the columns are
    text = ("X has its columns in another order than the data frame of fit\n  fit: ['red', 'green', 'blue']\n"
            "  X: ['blue', 'green', 'red']\n  X[['red', 'green', 'blue']] has them in that order; X.to_numpy() goes by position alone")
    with pytest.raises(mtc.DataError, match="^" + re.escape("validation " + text.split("\n")[0])):
        network.fit(frame, y, validation_data=(other, y))
    network.predict(other)  # that fit trained nothing
    network.fit(frame, y, epochs=1, verbose=0, validation_data=(frame, y))
    for call in (lambda: network.predict(other), lambda: network.score(other, y), lambda: network.evaluate(other, y),
                 lambda: network.fit(other, y)):
        with pytest.raises(mtc.DataError) as refused:
            call()
        assert str(refused.value) == text
    with pytest.raises(mtc.DataError, match="^X has other columns than the data frame of fit\n"):
        network.predict(frame.rename(columns={"red": "rot"}))
    assert np.array_equal(network.predict(frame), network.predict(POINTS))
    assert network.predict(pandas.DataFrame(POINTS)).shape == (40,)
    assert network.predict(other.to_numpy()).shape == (40,)
    checkpoint = network.dumps()
    for forgets in (network.reset, lambda: network.loads(checkpoint)):
        forgets()
        network.fit(other, y, epochs=1, verbose=0)
