"""Predictions of a program that was trained on a table, or on rows of its model file, and what its checkpoint says of words."""

import json
import random
import struct

import numpy as np
import pytest

pytestmark = pytest.mark.quick

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
    assert lines[-2] == "weights saved to v.safetensors" and lines[-1].startswith("best test accuracy 0.")
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


# ---- tables of predictions ----


@pytest.fixture(scope="module")
def classifier(compile_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    (folder / "t.tsv").write_text("".join(f"{i}\t{TOWNS[i % 31]}\t{'yes' if i % 3 else 'no'}\n" for i in range(620)))
    program = compile_model(MODEL.replace("  predict   = PREDICT\n", ""))
    program("--data", folder, "--save", folder / "w.safetensors", "--quiet", cwd=folder)
    return program, folder


def test_table_of_predictions(classifier):
    """The columns of the input, as text, then the class and all probabilities; rows that cannot be predicted keep their place."""
    trained = classifier
    content = "1.0\ttown 1\r\nabc\ttown 1\n-2\tÖr\n"
    shown = predict(trained, content, "--bad-rows", "skip").stdout.splitlines()[1:]
    for name, separator in ("p.csv", ","), ("p.TSV", "\t"):
        predict(trained, content, "--bad-rows", "skip", "--output", name)
        header, *rows = [line.split(separator) for line in (trained[1] / name).read_text().splitlines()]
        assert header == ["x", "town", "class", "p(no)", "p(yes)"]
        assert [row[:2] for row in rows] == [["1.0", "town 1"], ["abc", "town 1"], ["-2", "Ör"]]
        assert [row[2] for row in rows] == [line.split("\t")[0] for line in shown] and rows[1][2:] == ["nan"] * 3
        probabilities = [[float(p) for p in row[3:]] for row in (rows[0], rows[2])]
        assert np.allclose(np.sum(probabilities, 1), 1, atol=1e-6)
        assert [f"{max(row):.4g}" for row in probabilities] == [f"{float(shown[i].split(chr(9))[1]):.4g}" for i in (0, 2)]


def test_each_probability_has_a_name_of_its_own(compile_model, tmp_path):
    program = compile_model(MODEL.replace("  predict   = PREDICT\n", "").replace("class[2]", "class[5]").replace("40)], axis = 0), 2", "40)], axis = 0), 5"))
    (tmp_path / "t.tsv").write_text("".join(f"{i}\ta\t{'yes' if i % 3 else 'no'}\n" for i in range(60)))
    program("--data", tmp_path, "--save", "w", "--quiet", cwd=tmp_path)
    program("predict", "--load", "w", "--input", "t.tsv", "--output", "p.csv", cwd=tmp_path)
    assert (tmp_path / "p.csv").read_text().splitlines()[0] == "x,town,kind,class,p(no),p(yes),p(2),p(3),p(other)"


QUOTES = """data {
  train = csv("t.csv")
  x : f32[2] = columns("a", "b")
  y : f32[1] = column("y")
}
model { p = linear(x, 1) }
train {
  loss      = mse(p, y)
  optimizer = sgd(0.1)
  batch     = 2
  epochs    = 1
}
"""


def test_table_of_numbers_keeps_quotes(compile_model, tmp_path):
    import csv

    program = compile_model(QUOTES)
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,3\n2,3,4\n")
    program("--data", tmp_path, "--save", "w", "--quiet", cwd=tmp_path)
    (tmp_path / "n.csv").write_text('\ufeffname,b,a\n"x, ""y""",1,2\n"two\nlines",3,4\n')
    program("predict", "--load", "w", "--input", "n.csv", "--output", "p.csv", cwd=tmp_path)
    with open(tmp_path / "p.csv", newline="") as file:
        rows = list(csv.reader(file))
    numbers = program("predict", "--load", "w", "--input", "n.csv", cwd=tmp_path).stdout.split()
    assert rows == [["name", "b", "a", "prediction"], ['x, "y"', "1", "2", numbers[0]], ["two\nlines", "3", "4", numbers[1]]]
    assert not list(tmp_path.glob(".*cache"))


BAD_QUOTES = {
    "open": ['n,1,2', '"n,5,6', 'n,3,4'],
    "open at the end": ['n,1,2', 'n,3,4', '"n,5,6'],
    "goes on": ['n,1,2', '"n"x,5,6', 'n,3,4'],
    "over lines": ['n,1,2', '"n\n"x,5,6', 'n,3,4'],
    "odd": ['n,1,2', 'n,"""5",6', 'n,3,4'],
    "fields": ['n,1,2', 'n,5,6,7', 'n,3,4', 'n'],
    "empty": ['n,1,2', '', 'n,3,4']}


@pytest.mark.parametrize("what", BAD_QUOTES)
def test_table_of_bad_rows_keeps_their_places(what, compile_model, tmp_path):
    """A row that is wrong moves no other: what stands beside a prediction is what it is of."""
    import csv

    program, lines = compile_model(QUOTES), BAD_QUOTES[what]
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,3\n2,3,4\n")
    program("--data", tmp_path, "--save", "w", "--quiet", cwd=tmp_path)
    (tmp_path / "n.csv").write_text("".join(line + "\n" for line in ["name,a,b", *lines]))
    flags = ["predict", "--load", "w", "--input", "n.csv", "--bad-rows", "skip"]
    program(*flags, "--output", "p.csv", cwd=tmp_path)
    with open(tmp_path / "p.csv", newline="") as file:
        header, *rows = csv.reader(file)
    numbers = program(*flags, cwd=tmp_path).stdout.split()
    assert header == ["name", "a", "b", "prediction"] and len(rows) == len(lines) and [len(row) for row in rows] == [4] * len(rows)
    for line, row, number in zip(lines, rows, numbers, strict=True):
        good = line in ("n,1,2", "n,3,4")
        assert row[3] == number and (number == "nan") == (not good)
        assert row[:3] == (line.split(",") if good else ["n", '"5', "6"] if what == "odd" else [line, "", ""])


def test_table_of_examples_without_a_file(compile_model, tmp_path):
    program = compile_model(ROWS_MODEL)
    program("--save", tmp_path / "w", "--quiet")
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    program("predict", "--load", tmp_path / "w", "--input", tmp_path / "x.npy", "--output", tmp_path / "p.csv")
    assert [line.split(",")[0] for line in (tmp_path / "p.csv").read_text().splitlines()] == ["example", "0", "1"]
    (tmp_path / "x.tsv").write_text("1\t2\n")
    program("predict", "--load", tmp_path / "w", "--input", tmp_path / "x.tsv", "--output", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().startswith("x[0],x[1],prediction\n1,2,")


@pytest.mark.parametrize("content, kept", [("x[0],x[1],y\n1,2,3\n", True), ("notes\n", True), ("", False),
                                           ("example,prediction\n0,1\n", False), ('a,"p(x,y)",p(z)\n', False)])
def test_tables_of_others_are_not_replaced(content, kept, compile_model, tmp_path):
    """Training data are a table too: those of predictions are told by their columns."""
    program = compile_model(ROWS_MODEL)
    program("--save", tmp_path / "w", "--quiet")
    (tmp_path / "x.tsv").write_text("1\t2\n")
    (tmp_path / "p.csv").write_text(content)
    done = program("predict", "--load", tmp_path / "w", "--input", tmp_path / "x.tsv", "--output", tmp_path / "p.csv", check=False)
    assert (tmp_path / "p.csv").read_text().startswith(content if kept else "x[0],x[1],prediction\n1,2,")
    assert done.returncode == (73 if kept else 0)
    assert kept == ("p.csv would replace a file that is no table of predictions" in done.stderr)


@pytest.mark.parametrize("flags, message", [
    (["predict", "--output", "p.parquet"], "the name promises Parquet; what can be written is .npy, .csv and .tsv"),
    (["--save", "x.PT"], "the name promises a pickle of PyTorch; what can be written is .safetensors"),
    (["--log", "x.csv"], "the name promises CSV; what can be written is .jsonl, .json and .txt"),
    (["--save", "m.txt"], "the name promises text; what can be written is .safetensors")], ids=lambda value: value[-1])
def test_names_that_promise_another_format(flags, message, compile_model, tmp_path):
    weights = ["--load", "w"] if flags[0] == "predict" else []
    done = compile_model(ROWS_MODEL)(*flags, *weights, check=False, cwd=tmp_path)
    assert done.returncode == USAGE and message in done.stderr and not list(tmp_path.iterdir())


# ---- means over a data set ----


def test_the_root_of_a_reported_mse(compile_model, tmp_path):
    """RMSE of the data set, whatever the batches: their last has 5 of 8 examples. A root of each example is another number."""
    generator = np.random.default_rng(4)
    x, y = generator.normal(size=(61, 3)).astype("f4"), generator.normal(size=(61, 2)).astype("f4") * [1, 9]
    np.savez(tmp_path / "rows.npz", x=x, y=y.astype("f4"))
    text = ROWS_MODEL.replace("batch     = 4", "batch = 8\n  metric = [mse(p, y), root, mae(p, y)]").replace("[1]", "[2]")
    text = text.replace("train = table([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])", 'train = npz("rows.npz")\n  test = npz("rows.npz")')
    text = text.replace("x : f32[2]", "x : f32[3]").replace("linear(x, 1) }", "linear(x, 2)\n  root = sqrt(mse(p, y)) }")
    program = compile_model(text)
    program("--data", tmp_path, "--save", tmp_path / "w", "--log", tmp_path / "log.jsonl", "--quiet")
    program("predict", "--data", tmp_path, "--load", tmp_path / "w", "--output", tmp_path / "p.npy")
    difference = np.load(tmp_path / "p.npy") - y
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    (logged,) = [line for line in lines if "test_mse" in line]
    rmse, mean_of_roots = np.sqrt(np.mean(difference**2)), np.mean(np.sqrt(np.mean(difference**2, axis=1)))
    assert np.sqrt(logged["test_mse"]) == pytest.approx(rmse, rel=1e-6)
    assert logged["test_root"] == pytest.approx(mean_of_roots, rel=1e-6) and abs(rmse - mean_of_roots) > 0.1
    assert logged["test_mae"] == pytest.approx(np.mean(np.abs(difference)), rel=1e-6)


# ---- arrays of NumPy in the types of fields ----


def predicted_from(program, folder, array, check=True):
    np.save(folder / "x.npy", array)
    return program("predict", "--load", folder / "w", "--input", folder / "x.npy", check=check)


@pytest.fixture(scope="module")
def numbers(compile_model, tmp_path_factory):
    folder, program = tmp_path_factory.mktemp("numbers"), compile_model(ROWS_MODEL)
    program("--save", folder / "w", "--quiet")
    return program, folder


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", ">f4", "f2", ">f2", "i8", ">i8", "i4", ">i4", "i2", ">i2", "i1",
                                   "u8", ">u8", "u4", ">u4", "u2", ">u2", "u1", "?"])
def test_numbers_of_any_type(dtype, numbers):
    largest = {"u8": 1 << 63, "u4": 1 << 31, "u2": 1 << 15, "u1": 200}.get(dtype[-2:])
    values = np.array([[0, 1], [1, 1], [1, 0]]) if dtype == "?" else np.array([[3, 2], [largest, 1], [0, 77]], "u8") if largest else \
        np.array([[3, -2], [100, 1], [0, 77]])
    expected = predicted_from(*numbers, values.astype("f4"))
    done = predicted_from(*numbers, values.astype(dtype))
    assert done.stdout == expected.stdout and not expected.stderr
    noted = np.dtype(dtype).newbyteorder("=").str[1:] in ("f8", "i8", "i4", "u8", "u4")
    assert ("rounded to the f32 of field 'x'" in done.stderr) == noted


def test_fractions_of_half_precision(numbers):
    values = np.array([[0.333251953125, -6e-8], [65504, 1e-5], [np.inf, np.nan]]).astype("f2")
    assert predicted_from(*numbers, values).stdout == predicted_from(*numbers, values.astype("f4")).stdout


def test_numbers_that_do_not_fit(numbers):
    values = np.ones((3, 2))
    values[1, 1] = -1e39
    done = predicted_from(*numbers, values, check=False)
    assert done.returncode == BAD_DATA
    assert done.stderr.endswith("example 1, element [1] is -1e+39, which does not fit in f32, the type of field 'x'\n")


ARCHIVE = """data {
  train = npz("d.npz")
  n : i32[2]
  b : u8[1]
  c : class[3]
}
model { logits = linear(concat([n, b], axis = 0) * 1.0, 3) }
train {
  loss      = cross_entropy(logits, c)
  optimizer = sgd(0.01)
  batch     = 2
  epochs    = 1
}
"""


def test_whole_numbers_of_any_type(compile_model, tmp_path):
    program = compile_model(ARCHIVE)
    good = {"n": np.array([[1, -2], [3, 4]]), "b": np.array([[255], [0]]), "c": np.array([2, 0])}
    content = {}
    for kind, arrays in ("narrow", {"n": good["n"].astype("i4"), "b": good["b"].astype("u1"), "c": good["c"].astype("u1")}), ("wide", good), \
            ("big", {name: array.astype(">i8") for name, array in good.items()}), ("real", {name: array.astype("f8") for name, array in good.items()}), \
            ("unsigned", {**good, "b": good["b"].astype("u4"), "c": good["c"].astype(">u2")}), ("half", {name: array.astype("f2") for name, array in good.items()}), \
            ("columns", {name: np.asfortranarray(array) for name, array in good.items()}):
        np.savez(tmp_path / "d.npz", **arrays)
        program("--save", tmp_path / kind, "--quiet", cwd=tmp_path)
        content[kind] = (tmp_path / kind).read_bytes()
    assert all(each == content["wide"] for each in content.values())
    for name, bad, message in ("n", [[1, 2], [3, 1 << 31]], "example 1, element [1] is 2147483648, which does not fit in i32"), \
            ("b", [[1], [256]], "example 1, element [0] is 256, which does not fit in u8"), ("c", [0, -1], "example 1 has the label -1"), \
            ("n", [[1, 2.5], [3, 4]], "example 0, element [1] is 2.5, which does not fit in i32"), ("b", [[1], [1e300]], "is 1e+300, which does not fit in u8"), \
            ("c", np.array([0, 1 << 63], "u8"), "example 1 has the label 9223372036854775808; field 'c' is class[3], so expected 0 to 2"), ("c", [0, (1 << 32) + 1], "has the label 4294967297; field"), \
            ("c", [0, 0.5], "example 1 has the label 0.5; field 'c' is class["), ("n", [[1, 2], [np.inf, 4]], "example 1, element [0] is inf"):
        np.savez(tmp_path / "d.npz", **{**good, name: np.array(bad)})
        done = program("--save", tmp_path / "w", check=False, cwd=tmp_path)
        assert done.returncode == BAD_DATA and message in done.stderr


def test_halves_of_arrays_and_checkpoints(compile_model, tmp_path):
    """Each half is the same number wherever it is read: subnormal, normal, either sign."""
    program = compile_model(ROWS_MODEL)
    halves = np.array([2**-24, 1023 * 2**-24, 2**-14, -1, 65504, -0.333, 3, -(2**-20)], np.float16)
    np.save(tmp_path / "half.npy", halves.reshape(4, 2))
    np.save(tmp_path / "float.npy", halves.reshape(4, 2).astype(np.float32))
    for type, numbers in ("F16", halves[4:7]), ("F32", halves[4:7].astype(np.float32)):
        size, content = numbers.itemsize, numbers.tobytes()
        header = json.dumps({"p.weight": {"dtype": type, "shape": [1, 2], "data_offsets": [0, 2 * size]},
                             "p.bias": {"dtype": type, "shape": [1], "data_offsets": [2 * size, 3 * size]}}).encode()
        (tmp_path / type).write_bytes(struct.pack("<Q", len(header)) + header + content)
    shown = {program("predict", "--load", tmp_path / weights, "--input", tmp_path / f"{name}.npy").stdout
             for weights in ("F16", "F32") for name in ("half", "float")}
    assert len(shown) == 1


HEATED = ROWS_MODEL.replace("data {", "param heat = 1 in 0.1..10\nparam lr = 0.1\ndata {", 1).replace("linear(x, 1)", "linear(x, 1) / heat").replace(
    "sgd(0.1)", "sgd(lr)")


def test_params_of_the_checkpoint_are_taken(compile_model, tmp_path):
    """What the model was trained with is what it is asked with, unless a flag says otherwise."""
    program = compile_model(HEATED)
    program("--heat", 4, "--save", "w.safetensors", cwd=tmp_path)

    def answers(*flags):
        done = program("predict", "--load", "w.safetensors", "--split", "train", *flags, cwd=tmp_path)
        return np.array([float(line) for line in done.stdout.splitlines()[-4:]])

    taken = answers()
    assert np.array_equal(taken, answers("--heat", 4)) and (taken != 0).any()
    assert np.allclose(answers("--heat", 1), 4 * taken, rtol=1e-5)
    asked = ["predict", "--load", "w.safetensors", "--split", "train"]
    said = program(*asked, cwd=tmp_path).stderr
    assert "note: heat is 4, as in the training that wrote w.safetensors, and not 1: --heat chooses\n" in said and "lr" not in said
    assert "note" not in program(*asked, "--heat", 4, cwd=tmp_path).stderr


def test_a_param_that_the_program_does_not_allow(compile_model, tmp_path):
    """A flag gives another one; what evaluation does not compute with is not asked."""
    compile_model(HEATED)("--heat", 4, "--lr", 0.5, "--save", "w.safetensors", cwd=tmp_path)
    program = compile_model(HEATED.replace("in 0.1..10", "in 0.1..2").replace("lr = 0.1", "lr = 0.1 in 0..0.2"))
    asked = ["predict", "--load", "w.safetensors", "--split", "train"]
    refused = program(*asked, cwd=tmp_path, check=False)
    assert refused.returncode == 65
    assert "w.safetensors: was trained with another param than this program takes: 'heat' is from 0.1 to 2, not 4" in refused.stderr
    assert "--heat NUMBER gives another one" in refused.stderr
    assert program(*asked, "--heat", 2, cwd=tmp_path).stdout
    going_on = "--resume", "w.safetensors", "--partial", "--epochs", 2
    refused = program(*going_on, "--lr", 0.2, cwd=tmp_path, check=False)
    assert refused.returncode == 65 and "'heat' is" in refused.stderr
    said = program(*going_on, "--heat", 2, "--lr", 0.2, cwd=tmp_path).stdout
    assert "heat: 4 in the checkpoint, now 2\n" in said and "lr: 0.5 in the checkpoint, now 0.2\n" in said
