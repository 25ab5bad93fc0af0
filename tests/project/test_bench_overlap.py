"""bench/overlap draws the last whole step of its traces, and says how much of the copies goes on beside phases."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick

STEP = """kernel 7 {0}000000 {0}400000 forward
kernel 7 {0}390000 {0}600000 backward
copy 8 {0}550000 {0}650000 4096
kernel 7 {0}600000 {0}620000 _Z9add_partsILi2EEvmml
kernel 7 {0}700000 {0}800000 _Z14sum_over_peersILi2EEvml
"""


def run(folder, *traces):
    files = [folder / f"t.{rank}" for rank in range(len(traces))]
    for file, text in zip(files, traces):
        file.write_text(text)
    return subprocess.run([sys.executable, ROOT / "bench/overlap", "--traces", *files, "-o", folder / "a.svg"], capture_output=True, text=True, check=False)


def test_the_last_step_is_drawn(tmp_path):
    steps = "".join(STEP.format(step) for step in range(1, 4))
    done = run(tmp_path, steps, steps)
    assert done.stdout.splitlines() == [f"GPU {rank}: copies 100 us, of them 50 us beside phases" for rank in (0, 1)], done.stderr
    picture = (tmp_path / "a.svg").read_text()
    assert picture.count("GPU ") == 2 and len(re.findall("<rect", picture)) == 1 + 2 * 5


def test_a_trace_without_steps_is_told(tmp_path):
    done = run(tmp_path, STEP.format(1))
    assert done.returncode and "the traces have no two steps" in done.stderr
