"""Recurrent layers at sizes where the kernels' blocks, panels and registers end: of several blocks of examples, units that fill no
vector, states that are read from memory. Against NumPy, step by step."""

import numpy as np
import pytest
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
# As far as sums of f32 in another order are from those of f64.
TOLERANCE = {"cpu": dict(rtol=1e-9, atol=1e-11), "cuda": dict(rtol=2e-3, atol=1e-5)}


class Trained:
    """A step at rate 0, whose momentum is the gradient."""

    def __init__(self, target, case, folder, threads=None):
        model = folder / "model.mt"
        model.write_text(MODEL.format(**case))
        mtc(model, "--shared", "-o", folder / "model.so", *TARGETS[target])
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
