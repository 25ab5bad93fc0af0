"""PNG and JPEG files for tests, made without the libraries that read them, or by them where that is a great deal of work."""

import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np

GREY, COLOUR, PALETTE, GREY_ALPHA, COLOUR_ALPHA = 0, 2, 3, 4, 6
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def packed_rows(rows, bits):
    """The rows of [height, width, channels], each after the byte of its filter (none)."""
    lines = b""
    for row in rows.reshape(rows.shape[0], -1):
        if bits == 16:
            line = row.astype(">u2").tobytes()
        else:
            line = np.packbits(np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - bits:].reshape(-1)).tobytes()
        lines += b"\0" + line
    return lines


def png(pixels, kind=None, bits=8, before=b"", interlaced=False):
    """pixels: [height, width] or [height, width, channels]; before: chunks between header and data."""
    pixels = np.asarray(pixels)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    height, width, channels = pixels.shape
    kind = {1: GREY, 2: GREY_ALPHA, 3: COLOUR, 4: COLOUR_ALPHA}[channels] if kind is None else kind
    parts = [pixels[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlaced else [pixels]
    data = b"".join(packed_rows(part, bits) for part in parts if part.size)
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def jpeg_maker(folder):
    """jpeg(pixels, quality, *options): a function that makes JPEG files, compiled into the folder."""
    maker = folder / "jpeg"
    subprocess.run(["cc", "-O1", Path(__file__).parent.parent / "runtime/jpeg.c", "-o", maker, "-ljpeg"], check=True)

    def jpeg(pixels, quality=100, *options):
        pixels = np.asarray(pixels, np.uint8)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        height, width, channels = pixels.shape
        return subprocess.run([maker, *map(str, (width, height, channels, quality)), *options], input=pixels.tobytes(),
                              stdout=subprocess.PIPE, check=True).stdout

    return jpeg


def cifar(labels, seed=0):
    """Records of CIFAR-10, and their pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (len(labels), 3, 32, 32), dtype=np.uint8)
    return b"".join(bytes([label]) + image.tobytes() for label, image in zip(labels, pixels)), pixels
