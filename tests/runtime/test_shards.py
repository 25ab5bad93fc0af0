"""A batch in shards is the batch: the same losses, weights and averages, whatever the model does between gradients and weights,
and for batches that shards do not divide."""

import json
import re

import numpy as np
import pytest
from fake_data import unpack

EXAMPLES, STEPS = 46, 12
DATA = """data {
  train = npz("d.npz")
  image : f32[3, 8, 8]
  label : class[5]
}
"""


def text(body, loss="cross_entropy(y, label)", train="optimizer = adam(0.01)", batch=10):
    return f"""{DATA}
model {{
{body}
  y = linear(flatten(h), 5)
}}

train {{
  loss   = {loss}
  {train}
  batch  = {batch}
  epochs = 20
}}
"""


MODELS = {
    "convolution": text("  h = relu(conv2d(image, 4, 3))"),
    "chance": text("  h = dropout(random_resized_crop(rotate(color_jitter(cutout(random_flip(random_flip(random_crop(image, 2)), alternate = true), 3), 0.4, 0.3, 0.2, white = 1), 20)), 0.4) + random_normal([3, 8, 8], std = 0.1)"
                   " * bernoulli(0.3, [3, 8, 8])"),
    "updates": text("  h = tanh(linear(flatten(image), 6))", train="optimizer = adamw(cosine_lr(0.02), weight_decay = 0.1)\n"
                    "  accumulate = 3\n  clip_norm = 0.3\n  clip_value = 0.2\n  ema = 0.9"),
    "turns": text("  h = tanh(linear(flatten(image), 6))", train="optimizer = rmsprop(0.01, momentum = 0.9, centered = true, weight_decay = 0.1, every = 2)"),
    "one gradient of two weights": text("  b = weight([192])\n  c = weight([192])\n  h = tanh(flatten(image) + b + c)"),
    "penalty": text("  w = weight([192])\n  h = flatten(image) * w", loss="cross_entropy(y, label) + sum(w * w)\n  predict = y"),
    "without examples": text("  w = weight([192])\n  h = flatten(image) * w", loss="sum(w * w)\n  predict = y\n  freeze = [\"y.*\"]"),
    "normalize": text("  h = tanh(linear(flatten(normalize(image)), 6))"),
    # without biases ahead of a norm, whose gradients are 0 but for rounding, which Adam makes large
    "whole statistics": text("  c = conv2d(image, 4, 3, bias = false)\n  n = batch_norm(c, sync = true)\n  v = batch_norm(linear(relu(n), 7, bias = false), sync = true, affine = false)\n"
                             "  g = conv2d(image, 4, 3, bias = false)\n  h = concat([flatten(v), flatten(batch_norm(n * g, sync = true, momentum = 0.3))])"),
    "lookup": text("  h = flatten(image) * gather(weight([5, 192]), label)"),
}
# 144 MB of gradients
IN_TURNS = text("  h = linear(linear(flatten(image), 6000), 6000, bias = false)", train="optimizer = sgd(0.01)")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "d.npz", image=rng.normal(size=(EXAMPLES, 3, 8, 8)).astype(np.float32),
             label=rng.integers(0, 5, EXAMPLES).astype(np.uint8))
    return tmp_path


def train(program, folder, name, steps=STEPS):
    program("--data", ".", "--limit-steps", steps, "--log", f"{name}.jsonl", "--log-every", 1, "--save", name, "--quiet",
            cwd=folder)
    lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line and "step" in line]
    return np.array(losses[:steps]), values((folder / name).read_bytes())


def values(content):
    header, data = unpack(content)
    header.pop("__metadata__")
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], {"F64": "<f8", "F32": "<f4"}[entry["dtype"]]) for name, entry in header.items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_in_shards_is_the_batch(compile_model, folder, name):
    """46 examples in batches of 10: three shards have 4, 4 and 2 of them, and of the 6 that the last batch of an epoch has 4, 2 and
    none."""
    plain = compile_model(MODELS[name], "--real", "f64")
    cut = compile_model(MODELS[name], "--real", "f64", "--shards", 3)
    expected, before = train(plain, folder, "plain")
    losses, after = train(cut, folder, "cut")
    assert len(expected) == STEPS and np.allclose(losses, expected, rtol=1e-12, atol=1e-13)
    assert before.keys() == after.keys()
    for tensor in before:
        assert np.allclose(after[tensor], before[tensor], rtol=1e-9, atol=1e-11), tensor


def test_running_means_move_by_the_mean_over_shards(compile_model, folder):
    """Mean and variance are those of a shard: where all are as large, the mean of means is that of the batch."""
    one = text("  h = batch_norm(image)", batch=46)
    _, whole = train(compile_model(one, "--real", "f64"), folder, "plain", 1)
    _, cut = train(compile_model(one, "--real", "f64", "--shards", 2), folder, "cut", 1)
    assert np.allclose(cut["h.running_mean"], whole["h.running_mean"], rtol=1e-12)
    assert np.all(cut["h.running_var"] != whole["h.running_var"])


@pytest.mark.parametrize("name", ["updates", "whole statistics"])
def test_the_plan_knows_what_shards_ask_for(compile_model, mtc, tmp_path, name):
    """The sums that wait for those of the next shards; no snapshot has a copy of any. Where shards wait for each other, values of all."""
    (tmp_path / "m.mt").write_text(MODELS[name])
    plan = mtc(tmp_path / "m.mt", "--emit=plan", "--target", "cpu", "--real", "f64", "--shards", 3).stdout
    told, = re.findall(r"^device .* beside the data \((\d+) bytes\): .*, sums over shards ", compile_model(
        MODELS[name], "--real", "f64", "--shards", 3)("info").stdout, re.M)
    assert re.search(rf"^  all +{told}$", plan, re.M), plan


@pytest.mark.quick
def test_a_training_goes_on_in_shards(compile_model, folder):
    model = MODELS["updates"]
    plain, cut = compile_model(model, "--real", "f64"), compile_model(model, "--real", "f64", "--shards", 3)
    expected, before = train(plain, folder, "plain")
    train(plain, folder, "part", 7)
    cut("--data", ".", "--resume", "part", "--save", "part", "--limit-steps", STEPS, "--quiet", cwd=folder)
    after = values((folder / "part").read_bytes())
    for tensor in before:
        assert np.allclose(after[tensor], before[tensor], rtol=1e-9, atol=1e-11), tensor


@pytest.mark.quick
def test_bytes_do_not_depend_on_threads(compile_model, folder):
    program, saved = compile_model(MODELS["convolution"], "--shards", 5), []
    for threads in 1, 2, 3:
        program("--data", ".", "--limit-steps", STEPS, "--save", "w", "--quiet", cwd=folder, threads=threads)
        saved.append((folder / "w").read_bytes())
    assert saved[0] == saved[1] == saved[2]


STATES = f"""{DATA}
model {{
  a = weight([3, 8, 8])
  b = weight([3, 8, 8])
}}

train {{
  loss      = sum((a + b) * image)
  predict   = image
  optimizer = [adam(0.01, weights = "a"), lion(0.01, weight_decay = 0.1, weights = "b")]
  batch     = 16
  epochs    = 100
}}
"""


@pytest.mark.quick
def test_an_update_reads_states_before_it_overwrites_them(compile_model, tmp_path):
    """Each optimizer's update is one kernel, which stores several values: to the bit what the formulas say in f32. The gradient is a mean of
    sixteen small whole numbers, which has no rounding."""
    images = np.random.default_rng(4).integers(-9, 9, (16, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "d.npz", image=images, label=np.zeros(16, np.uint8))
    program, f = compile_model(STATES, "--shards", 2), np.float32
    b = train(program, tmp_path, "begin", 1)[1]["b"].reshape(3, 8, 8)
    g, saved = images.mean(0, dtype=f), train(program, tmp_path, "end")[1]
    m, v, lion = (np.zeros_like(g) for _ in range(3))
    for step in range(STEPS):
        m, v = f(0.9) * m + f(0.1) * g, f(0.999) * v + f(0.001) * (g * g)
        direction = np.sign(f(0.9) * lion + f(0.1) * g)
        b = b * f(0.999) - f(0.01) * direction if step else b
        lion = f(0.99) * lion + f(0.01) * g
    for name, expected in (("a.m", m), ("a.v", v), ("b.m", lion), ("b", b)):
        assert np.array_equal(saved[name], expected.ravel()), name


@pytest.mark.quick
def test_the_first_bad_tensor_is_found(compile_model, folder):
    program = compile_model(text("  h = log(flatten(image) + 0.9)"), "--shards", 2)
    done = program("--data", ".", cwd=folder, check=False)
    assert done.returncode == 65 and "the first bad tensor is the value 'h'" in done.stderr, done.stderr


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["chance", "updates", "normalize"])
def test_cuda_takes_shards(cuda_takes, name):
    cuda_takes(MODELS[name], "--shards", "3")


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_a_batch_in_shards_is_the_batch_on_a_gpu(compile_model, folder, name):
    plain = compile_model(MODELS[name], target="cuda")
    cut = compile_model(MODELS[name], "--shards", 3, target="cuda")
    expected, _ = train(plain, folder, "plain")
    losses, _ = train(cut, folder, "cut")
    assert len(losses) == STEPS and np.allclose(losses, expected, rtol=1e-5, atol=1e-6)
    train(cut, folder, "again")
    assert (folder / "cut").read_bytes() == (folder / "again").read_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("shards", [15, 16, 17])
def test_many_shards_on_a_gpu(compile_model, folder, shards):
    """A graph has up to sixteen of them; the host launches more."""
    model = text("  h = relu(conv2d(image, 4, 3))", batch=2 * shards)
    expected, _ = train(compile_model(model, target="cuda"), folder, "plain")
    cut = compile_model(model, "--shards", shards, target="cuda")
    losses, _ = train(cut, folder, "cut")
    assert len(losses) == STEPS and np.allclose(losses, expected, rtol=1e-5, atol=1e-6)
    assert train(compile_model(model, "--shards", shards), folder, "cpu")[0] == pytest.approx(losses, rel=1e-5, abs=1e-6)
    train(cut, folder, "again")
    assert (folder / "cut").read_bytes() == (folder / "again").read_bytes()


@pytest.mark.quick
@pytest.mark.parametrize("name", ["updates", "whole statistics"])
def test_profile_measures_a_shard_and_the_work_of_all(compile_model, folder, name):
    program = compile_model(MODELS[name], "--shards", 2)
    told = json.loads(program("profile", "--data", ".", "--runs", 2, "--json", cwd=folder).stdout)
    own, = told["ranks"]
    assert told["shards"] == 2 and told["batch"] == 5 and told["us_per_step"] > 0 and own["us_own"] > 0
    shown = program("profile", "--data", ".", "--runs", 2, cwd=folder).stdout
    assert "of a shard's kernels, each launched alone" in shown and re.search(r"^work +[\d.]+  all shards and the update$", shown, re.M)


@pytest.mark.quick
def test_without_shards_statistics_are_of_the_whole_batch_anyway(mtc, tmp_path):
    said = []
    for layer in "batch_norm(image, sync = true)", "batch_norm(image)":
        (tmp_path / "m.mt").write_text(text(f"  h = {layer}"))
        said.append(mtc(tmp_path / "m.mt", "--target", "cpu", "--emit=simple").stdout)
    assert said[0].replace("(image, sync = true)", "(image)") == said[1]


@pytest.mark.quick
def test_a_feed_measures_what_the_device_would(compile_model, folder, monkeypatch):
    """Windows of a feed are of whole steps, and end in the midst of a shard's four examples. Later windows were once read where they are not."""
    program, saved = compile_model(MODELS["normalize"], "--shards", 3), []
    monkeypatch.setenv("MTC_WINDOW", "16000")
    for place in "device", "host":
        program("--data", ".", "--limit-steps", 2, "--save", "w", "--quiet", "--data-on", place, cwd=folder)
        saved.append((folder / "w").read_bytes())
    assert saved[0] == saved[1]
