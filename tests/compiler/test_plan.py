"""The memory plan: what lives together lies apart, and nothing is larger than it has to be."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import pytest

MLP = """
data {{
  train = idx("images", "labels")
  test  = idx("images", "labels")
  image : u8[28, 28]
  label : class[10]
}}
model {{
  x = flatten(image) / 255
{model}
}}
train {{
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = {optimizer}
  batch     = {batch}
}}
"""
TWO_LAYERS = "  h = relu(linear(x, 128))\n  logits = linear(h, 10)"
DEEP = "\n".join(f"  h{i} = relu(linear({'x' if i == 0 else f'h{i - 1}'}, 256))" for i in range(6))
DEEP += "\n  logits = linear(h5, 10)"
RESIDUAL = """  h = relu(linear(x, 256))
  g = relu(linear(h, 256))
  r = relu(linear(g, 256)) + h
  logits = linear(r, 10)"""
MODELS = {"two_layers": TWO_LAYERS, "deep": DEEP, "residual": RESIDUAL}


@dataclass
class Buffer:
    offset: int
    size: int
    first: int
    last: int
    name: str
    section: str
    in_place_of: str

    def lives_with(self, other):
        always = "weights", "optimizer state"
        if self.section in always or other.section in always:
            return True
        return self.section == other.section and self.first <= other.last and other.first <= self.last

    def overlaps(self, other):
        return self.offset < other.offset + other.size and other.offset < self.offset + self.size


def parse(text):
    buffers, totals, section = [], {}, None
    for line in text.splitlines()[2:]:
        if not line.startswith(" "):
            section = line.split(":")[0]
        elif section == "total":
            name, number = line.strip().rsplit(maxsplit=1)
            totals[name] = int(number)
        elif not section.startswith("device"):  # which tests/runtime/test_embedding.py holds against what is asked for
            offset, size, rest = line.split(maxsplit=2)
            phases, name = re.search(r"\]? +(always|\d+(?:-\d+)?) +(\w+)", rest).groups()
            first, _, last = phases.partition("-") if phases != "always" else (0, 0, 0)
            in_place = re.search(r"in place of (\w+)", rest)
            buffers.append(Buffer(int(offset), int(size), int(first), int(last or first), name, section,
                                  in_place and in_place.group(1)))
    return buffers, totals


@pytest.fixture
def plan_of(mtc, tmp_path):
    def plan(model, *flags, batch=64, optimizer="adam(1e-3)"):
        path = tmp_path / "m.mt"
        path.write_text(MLP.format(model=model, batch=batch, optimizer=optimizer))
        done = mtc("--emit=plan", path, *flags)
        assert done.returncode == 0, done.stderr
        return parse(done.stdout)

    return plan


@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_no_two_live_buffers_overlap(plan_of, model, target):
    buffers, totals = plan_of(model, "--target", target)
    assert all(b.offset % 256 == 0 and b.offset + b.size <= totals["arena"] for b in buffers)
    for i, a in enumerate(buffers):
        for b in buffers[:i]:
            handed_over = a.in_place_of == b.name or b.in_place_of == a.name
            assert handed_over or not (a.lives_with(b) and a.overlaps(b)), f"{a} {b}"


def test_totals(plan_of):
    buffers, totals = plan_of(TWO_LAYERS)
    rounded = {section: sum(-(-b.size // 256) * 256 for b in buffers if b.section == section)
               for section in ("weights", "optimizer state", "train", "eval")}
    assert totals["weights"] == rounded["weights"] == 407296
    assert totals["optimizer state"] == 2 * totals["weights"]
    assert totals["without sharing"] == sum(rounded.values())
    assert totals["arena"] == totals["weights"] + totals["optimizer state"] + totals["values"]
    assert totals["floor"] <= totals["arena"] <= totals["without sharing"]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_arena_is_as_small_as_any(plan_of, model):
    _, totals = plan_of(model)
    assert totals["arena"] == totals["floor"]


def test_arena_of_mnist(mtc):
    """Weights, Adam's two moments, h, its gradient, and what the loss needs: nothing else is stored."""
    _, totals = parse(mtc("--emit=plan", "models/mnist.mt").stdout)
    assert totals == {"weights": 407296, "optimizer state": 814592, "values": 68608, "arena": 1290496,
                      "without sharing": 1326336, "floor": 1290496}


def test_sgd_has_no_state(plan_of):
    buffers, totals = plan_of(TWO_LAYERS, optimizer="sgd(0.1)")
    assert totals["optimizer state"] == 0
    assert not [b for b in buffers if b.section == "optimizer state"]


def test_train_and_eval_share_bytes(plan_of):
    buffers, totals = plan_of(TWO_LAYERS)
    start = totals["weights"] + totals["optimizer state"]
    assert {min(b.offset for b in buffers if b.section == section) for section in ("train", "eval")} == {start}


def test_prediction_lives_to_the_end(plan_of):
    buffers, _ = plan_of(DEEP)
    values = [b for b in buffers if b.section == "eval"]
    assert next(b for b in values if b.name == "eval_prediction").last == max(b.last for b in values)


def test_deep_forward_needs_two_activations(plan_of):
    """Evaluation of a chain of layers alternates between two places."""
    buffers, _ = plan_of(DEEP)
    layers = [b for b in buffers if b.section == "eval" and re.fullmatch(r"eval_h\d", b.name)]
    assert len(layers) == 6
    assert len({b.offset for b in layers}) == 2


def test_in_place(plan_of):
    """The sum of a residual connection is written over the operand that is read for the last time."""
    buffers, _ = plan_of(RESIDUAL)
    r = next(b for b in buffers if b.name == "eval_r")
    h = next(b for b in buffers if b.name == "eval_h")
    assert (r.in_place_of, r.offset, r.first) == (h.name, h.offset, h.last)


def test_product_operand_is_not_overwritten(plan_of):
    """Other tiles still read it: `h` is an operand of the product that makes `r`."""
    buffers, _ = plan_of("  h = relu(linear(x, 256))\n  r = relu(linear(h, 256)) + h\n  logits = linear(r, 10)")
    assert next(b for b in buffers if b.name == "eval_r").in_place_of is None


ROWS = """
data {{
  train = npy("x", "y")
  x : f32[{x}]
  y : {y}
}}
model {{
  {model}
}}
train {{
  {predict}
  loss      = {loss}
  optimizer = adam(1e-3)
  batch     = 64
}}
"""


@pytest.fixture
def rows_of(mtc, tmp_path):
    def plan(model, x="16, 256", y=None, loss="mse(z, y)", predict=""):
        path = tmp_path / "m.mt"
        path.write_text(ROWS.format(model="\n  ".join(model), x=x, y=y or f"f32[{x}]", loss=loss, predict=predict))
        done = mtc("--emit=plan", path)
        assert done.returncode == 0, done.stderr
        buffers, _ = parse(done.stdout)
        return {b.name: b for b in buffers}

    return plan


def test_the_gradient_of_scores_is_written_over_them(rows_of):
    """Softmax and cross-entropy fold a row of scores before they write its gradient; so does softmax before its result."""
    plan = rows_of(["h = relu(linear(x, 64))", "z = linear(h, 8192)"], "64", "class[8192]", "cross_entropy(z, y)")
    for written, scores in ((plan["d_z"], plan["z"]), (plan["eval_prediction"], plan["eval_z"])):
        assert written.in_place_of == scores.name and written.offset == scores.offset


def test_scores_that_are_read_later_stay(rows_of):
    """A layer behind them needs them for its weight's gradient."""
    model = ["h = relu(linear(x, 64))", "z = linear(h, 8192)", "g = linear(z, 32)"]
    plan = rows_of(model, "64", "class[8192]", "cross_entropy(z, y) + mean(g * g)", "predict = softmax(z)")
    assert plan["z"].last > plan["z"].first + 1
    assert plan["z"].name not in [b.in_place_of for b in plan.values()]


@pytest.mark.parametrize("value, in_place", [("layer_norm(h)", True), ("softmax(h)", True), ("softmax(h, axis = 0)", False)])
def test_only_folds_along_the_last_axes_are_of_the_own_row(rows_of, value, in_place):
    """A sum over rows is not complete when the first row is written."""
    plan = rows_of(["h = linear(x, 256)", f"z = {value}"])
    assert (plan["eval_z"].in_place_of == "eval_h") == in_place


@pytest.mark.parametrize("value, in_place", [("table", True), ("gather(table, argmax(a))", False)])
def test_rows_that_are_looked_up_are_not_overwritten(rows_of, value, in_place):
    """Another row may look up the same one."""
    table = 'table = matmul(a, weight([16, 256], name = "b"))'
    plan = rows_of(["a = weight([16, 16])", table, f"s = softmax({value})", "z = x + s"])
    assert ("eval_table" in [b.in_place_of for b in plan.values()]) == in_place


def test_f64_doubles_the_reals(plan_of):
    single, double = plan_of(TWO_LAYERS, "--target", "cpu"), plan_of(TWO_LAYERS, "--target", "cpu", "--real", "f64")
    sizes = [{b.name: b.size for b in buffers} for buffers, _ in (single, double)]
    assert sizes[1]["h_weight"] == 2 * sizes[0]["h_weight"]


def test_svg(mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(MLP.format(model=TWO_LAYERS, batch=64, optimizer="adam(1e-3)"))
    done = mtc("--emit=plan.svg", path)
    root = ElementTree.fromstring(done.stdout)
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(t.startswith("h: f32[64, 128]") for t in titles)
    assert "without sharing" in done.stdout


@pytest.mark.parametrize("precision, kept", [("bf16", "sum"), ("fp32", "sub")])
def test_what_a_norm_keeps_of_its_rows(rows_of, precision, kept):
    """x - mean, or, where x itself is half the bytes of that, the sum of a row, a 256th: the backward pass subtracts again."""
    model = ["h = linear(x, 256)", "n = layer_norm(h)", "z = linear(n, 256)"]
    plan = rows_of(model, predict=f"precision = {precision}")
    size = {"sum": 64 * 16 * 4, "sub": 64 * 16 * 256 * 4}
    assert {name: plan[f"n_{name}"].size for name in size if f"n_{name}" in plan} == {kept: size[kept]}


def wide(mtc, tmp_path, *flags):
    """A plan of layers that have 9 MB of weights each."""
    (tmp_path / "wide.mt").write_text(MLP.format(model="  h = relu(linear(x, 1500))\n  g = relu(linear(h, 1500))\n  k = relu(linear(g, 1500))\n"
                                                      "  logits = linear(k, 10)", optimizer="sgd(0.1)", batch=64))
    return mtc(tmp_path / "wide.mt", *flags)


def test_buckets_are_the_end_of_the_sums(mtc, tmp_path):
    """One behind the other, each complete with a phase that writes the last of it and before the last phase; what the first phases have is in none."""
    done = wide(mtc, tmp_path, "--emit=plan", "--shards", 2)
    buckets = [tuple(map(int, re.findall(r"\d+", line))) for line in re.search(r"^buckets .*?\n((?:  .*\n)+)", done.stdout, re.M)[1].splitlines()]
    sums = [tuple(map(int, line.split()[:2])) for line in done.stdout.splitlines() if "shard_sum" in line]
    end = max(offset + -(-size // 256) * 256 for offset, size in sums)
    assert len(buckets) == 2 and [phase for _, _, phase in buckets] == sorted({phase for _, _, phase in buckets})
    for offset, size, _ in buckets:
        assert offset + size == end and size >= 8 << 20 and any(begin == offset for begin, _ in sums)
        end = offset
    assert end > min(offset for offset, _ in sums)
    schedule = wide(mtc, tmp_path, "--emit=schedule", "--shards", 2).stdout
    assert [int(line.split()[1].rstrip(":")) for line in schedule.splitlines() if line.startswith("  bucket")] == [1, 2]


@pytest.mark.parametrize("flags", [[], ["--shards", 2, "--target", "cpu"], ["--shards", 2, "--shard-optimizer"]])
def test_no_buckets_where_nobody_sends_them(mtc, tmp_path, flags):
    """Without shards there are no sums, the processor copies nothing beside its work, and sums of flat weights go piece by piece."""
    assert "bucket" not in wide(mtc, tmp_path, "--emit=plan", *flags).stdout
