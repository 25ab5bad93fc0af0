"""bench/costs holds what is predicted of each kernel against what was measured."""

import importlib.machinery
import importlib.util
import sys

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "bench"))
pytestmark = pytest.mark.quick

loader = importlib.machinery.SourceFileLoader("costs", str(ROOT / "bench/costs"))
costs = importlib.util.module_from_spec(importlib.util.spec_from_loader("costs", loader))
loader.exec_module(costs)


def test_predictions_are_of_the_schedule(mtc):
    """Of each kernel of a training step one; those of evaluations are not meant."""
    text = mtc("--emit=schedule", "models/mnist.mt", cwd=ROOT).stdout.partition("\neval:")[0]
    found = {name: (float(us), cut) for name, us, cut in costs.KERNEL.findall(text)}
    assert len(found) == text.count(" FLOP ") and found["h"][1].startswith("tile ") and 0.5 < found["h"][0] < 5


def test_what_is_far_is_listed():
    predictions = {"a": (100.0, "tile 128x256x64, bf16, 2x4 warps, 4 panels"), "b": (10.0, "64 rows, a warp each"), "c": (1.0, "8 rows, a block each")}
    kernels = costs.compared(predictions, {"a": 140.0, "b": 60.0, "c": 1.9, "gone": 5.0})
    text = costs.page("m.mt", kernels, False)
    assert "| all | 1 of 3 | 69% | 202 us | 100% | 1.82 |" in text and "| products, bf16 | 1 of 1 | 100% | 140 us | 69% | 1.40 |" in text
    assert "| b | 64 rows, a warp each | 10.0 us | 60.0 us | 6.00 |" in text
    assert not any(line.startswith(("| a |", "| c |")) for line in text)
