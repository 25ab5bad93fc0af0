"""mtc.plot: the curves of trainings, as a figure of matplotlib, or without it as the SVG or PNG that `mtc plot` draws."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Mapping, Sequence, Union

from .curves import Curve, Run, read_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"step": 0, "epoch": 1, "seconds": 2}  # of a point of a curve
# Colours that people with any colour vision tell apart (Okabe and Ito); each reads on white and on black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6fc0", "#7f7f7f")
STYLES: dict[str, Literal["-", "--", ":"]] = {"training": "-", "validation": "--", "test": ":"}
PANEL = (6.0, 3.8)  # inches
MOST_MARKERS = 30


class Svg:
    """A drawing as SVG: a notebook shows it, `save` writes it, `text` is its source."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_svg_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<SVG of {len(self.text)} characters; .save(path) writes it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file. FileError: it cannot, or the file is one of another kind."""
        from .outputs import PICTURE, write_text

        write_text(path, self.text, PICTURE)


def plot(
    runs: Any, output: str | os.PathLike[str] | None = None, *, x: str = "epoch", title: str | None = None
) -> Union["Figure", Svg]:
    """Draws loss and metrics of trainings, a panel for each: training solid, validation dashed, test dotted.

    runs: a History (what `fit` returns), a model or an estimator that was fitted, the path of a log (.jsonl), or a
    list or dict of those; a dict names them. x: "epoch", "step" or "seconds". output: a file to write, whose ending
    says what (.png, .svg; with matplotlib .pdf and others).

    Returns a figure of matplotlib; without matplotlib an object with the SVG, which notebooks show as well. Shows
    nothing by itself: in a script call plt.show(), or give output.

        history = model.fit(X, y, epochs=10, validation_data=(X_test, y_test))
        mtc.plot(history)
        mtc.plot({"Adam": history, "SGD": other}, output="curves.png")

    UsageError: nothing to draw, or no such x. FileError, DataError: a log cannot be read, or is none. FileError: output
    cannot be written, or is a file that is no picture.
    """
    from .errors import UsageError

    if x not in AXES:
        raise UsageError(f'x is "epoch", "step" or "seconds", not {x!r}')
    drawn = read_runs(runs)
    check_axis(drawn, x)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return plot_svg(drawn, output, x, title)
    return plot_figure(drawn, output, x, title)


def check_axis(runs: Sequence[Run], x: str) -> None:
    from .errors import UsageError

    for run in runs:
        if not any(math.isfinite(point[AXES[x]]) for curve in run.curves for point in curve.points):
            raise UsageError(f"{run.name} does not say at which {x} its numbers are; choose another x")


# ---- matplotlib ----


def plot_figure(runs: Sequence[Run], output: str | os.PathLike[str] | None, x: str, title: str | None) -> Figure:
    metrics = list(dict.fromkeys(metric for run in runs for metric in run.metrics))
    columns = min(2, len(metrics))
    rows = math.ceil(len(metrics) / columns)
    figure = new_figure(managed=output is None, size=(PANEL[0] * columns, PANEL[1] * rows))
    for index, metric in enumerate(metrics, 1):
        draw_panel(figure.add_subplot(rows, columns, index), runs, metric, x)
    if title:
        figure.suptitle(title)
    figure.axes[0].legend(handles=legend(runs), frameon=False)
    if output is not None:
        save_figure(figure, output)
    return figure


def new_figure(managed: bool, size: tuple[float, float]) -> Figure:
    """One that plt.show() knows of; in a notebook, which would then show it twice, one that shows itself."""
    from .progress import in_notebook

    if managed and not in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(figsize=size, layout="constrained")
    return notebook_figure()(figsize=size, layout="constrained")


def notebook_figure() -> type[Figure]:
    import io

    from matplotlib.figure import Figure

    class Curves(Figure):
        """A figure that a notebook shows as the value of a cell, whether or not pyplot was imported."""

        def _repr_png_(self) -> bytes:
            image = io.BytesIO()
            self.savefig(image, format="png", dpi=100)
            return image.getvalue()

    return Curves


def save_figure(figure: Figure, output: str | os.PathLike[str]) -> None:
    from .errors import FileError, UsageError
    from .outputs import PICTURE, check

    check(output, PICTURE)
    try:
        figure.savefig(os.fspath(output), dpi=150)
    except OSError as error:
        raise FileError(f"cannot write '{os.fspath(output)}': {error.strerror}") from error
    except ValueError as error:  # of an ending that matplotlib does not know
        raise UsageError(f"cannot write '{os.fspath(output)}': {error}") from error


def draw_panel(axes: Axes, runs: Sequence[Run], metric: str, x: str) -> None:
    from matplotlib.ticker import MaxNLocator

    curves = [(look(runs, index, curve), curve) for index, run in enumerate(runs) for curve in run.curves]
    curves = [(style, curve) for style, curve in curves if curve.metric == metric]
    for style, curve in curves:
        axes.plot([point[AXES[x]] for point in curve.points], [point[3] for point in curve.points], **style)
    axes.set_title(metric, fontsize="medium")
    axes.set_xlabel(x)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if x != "seconds":
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    if metric == "loss" and spans_decades([curve for _, curve in curves]):
        axes.set_yscale("log")


def look(runs: Sequence[Run], index: int, curve: Curve) -> dict[str, Any]:
    """Of one run the splits have colours, of several the runs."""
    colour = colour_of(list(STYLES).index(curve.split) if len(runs) == 1 else index)
    if curve.within:
        return {"color": colour, "linestyle": "-", "linewidth": 0.8, "alpha": 0.45}
    style = {"color": colour, "linestyle": STYLES[curve.split], "linewidth": 1.8}
    if len(curve.points) <= MOST_MARKERS:
        style |= {"marker": "o", "markersize": 4, "markerfacecolor": colour if curve.split == "training" else "none"}
    return style


def colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def spans_decades(curves: Sequence[Curve]) -> bool:
    """Whether the numbers differ by more than a factor of 100: powers of ten show them best."""
    values = [point[3] for curve in curves for point in curve.points if math.isfinite(point[3])]
    return bool(values) and min(values) > 0 and max(values) > 100 * min(values)


def legend(runs: Sequence[Run]) -> list[Any]:
    """The splits of one run; of several their names and, in grey, what solid, dashed and dotted mean."""
    from matplotlib.lines import Line2D

    splits = [split for split in STYLES if any(curve.split == split for run in runs for curve in run.curves)]
    if len(runs) == 1:
        return [Line2D([], [], label=split, **look(runs, 0, Curve("", split))) for split in splits]
    names = [Line2D([], [], color=colour_of(index), linewidth=1.8, label=run.name) for index, run in enumerate(runs)]
    return names + [Line2D([], [], color="gray", linestyle=STYLES[split], label=split) for split in splits]


# ---- without matplotlib ----


def plot_svg(runs: Sequence[Run], output: str | os.PathLike[str] | None, x: str, title: str | None) -> Svg:
    """Through the binary, which reads logs: each run is written as one."""
    from .errors import UsageError
    from .outputs import PICTURE, write_bytes

    ending = ".svg" if output is None else Path(output).suffix.lower()
    if output is not None and ending not in (".svg", ".png"):
        raise UsageError(
            f"without matplotlib only SVG and PNG can be written, not '{os.fspath(output)}': "
            "name the file .svg or .png, or install it (pip install matplotlib)"
        )
    with tempfile.TemporaryDirectory(prefix="mtc-") as folder:
        alone = len(runs) == 1  # of several runs their names say enough
        logs = [write_log(Path(folder), i, run if alone else replace(run, model="")) for i, run in enumerate(runs)]
        svg = Svg(drawn_by_binary(logs, Path(folder) / "curves.svg", x, title).decode())
        if output is not None and ending == ".png":
            write_bytes(output, drawn_by_binary(logs, Path(folder) / "curves.png", x, title), PICTURE)
        elif output is not None:
            svg.save(output)
    return svg


def drawn_by_binary(logs: Sequence[Path], picture: Path, x: str, title: str | None) -> bytes:
    from . import toolchain

    titled = ["--title", title] if title is not None else []
    toolchain.run(["plot", *map(str, logs), "-o", str(picture), "--x", x, *titled])
    return picture.read_bytes()


def write_log(folder: Path, index: int, run: Run) -> Path:
    """In a folder of its own: the file's name becomes the run's."""
    name = "".join(letter if letter.isprintable() and letter not in "/\0" else "_" for letter in run.name)[:100]
    (folder / str(index)).mkdir()
    path = folder / str(index) / f"{name or 'run'}.jsonl"
    path.write_text(log_text(run), encoding="utf-8")
    return path


def log_text(run: Run) -> str:
    """The run as a log: a JSON object on each line."""
    points = (point for curve in run.curves for point in curve.points)
    steps_per_epoch = next((step / epoch for step, epoch, _, _ in points if epoch), math.nan)
    config: dict[str, Any] = {"event": "config", "model": run.model} if run.model else {"event": "config"}
    if math.isfinite(steps_per_epoch):
        config["steps_per_epoch"] = steps_per_epoch
    lines: dict[tuple[bool, float], dict[str, Any]] = {}
    for curve in run.curves:
        key = curve.metric if curve.split == "training" else f"{curve.split}_{curve.metric}"
        for step, epoch, seconds, value in curve.points:
            at = epoch if math.isnan(step) else step
            line = lines.setdefault((not curve.within, at), {"event": "train" if curve.within else "epoch"})
            places = {"step": at, "epoch": epoch, "seconds": seconds, key: value}
            line.update({name: number if math.isfinite(number) else None for name, number in places.items()})
    in_order = [lines[place] for place in sorted(lines, key=lambda place: (place[1], place[0]))]
    return "".join(json.dumps(line) + "\n" for line in [config, *in_order])


def log_of(history: Mapping[str, Sequence[float]], name: str = "training") -> str:
    """A history as the text of a log (.jsonl), which mtc.plot and `mtc plot` read."""
    from .curves import read_history

    return log_text(read_history(history, name))
