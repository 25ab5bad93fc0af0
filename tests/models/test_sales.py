"""models/sales.mt on the table of tools/make_sales.py, and models/xor.mt, on the CPU target: from the file to predictions."""

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

pytestmark = pytest.mark.quick

SALES, XOR = ROOT / "models/sales.mt", ROOT / "models/xor.mt"
COLUMNS = ["product", "code", "date", "timestamp", "quantity", "unit_price", "category", "user", "total_price", "id"]


def make_sales(path, *flags):
    subprocess.run([sys.executable, ROOT / "tools/make_sales.py", "--output", path, *map(str, flags)], check=True,
                   capture_output=True)
    return path.read_bytes()


@pytest.fixture(scope="module")
def sales(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sales")
    make_sales(folder / "sales.tsv", "--rows", 20000)
    return folder


TRAIN = ["--epochs", 20, "--lr", 0.003]


def epochs(shown):
    return [measures(line) for line in shown.splitlines() if line.startswith("epoch")]


def measures(line):
    """The numbers of a printed epoch: of training, then of the test data."""
    return [{name: float(value) for name, value in re.findall(r"(\w+) +([-+]?\d[-\d.e+]*)", part)} for part in line.split("|")[:2]]


def test_the_table_is_as_described(sales, tmp_path):
    content = (sales / "sales.tsv").read_bytes()
    assert make_sales(tmp_path / "again.tsv", "--rows", 20000) == content
    assert make_sales(tmp_path / "other.tsv", "--rows", 20000, "--seed", 2) != content
    rows = [line.split("\t") for line in content.decode().splitlines()]
    assert len(rows) == 20000 and {len(row) for row in rows} == {len(COLUMNS)}
    column = dict(zip(COLUMNS, zip(*rows)))
    assert rows[0] == ["Ruby Viet Rice 5 % Broken 22.5Kg", "TY00015", "2022-04-01", "2022-05-08 20:54:08.797", "1.0", "195.0", "Rice",
                       "ADMIN", "195.0", "2"]
    assert len(set(column["category"])) == 16 and column["id"] == tuple(map(str, range(2, 20002)))
    assert "%" in "".join(column["product"]) and any(not name.isascii() and " " in name for name in column["user"])
    assert list(column["date"]) == sorted(column["date"]) and all(re.fullmatch(r"[\d-]{10} [\d:]{8}\.\d{3}", time) for time in column["timestamp"])
    assert len(set(zip(column["product"], column["code"]))) == len(set(column["code"])) == len(set(column["product"]))
    price = np.array(column["unit_price"], float)
    assert price.mean() > 1.5 * np.median(price)


@pytest.fixture(scope="module")
def trained(compile_model, sales):
    program = compile_model(SALES)
    shown = program("--data", sales, *TRAIN, "--save", sales / "w.safetensors").stdout
    return program, shown


def test_features_beat_the_mean_and_each_other(trained, compile_model, sales):
    every = epochs(trained[1])[-1][1]
    two = epochs(compile_model(SALES, "--set", "features=2")("--data", sales, *TRAIN).stdout)[-1][1]
    assert every["mae"] < 0.8 * two["mae"] < 0.4 * two["baseline"]


def test_threads_and_cache_do_not_change_the_training(trained, sales):
    program, shown = trained
    for flags in (["--no-cache"], []):
        again = program("--data", sales, *TRAIN, *flags, threads=1).stdout
        assert epochs(again) == epochs(shown)


def test_eval_has_the_rows_that_were_not_trained_on(trained, sales):
    program, shown = trained
    done = program("eval", "--data", sales, "--load", sales / "w.safetensors").stdout
    assert done.startswith("test: 4000 examples")
    assert measures(done)[0]["mae"] == pytest.approx(epochs(shown)[-1][1]["mae"], rel=1e-4)


def test_predict_takes_raw_rows(trained, sales, tmp_path):
    program, _ = trained
    lines = (sales / "sales.tsv").read_text().splitlines()[:300]
    load = ["predict", "--load", sales / "w.safetensors", "--input"]
    (tmp_path / "whole.tsv").write_text("\n".join(lines))
    (tmp_path / "short.tsv").write_text("\n".join("\t".join(line.split("\t")[:8]) for line in lines))
    whole = program(*load, tmp_path / "whole.tsv").stdout
    assert program(*load, tmp_path / "short.tsv").stdout == whole
    total = np.array([line.split("\t")[8] for line in lines], float)
    assert np.abs(np.array(whole.split(), float) - total).mean() < 0.4 * np.abs(total - total.mean()).mean()


def test_bad_rows(trained, tmp_path):
    program, _ = trained
    make_sales(tmp_path / "sales.tsv", "--rows", 3000, "--broken", 10)
    done = program("--data", tmp_path, "--epochs", 1, check=False)
    first = re.search(r"sales.tsv:(\d+):\d+: .*", done.stderr)
    assert done.returncode == 65 and first and "--bad-rows skip" in done.stderr
    for _ in range(2):  # read, then kept
        done = program("--data", tmp_path, "--epochs", 1, "--bad-rows", "skip")
        assert "warning: 10 bad rows were left out; the first: " in done.stderr and first[0] in done.stderr
    assert program("--data", tmp_path, "--bad-rows", "ignore", check=False).returncode == 64


WORDS = """
data {
  examples = csv("t.csv")
  split    = 75 / 25
  x        : f32[2] = columns("a", "b")
  kind     : class[3]
}
model {
  scores = linear(x, 3)
}
train {
  loss      = cross_entropy(scores, kind)
  metric    = accuracy(scores, kind)
  optimizer = adam(0.1)
  batch     = 16
  epochs    = 30
}
"""


def test_predictions_are_words(compile_model, tmp_path):
    rng = np.random.default_rng(0)
    centre = {"süß": (3, 0), "sour, very": (-3, 0), "salty": (0, 4)}
    rows = [(rng.normal(x), rng.normal(y), word) for _ in range(100) for word, (x, y) in centre.items()]
    text = "\n".join(f'{a:.4f},{b:.4f},"{word}"' for a, b, word in rows)
    (tmp_path / "t.csv").write_text(f"a,b,kind\n{text}\n")
    (tmp_path / "new.csv").write_text("b,a\n" + "".join(f"{y},{x}\n" for x, y in centre.values()))
    program = compile_model(WORDS)
    program("--data", tmp_path, "--save", tmp_path / "w.safetensors")
    done = program("predict", "--load", tmp_path / "w.safetensors", "--input", tmp_path / "new.csv").stdout.splitlines()
    assert done[0] == "class\tprobability"
    assert [line.split("\t")[0] for line in done[1:]] == list(centre)


def test_a_test_table_of_its_own(compile_model, tmp_path):
    """It is read with the words of the training table."""
    model = WORDS.replace('examples = csv("t.csv")', 'train = csv("t.csv")').replace("split    = 75 / 25", 'test = csv("u.csv")')
    program = compile_model(model)
    (tmp_path / "t.csv").write_text("a,b,kind\n" + "".join(f"{i % 2},1,{'no' if i % 2 else 'yes'}\n" for i in range(200)))
    (tmp_path / "u.csv").write_text("kind,b,a\nyes,1,0\nyes,1,0\nno,1,1\n")
    shown = program("--data", tmp_path).stdout
    assert epochs(shown)[-1][1]["accuracy"] == 1
    (tmp_path / "u.csv").write_text("kind,b,a\nyes,1,0\nperhaps,1,0\n")
    done = program("--data", tmp_path, check=False)
    assert done.returncode == 65
    assert "u.csv:3:1: the training data have no 'perhaps' in column 'kind'\n  it has 'no', 'yes';" in done.stderr


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_xor(seed, compile_model, tmp_path):
    program = compile_model(XOR)
    shown = program("--seed", seed, "--save", tmp_path / "w.safetensors").stdout
    losses = [of_training["loss"] for of_training, _ in epochs(shown)]
    assert losses[-1] < 0.01 < losses[0] and losses[-1] < losses[-2]
    done = program("predict", "--load", tmp_path / "w.safetensors", "--split", "train").stdout.split()
    assert [round(float(value)) for value in done] == [0, 1, 1, 0]
    assert "  train            rows: 4 in the model file\n" in program("info").stdout


IN_ORDER = """
data {
  examples = SOURCE
  split    = 60 / 20 / 20 in order
  x        : f32[1]
  y        : f32[1]
}
model {
  out = linear(x, 1)
}
train {
  loss      = mse(out, y)
  predict   = x
  optimizer = sgd(0)
}
"""


@pytest.mark.parametrize("source", ['csv("t.csv")', "table([" + ", ".join(f"[{i}, 0]" for i in range(10)) + "])"])
def test_a_split_in_order(source, compile_model, tmp_path):
    """The first train, the last are the test, whatever the seed."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},0\n" for i in range(10)))
    program = compile_model(IN_ORDER.replace("SOURCE", source))
    program("--data", tmp_path, "--epochs", 1, "--save", tmp_path / "w.safetensors", "--seed", 5, "--log", tmp_path / "l.jsonl")
    rows = [program("predict", "--data", tmp_path, "--load", tmp_path / "w.safetensors", "--split", split).stdout.split()
            for split in ("train", "validation", "test")]
    assert [list(map(int, part)) for part in rows] == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    assert "60% in order" in program("info").stdout
    assert '"part":[0,0.6],"in_order":true' in (tmp_path / "l.jsonl").read_text()
