"""What the documentation shows works: its models compile, its reference of operators is the compiler's own.

Fenced blocks of docs/*.md and README.md:   ```mt         a whole model, or the statements of a model block
                                            ```mt error   refused
"""

import re

import pytest

from conftest import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md"]
BLOCK = re.compile(r"^```mt( error)?\n(.*?)^```", re.M | re.S)

AROUND_STATEMENTS = """\
data {{
  train = idx("images", "labels")
  x     : f32[8, 16]
  label : class[10]
}}
model {{
{statements}
  features = flatten(x)
  scores   = linear(features, 10)
}}
train {{
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 4
  epochs    = 1
}}
"""


def blocks():
    for page in filter(lambda page: page.exists(), PAGES):
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            yield pytest.param(match[2], bool(match[1]), id=f"{page.name}:{line}")


def whole(text):
    if re.search(r"^train \{", text, re.M):
        return text
    return AROUND_STATEMENTS.format(statements=text)


@pytest.mark.parametrize("text, refused", list(blocks()))
def test_block(text, refused, mtc, tmp_path):
    model = tmp_path / "block.mt"
    model.write_text(whole(text))
    done = mtc("--emit=plan", model)
    assert (done.returncode == 65) if refused else (done.returncode == 0), done.stderr


def test_operator_reference(mtc, check_text):
    check_text(ROOT / "docs" / "operators.md", mtc("--operators").stdout)


def test_links():
    """Every relative link of a page leads to a file."""
    for page in filter(lambda page: page.exists(), PAGES):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
