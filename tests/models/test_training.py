"""What a training step does with gradients, in compiled programs: optimizers, schedules of the learning rate, clipping,
accumulation, averages of weights, frozen and undecayed weights.

The reference is PyTorch's documentation written down in NumPy and float64, over 100 steps of a small network whose last
batch of each epoch is a partial one. Programs are for the CPU, in f64, and once more in f32."""

import functools
import json
import math
import re
from fnmatch import fnmatchcase
from types import SimpleNamespace

import numpy as np
import pytest
from evaluator import evaluate, parse
from fake_data import idx_bytes
from library import Library
from matrix_optimizers import adafactor, muon
from random_port import permutation, shuffle_key

pytestmark = pytest.mark.quick

STEPS, EXAMPLES, BATCH, EPOCHS, SEED = 100, 27, 4, 14, 1
PER_EPOCH = math.ceil(EXAMPLES / BATCH)
TOTAL = EPOCHS * PER_EPOCH  # 98: the last two steps go beyond it
IN, HIDDEN, OUT = 20, 16, 2
SHAPES = {"h.weight": (HIDDEN, IN), "h.bias": (HIDDEN,), "y.weight": (OUT, HIDDEN), "y.bias": (OUT,)}


def model(settings, params=""):
    return f"""\
{params}
data {{
  train  = idx("x", "target")
  x      : f32[{IN}]
  target : f32[{OUT}]
}}
model {{
  h = tanh(linear(x, {HIDDEN}))
  y = linear(h, {OUT})
}}
train {{
  loss   = mse(y, target)
  batch  = {BATCH}
  epochs = {EPOCHS}
  {settings}
}}
"""


# ---- the network in NumPy ----


def examples():
    random = np.random.default_rng(5)
    x = random.normal(size=(EXAMPLES, IN)).astype(np.float32)
    return x, (3 * np.sin(x[:, :OUT]) + random.normal(size=(EXAMPLES, OUT))).astype(np.float32)


@functools.cache
def order_of(epoch):
    return permutation(shuffle_key(SEED, epoch), EXAMPLES)


def batch_of(step):
    """The rows of the training step, from 1."""
    epoch, position = divmod(step - 1, PER_EPOCH)
    return order_of(epoch)[position * BATCH : (position + 1) * BATCH]


def gradients(w, x, target):
    h = np.tanh(x @ w["h.weight"].T + w["h.bias"])
    d_y = 2 * (h @ w["y.weight"].T + w["y.bias"] - target) / target.size
    d_h = d_y @ w["y.weight"] * (1 - h * h)
    return {"h.weight": d_h.T @ x, "h.bias": d_h.sum(0), "y.weight": d_y.T @ h, "y.bias": d_y.sum(0)}


def mean_loss(w, x, target):
    return ((np.tanh(x @ w["h.weight"].T + w["h.bias"]) @ w["y.weight"].T + w["y.bias"] - target) ** 2).mean()


# ---- optimizers, each (w, g, state, lr, t, decay) -> w; `decay` says whether weight decay applies ----


def sgd(momentum=0.0, weight_decay=0.0, nesterov=False):
    def update(w, g, state, lr, t, decay):
        g = g + decay * weight_decay * w
        if momentum:
            state["b"] = momentum * state["b"] + g if "b" in state else g
            g = g + momentum * state["b"] if nesterov else state["b"]
        return w - lr * g

    return update


def adam(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, decoupled=False):
    def update(w, g, state, lr, t, decay):
        if decoupled:
            w = w - lr * decay * weight_decay * w
        else:
            g = g + decay * weight_decay * w
        state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
        state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g**2
        m, v = state["m"] / (1 - beta1**t), state["v"] / (1 - beta2**t)
        return w - lr * m / (np.sqrt(v) + eps)

    return update


def rmsprop(alpha=0.99, eps=1e-8, momentum=0.0, weight_decay=0.0, centered=False):
    def update(w, g, state, lr, t, decay):
        g = g + decay * weight_decay * w
        state["v"] = alpha * state.get("v", 0) + (1 - alpha) * g**2
        v = state["v"]
        if centered:
            state["a"] = state.get("a", 0) + (1 - alpha) * (g - state.get("a", 0))
            v = v - state["a"] ** 2
        step = g / (np.sqrt(v) + eps)
        if momentum:
            step = state["b"] = momentum * state.get("b", 0) + step
        return w - lr * step

    return update


def adagrad(eps=1e-10, weight_decay=0.0):
    def update(w, g, state, lr, t, decay):
        g = g + decay * weight_decay * w
        state["sum"] = state.get("sum", 0) + g * g
        return w - lr * g / (np.sqrt(state["sum"]) + eps)

    return update


def lion(beta1=0.9, beta2=0.99, weight_decay=0.0):
    def update(w, g, state, lr, t, decay):
        m = state.get("m", np.zeros_like(w))
        direction = np.sign(beta1 * m + (1 - beta1) * g)
        state["m"] = beta2 * m + (1 - beta2) * g
        return w - lr * (direction + decay * weight_decay * w)

    return update


def of_matrices(update, rest):
    """One optimizer for matrices, one for vectors."""
    return lambda w, *arguments: (update if w.ndim > 1 else rest)(w, *arguments)


# ---- schedules: t from 1 ----


def rising(t, warmup):
    return t / warmup if t < warmup else 1.0


def progress(t, warmup):
    w = max(warmup, 1)
    return 0.0 if t <= w else 1.0 if t >= TOTAL else (t - w) / (TOTAL - w)


def constant(lr, warmup=0):
    return lambda t: lr * rising(t, warmup)


def stepped(lr, every, factor=0.1, warmup=0):
    return lambda t: lr * factor ** ((t - 1) // every) * rising(t, warmup)


def cosine(lr, final=0.0, warmup=0):
    return lambda t: rising(t, warmup) * (final + (lr - final) * (1 + math.cos(math.pi * progress(t, warmup))) / 2)


def linear(lr, final=0.0, warmup=0):
    return lambda t: rising(t, warmup) * (lr + (final - lr) * progress(t, warmup))


def one_cycle(lr, rise=0.3, start=None, final=None):
    """torch.optim.lr_scheduler.OneCycleLR, whose steps count from 0."""
    start, final = lr / 25 if start is None else start, lr / 250000 if final is None else final

    def anneal(a, b, part):
        return b + (a - b) / 2 * (1 + math.cos(math.pi * part))

    def at(t):
        number, peak, end = min(t, TOTAL) - 1, rise * TOTAL - 1, TOTAL - 1
        return anneal(start, lr, number / peak) if number <= peak else anneal(lr, final, (number - peak) / (end - peak))

    return at


def wsd(lr, decay=0.2, final=0.0, warmup=0):
    def at(t):
        begin = TOTAL - decay * TOTAL
        part = min(max((t - begin) / (TOTAL - begin), 0), 1)
        return rising(t, warmup) * (lr + (final - lr) * part)

    return at


# ---- training ----


class Reference:
    def __init__(self, weights, update, rate, **settings):
        self.w, self.update, self.rate = dict(weights), update, rate
        self.set = SimpleNamespace(
            **{"accumulate": 1, "clip_value": None, "clip_norm": None, "ema": None, "freeze": [], "no_decay": []} | settings
        )
        self.trained = [name for name in SHAPES if not self.matches(self.set.freeze, name)]
        self.state = {name: {} for name in SHAPES}
        self.sum = {name: 0 for name in SHAPES}
        self.averages, self.updates, self.norms = dict(weights), 0, []

    @staticmethod
    def matches(patterns, name):
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    def clipped(self, g):
        if self.set.clip_value is not None:
            g = {name: np.clip(value, -self.set.clip_value, self.set.clip_value) for name, value in g.items()}
        if self.set.clip_norm is not None:
            self.norms.append(np.sqrt(sum((value**2).sum() for value in g.values())))
            factor = min(1, self.set.clip_norm / (self.norms[-1] + 1e-6))
            g = {name: factor * value for name, value in g.items()}
        return g

    def step(self, t, x, target):
        g = gradients(self.w, x, target)
        for name in self.trained:
            self.sum[name] = self.sum[name] + g[name]
        if t % self.set.accumulate:
            return
        g = self.clipped({name: self.sum[name] / self.set.accumulate for name in self.trained})
        self.sum = {name: 0 for name in SHAPES}
        self.updates += 1
        for name in self.trained:
            decay = not self.matches(self.set.no_decay, name)
            self.w[name] = self.update(self.w[name], g[name], self.state[name], self.rate(t), self.updates, decay)
            if self.set.ema is not None:
                self.averages[name] = self.set.ema * self.averages[name] + (1 - self.set.ema) * self.w[name]

    def train(self, steps):
        x, target = examples()
        for t in range(1, steps + 1):
            rows = batch_of(t)
            self.step(t, x[rows].astype(float), target[rows].astype(float))


@pytest.fixture
def library(compile_model):
    """library(settings, params, real): the compiled program, its data set."""
    opened = []

    def open_library(settings, params="", real=np.float64):
        flags = ["--real", "f64"] if real == np.float64 else []
        opened.append(Library(compile_model(model(settings, params), "--shared", *flags).path, real, SEED))
        opened[-1].set_data(examples())
        return opened[-1]

    yield open_library
    for one in opened:
        one.close()


def weights_of(library):
    return {name: library.get(name, shape) for name, shape in SHAPES.items()}


def check(library, reference, steps=STEPS, rtol=1e-9, atol=1e-10):
    library.train(steps, 1)
    reference.train(steps)
    for name, value in weights_of(library).items():
        np.testing.assert_allclose(value, reference.w[name], rtol, atol, err_msg=name)


RUNS = {
    "sgd": ("sgd(0.05)", sgd(), 0.05),
    "sgd momentum": ("sgd(0.05, momentum = 0.9, weight_decay = 0.01)", sgd(0.9, 0.01), 0.05),
    "sgd nesterov": ("sgd(0.05, momentum = 0.9, nesterov = true)", sgd(0.9, nesterov=True), 0.05),
    "adam": ("adam(0.01)", adam(), 0.01),
    "adam decay": ("adam(0.01, beta1 = 0.8, beta2 = 0.95, eps = 1e-3, weight_decay = 0.1)", adam(0.8, 0.95, 1e-3, 0.1), 0.01),
    "adamw": ("adamw(0.01, weight_decay = 0.1)", adam(weight_decay=0.1, decoupled=True), 0.01),
    "rmsprop": ("rmsprop(0.002)", rmsprop(), 0.002),
    "rmsprop default": ("rmsprop()", rmsprop(), 0.01),
    "rmsprop momentum": ("rmsprop(0.002, rho = 0.9, eps = 1e-4, momentum = 0.8)", rmsprop(0.9, 1e-4, 0.8), 0.002),
    "rmsprop centered": ("rmsprop(0.002, eps = 1e-3, centered = true)", rmsprop(eps=1e-3, centered=True), 0.002),
    "rmsprop all": (
        "rmsprop(0.002, 0.95, eps = 1e-3, momentum = 0.5, weight_decay = 0.05, centered = true)",
        rmsprop(0.95, 1e-3, 0.5, 0.05, True),
        0.002,
    ),
    "adagrad": ("adagrad(0.02)", adagrad(), 0.02),
    "adagrad all": ("adagrad(0.02, eps = 1e-3, weight_decay = 0.05)", adagrad(1e-3, 0.05), 0.02),
    "adafactor": ("adafactor()", adafactor(), 0.01),
    "adafactor all": (
        "adafactor(0.02, beta2_decay = 0.7, eps = 0.1, clip = 0.5, weight_decay = 0.1)",
        adafactor(0.7, 0.1, 0.5, 0.1),
        0.02,
    ),
    "muon": ('[muon(0.02, weights = "*.weight"), adam(0.02)]', of_matrices(muon(), adam()), 0.02),
    "muon all": (
        '[muon(0.05, 0.8, 0.1, nesterov = false, iterations = 3, weights = "!*.bias"), sgd(0.05, 0.9)]',
        of_matrices(muon(0.8, 0.1, False, 3), sgd(0.9)),
        0.05,
    ),
    "lion": ("lion(0.001)", lion(), 0.001),
    "lion default": ("lion()", lion(), 1e-4),
    "lion decay": ("lion(0.001, beta1 = 0.8, beta2 = 0.95, weight_decay = 0.1)", lion(0.8, 0.95, 0.1), 0.001),
}


@pytest.mark.vectors
@pytest.mark.parametrize("text, update, rate", RUNS.values(), ids=RUNS)
def test_optimizer(text, update, rate, library):
    program = library(f"optimizer = {text}")
    check(program, Reference(weights_of(program), update, lambda t: rate))


@pytest.mark.full
@pytest.mark.parametrize("name", ["rmsprop all", "adamw", "adafactor all"])
def test_optimizer_in_single_precision(name, library):
    text, update, rate = RUNS[name]
    program = library(f"optimizer = {text}", real=np.float32)
    check(program, Reference(weights_of(program), update, lambda t: rate), rtol=2e-4, atol=2e-5)


SCHEDULES = {
    "constant_lr(0.05)": constant(0.05),
    "constant_lr(0.05, warmup = 10)": constant(0.05, 10),
    "step_lr(0.1, every = 30)": stepped(0.1, 30),
    "step_lr(0.1, 2 * steps_per_epoch, factor = 0.5, warmup = 5)": stepped(0.1, 2 * PER_EPOCH, 0.5, 5),
    "cosine_lr(0.1)": cosine(0.1),
    "cosine_lr(0.1, final = 0.01, warmup = steps_per_epoch)": cosine(0.1, 0.01, PER_EPOCH),
    "cosine_lr(0.1, warmup = 0.25 * total_steps)": cosine(0.1, warmup=TOTAL / 4),
    "cosine_lr(0.1, warmup = 3 * total_steps)": cosine(0.1, warmup=3 * TOTAL),
    "linear_lr(0.1)": linear(0.1),
    "linear_lr(0.1, final = 0.02, warmup = 20)": linear(0.1, 0.02, 20),
    "linear_lr(0.1, end = 2 * steps_per_epoch)": lambda t: 0.1 * max(1 - (t - 1) / (2 * PER_EPOCH - 1), 0),
    "one_cycle_lr(0.1)": one_cycle(0.1),
    "one_cycle_lr(0.1, rise = 0.5, start = 0.02, final = 0.001)": one_cycle(0.1, 0.5, 0.02, 0.001),
    "wsd_lr(0.1)": wsd(0.1),
    "wsd_lr(0.1, decay = 0.5, final = 0.01, warmup = 12)": wsd(0.1, 0.5, 0.01, 12),
    "0.5 * cosine_lr(0.1, warmup = 4) + 0.01": lambda t: 0.5 * cosine(0.1, warmup=4)(t) + 0.01,
}


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedule(text, library):
    """The rate of each step shows in the bias's own step: sgd moves the weights by rate times gradient."""
    program = library(f"optimizer = sgd({text}, momentum = 0.5)")
    check(program, Reference(weights_of(program), sgd(0.5), SCHEDULES[text]))


@pytest.mark.full
def test_schedule_in_single_precision(library):
    text = "cosine_lr(0.1, final = 0.01, warmup = steps_per_epoch)"
    program = library(f"optimizer = sgd({text})", real=np.float32)
    check(program, Reference(weights_of(program), sgd(), SCHEDULES[text]), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("text, first, warm, last", [
    ("cosine_lr(0.1, final = 0.01, warmup = 7)", 0.1 / 7, 0.1, 0.01),
    ("linear_lr(0.1, final = 0.01, warmup = 7)", 0.1 / 7, 0.1, 0.01),
    ("wsd_lr(0.1, final = 0.01, warmup = 7)", 0.1 / 7, 0.1, 0.01),
    ("constant_lr(0.1, warmup = 7)", 0.1 / 7, 0.1, 0.1),
    ("one_cycle_lr(0.1, rise = 7 / 98)", 0.1 / 25, 0.1, 0.1 / 250000),
])
def test_first_and_last_steps(text, first, warm, last, library):
    """What the reference manual says of step 1, of the end of the warm-up, of the last step and of those after it."""
    program = library(f"optimizer = sgd({text})")
    x, target = examples()
    rates = []
    for t in range(1, TOTAL + 3):
        before, rows = weights_of(program), batch_of(t)
        program.train(1, 1)
        g = gradients(before, x[rows].astype(float), target[rows].astype(float))["h.weight"]
        rates.append(((before["h.weight"] - program.get("h.weight", SHAPES["h.weight"])) * g).sum() / (g * g).sum())
    expected = [first, warm, last, last, last]
    assert [rates[0], rates[6], *rates[TOTAL - 1 :]] == pytest.approx(expected, rel=1e-6, abs=1e-9)


GRADIENTS = {
    "clip_value": ("clip_value = 0.05", {"clip_value": 0.05}),
    "clip_norm": ("clip_norm = 0.5", {"clip_norm": 0.5}),
    "clip_norm never": ("clip_norm = 1000", {"clip_norm": 1000}),
    "clip both": ("clip_value = 0.1\n  clip_norm = 0.4", {"clip_value": 0.1, "clip_norm": 0.4}),
    "accumulate": ("accumulate = 3", {"accumulate": 3}),
    "accumulate 1": ("accumulate = 1", {}),
    "accumulate and clip": ("accumulate = 5\n  clip_norm = 0.3\n  clip_value = 0.2",
                            {"accumulate": 5, "clip_norm": 0.3, "clip_value": 0.2}),
    "freeze": ('freeze = ["h.*"]', {"freeze": ["h.*"]}),
    "freeze some": ('freeze = ["*.bias", "y.w*t"]\n  clip_norm = 0.2', {"freeze": ["*.bias", "y.w*t"], "clip_norm": 0.2}),
    "no_decay": ('no_decay = ["*.bias"]', {"no_decay": ["*.bias"]}),
    "no_decay one": ('no_decay = "h.weight"', {"no_decay": ["h.weight"]}),
}


@pytest.mark.parametrize("text, settings", GRADIENTS.values(), ids=GRADIENTS)
@pytest.mark.parametrize("optimizer, update", [
    ("adamw(cosine_lr(0.02), weight_decay = 0.1)", adam(weight_decay=0.1, decoupled=True)),
    ("sgd(cosine_lr(0.02), momentum = 0.9, weight_decay = 0.1)", sgd(0.9, 0.1)),
], ids=["adamw", "sgd"])
def test_gradients(optimizer, update, text, settings, library):
    program = library(f"optimizer = {optimizer}\n  {text}")
    reference = Reference(weights_of(program), update, cosine(0.02), **settings)
    check(program, reference)
    if settings.get("clip_norm", 1000) < 1000:
        assert max(reference.norms) > settings["clip_norm"], "nothing was clipped"


SHIFTED = """\
data {{
  train = idx("x", "target")
  x      : f32[{width}]
  target : f32[1]
}}
model {{
  y = linear(x, 1)
  z = y + weight([], init = zeros(), name = "shift")
}}
train {{
  loss      = mse(z, target)
  batch     = 8
  optimizer = sgd(0.05)
  clip_norm = 0.3
}}
"""


@pytest.mark.vectors
@pytest.mark.parametrize("width", [2, 257, 521, 1024])
def test_clip_norm_of_any_shape(width, compile_model):
    """A scalar, and a row whose length is a prime number, more than there are parts of a gradient."""
    text = SHIFTED.format(width=width)
    program = Library(compile_model(text, "--shared", "--real", "f64").path, np.float64, SEED)
    random = np.random.default_rng(3)
    x, target = random.normal(size=(8, width)).astype(np.float32), random.normal(size=(8, 1)).astype(np.float32)
    program.set_data((x, target))
    names = {"y.weight": (1, width), "y.bias": (1,), "shift": ()}
    w, b, s = (program.get(name, shape) for name, shape in names.items())
    for _ in range(10):
        d_y = 2 * (x @ w.T + b + s - target) / 8
        g = d_y.T @ x.astype(float), d_y.sum(0), d_y.sum()
        factor = min(1, 0.3 / (math.sqrt(sum((d**2).sum() for d in g)) + 1e-6))
        w, b, s = (v - 0.05 * factor * d for v, d in zip((w, b, s), g))
    program.train(10, 1)
    for (name, shape), value in zip(names.items(), (w, b, s)):
        np.testing.assert_allclose(program.get(name, shape), value, 1e-9, 1e-12, err_msg=name)
    program.close()


def test_frozen_weights_do_not_move_and_have_no_state(library):
    program = library('optimizer = adam(0.01)\n  freeze = ["h.*"]')
    before = weights_of(program)
    program.train(STEPS, 1)
    after = weights_of(program)
    assert [name for name in SHAPES if (before[name] == after[name]).all()] == ["h.weight", "h.bias"]
    program.get("y.weight.m", SHAPES["y.weight"])
    with pytest.raises(AssertionError, match="there is no tensor"):
        program.get("h.weight.m", SHAPES["h.weight"])


def test_frozen_weights_may_be_ones_that_the_loss_does_not_need(mtc, tmp_path):
    text = model('optimizer = sgd(0.1)\n  freeze = ["unused"]').replace("  h =", "  unused = weight([3])\n  z = sum(unused)\n  h =")
    (tmp_path / "m.mt").write_text(text)
    assert mtc("--emit=plan", tmp_path / "m.mt").returncode == 0


@pytest.mark.vectors
@pytest.mark.parametrize("accumulate", [1, 4])
def test_ema(accumulate, library):
    program = library(f"optimizer = adam(0.01)\n  ema = 0.95\n  accumulate = {accumulate}")
    start = weights_of(program)
    for name, shape in SHAPES.items():
        np.testing.assert_array_equal(program.get(f"{name}.ema", shape), start[name])
    reference = Reference(start, adam(), lambda t: 0.01, ema=0.95, accumulate=accumulate)
    check(program, reference)
    for name, shape in SHAPES.items():
        np.testing.assert_allclose(program.get(f"{name}.ema", shape), reference.averages[name], 1e-9, 1e-10)
    x, target = (array.astype(float) for array in examples())
    loss = program.evaluate(1)[0]
    assert loss == pytest.approx(mean_loss(reference.averages, x, target), rel=1e-9)
    assert loss != pytest.approx(mean_loss(reference.w, x, target), rel=1e-3)


def test_ema_leaves_frozen_weights_alone(library):
    program = library('optimizer = adam(0.01)\n  ema = 0.9\n  freeze = ["h.*"]')
    reference = Reference(weights_of(program), adam(), lambda t: 0.01, ema=0.9, freeze=["h.*"])
    check(program, reference)
    x, target = (array.astype(float) for array in examples())
    assert program.evaluate(1)[0] == pytest.approx(mean_loss(reference.averages, x, target), rel=1e-9)


def test_settings_that_are_params(library):
    params = "param limit = 0.5\nparam decay = 0.9 in 0..1\nparam rate = 0.02\n"
    program = library("optimizer = adam(cosine_lr(rate))\n  clip_norm = limit\n  ema = decay", params)
    start = weights_of(program)
    for knob, value in {"limit": 0.25, "rate": 0.0625}.items():
        program.set_knob(knob, value)
    reference = Reference(start, adam(), cosine(0.0625), clip_norm=0.25, ema=np.float32(0.9).astype(float))
    check(program, reference)


def test_steps_that_make_no_update_change_nothing_but_the_sum(library):
    program = library("optimizer = adam(0.01)\n  accumulate = 4\n  ema = 0.9")
    start, names = weights_of(program), [f"{name}{state}" for name in SHAPES for state in (".m", ".v", ".ema")]
    states = {name: program.get(name, SHAPES[name.rpartition(".")[0]]) for name in names}
    program.train(3, 1)
    for name, value in weights_of(program).items():
        np.testing.assert_array_equal(value, start[name])
    for name, value in states.items():
        np.testing.assert_array_equal(program.get(name, value.shape), value)
    assert np.abs(program.get("h.weight.gradient", SHAPES["h.weight"])).max() > 0
    program.train(1, 1)
    assert np.abs(program.get("h.weight.gradient", SHAPES["h.weight"])).max() == 0


EVERYTHING = """\
optimizer  = adamw(cosine_lr(0.02, warmup = steps_per_epoch), weight_decay = 0.1)
  accumulate = 3
  clip_value = 0.2
  clip_norm  = 0.3
  ema        = 0.95
  no_decay   = ["*.bias"]"""


def everything(weights):
    settings = {"accumulate": 3, "clip_value": 0.2, "clip_norm": 0.3, "ema": 0.95, "no_decay": ["*.bias"]}
    return Reference(weights, adam(weight_decay=0.1, decoupled=True), cosine(0.02, warmup=PER_EPOCH), **settings)


@pytest.mark.parametrize("stage", ["grad", "simple"])
def test_dumped_graph(stage, mtc, tmp_path):
    """The graphs that --emit shows say the same."""
    (tmp_path / "m.mt").write_text(model(EVERYTHING))
    graph = parse(mtc(f"--emit={stage}", tmp_path / "m.mt").stdout)["train"]
    random = np.random.default_rng(8)
    start = {name: random.normal(size=shape) for name, shape in SHAPES.items()}
    leaves = {node.name: np.zeros(node.shape) for node in graph if node.op == "state"}
    leaves |= start | {f"{name}.ema": value for name, value in start.items()}
    leaves |= {"steps_per_epoch": PER_EPOCH, "total_steps": TOTAL}
    reference = everything(start)
    x, target = (array[:BATCH].astype(float) for array in examples())
    for t in range(1, 11):
        leaves |= evaluate(graph, leaves | {"x": x, "target": target}, step=t).assigned
        reference.step(t, x, target)
    for name in SHAPES:
        np.testing.assert_allclose(leaves[name], reference.w[name], 1e-9, 1e-12)
        np.testing.assert_allclose(leaves[f"{name}.ema"], reference.averages[name], 1e-9, 1e-12)


@pytest.mark.parametrize("schedule", ["graph", "persistent"])
@pytest.mark.parametrize("settings", [EVERYTHING, f"optimizer = {RUNS['muon'][0]}", f"optimizer = {RUNS['adafactor'][0]}"],
                         ids=["everything", "muon", "adafactor"])
def test_nvcc_takes_the_text(settings, schedule, cuda_takes):
    cuda_takes(model(settings), "--schedule", schedule)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", ["graph", "persistent"])
def test_on_a_gpu(schedule, compile_model):
    path = compile_model(model(EVERYTHING), "--shared", "--schedule", schedule, target="cuda").path
    program = Library(path, np.float32, SEED)
    program.set_data(examples())
    reference = everything(weights_of(program))
    check(program, reference, rtol=2e-3, atol=2e-4)
    for name, shape in SHAPES.items():
        np.testing.assert_allclose(program.get(f"{name}.ema", shape), reference.averages[name], 2e-3, 2e-4)
    program.close()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["muon", "adafactor all"])
def test_optimizer_on_a_gpu(name, compile_model):
    text, update, rate = RUNS[name]
    program = Library(compile_model(model(f"optimizer = {text}"), "--shared", target="cuda").path, np.float32, SEED)
    program.set_data(examples())
    check(program, Reference(weights_of(program), update, lambda t: rate), 20, rtol=2e-3, atol=2e-4)
    program.close()


# ---- the program ----


@pytest.fixture
def run(compile_model, tmp_path):
    """run(settings, *arguments): the program with its data in files."""
    for name, values in zip(("x", "target"), examples()):
        (tmp_path / name).write_bytes(idx_bytes(values))

    def run_program(settings, *arguments):
        text = model(settings).replace('  x ', '  test   = idx("x", "target")\n  x ')
        return compile_model(text)(*arguments, "--data", tmp_path, cwd=tmp_path)

    return run_program


def tensors(path):
    """The arrays of a safetensors file."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[end:][slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items() if entry["dtype"] == "F32"}


def test_the_flag_for_epochs_decides_total_steps(run, tmp_path, monkeypatch):
    settings = "optimizer = sgd(cosine_lr(0.1))"
    start = {name: value.astype(float) for name, value in weights_at_start(run, settings, tmp_path).items()}
    for limit, steps in (([], 2 * PER_EPOCH), (["--limit-steps", 10], 10)):
        run(settings, "train", "--seed", SEED, "--epochs", 2, *limit, "--save", "w.safetensors", "--quiet")
        monkeypatch.setitem(globals(), "TOTAL", 2 * PER_EPOCH)
        reference = Reference(start, sgd(), cosine(0.1))
        reference.train(steps)
        for name, value in reference.w.items():
            np.testing.assert_allclose(tensors(tmp_path / "w.safetensors")[name], value, 1e-4, 1e-5, err_msg=name)


def weights_at_start(run, settings, folder):
    """A rate of 0 moves nothing."""
    run(settings.replace("0.1", "0"), "train", "--seed", SEED, "--epochs", 1, "--save", "start.safetensors", "--quiet")
    return tensors(folder / "start.safetensors")


def test_resumed_training_is_the_same_training(run, tmp_path):
    """Also where it stopped between two updates."""
    settings = "optimizer = adam(one_cycle_lr(0.05))\n  accumulate = 4\n  ema = 0.9\n  clip_norm = 0.5"
    run(settings, "train", "--epochs", 4, "--save", "whole.safetensors", "--quiet")
    run(settings, "train", "--epochs", 4, "--limit-steps", 11, "--save", "part.safetensors", "--quiet")
    run(settings, "train", "--resume", "part.safetensors", "--save", "resumed.safetensors", "--quiet")
    whole, resumed = tensors(tmp_path / "whole.safetensors"), tensors(tmp_path / "resumed.safetensors")
    assert whole.keys() == resumed.keys() and "h.weight.gradient" in whole
    for name, value in whole.items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)


def test_weights_that_are_called_as_states_are(compile_model, tmp_path):
    """`q.m` and fp16's `update.skipped`: a file has each name once, or none could read it."""
    np.save(tmp_path / "x.npy", np.ones((8, 3), "f4"))
    model = """fn scaled(x) {
  m       = weight([3], init = constant(2))
  skipped = weight([3], init = constant(3))
  return x * weight([3], init = constant(1)) + m * skipped
}
data {
  train = npy("x.npy")
  x : f32[3]
}
model {
  q      = scaled(x)
  update = scaled(q)
}
train {
  loss      = mean(update * update)
  predict   = update
  optimizer = adam(1e-2)
  batch     = 4
  epochs    = 4
  precision = fp16
}
"""
    program, common = compile_model(model), ("--data", tmp_path, "--quiet")
    program(*common, "--save", tmp_path / "whole.safetensors")
    program(*common, "--limit-steps", 3, "--save", tmp_path / "part.safetensors")
    program(*common, "--resume", tmp_path / "part.safetensors", "--save", tmp_path / "part.safetensors")
    saved = tensors(tmp_path / "whole.safetensors")
    assert {"q.m", "q.m.m", "q.m.state", "update.skipped", "update.skipped.state"} < saved.keys()
    assert abs(saved["q.m"] - 2).max() < 0.1 and saved["update.skipped.state"] == 0
    assert (tmp_path / "whole.safetensors").read_bytes() == (tmp_path / "part.safetensors").read_bytes()


def test_a_checkpoint_is_evaluated_with_its_averages(run, tmp_path):
    run("optimizer = adam(0.05)\n  ema = 0.9", "train", "--epochs", 4, "--save", "w.safetensors", "--log", "log", "--quiet")
    averages = {name: value.astype(float) for name, value in tensors(tmp_path / "w.safetensors").items()}
    expected = mean_loss({name: averages[f"{name}.ema"] for name in SHAPES}, *(a.astype(float) for a in examples()))
    shown = run("optimizer = adam(0.05)\n  ema = 0.9", "eval", "--load", "w.safetensors").stdout
    assert float(re.search(r"loss (\S+)", shown)[1]) == pytest.approx(expected, rel=1e-3)
    assert expected != pytest.approx(mean_loss(averages, *(a.astype(float) for a in examples())), rel=1e-2)


def test_averages_begin_with_the_weights_that_training_begins_with(run, tmp_path):
    run("optimizer = adam(0.05)", "train", "--epochs", 3, "--save", "first.safetensors", "--quiet")
    run("optimizer = adam(0)\n  ema = 0.9", "train", "--epochs", 1, "--init-from", "first.safetensors",
        "--save", "second.safetensors", "--quiet")
    first, second = tensors(tmp_path / "first.safetensors"), tensors(tmp_path / "second.safetensors")
    for name in SHAPES:
        np.testing.assert_allclose(second[f"{name}.ema"], first[name], 1e-6, err_msg=name)
