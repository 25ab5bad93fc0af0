"""Text of the user that reaches a generated source stays text: names, paths, columns, flags, comments, lines of the model.

Each hostile text tries to leave the comment or the string that it stands in, and to become a definition of `main` or an #error.
A C compiler, with trigraphs, must find the program that the model describes and no warning about comments.
"""

import os
import re
import shutil
import subprocess

import pytest

from conftest import MTC, ROOT

CODE = '#error "code"'
ENDS_A_LINE = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"]
ENDS_A_COMMENT = ["*/", "/*", "//", "\\", "??/", "\\ ", "??/ ", "\\\t", "%:", "??=", "<%", '"', "'", "')", '");']
HIDES = ["\u202e", "\u2066", "\u200f", "\ufeff", "\x1b[2K", "\x00", "\x7f"]
MARKS = ENDS_A_LINE + ENDS_A_COMMENT + HIDES
HOSTILE = [f"a{mark}{CODE}" for mark in MARKS] + ENDS_A_COMMENT + [
    "a, .name = 1", "}, {", "x = (", "x // y, .z = 3", "é ü 日本", "%s%n", "$(touch ran)", "`touch ran`", "; touch ran", "@file", "-x"]
VISIBLE = [text for text in HOSTILE if text.isprintable()]
NAMED = [text.replace("/", "") for text in HOSTILE if "\0" not in text]

MODEL = """{params}
data {{
  train = csv({path}, columns = [{columns}, "label"], separator = {separator})
  x     : f32[{count}] = columns({columns})
  label : class[3]
}}
model {{
  h = linear(x * rate0, wide) # {help}
  y = linear(h, 3, name = "out") # {help}
}}
train {{
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}}
"""


def string(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def model(helps=("help",), path="p", columns=("c", "d"), separator=";"):
    params = [f"param rate{k} = 0.5 # {text}" for k, text in enumerate(helps)]
    return MODEL.format(params="\n".join([f"param wide = 3 # {helps[0]}", *params]), path=string(path), help=helps[0], count=len(columns),
                        columns=", ".join(map(string, columns)), separator=string(separator))


def compile_c(source, *flags):
    """The text as a C compiler with trigraphs sees it: it is C, and nothing strange stands in its comments."""
    strict = ["-std=c11", "-D_XOPEN_SOURCE=700", "-trigraphs", "-fopenmp", "-Wcomment", "-Wtrigraphs", "-Wbidi-chars=any", "-Werror"]
    paths = [f"-I{ROOT / folder}" for folder in ("kernels_lib", "runtime")]
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler):
            known = [flag for flag in strict if compiler == "gcc" or "bidi" not in flag]
            done = subprocess.run([compiler, *known, *flags, *paths, "-fsyntax-only", "-x", "c", "-"], input=source, capture_output=True)
            assert done.returncode == 0, done.stderr.decode()[:2000]


def emit_c(path, *flags):
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run([MTC, path, "--emit=c", *flags], cwd=os.path.dirname(path), capture_output=True, env=environment)


def lines_of(path, *flags):
    """The source, each line of which can be seen and ends where it ends; None: the model was refused with a message."""
    emitted = emit_c(path, *flags)
    if emitted.returncode:
        assert emitted.returncode in (64, 65) and b"error: " in emitted.stderr and b"\x1b" not in emitted.stderr
        return None
    defines = False  # the line goes on with a #define of the program's own, each line of which ends in exactly a backslash
    for line in emitted.stdout.decode().split("\n"):
        defines = (defines or line.startswith("#define ")) and line.endswith("\\")
        text = line[:-1] if defines else line
        assert text.isprintable() and not re.search(r"(\\|\?\?/)\s*$", text), line
    return emitted.stdout


def test_all_that_can_be_seen(tmp_path):
    """As help of params, as columns, in a path: accepted, and harmless."""
    path = tmp_path / "m.mt"
    for first in range(0, len(VISIBLE), 30):
        some = VISIBLE[first : first + 30]
        path.write_text(model(some, " ".join(some), some))
        source = lines_of(path)
        assert source, emit_c(path).stderr
        compile_c(source)


@pytest.mark.parametrize("text", [text for text in HOSTILE if text not in VISIBLE], ids=ascii)
def test_what_cannot_be_seen(tmp_path, text):
    path = tmp_path / "m.mt"
    for part in ({"helps": [text]}, {"path": text}, {"columns": [text, "d"]}):
        path.write_bytes(model(**part).encode())
        source = lines_of(path)
        assert source is None or {"\n", "\t"} & set(text)
        assert source is None or CODE.encode() not in [line.strip() for line in source.splitlines()]


def test_separators(tmp_path):
    path = tmp_path / "m.mt"
    for character in map(chr, range(33, 127)):
        path.write_text(model(separator=character))
        source = lines_of(path)
        if source and not character.isalnum() and character in "\\?'/#":
            compile_c(source)


def test_names_of_files_and_flags(tmp_path):
    compiled = 0
    for text in NAMED:
        path = tmp_path / f"{text}.mt"
        path.write_text(model())
        source = lines_of(path)
        assert source and lines_of(path, "--set", "wide=\n7") is None
        lines_of(path, "--set", f"wide={text}")
        if text.startswith(("a\n", "a\r", "a\\", "a??", '"')):
            compile_c(source)
            compiled += 1
    assert compiled >= 4


def test_an_included_file(tmp_path):
    """Its path stands above the kernels that come from it."""
    name = 'f"\\;? ?ü.mt'
    (tmp_path / name).write_text("fn f(x) {\n  return relu(linear(x, 3))\n}\n")
    path = tmp_path / "m.mt"
    path.write_text(f"include {string(name)}\n" + model().replace('linear(h, 3, name = "out")', "f(h)"))
    compile_c(lines_of(path))


def test_bytes_that_are_no_text(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe\xc3.mt"
    with open(path, "wb") as file:
        file.write(model().encode())
    source = lines_of(path)
    compile_c(source)
    assert b"\\377\\376\\303.mt" in source


@pytest.mark.parametrize("control, name", [("\r", "carriage return"), ("\x0c", "0x0c"), ("\x85", "0xc2 0x85"), ("\u2028", "0xe2 0x80 0xa8"),
                                           ("\u202e", "0xe2 0x80 0xae")], ids=ascii)
def test_controls_have_a_place(mtc, tmp_path, control, name):
    path = tmp_path / "m.mt"
    path.write_bytes(("# é\n" + model()).replace("x * rate0", f"x * {control}rate0").encode())
    done = mtc("m.mt", "--emit=c", cwd=tmp_path)
    before = path.read_bytes().decode().split(control)[0]
    line, column = before.count("\n") + 1, len(before.split("\n")[-1])
    assert done.returncode == 65 and f"m.mt:{line}:{column + 1}: error" in done.stderr and name in done.stderr


@pytest.mark.parametrize("name", ["a$(touch ran)\n`touch ran`;\"touch ran\"", "-x", "@x"])
def test_compilers_are_given_names_of_files(mtc, tmp_path, name):
    (tmp_path / f"{name}.mt").write_text(model())
    done = mtc(f"./{name}.mt", "--target", "cpu", "--no-cache", "-o", "program", "--keep", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.nvcc
def test_nvcc_runs_no_names(mtc, tmp_path):
    (tmp_path / "a$(touch ran)`touch ran`.mt").write_text(model())
    done = mtc("a$(touch ran)`touch ran`.mt", "--target", "cuda", "--arch", "sm_90", "--no-cache", "-o", "program", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = mtc("a$(touch ran)`touch ran`.mt", "--target", "cuda", "--arch", "sm_90", "--keep", "b$(touch ran)", cwd=tmp_path)
    assert done.returncode == 64 and "to a shell" in done.stderr
    assert not (tmp_path / "ran").exists()
