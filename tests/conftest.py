"""What every test shares. `make` builds mtc; nothing here does.

    pytest --bless      rewrite the expected output of golden and error tests
    pytest -m gpu       only what needs a GPU (the others run everywhere)
    pytest --limit 60   what a test may take at most, in seconds [300]
    pytest --tally FILE what each test came to, a line each as soon as it ends; those that took longest there are run first (pytest-xdist)
    pytest --continue   without those that passed, says the file of --tally
"""

import collections
import contextlib
import faulthandler
import functools
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MTC = ROOT / "build" / "mtc"
SUBJECTS = ["compiler", "runtime", "kernels", "python", "models", "project"]
# What tests share is in support/, and a few share data with a test of another subject. The package is here, for pytest-xdist's
# controller names its warnings too.
sys.path[:0] = map(str, [ROOT / "python", ROOT / "tools", ROOT / "tests" / "support", *(ROOT / "tests" / name for name in SUBJECTS)])

from cuda_front_end import front_end_of_cuda, kernels_command  # noqa: E402
from gpus_here import visible_gpus  # noqa: E402
from once import folder_of_all_workers, made_once  # noqa: E402
from tally import Tally  # noqa: E402

CUDA_INCLUDES = [f"-I{ROOT / folder}" for folder in ("kernels_lib", "runtime")]
FULL_CC = os.environ.get("FULL_CC") or os.environ.get("CC", "cc")  # the first: where a test runs tests
ANY_BYTES = {"encoding": "utf-8", "errors": "surrogateescape"}


def pytest_addoption(parser):
    parser.addoption("--bless", action="store_true", help="rewrite the expected output instead of comparing with it")
    parser.addoption("--limit", type=int, default=300, metavar="SECONDS", help="what a test may take at most [300]")
    parser.addoption("--tally", metavar="FILE", help="write what each test came to, and begin with those that took longest there")
    parser.addoption("--continue", action="store_true", help="leave out what passed, says the file of --tally")


def spread_over_gpus():
    """Workers of pytest-xdist begin with different GPUs, where there are several. All of them see all."""
    worker, gpus = os.environ.get("PYTEST_XDIST_WORKER"), visible_gpus()
    if worker and len(gpus) > 1:
        first = int(worker.removeprefix("gw")) % len(gpus)
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[first:] + gpus[:first])


def pytest_configure(config):
    spread_over_gpus()
    if config.getoption("--tally"):
        config.pluginmanager.register(Tally(config))
    config.addinivalue_line("markers", "xdist_group(name): of pytest-xdist, which need not be installed")
    config.addinivalue_line("markers", "gpu: needs a GPU and nvcc")
    config.addinivalue_line("markers", "nvcc: needs nvcc, but no GPU")
    config.addinivalue_line("markers", "shares(fixtures): tests with the same of these parametrized ones run in one worker (--dist loadgroup)")
    config.addinivalue_line("markers", "quick: its C programs are compiled at -O0, not at -O1")
    config.addinivalue_line("markers", "vectors: at -O1, in a file that is quick or full")
    config.addinivalue_line("markers", "full: at -O3, as users have them")


def gpu_present():
    if shutil.which("nvidia-smi") is None:
        return False
    listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return listing.returncode == 0 and "GPU 0" in listing.stdout


def nvcc_present():
    return shutil.which("nvcc") is not None or Path("/usr/local/cuda/bin/nvcc").exists()


def pytest_make_parametrize_id(val, argname):
    """A test is never called by bytes: those of a gzip file hold the second it was made in, and pytest-xdist refuses to run
    tests whose names differ from process to process."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if "cuda_takes" in item.fixturenames:
            item.add_marker("nvcc")
        if shared := item.get_closest_marker("shares"):
            chosen = [item.callspec.indices.get(name) for name in shared.args] if hasattr(item, "callspec") else []
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}{chosen}"))
    missing = {"gpu": not (gpu_present() and nvcc_present()), "nvcc": not nvcc_present()}
    for item in items:
        for need, absent in missing.items():
            if absent and item.get_closest_marker(need):
                item.add_marker(pytest.mark.skip(reason=f"no {need} here"))


def pytest_terminal_summary(terminalreporter):
    """Why tests were skipped, and how many for each reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = collections.Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")


# ---- signals ----


@pytest.fixture(scope="session", autouse=True)
def programs_hear_signals():
    """What comes ignored (nohup, a shell's background jobs) stays ignored in programs, which is right, and would not be
    tested. A handler is not inherited: this process goes on ignoring, and those that it starts begin as usual."""
    for number in signal.SIGINT, signal.SIGHUP, signal.SIGTERM:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture
def hears_ctrl_c():
    """For a test that interrupts this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# ---- how programs are compiled ----


# What takes a third of gcc's time at -O1, and neither makes vector code of a loop, nor keeps it from becoming that, nor makes programs much faster.
FEWER_PASSES = " ".join(f"-fno-{name}" for name in (
    "tree-dominator-opts tree-bit-ccp tree-dse dse ivopts tree-fre tree-copy-prop tree-ccp tree-reassoc tree-sink tree-phiprop tree-slsr tree-ter "
    "tree-coalesce-vars ssa-phiopt ssa-backprop ipa-profile ipa-pure-const ipa-reference guess-branch-probability cprop-registers compare-elim "
    "combine-stack-adjustments reorder-blocks shrink-wrap split-wide-types thread-jumps").split()) + " -fira-region=one"
MOST_OBJECTS = 1 << 30
LEVELS = {"quick": "O0", "vectors": "O1", "full": "O3"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Most of the time of all tests is that of the C compiler. What a program says, keeps and refuses does not depend on its level,
    and loops that mtc says are simd are vector code from -O1 on: only what is `full` has programs as users have them, at -O3."""
    level = next((LEVELS[mark.name] for mark in item.iter_markers() if mark.name in LEVELS), "O1")
    os.environ |= {"FULL_CC": FULL_CC, "CC": leveled_cc(level), "FEWER_PASSES": FEWER_PASSES if is_gcc() else ""}


@functools.cache
def is_gcc():
    done = subprocess.run([*FULL_CC.split(), "-v"], capture_output=True, text=True) if shutil.which(FULL_CC.split()[0]) else None
    return done is not None and "gcc version" in done.stderr


@pytest.fixture(scope="session", autouse=True)
def nothing_is_compiled_twice(tmp_path_factory):
    """By tests/support/leveled_cc, of which this run and the next find what it has made."""
    once = folder_of_all_workers(tmp_path_factory)
    ends = made_once(once / "ends", lambda path: path.write_text("{ local: _edata; _end; __bss_start; };\n"))
    objects = made_once(once / "objects", lambda path: path.write_text(str(folder_of_objects())))
    os.environ |= {"OBJECTS": objects.read_text(), "ENDS": str(ends)}


def folder_of_objects():
    """Those that were used last, of MOST_OBJECTS bytes."""
    folder, room = ROOT / "build" / "tests" / "objects", MOST_OBJECTS
    folder.mkdir(parents=True, exist_ok=True)
    known = []
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # of another run, which is done with it
            known.append((path.stat(), path))
    for status, path in sorted(known, key=lambda each: -each[0].st_mtime):
        room -= status.st_size
        if room < 0:
            path.unlink(missing_ok=True)
    return folder


def processor():
    """What -march=native stands for."""
    path = Path("/proc/cpuinfo")
    first = path.read_text().partition("\n\n")[0] if path.exists() else platform.processor()
    return [line for line in first.splitlines() if "MHz" not in line and "mips" not in line.lower()]


@functools.cache
def leveled_cc(level):
    """The caches of programs know a compiler by its path: tests/support/leveled_cc under a name for the one that it calls."""
    script, compiler = ROOT / "tests" / "support" / "leveled_cc", shutil.which(FULL_CC.split()[0])
    status = os.stat(compiler or script)
    known = FULL_CC, compiler, status.st_size, status.st_mtime, script, script.read_text(), processor()
    link = ROOT / "build" / f"cc-{hashlib.sha256(repr(known).encode()).hexdigest()[:12]}-{level}"
    with contextlib.suppress(FileExistsError):  # of another process
        link.symlink_to(script)
    return str(link)


# ---- time ----


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test that takes longer than its limit fails where it waits, and what it runs is ended by what waits for it. A call into
    C that does not return ends the process, a minute later."""
    seconds = item.config.getoption("--limit")

    def end(*_):
        pytest.fail(f"{item.nodeid} takes longer than {seconds} s (pytest --limit)")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(seconds + 60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def bless(request):
    return request.config.getoption("--bless")


@pytest.fixture
def check_text(bless):
    """Compares text with a file, or writes the file when blessing."""

    def check(path, text):
        if bless:
            path.write_text(text, **ANY_BYTES)
        else:
            assert text == path.read_text(**ANY_BYTES), f"{path.name} differs; 'make bless' accepts the new text"

    return check


def run_mtc(*args, cwd=ROOT, stdin=None):
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run([MTC, *map(str, args)], cwd=cwd, input=stdin, capture_output=True, env=environment, **ANY_BYTES)


@pytest.fixture(scope="session")
def mtc():
    """mtc(*args, cwd, stdin) runs the compiler and returns its completed process."""
    assert MTC.exists(), "run 'make' first"
    return run_mtc


class Program:
    """A compiled training program."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *args, check=True, threads=2, cwd=None):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        done = subprocess.run([self.path, *map(str, args)], capture_output=True, text=True, env=environment,
                              cwd=cwd or self.path.parent)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done


@pytest.fixture(scope="session")
def compile_model(mtc, tmp_path_factory):
    """compile_model(model, *flags, target): a Program; `model` is a path or the text itself. One compilation each, for all workers;
    each has programs under names of its own, beside which they may write."""
    folder, made, programs = tmp_path_factory.mktemp("programs"), folder_of_all_workers(tmp_path_factory), {}

    def compile_once(model, *flags, target="cpu"):
        known = identity(model), flags, target, os.environ["CC"], os.environ.get("MTC_INT_HOLDS")
        key = hashlib.sha256(repr(known).encode()).hexdigest()[:16]
        if key not in programs:
            source = model if isinstance(model, Path) else folder / f"m{key}.mt"
            if source != model:
                source.write_text(model)

            def compile_to(program):
                done = mtc(source.name, "-o", program, "--target", target, "--keep", folder / f"k{key}", *flags, cwd=source.parent)
                assert done.returncode == 0, done.stderr

            program = folder / f"p{key}"
            os.link(made_once(made / f"p{key}", compile_to), program)
            programs[key] = Program(program)
        return programs[key]

    return compile_once


def identity(model):
    """What its programs depend on: where it lies, if it includes files that do not lie with the project's."""
    if not isinstance(model, Path) or ROOT in model.parents:
        return str(model)
    text = model.read_text()
    return str(model) if "include" in text else (model.name, text)


@pytest.fixture(scope="session")
def cuda_takes(mtc, tmp_path_factory):
    """cuda_takes(text, *flags): nvcc's front end takes the CUDA C++ of a model. A test that asks for this is marked nvcc."""
    front_end = front_end_of_cuda(CUDA_INCLUDES)
    folder = tmp_path_factory.mktemp("front_end")

    def check(text, *flags):
        (folder / "m.mt").write_text(text)
        emitted = mtc(folder / "m.mt", "--target", "cuda", "--emit=cu", *flags)
        assert emitted.returncode == 0, emitted.stderr
        (folder / "m.cu").write_text(emitted.stdout)
        done = subprocess.run(["sh", "-c", front_end], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]
        return folder / "m.cu"

    return check


@pytest.fixture(scope="session")
def cuda_compiles(cuda_takes):
    """cuda_compiles(text, architectures, *flags): behind the front end, nvcc makes machine code of the kernels, with the flags that mtc gives it. What
    programs have beside that is the same for all, and half of the time for a small one."""

    def compile_kernels(text, architectures, *flags):
        source = cuda_takes(text, "--arch", architectures, *flags)
        command = kernels_command(source, source.with_suffix(".fatbin"), architectures.split(","), CUDA_INCLUDES)
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]

    return compile_kernels


def flags_of(model):
    """The flags in a model's first line, `# mtc --set n=3 --target cpu`; none without such a line."""
    first = model.read_text(**ANY_BYTES).partition("\n")[0]
    return first.split()[2:] if first.startswith("# mtc ") else []
