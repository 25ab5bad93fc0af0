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


CAN = "sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120"


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
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
    ("sm_121", f"this nvcc cannot compile for sm_121; it can for sm_75, {CAN}"),
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
@pytest.mark.parametrize("precision, architecture, planned, most", [("fp32", "sm_75", 122880, 65536), ("bf16", "sm_86", 196608, 101376)])
def test_programs_fit(tmp_path, capsys, precision, architecture, planned, most):
    model = tmp_path / "large.mt"
    model.write_text(LARGE)
    assert tool.check(model, precision, [architecture]) == 0
    assert f"and {most} bytes of shared memory, planned with {planned}" in capsys.readouterr().out


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
