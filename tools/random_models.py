"""Random models, decided by a seed. Each is right: a compiler that refuses one is wrong.

Values read any of the last few before them, and the last layer those that nobody read, so that kernels meet in ways that nobody writes
down: several readers, fields that are operands late, statistics beside their use.
"""

import random

# What a value may be made of: {a} and {b} are values before it, {i} its number, {d} the width, {w} a multiple of it.
VECTORS = [
    "linear({a}, {d})", "relu(linear({a}, {d}))", "linear(silu(linear({a}, {w})), {d})", "{a} + {b}", "gelu({a}) * {b}",
    "dropout({a}, 0.2)", "layer_norm({a} + {b})", "batch_norm({a})", "rms_norm({a})", "softmax({a}) + sigmoid({b})",
    "exp(-abs({a})) * {b}", "{a} - mean({a}, axis = 0)", "{a} * {b} / (1 + {b}^2)",
    "tanh({a} * weight([{d}], normal(1, 0.1), name = \"scale{i}\")) * {b}",
]
IMAGES = [
    "conv2d({a}, {d}, 3, padding = 1)", "relu(batch_norm(conv2d({a}, {d}, 3, padding = 1, bias = false)))", "batch_norm({a})",
    "relu({a} + {b})", "dropout({a}, 0.3)", "gelu({a}) * {b}", "relu({a} + batch_norm(conv2d({b}, {d}, 1)))", "{a} * sigmoid({b})",
]
SEQUENCES = [
    "linear({a}, {d})", "layer_norm({a})", "rms_norm({a} + {b})", "dropout({a}, 0.1) + {b}", "silu({a}) * {b}", "softmax({a}) * {b}",
    "attention({a}, {b}, {b}, 2, causal = true)", "rotary({a}, 2)", "{a} + linear(gelu(linear(layer_norm({a}), {w})), {d})",
    "matmul(softmax(matmul({a}, {b}, transpose_b = true)), {b})",
    "{a} + gather(weight([7, {d}], normal(0, 0.1), name = \"table{i}\"), argmax(slice({b}, 1, 0, 7)))",
]
# Values; the shape of an example, of a width; widths; the last layer.
KINDS = [
    (VECTORS, "{d}", (8, 32, 128), "linear({sum}, {d})"),
    (IMAGES, "{d}, 8, 8", (8, 16), "conv2d({sum}, {d}, 1)"),
    (SEQUENCES, "16, {d}", (16, 32), "linear({sum}, {d})"),
]
OPTIMIZERS = ["sgd(0.01, momentum = 0.9)", "adam(1e-3)", "adamw(1e-3)", "rmsprop(1e-3)", "adagrad(1e-3)", "lion(1e-3)",
              "adafactor(1e-3)", "adam(1e-3, weight_decay = 0.1, every = 2)",
              "rmsprop(1e-3, momentum = 0.9, centered = true, weight_decay = 0.1)"]
SETTINGS = ["clip_norm = 1", "clip_value = 0.5", "accumulate = 3", "ema = 0.99", "metric = mae(out, y)", "precision = bf16",
            "precision = tf32", "precision = tf32x3"]
MODEL = """data {{
  train = npy("x", "y")
  x : f32[{shape}]
  y : f32[{shape}]
}}
model {{
{values}
  out = {out}
}}
train {{
  loss      = mse(out, y)
  optimizer = {optimizer}
  batch     = {batch}
{settings}
}}
"""

# Values of many types, and what each may be made of: S f32[8, 16], Q f32[8, 8], H f32[2, 8, 8], V f32[16], s a number and i a whole one of
# each example.
SCORES = "matmul({S}, {S}, transpose_b = true)"
FORMS = [
    ("Q", SCORES), ("Q", f"softmax(where(iota(8) >= {{i}}, -1e9, {SCORES}))"), ("Q", f"{SCORES} * {{s}}"), ("Q", f"{SCORES} + mean({{S}})"),
    ("Q", f"where(label == {{i}}, {SCORES}, 0)"), ("Q", "softmax({Q}) + {Q} * {s}"), ("Q", f"{SCORES} + transpose({{Q}})"),
    ("Q", "{Q} * (iota(8) < {i}) + {s}"),
    ("H", "reshape({S}, [2, 8, 8])"), ("H", "matmul({H}, {H}, transpose_b = true) * exp(weight([2, 1, 1]))"),
    ("H", "softmax(matmul({H}, {H}) + weight([2, 8, 1]) * {s})"), ("H", "matmul(weight([2, 8, 8]), {Q})"), ("H", "{H} * {Q} + {i}"),
    ("S", "matmul({Q}, {S})"), ("S", "where(label == 2, matmul({Q}, {S}), 0)"), ("S", "{S} * {s} + {V}"), ("S", "linear({S}, 16)"),
    ("S", "layer_norm({S} + {S})"), ("S", "reshape({H}, [8, 16])"), ("S", "matmul(weight([8, 8]), {S})"), ("S", "matmul({S}, weight([16, 16]))"),
    ("S", "concat([weight([1, 16]), slice({S}, 0, 0, 7)], axis = 0)"), ("S", "layer_norm(weight([8, 16])) * {S}"),
    ("S", "{S} + gather(weight([20, 16]), iota(8) + label * 2)"), ("S", "gather(weight([20, 16]), where({i} > bytes, iota(8), label)) * {S}"),
    ("S", "{S} + gather(weight([48, 16]), label * 16 + argmax({V}))"), ("S", "where(x > {s}, {S}, tanh({S}))"),
    ("V", "mean({S}, axis = 0)"), ("V", "linear(flatten({H}), 16)"), ("V", "{V} * {s} + {V}"), ("V", "relu(linear({V}, 16))"),
    ("V", "{V} + concat([slice({V}, 0, 8, 16), slice({V}, 0, 0, 8)])"), ("V", "exp(-abs({V})) * sqrt({V}^2 + 1)"),
    ("V", "concat([weight([6]), iota(4), slice({V}, 0, 0, 6)])"), ("V", "slice(cell(cell(concat([{V}, {V}]), {V}), {V}), 0, 0, 16)"),
    ("V", "slice(steps(concat([{V}, {V}]), {V}), 0, 0, 16)"), ("V", "turns({V})"),
    ("s", "mean({S})"), ("s", "sum({V} * {V}) / (1 + abs({s}))"), ("s", "sigmoid({s}) + max({V})"),
    ("s", f"mean(gather(weight([3, 8, 8]), label) * {SCORES})"), ("s", "mean(matmul(gather(weight([3, 8, 16]), label) * {s}, {S}, transpose_b = true))"),
    ("i", "{i} + label * 2"), ("i", "argmax({V})"), ("i", "where({i} > label, label, argmax({V}))"), ("i", "({s} > 0) * label"),
]
FIRST = {"S": ["x"], "Q": ["pairs"], "H": ["heads"], "V": ["h0"], "s": ["scale"], "i": ["n", "label"]}
# What the last layer reads of one.
PARTS = {"S": "mean({}, axis = 0)", "Q": "max({}, axis = 1)", "H": "flatten({})", "V": "{}", "s": "reshape({}, [1])", "i": "reshape({} / 7, [1])"}
# What C, CUDA or their headers call something, and the program itself.
TAKEN = ("fabsf powf sqrtf expf float_exp float_max float_log fabs cosh count kernel y1 j0 index time truth memcpy row_at i0 i1 j1 k0 k1 end b b1 "
         "j_1 blockIdx threadIdx warpSize dim3 half float2 int4 clock grid warp cluster block batch example row_share labs lrint isnan atomicAdd "
         "uint signal div remove link access read write printf exit abort rand m v g rate correction").split()
LOSSES = ["mse(out, y)", "cross_entropy(slice(out, 0, 0, 3), label)", "mse(out, y) + 0.01 * mean(out * out)\n  predict   = out", "mean(abs(out - y))\n  predict   = out"]
CELL = """fn cell(hc, x) {
  h = slice(hc, 0, 0, 16)
  c = slice(hc, 0, 16, 32)
  g = linear(concat([x, h]), 64)
  next = sigmoid(slice(g, 0, 0, 16)) * c + sigmoid(slice(g, 0, 16, 32)) * tanh(slice(g, 0, 32, 48))
  return concat([sigmoid(slice(g, 0, 48, 64)) * tanh(next), next])
}
"""
STEPS = """fn steps(hc, x) {{
  repeat k in 0..{count} {{
    hc = cell(hc, x)
  }}
  return hc
}}
"""
TURNS = """fn turns(h) {{
  repeat k in 0..{count} {{
    h = sin(h + concat([slice(h, 0, 1, 16), slice(h, 0, 0, 1)]))
  }}
  return h
}}
"""
TYPED = """data {{
  train = npy("x", "pairs", "heads", "h0", "scale", "n", "bytes", "label", "y")
  x : f32[8, 16]
  pairs : f32[8, 8]
  heads : f32[2, 8, 8]
  h0 : f32[16]
  scale : f32
  n : i32
  bytes : u8[8]
  label : class[3]
  y : f32[4]
}}
{functions}model {{
{values}
  out = linear(concat([{parts}]), 4)
}}
train {{
  loss      = {loss}
  optimizer = {optimizer}
  batch     = 4
{settings}
}}
"""


def settings(draw):
    chosen = {each.split()[0]: each for each in draw.sample(SETTINGS, draw.randint(0, 3))}
    return "\n".join(f"  {each}" for each in chosen.values())


def alike(draw):
    """Values of one shape."""
    forms, shape, widths, last = draw.choice(KINDS)
    width = draw.choice(widths)
    names, unread, lines = ["x"], [], []
    for i in range(draw.randint(4, 12)):
        a, b = (draw.choice(names[-4:]) for _ in range(2))
        form = draw.choice(forms)
        lines.append(f"  v{i} = " + form.format(a=a, b=b, i=i, d=width, w=4 * width))
        names.append(f"v{i}")
        unread = [each for each in unread if each not in (a, b if "{b}" in form and "argmax" not in form else a)] + [f"v{i}"]
    return MODEL.format(shape=shape.format(d=width), values="\n".join(lines), optimizer=draw.choice(OPTIMIZERS),
                        out=last.format(sum=" + ".join(unread), d=width), batch=draw.choice([8, 16, 64]), settings=settings(draw))


def functions(values, count):
    """Those that are called; with a repetition of so many steps."""
    steps, turns = "steps(" in values, "turns(" in values
    return CELL * ("cell(" in values or steps) + STEPS.format(count=count) * steps + TURNS.format(count=count) * turns


def of_types(draw):
    """Values of many shapes, numbers of an example among them, by all sorts of names. The last layer reads each that has no other reader
    which can be differentiated: there is no weight without a gradient."""
    values = {kind: list(names) for kind, names in FIRST.items()}
    taken, unread, lines = draw.sample(TAKEN, len(TAKEN)), {}, []
    for i in range(draw.randint(3, 10)):
        kind, form = draw.choice(FORMS)
        while "{" in form:
            wanted = form[form.index("{") + 1]
            name = draw.choice(values[wanted][-3:])
            if wanted in "SQHV" and kind != "i" and not form[:form.index("{")].endswith("argmax("):
                unread.pop(name, None)
            form = form.replace(f"{{{wanted}}}", name, 1)
        name = taken.pop() if draw.random() < 0.4 else f"v{i}"
        lines.append(f"  {name} = {form}")
        values[kind].append(name)
        unread[name] = PARTS[kind].format(name)
    text = "\n".join(lines)
    return TYPED.format(values=text, functions=functions(text, draw.randint(2, 8)), parts=", ".join([*unread.values(), "h0"]), loss=draw.choice(LOSSES),
                        optimizer=draw.choice(OPTIMIZERS), settings=settings(draw))


def random_model(seed):
    """The text of a model that this seed decides."""
    draw = random.Random(seed)
    return draw.choice([alike, of_types])(draw)
