"""The networks of models/ as files of ONNX: what ONNX Runtime computes is what the evaluation's graph says, from the same weights; and the
files that programs write."""

import json
import re
import subprocess
from dataclasses import replace

import fake_data
import numpy as np
import pytest
from conftest import MTC, ROOT
from evaluator import evaluate, parse

pytestmark = pytest.mark.quick
onnx_files = pytest.importorskip("onnx_files", reason="onnx and onnxruntime are not installed")
onnx = onnx_files.onnx

ROWS = 3
SMALLER = {
    "gpt2": dict(layers=2, heads=2, width=16, context=8, vocab=31), "llama_tiny": dict(layers=2, heads=4, width=32, hidden=24, context=8),
    "char_gpt": dict(context=8), "vit_tiny": dict(layers=1, heads=2, width=16),
}
NARROWER = {"64, 7": "8, 7", "64, 3": "8, 3", "32 * 2^stage": "4 * 2^stage", "224, 224": "64, 64"}  # of residual networks
MODELS = [path for path in sorted((ROOT / "models").glob("*.mt")) if re.search(r"^train\s*{", path.read_text(), re.M)]
DRAWING = [path for path in MODELS if path.stem in ("gan", "dcgan")]
PREDICTING = [path for path in MODELS if path not in DRAWING]
by_name = {"ids": lambda path: path.stem}


def text_of(path):
    text = path.read_text()
    for wide, narrow in NARROWER.items() if "resnet" in path.stem else ():
        text = text.replace(wide, narrow)
    return text


def flags_of(path):
    """As small as the model's params let it be."""
    sizes = SMALLER.get(path.stem, {})
    examples = re.search(r"^param examples\b", path.read_text(), re.M)
    if examples:
        sizes = sizes | {"examples": ROWS}
    return [word for name, value in sizes.items() for word in ("--set", f"{name}={value}")] + ["--batch", str(ROWS)] * (not examples)


def needed(nodes):
    """What the output is made of, counted anew."""
    kept = {node.id for node in nodes if node.op == "output"}
    for node in reversed(nodes):
        if node.id in kept:
            kept |= set(node.inputs)
    place = {node: i for i, node in enumerate(sorted(kept))}
    return [replace(node, id=place[node.id], inputs=[place[i] for i in node.inputs]) for node in nodes if node.id in kept]


def in_files(name, value):
    """Filters are [O, KH, KW, C] in graphs; weights of states of recurrent layers, and GPT-2's, lie transposed there."""
    transposed = re.search(r"weight_hh|c_(attn|proj|fc)\.weight", name)
    return value.transpose(0, 3, 1, 2) if value.ndim == 4 else value.T if transposed else value


def leaf_value(node, random):
    if node.op == "field":
        whole = node.dtype != "f32"
        return random.integers(0, 2 if node.dtype == "i32" else 256, node.shape) if whole else random.uniform(0, 1, node.shape)
    spread = random.normal(0, 0.1, node.shape)
    return (1 + abs(spread) if re.search("running_var|norm.*weight|deviation", node.name) else spread).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("path", PREDICTING, **by_name)
def test_values(path, tmp_path):
    model = tmp_path / path.name
    model.write_text(text_of(path))
    for other in re.findall(r'^include "(.*)"', path.read_text(), re.M):
        (tmp_path / other).write_text((ROOT / "models" / other).read_text())
    random, flags = np.random.default_rng(1), flags_of(path)
    text = subprocess.run([MTC, model, "--emit=graph", *flags], capture_output=True, text=True, check=True).stdout
    nodes = needed(parse(text)["eval"])
    leaves = {node.name: leaf_value(node, random) for node in nodes if node.op in ("field", "weight")}
    weights = {node.name: in_files(node.name, leaves[node.name]) for node in nodes if node.op == "weight"}
    fields = {node.name: leaves[node.name].astype({"u8": np.uint8, "i32": np.int32, "f32": np.float32}[node.dtype])
              for node in nodes if node.op == "field"}
    leaves |= {name: value.astype(np.float64) for name, value in fields.items() if value.dtype == np.float32}
    found = onnx_files.answers(onnx_files.with_weights(onnx_files.network(model, tmp_path / "network.onnx", *flags), weights), fields)
    np.testing.assert_allclose(found, evaluate(nodes, leaves).output, rtol=1e-5, atol=1e-5)


def test_what_is_exported_is_imported(tmp_path):
    """The layers of the model with their names, and a loss of what the softmax takes."""
    model = onnx_files.network(ROOT / "models" / "cnn.mt", tmp_path / "net.onnx")
    assert [node.op_type for node in model.graph.node][-3:] == ["Gemm", "Add", "Softmax"]
    shapes = {value.name: tuple(value.dims) for value in model.graph.initializer if not value.raw_data}
    onnx.save(onnx_files.with_weights(model, {name: np.zeros(shape) for name, shape in shapes.items()}), tmp_path / "net.onnx")
    subprocess.run([MTC, "import", "net.onnx"], cwd=tmp_path, check=True)
    text = (tmp_path / "net.mt").read_text()
    assert text.startswith("# Imported from net.onnx, made by mtc.\n")
    assert text[text.index("model {"):text.index("train {")] == """\
model {
  conv1      = relu(conv2d(reshape(image, [1, 28, 28]) / 255, 8, 3, padding = 1))
  conv2      = relu(conv2d(max_pool(conv1, 2), 16, 3, padding = 1))
  fc1        = relu(linear(flatten(max_pool(conv2, 2)), 64))
  fc2        = linear(fc1, 10)
  prediction = softmax(fc2)
}

"""
    assert "cross_entropy(fc2, label)" in text and "predict   = prediction" in text


# ---- the files of programs ----

WORDS = """
param gain = 2.0
data {
  train = tsv("rows.tsv")
  size   : f32[1] = column("size")
  colour : class[4]
  kind   : class[2]
}
model { scores = linear(concat([normalize(size), embedding(colour, 4, 3)]) * gain, 2) }
train {
  loss = cross_entropy(scores, kind)
  optimizer = adam(0.1)
  ema = 0.9
  batch = 4
  epochs = 2
}
"""
ROWS_OF_WORDS = "size\tcolour\tkind\n" + "".join(f"{i}\t{'red green blue black'.split()[i % 4]}\t{'cat dog'.split()[i % 3 == 0]}\n" for i in range(12))


COLOURS = np.array([3, 2, 1, 0] * 3, np.int32)  # words are numbered in the order of their bytes


@pytest.fixture(scope="module")
def words(compile_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    (folder / "rows.tsv").write_text(ROWS_OF_WORDS)
    program = compile_model(WORDS)
    program("--data", folder, "--save", folder / "w.safetensors", "--quiet")
    return program, folder


def answers_of(program, folder, *flags):
    program("predict", "--data", folder, "--split", "train", "--load", folder / "w.safetensors", "--output", folder / "p.npy", *flags)
    return np.load(folder / "p.npy")


@pytest.mark.parametrize("flags", [(), ("--gain", "0.5")])
def test_program(words, flags):
    """Averages of weights, statistics of fields, params and words; a batch that is larger than the program's."""
    program, folder = words
    program("export", "--load", folder / "w.safetensors", "-o", folder / "m.onnx", *flags)
    model = onnx.load(folder / "m.onnx")
    found = onnx_files.answers(model, {"size": np.arange(12, dtype=np.float32)[:, None], "colour": COLOURS})
    np.testing.assert_allclose(found, answers_of(program, folder, *flags), rtol=1e-5, atol=1e-6)
    said = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(said["classes"]) == ["cat", "dog"] and said["mtc.param.gain"] == (flags[1] if flags else "2")
    assert said["mtc.step"] == "6"  # two epochs of three batches
    assert json.loads(said["vocabulary.colour"]) == ["black", "blue", "green", "red"]


def refused(program, folder, *flags):
    done = program("export", *flags, check=False, cwd=folder)
    assert done.returncode and not done.stdout
    return done.returncode, done.stderr.split("error: ")[1].splitlines()[0]


def test_what_is_refused(words):
    program, folder = words
    load = ("--load", "w.safetensors")
    assert refused(program, folder) == (64, "export needs trained weights: --load FILE")
    assert refused(program, folder, *load) == (64, "--output FILE says where the network is written")
    assert refused(program, folder, *load, "-o", "m.pt") == (64, "--output m.pt: the name promises a pickle of PyTorch; what can be written is .onnx")
    assert refused(program, folder, *load, "-o", "w.safetensors")[0] == 73
    (folder / "notes").write_text("mine")
    assert refused(program, folder, *load, "-o", "notes") == (73, "--output notes would replace a file that is no network (ONNX)")
    assert (folder / "notes").read_text() == "mine"
    assert refused(program, folder, *load, "-o", "none/m.onnx")[0] == 73


def test_no_number(words):
    """A weight that is none is found before anything is written."""
    program, folder = words
    header, data = fake_data.unpack(fake_data.weights_alone((folder / "w.safetensors").read_bytes()))
    name = next(name for name in header if name.endswith(".bias"))
    begin = header[name]["data_offsets"][0]
    data = data[:begin] + np.float32(np.nan).tobytes() + data[begin + 4 :]
    (folder / "nan.safetensors").write_bytes(fake_data.pack(header, data))
    code, said = refused(program, folder, "--load", "nan.safetensors", "-o", "nan.onnx")
    assert (code, said) == (65, f"nan.safetensors: '{name}' is not finite: element [0] is NaN")
    assert not (folder / "nan.onnx").exists()


def test_network_without_numbers(tmp_path):
    """--emit=onnx replaces what it wrote before, and no other file; a name that promises something else is none for it."""
    def emit(name):
        done = subprocess.run([MTC, ROOT / "models" / "xor.mt", "--emit=onnx", "-o", tmp_path / name], capture_output=True, text=True)
        return done.returncode, done.stderr
    (tmp_path / "notes").write_text("mine")
    assert emit("x.onnx") == (0, "") and emit("x.onnx") == (0, "")
    assert "it would replace a file that is no network (ONNX)" in emit("notes")[1] and (tmp_path / "notes").read_text() == "mine"
    code, said = emit("x.txt")
    assert code == 64 and "the name promises text; what can be written is .onnx" in said


@pytest.mark.parametrize("path", DRAWING, **by_name)
def test_what_draws(path):
    done = subprocess.run([MTC, path, "--emit=onnx"], capture_output=True, text=True)
    assert done.returncode == 65 and not done.stdout
    assert "error: this is no network of ONNX: the prediction draws random numbers" in done.stderr


def test_a_network_of_integers():
    done = subprocess.run([MTC, ROOT / "models" / "mnist.mt", "--precision", "int8", "--emit=onnx"], capture_output=True, text=True)
    assert done.returncode == 65 and not done.stdout
    assert done.stderr == "mtc: error: this is no network of ONNX: its weights are integers; the program of the same model in floats exports\n"
