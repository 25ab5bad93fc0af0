"""What several tests need is made once, whichever workers of pytest-xdist they run in."""

import fcntl
import os


def folder_of_all_workers(tmp_path_factory):
    """Each worker's own folder is one in this."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "once"
    folder.mkdir(exist_ok=True)
    return folder


def made_once(path, make):
    """The file that make(path) writes. Who comes while another makes it waits; where that one failed, the next makes it."""
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            part = path.with_suffix(".part")
            make(part)
            part.rename(path)
    return path
