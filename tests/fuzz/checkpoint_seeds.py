"""Seeds for checkpoint_fuzz: a checkpoint with everything in its metadata, and a file as others write it."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from fake_data import pack

ENCODING = {"category": {"words": ["a", "b\\", "\u00e9"]}, "x": {"mean": [0.5, -1e300]}}
METADATA = {
    "format": "pt", "mtc.checksum": "0" * 16, "mtc.version": "1", "mtc.model": "m", "mtc.model_hash": "0123", "mtc.weights": "1",
    "mtc.step": "30", "mtc.epoch": "1", "mtc.epoch_step": "4", "mtc.seed": "18446744073709551615", "mtc.split_seed": "1",
    "mtc.data": "203 7d6583450347a83c", "mtc.epochs": "5", "mtc.epoch_sums": "32 1.5 -2e-3", "mtc.interval_sums": "8 1 2",
    "mtc.monitor": "loss", "mtc.best": "0.02", "mtc.best_step": "26", "mtc.since_best": "0", "mtc.plateaus": "3 1 2", "mtc.param.lr": "0.001",
    "mtc.encoding": json.dumps(ENCODING)}
TENSORS = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "w.m": {"dtype": "F32", "shape": [], "data_offsets": [8, 12]}}


def main(folder):
    for name, header in (("ours", {"__metadata__": METADATA, **TENSORS}), ("theirs", TENSORS)):
        text = json.dumps(header, separators=(",", ":")).encode()
        (folder / f"{name}.safetensors").write_bytes(pack(text, bytes(12)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
