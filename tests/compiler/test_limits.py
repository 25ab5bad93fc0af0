"""Limits, at their edge: the last that is allowed, and the first that is not."""

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


def test_a_row_of_the_data_has_64_bits():
    """So that what begins with row(batch, i) needs no cast."""
    for header in ("cpu/batch.h", "cuda/batch.cuh"):
        assert re.search(r"int64_t row\(", (ROOT / "kernels_lib" / header).read_text())
