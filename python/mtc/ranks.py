"""Several processes that train one model: this one, which is rank 0 and called ``fit``, and others that it starts, one for each further GPU
or share of the processors. They meet over sockets that are connected before they begin, so that no port is used, and see the same arrays in
memory that they share."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from ctypes import byref, c_int
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Callable, Iterator, NamedTuple, Optional, Sequence

from .abi import Fitting
from .abi import Ranks as CRanks
from .errors import DeviceError, InternalError, MtcError, ProcessError, UsageError, by_code
from .feeding import row_bytes
from .library import DataSet, Session
from .spec import whole

# That nothing comes of another rank, beyond what this one's own work takes. One that ended is noticed at once, but where GPUs wait for
# each other; and on processors that others use too, one may be late.
_HANGS_SECONDS = {"cuda": 8.0, "cpu": 60.0}
_SUMS = ("peers", "nccl", "host")
_END_SECONDS = 5.0  # that others have to end by themselves
_ALIGNMENT = 64
_START = "import sys; sys.path[:] = [*filter(None, sys.path), sys.argv[1]]; from mtc.rank import main; main()"


class Team(NamedTuple):
    """How many processes train a model, and as what."""

    size: int = 1
    gpus: bool = False
    sums: Optional[str] = None  # None: the first of _SUMS that all GPUs can

    def device(self, rank: int, first: int) -> int:
        """The number of a rank's GPU."""
        return first + rank if self.gpus else first

    def who(self, rank: int) -> str:
        """What messages call it."""
        return f"rank {rank} of {self.size}" + (f" (GPU {rank})" if self.gpus else "")

    def check(self, target: Optional[str]) -> None:
        """Raises UsageError where a target (None: one that is not known yet) has no such processes."""
        if self.gpus and target == "cpu":
            raise UsageError(f"gpus={self.size} is of the target 'cuda', and this model is for the processor, where processes={self.size} "
                             "trains in as many processes")
        if self.size > 1 and not self.gpus and target == "cuda":
            raise UsageError(f"processes={self.size} is of the target 'cpu'; gpus={self.size} trains on as many GPUs, one process each")


def team_of(gpus: Optional[int], processes: Optional[int], sums: Optional[str], shards: Optional[int], device: int) -> Team:
    """The processes of a model, from its arguments. Raises UsageError."""
    if gpus is not None and processes is not None:
        raise UsageError("gpus is how many GPUs train, a process each, and processes how many processes where there are none: give one of them")
    if gpus is not None and device:
        raise UsageError(f"gpus takes GPUs from 0 on, device={device} names one: give one of them; CUDA_VISIBLE_DEVICES says which are seen")
    if sums not in (None, *_SUMS):
        raise UsageError(f"sums is 'peers', 'nccl' or 'host', not {sums!r}")
    count = whole(gpus, "gpus", 1) if gpus is not None else whole(processes, "processes", 1) if processes is not None else 1
    if sums not in (None, "host") and gpus is None:
        raise UsageError(f"sums={sums!r} adds up between GPUs: gpus says how many")
    if shards is not None and whole(shards, "shards", 1) % count:
        raise UsageError(f"{count} processes cannot have equally many of {shards} shards of a batch")
    return Team(count, gpus is not None, sums)


class _Shared:
    """The arrays of a session in memory that other processes see, and where each field of a data set begins there."""

    def __init__(self, session: Session):
        given = {which: data for which, data in session.data.items() if data.fields}
        rows = [row_bytes(field) for field in session.description["fields"]]
        sizes = {which: [data.examples * row for row in rows] for which, data in given.items()}
        self.places: dict[int, list[int]] = {}
        self.size = 0
        for which, of_fields in sizes.items():
            self.places[which] = [self._reserve(size) for size in of_fields]
        self.file: Optional[int] = os.memfd_create("mtc-data") if self.size else None
        try:
            self._fill(session, given, sizes)
        except BaseException:
            self.close()
            raise

    def _reserve(self, size: int) -> int:
        place = self.size
        self.size += -(-size // _ALIGNMENT) * _ALIGNMENT
        return place

    def _fill(self, session: Session, given: dict[int, DataSet], sizes: dict[int, list[int]]) -> None:
        if self.file is None:
            return
        os.ftruncate(self.file, self.size)
        on_gpu = session.description["target"] == "cuda"
        with mmap.mmap(self.file, self.size) as memory:
            first = ctypes.c_char.from_buffer(memory)
            begin = ctypes.addressof(first)
            for which, data in given.items():
                for place, size, pointer, lent in zip(self.places[which], sizes[which], data.fields, data.lent):
                    if lent and on_gpu:
                        session.memory_read(begin + place, pointer or 0, size)
                    else:
                        ctypes.memmove(begin + place, pointer or 0, size)
            del first  # the mapping cannot be closed while something points there

    def close(self) -> None:
        """Who has it mapped keeps it."""
        if self.file is not None:
            os.close(self.file)
        self.file = None


class _Worker(NamedTuple):
    rank: int
    process: subprocess.Popen[bytes]
    said: IO[bytes]  # all that it writes on stderr

    def text(self) -> str:
        """What it said."""
        self.said.seek(0)
        return self.said.read().decode("utf-8", "replace").strip()


class Ranks:
    """The other processes of one ``fit``, from `with` to its end, behind which none is left. ``scratch``: a folder for a file."""

    def __init__(self, session: Session, team: Team, scratch: Path):
        self.session, self.team, self.scratch = session, team, scratch
        self.workers: list[_Worker] = []
        self.sockets: list[Optional[socket.socket]] = []  # of rank 0
        self.threads = _threads(session)
        self.process = os.getpid()

    def __enter__(self) -> Ranks:
        try:
            with contextlib.ExitStack() as held:
                self._start(held)
            self._await_all()
        except BaseException:
            self._end(0)
            raise
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._end(0 if kind else _END_SECONDS)

    # ---- starting ----

    def _start(self, held: contextlib.ExitStack) -> None:
        """What the others have been given is closed here: where one of them ends, the rest hear of it."""
        if not sys.executable or getattr(sys, "frozen", False):
            raise UsageError("several processes are started as `python`, and this one is no Python interpreter (sys.executable)")
        ends = _connect(self.team.size, held)
        self.sockets = [None, *(ends[0][other] for other in range(1, self.team.size))]
        shared = _Shared(self.session)
        held.callback(shared.close)
        own = [(which, data.folder) for which, data in self.session.data.items() if not data.fields]
        order = {"library": str(self.session.library.path), "seed": self.session.status()["seed"], "parent": os.getpid(), "sums": self.team.sums,
                 "lends": self.session.description["target"] == "cpu", "memory": shared.file,
                 "arrays": [(which, self.session.data[which].examples, places) for which, places in shared.places.items()],
                 "loaded": [(which, None if folder is None else os.fspath(folder)) for which, folder in own],
                 "checkpoint": self._words() if own else None}
        for rank in range(1, self.team.size):
            sockets = [ends[rank][other].fileno() if other != rank else -1 for other in range(self.team.size)]
            files = [number for number in (*sockets, shared.file) if number is not None and number >= 0]
            self._start_one(rank, {**order, "rank": rank, "sockets": sockets, "device": self.team.device(rank, self.session.device)}, files)

    def _words(self) -> str:
        """Who reads the model's own files reads them as this session has: it may know words and splits from a checkpoint."""
        path = str(self.scratch / "ranks.safetensors")
        self.session.save(path)
        return path

    def _start_one(self, rank: int, order: dict[str, Any], files: Sequence[int]) -> None:
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(max(1, self.threads // self.team.size))}
        said = tempfile.TemporaryFile()
        words = [sys.executable, "-S", "-c", _START, str(Path(__file__).resolve().parent.parent), json.dumps(order)]
        try:  # a session of its own: Ctrl-C of a terminal is rank 0's to hear, and Ctrl-Z stops it alone
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, pass_fds=files,
                                       start_new_session=True, env=environment)
        except OSError as error:
            said.close()
            raise DeviceError(f"cannot start a process: {error.strerror}") from None
        self.workers.append(_Worker(rank, process, said))

    def _await_all(self) -> None:
        """Until each has its model and its data. Ctrl-C ends the wait."""
        with selectors.DefaultSelector() as ready:
            for worker in self.workers:
                ready.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
            while ready.get_map():
                for key, _ in ready.select():
                    if not os.read(key.fd, 64):
                        raise self._fault_of(key.data) or InternalError(f"{self.team.who(key.data.rank)} ended before it began")
                    ready.unregister(key.fileobj)

    # ---- training ----

    def fit(self, session: Session, fitting: Fitting) -> None:
        """mtc_fit_together, as rank 0. Raises what this rank failed with or, where it lost another one, what became of that."""
        numbers = [-1 if own is None else own.detach() for own in self.sockets]
        ranks = CRanks(0, self.team.size, (c_int * len(numbers))(*numbers), _HANGS_SECONDS[session.description["target"]],
                       self.team.sums.encode() if self.team.sums else None)
        self.sockets = []
        with _fewer_threads(session, self.threads, self.team.size):
            code = session.library.functions.mtc_fit_together(session.pointer, byref(fitting), byref(ranks))
        if code:
            fault = session.fault(code)
            raise (self._lost() if isinstance(fault, ProcessError) else None) or fault

    def _lost(self) -> Optional[MtcError]:
        """Of the first that ended for a reason of its own."""
        until = time.monotonic() + _END_SECONDS
        while time.monotonic() < until:
            faults = [self._fault_of(worker) for worker in self.workers if worker.process.poll() is not None]
            own = [fault for fault in faults if fault is not None]
            if own:
                return own[0]
            if len(faults) == len(self.workers):
                break
            time.sleep(0.02)
        return None

    def _fault_of(self, worker: _Worker) -> Optional[MtcError]:
        """Why a process ended. None: it did as it was told, or others made it end."""
        code, who = worker.process.wait(), self.team.who(worker.rank)
        if code in (0, ProcessError.code):
            return None
        if code < 0:
            return ProcessError(f"{who} was ended by {_signal(-code)}" + (f"\n{worker.text()}" if worker.text() else ""))
        return by_code(code, f"{who}: {worker.text()}")

    # ---- the end ----

    def _end(self, seconds: float) -> None:
        """None of them outlives this, and each has been waited for."""
        for own in self.sockets:
            if own is not None:
                own.close()
        self.sockets = []
        if os.getpid() != self.process:  # a fork, in a callback perhaps: they are its parent's
            return
        until = time.monotonic() + seconds
        try:
            for worker in self.workers:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.process.wait(max(0.0, until - time.monotonic()))
        finally:  # Ctrl-C ends the wait, too
            for worker in self.workers:
                worker.process.kill()
            for worker in self.workers:
                worker.process.wait()
                worker.process.stdout.close()  # type: ignore[union-attr]
                worker.said.close()
            self.workers = []


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _connect(count: int, held: contextlib.ExitStack) -> list[dict[int, socket.socket]]:
    """ends[a][b] is connected to ends[b][a]; those of rank 0 are the caller's, the others ``held``."""
    ends: list[dict[int, socket.socket]] = [{} for _ in range(count)]
    for one in range(count):
        for other in range(one + 1, count):
            ends[one][other], ends[other][one] = socket.socketpair()
            held.callback(ends[other][one].close)
            if one:
                held.callback(ends[one][other].close)
    return ends


# ---- threads ----


def _of_openmp(session: Session, name: str) -> Optional[Callable[..., int]]:
    function = getattr(session.library.functions, name, None) if session.description["target"] == "cpu" else None
    return function


def _threads(session: Session) -> int:
    """Those of OpenMP, which ranks share out."""
    most = _of_openmp(session, "omp_get_max_threads")
    return most() if most else 1


@contextlib.contextmanager
def _fewer_threads(session: Session, threads: int, ranks: int) -> Iterator[None]:
    """This rank's share of them meanwhile. Results do not depend on the number."""
    use = _of_openmp(session, "omp_set_num_threads")
    if use:
        use(max(1, threads // ranks))
    try:
        yield
    finally:
        if use:
            use(threads)
