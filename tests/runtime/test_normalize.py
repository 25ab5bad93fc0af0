"""normalize and denormalize: mean and standard deviation of the training data, computed by the program itself, against
NumPy in float64."""

import re
import subprocess

import numpy as np
import pytest
from conftest import MTC
from evaluator import evaluate, parse
from fake_data import idx_bytes
from library import Library

FORMS = [pytest.param(["--target", "cpu"], np.float32, id="cpu-f32"),
         pytest.param(["--target", "cpu", "--real", "f64"], np.float64, id="cpu-f64"),
         pytest.param(["--target", "cuda"], np.float32, id="cuda", marks=pytest.mark.gpu)]


def model(shape="3", batch=8, dtype="f32", settings=""):
    return f"""data {{
  train = idx("x", "total")
  test  = idx("x", "total")
  x     : {dtype}[{shape}]
  total : f32
}}

model {{
  y = linear(flatten(normalize(x)), 1)
}}

train {{
  loss      = mse(y, normalize(total))
  metric    = [mae(denormalize(0, total), total)]
  predict   = denormalize(y, total)
  optimizer = sgd(0.01)
  batch     = {batch}
  epochs    = 1
{settings}}}
"""


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """load(text, flags, real): a session of the compiled model. One compilation each."""
    folder, built, sessions = tmp_path_factory.mktemp("normalize"), {}, []

    def load(text, flags=("--target", "cpu"), real=np.float32, seed=1):
        key = (text, *flags)
        if key not in built:
            source = folder / f"m{len(built)}.mt"
            source.write_text(text)
            built[key] = folder / f"m{len(built)}.so"
            command = [MTC, source, "--shared", "-o", built[key], "--keep", folder, *flags]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        sessions.append(Library(built[key], real, seed))
        return sessions[-1]

    yield load
    for session in sessions:
        session.close()


def examples(count, shape=(3,), seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(5, 2, (count, *shape)).astype(np.float32)
    return x, random.normal(100, 30, count).astype(np.float32)


def check(session, name, values, rtol):
    values = np.asarray(values, np.float64)
    np.testing.assert_allclose(session.get(f"{name}.mean", values.shape[1:]), values.mean(0), rtol=rtol)
    np.testing.assert_allclose(session.get(f"{name}.std", values.shape[1:]), values.std(0), rtol=rtol)


# ---- the graph ----


def dump(tmp_path, text, stage="graph"):
    path = tmp_path / "m.mt"
    path.write_text(text)
    done = subprocess.run([MTC, f"--emit={stage}", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


@pytest.mark.parametrize("stage", ["graph", "simple"])
def test_graph(stage, tmp_path):
    nodes, (x, total) = dump(tmp_path, model(), stage)["measure"], examples(43)
    buffers = {"x.mean": np.full(3, 7.0), "x.std": np.ones(3), "total.mean": 0.0, "total.std": 1.0}
    for first in range(0, 43, 8):
        rows = min(8, 43 - first)
        index = [first + (i if i < rows else 0) for i in range(8)]
        buffers = evaluate(nodes, {**buffers, "x": x[index], "total": total[index]}, rows=rows, before=first).assigned
    for name, values in (("x", x), ("total", total)):
        np.testing.assert_allclose(buffers[f"{name}.mean"], values.astype(np.float64).mean(0), rtol=1e-13)
        np.testing.assert_allclose(buffers[f"{name}.std"], values.astype(np.float64).std(0), rtol=1e-12)


def test_there_is_no_third_graph_without_normalize(tmp_path):
    text = model().replace("denormalize(y, total)", "y").replace("denormalize(0, total)", "y").replace("normalize", "")
    assert set(dump(tmp_path, text)) == {"train", "eval"}


def test_buffers_that_only_the_prediction_needs(tmp_path):
    text = model().replace("normalize(total)", "total").replace("denormalize(0, total)", "y")
    graphs = dump(tmp_path, text)
    assert "total.std" not in {node.name for node in graphs["train"]}
    assert {"x.std", "total.std"} <= {node.name for node in graphs["measure"]}


def test_names(tmp_path):
    """Two uses share the buffers, whose names come from the field, wherever they are called; others are as without them."""
    body = """fn net(v, out) {
  centred = normalize(v)
  return linear(centred, out)
}

"""
    text = body + model().replace("  y = linear(flatten(normalize(x)), 1)", "  a = net(x, 4)\n  b = net(x, 2)\n  y = linear(concat([a, b], axis = 0), 1)")
    graphs = dump(tmp_path, text)
    for graph in ("train", "eval"):
        names = sorted(node.name for node in graphs[graph] if node.op == "weight")
        assert names == ["a.bias", "a.weight", "b.bias", "b.weight", "total.mean", "total.std", "x.mean", "x.std", "y.bias", "y.weight"]


def test_a_weight_of_the_same_name(tmp_path, mtc):
    text = model().replace("  y = linear(", '  w = weight([3], name = "x.mean")\n  y = sum(w) + linear(')
    (tmp_path / "m.mt").write_text(text)
    done = mtc("--emit=graph", tmp_path / "m.mt")
    assert done.returncode == 65 and "two weights are called 'x.mean'" in done.stderr


# ---- accuracy ----


@pytest.mark.parametrize("flags, real", FORMS)
def test_many_skewed_prices(flags, real, load):
    """292,000 rows, as many as a year of sales has; prices up to a thousand times their median, and years."""
    random = np.random.default_rng(4)
    price = np.exp(random.normal(1, 1.3, 292_000))
    price[random.integers(0, len(price), 20)] = 9000
    x = np.stack([price, random.integers(1, 500, len(price)), 2010 + random.random(len(price))], 1).astype(np.float32)
    total = (x[:, 0] * x[:, 1]).astype(np.float32)
    session = load(model(batch=256), flags, real)
    session.set_data([x, total])
    rtol = 1e-10 if real == np.float64 else 1e-5
    check(session, "x", x, rtol)
    check(session, "total", total, rtol)


def test_thousands_of_small_batches(load):
    """What the device rounds is that of a group of batches: 8,000 of them once cost a digit, and a batch in shards trained on other numbers."""
    x, total = examples(64_000)
    session = load(model())
    session.set_data([x, total])
    check(session, "x", x, 1.5e-7)
    check(session, "total", total, 1.5e-7)


@pytest.mark.parametrize("flags, real", FORMS)
@pytest.mark.parametrize("count", [1, 3, 8, 16, 19], ids="{} examples".format)
def test_any_number_of_examples(count, flags, real, load, capfd):
    """Batches of 8: fewer examples than a batch, whole batches, a last batch that is smaller."""
    session, (x, total) = load(model(), flags, real), examples(count)
    session.set_data([x, total])
    check(session, "x", x, 1e-12 if real == np.float64 else 2e-6)
    check(session, "total", total, 1e-12 if real == np.float64 else 2e-6)
    assert capfd.readouterr().err == ""  # a library says nothing; programs warn, below


@pytest.mark.parametrize("flags, real", FORMS)
@pytest.mark.parametrize("shape, dtype", [("28, 28", "u8"), ("5000", "f32"), ("1", "i32")])
def test_shapes_and_types(shape, dtype, flags, real, load):
    extents = tuple(int(size) for size in shape.split(","))
    x = np.random.default_rng(1).integers(0, 256, (50, *extents)).astype({"u8": "u1", "f32": "f4", "i32": "i4"}[dtype])
    session = load(model(shape, dtype=dtype), flags, real)
    session.set_data([x, examples(50)[1]])
    check(session, "x", x, 1e-12 if real == np.float64 else 2e-6)


@pytest.mark.parametrize("flags, real", FORMS)
def test_constant_elements(flags, real, load, capfd):
    """Their deviation is exactly 0, whatever the number is, and what is normalized stays finite."""
    x, total = examples(100)
    x[:, 1] = 0.1
    session = load(model(), flags, real)
    session.set_data([x, total])
    assert capfd.readouterr().err == ""
    assert session.get("x.std", (3,))[1] == 0 and session.get("x.mean", (3,))[1] == np.float64(np.float32(0.1))
    assert np.isfinite(session.train(20, 2)).all()


# ---- what is computed with them ----


@pytest.mark.parametrize("flags, real", FORMS)
def test_numbers_of_the_model(flags, real, load):
    session, (x, total) = load(model(), flags, real), examples(43)
    session.set_data([x, total])
    weight, bias = session.get("y.weight", (1, 3)), session.get("y.bias", (1,))
    x, total = x.astype(np.float64), total.astype(np.float64)
    y = (x - x.mean(0)) / x.std(0) @ weight.T + bias
    close = dict(rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(session.predict([x.astype("f4"), total.astype("f4")], 1), y * total.std() + total.mean(), **close)
    loss, baseline = session.evaluate(2)
    np.testing.assert_allclose(loss, np.mean((y[:, 0] - (total - total.mean()) / total.std()) ** 2), **close)
    np.testing.assert_allclose(baseline, np.mean(np.abs(total - total.mean())), **close)


def test_measured_anew_with_new_training_data(load):
    session = load(model())
    for seed in (0, 1):
        x, total = examples(20 + seed, seed=seed)
        session.set_data([x * 10**seed, total])
        check(session, "x", x * 10.0**seed, 2e-6)


def test_initial_weights_are_those_without_normalize(load):
    plain = re.sub(r"\b(de)?normalize\(", "(", model()).replace("(0, total)", "total").replace("(y, total)", "y")
    weights = [load(text, seed=5).get("y.weight", (1, 3)) for text in (model(), plain)]
    assert (weights[0] == weights[1]).all()


def test_checkpoints_hold_them(load, tmp_path):
    session, (x, total) = load(model()), examples(40)
    session.set_data([x, total])
    session.train(10, 2)
    session.call("save", str(tmp_path / "w.safetensors").encode())
    other = load(model(), seed=9)
    other.call("load", str(tmp_path / "w.safetensors").encode())
    other.set_data([x * 3, total])
    assert (other.get("x.mean", (3,)) == session.get("x.mean", (3,))).all()
    assert (other.predict([x, total], 1) == session.predict([x, total], 1)).all()


# ---- the program ----


def write(folder, x, total):
    (folder / "x").write_bytes(idx_bytes(x))
    (folder / "total").write_bytes(idx_bytes(total))


@pytest.mark.parametrize("count", [1, 3])
def test_program_of_few_examples(compile_model, tmp_path, count):
    write(tmp_path, *examples(count))
    done = compile_model(model())("--data", tmp_path)
    assert ("3 of the 3 elements of field 'x'" in done.stderr) == (count == 1)


def test_program(compile_model, tmp_path):
    program, (x, total) = compile_model(model()), examples(100)
    x[:, 2] = 4
    write(tmp_path, x, total)
    done = program("--data", tmp_path, "--save", tmp_path / "w.safetensors")
    assert f"{program.path}: warning: element [2] of field 'x' is the same in all 100 training examples" in done.stderr
    trained = program("eval", "--data", tmp_path, "--load", tmp_path / "w.safetensors")
    assert re.search(r"mae 2\d\.", trained.stdout) and not trained.stderr
    info = program("info").stdout
    assert "parameters  4\n" in info and re.search(r"x\.std +buffer +f32 +\[3\]", info)


def test_data_that_cannot_be_normalized(compile_model, tmp_path):
    program, (x, total) = compile_model(model()), examples(100)
    x[77, 1] = np.nan
    write(tmp_path, x, total)
    done = program("--data", tmp_path, check=False)
    assert done.returncode == 65
    assert "'x.mean' of the training data: element [1] is NaN" in done.stderr
    assert "field 'x' of example 77 of 'train': element [1] is NaN" in done.stderr
    x[77, 1] = 1e30
    write(tmp_path, x, total)
    done = program("--data", tmp_path, check=False)
    assert done.returncode == 65 and "their squares are too large" in done.stderr


def test_fields_that_the_prediction_depends_on(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(model())
    text = mtc("--emit=c", tmp_path / "m.mt").stdout
    rows = dict(re.findall(r'\.name = "(x|total)".*?\.predicts = (true|false)', text, re.S))
    assert rows == {"x": "true", "total": "false"}


def test_nvcc_takes_the_text(cuda_takes):
    cuda_takes(model("28, 28", dtype="u8"))
