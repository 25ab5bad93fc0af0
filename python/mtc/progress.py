"""How a training shows where it stands: a bar on a terminal and in notebooks, a line per epoch elsewhere.

The bar is tqdm's where tqdm is installed (in a notebook its widget), else one line of its own. Drawing never takes more
than a small part of the time, and never fails a training: what cannot be drawn is left out.
"""

from __future__ import annotations

import math
import operator
import os
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, Callable, Mapping, Protocol, Sequence

if TYPE_CHECKING:
    from types import TracebackType

SHORTEST_INTERVAL = 0.05  # seconds between two drawings, at least
SHARE_OF_TIME = 0.02  # of the training, that drawing may take
ALL_LINES = 50  # a training of more epochs shows lines QUIET_SECONDS apart, unless asked for each
QUIET_SECONDS = 0.5
MOST_CELLS, FEWEST_CELLS = 24, 5
USUAL_WIDTH = 79
TQDM_FORMAT = "{desc} |{bar}| {remaining} left, {rate_fmt}{postfix}"


def format_number(value: float) -> str:
    """A number in seven characters, so that lines make columns: 0.12346, 12.3457, 1.2e-05."""
    size = abs(value)
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "inf", "-inf": "-inf"}[str(value)].ljust(7)
    if size >= 1e6 or 0 < size < 1e-4:
        return f"{value:<7.1e}"
    whole_digits = len(str(int(size)))
    return f"{value:<7.{max(0, 6 - whole_digits)}f}"


def format_seconds(seconds: float) -> str:
    """0.4 s, 2:05, 1:02:05."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def epoch_line(epoch: int, epochs: int, logs: Mapping[str, float], seconds: float) -> str:
    """epoch  3/10  loss 0.12346  accuracy 0.97120  val_loss 0.14000  0.4 s"""
    last = str(epochs) if epochs else ""
    number = f"{epoch:>{len(last)}}/{last}" if last else str(epoch)
    numbers = "".join(f"  {name} {format_number(value)}" for name, value in logs.items())
    return f"epoch {number}{numbers}  {format_seconds(seconds)}"


class Status:
    """Where a training stands, for a drawing."""

    def __init__(
        self, last_step: int, epochs: int, metrics: Sequence[str], first_step: int, first_epoch: int, batch: int
    ) -> None:
        self.steps = max(0, last_step - first_step)  # of this training; 0: unknown
        self.epochs = epochs
        self.metrics = list(metrics)
        self.first_step = first_step
        self.epoch = first_epoch  # done
        self.done = 0  # steps of this training
        self.means: Sequence[float] = ()
        self.per_step = batch or 1
        self.unit = "examples" if batch else "steps"
        self.began = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def title(self) -> str:
        running = min(self.epoch + 1, self.epochs) if self.epochs else self.epoch + 1
        return f"epoch {running}/{self.epochs}" if self.epochs else f"epoch {running}"

    @property
    def numbers(self) -> str:
        """loss 0.12346, accuracy 0.97120"""
        shown = list(zip(self.metrics, self.means))[:3]
        return ", ".join(f"{name} {format_number(mean).rstrip()}" for name, mean in shown)


class Bar(Protocol):
    """What draws: each of these may raise, and then draws no more."""

    def draw(self, status: Status) -> None:
        """Shows the status in place of the one before."""

    def write(self, line: str) -> None:
        """Prints a line that stays."""

    def close(self) -> None:
        """Takes the bar away, or leaves it as it should stay."""


class NoBar:
    """Lines only."""

    def draw(self, status: Status) -> None:
        pass

    def write(self, line: str) -> None:
        print(line, flush=True)

    def close(self) -> None:
        pass


class TextBar:
    """One line on standard error, drawn over with the next; no longer than the terminal is wide, without colours."""

    def __init__(self) -> None:
        self.length = 0

    def draw(self, status: Status) -> None:
        text = bar_text(status, terminal_width())
        self.put(text)

    def put(self, text: str) -> None:
        """Blanks, not an escape sequence, cover what is left of the line before: notebooks know no others."""
        sys.stderr.write("\r" + text.ljust(self.length))
        sys.stderr.flush()
        self.length = len(text)

    def clear(self) -> None:
        if self.length:
            self.put("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def write(self, line: str) -> None:
        self.clear()
        print(line, flush=True)

    close = clear


def terminal_columns() -> int:
    """Of standard error; 0 where nobody knows, as in some containers."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0


def terminal_width() -> int:
    """What a line holds: one that wraps could not be drawn over."""
    columns = terminal_columns()
    return columns - 1 if columns > 1 else USUAL_WIDTH


def bar_text(status: Status, width: int) -> str:
    """epoch 3/10 [=====>    ]  loss 0.12346, accuracy 0.97120  52,000 examples/s  0:07 left, cut to `width` characters.

    Where there is less room, the rate goes first, then the cells; the numbers are what people look for.
    """
    rate = status.done / max(status.seconds, 1e-9)
    parts = [status.title, "", status.numbers, f"{rate * status.per_step:,.0f} {status.unit}/s"]
    if status.steps and rate > 0:
        left = round(max(0, status.steps - status.done) / rate)
        parts.append(f"{left // 60}:{left % 60:02} left")
    if len(joined(parts)) > width:
        del parts[3]
    room = min(MOST_CELLS, width - len(joined(parts)) - len(" []"))
    if status.steps and room >= FEWEST_CELLS:
        parts[0] += f" [{cells(status.done / status.steps, room)}]"
    return joined(parts)[:width]


def joined(parts: Sequence[str]) -> str:
    return "  ".join(part for part in parts if part)


def cells(share: float, count: int) -> str:
    full = min(count, int(count * share))
    return ("=" * full + ">")[:count].ljust(count)


class TqdmBar:
    """A bar of tqdm: on a terminal it goes when the training ends, the widget of a notebook stays."""

    def __init__(self, tqdm: Any, status: Status) -> None:
        self.tqdm = tqdm
        total = status.steps * status.per_step or None
        # In a terminal of no size tqdm would draw nothing.
        size = {"dynamic_ncols": True} if in_notebook() or terminal_columns() else {"ncols": USUAL_WIDTH, "nrows": 24}
        self.bar = tqdm(
            total=total,
            desc=status.title,
            unit=f" {status.unit}",
            unit_scale=True,
            leave=in_notebook(),
            mininterval=0,  # Progress decides when
            miniters=1,
            **size,
            bar_format=TQDM_FORMAT if total else None,
        )

    def draw(self, status: Status) -> None:
        self.bar.set_description_str(status.title, refresh=False)
        self.bar.set_postfix_str(status.numbers, refresh=False)
        self.bar.update(status.done * status.per_step - self.bar.n)

    def write(self, line: str) -> None:
        self.tqdm.write(line, file=sys.stdout)
        sys.stdout.flush()

    def close(self) -> None:
        if self.bar.leave:
            self.bar.total = self.bar.n  # a training that stopped early is no failure, which tqdm would show in red
            self.bar.refresh()
        self.bar.close()


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this: its output is no terminal, but shows a bar."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def on_terminal() -> bool:
    """Whether standard error is a terminal that a line can be drawn over on."""
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # pythonw has none; a closed one
        return False


def choose_bar(status: Status) -> Bar:
    """tqdm's bar where it is installed and works."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without ipywidgets, told on each import
            from tqdm.auto import tqdm

            return TqdmBar(tqdm, status)
    except Exception:
        return TextBar()


def verbosity(verbose: int | str) -> int:
    """0, 1 or 2 for what users give, "auto" included: UsageError for anything else."""
    shows_bar = in_notebook() or on_terminal()
    try:
        level = 1 if verbose == "auto" else operator.index(verbose)  # type: ignore[arg-type]
    except TypeError:
        level = -1
    if level not in (0, 1, 2):
        from .errors import UsageError

        raise UsageError(f'verbose is 0 (nothing), 1 (a bar), 2 (a line per epoch) or "auto", not {verbose!r}')
    return 2 if level == 1 and not shows_bar else level


class Progress:
    """Shows a training. Nothing here raises: a training goes on without what cannot be drawn."""

    def __init__(self, bar: Bar | None, status: Status, every_line: bool) -> None:
        self.status = status
        self._bar = bar
        self._every_line = every_line
        self._due = 0.0  # when to draw next
        self._line_due = 0.0
        self._held: str | None = None  # the newest line, while it is not printed
        status.began = time.perf_counter()  # importing tqdm is no part of the training

    def update(self, step: int, means: Sequence[float] = ()) -> None:
        """`step`: done in all, since the first; means of the running epoch, in the order of the metrics."""
        now = time.perf_counter()
        if self._bar is None or now < self._due:
            return
        self.status.done = step - self.status.first_step
        self.status.means = means
        self._try(self._bar.draw, self.status)
        ended = time.perf_counter()
        self._due = ended + max(SHORTEST_INTERVAL, (ended - now) / SHARE_OF_TIME)

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Ends an epoch. `epoch`: done in all; logs: loss, metrics and val_..., in the order to show them."""
        self.status.epoch = epoch
        if self._bar is None:
            return
        self._held = epoch_line(epoch, self.status.epochs, logs, self.status.seconds)
        if self._every_line or time.perf_counter() >= self._line_due:
            self._print_held()

    def say(self, text: str) -> None:
        """Prints a line of news, such as why training stopped."""
        self._print_held()
        if self._bar is not None:
            self._try(self._bar.write, text)

    def close(self) -> None:
        """Prints what is held back, and ends the bar. Further calls show nothing."""
        self._print_held()
        if self._bar is not None:
            self._try(self._bar.close)
        self._bar = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _print_held(self) -> None:
        held, self._held = self._held, None
        if held is not None and self._bar is not None:
            self._try(self._bar.write, held)
        self._line_due = time.perf_counter() + QUIET_SECONDS

    def _try(self, draw: Callable[..., None], *args: Any) -> None:
        try:
            draw(*args)
        except Exception:
            self._bar = None


def progress(
    verbose: int | str,
    total_steps: int,
    epochs: int,
    metrics: Sequence[str],
    *,
    first_step: int = 0,
    first_epoch: int = 0,
    batch: int = 0,
) -> Progress:
    """What shows a training from step `first_step` to `total_steps`, in epochs from `first_epoch` to `epochs`.

    verbose: 0 nothing; 1 a bar, and lines of epochs above it; 2 a line per epoch; "auto" 1 on a terminal and in
    notebooks, else 2. A bar that nothing could show (a pipe, a log of CI) is lines instead. total_steps, epochs 0:
    unknown. batch: examples of a step, for the rate; 0: the rate is in steps.
    """
    status = Status(total_steps, epochs, metrics, first_step, first_epoch, batch)
    level = verbosity(verbose)
    if level == 0:
        return Progress(None, status, False)
    few = 0 < epochs - first_epoch <= ALL_LINES
    return Progress(choose_bar(status) if level == 1 else NoBar(), status, verbose == 2 or few)
