"""What every test shares (conftest.py): names of tests, signals that come ignored, a limit of time, why tests are skipped."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT
from once import made_once

IGNORED = [signal.SIGINT, signal.SIGHUP, signal.SIGTERM]


def run_pytest(*args, ignored=()):
    def ignore():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    settings = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, args)], cwd=ROOT, env=settings,
                          capture_output=True, text=True, preexec_fn=ignore)


def test_in_the_background():
    """nohup make check &"""
    tests = ["runtime/test_checkpoint.py::test_signals_save", "runtime/test_checkpoint.py::test_second_signal_ends_at_once",
             "runtime/test_runtime_train.py::test_interrupt_saves", "python/test_python_errors.py::test_what_ctrl_c_says"]
    done = run_pytest(*(ROOT / "tests" / test for test in tests), ignored=IGNORED)
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout


CHANGING = """
import os, pytest
@pytest.mark.parametrize("content, text", [(os.urandom(8), "some"), (os.urandom(8), "some"), (os.urandom(8), "other")])
def test_bytes(content, text): pass
"""


def test_names_hold_no_bytes(tmp_path):
    """What is made anew in each process names no test: pytest-xdist compares the names."""
    (tmp_path / "test_changing.py").write_text(CHANGING)
    first, second = (run_pytest("-p", "conftest", "--collect-only", tmp_path).stdout.splitlines()[:3] for _ in range(2))
    assert first == second and [line.partition("[")[2] for line in first] == ["content-some0]", "content-some1]", "content-other]"]


ENDLESS = """
import subprocess, pytest
def test_waits(): subprocess.run(["sleep", "1000"])
def test_comes_after(): pass
@pytest.mark.skip(reason="no luck")
def test_skipped(): pass
@pytest.mark.skip(reason="no luck")
def test_skipped_too(): pass
"""


def test_limit_of_time(tmp_path):
    """What waits for ever fails; what comes after it is run; and what is skipped is said."""
    (tmp_path / "test_endless.py").write_text(ENDLESS)
    done = run_pytest("-p", "conftest", tmp_path, "--limit", 1)
    assert done.returncode == 1 and "takes longer than 1 s (pytest --limit)" in done.stdout
    assert "1 failed, 1 passed, 2 skipped" in done.stdout and re.search("^skipped 2: no luck$", done.stdout, re.M)


TALLIED = """
import os, time, pytest
@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.2])
def test_sleeps(seconds): time.sleep(seconds)
@pytest.mark.skip(reason="no luck")
def test_skipped(): pass
def test_fails_at_first(): assert "LUCK" in os.environ
def test_ends_the_process(): os.environ.get("LUCK") or os._exit(9)
def test_comes_after(): pass
"""


def tallied(path):
    return [(words[0], words[3].partition("::")[2]) for words in (line.split("\t") for line in path.read_text().splitlines())]


def test_a_run_that_was_cut_off_is_gone_on_with(tmp_path, monkeypatch):
    (tmp_path / "test_tallied.py").write_text(TALLIED)
    tally = tmp_path / "build/tally"
    assert run_pytest("-p", "conftest", tmp_path, "--tally", tally).returncode == 9
    assert tallied(tally) == [*[("passed", f"test_sleeps[{seconds}]") for seconds in (0.1, 0.3, 0.2)], ("skipped", "test_skipped"),
                              ("failed", "test_fails_at_first")]
    tally.write_text(tally.read_text() + "passed\t0.1")  # as far as its disk kept it
    monkeypatch.setenv("LUCK", "1")
    done = run_pytest("-p", "conftest", tmp_path, "--tally", tally, "--continue")
    assert done.returncode == 0 and "3 passed, 1 skipped, 3 deselected" in done.stdout and "left out 3: passed before" in done.stdout


def test_the_longest_are_run_first(tmp_path):
    """Where workers of pytest-xdist take them one by one."""
    pytest.importorskip("xdist")
    (tmp_path / "test_tallied.py").write_text(TALLIED)
    for _ in range(2):
        run_pytest("-p", "conftest", "-p", "xdist.plugin", "-n", 1, "--dist", "loadgroup", tmp_path, "--tally", tmp_path / "tally", "-k", "sleeps")
    assert tallied(tmp_path / "tally") == [("passed", f"test_sleeps[{seconds}]") for seconds in (0.1, 0.3, 0.2, 0.3, 0.2, 0.1)]


def test_who_comes_second_waits_for_the_first(tmp_path):
    """Also where what makes it fails: the next one makes it."""
    calls = []

    def make(path):
        calls.append(path)
        time.sleep(0.1)
        if len(calls) == 1:
            raise RuntimeError
        path.write_text("made")

    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(made_once, tmp_path / "it.so", make) for _ in range(4)]
    assert sorted(bool(one.exception()) for one in waiting) == [False, False, False, True]
    assert len(calls) == 2 and (tmp_path / "it.so").read_text() == "made"


def test_each_fault_can_be_planted():
    """tools/plant_faults refuses a text that is not there once, before it plants the first."""
    from faults import FAULTS

    texts = {fault: (ROOT / fault.path).read_text() if (ROOT / fault.path).exists() else "" for fault in FAULTS}
    assert [f"{fault.path}: {fault.text}" for fault in FAULTS if texts[fault].count(fault.text) != 1] == []
    named = {word for fault in FAULTS for word in fault.tests.split() if word.endswith(".py")}
    assert [name for name in sorted(named) if not (ROOT / "tests" / name).exists()] == []
