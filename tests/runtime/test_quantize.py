"""Programs of mtc --precision int8: what they make of weights of floats, how near their answers are, and what they refuse."""



import numpy as np
import pytest
from fake_data import pack, unpack

pytestmark = pytest.mark.quick

MODEL = """data {
  train = npz("train.npz")
  test  = npz("test.npz")
  image : f32[2, 8, 8]
  label : class[4]
}
model {
  seen   = relu(conv2d(image, 6, 3, padding = 1))
  wide   = relu(linear(flatten(seen), 48))
  joined = relu(matmul(wide, weight([48, 352])))
  scores = linear(joined, 4)
}
train {
  loss      = cross_entropy(scores, label)
  metric    = accuracy(scores, label)
  optimizer = adam(0.01)
  batch     = 16
  epochs    = 4
}
"""
WEIGHTS = ("seen.weight", "wide.weight", "joined")  # scores.weight is small: it belongs to a row's kernel
TYPES = {"F32": "<f4", "I8": "i1"}


def tensors(path):
    """By name; the header too."""
    header, data = unpack(path.read_bytes())
    read = {name: np.frombuffer(data[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}
    return header, read


def write(path, arrays):
    """As another program would: without metadata."""
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "I8" if array.dtype == np.int8 else "F32", "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    path.write_bytes(pack(header, data))


@pytest.fixture(scope="module")
def made(compile_model, tmp_path_factory):
    """A program that trains, one of integers, the weights of the one and those of the other."""
    folder = tmp_path_factory.mktemp("quantize")
    random = np.random.default_rng(1)
    label = random.integers(0, 4, 640)
    image = (random.normal(size=(640, 2, 8, 8)) + np.eye(4)[label][:, :2, None, None] - label[:, None, None, None] / 2).astype("f4")
    for name, part in ("train", slice(128, None)), ("test", slice(128)):
        np.savez(folder / f"{name}.npz", image=image[part], label=label[part].astype("i4"))
    floats, whole = compile_model(MODEL), compile_model(MODEL, "--precision", "int8")
    floats("--data", folder, "--save", folder / "w.safetensors")
    said = whole("quantize", "--data", folder, "--load", folder / "w.safetensors", "--save", folder / "w8.safetensors", "--calibrate", 200)
    assert "3 weights" in said.stdout and "by 200 examples" in said.stdout
    return folder, floats, whole


def evaluated(program, folder, file, **options):
    words = program("eval", "--data", folder, "--load", file, **options).stdout.split()
    return float(words[words.index("loss") + 1]), float(words[words.index("accuracy") + 1])


def test_answers_are_near(made):
    folder, floats, whole = made
    loss, accuracy = evaluated(floats, folder, folder / "w.safetensors")
    whole_loss, whole_accuracy = evaluated(whole, folder, folder / "w8.safetensors")
    assert accuracy > 0.7 and abs(whole_accuracy - accuracy) <= 0.02 and abs(whole_loss - loss) < 0.02 * loss


def test_help_is_of_what_it_can(made):
    """No flags of a training, which is the default of others."""
    _, _, whole = made
    said = whole("--help").stdout
    assert "quantize --load" in said and "--epochs" not in said and "\nflags" not in said
    assert "--calibrate N" in whole("quantize", "--help").stdout


def test_threads_do_not_matter(made, tmp_path):
    folder, _, whole = made
    for threads in 1, 3:
        whole("predict", "--data", folder, "--load", folder / "w8.safetensors", "--output", tmp_path / f"{threads}.npy", threads=threads)
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "3.npy").read_bytes()


def test_integers_times_scales_are_the_weights(made):
    folder, _, _ = made
    header, whole = tensors(folder / "w8.safetensors")
    _, floats = tensors(folder / "w.safetensors")
    for name in WEIGHTS:
        scale, wide = whole[f"{name}.scale"], floats[name]
        outputs = -1 if name == "joined" else 0  # matmul(x, w) has them along the last axis
        shape = [1] * wide.ndim
        shape[outputs] = -1
        assert header[name]["dtype"] == "I8" and whole[name].shape == wide.shape and whole[name].min() >= -127
        assert np.all(np.abs(whole[name] * scale.reshape(shape) - wide)[np.abs(whole[name]) < 127]
                      <= 0.501 * np.broadcast_to(scale.reshape(shape), wide.shape)[np.abs(whole[name]) < 127])
        assert whole[f"{name}.input_scale"].shape == () and 0 < whole[f"{name}.input_scale"] < 1
    assert np.array_equal(whole["scores.weight"], floats["scores.weight"])
    assert sum(a.nbytes for a in whole.values()) < 0.3 * sum(floats[name].nbytes for name in whole if name in floats)


def squared_error(values, scale):
    return ((values - scale * np.clip(np.rint(values / scale), -127, 127)) ** 2).sum(axis=1)


def test_scales_are_those_of_least_error(made):
    """No output is worse off than with its largest weight at 127, and some are better."""
    folder, _, _ = made
    floats, whole = (tensors(folder / name)[1] for name in ("w.safetensors", "w8.safetensors"))
    rows = floats["wide.weight"].astype(np.float64)
    least = squared_error(rows, whole["wide.weight.scale"][:, None].astype(np.float64))
    usual = squared_error(rows, np.abs(rows).max(axis=1, keepdims=True) / 127)
    assert np.all(least <= usual * 1.001) and least.sum() < usual.sum()


def test_an_output_without_weights(made, tmp_path):
    """Its scale is 1, as good as any. Squares of large weights pass what floats hold."""
    folder, _, whole = made
    _, floats = tensors(folder / "w.safetensors")
    weights = {name: floats[name].copy() for name in (*WEIGHTS, "seen.bias", "wide.bias", "scores.weight", "scores.bias")}
    weights["wide.weight"][3] = 0
    weights["wide.weight"][4] = [-3e23, *[1e23] * (weights["wide.weight"].shape[1] - 1)]
    write(tmp_path / "w.safetensors", weights)
    whole("quantize", "--data", folder, "--load", tmp_path / "w.safetensors", "--save", tmp_path / "w8.safetensors")
    _, integers = tensors(tmp_path / "w8.safetensors")
    assert not integers["wide.weight"][3].any() and integers["wide.weight.scale"][3] == 1
    assert 1e21 < integers["wide.weight.scale"][4] < 3e21 and integers["wide.weight"][4, 0] == -127
    evaluated(whole, folder, tmp_path / "w8.safetensors")


def refused(program, *args):
    done = program(*args, check=False)
    assert done.returncode in (64, 65, 73), done.stdout + done.stderr
    return done.stderr


def test_floats_and_integers_are_told_apart(made, tmp_path):
    folder, floats, whole = made
    data, w, w8 = ("--data", folder), folder / "w.safetensors", folder / "w8.safetensors"
    assert f"quantize --load {w} --save NEW.safetensors" in refused(whole, "eval", *data, "--load", w)
    for command in ["eval", *data, "--load", w8], [*data, "--resume", w8], [*data, "--init-from", w8]:
        assert "it has integers, for programs of 'mtc --precision int8'" in refused(floats, *command)
    assert "is of integers already" in refused(whole, "quantize", *data, "--load", w8, "--save", tmp_path / "n.safetensors")
    assert "are the same file" in refused(whole, "quantize", *data, "--load", w, "--save", w)
    assert "needs a file to write: --save FILE" in refused(whole, "quantize", *data, "--load", w)
    assert "--precision fp32" in refused(whole, *data) and "--precision int8" in refused(floats, "quantize", "--load", w)
    assert "bench --forward" in refused(whole, "bench", *data)


def test_files_that_nothing_can_compute_with(made, tmp_path):
    folder, _, whole = made
    _, good = tensors(folder / "w8.safetensors")

    def told(change, of=good, command="eval", *flags):
        changed = {name: array.copy() for name, array in of.items()}
        change(changed)
        write(tmp_path / "bad.safetensors", changed)
        return refused(whole, command, "--data", folder, "--load", tmp_path / "bad.safetensors", *flags)

    assert "wide.weight.scale: is missing" in told(lambda t: t.pop("wide.weight.scale"))
    assert "a scale is above 0" in told(lambda t: t["joined.input_scale"].fill(0))
    assert "not finite" in told(lambda t: t["seen.weight.scale"].fill(np.nan))
    assert "element [1, 2] of 'wide.weight' is -128" in told(lambda t: t["wide.weight"].__setitem__((1, 2), -128))
    floats = {name: tensors(folder / "w.safetensors")[1][name] for name in good if not name.endswith("scale")}
    told_of_nan = told(lambda t: t["joined"].__setitem__((0, 1), np.nan), floats, "quantize", "--save", tmp_path / "n.safetensors")
    assert "'joined' is not finite: element [0, 1] is NaN" in told_of_nan and not (tmp_path / "n.safetensors").exists()


def test_what_mtc_refuses(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(MODEL)

    def told(*flags):
        done = mtc(*flags, "m.mt", cwd=tmp_path)
        assert done.returncode != 0
        return done.stderr

    assert "--shards is for programs that train" in told("--precision", "int8", "--shards", "2", "--emit=plan")
    assert "--precision int8 does not go with --real f64" in told("--precision", "int8", "--target", "cpu", "--real", "f64", "--emit=c")
    (tmp_path / "m.mt").write_text(MODEL.replace("optimizer", "precision = int8\n  optimizer"))
    assert "nothing trains in int8" in told("--emit=plan")
    (tmp_path / "m.mt").write_text(MODEL.replace("scores = linear(joined, 4)", "scores = linear(flatten(image), 4)"))
    message = told("--precision", "int8", "--emit=plan")
    assert "no product of this model can be one of integers" in message and "has 512 numbers" in message


def test_graphs_say_where_integers_are(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(MODEL)
    text = mtc("--precision", "int8", "--emit=simple", "m.mt", cwd=tmp_path).stdout
    evaluation = text.split("graph eval")[1].split("\ngraph ")[0]
    assert evaluation.count("to_i8(") == 3 and evaluation.count(" : i32[") >= 3
    assert "i8[352, 48] joined" in evaluation  # a row for each output


def test_nvcc_takes_it(cuda_takes):
    cuda_takes(MODEL, "--precision", "int8")


@pytest.mark.gpu
def test_gpu_answers_as_the_cpu(made, compile_model, tmp_path):
    """Sums of integers are exact on both; what is kept between products is rounded to bf16 on a GPU."""
    folder, _, whole = made
    there = compile_model(MODEL, "--precision", "int8", target="cuda")
    there("quantize", "--data", folder, "--load", folder / "w.safetensors", "--save", tmp_path / "w8.safetensors", "--calibrate", 200)
    _, here = tensors(folder / "w8.safetensors")
    for name, array in tensors(tmp_path / "w8.safetensors")[1].items():
        assert np.allclose(array, here[name], rtol=0.02 if name.endswith("input_scale") else 0)
    loss, accuracy = evaluated(whole, folder, folder / "w8.safetensors")
    for _ in range(2):
        there_loss, there_accuracy = evaluated(there, folder, folder / "w8.safetensors")
        assert abs(there_accuracy - accuracy) <= 0.02 and abs(there_loss - loss) < 0.01 * loss


BRANCHES = MODEL.replace("  joined = relu(matmul(wide, weight([48, 352])))\n", "").replace(
    "  wide   = relu(linear(flatten(seen), 48))", "  flat   = flatten(seen)\n  joined = relu(linear(flat, 48)) * linear(flat, 48, name = \"gate\")")


def test_integers_are_made_once_of_what_several_weights_are_multiplied_with(mtc, tmp_path):
    """With the scale of the first: they are found in the values alone. A library of the prediction asks a file for no other."""
    (tmp_path / "m.mt").write_text(BRANCHES)
    graphs = mtc(tmp_path / "m.mt", "--precision", "int8", "--emit=simple").stdout
    assert graphs.split("graph eval")[1].split("graph watch")[0].count("to_i8(") == 2  # of the image, and of what is flat
    done = mtc(tmp_path / "m.mt", "--precision", "int8", "--target", "cpu", "--shared", "--predict-only", "--keep", tmp_path, "-o", tmp_path / "m.so")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "m.c").read_text()
    assert '"joined.weight.input_scale"' in text or '"wide.weight.input_scale"' in text
    assert '"gate.weight.input_scale"' not in text and '"gate.weight.scale"' in text and ".input_scale = -1" not in text
