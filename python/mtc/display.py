"""What models and histories look like: in a terminal one line, in a notebook tables and the memory plan."""

from __future__ import annotations

import base64
import html
import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from .progress import format_number, format_seconds

if TYPE_CHECKING:
    from .model import Model
    from .training import History

# A line of the table of `mtc --summary`: line or file:line, value, shape, parameters, arithmetic, memory.
SUMMARY_ROW = re.compile(r"^ +((?:\S+:)?\d+)  (\S+) +(\w+(?:\[[^\]]*\])?) +([\d,]+) +([\d,]+) +(.*\S)$", re.MULTILINE)
DARK_STYLE = re.compile(r"@media \(prefers-color-scheme: dark\) \{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
LARGEST_PICTURE = 1_000_000  # characters: of larger plans nobody sees anything, and notebooks grow
MOST_FIELDS = 6
MOST_EPOCHS = 12  # rows of a history; the middle is left out
# Colours come from the page, so that both light and dark notebooks are legible.
CELL = "text-align:{side};padding:.15em .7em;white-space:nowrap"
FAINT = "opacity:.65"


class Row(NamedTuple):
    """A value of the model."""

    line: str  # of the model's file; of a file that it includes "residual.mt:3"
    value: str
    shape: str
    parameters: str
    flops: str
    memory: str


# ---- models ----


def model_repr(model: Model) -> str:
    """<Model mnist: image u8[28, 28], label class[10]; 101,770 parameters, batch 64, cpu>"""
    about = model.description
    return (
        f"<{type(model).__name__} {name_of(about)}: {', '.join(fields_of(about))}; {about['parameters']:,} parameters, "
        f"batch {about['batch']}, {target_text(about)}>"
    )


def name_of(about: Mapping[str, Any]) -> str:
    """That of the file; what messages call a text, such as <model>, without its brackets."""
    name = str(about["name"])
    return name[1:-1] if name[:1] + name[-1:] == "<>" else name


def fields_of(about: Mapping[str, Any]) -> list[str]:
    """image u8[28, 28], label class[10]; of many the first, and how many there are."""
    fields = [f"{field['name']} {field_type(field)}" for field in about["fields"]]
    return fields if len(fields) <= MOST_FIELDS else [*fields[: MOST_FIELDS - 1], f"… {len(fields)} fields"]


def field_type(field: Mapping[str, Any]) -> str:
    """u8[28, 28], class[10]: as the model file has it."""
    kind = f"class[{field['classes']}]" if field.get("classes") else str(field["type"])
    shape = ", ".join(map(str, field["shape"]))
    return f"{kind}[{shape}]" if shape else kind


def target_text(about: Mapping[str, Any]) -> str:
    return f"{about['target']} {about['architectures']}".strip()


def model_html(model: Model) -> str:
    """A head line, the table of layers, and the memory plan to fold out. No scripts; all text is escaped."""
    about = model.description
    rows = summary_rows(model.summary_text())
    return "\n".join(
        [
            "<div>",
            f"<p><b>{html.escape(name_of(about))}</b> {faint(html.escape(' · '.join(facts(model, about))))}</p>",
            layer_table(rows, about, model.source),
            memory_plan(model, about),
            "</div>",
        ]
    )


def facts(model: Model, about: Mapping[str, Any]) -> list[str]:
    settings = about.get("train", {})
    return [
        *fields_of(about),
        f"target {target_text(about)}",
        f"batch {about['batch']}",
        f"precision {model.precision}",
        *(f"{name} {settings[name]}" for name in ("optimizer",) if name in settings),
    ]


def summary_rows(summary: str) -> list[Row]:
    return [Row(*match.groups()) for match in SUMMARY_ROW.finditer(summary)]


def layer_table(rows: Sequence[Row], about: Mapping[str, Any], source: str) -> str:
    """A row for each value: source line, statement, shape of the result, parameters, arithmetic, weights."""
    lines, sides = source.splitlines(), "lllrrl"
    head = table_row(["line", "statement", "result", "parameters", "FLOP/example", "weights"], sides, "th")
    body = [
        table_row(
            [
                faint(html.escape(row.line)),
                f"<code>{html.escape(statement(row, lines))}</code>",
                html.escape(row.shape),
                row.parameters if row.parameters != "0" else "",
                row.flops if row.flops != "0" else "",
                html.escape(", ".join(weights_of(row.value, about))),
            ],
            sides,
        )
        for row in rows
    ]
    flops = about["flops_per_step"] / about["batch"]
    total = table_row(["", "<b>total</b>", "", f"<b>{about['parameters']:,}</b>", "", ""], sides)
    caption = faint(f"{flops:,.0f} FLOP to train with one example") if flops else ""
    return f'<div style="max-height:32em;overflow:auto">{table([head, *body, total])}</div>\n{caption}'


def statement(row: Row, lines: Sequence[str]) -> str:
    """The source line, where it is what makes the value: a layer of an included file has its name only."""
    line = int(row.line) if row.line.isdigit() else 0
    text = lines[line - 1].partition("#")[0].strip() if 0 < line <= len(lines) else ""
    left, equals, right = (part.strip() for part in text.partition("="))
    is_its = left == row.value.rpartition(".")[2] or (left == "metric" and row.value in right)
    return f"{left} = {right}" if equals and is_its else row.value


def weights_of(value: str, about: Mapping[str, Any]) -> list[str]:
    """weight [128, 784], bias [128]"""
    own = [tensor for tensor in about["tensors"] if tensor["role"] == "weight" and parent(tensor["name"]) == value]
    return [f"{tensor['name'].rpartition('.')[2]} {list(tensor['shape'])}" for tensor in own]


def parent(name: str) -> str:
    return name.rpartition(".")[0] or name


def memory_plan(model: Model, about: Mapping[str, Any]) -> str:
    """The picture on paper of its own, as an image: its styles stay out of the page, and nothing in it runs."""
    shared, unshared = bytes_text(about["arena_bytes"]), bytes_text(about["unshared_bytes"])
    text = f"memory plan: {shared}" + (f", {unshared} without sharing" if unshared != shared else "")
    picture = DARK_STYLE.sub("", model.emit("plan.svg"))
    if len(picture) > LARGEST_PICTURE:
        return f"<p>{text}</p>"
    data = base64.b64encode(picture.encode()).decode()
    style = "background:#fff;color-scheme:light;width:100%;max-width:60em;padding:.5em;border-radius:.4em"
    image = f'<img alt="{text}" style="{style}" src="data:image/svg+xml;base64,{data}"/>'
    return f'<details><summary style="cursor:pointer">{text}</summary>{image}</details>'


def bytes_text(count: int) -> str:
    """1.3 MB, 428 B: in powers of 1,000, as mtc prints them."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"


# ---- histories ----


def history_repr(history: History) -> str:
    """<History of 10 epochs: loss 0.03120, accuracy 0.99140, val_loss 0.08000; 2.1 s>"""
    count = epoch_count(history)
    if not count:
        return "<History of no epochs>"
    last = {name: format_number(values[-1]).rstrip() for name, values in history.items() if values}
    numbers = ", ".join(f"{name} {number}" for name, number in last.items())
    took = f"; {format_seconds(history.seconds)}" if history.seconds else ""
    stopped = f"; stopped: {history.stopped.replace('_', ' ')}" if history.stopped else ""
    return f"<History of {count} epoch{'s' * (count > 1)}: {numbers}{took}{stopped}>"


def epoch_count(history: Mapping[str, Sequence[float]]) -> int:
    return max((len(values) for values in history.values()), default=0)


def history_html(history: History) -> str:
    """A table with a row for each epoch; of many the first and the last."""
    count = epoch_count(history)
    names = list(history)
    sides = "r" * (len(names) + 1)
    rows = [
        table_row(["…"] * len(sides), sides) if epoch is None else epoch_row(history, epoch, count, sides)
        for epoch in shown_epochs(count)
    ]
    head = table_row(["epoch", *map(html.escape, names)], sides, "th")
    return f"{table([head, *rows])}\n{faint(html.escape(history_repr(history)))}"


def shown_epochs(count: int) -> Iterable[int | None]:
    """Indices; None where some are left out."""
    if count <= MOST_EPOCHS:
        return range(count)
    return [*range(3), None, *range(count - (MOST_EPOCHS - 4), count)]


def epoch_row(history: History, index: int, count: int, sides: str) -> str:
    cells = [str(history.epochs[index])]
    for values in history.values():
        at = index - (count - len(values))  # fewer numbers end with the last epoch
        cells.append(format_number(float(values[at])) if at >= 0 else "")
    return table_row(cells, sides)


# ---- HTML ----


def table(rows: Iterable[str]) -> str:
    return '<table style="border-collapse:collapse;font-size:.9em">\n' + "\n".join(rows) + "\n</table>"


def table_row(cells: Sequence[str], sides: str, tag: str = "td") -> str:
    """Cells are HTML; sides: l or r for each."""
    styled = [
        f'<{tag} style="{CELL.format(side="right" if side == "r" else "left")}">{cell}</{tag}>'
        for cell, side in zip(cells, sides)
    ]
    return f"<tr>{''.join(styled)}</tr>"


def faint(text: str) -> str:
    return f'<span style="{FAINT}">{text}</span>'
