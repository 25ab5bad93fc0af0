"""The table of operators: every example compiles, every operator that computes has a case in ops_cases.py."""

import json
import re
import subprocess

import pytest
from conftest import MTC
from ops_cases import CASES
from test_ops_graph import dump

REFERENCE = subprocess.run([MTC, "--operators"], capture_output=True, text=True).stdout if MTC.exists() else ""
ENTRIES = {entry.split("\n")[0]: entry for entry in REFERENCE.split("\n### ")[1:]}
TABLE = {op["name"]: op for op in json.loads(subprocess.run([MTC, "--operators", "--json"], capture_output=True, text=True).stdout)} if MTC.exists() else {}
EXAMPLES = {name: entry.split("```\n")[1].strip() for name, entry in ENTRIES.items() if "```" in entry}


def context(example):
    """A model around an example, in which everything it may mention exists and everything it makes is used."""
    name = example.split()[0]
    inside = name in ("loss", "metric", "optimizer")
    lines = ["data {", '  train = idx("a", "b", "c", "d")', "  input : f32[6]", "  label : class[3]", "  target : f32[3]"]
    lines += ["  image : u8[3, 4, 4]", "}"]
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
        assert any(symbols.get(name, name) in case.y for case in CASES), f"no case uses '{name}'"


def test_what_a_model_can_write_stands_in_front():
    """Those that passes alone make have sections of their own, at the end."""
    written, internal = REFERENCE.split("\n## In dumps: ", 1)
    assert {entry.split("\n")[0] for entry in written.split("\n### ")[1:]} == set(EXAMPLES)
    assert {"cast", "attend_grad", "field", "assign"} <= {entry.split("\n")[0] for entry in internal.split("\n### ")[1:]}
    assert all(heading.startswith("In dumps: ") for heading in re.findall(r"^## (.*)", f"## In dumps: {internal}", re.M))


def test_table_for_programs():
    """--json says of each function what the reference says, taken apart."""
    table = TABLE
    assert set(table) == {name for name, entry in ENTRIES.items() if f"`{name}(" in entry}
    for name, op in table.items():
        signature = ENTRIES[name].split(f"`{name}(")[1].split(")`\n")[0]
        assert [p["name"] for p in op["parameters"]] == re.findall(r"(?:^|, )(\w+)(?=[:,.]|$| =)", signature)
        assert op["doc"].split(". ")[0] in ENTRIES[name]
        assert (op["kind"] in ("loss", "metric", "optimizer")) == (EXAMPLES[name].split()[0] in ("loss", "metric", "optimizer")) or op["kind"] == "schedule"
    sgd = {p["name"]: p for p in table["sgd"]["parameters"]}
    assert sgd["lr"] == {"name": "lr", "kind": "number", "low": 0, "default": 0.01}
    assert sgd["momentum"] == {"name": "momentum", "kind": "number", "low": 0, "high": 1, "below": True, "default": 0}
    assert sgd["nesterov"] == {"name": "nesterov", "kind": "bool", "default": False}
    assert table["huber"]["parameters"][2] == {"name": "delta", "kind": "number", "low": 0, "above": True, "default": 1}
    modes = {"name": "mode", "kind": "word", "words": ["zeros", "reflect"], "default": "zeros"}
    assert table["random_crop"]["parameters"][2] == table["pad"]["parameters"][4] == modes
    assert table["random_resized_crop"]["parameters"][1:3] == [
        {"name": "size", "kind": "pixels", "default": None},
        {"name": "scale", "kind": "interval", "low": 0, "high": 1, "above": True, "default": None}]
    assert table["one_cycle_lr"]["parameters"][2]["default"] is None
    assert [table[name]["class"] for name in ("relu", "mish", "log_softmax", "wsd_lr")] == ["ReLU", "Mish", "LogSoftmax", "WSD"]


WORDS = [(name, p) for name, op in TABLE.items() for p in op["parameters"] if p.get("kind") == "word"]


@pytest.mark.parametrize("name, parameter", WORDS, ids=lambda each: each if isinstance(each, str) else each["name"])
def test_words_are_those_of_the_table(name, parameter, mtc, tmp_path):
    """Each is taken, and another one is told which there are."""
    def refused(word):
        call = EXAMPLES[name].split(f", {parameter['name']} =")[0].removesuffix(")")
        (tmp_path / "m.mt").write_text(context(f'{call}, {parameter["name"]} = "{word}")'))
        return mtc("--emit=graph", tmp_path / "m.mt").stderr
    known = [f'"{word}"' for word in parameter["words"]]
    expected = f'expected {", ".join(known[:-1])} or {known[-1]}, not '
    assert f'{expected}"another"\n' in refused("another")
    assert not any("expected " in refused(word) for word in parameter["words"])


def test_json_is_of_the_table_alone(mtc):
    done = mtc("--json")
    assert done.returncode == 64 and "--json goes with --operators" in done.stderr
