"""mtc --format: the same program in the standard layout, every comment kept."""

import re

import pytest

from conftest import ROOT

MODELS = sorted([*(ROOT / "models").glob("*.mt"), *(ROOT / "tests" / "golden").glob("*.mt")])


def comments(text):
    return re.findall(r"#.*", text)


def squeezed(text):
    """The text without anything that layout may change."""
    return re.sub(r"\s+", "", re.sub(r"#.*", "", text))


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_format(model, mtc, tmp_path):
    once = mtc("--format", model)
    assert once.returncode == 0, once.stderr
    text = model.read_text()
    assert [line.rstrip() for line in comments(once.stdout)] == [line.rstrip() for line in comments(text)]
    assert squeezed(once.stdout) == squeezed(text)
    formatted = tmp_path / "formatted.mt"
    formatted.write_text(once.stdout)
    assert mtc("--format", formatted).stdout == once.stdout
    assert mtc("--format", "--check", formatted).returncode == 0


def test_models_are_formatted(mtc):
    for model in (ROOT / "models").glob("*.mt"):
        assert mtc("--format", "--check", model).returncode == 0, model


def test_in_place(mtc, tmp_path):
    model = tmp_path / "model.mt"
    model.write_text((ROOT / "models" / "mnist.mt").read_text().replace(" = ", "="))
    assert mtc("--format", "--check", model).returncode == 1
    assert mtc("--format", "--in-place", model).returncode == 0
    assert mtc("--format", "--check", model).returncode == 0


def test_a_broken_file_is_left_alone(mtc, tmp_path):
    model = tmp_path / "model.mt"
    model.write_text("model {\n  h = relu(\n}\n")
    done = mtc("--format", "--in-place", model)
    assert done.returncode == 65
    assert model.read_text() == "model {\n  h = relu(\n}\n"
