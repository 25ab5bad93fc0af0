#!/usr/bin/env python3
"""Writes small good files of every format into a folder, for data_fuzz to begin with: its first byte, then the file."""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from fake_data import idx_bytes  # noqa: E402
from image_files import PALETTE, chunk, jpeg_maker, png  # noqa: E402

ARRAYS = {"image": np.zeros((3, 2, 3), "u1"), "label": np.arange(3, dtype="u1"), "word": np.zeros((3, 4), "i4"),
          "signal": np.zeros((3, 5), "f4")}
TSV = b"1\tx\t2020-01-02\n2.5\ty\t2020-02-29 10:00\nNA\t\t\n"
CSV = b'1,"x ""y"", z",2020-01-02\r\n2e3,"y\nz",2021-01-01\r\n'
HEADER, COMMA, SKIP, TINY, ZIP, TABLE = 1, 4, 8, 16, 64, 128
GREY, RESIZE, IMAGE = 1, 2, 8
TOKENS, FEW, WINDOWS = 1, 2, 32


def packed(write, *args, **arrays):
    file = io.BytesIO()
    write(file, *args, **arrays)
    return file.getvalue()


def images():
    colours = np.arange(6 * 9 * 3, dtype=np.uint8).reshape(6, 9, 3)
    grey = colours[:, :, :1]
    yield IMAGE, png(colours)
    yield IMAGE | GREY, png(grey >> 6, bits=2, interlaced=True)
    yield IMAGE, png(grey & 3, PALETTE, 8, chunk(b"PLTE", bytes(range(12))) + chunk(b"tRNS", b"\0"))
    yield IMAGE | RESIZE, png(np.concatenate([colours, grey], 2)[:, :4])
    with tempfile.TemporaryDirectory() as folder:
        jpeg = jpeg_maker(Path(folder))
        yield IMAGE, jpeg(colours)
        yield IMAGE | GREY, jpeg(grey, 50)
        yield IMAGE | RESIZE, jpeg(colours[:, :4], 90, "progressive")
        yield IMAGE | RESIZE, jpeg(np.concatenate([colours, grey], 2))


def windows():
    yield WINDOWS, "to be,\nor nöt to be\t☃🙂".encode()
    yield WINDOWS | FEW, b"to be"
    yield WINDOWS | TOKENS, np.arange(2990, 3000, dtype="<u2").tobytes()
    for width, magic, version in (("<u2", 20240520, 1), ("<u4", 20240801, 7)):
        header = np.zeros(256, "<i4")
        header[:3] = magic, version, 10
        yield WINDOWS | TOKENS | FEW, header.tobytes() + np.arange(10, dtype=width).tobytes()


def seeds():
    yield from images()
    yield from windows()
    yield TABLE, TSV
    yield TABLE | HEADER, b"b\tc\ta\nx\t2020-01-01\t4\n"
    yield TABLE | COMMA, CSV
    yield TABLE | COMMA | HEADER | SKIP, b"\xef\xbb\xbfa,b,c\n" + CSV
    yield TABLE | COMMA | SKIP | TINY, CSV + b'1,2\n"abc\n\xff\n'
    for field, (name, array) in enumerate(ARRAYS.items()):
        yield field, idx_bytes(array)
        yield field | 4, packed(np.save, array)
        for save in (np.savez, np.savez_compressed):
            yield field | ZIP, packed(save, **{name: array})


folder = Path(sys.argv[1])
for number, (first, content) in enumerate(seeds()):
    (folder / f"data-{number:02}").write_bytes(bytes([first]) + content)
