"""Training in fp8: large forward products of a weight in numbers of 8 bits, all others in bf16. compiler/pass/float8.c"""

import re

import numpy as np
import pytest
from evaluator import evaluate, parse, to_e4m3
from library import Library
from random_port import permutation, shuffle_key
from test_images import leaves_of, shown

EXAMPLES, INPUTS, WIDTH, WIDE, CLASSES = 2048, 32, 128, 256, 16
MODEL = f"""data {{{{
  train = idx("x", "y")
  x : f32[{INPUTS}]
  y : class[{CLASSES}]
}}}}
model {{{{
  a = relu(linear(x, {WIDTH}))
  b = {{layer}}
  o = linear(b, {CLASSES})
}}}}
train {{{{
  loss      = cross_entropy(o, y)
  optimizer = {{optimizer}}
  precision = {{precision}}
  batch     = {{batch}}
}}}}
"""
LINEAR = f'tanh(linear(a, {WIDE}, name = "b"))'
COLUMNS = f'tanh(matmul(a, weight([{WIDTH}, {WIDE}], normal(0, 0.1), name = "b.weight")))'


def text(precision="fp8", layer=LINEAR, optimizer="adam(3e-3)", batch=EXAMPLES):
    return MODEL.format(precision=precision, layer=layer, optimizer=optimizer, batch=batch)


def data():
    """Classes that are a function of x."""
    random = np.random.default_rng(7)
    x = random.normal(size=(EXAMPLES, INPUTS)).astype("f4")
    return [x, np.argmax(x @ random.normal(size=(INPUTS, CLASSES)), axis=1).astype("u1")]


@pytest.fixture
def emit(mtc, tmp_path):
    """emit(stage, text, *flags): what mtc prints of the model, and says."""
    def run(stage, model, *flags):
        (tmp_path / "m.mt").write_text(model)
        done = mtc(f"--emit={stage}", *flags, tmp_path / "m.mt")
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run


@pytest.fixture
def losses(compile_model):
    def run(model, steps, target="cpu"):
        library = Library(compile_model(model, "--shared", target=target).path, np.float32)
        library.set_data(data())
        out = library.train(steps, 1)[:, 0]
        library.close()
        return out

    return run


def test_it_learns_as_in_bf16(losses):
    rounded, exact = losses(text(), 60), losses(text("bf16"), 60)
    assert rounded[-1] < 0.1 * rounded[0] and not np.array_equal(rounded, exact)
    np.testing.assert_allclose(rounded, exact, atol=5e-3, rtol=0)


def products_in_8_bits(dump):
    """Names of their weights, of each graph."""
    return {graph: re.findall(r"to_e4m3\(.*\) : e4m3\[\d+, \d+\] (\S+\.weight)\.e4m3", part)
            for graph, part in re.findall(r"^graph (\w+)\n(.*?)(?=^graph|\Z)", dump, re.M | re.S)}


@pytest.mark.parametrize("layer", [LINEAR, COLUMNS], ids=["rows", "columns"])
def test_which_products(layer, emit):
    """That of `a`, forward: the first multiplies data, the last has few outputs. No gradient is in 8 bits."""
    dump, said = emit("simple", text(layer=layer))
    assert products_in_8_bits(dump) == {"train": ["b.weight"], "eval": ["b.weight"]} and said == ""
    assert len(re.findall(r"= matmul\(", dump.partition("graph eval")[0])) == 3 + 5 and dump.count("e4m3[2048,") == 2


@pytest.mark.parametrize("model", [text(batch=1024), text(layer=LINEAR.replace("256", "240"))], ids=["rows", "outputs"])
def test_small_products_stay_in_bf16(model, emit):
    dump, said = emit("simple", model)
    assert "e4m3" not in dump and "matmul" in dump and "to_bf16" in dump
    assert said == ("mtc: warning: fp8: no product of a weight gains by it, with 2048 rows, 128 inputs and 256 outputs or more and of what "
                    "is computed: all are in bf16\n")


TIED = f"""t = weight([{WIDE}, {WIDE}], normal(0, 0.05), name = "t.weight")
  h = tanh(linear(a, {WIDE}, name = "b"))
  c = tanh(matmul(h, t))
  b = tanh(matmul(c, transpose(t)))"""


@pytest.mark.full
def test_a_weight_in_both_orientations(losses, emit):
    """Each has rows, and scales, of its own: an autoencoder of tied weights."""
    model = {precision: text(precision).replace(f"b = {LINEAR}", TIED) for precision in ("fp8", "bf16")}
    assert products_in_8_bits(emit("simple", model["fp8"])[0])["train"].count("t.weight") == 2
    rounded, exact = losses(model["fp8"], 40), losses(model["bf16"], 40)
    assert rounded[-1] < 0.3 * rounded[0] and not np.array_equal(rounded, exact)
    np.testing.assert_allclose(rounded, exact, atol=1e-2, rtol=0)


def test_what_is_padded_stays_in_bf16(losses, emit):
    """Its zeros have no 8 bits."""
    model = text(layer=f'tanh(linear(pad(a, 0, before = 8, after = 8), {WIDE}, name = "b"))')
    assert "e4m3" not in emit("simple", model)[0]
    assert np.isfinite(losses(model, 2)).all()


@pytest.mark.parametrize("given", ["x", "x * 10", "10 - relu(x)"])
def test_data_stay_in_bf16(given, emit):
    model = text().replace(f"f32[{INPUTS}]", f"f32[{WIDTH}]")
    assert products_in_8_bits(emit("simple", model.replace(f"linear(x, {WIDTH})", f"linear({given}, {WIDE})"))[0])["train"] == ["b.weight"]


def test_what_attention_stores_stays_in_bf16(emit, mtc):
    """GPT-2's projection behind attention would need a pass over what that stored; the table of its embedding is multiplied in 8 bits."""
    done = mtc("--emit=simple", "--precision", "fp8", "--set", "layers=1", "--batch", "2", "models/gpt2.mt")
    weights = products_in_8_bits(done.stdout)
    assert weights["train"] == weights["eval"] == [
        "h.0.attn.c_attn.weight", "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.weight", "wte.weight"]
    assert "to_e4m3" not in done.stdout.partition("graph decode")[2]


@pytest.mark.parametrize("layer", [LINEAR, COLUMNS], ids=["rows", "columns"])
def test_a_compiled_step(layer, emit, compile_model):
    """The program on the processor against the graph, roundings included."""
    model = text(layer=layer, optimizer="sgd(0.1)")
    graph = parse(emit("simple", model)[0])["train"]
    leaves = leaves_of(graph)
    x, y = data()
    library = Library(compile_model(model, "--shared").path, np.float32)
    library.set_data([x, y])
    for name, value in leaves.items():
        if name not in ("x", "y"):
            library.set(name, shown(value.astype(np.float32)))
    order = permutation(shuffle_key(1, 0), EXAMPLES)
    result = evaluate(graph, leaves | {"x": x[order], "y": y[order]}, rows=EXAMPLES)
    assert library.train(1, 1)[0, 0] == pytest.approx(result.reports["loss"], rel=1e-3)
    for name, value in result.assigned.items():
        expected = shown(value)
        np.testing.assert_allclose(library.get(name, expected.shape), expected, atol=1e-3 * np.abs(expected).max(), rtol=0, err_msg=name)
    library.close()


def test_rounding():
    """As the definition of tests/kernels/test_float8.py has it, of a few numbers."""
    x = np.array([1, 1.0625, 1.1875, -3.14, 2**-9, 2**-10, 3 * 2**-10, 0, 500, -1e9])
    assert to_e4m3(x).tolist() == [1, 1, 1.25, -3.25, 2**-9, 0, 2**-8, 0, 448, -448]


def test_a_weight_of_zeros(losses):
    """Its scale is no quotient by 0."""
    assert np.isfinite(losses(text(layer=LINEAR.replace("name", "init = zeros(), name")), 3)).all()


@pytest.mark.parametrize("arch, instead", [("sm_75", "fp32"), ("sm_80", "bf16"), ("sm_86", "bf16")])
def test_gpus_without_such_tensor_cores(arch, instead, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(text())
    done = mtc("--emit=schedule", "--arch", arch, tmp_path / "m.mt")
    assert done.returncode == 69 and re.search(rf"has no tensor cores for fp8; .* and --precision {instead} needs none\n", done.stderr)


@pytest.mark.parametrize("arch", ["sm_89", "sm_90a", "sm_120"])
def test_gpus_with_them(arch, emit):
    assert re.search(r"tile \d+x\d+x128, fp8, \dx\d warps", emit("schedule", text(), "--arch", arch)[0])


@pytest.mark.parametrize("arch", ["sm_89", "sm_90", "sm_90a"])
def test_it_compiles(arch, cuda_compiles):
    cuda_compiles(text(), arch)


@pytest.mark.gpu
def test_a_gpu_computes_the_same(losses):
    """Sums of a panel are of 14 bits there, and a number between two of e4m3 may fall to the other side."""
    np.testing.assert_allclose(losses(text(), 30, "cuda"), losses(text(), 30), rtol=5e-3)
