"""Generated sources are read by people: formatted, free of warnings, the same wherever and whenever they are made."""

import shutil
import subprocess

import pytest
from conftest import ROOT, flags_of

GOLDEN = ROOT / "tests" / "golden"
SOURCES = sorted(path for path in GOLDEN.iterdir() if path.suffix in (".c", ".cu"))
INCLUDES = ["-I", ROOT / "runtime", "-I", ROOT / "kernels_lib"]
by_name = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)


def generated(mtc, path, model=None):
    done = mtc(f"--emit={path.suffix[1:]}", *flags_of(path.with_suffix(".mt")), model or path.with_suffix(".mt").name,
               cwd=GOLDEN)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@by_name
def test_formatted(path):
    if shutil.which("clang-format") is None:
        pytest.skip("no clang-format here")
    assert run("clang-format", f"--style=file:{ROOT / '.clang-format'}", path) == path.read_text()


@pytest.mark.parametrize("path", [path for path in SOURCES if path.suffix == ".c"], ids=lambda path: path.name)
def test_c_compiles_without_warnings(path):
    run("cc", "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *INCLUDES, path)


@pytest.mark.nvcc
@pytest.mark.parametrize("path", [path for path in SOURCES if path.suffix == ".cu"], ids=lambda path: path.name)
def test_cuda_compiles_without_warnings(path, tmp_path):
    run("nvcc", "-std=c++17", "-arch=sm_90", "-c", "-Xcompiler", "-Wall,-Wextra", "-Werror", "all-warnings", *INCLUDES, path,
        "-o", tmp_path / "out.o")


@by_name
def test_does_not_depend_on_where_the_model_lies(path, mtc, tmp_path):
    copy = shutil.copy(path.with_suffix(".mt"), tmp_path)
    assert str(tmp_path) not in generated(mtc, path, copy)
    assert generated(mtc, path, copy) == generated(mtc, path)
