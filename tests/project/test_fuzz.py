"""The harnesses of `make fuzz`: each compiles, and those of the runtime take their seeds, with gcc's sanitizers and without libFuzzer."""

import subprocess
import sys

import pytest
from conftest import ROOT
from runtime_library import SANITIZERS, build_program

FOLDER = ROOT / "tests" / "fuzz"
MAKEFILE = (ROOT / "Makefile").read_text()
DRIVER = """
#include <stdint.h>
#include <stdio.h>
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int main(int argc, char **argv) {
    static uint8_t bytes[1 << 20];
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof bytes, file));
        fclose(file);
    }
    return 0;
}
"""


def listed(which):
    return next(line for line in MAKEFILE.splitlines() if line.startswith(f"FUZZ_{which}")).split(":=")[1].split()


def test_each_harness_is_listed():
    assert sorted(listed("COMPILER") + listed("RUNTIME")) == sorted(path.name[:-len("_fuzz.c")] for path in FOLDER.glob("*_fuzz.c"))


@pytest.mark.parametrize("name", listed("COMPILER"))
def test_of_the_compiler(name):
    subprocess.run(["cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                    f"-I{ROOT}/compiler", f"-I{ROOT}", f"-I{ROOT}/runtime", f"-I{ROOT}/build/gen", FOLDER / f"{name}_fuzz.c"], check=True)


@pytest.mark.parametrize("name", listed("RUNTIME"))
def test_of_the_runtime(name, tmp_path):
    (tmp_path / "seeds").mkdir()
    (tmp_path / "driver.c").write_text(DRIVER)
    subprocess.run([sys.executable, FOLDER / f"{name}_seeds.py", tmp_path / "seeds"], check=True)
    sources = [FOLDER / f"{name}_fuzz.c", ROOT / "runtime" / "base" / "device_cpu.c", tmp_path / "driver.c"]
    program = build_program(tmp_path / name, sources, "-Werror", library_flags=SANITIZERS)
    seeds = sorted((tmp_path / "seeds").iterdir())
    done = subprocess.run([program, *seeds], capture_output=True, text=True, cwd=tmp_path)
    assert seeds and done.returncode == 0, done.stderr
