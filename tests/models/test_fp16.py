"""Training in fp16: its products are of numbers with 5 bits of exponent, so the loss is scaled, and steps whose gradients overflow
make no update. compiler/pass/loss_scale.c"""

import numpy as np
import pytest
from fake_data import idx_bytes
from library import Library

EXAMPLES, WIDTH = 64, 64
MODEL = f"""data {{{{
  train = idx("x", "y")
  x : f32[{WIDTH}]
  y : f32[{WIDTH}]
}}}}
param factor = 1.0
model {{{{
  h = relu(linear(x, {WIDTH}, name = "h"))
  o = linear(h, {WIDTH}, name = "o")
}}}}
train {{{{
  loss      = factor * mse(o, y)
  optimizer = {{optimizer}}
  predict   = o
  batch     = {EXAMPLES}
  {{more}}
}}}}
"""
FIRST_SCALE, GROWTH_STEPS = 65536, 2000


def data():
    random = np.random.default_rng(5)
    return [random.normal(size=(EXAMPLES, WIDTH)).astype("f4") for _ in range(2)]


@pytest.fixture
def train(compile_model):
    """train(precision, steps, factor): losses and weights and states after so many steps on one batch."""
    def run(precision, steps, factor=1.0, optimizer="adam(1e-2)", more="", names=("h.weight",)):
        text = MODEL.format(optimizer=optimizer, more=more)
        library = Library(compile_model(text, "--shared", "--precision", precision).path, np.float32)
        library.set_data(data())
        library.set_knob("factor", factor)
        losses = library.train(steps, 1)[:, 0] if steps else []
        tensors = {name: library.get(name, (WIDTH, WIDTH) if name.startswith("h.") else (1,)) for name in names}
        library.close()
        return losses, tensors

    return run


SCALING = ("h.weight", "update.loss_scale", "update.steps_since_scaled", "update.skipped")


def test_it_trains_as_fp32(train):
    exact, rounded = train("fp32", 40)[0], train("fp16", 40)[0]
    assert rounded[-1] < 0.1 * rounded[0] and not np.array_equal(exact, rounded)
    np.testing.assert_allclose(rounded, exact, rtol=5e-3)


def test_small_gradients_survive(train):
    """Gradients of 1e-8, which fp16 would take for 0: Adam, whose updates do not depend on their size, goes on as with large ones."""
    large, small = train("fp16", 30)[0], train("fp16", 30, 1e-6, optimizer="adam(1e-2, eps = 1e-30)")[0]
    np.testing.assert_allclose(1e6 * small, large, rtol=2e-2)


def test_steps_that_overflow_change_nothing(train):
    """The scale is halved until gradients are finite; meanwhile weights stay, and Adam counts no update."""
    initial = train("fp16", 0, 1e4, names=SCALING)[1]
    assert initial["update.loss_scale"] == FIRST_SCALE
    first = train("fp16", 1, 1e4, names=SCALING)[1]
    assert first["update.skipped"] == 1 and first["update.loss_scale"] == FIRST_SCALE / 2
    assert np.array_equal(first["h.weight"], initial["h.weight"])
    later = train("fp16", 30, 1e4, names=SCALING)[1]
    skipped = int(later["update.skipped"][0])
    assert 1 < skipped < 20 and later["update.loss_scale"] == FIRST_SCALE / 2**skipped
    assert later["update.steps_since_scaled"] == 30 - skipped
    moved = train("fp16", skipped + 1, 1e4, names=SCALING)[1]["h.weight"]
    exact = train("fp32", 1, 1e4)[1]["h.weight"]
    sizes = np.abs(exact - initial["h.weight"])
    close = np.abs(moved - exact) < 0.1 * sizes.max()  # a sign of a gradient near 0 may differ: Adam's first step is its sign
    assert close.mean() > 0.98


def test_large_losses_train(train):
    """Their gradients are beyond 65504 with a scale of 1 too: it goes below."""
    losses, tensors = train("fp16", 60, 1e9, names=SCALING)
    assert tensors["update.loss_scale"] < 1 and tensors["update.steps_since_scaled"] > 20
    assert losses[-1] < 0.5 * losses[0]


def test_the_scale_grows(train):
    tensors = train("fp16", GROWTH_STEPS + 5, names=SCALING, optimizer="sgd(1e-4)")[1]
    assert tensors["update.loss_scale"] == 2 * FIRST_SCALE
    assert tensors["update.steps_since_scaled"] == 5 and tensors["update.skipped"] == 0


def test_accumulated_gradients_are_judged_together(train):
    """Of four steps that make one update, the last one decides."""
    for steps, skipped in ((3, 0), (4, 1), (8, 2)):
        tensors = train("fp16", steps, 1e4, names=SCALING, more="accumulate = 4")[1]
        assert tensors["update.skipped"] == skipped and tensors["update.loss_scale"] == FIRST_SCALE / 2**skipped


def test_clipping_sees_the_norm_of_the_loss(train):
    """clip_norm and clip_value are of gradients that are not scaled."""
    for more in ("clip_norm = 0.01", "clip_value = 0.001"):
        exact, rounded = (train(precision, 20, optimizer="sgd(1)", more=more)[0] for precision in ("fp32", "fp16"))
        np.testing.assert_allclose(rounded, exact, rtol=1e-3)
        assert exact[-1] < exact[0]


def test_updates_that_are_all_left_out_are_told(compile_model, tmp_path):
    """A gradient that is no number whatever the scale, of a loss that is one: the root of 0 has none."""
    text = MODEL.format(optimizer="sgd(1e-3)", more="epochs = 60").replace("factor * mse(o, y)", "mse(o, y) + sqrt(factor * mean(square(o)))")
    for name, field in zip("xy", data()):
        (tmp_path / name).write_bytes(idx_bytes(field))
    program = compile_model(text, "--precision", "fp16")
    for factor, told in ((1, 0), (0, 1)):
        done = program("--data", tmp_path, "--factor", factor)
        assert done.stderr.count("60 updates were left out, the last one too") == told, done.stderr


TURNS = "[adam(1e-2, every = 2, at = 1, weights = \"h.*\"), adam(1e-2, every = 2)]"


@pytest.mark.quick
def test_optimizers_that_take_turns_count_their_own_skipped_updates(train):
    """Adam's first update is its number 1 however many were left out before it: m / (1 - beta) is the gradient then, and a weight moves
    by the rate."""
    names = (*SCALING, "update.skipped_by_1", "update.skipped_by_2")
    initial = train("fp16", 0, 1e4, optimizer=TURNS)[1]["h.weight"]
    skipped = int(train("fp16", 30, 1e4, optimizer=TURNS, names=names)[1]["update.skipped"][0])
    for steps in range(1, skipped + 3):
        tensors = train("fp16", steps, 1e4, optimizer=TURNS, names=names)[1]
        own = [int(tensors[f"update.skipped_by_{row}"][0]) for row in (1, 2)]
        assert sum(own) == tensors["update.skipped"] and own == [min((steps + 1) // 2, own[0]), min(steps // 2, own[1])]
        moved = np.abs(tensors["h.weight"] - initial).max()
        if moved:
            assert own[0] > 0 and moved == pytest.approx(1e-2, rel=1e-3)
            return
    raise AssertionError("the first optimizer made no update")


NORMED = MODEL.replace('name = "h"))', 'name = "h"))\n  n = batch_norm(h, name = "n")').replace("linear(h", "linear(n")


@pytest.mark.quick
@pytest.mark.parametrize("more", ["", "accumulate = 2", "shards = 2"])
def test_a_step_that_is_skipped_moves_no_running_statistics(compile_model, more):
    text = NORMED.format(optimizer="sgd(1e-6)", more="" if more.startswith("shards") else more)
    flags = ["--shards", "2"] if more.startswith("shards") else []
    library = Library(compile_model(text, "--shared", "--precision", "fp16", *flags).path, np.float32)
    library.set_data(data())
    state = lambda name: library.get(name, (1,))[0]  # noqa: E731
    statistics = lambda: [library.get(f"n.running_{name}", (WIDTH,)) for name in ("mean", "var")]  # noqa: E731
    library.set_knob("factor", 1e4)
    initial = statistics()
    library.train(2, 1)
    assert state("update.skipped") > 0 and state("update.steps_since_scaled") == 0
    assert np.array_equal(statistics(), initial)
    library.set_knob("factor", 1e-6)
    library.train(2, 1)
    assert state("update.steps_since_scaled") > 0
    assert all((now != before).any() for now, before in zip(statistics(), initial))
    library.close()


@pytest.mark.quick
def test_a_training_goes_on_in_its_precision(compile_model, tmp_path):
    text = MODEL.format(optimizer="sgd(1e-3)", more="epochs = 1")
    for name, field in zip("xy", data()):
        (tmp_path / name).write_bytes(idx_bytes(field))
    narrow, plain = (compile_model(text, "--precision", precision) for precision in ("fp16", "fp32"))
    for first, second, said in ((narrow, plain, "it was trained in fp16, with a loss that is scaled"), (plain, narrow, "this program is compiled for fp16")):
        first("--data", tmp_path, "--save", tmp_path / "w")
        done = second("--data", tmp_path, "--resume", tmp_path / "w", check=False)
        assert done.returncode == 65 and said in done.stderr, done.stderr
        second("--data", tmp_path, "--init-from", tmp_path / "w")
