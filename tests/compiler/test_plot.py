"""mtc plot: logs to one SVG.

tests/plot/NAME.svg is what `mtc plot` draws of the logs of NAME; what is in it is also looked at here, as XML."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import ROOT

GOLDEN = ROOT / "tests" / "plot"
USAGE, BAD_DATA, NO_INPUT, CANT_CREATE = 64, 65, 66, 73
SVG = "{http://www.w3.org/2000/svg}"

CONFIG = {"event": "config", "model": "mnist", "seed": 1, "epochs": 3, "batch": 10, "train_examples": 100, "params": {"lr": 0.1}}


def interval(step, loss, **more):
    return {"event": "train", "step": step, "epoch": 1 + (step - 1) // 10, "loss": loss, **more, "seconds": step / 8}


def epoch(number, loss, **more):
    return {"event": "epoch", "epoch": number, "step": 10 * number, "loss": loss, **more, "seconds": 10 * number / 8}


def training(rate=0.1, seed=1, start=2.4, **config):
    """A log: five lines within each of three epochs, and one for each."""
    lines = [{**CONFIG, "seed": seed, "params": {"lr": rate}, **config}]
    for number in (1, 2, 3):
        for step in range(10 * number - 8, 10 * number + 1, 2):
            lines.append(interval(step, start / (1 + rate * step), accuracy=1 - 0.8 / (1 + rate * step)))
        loss = start / (1 + rate * (10 * number - 4))
        lines.append(epoch(number, loss, accuracy=1 - loss / 3, test_loss=1.1 * loss, test_accuracy=1 - loss / 2.8))
    return [*lines, {"event": "end", "steps": 30}]


def text_of(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def log(tmp_path):
    def write(name, lines):
        (tmp_path / name).write_text(lines if isinstance(lines, str) else text_of(lines))
        return name

    return write


@pytest.fixture
def plot(mtc, tmp_path):
    """plot(*args, code): the drawing as an element, or the message where it must fail."""

    def call(*args, code=0):
        done = mtc("plot", *args, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        if code:
            assert not (tmp_path / "curves.svg").exists()
            return done.stderr
        assert done.stdout == "drawn: curves.svg\n"
        call.notes = done.stderr
        return ElementTree.parse(tmp_path / "curves.svg").getroot()

    return call


def texts(svg, *classes):
    return ["".join(item.itertext()) for item in svg.iter(f"{SVG}text") if not classes or item.get("class") in classes]


def lines_of(svg, panels=1):
    """The d of every curve, without the legend's samples."""
    return [item.get("d") for item in svg.iter(f"{SVG}path") if re.search(r"\b(line|thin) d\d", item.get("class"))
            and not re.search(r"h30$", item.get("d"))]


# ---- the drawings ----

RUNS = {
    "one": {"run.jsonl": training()},
    "several": {"slow.jsonl": training(0.02), "fast.jsonl": training(0.5, seed=7), "steep.jsonl": training(40.0)},
    "gaps": {"run.jsonl": [CONFIG, *[interval(step, None if step in (4, 5, 8) else 1 / step) for step in range(1, 11)]]},
}


@pytest.mark.parametrize("name", RUNS)
def test_drawing(name, log, plot, tmp_path, check_text):
    plot(*[log(path, lines) for path, lines in RUNS[name].items()])
    check_text(GOLDEN / f"{name}.svg", (tmp_path / "curves.svg").read_text())


def test_one_run(log, plot):
    svg = plot(log("run.jsonl", training()))
    assert texts(svg, "heading") == ["loss", "accuracy"]
    assert texts(svg, "entry") == ["train, within epochs", "train, by epoch", "test"]
    assert texts(svg, "title") == ["Training of mnist"] and "run: lr 0.1" in texts(svg, "note")[0]
    assert len(lines_of(svg)) == 6


def test_runs_are_named_by_their_differences(log, plot):
    svg = plot(log("a.jsonl", training(0.1)), log("b.jsonl", training(0.2, train={"optimizer": "adam(lr)", "epochs": "3"})))
    assert texts(svg, "entry")[:2] == ["a (lr 0.1)", "b (lr 0.2, optimizer adam(lr))"]


def test_files_of_one_name(log, plot, tmp_path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
        log(f"{folder}/run.jsonl", training())
    assert texts(plot("a/run.jsonl", "b/run.jsonl"), "entry")[:2] == ["a/run", "b/run"]


def test_metric_of_some_runs(log, plot):
    svg = plot(log("a.jsonl", training()), log("b.jsonl", [CONFIG, interval(2, 1), interval(4, 0.5, mae=3), interval(6, 0.4, mae=2)]))
    assert texts(svg, "heading") == ["loss", "accuracy", "mae"]


def test_validation_and_test(log, plot):
    svg = plot(log("a.jsonl", [CONFIG, epoch(1, 2, validation_loss=3), epoch(2, 1, validation_loss=2, test_loss=2.5)]))
    assert texts(svg, "entry") == ["train, by epoch", "validation", "test"]


def test_test_after_the_training(log, plot):
    lines = [CONFIG, interval(2, 3), epoch(1, 2, validation_loss=3), {"event": "test", "step": 10, "test_loss": 4, "seconds": 9}]
    assert texts(plot(log("a.jsonl", lines)), "entry") == ["train, within epochs", "train, by epoch", "validation", "test"]


@pytest.mark.parametrize("last, ticks", [(800, ["0", "200", "400", "600", "800"]), (8000, ["0", "2k", "4k", "6k", "8k"]),
                                         (8e6, ["0", "2M", "4M", "6M", "8M"])])
def test_large_steps_are_said_shortly(last, ticks, log, plot):
    svg = plot(log("a.jsonl", [CONFIG, interval(0, 1), interval(int(last), 0.5)]))
    assert texts(svg, "tick middle")[:5] == ticks


def test_logarithmic_scale_of_a_loss_of_more_than_two_decades(log, plot):
    svg = plot(log("a.jsonl", [CONFIG, *[interval(step, 10 ** (2 - step), mae=10 ** (2 - step)) for step in range(1, 7)]]))
    assert "loss, log scale" in texts(svg, "label middle") and "mae" in texts(svg, "label middle")
    assert [tick for tick in texts(svg, "tick end") if tick in ("10", "1", "0.1", "0.01", "0.001", "0.0001")]
    near = plot(log("a.jsonl", [CONFIG, interval(1, 1), interval(2, 0.011)]))
    assert "loss" in texts(near, "label middle")


@pytest.mark.parametrize("axis, last", [("step", "30"), ("epoch", "3.0"), ("seconds", "3")])
def test_axes(axis, last, log, plot):
    svg = plot("--x", axis, log("a.jsonl", training()))
    assert axis in texts(svg, "label middle") and last in texts(svg, "tick middle")


def test_gaps(log, plot):
    """A loss that was no number breaks the line; a point by itself stays."""
    svg = plot(log("a.jsonl", [CONFIG, *[interval(step, None if step in (2, 4) else step) for step in range(1, 7)]]))
    line, = lines_of(svg)
    assert line.count("M") == 3 and line.count("L") == 1 and line.count("h0") == 2


def test_a_single_point(log, plot):
    svg = plot(log("a.jsonl", [CONFIG, epoch(1, 0.5)]))
    assert len([item for item in svg.iter(f"{SVG}path") if item.find(f"{SVG}title") is not None]) == 1


def test_only_gaps(log, plot):
    assert lines_of(plot(log("a.jsonl", [CONFIG, interval(1, None)]))) == [""]


def test_numbers_without_measure(log, plot, tmp_path):
    lines = [interval(step, loss) for step, loss in enumerate([1, 1e308, -1e308, 1e299, -1e299, 2], 1)]
    plot(log("a.jsonl", [CONFIG, interval(-5, 3), *lines]))
    assert "nan" not in (drawn := (tmp_path / "curves.svg").read_text()) and "inf" not in drawn


def test_long_logs_are_thinned(log, plot, tmp_path):
    plot(log("a.jsonl", [CONFIG, *[interval(step, 1 + step % 7) for step in range(1, 50001)]]))
    assert (tmp_path / "curves.svg").stat().st_size < 40000


def test_resumed_training_replaces_what_it_repeats(log, plot):
    again = {**CONFIG, "resume": "x.safetensors"}
    svg = plot("--x", "seconds", log("a.jsonl", [CONFIG, interval(2, 5), interval(4, 4), interval(6, 9), again, interval(4, 4), interval(6, 3)]))
    line, = lines_of(svg)
    assert line.count("L") == 2


def test_text_is_escaped(log, plot):
    config = {**CONFIG, "model": 'a<b>&"c"\u0001', "params": {"<p>": 1}}
    svg = plot(log("a&b.jsonl", [config, interval(1, 1, **{"m<&": 2})]))
    assert texts(svg, "title") == ['Training of a<b>&"c"\ufffd'] and "m<&" in texts(svg, "heading")
    assert texts(plot("--title", "<&>", "a&b.jsonl"), "title") == ["<&>"]
    assert texts(plot("--title", "\udcff", "a&b.jsonl"), "title") == ["\ufffd"]


def test_deterministic(log, plot, tmp_path):
    log("a.jsonl", training())
    plot("a.jsonl")
    first = (tmp_path / "curves.svg").read_text()
    plot("a.jsonl", "-o", "curves.svg")
    assert (tmp_path / "curves.svg").read_text() == first


# ---- what is refused ----


def test_killed_run(log, plot):
    svg = plot(log("a.jsonl", text_of(training())[:-300]))
    assert re.search(r"warning: a.jsonl:\d+: the last line is cut off, and left out", plot.notes) and lines_of(svg)


NAMES = ["cat", "dog <3", "a bird of a name that is long"]
MATRIX = [[8, 2, 0], [1, 3, 0], [0, 0, 0]]


def with_matrix(matrix=MATRIX, **more):
    lines = training()
    lines[-2] = {**lines[-2], "test_confusion": matrix, **more}
    return lines


def test_confusion_matrix(log, plot):
    """The last one of the log, below the curves: a square for each pair, filled by its part of the row; numbers where there are any."""
    lines = with_matrix(test_classes=NAMES)
    lines[6] = {**lines[6], "test_confusion": [[1, 1], [1, 1]]}
    svg = plot(log("a.jsonl", lines))
    cells = [item for item in svg.iter(f"{SVG}rect") if item.get("class") == "f0 grid"]
    assert [cell[0].text for cell in cells[:4]] == ["cat, taken for cat: 8", "cat, taken for dog <3: 2", "cat, taken for a bird of a name \u2026: 0", "dog <3, taken for cat: 1"]
    opacity = [float(cell.get("fill-opacity")) for cell in cells]
    assert len(cells) == 9 and max(opacity) == opacity[0] > opacity[4] > opacity[3] > opacity[1] > opacity[2] == 0 == opacity[8]
    shown = texts(svg)
    assert "confusion, test" in shown and shown.count("cat") == 2 and [text for text in shown if text in ("8", "2", "3")] == ["8", "2", "3"]
    bottom = float(svg.get("viewBox").split()[3])
    assert max(float(cell.get("y")) + float(cell.get("height")) for cell in cells) < bottom
    svg = plot(log("a.jsonl", with_matrix()), log("b.jsonl", with_matrix(seed=2)))
    assert len([item for item in svg.iter(f"{SVG}rect") if item.get("class") == "f0 grid"]) == 18 and "0" in texts(svg, "tick end")
    many = [[float(i == j) for j in range(300)] for i in range(300)]
    assert "0" not in texts(plot(log("a.jsonl", with_matrix(many))), "tick middle")[:5][1:]


@pytest.mark.parametrize("matrix, names, message", [
    ([[1, 2], [3]], None, "row 2 of the confusion matrix has 1 numbers, and there are 2 rows"),
    ([[1, 2], [3, 4, 5]], None, "row 2 of the confusion matrix has 3 numbers, and there are 2 rows"),
    ([[1, 2], 3], None, "row 2 of the confusion matrix has 0 numbers, and there are 2 rows"),
    ([[1, None], [3, 4]], None, "row 1 of the confusion matrix has what is no number of examples"),
    ([[1, -2], [3, 4]], None, "row 1 of the confusion matrix has what is no number of examples"),
    ("no", None, "a confusion matrix is a list of 2 to 1000 rows"),
    ([[1]], None, "a confusion matrix is a list of 2 to 1000 rows"),
    ([[1, 2], [3, 4]], ["a"], "1 names for the 2 classes of the confusion matrix"),
    ([[1, 2], [3, 4]], ["a", 2], "the names of the confusion matrix are no strings"),
], ids=range(9))
def test_malformed_confusion_matrix(matrix, names, message, log, plot):
    more = {} if names is None else {"test_classes": names}
    assert f"a.jsonl:19: {message}" in plot(log("a.jsonl", with_matrix(matrix, **more)), code=BAD_DATA)


def test_malformed_line(log, plot):
    lines = text_of(training()).splitlines(keepends=True)
    lines[4] = '{"event":"train","step":}\n'
    assert "error: a.jsonl:5: bad JSON at byte 24: expected a value" in plot(log("a.jsonl", "".join(lines)), code=BAD_DATA)


@pytest.mark.parametrize("text, message", [
    ("", "a.jsonl: is empty, no log of a training"),
    ("hello\n", "a.jsonl:1: this is no log of a training, whose lines are JSON"),
    ("hello", "a.jsonl:1: this is no log of a training"),
    ("[1, 2]\n", "a.jsonl:1: this is no log of a training"),
    ('{"x": 1}\n', "a.jsonl:1: this is no log of a training, whose lines have an \"event\"; ./program --log FILE writes one"),
    (text_of([CONFIG]), "a.jsonl: is left out: the training ended before it logged a loss"),
    (text_of([{"event": "train", "loss": 1}]), "a.jsonl: its lines have no \"step\"; choose another --x"),
])
def test_no_log(text, message, log, plot):
    assert message in plot(log("a.jsonl", text), code=BAD_DATA)


def test_no_such_file(plot):
    assert "cannot read 'no.jsonl': No such file or directory" in plot("no.jsonl", code=NO_INPUT)
    assert "cannot read '.': it is a folder" in plot(".", code=NO_INPUT)


@pytest.mark.parametrize("args, message", [
    ([], "no log to plot; 'mtc plot --help' shows how to call it"),
    (["a", "--x", "time"], "--x takes step|epoch|seconds, not 'time'"),
    (["a", "--target", "cpu"], "plot has no option --target; 'mtc plot --help' lists its options"),
    (["a", "--titel", "x"], "unknown option '--titel'; did you mean '--title'?"),
    (["a"] * 33, "33 logs; more than 32 cannot be told apart in one picture"),
])
def test_wrong_command_line(args, message, plot):
    assert message in plot(*args, code=USAGE)


def test_options_of_plot_are_not_of_compiling(mtc):
    done = mtc("models/mnist.mt", "--x", "epoch")
    assert done.returncode == USAGE and "--x is an option of 'mtc plot'" in done.stderr


def test_output_that_cannot_be_written(log, plot):
    log("a.jsonl", training())
    assert "nowhere" in plot("a.jsonl", "-o", "nowhere/x.svg", code=CANT_CREATE)
    assert "it is the input" in plot(log("run.log", training()), "-o", "run.log", code=CANT_CREATE)


@pytest.mark.parametrize("content", ["thesis", " <svg", "PK\0"])
def test_only_drawings_are_replaced(content, log, plot, tmp_path):
    log("a.jsonl", training())
    log("thesis.odt", content)
    message = plot("a.jsonl", "-o", "thesis.odt", code=CANT_CREATE)
    assert "'thesis.odt': it would replace a file that is no SVG; choose another name with -o" in message
    assert (tmp_path / "thesis.odt").read_text() == content
    for drawing in ("", "<svg/>", "<?xml version='1.0'?><svg/>"):
        log("curves.svg", drawing)
        assert plot("a.jsonl", "-o", "curves.svg").tag == SVG + "svg"


def test_help(mtc):
    text = mtc("plot", "--help").stdout
    assert text.startswith("usage: mtc plot LOG...") and "--x step|epoch|seconds" in text and "--target" not in text
    assert "mtc plot run.jsonl" in mtc("--help").stdout


@pytest.mark.parametrize("name, format", [("x.PDF", "PDF"), ("x.jpg", "JPEG"), ("x.html", "HTML"), ("x.jsonl", "JSON lines")])
def test_names_that_promise_another_format(name, format, mtc, tmp_path):
    done = mtc("plot", "no.jsonl", "-o", name, cwd=tmp_path)
    assert done.returncode == 64 and not list(tmp_path.iterdir())
    assert f"'{name}': the name promises {format}; what can be written is .svg and .png" in done.stderr
