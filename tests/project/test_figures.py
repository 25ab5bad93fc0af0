"""docs/figures.md says what bench/figures.json says; its tables have what was measured, and what was not stays empty."""

import importlib.machinery
import importlib.util
import json
import sys

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "bench"))
from figures_ours import BATCHES, BLOCKS, Ours  # noqa: E402
from figures_page import page, write_page  # noqa: E402
from vision_page import error_table, tables  # noqa: E402

pytestmark = pytest.mark.quick

MACHINE = {"gpu": "NVIDIA H100, 580", "cpu": "a CPU", "threads": 16, "torch": "2.11", "numpy": "2.4"}
TARGETS = ["cpu", "fp32", "bf16"]


def passes(pairs):
    """Of ResNet-18: a block takes 100 us, 2000 of the processor."""
    return [{"batch": batch, "blocks": blocks, "target": target, "us": (1 + blocks) * (2000.0 if target == "cpu" else 100.0),
             "planned_bytes": 51_000_000} for batch, blocks in pairs for target in TARGETS]


def results():
    square = {"size": 1024, "tile": "64x64x32 8x4", "kernel_us": 100.0, "naive_us": 900.0, "coalesced_us": 700.0,
              "shared_tile_us": 500.0, "cublas_us": 50.0, "program_us": 110.0, "cpu_naive_us": 2e6, "cpu_naive_rows": 128,
              "cpu_program_us": 4321.0}
    rows = {"products": [square],
            "elements": [{"operation": "relu(x)", "bytes": 2 ** 27, "program_us": 67.108864, "cpu_program_us": 6710.8864}],
            "forward": passes((batch, 8) for batch in BATCHES), "layers": passes((64, blocks) for blocks in BLOCKS),
            "training": [{"model": "cnn", "target": "fp32", "figure": 0.9876, "train_s": 0.4, "process_s": 0.9,
                          "device_bytes": 61_000_000, "torch_figure": 0.98, "torch_train_s": 2.0, "torch_bytes": 310_000_000}],
            "copies": [{"way": "on the device", "us": 67.108864}]}
    return {part: {"machine": MACHINE, "rows": found} for part, found in rows.items()}


def test_the_tables_have_what_was_measured():
    text = page(results())
    assert "| 1024 | 900.0 us | 700.0 us | 500.0 us | 100.0 us | 110.0 us | 50.0 us |  | 21.5, 42.9 | 64x64x32 8x4 |" in text
    assert "the rest reckoned: 1024: 128." in text
    assert "| `relu(x)` | 67.1 us | 2,000 |  | 6.71 ms |  | 100 |" in text
    assert "moves 2,000 GB/s" in text
    assert "| 16 | 900.0 us | 17,778 | 51 MB |  |  |  | 18.00 ms |  | 20 |" in text
    assert "| layer3.1 | 100.0 us |  | 100.0 us |  | 2.00 ms |  | 20 |" in text
    assert "| whole | 900.0 us |  | 900.0 us |  | 18.00 ms |  | 20 |" in text
    assert "| cnn.mt, GPU | 98.76% | 0.40 s | 0.90 s | 61 MB | 98.00% | 2.00 s | 310 MB |" in text
    assert "## Attention" not in text


def test_the_picture_has_a_curve_for_each_target(tmp_path):
    write_page(results(), tmp_path)
    picture = (tmp_path / "figures.svg").read_text()
    assert all(f"mtc, {target}" in picture for target in TARGETS)


def test_what_is_measured_are_models(mtc, tmp_path):
    """Those of one size: the front end takes the others alike."""
    ours = Ours("sm_90")
    programs = [ours.product(256, "cpu"), ours.element("layer_norm(x)", "cpu"), ours.element("sum(x)", "cpu")]
    for program in programs:
        (tmp_path / "m.mt").write_text(program.text)
        assert mtc("--emit=graph", tmp_path / "m.mt").returncode == 0
    assert mtc("--emit=graph", "bench/resnet18_prefix.mt", "--set", "blocks=3", cwd=ROOT).returncode == 0


@pytest.fixture(scope="module")
def vision():
    loader = importlib.machinery.SourceFileLoader("vision", str(ROOT / "bench/vision"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("vision", loader))
    loader.exec_module(module)
    return module


def test_vision_models_are_beside_their_peers(vision):
    theirs = {"us": 2000.0, "peer": "PyTorch compile", "memory": 3_000_000}
    ours = {"us_per_step": 1000.0, "planned_bytes": 1_000_000, "device_bytes": 2_000_000}
    trained = vision.row_of("train", vision.Variant("resnet50", "bf16", 128), ours, theirs)
    forward = vision.row_of("forward", vision.Variant("resnet18", "tf32x3", 64), {"us_per_batch": 500.0}, {}, difference=2e-7)
    product = {"work": "products", "shape": "4096x4096x4096 NT", "us": 4000.0, "cublas_us": 3000.0, "tile": "256x128x16 16x8"}
    text = tables([trained, forward, product])
    assert "| resnet50 | 128 | bf16 | 128,000 | 64,000 | compile | 2.00 | 1.000 | 1 MB | 2 MB | 3 MB |" in text
    assert "| 64 | tf32x3 | 128,000 |  |  |  | 0.500 | 2.0e-07 |" in text
    assert "| 4096x4096x4096 NT | 4000.0 | 3000.0 | 75.0% | 256x128x16 16x8 |" in text


def test_rows_of_another_run_stay_where_the_machine_is_the_same(vision):
    def row(batch, us):
        return {"work": "forward", "model": "resnet18", "batch": batch, "precision": "bf16", "us": us}
    old = vision.joined({}, [row(1, 10.0), row(16, 20.0)], MACHINE)
    assert vision.joined(old, [row(16, 19.0)], MACHINE)["rows"] == [row(1, 10.0), row(16, 19.0)]
    assert vision.joined(old, [row(16, 19.0)], {**MACHINE, "gpu": "another"})["rows"] == [row(16, 19.0)]


def test_errors_are_beside_each_other():
    sizes = (3, (24, 9, 11), (36, (3, 3)), (2, 1), (1, 1), (1, 1), 3)
    rows = [{"case": "groups", "sizes": sizes, "precision": precision, "outputs": error, "image": 2 * error, "filters": error}
            for precision, error in (("fp32", 1e-7), ("tf32x3", 2e-7))]
    text = error_table(rows)
    assert ("| groups | 3 x 24 x 9 x 11 to 36 | 3 x 3 | 2, 1 | 1 | 1 | 3 | 1.0e-07, 2.0e-07, 1.0e-07 | 2.0e-07, 4.0e-07, 2.0e-07 |"
            in text)
    assert text[-2].endswith("| 2.0e-07 | 4.0e-07 |")


@pytest.mark.parametrize("model", ["resnet50", "inverted", "unet128"])
def test_models_of_bench_compile(mtc, model):
    assert mtc("--emit=grad", f"bench/{model}.mt", cwd=ROOT).returncode == 0


@pytest.mark.skipif(not (ROOT / "bench/figures.json").exists(), reason="nothing was measured yet")
def test_the_document_is_what_was_measured(tmp_path):
    write_page(json.loads((ROOT / "bench/figures.json").read_text()), tmp_path)
    for name in "figures.md", "figures.svg":
        assert (tmp_path / name).read_text() == (ROOT / "docs" / name).read_text(), f"bench/figures page writes docs/{name}"
