"""The examples run, each on the CPU target and a little data."""

import os
import re
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

from conftest import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_WAIT_POLICY": "passive"}


def example(name, *flags, cwd):
    command = [sys.executable, ROOT / "examples" / name, "--target", "cpu", *flags]
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder that holds mnist/, with few drawn digits."""
    folder = tmp_path_factory.mktemp("digits")
    script = ROOT / "tools" / "make_digits.py"
    subprocess.run([sys.executable, script, folder / "mnist", "--train", "1500", "--test", "300"], check=True)
    return folder


def read_png(path):
    """The pixels of a grey picture as write_png of the example writes it."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack_from(">II", content, 16)
    (length,) = struct.unpack_from(">I", content, 33)
    rows = np.frombuffer(zlib.decompress(content[41 : 41 + length]), np.uint8).reshape(height, width + 1)
    assert struct.unpack_from(">I", content, 41 + length) == (zlib.crc32(content[37 : 41 + length]),)
    return rows[:, 1:]


@pytest.mark.parametrize("flags", [[], ["--sequential"]])
def test_mnist(flags, digits, tmp_path):
    shown = example("mnist.py", "--data", digits, "--epochs", 6, *flags, cwd=tmp_path)
    rows = [line.split() for line in shown.splitlines() if re.match(r" +\d( +(\d+|\.)){10} +[\d.]+%$", line)]
    matrix = np.array([[0 if count == "." else int(count) for count in row[1:11]] for row in rows])
    accuracy = float(re.search(r"Test accuracy ([\d.]+)", shown)[1])
    assert matrix.sum() == 300 and accuracy == pytest.approx(matrix.trace() / 300, abs=1e-4) and accuracy > 0.8
    picture = read_png(tmp_path / "wrong.png")
    assert picture.shape == (990, 990) and picture.std() > 30


def test_sales(tmp_path):
    shown = example("sales.py", "--rows", 6000, "--epochs", 12, cwd=tmp_path)
    errors = re.findall(r"^From (\w+ ?\w*): mean absolute error [\d.]+, (\d+)% of the mean's", shown, re.M)
    assert [about for about, _ in errors] == ["the file", "arrays"]
    assert all(int(share) < 80 for _, share in errors)
    assert len(re.findall(r"on day \d+ +[\d.]+$", shown, re.M)) == 6
    assert list(tmp_path.iterdir()) == []


def test_transfer(tmp_path):
    pytest.importorskip("torch")
    example("transfer.py", cwd=tmp_path)
