"""Seeds for plot_fuzz: logs as programs write them, and with what is rare in them."""

import json
import sys
from pathlib import Path

CONFIG = {"event": "config", "model": "m", "target": "cpu", "batch": 4, "epochs": 2, "seed": 1, "train_examples": 8, "steps_per_epoch": 2,
          "params": {"lr": 0.1}, "train": {"optimizer": "adam(lr)", "loss": "mse(y, t)"}}
LINES = [{"event": "train", "step": 1, "epoch": 0, "seconds": 0.1, "loss": 2.5, "accuracy": 0.1},
         {"event": "train", "step": 2, "epoch": 0, "seconds": 0.2, "loss": None, "accuracy": 1e300},
         {"event": "epoch", "step": 2, "epoch": 1, "seconds": 0.3, "loss": -1, "accuracy": 0.5, "validation_loss": 1e-300, "test_accuracy": 0},
         {"event": "test", "step": 4, "epoch": 2, "seconds": 0.4, "loss": 0.5, "accuracy": 1}]


def main(folder):
    text = "\n".join(map(json.dumps, [CONFIG, *LINES])) + "\n"
    for kind in range(8):
        (folder / f"log-{kind}").write_bytes(bytes([kind]) + (text * (2 if kind & 4 else 1)).encode())
    (folder / "resumed").write_bytes(b"\1" + (text + text).encode())
    (folder / "cut").write_bytes(b"\2" + text[:-20].encode())
    (folder / "named").write_bytes(b"\0" + text.replace('"m"', '"<&\\u0000\\ud800>"').encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
