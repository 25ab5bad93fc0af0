"""Attention in graphs, kernels and plans: what it reads as it lies, what is stored, what bf16 does; a compiled step against its
graph. Values and gradients of the operator itself are among the cases of ops_cases.py."""

import re

import numpy as np
import pytest
from conftest import run_mtc
from evaluator import evaluate, parse
from library import Library
from random_port import permutation, shuffle_key

PACKED = ["qkv = linear(tokens, 48)",
          "mixed = attention(slice(qkv, 1, 0, 16), slice(qkv, 1, 16, 32), slice(qkv, 1, 32, 48), heads = 2, causal = true)"]
GROUPED = ["q = linear(tokens, 32)", "kv = linear(tokens, 32)",
           "mixed = attention(q, slice(kv, 1, 0, 16), tanh(slice(kv, 1, 16, 32)), heads = 4, kv_heads = 2, window = 5, causal = true)"]
LENGTH, WIDTH, BATCH = 20, 16, 4


def model(lines, result="mixed"):
    body = "\n".join(f"  {line}" for line in lines)
    return f"""data {{
  train = idx("tokens", "probes")
  tokens : f32[{LENGTH}, {WIDTH}]
  probe  : f32[{LENGTH}, 32]
}}
model {{
{body}
  y = linear({result}, 32)
}}
train {{
  loss      = sum(y * probe)
  predict   = y
  optimizer = sgd(0, momentum = 0.9)
  batch     = {BATCH}
}}
"""


@pytest.fixture
def emit(tmp_path):
    """emit(lines, stage, *flags): what mtc prints of a model."""

    def run(lines, stage, *flags, **options):
        path = tmp_path / "case.mt"
        path.write_text(model(lines, **options))
        done = run_mtc(f"--emit={stage}", *flags, path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def train_part(text):
    return text.partition("\neval:")[0]


def leaves_of(graph):
    random = np.random.default_rng(3)
    scale = {"field": 1, "weight": WIDTH**-0.5}
    leaves = {node.name: scale[node.op] * random.normal(size=node.shape) for node in graph if node.op in scale}
    return leaves | {node.name: np.zeros(node.shape) for node in graph if node.op == "state"}


# ---- what is read as it lies ----

@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_packed_product_is_read_as_it_lies(precision, emit):
    """No slice and no padding is left, forward or backward; the gradient of the packed value is the call's result."""
    graph = parse(emit(PACKED, "simple", "--precision", precision))["train"]
    assert not {"slice", "pad"} & {node.op for node in graph}
    calls = {node.op: node for node in graph if node.op in ("attend", "attend_grad")}
    assert graph[calls["attend"].inputs[0]].name == "qkv"
    assert calls["attend_grad"].name == "d_qkv"


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_packed_product_needs_no_kernel_beside_the_calls(precision, emit):
    text = train_part(emit(PACKED, "fused", "--precision", precision))
    assert re.findall(r"^  call (\w+)", text, re.M) == ["mixed", "d_qkv"]
    assert "attend of %" in text and "attend_grad of %" in text
    assert ("tokens_reshape" in re.findall(r"^  loop (\w+)", text, re.M)) == (precision == "fp32")  # the field as a matrix


def test_what_is_made_apart_is_put_together_once(emit):
    graph = parse(emit(GROUPED, "simple"))["train"]
    assert sum(node.op == "attend" for node in graph) == sum(node.op == "attend_grad" for node in graph) == 1
    assert graph[next(node for node in graph if node.op == "attend").inputs[0]].shape == (BATCH, LENGTH, 64)


def test_a_field_is_copied_in_the_order_of_the_batch(emit):
    lines = ["mixed = attention(slice(tokens, 1, 0, 8), slice(tokens, 1, 8, 12), slice(tokens, 1, 12, 16), heads = 4, kv_heads = 2)"]
    text = emit(lines, "c")
    assert re.search(r"t->tokens_2\[[^;]*=\s+t->tokens\[row\(batch", text)
    assert "attend(&shape, t->tokens_2," in text


# ---- nodes ----

def test_equal_attentions_are_one(emit):
    again = [*PACKED, PACKED[1].replace("mixed", "again")]
    graph = parse(emit(again, "simple", result="mixed + again"))["train"]
    assert sum(node.op == "attend" for node in graph) == 1


@pytest.mark.parametrize("change", [("causal = true", "causal = false"), ("heads = 2", "heads = 4"),
                                    ("true)", "true, window = 3)"), ("true)", "true, scale = 0.5)"),
                                    ("heads = 2", "heads = 2, scale = 0.3")])
def test_unlike_attentions_are_two(change, emit):
    again = [*PACKED, PACKED[1].replace("mixed", "again").replace(*change)]
    graph = parse(emit(again, "simple", result="mixed + again"))["train"]
    assert sum(node.op == "attend" for node in graph) == 2


def test_a_window_of_all_positions_is_none(emit):
    again = [*PACKED, PACKED[1].replace("mixed", "again").replace("true)", f"true, window = {LENGTH})")]
    graph = parse(emit(again, "simple", result="mixed + again"))["train"]
    assert sum(node.op == "attend" for node in graph) == 1


# ---- what is stored ----

def test_sums_are_stored_in_training_alone(emit):
    text = emit(PACKED, "cu")
    calls = re.findall(r"attend<Shape>\(t\.(\w+), t\.(\w+), (\S+), 0\.35355339f, tile, shared\)", text)
    assert calls == [("qkv", "mixed", "t.mixed_sums"), ("eval_qkv", "eval_mixed", "nullptr")]


def test_no_scores_are_stored(emit):
    """What a step stores grows with the length, not with its square."""
    stored = re.findall(r"(?:bf16|f32)\[(\d+(?:, \d+)*)\]", emit(PACKED, "plan"))
    assert max(np.prod([int(size) for size in dims.split(", ")]) for dims in stored) == BATCH * LENGTH * 48


def test_bf16_is_stored_in_two_bytes(emit):
    plan = train_part(emit(PACKED, "plan", "--precision", "bf16").partition("train: values")[2])
    kinds = dict((name, kind) for kind, name in re.findall(r"(\w+)\[[\d, ]+\] +[\d-]+ +(\w+)", plan))
    assert {kinds[name] for name in ("qkv", "mixed", "d_qkv")} == {"bf16"} and kinds["mixed_sums"] == "f32"


# ---- the schedule ----

def test_a_step_with_attention_is_a_graph(emit):
    text = train_part(emit(PACKED, "schedule", "--target", "cuda"))
    assert ", graph" in text and "cluster" not in text and "shared memory" not in text
    assert ", persistent" in train_part(emit(PACKED, "schedule", "--target", "cuda", "--schedule", "persistent"))


def test_calls_wait_for_their_operands(emit):
    phases = train_part(emit(PACKED, "schedule", "--target", "cuda")).split("\n  phase ")
    place = {name: k for k, phase in enumerate(phases) for name in re.findall(r"^    (\w+) ", phase, re.M)}
    assert place["qkv"] < place["mixed"] < place["y_layer"] < place["d_qkv_dots"] < place["d_qkv"] < place["d_qkv_weight"]


def test_arithmetic_of_what_is_seen(emit):
    """Two products of heads of 8 for each pair of positions that see each other; five in the gradient."""
    flops = dict(re.findall(r"^    (\w+) +\d+ tiles +(\d+) FLOP", emit(PACKED, "schedule"), re.M))
    pairs = LENGTH * (LENGTH + 1) // 2
    assert int(flops["mixed"]) == 2 * 2 * pairs * 16 * BATCH and int(flops["d_qkv"]) == 5 * 2 * pairs * 16 * BATCH


# ---- numbers ----

@pytest.mark.parametrize("lines", [PACKED, GROUPED], ids=["packed", "grouped"])
def test_bf16_is_close_to_fp32(lines, emit):
    graphs = [parse(emit(lines, "simple", "--precision", precision))["train"] for precision in ("fp32", "bf16")]
    leaves = leaves_of(graphs[0])
    exact, rounded = (evaluate(graph, leaves, rows=BATCH) for graph in graphs)
    for name, value in exact.assigned.items():
        error = np.linalg.norm(rounded.assigned[name] - value) / (np.linalg.norm(value) + 1e-9)
        assert error < 0.02, name


@pytest.mark.parametrize("lines", [PACKED, GROUPED], ids=["packed", "grouped"])
@pytest.mark.parametrize("precision, tolerance", [("fp32", 1e-5), ("bf16", 2e-2)])
def test_a_compiled_step(lines, precision, tolerance, emit, tmp_path):
    """The program on the processor against the graph, roundings included."""
    graph = parse(emit(lines, "simple", "--precision", precision))["train"]
    leaves = leaves_of(graph)
    path = tmp_path / "library.so"
    made = run_mtc(tmp_path / "case.mt", "--shared", "-o", path, "--target", "cpu", "--precision", precision)
    assert made.returncode == 0, made.stderr
    library = Library(path, np.float32)
    data = {name: leaves[name].astype(np.float32) for name in ("tokens", "probe")}
    library.set_data(list(data.values()))
    for name, value in leaves.items():
        if name not in data:
            library.set(name, value)
    order = permutation(shuffle_key(1, 0), BATCH)
    result = evaluate(graph, leaves | {name: values[order] for name, values in data.items()}, rows=BATCH)
    library.train(1, 1)
    for name, value in result.assigned.items():
        if name.endswith(".momentum"):
            error = np.abs(library.get(name, value.shape) - value).max()
            assert error < tolerance * np.abs(value).max(), name
    library.close()
