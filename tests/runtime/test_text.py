"""Models of text: windows in the order that the epochs say, against NumPy; on device and host; checkpoints with a vocabulary."""

import random
import re

import numpy as np
import pytest

from fake_data import tensors, weights_alone
from library import Library
from random_port import permutation, shuffle_key

pytestmark = pytest.mark.quick

BAD_DATA = 65
CONTEXT, CLASSES, BATCH = 8, 32, 16

MODEL = """param context = 8
param rate    = 0.5

data {
  examples = text("input.txt", stride = 5)
  split    = 90 / 10
  window   : class[32][context + 1]
}
model {
  seen   = slice(window, 0, 0, context)
  next   = slice(window, 0, 1, context + 1)
  logits = linear(one_hot(seen, 32), 32)
}
train {
  loss      = cross_entropy(logits, next)
  metric    = accuracy(logits, next)
  optimizer = sgd(rate)
  batch     = 16
  epochs    = 2
}
"""


def text(words=500, seed=0):
    draw = random.Random(seed)
    return "".join(draw.choice(["the", "quick", "brown", "fox", "jümps"]) + draw.choice([" ", "\n", ", "]) for _ in range(words))


def tokens_of(content):
    characters = sorted(set(content))
    return np.array([characters.index(c) for c in content])


def windows(tokens, length=CONTEXT + 1, stride=5):
    return np.array([tokens[at:at + length] for at in range(0, len(tokens) - length + 1, stride)])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "input.txt").write_text(text())
    return tmp_path


@pytest.fixture
def run(compile_model, folder):
    """run(*flags, code): the model's program in a folder with its text; what it says."""
    program = compile_model(MODEL)

    def call(*flags, code=0):
        done = program(*flags, *(["--data", folder] if flags[:1] != ("info",) else []), check=False, cwd=folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if code else done.stdout

    return call


def weights(path):
    return tensors(path.read_bytes())


# ---- NumPy ----


def probabilities(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def bigram(windows, weight, bias):
    """Loss and accuracy of the windows, and the gradients of the mean loss."""
    seen, wanted = windows[:, :-1].ravel(), windows[:, 1:].ravel()
    p = probabilities(weight.T[seen] + bias)
    loss = -np.log(p[np.arange(len(wanted)), wanted]).mean()
    d = (p - np.eye(CLASSES)[wanted]) / len(wanted)
    d_weight = np.zeros((CLASSES, CLASSES))
    np.add.at(d_weight, seen, d)
    return loss, (p.argmax(-1) == wanted).mean(), d_weight.T, d.sum(0)


def reports(line):
    """The numbers of an epoch's line: of training, of the test data."""
    return [float(word) for word in line.replace("|", " ").split() if word[0].isdigit() and "." in word][:4]


@pytest.mark.parametrize("scores", ["linear(one_hot(seen, 32), 32)", "embedding(seen, 32, 32)"])
def test_windows_in_order(scores, compile_model, folder):
    """Two epochs of SGD from the program's own initial weights, in the order of its permutations."""
    program = compile_model(MODEL.replace("linear(one_hot(seen, 32), 32)", scores))
    program("--data", folder, "--rate", "0", "--limit-steps", "1", "--save", folder / "begin", "--quiet")
    content = text()
    tokens, cut = tokens_of(content), round(0.9 * len(content))
    train, test = windows(tokens[:cut]), windows(tokens[cut:])
    begin, embeds = weights(folder / "begin"), "embedding" in scores
    weight = begin["logits.weight"].astype(float)
    weight, bias = (weight.T, np.zeros(CLASSES)) if embeds else (weight, begin["logits.bias"].astype(float))
    lines = program("--data", folder, "--save", folder / "end").stdout.splitlines()[:2]
    for epoch, line in enumerate(lines):
        order, sums = permutation(shuffle_key(0, epoch), len(train)), np.zeros(2)
        for first in range(0, len(train), BATCH):
            batch = train[order[first:first + BATCH]]
            loss, accuracy, d_weight, d_bias = bigram(batch, weight, bias)
            sums += len(batch) * np.array([loss, accuracy])
            weight, bias = weight - 0.5 * d_weight, bias - 0.5 * d_bias * (not embeds)
        assert np.allclose(reports(line), [*sums / len(train), *bigram(test, weight, bias)[:2]], atol=2e-5), line
    end = weights(folder / "end")["logits.weight"]
    assert np.allclose(end.T if embeds else end, weight, atol=1e-5)


# ---- the ways of a program ----


def test_data_on_the_host_are_the_same_bytes(run, folder, monkeypatch):
    run("--save", "device", "--quiet")
    for steps in (1, 3, 1000):
        monkeypatch.setenv("MTC_WINDOW", str(steps * (CONTEXT + 1) * BATCH))
        run("--save", "host", "--data-on", "host", "--quiet")
        assert (folder / "host").read_bytes() == (folder / "device").read_bytes()


def test_resumed_training_ends_with_the_same_bytes(run, folder):
    run("--save", "whole", "--quiet")
    run("--save", "part", "--limit-steps", "11", "--quiet")
    run("--resume", "part", "--save", "part", "--quiet")
    assert (folder / "part").read_bytes() == (folder / "whole").read_bytes()


def test_trials(run, folder):
    assert "real data" not in run("bench", "--random-data", "--steps", "5", "--runs", "1")
    assert '"data":"train"' in run("bench", "--steps", "5", "--runs", "1")
    assert '"pass":"forward"' in run("bench", "--forward", "--steps", "5", "--runs", "1", "--data-on", "host")
    count = len(windows(tokens_of(text())[:round(0.9 * len(text()))]))
    assert f"train {count} examples" in run("--dry-run")
    alone = run("--overfit-batch", "--epochs", "100").splitlines()[-2]
    assert reports(alone)[0] < 2


def test_windows_of_another_program(compile_model, run, folder):
    """Through the C interface windows lie one behind the other: the same losses as of windows that overlap."""
    content = text()
    train = windows(tokens_of(content)[:round(0.9 * len(content))])
    steps = -(-len(train) // BATCH)
    library = Library(compile_model(MODEL, "--shared").path, seed=0)
    library.set_data([train.astype("u1")])
    reports_of_steps = library.train(steps, 2)
    library.close()
    rows = np.array([BATCH] * (steps - 1) + [len(train) - BATCH * (steps - 1)])
    expected = reports(run("--epochs", "1").splitlines()[0])[:2]
    assert np.allclose(rows @ reports_of_steps / len(train), expected, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", ["graph", "persistent"])
def test_on_a_gpu(schedule, compile_model, run, folder, monkeypatch):
    """The losses of the CPU; the same bytes from host and device."""
    program = compile_model(MODEL, "--schedule", schedule, target="cuda")
    epochs = program("--data", folder, "--save", folder / "device").stdout.splitlines()[:2]
    for line, of_cpu in zip(epochs, run().splitlines()[:2]):
        assert np.allclose(reports(line), reports(of_cpu), atol=1e-4)
    for steps in (1, 3, 1000):
        monkeypatch.setenv("MTC_WINDOW", str(steps * (CONTEXT + 1) * BATCH))
        program("--data", folder, "--save", folder / "host", "--data-on", "host", "--quiet")
        assert (folder / "host").read_bytes() == (folder / "device").read_bytes()


def test_gradients(mtc, tmp_path):
    (tmp_path / "model.mt").write_text(MODEL)
    (tmp_path / "input.txt").write_text(text())
    done = mtc("gradcheck", "model.mt", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_predictions_are_characters(run, folder):
    """The likeliest next character at each position; --output has the probabilities."""
    run("--save", "w", "--quiet")
    weight, bias = (weights(folder / "w")[f"logits.{name}"] for name in ("weight", "bias"))
    (folder / "more.txt").write_text("brown\nfox, the")
    tokens = windows(np.array([sorted(set(text())).index(c) for c in "brown\nfox, the"]))
    expected = probabilities(weight.T[tokens[:, :-1]] + bias)
    visible = [{"\n": "\\n"}.get(c, c) for c in sorted(set(text()))]
    lines = run("predict", "--load", "w", "--input", "more.txt").split("\n")[:-1]
    assert [line.split("\t") for line in lines] == [[visible[k] for k in row] for row in expected.argmax(-1)]
    np.save(folder / "windows.npy", tokens)
    for given in ("more.txt", "windows.npy"):
        run("predict", "--load", "w", "--input", given, "--output", "p.npy")
        assert np.allclose(np.load(folder / "p.npy"), expected, atol=1e-6)


# ---- vocabularies ----


def test_info_lists_the_characters(run, folder):
    run("--save", "w", "--quiet")
    listed = run("info", "w").partition("learned from the training data\n")[2]
    assert f"window               {len(set(text()))} of 32 classes: 0 \\n, 1 ' ', 2 ,, 3 b" in listed


def test_another_text_has_the_classes_of_the_checkpoint(run, folder):
    """A text without some of the characters is read with the vocabulary that the weights had."""
    run("--save", "w", "--quiet")
    (folder / "input.txt").write_text("the fox\n" * 60)
    loss = run("eval", "--load", "w", "--split", "train").partition("loss ")[2].split()[0]
    weight, bias = (weights(folder / "w")[f"logits.{name}"] for name in ("weight", "bias"))
    characters = sorted(set(text()))
    tokens = np.array([characters.index(c) for c in "the fox\n" * 60])
    assert np.isclose(float(loss), bigram(windows(tokens[:432]), weight, bias)[0], atol=1e-4)


def test_text_with_other_characters_is_refused(run, folder):
    run("--save", "w", "--quiet")
    (folder / "input.txt").write_text(text() + "a zebra")
    for flags in (["--resume", "w"], ["--init-from", "w"], ["eval", "--load", "w"]):
        message = run(*flags, code=BAD_DATA)
        line, column = text().count("\n") + 1, len(text().rpartition("\n")[2]) + 1
        assert f"input.txt:{line}:{column}: 'a' is none of the {len(set(text()))} characters that the model knows" in message


def test_weights_without_a_vocabulary(run, folder):
    run("--save", "w", "--quiet")
    (folder / "bare").write_bytes(weights_alone((folder / "w").read_bytes()))
    assert run("eval", "--load", "bare") == run("eval", "--load", "w")  # the characters of the data
    assert "which characters the classes of 'window' are is not known" in \
        run("predict", "--load", "bare", "--input", "input.txt", code=BAD_DATA)


def test_a_vocabulary_larger_than_the_field(run, folder, compile_model):
    run("--save", "w", "--quiet")
    small = compile_model(MODEL.replace("32", "9"))("eval", "--load", "w", "--data", folder, check=False, cwd=folder)
    assert small.returncode == BAD_DATA
    few = compile_model(MODEL.replace("32", "9"))("--data", folder, check=False, cwd=folder)
    assert f"has {len(set(text()))} distinct characters, and 'window' is class[9][9]" in few.stderr


# ---- other sources ----

SEQUENCES = MODEL.replace('examples = text("input.txt", stride = 5)\n  split    = 90 / 10', "train = SOURCE")


@pytest.mark.parametrize("dtype", ["u1", "<i2", "<i8"])
def test_windows_in_arrays(dtype, compile_model, tmp_path):
    """Examples that are windows already: the same losses as from the text."""
    content = text()
    (tmp_path / "input.txt").write_text(content)
    np.save(tmp_path / "w.npy", windows(tokens_of(content)).astype(dtype))
    of_text = compile_model(SEQUENCES.replace("SOURCE", 'text("input.txt", stride = 5)'))("--data", tmp_path)
    of_array = compile_model(SEQUENCES.replace("SOURCE", 'npy("w.npy")'))("--data", tmp_path)
    assert [line.rpartition("|")[0] for line in of_text.stdout.splitlines()[:2]] == \
        [line.rpartition("|")[0] for line in of_array.stdout.splitlines()[:2]]


def test_a_class_out_of_range_in_an_array(compile_model, tmp_path):
    array = windows(tokens_of(text()))
    array[7, 3] = 32
    np.save(tmp_path / "w.npy", array)
    done = compile_model(SEQUENCES.replace("SOURCE", 'npy("w.npy")'))("--data", tmp_path, check=False)
    assert done.returncode == BAD_DATA
    assert "example 7, element [3] has the label 32; field 'window' is class[32]" in done.stderr


TABLE = """data {
  train  = SOURCE
  window : class[300][3]COLUMNS
}
model { logits = linear(one_hot(slice(window, 0, 0, 2), 300), 300) }
train {
  loss      = cross_entropy(logits, slice(window, 0, 1, 3))
  predict   = one_hot(window, 300) * 2
  optimizer = sgd(0.1)
  batch     = 2
}
"""


def test_windows_in_tables(compile_model, tmp_path):
    """Columns of whole numbers, in a file and in the model; rows to predict; labels above 255 take two bytes."""
    rows = [[0, 299, 7], [256, 1, 2], [5, 5, 5]]
    listed = ", ".join(map(str, rows))
    (tmp_path / "a.csv").write_text("a,b,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    (tmp_path / "rows.csv").write_text("".join(f"{a},{b},{c}\n" for a, b, c in rows))
    of_rows = compile_model(TABLE.replace("SOURCE", f"table([{listed}])").replace("COLUMNS", ""))
    of_file = compile_model(TABLE.replace("SOURCE", 'csv("a.csv")').replace("COLUMNS", ' = columns("a", "b", "c")'))
    for program, given in ((of_rows, "rows.csv"), (of_file, "a.csv")):
        program("--data", tmp_path, "--save", tmp_path / "w", "--quiet")
        program("predict", "--load", tmp_path / "w", "--input", tmp_path / given, "--output", tmp_path / "p.npy")
        assert (np.load(tmp_path / "p.npy").argmax(-1) == rows).all()
    (tmp_path / "a.csv").write_text("a,b,c\n1,300,2\n")
    done = of_file("--data", tmp_path, check=False)
    assert done.returncode == BAD_DATA and "a.csv:2:3: " in done.stderr


def test_words_in_a_table_are_refused(compile_model, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c\n1,two,2\n")
    program = compile_model(TABLE.replace("SOURCE", 'csv("a.csv")').replace("COLUMNS", ' = columns("a", "b", "c")'))
    assert "a.csv:2:3: " in program("--data", tmp_path, check=False).stderr


def test_bytes_and_tokens(compile_model, tmp_path):
    """A text by its bytes, and the same numbers as a file of tokens."""
    content = text().encode()
    (tmp_path / "input.txt").write_bytes(content)
    (tmp_path / "input.bin").write_bytes(np.frombuffer(content, "u1").astype("<u2").tobytes())
    lines = []
    for source in ('text("input.txt", level = "byte")', 'tokens("input.bin")'):
        done = compile_model(SEQUENCES.replace("SOURCE", source).replace("32", "256"))("--data", tmp_path)
        lines.append([line.rpartition("|")[0] for line in done.stdout.splitlines()[:2]])
    assert lines[0] == lines[1]


def test_generated_code(mtc, tmp_path):
    """Where windows begin is read from the run; other fields have constants."""
    (tmp_path / "model.mt").write_text(MODEL)
    for target, member in (("c", "t->"), ("cu", "t.")):
        code = mtc(f"--emit={target}", "model.mt", cwd=tmp_path).stdout
        assert re.search(r"^ +int64_t window_stride( = run\.data\.stride\[0\])?;", code, re.M)
        assert f"row(batch, i) * {member}window_stride + i1]" in code or f"* {member}window_stride + " in code
        assert ".windows = true" in code
        assert '{.format = "characters", .paths = 1, .path = paths, .stride = 5}' in code


def test_one_token_each(compile_model, tmp_path):
    """Windows of a single token, and batches of one."""
    (tmp_path / "input.txt").write_text("abcab")
    program = compile_model("""data {
  train  = text("input.txt", stride = 2)
  window : class[3][1]
}
model { logits = linear(one_hot(window, 3), 3) }
train {
  loss      = cross_entropy(logits, window)
  predict   = one_hot(window, 3) * 2
  optimizer = sgd(0.1)
  batch     = 1
}
""")
    program("--data", tmp_path, "--save", tmp_path / "w", "--quiet")
    program("predict", "--load", tmp_path / "w", "--data", tmp_path, "--split", "train", "--output", tmp_path / "p.npy")
    assert np.load(tmp_path / "p.npy").argmax(-1).ravel().tolist() == [0, 2, 1]
