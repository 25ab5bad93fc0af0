"""Training on files of tokens: they are mapped, and what is in them when they are read is what counts."""

import ctypes
import os
import resource
import subprocess

import numpy as np
import pytest

from library import Library
from test_sockets import begun, ended

BAD_DATA, NO_INPUT, UNAVAILABLE = 65, 66, 69
CLASSES, LENGTH, STRIDE = 300, 33, 20

MODEL = """data {
  examples = tokens("train.bin", stride = 20)
  split    = 90 / 10
  window   : class[300][33]
}
model {
  scores = linear(embedding(slice(window, 0, 0, 32), 300, 4), 300)
}
train {
  loss      = cross_entropy(scores, slice(window, 0, 1, 33))
  optimizer = adam(1e-2)
  batch     = 8
  epochs    = 3
}
"""


def header(count, magic=20240520, version=1):
    numbers = np.zeros(256, "<i4")
    numbers[:3] = magic, version, count
    return numbers.tobytes()


def draw(count, seed=0):
    return np.random.default_rng(seed).integers(0, CLASSES, count)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.bin").write_bytes(draw(9000).astype("<u2").tobytes())
    return tmp_path


@pytest.fixture
def run(compile_model, tmp_path):
    program = compile_model(MODEL)

    def call(*flags, code=0):
        done = program(*flags, "--data", tmp_path, check=False, cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if code else done.stdout

    call.path = program.path
    return call


def same(folder, *names):
    return len({(folder / name).read_bytes() for name in names}) == 1


# ---- the same from each format and in each place ----


FORMATS = {
    "plain": lambda tokens: tokens.astype("<u2").tobytes(),
    "header": lambda tokens: header(len(tokens)) + tokens.astype("<u2").tobytes(),
    "32 bits": lambda tokens: header(len(tokens), 20240801, 7) + tokens.astype("<u4").tobytes(),
}


def test_formats_and_places(run, folder):
    """Weights, and the digest of the training data."""
    for name, content in FORMATS.items():
        (folder / "train.bin").write_bytes(content(draw(9000)))
        for place in ("device", "host"):
            run("--data-on", place, "--save", f"{name}-{place}", "--quiet")
    assert same(folder, *(f"{name}-{place}" for name in FORMATS for place in ("device", "host")))


def test_one_batch(run, folder):
    for place in ("device", "host"):
        run("--overfit-batch", "--data-on", place, "--save", place, "--quiet")
    assert same(folder, "device", "host")


def test_a_resumed_training_knows_its_tokens(run, folder):
    run("--save", "whole", "--quiet")
    run("--save", "part", "--quiet", "--limit-steps", 70, "--data-on", "host")
    run("--resume", "part", "--save", "rest", "--quiet")
    assert same(folder, "whole", "rest")
    tokens = draw(9000)
    tokens[4000] = (tokens[4000] + 1) % CLASSES
    (folder / "train.bin").write_bytes(tokens.astype("<u2").tobytes())
    for place in ("device", "host"):
        assert "the training data are not those of the checkpoint" in run("--resume", "part", "--data-on", place, code=BAD_DATA)


@pytest.mark.parametrize("place", ["device", "host"])
@pytest.mark.parametrize("at", [77, 8990])
def test_a_token_that_is_no_class(at, place, run, folder):
    """In the training part, or in the other."""
    tokens = draw(9000)
    tokens[at] = CLASSES
    (folder / "train.bin").write_bytes(tokens.astype("<u2").tobytes())
    says = f"train.bin: token {at}, counted from 0, is 300; field 'window' is class[300][33], so expected 0 to 299"
    assert says in run("--data-on", place, code=BAD_DATA)


@pytest.mark.parametrize("place", ["device", "host"])
def test_the_first_of_many_is_told(place, run, folder):
    """Threads read parts of a long file at once, and which of them ends first is no matter."""
    tokens = draw(1 << 20)
    tokens[[900000, 700000, 300001, 300002]] = CLASSES
    (folder / "train.bin").write_bytes(tokens.astype("<u2").tobytes())
    assert "train.bin: token 300001, counted from 0, is 300" in run("--data-on", place, code=BAD_DATA)


def test_the_c_interface(compile_model, folder):
    """Tokens that it loads are those that it is given."""
    path = compile_model(MODEL, "--shared").path
    tokens = draw(9000)[:8100].astype("<u2")
    arrays = np.array([tokens[at:at + LENGTH] for at in range(0, len(tokens) - LENGTH + 1, STRIDE)])
    loaded, given = Library(path), Library(path)
    loaded.call("load_data", 0, str(folder).encode())
    given.set_data([arrays])
    np.testing.assert_array_equal(loaded.train(60, 1), given.train(60, 1))
    (folder / "train.bin").write_bytes(np.full(9000, CLASSES, "<u2").tobytes())
    code = loaded.library.mtc_load_data(loaded.session, ctypes.c_int(0), str(folder).encode())
    assert code == BAD_DATA and b"token 0, counted from 0, is 300" in loaded.library.mtc_error(loaded.session)
    loaded.close()
    given.close()


# ---- larger than memory ----


def test_more_tokens_than_memory(compile_model, folder):
    """A file of 256 MB, most of it a hole, where the program may have 96 MB of its own; mapped files do not count to them."""
    program = compile_model(MODEL.replace("stride = 20", "stride = 500"))
    size, most = 256 << 20, 96 << 20
    with open(folder / "train.bin", "wb") as file:
        for at in (0, size // 4, size - 20_000):
            file.seek(at)
            file.write(draw(10_000, at).astype("<u2").tobytes())

    def train(place, save, most, kind=resource.RLIMIT_DATA):
        return subprocess.run([program.path, "--data", folder, "--data-on", place, "--save", folder / save, "--limit-steps", "20"],
                              capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "MTC_WINDOW": "1000000"},
                              preexec_fn=lambda: resource.setrlimit(kind, (most, most)))

    done = train("host", "host", most)
    assert done.returncode == 0, done.stderr
    done = train("device", "device", most)
    assert done.returncode == UNAVAILABLE and "out of memory" in done.stderr, done.stderr
    done = train("device", "device", 4 * size)
    assert done.returncode == 0, done.stderr
    assert same(folder, "host", "device")
    done = train("host", "none", size, resource.RLIMIT_AS)
    assert done.returncode == UNAVAILABLE and "train.bin: cannot map its 268 MB: Cannot allocate memory" in done.stderr, done.stderr


def test_a_file_that_changes_while_it_is_trained_on(run, folder):
    """Two bytes less: the last page has zeros there, and nothing else would tell."""
    training = subprocess.Popen([run.path, "--data", folder, "--data-on", "host", "--epochs", "100000", "--every", "1"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "MTC_WINDOW": "1"})
    try:
        assert training.stdout.readline().startswith("epoch ")
        os.truncate(folder / "train.bin", 17_998)
        _, errors = training.communicate(timeout=60)
    finally:
        training.kill()
    assert training.returncode == NO_INPUT and "train.bin: was changed while it was read" in errors, errors


def test_a_file_whose_name_is_given_to_another(run, folder):
    """As programs do that write a new file and move it there: training goes on with the old one."""
    training = subprocess.Popen([run.path, "--data", folder, "--data-on", "host", "--epochs", "40", "--every", "1", "--save",
                                 folder / "moved"],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "MTC_WINDOW": "1"})
    assert training.stdout.readline().startswith("epoch ")
    (folder / "new").write_bytes(b"nothing")
    os.replace(folder / "new", folder / "train.bin")
    _, errors = training.communicate(timeout=60)
    assert training.returncode == 0, errors
    (folder / "train.bin").write_bytes(draw(9000).astype("<u2").tobytes())
    run("--epochs", 40, "--save", "undisturbed", "--quiet")
    assert same(folder, "moved", "undisturbed")


def test_each_rank_looks_at_its_part(compile_model, tmp_path):
    """Of some pieces of 16 MB. What one finds, all end with; the checksum is that of one process, which a resumed training asks for."""
    tokens, flags = draw(10_000_000).astype("<u2"), ["--save", "w", "--quiet", "--data-on"]
    tokens.tofile(tmp_path / "train.bin")
    program = compile_model(MODEL.replace("stride = 20", "stride = 5000"), "--shards", 4)
    program("--data", tmp_path, *flags, "device", "--limit-steps", 20, cwd=tmp_path)
    expected = (tmp_path / "w").read_bytes()
    for ranks in 2, 4:
        codes, _, told = ended(begun(program, tmp_path, ranks, *flags, "host", "--limit-steps", 20))
        assert not any(codes) and (tmp_path / "w").read_bytes() == expected, told
    codes, _, told = ended(begun(program, tmp_path, 2, "--resume", "w", *flags, "host", "--limit-steps", 25))
    assert not any(codes), told
    tokens[8_900_000] = CLASSES
    tokens.tofile(tmp_path / "train.bin")
    codes, _, told = ended(begun(program, tmp_path, 2, *flags, "host"))
    assert codes[1] == BAD_DATA and codes[0] and told.count("error: ") == 1 and f"token 8900000, counted from 0, is {CLASSES}" in told, (codes, told)
