"""Programs for GPUs that are not here: which architectures mtc compiles for (against an nvcc that only says what it knows), and
whether what it makes fits them (tools/check_architectures). On a GPU: the code of smaller ones, translated from its PTX."""

import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess

import numpy as np
import pytest
from conftest import MTC, ROOT

loader = importlib.machinery.SourceFileLoader("check_architectures", str(ROOT / "tools/check_architectures"))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_architectures", loader))
loader.exec_module(tool)


# ---- the table ----


def test_what_code_may_use(tmp_path):
    """kernels_lib/cuda/architecture.cuh has of each architecture the least of all GPUs that run its code."""
    numbers = [gpu.number for gpu in tool.table()]
    program = tmp_path / "limits.cc"
    program.write_text('#include <cstdio>\n#include "cuda/architecture.cuh"\nint main() {\n'
                       + "".join(f'    printf("%d %d\\n", most_shared({n}), most_threads({n}));\n' for n in numbers) + "}\n")
    subprocess.run(["c++", "-std=c++17", "-D__host__=", "-D__device__=", f"-I{ROOT}/kernels_lib", program, "-o",
                    tmp_path / "limits"], check=True)
    said = subprocess.run([tmp_path / "limits"], capture_output=True, text=True, check=True).stdout.splitlines()
    for number, line in zip(numbers, said):
        gpus = tool.gpus_of(f"sm_{number}")
        assert line == f"{min(gpu.block_shared for gpu in gpus)} {min(gpu.threads for gpu in gpus)}", f"sm_{number}"


# ---- which architectures ----

MODEL = """data {
  train = npy("x.npy", "y.npy")
  x : f32[2]
  y : f32
}
model {
  h = relu(linear(x, 64))
  out = linear(relu(linear(h, 64)), 1)
}
train {
  loss = mse(flatten(out), y)
  optimizer = sgd(0.1)
  batch = 64
}
"""


@pytest.fixture
def compile_for(tmp_path):
    """compile_for(model, *flags): the architectures that nvcc is told, and what mtc said. This nvcc makes empty programs."""
    nvcc, told = tmp_path / "tools/nvcc", tmp_path / "told"
    nvcc.parent.mkdir()
    known = "".join(f"compute_{gpu.number}\\n" for gpu in tool.table() if gpu.number != 121)
    nvcc.write_text(f"""#!/bin/sh
if [ "$1" = --list-gpu-arch ]; then printf "{known}"; exit; fi
echo "$@" > "{told}"
for last; do :; done
: > "$last"
""")
    nvcc.chmod(0o755)

    def compile_model(model, *flags):
        told.unlink(missing_ok=True)
        source = tmp_path / "m.mt"
        source.write_text(model)
        environment = {**os.environ, "NO_COLOR": "1", "PATH": f"{nvcc.parent}:{os.environ['PATH']}"}
        done = subprocess.run([MTC, source, "--target", "cuda", "--no-cache", "-o", tmp_path / "m", "--keep", tmp_path, *flags],
                              capture_output=True, text=True, env=environment)
        codes = re.findall(r",code=(\w+)", told.read_text()) if told.exists() else []
        return codes, done.stderr

    return compile_model


CAN = "sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, sm_121"


@pytest.mark.parametrize("precision", ["bf16", "tf32", "tf32x3"])
def test_no_tensor_cores(compile_for, precision):
    codes, said = compile_for(MODEL, "--arch", "sm_86,sm_75", "--precision", precision)
    assert not codes and said == (f"mtc: error: sm_75 (T4, RTX 20) has no tensor cores for {precision}; --arch can be {CAN}, "
                                  "and --precision fp32 needs none\n")
    codes, said = compile_for(MODEL, "--arch", "sm_86,sm_75", "--precision", "fp32")
    assert codes == ["sm_86", "sm_75"] and not said


def test_large_heads(compile_for):
    heads = ", ".join(3 * ["reshape(linear(h, 768), [4, 192])"])
    model = MODEL.replace("linear(h, 64)", f"linear(flatten(attention({heads}, heads = 1)), 64)")
    codes, said = compile_for(model, "--arch", "sm_75")
    assert not codes and re.search(r"sm_75 \(T4, RTX 20\) has 64 KB of shared memory for a block, of which '\w+' needs 99; "
                                   rf"--arch can be {CAN}\n", said)
    assert compile_for(model, "--arch", "sm_86")[0] == ["sm_86"]


@pytest.mark.parametrize("arch, message", [
    ("ampere", f"--arch takes native or a list of sm_75, {CAN}, not 'ampere'"),
    ("sm_70", f"mtc cannot compile for sm_70; it can for sm_75, {CAN}"),
    ("sm_121", f"this nvcc cannot compile for sm_121; it can for sm_75, {CAN.removesuffix(', sm_121')}"),
    (",", "--arch names no GPU"),
])
def test_unknown(compile_for, arch, message):
    codes, said = compile_for(MODEL, "--arch", arch)
    assert not codes and said == f"mtc: error: {message}\n"


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="the default is the GPU that is here")
def test_portable_programs(compile_for):
    everywhere = ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_120", "compute_120"]
    assert compile_for(MODEL)[0] == everywhere
    codes, said = compile_for(MODEL, "--precision", "bf16")
    assert codes == everywhere[1:] and "sm_75 is left out: it has no tensor cores for bf16\n" in said
    assert compile_for(MODEL, "--precision", "fp16")[0] == everywhere


def test_tiles_of_another_gpu_on_one_with_less_memory(compile_for):
    """A tile of 256 rows fills more than sm_75 has, in however many parts: a program that is planned for sm_90 is refused for it."""
    model = (ROOT / "models/char_gpt.mt").read_text().replace('include "gpt.mt"', (ROOT / "models/gpt.mt").read_text())
    codes, said = compile_for(model, "--arch", "sm_75,sm_90", "--precision", "fp16", "--set", "examples=512")
    assert not codes and re.search(r"sm_75 \(T4, RTX 20\) has 64 KB of shared memory for a block, of which '\w+' needs 72; ", said)
    assert compile_for(model, "--arch", "sm_75", "--precision", "fp16")[0] == ["sm_75"]


# ---- which one a program is planned for ----

SEVERAL = ["models/mnist.mt", "models/lenet5.mt", "models/vit_tiny.mt", "models/resnet18_cifar.mt", "tests/golden/tiny-cluster.mt"]


def schedule_for(mtc, arch, *flags):
    done = mtc("--emit=schedule", "--arch", arch, *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("arch, card", [("sm_75", "T4 (sm_75)"), ("sm_80", "A100 (sm_80)"), ("sm_90a", "H200 (sm_90)"),
                                        ("sm_75,sm_80,sm_86", "A100 (sm_80)"), ("sm_80;sm_90a;sm_120", "H200 (sm_90)")])
def test_planned_for(mtc, arch, card):
    """Of several, the one with the fastest memory."""
    assert f"\n  planned for: {card}\n" in schedule_for(mtc, arch, "models/mnist.mt")


def test_planned_for_an_h200_unless_said(mtc):
    assert mtc("--emit=schedule", "models/cnn.mt").stdout == schedule_for(mtc, "sm_90", "models/cnn.mt")
    assert mtc("--emit=schedule", "models/cnn.mt").stdout != schedule_for(mtc, "sm_80", "models/cnn.mt")


def multiplies(gpu, precision):
    """Its tensor cores do: those of sm_75 know fp16 alone."""
    return precision in ("fp32", "fp16") or gpu.number >= 80


@pytest.mark.parametrize("precision", ["fp32", "tf32", "tf32x3", "bf16", "fp16"])
@pytest.mark.parametrize("gpu", tool.table(), ids=lambda gpu: f"sm_{gpu.number}")
def test_tiles_fit_the_machine(mtc, gpu, precision):
    """The memory of a block holds panels and sums of each tile on tensor cores as it is planned, and no persistent launch has more
    blocks than the GPU has multiprocessors, or a cluster where there are none."""
    if not multiplies(gpu, precision):
        assert "has no tensor cores" in mtc("--emit=schedule", "--arch", f"sm_{gpu.number}", "--precision", precision, SEVERAL[0]).stderr
        return
    for model in SEVERAL:
        text = schedule_for(mtc, f"sm_{gpu.number}", "--precision", precision, model)
        for m, n, math, panels in re.findall(r"tile (\d+)x(\d+)x\d+, (\w+), \dx\d warps, (\d) panels", text):
            m, n, panels, terms = int(m), int(n), int(panels), 2 if math == "tf32x3" else 1
            turns = (m, n, panels) == (128, 128, 6)
            assert gpu.number == 90 if turns else fits(gpu, m, n, panels, terms) == panels
        assert gpu.number >= 90 or "a cluster" not in text


PRODUCT = """data {
  train = npy("x.npy", "y.npy")
  x : f32[512]
  y : f32
}
model {
  out = linear(x, WIDTH)
}
train {
  loss      = mse(mean(out), y)
  optimizer = sgd(0.1)
  batch     = BATCH
}
"""
LATENCY = 1200


def count_of(rows, columns, tile):
    return -(-rows // tile[0]) * -(-columns // tile[1])


def narrow_cycles(gpu, rows, columns, k, tile):
    """Of a product on tensor cores, by compiler/pass/cost.c."""
    m, n = tile
    rate = min(12.5 * m * n / (m + n), 0.9 * gpu.tensor)
    return -(-count_of(rows, columns, tile) // gpu.multiprocessors) * (LATENCY + k * m * n / rate + m * n / 32)


def fits(gpu, m, n, panels, terms=1):
    """As many of the panels as it has memory for beside the second terms of three; 0: it has none for the tile."""
    panels = min(panels, (gpu.block_shared - (terms - 1) * 3 * n * 128) // ((m + n) * 128))
    return panels if panels >= 2 and 4 * (m * (n + 8) + 256) <= gpu.block_shared else 0


@pytest.mark.parametrize("batch, width", [(128, 128), (256, 512), (512, 1024), (1024, 2048), (2048, 1152)])
def test_tiles_are_the_best_of_the_machine(mtc, tmp_path, batch, width):
    """Of those that fit, the fastest by the cost model; or, where that leaves several for each multiprocessor and all are soon done, the
    fewest that take no longer."""
    tiles = [(128, 256, 4), (256, 128, 4), (128, 192, 4), (128, 128, 3), (256, 64, 2), (64, 256, 4), (128, 64, 4), (64, 128, 4), (64, 64, 4)]
    model = tmp_path / "product.mt"
    model.write_text(PRODUCT.replace("WIDTH", str(width)).replace("BATCH", str(batch)))
    for gpu in tool.table():
        precision = "bf16" if multiplies(gpu, "bf16") else "fp16"
        text = schedule_for(mtc, f"sm_{gpu.number}", model, "--precision", precision).partition("\neval:")[2]
        chosen = tuple(map(int, re.search(r" tile (\d+)x(\d+)x64, (?:bf|fp)16", text).groups()))
        can = [tile[:2] for tile in tiles if fits(gpu, *tile)]
        cycles = {tile: narrow_cycles(gpu, batch, width, 512, tile) for tile in can}
        counts = {tile: count_of(batch, width, tile) for tile in can}
        fastest = min(can, key=cycles.get)
        if counts[fastest] <= gpu.multiprocessors or cycles[fastest] / (gpu.mhz * 1e6) >= 5e-6:
            assert cycles[chosen] == cycles[fastest], (gpu.number, chosen, cycles)
        else:
            short = [tile for tile in can if narrow_cycles(gpu, *tile, 512, tile) <= cycles[fastest]]
            assert counts[chosen] == min(counts[tile] for tile in short), (gpu.number, chosen, counts)


def test_machines_have_tiles_of_their_own(mtc, tmp_path):
    model = tmp_path / "product.mt"
    model.write_text(PRODUCT.replace("WIDTH", "1152").replace("BATCH", "2048"))
    texts = [schedule_for(mtc, arch, model, "--precision", "bf16").partition("\neval:")[2] for arch in ("sm_80", "sm_86", "sm_90")]
    assert len({re.search(r" tile [\w, ]+ panels", text)[0] for text in texts}) > 1


ODD = """data {
  train = npy("x.npy", "y.npy")
  x : f32[1005]
  y : f32[7]
}
model {
  h   = relu(linear(x, 1003))
  g   = relu(linear(h, 997))
  out = linear(g, 7)
}
train {
  loss      = mse(out, y)
  optimizer = sgd(0.1)
  batch     = 1001
}
"""


def test_large_tiles_of_one_round(mtc, tmp_path):
    """Of some 1000 x 1000 x 1000 the tile that was measured best, one for each multiprocessor, whose threads share the steps of k; these
    hold 128 sums, beside which a persistent kernel has no registers for its other phases."""
    model = tmp_path / "odd.mt"
    model.write_text(ODD)
    training = schedule_for(mtc, "sm_90a", model).partition("\neval:")[0]
    for name in ("g", "d_h_pre", "d_g_weight"):
        assert re.search(rf"\n    {name} +128 tiles .* tile 128x64x32, 16x8 a thread, 4 slices of k", training), name
    assert ", graph" in training.partition("\n")[0]
    told = re.sub(r"\n// +", " ", mtc("--emit=cu", "--arch", "sm_90a", model).stdout)
    assert "but threads of its products hold so many sums that they need all registers" in told


# ---- whether programs fit ----

# In fp32 tiles of 256 x 128, which want 122,880 bytes; in bf16 of 128 x 256, or of 128 x 192 where it is 768 wide, which want
# 196,608 and 163,840. The gradient of attention with heads of 128 wants 115,456.
LARGE = """param width = 1024
data {
  train = npy("x.npy", "y.npy")
  x : f32[64]
  y : f32[8]
}
model {
  h    = gelu(linear(x, width))
  k    = h + gelu(linear(h, width))
  rows = reshape(k, [8, width / 8])
  seen = attention(rows, rows, rows, heads = 1)
  out  = linear(k + flatten(seen), 8)
}
train {
  loss      = mse(out, y)
  optimizer = adamw(1e-3)
  batch     = 4096
}
"""


@pytest.mark.nvcc
@pytest.mark.parametrize("precision, architectures, planned, most", [
    ("fp32", "sm_75", 129024, 65536), ("bf16", "sm_86", 198720, 101376), ("bf16", "sm_86,sm_90a", 198720, 101376)])
def test_programs_fit(tmp_path, capsys, precision, architectures, planned, most):
    """Those planned for another GPU, too. (Attention asks for what it finds.)"""
    model = tmp_path / "large.mt"
    model.write_text(LARGE)
    assert tool.check(model, precision, architectures.split(",")) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert f" {architectures[:5]}: " in said and f"and {most} bytes of shared memory, planned with {planned}" in said


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("examples"), np.random.default_rng(5)
    x = rng.normal(size=(8192, 64)).astype(np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.tanh(x @ rng.normal(size=(64, 8)) / 8).astype(np.float32))
    return folder


def losses(program, folder):
    log = folder / "log.jsonl"
    subprocess.run([program, "--data", folder, "--epochs", "4", "--log", log, "--log-every", "1", "--quiet"], check=True)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return np.array([event["loss"] for event in events if event["event"] == "train"])


@pytest.mark.gpu
@pytest.mark.parametrize("precision, width, architecture", [("fp32", 1024, "75"), ("fp32", 768, "75"), ("bf16", 1024, "80"),
                                                            ("bf16", 768, "86"), ("tf32", 1024, "86")])
def test_code_of_smaller_gpus(mtc, compile_model, examples, tmp_path, precision, width, architecture):
    """It is compiled to PTX, which the driver translates for the GPU that is here: the tiles and the shared memory are the
    other's."""
    model = tmp_path / "large.mt"
    model.write_text(LARGE)
    flags = ["--precision", precision, "--set", f"width={width}"]
    assert mtc(model, "--standalone", "--emit", "cu", "-o", tmp_path / "large.cu", *flags).returncode == 0
    target = f"arch=compute_{architecture},code=compute_{architecture}"
    subprocess.run(["nvcc", "-std=c++17", "-O3", "-fmad=false", f"-gencode={target}", tmp_path / "large.cu", "-o",
                    tmp_path / "other"], check=True)
    own = losses(compile_model(LARGE, "--arch", "sm_90a", *flags, target="cuda").path, examples)
    assert len(own) == 8 and own[-1] < own[0]
    assert losses(tmp_path / "other", examples) == pytest.approx(own, rel=1e-4 if precision == "fp32" else 5e-3)
