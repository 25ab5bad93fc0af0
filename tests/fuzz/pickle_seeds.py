"""Seeds for pickle_fuzz: its first byte; pickles of state dicts and checkpoints in each protocol, and whole files."""

import argparse
import pickle
import sys
from collections import OrderedDict, defaultdict, deque
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from torch_files import Built, Call, Name, Storage, parameter, pickled, saved, tensor, view  # noqa: E402


def states():
    storage = Storage(np.arange(16, dtype="f4"))
    yield {"a": tensor(np.arange(16, dtype="f4").reshape(4, 4)), "b": view(Storage(np.arange(8, dtype="i8")), 1, (2, 3), (1, 2))}
    yield {"turned": view(storage, 0, (2, 8), (1, 2)), "same": view(storage, 4, (3, 4), (0, 1)), "one": view(storage, 15, (), ())}
    yield {"epoch": 1 << 70, "lr": 0.5, "args": [(1, None, True), {2}, b"x", bytearray(b"y")], "model": OrderedDict(w=parameter(np.ones(16, "f4")))}
    yield {"model": {"x": Built(Name("collections", "OrderedDict"), state={"_metadata": {}}), "w": tensor(np.ones(64, "u1"))}}
    yield {"x": Call(Name("os", "system"), "true")}
    yield {"args": argparse.Namespace(lr=0.1), "best": np.float64(0.5), "table": defaultdict(list, a=[1]), "queue": deque([1]), "model": {"w": tensor(np.ones(16, "f4"))},
           "net": Built(Name("mine", "Net"), state={"w": tensor(np.ones(16, "f4"))})}
    yield {"w": tensor(np.ones(16, "f4")), "s": Call(Name("torch._utils", "_rebuild_sparse_tensor"), (tensor(np.ones(16, "f4")),))}
    cycle = {"w": tensor(np.zeros(4, "f8"))}
    cycle["self"] = cycle
    yield cycle


def main(folder):
    for number, state in enumerate(states()):
        for protocol in (2, 4):
            (folder / f"pickle-{number}-{protocol}").write_bytes(b"\1" + pickled(state, protocol)[0])
        (folder / f"key-{number}").write_bytes(b"\x09" + pickled(state)[0])
        (folder / f"file-{number}").write_bytes(b"\0" + saved(state))
    (folder / "old").write_bytes(b"\0" + pickle.dumps({"a": 1}, 2))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
