"""mtc plot -o x.png: the same picture in pixels, two for each of the SVG's.

The file is read with zlib alone and compared with the SVG of the same logs: what lies where."""

import re
import struct
import zlib

import numpy as np
import pytest
from test_plot import BAD_DATA, CANT_CREATE, CONFIG, RUNS, SVG, USAGE, epoch, interval, log, plot, training, with_matrix  # noqa: F401

SCALE = 2
PAPER = (255, 255, 255)


def decoded(content):
    """The pixels, [height, width, 3]; every chunk's checksum holds, and nothing lies behind the last."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = [], 8
    while at < len(content):
        length, name = struct.unpack(">I4s", content[at:at + 8])
        data = content[at + 8:at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length:at + 12 + length])[0] == zlib.crc32(name + data)
        chunks.append((name, data))
        at += 12 + length
    assert [name for name, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *kind = struct.unpack(">IIBBBBB", chunks[0][1])
    assert kind == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[1][1]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3).astype(np.int16)


@pytest.fixture
def pixels(mtc, tmp_path):
    """pixels(*args, code): the picture, or the message where it must fail."""

    def call(*args, code=0, output="curves.png"):
        done = mtc("plot", *args, "-o", output, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done.stderr if code else decoded((tmp_path / output).read_bytes())

    return call


def around(image, x, y, reach=1):
    """The pixels at a place of the SVG, and up to `reach` from there."""
    column, row = int(SCALE * x), int(SCALE * y)
    return image[max(row - reach, 0):row + reach + 1, max(column - reach, 0):column + reach + 1].reshape(-1, 3)


def nearest(found, colour):
    return np.abs(found - np.array(colour)).max(axis=1).min()


def colours_of(svg):
    """Those of the classes c0, c1, ... on light paper."""
    style = svg.find(f"{SVG}style").text.split("@media")[0]
    return {name: tuple(bytes.fromhex(value)) for name, value in re.findall(r"\.(c\d) { stroke: #(\w{6})", style)}


def curves_of(svg):
    """(class, points) of each curve of a panel."""
    for item in svg.iter(f"{SVG}path"):
        names, places = item.get("class").split(), item.get("d")
        if {"line", "thin"} & set(names) and not places.endswith("h30"):
            yield names, [tuple(map(float, place)) for place in re.findall(r"[ML]([\d.]+) ([\d.]+)", places)]


# ---- what is drawn ----


@pytest.mark.parametrize("name", RUNS)
def test_same_layout_as_the_svg(name, log, plot, pixels):  # noqa: F811
    logs = [log(path, lines) for path, lines in RUNS[name].items()]
    svg, image = plot(*logs), pixels(*logs)
    _, _, width, height = map(int, svg.get("viewBox").split())
    assert image.shape == (SCALE * height, SCALE * width, 3) and tuple(image[0, 0]) == PAPER
    colours, curves = colours_of(svg), list(curves_of(svg))
    assert curves
    for names, points in curves:
        colour = np.array(colours[names[0]])
        hidden = 0  # thin lines lie below the others, and a marker of a run below another one's
        for x, y in points:
            found = around(image, x, y, 9 if "line" in names else 1)
            hidden += nearest(found, colour) > 24 and ("line" in names or nearest(found, (colour + PAPER) // 2) > 24)
        assert hidden <= len(points) // 2, (names, hidden)


@pytest.mark.parametrize("name", RUNS)
def test_text_is_where_the_svg_has_it(name, log, plot, pixels):  # noqa: F811
    logs = [log(path, lines) for path, lines in RUNS[name].items()]
    svg, image = plot(*logs), pixels(*logs)
    anchors = {"middle": 0.5, "end": 1}
    for item in svg.iter(f"{SVG}text"):
        x, y, length = float(item.get("x")), float(item.get("y")), 5 * len(item.text)
        if item.get("transform"):
            box = image[int(SCALE * y) - 8:int(SCALE * y) + 8, int(SCALE * (x - 9)):int(SCALE * x)]
        else:
            left = max(x - anchors.get(item.get("class").split()[-1], 0) * length, 0)
            box = image[int(SCALE * (y - 9)):int(SCALE * y), int(SCALE * left):int(SCALE * (left + length)) + 4]
        assert box.min() < 150, item.text


def test_gap_and_lone_point(log, plot, pixels):  # noqa: F811
    name = log("a.jsonl", [CONFIG, *[interval(step, None if step in (2, 4, 5) else 1) for step in range(1, 7)]])
    (_, points), = curves_of(plot(name))
    image, between = pixels(name), (points[1][0] + points[2][0]) / 2
    thin = (np.array(colours_of(plot(name))["c0"]) + PAPER) // 2
    assert all(nearest(around(image, *point), thin) < 24 for point in points)
    assert nearest(around(image, between + 3, points[0][1]), thin) > 24


def test_dashes_and_hollow_markers(log, plot, pixels):  # noqa: F811
    name = log("a.jsonl", [CONFIG, epoch(1, 1, test_loss=2), epoch(2, 1, test_loss=2)])
    image = pixels(name)
    lines = {names[0]: points for names, points in curves_of(plot(name))}
    colours = colours_of(plot(name))
    for names, whole in (("c0", True), ("c1", False)):
        (x, y), (end, _) = lines[names]
        row = image[round(SCALE * y), int(SCALE * (x + 8)):int(SCALE * (end - 8))]
        drawn = np.abs(row - colours[names]).max(axis=1) < 24
        assert drawn.all() == whole and 0.4 < drawn.mean()
        assert (nearest(around(image, x, y, 0), PAPER) == 0) != whole


def test_letters_differ(log, pixels):  # noqa: F811
    name = log("a.jsonl", [CONFIG, epoch(1, 0.5)])
    letters = "0O1lI|5S8B:;"
    titles = {letter: pixels(name, "--title", letter)[:80, :120].tobytes() for letter in [*letters, " "]}
    assert len(set(titles.values())) == len(titles)


def test_other_characters_are_boxes(log, pixels):  # noqa: F811
    name = log("a.jsonl", [CONFIG, epoch(1, 0.5)])
    a, b, two, none = (pixels(name, "--title", title)[:80, :200] for title in ("\u00e9", "\u4e2d", "\u4e2d\u6587", " "))
    assert (a == b).all() and 1.8 < (two != none).sum() / (a != none).sum() < 2.2


def test_long_title_stays_on_the_page(log, pixels):  # noqa: F811
    image = pixels(log("a.jsonl", [CONFIG, epoch(1, 0.5)]), "--title", "W" * 80)
    assert (image[:80, -300:-30] < 100).any() and (image[:80, -20:] == 255).all()


# ---- any log ----


def test_squares_of_a_confusion_matrix(log, plot, pixels):  # noqa: F811
    """As dark as the SVG says, of its first colour."""
    name = log("a.jsonl", with_matrix())
    svg, image = plot(name), pixels(name)
    colour = np.array(colours_of(svg)["c0"])
    cells = [item for item in svg.iter(f"{SVG}rect") if item.get("class") == "f0 grid"]
    for cell in cells:
        x, y, opacity = (float(cell.get(key)) for key in ("x", "y", "fill-opacity"))
        assert nearest(around(image, x + 5, y + 5, 0), np.round(255 + opacity * (colour - 255))) <= 2
    assert len(cells) == 9


def test_deterministic(log, pixels, tmp_path):  # noqa: F811
    name = log("a.jsonl", training())
    pixels(name)
    pixels(name, output="again.PNG")
    assert (tmp_path / "again.PNG").read_bytes() == (tmp_path / "curves.png").read_bytes()


def test_many_points(log, pixels, tmp_path):  # noqa: F811
    pixels(log("a.jsonl", [CONFIG, *[interval(step, 1 + step % 7) for step in range(1, 50001)]]))
    assert (tmp_path / "curves.png").stat().st_size < 400_000


def test_only_gaps_and_numbers_without_measure(log, plot, pixels):  # noqa: F811
    image = pixels(log("a.jsonl", [CONFIG, interval(1, None)]))
    assert image.shape[1] == 1920
    lines = [interval(step, loss) for step, loss in enumerate([1, 1e308, -1e308, 1e299, -1e299, 2], 1)]
    assert pixels(log("b.jsonl", [CONFIG, interval(-5, 3), *lines])).shape == image.shape


@pytest.mark.parametrize("text", ["", "hello\n", '{"event": "config"}\n'])
def test_no_log(text, log, pixels, tmp_path):  # noqa: F811
    assert "a.jsonl" in pixels(log("a.jsonl", text), code=BAD_DATA)
    assert not (tmp_path / "curves.png").exists()


def test_too_tall(log, plot, pixels, tmp_path):  # noqa: F811
    name = log("a.jsonl", [CONFIG, interval(1, 1, **{f"m{i}": 1 for i in range(120)})])
    assert "a name that ends in .svg takes it" in pixels(name, code=USAGE)
    assert not (tmp_path / "curves.png").exists() and plot(name).tag == SVG + "svg"


def test_only_pictures_are_replaced(log, pixels, tmp_path):  # noqa: F811
    name = log("a.jsonl", training())
    for content in ("thesis", "<svg/>"):
        log("x.png", content)
        message = pixels(name, code=CANT_CREATE, output="x.png")
        assert "'x.png': it would replace a file that is no PNG; choose another name with -o" in message
        assert (tmp_path / "x.png").read_text() == content
    pixels(name)
    pixels(name)
