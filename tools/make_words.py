#!/usr/bin/env python3
"""Pairs of neighbouring words for models/word2vec.mt: words/train.npz and words/test.npz with `word` and `near`.

The text is invented. Its 64 words are of eight kinds, 0 to 7, 8 to 15 and so on; what follows a word depends on its kind alone, and within a kind
some words are more frequent than others. So nothing but their neighbours says which words are of a kind.
"""

import argparse
from pathlib import Path

import numpy as np

KINDS, OF_A_KIND, FOLLOWERS = 8, 8, 2


def text(count, random, following):
    """`count` words, each of a kind that may follow the one before."""
    often = 1 / np.arange(1, OF_A_KIND + 1)
    kinds = [0]
    for choice in random.integers(0, FOLLOWERS, count - 1):
        kinds.append(following[kinds[-1], choice])
    return np.array(kinds) * OF_A_KIND + random.choice(OF_A_KIND, count, p=often / often.sum())


def pairs(words):
    """Each word with the one behind it, and with the one before."""
    return {"word": np.concatenate([words[:-1], words[1:]]).astype(np.int32),
            "near": np.concatenate([words[1:], words[:-1]]).astype(np.int32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20000, help="words to train with (%(default)s); for the test a tenth of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("words"), metavar="FOLDER")
    args = parser.parse_args()
    if args.count < 20:
        parser.error(f"--count {args.count}: 20 or more, a tenth of them for the test")
    random = np.random.default_rng(args.seed)
    following = np.array([random.choice(KINDS, FOLLOWERS, replace=False) for _ in range(KINDS)])
    args.output.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", args.count), ("test", args.count // 10)):
        np.savez(args.output / f"{part}.npz", **pairs(text(count, random, following)))


if __name__ == "__main__":
    main()
