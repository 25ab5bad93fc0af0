#!/usr/bin/env python3
"""Pairs of images for models/siamese.mt: pairs-train.npz and pairs-test.npz, of files like MNIST's, which a folder has.

One half of the pairs show the same digit, the others two. Each image is in about as many pairs as the others.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np


def idx(path):
    """The bytes of an IDX file, which may be gzipped, in its shape."""
    content = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())
    shape = np.frombuffer(content, ">i4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def pairs(images, labels, random, count):
    same = random.integers(0, 2, count)
    left = random.integers(0, len(labels), count)
    kind = np.where(same, labels[left], (labels[left] + random.integers(1, 10, count)) % 10)
    of_kind = [np.flatnonzero(labels == k) for k in range(10)]
    right = np.array([random.choice(of_kind[k]) for k in kind])
    return {"left": images[left][:, None], "right": images[right][:, None], "same": same.astype(np.float32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with train-images-idx3-ubyte and train-labels-idx1-ubyte, and t10k-.. for the test")
    parser.add_argument("--count", type=int, default=10000, help="pairs to train with (%(default)s); for the test a fifth of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("."), metavar="FOLDER")
    args = parser.parse_args()
    if args.count < 5:
        parser.error(f"--count {args.count}: 5 or more, a fifth of them for the test")
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        if not (args.folder / name).exists() and not (args.folder / f"{name}.gz").exists():
            parser.error(f"{args.folder} has no {name}, with or without .gz")
    random = np.random.default_rng(args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    for part, file, count in (("train", "train", args.count), ("test", "t10k", args.count // 5)):
        images, labels = idx(args.folder / f"{file}-images-idx3-ubyte"), idx(args.folder / f"{file}-labels-idx1-ubyte")
        np.savez(args.output / f"pairs-{part}.npz", **pairs(images, labels, random, count))


if __name__ == "__main__":
    main()
