"""Lines that are too long are broken where clang-format breaks them (compiler/emit/text/layout.h): random statements."""

import random
import shutil
import subprocess

import pytest
from conftest import ROOT

SOURCES = ["tests/compiler/layout_test.c", "compiler/emit/text/layout.c", "compiler/emit/text/lexemes.c", "compiler/support/arena.c",
           "compiler/support/text.c", "compiler/support/diag.c",
           *(f"runtime/base/{name}.c" for name in ("common", "file", "files", "ending"))]

BINDS = {"||": 1, "&&": 2, "==": 3, "<": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}


class Statements:
    """Random ones, as kernels have them: long names, few levels."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def name(self):
        return self.random.choice("abcdefgh") * self.random.randint(1, 28)

    def leaf(self):
        return self.random.choice(["t.", "", "", "t->", "(real)", "(real)t.", "-"]) + self.name()

    def call(self, depth):
        function = self.random.choice(["fmax", "load_pack<8>", "to_float", self.name()])
        return f"{function}({', '.join(self.expression(depth - 1) for _ in range(self.random.randint(1, 5)))})"

    def choice(self, depth):  # one in another has parentheses: clang-format aligns chains of them, which are not emitted
        return " ".join([self.expression(depth - 1, 1), "?", self.expression(depth - 1, 1), ":", self.expression(depth - 1, 1)])

    def infix(self, depth, least):
        op = self.random.choice(list(BINDS))
        text = f"{self.expression(depth - 1, BINDS[op])} {op} {self.expression(depth - 1, BINDS[op] + 1)}"
        return f"({text})" if BINDS[op] < least else text

    def expression(self, depth, least=0):
        kind = self.random.random()
        if depth == 0 or kind < 0.12:
            return self.leaf()
        if kind < 0.32:
            return self.call(depth)
        if kind < 0.47:
            return f"{self.random.choice(['t.', '', 't->'])}{self.name()}[{self.expression(depth - 1, 5)}]"
        if kind < 0.57:
            return f"({self.choice(depth)})" if least else self.choice(depth)
        return self.infix(depth, least)

    def declaration(self):
        return f"float {', '.join('*' + self.name() for _ in range(self.random.randint(4, 24)))};"

    def statement(self):
        if self.random.random() < 0.1:
            return self.declaration()
        head = self.random.choice([f"real {self.name()} = ", "t.x[i * BATCH + j] = ", "return ", "sum += "])
        return f"{head}{self.expression(self.random.randint(2, 4))};"


@pytest.fixture(scope="module")
def lay_out(tmp_path_factory):
    program = tmp_path_factory.mktemp("layout") / "layout_test"
    subprocess.run(["cc", "-std=c11", "-D_XOPEN_SOURCE=700", "-Wall", "-Werror", f"-I{ROOT}", f"-I{ROOT}/compiler", f"-I{ROOT}/runtime",
                    *(ROOT / source for source in SOURCES), "-o", program, "-lm"], check=True)

    def laid_out(lines):
        done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
        return done.stdout.split("\n\n")[:-1]

    return laid_out


def formatted(lines):
    text = "".join(f"void f() {{\n{line}\n}}\n" for line in lines)
    done = subprocess.run(["clang-format", f"--style=file:{ROOT / '.clang-format'}"], input=text, capture_output=True, text=True, check=True)
    return [part.rstrip("}\n") for part in done.stdout.split("void f() {\n")[1:]]


@pytest.mark.skipif(shutil.which("clang-format") is None, reason="no clang-format here")
@pytest.mark.parametrize("seed", range(4))
def test_statements_are_broken_where_clang_format_breaks_them(seed, lay_out):
    statements = Statements(seed)
    lines = [line for line in (statements.statement() for _ in range(2500)) if 117 < len(line) < 400]
    assert len(lines) > 200
    for ours, its in zip(lay_out(lines), formatted(lines), strict=True):
        assert ours == its
