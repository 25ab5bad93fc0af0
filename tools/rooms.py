"""Rooms: the folders that hold sources. Who calls whom is read from the symbols of the objects in build/obj, who includes whom from
the sources; `tools/lint arrows` says what is against this table."""

import os
import re
import subprocess
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

# Each room, and those that its files may call and include beside their own.
SUPPORT, IR, OP, PASS, PLAN = "compiler/support", "compiler/ir", "compiler/op", "compiler/pass", "compiler/plan"
EMIT, TEXT, KERNEL = "compiler/emit", "compiler/emit/text", "compiler/emit/kernel"
BASE, TOKENIZER, DATA, SESSION, CHECKPOINT = "runtime/base", "runtime/tokenizer", "runtime/data", "runtime/session", "runtime/checkpoint"
RANKS, SCHEMA, ONNX = "runtime/ranks", "runtime/onnx", "compiler/onnx"
ARROWS = {
    SUPPORT: [BASE],  # how files are opened and written, what a terminal may be shown
    IR: [SUPPORT],
    ONNX: [SUPPORT, IR, SCHEMA],
    OP: [SUPPORT, IR, ONNX, "kernels_lib"],  # what each is in ONNX; shared.h: what it and the kernels must agree on
    "compiler/front": [SUPPORT, IR, OP, "runtime", "runtime/commands"],  # mtc.h; flags.def, the flags of each program
    PASS: [SUPPORT, IR, OP, "kernels_lib"],  # op/optimizer.h: the update of a weight; shared.h
    PLAN: [SUPPORT, IR, PASS, "kernels_lib"],  # needs.h: what a session asks for beside the arena
    EMIT: [PLAN],  # emit.h
    TEXT: [SUPPORT, IR, OP],  # op/table.h: words that the templates of operators have are no names
    KERNEL: [SUPPORT, IR, PASS, PLAN, EMIT, TEXT],
    "compiler/emit/cuda": [SUPPORT, IR, PASS, PLAN, TEXT, KERNEL],
    "compiler/emit/c": [SUPPORT, IR, PLAN, TEXT, KERNEL],
    "compiler/emit/program": [SUPPORT, IR, PLAN, TEXT, KERNEL],
    "compiler/emit/build": [SUPPORT, IR, PASS, EMIT, TEXT, "compiler/emit/c", "compiler/emit/cuda"],  # the table of targets
    "compiler/plot": [SUPPORT, BASE],  # reads what programs log
    "compiler/tokens": [SUPPORT, BASE, TOKENIZER],  # writes what programs read
    "compiler/weights": [SUPPORT, BASE],  # likewise
    "compiler/import": [SUPPORT, BASE, SCHEMA],  # the messages of ONNX files; safetensors
    "compiler": [SUPPORT, BASE, IR, ONNX, OP, "compiler/front", PASS, PLAN, "compiler/emit/program", "compiler/emit/build", "compiler/plot",
                 "compiler/tokens", "compiler/weights", "compiler/import", "runtime"],  # mtc.h: how many GPUs meet
    BASE: ["runtime"],  # mtc.h
    TOKENIZER: [BASE],
    RANKS: [BASE],
    DATA: ["kernels_lib", BASE, TOKENIZER, RANKS],  # random.h: what the kernels draw, the runtime draws
    SESSION: ["kernels_lib", BASE, DATA, RANKS],
    CHECKPOINT: [BASE, DATA, SESSION],
    "runtime/embed": ["runtime", BASE],  # mtc.h: tables of a generated library
    SCHEMA: [BASE, SESSION],  # onnx.proto is mtc's too, export.c alone the programs'
    "runtime/commands": ["runtime", "kernels_lib", BASE, TOKENIZER, DATA, RANKS, SESSION, CHECKPOINT, SCHEMA],
}
# Uses against the arrows that are still there, and why. What is mended leaves this table too.
KNOWN = {}
MOST_IN_CIRCLE = 5  # files of one room that call each other in a circle

SUFFIXES = {".c", ".h", ".l", ".y", ".def", ".cuh", ".proto"}
# Where the compiler of a tree looks for what is included, behind the folder of the file that asks.
TREES = {"compiler": ("compiler", ".", "runtime", "compiler/front"), "runtime": ("runtime", "kernels_lib"), "kernels_lib": ("kernels_lib",)}
# What flex, bison and protoc-c write, by what they read.
WRITTEN = {"gen/parser.c": "compiler/front/parser.y", "gen/lexer.c": "compiler/front/lexer.l", "gen/onnx.pb-c.c": "runtime/onnx/onnx.proto",
           "parser.h": "compiler/front/parser.y", "lexer.h": "compiler/front/lexer.l", "onnx.pb-c.h": "runtime/onnx/onnx.proto"}
# Compiled with each program, not before: their includes alone are seen.
WITH_PROGRAM = re.compile(r"runtime/(base/device_|embed/)\w+\.c")


class Use(NamedTuple):
    by: str  # a file, from the root
    of: str
    symbol: str | None  # that it calls, or takes; None: it includes the file

    def __str__(self):
        return f"{self.by} calls {self.symbol} of {self.of}" if self.symbol else f"{self.by} includes {self.of}"


def tree_of(path):
    return path.split("/")[0]


def room_of(path):
    return "kernels_lib" if tree_of(path) == "kernels_lib" else str(Path(path).parent)


def sources(root):
    return sorted(str(path.relative_to(root)) for tree in TREES for path in (root / tree).rglob("*") if path.suffix in SUFFIXES)


def includes(root):
    known = set(sources(root))
    for path in sorted(known):
        for name in re.findall(r'#\s*include "([^"]+)"', (root / path).read_text()):
            places = (str(Path(path).parent), *TREES[tree_of(path)])
            found = [WRITTEN.get(name), *(os.path.normpath(f"{place}/{name}") for place in places)]
            yield from (Use(path, of, None) for of in [f for f in found if f in known][:1])


def objects(root, build):
    """The object of each source that has one; what is left of sources that are gone is not among them."""
    for path in sorted((build / "obj").rglob("*.o")):
        source = str(path.relative_to(build / "obj").with_suffix(".c"))
        source = WRITTEN.get(source, source)
        if (root / source).exists():
            yield source, path


def symbols(paths):
    """(object, symbol, it is defined there) of all that objects have in common with others."""
    listed = subprocess.run(["nm", "-A", "-g", "-P", *paths], capture_output=True, text=True, check=True).stdout
    for path, symbol, kind in re.findall(r"^(.*?): (\S+) (\w)", listed, re.M):
        yield path, symbol, kind != "U"


def calls(root, build):
    """mtc is linked of all of compiler/ and some of runtime/; a program of runtime/ alone."""
    source = {str(path): name for name, path in objects(root, build)}
    home, used = defaultdict(dict), []
    for path, symbol, defined in symbols(source):
        if defined:
            home[tree_of(source[path])][symbol] = source[path]
        else:
            used.append((source[path], symbol))
    for by, symbol in used:
        trees = ["compiler", "runtime"] if tree_of(by) == "compiler" else ["runtime"]
        yield from (Use(by, of, symbol) for of in [home[t][symbol] for t in trees if symbol in home[t]][:1])


def not_built(root, build):
    built = {source for source, _ in objects(root, build)}
    return [path for path in sources(root) if path.endswith(".c") and tree_of(path) != "kernels_lib" and path not in built
            and not WITH_PROGRAM.fullmatch(path)]


def circles(uses):
    """Sets of files, each of which calls all others, itself or through others."""
    reached, direct = defaultdict(set), defaultdict(set)
    for use in uses:
        if use.symbol:
            direct[use.by].add(use.of)
    for start in list(direct):
        waiting = [start]
        while waiting:
            for of in direct[waiting.pop()] - reached[start]:
                reached[start].add(of)
                waiting.append(of)
    found = {frozenset({of for of in reached[by] if by in reached[of]}) for by in list(reached) if by in reached[by]}
    return sorted(map(sorted, found))


def against(uses, arrows, known):
    """What is against the arrows, a line each."""
    faults = []
    between = set()
    for use in uses:
        by, of = room_of(use.by), room_of(use.of)
        if by == of or (use.by, use.of) in known:
            continue
        between.add((by, of))
        if of not in arrows.get(by, ()):
            faults.append(f"{use}: no arrow leads from {by}/ to {of}/")
    used = {(use.by, use.of) for use in uses}
    faults += [f"{by} uses {of} no more: it is to leave the table of what is known" for by, of in known if (by, of) not in used]
    faults += [f"no file of {by}/ needs the arrow to {of}/ any more" for by in arrows for of in arrows[by] if (by, of) not in between]
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        faults.append(f"the arrows are a circle: {' -> '.join(error.args[1])}")
    for circle in circles(uses):
        if len(circle) > MOST_IN_CIRCLE or len({room_of(path) for path in circle}) > 1:
            faults.append(f"a circle of {len(circle)} files: {', '.join(circle)}")
    return faults
