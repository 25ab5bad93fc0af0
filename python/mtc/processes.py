"""What a process has for itself: locks that its own threads hold, and a folder that goes with it.

A fork is a process with one thread. What another thread of the parent was doing when it was forked, nobody there ever ends:
a lock that it held would be waited for without end.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Optional

# ---- forks ----


_told: "weakref.WeakValueDictionary[tuple[int, Callable[[Any], None]], Any]" = weakref.WeakValueDictionary()


def tell_of_forks(owner: Any, forked: Callable[[Any], None]) -> None:
    """``forked(owner)`` is called in each child that is forked while the owner lives, before anything else is done there."""
    _told[id(owner), forked] = owner


def _after_fork() -> None:
    global _making
    _making = threading.Lock()
    for (_, forked), owner in list(_told.items()):
        forked(owner)


os.register_at_fork(after_in_child=_after_fork)

# ---- the folder ----


class Folder(NamedTuple):
    """A folder, and the file that is locked as long as its process lives, however that ends."""

    path: Path
    lock: int


_PREFIX = "mtc-python-"
_making = threading.Lock()
_folders: dict[int, Folder] = {}  # of each process: a fork has its own


def scratch() -> Path:
    """A folder of this process, removed at its end; where it was killed, by the next process that needs one."""
    process = os.getpid()
    with _making:
        if process not in _folders or not _folders[process].path.is_dir():  # those who tidy up /tmp may have removed it
            _remove_those_of_the_dead()
            _folders[process] = _new_folder()
            atexit.register(_remove, process)
            _tell_multiprocessing(process)
        return _folders[process].path


def _new_folder() -> Folder:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(path, os.O_RDONLY)
        with contextlib.suppress(OSError):  # of a file system without locks: then nobody takes it for one of the dead
            fcntl.flock(lock, fcntl.LOCK_EX)
        if path.is_dir():
            return Folder(path, lock)
        os.close(lock)  # before it was locked, another process took it for one of the dead


def _remove(process: int) -> None:
    if process == os.getpid() and process in _folders:
        shutil.rmtree(_folders[process].path, ignore_errors=True)


def _tell_multiprocessing(process: int) -> None:
    """Its processes end without what atexit runs."""
    own = sys.modules.get("multiprocessing.process")
    if own is not None and own.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _remove, (process,), exitpriority=0)


def _locked(folder: Path) -> Optional[int]:
    """A folder's lock; None: its process lives, or it is no longer there, or somebody else's."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _others() -> Iterator[Path]:
    own = {folder.path for folder in _folders.values()}
    yield from (path for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if path not in own)


def _remove_those_of_the_dead() -> None:
    for path in _others():
        lock = _locked(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)
