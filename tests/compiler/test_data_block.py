"""The data block: what the tables of the generated program say about sources, splits and columns."""

import re
import subprocess

import pytest

from conftest import ROOT

REST = """\
model {
  y = linear(flatten(x), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
"""


@pytest.fixture
def tables(mtc, tmp_path):
    """tables(data, *flags, top): the text of the tables of a model with that data block."""

    def run(data, *flags, top=""):
        path = tmp_path / "model.mt"
        path.write_text(f"{top}data {{\n{data}\n}}\n{REST}")
        done = mtc("--emit=c", *flags, path.name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def rows(text, table):
    """The rows of a table, each on one line."""
    body = re.search(rf"{table}\[\] = {{\n(.*?)^}};", text, re.M | re.S)[1]
    return [re.sub(r"\s+", " ", row).strip(" ,") for row in re.split(r"^    (?={)", body, flags=re.M)[1:]]


def members(text, table):
    """Each row of a table, a member and its value."""
    return [dict(re.findall(r"\.(\w+) = ('[^ ]+'|[^{},]+)", row)) for row in rows(text, table)]


def columns_of(text, field):
    row = next(row for row in rows(text, "field_table") if f'.name = "{field}"' in row)
    found = re.search(r"\.columns = {(.*?)}", row)
    return dict(re.findall(r"\.(\w+) = (\"[^\"]*\"|[^,]+)", found[1])) if found else None


def array(text, name):
    return re.findall(r'"([^"]*)"', re.search(rf"{name}\[\] = {{(.*?)}};", text, re.S)[1])


TSV = 'train = tsv("a.tsv")\n'
FIELDS = 'x : f32[2] = columns("a", "b")\nlabel : class[3]'


# ---- sources ----


@pytest.mark.parametrize(
    "source, expected",
    [
        ('tsv("a.tsv")', {"header": "true", "columns": "0", "separator": "'\\t'", "quote": "0"}),
        ('csv("a.csv")', {"header": "true", "columns": "0", "separator": "','", "quote": "'\"'"}),
        ('tsv("a", columns = ["a", "_", "b", "label"])', {"header": "false", "columns": "4"}),
        ('tsv("a", columns = ["a", "b", "label"], header = true)', {"header": "true", "columns": "3"}),
        ('csv("a", separator = ";", quote = "\'")', {"separator": "';'", "quote": "'\\''"}),
        ('csv("a", separator = "\\t", quote = "")', {"separator": "'\\t'", "quote": "0"}),
        ('tsv(path = "a", separator = " ")', {"separator": "' '"}),
    ],
)
def test_text_source(tables, source, expected):
    origin = members(tables(f"train = {source}\n{FIELDS}"), "origin_table")[0]
    assert {key: origin[key] for key in expected} == expected


@pytest.mark.parametrize("source, paths", [('npz("a.npz")', 1), ('npy("a.npy", "b.npy")', 2), ('idx("a", "b")', 2)])
def test_array_source(tables, source, paths):
    text = tables(f"train = {source}\nx : u8[2, 2]\nlabel : class[3]")
    assert members(text, "origin_table")[0]["paths"] == str(paths)
    assert columns_of(text, "x") is None


def test_rows(tables):
    text = tables("train = table([[1, -2, 0], [3e2, 1 / 4, classes - 1]])\nx : f32[2]\nlabel : class[3]", "--set", "classes=3",
                  top="param classes = 2\n")
    numbers = re.search(r"double example_rows\[\] = {(.*?)};", text, re.S)[1]
    assert [float(number) for number in numbers.replace("\n", "").rstrip(" ,").split(",")] == [1, -2, 0, 300, 0.25, 2]
    assert members(text, "origin_table")[0]["rows"] == "2"


def test_many_rows(tables):
    """A table of the size that somebody may paste is read in no time."""
    data = ",\n".join(f"[{i}, -{i}, {i % 3}]" for i in range(20000))
    text = tables(f"train = table([{data}])\nx : f32[2]\nlabel : class[3]")
    assert members(text, "origin_table")[0]["rows"] == "20000"


# ---- splits ----


@pytest.mark.parametrize(
    "data, expected",
    [
        ("split = 80 / 20", [("train", 0, 0.8), ("test", 0.8, 1)]),
        ("split = 3 / 1", [("train", 0, 0.75), ("test", 0.75, 1)]),
        ("split = 80 / 10 / 10", [("train", 0, 0.8), ("validation", 0.8, 0.9), ("test", 0.9, 1)]),
        ("split = 1 / 1 / 1", [("train", 0, 1 / 3), ("validation", 1 / 3, 2 / 3), ("test", 2 / 3, 1)]),
        ("split = (1 / 2) / 0.5", [("train", 0, 0.5), ("test", 0.5, 1)]),
        ("split = 90 / 10\ntest = tsv(\"t\")", [("train", 0, 0.9), ("validation", 0.9, 1), ("test", 0, 1)]),
        ("split = 90 / 10\nvalidation = tsv(\"t\")", [("train", 0, 0.9), ("test", 0.9, 1), ("validation", 0, 1)]),
    ],
)
def test_split(tables, data, expected):
    text = tables(f'examples = tsv("a.tsv")\n{data}\n{FIELDS}')
    found = re.findall(r'\.name = "(\w+)", \.origin = (\d), \.from = (\S+), \.to = ([^}]+)', text)
    assert [name for name, *_ in found] == [name for name, *_ in expected]
    assert [origin for _, origin, *_ in found] == [str(int("t\")" in data and k == 2)) for k in range(len(found))]
    for (_, _, *part), (_, *wanted) in zip(found, expected):
        assert [float(number) for number in part] == pytest.approx(wanted, abs=1e-15)
    assert float(found[-1][3]) == 1


@pytest.mark.parametrize("split, said", [
    ("0.7 / 0.15", ["add up to 0.85", "the first is 82.4% of the examples", "three sets are split = 0.7 / 0.15 / 0.15, two split = 0.7 / 0.3"]),
    ("0.9 / 0.2", ["add up to 1.1", "the first is 81.8%"]),
    ("0.7 / 0.15 / 0.15", []),
    ("0.5 / 1.5", []),
])
def test_fractions_that_are_not_of_1_are_warned_of(mtc, tmp_path, split, said):
    (tmp_path / "m.mt").write_text(f'data {{\nexamples = tsv("a.tsv")\nsplit = {split}\n{FIELDS}\n}}\n{REST}')
    done = mtc("--emit=graph", "m.mt", cwd=tmp_path)
    assert done.returncode == 0 and ("warning" in done.stderr) == bool(said), done.stderr
    assert all(text in done.stderr for text in said), done.stderr


def test_split_by_a_param(tables):
    text = tables(f'examples = tsv("a.tsv")\nsplit = (100 - share) / share\n{FIELDS}', "--set", "share=25",
                  top="param share = 10\n")
    assert '{.name = "test", .origin = 0, .from = 0.75, .to = 1}' in text


# ---- columns ----


def test_default_column(tables):
    text = tables(TSV + FIELDS)
    assert array(text, "x_columns") == ["a", "b"]
    assert array(text, "label_columns") == ["label"]
    assert columns_of(text, "label") == {"count": "1", "name": "label_columns"}


@pytest.mark.parametrize(
    "field, expected",
    [
        ('f32 = column("c")', {}),
        ('f32[1] = column("c", missing = "skip")', {"missing": "MTC_MISSING_SKIP"}),
        ('f32 = column("c", missing = "mean")', {"missing": "MTC_MISSING_MEAN"}),
        ('f32 = column("c", missing = -1.5)', {"missing": "MTC_MISSING_VALUE", "missing_value": "-1.5"}),
        ('u8 = column("c", missing = 2 ^ 8 - 1)', {"missing": "MTC_MISSING_VALUE", "missing_value": "255"}),
        ('class[3] = column("c", missing = "none")', {"missing": "MTC_MISSING_VALUE", "missing_text": '"none"'}),
        ('class[3] = column("c", missing = 2)', {"missing": "MTC_MISSING_VALUE", "missing_value": "2"}),
        ('class[3] = column("c", unseen = "other")', {"unseen_other": "true"}),
        ('class[3] = column("c", unseen = "error", missing = "error")', {}),
        ('f32 = month("c")', {"part": "MTC_PART_MONTH", "date_format": '"%Y-%m-%d"'}),
        ('u8 = month("c", format = "%d.%m.%Y")', {"part": "MTC_PART_MONTH", "date_format": '"%d.%m.%Y"'}),
        ('class[7] = weekday("c")', {"part": "MTC_PART_WEEKDAY", "date_format": '"%Y-%m-%d"'}),
        ('i32 = day_of_year("c", missing = 1)', {"part": "MTC_PART_DAY_OF_YEAR", "date_format": '"%Y-%m-%d"',
                                                 "missing": "MTC_MISSING_VALUE", "missing_value": "1"}),
    ],
)
def test_column(tables, field, expected):
    text = tables(f"{TSV}{FIELDS}\nz : {field}")
    assert array(text, "z_columns") == ["c"]
    assert columns_of(text, "z") == {"count": "1", "name": "z_columns", **expected}


def test_columns_of_an_image(tables):
    names = [f"p{i}" for i in range(64)]
    quoted = ", ".join(f'"{name}"' for name in names)
    text = tables(f"{TSV}x : u8[8, 8] = columns({quoted})\nlabel : class[3]")
    assert array(text, "x_columns") == names
    assert columns_of(text, "x")["count"] == "64"


# ---- the program ----


def test_as_many_fields_as_a_program_can_have(tables, tmp_path):
    text = tables(TSV + FIELDS + "".join(f"\nz{i} : f32" for i in range(62)))
    assert len(rows(text, "field_table")) == 64
    source = tmp_path / "program.c"
    source.write_text(text)
    subprocess.run(["cc", "-fsyntax-only", f"-I{ROOT}/runtime", f"-I{ROOT}/kernels_lib", source], check=True)


def test_names_of_tables_are_no_names_of_values(mtc, tmp_path):
    """Values that are called like the tables do not collide with them."""
    model = tmp_path / "model.mt"
    model.write_text(f"""data {{
{TSV}{FIELDS}
}}
model {{
  x_columns = linear(x, 300)
  paths     = linear(relu(x_columns), 300)
  field_table = softmax(linear(relu(paths), 3))
}}
train {{
  loss      = -log(mean(field_table))
  predict   = field_table
  optimizer = sgd(0.1)
}}
""")
    done = mtc("--emit=c", model)
    assert done.returncode == 0, done.stderr
    source = tmp_path / "program.c"
    source.write_text(done.stdout)
    subprocess.run(["cc", "-fsyntax-only", f"-I{ROOT}/runtime", f"-I{ROOT}/kernels_lib", source], check=True)


def test_what_a_model_may_name_has_a_source():
    """The compiler's table of sources and the runtime's name the same formats, and each source is in the file that its row says."""
    compiler = (ROOT / "compiler/front/data_calls.c").read_text()
    written = set(re.findall(r'\.format = "(\w+)"', compiler)) | {"bytes", "pieces"}  # which are text(..., level = byte), or bpe
    rows_of = re.findall(r"^SOURCE\((\w+)\) +/\* (\w+\.c) \*/$", (ROOT / "runtime/data/sources.def").read_text(), re.M)
    assert written == {name for name, _ in rows_of} and len(rows_of) == len(written) == 12
    for name, file in rows_of:
        assert f"const MtcSource mtc_source_{name} = " in (ROOT / "runtime/data" / file).read_text()


def test_windows_of_rows(tables):
    """Fields lie one behind the other in a window, unless they say where; its parts are cut in order without being told."""
    text = tables(
        'examples = csv("load.csv", stride = 3)\nsplit = 80 / 20\n'
        'x : f32[8, 2] = columns("load", "wind")\nz : f32[4] = column("load")\nlabel : class[3]\nday : f32[12] = weekday("date", from = 0)'
    )
    found = [(row.get("steps"), row.get("from", "0")) for row in members(text, "field_table")]
    assert found == [("8", "0"), ("4", "8"), ("1", "12"), ("12", "0")]
    assert members(text, "origin_table")[0]["stride"] == "3"
    assert all(row["in_order"] == "true" for row in members(text, "split_table"))
