"""Kernels in which a thread computes neighbouring channels, on a GPU against the CPU target: maps, windows and sums over
slow axes, of float and bf16 numbers, with channels that fill vectors, fill half of them, and do not; and those in which it
computes neighbouring elements of a row. Mostly run by `make check-gpu`."""

import re
import subprocess

import numpy as np
import pytest
from fake_data import idx_bytes, tensors, unpack
from library import Library

BATCH = 320
#           channels; rows and columns
SHAPES = {"whole": (64, 12), "half": (66, 12), "odd": (63, 13), "few": (8, 16)}
MODEL = """data {{
  train = idx("x", "y")
  x : f32[{size}, {size}, {channels}]
  y : f32[{channels}]
}}

model {{
  seen  = transpose(x, 0, 2)
  scale = weight([{channels}, 1, 1], init = normal(0, 1))
  shift = weight([{channels}, 1, 1], init = normal(0, 1))
  h     = conv2d(seen * scale, {channels}, 1)
  g     = h * sigmoid(h + shift) + seen
  pool  = max_pool(g, 3, stride = 2, padding = 1)
  z     = global_avg_pool(relu(pool)) + max(reshape(g, [{channels}, {area}]), axis = 1)
}}

train {{
  loss      = mse(z, y)
  optimizer = sgd(0.05, momentum = 0.9)
  precision = {precision}
  batch     = {batch}
}}
"""


@pytest.fixture(scope="module", params=SHAPES)
def data(request, tmp_path_factory):
    channels, size = SHAPES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    random = np.random.default_rng(1)
    x = random.standard_normal((BATCH + 100, size, size, channels)).astype(np.float32)
    (folder / "x").write_bytes(idx_bytes(x))
    (folder / "y").write_bytes(idx_bytes(x.mean(axis=(1, 2))))
    return folder, SHAPES[request.param]


def model(data, precision):
    folder, (channels, size) = data
    path = folder / f"{precision}.mt"
    path.write_text(MODEL.format(channels=channels, size=size, area=size * size, precision=precision, batch=BATCH))
    return path


def checkpoint(program, folder, name):
    path = folder / f"{name}.safetensors"
    program("--data", folder, "--epochs", 2, "--save", path, "--quiet")
    return path.read_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("precision, error", [("fp32", 1e-4), ("bf16", 2e-2)])
def test_weights_are_those_of_the_cpu(data, precision, error, compile_model):
    path = model(data, precision)
    cpu = tensors(checkpoint(compile_model(path), path.parent, "cpu"))
    gpu = tensors(checkpoint(compile_model(path, target="cuda"), path.parent, "gpu"))
    for name in cpu:
        assert np.abs(cpu[name] - gpu[name]).max() < error * np.abs(cpu[name]).max(), name


@pytest.mark.gpu
def test_same_bits_in_every_run(data, compile_model):
    program = compile_model(model(data, "bf16"), target="cuda")
    assert len({unpack(checkpoint(program, data[0], "run"))[1] for _ in range(3)}) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_sanitizer_finds_nothing(data, tool, compile_model, tmp_path):
    program = compile_model(model(data, "bf16"), target="cuda")
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "3", program.path, "--data", data[0]]
    done = subprocess.run([*map(str, command), "--epochs", "1", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


# ---- elements of a row ----

ROWS = """data {{
  train = npy("x", "y")
  x : f32[64, {width}]
  y : f32[64, {width}]
}}

model {{
  h = linear(x, {width})
  n = layer_norm(h)
  z = linear(n, {width})
}}

train {{
  loss      = mse(z, y)
  optimizer = sgd(0.05)
  batch     = 64
}}
"""


def loops(mtc, path, name):
    """The loops over a row of a kernel, as text."""
    done = mtc("--emit=cu", path, "--schedule", "graph")
    assert done.returncode == 0, done.stderr
    body = re.search(rf"^struct {name} \{{.*?^\}};", done.stdout, re.M | re.S).group()
    return re.findall(r"^        for \(int j = .*?^        }", body, re.M | re.S)


def test_threads_take_packs_of_a_row(mtc, tmp_path):
    """Four elements at once, where 4096 rows of 512 leave enough threads; not where the last pack of a row would be cut."""
    for width, packed in ((512, True), (510, False)):
        path = tmp_path / f"{width}.mt"
        path.write_text(ROWS.format(width=width))
        found = loops(mtc, path, "n")
        assert found and all(("load_pack<4>" in loop and "j = 4 * team.first" in loop) == packed for loop in found)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [512, 510])
def test_rows_on_a_gpu(width, compile_model):
    random = np.random.default_rng(2)
    x = random.standard_normal((128, 64, width)).astype(np.float32)
    losses = []
    for target in ("cpu", "cuda"):
        program = Library(compile_model(ROWS.format(width=width), "--shared", target=target).path, np.float32)
        program.set_data([x, np.cos(x)])
        losses.append(program.train(4, 1)[:, 0])
        program.close()
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


# ---- long columns ----

COLUMNS = """data {
  train = npy("x", "y")
  x : f32[256, 64]
  y : f32[256, 512]
}

model {
  qkv = linear(x, 1536)
  z   = attention(slice(qkv, 1, 0, 512), slice(qkv, 1, 512, 1024), slice(qkv, 1, 1024, 1536), heads = 8)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(20)
  precision = bf16
  batch     = 64
}
"""


def test_long_columns_of_bf16_are_read_by_16_bytes(mtc, tmp_path):
    """The gradient of a bias: a sum over 16,384 rows of 1,536 numbers, in a launch that knows how many blocks it is."""
    path = tmp_path / "m.mt"
    path.write_text(COLUMNS)
    source = mtc("--emit=cu", path, "--schedule", "graph").stdout
    assert re.search(r"Column<8, \d+> team\(shared\);", source) and re.search(r"\bReading<\d, Phase<", source)
    floats = mtc("--emit=cu", path, "--schedule", "graph", "--precision", "fp32").stdout
    assert "Column<4," in floats and "Column<8," not in floats and not re.search(r"Reading<[2-9]", floats)


def test_few_columns_have_all_registers(mtc, tmp_path):
    """A multiprocessor has no more than one block of them; of the products beside them nothing is said."""
    path = tmp_path / "m.mt"
    path.write_text(COLUMNS)
    source = mtc("--emit=cu", path, "--schedule", "graph", "--precision", "fp32").stdout
    alone = re.findall(r"Reading<1, \w+<(\w+)>", source)
    assert alone
    for name in alone:
        assert re.search(rf"struct {name} {{.*?Column<\d, \d+> team\(shared\);", source, re.DOTALL), name


def test_long_columns_compile(cuda_compiles):
    cuda_compiles(COLUMNS, "sm_80,sm_90a", "--schedule", "graph")


@pytest.mark.gpu
def test_long_columns(compile_model):
    random = np.random.default_rng(3)
    x = random.standard_normal((128, 256, 64)).astype(np.float32)
    y = np.tanh(x @ random.standard_normal((64, 512)).astype(np.float32)) + 1
    moved = []
    for target in ("cpu", "cuda"):
        flags = ["--schedule", "graph"] if target == "cuda" else []
        program = Library(compile_model(COLUMNS, "--shared", *flags, target=target).path, np.float32)
        program.set_data([x, y])
        start = program.get("qkv.bias", (1536,))
        program.train(4, 1)
        moved.append(program.get("qkv.bias", (1536,)) - start)
        program.close()
    np.testing.assert_allclose(moved[1], moved[0], atol=2e-2 * np.abs(moved[0]).max())


# ---- roundings, comparisons and folds of lanes ----

ACTIVATION = """data {{
  train = npy("x", "y")
  x : f32[64, 256]
  y : f32[64, 256]
}}

model {{
  h = {function}(linear(x, 256))
  z = linear(h, 256)
}}

train {{
  loss      = mse(z, y)
  optimizer = sgd(0.05)
  precision = bf16
  batch     = 64
}}
"""


def emitted(mtc, tmp_path, text, stage="cu"):
    path = tmp_path / "m.mt"
    path.write_text(text)
    done = mtc(f"--emit={stage}", path, *(["--schedule", "graph"] if stage == "cu" else []))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_packs_are_rounded_as_they_are_stored(mtc, tmp_path):
    """Pairs at a time: the lanes compute floats. What is read again as a float is one instruction, without the 16 bits."""
    text = emitted(mtc, tmp_path, ACTIVATION.format(function="gelu"))
    lanes = re.findall(r"for \(int v = 0; v < 8; v\+\+\).*?\n            [^ ]", text, re.S)
    assert len(lanes) > 3 and not any("to_bf16(" in loop for loop in lanes)
    assert re.search(r"store_pack\(t\.\w+ \+ i \* \w+ \+ j, to_bf16\(\w+\)\);", text)
    again = re.search(r"float (\w+) = round_bf16\(sum\[v\] \+ column", text)[1]
    assert re.search(rf"\[v\] = {again};", text) and "to_float(to_bf16(" not in text


def test_a_pack_that_is_there_is_not_copied(mtc, tmp_path):
    """Weights as bf16: what was loaded is stored."""
    text = emitted(mtc, tmp_path, ACTIVATION.format(function="relu").replace("256", "2048"))
    assert re.search(r"Pack<float, 4> (\w+) = load_pack<4>\(t\.\1 \+ i\);\n        store_pack\(t\.\w+ \+ i, to_bf16\(\1\)\);", text)


def test_what_is_computed_of_a_pack_is_no_pack(mtc, tmp_path):
    """A pack has no operators: the sign of what was loaded is changed in each lane."""
    text = emitted(mtc, tmp_path, ACTIVATION.format(function="").replace("linear(x", "linear(-x"))
    assert re.search(r"(\w+)\[v\] = -x\[v\];\n        store_pack\(t\.\w+ \+ i, to_bf16\(\1\)\);", text)


CHOICES = """data {{
  train = npy("x", "label")
  x     : f32[256, 32]
  label : class[2048][256]
}}

model {{
  scores = linear(x, 2048)
}}

train {{
  loss      = {loss}
  optimizer = sgd(0.05)
  batch     = 16
}}
"""


def test_lanes_compare_and_fold_what_they_choose(mtc, tmp_path):
    """One subtraction for a pack's comparisons, and a fold under a condition, where it would be of 0 otherwise."""
    text = emitted(mtc, tmp_path, CHOICES.format(loss="cross_entropy(scores, label)"))
    folds = re.findall(r"if \(label - j == v\)\n +target_score \+= scores_sub;", text)
    assert len(folds) == 2 and "(float)(label" not in text and "== j + v" not in text


def test_what_is_chosen_for_others_too_is_folded_as_it_is(mtc, tmp_path):
    text = CHOICES.format(loss="cross_entropy(scores, label)").replace("32]", "2048]")
    text = text.replace("linear(x", "linear(layer_norm(where(x > 0.5, x, 0))")
    assert " += x[v] > 0.5f ? x[v] : 0.0f;" in emitted(mtc, tmp_path, text)


def test_conditions_choose_instead_of_multiplying(mtc, tmp_path):
    """In the simplified graph no number that was a condition is a factor; before, in the text's own, it is."""
    model = CHOICES.format(loss="cross_entropy((scores > 0.25) * exp(scores) + scores * (scores < 0.5) * 3, label)")
    factor = re.compile(r"(%\d+) = cast\((%\d+)\)")
    for stage, multiplies in (("graph", True), ("simple", False)):
        text = emitted(mtc, tmp_path, model, stage)
        casts = {name for name, _ in factor.findall(text)}
        products = re.findall(r"mul\((%\d+), (%\d+)\)", text)
        assert any(casts & set(pair) for pair in products) == multiplies, stage


ROTARY = """data {
  train = npy("x", "y")
  x : f32[64, 128]
  y : f32[64, 2 * WIDTH]
}

model {
  q = rotary(linear(x, 2 * WIDTH), 2)
  k = rotary(linear(x, WIDTH), 1)
  z = attention(q, k, linear(x, WIDTH), heads = 2, kv_heads = 1)
}

train {
  loss      = mse(z, y)
  optimizer = sgd(0.05)
  precision = bf16
  batch     = 64
}
"""


@pytest.mark.parametrize("width, packs", [(64, True), (62, False)])
def test_parts_of_rows_are_read_as_packs(mtc, tmp_path, width, packs):
    """Lanes whose number divides where a part ends are all in it, or none of them is."""
    text = emitted(mtc, tmp_path, ROTARY.replace("WIDTH", str(width)))
    assert bool(re.search(r"column >= \d+ \? load_pack<4>\(", text)) == packs
    assert ("column + v <" in text) != packs
