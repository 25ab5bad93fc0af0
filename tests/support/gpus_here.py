"""The GPUs that programs see here, and the NCCL that comes with a Python package, where they do not look by themselves."""

import ctypes
import functools
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path


@functools.cache
def visible_gpus():
    """What CUDA_VISIBLE_DEVICES leaves of them, as it would name them."""
    if not shutil.which("nvidia-smi"):
        return []
    listing = subprocess.run(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    present = listing.stdout.split() if listing.returncode == 0 else []
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return present if chosen is None else [name for name in chosen.split(",") if name]


@functools.cache
def nccl_settings():
    """An environment in which programs find libnccl.so.2: that of this Python's packages, unless MTC_NCCL names one."""
    package = None if "MTC_NCCL" in os.environ else importlib.util.find_spec("nvidia")
    files = [file for place in (package.submodule_search_locations if package else []) for file in Path(place).glob("nccl/lib/libnccl.so.2")]
    return {"MTC_NCCL": str(files[0])} if files else {}


def nccl_found():
    files = [{**os.environ, **nccl_settings()}.get("MTC_NCCL"), "libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"]
    for file in filter(None, files):
        try:
            return bool(ctypes.CDLL(file))
        except OSError:
            continue
    return False
