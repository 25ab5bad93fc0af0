"""--emit=scaling: a step of several GPUs, by the numbers of its links; tests/golden/perceptron.scaling shows the table."""

import math
import re

import pytest
from conftest import ROOT

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}
WIDE = """data {
  train = idx("x", "y")
  x : f32[1000]
  y : f32[1000]
}
model { p = linear(x, 1000, bias = false) }
train {
  loss      = mse(p, y)
  optimizer = sgd(0.1)
  batch     = 64
}
"""


@pytest.fixture
def model(tmp_path):
    (tmp_path / "wide.mt").write_text(WIDE)
    return tmp_path / "wide.mt"


def table(text):
    """By number of GPUs: hosts, examples, seconds of work, sums and step, bytes, the ring's seconds, examples a second, percent."""
    rows = {}
    for line in text.splitlines():
        if re.match(r" +\d+ +\d", line):
            plain = re.sub(r"([\d.]+) (us|ms|s|KB|MB|GB)\b", lambda m: repr(float(m[1]) * UNITS[m[2]]), line).replace("%", "").split()
            rows[int(plain[0])] = [float(word) for word in plain[1:]]
    return rows


def test_time_adds_up(mtc, model):
    """4 MB of gradients; 2 GPUs in a host, so that the second of three turns and the third leave it."""
    rows = table(mtc(model, "--emit=scaling", "--arch", "sm_90", "--link", "host=2,inside=100,inside_us=10,meeting_us=10,between=10,between_us=50").stdout)
    assert list(rows) == [2**k for k in range(11)]
    work, size, memory = rows[1][2], 4e6, 4.8e12
    for gpus, (hosts, examples, own, sums, step, sent, ring, rate, efficiency) in rows.items():
        turns = range(round(math.log2(gpus)))
        exchange = sum(2 * ((10e-6, 50e-6)[n > 0] + size / 2 ** (n + 1) / (100e9, 10e9)[n > 0]) for n in turns)
        least = sum(3 * size / 2 ** (n + 1) / memory for n in turns) if gpus > 2 else 0  # two, in each other's memory, add what they read
        assert hosts == math.ceil(gpus / 2) and examples == 64 * gpus and own == work
        assert exchange + least <= sums * 1.005 and sums <= (exchange + 2 * least) * 1.01 + 1e-7  # memory as programs reach it
        assert step == pytest.approx(own + sums, rel=0.02) and sent == pytest.approx(2 * size * (1 - 1 / gpus), rel=0.01)
        assert rate == pytest.approx(examples / step, rel=0.02) and efficiency == pytest.approx(100 * work / step, rel=0.02, abs=0.06)
        slow = (10e-6 + size / gpus / 100e9) if gpus <= 2 else (50e-6 + size / gpus / 20e9)
        assert ring == pytest.approx(2 * (gpus - 1) * slow, rel=0.01, abs=1e-7)


def test_small_sums_meet_once(mtc, model):
    """In each other's memory each GPU sends all to all; large ones meet twice, and move their parts to and fro."""
    for width, meetings, moved in (100, 1, lambda gpus: gpus - 1), (1000, 2, lambda gpus: 2 * (1 - 1 / gpus)):
        model.write_text(WIDE.replace("linear(x, 1000,", f"linear(x, {width},").replace("y : f32[1000]", f"y : f32[{width}]"))
        rows = table(mtc(model, "--emit=scaling", "--arch", "sm_90", "--link", "inside=100,meeting_us=20").stdout)
        for gpus in 2, 4, 8:
            sent = 4000 * width * moved(gpus)
            assert rows[gpus][5] == pytest.approx(sent, rel=0.01) and rows[gpus][3] == pytest.approx(meetings * 20e-6 + sent / 100e9, rel=0.01)
        assert rows[16][3] > rows[8][3]


def test_a_batch_in_shards_stays(mtc, model):
    rows = table(mtc(model, "--emit=scaling", "--arch", "sm_90", "--shards", 8).stdout)
    assert list(rows) == [1, 2, 4, 8] and {row[1] for row in rows.values()} == {64}
    assert rows[1][2] > rows[2][2] > rows[4][2] > rows[8][2]
    assert rows[8][8] == pytest.approx(100 * rows[1][4] / rows[8][4] / 8, rel=0.02, abs=0.06)


def test_measured_sums_are_met(mtc, model):
    """An all-reduce of two H200s: bytes, seconds. What a text says decides how many bytes there are."""
    for size, seconds in (407e3, 22e-6), (44e6, 178e-6), (496e6, 1.6e-3):
        width = round(size / 4000)
        model.write_text(WIDE.replace("linear(x, 1000,", f"linear(x, {width},").replace("y : f32[1000]", f"y : f32[{width}]"))
        assert table(mtc(model, "--emit=scaling", "--arch", "sm_90").stdout)[2][6] == pytest.approx(seconds, rel=0.065)


@pytest.mark.parametrize("flags, message", [
    (["--link", "between=0"], "--link between takes a number from 0.001 to 100000, not '0'"),
    (["--link", "host=2.5"], "--link host takes a whole number from 1 to 65536, not '2.5'"),
    (["--link", "host=99999999999999999999"], "--link host takes a whole number from 1 to 65536, not '99999999999999999999'"),
    (["--link", "inside=fast"], "--link inside takes a number from 0.001 to 100000, not 'fast'"),
    (["--link", "inside=1e-300"], "--link inside takes a number from 0.001 to 100000, not '1e-300'"),
    (["--link", "host"], "--link host takes a whole number from 1 to 65536, not ''"),
    (["--link", "host=8,host=4"], "--link has 'host' twice"),
    (["--link", ""], "--link '' has an empty part; it takes host=GPUS,"),
    (["--link", "host=8,"], "--link 'host=8,' has an empty part; it takes host=GPUS,"),
    (["--link", "betwen=3"], "--link knows no 'betwen'; did you mean 'between'?"),
    (["--target", "cpu"], "--emit=scaling is of GPUs"),
    (["--schedule", "persistent"], "--schedule persistent does not have"),
])
def test_what_is_refused(mtc, model, flags, message):
    done = mtc("--emit=scaling", model, *flags)
    assert done.returncode == 64 and message in done.stderr and not done.stdout


def test_a_program_of_integers_has_no_step(mtc, model):
    done = mtc("--emit=scaling", model, "--precision", "int8")
    assert done.returncode == 64 and "--emit=scaling is of training, and int8 trains nothing" in done.stderr and "--shards" not in done.stderr


def test_links_are_of_scaling(mtc, model):
    done = mtc("--emit=plan", model, "--link", "host=4")
    assert done.returncode == 64 and "--link says what joins GPUs, for --emit=scaling" in done.stderr


def test_all_models_scale(mtc):
    for name in "mnist", "resnet18_cifar", "dcgan":
        assert len(table(mtc(ROOT / f"models/{name}.mt", "--emit=scaling").stdout)) == 11
