"""The front end beside the golden and error models: warnings, params, limits."""

import re

import pytest

from conftest import ROOT, flags_of

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


def test_a_list_for_a_parameter_that_states_its_shape_is_a_tensor(emit):
    """Its axes are matched, and name sizes."""
    top = "fn widened(v[n], t[n, m]) { return v[:n - 4] * sum(t[:2, 0]) * m }\n"
    text = model("y = linear(x[:2] * widened(x, [[1, 2], [3, 4], [5, 6], [0, 0], [0, 0], [0, 0]]), 3)", top)
    assert warnings(emit(text, "--emit=graph")) == []
    short = emit(text.replace("widened(x, ", "widened([1, 2, 3], "), "--emit=graph")
    assert short.returncode == 65
    assert "axis 0 of 't' has size 6, but 'n' is 3" in short.stderr
    ragged = emit(text.replace("[3, 4]", "[3]"), "--emit=graph")
    assert ragged.returncode == 65 and "error: this list has 1 element, and the first of its neighbours 2" in ragged.stderr
    assert ragged.stderr.count("error: ") == 1


def test_unused_value_of_several(emit):
    top = "fn two(x) { return x, -x }\n"
    used = model("a, b = two(x)\nc, _ = two(a)\ny = linear(b + c, 3)", top)
    assert warnings(emit(used, "--emit=graph")) == []
    assert warnings(emit(used.replace("b + c", "c"), "--emit=graph")) == ["the value of 'b' is never used"]


def test_several_names_with_a_value_each(emit):
    """As statements of their own, down to the names of the weights, but that all values are those from before."""
    each = emit(model("a, b = linear(x, 4), linear(x, 3)\na, b = relu(b), tanh(a)\ny = linear(concat([a, b]), 3)"), "--emit=graph")
    alone = emit(model("a = linear(x, 4)\nb = linear(x, 3)\nc = a\na = relu(b)\nb = tanh(c)\ny = linear(concat([a, b]), 3)"), "--emit=graph")
    graphs = [re.sub(r"  # .*", "", done.stdout) for done in (each, alone)]
    assert each.returncode == 0 and "a.weight" in graphs[0] and graphs[0] == graphs[1]
    wrong = emit(model("a, b = x, x, x\ny = linear(a, 3)"), "--emit=graph")
    assert wrong.returncode == 65 and "error: 2 names, and 3 values" in wrong.stderr


def test_a_comma_behind_the_last_place(emit):
    with_comma, without = (emit(model(f"y = linear(reshape(x, [2, 3])[{place}], 3)"), "--emit=graph") for place in ("0,", "0"))
    assert with_comma.returncode == 0 and with_comma.stdout == without.stdout


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
        ("y = linear(x, " + "(" * 100000 + "3" + ")" * 100000 + ")", ""),
        ("if 1 < 2 {\n" * 100000, ""),
        ("a" * 100000 + " = x", ""),
        ("y = linear(x, 3, name = \"" + "a." * 50000 + "a\")", ""),
        ("y = linear(x, 3, name = " + "9" * 100000 + "a)", ""),
        ("y = linear(x, 3)." + "a" * 100000, ""),
    ],
    ids=["parentheses", "signs", "sum", "blocks", "empty-repeat", "repeat", "doubling", "chain", "concat", "list", "deep",
         "deep-blocks", "long-name", "long-layer", "long-number", "long-method"],
)
def test_limits(emit, statements, top):
    """Whatever is too large is refused with a message of a reasonable length."""
    done = emit(model(statements, top), "--emit=graph")
    assert done.returncode == 65
    assert "error: " in done.stderr and done.stderr.count("error: ") <= 20
    assert max(map(len, done.stderr.split("\n"))) < 800


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


@pytest.mark.parametrize("text", [".x", ".x()", ".5", "..", "", ")", "\n.x\n", ".T"], ids=ascii)
def test_any_first_token(emit, text):
    for flags in (["--emit=graph"], ["--format"]):
        assert emit(text, *flags).returncode in (0, 65)


def test_includes_are_nested_to_a_limit(mtc, tmp_path):
    for k in range(600):
        (tmp_path / f"{k}.mt").write_text(f'include "{k + 1}.mt"\n')
    (tmp_path / "600.mt").write_text(model("y = linear(x, 3)"))
    done = mtc("0.mt", "--emit=graph", cwd=tmp_path)
    assert done.returncode == 65 and done.stderr.startswith("32.mt:1:9: error: includes are nested more than 32 deep\n")
    assert done.stderr.count("note: included here") == 32 and "0.mt:1:9: note: included here" in done.stderr
    assert mtc("569.mt", "--emit=graph", cwd=tmp_path).returncode == 0


def test_messages_do_not_command_the_terminal(emit):
    done = emit(model('assert 1 > 2 : "\\n\\tmore"\ny = linear(x, 3)'), "--emit=graph", "--set", "a\x1b[2J=1")
    assert "\x1b" not in done.stderr and "\\x1b[2J" in done.stderr


def test_functions_of_the_text_hide_those_of_the_library(emit, mtc):
    """Each name of the library can be that of a function, which the text then means and the library does not."""
    used = {"linear", "cross_entropy", "sgd"}
    names = sorted({*re.findall(r"^`(\w+)\(", mtc("--operators").stdout, re.M), "size"} - used)
    assert {"softmax", "sigmoid", "maximum", "exp", "mse", "adam"} <= set(names)

    def graphs(prefix):
        top = "".join(f"fn {prefix}{name}(x) {{ return x - 1 }}\n" for name in names)
        body = "\n".join(f"x{i + 1} = {prefix}{name}(x{i})" for i, name in enumerate(names))
        done = emit(model(f"x0 = x + 1\n{body}\ny = linear(x{len(names)}, 3)", top), "--emit=graph")
        assert warnings(done) == []
        return done.stdout

    assert graphs("") == graphs("my_")


HABITS = re.findall(r'^HABIT\((\w+), "((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\)', (ROOT / "compiler/front/habits.def").read_text(), re.M)


def test_advice_on_habits_names_what_there_is(mtc):
    """Each function that is recommended exists, and none that exists is called a habit."""
    library = set(re.findall(r"^`(\w+)\(", mtc("--operators").stdout, re.M))
    calls = [(word, advice) for kind, word, advice in HABITS if kind == "CALL"]
    assert len(calls) > 100
    plain = {name.replace("_", "") for name in library}
    assert not [word for word, _ in calls if word.replace("_", "") in plain]
    recommended = {name for _, advice in calls for name in re.findall(r"\b([a-z]\w*)\(", advice)}
    assert recommended <= library, recommended - library


@pytest.mark.parametrize("kind, text", [
    ("CALL", "y = linear(x, 3)\n  h = {}(x)"),
    ("PARAMETER", "y = linear(x, 3, {} = 1)"),
])
def test_each_habit_is_answered(emit, kind, text):
    for _, word, advice in [row for row in HABITS if row[0] == kind]:
        assert advice.replace('\\"', '"') in emit(model(text.format(word)), "--emit=graph").stderr, word


def test_functions_that_give_several_values_elsewhere(emit):
    arguments = {"lstm": "t, 4", "gru": "t, 4", "rnn": "t, 4", "max": "t, 0", "min": "t, 0", "sort": "t", "attention": "t, t, t, 2"}
    calls = "".join(f"  a{k}, b{k} = {name}({given})\n" for k, (name, given) in enumerate(arguments.items()))
    advice = {word: text for kind, word, text in HABITS if kind == "VALUES"}
    said = emit(model(f"t = reshape(x, [1, 6])\n{calls}y = linear(x, 3)"), "--emit=graph").stderr
    assert advice.keys() == arguments.keys() and said.count("error: 2 names take as many values") == len(advice)
    assert not [word for word, text in advice.items() if f"note: {text}\n" not in said], said


@pytest.mark.parametrize("body, doubted", [
    ("y = softmax(linear(x, 3))", "softmax"),
    ("h = softmax(linear(x, 3))\n  y = reshape(h, [3])", "softmax"),
    ("y = head(x)", "softmax"),
    ("y = transpose(transpose(reshape(head(x), [1, 3])))\n  y = flatten(y)", "softmax"),
    ("y = linear(x, 3)", None),
    ("y = linear(softmax(x), 3)", None),
    ("y = log_softmax(linear(x, 3))", None),
    ("y = 5 * softmax(linear(x, 3))", None),
])
def test_scores_that_are_probabilities(emit, body, doubted):
    """Once, with its place, what made them and the cure; and the model compiles."""
    done = emit(model(body, "fn head(x) {\n  return softmax(linear(x, 3))\n}\n" if "head" in body else ""), "--emit=c")
    found = re.findall(r"warning: this loss takes scores and applies (\w+) itself", done.stderr)
    assert done.returncode == 0 and found == ([doubted] if doubted else []), done.stderr
    assert not doubted or f"note: leave out this {doubted}" in done.stderr


@pytest.mark.parametrize("body, loss, place", [
    ("z = concat([x, one_hot(label, 3)])\ny = linear(z, 3)", "cross_entropy(y, label)", "7:16"),
    ("e = weight([3, 6])\ny = linear(x + gather(e, label), 3)", "cross_entropy(y, label)", "8:16"),
    ("y = linear(concat([x, one_hot(label, 3)]), 3)", "mse(y, one_hot(label, 3))", "7:23"),
    ("z = linear(concat([x, one_hot(label, 3)]), 3)\ny = linear(x, 3)", "cross_entropy(y + z, label)", "7:23"),
    ("y = linear(x, 3)\nz = y - 0.5 * one_hot(label, 3)", "cross_entropy(z, label)\n  predict = softmax(y)", None),  # a margin
    ("y = linear(x, 6)", "mse(y, x)\n  metric = accuracy(slice(y, 0, 0, 3), label)", None),
    ("y = linear(concat([linear(x, 2), one_hot(label, 3)]), 6)", "mse(y, x)", None),  # an autoencoder that is told the class
    ("y = linear(concat([slice(x, 0, 0, 5), one_hot(label, 3)]), 1)", "mse(y, slice(x, 0, 5, 6))", None),  # the next of a series
    ("y = linear(x, 3)\nz = stop_gradient(linear(concat([x, one_hot(label, 3)]), 3))", "mse(y, z)", None),
])
def test_a_label_that_the_network_reads(emit, body, loss, place):
    done = emit(model(body).replace("cross_entropy(y, label)", loss), "--emit=graph")
    found = re.findall(r"mt:(\d+:\d+): warning: the prediction is computed from 'label', which the loss compares it with", done.stderr)
    assert done.returncode == 0 and found == ([place] if place else []), done.stderr
    assert done.stderr.count("leave 'label' out of what the network reads") == len(found)
    assert "warning" not in done.stderr or found or "never used" in done.stderr


@pytest.mark.parametrize("loss, told", [
    ("mse(t, y)", ["mse"]), ("cross_entropy(t, y)", ["cross_entropy"]), ("bce(t, y, from_logits = true)", ["bce"]), ("mse(y, t)\n  metric = r2(t, y)", ["r2"]),
    ("mse(y, t)\n  metric = [precision(t, y, threshold = 0), mae(t, t)]", ["precision"]),
    ("mse(y, stop_gradient(z))\n  metric = r2(y, t)", []), ("mse(y, t)\n  metric = mae(slice(x, 0, 0, 3), t)", []),
])
def test_a_target_that_comes_first(emit, loss, told):
    """As in Keras and scikit-learn: what is predicted would be the target itself."""
    text = model("t = one_hot(label, 3)\ny = linear(x, 3)\nz = relu(y)").replace("cross_entropy(y, label)", loss)
    done = emit(text, "--emit=graph")
    found = re.findall(r"warning: (\w+) takes this for the prediction, and no weight is in it, but in its target", done.stderr)
    assert done.returncode == 0 and found == told, done.stderr
    assert all(f"write {name}(prediction, target)" in done.stderr for name in told)


@pytest.mark.parametrize("loss", ["cross_entropy(label, y)", "cross_entropy(y, label)\n  metric = accuracy(label, y)"])
def test_labels_that_come_first(emit, loss):
    done = emit(model("y = linear(x, 3)").replace("cross_entropy(y, label)", loss), "--emit=graph")
    [said] = re.findall("error: (.*)", done.stderr)
    name = loss.partition("(label")[0].split()[-1]
    assert done.returncode == 65 and said.endswith(f"no weight is, but in its target: write {name}(scores, label)")


MODELS = [path for folder in ("models", "tests/golden") for path in sorted((ROOT / folder).glob("*.mt"))]


@pytest.mark.parametrize("path", [path for path in MODELS if "train {" in path.read_text()], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_our_models_give_no_warning(path, mtc):
    flags = flags_of(path)
    done = mtc(path, *flags, "--emit=schedule" if "--arch" in flags else "--emit=graph")
    assert "warning" not in done.stderr
    assert done.returncode == 0 or path.with_suffix(".format").exists()  # of one that is not right, the format alone is shown


def test_logits_that_are_probabilities(emit):
    text = model("y = sigmoid(linear(x, 3))").replace("cross_entropy(y, label)", "bce(y, one_hot(label, 3){})")
    assert emit(text.replace("{}", ""), "--emit=graph").stderr == ""
    assert "applies sigmoid itself" in emit(text.replace("{}", ", from_logits = true"), "--emit=graph").stderr


RAW = "bce takes probabilities, from 0 to 1, and this is what a layer gives, any number"
BYTES = "bce takes targets from 0 to 1, and these may be from 0 to 255"
ONE = "softmax of one number is always 1"


@pytest.mark.parametrize("body, loss, doubts", [
    ("y = linear(x, 1)", "bce(y, yes)", [RAW]),
    ("y = reshape(linear(x, 1) + linear(relu(x), 1), [1])", "bce(y, yes)", [RAW]),
    ("y = linear(x, 1)", "bce(y, yes, from_logits = true)", []),
    ("y = sigmoid(linear(x, 1))", "bce(y, yes)", []),
    ("y = softmax(linear(x, 4))", "bce(sum(slice(y, 0, 0, 1)), yes)", []),
    ("y = softmax(linear(x, 1))", "bce(y, yes)", [ONE]),
    ("y = log_softmax(linear(x, 1))", "mse(y, yes)", [ONE + ", its logarithm 0"]),
    ("y = sigmoid(linear(x, 4))", "bce(y, flatten(image))", [BYTES]),
    ("y = sigmoid(linear(x, 4))", "bce(y, flatten(image) / 255)", []),
    ("y = sigmoid(linear(x, 4))", "bce(y, flatten(image) > 127)", []),
    ("y = sigmoid(linear(x, 1))", "bce(y, label)", [BYTES.replace("255", "2")]),
    ("y = sigmoid(linear(x, 1))", "bce(y, two)", []),
])
def test_a_binary_loss_of_other_numbers(emit, body, loss, doubts):
    text = model(body).replace("cross_entropy(y, label)", loss).replace(
        "  label", "  image : u8[2, 2]\n  yes : f32\n  two : class[2]\n  label").replace('idx("images", "labels")', 'npz("all.npz")')
    done = emit(text, "--emit=graph")
    found = [line for line in warnings(done) if "never used" not in line]
    assert len(found) == len(doubts) and all(doubt in line for doubt, line in zip(doubts, found)), done.stderr
    assert BYTES not in doubts or "scale them: image / 255; where they are only 0 and 1, a field is class[2]" in done.stderr


@pytest.mark.parametrize("call, doubt, cure", [
    ("conv2d(image, 1, 8, 3)", "this 8 is 'kernel' of 'conv2d'", "conv2d(image, 8, 3)"),
    ("conv2d(conv2d(image, 8, 3), 8, 16, 3, padding = 1)", "this 16 is 'kernel' of 'conv2d'",
     "conv2d(conv2d(image, 8, 3), 16, 3, padding = 1)"),
    ("conv_transpose2d(image, 1, 20, 5)", "this 20 is 'kernel' of 'conv_transpose2d'", "conv_transpose2d(image, 20, 5)"),
    ("gru(rows, 28, 64)", "this 64 is 'layers' of 'gru'", "gru(rows, 64)"),
    ("group_norm(conv2d(image, 8, 3), 4, 8)", "this 8 is 'eps' of 'group_norm'", "say eps = 8"),
    ("instance_norm(image, 1)", "this 1 is 'eps' of 'instance_norm'", "say eps = 1"),
    ("conv2d(image, 1, kernel = 8, stride = 3)", "", ""),
    ("conv2d(image, 1, 7, 2)", "", ""),
    ("conv2d(image, 1, 14, 14)", "", ""),
    ("conv1d(rows, 28, 8, 4)", "", ""),
    ("conv2d(image, 2, 8, 3)", "", ""),
    ("gru(rows, 28, 2)", "", ""),
    ("gru(rows, 28, layers = 6)", "", ""),
    ("group_norm(conv2d(image, 8, 3), 4, eps = 8)", "", ""),
])
def test_the_size_of_the_input_is_not_said(emit, call, doubt, cure):
    """Who says it, as elsewhere, is told, where the numbers have another meaning than theirs; a name says that they have not."""
    text = model(f"y = linear(flatten({call}), 3)").replace("x     : f32[6]", "image : f32[1, 28, 28]\n  rows : f32[28, 28]")
    done = emit(text.replace('idx("images", "labels")', 'npz("all.npz")'), "--emit=graph")
    assert [line for line in warnings(done) if "never used" not in line] == ([doubt] if doubt else []), done.stderr
    assert cure in done.stderr


def test_the_size_of_the_input_of_stacked_layers(emit):
    done = emit(model("y = lstm(x, 28, 64, 2)").replace("f32[6]", "f32[28, 28]"), "--emit=graph")
    assert "'bidirectional' of 'lstm' is true or false, not 2" in done.stderr and "argument: lstm(x, 64, 2)" in done.stderr


@pytest.mark.parametrize("schedule, doubt", [
    ("cosine_lr(0.01, 0.1)", "the learning rate ends at 0.1, above the 0.01 that it falls from"),
    ("one_cycle_lr(0.01, final = 0.1)", "the learning rate ends at 0.1, above the 0.01 that it falls from"),
    ("linear_lr(0.01, total_steps)", "this is the learning rate that training ends with, and it is a number of steps"),
    ("wsd_lr(0.01, final = steps_per_epoch)", "this is the learning rate that training ends with, and it is a number of steps"),
    ("cosine_lr(0.01, 0.01, warmup = 1)", None),
    ("cosine_lr(0.01, linear_lr(0.01), warmup = 0.1 * total_steps)", None),
    ("step_lr(0.01, every = 0.5 * steps_per_epoch, warmup = 2.5)", None),
])
def test_where_a_learning_rate_ends(emit, schedule, doubt):
    text = model("y = linear(x, 3)").replace("sgd(0.1)", f"sgd({schedule})")
    assert warnings(emit(text, "--emit=graph")) == ([doubt] if doubt else [])


def test_settings_among_the_values(emit):
    text = model("y = linear(x, 3)\noptimizer = sgd(0.1)\nbatch = 3\nsplit = 80 / 20\nother = 1")
    assert warnings(emit(text, "--emit=graph")) == [
        "the value of 'optimizer' is never used; as a setting it belongs in the train block",
        "the value of 'batch' is never used; as a setting it belongs in the train block",
        "the value of 'split' is never used; as a setting it belongs in the data block",
        "the value of 'other' is never used"]


def test_a_byte_order_mark(emit, tmp_path):
    """At the beginning of a model and of what it includes it is none of the text; anywhere else it is a character that nobody sees."""
    (tmp_path / "part.mt").write_text("\ufefffn part(x) { return linear(x, 3) }\n")
    text = model("  y = part(x)", 'include "part.mt"\n')
    plain = emit(text, "--emit=graph")
    assert plain.returncode == 0 and emit("\ufeff" + text, "--emit=graph").stdout == plain.stdout
    assert "model.mt:1:1: error" in emit("\ufeff" + text.replace("include", "inclode"), "--emit=graph").stderr
    assert "0xef 0xbb 0xbf" in emit(text.replace("part(x)", "part\ufeff(x)"), "--emit=graph").stderr
