"""Random networks with random sizes, decided by a seed, of layers as people write them: images, sequences and vectors, which become each other.

Unlike those of random_models.py they are about numbers: values keep a size at which gradients can be compared, and most models compute enough
for kernels to take their wide forms. No weight is without a gradient: what nobody read is read by the last layer.
"""

import math
import random

CHANNELS = (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 20, 24, 30, 32, 36, 40, 48, 64, 80, 96, 128)
SIDES = (4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 17, 20, 24, 28, 32, 33)
LENGTHS = (2, 3, 5, 7, 8, 12, 16, 17, 20, 24, 31, 32, 33, 48, 64, 100, 128)
WIDTHS = (3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 36, 40, 48, 64, 72, 96, 128, 192, 256, 320)
BATCHES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 31, 32, 48, 64, 64, 100, 128, 128, 256)
CLASSES = (2, 3, 5, 8, 10, 16, 27, 100, 128, 300)

# Of values of one shape, as long as their size stays: {a}, {b} are values, {i} a number.
MAPS = [
    "relu({a})", "gelu({a})", "silu({a})", "tanh({a})", "sigmoid({a}) * {b}", "{a} + {b}", "relu({a} + {b})", "{a} - 0.5 * {b}", "leaky_relu({a}, 0.1)",
    "{a} * tanh({b})", "elu({a})", "mish({a})", "where({a} > 0.2, {a}, 0.1 * {b})", "maximum({a}, {b})", "clamp({a}, -2, 2)", "softplus({a})",
    "{a} / (1 + square({b}))", "exp(-square({a})) * {b}", "sqrt(square({a}) + 0.5)", "log1p(abs({a}))", "minimum({a}, 0.5 * {b})", "gelu({a}, exact = true)",
    "dropout({a}, 0.2)",
]


class Network:
    """The lines of a model, and the shape of each value."""

    def __init__(self, draw, elements, products):
        self.draw, self.lines, self.shapes, self.unread = draw, [], {}, {}
        self.batch, self.elements, self.products = draw.choice(BATCHES), elements, products

    # ---- values ----

    def fits(self, shape):
        return self.batch * math.prod(shape) <= self.elements and all(size > 0 for size in shape)

    def add(self, text, shape, *read):
        """A line for a value; those that it reads count as read. None where it would be too large."""
        if not self.fits(shape):
            return None
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        for each in read:
            self.unread.pop(each, None)
        self.shapes[name] = self.unread[name] = shape
        return name

    def any_of(self, rank=None, shape=None):
        """One of the last values, of a rank or of a shape."""
        fitting = [name for name, has in self.shapes.items() if (rank is None or len(has) == rank) and (shape is None or has == shape)]
        return self.draw.choice(fitting[-4:]) if fitting else None

    def beside(self, name):
        """Another value of its shape, else itself."""
        return self.any_of(shape=self.shapes[name])

    def divisor(self, number, most=8):
        return self.draw.choice([each for each in range(1, most + 1) if number % each == 0])

    def affordable(self, products):
        return self.batch * products <= self.products

    # ---- layers of any shape ----

    def map(self, a):
        b, form = self.beside(a), self.draw.choice(MAPS)
        return self.add(form.format(a=a, b=b), self.shapes[a], a, *([b] if "{b}" in form else []))

    def centred(self, a):
        shape = self.shapes[a]
        axes = sorted(self.draw.sample(range(len(shape)), self.draw.randint(1, len(shape))))
        axis = axes[0] if len(axes) == 1 else axes
        form = self.draw.choice(["{a} - mean({a}, axis = {x}, keep = true)", "{a} / (1 + max(abs({a}), axis = {x}, keep = true))",
                                 "{a} * sigmoid(sum({a}, axis = {x}, keep = true))", "{a} / (0.5 + std({a}, axis = {x}, keep = true))",
                                 "{a} - min({a}, axis = {x}, keep = true)", "{a} / (0.5 + norm({a}, axis = {x}, keep = true))",
                                 "{a} - logsumexp({a}, axis = {x}, keep = true)", "{a} / (0.5 + variance({a}, axis = {x}, keep = true))"])
        return self.add(form.format(a=a, x=axis), shape, a)

    def along(self, a):
        shape = self.shapes[a]
        axis = self.draw.randrange(len(shape))
        form = self.draw.choice(["softmax({a}, axis = {x}) * {n}", "cumsum({a}, axis = {x}) / {n}", "flip({a}, axis = {x})", "roll({a}, 1, axis = {x})",
                                 "log_softmax({a}, axis = {x})", "cumsum({a}, axis = {x}, reversed = true) / {n}"])
        return self.add(form.format(a=a, x=axis, n=shape[axis]), shape, a)

    def scaled(self, a):
        """By a weight that is broadcast along some axes."""
        shape = self.shapes[a]
        sizes = [size if self.draw.random() < 0.5 else 1 for size in shape]
        return self.add(f"{a} * weight({sizes}, normal(1, 0.3), name = \"scale{len(self.lines)}\") + weight({sizes}, normal(0, 0.3), "
                        f"name = \"shift{len(self.lines)}\")", shape, a)

    def norm(self, a):
        shape = self.shapes[a]
        forms = ["layer_norm({a})", "rms_norm({a})", f"layer_norm({{a}}, axes = {len(shape)})", "batch_norm({a})"]
        if self.batch < 4 and len(shape) < 3:
            forms.pop()
        if len(shape) == 3:
            forms += ["batch_norm({a})"] * 4 + [f"group_norm({{a}}, {self.divisor(shape[0])})"] * 2 + ["instance_norm({a}, affine = true)"]
        if shape[-1] == 1:  # of one number a norm leaves the sign, and what is the largest of such are roundings
            forms = forms[2:]
        if len(shape) == 3 and shape[1] * shape[2] < 4:
            forms = ["layer_norm({a}, axes = 3)"]
        return self.add(self.draw.choice(forms).format(a=a), shape, a)

    def sorted(self, a):
        shape = self.shapes[a]
        if shape[-1] > 64 or len(shape) == 3:
            return None
        if self.draw.random() < 0.5:
            return self.add(f"sort({a})", shape, a)
        k = self.draw.randint(1, shape[-1])
        self.lines.append(f"  top{len(self.lines)}, at{len(self.lines)} = topk({a}, {k})")
        return self.add(f"top{len(self.lines) - 1} * 1.5", (*shape[:-1], k), a)

    def part(self, a):
        shape = self.shapes[a]
        axis = self.draw.randrange(len(shape))
        begin = self.draw.randrange(shape[axis])
        end = self.draw.randint(begin + 1, shape[axis])
        return self.add(f"slice({a}, {axis}, {begin}, {end})", (*shape[:axis], end - begin, *shape[axis + 1:]), a)

    def padded(self, a):
        shape = self.shapes[a]
        axis, before, after = self.draw.randrange(len(shape)), self.draw.randint(0, 2), self.draw.randint(0, 2)
        mode = ', mode = "reflect"' if shape[axis] > 2 and self.draw.random() < 0.5 else ""
        return self.add(f"pad({a}, {axis}, before = {before}, after = {after}{mode})",
                        (*shape[:axis], shape[axis] + before + after, *shape[axis + 1:]), a)

    def together(self, a):
        """Beside another value that differs along one axis at most."""
        shape = self.shapes[a]
        axis = self.draw.randrange(len(shape))
        alike = [name for name, has in self.shapes.items()
                 if len(has) == len(shape) and all(has[k] == shape[k] for k in range(len(shape)) if k != axis)]
        b = self.draw.choice(alike)
        return self.add(f"concat([{a}, {b}], axis = {axis})",
                        (*shape[:axis], shape[axis] + self.shapes[b][axis], *shape[axis + 1:]), a, b)

    # ---- images ----

    def convolution(self, a):
        c, h, w = self.shapes[a]
        out, kernel = self.draw.choice(CHANNELS), self.draw.choice((1, 2, 3, 3, 3, 3, 5))
        stride, dilation = self.draw.choice((1, 1, 1, 2, 3)), self.draw.choice((1, 1, 1, 1, 2))
        padding = self.draw.choice((kernel // 2 * dilation, kernel // 2 * dilation, 0, 1))
        groups = self.draw.choice((1, 1, 1, c, self.divisor(c)))
        if groups > 1:
            out = groups * self.draw.choice((1, 1, 2, 3))
        rows, columns = ((size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for size in (h, w))
        if min(rows, columns) < 1 or not self.affordable(rows * columns * out * c // groups * kernel * kernel):
            return None
        bias = self.draw.choice(["", "", ", bias = false"])
        form = self.draw.choice(["{}", "{}", "relu({})", "relu(batch_norm({}))", "silu(batch_norm({}))"])
        if self.batch * rows * columns < 8:
            form = "{}"
        text = f"conv2d({a}, {out}, {kernel}, stride = {stride}, padding = {padding}, dilation = {dilation}, groups = {groups}{bias})"
        return self.add(form.format(text), (out, rows, columns), a)

    def transposed_convolution(self, a):
        c, h, w = self.shapes[a]
        out, kernel, stride = self.draw.choice(CHANNELS), self.draw.choice((2, 3, 4)), self.draw.choice((1, 2))
        padding = self.draw.choice((0, 1))
        rows, columns = ((size - 1) * stride - 2 * padding + kernel for size in (h, w))
        if min(rows, columns) < 1 or not self.affordable(rows * columns * out * c * kernel * kernel):
            return None
        return self.add(f"conv_transpose2d({a}, {out}, {kernel}, stride = {stride}, padding = {padding})", (out, rows, columns), a)

    def pool(self, a):
        c, h, w = self.shapes[a]
        kernel = self.draw.choice((2, 2, 3, 3))
        stride, padding = self.draw.choice((kernel, 1, 2)), self.draw.choice((0, 0, 1))
        rows, columns = ((size + 2 * padding - kernel) // stride + 1 for size in (h, w))
        kind = self.draw.choice(["max_pool", "avg_pool"])
        if min(rows, columns) < 1 or padding * 2 > kernel:
            return None
        return self.add(f"{kind}({a}, {kernel}, stride = {stride}, padding = {padding})", (c, rows, columns), a)

    def resized(self, a):
        c, h, w = self.shapes[a]
        if self.draw.random() < 0.4:
            out = self.draw.randint(1, min(h, w, 6))
            return self.add(f"adaptive_avg_pool({a}, {out})", (c, out, out), a)
        factor, mode = self.draw.choice((2, 2, 3)), self.draw.choice(["nearest", "bilinear"])
        return self.add(f"upsample({a}, {factor}, mode = \"{mode}\")", (c, factor * h, factor * w), a)

    def excited(self, a):
        """Squeeze and excitation."""
        c = self.shapes[a][0]
        return self.add(f"{a} * reshape(sigmoid(linear(relu(linear(global_avg_pool({a}), {max(1, c // 4)})), {c})), [{c}, 1, 1])", self.shapes[a], a)

    def residual(self, a):
        c, h, w = self.shapes[a]
        if not self.affordable(h * w * c * c * 9) or self.batch * h * w < 8:
            return None
        return self.add(f"relu({a} + batch_norm(conv2d({a}, {c}, 3, padding = 1, bias = false)))", self.shapes[a], a)

    def permuted(self, a):
        shape, order = self.shapes[a], self.draw.sample(range(3), 3)
        return self.add(f"permute({a}, {order})", tuple(shape[k] for k in order), a)

    def image_as_vector(self, a):
        c, h, w = self.shapes[a]
        forms = [("global_avg_pool({a})", c), ("global_max_pool({a})", c), ("max({a}, axis = [1, 2])", c), ("sum({a}, axis = [1, 2]) / 8", c),
                 ("mean({a}, axis = [1, 2])", c), (f"reshape(mean({{a}}, axis = 0), [{h * w}])", h * w)]
        if c * h * w <= 4096:
            forms += [("flatten({a})", c * h * w)] * 2
        if min(h, w) > 2 and c <= 256:
            forms += [("flatten(adaptive_avg_pool({a}, 2))", 4 * c)]
        text, size = self.draw.choice(forms)
        return self.add(text.format(a=a), (size,), a)

    def image_as_sequence(self, a):
        c, h, w = self.shapes[a]
        return self.add(f"transpose(reshape({a}, [{c}, {h * w}]))", (h * w, c), a) if h * w <= 256 else None

    # ---- sequences ----

    def linear(self, a):
        shape, out = self.shapes[a], self.draw.choice(WIDTHS)
        if not self.affordable(math.prod(shape) * out):
            return None
        form = self.draw.choice(["linear({a}, {o})", "relu(linear({a}, {o}))", "linear({a}, {o}, bias = false)", "tanh(linear({a}, {o}))"])
        return self.add(form.format(a=a, o=out), (*shape[:-1], out), a)

    def feed_forward(self, a):
        shape = self.shapes[a]
        wide = self.draw.choice((2, 3, 4)) * shape[-1]
        if not self.affordable(math.prod(shape) * wide):
            return None
        inner = self.draw.choice(["gelu(linear(layer_norm({a}), {w}))", "silu(linear(rms_norm({a}), {w})) * linear({a}, {w})", "relu(linear({a}, {w}))"])
        return self.add(f"{a} + linear({inner.format(a=a, w=wide)}, {shape[-1]})", shape, a)

    def attention(self, a):
        t, d = self.shapes[a]
        if t > 128 or t < 2:
            return None
        size, heads = self.draw.choice((2, 4, 8, 16, 32, 64)), self.draw.choice((1, 2, 3, 4, 8))
        kv = self.divisor(heads)
        options = self.draw.choice(["", ", causal = true", ", causal = true", f", causal = true, window = {self.draw.randint(1, t)}"])
        q, k, v = (f"linear({a}, {size * count}, bias = {self.draw.choice(['true', 'false'])})" for count in (heads, kv, kv))
        if self.draw.random() < 0.4:
            q, k = f"rotary({q}, {heads})", f"rotary({k}, {kv})"
        if not self.affordable(t * d * size * heads + t * t * size * heads):
            return None
        return self.add(f"{a} + linear(attention({q}, {k}, {v}, {heads}, kv_heads = {kv}{options}), {d})", (t, d), a)

    def plain_attention(self, a):
        t, d = self.shapes[a]
        if t > 128 or not self.affordable(2 * t * t * d):
            return None
        b = self.beside(a)
        return self.add(f"matmul(softmax(matmul({a}, {b}, transpose_b = true) / {d}), {b})", (t, d), a, b)

    def recurrent(self, a):
        t, d = self.shapes[a]
        units = self.draw.choice((3, 4, 8, 12, 16, 32, 40, 64, 100, 128))
        if t > 64 or not self.affordable(t * (d + units) * units * 4):
            return None
        kind, both = self.draw.choice(["gru", "lstm", "rnn"]), self.draw.choice([False, False, True])
        options = ", bidirectional = true" if both else self.draw.choice(["", "", ", reverse = true", ", layers = 2"])
        return self.add(f"{kind}({a}, {units}{options})", (t, units * (1 + both)), a)

    def convolution_of_sequence(self, a):
        t, d = self.shapes[a]
        kernel, out = self.draw.choice((1, 3, 5)), self.draw.choice(CHANNELS)
        groups = self.draw.choice((1, 1, d))
        out = d if groups > 1 else out
        if not self.affordable(t * d * out * kernel // groups):
            return None
        return self.add(f"transpose(conv1d(transpose({a}), {out}, {kernel}, padding = {kernel // 2}, groups = {groups}))", (t, out), a)

    def looked_up(self, a):
        t, d = self.shapes[a]
        i = len(self.lines)
        rows = self.draw.choice((t, t + 3, 3 * t))
        form = self.draw.choice([f"{{a}} + gather(weight([{rows}, {d}], normal(0, 0.5), name = \"table{i}\"), iota({t}))",
                                 f"gather({{a}}, iota({t}) * 0 + {t - 1}) + {{a}}"])
        return self.add(form.format(a=a), (t, d), a)

    def turned(self, a):
        t, d = self.shapes[a]
        return self.add(f"transpose({a})", (d, t), a)

    def sequence_as_vector(self, a):
        t, d = self.shapes[a]
        forms = [("{a}[-1]", d), ("mean({a}, axis = 0)", d), ("max({a}, axis = 0)", d), ("logsumexp({a}, axis = 0)", d), ("sum({a}, axis = 0) / 4", d),
                 ("max({a}, axis = 1)", t), ("mean({a}, axis = 1)", t), ("std({a}, axis = 0)", d)]
        if t * d <= 4096:
            forms += [("flatten({a})", t * d)] * 2
        text, size = self.draw.choice(forms)
        return self.add(text.format(a=a), (size,), a)

    def sequence_as_image(self, a):
        t, d = self.shapes[a]
        rows = self.divisor(t)
        if t // rows < 2:
            return None
        return self.add(f"permute(reshape({a}, [{rows}, {t // rows}, {d}]), [2, 0, 1])", (d, rows, t // rows), a)

    # ---- vectors ----

    def outer(self, a):
        b = self.any_of(rank=1)
        n, m = self.shapes[a][0], self.shapes[b][0]
        return self.add(f"reshape({a}, [{n}, 1]) * reshape({b}, [1, {m}])", (n, m), a, b) if n * m <= 4096 else None

    def against_batch(self, a):
        n = self.shapes[a][0]
        form = self.draw.choice([("{a} - mean(batch({a}), axis = 0)", n), ("{a} * sigmoid(mean(matmul({a}, batch({a}), transpose_b = true)) / {n})", n),
                                 ("{a} + matmul(softmax(matmul({a}, batch({a}), transpose_b = true) / {n}), batch({a}))", n),
                                 ("{a} / (1 + max(batch(abs({a})), axis = 0))", n)])
        return self.add(form[0].format(a=a, n=n), (form[1],), a) if self.batch > 1 else None

    def vector_as_image(self, a):
        n = self.shapes[a][0]
        c, side = self.draw.choice(CHANNELS[2:14]), self.draw.choice((3, 4, 5, 7, 8))
        if not self.affordable(n * c * side * side):
            return None
        return self.add(f"reshape(linear({a}, {c * side * side}), [{c}, {side}, {side}])", (c, side, side), a)

    def vector_as_sequence(self, a):
        n = self.shapes[a][0]
        t = self.draw.choice((2, 3, 4, 8, 12))
        return self.add(f"reshape({a}, [{t}, {n // t}])", (t, n // t), a) if n % t == 0 and n > t else None


ANY = ["map"] * 3 + ["centred", "along", "scaled", "norm", "norm", "sorted", "part", "padded", "together"]
LAYERS = {
    3: ANY + ["convolution"] * 8 + ["transposed_convolution"] + ["pool"] * 3 + ["resized", "excited", "residual", "residual", "permuted"],
    2: ANY + ["linear"] * 3 + ["feed_forward"] * 2 + ["attention"] * 3 + ["plain_attention", "recurrent", "recurrent", "convolution_of_sequence",
                                                                         "looked_up", "turned"],
    1: ANY + ["linear"] * 5 + ["feed_forward"] * 2 + ["outer", "against_batch"],
}
TURNS = {3: ["image_as_vector", "image_as_vector", "image_as_sequence"], 2: ["sequence_as_vector", "sequence_as_vector", "sequence_as_image"],
         1: ["vector_as_image", "vector_as_sequence"]}

TEXT = """param lr = 0 in 0..1

data {{
  train = npy({files})
{fields}
}}

model {{
{values}
}}

train {{
  loss      = {loss}
{predict}  optimizer = sgd(lr, momentum = 0.5)
  batch     = {batch}
}}
"""


def begun(draw, *sizes):
    """A network with its fields, and the first value of them."""
    net = Network(draw, *sizes)
    kind = draw.choice(["image", "image", "image", "sequence", "tokens", "vector"])
    if kind == "image":
        while True:
            shape = draw.choice(CHANNELS[:14]), *(2 * [draw.choice(SIDES)] if draw.random() < 0.6 else draw.sample(SIDES, 2))
            if net.fits((3 * shape[0], *shape[1:])):
                break
        if draw.random() < 0.5:
            fields = [f"x : u8{list(shape)}"]
            net.add("(x / 255 - 0.47) / 0.25", shape)
        else:
            fields = [f"x : f32{list(shape)}"]
            net.add("x * 1.5", shape)
    elif kind == "tokens":
        length, width, count = draw.choice(LENGTHS), draw.choice(WIDTHS), draw.choice(CLASSES)
        while not net.fits((4 * length, width)):
            length, width = draw.choice(LENGTHS), draw.choice(WIDTHS)
        fields = [f"x : class[{count}][{length}]"]
        net.add(f"embedding(x, {count}, {width}, init = normal(0, 1))", (length, width))
    else:
        shape = (draw.choice(LENGTHS), draw.choice(WIDTHS)) if kind == "sequence" else (draw.choice(WIDTHS),)
        while not net.fits((4 * shape[0], *shape[1:])):
            shape = draw.choice(LENGTHS), draw.choice(WIDTHS)
        fields = [f"x : f32{list(shape)}"]
        net.add("x * 1.5", shape)
    return net, fields


def grow(net, layers):
    """So many layers, each on one of the last values; from rank to rank now and then."""
    draw = net.draw
    while len(net.lines) < layers:
        a = draw.choice(list(net.shapes)[-3:])
        rank = len(net.shapes[a])
        kinds = TURNS[rank] if draw.random() < 0.12 else LAYERS[rank]
        before = len(net.lines)
        made = getattr(net, draw.choice(kinds))(a)
        if made is None:
            del net.lines[before:]
        elif len(net.shapes[made]) > 1 and draw.random() < 0.3:
            net.norm(made)


def joined(net):
    """All that nobody read, as one vector."""
    while net.unread and any(len(shape) > 1 for shape in net.unread.values()):
        name = next(each for each, shape in net.unread.items() if len(shape) > 1)
        rank = len(net.unread[name])
        made = net.image_as_vector(name) if rank == 3 else net.sequence_as_vector(name)
        assert made, name
    return ", ".join(net.unread)


def ended(net, fields):
    """The last layer and the loss, of all examples' vectors or of each place."""
    draw, last = net.draw, list(net.shapes)[-1]
    classes = draw.choice(CLASSES)
    alone = len(net.unread) == 1 and last in net.unread
    shape = net.shapes[last]
    if alone and len(shape) == 2 and shape[0] <= 256:
        net.lines.append(f"  out = linear({last}, {classes})")
        return [*fields, f"y : class[{classes}][{shape[0]}]"], "cross_entropy(out, y)"
    if alone and len(shape) == 3:
        net.lines.append(f"  out = permute(conv2d({last}, {classes}, 1), [1, 2, 0])")
        if net.fits((classes, *shape[1:])):
            return [*fields, f"y : class[{classes}][{shape[1]}, {shape[2]}]"], "cross_entropy(out, y)"
        net.lines.pop()
    net.lines.append(f"  out = linear(concat([{joined(net)}]), {classes})")
    if draw.random() < 0.6:
        smoothing = draw.choice(["", "", ", label_smoothing = 0.1"])
        return [*fields, f"y : class[{classes}]"], f"cross_entropy(out, y{smoothing})"
    loss = draw.choice(["mse(out, y)", "huber(out, y)", "mae(out, y)", "bce(out, sigmoid(y), from_logits = true)", "mean(square(out - y)) / (1 + mean(square(y)))"])
    return [*fields, f"y : f32[{classes}]"], loss


def random_network(seed, elements=1 << 20, products=1 << 28):
    """The text of a model that this seed decides: with at most so many elements of a value, and multiplications of a layer, of all examples."""
    draw = random.Random(seed)
    net, fields = begun(draw, elements, products)
    grow(net, draw.randint(3, 12))
    fields, loss = ended(net, fields)
    names = ", ".join(f'"{each.split()[0]}"' for each in fields)
    return TEXT.format(files=names, fields="\n".join(f"  {each}" for each in fields), values="\n".join(net.lines), loss=loss,
                       predict="  predict   = out\n", batch=net.batch)
