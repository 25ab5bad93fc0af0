#!/usr/bin/env python3
"""Predicts the total of a sale from Python: a table that the model reads itself, and the same from arrays.

    examples/sales.py [--rows N] [--epochs N] [--target cpu|cuda] [--data sales.tsv]

The table is tab-separated; without --data, tools/make_sales.py invents one of N rows. Both trainings print their mean
absolute error over rows that were not trained on, beside the error of always answering with the mean.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import mtc

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models" / "sales.mt"
DATE, QUANTITY, PRICE, CATEGORY, TOTAL = 2, 4, 5, 6, 8  # columns of the table

# What nobody has bought yet: a category, how many at which price, and the day in the year.
NEW_ROWS = [("Rice", 4, 195.00, 340), ("Coffee", 1, 1299.00, 30), ("Fruit", 12, 227.95, 120)]


def make_table(folder, rows):
    path = folder / "sales.tsv"
    script = ROOT / "tools" / "make_sales.py"
    subprocess.run([sys.executable, script, "--rows", str(rows), "--output", path], check=True)
    return path


def show(about, history):
    """The last epoch's error over the rows that were left out, and that of the mean."""
    error, baseline = history["val_mae"][-1], history["val_baseline"][-1]
    print(f"{about}: mean absolute error {error:.2f}, {error / baseline:.0%} of the mean's {baseline:.2f}; "
          f"{history.seconds:.1f} s")


def show_predictions(model, classes=None):
    """classes: of the words, where the model has not learned them from its own table."""
    words, quantity, price, day = zip(*NEW_ROWS)
    totals = model.predict({
        "numbers": np.array([quantity, price], np.float32).T,
        "category": [classes[word] for word in words] if classes else words,
        "day": np.array(day, np.float32)})
    for row, total in zip(NEW_ROWS, np.ravel(totals)):
        print("  {0}, {1} x {2:.2f} on day {3}".format(*row).ljust(44) + f"{total:10.2f}")


def train_from_file(args, table):
    """The model says how the table is read, what words mean, and which fifth of the rows is left out."""
    model = mtc.compile(MODEL, target=args.target)
    show("From the file", model.fit(data=table.parent, epochs=args.epochs))
    show_predictions(model)


def read_arrays(table):
    """The fields of the model, [rows, ...] each, the totals, and the class that each word became."""
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()]
    column = list(zip(*rows))
    words, category = np.unique(column[CATEGORY], return_inverse=True)
    date = np.array(column[DATE], "datetime64[D]")
    fields = {
        "numbers": np.array([column[QUANTITY], column[PRICE]], np.float32).T,
        "category": category.astype(np.uint8),
        "day": (date - date.astype("datetime64[Y]")).astype(np.float32) + 1}
    return fields, np.array(column[TOTAL], np.float32), {word: number for number, word in enumerate(words)}


def train_from_arrays(args, table):
    fields, total, classes = read_arrays(table)
    order = np.random.default_rng(1).permutation(len(total))
    test, train = np.split(order, [len(order) // 5])

    def rows(which):
        return {name: values[which] for name, values in fields.items()}, total[which]

    model = mtc.compile(MODEL, target=args.target)
    show("From arrays", model.fit(*rows(train), epochs=args.epochs, validation_data=rows(test)))
    show_predictions(model, classes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50000, help="of the invented table (%(default)s)")
    parser.add_argument("--epochs", type=int, default=50, help="(%(default)s)")
    parser.add_argument("--target", choices=["cpu", "cuda"], help="a GPU where there is one, unless given")
    parser.add_argument("--data", type=Path, help="a table called sales.tsv")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = args.data or make_table(Path(folder), args.rows)
        train_from_file(args, table)
        train_from_arrays(args, table)


if __name__ == "__main__":
    main()
