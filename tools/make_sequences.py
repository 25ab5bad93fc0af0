#!/usr/bin/env python3
"""Invents sequences: names.npz for models/gru_names.mt, series.csv for models/lstm_forecast.mt.

names     words of 4 to 16 letters in five languages. A language is a table of which letter follows which; all languages
          have each letter equally often, so that only the order tells them apart.
series    a load that is measured every hour for some years: seasons of a day and of a week, a trend, and noise that lasts
          some hours: a row for each hour.
"""

import argparse
from pathlib import Path

import numpy as np

LETTERS, LANGUAGES, LONGEST = 26, 5, 16
PAST, NEXT, DAY = 72, 12, 24


def language(random):
    """[letter, letter that follows]: a few permutations, mixed, so that rows and columns add up to 1."""
    table = np.zeros((LETTERS, LETTERS))
    for weight in (0.4, 0.3, 0.2):
        table[np.arange(LETTERS), random.permutation(LETTERS)] += weight
    return table + 0.1 / LETTERS


def words(random, count):
    tables = [language(random) for _ in range(LANGUAGES)]
    kind, length = random.integers(0, LANGUAGES, count), random.integers(4, LONGEST + 1, count)
    letters = np.zeros((count, LONGEST), np.uint8)
    letters[:, 0] = random.integers(0, LETTERS, count)
    for at in range(1, LONGEST):
        reach = np.cumsum(np.stack([table[row] for table, row in zip([tables[k] for k in kind], letters[:, at - 1])]), axis=1)
        letters[:, at] = np.minimum((random.random((count, 1)) > reach).sum(1), LETTERS - 1)
    letters[np.arange(LONGEST) >= length[:, None]] = LETTERS  # nothing
    return {"letter": letters, "length": length.astype(np.uint8), "language": kind.astype(np.uint8)}


def load(random, hours):
    hour = np.arange(hours)
    day = np.sin(2 * np.pi * hour / DAY) + 0.4 * np.sin(4 * np.pi * hour / DAY + 1)
    week = 0.6 * (hour // DAY % 7 >= 5)
    noise, slow = random.normal(size=hours), np.zeros(hours)
    for at in range(1, hours):
        slow[at] = 0.95 * slow[at - 1] + 0.15 * noise[at]
    return 10 + 2 * day * (1 - week / 2) - 2 * week + hour / hours + slow


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["names", "series"])
    parser.add_argument("--count", type=int, default=20000, help="words, or hours (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("."), metavar="FOLDER")
    args = parser.parse_args()
    least = 5 * (PAST + NEXT) if args.what == "series" else 1  # a window of each part
    if args.count < least:
        parser.error(f"--count {args.count}: {args.what} needs {least} or more")
    random = np.random.default_rng(args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    if args.what == "names":
        np.savez(args.output / "names.npz", **words(random, args.count))
        return
    rows = "".join(f"{value:.9g}\n" for value in load(random, args.count).astype(np.float32))
    (args.output / "series.csv").write_text("load\n" + rows)


if __name__ == "__main__":
    main()
