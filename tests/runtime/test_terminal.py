"""What a program shows on terminals of some widths, and what its help offers."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from conftest import MTC, ROOT, run_mtc

pytestmark = pytest.mark.quick

MODEL = """param lr = 0.01
data {
  train = csv("rows.csv", columns = ["x", "y"])
  test  = csv("rows.csv", columns = ["x", "y"])
  x : f32
  y : f32
}
model {
  p = linear(reshape(x, [1]), 1)
  e = mean(square(p - y))
  another_name = e
}
train {
  loss      = e
  metric    = [mean(abs(p - y)), another_name]
  predict   = p
  optimizer = sgd(lr)
  batch     = 8
  epochs    = 3
}
"""
NUMBER = r"-?\d+(\.\d+)?(e[-+]\d+)?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "m.mt").write_text(MODEL)
    (folder / "rows.csv").write_text("".join(f"{k % 100 / 100},{k % 7 / 10}\n" for k in range(20000)))
    for model, name in (("m.mt", "m"), (ROOT / "models/xor.mt", "xor")):
        done = run_mtc(model, "--target", "cpu", "-o", name, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def on_terminal(folder, columns, *command, **environment):
    """All that the command writes on a terminal so wide."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    process = subprocess.Popen(command, cwd=folder, stdin=its, stdout=its, stderr=its, env={**os.environ, "TERM": "xterm", **environment})
    os.close(its)
    said = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:
            break
        if not more:
            break
        said += more
    os.close(ours)
    assert process.wait() == 0
    return said.decode()


@pytest.mark.parametrize("columns", [200, 80, 60, 24])
def test_fields_are_left_out_whole(columns, folder):
    """Lines fit; the loss is always there; a number is whole or not there."""
    said = on_terminal(folder, columns, "./m", "--epochs", "300", "--every", "60")  # long enough for a bar
    lines = [line for line in re.split(r"\r|\n|\x1b\[K", said) if "/300" in line]
    assert len(lines) > 5 and max(map(len, lines)) <= columns
    field = rf"(  \|( test)?|\[[=> ]*\]|\s+|(loss|mean|another_name) {NUMBER}|{NUMBER} examples/s|\d+:\d\d left|{NUMBER} s)"
    for line in lines:
        assert re.fullmatch(rf"(epoch )? *\d+/300{field}*", line), line
        assert " loss " in line
    whole = [line for line in lines if re.search(r"\d s$", line)]
    assert len(whole) == (5 if columns == 200 else 0)


def shown(lines):
    """Lines that were drawn over, and the codes of the bar, left out."""
    return [line for line in re.split(r"\r?\n", re.sub(r"[^\n]*\r(?!\n)|\x1b\[\??\d*\w", "", lines)) if line]


PROFILE_TITLES = {
    24: r"\S*el +us",
    60: r"kernel +us  share     GB/s   GFLOP/s  line *",
    200: r"kernel +phase +us  share     GB/s   GFLOP/s  line *",
}


@pytest.mark.parametrize("columns", PROFILE_TITLES)
def test_columns_of_profile_are_left_out_whole(columns, folder):
    lines = shown(on_terminal(folder, columns, "./m", "profile"))
    titles = next(k for k, line in enumerate(lines) if re.fullmatch(PROFILE_TITLES[columns], line))
    *rows, total, step = lines[titles + 1 :]
    assert len(rows) > 3 and max(map(len, lines)) <= columns
    assert total.startswith("sum ") and step.startswith("step")
    for row in rows:
        name, *numbers = re.sub(r"  (9|14):.*", "", row).split()
        assert name and all(re.fullmatch(rf"{NUMBER}%?", number) for number in numbers), row
        assert len(numbers) == {24: 1, 60: 4, 200: 5}[columns]
        assert columns != 200 or re.search(r"  (9: p = linear.*, 1\)|14: loss = e)$", row), row
        assert columns != 60 or re.search(r"  (9: p|14:) ?\.\.\.$", row), row


@pytest.mark.parametrize("columns, titles", [(24, r"tensor +error"), (60, r"tensor +error +gradient +difference  line *"),
                                             (200, r"tensor +shape +checked +error +worst element +gradient +difference  line *")])
def test_columns_of_gradcheck_are_left_out_whole(columns, titles, folder):
    lines = shown(on_terminal(folder, columns, MTC, "gradcheck", "m.mt", "--data", "."))
    first = next(k for k, line in enumerate(lines) if re.fullmatch(titles, line))
    rows = lines[first + 1 : first + 3]
    assert max(map(len, lines[: first + 3])) <= columns
    for row in rows:
        numbers = row.partition("  9: ")[0].split()[-{24: 1, 60: 3, 200: 2}[columns] :]
        assert row.startswith("p.") and all(re.fullmatch(NUMBER, number) for number in numbers), row
        assert row.endswith({24: numbers[0], 60: "...", 200: ", 1)"}[columns])


@pytest.mark.parametrize("columns, line", [(24, rf"test:  loss {NUMBER}"), (60, rf"test:  loss {NUMBER}  mean {NUMBER}  another_name {NUMBER}"),
                                           (80, rf"test: 20000 examples   loss {NUMBER}  mean {NUMBER}  another_name {NUMBER}")])
def test_means_of_eval_are_left_out_whole(columns, line, folder):
    subprocess.run(["./m", "--save", "w.safetensors", "--quiet"], cwd=folder, check=True)
    (last,) = shown(on_terminal(folder, columns, "./m", "eval", "--load", "w.safetensors"))[-1:]
    assert re.fullmatch(line, last) and len(last) <= columns


def test_a_dumb_terminal_gets_no_codes(folder):
    assert "\x1b" not in on_terminal(folder, 80, "./m", "--epochs", "100", TERM="dumb")


@pytest.mark.parametrize("columns", [100, 60])
def test_help_fits(columns, folder):
    help = on_terminal(folder, columns, "./m", "--help")
    words = help[help.index("commands"):help.index("examples")].splitlines()
    assert max(map(len, words)) <= columns
    assert "".join(help.split()).count("evaluationsthatwerenotthebest") == 1


def test_help_offers_what_the_model_can(folder):
    def help(name, *command):
        return subprocess.run([folder / name, *command, "--help"], capture_output=True, text=True, check=True).stdout

    table, rows = help("m"), help("xor")
    for word in "generate", "--sample", "gradcheck", "--device", "--data-on":
        assert word not in table.replace("and what generate draws", "")
    for word in "--monitor", "--patience", "--bad-rows", "--no-cache", "--data FOLDER", "predict --load m.safetensors --input new.csv":
        assert word in table
    for word in "--monitor", "--patience", "--bad-rows", "--no-cache", "--data FOLDER":
        assert word not in rows
    assert "--resize" not in help("m", "predict")


@pytest.mark.parametrize("flags", [["--patience", "2"], ["--monitor", "loss"]])
def test_nothing_to_watch(flags, folder):
    done = subprocess.run([folder / "xor", *flags], capture_output=True, text=True)
    assert done.returncode == 64 and not done.stdout
    assert f"{flags[0]} needs data to evaluate: the model has neither validation nor test" in done.stderr


def test_help_of_a_language_model(tmp_path):
    done = run_mtc(ROOT / "models/char_gpt.mt", "--target", "cpu", "--set", "layers=1", "-o", tmp_path / "gpt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    help = subprocess.run([tmp_path / "gpt", "--help"], capture_output=True, text=True, check=True).stdout
    assert "generate --load char_gpt.safetensors" in help and "predict --load" not in help and "--sample N" in help


def test_resize_is_for_images(folder):
    done = subprocess.run([folder / "m", "predict", "--resize", "--load", "w"], capture_output=True, text=True)
    assert done.returncode == 64 and "--resize is for images, and m predicts from none" in done.stderr


def test_a_folder_is_no_input_of_a_table(folder):
    subprocess.run([folder / "m", "--epochs", "1", "--save", "w", "--quiet"], cwd=folder, check=True)
    done = subprocess.run([folder / "m", "predict", "--load", "w", "--input", "."], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 65 and ".: is a folder: only images come as one, and this model predicts from none" in done.stderr
