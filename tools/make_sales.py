#!/usr/bin/env python3
"""Writes a table of invented sales, tab-separated and without a header: data to train models/sales.mt on.

Columns: order, date, customer, country, product, category, quantity, unit_price, payment, total_price. The total is the
quantity times the unit price, times a factor of the category and the day of the year (seasons, and sales before a holiday),
times a factor for large quantities, with noise: each column that models/sales.mt uses helps to predict it.
"""

import argparse
from pathlib import Path

import numpy as np

FIRST_DAY, DAYS = np.datetime64("2022-01-01"), 1004  # to 2024-09-30

# category: share of orders, median price, spread of its logarithm, factor of the total, swing over the year, day of its peak
CATEGORIES = {
    "Groceries": (0.19, 4.2, 0.55, 1.05, 0.05, 350), "Clothing": (0.14, 31, 0.55, 0.72, 0.25, 20),
    "Books": (0.11, 14, 0.40, 1.00, 0.08, 345), "Electronics": (0.10, 95, 0.65, 1.19, 0.15, 335),
    "Home & Kitchen": (0.09, 38, 0.65, 0.92, 0.10, 330), "Toys": (0.07, 21, 0.55, 0.85, 0.30, 345),
    "Sports": (0.06, 44, 0.60, 0.88, 0.25, 150), "Beauty": (0.05, 17, 0.50, 1.10, 0.08, 40),
    "Garden": (0.045, 28, 0.65, 0.80, 0.35, 120), "Shoes": (0.04, 62, 0.45, 0.68, 0.20, 270),
    "Office": (0.03, 12, 0.60, 1.20, 0.06, 245), "Pets": (0.025, 19, 0.55, 1.08, 0.04, 180),
    "Music": (0.02, 16, 0.60, 1.15, 0.10, 340), "Tools": (0.015, 73, 0.65, 1.25, 0.12, 110),
    "Café": (0.01, 9.5, 0.35, 1.30, 0.10, 10), "Jewellery": (0.005, 160, 0.75, 1.45, 0.25, 44),
}
COUNTRIES = {
    "Germany": 0.17, "France": 0.13, "United Kingdom": 0.12, "España": 0.09, "Italy": 0.08, "Österreich": 0.06, "Polska": 0.06,
    "Netherlands": 0.05, "Sverige": 0.05, "Türkiye": 0.05, "日本": 0.04, "Brasil": 0.04, "Česko": 0.03, "Côte d'Ivoire": 0.03,
}
PAYMENTS = {"card": 0.52, "invoice": 0.21, "transfer": 0.13, "cash on delivery": 0.08, "voucher -5%": 0.06}
FIRST_NAMES = """Anna Björn Chloé Dmitri Elif François Grace Hiroshi Inés Jörg Katarzyna Léa Mohammed Noémie Ólafur Priya
Quentin Renée Søren Tomáš Ursula Věra William Xiao Yusuf Zoë""".split()
LAST_NAMES = """Andersen Bianchi Çelik Dubois Eriksson Fernández García Hoffmann Ivanova Jansen Kowalski Lefèvre Müller Novák
O'Brien Petrov Quiroga Rossi Schäfer Tanaka Ünal Visser Weiß Yıldız Żukowski""".split() + ["van der Berg", "de la Cruz"]
ADJECTIVES = """Classic Deluxe Compact Organic Vintage Modern Eco Premium Junior XL Crème Señorial Ångström""".split()
SUFFIXES = ["", " 100% cotton", " (pack of 6)", " -20%", " No. 5", " 3 in 1", " “Limited”", " 75% cacao", " ½ litre"]


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


def names(*parts):
    """Every combination of the parts, as an array of text."""
    result = [""]
    for part in parts:
        result = [before + word for before in result for word in part]
    return np.array(result)


def make(rows, seed):
    random = np.random.default_rng(seed)
    day = draw_days(random, rows)
    date = FIRST_DAY + day
    of_year = (date - date.astype("datetime64[Y]")).astype(int) + 1
    traits = np.array([values[1:] for values in CATEGORIES.values()])
    category = draw(random, {name: values[0] for name, values in CATEGORIES.items()}, rows)
    median, spread, level, swing, peak = traits[category].T
    price = np.round(np.maximum(0.05, median * np.exp(spread * random.standard_normal(rows))), 2)
    quantity = np.minimum(1 + random.geometric(np.clip(0.35 + 0.08 * np.log(median), 0.3, 0.8)) - 1, 60)
    season = 1 + swing * np.cos(2 * np.pi * (of_year - peak) / 365.25)
    rebate = np.where(quantity >= 10, 0.88, 1.0)
    total = np.round(quantity * price * level * season * rebate * np.exp(0.03 * random.standard_normal(rows)), 2)

    customers = names(FIRST_NAMES, [" "], LAST_NAMES)
    products = names(ADJECTIVES, [" "], [name.split()[0] for name in CATEGORIES], SUFFIXES).reshape(
        len(ADJECTIVES), len(CATEGORIES), len(SUFFIXES))
    product = products[random.integers(len(ADJECTIVES), size=rows), category, random.integers(len(SUFFIXES), size=rows)]
    return [
        np.char.add("SO-", np.char.zfill((np.arange(rows) + 100000).astype(str), 7)), date.astype(str),
        customers[random.integers(len(customers), size=rows)], np.array(list(COUNTRIES))[draw(random, COUNTRIES, rows)],
        product, np.array(list(CATEGORIES))[category], quantity.astype(str), np.char.mod("%.2f", price),
        np.array(list(PAYMENTS))[draw(random, PAYMENTS, rows)], np.char.mod("%.2f", total)]


def broken_lines(line, count, seed):
    """`count` lines made wrong, each in one of five ways, in turn."""
    random = np.random.default_rng([seed, 1])
    for number, at in enumerate(sorted(random.choice(len(line), min(count, len(line)), replace=False))):
        fields = line[at].split(b"\t")
        way = number % 5
        if way == 0:
            fields = fields[:-1]
        elif way == 1:
            fields[6] = b"several"
        elif way == 2:
            fields[1] = b"2023-02-30"
        elif way == 3:
            fields[2] = b"J\xf6rg"  # Latin-1
        else:
            fields[9] = b""
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
