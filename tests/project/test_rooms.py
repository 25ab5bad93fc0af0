"""tools/rooms.py, which tools/lint asks for arrows against the order of the rooms: on a tree of three rooms, compiled here."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import rooms

LOW, MIDDLE, TOP = "compiler/low", "compiler/middle", "compiler/top"
ARROWS = {LOW: [], MIDDLE: [LOW], TOP: [LOW, MIDDLE]}
FILES = {
    f"{LOW}/a.c": "int a(void) { return 1; }",
    f"{MIDDLE}/b.h": "int b(void);",
    f"{MIDDLE}/b.c": "int a(void); int b(void) { return a(); }",
    f"{TOP}/c.c": '#include "middle/b.h"\nint a(void); int c(void) { return a() + b(); }',
}


def faults(folder, changed=(), known=()):
    files = {**FILES, **dict(changed)}
    for name, text in files.items():
        for tree in (folder, folder / "build/obj"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in files:
        if name.endswith(".c"):
            subprocess.run(["cc", "-Icompiler", "-c", name, "-o", f"build/obj/{name[:-2]}.o"], cwd=folder, check=True)
    uses = [*rooms.includes(folder), *rooms.calls(folder, folder / "build")]
    return rooms.against(uses, ARROWS, known)


def test_as_the_arrows_say(tmp_path):
    assert faults(tmp_path) == []


def test_a_call_upwards(tmp_path):
    """Declared where it is called: no #include tells. It closes a circle across rooms, too."""
    found = faults(tmp_path, {f"{LOW}/a.c": "int b(void); int a(void) { return b(); }"})
    assert found == [f"{LOW}/a.c calls b of {MIDDLE}/b.c: no arrow leads from {LOW}/ to {MIDDLE}/",
                     f"a circle of 2 files: {LOW}/a.c, {MIDDLE}/b.c"]


def test_an_include_upwards(tmp_path):
    change = {f"{LOW}/a.c": '#include "middle/b.h"\nint a(void) { return 1; }'}
    use = (f"{LOW}/a.c", f"{MIDDLE}/b.h")
    assert faults(tmp_path, change) == [f"{use[0]} includes {use[1]}: no arrow leads from {LOW}/ to {MIDDLE}/"]
    assert faults(tmp_path, change, known=[use]) == []


def test_tables_hold_what_is(tmp_path):
    found = faults(tmp_path, {f"{MIDDLE}/b.c": "int b(void) { return 1; }"}, known=[("x.c", "y.h")])
    assert found == ["x.c uses y.h no more: it is to leave the table of what is known",
                     f"no file of {MIDDLE}/ needs the arrow to {LOW}/ any more"]


@pytest.mark.parametrize("count", [rooms.MOST_IN_CIRCLE, rooms.MOST_IN_CIRCLE + 1])
def test_a_circle_in_a_room(tmp_path, count):
    circle = {f"{LOW}/r{k}.c": f"int r{(k + 1) % count}(void); int r{k}(void) {{ return r{(k + 1) % count}(); }}" for k in range(count)}
    found = faults(tmp_path, circle)
    assert found == ([f"a circle of {count} files: {', '.join(circle)}"] if count > rooms.MOST_IN_CIRCLE else [])


def test_what_is_gone(tmp_path):
    """An object without its source is nobody's; a source without its object would hide what it calls."""
    faults(tmp_path, {f"{LOW}/old.c": "int b(void); int old(void) { return b(); }"})
    (tmp_path / LOW / "old.c").unlink()
    (tmp_path / LOW / "new.c").write_text("int new_one;")
    assert rooms.not_built(tmp_path, tmp_path / "build") == [f"{LOW}/new.c"]
    assert faults(tmp_path) == []


def test_what_compiler_and_kernels_agree_on_stands_once():
    """No constant and no function of shared.h is said again by a file of the compiler or of the kernels."""
    shared = ROOT / "kernels_lib" / "shared.h"
    text = shared.read_text()
    constants = re.findall(r"\b([A-Z][A-Z_]+) = ", text) + re.findall(r"\bFEED_\w+", text)
    functions = re.findall(r"^MTC_AGREED \w+ (\w+)\(", text, re.M)
    assert {"THREADS", "PLANNED_SHARED", "LARGEST_HEAD"} <= set(constants) and {"feed_of", "gather_lanes"} <= set(functions)
    again = re.compile(rf"\b({'|'.join(constants)}) = |^(?:[a-z_]+ )+({'|'.join(functions)})\([a-z]", re.M)
    for path in (path for folder in ("compiler", "kernels_lib") for path in (ROOT / folder).rglob("*.*") if path != shared):
        assert not again.search(path.read_text()), path
    users = [path for folder in ("compiler", "kernels_lib") for path in (ROOT / folder).rglob("*.*") if "shared.h\"" in path.read_text()]
    assert {path.relative_to(ROOT).parts[0] for path in users} == {"compiler", "kernels_lib"}


def test_the_page_shows_the_rooms():
    """The tree in docs/architecture.md has every room that holds sources, and each folder that it shows is there."""
    tree = (ROOT / "docs" / "architecture.md").read_text().split("    compiler/support/")[1].split("\n\n")[0]
    shown, above = set(), ""
    for indent, names in re.findall(r"^    ( *)((?:[\w/.]+/,? ?)+)", "    compiler/support/" + tree, re.M):
        if not indent:
            above = names.split()[0]
        shown |= {(above + name if indent else name).strip("/") for name in names.replace(",", " ").split()}
    assert all((ROOT / room).is_dir() for room in shown), shown
    assert {room for room in rooms.ARROWS if "/" in room} <= shown
