"""Fixtures around tests/runtime/fake.c, a model written by hand: the runtime without the compiler."""

import ctypes
import gzip
import os
import subprocess

import pytest

from conftest import ROOT
from fake_data import examples, idx_bytes
from runtime_library import SANITIZERS, build_program


def build_fake(output, *flags, library_flags=()):
    sources = [ROOT / "tests/runtime/fake.c", ROOT / "runtime/base/device_cpu.c"]
    return build_program(output, sources, *flags, library_flags=library_flags)


class Folder:
    """A folder with the fake model's data, beside which the program runs (the model file is ./fake.mt)."""

    def __init__(self, path):
        self.path = path
        (path / "fake").mkdir()
        for split, count, seed in (("train", 203, 0), ("test", 50, 1)):
            image, label = examples(count, seed)
            self.write(f"{split}-images", idx_bytes(image))
            self.write(f"{split}-labels", idx_bytes(label))

    def __truediv__(self, name):
        return self.path / name

    def file(self, name):
        return self.path / "fake" / name

    def write(self, name, content):
        self.file(name).write_bytes(content)

    def compress(self, name):
        packed = gzip.compress(self.file(name).read_bytes())
        self.file(name).unlink()
        self.write(f"{name}.gz", packed)
        return packed


class Fake:
    def __init__(self, program):
        self.program = program

    def __call__(self, folder, *args, code=0, env=None):
        environment = {"HOME": str(folder.path), "PATH": os.environ["PATH"], **(env or {})}
        done = subprocess.run([self.program, *map(str, args)], cwd=folder.path, capture_output=True, text=True, env=environment)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        self.said = done.stderr
        return done.stderr if code else done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return tmp_path_factory.mktemp("fake")


@pytest.fixture(scope="session")
def fake(built):
    """fake(folder, *args, code): runs the program; its stdout, or its stderr where it must fail."""
    return Fake(build_fake(built / "fake", "-DFAKE_MAIN", library_flags=SANITIZERS))


@pytest.fixture(scope="session")
def fake_on_gpu(built):
    """fake_on_gpu("NVIDIA H200, 9.0"): the same, which takes its device for that one and its kernels for known times."""
    sources = [ROOT / "tests/runtime/fake.c", ROOT / "tests/runtime/peaks.c", ROOT / "runtime/base/device_cpu.c"]
    wrapped = [f"-Wl,--wrap=mtc_{name}" for name in ("device_open", "device_peaks", "event_seconds")]
    fake = Fake(build_program(built / "gpu", sources, "-DFAKE_MAIN", *wrapped, library_flags=SANITIZERS))
    return lambda gpu: lambda folder, *args: fake(folder, *args, env={"GPU": gpu})


@pytest.fixture(scope="session")
def fake_double(built):
    return Fake(build_fake(built / "fake64", "-DFAKE_MAIN", "-DREAL=double", "-DREAL_TYPE=MTC_F64"))


@pytest.fixture(scope="session")
def fake_filters(built):
    """The same model, whose weights have another order of axes in files: [3, 4, 2, 2] in memory is [3, 2, 4, 2] there."""
    return Fake(build_fake(built / "filters", "-DFAKE_MAIN", "-DFAKE_FILTERS", library_flags=SANITIZERS))


@pytest.fixture(scope="session")
def fake_filters_library(built):
    library = ctypes.CDLL(str(build_fake(built / "libfilters.so", "-shared", "-DFAKE_FILTERS")))
    library.mtc_error.restype = ctypes.c_char_p
    return library


@pytest.fixture(scope="session")
def fake_other(built):
    """The same model by another text."""
    return Fake(build_fake(built / "other", "-DFAKE_MAIN", '-DFAKE_HASH="4567cdef"'))


@pytest.fixture(scope="session")
def fake_plain(built):
    """Without sanitizers, for what is killed, preloaded or timed."""
    return Fake(build_fake(built / "plain", "-DFAKE_MAIN"))


@pytest.fixture(scope="session")
def fake_other_text(built):
    """The same model, with another hash."""
    return Fake(build_fake(built / "other_text", "-DFAKE_MAIN", '-DFAKE_HASH="ffff0000"'))


@pytest.fixture(scope="session")
def fake_stranger(built):
    """Another model, whose weights are double."""
    return Fake(build_fake(built / "stranger", "-DFAKE_MAIN", '-DFAKE_NAME="stranger"', "-DREAL=double", "-DREAL_TYPE=MTC_F64"))


@pytest.fixture(scope="session")
def fake_slow(built):
    """An evaluation of the test data takes 14 seconds, 2 for each batch; it says on stderr that it begins one."""
    return Fake(build_fake(built / "slow", "-DFAKE_MAIN", "-DFAKE_EVAL_SECONDS=2"))


@pytest.fixture(scope="session")
def fake_huge(built):
    return Fake(build_fake(built / "huge", "-DFAKE_MAIN", "-DFAKE_ARENA=((size_t)1<<50)"))


@pytest.fixture(scope="session")
def fake_library(built):
    library = ctypes.CDLL(str(build_fake(built / "libfake.so", "-shared")))
    library.mtc_error.restype = ctypes.c_char_p
    return library


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)
