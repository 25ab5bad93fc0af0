"""Tables: read as Python's csv module reads them, on any number of threads and chunks; refused where a row is wrong; kept
beside their file; divided into data sets; their words and dates made fields."""

import csv
import datetime
import gzip
import io
import os
import random
import re
import struct
import subprocess

import numpy as np
import pytest

from conftest import ROOT
from runtime_library import SANITIZERS, build_program

BAD_DATA, NO_INPUT, USAGE = 65, 66, 64
def build_table_program(folder, *sources):
    return build_program(folder / "table", [ROOT / "tests/runtime/table.c", ROOT / "tests/runtime/changing_file.c", *sources],
                         "-Wl,--wrap=pread", library_flags=SANITIZERS)


@pytest.fixture(scope="session")
def table_program(tmp_path_factory):
    return build_table_program(tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="session")
def portable_program(tmp_path_factory):
    """Without AVX2, on any processor: with its own objects of what uses it."""
    return build_table_program(tmp_path_factory.mktemp("portable"), "-DMTC_PORTABLE", ROOT / "runtime/data/table_scan.c",
                               ROOT / "runtime/data/table_utf8.c")


class Table:
    """Reads content as a table with the arguments of tests/runtime/table.c."""

    def __init__(self, program, folder):
        self.program, self.file = program, folder / "t.tsv"
        self.environment = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], "MTC_TABLE_KEPT_FROM": "0"}

    def run(self, content, *args, separator="\t", quote="", names="a,b", chunk=None, threads=2):
        if content is not None:
            self.file.write_bytes(content if isinstance(content, bytes) else content.encode())
        environment = {**self.environment, "OMP_NUM_THREADS": str(threads)}
        if chunk:
            environment["MTC_TABLE_CHUNK"] = str(chunk)
        return subprocess.run([self.program, "t.tsv", separator, quote, names, *args], cwd=self.file.parent, env=environment,
                              capture_output=True, timeout=60)

    def cells(self, content, *args, **options):
        done = self.run(content, *args, **options)
        assert done.returncode == 0, done.stderr.decode()
        width = sum(not arg.startswith("--") for arg in args)
        cells = done.stdout.decode().split("\0")[:-1]
        return [cells[i:i + width] for i in range(0, len(cells), width)]

    def error(self, content, *args, code=BAD_DATA, **options):
        done = self.run(content, *args, **options)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr.decode().splitlines()[0]


@pytest.fixture
def table(table_program, tmp_path):
    return Table(table_program, tmp_path)


@pytest.fixture(params=["table_program", "portable_program"], ids=["avx2", "portable"])
def either_table(request, tmp_path):
    return Table(request.getfixturevalue(request.param), tmp_path)


def words(rows):
    """As the program prints words: the code in the order of bytes, and the word."""
    columns = [sorted({row[c] for row in rows if row[c]}, key=str.encode) for c in range(len(rows[0]))]
    return [[f"{columns[c].index(word)}={word}" if word else "-" for c, word in enumerate(row)] for row in rows]


# ---- against Python's csv module ----

LETTERS = ["a", "b", "7", " ", "é", "日", "€", "x" * 70, "'", "%"]


@pytest.mark.parametrize("seed", range(24))
def test_words_as_the_csv_module_reads_them(seed, table):
    rng = random.Random(seed)
    letters = LETTERS + [",", '"', "\n", "\r\n", '""', "\t"] * (1 if seed % 3 else 0)
    width = rng.randrange(2, 6)
    rows = [["".join(rng.choice(letters) for _ in range(rng.choice([0, 1, 1, 2, 3, 9]))) for _ in range(width)]
            for _ in range(rng.randrange(1, 60))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=rng.choice(["\n", "\r\n"]),
                        quoting=csv.QUOTE_ALL if seed % 4 == 1 else csv.QUOTE_MINIMAL)
    writer.writerows(rows)
    text = text.getvalue()
    content = rng.choice([text, text.rstrip("\r\n"), text + "\n\n", "\ufeff" + text])
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows
    names = ",".join(f"c{i}" for i in range(width))
    expected = words(rows)
    for chunk in (1, rng.randrange(2, 40), rng.randrange(40, 400), None):
        got = table.cells(content, *(f"W:c{i}" for i in range(width)), separator=",", quote='"', names=names, chunk=chunk,
                          threads=rng.randrange(1, 5))
        assert got == expected, f"chunk {chunk}"


def test_quotes_inside_a_field_are_text(table):
    got = table.cells('5" pipe,a "b" c\n"x ""y""",z"\n', "w:a", "w:b", separator=",", quote='"', chunk=1)
    assert got == words([['5" pipe', 'a "b" c'], ['x "y"', 'z"']])


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_any_length(seed, either_table):
    """Rows and fields lie across the borders of the pieces in which breaks are found."""
    rng = random.Random(seed)
    rows = [["é" * rng.choice([0, 1, 2, 30, 700, 2000]) + rng.choice("abc"), rng.choice("xyz") * rng.choice([1, 50, 3000])]
            for _ in range(300)]
    text = "".join(f"{a}\t{b}" + rng.choice(["\n", "\r\n"]) for a, b in rows)
    assert either_table.cells(text, "w:a", "w:b", chunk=rng.choice([None, 100, 9999])) == words(rows)


def is_text(row):
    try:
        row.decode()
    except UnicodeDecodeError:
        return False
    return 0 not in row


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_are_not_utf8_are_bad(seed, either_table):
    rng = random.Random(seed)
    characters = "aé\u07ff\u0800日\ud7ff\ue000\uffff\U00010000\U0010ffff"
    pieces = [bytes([first, second]) + rest for first in (0xC0, 0xC1, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xF5, 0xFF)
              for second in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0) for rest in (b"", b"\x80", b"\x80\xbf")]
    pieces += [bytes([byte]) for byte in (0, 0x7F, 0x80, 0xBF, 0xC2, 0xE1, 0xF1)]
    rows = []
    for piece in pieces:
        row = "".join(rng.choice(characters) for _ in range(rng.choice([2, 40, 150]))).encode()
        at = rng.choice([0, len(row), rng.randrange(len(row))])
        rows.append(row[:at] + piece + row[at:])
    got = either_table.cells(b"".join(row + b"\tx\n" for row in rows) + b"last\tx\n", "w:a", "--skip")
    assert [word.partition("=")[2] for word, in got] == [row.decode() for row in rows if is_text(row)] + ["last"]


def test_no_quotes_in_tsv(table):
    assert table.cells('"a\tb"\n"\t"\n', "w:a", "w:b") == words([['"a', 'b"'], ['"', '"']])


@pytest.mark.parametrize("seed", range(4))
def test_numbers_are_correctly_rounded(seed, table):
    rng = random.Random(seed)

    def number():
        form = rng.randrange(6)
        digits = "".join(rng.choice("0123456789") for _ in range(rng.choice([1, 2, 5, 15, 17, 19, 20, 25, 40])))
        if form == 0:
            return str(rng.randrange(-1000, 1000))
        if form == 1:
            return f"{rng.uniform(-1e4, 1e4):.{rng.randrange(9)}f}"
        if form == 2:
            return rng.choice(["-", "+", ""]) + digits[:19] + rng.choice(["", ".", ".5"])
        if form == 3:
            return "0." + digits
        if form == 4:
            return f"{digits[:12]}{rng.choice('eE')}{rng.choice(['-', '+', ''])}{rng.randrange(26)}"
        return " " * rng.randrange(3) + "." + digits + " "

    texts = [number() for _ in range(3000)]
    got = table.cells("".join(f"{text}\tx\n" for text in texts), "n:a", chunk=rng.randrange(50, 5000))
    for text, (cell,) in zip(texts, got, strict=True):
        assert float.fromhex(cell) == struct.unpack("f", struct.pack("f", float(text)))[0], text


def test_short_numbers_are_correctly_rounded(tmp_path):
    """All that have a point: their floats are made by a product that is near the quotient."""
    program = tmp_path / "short_numbers"
    subprocess.run(["cc", "-std=c11", "-D_XOPEN_SOURCE=700", "-O2", f"-I{ROOT}/runtime", f"-I{ROOT}/kernels_lib",
                    ROOT / "tests/runtime/short_numbers.c", ROOT / "runtime/data/table_number.c", ROOT / "runtime/base/common.c", "-o",
                    program, "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("seed", range(4))
def test_what_a_short_number_is(seed, table):
    rng = random.Random(seed)
    texts = ["".join(rng.choice("00123456789..-+e ") for _ in range(rng.randrange(1, 11))) for _ in range(5000)]
    number = re.compile(r" *[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)? *")
    with np.errstate(over="ignore"):
        good = [text for text in texts if number.fullmatch(text) and np.isfinite(np.float32(float(text)))]
    got = table.cells("".join(f"{text}\t{text}x\n" for text in texts), "n:a", "w:b", "--skip")
    assert [word.partition("=")[2] for _, word in got] == [text + "x" for text in good]
    assert [float.fromhex(cell) for cell, _ in got] == [np.float32(float(text)) for text in good]


def test_missing_numbers(table):
    got = table.cells("1\tx\n\tx\nNA\tx\nnan\tx\nNULL\tx\n  \tx\n", "N:a")
    assert [np.isnan(float.fromhex(cell)) for cell, in got] == [False] + [True] * 5


def test_dates_as_datetime_has_them(table):
    days = [datetime.date(1, 1, 1) + datetime.timedelta(n) for n in range(0, 3652058, 997)]
    days += [datetime.date(y, 2, 29) for y in (1904, 2000, 2024)] + [datetime.date(1900, 12, 31), datetime.date(1970, 1, 1)]
    got = table.cells("".join(f"{day}{rest}\tx\n" for day, rest in zip(days, ["", " 12:30", "T09:00:00Z"] * len(days))), "d:a")
    assert [int(cell) for cell, in got] == [(day - datetime.date(1970, 1, 1)).days for day in days]


@pytest.mark.parametrize("date", ["2023-02-29", "1900-02-29", "2023-13-01", "2023-00-10", "2023-04-31", "0000-01-01"])
def test_no_such_day(date, table):
    assert table.error(f"{date}\tx\n", "d:a") == f"t.tsv:1:1: no such day in column 'a': '{date}'"


def test_header_names_the_columns(table):
    content = "\ufeffb\tunused\ta\r\n1\t2\t3\r\n"
    assert table.cells(content, "n:a", "n:b", "--header", names="") == [["0x1.8p+1", "0x1p+0"]]
    assert table.cells(content, "n:a", "--header", names="b,_,a") == [["0x1.8p+1"]]


def test_gzip(table):
    assert table.cells(gzip.compress(b"1\tx\n2\ty\n" * 50000), "n:a", "w:b", chunk=1000)[-1] == ["0x1p+1", "1=y"]


def test_longest_word(table):
    word = "x" * 4096
    assert table.cells(f"{word}\ty\n", "w:a") == [[f"0={word}"]]


# ---- bad rows ----

LONG = "7" * 10_000_000
BAD = {
    "too few columns": ("1\tx\n2\n", ["n:a"], "t.tsv:2:1: the row has 1 column, expected 2"),
    "too many columns": ("1\tx\n1\t2\t3\n", ["n:a"], "t.tsv:2:1: the row has 3 columns, expected 2"),
    "blank line": ("1\tx\n\n2\ty\n", ["n:a"], "t.tsv:2:1: the row has 1 column, expected 2"),
    "no number": ("é\t1\né\tabc\n", ["n:b"], "t.tsv:2:3: expected a number in column 'b', found 'abc'"),
    "yes": ("1\tx\nYes\tx\n", ["n:a"],
            "t.tsv:2:1: expected a number in column 'a', found 'Yes'; words like that are of a field class[2]"),
    "hexadecimal": ("0x10\tx\n", ["n:a"], "t.tsv:1:1: expected a number in column 'a', found '0x10'"),
    "infinite": ("inf\tx\n", ["n:a"], "t.tsv:1:1: expected a number in column 'a', found 'inf'"),
    "power without digits": ("1e\tx\n", ["n:a"], "t.tsv:1:1: expected a number in column 'a', found '1e'"),
    "comma": ("1,5\tx\n", ["n:a"], "t.tsv:1:1: expected a number in column 'a', found '1,5'"),
    "too large": ("1\tx\n-1e39\tx\n", ["n:a"], "t.tsv:2:1: the number in column 'a' is too large for f32: '-1e39'"),
    "far too large": ("1e999999999999\tx\n", ["n:a"],
                      "t.tsv:1:1: the number in column 'a' is too large for f32: '1e999999999999'"),
    "no whole number": ("1.5\tx\n", ["i:a"], "t.tsv:1:1: expected a whole number in column 'a', found '1.5'"),
    "out of range": ("256\tx\n", ["i:a"], "t.tsv:1:1: expected 0 to 255 in column 'a', found '256'"),
    "empty number": ("1\tx\n\tx\n", ["n:a"],
                     "t.tsv:2:1: column 'a' is empty; missing = ... in the model says what to do"),
    "a word for no value": ("1\tx\nNaN\tx\n", ["n:a"],
                            "t.tsv:2:1: column 'a' has 'NaN', no value; missing = ... in the model says what to do"),
    "empty word": ("x\ty\nx\t\n", ["w:b"], "t.tsv:2:3: column 'b' is empty; missing = ... in the model says what to do"),
    "no date": ("2020-1\tx\n", ["d:a"], "t.tsv:1:1: expected a date as %Y-%m-%d in column 'a', found '2020-1'"),
    "date and more": ("2020-01-01x\tx\n", ["d:a"],
                      "t.tsv:1:1: expected a date as %Y-%m-%d in column 'a', found '2020-01-01x'"),
    "not UTF-8": (b"1\tx\n2\tJ\xf6rg\n", ["n:a"], "t.tsv:2:4: expected text in UTF-8, found the byte 0xf6"),
    "surrogate": (b"1\t\xed\xa0\x80\n", ["n:a"], "t.tsv:1:3: expected text in UTF-8, found the byte 0xed"),
    "written too long": (b"1\t\xc0\xaf\n", ["n:a"], "t.tsv:1:3: expected text in UTF-8, found the byte 0xc0"),
    "half a character": (b"1\tab\xe2\x82\n", ["n:a"], "t.tsv:1:5: expected text in UTF-8, found the byte 0xe2"),
    "as long as is shown": ("x\t" + "é" * 22, ["n:b"], f"t.tsv:1:3: expected a number in column 'b', found '{'é' * 22}'"),
    "a byte longer": ("x\t" + "é" * 22 + "x", ["n:b"],
                      f"t.tsv:1:3: expected a number in column 'b', found '{'é' * 22}...'"),
    "ends at a page": ("x\t1\n" * 1012 + "xx\t1\nx\t" + "z" * 41, ["n:b"],
                       f"t.tsv:1014:3: expected a number in column 'b', found '{'z' * 41}'"),
    "NUL": (b"1\tx\n2\tab\0c\n", ["n:a"], "t.tsv:2:5: expected text in UTF-8, found the byte 0x00"),
    "first in the file": ("1\tx\n" * 500 + "a\tx\n" + "1\tx\n" * 500 + "b\tx\n", ["n:a"],
                          "t.tsv:501:1: expected a number in column 'a', found 'a'"),
    "long line of digits": (f"{LONG}\tx\n", ["n:a"],
                            f"t.tsv:1:1: the number in column 'a' is too large for f32: '{LONG[:44]}...'"),
    "long line of letters": ("é" * 5_000_000 + "\n", ["n:a"], "t.tsv:1:1: the row has 1 column, expected 2"),
    "a byte too long": ("x" * 4097 + "\ty\n", ["w:a"],
                        f"t.tsv:1:1: the word in column 'a' is longer than 4096 bytes: '{'x' * 44}...'"),
    "long word": ("x" * 5000 + "\ty\n", ["w:a"],
                  f"t.tsv:1:1: the word in column 'a' is longer than 4096 bytes: '{'x' * 44}...'"),
    "long line of separators": ("\t" * 2_000_000 + "\n", ["n:a"], "t.tsv:1:1: the row has 2000001 columns, expected 2"),
    "empty file": ("", ["n:a"], "t.tsv: is empty"),
    "only line ends": ("\r\n\n", ["n:a"], "t.tsv: is empty"),
    "only a byte order mark": ("\ufeff", ["n:a"], "t.tsv: is empty"),
}


@pytest.mark.parametrize("chunk,threads", [(None, 2), (3, 4)])
@pytest.mark.parametrize("case", BAD)
def test_bad_row(case, chunk, threads, table):
    content, wanted, message = BAD[case]
    assert table.error(content, *wanted, chunk=chunk, threads=threads) == message


BAD_QUOTES = {
    "never closed": ('1,x\n2,"abc\n3,y\n', '2:3: the quote that begins here is never closed'),
    "never closed, at the end": ('1,x\n2,"', '2:3: the quote that begins here is never closed'),
    "text after it": ('1,"x"y\n', "1:6: expected a separator or the end of the line after the closing quote"),
    "closed by the next": ('1,"abc\n2,"x"\n',
                           "2:4: expected a separator or the end of the line after the closing quote"),
}


@pytest.mark.parametrize("chunk", [1, 5, None])
@pytest.mark.parametrize("case", BAD_QUOTES)
def test_bad_quote(case, chunk, table):
    content, message = BAD_QUOTES[case]
    assert table.error(content, "w:b", separator=",", quote='"', chunk=chunk) == f"t.tsv:{message}"


BAD_HEADERS = {
    "header only": ("a\tb\n", "", "t.tsv: has a header, but no rows"),
    "no such column": ("aa\tc\n1\t2\n", "", "t.tsv:1: no column is called 'a'; did you mean 'aa'?"),
    "a name twice": ("a\tb\ta\n1\t2\t3\n", "", "t.tsv:1: columns 1 and 3 are both called 'a'"),
    "other names": ("a\tc\n1\t2\n", "a,b", "t.tsv:1: column 2 is called 'c', expected 'b'"),
    "more names": ("a\tb\tc\n1\t2\t3\n", "a,b", "t.tsv:1: the header has 3 columns, expected 2"),
    "long names": ("é" * 3_000_000 + "\tb\n1\t2\n", "", "t.tsv:1: no column is called 'a'"),
    "no line of names": ("1\t2\n3\t4\n", "", "t.tsv:1: no column is called 'a': the line has numbers, and no names"),
    "another name": ("b\tc\n1\t2\n", "", "t.tsv:1: no column is called 'a'"),
    "space in a name": (" b\t a\n1\t2\n", "", "t.tsv:1: no column is called 'a'; did you mean ' a'?"),
    "in capitals": ("B\tA\n1\t2\n", "", "t.tsv:1: no column is called 'a'; did you mean 'A'?"),
    "not UTF-8": (b"a\tb\xff\n1\t2\n", "", "t.tsv:1:4: expected text in UTF-8, found the byte 0xff"),
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_bad_header(case, table):
    content, names, message = BAD_HEADERS[case]
    assert table.error(content, "n:a", "--header", names=names) == message


def advice(table, content, *args, **options):
    return table.run(content, *args, **options).stderr.decode().splitlines()[1:]


def test_header_where_there_should_be_none(table):
    hint = "  the first line looks like a header, and the model says that there is none: header = true"
    for first, expected in (("a\tb", True), ("size\tday", True), ("a1\tb", False), ("3\tb", False), ("\tx", False), ("a", False)):
        lines = advice(table, f"{first}\n1\t2\n", "n:a", "n:b")
        assert (hint in lines) == expected, first


def test_another_separator(table):
    hint = '  the first line is one column; are the columns separated by "{0}"? separator = "{0}"'
    for separator, shown in ((";", ";"), (",", ","), ("\t", "\\t")):
        other = "\t" if separator != "\t" else ","
        content = f"a{separator}b\n1{separator}2\n"
        for flags in ([], ["--header"]):
            assert hint.format(shown) in advice(table, content, "n:a", "n:b", *flags, separator=other), separator
    assert not any("separated" in line for line in advice(table, "a;b\tc\n", "n:a", "n:b"))


def test_the_longest_word(table):
    """4,096 bytes, also with a quote in them that is written twice."""
    word = "x" * 4095 + "y"
    assert table.cells(f"{word}\tq\nb\tq\n", "w:a") == [["1=" + word], ["0=b"]]
    assert table.error(f"{word}z\tq\nb\tq\n", "w:a").startswith("t.tsv:1:1: the word in column 'a' is longer than 4096 bytes")


def test_bad_rows_are_left_out_and_counted(table):
    content = b"1\tx\nbad\tx\n2\tx\n3\n4\t\xff\n5\ty\n"
    for chunk in (1, 7, None):
        done = table.run(content, "n:a", "w:b", "--skip", chunk=chunk)
        assert done.stdout.decode().split("\0")[:-1] == ["0x1p+0", "0=x", "0x1p+1", "0=x", "0x1.4p+2", "1=y"]
        first, place = done.stderr.decode().splitlines()
        assert first == "3 bad; t.tsv:2:1: expected a number in column 'a', found 'bad'"
        assert place == "t.tsv:6:3: "
    assert table.error(b"a\tx\nb\tx\n", "n:a", "--skip").startswith("t.tsv: all 2 rows are bad; the first: t.tsv:1:1: ")


def test_missing_file(table):
    assert table.error(None, "n:a", code=NO_INPUT) == "t.tsv: cannot open: No such file or directory"


@pytest.mark.parametrize("size, message", [
    (0, "t.tsv: cannot read: it was cut short while it was read"),
    (2999, "t.tsv: cannot read: it was cut short while it was read"),
    (3001, "t.tsv: was changed while it was read")])
def test_file_that_changes_while_it_is_read(size, message, table):
    table.environment |= {"CHANGED_FILE": "t.tsv", "CHANGED_SIZE": str(size)}
    assert table.error("1\t2\n" * 750, "n:a", "--cache", code=NO_INPUT) == message
    assert not kept(table).exists()


# ---- kept tables ----

CONTENT = "".join(f"{i}\tw{i * i % 7}\n" for i in range(1000))
WANTED = ["n:a", "w:b"]


def kept(table):
    return table.file.parent / ".t.tsv.mtc-cache"


def test_a_kept_table_is_the_same(table):
    expected = table.cells(CONTENT, *WANTED)
    assert not kept(table).exists()
    assert table.cells(CONTENT, *WANTED, "--cache", chunk=100) == expected
    before = kept(table).read_bytes()
    assert table.cells(CONTENT, *WANTED, "--cache") == expected
    assert kept(table).read_bytes() == before


def test_small_tables_are_not_kept(table):
    del table.environment["MTC_TABLE_KEPT_FROM"]
    table.cells("1\tx\n" * 5, *WANTED, "--cache")
    assert [path.name for path in table.file.parent.iterdir() if path.is_file()] == ["t.tsv"]
    table.cells("1\tx\n" * (1 << 18), *WANTED, "--cache")
    assert kept(table).exists()


def test_a_kept_table_is_used(table):
    """One whose words are other ones, with a checksum that is right, cannot be told from a good one."""
    table.cells(CONTENT, *WANTED, "--cache")
    stat = kept(table).stat()
    table.cells(None, *WANTED, "--cache")
    assert kept(table).stat().st_mtime_ns == stat.st_mtime_ns and kept(table).stat().st_ino == stat.st_ino


def test_another_file_or_other_columns_are_read_anew(table):
    table.cells(CONTENT, *WANTED, "--cache")
    changed = CONTENT.replace("500\tw", "501\tw", 1)
    assert len(changed) == len(CONTENT)
    assert table.cells(changed, *WANTED, "--cache") == table.cells(changed, *WANTED)
    assert table.cells(changed, "w:a", "--cache") == table.cells(changed, "w:a")
    assert table.cells(changed, "N:a", "--cache") == table.cells(changed, "N:a")


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "longer", "header"])
def test_a_damaged_kept_table_is_not_used(damage, table):
    expected = table.cells(CONTENT, *WANTED, "--cache")
    good = kept(table).read_bytes()
    rng = random.Random(damage)
    for _ in range(12):
        at = rng.randrange(len(good) if damage != "header" else 120)
        bad = {"flip": good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1:], "cut": good[:at], "empty": b"",
               "longer": good + b"\0" * 8, "header": good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:]}[damage]
        kept(table).write_bytes(bad)
        assert table.cells(None, *WANTED, "--cache") == expected
    assert kept(table).read_bytes()[:24] == good[:24]


def test_bad_rows_of_a_kept_table(table):
    content = CONTENT + "bad\tx\n"
    assert table.error(content, *WANTED, "--cache").startswith("t.tsv:1001:1: ")
    assert not kept(table).exists()
    first = table.run(content, *WANTED, "--cache", "--skip")
    assert kept(table).exists()
    again = table.run(content, *WANTED, "--cache", "--skip")
    assert (again.stdout, again.stderr) == (first.stdout, first.stderr)
    assert b"1 bad; t.tsv:1001:1: expected a number in column 'a', found 'bad'" in again.stderr
    assert table.error(content, *WANTED, "--cache").startswith("t.tsv:1001:1: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(table):
    folder = table.file.parent
    expected = table.cells(CONTENT, *WANTED)
    (folder / "home").mkdir()
    folder.chmod(0o555)
    try:
        assert table.cells(None, *WANTED, "--cache") == expected
        assert [path.name.split(".")[0] for path in (folder / "home/.cache/mtc").iterdir()] == ["t"]
        assert table.cells(None, *WANTED, "--cache") == expected
    finally:
        folder.chmod(0o755)


def test_folder_that_cannot_be_written(table):
    """A folder of the cache's name stands in the way, and home is a file: no cache, and no fault."""
    kept(table).mkdir()
    (table.file.parent / "home").write_text("")
    assert table.cells(CONTENT, *WANTED, "--cache") == table.cells(CONTENT, *WANTED)


def test_cache_in_the_users_folder(table):
    kept(table).mkdir()
    expected = table.cells(CONTENT, *WANTED, "--cache")
    (path,) = (table.file.parent / "home/.cache/mtc").iterdir()
    inode = path.stat().st_ino
    assert table.cells(None, *WANTED, "--cache") == expected and path.stat().st_ino == inode


# ---- data sets ----

@pytest.fixture(scope="session")
def splits_program(tmp_path_factory):
    program = tmp_path_factory.mktemp("splits") / "splits"
    return build_program(program, [ROOT / "tests/runtime/splits.c"], library_flags=SANITIZERS)


@pytest.fixture
def read(splits_program, tmp_path):
    """read(content or None, format, names, *arguments): rows of each data set, as lists of numbers per field; and notes."""

    def run(content, names, *args, format="tsv", code=0, paths="t.tsv"):
        if content is not None:
            (tmp_path / "t.tsv").write_text(content)
        done = subprocess.run([splits_program, format, paths, names, *map(str, args)], cwd=tmp_path, capture_output=True,
                              text=True, timeout=60, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
        assert done.returncode == code, done.stdout + done.stderr
        if code:
            return done.stderr.splitlines()
        sets = {}
        for line in done.stdout.splitlines():
            name, *fields = [part.split() for part in line.split("|")[:-1]]
            sets.setdefault(name[0], []).append([float(number) for field in fields for number in field])
        return sets, done.stderr.splitlines()

    read_run = run
    read_run.folder = tmp_path
    return read_run


X = "x:f32:0:value:error:x"
PARTS = ("--", "train:0:0.6", "validation:0.6:0.8", "test:0.8:1")


def test_a_format_without_a_source(read):
    assert read("1\n", "x", X, *PARTS, format="sound", code=70) == ["there is no source of examples 'sound'"]


def numbered(count):
    return "".join(f"{i}\t{'abc'[i % 3]}\n" for i in range(count))


@pytest.mark.parametrize("count", [5, 37, 1000])
def test_parts_are_disjoint_complete_and_in_order(count, read):
    sets, _ = read(numbered(count), "x,w", X, "--seed", 3, *PARTS)
    parts = {name: [row[0] for row in rows] for name, rows in sets.items()}
    assert sorted(sum(parts.values(), [])) == list(range(count))
    assert all(part == sorted(part) for part in parts.values())
    assert [len(parts[name]) for name in ("train", "validation", "test")] == [
        round(0.6 * count), round(0.8 * count) - round(0.6 * count), count - round(0.8 * count)]
    assert read(None, "x,w", X, "--seed", 3, *PARTS)[0] == sets
    if count > 5:
        assert read(None, "x,w", X, "--seed", 4, *PARTS)[0] != sets


def test_all_of_an_origin_in_its_order(read):
    assert [row[0] for row in read(numbered(50), "x,w", X, "--", "train:0:1")[0]["train"]] == list(range(50))


def test_part_without_rows(read):
    message = read("1\tx\n", "x,w", X, "--", "train:0:0.8", "test:0.8:1", code=BAD_DATA)
    assert message == ["t.tsv: 'test', 20% of 1 example, is empty"]


@pytest.mark.parametrize("format", ["npy", "npz", "npz compressed", "idx"])
def test_parts_of_arrays(format, read):
    from fake_data import idx_bytes

    x, label = np.arange(40, dtype="f4"), np.arange(40, dtype="u1") % 7
    fields = [X, "label:u8:7:value:error:label"]
    paths = "d.npz" if format.startswith("npz") else "x,label"
    if format == "npy":
        for name, array in (("x", x), ("label", label)):
            np.save(read.folder / name, array)
            (read.folder / f"{name}.npy").rename(read.folder / name)
    elif format == "idx":
        for name, array in (("x", x), ("label", label)):
            (read.folder / name).write_bytes(idx_bytes(array))
    else:
        (np.savez_compressed if "compressed" in format else np.savez)(read.folder / "d.npz", x=x, label=label, more=x)
    sets, _ = read(None, "", *fields, *PARTS, format=format.split()[0], paths=paths)
    assert sorted(sum(sets.values(), [])) == [[i, i % 7] for i in range(40)]
    assert sets.keys() == {"train", "validation", "test"}


def damaged_zips():
    text = io.BytesIO()
    np.savez_compressed(text, x=np.arange(4000, dtype="f4"))
    good = text.getvalue()
    middle = len(good) // 2
    entry, end = good.index(b"PK\1\2"), good.index(b"PK\5\6")
    wide = struct.pack("<HHQ", 1, 8, 2**64 - 100)  # a place of 64 bits
    far = good[:entry + 30] + struct.pack("<H", 12) + good[entry + 32:entry + 42] + b"\xff" * 4 + good[entry + 46:end] + wide
    return {
        "cut": (good[:-30], "its directory is missing"),
        "flipped": (good[:middle] + bytes([good[middle] ^ 4]) + good[middle + 1:], "damaged"),
        "directory": (good.replace(b"PK\1\2", b"PK\1\3"), "its directory is damaged"),
        "member": (good.replace(b"PK\3\4", b"PK\3\5", 1), "Not a zip"),
        "far": (far + good[end:], "a member is not where the directory says"),
        "place": (good[:-6] + b"\xff\xff\xff\x7f" + good[-2:], "its directory is damaged"),
    }


@pytest.mark.parametrize("case", ["cut", "flipped", "directory", "member", "far", "place"])
def test_damaged_npz(case, read):
    content, message = damaged_zips()[case]
    (read.folder / "d.npz").write_bytes(content)
    first = read(None, "", X, "--", "train:0:1", format="npz", paths="d.npz", code=BAD_DATA)[0]
    assert first.startswith("d.npz: ")
    assert message in first or case == "member"


def test_array_that_an_npz_lacks(read):
    np.savez(read.folder / "d.npz", y=np.zeros(3, "f4"), z=np.zeros(2))
    assert read(None, "", X, "--", "train:0:1", format="npz", paths="d.npz", code=BAD_DATA) == [
        "d.npz: has no array 'x.npy'", "  it holds y.npy, z.npy"]


# ---- words, dates, what is missing ----

WORD = "w:u8:4:value:error:w"


def test_words_become_classes_in_the_order_of_their_bytes(read):
    sets, notes = read("1\tzoo\n2\tÄpfel\n3\tApfel\n4\tzoo\n", "x,w", X, WORD, "--", "train:0:1")
    assert sets["train"] == [[1, 1], [2, 2], [3, 0], [4, 1]]
    assert notes[1:] == ["w 0 Apfel", "w 1 zoo", "w 2 Äpfel"]


def test_whole_numbers_are_labels_themselves(read):
    sets, notes = read("1\t3\n2\t0\n3\t 2\n4\t1.0\n", "x,w", X, WORD, "--", "train:0:1")
    assert [row[1] for row in sets["train"]] == [3, 0, 2, 1] and len(notes) == 1


def test_numbers_that_are_no_labels_are_words(read):
    sets, _ = read("1\t4\n2\t10\n3\t4\n", "x,w", X, WORD, "--", "train:0:1")
    assert [row[1] for row in sets["train"]] == [1, 0, 1]


def test_too_many_words(read):
    message = read("".join(f"1\tw{i}\n" for i in range(12)), "x,w", X, WORD, "--", "train:0:1", code=BAD_DATA)
    assert message == ["t.tsv: column 'w' has 12 different words in the training data; field 'w' is class[4]",
                       "  they are 'w0', 'w1', 'w10', 'w11', 'w2', 'w3', 'w4', 'w5', ...",
                       "  'w: class[12]' has room for them"]


def unseen_content(read, word="Äpfle"):
    """A table whose only row with that word is not in the training part."""
    test = read(numbered(20), "x,w", X, *PARTS)[0]["test"]
    at = int(test[0][0])
    rows = [["Birne", "Äpfel", "Zitrone"][i % 3] for i in range(20)]
    rows[at] = word
    return "".join(f"{i}\t{row}\n" for i, row in enumerate(rows)), at


def test_unseen_word(read):
    content, at = unseen_content(read)
    message = read(content, "x,w", X, WORD, *PARTS, code=BAD_DATA)
    place = f"t.tsv:{at + 1}:{len(str(at)) + 2}: "
    assert message == [f"{place}the training data have no 'Äpfle' in column 'w'; did you mean 'Äpfel'?",
                       "  it has 'Birne', 'Zitrone', 'Äpfel'; unseen = \"other\" in the model gives other words the last "
                       "class of 'w'", "  --bad-rows skip leaves out rows that are wrong"]
    sets, notes = read(content, "x,w", X, WORD, "--skip", *PARTS)
    assert at not in [row[0] for row in sets["test"]] and len(sets["test"]) == 3
    assert notes[0] == f"1 bad: {place}the training data have no 'Äpfle' in column 'w'; did you mean 'Äpfel'?"


def test_unseen_word_far_from_all_long_ones(read):
    content, _ = unseen_content(read, 300 * "x")
    message = read(content.replace("Birne", 70 * "y"), "x,w", X, WORD, *PARTS, code=BAD_DATA)
    assert message[0].endswith("' in column 'w'")


def test_unseen_word_as_the_last_class(read):
    content, at = unseen_content(read, "new")
    sets, _ = read(content, "x,w", X, "w:u8:4*:value:error:w", *PARTS)
    assert {row[1] for row in sets["test"] if row[0] == at} == {3}
    assert {row[1] for row in sets["train"]} <= {0, 1, 2}


def test_unseen_label(read):
    content, at = unseen_content(read, "9")
    content = content.replace("Birne", "0").replace("Äpfel", "1").replace("Zitrone", "2")
    message = read(content, "x,w", X, WORD, *PARTS, code=BAD_DATA)
    assert message[0].endswith("expected a label from 0 to 3 in column 'w', found '9'")


def test_dates(read):
    days = [datetime.date(2023, 1, 1) + datetime.timedelta(n) for n in range(0, 800)]
    fields = ["doy:f32:0:day:error:x", "month:i32:0:month:error:x", "weekday:u8:0:weekday:error:x", "d:i32:366:day:error:x",
              "m:u8:12:month:error:x", "w:u8:7:weekday:error:x"]
    sets, _ = read("".join(f"{day}\tw\n" for day in days), "x,w", *fields, "--", "train:0:1")
    for day, row in zip(days, sets["train"], strict=True):
        parts = [day.timetuple().tm_yday, day.month, day.isoweekday()]
        assert row == parts + [part - 1 for part in parts]


MISSING = "1\tb\n\ta\n4\t\nNA\tc\n"


@pytest.mark.parametrize("missing,expected", [("skip", [1, 4]), ("mean", [1, 2.5, 4, 2.5]), ("#7.5", [1, 7.5, 4, 7.5])])
def test_missing_number(missing, expected, read):
    sets, notes = read(MISSING, "x,w", f"x:f32:0:value:{missing}:x", "--", "train:0:1")
    assert [row[0] for row in sets["train"]] == expected
    assert notes[0] == "0 bad: " and (missing == "mean") == ("x mean 2.5" in notes)


@pytest.mark.parametrize("missing,expected", [("skip", [1, 0, 2]), ("=b", [1, 0, 1, 2]), ("=d", [1, 0, 3, 2])])
def test_missing_word(missing, expected, read):
    sets, _ = read(MISSING, "x,w", f"w:u8:4:value:{missing}:w", "--", "train:0:1")
    assert [row[0] for row in sets["train"]] == expected


def test_missing_label_and_date(read):
    sets, _ = read("2020-03-05\t1\n\t\n", "x,w", "m:u8:12:month:#4:x", "w:u8:4:value:#3:w", "--", "train:0:1")
    assert sets["train"] == [[2, 1], [4, 3]]


def test_mean_is_of_the_training_part(read):
    rows = ["5\tx"] * 20
    test = [int(row[0]) for row in read(numbered(20), "x,w", X, *PARTS)[0]["test"]]
    for at in test:
        rows[at] = "1000\tx"
    rows[test[0]] = "\tx"
    sets, _ = read("\n".join(rows), "x,w", "x:f32:0:value:mean:x", *PARTS)
    assert sets["test"] == [[5], [1000], [1000], [1000]]


def test_no_mean(read):
    message = read("\tx\n\ty\n", "x,w", "x:f32:0:value:mean:x", "--", "train:0:1", code=BAD_DATA)
    assert message == ["t.tsv: column 'x' is empty in all training data: there is no mean"]


def test_every_row_lacks_something(read):
    assert "each of its 2 rows lacks a value" in read("\tx\n\ty\n", "x,w", "x:f32:0:value:skip:x", "--", "train:0:1", code=BAD_DATA)[0]


# ---- examples to predict ----

PREDICTED = ("!" + X, WORD, "--input", "new", "--", "train:0:1")


def test_input_of_raw_rows(read):
    content = "1\tb\n2\ta\n"
    for new, expected in (("7\tb\n8\ta\n", [[7], [8]]), ("9\n", [[9]]), ("7\tunseen\n", [[7]])):
        (read.folder / "new").write_text(new)
        assert read(content, "x,w", *PREDICTED)[0]["input"] == expected


def test_input_with_a_header(read):
    content = "w,x\nb,1\na,2\n"
    for new, expected in (("x\n7\n8\n", [[7], [8]]), ("q,x,w\n1,2,c\n", [[2]])):
        (read.folder / "new").write_text(new)
        assert read(content, "", *PREDICTED, format="csv")[0]["input"] == expected
    (read.folder / "new").write_text("w\nb\n")
    assert read(content, "", *PREDICTED, format="csv", code=BAD_DATA)[0] == "new:1: no column is called 'x'"


def test_input_uses_the_vocabulary(read):
    (read.folder / "new").write_text("7\tb\n8\ta\n")
    arguments = (X, "!" + WORD, "--input", "new", "--", "train:0:1")
    assert read("1\tb\n2\ta\n", "x,w", *arguments)[0]["input"] == [[1], [0]]
    (read.folder / "new").write_text("7\tb\n8\tc\n")
    assert read("1\tb\n2\ta\n", "x,w", *arguments, code=BAD_DATA)[0].startswith(
        "new:2:3: the training data have no 'c' in column 'w'")


def test_input_lacking_columns(read):
    (read.folder / "new").write_text("7\n")
    message = read("1\tb\n", "x,w", X, "!" + WORD, "--input", "new", "--", "train:0:1", code=BAD_DATA)
    assert message == ["new:1: the row has 1 column, expected 2, or at least the first 2"]


def test_input_of_arrays(read):
    np.save(read.folder / "new.npy", np.float32([3, 4]))
    np.savez(read.folder / "new.npz", x=np.float32([5, 6]))
    for name, expected in (("new.npy", [[3], [4]]), ("new.npz", [[5], [6]])):
        arguments = [name if argument == "new" else argument for argument in PREDICTED]
        assert read("1\tb\n", "x,w", *arguments)[0]["input"] == expected
