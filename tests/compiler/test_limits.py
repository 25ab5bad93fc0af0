"""Limits, at their edge: the last that is allowed, and the first that is not."""

import math
import re

import pytest
from conftest import ROOT

MODEL = """{params}
data {{
  train = npy("x", "y")
  x : f32[{image}]
  y : f32[3]
}}
model {{
  h = {h}
  s = linear(flatten(h), 3)
}}
train {{
  loss      = mse(s, y)
  optimizer = sgd(0.1)
  batch     = {batch}
}}
"""


def model(h="x", params="", image="1, 6, 6", batch=4):
    return MODEL.format(params=params, h=h, image=image, batch=batch)


@pytest.fixture
def emitted(mtc, tmp_path):
    def run(text, stage="c"):
        (tmp_path / "m.mt").write_text(text)
        return mtc(f"--emit={stage}", tmp_path / "m.mt")

    return run


@pytest.mark.parametrize("params, refused", [
    ("\n".join(f"param p{i} = 1" for i in range(32)), None),
    ("\n".join(f"param p{i} = 1" for i in range(33)), "a model has at most 32 params"),
    ("param p = 1 in 0..1", None), ("param p = 0 in 0..1", None), ("param p = 0 in 0..0", None),
    ("param p = 1.0001 in 0..1", "'p' is 1.0001, outside its own range 0..1"),
    ("param p = -0.0001 in 0..1", "'p' is -0.0001, outside its own range 0..1"),
], ids=["32", "33", "highest", "lowest", "both", "above", "below"])
def test_params(params, refused, emitted):
    done = emitted(model(params=params), "graph")
    assert (refused in done.stderr) if refused else (done.returncode == 0), done.stderr


@pytest.mark.parametrize("pool", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("kernel, padding, refused", [(4, 2, False), (3, 1, False), (3, 2, True), (4, 3, True), (1, 1, True)])
def test_padding_of_half_a_kernel(pool, kernel, padding, refused, emitted):
    """More, and a window would see nothing but padding."""
    done = emitted(model(f"{pool}(x, {kernel}, padding = {padding})"), "graph")
    assert (done.returncode != 0) == refused
    assert not refused or f"the padding is at most half of the kernel, {kernel // 2}" in done.stderr


@pytest.mark.parametrize("batch, wide", [(32767, False), (32769, True), (65537, True)])
def test_offsets_that_do_not_fit_an_int(batch, wide, emitted):
    """Of tensors of 2^31 - 65536 elements, of a few more than 2^31, and of more than 2^32: places in these are 64 bits wide."""
    text = emitted(model("exp(x) * sigmoid(x + 1)", image="65536", batch=batch)).stdout
    places = re.findall(r"t->(x|h|eval_h)\[([^][]*\* X \+ j)\]", text)
    assert len(places) >= 4
    for tensor, place in places:
        assert place.startswith("row(batch, i)" if tensor == "x" else "(int64_t)i" if wide else "i"), place


POOLED = "max_pool(relu(conv2d(x, 64, 3, padding = 1)), 2)"


def largest_ints(text):
    """Of each place that is a sum of products of sizes and counters, those products that are computed with 32 bits: text, most."""
    sizes = {name: int(value) for name, value in re.findall(r"^    (\w+) = (\d+),?$", text, re.M)}
    for body in re.split(r"^}$", text, flags=re.M):
        most = dict(sizes)
        for name, end in re.findall(r"for \(int (\w+) = 0; \1 < ([A-Z\d_ *]+);", body):
            most[name] = eval(end, {}, sizes)
        for place in re.findall(r"\w\[([^][]*)\]", body):
            for term in re.split(r"\s\+\s+", place):
                factors = term.split(" * ")
                if all(factor in most or factor.isdigit() for factor in factors):
                    yield term, math.prod(most.get(factor) or int(factor) for factor in factors)


@pytest.mark.parametrize("h, image, batch", [(POOLED, "1, 8192, 8192", 2), (POOLED, "1, 256, 256", 600)])
def test_no_product_of_sizes_overflows(h, image, batch, emitted):
    """Each term of a place by itself; an example may have more than 2^31 numbers."""
    text = emitted(model(h, image=image, batch=batch)).stdout
    products = list(largest_ints(text))
    assert len(products) > 20 and "int64_t" in text
    assert all(most < 2**31 for _, most in products), [p for p in products if p[1] >= 2**31]


@pytest.mark.parametrize("rows, counter", [(46339, "int"), (46350, "int64_t")])
def test_a_sum_of_more_terms_than_an_int_counts(rows, counter, emitted):
    h = "reshape(sum(exp(x) * tanh(x)), [1])"
    text = emitted(model(h, image=f"{rows}, 46341", batch=1)).stdout
    count = "(int64_t)X_ROWS * X_COLUMNS" if counter == "int64_t" else "X_ROWS * X_COLUMNS"
    assert f"for ({counter} j = 0; j < {count}; j++)" in text
    assert f"for ({counter} j = team.first; j < {count}; j += team.stride)" in emitted(model(h, image=f"{rows}, 46341", batch=1), "cu").stdout


@pytest.mark.parametrize("image, axis, extent", [
    ("2, 46341, 46341", 0, "(int64_t)X_1 * X_2"), ("46341, 46341, 2", 2, "(int64_t)BATCH * X_0 * X_1"), ("2, 46340, 46340", 0, "X_1 * X_2"),
])  # fmt: skip
@pytest.mark.parametrize("stage", ["c", "cu"])
def test_what_a_kernel_of_the_library_is_told(image, axis, extent, stage, emitted):
    """Lines beside each other, or the numbers of an element: a number by itself, which an int may not hold."""
    text = emitted(model(f"reshape(sum(cumsum(exp(x), axis = {axis})), [1])", image=image, batch=1), stage).stdout
    shapes = re.findall(r"CumSum shape = {(.*)};|CumSum<(.*)>;", text)
    assert shapes and all(extent in re.split(", |= ", "".join(shape)) for shape in shapes)


@pytest.mark.parametrize("batch, lines", [
    (511, ["int i = tile * THREADS + threadIdx.x, patch", "if (i >= BATCH * Patches::count * (H_CHANNELS / 4))"]),
    (512, ["int64_t i = 4 * ((int64_t)tile * THREADS + threadIdx.x);", "if (i >= (int64_t)BATCH * X_ROWS * X_COLUMNS * H_CHANNELS)",
           "divide_up((int64_t)BATCH * X_ROWS * X_COLUMNS * H_CHANNELS, (4 * Thread::rows))"]),
])  # fmt: skip
def test_counters_that_do_not_fit_an_int(batch, lines, emitted):
    """A kernel whose rows are the elements of such a tensor, the gradient of the layer before the pool; where an int counts them, it has
    patches of them."""
    text = emitted(model(POOLED, image="1, 256, 256", batch=batch), "cu").stdout
    assert [line for line in lines if line not in text] == []


@pytest.mark.parametrize("batch, wide", [(500, False), (512, True)])
def test_where_a_part_of_an_operand_begins(batch, wide, emitted):
    text = emitted(model(POOLED, image="1, 256, 256", batch=batch), "cu").stdout
    parts = re.findall(r"matrix<H_CHANNELS>\(t\.\w*d_h\w+ \+ (\S*b) \* ", text)
    assert parts and set(parts) == {"(int64_t)b" if wide else "b"}


def test_a_row_of_the_data_has_64_bits():
    """So that what begins with row(batch, i) needs no cast."""
    for header in ("cpu/batch.h", "cuda/batch.cuh"):
        assert re.search(r"int64_t row\(", (ROOT / "kernels_lib" / header).read_text())
