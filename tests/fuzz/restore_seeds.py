"""Seeds for restore_fuzz: its first byte, then checkpoints of the model of tests/runtime/fake.c: whole, with words, wrong in one of
the things that are read last, of somebody else, with another head, of wider numbers."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from fake_data import pack

ENCODING = {"label": {"words": ["a", "b", "c"]}, "image": {"mean": [0.5] * 16}}
METADATA = {
    "format": "pt", "mtc.checksum": "0" * 16, "mtc.version": "1", "mtc.model": "fake", "mtc.model_hash": "0123abcd", "mtc.weights": "2",
    "mtc.step": "4", "mtc.epoch": "1", "mtc.epoch_step": "1", "mtc.seed": "1", "mtc.split_seed": "1", "mtc.epochs": "3",
    "mtc.epoch_sums": "8 1.5 2", "mtc.interval_sums": "8 1 2", "mtc.losses": "1.5 1", "mtc.first_weight": "0.25",
    "mtc.monitor": "loss", "mtc.best": "0.02", "mtc.best_step": "3", "mtc.since_best": "0", "mtc.plateaus": "3 1 2", "mtc.param.lr": "0.25"}
LOAD, INITIAL, ALL, PARTIAL, WITH_DATA, NO_NOTES = 0, 1, 2, 4, 8, 16
TYPES = {"<f4": "F32", "<f8": "F64", "<f2": "F16"}


def checkpoint(metadata, classes=3, number="<f4", state=True):
    arrays = {"logits.weight": np.full((classes, 16), 0.1), "logits.bias": np.zeros(classes)}
    if state:
        arrays["logits.weight.momentum"] = np.full((classes, 16), 0.01)
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, array in arrays.items():
        more = array.astype(number if "momentum" not in name else "<f4").tobytes()
        header[name] = {"dtype": TYPES[number] if "momentum" not in name else "F32", "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    return pack(json.dumps(header, separators=(",", ":")).encode(), data)


def seeds():
    yield ALL, checkpoint(METADATA)
    yield ALL | WITH_DATA, checkpoint(METADATA)
    yield ALL | NO_NOTES, checkpoint({**METADATA, "mtc.encoding": json.dumps(ENCODING)})
    for key, wrong in ("mtc.step", "-1"), ("mtc.losses", "1"), ("mtc.data", "0 0"), ("mtc.param.lr", "-1"), ("mtc.encoding", "{"):
        yield ALL, checkpoint({**METADATA, key: wrong})
    yield ALL | PARTIAL, checkpoint({**METADATA, "mtc.model_hash": "4567"}, 5)
    yield INITIAL, checkpoint(METADATA, number="<f8")
    yield LOAD, checkpoint(None, state=False)
    yield INITIAL | PARTIAL, checkpoint(None, 5, "<f2", False)


def main(folder):
    for number, (first, content) in enumerate(seeds()):
        (folder / f"restore-{number}").write_bytes(bytes([first]) + content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
