"""Runs the graphs that `mtc --emit=graph|grad|simple` prints, in NumPy and float64.

    graphs = parse(text)                       {"train": [Node], "eval": [Node]}
    result = evaluate(graphs["train"], leaves) leaves: name -> array (weights, states, fields), name -> number (params,
                                               steps_per_epoch, total_steps)
    result.reports["loss"], result.assigned["h.weight"], result.output, result.values[7]

Every operator here is one row of a table, written from its definition and not from the compiler's: that is the point.
"""

import math
import re
from dataclasses import dataclass, field

import numpy as np

LINE = re.compile(
    r"%(?P<id>\d+) = (?P<op>\w+)(?:\((?P<inputs>[^)]*)\))?(?P<attrs>.*?)"
    r" : (?P<dtype>\w+)(?:\[(?P<dims>[^\]]*)\])?(?: (?P<name>\S+))?(?:  # (?P<place>.*))?"
)
ATTR = re.compile(r"(\w+)=(\[[^\]]*\]|\S+)|(\w+)")
DTYPES = {"f32": np.float64, "i32": np.int64, "u8": np.float64, "bool": np.bool_, "bf16": np.float64, "f16": np.float64, "e4m3": np.float64}


@dataclass
class Node:
    id: int
    op: str
    inputs: list
    attrs: dict
    dtype: str
    shape: tuple
    name: str


@dataclass
class Result:
    values: list
    reports: dict = field(default_factory=dict)
    assigned: dict = field(default_factory=dict)
    output: np.ndarray = None


def numbers(text, kind=int):
    return [kind(part) for part in text.strip("[]").split(",") if part.strip()]


def parse_attrs(text):
    attrs = {}
    for key, value, flag in ATTR.findall(text):
        if flag:
            attrs[flag] = True
        elif value.startswith("["):
            attrs[key] = numbers(value)
        else:
            attrs[key] = float(value)
    return attrs


def parse_node(line):
    match = LINE.fullmatch(line)
    assert match, f"not a line of a graph: {line!r}"
    inputs = [int(part.strip().lstrip("%")) for part in (match["inputs"] or "").split(",") if part.strip()]
    dims = tuple(numbers(match["dims"] or ""))
    return Node(int(match["id"]), match["op"], inputs, parse_attrs(match["attrs"]), match["dtype"], dims, match["name"])


def parse(text):
    graphs = {}
    for line in text.splitlines():
        if line.startswith("graph "):
            nodes = graphs.setdefault(line.split()[1], [])
        elif line:
            nodes.append(parse_node(line))
    return graphs


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def to_bf16(x):
    """The nearest number of 8 significant bits, halves to even."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def to_e4m3(x):
    """The nearest number of 4 significant bits, no finer than 2^-9, halves to even; 448 for what is beyond it."""
    x = np.asarray(x, dtype=np.float64)
    exponent = np.maximum(np.frexp(x)[1] - 1, -6)
    return np.clip(np.ldexp(np.rint(np.ldexp(x, 3 - exponent)), exponent - 3), -448, 448)


def to_tf32(x):
    """The nearest number of 11 significant bits, halves away from 0."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = np.where(np.isfinite(x), bits + 0x1000, bits) & 0xFFFFE000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def to_f16(x):
    with np.errstate(over="ignore"):
        return np.asarray(x, dtype=np.float32).astype(np.float16).astype(np.float64)


def expand(node, x):
    for axis in node.attrs["axes"]:
        x = np.expand_dims(x, axis)
    return np.broadcast_to(x, node.shape)


def placed(node, small):
    """The part of the larger tensor that the smaller one covers."""
    return tuple(slice(start, start + size) for start, size in zip(node.attrs["offset"], small))


def pad(node, x):
    out = np.zeros(node.shape, x.dtype)
    out[placed(node, x.shape)] = x
    return out


def reflect(node, x):
    before = [int(start) for start in node.attrs["offset"]]
    return np.pad(x, [(b, whole - size - b) for b, whole, size in zip(before, node.shape, x.shape)], mode="reflect")


def swept(node, axis, size):
    """Along rows (0) or columns (1): for each output and tap, the operand's index, and whether there is one."""
    out, kernel, stride, dilation, before, spread = node.attrs[("rows", "columns")[axis]]
    place = np.arange(out)[:, None] * stride + np.arange(kernel) * dilation - before
    inside = (place >= 0) & (place % spread == 0) & (place // spread < size)
    return np.where(inside, place // spread, 0), inside


def sweep(node, x, fill, *taps):
    """x at all outputs and taps: [N, OH, OW, KH, KW, C]."""
    (rows, row_inside), (columns, column_inside) = swept(node, 0, x.shape[1]), swept(node, 1, x.shape[2])
    index = (slice(None), rows[:, None, :, None], columns[None, :, None, :], *taps)
    inside = row_inside[:, None, :, None] & column_inside[None, :, None, :]
    return np.where(inside[None, ..., None], x[index], fill)


def window(node, x):
    return sweep(node, x, node.attrs.get("value", 0))


def unwindow(node, y):
    return sweep(node, y, 0, np.arange(y.shape[3])[:, None], np.arange(y.shape[4]))


def conv2d(node, x, w):
    return np.einsum("nijklc,oklc->nijo", window(node, x), w)


def conv_transpose2d(node, x, w):
    """Each pixel of x sends its products to where the convolution's outputs look."""
    (rows, row_inside), (columns, column_inside) = swept(node, 0, node.shape[1]), swept(node, 1, node.shape[2])
    sent = np.einsum("nijc,cklo->nijklo", x, w)
    sent = sent * (row_inside[:, None, :, None] & column_inside[None, :, None, :])[None, ..., None]
    y = np.zeros(node.shape)
    np.add.at(y, (slice(None), rows[:, None, :, None], columns[None, :, None, :]), sent)
    return y


def depthwise_conv2d(node, x, w):
    return np.einsum("nijklc,klc->nijc", window(node, x), w[:, :, 0])


def max_pool(node, x):
    return sweep(node, x, -np.inf).max((3, 4))


def to_bf16(x):
    """Rounded to the nearest number of 8 bits, of two equally near ones to the even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return np.where(np.isnan(x), np.nan, rounded.astype(np.uint32).view(np.float32)).astype(np.float64)


def random_crop(node, x, u):
    """u: two numbers in [0, 1) for each example."""
    out, reach = np.zeros(node.shape), [int(p) for p in node.attrs["offset"][2:]]
    missing = [max(p - (there - size) // 2, 0) for p, there, size in zip(reach, x.shape[2:], node.shape[2:])]
    padded = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in missing)))
    for n in range(len(x)):
        i, j = (int(u[n, k] * (2 * reach[k] + 1)) for k in range(2))
        out[n] = padded[n, :, i : i + node.shape[2], j : j + node.shape[3]]
    return out


def random_flip(node, x, u):
    return np.where(u[:, None, None, None] < 0.5, x[..., ::-1], x)


class Heads:
    """The packed operand of an attention [B, T, rows] as q, k, v [B, heads, T, size], each query with a key of its own."""

    def __init__(self, node, packed):
        self.queries, self.keys, self.size = node.attrs["heads"]
        self.scale = node.attrs["value"]
        cut = np.cumsum([self.queries * self.size, self.keys * self.size])
        q, k, v = (self.split(part) for part in np.split(packed, cut, axis=-1))
        self.q, self.k, self.v = q, *(np.repeat(part, self.queries // self.keys, axis=1) for part in (k, v))
        i, j = np.arange(packed.shape[1])[:, None], np.arange(packed.shape[1])
        seen = (i >= j) | (not node.attrs.get("causal"))
        if "window" in node.attrs:
            seen = seen & (i - j < node.attrs["window"])
        self.scores = np.where(seen, self.scale * self.q @ self.k.swapaxes(-1, -2), -np.inf)
        peak = self.scores.max(-1, keepdims=True)
        self.sums = peak + np.log(np.exp(self.scores - peak).sum(-1, keepdims=True))

    def split(self, rows):
        return rows.reshape(*rows.shape[:2], -1, self.size).swapaxes(1, 2)

    @staticmethod
    def merge(heads):
        return heads.swapaxes(1, 2).reshape(heads.shape[0], heads.shape[2], -1)

    def of_keys(self, heads):
        """Of queries, summed over those that share a key."""
        batch, _, length, size = heads.shape
        return self.merge(heads.reshape(batch, self.keys, -1, length, size).sum(2))


def rounded(node, x):
    return {"bf16": to_bf16, "f16": to_f16}.get(node.dtype, np.asarray)(x)


def attend(node, packed):
    heads = Heads(node, packed)
    return rounded(node, heads.merge(np.exp(heads.scores - heads.sums) @ heads.v))


def attend_step(node, packed, cache, at):
    """Attention's row at one position: the others' keys and values are in the cache, and their queries do not matter."""
    width = int(node.attrs["heads"][0] * node.attrs["heads"][2])
    if cache.ndim == 3:  # of each text
        return np.concatenate([attend_step(node, row[None], own, at) for row, own in zip(packed, cache)])
    cache[at] = packed[0, 0, width:]
    queries = np.broadcast_to(packed[0, 0, :width], (at + 1, width))
    return attend(node, np.concatenate([queries, cache[:at + 1]], axis=1)[None])[:, -1:]


def attend_grad(node, packed, sums, dots, dy):
    heads = Heads(node, packed)
    weights = np.exp(heads.scores - sums.swapaxes(1, 2)[..., None])
    dy = heads.split(dy)
    scores = heads.scale * weights * (dy @ heads.v.swapaxes(-1, -2) - dots.swapaxes(1, 2)[..., None])
    dq, dk, dv = scores @ heads.k, scores.swapaxes(-1, -2) @ heads.q, weights.swapaxes(-1, -2) @ dy
    return rounded(node, np.concatenate([heads.merge(dq), heads.of_keys(dk), heads.of_keys(dv)], axis=-1))


def matmul(node, a, b):
    return np.matmul(
        np.swapaxes(a, -1, -2) if node.attrs.get("ta") else a, np.swapaxes(b, -1, -2) if node.attrs.get("tb") else b
    )


def gather_grad(node, index, dy):
    table = np.zeros(node.shape)
    np.add.at(table, index, dy)
    return table


def cumsum(node, x):
    axis = node.attrs["axes"][0]
    return np.flip(np.flip(x, axis).cumsum(axis), axis) if node.attrs.get("index") else x.cumsum(axis)


def cell_of(node):
    """Its name, and whether it goes from the last step to the first."""
    cell, backwards = divmod(int(node.attrs.get("index", 0)), 2)
    return ["rnn_tanh", "rnn_relu", "gru", "lstm"][cell], backwards


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Recurrence:
    """All steps of a recurrent layer, one after the other: each step's state before it, gates and what the gradient needs."""

    def __init__(self, node, x, u, bias, start, length):
        self.cell, self.reversed = cell_of(node)
        self.units, self.steps = u.shape[0], x.shape[1]
        h, c = start[:, : self.units], start[:, self.units :]
        self.out, self.kept = np.zeros((*x.shape[:2], self.units)), [None] * self.steps
        for t in self.order():
            new_h, new_c, kept = getattr(self, self.cell.split("_")[0])(x[:, t], h @ u + bias, h, c)
            runs = (t < length)[:, None]
            h, c = np.where(runs, new_h, h), np.where(runs, new_c, c) if c.size else c
            extra = [c] if c.size else []
            self.kept[t] = np.concatenate([np.where(runs, kept, 0), *extra], axis=-1)
            self.out[:, t] = h
        self.kept = np.stack(self.kept, axis=1)

    def order(self):
        return range(self.steps)[:: -1 if self.reversed else 1]

    def rnn(self, x, hidden, h, c):
        bent = np.tanh(x + hidden) if self.cell == "rnn_tanh" else np.maximum(x + hidden, 0)
        return bent, c, bent

    def gru(self, x, hidden, h, c):
        (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(hidden, 3, -1)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * hn)
        return (1 - z) * n + z * h, c, np.concatenate([r, z, n, hn], -1)

    def lstm(self, x, hidden, h, c):
        i, f, g, o = np.split(x + hidden, 4, -1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        c = f * c + i * g
        return o * np.tanh(c), c, np.concatenate([i, f, g, o], -1)


class RecurrenceBack:
    """The gradients of a recurrent layer's gates at all steps, and of the state that it begins with."""

    def __init__(self, node, kept, ut, out, start, length, dy):
        cell, reverse = cell_of(node)
        units, steps = out.shape[2], out.shape[1]
        order = list(range(steps)[:: -1 if reverse else 1])
        d_h, d_c = np.zeros_like(start[:, :units]), np.zeros_like(start[:, units:])
        self.gates = np.zeros((*out.shape[:2], ut.shape[0]))
        for turn in reversed(range(steps)):
            t, runs = order[turn], (order[turn] < length)[:, None]
            before = out[:, order[turn - 1]] if turn else start[:, :units]
            part, d = np.split(kept[:, t], kept.shape[2] // units, -1), dy[:, t] + d_h
            through, stays, c_stays = d, 0 * d, d_c
            if cell == "lstm":
                i, f, g, o, c = part
                c_before = kept[:, order[turn - 1], -units:] if turn else start[:, units:]
                through_c = d_c + d * o * (1 - np.tanh(c) ** 2)
                through = np.concatenate([through_c * g * i * (1 - i), through_c * c_before * f * (1 - f),
                                          through_c * i * (1 - g**2), d * np.tanh(c) * o * (1 - o)], -1)
                hidden, c_stays = through, through_c * f
            elif cell == "gru":
                r, z, n, hn = part
                d_n = d * (1 - z) * (1 - n**2)
                both = [d_n * hn * r * (1 - r), d * (before - n) * z * (1 - z)]
                through, hidden, stays = np.concatenate([*both, d_n], -1), np.concatenate([*both, d_n * r], -1), d * z
            else:
                through = hidden = d * (1 - part[0] ** 2 if cell == "rnn_tanh" else part[0] > 0)
            self.gates[:, t] = np.where(runs, through, 0)
            d_h = np.where(runs, stays + hidden @ ut, d)
            d_c = np.where(runs, c_stays, d_c)
        self.start = np.concatenate([d_h, d_c], -1)


def reduction(function):
    return lambda node, x: function(x, axis=tuple(node.attrs["axes"]))


def function(f):
    return lambda node, *operands: f(*operands)


OPS = {
    "add": function(np.add),
    "sub": function(np.subtract),
    "mul": function(np.multiply),
    "div": function(np.divide),
    "neg": function(np.negative),
    "pow": function(np.power),
    "maximum": function(np.maximum),
    "minimum": function(np.minimum),
    "exp": function(np.exp),
    "expm1": function(np.expm1),
    "log": function(np.log),
    "log1p": function(np.log1p),
    "sqrt": function(np.sqrt),
    "abs": function(np.abs),
    "sign": function(np.sign),
    "erf": function(np.vectorize(math.erf, otypes=[np.float64])),
    "floor": function(np.floor),
    "round": function(np.rint),
    "sin": function(np.sin),
    "cos": function(np.cos),
    "relu": function(lambda x: np.where(x > 0, x, 0.0)),
    "sigmoid": function(sigmoid),
    "tanh": function(np.tanh),
    "softplus": function(lambda x: np.logaddexp(x, 0)),
    "eq": function(np.equal),
    "ne": function(np.not_equal),
    "lt": function(np.less),
    "le": function(np.less_equal),
    "gt": function(np.greater),
    "ge": function(np.greater_equal),
    "and": function(np.logical_and),
    "or": function(np.logical_or),
    "not": function(np.logical_not),
    "where": function(np.where),
    "cast": lambda node, x: np.trunc(x).astype(DTYPES[node.dtype]) if node.dtype == "i32" else x.astype(DTYPES[node.dtype]),
    "to_bf16": lambda node, x: to_bf16(x),
    "to_f16": lambda node, x: to_f16(x),
    "to_e4m3": lambda node, x: to_e4m3(x),
    "to_tf32": lambda node, x: to_tf32(x),
    "to_i8": lambda node, x: np.clip(np.rint(x), -127, 127),
    "to_float": lambda node, x: x,
    "stop_gradient": lambda node, x: x,
    "reshape": lambda node, x: x.reshape(node.shape),
    "batch": lambda node, x: x,
    "expand": expand,
    "transpose": lambda node, x: x.transpose(node.attrs["order"]),
    "flip": lambda node, x: np.flip(x, node.attrs["axes"]),
    "roll": lambda node, x: np.roll(x, int(node.attrs["index"]), node.attrs["axes"]),
    "slice": lambda node, x: x[placed(node, node.shape)],
    "pad": pad,
    "reflect": reflect,
    "clamped": lambda node, x: np.clip(x, 0, node.attrs["index"] - 1).astype(np.int64),
    "gather": function(lambda table, index: table[index]),
    "pixels": lambda node, x, place: x[np.arange(len(x)).reshape(-1, *[1] * (place.ndim - 1)), :, place],
    "gather_grad": gather_grad,
    "cumsum": cumsum,
    "recur": lambda *operands: Recurrence(*operands).out,
    "recur_grad": lambda *operands: RecurrenceBack(*operands).gates,
    "sum": reduction(np.sum),
    "prod": reduction(np.prod),
    "max": reduction(np.max),
    "min": reduction(np.min),
    "matmul": matmul,
    "attend": attend,
    "attend_step": attend_step,
    "attend_grad": attend_grad,
    "window": window,
    "unwindow": unwindow,
    "conv2d": conv2d,
    "conv_transpose2d": conv_transpose2d,
    "depthwise_conv2d": depthwise_conv2d,
    "max_pool": max_pool,
    "standardize": function(lambda x, mean, inverse: (x - mean) * inverse),
    "to_bf16": function(to_bf16),
    "to_f16": function(to_f16),
    "to_float": function(lambda x: x),
}

# Views by chance, and how many numbers each example draws.
DRAWS = {"random_crop": (random_crop, (2,)), "random_flip": (random_flip, ())}


# Further results of the operand, of its operands.
PARTS = {
    "recur_gates": lambda *operands: Recurrence(*operands).kept,
    "recur_start": lambda *operands: RecurrenceBack(*operands).start,
}


class Step:
    """What the leaves of one step are."""

    def __init__(self, leaves, step, rows, random, before):
        self.leaves, self.step, self.rows, self.random, self.before = leaves, step, rows, random, before

    def leaf(self, node):
        if node.op == "const":
            return DTYPES[node.dtype](node.attrs["value"])
        if node.op == "step":
            return np.float64(self.step)
        if node.op == "every":
            return np.bool_(self.step % node.attrs["index"] == 0)
        if node.op == "turn":
            return np.int64(self.step % node.attrs["index"])
        if node.op in ("falls", "steps_per_epoch", "total_steps"):
            return np.float64(self.leaves[node.op])
        if node.op in ("position", "token"):
            return np.int64(self.leaves[node.op])
        if node.op in ("prompt", "tokens"):
            return np.asarray(self.leaves[node.op]).reshape(node.shape)
        if node.op == "cache":
            return self.leaves["caches"].setdefault(node.attrs["index"], np.full(node.shape, np.nan))
        if node.op == "examples":
            return np.float64(self.rows)
        if node.op == "examples_before":
            return np.float64(self.before)
        if node.op == "iota":
            return np.arange(node.shape[0])
        if node.op == "share":
            rows = self.rows or node.shape[0]
            return np.where(np.arange(node.shape[0]) < rows, 1.0 / rows, 0.0)
        if node.op == "random":
            return self.random(int(node.attrs["index"]), node.shape)
        value = np.asarray(self.leaves[node.name], dtype=DTYPES[node.dtype])
        assert value.shape == node.shape, f"{node.name} is {value.shape}, but the graph has {node.shape}"
        return value


def fits_i32(value):
    """Here whole numbers have 64 bits: what passes those of the program shows."""
    return np.issubdtype(np.asarray(value).dtype, np.integer) and np.all(np.abs(value + 0.5) < 2**31)


def evaluate(nodes, leaves, step=1, rows=None, random=None, before=0):
    rows = rows or next((node.shape[0] for node in nodes if node.op in ("field", "share") and node.shape), None)
    source, result = Step(leaves, step, rows, random, before), Result([])
    with np.errstate(all="ignore"):
        for node in nodes:
            operands = [result.values[i] for i in node.inputs]
            if node.op == "assign" and nodes[node.inputs[0]].op == "cache":
                operands[0][...] = value = operands[1]
            elif node.op == "assign":
                result.assigned[nodes[node.inputs[0]].name] = value = operands[1]
            elif node.op == "report":
                result.reports[node.name] = value = float(operands[0])
            elif node.op == "output":
                result.output = value = operands[0]
            elif node.op == "attend_sums":  # another result of its operand
                call = nodes[node.inputs[0]]
                value = Heads(call, result.values[call.inputs[0]]).sums[..., 0].swapaxes(1, 2)
            elif node.op in PARTS:
                call = nodes[node.inputs[0]]
                value = PARTS[node.op](call, *(result.values[i] for i in call.inputs))
            elif node.op in DRAWS:
                view, numbers_each = DRAWS[node.op]
                value = view(node, *operands, random(int(node.attrs["index"]), (node.shape[0], *numbers_each)))
            elif node.op == "next_example":  # of those that the batch has
                value = operands[0][np.where(np.arange(len(operands[0])) + 1 < rows, np.arange(len(operands[0])) + 1, 0)]
            elif node.op in OPS:
                value = OPS[node.op](node, *operands)
            else:
                value = source.leaf(node)
            assert np.shape(value) == node.shape, f"%{node.id} {node.op}: {np.shape(value)}, declared {node.shape}"
            assert node.dtype != "i32" or fits_i32(value), f"%{node.id} {node.op} passes 32 bits"
            result.values.append(value)
    return result
