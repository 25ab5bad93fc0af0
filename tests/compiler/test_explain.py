"""`mtc explain`: every line, kernel and reason, in words; the whole text of two models, and one value of each kind."""

import re

import pytest

from conftest import ROOT

pytestmark = pytest.mark.quick

TEXTS = ROOT / "tests" / "explain"
MNIST, REPEAT, GPT = ROOT / "models/mnist.mt", ROOT / "tests/golden/name-repeat.mt", ROOT / "models/gpt2.mt"


def explained(mtc, *args):
    done = mtc("explain", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("model, flags", [(MNIST, []), (REPEAT, ["--target", "cpu"])], ids=lambda value: getattr(value, "stem", ""))
def test_the_whole_text(model, flags, mtc, check_text):
    check_text(TEXTS / f"{model.stem}.txt", explained(mtc, model, *flags))


def test_every_kernel_is_told_of_once_with_a_reason(mtc):
    for model in (MNIST, ROOT / "models/cnn.mt", GPT):
        for target in ("cuda", "cpu"):
            text = explained(mtc, model, "--target", target)
            assert max(map(len, text.splitlines())) <= 80
            kernels = re.sub(r"\n      ", " ", text.split("\nKernels\n")[1].split("\nMemory\n")[0])
            told = [line for line in kernels.splitlines() if not line.startswith("  phase")]
            count = sum(int(alike.group(1)) if (alike := re.search(r", (\d+) alike: ", line)) else 1 for line in told)
            assert f" is {count} kernels in " in re.sub(r"\s+", " ", text)
            assert all(re.search(r"It begins here: |It is there because |Not joined with ", line) for line in told)


def test_reasons_are_those_of_fusion(mtc, tmp_path):
    """One model in which sums are of whole columns, a product is read transposed, a call ends what it begins."""
    text = MNIST.read_text().replace("h      = relu(linear(x, hidden))", "h      = relu(linear(x, hidden))\n  s = cumsum(h)\n  t = s * 2")
    (tmp_path / "m.mt").write_text(text.replace("linear(h, 10)", "linear(t, 10)"))
    told = re.sub(r"\s+", " ", explained(mtc, tmp_path / "m.mt"))
    assert "the function cumsum of the kernels library." in told and "It begins here: the function reads whole buffers." in told
    assert re.search(r"Not joined with \w+, which is a function of the library: nothing joins it", told)
    assert "Not joined with h, because it multiplies whole rows" in re.sub(r"\s+", " ", explained(mtc, MNIST))


@pytest.mark.parametrize("name, told", [
    ("x", "never in memory: computed where it is read, by h, d_h_weight"), ("logits", "it stays within logits_to_d_h_pre"),
    ("h", "32.8 KB of memory from phase 1 to 3"), ("h.weight", "h.weight, f32[128, 784]: 401.4 KB of memory."),
    ("image", "a field of the data"), ("d_h_weight", "rides along"), ("20", "20: metric = accuracy(logits, label)")])
def test_one_value(name, told, mtc):
    text = re.sub(r"\s+", " ", explained(mtc, MNIST, name))
    assert told in text and "Kernels" in text and "Memory" not in text


def test_a_line_of_an_included_file(mtc):
    text = explained(mtc, GPT, "gpt.mt:17")
    assert text.startswith("gpt.mt:17: c_proj = linear(gelu(c_fc)") and ", 12 alike: " in text


@pytest.mark.parametrize("args, said", [
    (["logist"], "no value or kernel 'logist'; did you mean 'logits'?"), (["12"], "nothing is computed for line 12 of the model"),
    (["--summary"], "explain has no option --summary"), (["x", "h"], "two model files")])
def test_what_is_refused(args, said, mtc):
    done = mtc("explain", MNIST, *args)
    assert done.returncode == 64 and said in done.stderr and not done.stdout


def test_help(mtc):
    text = mtc("explain", "--help").stdout
    assert text.startswith("usage: mtc explain MODEL.mt [NAME]") and "--precision" in text and "--jobs" not in text


def test_the_page_shows_what_is_said(mtc):
    page = (ROOT / "docs/program.md").read_text().split("\n## How lines became kernels\n")[1].split("\n## ")[0]
    shown = [line.removeprefix("    ") for line in page.split("logits`:\n\n")[1].split("\n\n`--target`")[0].splitlines()]
    assert explained(mtc, MNIST, "logits").startswith("\n".join(shown))
