"""Layers that are equal are compiled once: their kernels are one function, which is told the place of its tensors."""

import re
import subprocess

import numpy as np
import pytest
from conftest import ROOT
from library import Library

MODEL = """
param layers = 4
data {{
  train = npy("x", "y")
  x : f32[16, 128]
  y : f32[16, 128]
}}
fn block(x[t, width], hidden) {{
  n = layer_norm(x)
  u = linear(gelu(linear(n, hidden)), width)
  return x + u
}}
model {{
  h = linear(x, 128)
  repeat i in 0..layers {{
    h = block(h, {hidden}, name = "b.{{i}}")
  }}
}}
train {{
  loss      = mse(h, y)
  optimizer = adam(1e-3)
  batch     = 64
}}
"""
EQUAL, GROWING = MODEL.format(hidden="256"), MODEL.format(hidden="128 * (i + 1)")
LAYERS = 4


@pytest.fixture
def emit(mtc, tmp_path):
    def emit(stage, model, *flags):
        path = tmp_path / "m.mt"
        path.write_text(model)
        schedule = [] if "--schedule" in flags else ["--schedule", "graph"]
        done = mtc(f"--emit={stage}", path, *schedule, *flags)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return emit


def kernels(source):
    """Each with the text of its struct."""
    return {name: text for name, text in re.findall(r"^struct (\w+) \{\n(.*?)^\};", source, re.M | re.S) if "void run(" in text}


def functions(source):
    return list(kernels(source))


def numbers(text):
    return [int(number) for number in re.findall(r"-?\d+", text)]


def expanded(rows, runs):
    """Rows of whole numbers, or of runs of them: the first, how many rows behind it the next is, how many, begins, steps."""
    text = re.sub("//.*", "", runs)
    table = [None] * rows
    for row, every, times, begins, steps in re.findall(r"\{(\d+),\s+(\d+),\s+(\d+),\s+\{(.*?)\}(?:,\s+\{(.*?)\})?\}", text, re.S):
        begins = numbers(begins)
        steps = numbers(steps) or [0] * len(begins)
        for n in range(int(times)):
            assert table[int(row) + n * int(every)] is None, "a row is of one run"
            table[int(row) + n * int(every)] = [begin + n * step for begin, step in zip(begins, steps, strict=True)]
    return table


SIZED = re.compile(r"^static __constant__ constexpr (?:unsigned|Places<unsigned, (?P<rows>\d+), \d+>) (?P<first>\w+)_places(?:\[.*?\] = |\()"
                   r"\{\n(?P<table>.*?)\n\}\)?;\n(?:// clang-format on\n)?template <int FIRST, int PLACES(?:,\s+int \w+)+>\s+struct (?P<general>\w+_sized) \{\n"
                   r"(?P<text>.*?)^\};\n(?:// clang-format off\n)?(?P<sizes>(?:^struct \w+\s+: .*?\{\};\n)+)", re.M | re.S)


def one_apart(match):
    """The kernels of several sizes, with tables of their own."""
    first, rows, text = match["first"], match["rows"], match["text"]
    table = expanded(int(rows), match["table"]) if rows else [numbers(row) for row in re.findall(r"\{(.*?)\}", match["table"], re.S)]
    for name, begin, places in re.findall(rf"struct (\w+)\s+: {match['general']}<(\d+),\s+(\d+),\s.*?> \{{\}};", match["sizes"], re.S):
        own = table[int(begin):int(begin) + int(places)]
        assert len(own) == int(places) and len(text) > 100
        lines = "".join(f"    {{{', '.join(map(str, row))}}}, // {name}_{k}\n" for k, row in enumerate(own))
        flat = re.sub(r"begin_at\(\(.*? \+ FIRST\)\[PLACES == 1 \? 0 : row\]", f"begin_at({name}_places[row]", text)
        yield f"static __constant__ unsigned {name}_places[{places}][{len(own[0])}] = {{\n{lines}}};\nstruct {name} {{\n{flat}}};\n"


def apart(source):
    """As if what differs in sizes were not written once."""
    source = SIZED.sub(lambda match: "".join(one_apart(match)), source)
    assert "_sized<" not in source
    return source


def tables(source):
    """Of each kernel of several places: the places, a row each with where its tensors begin, by their names at the first."""
    found, text = {}, kernels(source)
    plain = {name: [numbers(row) for row in re.findall(r"\{(.*?)\}", rows)]
             for name, rows in re.findall(r"unsigned (\w+)_places\[\d+\]\[\d+\] = \{\n(.*?)\n\};", source, re.S)}
    runs = {name: expanded(int(rows), table)
            for rows, name, table in re.findall(r"Places<unsigned, (\d+), \d+> (\w+)_places\(\{\n(.*?)\n\}\);", source, re.S)}
    for name, rows in (plain | runs).items():
        tensors = re.search(r"struct Own .*?^    };", text[name], re.M | re.S).group()
        members = re.search(rf"begin_at\({name}_places(?:\.at)?\[row\],\s*(.*?)\);", tensors, re.S)[1].replace(",", " ").split()
        assert sorted(members) == sorted(re.findall(r"\*(\w+)[,;]", tensors)[-len(members):])
        found[name] = [dict(zip(members, row, strict=True)) for row in rows]
    return found


def offsets(plan):
    return {name: int(offset) for offset, name in re.findall(r"^ +(\d+) +\d+ +\S.*?(?:always|\d-?\d*)  +(\w+)", plan, re.M)}


def test_equal_blocks_are_one_function(emit):
    source = apart(emit("cu", EQUAL))
    names = functions(source)
    assert not [name for name in names if re.match(r"(eval_)?b_[1-3]_u", name)], "one function each for all blocks"
    launched = {re.sub(r"^At(?:Each)?<(\w+),.*", r"\1", kernel) for kernel, _ in launches(source)}
    for name, tensors in tables(source).items():
        assert tensors and "static __device__ void run(const Own &t, " in kernels(source)[name]
        assert name in launched


def test_places_are_those_of_the_plan(emit):
    """The first product of a block reads the weights of the block that it is called for."""
    tensors = next(rows for name, rows in tables(apart(emit("cu", EQUAL))).items() if name.startswith("b_0_u_0"))
    plan = offsets(emit("plan", EQUAL))
    assert len(tensors) == LAYERS
    for layer, place in enumerate(tensors):
        for name in ("b_0_u_0_weight", "b_0_u_0_bias", "b_0_n"):
            assert place[name] * 256 == plan[name.replace("b_0", f"b_{layer}")]


def test_runs_of_places_are_those_of_the_plan(emit):
    """The same of twelve blocks, whose rows go on evenly."""
    source, plan = (emit(stage, EQUAL, "--set", "layers=12") for stage in ("cu", "plan"))
    assert "Places<unsigned, " in source
    begins = {place * 256 for rows in tables(apart(source)).values() for row in rows for place in row.values()}
    assert begins <= set(offsets(plan).values()) and len(begins) > 12 * 8


def items(text):
    """What commas outside of brackets separate."""
    depth, item = 0, ""
    for sign in " ".join(text.split()):
        depth += {"<": 1, ">": -1}.get(sign, 0)
        if sign == "," and not depth:
            yield item.strip()
            item = ""
        else:
            item += sign
    yield item.strip()


def arguments_of(template, text):
    """Of `template<...>`; None: it is something else."""
    return list(items(text[len(template) + 1:-1])) if text.startswith(f"{template}<") else None


def listed(launches):
    """The launches of a step's list, what Times repeats as often as it does, each with how many others programs made."""
    for launch in launches:
        if cycle := arguments_of("Times", launch):
            yield from list(listed(cycle[1:])) * int(cycle[0])
        elif again := arguments_of("Again", launch):
            yield again[0], int(again[1])
        else:
            yield launch, 0


def launches(source):
    """Of each program: the kernels of its launches, each with how often the launch was made before."""
    named = dict(re.findall(r"^using (\w+) =\s+(.*?);$", source, re.M | re.S))
    for step in re.findall(r"^using \w+ =\s+Step<\s*Tensors, BATCH, REPORTS,(.*?)>;$", source, re.M | re.S):
        made = {}
        for name, before in listed(items(step)):
            made[name] = made[name] + 1 if name in made else before
            launch = " ".join(named.get(name, name).split())
            inner = re.search(r"\b(?:Phase|Beside)<.*", launch).group()
            while inner.count("<") < inner.count(">"):
                inner = inner.removesuffix(">")
            yield from ((kernel, made[name]) for kernel in (arguments_of("Phase", inner) or arguments_of("Beside", inner)))


def places_ahead(text, again):
    """Those of which the function of a launch makes the tensors of its kernels."""
    for kernel, place in re.findall(r"(\w+)::Own own\(t, (.*?)\);", text):
        counted = re.search(rf"tiles = [^;]*?(\d+) \* {kernel}::tiles", text) if "tile /" in place else None
        first = eval(re.sub(r"(^| \+ )tile / [\w:]+", "", place) or "0", {"batch": type("Batch", (), {"again": again})})
        yield from ((kernel, first + n) for n in range(int(counted[1]) if counted else 1))


def places_visited(source):
    """Of each kernel of several places: those that the launches of all programs call it for."""
    visited, text = {name: [] for name in tables(source)}, kernels(source)
    for kernel, again in launches(source):
        if at := arguments_of("At", kernel):
            first, step, count = map(int, [*at[1:], 1][:3])
            visited[at[0]] += range(first + step * again, first + step * again + count)
        elif each := arguments_of("AtEach", kernel):
            first = int(each[2 + again])
            visited[each[0]] += range(first, first + int(each[1]))
        elif kernel in visited:
            visited[kernel].append(again)
        else:
            for called, place in places_ahead(text[kernel], again):
                visited[called].append(place)
    return visited


@pytest.mark.nvcc
def test_steps_have_more_launches_than_compilers_nest_templates(tmp_path):
    launch = "struct Launch { static constexpr int shared = 0, in_turns = 0; };"
    source = f"""#include <algorithm>
#include "cuda/phase.cuh"
{launch}
using Train = Step<int, 1, 1, {"Launch, " * 600}Times<500, Launch, Times<2, Launch>>>;
static_assert(Train::launches == 600 + 500 * 3);
"""
    (tmp_path / "step.cu").write_text(source)
    done = subprocess.run(["nvcc", "-std=c++17", f"-I{ROOT}/kernels_lib", f"-I{ROOT}/runtime", "-ptx", "-o", tmp_path / "step.ptx", tmp_path / "step.cu"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_long_sums_are_loops_over_the_tensors(emit):
    """The squares of gradients: of many weights by a table of where they begin, of few term by term, and where tensors are at hand."""
    clipped = EQUAL.replace("128", "512").replace("256", "512").replace("  batch ", "  clip_norm = 1\n  batch ")
    source, plan = (emit(stage, clipped) for stage in ("cu", "plan"))
    table = re.search(r"unsigned squares_to_clip_factor_terms\[26\]\[1\] = \{\n(.*?)\n\};", source, re.S)[1]
    begins = {name: int(place) * 256 for place, name in re.findall(r"\{(\d+)\}, +// (\w+)", table)}
    assert begins == {name: place for name, place in offsets(plan).items() if name.startswith("squares_d_")} and len(begins) == 26
    assert re.search(r"for \(int term = 1; term < 26; term\+\+\)\n +squares\w+ \+= at_place<float>\(", source)
    for source in (emit("cu", clipped, "--set", "layers=1"), emit("cu", clipped, "--schedule", "persistent")):
        assert "squares_to_clip_factor" in source and "at_place" not in source


def test_long_sums_leave_room_in_constant_memory(emit):
    """It has 64 KB, and tables of places need some."""
    vectors = """data {
  train = npy("x", "y")
  x : f32[4]
  y : f32[4]
}
model {
  w = weight([4], zeros(), name = "w.first")
  repeat i in 0..COUNT {
    w = w + weight([4], zeros(), name = "w.{i}")
  }
  h = x * w
}
train {
  loss      = mse(h, y)
  optimizer = sgd(0.1)
}
"""
    for count, memory in ((100, "__constant__"), (2050, "__device__ const")):
        source = emit("cu", vectors.replace("COUNT", str(count)))
        assert re.search(rf"^static {memory} Places<unsigned, {count + 1}, 1> \w+_terms\(", source, re.M)
    assert "in units of 256 bytes" in source


def test_rows_of_tables_are_told_apart(emit):
    """By what they are of: those of training and of evaluation are not called the same, and a run of one thing says it once."""
    source = emit("cu", EQUAL)
    found = re.findall(r" (\w+)_places(?:\[\d+\]\[\d+\] = \{|\(\{)\n(.*?)\n\}", source, re.S)
    for name, rows in found:
        said = re.findall(r"// (.*)", rows)
        assert said and len(set(said)) == len(said), name
    assert found and not re.search(r"// (\w+) \.\.\. \1$", source, re.M)


def test_launches_that_come_again_are_listed_once(emit):
    """A step's list is as long for forty layers as for ten."""
    short, long = (re.search(r"^using Train =.*?>;$", emit("cu", EQUAL, "--set", f"layers={layers}"), re.M | re.S).group().count("\n")
                   for layers in (10, 40))
    assert long == short


@pytest.mark.parametrize("model", ["gpt2", "resnet18", "vit_tiny"])
def test_launches_call_each_place_once(model, mtc):
    source = apart(mtc("--emit=cu", "--schedule", "graph", f"models/{model}.mt").stdout)
    places = tables(source)
    assert len(places) > 20 and max(map(len, places.values())) > 5
    for name, visited in places_visited(source).items():
        assert sorted(visited) == list(range(len(places[name]))), name


def test_launches_say_which_kernels_they_are_of(mtc):
    """Of one kernel its name, of several theirs, and the rows of those whose places do not follow on each other."""
    source = mtc("--emit=cu", "--schedule", "graph", "models/resnet18.mt").stdout
    made = list(launches(source))
    names = set(re.findall(r"^struct (\w+)", source, re.M))
    assert len({kernel for kernel, _ in made if kernel in names}) > 100
    at = {kernel for kernel, _ in made if kernel.startswith("At")}
    assert len(at) > 15 and all(arguments_of(kernel.partition("<")[0], kernel)[0] in names for kernel in at)
    assert "static __device__ void train_" not in source
    assert all(" " not in name for name in re.findall(r"^using (.*?) = (?:Phase|Beside)", source, re.M))


def test_a_kernel_takes_all_parameters(emit):
    """Those that it does not need without a name."""
    source = apart(emit("cu", EQUAL))
    own = set()
    for name, text in kernels(source).items():
        tensors, = re.findall(r"void\s+run\(const (\w+) &t?,\s+const Batch &(?:batch)?,\s+int(?: tile)?,\s+char \*(?:shared)?,\s+Gate &(?:gate)?\) {", text)
        assert (tensors == "Own") == (name in tables(source))
        own.add(tensors)
    assert own == {"Own", "Tensors"}


def kernel_rows(source):
    """(name, phase) of each row of kernel_table."""
    text = re.search(r"static const MtcKernel kernel_table\[\] = \{\n(.*?)\n\};", source, re.S)[1]
    plain = subprocess.run(["cpp", "-P"], input=text, capture_output=True, text=True, check=True).stdout
    return [(name, eval(phase)) for name, phase in re.findall(r'\{"(\w+)", -?\d+, ([-+*\d ]+), ', re.sub(r'"\s+"', "", plain))]


@pytest.mark.parametrize("model", ["gpt2", "resnet18"])
def test_kernels_are_counted_as_launches_have_them(mtc, model):
    """cuda/repeated.cuh finds one by its number in kernel_table."""
    source = mtc("--emit=cu", "--schedule", "graph", f"models/{model}.mt").stdout
    rows, counted = kernel_rows(source), []
    for kernel, again in launches(re.sub(r"^using (?!Train\b)\w+ =\s+Step<.*?;$", "", source, flags=re.M | re.S)):
        name, first, step, count = kernel, 0, 1, 1
        if at := arguments_of("At", kernel):
            name, first, step, count = at[0], *map(int, [*at[1:], 1][:3])
        elif each := arguments_of("AtEach", kernel):
            name, first, step, count = each[0], int(each[2 + again]), 0, int(each[1])
        counted += [(name, first + step * again + n) for n in range(count)]
    assert len(counted) == len(rows) == int(re.search(r"\.kernels = (\d+)", source)[1])
    firsts = [(function, name) for (function, place), (name, _) in zip(counted, rows) if place == 0]
    assert len(firsts) > 40 and all(re.fullmatch(rf"{name}(_\d+|_kernel)?", function) for function, name in firsts)
    assert [phase for _, phase in rows] == sorted(phase for _, phase in rows)


def test_the_number_of_functions_is_that_of_the_kinds_of_layers(emit):
    counts = {layers: len(functions(emit("cu", EQUAL, "--set", f"layers={layers}"))) for layers in (2, 6)}
    assert counts[2] == counts[6]


def test_different_blocks_are_apart(emit):
    """What differs in a size is another function, with other tiles, though all are written once."""
    source = apart(emit("cu", GROWING))
    names = functions(source)
    for layer in range(LAYERS):
        assert [name for name in names if name.startswith(f"b_{layer}_u_0")]
    assert not [name for name in tables(source) if re.match(r"b_\d_u_0", name) and len(tables(source)[name]) >= LAYERS]


def test_blocks_that_differ_in_sizes_are_written_once(emit):
    """A struct says the sizes of each; what eight are of is no more text than what four are of."""
    source, longer = (emit("cu", GROWING, "--set", f"layers={layers}") for layers in (4, 8))
    sizes = next(match["sizes"] for match in SIZED.finditer(source) if match["first"] == "b_0_u_0_layer")
    assert re.findall(r"^struct b_(\d)_u_0_layer\s", sizes, re.M) == list("0123")
    assert [re.search(rf"struct b_{layer}_u_0_layer\s+: \w+<{layer}, 1, ([A-Z]\w*), ", sizes)[1] for layer in (1, 2, 3)] == ["B_1_U_0", "B_2_U_0", "B_3_U_0"]
    assert len(functions(apart(longer))) > 1.5 * len(functions(apart(source)))
    assert longer.count("static __device__ void") < 1.5 * source.count("static __device__ void")


def test_a_persistent_kernel_has_all_tensors_at_hand(emit):
    """It is a single kernel, for which the addresses of all tensors are parameters."""
    source = emit("cu", EQUAL, "--schedule", "persistent")
    assert [name for name in functions(source) if name.startswith("b_3_u_0")]


@pytest.mark.nvcc
def test_compiles_without_warnings(emit, tmp_path):
    source = tmp_path / "m.cu"
    source.write_text(emit("cu", EQUAL))
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-c", "-Xcompiler", "-Wall,-Wextra,-Wno-missing-field-initializers",
               "-Werror", "all-warnings", "-I", ROOT / "runtime", "-I", ROOT / "kernels_lib", source, "-o", tmp_path / "m.o"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def losses(path):
    random = np.random.default_rng(3)
    x = random.standard_normal((256, 16, 128)).astype(np.float32)
    program = Library(path, np.float32)
    program.set_data([x, np.sin(x)])
    values = program.train(4, 1)[:, 0]
    program.close()
    return values


@pytest.mark.gpu
@pytest.mark.parametrize("model", [EQUAL, GROWING], ids=["equal", "growing"])
def test_losses_on_a_gpu(model, compile_model):
    graph, persistent = (losses(compile_model(model, "--shared", "--schedule", schedule, target="cuda").path)
                         for schedule in ("graph", "persistent"))
    np.testing.assert_array_equal(graph, persistent)
    np.testing.assert_allclose(graph, losses(compile_model(model, "--shared").path), rtol=1e-5)


TABLES = """
data {
  train  = npy("window")
  window : class[100][257]
}
fn part(seen, rows) {
  h = relu(linear(one_hot(seen, 100), 64))
  return linear(h, 64) + embedding(seen, rows, 64)
}
model {
  seen = slice(window, 0, 0, 256)
  a = part(seen, 100)
  b = part(seen, 1000000)
  c = part(seen, 101)
  logits = linear(concat([a, b, c], 1), 100)
}
train {
  loss      = cross_entropy(logits, slice(window, 0, 1, 257))
  optimizer = sgd(1e-3)
  batch     = 4
}
"""


def test_kernels_of_one_function_are_launched_together(emit):
    """However long each of them is taken to be: by the bytes of the tables that they look into."""
    source = emit("cu", TABLES)
    assert "using train_3 = Phase<At<a, 0, 3, 3>>;" in source


def test_names_of_ranges_say_once_what_both_ends_have(mtc):
    names = functions(mtc(ROOT / "models/gpt2.mt", "--emit=cu").stdout)
    assert {"d_ln_f_weight_to_bias", "decode_h_0_attn_c_proj_to_h", "decode_h_0_mlp_c_proj_to_h_0"} < set(names)


def test_equations_keep_no_functions_apart(mtc):
    """With the name of a tenth layer they may take a line more."""
    assert not {"h_10_ln_1", "d_h_11_ln_2_weight_partial"} & set(functions(mtc(ROOT / "models/gpt2.mt", "--emit=cu").stdout))


def test_values_called_like_what_begins_places(cuda_takes):
    """Tensors are members of a struct whose constructor calls it."""
    cuda_takes(EQUAL.replace("h = ", "begin_at = ").replace("(h,", "(begin_at,"), "--schedule", "graph")


# ---- the banner ----


def banner(emit, *flags):
    return emit("cu", EQUAL, *flags).partition("// From top to bottom")[0]


def test_phases_that_come_again_are_said_once(emit):
    few, many = (banner(emit, "--set", f"layers={layers}") for layers in (24, 48))
    ranges = [tuple(map(int, found)) for found in
              re.findall(r"^//   phases (\d+) to (\d+): phases (\d+) to (\d+) again.*, with tensors of their own$", few, re.M)]
    assert all(source <= last_source < begin <= end for begin, end, source, last_source in ranges)
    again = {number for begin, end, *_ in ranges for number in range(begin, end + 1)}
    said = {int(number) for number in re.findall(r"^//   phase (\d+) ", few, re.M)}
    assert not said & again and said | again == set(range(1, max(said) + 1)) and len(again) > 5 * len(said)
    assert few.count("\n//   phase") == many.count("\n//   phase")


def test_why_the_schedule_is_not_the_faster_one(mtc):
    for model, flags, why in (("word2vec", [], "but functions of the library take the shared memory"),
                              ("cnn", [], "but a phase has"), ("mnist", ["--schedule", "graph"], "which --schedule decided against")):
        done = mtc(ROOT / f"models/{model}.mt", "--emit=cu", *flags)
        text = re.search(r"//   schedule .*?(?=//\n)", done.stdout, re.S)[0]
        taken, other = map(float, re.findall(r"([\d.]+) us", text))
        assert (why in text) == (other < taken) and (why in text or model == "cnn"), text


# ---- tables: rows that repeat are a macro ----

ROWS = """
#include "mtc.h"
#include <stdio.h>
{table}
int main(void) {{
    for (unsigned k = 0; k < sizeof tensor_table / sizeof *tensor_table; k++)
        printf("%s %zu %d\\n", tensor_table[k].name, tensor_table[k].offset,
               tensor_table[k].role == MTC_VALUE ? tensor_table[k].phase + 1 : 0);
}}
"""


def planned(text):
    """Offset and first phase of each buffer that programs are told of: weights, states, values of a training step."""
    for line in text.partition("\neval: values")[0].splitlines():
        if match := re.match(r" +(\d+) +\d+ +\w+\[.*\] +(?:always|(\d+)(?:-\d+)?) +\S", line):
            yield int(match[1]), int(match[2] or 0)


@pytest.mark.parametrize("model", [EQUAL, GROWING], ids=["equal", "growing"])
@pytest.mark.parametrize("stage, compiler", [("c", ["gcc", "-std=c11"]), ("cu", ["g++", "-std=c++17"])])
def test_tables_say_what_the_plan_says(mtc, tmp_path, model, stage, compiler):
    path = tmp_path / "m.mt"
    path.write_text(model)
    target = ["--target", "cuda" if stage == "cu" else "cpu", "--set", "layers=12"]
    table = re.search(r"^#define VALUE.*?^};", mtc(path, f"--emit={stage}", *target).stdout, re.M | re.S)[0]
    source = tmp_path / ("t.c" if stage == "c" else "t.cpp")
    source.write_text(ROWS.format(table=table))
    subprocess.run([*compiler, "-Wall", "-Werror", f"-I{ROOT}/runtime", source, "-o", tmp_path / "t"], check=True)
    rows = [line.split() for line in subprocess.run([tmp_path / "t"], capture_output=True, text=True, check=True).stdout.splitlines()]
    plan = sorted(planned(mtc(path, "--emit=plan", *target).stdout))
    assert sorted((int(offset), int(phase)) for _, offset, phase in rows) == plan and len(plan) > 12 * 10
    assert ('{.name = "b." #i ".' in table) == (model == EQUAL) == (len(table.splitlines()) < len(rows))
