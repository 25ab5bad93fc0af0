"""Operators in compiled programs: values against NumPy, gradients against the dumped graph in float64 and against finite
differences of the compiled loss. On the CPU in f64; on a GPU in f32 (`make check-gpu`), where differences are coarse."""

import re
import subprocess

import numpy as np
import pytest
from conftest import MTC
from evaluator import evaluate, parse
from library import Library
from ops_cases import CASES, FARTHEST, Group

pytestmark = pytest.mark.shares("target", "compiled")

GROUP = 12


def first_and_others():
    """Cases that call something, or write a symbol, before all others; and those that call it otherwise."""
    seen, first, others = set(), [], []
    for case in CASES:
        words = set(re.findall(r"[a-z_]\w*(?=\()|[-+*/@<>=!]+", case.y))
        (first if words - seen else others).append(case)
        seen |= words
    return first, others


def groups_of(cases):
    return [cases[i : i + GROUP] for i in range(0, len(cases), GROUP)]


FIRST, OTHERS = map(groups_of, first_and_others())
GROUPS = FIRST + OTHERS
LEVELED = [*(pytest.param(group, marks=pytest.mark.full) for group in FIRST), *OTHERS]  # every operator as users have it, at -O3, once
REALS = {"cpu": ["--real", "f64"], "cuda": []}
TARGETS = {target: ["--target", target, *flags] for target, flags in REALS.items()}
TOLERANCE = {"cpu": dict(rtol=1e-9, atol=1e-12), "cuda": dict(rtol=3e-4, atol=2e-5)}
STEP = {"cpu": 1e-5, "cuda": FARTHEST}
SLOPE = {"cpu": dict(rel=1e-5, abs=1e-7), "cuda": dict(rel=5e-3, abs=5e-3)}


def mtc(*arguments):
    run = subprocess.run([MTC, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


class Compiled:
    """A group of cases, run once: one training step at rate 0, whose momentum is the gradient."""

    def __init__(self, target, cases, folder, compile_model):
        self.target, self.group = target, Group(cases)
        model = folder / "group.mt"
        model.write_text(self.group.model())
        self.graph = parse(mtc("--emit=grad", model))["train"]
        self.path = compile_model(model, "--shared", *REALS[target], target=target).path
        self.library = Library(self.path, np.float64 if target == "cpu" else np.float32)
        self.fields = list(self.group.fields().values())
        self.library.set_data(self.fields)
        self.reset()
        self.loss = self.library.train(1, 1)[0, 0]
        self.gradients = {name: self.library.get(f"{name}.momentum", w.shape) for name, w in self.group.weights.items()}
        self.reset()
        self.losses = self.library.predict(self.fields, len(cases))

    def reset(self):
        for name, value in self.group.weights.items():
            self.library.set(name, value)

    def expected(self):
        leaves = self.group.leaves()
        states = {f"{name}.momentum": np.zeros(leaves[name].shape) for name in self.group.weights}
        return evaluate(self.graph, leaves | states)

    def mean_loss(self, case):
        """Of f64 all cases together; of f32, where others' large losses would round a difference away, that of the case alone."""
        if self.target == "cpu":
            return self.library.evaluate(1)[0]
        return self.library.predict(self.fields, len(self.group.pieces))[:, case].mean(dtype=np.float64)

    def loss_along(self, case, name, direction, distance):
        self.library.set(name, self.group.weights[name] + distance * direction)
        loss = self.mean_loss(case)
        self.library.set(name, self.group.weights[name])
        return loss


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def target(request):
    return request.param


@pytest.fixture(scope="module", params=LEVELED, ids=lambda cases: f"{cases[0].id}..{cases[-1].id}")
def compiled(request, target, tmp_path_factory, compile_model):
    program = Compiled(target, request.param, tmp_path_factory.mktemp("ops"), compile_model)
    yield program
    program.library.close()


def test_values(compiled):
    expected = compiled.group.losses()
    for k, case in enumerate(compiled.group.pieces):
        np.testing.assert_allclose(compiled.losses[:, k], expected[:, k], rtol=2e-5, atol=2e-5, err_msg=case.case.id)
    np.testing.assert_allclose(compiled.loss, compiled.group.loss(), **TOLERANCE[compiled.target])


def test_gradients(compiled):
    expected = compiled.expected()
    for name, gradient in compiled.gradients.items():
        wanted = compiled.group.in_files(name, expected.assigned[f"{name}.momentum"])
        np.testing.assert_allclose(gradient, wanted, **TOLERANCE[compiled.target], err_msg=name)


def test_finite_differences(compiled):
    """Along one random direction per weight."""
    step = STEP[compiled.target]
    for k, piece in enumerate(compiled.group.pieces):
        for name, direction in piece.directions.items() if piece.case.gradient else ():
            above, below = (compiled.loss_along(k, name, direction, distance) for distance in (step, -step))
            slope = (above - below) / (2 * step)
            assert (compiled.gradients[name] * direction).sum() == pytest.approx(slope, **SLOPE[compiled.target]), name
