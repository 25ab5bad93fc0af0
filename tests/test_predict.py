"""Predictions of a program that was trained on a table, or on rows of its model file, and what its checkpoint says of words."""

import random

import numpy as np
import pytest

ROWS_MODEL = """data {
  train = table([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
  x : f32[2]
  y : f32[1]
}
model { p = linear(x, 1) }
train {
  loss      = mse(p, y)
  optimizer = sgd(0.1)
  batch     = 4
  epochs    = 1
}
"""
MODEL = """data {
  examples = tsv("t.tsv", columns = ["x", "town", "kind"])
  split    = 70 / 30
  x    : f32[1] = column("x", missing = "mean")
  town : class[40]
  kind : class[2]
}
model { logits = linear(concat([x, one_hot(town, 40)], axis = 0), 2) }
train {
  loss      = cross_entropy(logits, kind)
  metric    = [accuracy(logits, kind)]
  predict   = PREDICT
  optimizer = adam(0.01)
  batch     = 16
  epochs    = 2
}
"""
TOWNS = [f"town {i}" for i in range(30)] + ["Ör"]
USAGE, BAD_DATA = 64, 65


@pytest.fixture(scope="module", params=["logits", "softmax(logits)"])
def trained(request, compile_model, tmp_path_factory):
    folder, numbers = tmp_path_factory.mktemp("trained"), random.Random(1)
    rows = [(f"{numbers.gauss(0, 1):.3f}" if i % 37 else "", TOWNS[i % 31], numbers.choice(["no", "yes"])) for i in range(310)]
    (folder / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    program = compile_model(MODEL.replace("PREDICT", request.param))
    program("--data", folder, "--save", folder / "w.safetensors", cwd=folder)
    return program, folder


def predict(trained, content, *flags, check=True):
    program, folder = trained
    (folder / "new.tsv").write_text(content)
    return program("predict", "--data", folder, "--load", "w.safetensors", "--input", "new.tsv", *flags, cwd=folder, check=check)


def test_rows_that_are_left_out_keep_their_place(trained):
    good = predict(trained, "1.0\ttown 1\n-2\tÖr\n").stdout.splitlines()
    content = "abc\ttown 1\n1.0\ttown 1\n1\tmiddle\n\n-2\tÖr\n3\n"
    done = predict(trained, content, "--bad-rows", "skip")
    lines, head = done.stdout.splitlines(), len(good) - 2
    assert lines[:head] == good[:head] and lines[head + 1] == good[head] and lines[head + 4] == good[head + 1]
    assert [lines[head + i] for i in (0, 2, 3, 5)] == ["nan\tnan"] * 4 and len(lines) == head + 6
    assert "4 bad rows were left out" in done.stderr
    predict(trained, content, "--bad-rows", "skip", "--output", "out.npy")
    values = np.load(trained[1] / "out.npy")
    assert values.shape == (6, 2) and np.isnan(values).all(axis=1).tolist() == [True, False, True, True, False, True]
    assert predict(trained, content, "--bad-rows", "skip").stdout == done.stdout  # a kept table would not know


def test_split_and_input(trained):
    done = predict(trained, "1\ttown 1\n", "--split", "test", check=False)
    assert done.returncode == USAGE and "which?" in done.stderr


def test_info_lists_the_words(trained):
    program, folder = trained
    text = program("info", "w.safetensors", cwd=folder).stdout
    lines = text[text.index("learned from the training data"):text.index("\ntensors")].splitlines()
    assert lines[1].split()[0] == "x" and "where missing: " in lines[1] and lines[-1].split() == ["kind", "0", "no,", "1", "yes"]
    words = " ".join(line.strip() for line in lines[2:-1])
    assert words == "town " + " " * 16 + ", ".join(f"{k} {word}" for k, word in enumerate(sorted(TOWNS)))
    assert max(map(len, lines)) <= 101 and len(lines) > 5 and all(line.startswith(" " * 23) for line in lines[3:-1])
    assert "mtc.encoding" not in text


def test_info_names_the_parts(trained):
    text = trained[0]("info").stdout
    assert "tsv: t.tsv, 70%\n" in text and "tsv: t.tsv, 30%\n" in text


def test_classes_that_a_checkpoint_has_too_many_of(trained, compile_model):
    done = compile_model(MODEL.replace("PREDICT", "logits").replace("40", "20"))("--resume", trained[1] / "w.safetensors", check=False)
    assert done.returncode == BAD_DATA and "'town: class[31]' has room for them" in done.stderr


def test_the_best_weights_are_named(trained):
    program, folder = trained
    lines = program("--data", folder, "--save", "v.safetensors", "--monitor", "accuracy", cwd=folder).stdout.splitlines()
    assert lines[-2] == "weights saved to v.safetensors" and lines[-1].startswith("best accuracy 0.")
    assert lines[-1].endswith(": v-best.safetensors") and " after step " in lines[-1]


@pytest.mark.parametrize("separator", ["\t", ","])
def test_rows_for_a_model_with_rows_in_its_text(separator, compile_model, tmp_path):
    program, rows = compile_model(ROWS_MODEL), [["0", "1", "7"], ["1", "1", "7"]]
    program("--save", "w", cwd=tmp_path)
    expected = program("predict", "--load", "w", "--split", "train", cwd=tmp_path).stdout.splitlines()
    for columns in (2, 3):  # what the prediction does not depend on may be missing
        (tmp_path / "rows").write_text("".join(separator.join(row[:columns]) + "\n" for row in rows))
        done = program("predict", "--load", "w", "--input", "rows", cwd=tmp_path)
        assert done.stdout.splitlines() == [expected[1], expected[3]]
    (tmp_path / "rows").write_text(f"0{separator}1\n1{separator}b\n")
    done = program("predict", "--load", "w", "--input", "rows", cwd=tmp_path, check=False)
    assert done.returncode == BAD_DATA and "rows:2:3: expected a number in column 'x[1]', found 'b'" in done.stderr


def test_rows_that_the_model_skips_keep_their_place(compile_model, tmp_path):
    table = 'train = tsv("t.tsv", columns = ["a", "y"])\n  x : f32[1] = column("a", missing = "skip")\n'
    program = compile_model(f"data {{\n  {table}  y : f32[1]\n}}{ROWS_MODEL.partition('}')[2]}")
    (tmp_path / "t.tsv").write_text("1\t2\n2\t4\n")
    program("--data", tmp_path, "--save", "w", cwd=tmp_path)
    (tmp_path / "new").write_text("\n1\nNA\n2\n")
    whole = program("predict", "--data", tmp_path, "--load", "w", "--split", "train", cwd=tmp_path).stdout.splitlines()
    done = program("predict", "--data", tmp_path, "--load", "w", "--input", "new", cwd=tmp_path).stdout.splitlines()
    assert done == ["nan", whole[0], "nan", whole[1]]
