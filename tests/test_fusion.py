"""Numbers that matter: how many kernels and launches a step takes, how many bytes the arena has."""

import re

import pytest

from conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"


def kernels(mtc, model, *flags):
    """The kernels of a training step by name: the text of each."""
    text = mtc("--emit=fused", model, *flags).stdout.partition("\neval:")[0]
    return {name: body for _, name, body in re.findall(r"^  (contract|loop) (\w+)\n((?:    .*\n?)*)", text, re.M)}


def phases(mtc, model, *flags):
    """The names of the kernels of each launch of a training step."""
    text = mtc("--emit=schedule", model, *flags).stdout.partition("\neval:")[0]
    return [re.findall(r"^    (\w+)", phase, re.M) for phase in text.split("\n  phase ")[1:]]


def totals(mtc, model, *flags):
    table = mtc("--emit=plan", model, *flags).stdout.partition("\ntotal\n")[2]
    return {name: int(number) for name, number in re.findall(r"^  (\S.*?) +(\d+)$", table, re.M)}


@pytest.mark.parametrize("target, launches", [("cuda", 3), ("cpu", 4)])
def test_mnist_launches(mtc, target, launches):
    """One more on the CPU, which stores the images as numbers first."""
    assert len(phases(mtc, "models/mnist.mt", "--target", target)) == launches


def test_linear_bias_relu_is_one_kernel(mtc):
    h = kernels(mtc, GOLDEN / "fuse-epilogue.mt")["h"]
    assert "%7:h" in h.splitlines()[0] and "h.bias" in h


def test_classifier_and_its_gradient_are_one_kernel(mtc):
    fused = kernels(mtc, GOLDEN / "fuse-classifier.mt")
    assert len(fused) == 5
    loop = next(body for name, body in fused.items() if "stage" in body and "products" in body)
    assert loop.count("products") == 2
    assert "loss_part" in loop and "d_z" in loop and "d_h" in loop


@pytest.mark.parametrize("model, weights", [("fuse-update", 1), ("fuse-classifier", 4), ("gradient", 2)])
def test_updates_are_in_the_gradients_kernels(mtc, model, weights):
    """Every weight is stored by a kernel of the last launch, and no gradient of a weight goes to memory."""
    last = phases(mtc, GOLDEN / f"{model}.mt")[-1]
    fused = kernels(mtc, GOLDEN / f"{model}.mt")
    text = mtc("--emit=simple", GOLDEN / f"{model}.mt").stdout.partition("\ngraph eval")[0]
    assigned = re.findall(r"= assign\(%\d+, (%\d+)\)", text)
    stores = {name: re.findall(r"%\d+", re.search(r"stores (.*)", body)[1]) for name, body in fused.items()}
    assert len(assigned) >= weights
    assert set(assigned) <= {value for name in last for value in stores[name]}
    names = dict(re.findall(r"^(%\d+) = .* : \S+(?:\[.*?\])? (d_\S+\.(?:weight|bias))  #", text, re.M))
    assert not any(value in names for values in stores.values() for value in values)


def test_chain_of_maps_is_computed_where_it_is_used(mtc):
    """Five maps, the loss and their gradients: a kernel over the examples, one over the weights, one for the mean."""
    assert list(kernels(mtc, GOLDEN / "fuse-chain.mt")) == ["loss_part", "report_loss", "update_w"]


@pytest.mark.parametrize("model", ["models/mnist.mt", GOLDEN / "plan-sharing.mt", GOLDEN / "fuse-residual.mt"], ids=str)
def test_arena(mtc, model):
    bytes_ = totals(mtc, model)
    assert bytes_["arena"] == bytes_["floor"]
    assert bytes_["arena"] < bytes_["without sharing"]


def test_arena_of_mnist(mtc):
    assert totals(mtc, "models/mnist.mt")["arena"] < 1_300_000
