"""Large products of bf16 in turns (kernels_lib/cuda/tensor_turns.cuh) in a whole program: beside the same program for an
architecture without them, and the same bits in every run. The products alone: test_tensor.py."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT, Program
from library import Library

# 66 x 8 tiles of 128 x 128: more than four for each multiprocessor, and the last column is not full. The gradient of h2's weight
# has 24 x 8, in three slices of the batch.
BATCH, WIDTH, HIDDEN = 8448, 1000, 3072
MODEL = f"""
data {{
  train = npy("x.npy", "y.npy")
  x : f32[64]
  y : f32[8]
}}
model {{
  h1  = gelu(linear(x, {WIDTH}))
  h2  = gelu(linear(h1, {HIDDEN}))
  h3  = h1 + linear(h2, {WIDTH})
  out = linear(h3, 8)
}}
train {{
  loss      = mse(out, y)
  optimizer = adamw(1e-3)
  batch     = {BATCH}
  precision = bf16
}}
"""


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2 * BATCH, 64)).astype(np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.tanh(x @ rng.normal(size=(64, 8)) / 8).astype(np.float32))
    return folder


def train(program, examples, folder):
    """The losses of twelve steps, the bytes of the weights."""
    folder.mkdir()
    log, weights = folder / "log.jsonl", folder / "weights.safetensors"
    program("--data", examples, "--epochs", 6, "--log", log, "--log-every", 1, "--save", weights, "--quiet")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return np.array([event["loss"] for event in events if event["event"] == "train"]), weights.read_bytes()


def test_it_takes_turns(mtc, tmp_path):
    model = tmp_path / "m.mt"
    model.write_text(MODEL)
    source = mtc(model, "--emit", "cu").stdout
    assert source.count("= TurnTile<128, 128, 64, 6, bfloat16>;") >= 5  # two products forward, two gradients of inputs, one of a weight
    assert source.count("InTurns<") >= 5
    assert "using Shape = Product<H2, H1, 2816, 3>;" in source


def test_integers_take_turns(mtc, tmp_path):
    """Where rows are whole packs of 16 bytes: those of x and h2 are, of 64 and 3072 bytes, those of h1, of 1000, are not."""
    model = tmp_path / "m.mt"
    model.write_text(MODEL.replace("  loss ", "  predict   = out\n  loss "))
    source = mtc(model, "--emit", "cu", "--precision", "int8").stdout
    assert source.count("= TurnTile<128, 128, 128, 6, Integer>;") == 2


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_it_compiles_with_and_without_turns(precision, cuda_compiles):
    cuda_compiles(MODEL, "sm_80,sm_90a", "--precision", precision)


@pytest.mark.gpu
def test_training(mtc, compile_model, examples, tmp_path):
    """Beside code without those instructions, which nvcc makes of a program in one file."""
    (tmp_path / "m.mt").write_text(MODEL)
    alone = tmp_path / "alone"
    alone.with_suffix(".cu").write_text(mtc(tmp_path / "m.mt", "--emit=cu", "--standalone").stdout)
    subprocess.run(["nvcc", "-std=c++17", "-O3", "-fmad=false", "-arch=sm_90", alone.with_suffix(".cu"), "-o", alone], check=True)
    program = compile_model(MODEL, target="cuda")
    turns, again, alone = (train(made, examples, tmp_path / name)
                           for made, name in ((program, "turns"), (program, "again"), (Program(alone), "without")))
    assert turns[1] == again[1]
    assert len(turns[0]) == 12 and turns[0][-1] < 0.8 * turns[0][0]
    assert turns[0] == pytest.approx(alone[0], rel=2e-3)


@pytest.mark.gpu
def test_sessions_with_arenas_of_their_own(compile_model, examples):
    """The maps of the operands are those of the session that trains, though all share a graph."""
    path = compile_model(MODEL, "--arch", "sm_90a", "--shared", target="cuda").path
    arrays = [np.load(examples / f"{name}.npy") for name in "xy"]

    def session(seed):
        library = Library(path, seed=seed)
        library.set_data(arrays)
        return library

    def weights(library):
        return library.get("h2.weight", (HIDDEN, WIDTH)).tobytes()

    both = [session(1), session(2)]
    for _ in range(3):
        for library in both:
            library.train(1, 1)
            library.evaluate(1)
    together = [weights(library) for library in both]
    for library in both:
        library.close()
    for seed, expected in zip((1, 2), together):
        alone = session(seed)
        alone.train(3, 1)
        assert weights(alone) == expected
        alone.close()


def test_nothing_asks_for_the_multiprocessor():
    """A block may be moved to another one while it runs."""
    for path in (ROOT / "kernels_lib/cuda").glob("*.cuh"):
        assert "smid" not in path.read_text(), path.name


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not installed")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_sanitizer(compile_model, examples, tmp_path, tool):
    program = compile_model(MODEL, "--arch", "sm_90a", target="cuda")
    done = subprocess.run(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", program.path, "--data", examples,
                           "--limit-steps", "1", "--quiet"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
