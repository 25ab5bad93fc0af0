"""profile: a row for each kernel of a training step, with the line of the model that it comes from."""

import json
import re

import pytest

from conftest import ROOT

MODEL = ROOT / "models" / "mnist.mt"
FLAGS = ["--runs", 2, "--steps", 5]


def kernels(program, *flags):
    """The parsed line of JSON."""
    return json.loads(program("profile", "--json", *FLAGS, *flags).stdout)


def check(profile, lines):
    assert [kernel["phase"] for kernel in profile["kernels"]] == sorted(kernel["phase"] for kernel in profile["kernels"])
    assert sum(kernel["share"] for kernel in profile["kernels"]) == pytest.approx(1, rel=1e-3)
    assert sum(kernel["us"] for kernel in profile["kernels"]) == pytest.approx(profile["us_sum"], rel=1e-3)
    for kernel in profile["kernels"]:
        text = lines[kernel["line"] - 1].partition("#")[0].split()
        assert kernel["us"] > 0 and kernel["bytes"] > 0 and kernel["text"].split() == text


def test_json(compile_model):
    profile = kernels(compile_model(MODEL))
    check(profile, MODEL.read_text().splitlines())
    assert profile["event"] == "profile" and profile["model"] == "mnist" and profile["us_per_step"] > 0
    names = [kernel["name"] for kernel in profile["kernels"]]
    assert "h" in names and "d_h_weight" in names and len(set(names)) == len(names)


def test_table(compile_model):
    text = compile_model(MODEL)("profile", *FLAGS).stdout
    profile = kernels(compile_model(MODEL))
    rows = re.findall(r"^(\w+) +(\d+) +[\d.]+ +\d+% .*  (\d+): (.*)$", text, re.M)
    assert [(kernel["name"], str(kernel["phase"]), str(kernel["line"]), kernel["text"]) for kernel in profile["kernels"]] == rows
    assert re.search(r"^sum +[\d.]+  of the kernels, each launched alone$", text, re.M)
    assert re.search(r"^step as trained +[\d.]+  all phases, openmp$", text, re.M)


DEEP = """data {
  train = table([[0.5, 1, 0], [1, -2, 1]])
  x     : f32[2]
  label : class[2]
}
model {
  h = linear(x, 8)
  repeat i in 0..DEPTH {
    h = tanh(linear(h, 8, name = "layers.{i}"))
  }
  y = linear(h, 2)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 2
}
"""


def rows_of(text):
    """name, phase, us, share, the line"""
    return re.findall(r"^(\S+(?: x\d+)?) +(\d+) +([\d.]+) +(\d+)% .*  (\d+): .*$", text, re.M)


def test_equal_kernels_of_layers_are_one_row(compile_model):
    program = compile_model(DEEP.replace("DEPTH", "6"))
    names = [row[0] for row in rows_of(program("profile", *FLAGS).stdout)]
    assert any(re.fullmatch(r"\w*\*\w* x[3-6]", name) for name in names) and len(names) == len(set(names))
    counts = [int(name.partition(" x")[2] or 1) for name in names]
    assert sum(counts) == len(kernels(program)["kernels"]) > len(names)


def test_the_longest(compile_model):
    text = compile_model(MODEL)("profile", *FLAGS, "--top", 2).stdout
    rows = rows_of(text)
    others = re.search(r"^(\d+) others +([\d.]+) ", text, re.M)
    assert len(rows) == 2 and float(rows[0][2]) >= float(rows[1][2])
    assert int(others[1]) + 2 == len(kernels(compile_model(MODEL))["kernels"])
    total = float(re.search(r"^sum +([\d.]+) ", text, re.M)[1])
    assert sum(float(row[2]) for row in rows) + float(others[2]) == pytest.approx(total, abs=0.05)


def test_many_rows(compile_model):
    """Layers of different widths are different kernels: more than are shown."""
    layers = "\n".join(f"  h{n} = tanh(linear({f'h{n - 1}' if n else 'h'}, {9 + n}))" for n in range(40))
    text = re.sub(r"  repeat.*?\n  \}", lambda _: layers, DEEP, flags=re.S).replace("linear(h, 2)", "linear(h39, 2)")
    shown = compile_model(text)("profile", *FLAGS).stdout
    rows = rows_of(shown)
    assert len(rows) == 40 and [float(row[2]) for row in rows] == sorted((float(row[2]) for row in rows), reverse=True)
    assert re.search(r"^\d+ others .*'--top \d+' shows all", shown, re.M)


def test_kernels_are_those_of_the_schedule(compile_model, mtc):
    dump = mtc("--emit=fused", MODEL, "--target", "cpu").stdout
    assert [kernel["name"] for kernel in kernels(compile_model(MODEL))["kernels"]] != []
    for kernel in kernels(compile_model(MODEL))["kernels"]:
        assert re.search(rf"\b{kernel['name']}\b", dump)


@pytest.mark.nvcc
def test_cuda_programs_have_ranges(compile_model):
    program = compile_model(MODEL, "--arch", "sm_90", target="cuda")
    assert b"NVTX_INJECTION64_PATH" in program.path.read_bytes() and b"enqueue steps" in program.path.read_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", ["persistent", "graph"])
def test_gpu(compile_model, schedule):
    profile = kernels(compile_model(MODEL, "--schedule", schedule, target="cuda"))
    check(profile, MODEL.read_text().splitlines())
    assert profile["schedule"] == schedule and profile["bandwidth"] > 1e11 and profile["flops"] > 1e12
    for kernel in profile["kernels"]:
        assert kernel["bound"] in ("memory", "arithmetic", "latency")
        assert kernel["of_bandwidth"] < 20 and kernel["of_flops"] < 1  # what fits the cache may exceed the memory's rate
    assert profile["us_sum"] > 0 and profile["us_per_step"] > 0


@pytest.mark.gpu
def test_table_gpu(compile_model):
    text = compile_model(MODEL, target="cuda")("profile", *FLAGS).stdout
    assert re.search(r"at most \d+ GB/s, [\d.]+ TFLOP/s in fp32", text) and re.search(r"^kernel .* bound +line$", text, re.M)
