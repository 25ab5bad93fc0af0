#!/usr/bin/env python3
"""Writes a table of invented sales, tab-separated and without a header: data to train models/sales.mt on.

Columns: product, code, date, timestamp, quantity, unit_price, category, user, total_price, id: a wholesaler's, in the order of
the dates; the timestamp is when somebody entered the sale. The total is the quantity times the unit price, times a factor of
the category and the day of the year (seasons, and sales before a holiday), times a factor for large quantities, with noise:
each column that models/sales.mt uses helps to predict it.
"""

import argparse
from pathlib import Path

import numpy as np

FIRST_DAY, DAYS = np.datetime64("2022-04-01"), 1004  # to 2024-12-29
FIRST_ROW = ("Ruby Viet Rice 5 % Broken 22.5Kg", "TY00015", "2022-04-01", "2022-05-08 20:54:08.797", "1.0", "195.0", "Rice",
             "ADMIN", "195.0", "2")
LATEST = 45  # days from a sale to its entry

# category: grade of its products, share of sales, median price, spread of its logarithm, factor of the total, swing over the
# year, day of its peak
CATEGORIES = {
    "Rice": ("5 % Broken", 0.19, 42, 0.55, 1.05, 0.05, 350), "Oil": ("100% Pure", 0.14, 310, 0.55, 0.72, 0.25, 20),
    "Flour": ("Type 550", 0.11, 140, 0.40, 1.00, 0.08, 345), "Coffee": ("100% Arabica", 0.10, 950, 0.65, 1.19, 0.15, 335),
    "Sugar": ("Fine", 0.09, 380, 0.65, 0.92, 0.10, 330), "Spices & Herbs": ("Ground", 0.07, 210, 0.55, 0.85, 0.30, 345),
    "Noodles": ("½ Cooked", 0.06, 440, 0.60, 0.88, 0.25, 150), "Tea": ("Loose", 0.05, 170, 0.50, 1.10, 0.08, 40),
    "Fruit": ("Grade A", 0.045, 280, 0.65, 0.80, 0.35, 120), "Fish": ("Frozen -18°", 0.04, 620, 0.45, 0.68, 0.20, 270),
    "Sauces": ("(pack of 6)", 0.03, 120, 0.60, 1.20, 0.06, 245), "Nuts": ("“Select”", 0.025, 190, 0.55, 1.08, 0.04, 180),
    "Milk": ("3.5 % Fat", 0.02, 160, 0.60, 1.15, 0.10, 340), "Cheese": ("45% Dry", 0.015, 730, 0.65, 1.25, 0.12, 110),
    "Crème": ("30% Fat", 0.01, 95, 0.35, 1.30, 0.10, 10), "Truffles": ("No. 1", 0.005, 1600, 0.75, 1.45, 0.25, 44),
}
BRANDS = ["Golden Field", "Ruby Viet", "Señorial", "Ångström & Son", "Côte d'Or", "Żuk", "日本米", "Premium", "O'Brien", "Österhof",
          "Eco Line", "Değirmen", "Três Irmãos"]
SIZES = ["250g", "500g", "1Kg", "2.5Kg", "10Kg", "22.5Kg", "25Kg", "¼ pallet", "pallet"]
USERS = {
    "ADMIN": 0.42, "SYSTEM": 0.17, "till 1": 0.1, "till 2": 0.08, "Björn Müller": 0.06, "Chloé Lefèvre": 0.05, "Zoë": 0.04,
    "Noémie O'Brien": 0.03, "Jörg": 0.02, "Tomáš Novák": 0.02, "import -5%": 0.01,
}


def draw(random, shares, rows):
    share = np.array(list(shares.values()))
    return random.choice(len(share), rows, p=share / share.sum())


def draw_days(random, rows):
    """More orders before the end of a year and on Saturdays, and some growth."""
    day = np.arange(DAYS)
    date = FIRST_DAY + day
    of_year = (date - date.astype("datetime64[Y]")).astype(int)
    weekday = (date.astype("datetime64[D]").astype(int) + 3) % 7
    weight = (1 + 0.6 * np.exp(-((of_year - 345) / 18.0) ** 2) + 0.25 * (weekday == 5)) * (1 + 0.3 * day / DAYS)
    return np.sort(random.choice(DAYS, rows, p=weight / weight.sum()))


def product_names():
    """[categories, brands x sizes]: Ruby Viet Rice 5 % Broken 22.5Kg. A product's code is its place in this order, from 1."""
    return np.array([[f"{brand} {category} {traits[0]} {size}" for brand in BRANDS for size in SIZES]
                     for category, traits in CATEGORIES.items()])


def entry_times(random, date):
    """2022-05-08 20:54:08.797: to the millisecond, some days after the sale."""
    after = random.integers(LATEST * 86_400_000, size=len(date))
    times = (date.astype("datetime64[ms]") + after).astype(str)
    return np.char.replace(times, "T", " ")


def make(rows, seed):
    """The columns, as text, in order."""
    random = np.random.default_rng(seed)
    day = draw_days(random, rows)
    date = FIRST_DAY + day
    of_year = (date - date.astype("datetime64[Y]")).astype(int) + 1
    traits = np.array([values[2:] for values in CATEGORIES.values()])
    category = draw(random, {name: values[1] for name, values in CATEGORIES.items()}, rows)
    median, spread, level, swing, peak = traits[category].T
    price = np.round(np.maximum(0.5, median * np.exp(spread * random.standard_normal(rows))), 2)
    quantity = np.minimum(random.geometric(np.clip(0.16 + 0.08 * np.log(median), 0.3, 0.8)), 60).astype(float)
    season = 1 + swing * np.cos(2 * np.pi * (of_year - peak) / 365.25)
    rebate = np.where(quantity >= 10, 0.88, 1.0)
    total = np.round(quantity * price * level * season * rebate * np.exp(0.03 * random.standard_normal(rows)), 2)

    names = product_names()
    product = random.integers(names.shape[1], size=rows)
    number = category * names.shape[1] + product + 1
    columns = [
        names[category, product], np.char.mod("TY%05d", number), date.astype(str), entry_times(random, date),
        quantity.astype(str), price.astype(str), np.array(list(CATEGORIES))[category],
        np.array(list(USERS))[draw(random, USERS, rows)], total.astype(str), np.arange(2, rows + 2).astype(str)]
    return [np.concatenate([[first], column[1:]]) for first, column in zip(FIRST_ROW, columns)]


def broken_lines(line, count, seed):
    """`count` lines made wrong, each in one of five ways, in turn."""
    random = np.random.default_rng([seed, 1])
    for number, at in enumerate(sorted(random.choice(len(line), min(count, len(line)), replace=False))):
        fields = line[at].split(b"\t")
        way = number % 5
        if way == 0:
            fields = fields[:-1]
        elif way == 1:
            fields[4] = b"several"
        elif way == 2:
            fields[2] = b"2023-02-30"
        elif way == 3:
            fields[7] = b"J\xf6rg"  # Latin-1
        else:
            fields[8] = b""
        line[at] = b"\t".join(fields)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=366000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", type=int, default=0, metavar="N", help="make N of the rows wrong")
    parser.add_argument("--output", type=Path, default=Path("sales.tsv"), help="(%(default)s)")
    args = parser.parse_args()
    line = ["\t".join(row).encode() for row in zip(*(column.tolist() for column in make(args.rows, args.seed)))]
    broken_lines(line, args.broken, args.seed)
    temporary = args.output.with_name(args.output.name + ".tmp")
    temporary.write_bytes(b"\n".join(line) + b"\n")
    temporary.replace(args.output)
    print(f"wrote {args.rows} rows to {args.output}, {min(args.broken, args.rows)} of them broken")


if __name__ == "__main__":
    main()
