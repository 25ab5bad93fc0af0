"""Recurrent layers at sizes where the kernels' blocks, panels and registers end: of several blocks of examples, units that fill no
vector, states that are read from memory. Against NumPy, step by step."""

import re
import subprocess

import numpy as np
import pytest
from conftest import ROOT
from evaluator import evaluate, parse
from library import Library
from test_ops_compiled import TARGETS, mtc

MODEL = """data {{
  train = idx("x", "n", "y")
  x : f32[{steps}, {features}]
  n : f32
  y : f32[{units}]
}}
model {{
  h = {cell}(x, {units}, lengths = n{more})
}}
train {{
  loss      = mean(h * h * y)
  predict   = h
  optimizer = sgd(0, momentum = 0.9)
  batch     = {batch}
}}
"""
CASES = {
    "blocks": dict(cell="gru", units=20, steps=5, features=7, batch=37, more=""),
    "vectors": dict(cell="lstm", units=97, steps=4, features=5, batch=17, more=", reverse = true"),
    "registers": dict(cell="lstm", units=200, steps=3, features=4, batch=2, more=""),
    "caches": dict(cell="gru", units=300, steps=3, features=4, batch=3, more=", reverse = true"),
    "examples": dict(cell="lstm", units=24, steps=3, features=4, batch=259, more=""),
    "several": dict(cell="gru", units=33, steps=3, features=4, batch=131, more=""),
    "plain": dict(cell="rnn", units=130, steps=4, features=6, batch=5, more=""),
    "one": dict(cell="lstm", units=1, steps=6, features=1, batch=3, more=""),
}
# On GPUs whose blocks share the units out among them: 4, 8 or 16, of one example or several, with units that fill none of them.
SHARED = {
    "4": dict(cell="lstm", units=128, steps=4, features=5, batch=64, more=""),
    "4-odd": dict(cell="gru", units=131, steps=3, features=3, batch=5, more=", reverse = true"),
    "4-waves": dict(cell="lstm", units=100, steps=3, features=3, batch=301, more=", reverse = true"),
    "4-rnn": dict(cell="rnn", units=300, steps=3, features=3, batch=3, more=', activation = "relu"'),
    "8": dict(cell="lstm", units=256, steps=4, features=5, batch=64, more=", reverse = true"),
    "8-odd": dict(cell="gru", units=250, steps=3, features=3, batch=3, more=""),
    "16": dict(cell="lstm", units=512, steps=3, features=4, batch=64, more=""),
    "16-one": dict(cell="lstm", units=300, steps=3, features=4, batch=1, more=""),
    "16-odd": dict(cell="gru", units=509, steps=3, features=4, batch=67, more=", reverse = true"),
}
# As far as sums of f32 in another order are from those of f64.
TOLERANCE = {"cpu": dict(rtol=1e-9, atol=1e-11), "cuda": dict(rtol=2e-3, atol=1e-5)}


class Trained:
    """A step at rate 0, whose momentum is the gradient."""

    def __init__(self, target, case, folder, more=()):
        model = folder / "model.mt"
        model.write_text(MODEL.format(**case))
        mtc(model, "--shared", "-o", folder / "model.so", *TARGETS[target], *more)
        random = np.random.default_rng(3)
        batch, steps = case["batch"], case["steps"]
        fields = [random.normal(size=(batch, steps, case["features"])), random.integers(0, steps + 2, batch), random.normal(size=(batch, case["units"]))]
        self.graph = parse(mtc("--emit=grad", model))["train"]
        self.library = Library(folder / "model.so", np.float64 if target == "cpu" else np.float32)
        self.fields = [np.ascontiguousarray(field, dtype=np.float32) for field in fields]
        self.library.set_data(self.fields)
        names = [node.name for node in self.graph if node.op == "weight"]
        self.weights = {node.name: (0.5 * random.normal(size=node.shape)).astype(np.float32) for node in self.graph if node.op == "weight"}
        assert len(names) == 4
        for name, value in self.weights.items():
            self.library.set(name, self.in_files(name, value))
        self.loss = self.library.train(1, 1)[0, 0]

    @staticmethod
    def in_files(name, value):
        return np.ascontiguousarray(value.T if "weight_hh" in name else value)

    def gradient(self, name):
        value = self.library.get(f"{name}.momentum", self.in_files(name, self.weights[name]).shape)
        return value.T if "weight_hh" in name else value

    def expected(self):
        leaves = dict(zip("xny", self.fields)) | {name: value.astype(np.float64) for name, value in self.weights.items()}
        states = {f"{name}.momentum": np.zeros(value.shape) for name, value in self.weights.items()}
        return evaluate(self.graph, leaves | states)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_recurrent(target, case, tmp_path):
    trained = Trained(target, case, tmp_path)
    expected = trained.expected()
    np.testing.assert_allclose(trained.loss, expected.reports["loss"], rtol=1e-9 if target == "cpu" else 1e-4)
    for name in trained.weights:
        np.testing.assert_allclose(trained.gradient(name), expected.assigned[f"{name}.momentum"], **TOLERANCE[target], err_msg=name)
    trained.library.close()


@pytest.mark.parametrize("cell, units, more, blocks", [
    ("lstm", 64, (), 0), ("lstm", 128, (), 4), ("gru", 256, (), 8), ("lstm", 512, (), 16), ("lstm", 513, (), 0), ("rnn", 512, (), 8),
    ("lstm", 128, ("--arch", "sm_80"), 0), ("lstm", 256, ("--arch", "sm_120"), 8), ("lstm", 512, ("--arch", "sm_120"), 0),
    ("lstm", 128, ("--schedule", "persistent"), 4),
])
def test_who_shares(cell, units, more, blocks, tmp_path):
    """Layers whose U a block's registers do not hold, where a device has such clusters; a persistent launch has none."""
    model = tmp_path / "model.mt"
    model.write_text(MODEL.format(cell=cell, units=units, steps=3, features=4, batch=8, more=""))
    source = mtc(model, "--target", "cuda", *(more if "--arch" in more else ("--arch", "sm_90", *more)), "--emit=cu")
    apart = "persistent" in more
    shapes = re.findall(r"= Recurrence<float, .*false(?:, (\d+))?>(::Apart)?;", source)
    assert shapes == 3 * [(str(blocks or ""), "")] if not apart else shapes == 2 * [(str(blocks), "::Apart")] + [(str(blocks), "")]
    assert source.count(f"InCluster<{blocks}, ") == (0 if not blocks else 1 if apart else 3)


def test_on_the_host(tmp_path):
    """Blocks that share the units out, without a GPU: what one block has of them, and the same bits where each works apart; within
    the shared memory that there is, of any number of units."""
    flags = ["-std=c++17", "-O0", "-Wno-unknown-pragmas", "-ffp-contract=off", "-I", ROOT / "kernels_lib"]
    subprocess.run(["g++", *flags, "-o", tmp_path / "host", ROOT / "tests/kernels/recurrent_host.cpp", "-lpthread"], check=True)
    memory, *cases = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout.splitlines()
    together, apart = map(int, memory.split())
    assert 128 << 10 < together <= 227 << 10 and 0 < apart <= 64 << 10
    assert len(cases) == 2
    for case in cases:
        worst, bits = case.split()
        assert 0 < float(worst) < 1e-6 and bits == "same"


@pytest.mark.gpu
@pytest.mark.parametrize("case", SHARED.values(), ids=SHARED)
def test_shared_out(case, tmp_path):
    """As f64 has it; and to the bit, run after run and whatever schedule: a block that has all units has the same sums."""
    check_bits(case, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("cell, units", [("lstm", 128), ("gru", 256), ("lstm", 512)])
def test_long(cell, units, tmp_path):
    """Many steps, over which f32 and f64 part: what blocks send each other are the numbers of one that works apart."""
    check_bits(dict(cell=cell, units=units, steps=60, features=3, batch=33, more=""), tmp_path, exact=False)


def check_bits(case, folder, exact=True):
    bits = []
    for schedule in ("graph", "graph", "persistent"):
        own = folder / str(len(bits))
        own.mkdir()
        trained = Trained("cuda", case, own, more=("--schedule", schedule))
        if exact and not bits:
            expected = trained.expected()
            for name in trained.weights:
                np.testing.assert_allclose(trained.gradient(name), expected.assigned[f"{name}.momentum"], **TOLERANCE["cuda"], err_msg=name)
        bits.append([trained.gradient(name) for name in trained.weights])
        trained.library.close()
    assert all(np.isfinite(value).all() for value in bits[0])
    for again in bits[1:]:
        for name, value, first in zip(trained.weights, again, bits[0]):
            np.testing.assert_array_equal(value, first, err_msg=name)
