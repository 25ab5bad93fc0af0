"""Metrics over a set of examples against scikit-learn's definitions, written here in NumPy and float64."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.quick

NUMBERS = """param lr = 0.01
data {
  train = npz("train.npz")
  test  = npz("test.npz")
  x : f32[3]
  y : f32[OUT]
}
model { p = linear(x, OUT) }
train {
  loss      = mse(p, y)
  metric    = [rmse(p, y), mae(p, y), r2(p, y), mape(p, y)]
  optimizer = adam(lr)
  batch     = 32
  epochs    = 4
}
"""


def rmse(p, y):
    return np.mean(np.sqrt(np.mean((p - y) ** 2, axis=0)))


def r2(p, y):
    left, all_of_it = ((p - y) ** 2).sum(axis=0), ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    return np.mean(np.where(all_of_it > 0, 1 - left / np.where(all_of_it > 0, all_of_it, 1), left == 0))


def mape(p, y):
    return np.mean(np.abs(p - y) / np.maximum(np.abs(y), np.finfo(np.float64).eps))


def write(folder, rows, **arrays):
    """The last rows are the test data."""
    np.savez(folder / "train.npz", **{name: array[:-rows] for name, array in arrays.items()})
    np.savez(folder / "test.npz", **{name: array[-rows:] for name, array in arrays.items()})


def numbers(count, out, offset):
    generator = np.random.default_rng(count)
    x = generator.normal(size=(count, 3)).astype("f4")
    y = (x @ generator.normal(size=(3, out)) + offset + 0.1 * generator.normal(size=(count, out))).astype("f4")
    return {"x": x, "y": y}


def logged(path, event):
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["event"] == event]


def train(program, folder, *flags):
    """What the training says of the test data at its end, and what it predicts for them then."""
    program("--data", folder, "--save", folder / "w", "--log", folder / "log", "--quiet", *flags)
    program("predict", "--data", folder, "--load", folder / "w", "--split", "test", "--output", folder / "p.npy")
    return logged(folder / "log", "epoch")[-1], np.load(folder / "p.npy").astype("f8")


@pytest.mark.parametrize("count, out, offset", [(303, 1, 3), (77, 2, 3), (100_000, 1, 1000)])
def test_metrics_of_numbers(count, out, offset, compile_model, tmp_path):
    """The last batch is smaller. Where the mean is a thousand deviations, sums of squares would leave no digit of r2."""
    data = numbers(count + 9, out, offset)
    write(tmp_path, count, **data)
    line, p = train(compile_model(NUMBERS.replace("OUT", str(out))), tmp_path)
    y = data["y"][-count:].astype("f8")
    assert {name: line[f"test_{name}"] for name in ("rmse", "r2", "mape")} == {
        name: pytest.approx(value, rel=1e-6) for name, value in (("rmse", rmse(p, y)), ("r2", r2(p, y)), ("mape", mape(p, y)))}
    assert "rmse" not in line and line["test_mae"] == pytest.approx(np.abs(p - y).mean(), rel=1e-5)


def test_a_target_that_is_the_same_in_all_examples(compile_model, tmp_path):
    data = {"x": np.zeros((40, 3), "f4"), "y": np.full((40, 2), 0.5, "f4")}
    write(tmp_path, 20, **data)
    program = compile_model(NUMBERS.replace("linear(x, OUT)", "linear(x, 2, bias = false)").replace("OUT", "2"))
    line, p = train(program, tmp_path, "--lr", 0)
    assert line["test_r2"] == 0 and not p.any()
    data["y"][:, 1] = 0
    write(tmp_path, 20, **data)
    line, _ = train(program, tmp_path, "--lr", 0)
    assert line["test_r2"] == 0.5 and line["test_mape"] == 0.5


def test_of_a_target_that_is_0_the_error_in_percent_is_huge(compile_model, tmp_path):
    data = {"x": np.ones((40, 3), "f4"), "y": np.zeros((40, 1), "f4")}
    write(tmp_path, 20, **data)
    line, p = train(compile_model(NUMBERS.replace("OUT", "1")), tmp_path)
    assert line["test_mape"] == pytest.approx(mape(p, np.zeros((20, 1))), rel=1e-6) and line["test_mape"] > 1e9


def test_the_same_bits_whatever_the_threads_and_after_resuming(compile_model, tmp_path):
    write(tmp_path, 303, **numbers(900, 1, 3))
    program = compile_model(NUMBERS.replace("OUT", "1"))

    def run(threads, log, *flags):
        program("--data", tmp_path, "--log", tmp_path / log, "--quiet", *flags, threads=threads)
        return [{key: value for key, value in line.items() if key != "seconds"} for line in logged(tmp_path / log, "epoch")]

    whole = run(1, "a")
    assert run(2, "b") == whole
    run(2, "c", "--save", tmp_path / "w", "--limit-steps", 30)
    assert run(1, "c", "--resume", tmp_path / "w")[-1] == whole[-1]


def test_best_weights_by_a_metric_over_the_set(compile_model, tmp_path):
    """r2 is best where it is highest, rmse where it is lowest; both at the same step."""
    write(tmp_path, 303, **numbers(900, 1, 3))
    program = compile_model(NUMBERS.replace("OUT", "1"))
    for name, best in ("r2", max), ("rmse", min):
        done = program("--data", tmp_path, "--save", tmp_path / "w", "--log", tmp_path / "log", "--monitor", name)
        value = best(line[f"test_{name}"] for line in logged(tmp_path / "log", "epoch"))
        assert f"best test {name} {value:.6g} after step 76" in done.stdout, done.stdout
    refused = program("--data", tmp_path, "--monitor", "r3", check=False)
    assert "the model has no metric 'r3'; did you mean 'r2'?" in refused.stderr
    assert "it has loss, mae, rmse, r2, mape" in refused.stderr


def test_eval_computes_them_of_any_split(compile_model, tmp_path):
    data = numbers(1300, 1, 3)
    write(tmp_path, 303, **data)
    program = compile_model(NUMBERS.replace("OUT", "1"))
    line, _ = train(program, tmp_path)
    done = program("eval", "--data", tmp_path, "--load", tmp_path / "w")
    assert f"r2 {line['test_r2']:.6g}" in done.stdout
    done = program("eval", "--data", tmp_path, "--load", tmp_path / "w", "--split", "train")
    program("predict", "--data", tmp_path, "--load", tmp_path / "w", "--split", "train", "--output", tmp_path / "p.npy")
    expected = r2(np.load(tmp_path / "p.npy").astype("f8"), data["y"][:-303].astype("f8"))
    assert f"r2 {expected:.6g}" in done.stdout


def test_a_metric_that_is_not_finite_ends_training(compile_model, tmp_path):
    data = numbers(400, 1, 3)
    data["y"][-1] = np.inf
    write(tmp_path, 300, **data)
    text = NUMBERS.replace("OUT", "1").replace("= mse(p, y)", "= mse(p, sum(x))").replace("mae(p, y)", "mae(p, sum(x))")
    done = compile_model(text)("--data", tmp_path, check=False)
    assert done.returncode == 65 and "the rmse over the data set 'test' is inf" in done.stderr


# ---- classes ----

SCORES = """data {
  train = npz("train.npz")
  test  = npz("test.npz")
  x : f32[3]
  y : class[CLASSES]
}
model {
  s      = linear(x, CLASSES)
  p_macro    = precision(s, y, average = "macro")
  p_micro    = precision(s, y, average = "micro")
  p_weighted = precision(s, y, average = "weighted")
  r_macro    = recall(s, y, average = "macro")
  r_micro    = recall(s, y, average = "micro")
  r_weighted = recall(s, y, average = "weighted")
  f_macro    = f1(s, y, average = "macro")
  f_micro    = f1(s, y, average = "micro")
  f_weighted = f1(s, y, average = "weighted")
  top1       = top_k_accuracy(s, y, k = 1)
}
train {
  loss      = cross_entropy(s, y)
  metric    = [p_macro, p_micro, p_weighted, r_macro, r_micro, r_weighted, f_macro, f_micro, f_weighted, accuracy(s, y), top1, EXTRA]
  predict   = s
  optimizer = adam(0.01)
  batch     = 32
  epochs    = 3
}
"""
YES_OR_NO = """data {
  train = npz("train.npz")
  test  = npz("test.npz")
  x : f32[3]
  y : u8[OUT]
}
model { p = sigmoid(linear(x, OUT)) }
train {
  loss      = bce(p, y)
  metric    = [precision(p, y), recall(p, y), f1(p, y), roc_auc(p, y), average_precision(p, y)]
  optimizer = adam(0.02)
  batch     = 32
  epochs    = 3
}
"""


def share(part, whole):
    """zero_division = 0"""
    return part / whole if whole else 0.0


def of_counts(right, predicted, actual):
    return share(right, predicted), share(right, actual), share(2 * right, predicted + actual)


def class_metrics(predicted, actual, classes):
    """By average, precision, recall and F1; classes that occur nowhere are none of scikit-learn's `labels`."""
    found = [k for k in range(classes) if (predicted == k).any() or (actual == k).any()]
    counts = np.array([[((predicted == k) & (actual == k)).sum(), (predicted == k).sum(), (actual == k).sum()] for k in found], "f8")
    scores = np.array([of_counts(*row) for row in counts])
    return {"macro": scores.mean(axis=0), "micro": of_counts(*counts.sum(axis=0)),
            "weighted": (scores * counts[:, 2:]).sum(axis=0) / counts[:, 2].sum(), "each": scores}


def roc_auc(score, positive):
    """The share of pairs in which the one to be found has the higher score; equal scores count half."""
    order = np.sort(score[~positive])
    below, up_to = (np.searchsorted(order, score[positive], side) for side in ("left", "right"))
    return (below + up_to).sum() / 2 / (positive.sum() * (~positive).sum())


def average_precision(score, positive):
    """sum over thresholds t, from high to low, of (R_t - R_before) P_t"""
    result, before = 0.0, 0.0
    for threshold in np.unique(score)[::-1]:
        chosen = score >= threshold
        recall = positive[chosen].sum() / positive.sum()
        result += (recall - before) * positive[chosen].mean()
        before = recall
    return result


def labelled(count, classes, seed=5):
    """Scores can be told apart more or less; coarse numbers make equal scores."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, count)
    x = np.round(generator.normal(size=(count, 3)) + y[:, None] * [0.5, -0.3, 0.1], 1)
    return {"x": x.astype("f4"), "y": y.astype("u1")}


@pytest.mark.parametrize("count, classes", [(303, 2), (100_000, 5), (40, 200)])
def test_metrics_of_classes(count, classes, compile_model, tmp_path):
    """Of 200 classes and 40 examples most classes occur nowhere, and others only among labels or predictions."""
    data = labelled(count + 500, classes)
    write(tmp_path, count, **data)
    line, s = train(compile_model(SCORES.replace("CLASSES", str(classes)).replace("EXTRA", "perplexity(s, y)")), tmp_path)
    expected = class_metrics(s.argmax(axis=1), data["y"][-count:], classes)
    for average in "macro", "micro", "weighted":
        found = [line[f"test_{name}_{average}"] for name in "prf"]
        assert found == pytest.approx(list(expected[average]), rel=1e-7), average
    assert line["test_p_micro"] == pytest.approx(line["test_accuracy"], rel=1e-6)
    assert line["test_top1"] == line["test_accuracy"]
    assert line["test_perplexity"] == pytest.approx(np.exp(line["test_loss"]), rel=1e-6)


def test_two_classes_are_about_the_second(compile_model, tmp_path):
    data = labelled(803, 2)
    write(tmp_path, 303, **data)
    text = SCORES.replace("CLASSES", "2").replace("EXTRA", "precision(s, y), recall(s, y), f1(s, y), roc_auc(s, y), average_precision(s, y)")
    line, s = train(compile_model(text.replace("p_micro, p_weighted, r_macro, ", "").replace("r_micro, r_weighted, ", "")), tmp_path)
    y = data["y"][-303:] == 1
    expected = class_metrics(s.argmax(axis=1), y, 2)["each"][1]
    assert [line[f"test_{name}"] for name in ("precision", "recall", "f1")] == pytest.approx(list(expected), rel=1e-7)
    score = s[:, 1] - s[:, 0]
    assert line["test_roc_auc"] == pytest.approx(roc_auc(score, y), rel=1e-7)
    assert line["test_average_precision"] == pytest.approx(average_precision(score, y), rel=1e-7)


def test_ranks_of_several_classes(compile_model, tmp_path):
    """Each class against the others; the last has no example, and does not count."""
    data = labelled(1403, 4)
    write(tmp_path, 903, **data)
    text = SCORES.replace("CLASSES", "5").replace("predict   = s", "predict   = softmax(s)")
    text = text.replace("EXTRA", "roc_auc(softmax(s), y), average_precision(softmax(s), y)")
    line, p = train(compile_model(text), tmp_path)
    for name, function in ("roc_auc", roc_auc), ("average_precision", average_precision):
        expected = np.mean([function(p[:, k], data["y"][-903:] == k) for k in range(4)])
        assert line[f"test_{name}"] == pytest.approx(expected, rel=1e-7), name


@pytest.mark.parametrize("out", [1, 3])
def test_numbers_that_say_yes_or_no(out, compile_model, tmp_path):
    """One tells two classes apart; of several each is a question of its own, and the mean is over all of them."""
    generator = np.random.default_rng(out)
    x = np.round(generator.normal(size=(903, 3)), 1).astype("f4")
    y = (x @ generator.normal(size=(3, out)) + generator.normal(size=(903, out)) > 0.5).astype("u1")
    write(tmp_path, 403, x=x, y=y)
    line, p = train(compile_model(YES_OR_NO.replace("OUT", str(out))), tmp_path)
    p, y = p.reshape(-1, out), y[-403:] > 0
    rows = [(*class_metrics(p[:, k] > 0.5, y[:, k], 2)["each"][1], roc_auc(p[:, k], y[:, k]), average_precision(p[:, k], y[:, k]))
            for k in range(out)]
    found = [line[f"test_{name}"] for name in ("precision", "recall", "f1", "roc_auc", "average_precision")]
    assert found == pytest.approx(list(np.mean(rows, axis=0)), rel=1e-7)


def test_what_is_never_predicted_has_precision_0(compile_model, tmp_path):
    write(tmp_path, 20, x=np.zeros((40, 3), "f4"), y=np.repeat([[0], [1]], 20, axis=0).astype("u1"))
    program = compile_model(YES_OR_NO.replace("linear(x, OUT)", "linear(x, 1, bias = false)").replace("OUT", "1").replace("roc_auc(p, y), ", ""))
    line, _ = train(program, tmp_path)
    assert [line[f"test_{name}"] for name in ("precision", "recall", "f1", "average_precision")] == [0, 0, 0, 1]


def test_ranks_of_one_sort_of_examples(compile_model, tmp_path):
    data = labelled(60, 2)
    data["y"][-20:] = 1
    write(tmp_path, 20, **data)
    text = SCORES.replace("CLASSES", "2").replace("EXTRA", "roc_auc(s, y)")
    done = compile_model(text)("--data", tmp_path, check=False)
    assert done.returncode == 65 and "the roc_auc over the data set 'test' is NaN" in done.stderr
    assert "roc_auc of examples that are all of one class" in done.stderr


def test_top_k(compile_model, tmp_path):
    data = labelled(803, 5)
    write(tmp_path, 303, **data)
    line, s = train(compile_model(SCORES.replace("CLASSES", "5").replace("EXTRA", "top_k_accuracy(s, y, k = 3)")), tmp_path)
    top = np.argsort(-s, axis=1, kind="stable")[:, :3]
    assert line["test_top_k_accuracy"] == pytest.approx((top == data["y"][-303:, None]).any(axis=1).mean(), rel=1e-6)


def test_equal_scores_are_in_the_order_of_classes(compile_model, tmp_path):
    """As of accuracy, whose class is the first of equal ones."""
    write(tmp_path, 100, x=np.zeros((200, 3), "f4"), y=np.tile(np.arange(5), 40).astype("u1"))
    text = SCORES.replace("linear(x, CLASSES)", "linear(x, CLASSES, bias = false)").replace("CLASSES", "5")
    line, _ = train(compile_model(text.replace("EXTRA", "top_k_accuracy(s, y, k = 3)")), tmp_path)
    assert line["test_top_k_accuracy"] == pytest.approx(0.6, rel=1e-6)
    assert line["test_accuracy"] == line["test_top1"] == pytest.approx(0.2, rel=1e-6)


WORDS = """data {
  examples = tsv("t.tsv")
  split    = 50 / 20 / 30
  x        : f32[1] = column("x")
  kind     : class[3]
}
model { s = linear(x, 3) }
train {
  loss      = cross_entropy(s, kind)
  metric    = [confusion(s, kind), accuracy(s, kind)]
  predict   = s
  optimizer = adam(0.1)
  epochs    = 5
}
"""


def test_confusion_matrix(compile_model, tmp_path):
    """In the log of each evaluation and under the line of `eval`, where classes are the words of the data."""
    generator = np.random.default_rng(1)
    kinds = np.array(["eggs", "ham", "spätzle"])
    label = generator.integers(0, 3, 301)
    rows = [f"{2 * k + generator.normal():.2f}\t{kinds[k]}\n" for k in label]
    (tmp_path / "t.tsv").write_text("x\tkind\n" + "".join(rows))
    program = compile_model(WORDS)
    line, s = train(program, tmp_path)
    (test,) = logged(tmp_path / "log", "test")
    done = program("eval", "--data", tmp_path, "--load", tmp_path / "w")
    table = [row.split() for row in done.stdout.splitlines()[2:]]
    assert table[0] == list(kinds) and [row[0] for row in table[1:]] == list(kinds)
    assert len({len(row) for row in done.stdout.splitlines()[2:]}) == 1  # its columns stand below each other
    found = np.array([row[1:] for row in table[1:]], int)
    assert found.tolist() == test["test_confusion"] and found.sum() == len(s)
    assert found.sum(axis=0).tolist() == np.bincount(s.argmax(axis=1), minlength=3).tolist()
    assert np.trace(found) / len(s) == pytest.approx(test["test_accuracy"], rel=1e-6)
    matrix = np.array(line["validation_confusion"])
    assert np.trace(matrix) / matrix.sum() == pytest.approx(line["validation_accuracy"], rel=1e-6)


def test_names_of_the_matrix_in_the_log(compile_model, tmp_path):
    """Words of the training data, and one for words that it does not have."""
    text = ('data {\n  train = csv("t.csv")\n  test = csv("t.csv")\n  x : f32\n  kind : class[4] = column("kind", unseen = "other")\n}\n'
            "model { s = linear(reshape(x, [1]), 4) }\n"
            "train {\n  loss = cross_entropy(s, kind)\n  metric = confusion(s, kind)\n  optimizer = sgd(0.1)\n  epochs = 1\n}\n")
    (tmp_path / "t.csv").write_text('x,kind\n1,"a ""b"""\n2,c\n3,d\n')
    compile_model(text)("--data", tmp_path, "--log", tmp_path / "log", "--quiet")
    line = logged(tmp_path / "log", "epoch")[-1]
    assert line["test_classes"] == ['a "b"', "c", "d", "other"] and np.sum(line["test_confusion"]) == 3


def test_confusion_of_yes_and_no(compile_model, tmp_path):
    generator = np.random.default_rng(9)
    x = generator.normal(size=(700, 3)).astype("f4")
    y = (x[:, :1] + generator.normal(size=(700, 1)) > 0).astype("u1")
    write(tmp_path, 300, x=x, y=y)
    text = YES_OR_NO.replace("OUT", "1").replace("precision(p, y), recall(p, y), f1(p, y)", "confusion(p, y)")
    line, p = train(compile_model(text), tmp_path)
    said, truth = p.ravel() > 0.5, y[-300:, 0] > 0
    assert line["test_confusion"] == [[int((~truth & ~said).sum()), int((~truth & said).sum())],
                                      [int((truth & ~said).sum()), int((truth & said).sum())]]


def test_a_label_that_the_model_computes_may_be_no_class(compile_model, tmp_path):
    """It is then of none: what is taken for a class counts, and no memory beyond the classes is touched."""
    data = labelled(500, 5)
    write(tmp_path, 200, **data)
    text = SCORES.replace("CLASSES", "5").replace("EXTRA", "confusion(s, y + 3)")
    text = text.replace('recall(s, y, average = "macro")', 'recall(s, y + 3, average = "macro")')
    line, s = train(compile_model(text), tmp_path)
    label, said = data["y"][-200:] + 3, s.argmax(axis=1)
    expected = [[int(((label == i) & (said == j)).sum()) for j in range(5)] for i in range(5)]
    assert line["test_confusion"] == expected and sum(map(sum, expected)) < 200


def test_scores_that_are_no_numbers_are_taken_for_no_class(compile_model, tmp_path):
    """None of them is the highest: an example counts as one of its class, in no column of the matrix."""
    data = labelled(400, 3)
    write(tmp_path, 200, **data)
    bad = "s * sqrt(where(x[0] > 0, 0 * x[0] - 1, 1))"
    text = SCORES.replace("CLASSES", "3").replace("EXTRA", f"confusion({bad}, y)")
    text = text.replace('f1(s, y, average = "micro")', f'f1({bad}, y, average = "micro")')
    line, s = train(compile_model(text), tmp_path)
    label, said, fine = data["y"][-200:], s.argmax(axis=1), data["x"][-200:, 0] <= 0
    assert 0 < fine.sum() < 200
    expected = [[int(((label == i) & (said == j) & fine).sum()) for j in range(3)] for i in range(3)]
    assert line["test_confusion"] == expected
    right = ((label == said) & fine).sum()
    assert line["test_f_micro"] == pytest.approx(2 * right / (200 + fine.sum()), rel=1e-7)


def test_patience_that_nothing_is_evaluated_for_is_warned_of(compile_model, tmp_path):
    write(tmp_path, 100, **labelled(200, 3))
    text = SCORES.replace("CLASSES", "3").replace("EXTRA", "rmse(s[0], s[1])").replace("train {", "train {\n  patience = 1", 1)
    said = "warning: patience = 1 ends nothing: there are neither validation nor test data to evaluate"
    assert said not in compile_model(text)("--data", tmp_path, "--quiet").stderr
    alone = compile_model(text.replace('  test  = npz("test.npz")\n', ""))
    assert said in alone("--data", tmp_path, "--quiet").stderr


def test_metrics_over_a_set_that_nothing_is_evaluated_for_are_warned_of(compile_model, tmp_path):
    write(tmp_path, 100, **labelled(200, 3))
    text = SCORES.replace("CLASSES", "3").replace("EXTRA", "confusion(s, y)")
    said = "neither validation nor test data to evaluate: the training does not report it; eval --split train does"
    assert said not in compile_model(text)("--data", tmp_path, "--quiet").stderr
    alone = compile_model(text.replace('  test  = npz("test.npz")\n', ""))
    assert f"warning: p_macro is a metric over a set, and there are {said}" in alone("--data", tmp_path, "--quiet").stderr


def test_columns_in_which_nothing_is_to_be_found(compile_model, tmp_path):
    data = {"x": np.random.default_rng(3).normal(size=(90, 3)).astype("f4"), "y": np.zeros((90, 2), "u1")}
    write(tmp_path, 40, **data)
    line, _ = train(compile_model(YES_OR_NO.replace("OUT", "2").replace("roc_auc(p, y), ", "")), tmp_path)
    assert line["test_average_precision"] == 0


@pytest.mark.parametrize("flags", [["--schedule", "graph"], ["--schedule", "persistent"], ["--precision", "bf16"]], ids=lambda flags: flags[1])
def test_cuda_takes_them(flags, cuda_takes):
    cuda_takes(NUMBERS.replace("OUT", "2"), *flags)
    cuda_takes(SCORES.replace("CLASSES", "5").replace("EXTRA", "roc_auc(softmax(s), y)"), *flags)


def test_scores_where_probabilities_are_meant(mtc, tmp_path):
    """A warning with the cure, and none where the call says what it means."""
    def says(text):
        (tmp_path / "m.mt").write_text(text)
        done = mtc(tmp_path / "m.mt", "--emit=graph")
        assert done.returncode == 0, done.stderr
        return done.stderr

    yes_or_no = YES_OR_NO.replace("u8[OUT]", "class[2]").replace("OUT", "1").replace("sigmoid(linear(x, 1))", "linear(x, 1)")
    yes_or_no = yes_or_no.replace("bce(p, y)", "bce(p, y, from_logits = true)")
    said = says(yes_or_no.replace("precision(p, y), recall(p, y), f1(p, y)", "f1(p, y)"))
    assert said.count("warning") == 1 and "is compared with the threshold 0.5" in said and "write threshold = 0" in said
    assert not says(yes_or_no.replace("precision(p, y), recall(p, y), f1(p, y)", "f1(p, y, threshold = 0)"))
    several = SCORES.replace("CLASSES", "5")
    assert "put softmax(...) around them" in says(several.replace("EXTRA", "roc_auc(s, y)"))
    assert not says(several.replace("EXTRA", "roc_auc(softmax(s), y)"))
    assert not says(several.replace("5", "2").replace("EXTRA", "roc_auc(s, y)"))
