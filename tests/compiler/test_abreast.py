"""Products of one value with several weights, whose results are put side by side, are one product: which those are, and that gradients
and losses stay what they were."""

import numpy as np
import pytest
from conftest import run_mtc
from evaluator import evaluate, parse
from test_images import leaves_of

MODEL = """data {{
  train = npy("x", "y")
  x : f32[24, 32]
  y : f32[24, 32]
}}

model {{
{lines}
}}

train {{
  loss      = mse(z, y)
  optimizer = adam(0.01)
  batch     = 2
}}
"""
PLAIN = ["q = linear(x, 32, bias = false)", "k = linear(x, 16, bias = false)", "v = linear(x, 16, bias = false)"]
TURNED = "z = attention(rotary(q, 4), rotary(k, 2), v, heads = 4, kv_heads = 2, causal = true)"


def graphs(folder, lines, precision="bf16", stage="grad"):
    path = folder / "m.mt"
    path.write_text(MODEL.format(lines="\n".join(f"  {line}" for line in lines)))
    done = run_mtc(f"--emit={stage}", "--precision", precision, path)
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


def widths(graph):
    """Columns of the products of the examples with weights."""
    products = [node for node in graph if node.op == "matmul" and "tb" in node.attrs]
    return sorted(node.shape[-1] for node in products)


@pytest.mark.parametrize("graph", ["train", "eval"])
def test_queries_keys_and_values_are_one_product(graph, tmp_path):
    assert widths(graphs(tmp_path, [*PLAIN, TURNED])[graph]) == [64]
    assert widths(graphs(tmp_path, [*PLAIN, TURNED], "fp32")[graph]) == [16, 16, 32]


def test_so_are_their_gradients(tmp_path):
    products = [node for node in graphs(tmp_path, [*PLAIN, TURNED], stage="simple")["train"] if node.op == "matmul"]
    assert sorted(node.shape for node in products) == [(48, 64), (64, 32)]  # x has no gradient


@pytest.mark.parametrize("weights", [PLAIN, ["w = weight([32, 16], normal(0, 1))", *PLAIN[:1], "k = matmul(x, w)", PLAIN[2]]])
def test_the_numbers_stay(weights, tmp_path):
    """Before anything is rounded, the same as those of products apart."""
    apart, together = (graphs(tmp_path, [*weights, TURNED], precision)["train"] for precision in ("fp32", "bf16"))
    before, after = (evaluate(graph, leaves_of(apart), rows=2) for graph in (apart, together))
    assert len(widths(together)) < len(widths(apart))
    assert after.reports["loss"] == pytest.approx(before.reports["loss"], rel=1e-12)
    assert after.assigned.keys() == before.assigned.keys()
    for name, value in before.assigned.items():
        np.testing.assert_allclose(after.assigned[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "lines, left",
    [
        ([line.replace(", bias = false", "") for line in PLAIN] + [TURNED], [16, 16, 32]),  # rounded behind the bias
        ([*PLAIN, TURNED.replace("rotary(q, 4)", "q * 2")], [32, 32]),  # q is rounded behind the map
        (["g = linear(x, 32, bias = false)", "u = linear(x, 32, bias = false)", "z = silu(g) * u"], [32, 32]),  # meet, are not put side by side
        ([PLAIN[0], "k = linear(x * 2, 16, bias = false)", PLAIN[2], TURNED], [16, 48]),  # of another value
    ],
)
def test_others_stay_apart(lines, left, tmp_path):
    assert widths(graphs(tmp_path, lines)["train"]) == left
