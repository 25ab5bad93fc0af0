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
    body = re.search(rf"^static __device__ void {name}\(.*?^}}", done.stdout, re.M | re.S).group()
    return re.findall(r"^    for \(int j = .*?^    }", body, re.M | re.S)


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
    assert re.search(r"Column<8, \d+> team\(shared\);", source) and re.search(r"_launch = Reading<\d, Phase<", source)
    floats = mtc("--emit=cu", path, "--schedule", "graph", "--precision", "fp32").stdout
    assert "Column<4," in floats and "Column<8," not in floats and "Reading<" not in floats


@pytest.mark.nvcc
def test_long_columns_compile(compile_model):
    compile_model(COLUMNS, "--arch", "sm_80,sm_90a", "--schedule", "graph", target="cuda")


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
