"""Long rows that several stages read, held in shared memory: which rows those are, the room that their launches ask for, and on a
GPU the same numbers as on the CPU, and the same bits with and without the room."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import ROOT
from library import Library

ROWS = 64  # of an example: 2048 of a batch
MODEL = """data {{
  train = npy("x", "label")
  x     : f32[{rows}, 32]
  label : class[{classes}][{rows}]
}}

model {{
  scores = linear(x, {classes}, bias = false)
}}

train {{
  loss      = {loss}
  optimizer = sgd(0.5)
  precision = {precision}
  batch     = 32
}}
"""


def model(classes, precision="fp32", loss="cross_entropy(scores, label)"):
    return MODEL.format(rows=ROWS, classes=classes, precision=precision, loss=loss)


def source(mtc, tmp_path, text, *flags):
    path = tmp_path / "m.mt"
    path.write_text(text)
    done = mtc("--emit=cu", path, *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def held(text):
    """What is held: numbers in a row, and their type."""
    types = re.findall(r" wanted_bytes = with_row<(\w+)>", text)
    assert len(types) == len(re.findall(r"^ +hold_row<", text, re.M))
    return types


@pytest.mark.parametrize(
    "classes, precision, types",
    [
        (24576, "fp32", {"float"}),
        (49152, "bf16", {"bfloat16"}),
        (58048, "fp32", {"float"}),  # 227 KB less 256 bytes
        (58052, "fp32", set()),  # does not fit
        (49153, "fp32", set()),  # rows do not begin at whole packs
        (8192, "fp32", set()),  # the cache holds them
        (8192, "bf16", set()),
    ],
)
def test_long_rows_are_held_where_they_fit(classes, precision, types, mtc, tmp_path):
    assert set(held(source(mtc, tmp_path, model(classes, precision)))) == types


@pytest.mark.parametrize("classes, precision, type, pack", [(24576, "fp32", "float", 4), (49152, "bf16", "bfloat16", 8)])
def test_stages_read_the_row_only_where_it_is_held(classes, precision, type, pack, mtc, tmp_path):
    """In packs of 16 bytes, but for rows that become floats as they are stored."""
    text = source(mtc, tmp_path, model(classes, precision))
    kernels = re.findall(r"^struct \w+ \{.*?^\};", text, re.M | re.S)
    holding = [kernel for kernel in kernels if "hold_row<" in kernel]
    assert holding
    assert sum(f"load_pack<{pack}>(" in kernel for kernel in holding) >= 1
    for kernel in holding:
        row, tensor = re.search(rf"const {type} \*(\w+)\) {{", kernel)[1], re.search(r"hold_row<\w+>\(t\.(\w+)", kernel)[1]
        assert len(re.findall(rf"load_pack<[48]>\({row} \+ j\)", kernel)) >= 2
        assert not re.search(rf"(load_pack<[48]>\(|= |\()t\.{tensor}\b(?! \+ i \* \w+, shared)", kernel)


def test_kernels_ask_for_room(mtc, tmp_path):
    """They want the row and need only what their team does; those without rows that are held say nothing of it."""
    text = source(mtc, tmp_path, model(49152, "bf16"))
    wanted = [kernel for kernel in re.findall(r"^struct \w+ \{.*?^\};", text, re.M | re.S) if "hold_row<" in kernel]
    assert wanted
    for kernel in wanted:
        assert re.search(r"shared_bytes = team_shared<\w+>\(0\);\n.* wanted_bytes = with_row<\w+>\(shared_bytes, ", kernel), kernel
    assert "wanted" not in source(mtc, tmp_path, model(8192))


def test_a_row_that_others_read_is_not_held(mtc, tmp_path):
    """Its neighbour is read too, and is in the shared memory of another block."""
    shifted = "cross_entropy(scores + pad(slice(scores, 0, 1, 64), 0, 0, 1), label)"
    text = source(mtc, tmp_path, model(24576, loss=shifted))
    kernels = re.findall(r"^struct \w+ \{.*?^\};", text, re.M | re.S)
    assert any("Whole team" in kernel and "+ 1)" in kernel for kernel in kernels)
    assert not any("hold_row<" in kernel and "+ 1)" in kernel for kernel in kernels)


def test_rows_beside_other_long_rows_are_not_held(mtc, tmp_path):
    """Few threads would be left to stream the others."""
    text = model(24576, loss="cross_entropy(scores, label) + cross_entropy(others, label)")
    text = text.replace("\n}\n\ntrain", "\n  others = linear(x, 24576)\n}\n\ntrain").replace(
        "  batch ", "  predict   = softmax(scores)\n  batch "
    )
    kernels = re.findall(r"^struct \w+ \{.*?^\};", source(mtc, tmp_path, text), re.M | re.S)
    both = [kernel for kernel in kernels if "Whole team" in kernel and "scores_max" in kernel and "others_max" in kernel]
    assert both and not any("hold_row<" in kernel for kernel in both)


def test_the_cpu_holds_nothing(mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(model(49152, "bf16"))
    done = mtc("--emit=c", path)
    assert done.returncode == 0 and "_row" not in done.stdout and "hold_" not in done.stdout


# ---- on a GPU ----


def data(classes):
    random = np.random.default_rng(4)
    x = random.standard_normal((64, ROWS, 32)).astype(np.float32)
    return [x, random.integers(0, classes, (64, ROWS)).astype(np.int32)]


def losses(path, classes, weights=None):
    program = Library(path, np.float32)
    program.set_data(data(classes))
    found = program.train(3, 1)[:, 0]
    program.close()
    return found


@pytest.mark.gpu
@pytest.mark.parametrize(
    "classes, precision, error",
    [(24576, "fp32", 1e-5), (49152, "bf16", 1e-3), (58048, "fp32", 1e-5), (58052, "fp32", 1e-5), (24577, "fp32", 1e-5)],
)
def test_losses_are_those_of_the_cpu(classes, precision, error, compile_model):
    text = model(classes, precision)
    cpu, gpu = (losses(compile_model(text, "--shared", target=target).path, classes) for target in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu, cpu, rtol=error)


@pytest.mark.gpu
def test_same_bits_without_room(mtc, compile_model, tmp_path, monkeypatch):
    """On a device that has no such memory for a block, the stages read the row where it lies."""
    text = model(49152, "bf16")
    with_room = losses(compile_model(text, "--shared", target="cuda").path, 49152)
    for folder in ("kernels_lib", "runtime"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "build").mkdir()
    shutil.copy(ROOT / "build" / "libmtc_runtime.a", tmp_path / "build")
    launches = tmp_path / "kernels_lib" / "cuda" / "launches.cuh"
    text_of_choice = launches.read_text()
    asked = "allow_shared(launch.kernel, launch.wanted)"
    assert asked in text_of_choice
    refused = f"(launch.wanted > launch.shared ? cudaErrorInvalidValue : {asked})"
    launches.write_text(text_of_choice.replace(asked, refused))
    monkeypatch.setenv("MTC_HOME", str(tmp_path))
    path = tmp_path / "m.mt"
    path.write_text(text)
    done = mtc(path, "--shared", "-o", tmp_path / "m.so", "--target", "cuda", "--keep", tmp_path / "k", "--no-cache")
    assert done.returncode == 0, done.stderr
    assert losses(tmp_path / "m.so", 49152).tobytes() == with_room.tobytes()


@pytest.mark.gpu
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_sanitizer_finds_nothing(tool, compile_model, tmp_path):
    for name, values in zip(("x", "label"), data(24576)):
        np.save(tmp_path / f"{name}.npy", values)
    text = model(24576).replace('npy("x", "label")', 'npy("x.npy", "label.npy")')
    program = compile_model(text, target="cuda")
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "3", program.path, "--data", tmp_path]
    done = subprocess.run([*map(str, command), "--limit-steps", "1", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
