"""Generated sources are read by people: formatted, free of warnings, the same wherever and whenever they are made."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT, flags_of

GOLDEN = ROOT / "tests" / "golden"
SOURCES = sorted(path for path in GOLDEN.iterdir() if path.suffix in (".c", ".cu"))
INCLUDES = ["-I", ROOT / "runtime", "-I", ROOT / "kernels_lib"]
by_name = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)


def generated(mtc, path, model=None):
    done = mtc(f"--emit={path.suffix[1:]}", *flags_of(path.with_suffix(".mt")), model or path.with_suffix(".mt").name,
               cwd=GOLDEN)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@by_name
def test_formatted(path):
    if shutil.which("clang-format") is None:
        pytest.skip("no clang-format here")
    assert run("clang-format", f"--style=file:{ROOT / '.clang-format'}", path) == path.read_text()


@pytest.mark.parametrize("model", ["char_gpt", "cnn", "gpt2", "resnet18_cifar", "vit_tiny"])
@pytest.mark.parametrize("stage", ["c", "cu"])
def test_long_lines_are_broken(model, stage, mtc):
    """All but comments and strings."""
    lines = mtc(f"--emit={stage}", f"models/{model}.mt").stdout.splitlines()
    assert not [line for line in lines if len(line) > 120 and '"' not in line and "//" not in line]


@pytest.mark.parametrize("model", ["char_gpt", "cnn", "gpt2", "llama_tiny", "resnet18", "resnet18_cifar", "vit_tiny"])
@pytest.mark.parametrize("stage", ["c", "cu"])
def test_models_are_formatted(model, stage, mtc, tmp_path):
    if shutil.which("clang-format") is None:
        pytest.skip("no clang-format here")
    path = tmp_path / f"m.{stage}"
    path.write_text(mtc(f"--emit={stage}", f"models/{model}.mt").stdout)
    assert run("clang-format", f"--style=file:{ROOT / '.clang-format'}", path) == path.read_text()


@pytest.mark.parametrize("path", [path for path in SOURCES if path.suffix == ".c"], ids=lambda path: path.name)
def test_c_compiles_without_warnings(path):
    run("cc", "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *INCLUDES, path)


@pytest.mark.parametrize("model", ["cnn", "char_gpt"])
def test_c_of_integers_compiles_without_warnings(model, mtc, tmp_path):
    """Its step trains nothing."""
    (tmp_path / "m.c").write_text(mtc("--emit=c", "--precision", "int8", f"models/{model}.mt").stdout)
    run("cc", "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *INCLUDES, tmp_path / "m.c")


CUDA = [path for path in SOURCES if path.suffix == ".cu"]


@pytest.mark.parametrize("path", CUDA, ids=lambda path: path.name)
def test_cuda_includes_what_it_needs(path, cuda_takes):
    model = path.with_suffix(".mt")
    cuda_takes(model.read_text(), *flags_of(model))


@pytest.mark.nvcc
def test_cuda_compiles_without_warnings(tmp_path):
    """All programs in one source, each in a namespace: most of what nvcc does for a small one is reading headers. Tables leave out
    what is 0, which C++ warns of and C does not."""
    headers = sorted({line for path in CUDA for line in re.findall('^#include [<"].*?[>"]', path.read_text(), re.M)}, key=lambda line: ("mtc.h" not in line, line))
    programs = [f'namespace program_{k} {{\n#include "{path}"\n}}' for k, path in enumerate(CUDA)]
    (tmp_path / "all.cu").write_text("\n".join([*headers, *programs, ""]))
    warnings = "-Wall,-Wextra,-Wno-missing-field-initializers"
    run("nvcc", "-std=c++17", "-arch=sm_90", "-c", "-Xcompiler", warnings, "-Werror", "all-warnings", *INCLUDES, tmp_path / "all.cu",
        "-o", tmp_path / "all.o")


@pytest.mark.parametrize("model", sorted(path.name for path in (ROOT / "models").glob("*.mt") if "\ntrain {" in path.read_text()))
@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "bf16"])
def test_other_precisions(precision, model, mtc):
    """Every tensor that is read has a name: of tf32, also a field whose numbers a product takes as they are."""
    done = mtc("--emit=cu", "--precision", precision, f"models/{model}")
    assert done.returncode == 0, done.stderr
    assert "(null)" not in done.stdout


ONE_STEP = """data {
  train = npy("x", "y")
  x : f32[1, 5]
  y : class[2]
}
model {
  v   = lstm(x, 40)
  out = linear(v[-1], 2)
}
train {
  loss      = cross_entropy(out, y)
  optimizer = sgd(0.1)
  batch     = 64
}
"""


@pytest.mark.parametrize("model, ahead", [("char_gpt", True), ("gru_names", True), ("word2vec", False)])
def test_a_long_list_of_places_is_made_ahead_of_the_gate(model, ahead, mtc):
    text = mtc("--emit=cu", "--target", "cuda", "--arch", "sm_90", f"models/{model}.mt").stdout
    body = re.search(r"\{\n(?P<body>(?: {8}[^}\n]*\n)*?) {8}gather_grad<Shape>\(.*, gate\);", text)["body"]
    assert ("gate();" not in body) == ahead


@pytest.mark.parametrize("precision", ["fp32", "tf32", "tf32x3", "bf16", "fp16", "fp8"])
def test_sequences_of_one_step(precision, mtc, tmp_path):
    """The state ahead of the only step is the same for all examples: a product reads a constant that is repeated."""
    (tmp_path / "m.mt").write_text(ONE_STEP)
    done = mtc("--emit=cu", "--arch", "sm_90a", "--precision", precision, tmp_path / "m.mt")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
def test_tf32_compiles(precision, cuda_compiles):
    cuda_compiles((ROOT / "models/xor.mt").read_text(), "sm_80,sm_90a", "--precision", precision)


POOLED = """data {
  train = npy("x", "y")
  x : u8[3, 32, 32]
  y : class[10]
}
model {
  v = relu(conv2d(x / 255, 32, 3, padding = 1))
  logits = linear(global_avg_pool(v), 10)
}
train {
  loss      = cross_entropy(logits, y)
  optimizer = sgd(64)
  batch     = 64
}
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_lanes_read_the_row_each_at_its_place(precision, mtc, tmp_path):
    """A thread that computes neighbours at a time reads what a row keeps in shared memory, the gradient of a pool, at the place of each."""
    (tmp_path / "m.mt").write_text(POOLED)
    emitted = mtc("--emit=cu", "--precision", precision, "--arch", "sm_90a", tmp_path / "m.mt").stdout
    of_row = set(re.findall(r"^ +float \*(\w+) = (?:row_memory|\w+ \+ )", emitted, re.M))
    places = [place for lane in re.findall(r"for \(int v = 0; v < \d+; v\+\+\)\n(.*)", emitted)
              for name, place in re.findall(r"(\w+)\[([^]]*)\]", lane) if name in of_row]
    assert places and all(place.endswith(" + v") for place in places), places


BYTES = """data {
  train = npy("x", "y")
  x : u8[28, 28]
  y : class[10]
}
model {
  h      = relu(linear(flatten(x) / 255, 1024))
  logits = linear(relu(linear(h, 1024)), 10)
}
train {
  loss      = cross_entropy(logits, y)
  optimizer = adam(1e-3)
  batch     = 256
}
"""


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_sums_of_lines_have_whole_threads(precision, mtc, tmp_path):
    """Gradients of weights and biases in one kernel, of panels that pass through registers: a tile's lines share out the threads of a
    block evenly, or nvcc refuses it (sum_lines in cuda/tile.cuh), behind its front end."""
    (tmp_path / "m.mt").write_text(BYTES)
    emitted = mtc("--emit=cu", "--precision", precision, "--arch", "sm_90a", tmp_path / "m.mt").stdout
    bodies = [match.group() for match in re.finditer(r"^ *using \w+ = Tile<.*?^}", emitted, re.M | re.S)]
    lines = [int(re.search(r"Tile<(\d+), (\d+)", body)[1 if "sum_of_a" in body else 2]) for body in bodies if "sum_of_" in body]
    assert all(256 % count == 0 for count in lines), lines
    assert precision != "fp32" or lines


@by_name
def test_does_not_depend_on_where_the_model_lies(path, mtc, tmp_path):
    copy = shutil.copy(path.with_suffix(".mt"), tmp_path)
    assert str(tmp_path) not in generated(mtc, path, copy)
    assert generated(mtc, path, copy) == generated(mtc, path)


def compiles(mtc, path, text):
    path.write_text(text)
    done = mtc("--emit=c", path)
    assert done.returncode == 0, done.stderr
    source = path.with_suffix(".c")
    source.write_text(done.stdout)
    run("cc", "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *INCLUDES, source)
    return done.stdout


MODEL = """data {{
  train = {source}
  {field} : f32[2]
  y : f32[1]
}}
model {{
  {value} = tanh(linear(normalize({field}), 3))
  out = linear({value}, 1)
}}
train {{
  loss      = mse(out, normalize(y))
  optimizer = {optimizer}
}}
"""
NAMES = ["H", "X", "Q_2", "NULL", "BATCH", "TRAIN_PHASES", "REPORT_LOSS", "train_phases", "phases", "train_until", "measure"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_program_are_no_names_of_values(name, mtc, tmp_path):
    """The size of a value is called like it, in capitals; functions and constants of every program have names too."""
    table = "table([[1, 2, 3], [4, 5, 6]])"
    for names in ({"field": "x", "value": name}, {"field": name, "value": "h"}):
        compiles(mtc, tmp_path / "model.mt", MODEL.format(source=table, optimizer="adam()", **names))


NARROW = ["bfloat16", "float16", "float_of_bits", "bits_of_float", "to_narrow", "FLOAT16_SHIFT", "NARROW_NAME"]


@pytest.fixture
def narrow_names():
    """Values called like what programs of 16-bit numbers have, of widths that tell their sizes apart."""
    layers = "".join(f"  {name} = relu(linear({before}, {32 + 16 * k}))\n"
                     for k, (before, name) in enumerate(zip(["x", *NARROW], NARROW)))
    return f"""data {{
  train = idx("x", "y")
  x : f32[32]
  y : f32[16]
}}
model {{
{layers}  out = linear({NARROW[-1]}, 16)
}}
train {{
  loss      = mse(out, y)
  optimizer = sgd(0.1)
  batch     = 16
}}
"""


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp8"])
def test_names_of_numbers_are_no_names_of_values_in_c(precision, narrow_names, mtc, tmp_path):
    compiles(mtc, tmp_path / "model.mt", narrow_names.replace("batch ", f"precision = {precision}\n  batch ", 1))


@pytest.mark.nvcc
@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp8"])
def test_names_of_numbers_are_no_names_of_values_in_cuda(precision, narrow_names, cuda_takes):
    cuda_takes(narrow_names, "--precision", precision)


def test_long_strings_stay_whole(mtc, tmp_path):
    """Lines that are too long are broken, in a string only into pieces that are the same string."""
    path = "a folder, .b = (1), " * 9 + "x"
    optimizer = "adamw(cosine_lr(1e-3, final = 1e-6, warmup = 0.05 * total_steps), weight_decay = 0.01 * steps_per_epoch, eps = 0.1)"
    text = MODEL.format(source=f'idx("{path}", "{path}")', field="x", value="h", optimizer=optimizer)
    statement = "h = tanh(linear(normalize(x), 3, init = normal(0, 0.02), bias = true, name = \"a_long_name_of_a_layer\"), )"
    source = compiles(mtc, tmp_path / "model.mt", text.replace("h = tanh(linear(normalize(x), 3))", statement))
    assert source.count(f'"{path}"') == 2
    assert f"optimizer = {optimizer}" in re.sub(r'"\n +"', "", source)


def test_a_scalar_weight_of_the_same_name(mtc, tmp_path):
    """A value that is the same for all rows is read before their loop, under a name that nothing in the loop has."""
    text = MODEL.format(source='idx("x", "y")', field="x", value="h", optimizer="adam()")
    layer = "g = sin(linear(x, 7))\n  h = g * weight([]) + weight([7], name = \"shift\")\n  z = linear(h, 3)"
    text = text.replace("h = tanh(linear(normalize(x), 3))", layer).replace("normalize(y))", "y) + mean(z * z)\n  predict = z")
    compiles(mtc, tmp_path / "model.mt", text)


CONDITIONS = """data {
  train = npy("a", "b", "c", "target")
  f0 : i32[1, 5]
  f1 : u8[257]
  f2 : f32[2]
  target : f32[2]
}
model {
  first = dropout(normalize(f0), 0.3)
  x     = concat([reshape(first, [5]), normalize(f1), normalize(f2)], axis = 0)
  h     = relu(linear(x, 8))
  y     = linear(h, 2)
}
train {
  loss      = mse(y, target)
  optimizer = adam()
}
"""


@pytest.mark.parametrize("target", ["c", "cu"])
def test_a_condition_in_a_condition(target, mtc, tmp_path):
    """Both choices of `in a ? in b ? x : y : 0` are broken where they belong."""
    (tmp_path / "model.mt").write_text(CONDITIONS)
    done = mtc(f"--emit={target}", tmp_path / "model.mt")
    assert done.returncode == 0, done.stderr


STATISTICS = """data {
  train = idx("images", "labels")
  image : u8[3, 16, 16]
  label : class[10]
}
model {
  bn1 = batch_norm(conv2d(image / 255, 16, 3, padding = 1, bias = false))
  bn2 = batch_norm(conv2d(relu(bn1), 16, 3, padding = 1, bias = false))
  out = linear(global_avg_pool(relu(bn2)), 10)
}
train {
  loss      = cross_entropy(out, label)
  optimizer = sgd(0.1, momentum = 0.9)
  precision = bf16
}
"""


@pytest.mark.parametrize("target", ["c", "cu"])
def test_an_equation_defines_what_no_other_of_its_kernel_does(target, mtc, tmp_path):
    """Mean and variance are of two sums of one value; a layer's weight and bias have a momentum each."""
    (tmp_path / "model.mt").write_text(STATISTICS)
    done = mtc(f"--emit={target}", tmp_path / "model.mt")
    assert done.returncode == 0, done.stderr
    assert "bn1_mean" in done.stdout and "bn2_inverse_deviation" in done.stdout
    for kernel in re.split(r"\n};?\n", done.stdout):
        defined = re.findall(r"^ *// +([\w.]+\[[^\]]*\]) = ", kernel, re.M)
        assert len(defined) == len(set(defined)), defined


BATCHED = """data {{
  train = npy("x", "n", "s", "label")
  x : f32[3, 8]
  n : i32
  s : f32
  label : class[3]
}}
model {{
  a = linear(x, 8)
  {value}
  out = linear(flatten(h), 3)
}}
train {{
  loss      = cross_entropy(out, label)
  optimizer = sgd(0.1)
  batch     = 4
}}
"""
HEADS = "q = reshape(a, [2, 3, 4])\n  h = mean(matmul(q, q, transpose_b = true) * exp(weight([2, 1, 1])), axis = 0)"
VALUES = {
    "a field in a condition": "h = softmax(where(iota(3) >= n, -1e9, matmul(a, x, transpose_b = true)))",
    "a field as a factor": "h = matmul(a, x, transpose_b = true) * s",
    "a mean": "h = matmul(a, x, transpose_b = true) + mean(a)",
    "a number of each head": HEADS,
    "a label": "h = where(label == 2, matmul(a, x, transpose_b = true), 0)",
    "a gradient": "h = mean(matmul(gather(weight([3, 3, 8]), label) * mean(a), x, transpose_b = true), axis = 0)",
}


@pytest.mark.parametrize("value", VALUES)
def test_what_a_product_reads_once_for_each_example(value, mtc, tmp_path):
    """It is read in the loop over examples, or heads, not before it, and before the loops over the outputs of one."""
    source = compiles(mtc, tmp_path / "model.mt", BATCHED.format(value=VALUES[value]))
    assert re.search(r"^ {16}(real|int) \w+ = .*t->\w+\[.*\bb\b.*\];$", source, re.M)


@pytest.mark.parametrize("lines", [
    "t = weight([6])\n  y = softmax(x * gather(t, argmax(x)))\n  z = y * gather(t, argmax(y))",
    "s = softmax(x * weight([6]) + label)\n  y = softmax(s * gather(weight([4]), label) + label)\n  z = y * gather(weight([4]), label)",
    "w = weight([6])\n  a = -slice(-w, 0, 0, 2)\n  z = concat([x * 0 + w, a])"])
def test_what_is_read_ahead_needs_what_stands_before(lines, mtc, tmp_path):
    """A place that a row has found is read behind that, not before the loop over rows; and minus of minus is no decrement."""
    text = ("data {\n  train = npz(\"d.npz\")\n  x : f32[6]\n  label : class[4]\n}\nmodel {\n  " + lines + "\n  scores = linear(z, 4)\n}\n"
            "train {\n  loss = cross_entropy(scores, label)\n  optimizer = adam(0.1, beta1 = 0.00001)\n  batch = 8\n}\n")
    assert "--t->" not in compiles(mtc, tmp_path / "case.mt", text)


WINDOWS = """data {
  train = npy("x", "y")
  x : f32[3, 64, 64]
  y : class[10]
}
model {
  h = max_pool(relu(batch_norm(conv2d(x, 64, 3))), 3, stride = 2, padding = 1)
  out = linear(global_avg_pool(h), 10)
}
train {
  loss      = cross_entropy(out, y)
  optimizer = sgd(0.1)
  batch     = 256
}
"""


def test_a_window_reads_what_a_channel_has_once(mtc, tmp_path):
    """What lies beside the image is none of batch norm's numbers, which are there for all of a window."""
    (tmp_path / "m.mt").write_text(WINDOWS)
    source = mtc("--emit=cu", "--arch", "sm_90a", tmp_path / "m.mt").stdout
    kernel = source[source.index("\nstruct h {") :].split("\n};\n")[0]
    before, loop = kernel.split("for (int j = 0; j < 3 * 3; j++)", 1)
    for name in ["mean", "inverse_deviation", "weight", "bias"]:
        assert re.search(rf"load_pack<4>\(t\.\w*{name} \+ channel\)", before), kernel
        assert not re.search(rf"t\.\w*{name}\b", loop), kernel
    assert "inside ? load_pack<4>(" in loop, kernel


def test_few_long_tiles_begin_late(mtc):
    """The gradient of the stem's filters over 3,211,264 pixels has two tiles for each multiprocessor, which has room for three."""
    emitted = mtc("--emit=cu", "--precision", "fp32", "--arch", "sm_90a", "models/resnet18.mt").stdout
    late = re.findall(r"Late<Sharing<(\d), Phase<(\w+)>", emitted)
    assert late == [("2", "d_conv1_pre_slices")]
    for model in ["resnet18_cifar", "cnn", "char_gpt"]:
        assert "Late<" not in mtc("--emit=cu", "--precision", "bf16", "--arch", "sm_90a", f"models/{model}.mt").stdout


def test_who_has_the_memory_of_a_multiprocessor_has_its_registers(mtc):
    """Or is alone there, for its launch has no more tiles."""
    emitted = mtc("--emit=cu", "--precision", "fp32", "--arch", "sm_90a", "models/resnet18.mt").stdout
    assert "Sharing<1, Phase<d_layer2_1_conv2_weight_slices>>" in emitted


NARROW_WINDOWS = """data {
  train = npy("x", "y")
  x : f32[1, 5, 1]
  y : class[3]
}
model {
  h   = avg_pool(silu(x), 3, stride = 3, padding = 1)
  out = linear(flatten(h), 3)
}
train {
  loss      = cross_entropy(out, y)
  optimizer = sgd(0.1)
  batch     = 4
}
"""


def test_what_is_read_under_a_condition_is_not_read_before_it(mtc, tmp_path):
    """Though it is the same for all columns: beside the image there is nothing to be read. And what one branch reads is no name outside."""
    source = compiles(mtc, tmp_path / "m.mt", NARROW_WINDOWS)
    window = source[source.index("for (int k1 = 0; k1 < 3; k1++)") :].split("    }\n")[0]
    before, branch = window.split("if (", 1)
    assert "t->x[" in branch and "t->x[" not in before, window


BESIDE_A_SLICE = """data {{
  train = npy("x")
  x : f32[5, 4]
}}
model {{
  v = x * weight([5, 4])
  {lines}
}}
train {{
  loss      = mean(sin(t))
  predict   = t
  optimizer = sgd(0.1)
  batch     = 6
}}
"""
SLICES = ["t = sort(v)[0]", "t = sort(v)[:2, 3:]", "t = sort(v)[:, -1]", "s, _ = topk(v, 2)\n  t = s[:2, 1:]",
          "b = weight([5, 4])\n  t = relu(x * b + gather(b, [1, 0, 2, 4, 3]) * x + v + b)[0]"]


@pytest.mark.parametrize("lines", SLICES)
def test_a_dead_branch_leaves_nothing_behind(lines, mtc, tmp_path):
    """Beside the slice the gradient adds 0: neither a loop nor what was to be chosen by stands there."""
    source = compiles(mtc, tmp_path / "m.mt", BESIDE_A_SLICE.format(lines=lines))
    assert "} else {" not in source, source
