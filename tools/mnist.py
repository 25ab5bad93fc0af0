#!/usr/bin/env python3
"""Prints the folder that holds mnist/: real MNIST where it is or can be had, else generated digits.

Looked for in $MTC_DATA_DIR, then in the user's cache; then downloaded into the cache, each file checked by the SHA-256 of its
content. Without a network, digits drawn by make_digits.py serve instead, in the same format.
"""

import argparse
import gzip
import hashlib
import os
import subprocess
import sys
import urllib.request
import zlib
from http.client import HTTPException
from pathlib import Path

MIRRORS = ["https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"]
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mtc"


def holds_mnist(folder):
    def present(name):
        return any((folder / "mnist" / (name + ending)).exists() for ending in ("", ".gz"))

    return all(map(present, SHA256))


def download(mirror, name, folder):
    with urllib.request.urlopen(f"{mirror}/{name}.gz", timeout=20) as answer:
        packed = answer.read()
    found = hashlib.sha256(gzip.decompress(packed)).hexdigest()
    if found != SHA256[name]:
        raise OSError(f"{mirror}/{name}.gz: SHA-256 of its content is {found}, not {SHA256[name]}")
    partial = folder / f"{name}.part"
    partial.write_bytes(packed)
    partial.rename(folder / f"{name}.gz")


def download_all(mirrors, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for mirror in mirrors:
        try:
            print(f"Downloading MNIST from {mirror}", file=sys.stderr)
            for name in SHA256:
                download(mirror, name, folder)
            return True
        except (OSError, EOFError, zlib.error, HTTPException) as fault:
            print(f"  {fault}", file=sys.stderr)
    return False


def generate(folder):
    if not holds_mnist(folder):
        print("No network: drawing digits instead of MNIST (a stand-in: its accuracy says nothing about MNIST)", file=sys.stderr)
        subprocess.run([sys.executable, Path(__file__).parent / "make_digits.py", folder / "mnist"], check=True, stdout=sys.stderr)
    return folder


def find(mirrors):
    given, cache = os.environ.get("MTC_DATA_DIR"), cache_folder()
    for folder in filter(None, (given and Path(given), cache)):
        if holds_mnist(folder):
            return folder
    return cache if download_all(mirrors, cache / "mnist") else generate(cache / "generated")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", action="append", help="download from here instead of the usual mirrors")
    print(find(parser.parse_args().mirror or MIRRORS).resolve())
