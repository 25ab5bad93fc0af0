"""Seeds for gzip_fuzz: its first byte, then files of one and of two members, with every part of a head; a bare stream; plain bytes."""

import gzip
import sys
import zlib
from pathlib import Path

TEXT = b"to be, or not to be, " * 20


def deflated(level, strategy=zlib.Z_DEFAULT_STRATEGY):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    return packer.compress(TEXT) + packer.flush()


def seeds():
    whole = gzip.compress(TEXT, 9)
    yield 0, whole
    yield 0, whole + gzip.compress(b"that is the question")
    yield 0, whole + b"\0" * 20
    yield 0, whole[:3] + b"\x1e" + whole[4:10] + b"\2\0ab" + b"name\0" + b"comment\0" + b"\0\0" + whole[10:]
    yield 1, deflated(0)
    yield 1, deflated(9)
    yield 1, deflated(9, zlib.Z_FIXED)
    yield 2, TEXT


def main(folder):
    for number, (first, content) in enumerate(seeds()):
        (folder / f"gzip-{number}").write_bytes(bytes([first]) + content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
