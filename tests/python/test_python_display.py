"""How the Python package shows things: progress of a training, curves, models and histories in notebooks."""

import base64
import contextlib
import html
import io
import json
import os
import pty
import re
import struct
import sys
import time
import xml.etree.ElementTree as ElementTree
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest

from conftest import run_mtc
from mtc import display, errors, plotting, progress
from mtc.curves import read_log, read_runs
from test_plot import CONFIG, epoch, interval, text_of, training

pytestmark = pytest.mark.quick

WITHOUT = {"tqdm": ("tqdm", "tqdm.auto"), "matplotlib": ("matplotlib", "matplotlib.pyplot", "matplotlib.figure")}
HISTORY = {
    "loss": [0.9, 0.5, 0.3],
    "accuracy": [0.7, 0.8, 0.9],
    "val_loss": [0.8, 0.6, 0.5],
    "val_accuracy": [0.7, 0.75, 0.8],
}


@pytest.fixture
def without(monkeypatch):
    """without("tqdm"): as if it were not installed."""

    def hide(package):
        for name in WITHOUT[package]:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


# ---- numbers and lines ----


@pytest.mark.parametrize(
    "value, text",
    [
        (0.123456789, "0.12346"),
        (0, "0.00000"),
        (12.345678, "12.3457"),
        (-0.5, "-0.50000"),
        (123456.7, "123457 "),
        (2e6, "2.0e+06"),
        (1e-5, "1.0e-05"),
        (float("nan"), "NaN    "),
        (float("-inf"), "-inf   "),
    ],
)
def test_numbers_take_seven_characters(value, text):
    assert progress.format_number(value) == text


def test_lines_of_epochs_make_columns():
    first = progress.epoch_line(1, 10, {"loss": 0.5, "accuracy": 0.25}, 0.44)
    last = progress.epoch_line(10, 10, {"loss": 11.25, "accuracy": 1}, 12)
    assert first == "epoch  1/10  loss 0.50000  accuracy 0.25000  0.4 s"
    assert last == "epoch 10/10  loss 11.2500  accuracy 1.00000  12.0 s"


@pytest.mark.parametrize("seconds, text", [(0.04, "0.0 s"), (59.94, "59.9 s"), (125, "2:05"), (3725, "1:02:05")])
def test_durations(seconds, text):
    assert progress.format_seconds(seconds) == text


# ---- progress ----


def show(verbose, epochs=3, metrics=("loss", "accuracy"), **options):
    """A training of ten steps an epoch."""
    with progress.progress(verbose, 10 * epochs, epochs, metrics, batch=4, **options) as shown:
        for number in range(1, epochs + 1):
            for step in range(1, 11):
                shown.update(10 * (number - 1) + step, [1 / step] * len(metrics))
            shown.epoch(number, dict.fromkeys(metrics, 1 / number))


def test_a_line_for_each_epoch_in_a_pipe(capsys):
    show("auto")
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert [line[:9] for line in lines] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert re.fullmatch(r"epoch 2/3  loss 0\.50000  accuracy 0\.50000  \d\.\d s", lines[1])


def test_verbose_0_shows_nothing(capsys):
    show(0)
    assert capsys.readouterr() == ("", "")


def test_a_bar_for_no_terminal_is_lines(capsys):
    show(1)
    assert capsys.readouterr().out.count("\n") == 3


@pytest.mark.parametrize("verbose", [3, -1, "loud", None, 0.5])
def test_verbose_is_checked(verbose):
    with pytest.raises(errors.UsageError, match="a line per epoch"):
        show(verbose)


def test_many_short_epochs_show_few_lines_but_the_last(capsys):
    show("auto", epochs=200)
    lines = capsys.readouterr().out.splitlines()
    assert 2 <= len(lines) < 100
    assert lines[0].startswith("epoch   1/200") and lines[-1].startswith("epoch 200/200")
    show(2, epochs=200)
    assert capsys.readouterr().out.count("\n") == 200


def test_news_stand_on_lines_of_their_own(capsys):
    with progress.progress(2, 10, 1, ["loss"]) as shown:
        shown.epoch(1, {"loss": 1.0})
        shown.say("stopped early")
    assert capsys.readouterr().out.splitlines()[1] == "stopped early"


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("verbose", [1, 2])
def test_what_cannot_be_drawn_breaks_no_training(verbose, monkeypatch):
    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    with contextlib.redirect_stdout(Broken()), contextlib.redirect_stderr(Broken()):
        show(verbose)


def test_a_closed_standard_error_is_no_terminal(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert not progress.on_terminal()
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress.on_terminal()


def test_drawing_takes_little_of_the_time():
    """A bar that takes long is drawn the less often."""

    class Slow(progress.NoBar):
        drawn = 0

        def draw(self, status):
            self.drawn += 1
            time.sleep(0.02)

    slow = Slow()
    shown = progress.Progress(slow, progress.Status(1000, 1, ["loss"], 0, 0, 1), True)
    for step in range(1000):
        shown.update(step, [1.0])
        time.sleep(0.0002)
    assert slow.drawn == 1  # the next would be due after a second


def on_terminal_of(columns, function):
    """What a function writes, in a process of its own, to a terminal of that width."""
    process, terminal = pty.fork()
    if process == 0:
        try:
            ioctl(2, TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
            sys.stdout, sys.stderr = (open(number, "w", buffering=1) for number in (1, 2))
            function()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(0)
    written = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while part := os.read(terminal, 65536):
            written += part
    os.close(terminal)
    os.waitpid(process, 0)
    return written.decode()


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    return on_terminal_of


@pytest.mark.parametrize("columns", [120, 80, 50, 12])
def test_the_bar_fits_its_terminal(terminal, without, columns):
    without("tqdm")
    drawings = [part for line in terminal(columns, lambda: show("auto")).split("\n") for part in line.split("\r")]
    bars = [text for text in drawings if text.strip() and not text.endswith(" s")]
    assert bars and all(len(text) < columns for text in bars)
    assert any("[" in text and "examples/s" in text and "left" in text for text in bars) == (columns >= 80)
    assert sum(text.endswith(" s") for text in drawings) == 3  # lines of epochs stay, whole


def test_the_bar_is_gone_at_the_end(terminal, without):
    without("tqdm")
    written = terminal(80, lambda: show(1))
    last = written.split("\n")[-2]
    assert "\x1b" not in written
    assert last.split("\r")[-2 if last.endswith("\r") else -1].startswith("epoch 3/3  loss")


def test_a_dumb_terminal_gets_lines(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "\r" not in terminal(80, lambda: show("auto")).replace("\r\n", "\n")


def test_the_bar_of_tqdm(terminal):
    pytest.importorskip("tqdm")
    written = terminal(110, lambda: show("auto"))
    assert re.search(r"epoch 1/3 \|.*\| 00:00 left, .*examples/s, loss 1\.00000, accuracy 1\.00000", written)
    assert sum(line.rstrip("\r").endswith(" s") for line in written.split("\n")) == 3


def test_the_bar_of_tqdm_in_a_terminal_of_no_size(terminal):
    pytest.importorskip("tqdm")
    assert "examples/s, loss 1.00000" in terminal(0, lambda: show("auto"))


def test_a_training_that_goes_on(terminal, without):
    """The second fit: steps and epochs are counted from the first that the weights ever saw."""
    status = progress.Status(20, 4, ["loss"], 10, 2, 8)
    status.done, status.means = 5, [0.25]
    text = progress.bar_text(status, 100)
    assert text.startswith("epoch 3/4 [============>           ]  loss 0.25000  ")


# ---- curves ----


def test_curves_of_a_history():
    (run,) = read_runs(HISTORY)
    assert [(curve.metric, curve.split) for curve in run.curves] == [
        ("loss", "training"),
        ("accuracy", "training"),
        ("loss", "validation"),
        ("accuracy", "validation"),
    ]
    assert [(point[1], point[3]) for point in run.curves[0].points] == [(1, 0.9), (2, 0.5), (3, 0.3)]


def test_validation_that_began_later_ends_with_the_last_epoch():
    (run,) = read_runs({"loss": [3.0, 2.0, 1.0], "val_loss": [1.5]})
    assert [point[1] for point in run.curves[1].points] == [3]


def test_curves_of_a_log(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(text_of(training()))
    run = read_log(path, "run")
    assert run.metrics == ["loss", "accuracy"]
    kinds = {(curve.metric, curve.split, curve.within): curve.points for curve in run.curves}
    assert len(kinds["loss", "training", True]) == 15
    assert [point[:3] for point in kinds["loss", "test", False]] == [(10, 1, 1.25), (20, 2, 2.5), (30, 3, 3.75)]


def test_a_resumed_log_replaces_what_was_done_again(tmp_path):
    path = tmp_path / "run.jsonl"
    lines = [CONFIG, interval(5, 2.0), interval(10, 1.5), interval(15, 1.2), CONFIG, interval(15, 1.1), epoch(2, 1.0)]
    path.write_text(text_of(lines) + '{"event":"tra')
    (within, whole) = read_log(path, "run").curves
    assert [(point[0], point[3]) for point in within.points] == [(5, 2.0), (10, 1.5), (15, 1.1)]
    assert within.points[-1][2] == 2 * 15 / 8  # the seconds go on


@pytest.mark.parametrize("text", ["hello\n", '{"loss": 1}\n', "[1]\n"])
def test_what_is_no_log_is_said(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(errors.DataError, match=r"notes.txt:1: this is no log of a training"):
        plotting.plot(path)


def test_what_is_nothing_to_plot_is_said(tmp_path):
    with pytest.raises(errors.FileError, match="cannot read .*none.jsonl.*No such file"):
        plotting.plot(tmp_path / "none.jsonl")
    with pytest.raises(errors.UsageError, match="no epoch"):
        plotting.plot({})
    with pytest.raises(errors.UsageError, match="takes a History.* not int"):
        plotting.plot([3])
    with pytest.raises(errors.UsageError, match='x is "epoch", "step"'):
        plotting.plot(HISTORY, x="time")
    with pytest.raises(errors.UsageError, match="at which seconds"):
        plotting.plot(HISTORY, x="seconds")


# ---- plot without matplotlib ----


def test_svg_by_the_binary(tmp_path, without):
    without("matplotlib")
    (tmp_path / "sgd.jsonl").write_text(text_of(training()))
    drawing = plotting.plot({"Adam <1>": HISTORY, "SGD": tmp_path / "sgd.jsonl"}, tmp_path / "curves.svg")
    text = drawing._repr_svg_()
    words = [element.text for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert {"loss", "accuracy", "epoch", "Adam <1>", "SGD", "validation", "test"} <= set(words)
    assert (tmp_path / "curves.svg").read_text() == text
    assert repr(drawing) == f"<SVG of {len(text)} characters; .save(path) writes it>"


def test_a_history_as_a_log_is_what_it_was():
    lines = [json.loads(line) for line in plotting.log_of(HISTORY).splitlines()]
    assert [line["event"] for line in lines] == ["config", "epoch", "epoch", "epoch"]
    assert lines[2]["epoch"] == 2 and lines[2]["validation_accuracy"] == 0.75


def test_png_by_the_binary(tmp_path, without):
    """What `mtc plot` draws of the same log."""
    without("matplotlib")
    folder = tmp_path / "history"
    folder.mkdir()
    (folder / "training.jsonl").write_text(plotting.log_of(HISTORY))
    for _ in "written", "replaced":
        drawing = plotting.plot(HISTORY, tmp_path / "curves.PNG", title="Loss")
        assert drawing.text.startswith("<svg") and (tmp_path / "curves.PNG").read_bytes().startswith(b"\x89PNG")
    run_mtc("plot", folder / "training.jsonl", "-o", tmp_path / "again.png", "--x", "epoch", "--title", "Loss")
    assert (tmp_path / "curves.PNG").read_bytes() == (tmp_path / "again.png").read_bytes()
    (tmp_path / "mine.png").write_text("no picture")
    with pytest.raises(errors.FileError, match="would replace a file that is no picture"):
        plotting.plot(HISTORY, tmp_path / "mine.png")


def test_only_svg_and_png_without_matplotlib(tmp_path, without):
    without("matplotlib")
    with pytest.raises(errors.UsageError, match="only SVG and PNG .*pip install matplotlib"):
        plotting.plot(HISTORY, tmp_path / "curves.pdf")
    with pytest.raises(errors.FileError, match="cannot write"):
        plotting.plot(HISTORY, tmp_path / "none" / "curves.svg")


# ---- plot with matplotlib ----


@pytest.fixture
def matplotlib():
    package = pytest.importorskip("matplotlib")
    package.use("Agg")
    yield package
    from matplotlib import pyplot

    pyplot.close("all")


def test_a_figure_of_matplotlib(matplotlib, tmp_path):
    figure = plotting.plot(HISTORY, output=tmp_path / "curves.png")
    assert [axes.get_title() for axes in figure.axes] == ["loss", "accuracy"]
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "--"]
    assert list(figure.axes[1].lines[0].get_ydata()) == HISTORY["accuracy"]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_runs_are_overlaid(matplotlib):
    figure = plotting.plot([HISTORY, HISTORY], title="Twice")
    assert len(figure.axes[0].lines) == 4
    assert len({line.get_color() for line in figure.axes[0].lines}) == 2
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["run 1", "run 2", "training", "validation"]


def test_a_figure_shows_itself_in_a_notebook_only(matplotlib, monkeypatch):
    from matplotlib import pyplot

    assert pyplot.fignum_exists(plotting.plot(HISTORY).number)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    before = pyplot.get_fignums()
    assert plotting.plot(HISTORY)._repr_png_().startswith(b"\x89PNG")
    assert pyplot.get_fignums() == before


def test_faults_of_writing(matplotlib, tmp_path):
    with pytest.raises(errors.FileError, match="cannot write"):
        plotting.plot(HISTORY, tmp_path / "none" / "curves.png")
    with pytest.raises(errors.UsageError, match="not supported"):
        plotting.plot(HISTORY, tmp_path / "curves.xyz")


def test_a_loss_over_decades_is_drawn_in_powers_of_ten(matplotlib):
    assert plotting.plot({"loss": [10.0, 1.0, 0.01]}).axes[0].get_yscale() == "log"
    assert plotting.plot({"loss": [1.0, float("nan"), 0.5]}).axes[0].get_yscale() == "linear"


# ---- models and histories ----


MODEL = """\
param rate = 0.1
data {
  train = npz("train.npz")
  x     : f32[4]
  label : class[3]
}
model {
  h      = relu(linear(x, 8))  # a comment
  logits = linear(h, 3)
}
train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = sgd(rate)
  batch     = 4
}
"""


@pytest.fixture(scope="module")
def model():
    import mtc

    return mtc.compile(MODEL, target="cpu")


def cells_of(text):
    """The rows of the first table, as text."""
    table = re.search(r"<table.*?</table>", text, re.DOTALL)[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<t[dh].*?</t[dh]>", row) for row in rows]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in row] for row in cells]


def test_a_model_in_a_notebook(model):
    text = model._repr_html_()
    head, *rows, total = cells_of(text)
    assert head == ["line", "statement", "result", "parameters", "FLOP/example", "weights"]
    assert rows[0][:4] == ["8", "h = relu(linear(x, 8))", "f32[8]", "40"] and rows[0][5] == "weight [8, 4], bias [8]"
    assert rows[1][1:4] == ["logits = linear(h, 3)", "f32[3]", "27"]
    assert ["13", "metric = accuracy(logits, label)"] in [row[:2] for row in rows]
    assert total[1:4] == ["total", "", "67"]
    assert "x f32[4] · label class[3] · target cpu · batch 4 · precision fp32 · optimizer sgd(rate)" in text
    ElementTree.fromstring(text)


def test_the_plan_of_a_notebook_is_an_isolated_image(model):
    text = model._repr_html_()
    assert "<script" not in text and "<style" not in text and "<svg" not in text
    (data,) = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", text)
    picture = base64.b64decode(data).decode()
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "@media" not in picture and ".weight {" in picture  # on white paper in dark notebooks, too


def test_text_of_notebooks_is_escaped():
    class Nasty:
        description = {
            "name": "a <script>alert(1)</script>",
            "target": "cpu",
            "architectures": "",
            "batch": 1,
            "fields": [],
            "train": {"optimizer": "<b>"},
            "tensors": [{"name": "h.<i>", "role": "weight", "shape": [1]}],
            "parameters": 1,
            "flops_per_step": 1.0,
            "arena_bytes": 10,
            "unshared_bytes": 20,
        }
        source = "h = relu(x) < y & <b>z</b>"
        precision = "fp32"

        def emit(self, stage):
            return "<svg/>"

        def summary_text(self):
            return "      1  h     f32[1]      1      2     1.3 MB\n"

    text = display.model_html(Nasty())
    assert "<script" not in text and "<i>" not in text and "<b>z" not in text
    assert "h = relu(x) &lt; y &amp; &lt;b&gt;z" in text


def test_the_precision_that_was_asked_for_is_shown():
    import mtc

    assert "precision bf16" in mtc.compile(MODEL, target="cpu", precision="bf16")._repr_html_()


def test_a_model_on_a_line(model):
    assert repr(model) == "<Model model: x f32[4], label class[3]; 67 parameters, batch 4, cpu>"
    about = {"fields": [{"name": f"f{i}", "type": "f32", "shape": []} for i in range(9)]}
    assert display.fields_of(about)[-2:] == ["f4 f32", "… 9 fields"]


def test_summary_prints(model, capsys):
    assert model.summary() is None
    printed = capsys.readouterr().out
    assert re.search(r"^ +8  h +f32\[8\] +40 ", printed, re.MULTILINE) and "67" in printed
    lines = []
    model.summary(print_fn=lines.append)
    assert "\n".join(lines).strip() == printed.strip()


# ---- the usual mistakes of the first minutes ----


@pytest.fixture(scope="module")
def examples():
    import numpy as np

    values = np.random.default_rng(1).normal(size=(40, 4)).astype(np.float32)
    return values, (values.sum(axis=1) > 0).astype(int)


@pytest.mark.parametrize(
    "mistake, message",
    [
        (lambda m, X, y: m.fit(X, [[1, 0, 0], [0, 1, 0]] * 20), "y: field 'label' .*one-hot rows become class numbers"),
        (lambda m, X, y: m.fit(X.T, y), r"X: field 'x' is f32\[4\].* got float32 \[4, 40\]; examples are rows: X\.T"),
        (lambda m, X, y: m.predict(X[0]), r"expected an array \[N, 4\].*; a single example is X\[None\]"),
        (lambda m, X, y: m.fit(X, ["cat", "dog"] * 20), r"text such as 'cat'; number the words: np\.unique"),
        (lambda m, X, y: m.fit(X, y[:9]), "X has 40 examples, y has 9 examples"),
        (lambda m, X, y: m.fit(X), r"y is missing: the model needs 'label' class\[3\]"),
        (lambda m, X, y: m.fit(X, y, epoch=3), "unexpected keyword argument 'epoch'; did you mean 'epochs'"),
        (lambda m, X, y: m.fit(X, y, batch_size=8), "'batch_size': a batch has 4 examples"),
        (lambda m, X, y: m.fit(), r"no data file 'train\.npz'[^$]*data='FOLDER'"),
        (lambda m, X, y: plotting.plot(m), "the Model was not fitted"),
    ],
)
def test_usual_mistakes_say_what_to_do(model, examples, mistake, message):
    with pytest.raises((errors.MtcError, TypeError), match=message):
        mistake(model, *examples)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"target": "gpu"}, "target is 'cuda' or 'cpu', not 'gpu'"),
        ({"precision": "fp4"}, "precision is 'fp32' or 'tf32' or 'tf32x3' or 'bf16' or 'fp16' or 'fp8'"),
        ({"precision": "int8"}, "programs that do not train: 'mtc --precision int8 MODEL.mt' makes one"),
        ({"rte": 1}, "no param 'rte'.*did you mean 'rate'"),
    ],
)
def test_options_are_checked(options, message):
    import mtc

    with pytest.raises(errors.UsageError, match=message):
        mtc.compile(MODEL, **{"target": "cpu", **options})


def test_completion_offers_what_users_need():
    import mtc

    offered = [name for name in dir(mtc) if not name.startswith("_")]
    assert {"compile", "plot", "Sequential", "Linear", "Adam", "History"} <= set(offered)
    assert not {"Any", "TYPE_CHECKING", "importlib", "annotations"} & set(offered)
    with pytest.raises(AttributeError, match="no attribute 'Liner'; did you mean 'Linear'"):
        mtc.Liner


def history(epochs, **values):
    from mtc import History

    made = History("tiny", 4, 10)
    for epoch in range(1, epochs + 1):
        made.append(epoch, {name: value / epoch for name, value in values.items()})
    return made


def test_a_history_on_a_line():
    made = history(2, loss=0.5, accuracy=1)
    made.seconds = 0.25
    assert repr(made) == "<History of 2 epochs: loss 0.25000, accuracy 0.50000; 0.2 s>"
    made.stopped = "early_stopping"
    assert repr(made).endswith("; stopped: early stopping>")
    assert repr(history(0)) == "<History of no epochs>"
    assert repr(history(1, loss=1)) == "<History of 1 epoch: loss 1.00000>"


def test_a_history_in_a_notebook():
    rows = cells_of(history(3, loss=0.6)._repr_html_())
    assert rows == [["epoch", "loss"], ["1", "0.60000"], ["2", "0.30000"], ["3", "0.20000"]]
    rows = cells_of(history(100, loss=1.0)._repr_html_())
    assert [row[0] for row in rows] == ["epoch", "1", "2", "3", "…", *map(str, range(93, 101))]


def places(curve):
    return [(step, epoch, value) for step, epoch, _, value in curve.points]


def test_curves_of_a_training(model, examples, tmp_path, capsys, without):
    """A history, its log and the log that fit wrote have the same curves."""
    log = tmp_path / "run.jsonl"
    made = model.fit(*examples, epochs=3, validation_split=0.2, log=log)
    assert [line[:9] for line in capsys.readouterr().out.splitlines()] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    made.to_jsonl(tmp_path / "history.jsonl")
    runs = read_runs([made, log, tmp_path / "history.jsonl"])
    curves = [{(c.metric, c.split): places(c) for c in run.curves if not c.within} for run in runs]
    assert curves[0].keys() == {(m, split) for m in ("loss", "accuracy") for split in ("training", "validation")}
    assert curves[0] == curves[2]
    for name, points in curves[0].items():
        assert curves[1][name] == [pytest.approx(point) for point in points]
    without("matplotlib")
    assert "Training of" in plotting.plot(made, x="step").text
