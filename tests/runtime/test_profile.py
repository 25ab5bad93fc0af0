"""profile: a row for each kernel of a training step, with the line of the model that it comes from."""

import json
import re

import pytest

from conftest import ROOT

pytestmark = pytest.mark.quick

pytest_plugins = ["fake_model"]

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


@pytest.mark.parametrize("heads, precision, product, attention",
                         [(12, "bf16", "BF16", "BF16"), (64, "bf16", "BF16", "FP32"), (12, "tf32", "TF32", "FP32")])
def test_what_products_run_in(heads, precision, product, attention, mtc):
    """Attention with heads of 12 numbers has no use for tensor cores, and nothing but products has."""
    text = mtc("--emit=cu", ROOT / "models/gpt2.mt", "--set", "layers=1", "--set", f"heads={heads}", "--precision", precision).stdout
    maths = dict(re.findall(r'\{"(\w+)", \d+, \d+, MTC_MATH_(\w+),', text[text.index("MtcKernel kernel_table"):]))
    expected = {"h_0_attn_c_attn": product, "d_h_0_mlp_c_fc": product, "h_0_attn_seen": attention, "d_h_0_attn_c_attn": attention,
                "h_0_ln_2": "FP32"}
    assert {name: maths[name] for name in expected} == expected
    lookups = [math for name, math in maths.items() if re.match("gather_grad|d_wte", name)]
    assert lookups and set(lookups) == {"FP32"}


# ---- a GPU's rates, on a device layer that has its name ----

CYCLES = 100e9  # of all multiprocessors, in tests/runtime/peaks.c


H200 = """\
NVIDIA H200: at most 4000 GB/s, 25.6 TFLOP/s in fp32, 205 in tf32, 410 in bf16; batch of 8, real data

kernel           phase        us  share     GB/s  peak   TFLOP/s  peak  bound       line
x                    1     80.00     1%   3000.0   75%      5.00   20%  memory      9: logits = linear(image / 255, 3)
h_*_logits x2        1    500.00     9%    400.0   10%     200.0   49%  arithmetic  9: logits = linear(image / 255, 3)
h_2_logits           1   5000.00    86%     20.0    0%      10.0   39%  arithmetic  9: logits = linear(image / 255, 3)
d_logits             2    200.00     3%    600.0   15%     100.0   49%  arithmetic  13: loss = cross_entropy(logits, label)
update_weight        3      2.00     0%      5.0    0%    0.0005    0%  latency     14: optimizer = sgd(lr)

sum                      5782.00  of the kernels, each launched alone
"""


def test_table_of_a_gpu(fake_on_gpu, folder):
    """What a kernel could do at most depends on what its products run in."""
    assert fake_on_gpu("NVIDIA H200, 9.0")(folder, "profile", *FLAGS).startswith(H200)


def test_others_of_a_gpu(fake_on_gpu, folder):
    text = fake_on_gpu("NVIDIA H200, 9.0")(folder, "profile", *FLAGS, "--top", 1)
    assert re.search(r"^5 others +782\.00 +14% +716\.1 +18% +154\.0 +46%  arithmetic", text, re.M)


def test_tensor_cores_of_unknown_rate(fake_on_gpu, folder):
    """Nothing is said of what is not known."""
    head, _, titles, *rows = fake_on_gpu("NVIDIA GB10, 12.1")(folder, "profile", *FLAGS).splitlines()[:8]
    assert ": at most 4000 GB/s, 25.6 TFLOP/s in fp32; " in head
    known = {row.split()[0]: row[titles.index("TFLOP/s") + 7 : titles.index("line")].split() for row in rows}
    assert known == {"x": ["20%", "memory"], "h_*_logits": [], "h_2_logits": ["39%", "arithmetic"], "d_logits": [],
                     "update_weight": ["0%", "latency"]}
    assert len({row.index(f"{line}: ") for row, line in zip(rows, (9, 9, 9, 13, 14), strict=True)}) == 1


def test_unknown_architecture(fake_on_gpu, folder):
    text = fake_on_gpu("NVIDIA Z1, 99.0")(folder, "profile", *FLAGS)
    assert "NVIDIA Z1: at most 4000 GB/s; batch" in text and not re.search("memory|arithmetic|latency", text)
    profile = json.loads(fake_on_gpu("NVIDIA Z1, 99.0")(folder, "profile", *FLAGS, "--json"))
    assert profile["bandwidth"] == 4e12 and profile["flops"] == {}
    assert all("of_bandwidth" in kernel and not {"of_flops", "bound"} & kernel.keys() for kernel in profile["kernels"])


# multiprocessors; GHz, and that of tensor cores; TFLOP/s in fp32, tf32, bf16: NVIDIA's numbers of the whole card
CARDS = {
    "NVIDIA A100-SXM4-80GB, 8.0": (108, 1.41, 1.41, 19.5, 156, 312),
    "NVIDIA A40, 8.6": (84, 1.74, 1.74, 37.4, 74.8, 149.7),
    "NVIDIA A10G, 8.6": (80, 1.71, 1.71, 35, 35, 70),
    "NVIDIA GeForce RTX 3090, 8.6": (82, 1.695, 1.695, 35.6, 35.6, 71),
    "NVIDIA L40, 8.9": (142, 2.49, 2.49, 90.5, 90.5, 181.05),
    "NVIDIA L40S, 8.9": (142, 2.52, 2.52, 91.6, 183, 362.05),
    "NVIDIA GeForce RTX 4090, 8.9": (128, 2.52, 2.52, 82.6, 82.6, 165.2),
    "NVIDIA H100 PCIe, 9.0": (114, 1.755, 1.62, 51.2, 378, 756),
    "NVIDIA H200, 9.0": (132, 1.98, 1.83, 66.9, 494.7, 989.4),
    "NVIDIA B200, 10.0": (148, 1.98, 1.86, 75, 1125, 2250),
    "NVIDIA GeForce RTX 5090, 12.0": (170, 2.407, 2.407, 104.8, 104.8, 209.5),
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition, 12.0": (188, 2.617, 2.617, 126, 251.9, 503.8),
}


@pytest.mark.parametrize("card", CARDS)
def test_rates(card, fake_on_gpu, folder):
    multiprocessors, clock, tensor_clock, *published = CARDS[card]
    flops = json.loads(fake_on_gpu(card)(folder, "profile", *FLAGS, "--json"))["flops"]
    for (math, peak), known in zip(flops.items(), published, strict=True):
        cycles = 1e9 * multiprocessors * (clock if math == "fp32" else tensor_clock)
        assert peak / CYCLES * cycles == pytest.approx(1e12 * known, rel=0.02), math


@pytest.mark.nvcc
def test_cuda_programs_have_ranges(compile_model):
    program = compile_model(MODEL, "--arch", "sm_90", target="cuda")
    assert b"NVTX_INJECTION64_PATH" in program.path.read_bytes() and b"enqueue steps" in program.path.read_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", ["persistent", "graph"])
def test_gpu(compile_model, schedule):
    profile = kernels(compile_model(MODEL, "--schedule", schedule, target="cuda"))
    check(profile, MODEL.read_text().splitlines())
    assert profile["schedule"] == schedule and profile["bandwidth"] > 1e11 and profile["flops"]["fp32"] > 1e12
    for kernel in profile["kernels"]:
        assert kernel["bound"] in ("memory", "arithmetic", "latency")
        assert kernel["of_bandwidth"] < 20 and kernel["of_flops"] < 1  # what fits the cache may exceed the memory's rate
    assert profile["us_sum"] > 0 and profile["us_per_step"] > 0


@pytest.mark.gpu
def test_table_gpu(compile_model):
    text = compile_model(MODEL, target="cuda")("profile", *FLAGS).stdout
    assert re.search(r"at most \d+ GB/s, [\d.]+ TFLOP/s in fp32", text) and re.search(r"^kernel .* bound +line$", text, re.M)
