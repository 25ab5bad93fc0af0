"""Every operator as a small model, and its value in NumPy.

A case is an expression over x and z, two tensors that are data plus a weight each, so that the gradient with respect to
the weight is the gradient with respect to x or z. The loss of an example is sum(y * probe) with a random probe, which
makes every element of y and of its gradient count. Several cases can share one model, since compiling takes time.
"""

import functools
import itertools
import math
import re
import zlib
from dataclasses import dataclass, field
from typing import Callable

import numpy as np

BATCH, CLASSES = 3, 5
FARTHEST = 2e-3  # steps of finite differences are as long at most (in f32)
LABELS = np.array([2, 2, 3])  # of the examples


@dataclass
class Case:
    id: str
    y: str  # the expression, of x, z, label, target
    value: Callable  # the same in NumPy: of (x, z, extra), all with a leading batch axis
    x: tuple = (2, 3)
    z: tuple = (2, 3)
    x_range: tuple = (-2, 2)
    z_range: tuple = (-2, 2)
    classes: bool = False  # reads the field `label`
    target: tuple = None  # shape of the field `target`; None: none
    target_range: tuple = (0, 1)
    weights: dict = field(default_factory=dict)  # other weights of the expression: name -> shape, as in files
    memory: dict = field(default_factory=dict)  # of those that lie otherwise: name -> the order of their axes
    gradient: bool = True
    grows: bool = False  # simplified, it may have more nodes: one stood for several, a factor is taken out of a sum


def erf(x):
    return np.vectorize(math.erf)(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x, axis=-1):
    return np.log(softmax(x, axis))


def one_hot(label, classes):
    return np.eye(classes)[label]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def cross_entropy(x, q):
    return -(q * log_softmax(x)).sum(-1)


def example_mean(x):
    return x.reshape(len(x), -1).mean(1)


def bce(p, t):
    return example_mean(-(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log(1 - p), -100)))


def huber(d, delta):
    return np.where(abs(d) <= delta, d**2 / 2, delta * (abs(d) - delta / 2))


def smooth(q, e):
    return q * (1 - e) + e / q.shape[-1]


def pair(size):
    return size if isinstance(size, tuple) else (size, size)


def taps(x, kernel, stride=1, padding=0, dilation=1, fill=0.0):
    """What each output of a sweep over [N, C, H, W] sees at each tap: [N, C, OH, OW, taps]."""
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = map(pair, (kernel, stride, padding, dilation))
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=fill)
    rows = (padded.shape[2] - dh * (kh - 1) - 1) // sh + 1
    columns = (padded.shape[3] - dw * (kw - 1) - 1) // sw + 1
    return np.stack([
        padded[:, :, i * dh : i * dh + sh * (rows - 1) + 1 : sh, j * dw : j * dw + sw * (columns - 1) + 1 : sw]
        for i in range(kh) for j in range(kw)
    ], axis=-1)


def conv2d(x, w, stride=1, padding=0, dilation=1, groups=1):
    seen = taps(x, w.shape[2:], stride, padding, dilation)
    parts = zip(np.split(seen, groups, 1), np.split(w.reshape(*w.shape[:2], -1), groups, 0))
    return np.concatenate([np.einsum("ncijt,oct->noij", part, filters) for part, filters in parts], 1)


def attention(q, k, v, heads, kv_heads=None, causal=False, scale=None, window=0):
    """One head after the other, as the definition has it."""
    size, kv_heads = q.shape[2] // heads, kv_heads or heads
    i, j = np.indices((q.shape[1], q.shape[1]))
    unseen = (causal & (j > i)) | ((window > 0) & (i - j >= window))
    parts = []
    for head in range(heads):
        key = head * kv_heads // heads
        of_q, of_k = slice(head * size, (head + 1) * size), slice(key * size, (key + 1) * size)
        scores = (scale or size**-0.5) * np.einsum("bic,bjc->bij", q[..., of_q], k[..., of_k])
        parts.append(softmax(np.where(unseen, -np.inf, scores)) @ v[..., of_k])
    return np.concatenate(parts, axis=2)


def packed_attention(id, length, heads, size, arguments="", kv_heads=None, **options):
    """Of neighbouring slices of x."""
    queries, keys = heads * size, (kv_heads or heads) * size
    cuts = [0, queries, queries + keys, queries + 2 * keys]
    parts = ", ".join(f"slice(x, 1, {a}, {b})" for a, b in zip(cuts, cuts[1:]))
    shared = f", kv_heads = {kv_heads}" if kv_heads else ""

    def value(x, z, e):
        return attention(*np.split(x, cuts[1:3], axis=2), heads, kv_heads, **options)

    return Case(id, f"attention({parts}, heads = {heads}{shared}{arguments})", value, x=(length, cuts[3]))


def recurrent(cell, x, w, u, b, d, lengths=None, h=None, c=None, reverse=False):
    """One direction, step by step, of weights as files have them."""
    units = u.shape[1]
    h, c = (np.zeros((len(x), units)) if start is None else start for start in (h, c))
    lengths = np.broadcast_to(x.shape[1] if lengths is None else lengths, len(x))
    out = np.zeros((*x.shape[:2], units))
    for t in range(x.shape[1])[:: -1 if reverse else 1]:
        a, s = x[:, t] @ w.T + b, h @ u.T + d
        if cell == "gru":
            r, z = np.split(sigmoid(a + s)[:, : 2 * units], 2, 1)
            new = (1 - z) * np.tanh(a[:, 2 * units :] + r * s[:, 2 * units :]) + z * h
        elif cell == "lstm":
            i, f, g, o = np.split(a + s, 4, 1)
            changed = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            new = sigmoid(o) * np.tanh(changed)
            c = np.where((t < lengths)[:, None], changed, c)
        else:
            new = np.maximum(a + s, 0) if cell == "relu" else np.tanh(a + s)
        out[:, t] = h = np.where((t < lengths)[:, None], new, h)
    return out


def recurrent_case(id, y, cell, units, x, value, layers=1, tails=("",), bias=True, layer="y", **more):
    """`value` is given the directions' results as a function of (x, layer, tail, lengths, h, c)."""
    gates, weights, memory = {"rnn": 1, "relu": 1, "gru": 3, "lstm": 4}[cell] * units, {}, {}
    for level, tail in itertools.product(range(layers), tails):
        features = units * len(tails) if level else x[-1]
        shapes = {"weight_ih": (gates, features), "weight_hh": (gates, units), "bias_ih": (gates,), "bias_hh": (gates,)}
        weights |= {f"{layer}.{name}_l{level}{tail}": shape for name, shape in shapes.items() if bias or name[0] == "w"}
        memory[f"{layer}.weight_hh_l{level}{tail}"] = (1, 0)

    def numbers(x, z, e):
        def run(x, level=0, tail="", **start):
            tensors = [e.get(f"{layer}.{name}_l{level}{tail}", np.zeros(gates)) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            return recurrent(cell, x, *tensors, reverse=tail == "_reverse", **start)
        return value(run, x, z, e)

    return Case(id, y, numbers, x=x, weights=weights | more.pop("weights", {}), memory=memory, grows=True, **more)


def adaptive(x, out):
    for axis, bins in ((2, out[0]), (3, out[1])):
        size = x.shape[axis]
        parts = [np.arange(i * size // bins, -((i + 1) * size // -bins)) for i in range(bins)]
        x = np.concatenate([x.take(part, axis).mean(axis, keepdims=True) for part in parts], axis)
    return x


def bilinear(x, factor):
    """At (o + 1/2) / factor - 1/2 of the image, which goes on beyond its ends as it is there."""
    for axis, f in zip((2, 3), factor):
        size = x.shape[axis]
        at = np.clip((np.arange(size * f) + 0.5) / f - 0.5, 0, size - 1)
        below = np.floor(at).astype(int)
        share = (at - below)[:, None] if axis == 2 else at - below
        x = x.take(below, axis) * (1 - share) + x.take(np.minimum(below + 1, size - 1), axis) * share
    return x


def standardized(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def waves(length, count, base=1e4):
    """Angles of positions [length, count]."""
    return np.arange(length)[:, None] * base ** (-np.arange(count) / count)


def rotary(x, heads, base=1e4):
    """Pairs of a head as complex numbers, turned."""
    a, b = np.split(x.reshape(*x.shape[:2], heads, -1), 2, axis=3)
    turned = (a + 1j * b) * np.exp(1j * waves(x.shape[1], a.shape[3], base))[:, None]
    return np.concatenate([turned.real, turned.imag], axis=3).reshape(x.shape)


def sinusoid(length, width):
    angle = np.arange(length)[:, None] / 1e4 ** (np.arange(width) // 2 * 2 / width)
    return np.where(np.arange(width) % 2, np.cos(angle), np.sin(angle))


# What filters [O, C, KH, KW] are in memory.
CHANNELS_LAST, DEPTHWISE = (0, 2, 3, 1), (2, 3, 1, 0)


def convolution(id, arguments, filters, x=(2, 5, 4), bias=True, memory=CHANNELS_LAST, **options):
    weights = {"y.weight": filters} | ({"y.bias": filters[:1]} if bias else {})

    def value(x, z, e):
        y = conv2d(x, e["y.weight"], **options)
        return y + e["y.bias"][:, None, None] if bias else y

    y = f"conv2d(x, {arguments}{'' if bias else ', bias = false'})"
    return Case(id, y, value, x=x, weights=weights, memory={"y.weight": memory}, grows=True)


def conv_transpose2d(x, w, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """Pixel by pixel, as the definition has it."""
    (sh, sw), (ph, pw), (mh, mw), (dh, dw) = map(pair, (stride, padding, output_padding, dilation))
    (n, channels, h, width), (_, out, kh, kw) = x.shape, w.shape
    y = np.zeros((n, out * groups, (h - 1) * sh + (kh - 1) * dh + 1 + mh, (width - 1) * sw + (kw - 1) * dw + 1 + mw))
    for c, i, j, p, q in np.ndindex(channels, h, width, kh, kw):
        to = c * groups // channels * out
        y[:, to : to + out, i * sh + p * dh, j * sw + q * dw] += x[:, c, i, j, None] * w[c, :, p, q]
    return y[:, :, ph : y.shape[2] - ph, pw : y.shape[3] - pw]


def transposed_convolution(id, arguments, filters, x=(2, 3, 4), bias=None, **options):
    weights = {"y.weight": filters} | ({"y.bias": bias} if bias else {})

    def value(x, z, e):
        y = conv_transpose2d(x, e["y.weight"], **options)
        return y + e["y.bias"][:, None, None] if bias else y

    y = f"conv_transpose2d(x, {arguments}{'' if bias else ', bias = false'})"
    return Case(id, y, value, x=x, weights=weights, memory={"y.weight": CHANNELS_LAST}, grows=True)


def convolution1d(id, arguments, filters, x=(2, 7), memory=(0, 2, 1), bias=True, **options):
    weights = {"y.weight": filters} | ({"y.bias": filters[:1]} if bias else {})
    padding = (0, options.pop("padding", 0))

    def value(x, z, e):
        y = conv2d(x[:, :, None], e["y.weight"][:, :, None], padding=padding, **options)[:, :, 0]
        return y + e["y.bias"][:, None] if bias else y

    y = f"conv1d(x, {arguments}{'' if bias else ', bias = false'})"
    return Case(id, y, value, x=x, weights=weights, memory={"y.weight": memory}, grows=True)


def pooling(id, y, function, x=(2, 5, 4), **options):
    return Case(id, y, lambda x, z, e: function(taps(x, **options)), x=x, grows=True)


def unary(name, function, *domain):
    return Case(name, f"{name}(x)", lambda x, z, e: function(x), x_range=domain or (-2, 2))


def of_each(value, x):
    """What is the same for all examples, of each of x's."""
    return np.broadcast_to(value, (len(x), *np.shape(value)))


def binary(id, y, function, **options):
    return Case(id, y, lambda x, z, e: function(x, z), **options)


CASES = [
    # arithmetic, with broadcasting
    binary("add", "x + z", lambda x, z: x + z),
    binary("add_vector", "x + z", lambda x, z: x + z[:, None, :], z=(3,)),
    binary("add_column", "z + x", lambda x, z: x + z, z=(2, 1)),
    binary("add_number", "x + 2", lambda x, z: x + 2),
    binary("sub", "x - z", lambda x, z: x - z),
    binary("sub_scalar", "z - x", lambda x, z: z[:, None, :] - x, z=(1,)),
    binary("mul", "x * z", lambda x, z: x * z),
    binary("mul_outer", "x * z", lambda x, z: x * z, x=(2, 1), z=(1, 3)),
    binary("div", "x / z", lambda x, z: x / z, z_range=(0.5, 2)),
    binary("div_number", "x / 3", lambda x, z: x / 3),
    binary("div_column", "x / z", lambda x, z: x / z, z=(2, 1), z_range=(0.5, 2)),
    binary("neg", "-x", lambda x, z: -x),
    binary("neg_neg", "-(z - -x)", lambda x, z: -(z + x)),
    binary("pow", "pow(x, z)", lambda x, z: x**z, x_range=(0.3, 2)),
    binary("pow_2", "x ^ 2", lambda x, z: x**2),
    binary("pow_3", "x ^ 3", lambda x, z: x**3),
    binary("pow_half", "x ^ 0.5", lambda x, z: x**0.5, x_range=(0.3, 2)),
    binary("pow_inverse", "x ^ -1", lambda x, z: 1 / x, x_range=(0.3, 2)),
    binary("pow_number", "x ^ 1.7", lambda x, z: x**1.7, x_range=(0.3, 2)),
    binary("pow_zero", "x + x ^ 0", lambda x, z: x + 1),
    binary("maximum", "maximum(x, z)", np.maximum),
    binary("minimum", "minimum(x, z)", np.minimum),
    binary("clamp", "clamp(x, -0.5, 0.5)", lambda x, z: np.clip(x, -0.5, 0.5)),
    binary("clamp_low", "clamp(x, low = z)", np.maximum),
    binary("clamp_tensors", "clamp(x, z - 0.5, high = 0.5)", lambda x, z: np.minimum(np.maximum(x, z - 0.5), 0.5), z_range=(-1, 0.5)),
    binary("minimum_of_maximum", "minimum(maximum(x, -0.5), 0.5)", lambda x, z: np.clip(x, -0.5, 0.5)),
    # functions
    unary("exp", np.exp),
    unary("expm1", np.expm1),
    unary("log", np.log, 0.3, 3),
    unary("log1p", np.log1p, -0.5, 3),
    unary("sqrt", np.sqrt, 0.3, 3),
    unary("abs", np.abs),
    unary("erf", erf),
    unary("sin", np.sin, -4, 4),
    unary("cos", np.cos, -4, 4),
    Case("exp_of_integers", "x * exp(iota(3)) / (1 + iota(3))", lambda x, z, e: x * np.exp(np.arange(3)) / (1 + np.arange(3)),
         grows=True),
    Case("sign", "x * sign(x)", lambda x, z, e: np.abs(x)),
    Case("floor", "x * floor(3 * x)", lambda x, z, e: x * np.floor(3 * x)),
    Case("round", "x * round(3 * x)", lambda x, z, e: x * np.rint(3 * x)),
    Case("print", "print(x) * z", lambda x, z, e: x * z),
    Case("stop_gradient", "x * stop_gradient(x)", lambda x, z, e: x * x, gradient=False),
    # conditions
    binary("where", "where(x > z, 2 * x, z)", lambda x, z: np.where(x > z, 2 * x, z)),
    binary("lt", "where(x < z, x, z)", np.minimum),
    binary("le", "where(x <= 0.5, x, z)", lambda x, z: np.where(x <= 0.5, x, z)),
    binary("ge", "where(x >= 0.5, x, z)", lambda x, z: np.where(x >= 0.5, x, z)),
    binary("eq", "where(x == z, z, x)", lambda x, z: x),
    binary("ne", "where(x != z, z, x)", lambda x, z: z),
    binary("and", "where(x > 0 and z > 0, x, z)", lambda x, z: np.where((x > 0) & (z > 0), x, z)),
    binary("or", "where(x > 0 or z > 0, x, z)", lambda x, z: np.where((x > 0) | (z > 0), x, z)),
    binary("not", "where(not (x > 0), x, z)", lambda x, z: np.where(x > 0, z, x)),
    # activations
    unary("relu", lambda x: np.maximum(x, 0)),
    unary("sigmoid", sigmoid),
    unary("tanh", np.tanh),
    unary("softplus", lambda x: np.log1p(np.exp(x))),
    unary("silu", lambda x: x * sigmoid(x)),
    unary("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x)),
    Case("leaky_relu_slope", "leaky_relu(x, slope = 0.2)", lambda x, z, e: np.where(x > 0, x, 0.2 * x)),
    unary("elu", lambda x: np.where(x > 0, x, np.expm1(x))),
    Case("elu_alpha", "elu(x, alpha = 0.3)", lambda x, z, e: np.where(x > 0, x, 0.3 * np.expm1(x))),
    Case("elu_far", "elu(600 * x)", lambda x, z, e: np.where(x > 0, 600 * x, -1), x_range=(1.5, 2)),  # exp(900) is infinite
    unary("mish", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    Case("mish_far", "mish(600 * x)", lambda x, z, e: 600 * x, x_range=(1.5, 2)),
    unary("gelu", gelu),
    Case("gelu_exact", "gelu(x, exact = true)", lambda x, z, e: 0.5 * x * (1 + erf(x / np.sqrt(2)))),
    unary("square", np.square),
    unary("softmax", softmax),
    Case("softmax_first", "softmax(x, axis = 0)", lambda x, z, e: softmax(x, 1)),
    Case("softmax_large", "softmax(x + 100)", lambda x, z, e: softmax(x)),
    unary("log_softmax", log_softmax),
    Case("log_softmax_first", "log_softmax(x, axis = 0)", lambda x, z, e: log_softmax(x, 1)),
    # reductions
    Case("sum", "sum(x)", lambda x, z, e: x.sum((1, 2))),
    Case("sum_axis", "sum(x, axis = 0)", lambda x, z, e: x.sum(1)),
    Case("sum_axes", "sum(x, axis = [0, -1])", lambda x, z, e: x.sum((1, 3)), x=(2, 3, 4)),
    Case("sum_keep", "x / sum(x, axis = 1, keep = true)", lambda x, z, e: x / x.sum(2, keepdims=True), x_range=(1, 2)),
    Case("mean", "mean(x)", lambda x, z, e: x.mean((1, 2))),
    Case("mean_axis", "mean(x, axis = -1)", lambda x, z, e: x.mean(2)),
    Case("max", "max(x)", lambda x, z, e: x.max((1, 2))),
    Case("max_axis", "max(x, axis = 0)", lambda x, z, e: x.max(1)),
    Case("min_axis", "min(x, axis = 1)", lambda x, z, e: x.min(2)),
    Case("prod", "prod(x)", lambda x, z, e: x.prod((1, 2))),
    Case("prod_axis", "prod(x, axis = 0) * z", lambda x, z, e: x.prod(1) * z, z=(3,), grows=True),
    Case("prod_columns", "prod(x, axis = 0, keep = true)", lambda x, z, e: x.prod(1, keepdims=True), x=(9, 5), x_range=(0.5, 1.5),
         grows=True),
    Case("logsumexp", "logsumexp(x, axis = 0)", lambda x, z, e: np.log(np.exp(x).sum(1))),
    Case("logsumexp_far", "logsumexp(600 * x, axis = 1, keep = true) * z",
         lambda x, z, e: (600 * x).max(2, keepdims=True) * z, x=(2, 1), x_range=(1.5, 2), z=(2, 1)),
    Case("variance", "variance(x)", lambda x, z, e: x.var((1, 2)), grows=True),
    Case("variance_sample", "variance(x, axis = 0, correction = 1)", lambda x, z, e: x.var(1, ddof=1), x=(4, 3), grows=True),
    Case("std", "std(x, axis = -1, keep = true)", lambda x, z, e: x.std(2, keepdims=True), grows=True),
    Case("std_sample", "std(x, correction = 1)", lambda x, z, e: x.std((1, 2), ddof=1), grows=True),
    Case("norm_2", "norm(x)", lambda x, z, e: np.sqrt((x**2).sum((1, 2)))),
    Case("norm_axis", "norm(x, axis = 1, keep = true) * z", lambda x, z, e: np.sqrt((x**2).sum(2, keepdims=True)) * z, z=(2, 1)),
    Case("norm_1", "norm(x, axis = 0, p = 1)", lambda x, z, e: abs(x).sum(1)),
    Case("norm_3", "norm(x, p = 3)", lambda x, z, e: (abs(x) ** 3).sum((1, 2)) ** (1 / 3)),
    Case("any", "x * any(x > 1, axis = 0)", lambda x, z, e: x * (x > 1).any(1)[:, None]),
    Case("all", "where(all(x > -1, axis = 1, keep = true), x, z)", lambda x, z, e: np.where((x > -1).all(2, keepdims=True), x, z)),
    Case("cumsum", "cumsum(x) * z", lambda x, z, e: x.cumsum(2) * z, x=(2, 70), z=(2, 70)),
    Case("cumsum_axis", "cumsum(x, axis = 0)", lambda x, z, e: x.cumsum(1), x=(5, 3)),
    Case("cumsum_middle", "cumsum(x * z, axis = 1)", lambda x, z, e: (x * z).cumsum(2), x=(2, 4, 3), z=(2, 4, 3)),
    Case("cumsum_reversed", "cumsum(relu(x), reversed = true) + cumsum(transpose(x), 0, reversed = true)",
         lambda x, z, e: np.flip(np.flip(np.maximum(x, 0), 2).cumsum(2), 2) + np.flip(np.flip(x.transpose(0, 2, 1), 1).cumsum(1), 1),
         x=(3, 3)),
    Case("cumsum_one", "cumsum(x, axis = 0) * z", lambda x, z, e: x * z, x=(1, 3), z=(1, 3)),
    Case("cumsum_same", "x * cumsum(m)", lambda x, z, e: x * e["m"].cumsum(), x=(2, 4), weights={"m": (4,)}),
    Case("cumsum_data", "x * cumsum(target)", lambda x, z, e: x * e["target"].cumsum(2), target=(2, 3)),
    Case("sort", "sort(x) * z", lambda x, z, e: np.sort(x, 2) * z, x=(2, 7), z=(2, 7)),
    Case("sort_descending", "sort(x, axis = 0, descending = true) * z", lambda x, z, e: -np.sort(-x, 1) * z, x=(5, 3), z=(5, 3)),
    Case("sort_row", "sort(x)[1] * z", lambda x, z, e: np.sort(x, 2)[:, 1] * z, x=(3, 4), z=(4,)),
    Case("sort_part", "sort(x)[:2, 3:] * z", lambda x, z, e: np.sort(x, 2)[:, :2, 3:] * z, x=(3, 5), z=(2, 2)),
    Case("sort_lasts", "sort(x)[:, -1] * z", lambda x, z, e: np.sort(x, 2)[:, :, -1] * z, x=(3, 4), z=(3,)),
    Case("sort_whole", "x * sort(round(2 * z)) + z", lambda x, z, e: x * np.sort(np.rint(2 * z), 2) + z, x=(2, 6), z=(2, 6)),
    Case("argsort", "x * argsort(z) + z", lambda x, z, e: x * z.argsort(2) + z, x=(2, 6), z=(2, 6)),
    Case("argsort_equal", "x * argsort(round(z), axis = 0, descending = true) + z",
         lambda x, z, e: x * (-np.rint(z)).argsort(1, kind="stable") + z, x=(8, 2), z=(8, 2)),
    Case("relu_row", "relu(m * x + gather(m, [1, 0, 2]) * x + transpose(w) + m)[1] * z",
         lambda x, z, e: np.maximum(e["m"] * x + e["m"][[1, 0, 2]] * x + e["w"].T + e["m"], 0)[:, 1] * z, x=(3, 4), z=(4,),
         weights={"m": (3, 4), "w": (4, 3)}),
    Case("gather_sorted", "gather(m, argsort(x)) * z + mean(x)", lambda x, z, e: e["m"][x.argsort(1)] * z + x.mean(1)[:, None, None],
         x=(4,), z=(4, 2), weights={"m": (4, 2)}),
    Case("batch", "sum(square(matmul(x, batch(z[0]), transpose_b = true)), axis = 1)", lambda x, z, e: ((x @ z[:, 0].T) ** 2).sum(2)),
    Case("batch_softmax", "sum(softmax(flatten(x)[0] * batch(z), axis = 0) * batch(z), axis = 0)", lambda x, z, e: (softmax(x[:, 0, 0, None, None, None] * z, 1) * z).sum(1), grows=True),
    Case("batch_mean", "mean(batch(x) * z, axis = 0)", lambda x, z, e: (x * z[:, None]).mean(1)),
    Case("argmax", "x * argmax(x, axis = 0)", lambda x, z, e: x * x.argmax(1)[:, None, :]),
    # views
    Case("reshape", "reshape(x, [3, 2]) * reshape(z, [-1, 2])", lambda x, z, e: (x * z).reshape(-1, 3, 2)),
    Case("flatten", "flatten(x)", lambda x, z, e: x.reshape(len(x), -1)),
    Case("transpose", "transpose(x)", lambda x, z, e: x.transpose(0, 2, 1)),
    Case("transpose_axes", "transpose(x, 0, 2)", lambda x, z, e: x.transpose(0, 3, 2, 1), x=(2, 3, 4)),
    Case("transpose_flatten", "flatten(transpose(x))", lambda x, z, e: x.transpose(0, 2, 1).reshape(len(x), -1)),
    Case("permute", "permute(x, [2, 0, -2])", lambda x, z, e: x.transpose(0, 3, 1, 2), x=(2, 3, 4)),
    Case("permute_back", "permute(permute(x, [1, 2, 0]), [2, 0, 1]) * z", lambda x, z, e: x * z, x=(2, 3, 4), z=(2, 3, 4)),
    Case("flip", "flip(x, axis = 1) * z", lambda x, z, e: x[:, :, ::-1] * z),
    Case("flip_all", "flip(x) * flip(flip(z, axis = 0), axis = 0)", lambda x, z, e: x[:, ::-1, ::-1] * z),
    Case("flip_number", "x * flip(3) + flip(sum(z))", lambda x, z, e: x * 3 + z.sum((1, 2))[:, None, None]),
    Case("flip_rows", "matmul(flip(x, 0), flip(z, 1)) + 1", lambda x, z, e: x[:, ::-1] @ z[:, :, ::-1] + 1, z=(3, 8), x=(16, 3)),
    Case("flip_image", "max_pool(relu(flip(conv2d(x, 4, 1, bias = false), axis = [0, 2])), 2)",
         lambda x, z, e: taps(np.maximum(conv2d(x, e["y.weight"])[:, ::-1, :, ::-1], 0), 2, 2).max(-1), x=(2, 4, 6),
         weights={"y.weight": (4, 2, 1, 1)}, memory={"y.weight": CHANNELS_LAST}, grows=True),
    Case("flip_softmax", "softmax(flip(x, 1)) * flip(softmax(x), 1)", lambda x, z, e: softmax(x)[:, :, ::-1] ** 2, x=(2, 8)),
    Case("roll", "roll(x, 1, axis = 1) * z", lambda x, z, e: np.roll(x, 1, 2) * z),
    Case("roll_back", "roll(x, -9, axis = 0) * roll(z, 4, axis = 0)", lambda x, z, e: np.roll(x, -9, 1) * z, x=(4, 3), z=(4, 3)),
    Case("roll_fours", "roll(x, 4, axis = 1) * roll(z, 7, axis = 1)", lambda x, z, e: np.roll(x, 4, 2) * np.roll(z, 7, 2), x=(2, 12), z=(2, 12)),
    Case("roll_whole", "gather(m, roll(x > 0, 1, axis = 0) + label) * z + mean(x)",
         lambda x, z, e: e["m"][np.roll(x > 0, 1, 1) + e["label"][:, None]] * z + x.mean(1)[:, None, None], x=(4,), z=(4, 2), classes=True,
         weights={"m": (6, 2)}),
    Case("stack", "stack([x, z, x * z], axis = 1)", lambda x, z, e: np.stack([x, z, x * z], 2)),
    Case("stack_last", "stack([x, m], axis = -1) * z", lambda x, z, e: np.stack([x, of_each(e["m"], x)], 3) * z[:, None, None], z=(2,),
         weights={"m": (2, 3)}),
    Case("slice", "slice(x, 1, 1, 3)", lambda x, z, e: x[:, :, 1:3]),
    Case("pad", "pad(x, 0, before = 1, after = 2)", lambda x, z, e: np.pad(x, ((0, 0), (1, 2), (0, 0)))),
    Case("reflect_beside_pad", 'pad(slice(x, 1, 2, 6), 1, after = 2, mode = "reflect") + pad(slice(x, 1, 0, 2), 1, before = 4)',
         lambda x, z, e: np.pad(x[:, :, 2:], ((0, 0), (0, 0), (0, 2)), "reflect") + np.pad(x[:, :, :2], ((0, 0), (0, 0), (4, 0))), x=(2, 6),
         grows=True),
    Case("pad_reflect", "pad(x, 1, before = 2, after = 1, mode = \"reflect\")",
         lambda x, z, e: np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="reflect")),
    Case("pad_reflect_images", "pad(pad(x, 1, 1, 3, mode = \"reflect\"), 2, after = 2, mode = \"reflect\")[:, 1:7]",
         lambda x, z, e: np.pad(x, ((0, 0), (0, 0), (1, 3), (0, 2)), mode="reflect")[:, :, 1:7], x=(2, 4, 3)),
    Case("concat", "concat([x, z, x], axis = 1)", lambda x, z, e: np.concatenate([x, z, x], 2), z=(2, 2)),
    Case("list", "x * [0.5, 2, 2, -1]", lambda x, z, e: x * [0.5, 2, 2, -1], x=(2, 4)),
    Case("list_of_lists", "[[1, 2, 3], [4, 5, 6]] * x + [[1], [0.5]] + [7]",
         lambda x, z, e: x * [[1, 2, 3], [4, 5, 6]] + [[8], [7.5]]),
    Case("list_functions", "x * mean([1, 2, 6]) + mean([[1, 2, 6], [3, 4, 5]], axis = 0) + softmax([1, 2, 4]) * log_softmax([1, 2, 4])",
         lambda x, z, e: x * 3 + [2, 3, 5.5] + softmax(np.array([1, 2, 4])) * log_softmax(np.array([1, 2, 4]))),
    Case("list_product", "matmul(x, [[1, 0], [0.5, 2], [0, 1]]) * z", lambda x, z, e: x @ [[1, 0], [0.5, 2], [0, 1]] * z, z=(2, 2)),
    Case("list_looked_up", "x * gather([3, 0.25, 1, 1, 2], label)",
         lambda x, z, e: x * np.array([3, 0.25, 1, 1, 2])[e["label"]][:, None, None],
         classes=True),
    Case("index", "x[1] + x[-2, 0] * z[:, 2]", lambda x, z, e: x[:, 1] + x[:, 1, :1] * z[:, :, 2], x=(3, 2), z=(2, 3)),
    Case("index_ranges", "x[1:, :-1] * x[:2, -2:] + sin(z)[2][0]",
         lambda x, z, e: x[:, 1:, :-1] * x[:, :2, -2:] + np.sin(z)[:, 2, 0][:, None, None], x=(3, 3), z=(3, 4)),
    Case("index_middle", "x[:, 1, 1:3] * z", lambda x, z, e: x[:, :, 1, 1:3] * z, x=(3, 4, 5), z=(3, 2)),
    Case("concat_neighbours", "concat([slice(x, 1, 0, 2), slice(x, 1, 2, 3)], axis = 1) * z", lambda x, z, e: x * z),
    Case("concat_part", "concat([slice(x, 1, 1, 2), slice(x, 1, 2, 4)], axis = 1) * z", lambda x, z, e: x[:, :, 1:4] * z,
         x=(2, 5)),
    Case("concat_corner", "concat([slice(slice(x, 0, 1, 3), 1, 0, 2), slice(slice(x, 0, 1, 3), 1, 2, 3)], axis = 1) * z",
         lambda x, z, e: x[:, 1:, :3] * z, x=(3, 4)),
    Case("concat_exchanged", "concat([slice(x, 1, 2, 3), slice(x, 1, 0, 2)], axis = 1) * z",
         lambda x, z, e: x[:, :, [2, 0, 1]] * z),
    Case("concat_diagonal", "concat([slice(x, 1, 0, 2), slice(x, 0, 0, 2)], axis = 1)",
         lambda x, z, e: np.concatenate([x[:, :, :2], x], 2), x=(2, 3)),
    Case("iota", "x * iota(3)", lambda x, z, e: x * np.arange(3)),
    # products
    Case("matmul", "matmul(x, z)", lambda x, z, e: x @ z, z=(3, 4)),
    Case("matmul_tn", "matmul(x, z, transpose_a = true)", lambda x, z, e: x.transpose(0, 2, 1) @ z, z=(2, 4)),
    Case("matmul_nt", "matmul(x, z, transpose_b = true)", lambda x, z, e: x @ z.transpose(0, 2, 1), z=(4, 3)),
    Case(
        "matmul_tt",
        "matmul(x, z, transpose_a = true, transpose_b = true)",
        lambda x, z, e: x.transpose(0, 2, 1) @ z.transpose(0, 2, 1),
        z=(4, 2),
    ),
    Case("matmul_transposed", "matmul(transpose(x), z)", lambda x, z, e: x.transpose(0, 2, 1) @ z, z=(2, 4)),
    Case("matmul_stack", "matmul(x, z)", lambda x, z, e: x @ z, x=(2, 3, 4), z=(2, 4, 5)),
    Case("matmul_vector", "matmul(x, z)", lambda x, z, e: np.einsum("bk,bkn->bn", x, z), x=(3,), z=(3, 4)),
    Case("matmul_by_vector", "matmul(x, z)", lambda x, z, e: np.einsum("bmk,bk->bm", x, z), z=(3,)),
    Case("matmul_stack_by_vector", "matmul(x, z) + matmul(z, m)", lambda x, z, e: np.einsum("bsmk,bk->bsm", x, z) +
         np.einsum("bk,skm->bsm", z, e["m"]), x=(2, 3, 4), z=(4,), weights={"m": (2, 4, 3)}),
    Case("einsum", 'einsum("ij,jk->ki", [x, z])', lambda x, z, e: np.einsum("bij,bjk->bki", x, z), z=(3, 4)),
    Case("einsum_stack", 'einsum("qhd, khd -> hqk", [x, z])', lambda x, z, e: np.einsum("bqhd,bkhd->bhqk", x, z), x=(4, 2, 3), z=(5, 2, 3)),
    Case("einsum_sums", 'einsum("ijk,kl->l", [x, z])', lambda x, z, e: np.einsum("bijk,bkl->bl", x, z), x=(2, 2, 3), z=(3, 2)),
    Case("einsum_outer", 'einsum("i,j->ij", [x, z])', lambda x, z, e: np.einsum("bi,bj->bij", x, z), x=(3,), z=(4,)),
    Case("einsum_weight", 'einsum("ti,ijh,tj->th", [x, m, z])', lambda x, z, e: np.einsum("bti,ijh,btj->bth", x, e["m"], z), x=(3, 2), z=(3, 4),
         weights={"m": (2, 4, 5)}),
    Case("einsum_one", 'einsum("ijk->kj", [x])', lambda x, z, e: np.einsum("bijk->bkj", x), x=(2, 3, 4)),
    Case("einsum_dot", 'einsum("ij,ij->", [x, z])', lambda x, z, e: (x * z).sum((1, 2))),
    Case("dot", "matmul(x, z)", lambda x, z, e: (x * z).sum(1), x=(3,), z=(3,)),
    Case("weight", "matmul(x, m)", lambda x, z, e: x @ e["m"], weights={"m": (3, 4)}),
    Case("weight_left", "matmul(m, x)", lambda x, z, e: e["m"] @ x, weights={"m": (4, 2)}),
    # values that are the same for all examples beside others
    Case("shared_concat", "concat([m, x, w], axis = 0)",
         lambda x, z, e: np.concatenate([of_each(e["m"], x), x, of_each(e["w"], x)], 1), weights={"m": (2, 3), "w": (1, 3)}),
    Case("shared_concat_counts", "concat([iota(2), z]) * concat([z, iota(2) + 1])",
         lambda x, z, e: np.concatenate([of_each(np.arange(2), z), z], 1) * np.concatenate([z, of_each(np.arange(2) + 1, z)], 1),
         z=(3,)),
    Case("shared_stack", "matmul(m, x)", lambda x, z, e: e["m"] @ x, x=(3, 4, 2), weights={"m": (3, 5, 4)}),
    Case("shared_stack_behind", "matmul(x, m, transpose_b = true)", lambda x, z, e: x @ e["m"].swapaxes(1, 2), x=(3, 2, 4),
         weights={"m": (3, 5, 4)}),
    Case("shared_stack_of_one", "matmul(x, m)", lambda x, z, e: x[:, None] @ e["m"], x=(2, 4), weights={"m": (3, 4, 5)}),
    Case("shared_stack_of_vector", "matmul(m, x)", lambda x, z, e: np.einsum("smk,bk->bsm", e["m"], x), x=(4,),
         weights={"m": (3, 5, 4)}),
    Case("shared_mse", "mse(m, x)", lambda x, z, e: example_mean((e["m"] - x) ** 2), weights={"m": (2, 3)}),
    Case("shared_scores", "cross_entropy(m, label) * x", lambda x, z, e: cross_entropy(e["m"], one_hot(e["label"], 5))[:, None] * x,
         x=(1,), classes=True, weights={"m": (5,)}),
    Case("shared_norm", "x * layer_norm(m)", lambda x, z, e: x * (standardized(e["m"], 1) * e["y.weight"] + e["y.bias"]),
         weights={"m": (2, 3), "y.weight": (3,), "y.bias": (3,)}, grows=True),
    Case("shared_vector", "x * linear(m, 3)", lambda x, z, e: x * (e["m"] @ e["y.weight"].T + e["y.bias"]),
         weights={"m": (4,), "y.weight": (3, 4), "y.bias": (3,)}),
    Case("shared_image", "x * max_pool(conv2d(m, 3, 3, stride = 2, padding = 1, bias = false), 2)",
         lambda x, z, e: x * taps(conv2d(e["m"][None], e["y.weight"], 2, 1), 2, 2).max(-1), x=(3, 2, 1),
         weights={"m": (2, 7, 4), "y.weight": (3, 2, 3, 3)}, memory={"y.weight": CHANNELS_LAST}, grows=True),
    Case("shared_queries", "attention(m, x, x, heads = 2)", lambda x, z, e: attention(of_each(e["m"], x), x, x, 2), x=(3, 4),
         weights={"m": (3, 4)}),
    # layers
    Case(
        "linear",
        "linear(x, 4)",
        lambda x, z, e: x @ e["y.weight"].T + e["y.bias"],
        x=(5,),
        weights={"y.weight": (4, 5), "y.bias": (4,)},
    ),
    Case(
        "linear_matrix",
        "linear(x, 4)",
        lambda x, z, e: x @ e["y.weight"].T + e["y.bias"],
        weights={"y.weight": (4, 3), "y.bias": (4,)},
    ),
    Case(
        "linear_no_bias", "linear(x, 4, bias = false)", lambda x, z, e: x @ e["y.weight"].T, weights={"y.weight": (4, 3)}
    ),
    Case("linear_transposed", "linear(x, 4, transposed = true)", lambda x, z, e: x @ e["y.weight"] + e["y.bias"],
         weights={"y.weight": (3, 4), "y.bias": (4,)}, memory={"y.weight": (1, 0)}),
    Case("unembed", "unembed(x, m)", lambda x, z, e: x @ e["m"].T, weights={"m": (5, 3)}),
    # attention; odd lengths, a single position, a single number
    packed_attention("attention", 5, 2, 3),
    packed_attention("attention_causal", 7, 2, 4, ", causal = true", causal=True),
    packed_attention("attention_grouped", 6, 4, 2, ", causal = true", kv_heads=2, causal=True),
    packed_attention("attention_one_key", 3, 3, 3, kv_heads=1),
    packed_attention("attention_window", 9, 1, 3, ", causal = true, window = 3", causal=True, window=3),
    packed_attention("attention_wide_window", 4, 2, 2, ", causal = true, window = 4", causal=True),
    packed_attention("attention_scale", 4, 2, 1, ", scale = 1.5", scale=1.5),
    packed_attention("attention_single", 1, 2, 2, ", causal = true", causal=True),
    Case("attention_apart", "attention(x, z, z * 2, heads = 2, kv_heads = 1, causal = true)",
         lambda x, z, e: attention(x, z, z * 2, 2, 1, True), x=(5, 6), z=(5, 3)),
    Case("attention_of_weights", "x * attention(m, m, m, heads = 2)",
         lambda x, z, e: x * attention(e["m"][None], e["m"][None], e["m"][None], 2), x=(3, 4), weights={"m": (3, 4)}),
    # positions
    Case("sinusoid", "x * sinusoid(7, 6)", lambda x, z, e: x * sinusoid(7, 6), x=(7, 6)),
    Case("sinusoid_odd", "x * sinusoid(5, 3)", lambda x, z, e: x * sinusoid(5, 3), x=(5, 3)),
    Case("rotary", "rotary(x, 3)", lambda x, z, e: rotary(x, 3), x=(5, 12), grows=True),
    Case("rotary_base", "rotary(x, heads = 1, base = 100)", lambda x, z, e: rotary(x, 1, 100), x=(9, 2), grows=True),
    Case("rotary_attention", "attention(rotary(x, 2), rotary(z, 1), 2 * z, heads = 2, kv_heads = 1, causal = true)",
         lambda x, z, e: attention(rotary(x, 2), rotary(z, 1), 2 * z, 2, 1, True), x=(5, 8), z=(5, 4), grows=True),
    # images
    convolution("conv2d", "3, 3", (3, 2, 3, 3)),
    convolution("conv2d_padded", "3, 3, padding = 1", (3, 2, 3, 3), bias=False, padding=1),
    convolution("conv2d_stride", "3, 3, stride = 2, padding = 1", (3, 2, 3, 3), x=(2, 7, 4), stride=2, padding=1),
    convolution("conv2d_colours", "2, 2, padding = 1", (2, 3, 2, 2), x=(3, 3, 2), padding=1),
    convolution("conv2d_dilated", "2, 2, dilation = 2", (2, 2, 2, 2), dilation=2),
    convolution("conv2d_uneven", "2, [3, 2], stride = [2, 1], padding = [1, 0], dilation = [1, 2]", (2, 2, 3, 2),
                stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    convolution("conv2d_pixels", "3, 1", (3, 2, 1, 1)),
    convolution("conv2d_some_pixels", "3, 1, stride = 2", (3, 2, 1, 1), bias=False, stride=2),
    convolution("conv2d_unseen", "2, 2, stride = 3", (2, 2, 2, 2), x=(2, 7, 6), stride=3),
    convolution("conv2d_groups", "4, 3, groups = 2, padding = 1", (4, 2, 3, 3), x=(4, 4, 3), groups=2, padding=1),
    convolution("conv2d_depthwise", "3, 3, groups = 3, padding = 1", (3, 1, 3, 3), x=(3, 4, 3), memory=DEPTHWISE,
                groups=3, padding=1),
    convolution("conv2d_multiplied", "4, 2, groups = 2, stride = 2", (4, 1, 2, 2), x=(2, 5, 4), memory=DEPTHWISE,
                groups=2, stride=2),
    Case("conv2d_twice", "conv2d(relu(conv2d(x, 3, 3, padding = 1, bias = false)), 2, 3, stride = 2, bias = false)",
         lambda x, z, e: conv2d(np.maximum(conv2d(x, e["y.0.weight"], padding=1), 0), e["y.1.weight"], 2),
         x=(2, 5, 4), weights={"y.0.weight": (3, 2, 3, 3), "y.1.weight": (2, 3, 3, 3)},
         memory={"y.0.weight": CHANNELS_LAST, "y.1.weight": CHANNELS_LAST}, grows=True),
    Case("conv2d_residual", "relu(conv2d(x, 2, 3, padding = 1, bias = false) + x) * z",
         lambda x, z, e: np.maximum(conv2d(x, e["y.weight"], padding=1) + x, 0) * z,
         x=(2, 4, 3), z=(2, 1, 3), weights={"y.weight": (2, 2, 3, 3)}, memory={"y.weight": CHANNELS_LAST}, grows=True),
    Case("conv2d_views", "sum(pad(slice(conv2d(x, 3, 1, bias = false), 0, 1, 3), 1, 1, 2), axis = 2)",
         lambda x, z, e: np.pad(conv2d(x, e["y.weight"])[:, 1:3], ((0, 0), (0, 0), (1, 2), (0, 0))).sum(3),
         x=(2, 4, 3), weights={"y.weight": (3, 2, 1, 1)}, memory={"y.weight": CHANNELS_LAST}, grows=True),
    transposed_convolution("transposed", "3, 3", (2, 3, 3, 3), bias=(3,)),
    transposed_convolution("transposed_double", "3, 2, stride = 2", (2, 3, 2, 2), bias=(3,), stride=2),
    transposed_convolution("transposed_even", "2, 4, stride = 2, padding = 1", (2, 2, 4, 4), stride=2, padding=1),
    transposed_convolution("transposed_more", "2, 3, stride = 2, padding = 1, output_padding = 1", (2, 2, 3, 3), stride=2,
                           padding=1, output_padding=1),
    transposed_convolution("transposed_uneven", "3, [3, 2], stride = [2, 3], padding = [1, 0], output_padding = [0, 1], dilation = [1, 2]",
                           (2, 3, 3, 2), stride=(2, 3), padding=(1, 0), output_padding=(0, 1), dilation=(1, 2)),
    transposed_convolution("transposed_apart", "2, 2, stride = 3", (2, 2, 2, 2), stride=3),
    transposed_convolution("transposed_groups", "4, 3, groups = 2, stride = 2", (4, 2, 3, 3), x=(4, 3, 2), bias=(4,), groups=2, stride=2),
    Case("transposed_back", "conv2d(relu(conv_transpose2d(x, 3, 2, stride = 2, bias = false)), 2, 3, bias = false)",
         lambda x, z, e: conv2d(np.maximum(conv_transpose2d(x, e["y.0.weight"], 2), 0), e["y.1.weight"]),
         weights={"y.0.weight": (2, 3, 2, 2), "y.1.weight": (2, 3, 3, 3)}, x=(2, 3, 4),
         memory={"y.0.weight": CHANNELS_LAST, "y.1.weight": CHANNELS_LAST}, grows=True),
    convolution1d("conv1d", "3, 3", (3, 2, 3)),
    convolution1d("conv1d_padded", "4, 3, padding = 1, stride = 2", (4, 2, 3), padding=1, stride=(1, 2), bias=False),
    convolution1d("conv1d_dilated", "2, 2, dilation = 3", (2, 2, 2), dilation=(1, 3)),
    convolution1d("conv1d_groups", "4, 3, groups = 2, padding = 2", (4, 2, 3), x=(4, 6), groups=2, padding=2),
    convolution1d("conv1d_depthwise", "3, 3, groups = 3, padding = 1", (3, 1, 3), x=(3, 6), memory=(2, 1, 0), groups=3, padding=1),
    Case("conv1d_twice", "conv1d(relu(conv1d(x, 3, 3, padding = 1, bias = false)), 2, 3, stride = 2, bias = false)",
         lambda x, z, e: conv2d(np.maximum(conv2d(x[:, :, None], e["y.0.weight"][:, :, None], padding=(0, 1)), 0),
                                e["y.1.weight"][:, :, None], stride=(1, 2))[:, :, 0],
         x=(2, 6), weights={"y.0.weight": (3, 2, 3), "y.1.weight": (2, 3, 3)}, memory={"y.0.weight": (0, 2, 1), "y.1.weight": (0, 2, 1)},
         grows=True),
    pooling("max_pool", "max_pool(x, 2)", lambda t: t.max(-1), kernel=2, stride=2),
    pooling("max_pool_padded", "max_pool(x, 3, stride = 2, padding = 1)", lambda t: t.max(-1), kernel=3, stride=2, padding=1,
            fill=-np.inf),
    pooling("max_pool_uneven", "max_pool(x, [2, 3], stride = 1, dilation = [2, 1])", lambda t: t.max(-1), kernel=(2, 3),
            dilation=(2, 1)),
    pooling("avg_pool", "avg_pool(x, 2)", lambda t: t.mean(-1), kernel=2, stride=2),
    pooling("avg_pool_padded", "avg_pool(x, 3, stride = 2, padding = 1)", lambda t: t.mean(-1), kernel=3, stride=2, padding=1),
    Case("global_avg_pool", "global_avg_pool(x)", lambda x, z, e: x.mean((2, 3)), x=(2, 5, 4)),
    Case("global_max_pool", "global_max_pool(conv2d(x, 3, 1, bias = false))", lambda x, z, e: conv2d(x, e["y.weight"]).max((2, 3)),
         x=(2, 5, 4), weights={"y.weight": (3, 2, 1, 1)}, memory={"y.weight": CHANNELS_LAST}, grows=True),
    Case("adaptive_avg_pool", "adaptive_avg_pool(x, [2, 3])", lambda x, z, e: adaptive(x, (2, 3)), x=(2, 4, 6)),
    Case("adaptive_avg_pool_uneven", "adaptive_avg_pool(x, 3)", lambda x, z, e: adaptive(x, (3, 3)), x=(2, 5, 4)),
    Case("adaptive_avg_pool_larger", "adaptive_avg_pool(x, [5, 2])", lambda x, z, e: adaptive(x, (5, 2)), x=(2, 3, 2)),
    Case("upsample", "upsample(x, [2, 3])", lambda x, z, e: x.repeat(2, 2).repeat(3, 3), x=(2, 3, 2)),
    Case("upsample_bilinear", 'upsample(x, [2, 3], mode = "bilinear")', lambda x, z, e: bilinear(x, (2, 3)), x=(2, 3, 4), grows=True),
    Case("upsample_bilinear_twice", 'upsample(upsample(x, 4, "bilinear"), [1, 2], "bilinear")',
         lambda x, z, e: bilinear(bilinear(x, (4, 4)), (1, 2)), x=(3, 1, 2), grows=True),
    Case("layer_norm", "layer_norm(x)", lambda x, z, e: standardized(x, 2) * e["y.weight"] + e["y.bias"],
         weights={"y.weight": (3,), "y.bias": (3,)}, grows=True),
    Case("layer_norm_plain", "layer_norm(x, axes = 2, eps = 0.1, affine = false)",
         lambda x, z, e: standardized(x, (1, 2), 0.1), grows=True),
    Case("layer_norm_image", "layer_norm(conv2d(x, 2, 1, bias = false), axes = 3)",
         lambda x, z, e: standardized(conv2d(x, e["y.0.weight"]), (1, 2, 3)) * e["y.1.weight"] + e["y.1.bias"],
         x=(2, 3, 4), weights={"y.0.weight": (2, 2, 1, 1), "y.1.weight": (2, 3, 4), "y.1.bias": (2, 3, 4)},
         memory={"y.0.weight": CHANNELS_LAST}, grows=True),
    Case("rms_norm", "rms_norm(x)", lambda x, z, e: x / np.sqrt((x**2).mean(2, keepdims=True) + 1e-5) * e["y.weight"],
         weights={"y.weight": (3,)}, grows=True),
    Case("rms_norm_axes", "rms_norm(x, axes = 2, eps = 0.1)",
         lambda x, z, e: x / np.sqrt((x**2).mean((1, 2), keepdims=True) + 0.1) * e["y.weight"],
         weights={"y.weight": (2, 3)}, grows=True),
    Case("group_norm", "group_norm(x, 2)",
         lambda x, z, e: standardized(x.reshape(-1, 2, 2, 3, 2), (2, 3, 4)).reshape(x.shape) * e["y.weight"][:, None, None]
         + e["y.bias"][:, None, None],
         x=(4, 3, 2), weights={"y.weight": (4,), "y.bias": (4,)}, grows=True),
    Case("instance_norm", "instance_norm(x)", lambda x, z, e: standardized(x, (2, 3)), x=(2, 3, 4), grows=True),
    Case("instance_norm_affine", "instance_norm(x, eps = 0.1, affine = true)",
         lambda x, z, e: standardized(x, (2, 3), 0.1) * e["y.weight"][:, None, None] + e["y.bias"][:, None, None], x=(3, 2, 3),
         weights={"y.weight": (3,), "y.bias": (3,)}, grows=True),
    # recurrent layers
    recurrent_case("rnn", "rnn(x, 4)", "rnn", 4, (5, 3), lambda run, x, z, e: run(x)),
    recurrent_case("rnn_relu", 'rnn(x, 3, activation = "relu", bias = false, reverse = true)', "relu", 3, (4, 2),
                   lambda run, x, z, e: run(x, tail="_reverse"), tails=["_reverse"], bias=False),
    recurrent_case("gru", "gru(x, 5) * z", "gru", 5, (6, 3), lambda run, x, z, e: run(x) * z, z=(6, 5)),
    recurrent_case("gru_reverse", "gru(x, 3, reverse = true)", "gru", 3, (4, 2), lambda run, x, z, e: run(x, tail="_reverse"), tails=["_reverse"]),
    recurrent_case("gru_plain", "gru(x, 3, bias = false, start = z)", "gru", 3, (4, 2), lambda run, x, z, e: run(x, h=z), bias=False, z=(3,)),
    recurrent_case("gru_lengths", "gru(x, 3, lengths = label)", "gru", 3, (4, 2), lambda run, x, z, e: run(x, lengths=e["label"]), classes=True),
    recurrent_case("gru_one_step", "gru(x, 2, start = z)", "gru", 2, (1, 3), lambda run, x, z, e: run(x, h=z), z=(2,)),
    recurrent_case("lstm", "lstm(x, 4)", "lstm", 4, (5, 3), lambda run, x, z, e: run(x)),
    recurrent_case("lstm_last", "2 * lstm(x, 5)[4]", "lstm", 5, (5, 3), lambda run, x, z, e: 2 * run(x)[:, 4]),
    recurrent_case("lstm_lengths", "lstm(x, 3, lengths = label, reverse = true, start = slice(z, 0, 0, 3), cell = slice(z, 0, 3, 6))", "lstm", 3, (4, 2),
                   lambda run, x, z, e: run(x, tail="_reverse", lengths=e["label"], h=z[:, :3], c=z[:, 3:]), tails=["_reverse"], z=(6,), classes=True),
    recurrent_case("lstm_cell", "lstm(x, 2, cell = z, bias = false)", "lstm", 2, (3, 2), lambda run, x, z, e: run(x, c=z), z=(2,), bias=False),
    recurrent_case("lstm_both", "lstm(x, 3, bidirectional = true)", "lstm", 3, (4, 2),
                   lambda run, x, z, e: np.concatenate([run(x), run(x, tail="_reverse")], 2), tails=["", "_reverse"]),
    recurrent_case("gru_layers", "gru(x, 3, layers = 2, bidirectional = true, lengths = 3)", "gru", 3, (4, 2),
                   lambda run, x, z, e: (lambda h: np.concatenate([run(h, 1, t, lengths=3) for t in ("", "_reverse")], 2))(
                       np.concatenate([run(x, 0, t, lengths=3) for t in ("", "_reverse")], 2)), layers=2, tails=["", "_reverse"]),
    recurrent_case("lstm_wide", "lstm(x, 50, start = m)", "lstm", 50, (3, 2), lambda run, x, z, e: run(x, h=of_each(e["m"], x)), weights={"m": (50,)}),
    # lookups
    Case("gather", "x * gather(m, label)", lambda x, z, e: x * e["m"][e["label"]][:, None], classes=True, weights={"m": (5, 3)}),
    Case("gather_numbers", "x * gather(m, label)", lambda x, z, e: x * e["m"][e["label"]][:, None, None], classes=True,
         weights={"m": (5,)}),
    Case("gather_matrices", "matmul(x, gather(m, label))", lambda x, z, e: x @ e["m"][e["label"]], classes=True,
         weights={"m": (6, 3, 5)}),
    Case("gather_computed", "gather(m, argmax(x, axis = 0)) * z + mean(x)",
         lambda x, z, e: e["m"][x.argmax(1)] * z + x.mean((1, 2), keepdims=True), z=(3, 1), weights={"m": (2, 7)}),
    Case("gather_clamped", "gather(m, argmax(x, axis = 1)) * z + gather(w, slice(iota(3), 0, 1, 3)) + mean(x)",
         lambda x, z, e: e["m"][np.minimum(x.argmax(2), 1)] * z + e["w"][0] + x.mean((1, 2), keepdims=True), x=(2, 9), z=(2, 3), weights={"m": (2, 3), "w": (1, 3)}),
    Case("gather_clamp", "x * gather(m, clamp(label + 1, 2, 4))", lambda x, z, e: x * e["m"][np.clip(e["label"] + 1, 2, 4)][:, None],
         classes=True, weights={"m": (5, 3)}),
    Case("gather_each", "gather(x, label) * z", lambda x, z, e: x[np.arange(3), e["label"]] * z, x=(5, 2), z=(2,), classes=True),
    Case("gather_each_several", "gather(x, argsort(z)) + sum(z)", lambda x, z, e: np.take_along_axis(x, z.argsort(1)[..., None], 1)
         + z.sum(1)[:, None, None], x=(4, 2), z=(4,)),
    Case("gather_each_same", "gather(x, slice(iota(3), 0, 1, 3)) * gather(x, iota(2))", lambda x, z, e: x[:, 1:] * x[:, :2], x=(3, 2)),
    Case("gather_each_clamped", "gather(x, argmax(z)) + sum(z)", lambda x, z, e: x[np.arange(3), np.minimum(z.argmax(1), 1)] + z.sum(1),
         x=(2,), z=(7,)),
    Case("gather_each_whole", "gather(m, gather(argsort(x), iota(2))) * z + sum(x)",
         lambda x, z, e: e["m"][x.argsort(1)[:, :2]] * z + x.sum(1)[:, None, None], x=(4,), z=(2, 2), weights={"m": (4, 2)}),
    Case("scatter_add", "scatter_add(argmax(z), x, 4) * sum(z)", lambda x, z, e: np.stack([
        sum(v[k] * (i.argmax(1)[k] == np.arange(4))[:, None] for k in range(5)) for v, i in zip(x, z)]) * z.sum((1, 2))[:, None, None],
         x=(5, 2), z=(5, 4)),
    Case("scatter_add_numbers", "scatter_add(label, x, rows = 6)", lambda x, z, e: np.eye(6)[e["label"]][..., None] * x[:, None], x=(2,), classes=True),
    Case("scatter_add_same", "scatter_add(iota(3), x, rows = 5) * scatter_add(iota(3), m, 5)", lambda x, z, e:
         np.pad(x * e["m"], ((0, 0), (0, 2), (0, 0))), x=(3, 2), weights={"m": (3, 2)}),
    Case("gather_same", "x * gather(m, iota(2)) + gather(m, label)",
         lambda x, z, e: x * e["m"][:2] + e["m"][e["label"]][:, None], classes=True, weights={"m": (5, 3)}),
    Case("gather_tied", "matmul(relu(x + gather(m, label)), m, transpose_b = true)",
         lambda x, z, e: np.maximum(x + e["m"][e["label"]][:, None], 0) @ e["m"].T, classes=True, weights={"m": (5, 3)}),
    Case("gather_of_values", "x * gather(softmax(m), label) + gather(2 * relu(m), label)",
         lambda x, z, e: x * softmax(e["m"])[e["label"]][:, None] + 2 * np.maximum(e["m"], 0)[e["label"]][:, None],
         classes=True, weights={"m": (5, 3)}, grows=True),
    Case("gather_of_views", "x * gather(transpose(m), label) + gather(pad(slice(transpose(m), 0, 1, 3), 0, 2, 1), label)",
         lambda x, z, e: x * e["m"].T[e["label"]][:, None] + np.pad(e["m"].T[1:3], ((2, 1), (0, 0)))[e["label"]][:, None],
         classes=True, weights={"m": (3, 5)}),
    Case("gather_in_views", "sum(slice(pad(transpose(gather(m, argmax(x, axis = 0))), 1, 1, 2), 1, 0, 6) * x, axis = 0)",
         lambda x, z, e: (np.pad(e["m"][x.argmax(1)].transpose(0, 2, 1), ((0, 0), (0, 0), (1, 2)))[:, :, :6] * x).sum(1),
         x=(2, 6), weights={"m": (4, 2)}),
    Case("embedding", "x * embedding(label, 7, 3)", lambda x, z, e: x * e["y.weight"][e["label"]][:, None], classes=True,
         weights={"y.weight": (7, 3)}),
    # losses
    Case("mse", "mse(x, target)", lambda x, z, e: example_mean((x - e["target"]) ** 2), target=(2, 3)),
    Case("mse_number", "mse(x, target)", lambda x, z, e: ((x - e["target"]) ** 2)[:, 0], x=(1,), target=(1,)),
    Case("huber", "huber(x, target)", lambda x, z, e: example_mean(huber(x - e["target"], 1)), target=(2, 3)),
    Case("huber_delta", "huber(x, target, delta = 0.5)", lambda x, z, e: example_mean(huber(x - e["target"], 0.5)), target=(2, 3)),
    Case("mae", "mae(x, target)", lambda x, z, e: example_mean(abs(x - e["target"])), target=(2, 3)),
    Case("bce", "bce(x, target)", lambda x, z, e: bce(x, e["target"]), x_range=(0.1, 0.9), target=(2, 3)),
    Case("bce_certain", "bce(x * 0, target)", lambda x, z, e: 100 * example_mean(e["target"]), target=(2, 3), gradient=False),
    Case(
        "bce_logits", "bce(x, target, from_logits = true)", lambda x, z, e: bce(sigmoid(x), e["target"]), target=(2, 3)
    ),
    Case(
        "cross_entropy", "cross_entropy(x, label)", lambda x, z, e: cross_entropy(x, one_hot(e["label"], 5)), x=(5,), classes=True
    ),
    Case("cross_entropy_class_weights", "cross_entropy(x, label, class_weights = [1, 0.5, 0, 2, 7])",
         lambda x, z, e: np.array([1, 0.5, 0, 2, 7])[e["label"]] * cross_entropy(x, one_hot(e["label"], 5)), x=(5,), classes=True),
    Case("cross_entropy_class_weights_learnt", "cross_entropy(slice(x, 0, 0, 5), label, label_smoothing = 0.1, class_weights = m * m)",
         lambda x, z, e: (e["m"]**2)[e["label"]] * cross_entropy(x[:, :5], smooth(one_hot(e["label"], 5), 0.1)), x=(8,), classes=True,
         weights={"m": (5,)}),
    Case("cross_entropy_filler", "cross_entropy(slice(x, 0, 0, 5), label)",
         lambda x, z, e: cross_entropy(x[:, :5], one_hot(e["label"], 5)), x=(8,), classes=True, grows=True),
    Case("cross_entropy_filler_product", "cross_entropy(slice(unembed(x, m), 0, 0, 5), label)",
         lambda x, z, e: cross_entropy((x @ e["m"].T)[:, :5], one_hot(e["label"], 5)), x=(3,), classes=True,
         weights={"m": (8, 3)}, grows=True),
    Case("cross_entropy_sliced", "cross_entropy(slice(x, 0, 1, 6), label)",
         lambda x, z, e: cross_entropy(x[:, 1:6], one_hot(e["label"], 5)), x=(8,), classes=True),
    Case(
        "cross_entropy_smooth",
        "cross_entropy(x, label, label_smoothing = 0.1)",
        lambda x, z, e: cross_entropy(x, smooth(one_hot(e["label"], 5), 0.1)),
        x=(5,),
        classes=True,
    ),
    Case(
        "cross_entropy_distribution",
        "cross_entropy(x, target)",
        lambda x, z, e: cross_entropy(x, e["target"]).mean(1),
        target=(2, 3),
    ),
    Case(
        "cross_entropy_one_hot",
        "cross_entropy(x, one_hot(label, 5))",
        lambda x, z, e: cross_entropy(x, one_hot(e["label"], 5)),
        x=(5,),
        classes=True,
    ),
    Case("one_hot", "x * one_hot(label, 5)", lambda x, z, e: x * one_hot(e["label"], 5), x=(5,), classes=True),
    Case(
        "accuracy", "x * accuracy(x, label)", lambda x, z, e: x * (x.argmax(1) == e["label"])[:, None], x=(5,), classes=True
    ),
    # shapes of chains
    Case("residual", "x + relu(x) * z", lambda x, z, e: x + np.maximum(x, 0) * z),
    Case("norm", "(x - mean(x)) / sqrt(mean(square(x - mean(x))) + 0.1)",
         lambda x, z, e: (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 0.1),
         grows=True),
    Case("attention_written_out", "matmul(softmax(matmul(x, z, transpose_b = true)), z)",
         lambda x, z, e: softmax(x @ z.transpose(0, 2, 1)) @ z, x=(4, 3), z=(5, 3)),
]


def dims(shape):
    return "[" + ", ".join(map(str, shape)) + "]"


class Piece:
    """One case inside a group: its tensors in the group's pool, its weights, its statements. Names start with its id. All its numbers
    are drawn by its id and `draw`: no case moves those of another."""

    def __init__(self, case, pool, draw):
        self.case, self.pool, self.weights, self.parts, self.lines = case, pool, {}, {}, []
        random = np.random.default_rng([zlib.crc32(case.id.encode()), draw])
        self.memory = {f"{case.id}_{name}": axes for name, axes in case.memory.items()}
        text = case.y
        for name, shape, domain in (("x", case.x, case.x_range), ("z", case.z, case.z_range)):
            if re.search(rf"\b{name}\b", text):
                self.add_operand(name, shape, domain, random)
        if case.target is not None:
            self.parts["target"] = pool.add(random.uniform(*case.target_range, (BATCH, *case.target)))
            self.lines.append(f"{case.id}_target = {pool.text(self.parts['target'])}")
        for name, shape in case.weights.items():
            if "." not in name:
                self.lines.append(f"{case.id}_{name} = weight({dims(shape)})")
            self.weights[f"{case.id}_{name}"] = random.uniform(-1, 1, shape).astype(np.float32)
        text = re.sub(r"\b(x|z|m|w|target)\b", rf"{case.id}_\1", text)
        self.parts["probe"] = pool.add(random.uniform(-1, 1, self.y().shape[:1] + (self.y().shape[1:] or (1,))))
        self.lines.append(f"{case.id}_y = {text}")
        self.lines.append(f"{case.id}_loss = sum({case.id}_y * {pool.text(self.parts['probe'])})")
        self.directions = {name: self.direction(value.shape, random) for name, value in self.weights.items()}

    @staticmethod
    def direction(shape, random):
        """Of length 1."""
        direction = random.normal(size=shape)
        return direction / np.linalg.norm(direction)

    def add_operand(self, name, shape, domain, random):
        prefix = f"{self.case.id}_{name}"
        self.parts[name] = self.pool.add(random.uniform(*domain, (BATCH, *shape)))
        self.weights[f"{prefix}_weight"] = random.uniform(-0.01, 0.01, shape).astype(np.float32)
        self.lines.append(f"{prefix}_weight = weight({dims(shape)})")
        self.lines.append(f"{prefix} = {self.pool.text(self.parts[name])} + {prefix}_weight")

    def operand(self, name):
        if name not in self.parts:
            return None
        return self.pool.value(self.parts[name]) + self.weights[f"{self.case.id}_{name}_weight"].astype(np.float64)

    def y(self):
        extra = {name: self.weights[f"{self.case.id}_{name}"].astype(np.float64) for name in self.case.weights}
        extra["label"] = self.pool.label
        if "target" in self.parts:
            extra["target"] = self.pool.value(self.parts["target"])
        return np.asarray(self.case.value(self.operand("x"), self.operand("z"), extra), np.float64)

    def loss(self):
        """Of each example."""
        probe = self.pool.value(self.parts["probe"])
        return (self.y().reshape(probe.shape) * probe).reshape(BATCH, -1).sum(1)

    def slope(self, name, step):
        """Of the mean loss along the weight's direction, by a difference of NumPy's values."""
        value, means = self.weights[name], []
        for distance in (step, -step):
            self.weights[name] = value.astype(np.float64) + distance * self.directions[name]
            means.append(self.loss().mean())
        self.weights[name] = value
        return (means[0] - means[1]) / (2 * step)

    def is_smooth(self):
        """No corner or jump of the case lies within the step of a finite difference."""
        for name in self.weights if self.case.gradient else ():
            slopes = [self.slope(name, FARTHEST / part) for part in (1, 8, 64)]
            if max(slopes) - min(slopes) > 5e-4 * max(1, abs(slopes[0])):
                return False
        return True


@functools.cache
def smooth_draw(id):
    """The first draw of a case with numbers at which it is smooth."""
    case = next(case for case in CASES if case.id == id)
    return next(draw for draw in range(100) if Piece(case, Pool(), draw).is_smooth())


class Pool:
    """All data of a group in one field, since a model has few fields; each tensor is a slice of it."""

    def __init__(self):
        self.rows, self.size, self.label = [], 0, LABELS

    def add(self, values):
        values = values.astype(np.float32)
        part = (self.size, values.shape[1:])
        self.rows.append(values.reshape(BATCH, -1))
        self.size += self.rows[-1].shape[1]
        return part

    def array(self):
        return np.concatenate(self.rows, axis=1)

    def value(self, part):
        begin, shape = part
        return self.array()[:, begin : begin + math.prod(shape)].reshape(BATCH, *shape).astype(np.float64)

    @staticmethod
    def text(part):
        begin, shape = part
        return f"reshape(slice(pool, 0, {begin}, {begin + math.prod(shape)}), {dims(shape)})"


class Group:
    """A model of some cases, whose loss is the sum of theirs and whose prediction is the list of theirs."""

    def __init__(self, cases):
        self.pool = Pool()
        self.pieces = [Piece(case, self.pool, smooth_draw(case.id)) for case in cases]
        self.pool.add(np.zeros((BATCH, 1)))
        self.weights = {name: value for piece in self.pieces for name, value in piece.weights.items()}
        self.memory = {name: axes for piece in self.pieces for name, axes in piece.memory.items()}
        self.labels = any(piece.case.classes for piece in self.pieces)

    def fields(self):
        """In the order of the model's data block, as the data set stores them."""
        fields = {"pool": self.pool.array()}
        if self.labels:
            fields["label"] = self.pool.label.astype(np.uint8)
        return fields

    def leaves(self):
        return {**self.fields(), **{name: self.in_memory(name, value) for name, value in self.weights.items()}}

    def in_memory(self, name, value):
        """The tensor as graphs have it."""
        return value.astype(np.float64).transpose(self.memory.get(name, range(value.ndim)))

    def in_files(self, name, value):
        return value.transpose(np.argsort(self.memory.get(name, range(value.ndim))))

    def losses(self):
        return np.stack([piece.loss() for piece in self.pieces], axis=1)

    def loss(self):
        return float(self.losses().sum() / BATCH)

    def model(self, optimizer="sgd(0, momentum = 0.9)"):
        fields = [f"pool : f32[{self.pool.size}]"] + [f"label : class[{CLASSES}]"] * self.labels
        files = ", ".join(f'"{field.split()[0]}"' for field in fields)
        names = [f"{piece.case.id}_loss" for piece in self.pieces]
        losses = ", ".join(f"reshape({name}, [1])" for name in names)
        train = [f"loss = {' + '.join(names)}", f"predict = concat([{losses}])", f"optimizer = {optimizer}"]
        train += [f"batch = {BATCH}", "epochs = 1"]
        blocks = {"data": [f"train = idx({files})", *fields], "train": train}
        blocks["model"] = [line for piece in self.pieces for line in piece.lines]
        return "\n".join(
            "\n".join([f"{name} {{", *(f"  {line}" for line in blocks[name]), "}"]) for name in ("data", "model", "train")
        )


class Sample(Group):
    """One case alone."""

    def __init__(self, case):
        super().__init__([case])
        self.case = case
