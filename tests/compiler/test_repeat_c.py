"""Layers that are equal are one function in C too: it is called with the tensors of each place, in loops where layers go on evenly."""

import re
import subprocess

import pytest
from conftest import ROOT
from test_repeat import EQUAL, GROWING, offsets

@pytest.fixture
def emit(mtc, tmp_path):
    def emit(stage, model, *flags):
        path = tmp_path / "m.mt"
        path.write_text(model)
        done = mtc(f"--emit={stage}", "--target", "cpu", path, *flags)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return emit


def functions(source):
    return re.findall(r"^static void (\w+)\(const (?:struct \w+|Tensors) \*t", source, re.M)


def statements(body):
    """Of a function with loops over i: each as often as it is done, i being a number."""
    loop, inside = range(0), []
    for word in re.findall(r"\s*(for \(.*?\)(?: \{)?|\}|[^;{}\s][^;{}]*;)", body):
        if head := re.match(r"for \(int64_t i = 0; i < (\d+); i\+\+\)", word):
            loop, braces = range(int(head[1])), word.endswith("{")
            continue
        if word != "}":
            inside.append(word)
        if word == "}" or not (loop and braces):
            yield from (re.sub(r"\bi\b", str(i), statement) for i in loop or [0] for statement in inside)
            loop, inside = range(0), []


def places(source):
    """Of each function of several places: where its tensors begin at each, by their names at the first."""
    members, found = {}, {}
    for body, name, count in re.findall(r"^    struct \w+ \{\n(.*?)\n    \} (\w+)\[(\d+)\];", source, re.M | re.S):
        members[name] = re.findall(r"\*(\w+)", re.sub(r"^ +const .*", "", body, flags=re.M))
        found[name] = [None] * int(count)
    begin = re.search(r"^static Tensors tensors\(const MtcRun \*run\) \{\n.*?\n    \};\n(.*?)^    return t;", source, re.M | re.S)[1]
    for statement in statements(begin):
        row = re.fullmatch(r"begin_at\(run, t\.(\w+)\[(.*?)\],\s+(.*)\);", statement, re.S)
        if row and row[1] in members:
            numbers = [eval(number.strip()) for number in row[3].split(",")]
            place = eval(row[2])
            assert found[row[1]][place] is None, "a place is set once"
            found[row[1]][place] = dict(zip(members[row[1]], numbers, strict=True))
    assert not [name for name, rows in found.items() if None in rows]
    return found


def test_equal_blocks_are_one_function(emit):
    names = functions(emit("c", EQUAL))
    assert "b_0_u_0_layer" in names and not [name for name in names if re.match(r"(eval_)?b_[1-3]_u", name)]
    assert len(names) == len(functions(emit("c", EQUAL, "--set", "layers=9")))


def test_places_are_those_of_the_plan(emit):
    """The first product of a block reads the weights of the block that it is called for."""
    plan = offsets(emit("plan", EQUAL, "--set", "layers=9"))
    rows = places(emit("c", EQUAL, "--set", "layers=9"))["b_0_u_0_layer_at"]
    assert len(rows) == 9
    for layer, place in enumerate(rows):
        for name in ("b_0_u_0_weight", "b_0_u_0_bias", "b_0_n"):
            assert place[name] == plan[name.replace("b_0", f"b_{layer}")]


def test_different_blocks_are_apart(emit):
    names = functions(emit("c", GROWING))
    assert {f"b_{layer}_u_0_layer" for layer in range(4)} <= set(names)


def test_lines_do_not_grow_with_layers(emit):
    few, many = (len(emit("c", EQUAL, "--set", f"layers={layers}").splitlines()) for layers in (16, 48))
    assert many - few < 2 * (48 - 16), "the tables of the runtime have a mention of each"


def test_what_no_layer_repeats_stays_as_it_is(mtc):
    """Evaluation has functions of its own, and all tensors are members of one struct."""
    source = mtc(ROOT / "models/mnist.mt", "--emit=c").stdout
    assert {"h", "eval_h"} <= set(functions(source)) and "begin_at" not in source


@pytest.mark.parametrize("model, lines", [("gpt2", 4200), ("vit_tiny", 5000)])
def test_a_large_model_is_short(mtc, model, lines):
    assert len(mtc(ROOT / f"models/{model}.mt", "--emit=c").stdout.splitlines()) < lines


def test_locals_may_be_called_like_tensors(mtc):
    """The block after the first reads h_1, which is what both call the number that they store."""
    names = functions(mtc(ROOT / "models/resnet18.mt", "--precision", "fp32", "--emit=c").stdout)
    assert "layer1_0_bn2" in names and "layer1_1_bn2" not in names


def test_long_sums_are_loops_over_the_tensors(emit):
    """The squares of gradients: of many weights by an array of them, of few term by term, and so in loops over vectors."""
    clipped = EQUAL.replace("128", "512").replace("256", "512").replace("  batch ", "  clip_norm = 1\n  batch ")
    source, plan = (emit(stage, clipped) for stage in ("c", "plan"))
    assert "real *squares_to_clip_factor_terms[26];" in source
    found = {}
    for statement in statements(re.search(r"^static Tensors tensors\(.*?^    return t;", source, re.M | re.S)[0].partition("\n    };\n")[2]):
        if row := re.fullmatch(r"begin_at\(run, t\.\w+_terms\[(.*?)\],\s+(.*)\);", statement, re.S):
            found |= {eval(row[1]) + k: eval(number.strip()) for k, number in enumerate(row[2].split(","))}
    squares = [place for name, place in offsets(plan).items() if name.startswith("squares_d_")]
    assert sorted(found) == list(range(26)) and sorted(found.values()) == sorted(squares)
    assert re.search(r"for \(int term = 1; term < 26; term\+\+\)\n +squares\w+ \+= t->squares_to_clip_factor_terms\[term\]\[j\];", source)
    assert "_terms" not in emit("c", clipped, "--set", "layers=1")
    wide = "  w = weight([512], zeros(), name = \"w.first\")\n" + "  repeat i in 0..20 {\n    w = w + weight([512], zeros(), name = \"w.{i}\")\n  }\n"
    summed = "data {\n  train = npy(\"x\", \"y\")\n  x : f32[512]\n  y : f32[512]\n}\nmodel {\n" + wide + "  h = linear(x * w, 512)\n}\n"
    nested = emit("c", summed + "train {\n  loss      = mse(h, y)\n  optimizer = sgd(0.1)\n}\n")
    assert "_terms" not in nested and "t->w_19[j]" in nested


RECORD = """
static Tensors all;
#include <stdio.h>
#include <string.h>
{source}
int main(void) {{
    static const MtcRun run;
    Batch batch = {{&run}};
    Team team = TEAM_READY;
    for (int count = 0; count <= TRAIN_PHASES; count++) {{
        printf("phases %d\\n", count);
        train_phases(&all, &batch, &team, count);
    }}
    printf("kernels\\n");
    for (unsigned k = 0; k < sizeof kernel_table / sizeof *kernel_table; k++)
        train_kernel(&all, &batch, (int)k);
    printf("names\\n");
    for (unsigned k = 0; k < sizeof kernel_table / sizeof *kernel_table; k++)
        printf("%s %d\\n", kernel_table[k].name, kernel_table[k].phase);
}}
"""


def recorded(source, tmp_path):
    """Calls by phases up to each, calls by kernels, and the table's kernels: what functions print that only say who they are."""
    def stub(match):
        own = re.search(r"struct (\w+)_tensors", match[2])
        of = f"(int)(t - all.{own[1]}_at)" if own else "0"
        return f'static void {match[1]}({match[2]}) {{\n    printf("{match[1]} %d\\n", {of});\n}}\n'

    text = re.sub(r"^static void (\w+)\((const (?:struct \w+|Tensors) \*t(?:, const Batch \*batch)?)\) \{\n.*?^\}\n", stub, source, flags=re.M | re.S)
    head, tensors, rest = re.split(r"(?<=\} Tensors;\n)|(?=^typedef struct Tensors \{)", text, maxsplit=2, flags=re.M)
    path = tmp_path / "calls.c"
    path.write_text(head + tensors + RECORD.format(source=rest.partition("// ---- main")[0]))
    subprocess.run(["cc", "-std=gnu11", "-fopenmp", "-w", f"-I{ROOT}/runtime", f"-I{ROOT}/kernels_lib", path, "-o", tmp_path / "calls", "-lm"],
                   check=True)
    out = subprocess.run([tmp_path / "calls"], capture_output=True, text=True, check=True).stdout
    phases, _, rest = out.partition("kernels\n")
    kernels, _, names = rest.partition("names\n")
    return [part.splitlines()[1:] for part in phases.split("phases ")[1:]], kernels.splitlines(), names.splitlines()


@pytest.mark.parametrize("layers", [1, 3, 12])
def test_each_kernel_is_called_once_and_in_its_phase(emit, tmp_path, layers):
    """Step, its beginnings, and one kernel alone agree, whatever of it is a loop."""
    source = emit("c", EQUAL, "--set", f"layers={layers}")
    phases, kernels, names = recorded(source, tmp_path)
    assert len(set(kernels)) == len(kernels) == len(names)
    assert phases[-1] == kernels
    for count, calls in enumerate(phases):
        assert len(calls) == sum(int(name.split()[1]) < count for name in names) and calls == kernels[:len(calls)]
    first = dict(reversed([(call.split()[0], name.split()[0]) for call, name in zip(kernels, names)]))
    assert all(function == name for function, name in first.items()), "a function is called like its first kernel"
