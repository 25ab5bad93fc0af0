"""Lines of the model in what mtc and its programs say, where the line is in a file that the model includes."""

import json
import subprocess

import pytest

LAYERS = """# Pieces of a model.
fn block(x, width) {
  hidden = relu(linear(x, width))
  return tanh(linear(hidden, width))
}
"""
MODEL = """include "parts/layers.mt"
data {
  train = table([[0.5, 1, 0], [1, -2, 1]])
  x     : f32[2]
  label : class[2]
}
model {
  first = block(x, 4)
  y     = linear(first, 2)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 2
  epochs    = 2
}
"""
HIDDEN = "hidden = relu(linear(x, width))"
QUICK = ["--runs", 1, "--steps", 2]


def write(folder, layers):
    (folder / "models" / "parts").mkdir(parents=True)
    (folder / "models" / "parts" / "layers.mt").write_text(layers)
    (folder / "models" / "net.mt").write_text(MODEL)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("lines"), LAYERS)


def test_a_profile_names_the_file(folder, compile_model):
    program = compile_model(folder / "models" / "net.mt")
    kernels = json.loads(program("profile", "--json", *QUICK).stdout)["kernels"]
    lines = {(kernel.get("file"), kernel["line"]): kernel["text"] for kernel in kernels}
    assert lines["parts/layers.mt", 3] == HIDDEN and all(line[0] in (None, "parts/layers.mt") for line in lines)
    table = program("profile", *QUICK).stdout
    assert f"  parts/layers.mt:3: {HIDDEN}\n" in table and "  9: y = linear(first, 2)\n" in table


def test_a_divergence_names_the_file(tmp_path, mtc):
    folder = write(tmp_path, LAYERS.replace("tanh", "log"))
    assert mtc("models/net.mt", "-o", "net", "--target", "cpu", cwd=folder).returncode == 0
    done = subprocess.run(["./net"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 65 and "\n  models/parts/layers.mt:4: return log(linear(hidden, width))\n" in done.stderr
    assert "\n  models/net.mt:12: loss = cross_entropy(y, label)\n" in done.stderr


def test_a_gradient_check_names_the_file(folder, mtc):
    text = mtc("gradcheck", "models/net.mt", cwd=folder).stdout
    assert f"  parts/layers.mt:3: {HIDDEN}\n" in text and "  9: y = linear(first, 2)\n" in text


def test_generated_code_names_the_file(folder, mtc):
    """As the model's own path: nothing depends on where the folder is."""
    text = mtc("--emit=c", "models/net.mt", cwd=folder).stdout
    assert f"// {HIDDEN}" in text and " models/parts/layers.mt:3\n" in text and " models/net.mt:9\n" in text
    absolute = mtc("--emit=c", folder / "models" / "net.mt").stdout
    assert " parts/layers.mt:3\n" in absolute and " net.mt:9\n" in absolute and str(folder) not in absolute


def rows(text):
    return {row.split()[1]: row.split() for row in text.splitlines() if len(row.split()) > 2}


def test_a_summary_names_the_file(folder, mtc):
    shown = rows(mtc("--summary", "models/net.mt", cwd=folder).stdout)
    assert shown["first.hidden"][0] == "parts/layers.mt:3" and shown["first"][0] == "parts/layers.mt:4" and shown["y"][0] == "9"


@pytest.mark.parametrize("line, owner", [
    ('linear(x, 4, name = "h")', "z"),           # called like another value
    ('linear(x, 4)', "z"),
    ('relu(\n    linear(x, 4, name = "h")) + 1', "z"),
])
def test_weights_are_of_the_line_that_makes_them(line, owner, tmp_path, mtc):
    text = MODEL.partition("\n")[2].replace("first = block(x, 4)", f"z = {line}\n  h = relu(z)").replace("first, 2", "h, 2")
    (tmp_path / "case.mt").write_text(text)
    shown = rows(mtc("--summary", tmp_path / "case.mt").stdout)
    parameters = {name: next(cell for cell in row[2:] if "[" not in cell and "]" not in cell) for name, row in shown.items()
                  if row[0].isdigit()}
    assert parameters[owner] == "12" and parameters["h"] == "0" and parameters["y"] == "10"


def test_a_weight_of_a_line_of_its_own(tmp_path, mtc):
    text = MODEL.partition("\n")[2].replace("first = block(x, 4)", "first = weight([2], constant(1))\n  h = x * first").replace("first, 2", "h, 2")
    (tmp_path / "case.mt").write_text(text)
    shown = rows(mtc("--summary", tmp_path / "case.mt").stdout)
    assert shown["first"][:4] == ["7", "first", "f32[2]", "2"] and shown["h"][3] == "0"
