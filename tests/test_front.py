"""The front end beside the golden and error models: warnings, params, limits."""

import re

import pytest

DATA = """\
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
"""
TRAIN = """\
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
"""


def model(statements, top=""):
    return f"{top}{DATA}model {{\n{statements}\n}}\n{TRAIN}"


@pytest.fixture
def emit(mtc, tmp_path):
    """emit(text, *flags): the compiler's finished process for that model."""

    def run(text, *flags):
        path = tmp_path / "model.mt"
        path.write_text(text)
        return mtc(*flags, path.name, cwd=tmp_path)

    return run


def warnings(done):
    assert done.returncode == 0, done.stderr
    return re.findall(r"warning: (.*)", done.stderr)


def test_no_warning(emit):
    assert warnings(emit(model("y = linear(x, 3)"), "--emit=graph")) == []


def test_unused(emit):
    top = """\
param unused = 1
param used = 3
fn never(x) { return x }
fn half(x, other) {
  z = x + 1
  return x / 2
}
"""
    done = emit(model("a = x * 2\nh = half(x, 1)\nh = half(x, 2)\ny = linear(h, used)", top), "--emit=graph")
    assert warnings(done) == [
        "parameter 'other' of 'half' is never used",
        "function 'never' is never used",
        "param 'unused' is never used",
        "the value of 'z' is never used",
        "the value of 'a' is never used",
        "the value of 'h' is never used",
    ]


def test_unused_field(emit):
    text = model("y = linear(x, 3)").replace("  label", "  extra : i32\n  label")
    text = text.replace('"labels"', '"extra", "labels"')
    assert warnings(emit(text, "--emit=graph")) == ["field 'extra' is never used"]


def test_names_in_a_branch_that_is_not_taken_are_used(emit):
    top = """\
param wide = 0
param width = 5
param scale = 2
fn scaled(x) { return x * scale }
"""
    body = """\
a = x * 2
if wide == 1 {
  y = linear(concat([scaled(a), extra], axis = 0), width)
} else {
  y = linear(x, 3)
}"""
    text = model(body, top).replace("  label", "  extra : f32[2]\n  label").replace('"labels"', '"extra", "labels"')
    assert warnings(emit(text, "--emit=graph")) == []


def knobs(done):
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"= knob .* (\w+)  #", done.stdout))


@pytest.mark.parametrize(
    "use, fixed",
    [
        ("y = linear(x * n, 3)", False),
        ("y = linear(x, 3) * where(n > 2, 2 * n, 1)", False),
        ("y = linear(x, n)", True),
        ("y = linear(x * n, n)", True),
        ("if n > 2 { h = x } else { h = -x }\ny = linear(h, 3)", True),
        ("h = x\nrepeat i in 0..n { h = relu(h) }\ny = linear(h, 3)", True),
        ('assert n == 3 : "three"\ny = linear(x * n, 3)', True),
        ("y = sum(reshape(linear(x, 9), [3, 3]), axis = n - 3)", True),
    ],
)
def test_params_are_fixed_where_a_shape_needs_them(emit, use, fixed):
    done = emit(model(use, "param n = 3\n"), "--emit=graph")
    assert knobs(done) == (set() if fixed else {"n"})


def test_set(emit):
    text = model("y = linear(linear(x, hidden), 3)", "param hidden = 4 in 1..9\n")
    assert "f32[32, 7]" in emit(text, "--emit=graph", "--set", "hidden=7").stdout
    assert emit(text, "--emit=graph", "--set", "hidden=10").returncode == 65


@pytest.mark.parametrize(
    "statements, top",
    [
        ("y = linear(x, " + "(" * 20000 + "3" + ")" * 20000 + ")", ""),
        ("y = linear(x, " + "- " * 3000 + "3)", ""),
        ("y = linear(x" + " + x" * 3000 + ", 3)", ""),
        ("if 1 < 2 {\n" * 600 + "h = x\n" + "}\n" * 600 + "y = linear(h, 3)", ""),
        ("repeat i in 0..2147483647 { }\ny = linear(x, 3)", ""),
        ("h = x\nrepeat i in 0..2000000 { h = h + i }\ny = linear(h, 3)", ""),
        ("y = linear(f0(x), 3)", "".join(f"fn f{i}(x) {{ return f{i + 1}(f{i + 1}(x)) }}\n" for i in range(60))
         + "fn f60(x) { return -x }\n"),
        ("y = linear(f0(x), 3)", "".join(f"fn f{i}(x) {{ return f{i + 1}(x) }}\n" for i in range(2000))
         + "fn f2000(x) { return x }\n"),
        ("h = x\nrepeat i in 0..60 { h = concat([h, h], axis = 0) }\ny = linear(h, 3)", ""),
        ("y = linear(x, 3) * [" + "1, " * 20000 + "1]", ""),
    ],
    ids=["parentheses", "signs", "sum", "blocks", "empty-repeat", "repeat", "doubling", "chain", "concat", "list"],
)
def test_limits(emit, statements, top):
    """Whatever is too large is refused with a message of a reasonable length."""
    done = emit(model(statements, top), "--emit=graph")
    assert done.returncode == 65
    assert "error: " in done.stderr and done.stderr.count("error: ") <= 20


def test_every_error_is_reported_once(emit):
    top = "fn f(x) {\n  return linear(x, 2.5)\n}\n"
    done = emit(model("a = f(x)\nb = f(x)\nrepeat i in 0..3 { c = linear(x, -1) }\ny = a + b + c", top), "--emit=graph")
    assert re.findall(r"model.mt:(\d+):.*error", done.stderr) == ["2", "12"]


def test_same_text_same_graph(emit):
    text = model("h = dropout(relu(linear(x, 4)), 0.5)\ny = linear(h, 3)")
    assert emit(text, "--emit=graph").stdout == emit(text, "--emit=graph").stdout


def test_line_ends_of_another_system(emit):
    text = model("y = linear(x, 3)  # three")
    assert emit(text.replace("\n", "\r\n"), "--format").stdout == emit(text, "--format").stdout


def test_warnings_are_capped(emit):
    unused = "".join(f"a{i} = x * {i}\n" for i in range(60))
    done = emit(model(unused + "y = linear(x, 3)"), "--emit=graph")
    assert done.returncode == 0
    assert len(re.findall("warning: ", done.stderr)) == 50
    assert done.stderr.endswith("mtc: 10 more warnings\n")


def test_leaves_keep_their_names(emit):
    """Differentiation names gradients, not what was there before."""
    text = emit(model("y = linear(x, 3)"), "--emit=grad").stdout
    leaves = re.findall(r"= (?:share|iota|field|weight|const|step)\b.* : [^#]*", text)
    assert leaves and not any(" d_" in leaf for leaf in leaves)


@pytest.mark.parametrize(
    "metric, rises",
    [
        ("accuracy(y, label)", "true"),
        ("good", "true"),
        ("best(y, label)", "true"),
        ("[wrong, good]", "false, true"),
        ("mean(y)", "false"),
    ],
)
def test_higher_is_better_under_any_name(emit, metric, rises):
    top = "fn best(y, label) {\n  return accuracy(y, label)\n}\n"
    text = model("y = linear(x, 3)\ngood = accuracy(y, label)\nwrong = 1 - good", top)
    done = emit(text.replace("optimizer", f"metric = {metric}\n  optimizer"), "--emit=c")
    assert f"rises_table[] = {{false, {rises}}};" in done.stdout, done.stderr
