"""Seeds for source_fuzz: its first byte says where the text goes; hostile texts for each place, and the models of the tests."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["a\n#error", "a\r#error", "*/ int x; /*", "a \\", "a ??/", "\"); int x; (\"", "x\\\"y", "\u2028int x;", "\u202e", "$(touch ran)", "7",
         "\n7", ".b", "{wide}", "a, .name = 1", "%s", "@x", "-x", "'"]
KINDS = 10


def main(folder):
    for kind in range(KINDS):
        for number, text in enumerate(TEXTS):
            (folder / f"text-{kind}-{number:02}").write_bytes(bytes([kind]) + text.encode())
    for model in [*ROOT.glob("models/*.mt"), *ROOT.glob("tests/golden/*.mt")]:
        if model.stat().st_size < 4000:
            (folder / model.name).write_bytes(bytes([KINDS - 2]) + model.read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
