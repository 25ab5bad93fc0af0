#!/usr/bin/env python3
"""Draws images of digits into a folder: a stand-in for MNIST, with its file names and format, for use without a network.

Each image is a digit of strokes (lines and arcs, some digits in two ways of writing), bent, slanted, turned, scaled and
shifted at random, drawn with a pen of random width, with noise. They are easier than MNIST: accuracies do not compare.
"""

import argparse
import math
import random
import struct
from pathlib import Path

SIDE = 28


def line(*points):
    return list(points)


def arc(x, y, rx, ry, begin, end):
    """Part of an ellipse; angles in degrees, clockwise on the screen from the right."""
    steps = max(4, int(abs(end - begin) / 15))
    angles = [math.radians(begin + (end - begin) * i / steps) for i in range(steps + 1)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


# The ways of writing each digit; a way is a list of strokes in the square from -1 to 1, y downwards.
DIGITS = [
    [[arc(0, 0, 0.6, 0.95, 0, 360)]],
    [[line((0, -0.95), (0, 0.95))], [line((-0.4, -0.55), (0.05, -0.95), (0.05, 0.95))]],
    [[arc(0, -0.45, 0.55, 0.5, -170, 40) + line((-0.6, 0.95), (0.65, 0.95))]],
    [[arc(-0.05, -0.47, 0.55, 0.48, -150, 90), arc(-0.05, 0.45, 0.62, 0.5, -90, 150)]],
    [[line((0.15, -0.95), (-0.6, 0.3), (0.65, 0.3)), line((0.3, -0.4), (0.3, 0.95))],
     [line((-0.5, -0.95), (-0.5, 0.1), (0.55, 0.1)), line((0.5, -0.95), (0.5, 0.95))]],
    [[line((0.55, -0.95), (-0.45, -0.95), (-0.5, -0.1)) + arc(0, 0.35, 0.6, 0.58, -140, 140)]],
    [[line((0.35, -0.95), (-0.3, -0.2)) + arc(0, 0.42, 0.52, 0.52, 200, 560)]],
    [[line((-0.6, -0.9), (0.6, -0.9), (-0.15, 0.95))],
     [line((-0.6, -0.9), (0.6, -0.9), (-0.15, 0.95)), line((-0.3, 0.05), (0.5, 0.05))]],
    [[arc(0, -0.48, 0.47, 0.45, 0, 360), arc(0, 0.48, 0.56, 0.48, 0, 360)]],
    [[arc(0, -0.42, 0.52, 0.52, 0, 360), line((0.52, -0.42), (0.35, 0.95))],
     [arc(0, -0.42, 0.52, 0.52, -20, 340) + arc(-0.1, 0.4, 0.6, 0.55, -20, 130)]],
]


def transformation(rng):
    """A random map from the square to pixels: a bend along a sine, then slant, turn, scale and shift."""
    turn, slant = rng.gauss(0, 0.12), rng.gauss(0, 0.18)
    width, height = rng.uniform(6.5, 9.5), rng.uniform(8.5, 10.5)
    bend, phase = rng.gauss(0, 0.08), rng.uniform(0, 2 * math.pi)
    shift_x, shift_y = rng.uniform(-2, 2) + SIDE / 2, rng.uniform(-1.5, 1.5) + SIDE / 2
    cos, sin = math.cos(turn), math.sin(turn)

    def apply(x, y):
        u = width * (x + bend * math.sin(3 * y + phase) - slant * y)
        v = height * (y + bend * math.sin(3 * x + phase))
        return cos * u - sin * v + shift_x, sin * u + cos * v + shift_y

    return apply


def stamp(image, x, y, radius):
    """Darkens the pixels whose centres lie within the pen's radius, fading over one pixel at its rim."""
    for row in range(max(0, int(y - radius)), min(SIDE, int(y + radius) + 1)):
        for column in range(max(0, int(x - radius)), min(SIDE, int(x + radius) + 1)):
            ink = radius + 0.5 - math.hypot(column + 0.5 - x, row + 0.5 - y)
            if ink > 0:
                at = row * SIDE + column
                image[at] = max(image[at], min(1.0, ink))


def draw(digit, rng):
    image, place = [0.0] * (SIDE * SIDE), transformation(rng)
    radius = rng.uniform(0.7, 1.5)
    for stroke in rng.choice(DIGITS[digit]):
        points = [place(x, y) for x, y in stroke]
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            steps = 1 + int(math.hypot(x1 - x0, y1 - y0))
            for i in range(steps + 1):
                stamp(image, x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, radius)
    for _ in range(rng.randrange(12)):  # specks of dirt
        image[rng.randrange(SIDE * SIDE)] = rng.random()
    darkest = rng.uniform(200, 255)
    return bytes(int(darkest * ink) for ink in image)


def write_idx(path, shape, content):
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", size) for size in shape) + content)
    temporary.replace(path)


def write_split(folder, name, count, rng):
    labels = bytes(rng.randrange(10) for _ in range(count))
    images = b"".join(draw(digit, rng) for digit in labels)
    write_idx(folder / f"{name}-images-idx3-ubyte", (count, SIDE, SIDE), images)
    write_idx(folder / f"{name}-labels-idx1-ubyte", (count,), labels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="made if it does not exist")
    parser.add_argument("--train", type=int, default=12000, help="training images (%(default)s)")
    parser.add_argument("--test", type=int, default=2000, help="test images (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(args.seed)
    write_split(args.folder, "train", args.train, generator)
    write_split(args.folder, "t10k", args.test, generator)
    print(f"drew {args.train} training and {args.test} test images of digits into {args.folder}")
