"""The table of operators: every example compiles, every operator that computes has a case in ops_cases.py."""

import subprocess

import pytest
from conftest import MTC
from ops_cases import CASES
from test_ops_graph import dump

REFERENCE = subprocess.run([MTC, "--operators"], capture_output=True, text=True).stdout if MTC.exists() else ""
ENTRIES = {entry.split("\n")[0]: entry for entry in REFERENCE.split("\n### ")[1:]}
EXAMPLES = {name: entry.split("```\n")[1].strip() for name, entry in ENTRIES.items() if "```" in entry}


def context(example):
    """A model around an example, in which everything it may mention exists and everything it makes is used."""
    name = example.split()[0]
    inside = name in ("loss", "metric", "optimizer")
    lines = ["data {", '  train = idx("a", "b", "c", "d")', "  input : f32[6]", "  label : class[3]", "  target : f32[3]"]
    lines += ["  image : f32[3, 4, 4]", "}"]
    lines += ["model {", "  shift = weight([6])", "  x = input + shift", "  logits = linear(x, 3)"]
    lines += ["  y = linear(x, 3)" if inside else f"  {example}", "}", "train {"]
    sums = "sum(logits) + sum(target) + sum(image) + sum(one_hot(label, 3))" + ("" if inside else f" + sum({name})")
    train = {"loss": f"loss = {sums}", "optimizer": "optimizer = sgd(0.1)"}
    if inside:
        train[name] = example if name != "loss" else f"{example} + {sums} + sum(y)"
        if name != "loss":
            train["loss"] += " + sum(y)"
    return "\n".join([*lines, *(f"  {line}" for line in train.values()), "  predict = logits", "  batch = 2", "}"]) + "\n"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_compiles(name, tmp_path):
    dump(tmp_path, context(EXAMPLES[name]), "simple")


def test_every_callable_operator_has_an_example():
    assert {name for name, entry in ENTRIES.items() if f"`{name}(" in entry} <= set(EXAMPLES)


def test_every_map_has_a_case():
    section = REFERENCE.split("## Element by element")[1].split("\n## ")[0]
    symbols = {"add": "+", "sub": "-", "mul": "*", "div": "/", "neg": "-", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
               "gt": ">", "ge": ">="}
    for name in (entry.split("\n")[0] for entry in section.split("\n### ")[1:]):
        assert name in ("cast", "clamped", "to_bf16", "to_float", "standardize") or any(symbols.get(name, name) in case.y for case in CASES), f"no case uses '{name}'"
