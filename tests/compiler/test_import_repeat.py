"""`mtc import` finds blocks that repeat: they become a function and a `repeat`. What is predicted must be what the text with every block
written out, `--flat`, predicts, to the byte; weights keep the names of the file where these count the blocks."""

import re

import numpy as np
import pytest

import onnx_file as onnx
from test_import import F4, block, import_file, some, weights_of  # noqa: F401 (a fixture)

pytestmark = pytest.mark.quick


class Net:
    """A network of vectors or images that grows, node by node, with weights under the names that are given."""

    def __init__(self, *shape):
        self.nodes, self.weights, self.shape, self.last = [], [], shape, "image"

    def node(self, op, *inputs, name=None, **attributes):
        output = name or f"/{op}_{len(self.nodes)}_output_0"
        self.nodes.append(onnx.node(op, list(inputs), [output], **attributes))
        return output

    def weight(self, name, *shape):
        self.weights.append(onnx.tensor(name, some(*shape, seed=len(self.weights)) * F4(0.5)))
        return name

    def linear(self, x, inputs, outputs, path):
        return self.node("Gemm", x, self.weight(f"{path}weight", outputs, inputs), self.weight(f"{path}bias", outputs), transB=1)

    def norm(self, x, size, path):
        return self.node("LayerNormalization", x, self.weight(f"{path}weight", size), self.weight(f"{path}bias", size), axis=-1)

    def conv(self, x, channels, path):
        return self.node("Conv", x, self.weight(f"{path}weight", channels, channels, 3, 3), pads=[1, 1, 1, 1])

    def done(self, last, outputs, *more):
        return onnx.model(self.nodes, [onnx.value("image", ["batch", *self.shape])], [onnx.value(last, ["batch", outputs]), *more], self.weights)


def feed_forward(blocks, path=lambda k: f"layers.{k}.", size=6, head=True):
    """Blocks as a transformer has them: a norm, two layers, the sum with what came in."""
    net = Net(5)
    x = net.linear("image", 5, size, "stem.")
    for k in range(blocks):
        y = net.norm(x, size, f"{path(k)}norm.")
        y = net.linear(net.node("Relu", net.linear(y, size, 2 * size, f"{path(k)}mlp.up.")), 2 * size, size, f"{path(k)}mlp.down.")
        x = net.node("Add", x, y)
    return net.done(net.linear(net.norm(x, size, "norm."), size, 3, "head.") if head else x, 3 if head else size)


def stages():
    """Two rows of residual blocks, as of a ResNet, with another block between them."""
    net, x = Net(4, 5, 5), "image"
    for stage, blocks in ((1, 3), (2, 3)):
        for k in range(blocks):
            y = net.node("Relu", net.conv(x, 4, f"layer{stage}.{k}.conv1."))
            x = net.node("Relu", net.node("Add", net.conv(y, 4, f"layer{stage}.{k}.conv2."), x))
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1]) if stage == 1 else x
    return net.done(net.linear(net.node("Flatten", net.node("GlobalAveragePool", x), axis=1), 4, 3, "fc."), 3)


def two_streams():
    """Each block has two values of the block before, and one that all have."""
    net = Net(6)
    a, b, all_have = net.linear("image", 6, 6, "a."), net.linear("image", 6, 6, "b."), net.node("Tanh", net.linear("image", 6, 6, "c."))
    for k in range(4):
        y = net.node("Mul", net.linear(a, 6, 6, f"steps.{k}.one."), all_have)
        z = net.node("Sigmoid", net.linear(b, 6, 6, f"steps.{k}.two."))
        a, b = net.node("Add", y, b), net.node("Sub", z, a)
    return net.done(net.node("Add", net.node("Mul", a, b), net.node("Sub", a, b)), 6)


def predicted(mtc, compile_model, folder, name, inputs):
    program = compile_model(folder / f"{name}.mt")
    np.save(folder / "input.npy", inputs)
    program("predict", "--load", folder / f"{name}.safetensors", "--input", folder / "input.npy", "--output", folder / "out.npy")
    return np.load(folder / "out.npy")


@pytest.fixture
def folded(import_file, mtc, compile_model, tmp_path):  # noqa: F811
    """folded(file, shape of an input): the text; its weights are those of the flat one, and its predictions the same bytes."""

    def run(content, *shape):
        texts = [import_file(content, *flags, name=name) for name, flags in (("flat", ["--flat"]), ("net", []))]
        inputs = some(7, *shape, seed=99)
        flat, found = (predicted(mtc, compile_model, tmp_path, name, inputs) for name in ("flat", "net"))
        assert flat.tobytes() == found.tobytes() and np.isfinite(flat).all() and flat.std() > 0
        assert "repeat" not in texts[0] and "fn " not in texts[0]
        return texts[1]

    return run


def same_weights(tmp_path):
    flat, found = (weights_of(tmp_path / f"{name}.safetensors") for name in ("flat", "net"))
    return flat.keys() == found.keys() and all(np.array_equal(flat[name], found[name]) for name in flat)


@pytest.mark.parametrize("blocks", [2, 5])
def test_blocks_whose_weights_are_counted(blocks, folded, tmp_path):
    """The sum that the last block ends in, which one other value alone needs, is a row like those before."""
    text = folded(feed_forward(blocks), 5)
    assert re.search(r"^fn .*?^}", text, re.M | re.S)[0] == """\
fn block(x) {
  norm     = layer_norm(x)
  mlp_up   = relu(linear(norm, 12, name = "mlp.up"))
  mlp_down = linear(mlp_up, 6, name = "mlp.down")
  Add_5    = x + mlp_down
  return Add_5
}"""
    end = 5 * blocks
    assert block(text, "model").splitlines()[1:] == [
        f"  Add_{end} = stem", f"  repeat i in 0..{blocks} {{", f'    Add_{end} = block(Add_{end}, name = "layers.{{i}}")', "  }",
        f"  norm = layer_norm(Add_{end})", "  head = linear(norm, 3)"]
    assert same_weights(tmp_path)


@pytest.mark.parametrize("path", [lambda k: f"{'abc'[k]}.", lambda k: f"l{7 * k}.", lambda k: f"layers.{2 - k}."], ids=["words", "sevens", "back"])
def test_blocks_whose_weights_are_not_counted(path, folded, tmp_path):
    """Structure alone says that they are equal; then they are numbered in their order."""
    text = folded(feed_forward(3, path), 5)
    assert 'name = "block.{i}")' in text and "repeat i in 0..3 {" in text
    found, flat = (weights_of(tmp_path / f"{name}.safetensors") for name in ("net", "flat"))
    ups = [name for name in sorted(found) if name.startswith("block.1.") and found[name].shape == (12, 6)]
    assert len(ups) == 1 and np.array_equal(found[ups[0]], flat[f"{path(1)}mlp.up.weight"])
    assert len(found) == len(flat)


def test_a_network_that_ends_in_its_last_block(folded):
    assert "repeat i in 0..3 {" in folded(feed_forward(3, head=False), 5)


def test_two_rows_of_blocks(folded, tmp_path):
    text = folded(stages(), 4, 5, 5)
    assert text.count("fn ") == 2 and 'name = "layer1.{i}"' in text and 'name = "layer2.{i}"' in text and text.count("in 0..3 {") == 2
    assert same_weights(tmp_path)


def test_blocks_that_hand_on_several_values(folded):
    """Rows stand where they are needed, so that a block may begin within one of the file's."""
    text = folded(two_streams(), 6)
    given = re.search(r"^fn block\((.*)\)", text, re.M)[1].split(", ")
    handed = re.search(r"return (.*)", text)[1].split(", ")
    assert given[-1] == "c" and len(handed) == len(given) - 1 > 1 and "repeat i in 0..3 {" in text


def different(what):
    """Three blocks of which the second is not as the others."""
    net = Net(6)
    x = inner = net.linear("image", 6, 6, "stem.")
    for k in range(3):
        odd = k == 1
        y = net.node("Tanh" if odd and what == "operator" else "Relu", net.linear(x, 6, 8 + 2 * (odd and what == "size"), f"l.{k}.up."))
        y = net.linear(y, 8 + 2 * (odd and what == "size"), 6, f"l.{k}.down.")
        inner = y if odd else inner
        x = net.node("Add", y, inner if k == 2 and what == "wiring" else x)
    if what == "use":
        x = net.node("Add", x, inner)
    return net.done(net.linear(x, 6, 3, "head."), 3)


@pytest.mark.parametrize("what", ["operator", "size", "wiring", "use"])
def test_blocks_that_are_not_equal_stay(what, folded):
    """Also where something else reads what is within one."""
    text = folded(different(what), 6)
    assert "repeat" not in text and text.count("linear(") == 8


def test_what_is_not_shorter_stays(import_file):  # noqa: F811
    assert "repeat" not in import_file(feed_forward(1))
