"""What the documentation shows works: its models compile, its reference of operators is the compiler's own.

Fenced blocks of docs/*.md and README.md:   ```mt         a whole model, or a part of one
                                            ```mt error   refused
A comment before a fence says where the block is from, and `make bless` writes it anew:
    <!-- models/mnist.mt -->         the file
    <!-- models/mnist.mt: h, logits -->    functions of the program that mtc makes of it, in the language of the fence
The blocks ```python of README.md and docs/python.md run one after the other, those with a second word, as ```python torch, where
that module is installed.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

pytestmark = pytest.mark.quick

PAGES = sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md"]
BLOCK = re.compile(r"^```mt( error)?\n(.*?)^```", re.M | re.S)

# A param, an include, a function or a block; what is left of an example are statements of its model block. The last
# value that they name is what the rest of the model uses.
ITEM = re.compile(r"^(param|include|fn|data|model|train)\b(?:[^\n]*\{\n.*?^\}|[^\n]*)[^\n]*\n", re.M | re.S)

# What stands around an example that is a part of a model.
DEFAULTS = {
    "data": """\
data {
  train = idx("images", "labels")
  x     : f32[8, 16]
  label : class[10]
}
""",
    "model": """\
model {
STATEMENTS
  scores = linear(flatten(RESULT), 10)
}
""",
    "train": """\
train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 4
}
""",
}
INCLUDED = """\
fn mlp(x, hidden, out) {
  h = relu(linear(x, hidden))
  return linear(h, out)
}
"""


def blocks():
    for page in filter(lambda page: page.exists(), PAGES):
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            yield pytest.param(match[2], bool(match[1]), id=f"{page.name}:{line}")


def whole(text):
    given = {match[1] for match in ITEM.finditer(text)}
    items = "".join(match[0] for match in ITEM.finditer(text))
    statements = ITEM.sub("", text)
    result = (["x"] + re.findall(r"^(\w+) *=", statements, re.M))[-1]
    around = "".join(block for name, block in DEFAULTS.items() if name not in given)
    return items + around.replace("STATEMENTS", statements).replace("RESULT", result)


@pytest.mark.parametrize("text, refused", list(blocks()))
def test_block(text, refused, mtc, tmp_path):
    (tmp_path / "blocks.mt").write_text(INCLUDED)
    shutil.copy(ROOT / "examples/tutorial/block.mt", tmp_path)
    model = tmp_path / "example.mt"
    model.write_text(whole(text))
    done = mtc("--emit=plan", model)
    assert (done.returncode == 65) if refused else (done.returncode == 0), done.stderr


def test_operator_reference(mtc, check_text):
    check_text(ROOT / "docs" / "operators.md", mtc("--operators").stdout)


COPY = re.compile(r"^(<!-- (\S+?)(?:: ([^\n]*))? -->\n```(\w+)\n)(.*?)^(```)$", re.M | re.S)
STAGE = {"cuda": "cu", "c": "c"}


def function_text(source, name):
    """From the comment above it to its closing brace; of a kernel in CUDA C++, its struct."""
    at = re.search(rf"^(?:static .*\b{name}\(|struct {name} \{{)", source, re.M).start()
    return source[source.rindex("\n\n", 0, at) + 2 : re.compile(r"\n};?\n").search(source, at).end()]


def original(mtc, name, functions, fence):
    if functions is None:
        return (ROOT / name).read_text()
    source = mtc(f"--emit={STAGE[fence]}", name).stdout
    return "\n".join(function_text(source, function) for function in functions.split(", "))


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_copies(page, mtc, check_text):
    page = ROOT / page
    text = COPY.sub(lambda match: match[1] + original(mtc, match[2], match[3], match[4]) + match[6], page.read_text())
    check_text(page, text)


TUTORIAL = ROOT / "docs" / "tutorial.md"


def commands(page):
    """Its indented lines, outside of fences."""
    return re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)


@pytest.mark.vectors  # trainings of seconds
def test_tutorial(tmp_path):
    """Each command of each step does something, in this order, where the documentation is short enough to be learnt in a moment."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "some.md").write_text(TUTORIAL.read_text()[:6000])
    for folder in ("examples", "models"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    environment = {**os.environ, "PATH": f"{ROOT / 'build'}:/usr/bin:/bin", "CUDA_HOME": "/nonexistent", "OMP_WAIT_POLICY": "passive"}
    shown = {}
    for command in commands(TUTORIAL):
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, errors="replace")
        assert done.returncode == 0 and not done.stderr.startswith("mtc: error"), command + "\n" + done.stdout + done.stderr
        shown[command] = done.stdout
    assert len(shown) > 30 and [command for command in shown if command.startswith(("sed", "./")) and not shown[command]] == []
    assert float(shown["./1_line predict --load line.safetensors --input new.csv"]) == pytest.approx(19, abs=0.5)
    assert (tmp_path / "steps.svg").stat().st_size > 1000


PYTHON = re.compile(r"^```python(?: (\w+))?\n(.*?)^```", re.M | re.S)
WITH_PYTHON = [ROOT / "docs" / "python.md", ROOT / "README.md"]

# What the pages take for granted: images of digits and their labels. Here they are few, and a bright row says which digit it is.
DIGITS = """\
import numpy as np

def _digits(count, seed):
    random = np.random.default_rng(seed)
    label = random.integers(0, 10, count).astype(np.uint8)
    image = random.integers(0, 60, (count, 28, 28)).astype(np.uint8)
    image[np.arange(count), 2 + 2 * label] += 150
    return image, label

X_train, y_train = _digits(1280, 1)
X_test, y_test = _digits(256, 2)
"""


@pytest.mark.vectors  # trainings of seconds
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python(page, tmp_path):
    text = page.read_text()
    parts = [DIGITS]
    for match in PYTHON.finditer(text):
        if match[1] is None or importlib.util.find_spec(match[1]):
            parts.append(f"# {page.name}:{text.count(chr(10), 0, match.start()) + 2}\n{match[2]}")
    script = tmp_path / "page.py"
    script.write_text("\n".join(parts))
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "tinyshakespeare").mkdir()
    (tmp_path / "tinyshakespeare" / "input.txt").write_text("ROMEO:\nBut, soft! what light through yonder window breaks?\n" * 200)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CUDA_VISIBLE_DEVICES": "", "MTC_DATA_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_python_names():
    """The guide of the package, or the reference of functions, names every layer, loss, optimizer, schedule and exception."""
    text = "".join((ROOT / "docs" / page).read_text() for page in ("python.md", "operators.md"))
    names = "from mtc import errors, layers, losses, optimizers; " \
            "print(*layers.__all__, *losses.__all__, *optimizers.__all__, *(name for name in vars(errors) if name.endswith('Error')))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    listed = subprocess.run([sys.executable, "-c", names], env=environment, capture_output=True, text=True, check=True).stdout.split()
    bases = {"Layer", "Loss", "Optimizer", "Schedule"}
    assert [name for name in listed if name not in bases and not re.search(rf"`(mtc\.)?{name}`", text)] == []


def test_links():
    """Every relative link of a page leads to a file."""
    for page in filter(lambda page: page.exists(), PAGES):
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


EXTENDING = (ROOT / "docs" / "extending.md").read_text()


def test_extending_names_files_that_there_are():
    paths = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", EXTENDING))
    assert len(paths) > 40
    assert [path for path in sorted(paths) if "NAME" not in path and not path.startswith("build/") and not (ROOT / path).exists()] == []


def test_extending_names_commits_that_there_are():
    named = set(re.findall(r'"([^"\n]+?)"', re.sub(r"\n", " ", "".join(re.findall(r"\*(?:Example: the commit )?\"[^*]+\*", EXTENDING)))))
    assert len(named) == 6
    if not shutil.which("git") or (ROOT / ".git" / "shallow").exists():
        pytest.skip("no history here, or no git")
    log = subprocess.run(["git", "log", "--format=%s"], cwd=ROOT, capture_output=True, text=True)
    if log.returncode:
        pytest.skip("no history here, or no git")
    assert named <= set(log.stdout.splitlines())


def test_extending_says_which_members_an_operator_has():
    """Members, kinds and functions that it tells to write are those of the sources."""
    headers = "".join((ROOT / path).read_text() for path in ("compiler/ir/op.h", "compiler/op/compose.h", "compiler/op/call.h", "compiler/op/optimizer.c",
                                                              "compiler/op/loss.c", "compiler/op/optimizer.h", "runtime/data/source.h"))
    words = set(re.findall(r"`\.?([a-z]+(?:_[a-z]+)*|[A-Z]+_[A-Z]+)`", EXTENDING.split("## A target")[0]))
    told = {word for word in words if word.startswith("KIND_") or word in ("signature", "title", "kind", "build", "cls", "open", "read")}
    told |= {"optimizer_value", "state_of", "update_assign", "decayed_gradient", "shrunk_weight", "moving_average", "read_pair", "mean_over_example"}
    assert len(told) > 12
    assert [word for word in sorted(told) if not re.search(rf"\b{word}\b", headers)] == []


def test_where_something_is_there_is_a_file():
    """architecture.md's table: a path from the root, then names of files in the same folder."""
    table = (ROOT / "docs/architecture.md").read_text().partition("| where is ... |")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([\w/.]+)`", row) for row in table.splitlines()[2:]]
    assert len(rows) > 10
    for paths in rows:
        folder = None
        for path in paths:
            found = ROOT / path if "/" in path else folder / path
            assert found.exists(), path
            folder = found.parent
