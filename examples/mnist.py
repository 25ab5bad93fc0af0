#!/usr/bin/env python3
"""Trains a network on handwritten digits from Python, and shows where it errs.

    examples/mnist.py [--epochs N] [--target cpu|cuda] [--sequential] [--data FOLDER] [--output wrong.png]

Prints the test accuracy and a confusion matrix, and draws one as a picture: the most confident mistake of each kind.
The data are MNIST from $MTC_DATA_DIR or the user's cache, else a download, else, without a network, digits that
tools/mnist.py draws.
"""

import argparse
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

import mtc

ROOT = Path(__file__).resolve().parent.parent
CLASSES, SIDE = 10, 28


# ---- data ----


def data_folder():
    """The folder with mnist/, as ./quickstart finds or makes it."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "mnist.py"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


def read_digits(folder, split):
    """Images [N, 28, 28] and labels [N]; split: "train" or "t10k"."""
    return mtc.read_idx(folder / f"{split}-images-idx3-ubyte"), mtc.read_idx(folder / f"{split}-labels-idx1-ubyte")


# ---- networks ----


def make_model(args):
    """models/mnist.mt; with --sequential the same network, put together in Python, which takes numbers from 0 to 1."""
    if not args.sequential:
        return mtc.compile(ROOT / "models" / "mnist.mt", target=args.target, seed=args.seed)
    layers = [mtc.Linear(SIDE * SIDE, 128), mtc.ReLU(), mtc.Linear(128, CLASSES)]
    return mtc.Sequential(layers, loss="cross_entropy", optimizer=mtc.Adam(1e-3), batch=64, target=args.target,
                          seed=args.seed)


def prepared(args, images):
    return images.reshape(len(images), -1).astype(np.float32) / 255 if args.sequential else images


# ---- what came out ----


def confusion(truth, answer):
    """matrix[i, j]: how many images of digit i were taken for j."""
    matrix = np.zeros((CLASSES, CLASSES), int)
    np.add.at(matrix, (truth, answer), 1)
    return matrix


def print_confusion(matrix):
    print("\nConfusion matrix: a row for each digit, a column for what it was taken for")
    print("      " + "".join(f"{digit:6d}" for digit in range(CLASSES)) + "   right")
    for digit, row in enumerate(matrix):
        share = row[digit] / max(1, row.sum())
        print(f"{digit:6d}" + "".join(f"{count:6d}" if count else "     ." for count in row) + f"{share:8.1%}")


def picture_of_mistakes(images, truth, probability):
    """Grey pixels: left of each row the mean image of a digit, above each column the same for what it was taken for,
    and where they meet the mistake of that kind that the network was surest of."""
    answer = probability.argmax(axis=1)
    cell = SIDE + 2
    page = np.full(((CLASSES + 1) * cell, (CLASSES + 1) * cell), 40, np.uint8)

    def put(row, column, image):
        page[row * cell + 1 : row * cell + 1 + SIDE, column * cell + 1 : column * cell + 1 + SIDE] = image

    for digit in range(CLASSES):
        mean = 255 - images[truth == digit].mean(axis=0) if (truth == digit).any() else 255
        put(0, digit + 1, mean)
        put(digit + 1, 0, mean)
        for taken_for in range(CLASSES):
            rows = np.flatnonzero((truth == digit) & (answer == taken_for))
            if digit != taken_for and len(rows):
                put(digit + 1, taken_for + 1, 255 - images[rows[probability[rows, taken_for].argmax()]])
    return page


def write_png(path, grey, scale=3):
    """An array [rows, columns] of bytes as a PNG picture; every pixel becomes scale x scale."""
    pixels = np.kron(grey, np.ones((scale, scale), np.uint8))
    rows = np.pad(pixels, ((0, 0), (1, 0)))  # in front of each row: no filter

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b"")
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10, help="(%(default)s)")
    parser.add_argument("--target", choices=["cpu", "cuda"], help="a GPU where there is one, unless given")
    parser.add_argument("--sequential", action="store_true", help="a network put together in Python, without a file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="the folder that holds mnist/")
    parser.add_argument("--output", default="wrong.png", help="the picture of mistakes (%(default)s)")
    args = parser.parse_args()

    folder = (args.data or data_folder()) / "mnist"
    images, labels = read_digits(folder, "train")
    test_images, test_labels = read_digits(folder, "t10k")
    model = make_model(args)
    model.summary()
    history = model.fit(prepared(args, images), labels, epochs=args.epochs,
                        validation_data=(prepared(args, test_images), test_labels))
    probability = model.predict_proba(prepared(args, test_images))
    matrix = confusion(test_labels, probability.argmax(axis=1))
    print_confusion(matrix)
    accuracy = matrix.trace() / matrix.sum()
    print(f"\nTest accuracy {accuracy:.4f} after {len(history.epochs)} epochs, {history.seconds:.2f} s")
    write_png(args.output, picture_of_mistakes(test_images, test_labels, probability))
    print(f"{args.output}: the surest mistake of each kind; left the digit, above what it was taken for")


if __name__ == "__main__":
    main()
