"""mtc_fit_together, as a program that embeds a model calls it. Ranks are threads here, each with a session of one library: what has joined is
the thread's."""

import ctypes
import socket
import threading

import numpy as np
import pytest
from library import Library
from mtc.abi import EPOCH, Fitting, Ranks
from test_shards import EXAMPLES, MODELS

pytestmark = pytest.mark.quick
USAGE, RANK_LOST = 64, 80
WEIGHTS = {"h.weight": (6, 192), "y.weight": (5, 6)}


@pytest.fixture(scope="module")
def library(mtc, tmp_path_factory):
    place = tmp_path_factory.mktemp("together")
    (place / "m.mt").write_text(MODELS["updates"])
    made = mtc(place / "m.mt", "--target", "cpu", "--shared", "--shards", 4, "-o", place / "m.so")
    assert made.returncode == 0, made.stderr
    return place / "m.so"


def data(count=EXAMPLES, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, 3, 8, 8)).astype("f4"), rng.integers(0, 5, count).astype("u1")]


class Rank(threading.Thread):
    """A session that trains as one of several; its seed and its weights are its own until rank 0 says otherwise."""

    def __init__(self, library, rank, ends, fields, epochs=3, epoch=None, timeout=0.0):
        super().__init__()
        self.own = Library(library, seed=rank + 1)
        self.own.set_data(fields)
        numbers = [-1 if end is None else end.detach() for end in ends]
        self.ranks = Ranks(rank, len(ends), (ctypes.c_int * len(ends))(*numbers), timeout, None)
        self.heard = EPOCH(lambda *_: bool(epoch and epoch()))
        self.fitting = Fitting(epochs, 1, True, None, epoch=self.heard) if rank == 0 else Fitting()
        self.code = self.text = None

    def run(self):
        self.code = self.own.library.mtc_fit_together(self.own.session, ctypes.byref(self.fitting), ctypes.byref(self.ranks))
        self.text = self.own.library.mtc_error(self.own.session).decode()


def connected(count):
    ends = [[None] * count for _ in range(count)]
    for one in range(count):
        for other in range(one):
            ends[one][other], ends[other][one] = socket.socketpair()
    return ends


def trained(library, count, fields=None, **rank_0):
    """What became of the ranks of a training, in their order."""
    ends = connected(count)
    ranks = [Rank(library, rank, ends[rank], fields[rank] if fields else data(), **(rank_0 if rank == 0 else {})) for rank in range(count)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    weights = [[rank.own.get(name, shape).tobytes() for name, shape in WEIGHTS.items()] for rank in ranks]
    for rank in ranks:
        rank.own.close()
    return [rank.code for rank in ranks], [rank.text for rank in ranks], weights


def test_all_come_to_the_bytes_of_one(library):
    results = {count: trained(library, count) for count in (1, 2, 4)}
    assert all(not any(codes) for codes, *_ in results.values()), results
    assert all(each == results[1][2][0] for _, _, weights in results.values() for each in weights)


def test_rank_0_ends_it(library):
    (codes, _, weights), once = trained(library, 2, epoch=lambda: True), trained(library, 1, epochs=1)
    assert codes == [0, 0] and weights[1] != once[2][0]  # schedules of another length
    assert weights[0] == weights[1] == trained(library, 1, epoch=lambda: True)[2][0]


def test_what_differs_is_found(library):
    codes, texts, _ = trained(library, 2, fields=[data(), data(seed=4)])
    assert USAGE in codes and "rank 1" in texts[0] and "another training data than rank 0" in texts[0], texts


def test_shards_are_dealt_out_evenly(library):
    codes, texts, _ = trained(library, 3)
    assert codes[0] == USAGE and "3 processes cannot have equally many" in texts[0]


def test_another_rank_that_is_gone_is_told(library):
    ends = connected(2)
    rank = Rank(library, 0, ends[0], data())
    ends[1][0].close()
    rank.run()
    rank.own.close()
    assert rank.code == RANK_LOST and "lost rank 1" in rank.text


def test_who_begins_late_is_waited_for(library):
    """Its device, or its data, may take long; a rank that has begun is waited for as long as is said."""
    ends = connected(2)
    ranks = [Rank(library, rank, ends[rank], data(), timeout=0.1) for rank in range(2)]
    ranks[0].start()
    ranks[0].join(0.3)
    assert ranks[0].is_alive()
    ranks[1].start()
    for rank in ranks:
        rank.join()
        rank.own.close()
    assert [rank.code for rank in ranks] == [0, 0]
