"""Expressions of generated code as trees (compiler/ir/tree.h): what is read is printed as it was, and what stands in a place gets the
parentheses that C asks for there, no others."""

import subprocess

import pytest
from conftest import ROOT

SOURCES = ["tests/compiler/tree_test.c", "compiler/ir/tree.c", "compiler/support/arena.c", "compiler/support/text.c",
           "compiler/support/diag.c", *(f"runtime/base/{name}.c" for name in ("common", "file", "files", "ending"))]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    program = tmp_path_factory.mktemp("tree") / "tree_test"
    subprocess.run(["cc", "-std=c11", "-D_XOPEN_SOURCE=700", "-Wall", "-Werror", f"-I{ROOT}", f"-I{ROOT}/compiler", f"-I{ROOT}/runtime",
                    *(ROOT / source for source in SOURCES), "-o", program, "-lm"], check=True)
    return lambda *forms: subprocess.run([program, *forms], capture_output=True, text=True)


@pytest.mark.parametrize("form", [
    "i", "0.5f", "-a", "!a", "a + b * c", "(a + b) * c", "a - (b - c)", "a / (b * c)", "a / b % c", "f()", "f(a, b + c)",
    "a < b && c >= d || !e", "(a && b) || c", "a ? b : c ? d : e", "a ? (b ? c : d) : e", "-(a + b)", "0.9^step", "1 - 1e-05^step", "(a && b) && (c && d)"])
def test_what_is_read_is_printed(tree, form):
    printed, same, _, _ = tree(form).stdout.splitlines()
    assert printed == {"a < b && c >= d || !e": "(a < b && c >= d) || !e"}.get(form, form)
    assert same == "same"


@pytest.mark.parametrize("form, operands, text", [
    ("$0 * $1", ["a + b", "c"], "(a + b) * c"),
    ("$0 * $1", ["a * b", "c"], "a * b * c"),
    ("$0 * $1", ["a", "b * c"], "a * (b * c)"),
    ("$0 - $1", ["a - b", "c - d"], "a - b - (c - d)"),
    ("$0 || $1", ["a && b", "c"], "(a && b) || c"),
    ("$0 && $1", ["a && b", "c && d"], "(a && b) && (c && d)"),
    ("$0 ? $1 : $2", ["a && b", "c", "d ? e : f"], "a && b ? c : d ? e : f"),
    ("$0 ? $1 : $2", ["a ? b : c", "d ? e : f", "g"], "(a ? b : c) ? (d ? e : f) : g"),
    ("($0)$1", ["float", "a + b"], "(float)(a + b)"),
    ("!$0", ["a == b"], "!(a == b)"),
    ("fmax($0, $1)", ["a ? b : c", "d + e"], "fmax(a ? b : c, d + e)"),
    ("-$0", ["a * b"], "-(a * b)"),
    ("-$0", ["-a"], "-(-a)"),
    ("a - $0", ["-b"], "a - -b"),
])
def test_operands_get_the_parentheses_that_their_places_ask_for(tree, form, operands, text):
    assert tree(form, *operands).stdout.splitlines()[0] == text


def test_shared_parts_count_wherever_they_stand(tree):
    assert tree("$0 * $0 + $0", "a + b").stdout.splitlines()[2] == "11"


@pytest.mark.parametrize("form, operands, text", [
    ("$0 + 15", ["0"], "15"),
    ("$0 + 2 - $1", ["3", "7"], "-2"),
    ("($0 + 1) * SIZE + f($0 + 3)", ["0"], "1 * SIZE + f(3)"),
    ("$0 + 15", ["i"], "i + 15"),
    ("$0 * 15 + 0.5f", ["2"], "2 * 15 + 0.5f"),
])
def test_whole_numbers_are_added_up(tree, form, operands, text):
    assert tree(form, *operands).stdout.splitlines()[3] == text


@pytest.mark.parametrize("form", ["", "a +", "a +b", "f(a", "(a", "a)", "a ? b", "$"])
def test_a_form_that_is_none_is_our_fault(tree, form):
    done = tree(form)
    assert done.returncode != 0 and "internal error" in done.stderr, done.stderr
