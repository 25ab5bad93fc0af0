"""A process that trains beside the one that called ``fit``: ranks.py starts it, and tells it all in one argument. It is Python without
packages, so that it begins at once, and nothing of the user's program runs in it."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
from ctypes import byref, c_bool, c_char, c_int, c_void_p
from typing import Any, NoReturn

from .abi import Fitting, Ranks, bind

_SET_PARENT_DEATH_SIGNAL = 1  # of prctl


def main() -> None:
    """Opens the model and its data, says so, and trains as the rank that it is told to be. Ends with the code of a fault, told on stderr."""
    order = json.loads(sys.argv[-1])
    _end_with(order["parent"])
    rank = _Rank(order)
    rank.give_data()
    sys.stdout.write("ready\n")
    sys.stdout.close()
    rank.train()
    rank.close()


def _end_with(parent: int) -> None:
    """The process that waits for this one may be killed: nobody would end it then."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


class _Rank:
    """A session beside that of rank 0, which has the same library and the same data."""

    def __init__(self, order: dict[str, Any]):
        self.order = order
        self.functions = ctypes.CDLL(order["library"])
        bind(self.functions)
        self.pointer = c_void_p()
        self.memory = mmap.mmap(order["memory"], 0, flags=mmap.MAP_PRIVATE) if order["memory"] is not None else None
        model = byref(c_char.in_dll(self.functions, "mtc_model"))
        self._check(self.functions.mtc_create(model, order["seed"], order["device"], byref(self.pointer)))

    def give_data(self) -> None:
        """Arrays lie in memory that all ranks see; a model's own files are read here too, as rank 0 reads them."""
        if self.order["checkpoint"] is not None:
            self._call("load", os.fsencode(self.order["checkpoint"]))
        for which, examples, places in self.order["arrays"]:
            self._lend(which, examples, places)
        for which, folder in self.order["loaded"]:
            self._call("load_data", which, None if folder is None else os.fsencode(folder))

    def _lend(self, which: int, examples: int, places: list[int]) -> None:
        begin = ctypes.addressof(c_char.from_buffer(self.memory)) if self.memory is not None else 0
        fields = (c_void_p * len(places))(*(begin + place for place in places))
        self._call("lend_data", which, examples, fields, (c_bool * len(places))(*[self.order["lends"]] * len(places)))

    def train(self) -> None:
        """Until rank 0 says that it is enough, or is gone."""
        sockets = self.order["sockets"]
        ranks = Ranks(self.order["rank"], len(sockets), (c_int * len(sockets))(*sockets), 0, self.order["sums"] and self.order["sums"].encode())
        self._call("fit_together", byref(Fitting()), byref(ranks))

    def close(self) -> None:
        """Gives the device's memory back."""
        self.functions.mtc_destroy(self.pointer)

    def _call(self, name: str, *arguments: Any) -> None:
        self._check(getattr(self.functions, f"mtc_{name}")(self.pointer, *arguments))

    def _check(self, code: int) -> None:
        if code:
            self._fail(code)

    def _fail(self, code: int) -> NoReturn:
        sys.stderr.write((self.functions.mtc_error(self.pointer) or b"").decode("utf-8", "replace"))
        sys.exit(code)
