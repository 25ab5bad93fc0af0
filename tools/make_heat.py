#!/usr/bin/env python3
"""Points of a rod for models/pinn.mt: heat/train.npz and heat/test.npz with `at`, time and place from 0 to 1, and `temperature`.

That is the solution of u_t = 0.1 u_xx from u = sin(pi x) between ends that stay at 0: exp(-0.1 pi^2 t) sin(pi x).
"""

import argparse
from pathlib import Path

import numpy as np


def points(count, random):
    at = random.random((count, 2)).astype(np.float32)
    t, x = at.T.astype(np.float64)
    return {"at": at, "temperature": (np.exp(-0.1 * np.pi**2 * t) * np.sin(np.pi * x)).astype(np.float32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=4096, help="points to train with (%(default)s); for the test a quarter of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("heat"), metavar="FOLDER")
    args = parser.parse_args()
    if args.count < 4:
        parser.error(f"--count {args.count}: 4 or more, a quarter of them for the test")
    random = np.random.default_rng(args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", args.count), ("test", args.count // 4)):
        np.savez(args.output / f"{part}.npz", **points(count, random))


if __name__ == "__main__":
    main()
