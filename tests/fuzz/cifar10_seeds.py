"""Seeds for cifar10_fuzz: two bytes that say how long the files are and whether labels are as they come, then what is in them."""

import sys
from pathlib import Path

MORE, LESS, ANY_LABEL = 64, 128, 8


def main(folder):
    for number, (first, second) in enumerate([(1, 1), (3, 2), (1, 0), (1 | MORE, 1), (1, 2 | LESS), (1 | ANY_LABEL, 1)]):
        (folder / f"cifar10-{number}").write_bytes(bytes([first, second]) + bytes(range(100)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
