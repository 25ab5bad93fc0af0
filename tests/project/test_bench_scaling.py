"""bench/scaling compiles, measures and compares, which it is tried for on the processor; its table has what was measured."""

import argparse
import importlib.machinery
import importlib.util
import json
import re
import sys

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "bench"))
import measured  # noqa: E402

pytestmark = pytest.mark.quick


@pytest.fixture
def scaling(tmp_path, monkeypatch):
    """The script, which leaves alone what lies in build/bench."""
    loader = importlib.machinery.SourceFileLoader("scaling", str(ROOT / "bench/scaling"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("scaling", loader))
    loader.exec_module(module)
    for where in module, measured:
        monkeypatch.setattr(where, "OUT", tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "scaling.jsonl")
    return module


def ours(gpus, shards, rate, sums=""):
    return {"model": "mnist", "peer": "mtc", "gpus": gpus, "shards": shards, "sums": sums, "us": 64e6 * gpus / rate, "examples_per_second": rate,
            "smi_bytes": 600_000_000, "planned_bytes": 2_000_000}


def theirs(mode, gpus, rate):
    return {"model": "mnist", "peer": f"PyTorch {mode}", "gpus": gpus, "us": 64e6 * gpus / rate, "examples_per_second": rate}


def test_the_table_compares_with_one_gpu(scaling):
    args = argparse.Namespace(cpu=False, arch="sm_90", present=["0", "1"], runs=5)
    scaling.device_name = lambda cuda: "NVIDIA H100"
    results = scaling.Results(False)
    for row in (ours(1, 0, 8e6), ours(1, 2, 6e6), ours(2, 2, 12e6, "nccl"), theirs("compile", 1, 1e6), theirs("DDP", 2, 1.2e6),
                theirs("compile(DDP)", 2, 1.6e6), {"model": "mnist", "peer": "mtc", "gpus": 2, "shards": 2, "sums": "host", "error": "it broke"}):
        results.put(row)
    page = scaling.page_of(args, results)
    expected = r"[\d.]+ us \| [\d.]+% \| 600 MB \| 2 MB \|"  # by the cost model
    assert re.search(r"\| mnist \| 1 \| no shards \| 8.0 us \| 8,000,000 \| 100.0% \| 64.0 us \| compile \| 100.0% \| " + expected, page)
    assert "| mnist | 1 | 2 shards | 10.7 us | 6,000,000 | 75.0% |" in page
    assert re.search(r"\| mnist \| 2 \| nccl \| 10.7 us \| 12,000,000 \| 75.0% \| 80.0 us \| compile\(DDP\) \| 80.0% \| " + expected, page)
    assert "- mnist, mtc, 2 GPUs, host: it broke" in page
    assert len(scaling.RESULTS.read_text().splitlines()) == 7


def test_what_cannot_be_compiled_is_told(scaling, capsys):
    program = scaling.Program("mnist", "cpu", 64, "mnist", 1)  # one shard is none
    program.compile(None)
    row = scaling.measured(scaling.Job(program, 1), ["0"], None, None)
    assert row["error"] == "it was not compiled" and "--shards 1 is a batch that is computed whole" in capsys.readouterr().err


def test_it_measures_several_processes(scaling, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench/scaling", "--target", "cpu", "--work", "mnist", "--gpus", "2", "--runs", "1", "--no-peers"])
    scaling.main()
    rows = [json.loads(line) for line in scaling.RESULTS.open()]
    assert [(row["gpus"], row["shards"], row["sums"]) for row in rows] == [(1, 0, ""), (1, 2, ""), (2, 2, "host")]
    assert all(row["us"] > 0 and row["examples_per_second"] == pytest.approx(1e6 * row["batch"] / row["us"], rel=1e-4) for row in rows)
    assert capsys.readouterr().out == (scaling.OUT / "scaling.md").read_text()
