"""Seeds for programs_fuzz: whole entries of its key, of the right digest and of others."""

import hashlib
import sys
from pathlib import Path

KEY = b"0123456789abcdef" * 4


def entry(program, key=KEY):
    return hashlib.sha256(key + b"\0" + program).hexdigest().encode() + program


def main(folder):
    for number, content in enumerate([entry(b"\x7fELF" + bytes(60)), entry(b"x"), entry(b""), entry(b"x", KEY[::-1]),
                                      entry(b"x").upper(), KEY]):
        (folder / f"programs-{number}").write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
