"""What generated code calls sizes, and conditions under which it reads."""

import math
import re

import pytest
from conftest import ROOT

MODEL = """param width   = 8
param context = 6

data {
  train  = tokens("train.bin")
  window : class[11][context + 1]
}

fn block(x) {
  q    = rotary(linear(x, width, bias = false), heads = 2)
  k    = rotary(linear(x, 4, bias = false), heads = 1)
  v    = linear(x, 4, bias = false)
  seen = attention(q, k, v, heads = 2, kv_heads = 1, causal = true)
  wide = relu(linear(seen, 20))
  return x + linear(wide, width)
}

model {
  token = slice(window, 0, 0, context)
  table = weight([11, width], normal(0, 0.02))
  h     = gather(table, token)
  repeat i in 0..2 {
    h = block(h, name = "layers.{i}")
  }
  scores = linear(h, 11)
}

train {
  loss      = cross_entropy(scores, slice(window, 0, 1, context + 1))
  optimizer = sgd(0.1)
  batch     = 4
}
"""


@pytest.fixture(scope="module")
def code(mtc, tmp_path_factory):
    """code(target): the generated text."""
    path = tmp_path_factory.mktemp("readable") / "rotary.mt"
    path.write_text(MODEL)
    texts = {stage: mtc(f"--emit={stage}", path).stdout for stage in ("c", "cu")}
    return texts.get


@pytest.mark.parametrize("stage", ["c", "cu"])
def test_sizes(stage, code):
    """Of a param, its name, wherever it decides; of a layer that repeats, its name once; else the number."""
    sizes = dict(re.findall(r"(\w+) = (\d+)", re.search(r"^enum \{(.*?)\};", code(stage), re.M | re.S)[1]))
    assert (sizes["BATCH"], sizes["WINDOW"], sizes["CONTEXT"], sizes["WIDTH"], sizes["WIDE"]) == ("4", "7", "6", "8", "20")
    assert not any(re.match(r"SIZE_|LAYERS_|D_", name) for name in sizes)
    assert "SIZE_" not in code(stage) and "[BATCH, CONTEXT, WIDTH]" in code(stage)


def test_what_a_call_of_the_library_is_given_has_names(code):
    """Members in C; a member called batch is no parameter."""
    calls = re.findall(r"^static void \w+\(([^)]*)\) \{\n    const (\w+) shape = \{\s*(.*?)\};", code("c"), re.M | re.S)
    assert ".batch = BATCH, .length = CONTEXT, .queries = 2, .keys = 1, .size = 4, .causal = true, .window = 0" in {
        members for _, name, members in calls if name == "Attention"}
    assert "GatherGrad" in {name for _, name, _ in calls}
    for parameters, name, members in calls:
        assert name != "Attention" or "Batch *batch" not in parameters
        assert not re.search(r"(^|, )[^.]", members)


@pytest.mark.parametrize("stage", ["c", "cu"])
def test_a_param_that_is_computed_with_names_nothing(stage, mtc, tmp_path):
    """24 is no param; the value gives the name."""
    (tmp_path / "case.mt").write_text(MODEL.replace("relu(linear(seen, 20))", "relu(linear(seen, 3 * width))"))
    text = mtc(f"--emit={stage}", tmp_path / "case.mt").stdout
    assert "WIDE = 24" in text and "WIDTH = 8" in text


def test_two_halves_are_one_condition(code):
    """Rotary embeddings read the first and the second half of each head, in both halves of the result."""
    conditions = re.findall(r" = (.*) \? (?:cos|sin)\(", code("c"))
    assert conditions and {re.sub(r"\b(i|column)\b", "j", condition) for condition in conditions} == {"j < 8", "j >= 8 && j < 12"}
    for text in code("c"), code("cu"):
        for condition in re.findall(r"= ([^?;=]* \|\| [^?;=]*) \?", text):
            parts = [part.strip("() ") for part in condition.split(" || ")]
            assert len(parts) == len(set(parts)), condition


@pytest.mark.parametrize("model", ["cnn", "char_gpt", "gpt2", "llama_tiny", "resnet18_cifar", "vit_tiny"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_every_kernel_has_a_name(mtc, model, target):
    """After what it computes, or what that is for."""
    fused = mtc("--emit=fused", f"models/{model}.mt", "--target", target).stdout
    names = re.findall(r"^  (?:loop|contract|call) (\w+)$", fused, re.M)
    assert len(names) > 20 and not [name for name in names if re.search(r"(^|_)(values|product)(_\d+)?$", name)]


def test_names_of_what_the_text_does_not_name(mtc):
    names = mtc("--emit=fused", "models/cnn.mt").stdout
    for name in ("d_conv2_bias_partial", "conv2_reshape", "to_d_conv2_bias"):
        assert f"  loop {name}\n" in names
    assert "  loop to_fc\n" in mtc("--emit=fused", "models/resnet18_cifar.mt").stdout
    assert "  contract d_h_1_mlp_c_proj_weight_slices\n" in mtc("--emit=fused", "models/char_gpt.mt").stdout


MEANS = """data {{
  train = npz("train.npz")
  x     : f32[4]
  y     : f32[4]
}}

model {{
  h = {}
}}

train {{
  loss      = mse(h, y)
  optimizer = sgd(0.1)
  batch     = 8
}}
"""


@pytest.mark.parametrize("flags, one", [(["--emit=c"], "1.0f"), (["--emit=cu"], "1.0f"), (["--emit=c", "--real", "f64", "--target", "cpu"], "1.0")])
def test_a_mean_says_of_how_many(mtc, tmp_path, flags, one):
    """The factor of a sum is one by the size that is folded; the same number anywhere else stays a number."""
    (tmp_path / "case.mt").write_text(MEANS.format("linear(x - mean(x, axis = 0), 4)"))
    assert f"x_sum * ({one} / X)" in mtc(*flags, tmp_path / "case.mt").stdout
    (tmp_path / "case.mt").write_text(MEANS.format("linear(x * 0.25 + max(x, axis = 0) * 0.25, 4)"))
    text = mtc(*flags, tmp_path / "case.mt").stdout
    assert re.search(r"\* 0\.25f?\b", text) and f"x_max * ({one}" not in text


def test_a_learning_rate_is_no_mean(mtc, tmp_path):
    """A tenth of the sum over ten examples, which the optimizer takes, is not called after the batch."""
    text = MEANS.format("relu(linear(x, 4))").replace("batch     = 8", "batch     = 10")
    (tmp_path / "case.mt").write_text(text)
    code = mtc("--emit=c", tmp_path / "case.mt").stdout
    assert "1.0f / BATCH" not in code and re.search(r"-= .*\b0\.1f\b", code)


def test_a_value_called_batch_keeps_its_place_in_equations(mtc, tmp_path):
    """Forms of operators say batch as well, which equations leave out."""
    (tmp_path / "case.mt").write_text(MEANS.format("maximum(weight([], name = \"b\"), x)").replace("h = ", "batch = weight([])\n  h = x * exp(batch) + ", 1))
    assert "h[i, j] = x[i, j] * exp(batch) + " in mtc("--emit=c", tmp_path / "case.mt").stdout


@pytest.mark.parametrize("stage", ["c", "cu"])
def test_how_long_names_are_decides_nothing_but_lines(stage, mtc, tmp_path):
    """Equal layers have equal kernels, whatever they are called."""

    def lines(name):
        (tmp_path / "case.mt").write_text(re.sub(r"\bseen\b", name, MODEL))
        text = mtc(f"--emit={stage}", tmp_path / "case.mt").stdout
        functions = text[text.index("// ---- training step"):text.index("// ---- phases")]
        return re.sub(r"\s+", "", re.sub(name, "seen", re.sub(r"//.*", "", functions), flags=re.I))

    assert "seen" in lines("zq") and lines("zq") == lines("what_a_token_has_seen_of_those_that_came_before_it")


@pytest.mark.parametrize("target", ["c", "cu"])
@pytest.mark.parametrize("model", ["mnist", "char_gpt", "resnet18"])
def test_sizes_are_those_that_the_program_names(mtc, model, target):
    head, sizes, code = re.split(r"^enum \{(.*?)\};", mtc(ROOT / f"models/{model}.mt", f"--emit={target}").stdout, maxsplit=1, flags=re.M | re.S)
    names = set(re.findall(r"(\w+) = \d+", sizes))
    said = set(re.findall(r"\b[A-Z]\w*\b", code.partition("// ---- tables for the runtime")[0]))
    assert "BATCH" in names and names <= said | {"BATCH"}


@pytest.mark.parametrize("stage", ["c", "cu"])
def test_a_row_computes_once_what_its_elements_share(stage, mtc, tmp_path):
    """A norm's mean and 1 / sqrt(...) have their names before the loops over the row's elements, and stand in none."""
    (tmp_path / "case.mt").write_text(MODEL.replace("return x + linear(wide, width)", "return layer_norm(x + linear(wide, width))"))
    code = re.sub(r"//.*", "", mtc(f"--emit={stage}", tmp_path / "case.mt").stdout)
    roots = re.findall(r".*\b(?:sqrt|root)\(.*", code)
    assert roots and all(re.match(r" +(real|float) inverse_deviation = 1\.0f / (sqrt|root)\(", line) for line in roots)
    means = re.findall(r".*_sum \* \(1\.0f / WIDTH\).*", code)
    assert means and all(re.match(r" +(real|float) mean = ", line) for line in means)
    assert re.search(r" - mean\) \* inverse_deviation\b", code)


@pytest.mark.parametrize("stage", ["c", "cu"])
def test_a_row_divides_for_its_place_once(stage, mtc, tmp_path):
    """The position of a row in its sequence has its name where the row says it again, and stands in no loop over elements."""
    placed = "layer_norm(gather(table, token) + weight([context, width], normal(0, 0.02)))"
    (tmp_path / "case.mt").write_text(MODEL.replace("gather(table, token)", placed))
    code = re.sub(r"//.*", "", mtc(f"--emit={stage}", tmp_path / "case.mt").stdout)
    norms = [function for function in re.split(r"\n};?\n", code) if re.search(r"inverse_deviation = 1\.0f / (sqrt|root)", function) and "% CONTEXT" in function]
    for function in norms:
        before, named, behind = function.partition(" int column = i % CONTEXT;")
        assert named and "% CONTEXT" not in behind and "for (int j" not in before
    assert len(norms) == 2


@pytest.mark.parametrize("stage, kind", [("c", "static const real"), ("cu", "constexpr float")])
def test_a_number_that_an_operator_made_has_a_name(stage, kind, mtc, tmp_path):
    """Adam's log(beta1), once for all weights; where nothing reads it, no line says it."""
    numbers = {}
    for name, optimizer in (("adam", "adam(0.1, beta1 = 0.8)"), ("sgd", "sgd(0.1)")):
        (tmp_path / "case.mt").write_text(MODEL.replace("sgd(0.1)", optimizer))
        code = mtc(f"--emit={stage}", tmp_path / "case.mt").stdout
        numbers[name] = dict(re.findall(rf"^{kind} (LOG_\w+) = (.*)f;$", code, re.M))
        assert code.count("-0.2231435") == code.count(" LOG_BETA1 = ") and ("expm1" in code) == (name == "adam")
    assert numbers["sgd"] == {} and numbers["adam"].keys() == {"LOG_BETA1", "LOG_BETA2"}
    (tmp_path / "case.mt").write_text(MODEL.replace("sgd(0.1)", "adam(0.1, beta1 = 0)"))
    assert "LOG_BETA1" not in mtc(f"--emit={stage}", tmp_path / "case.mt").stdout  # whole numbers mean many things
    assert [float(number) for number in numbers["adam"].values()] == pytest.approx([math.log(0.8), math.log(0.999)])


def test_a_local_is_called_after_what_it_is_made_of(mtc, tmp_path):
    """Not after a constant, which says nothing, nor by the operation alone: 1 / (norm(x) + 1e-6) is the norm's inverse."""
    divided = "return x / (norm(x) + 1e-6) + linear(wide, width)"
    (tmp_path / "case.mt").write_text(MODEL.replace("return x + linear(wide, width)", divided))
    for stage in ("c", "cu"):
        code = mtc(f"--emit={stage}", tmp_path / "case.mt").stdout
        assert re.search(r"\bnorm_inverse = 1\.0f / ", code) and not re.search(r" (div|add|mul|sub) = ", code)


def test_what_a_schedule_computes_says_what_it_is(mtc, tmp_path):
    cycle = MODEL.replace("sgd(0.1)", "sgd(one_cycle_lr(lr))").replace("param width", "param lr = 0.1 in 0..1\nparam width", 1)
    (tmp_path / "case.mt").write_text(cycle)
    code = mtc("--emit=c", tmp_path / "case.mt").stdout
    assert re.search(r" learning_rate = step\(batch\) < peak \? t->lr \+ still_to_go : falling_rate;", code)
    assert re.search(r" falling_rate = final_rate \+ \(t->lr - final_rate\) \* 0\.5f \* \(cos\(part_done_2 \* ", code)
