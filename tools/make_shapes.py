#!/usr/bin/env python3
"""Draws images of shapes for models/unet.mt: shapes.npz.

An image has 32 x 32 pixels with one to four discs, squares and triangles over each other, of any shade, on a ground that changes
from side to side, with noise. Its mask says of each pixel what is there: 0 ground, 1 disc, 2 square, 3 triangle.
"""

import argparse
from pathlib import Path

import numpy as np

SIDE, KINDS = 32, 3
ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE] + 0.5


def inside(kind, random):
    """The pixels of a shape of this kind: anywhere, of any size and turn."""
    size, turn = random.uniform(4, 8), random.uniform(0, 2 * np.pi)
    row, column = random.uniform(size / 2, SIDE - size / 2, 2)
    a, b = ROWS - row, COLUMNS - column
    u, v = a * np.cos(turn) - b * np.sin(turn), a * np.sin(turn) + b * np.cos(turn)
    if kind == 0:
        return u**2 + v**2 < size**2
    if kind == 1:
        return np.maximum(abs(u), abs(v)) < 0.85 * size
    return np.max([u * np.cos(angle) + v * np.sin(angle) for angle in 2 * np.pi / 3 * np.arange(3)], axis=0) < 0.6 * size


def ground(random):
    slope = random.uniform(-2, 2, 2)
    return random.uniform(60, 196) + slope[0] * (ROWS - SIDE / 2) + slope[1] * (COLUMNS - SIDE / 2)


def image(kinds, random):
    """uint8 [1, SIDE, SIDE], and what each pixel shows."""
    pixels, shown = ground(random), np.zeros((SIDE, SIDE), np.uint8)
    for kind in kinds:
        where = inside(kind, random)
        shade = random.uniform(0, 255)
        while abs(shade - pixels[where].mean()) < 50:
            shade = random.uniform(0, 255)
        pixels, shown = np.where(where, shade, pixels), np.where(where, kind + 1, shown).astype(np.uint8)
    noisy = pixels + 12 * random.normal(size=pixels.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)[None], shown


def shapes(random, count):
    drawn = [image(random.integers(0, KINDS, random.integers(1, 5)), random) for _ in range(count)]
    return {"image": np.stack([pixels for pixels, _ in drawn]), "mask": np.stack([shown for _, shown in drawn])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=4000, help="images (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("."), metavar="FOLDER")
    args = parser.parse_args()
    if args.count < 1:
        parser.error(f"--count {args.count}: 1 or more")
    args.output.mkdir(parents=True, exist_ok=True)
    np.savez(args.output / "shapes.npz", **shapes(np.random.default_rng(args.seed), args.count))


if __name__ == "__main__":
    main()
