"""The types of arithmetic: whole numbers stay whole where they fit 32 bits, all else is f32 (f64 with --real f64), and nothing
wraps. Compiled programs against Python's integers and NumPy's floats."""

import json
import struct

import numpy as np
import pytest
from conftest import run_mtc
from evaluator import evaluate, parse
from library import Library

FIELDS = {"i": "i32", "j": "i32", "u": "u8", "v": "u8", "k": "class[70000]", "c": "class[7]", "s": "class[7]"}
VALUES = {
    "i": [50000, -2147483648, 16777217, 2147483647, 7, -3],
    "j": [50000, -2147483648, 16777216, 1, -7, 0],
    "u": [255, 200, 0, 1, 255, 128],
    "v": [255, 100, 255, 2, 254, 128],
    "k": [69999, 46341, 0, 65536, 123, 50000],
    "c": [6, 0, 1, 5, 2, 3],
    "s": [6, 1, 1, 0, 4, 3],
}

# What has no type of its own here is whole, i32 or bool: exact. A float is what the program's type makes of it.
WHOLE = {
    "u + v": lambda n: n["u"] + n["v"],
    "u - v": lambda n: n["u"] - n["v"],
    "u * v": lambda n: n["u"] * n["v"],
    "u * v * u": lambda n: n["u"] * n["v"] * n["u"],
    "-u": lambda n: -n["u"],
    "1000 - 2 * u": lambda n: 1000 - 2 * n["u"],
    "k + c": lambda n: n["k"] + n["c"],
    "k * c - s": lambda n: n["k"] * n["c"] - n["s"],
    "k * 30000": lambda n: n["k"] * 30000,
    "k * u": lambda n: n["k"] * n["u"],
    "where(c > 2, i, j)": lambda n: n["i"] if n["c"] > 2 else n["j"],
    "where(c > 2, k, 5)": lambda n: n["k"] if n["c"] > 2 else 5,
    "(c > 2) + (k > 100)": lambda n: (n["c"] > 2) + (n["k"] > 100),
    "c * (k > 100)": lambda n: n["c"] * (n["k"] > 100),
    "argmax(one_hot(c, 7)) * k": lambda n: n["c"] * n["k"],
    "slice(pad(reshape(i, [1]), 0, before = 1), 0, 0, 1)": lambda n: 0,
    "slice(pad(reshape(u, [1]), 0, after = 1), 0, 1, 2) + c": lambda n: n["c"],
    "slice(pad(reshape(i > j, [1]), 0, before = 1), 0, 0, 1)": lambda n: 0,
    "i == j": lambda n: n["i"] == n["j"],
    "i < 16777217": lambda n: n["i"] < 16777217,
    "i >= 16777217": lambda n: n["i"] >= 16777217,
    "i > j": lambda n: n["i"] > n["j"],
}
REAL = {
    "i * j": lambda n: n["i"] * n["j"],
    "i + j": lambda n: n["i"] + n["j"],
    "i - j": lambda n: n["i"] - n["j"],
    "-i": lambda n: -n["i"],
    "i + 1": lambda n: n["i"] + 1,
    "i * i": lambda n: n["i"] * n["i"],
    "k * k": lambda n: n["k"] * n["k"],
    "k * 40000": lambda n: n["k"] * 40000,
    "3000000000 + u": lambda n: 3000000000 + n["u"],
    "u * v * u * v": lambda n: n["u"] * n["v"] * n["u"] * n["v"],
    "u * 0.5": lambda n: n["u"] * 0.5,
    "c / 7": lambda n: n["c"] * type(n["c"])(1 / 7),
    "maximum(i, j)": lambda n: max(n["i"], n["j"]),
    "minimum(k, 5)": lambda n: min(n["k"], 5),
    "abs(i)": lambda n: abs(n["i"]),
    "pow(k, 2)": lambda n: n["k"] * n["k"],
    "sum(k)": lambda n: n["k"],
    "mean(concat([reshape(u, [1]), reshape(v, [1])])) * 2": lambda n: n["u"] + n["v"],
}


def numbers_of(row, kind):
    return {name: kind(values[row]) for name, values in VALUES.items()}


def model(expressions, fields=FIELDS):
    names = ", ".join(f'"{name}"' for name in fields)
    parts = ", ".join(f"reshape({text}, [1])" for text in expressions)
    return "\n".join([
        "data {", f"  train = idx({names})", *(f"  {name} : {kind}" for name, kind in fields.items()), "}",
        "model {", "  w = weight([1], init = constant(1))", f"  y = concat([{parts}])", "}",
        "train {", "  loss = mean(y * w)", "  predict = y", "  optimizer = sgd(0)", "  batch = 6", "}"])


def compiled(folder, text, *flags):
    (folder / "m.mt").write_text(text)
    done = run_mtc(folder / "m.mt", "--shared", "-o", folder / "m.so", "--keep", folder / "kept", *flags)
    assert done.returncode == 0, done.stderr
    return folder / "m.so"


def stored():
    types = {"i32": np.int32, "u8": np.uint8, "class[70000]": np.int32, "class[7]": np.uint8}
    return [np.array(VALUES[name], types[kind]) for name, kind in FIELDS.items()]


TARGETS = {"cpu": (["--target", "cpu"], np.float32), "f64": (["--target", "cpu", "--real", "f64"], np.float64),
           "cuda": (["--target", "cuda"], np.float32)}


@pytest.mark.parametrize("target", ["cpu", "f64", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_values(target, tmp_path):
    flags, real = TARGETS[target]
    library = Library(compiled(tmp_path, model([*WHOLE, *REAL]), *flags), real)
    found = library.predict(stored(), len(WHOLE) + len(REAL))
    library.close()
    for row in range(6):
        exact, rounded = numbers_of(row, int), numbers_of(row, real)
        wanted = [np.float32(value(exact)) for value in WHOLE.values()]
        wanted += [np.float32(real(value(rounded))) for value in REAL.values()]
        for text, value, number in zip([*WHOLE, *REAL], found[row], wanted):
            assert value == number, f"{text} of {exact}"


def test_cuda_takes_the_text(cuda_takes):
    cuda_takes(model([*WHOLE, *REAL]))


def graph_of(mtc, folder, text, stage="graph"):
    (folder / "m.mt").write_text(text)
    done = mtc(f"--emit={stage}", folder / "m.mt")
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)["eval"]


def test_types_and_ranges(mtc, tmp_path):
    """What is whole is i32 in the graph, as written and simplified; the evaluator asserts that it fits."""
    leaves = {**{name: np.array(values) for name, values in VALUES.items()}, "w": np.ones(1)}
    for stage in ("graph", "simple"):
        for texts, kinds in ((WHOLE, ("i32", "bool")), (REAL, ("f32",))):
            for text in texts:
                nodes = graph_of(mtc, tmp_path, model(["e", *FIELDS]).replace("  y = ", f"  e = {text}\n  y = "), stage)
                result = evaluate(nodes, leaves).output[:, 0]
                for row in range(6):
                    wanted = texts[text](numbers_of(row, int if texts is WHOLE else float))
                    assert result[row] == pytest.approx(float(wanted))
                assert all(node.dtype in kinds for node in nodes if node.name == "e" and stage == "graph"), text


@pytest.mark.parametrize("least, dtype", [(-2147483648, "i32"), (-2147483649, "f32")])
def test_a_list_is_whole_where_32_bits_hold_it(mtc, tmp_path, least, dtype):
    model = tmp_path / "m.mt"
    model.write_text('data {\n  train = npy("x.npy", "y.npy")\n  x : i32[2]\n  y : f32\n}\n'
                     f"model {{\n  out = linear(x + [{least}, 1], 1)\n}}\n"
                     "train {\n  loss = mse(flatten(out), y)\n  optimizer = sgd(0.1)\n}\n")
    assert f"const value={least} : {dtype}" in mtc("--emit=graph", model).stdout


def test_index_arithmetic(tmp_path):
    """Of classes, positions and numbers: rows of a table, exactly."""
    text = model(["y_k", "y_i"]).replace("  y = ", """  table = weight([420014, 1], init = constant(0))
  y_k = gather(table, k * 6 + c - s + 7)
  y_i = sum(gather(table, iota(3) * 2 + c))
  y = """).replace("mean(y * w)", "mean(y * w) + 0 * sum(table)")
    library = Library(compiled(tmp_path, text, "--target", "cpu"))
    rows = np.arange(420014, dtype=np.float32)
    library.set("table", rows[:, None])
    found = library.predict(stored(), 2)
    library.close()
    n = {name: np.array(values) for name, values in VALUES.items()}
    np.testing.assert_array_equal(found[:, 0], n["k"] * 6 + n["c"] - n["s"] + 7)
    np.testing.assert_array_equal(found[:, 1], 3 * n["c"] + 6)


def test_iota_products(mtc, tmp_path):
    """70000 * 70000 passes 32 bits: f32. 40000 * 40000 does not: i32."""
    part = "slice(iota({0}) * iota({0}), 0, {1}, {0}) + 0 * u"
    text = model([part.format(70000, 69999), part.format(40000, 39999), "u"])
    library = Library(compiled(tmp_path, text, "--target", "cpu"))
    found = library.predict(stored(), 3)
    library.close()
    assert (found[:, 0] == np.float32(69999**2)).all() and (found[:, 1] == np.float32(39999**2)).all()


@pytest.mark.parametrize("index, says", [
    ("i + 1", "may pass 32 bits"), ("k * 40000", "may pass 32 bits"), ("c / 2", "f32"), ("c + 0.5", "f32"),
])
def test_refused_indices(mtc, tmp_path, index, says):
    (tmp_path / "m.mt").write_text(model([f"gather(w, {index})", *FIELDS]))
    done = mtc(tmp_path / "m.mt", "--target", "cpu", "-o", tmp_path / "m")
    assert done.returncode and "an index is a whole number" in done.stderr and says in done.stderr


def test_argmax_of_too_many(mtc, tmp_path):
    text = model(["argmax(iota(16777217) * u)", *FIELDS])
    (tmp_path / "m.mt").write_text(text)
    done = mtc("--emit=graph", tmp_path / "m.mt")
    assert done.returncode and "at most 16777216" in done.stderr and "m.mt:13:" in done.stderr


# ---- f64 ----

F64 = """param rate = 0.1
param count = 16777217
data {
  train = table([[16777216, 0.25, 2147483647], [3, 0.1, -2147483647]])
  a : f32
  b : f32
  n : i32
}
model {
  w = weight([1], init = constant(1))
  y = concat([reshape(a - b, [1]), reshape(exp(b), [1]), reshape(b * b, [1]), reshape(n + 1, [1])])
}
train {
  loss      = sum(y * w) * rate + count
  predict   = y
  optimizer = sgd(0)
  batch     = 2
}
"""


def f64_loss(rate, count):
    a, b, n = np.array([16777216.0, 3]), np.array([0.25, np.float32(0.1)], np.float64), np.array([2147483647.0, -2147483647])
    return np.mean((a - b + np.exp(b) + b * b + n + 1) * rate + count)


def test_f64_computes_in_f64(compile_model, tmp_path):
    """Fields that are stored as floats, and params, from the command line to the kernel and through a checkpoint."""
    program = compile_model(F64, "--real", "f64")
    program("train", "--epochs", 1, "--save", tmp_path / "w", "--rate", 0.3, "--count", 123456789, "--log", tmp_path / "log")
    header = (tmp_path / "w").read_bytes()
    meta = json.loads(header[8 : 8 + struct.unpack("<Q", header[:8])[0]])["__metadata__"]
    assert float(meta["mtc.param.rate"]) == 0.3 and float(meta["mtc.param.count"]) == 123456789


def test_f64_losses(tmp_path):
    library = Library(compiled(tmp_path, F64, "--target", "cpu", "--real", "f64"), np.float64)
    fields = [np.array([16777216, 3], np.float32), np.array([0.25, 0.1], np.float32), np.array([2147483647, -2147483647], np.int32)]
    library.set_data(fields)
    assert library.evaluate(1)[0] == pytest.approx(f64_loss(0.1, 16777217), rel=1e-15)
    library.set_knob("rate", 1 / 3)
    library.set_knob("count", 2.0**40 + 1)
    assert library.evaluate(1)[0] == pytest.approx(f64_loss(1 / 3, 2.0**40 + 1), rel=1e-15)
    library.call("save", str(tmp_path / "w").encode())
    library.set_knob("rate", 0.5)
    library.call("resume", str(tmp_path / "w").encode())
    assert library.evaluate(1)[0] == pytest.approx(f64_loss(1 / 3, 2.0**40 + 1), rel=1e-15)
    library.close()
