"""Training: what is printed, logged and saved; the same seed gives the same bytes; a NaN is traced to its tensor."""

import fcntl
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import termios
import time

import numpy as np
import pytest

from fake_data import examples, idx_bytes, weights_alone

pytest_plugins = ["fake_model"]

BAD_DATA, UNAVAILABLE, CANT_CREATE, IO = 65, 69, 73, 74


def test_a_line_per_epoch_and_a_summary(fake, folder):
    lines = fake(folder, "--epochs", "5").splitlines()
    assert [line.split()[1] for line in lines[:5]] == [f"{n}/5" for n in range(1, 6)]
    for line in lines[:5]:
        assert "  loss " in line and "| test  loss " in line and "accuracy" in line and line.endswith(" s")
    assert lines[5].startswith("130 steps in ") and "us a step" in lines[5] and "whole process" in lines[5]


def test_quiet(fake, folder):
    assert fake(folder, "--quiet") == ""


def test_runs_are_identical(fake, folder):
    for name in ("a", "b"):
        fake(folder, "--save", name, "--quiet")
    fake(folder, "--save", "c", "--seed", "2", "--quiet")
    a, b, c = ((folder / name).read_bytes() for name in "abc")
    assert a == b != c


def test_steps_stop_within_an_epoch(fake, folder):
    text = fake(folder, "--limit-steps", "30")
    assert text.splitlines()[-1].startswith("30 steps") and "epoch 2/3" in text and "epoch 3" not in text


def test_every(fake, folder):
    text = fake(folder, "--epochs", "10", "--every", "4")
    assert [line.split()[1] for line in text.splitlines()[:-1]] == ["4/10", "8/10", "10/10"]


def test_many_epochs_are_summarised(fake, folder):
    lines = fake(folder, "--epochs", "1000").splitlines()
    assert len(lines) == 11 and lines[-2].startswith("epoch 1000/1000")


def test_patience_evaluates_each_epoch(fake, folder):
    lines = fake(folder, "--epochs", "100", "--limit-steps", "78", "--patience", "100").splitlines()
    assert [line.split()[1] for line in lines[:-1]] == ["1/100", "2/100", "3/100"]


def test_a_line_is_of_its_epoch_alone(fake, folder):
    """However many epochs there were since the last line, also after a stop between the two."""
    fake(folder, "--epochs", "6", "--log", "log", "--quiet")
    each = {line["epoch"]: line["loss"] for line in epochs_of(read_log(folder))}
    fake(folder, "--epochs", "6", "--every", "3", "--log", "log", "--quiet")
    assert {line["epoch"]: line["loss"] for line in epochs_of(read_log(folder))} == {3: each[3], 6: each[6]}
    for step in (60, 78, 90, 130):
        fake(folder, "--epochs", "6", "--every", "6", "--save", "w", "--limit-steps", step, "--quiet")
        fake(folder, "--resume", "w", "--every", "6", "--log", "log", "--quiet")
        (folder / "w").unlink()
        last = epochs_of(read_log(folder))[-1]
        assert last["epoch"] == 6 and last["loss"] == pytest.approx(each[6], rel=1e-8), step
        (folder / "log").unlink()


def read_log(folder):
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def epochs_of(log):
    return [line for line in log if line["event"] == "epoch"]


def test_params_are_logged_as_given(fake, folder):
    """As written, not as a float is in decimals."""
    fake(folder, "--epochs", "1", "--log", "log", "--lr", "0.001", "--quiet")
    assert '"lr":0.001,' in (folder / "log").read_text()


def test_resumed_training_goes_on_in_its_log(fake, folder):
    fake(folder, "--epochs", "1", "--log", "log", "--save", "w", "--quiet")
    lines = read_log(folder)
    with open(folder / "log", "a") as log:
        log.write('{"event":"train","st')
    fake(folder, "--epochs", "2", "--resume", "w", "--log", "log", "--quiet")
    log = read_log(folder)
    assert log[:len(lines)] == lines and [line["event"] for line in log].count("config") == 2
    assert log[len(lines)]["first_step"] == 26 and log[-1]["event"] == "end"
    fake(folder, "--epochs", "3", "--resume", "w", "--log", "new", "--quiet")
    assert json.loads((folder / "new").read_text().splitlines()[0])["resume"] == "w"


def test_lines_of_epochs_are_columns(fake, folder):
    lines = fake(folder, "--epochs", "12", "--lr", "0.05").splitlines()[:12]
    assert len({line.index("| test") for line in lines}) == 1 and len({line.rindex("|") for line in lines}) == 1


def test_log(fake, folder):
    fake(folder, "--epochs", "2", "--log", "log", "--lr", "0.25", "--quiet")
    log = read_log(folder)
    assert [line["event"] for line in log].count("train") == 17
    config, end = log[0], log[-1]
    assert config["event"] == "config" and config["params"] == {"side": 4, "lr": 0.25, "warmup": 0, "poison": 0}
    assert config["train_examples"] == 203 and config["test_examples"] == 50 and config["model_hash"] == "0123abcd"
    assert config["steps_per_epoch"] == 26 and config["log_every"] == 3 and config["monitor"] == "loss"
    assert config["data"]["test"] == {"format": "idx", "files": ["fake/test-images", "fake/test-labels"], "part": [0, 1]}
    assert config["train"] == {"loss": "cross_entropy(logits, label)", "optimizer": "sgd(lr)"}
    assert 0 < log[1]["seconds"] <= epochs_of(log)[0]["seconds"] <= epochs_of(log)[1]["seconds"]
    epochs = epochs_of(log)
    assert [(line["epoch"], line["step"]) for line in epochs] == [(1, 26), (2, 52)]
    assert epochs[1]["test_accuracy"] == 1 and end["event"] == "end" and end["steps"] == 52
    parts = ("device", "memory", "weights", "checkpoint", "files", "upload", "plan", "kernels", "first_step")
    assert 0 < sum(end[part + "_seconds"] for part in parts) <= end["process_seconds"]


def test_log_of_every_step(fake, folder):
    fake(folder, "--epochs", "2", "--log", "log", "--log-every", "1", "--quiet")
    log = read_log(folder)
    steps = [line for line in log if line["event"] == "train"]
    assert [line["step"] for line in steps] == list(range(1, 53))
    rows = np.array([8] * 25 + [3])
    epoch = next(line for line in log if line["event"] == "epoch")
    mean = np.average([line["loss"] for line in steps[:26]], weights=rows)
    assert epoch["loss"] == pytest.approx(mean, rel=1e-6)


def test_evaluation_counts_every_example(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    assert fake(folder, "eval", "--load", "w").startswith("test: 50 examples ")
    loss = float(fake(folder, "eval", "--load", "w").split()[4])
    fake(folder, "predict", "--load", "w", "--output", "p.npy")
    labels = np.frombuffer(folder.file("test-labels").read_bytes()[8:], "u1")
    assert loss == pytest.approx(-np.log(np.load(folder / "p.npy")[np.arange(50), labels]).mean(), rel=1e-5)


def test_eval_of_another_split(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    assert fake(folder, "eval", "--load", "w", "--split", "train").startswith("train: 203 examples ")


def test_predict(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    header, *lines = fake(folder, "predict", "--load", "w").splitlines()
    fake(folder, "predict", "--load", "w", "--output", "p.npy")
    p = np.load(folder / "p.npy")
    assert p.shape == (50, 3) and p.dtype == np.float32 and np.allclose(p.sum(1), 1, atol=1e-5)
    assert header == "class\tprobability"
    assert [int(line.split("\t")[0]) for line in lines] == list(p.argmax(1))
    assert np.allclose([float(line.split("\t")[1]) for line in lines], p.max(1), rtol=1e-5)


def test_predict_from_a_file(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    images = np.frombuffer(folder.file("test-images").read_bytes()[16:], "u1").reshape(50, 4, 4)
    np.save(folder / "x.npy", images[:11])
    expected = fake(folder, "predict", "--load", "w").splitlines()
    assert fake(folder, "predict", "--load", "w", "--input", "x.npy").splitlines() == expected[:12]
    assert fake(folder, "predict", "--load", "w", "--input", "fake/test-images").splitlines() == expected


# ---- what stops a training ----


def test_overflow_names_the_value(fake, folder):
    message = fake(folder, "--lr", "1e38", "--save", "w", code=BAD_DATA)
    assert "training diverged: the loss of step 2 (epoch 1) is NaN" in message
    assert "first bad tensor is the value 'logits': element [" in message and "in step 2" in message
    assert "fake.mt:9: logits = linear(image / 255, 3)" in message and "--lr 1e+37" in message
    assert not (folder / "w").exists()


@pytest.mark.parametrize("step", [1, 5, 16, 17, 27, 40])
def test_bad_update_names_the_weight_and_its_step(step, fake, folder):
    message = fake(folder, "--poison", step, "--save", "w", code=BAD_DATA)
    assert f"the loss of step {step + 1} " in message
    assert f"first bad tensor is the weight 'logits.weight': element [1, 5] is NaN, in step {step}" in message
    assert not (folder / "w").exists()


@pytest.mark.parametrize("flags", [["--poison", 26], ["--poison", 30, "--limit-steps", 30]], ids=str)
def test_bad_weights_after_a_good_training_loss(flags, fake, folder):
    """The update that spoils them is the last before an evaluation."""
    message = fake(folder, *flags, "--save", "w", "--log", "log", code=BAD_DATA)
    assert f"the loss over the data set 'test' is NaN\n  after step {flags[1]} of training\n" in message
    assert "the weight 'logits.weight' is not finite: element [" in message and "fake.mt:9: logits = " in message
    assert not (folder / "w").exists() and read_log(folder)[-1]["event"] == "fault"


def test_never_minus_nan(fake, folder):
    done = subprocess.run([fake.program, "--poison", "26"], cwd=folder.path, capture_output=True, text=True)
    assert done.returncode == BAD_DATA and "| test  loss NaN" in done.stdout and "-nan" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["eval", "predict"])
def test_bad_weights_are_not_loaded(command, fake, folder):
    fake(folder, "--save", "w", "--quiet")
    content = weights_alone((folder / "w").read_bytes())
    (folder / "w").write_bytes(content[:-4] + struct.pack("<f", -np.nan))
    done = subprocess.run([fake.program, command, "--load", "w"], cwd=folder.path, capture_output=True, text=True)
    assert done.returncode == BAD_DATA and not done.stdout
    assert "w: 'logits." in done.stderr and "is not finite: element [" in done.stderr


def test_nan_keeps_the_old_checkpoint(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    before = (folder / "w").read_bytes()
    fake(folder, "--save", "w", "--poison", "5", "--quiet", code=BAD_DATA)
    assert (folder / "w").read_bytes() == before


def test_too_little_memory(fake_huge, folder):
    message = fake_huge(folder, code=UNAVAILABLE)
    assert "not enough memory: the model needs 1.1 PB" in message and "free of" in message
    assert re.search(r"\n  training needs 1\.1 PB and its data: the arena and \d+(\.\d+)? [KM]B for a batch, reports and snapshots\n", message)


def test_interrupt_saves(fake, folder):
    program = subprocess.Popen([fake.program, "--epochs", "1000000", "--save", "w"], cwd=folder.path, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=30)
    assert program.returncode == 130 and "interrupted after" in errors and (folder / "w").exists()


@pytest.mark.parametrize("columns", [20, 40, 100, 200])
def test_bar_on_a_terminal(columns, fake, folder):
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    program = subprocess.Popen([fake.program, "--epochs", "5000", "--every", "5000"], cwd=folder.path, stdout=subprocess.DEVNULL, stderr=end)
    os.close(end)
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:
        pass
    assert program.wait() == 0
    drawn = [text for text in shown.replace(b"\033[K", b"").split(b"\r") if text]
    assert shown.endswith(b"\r\033[K") and all(len(text) < columns for text in drawn)
    training = [text for text in drawn if b"/5000" in text]
    assert training and all(text.startswith(b"epoch ") == (columns > 40) for text in training)
    assert columns == 40 or all((b" [" in text or columns == 20, b" left" in text) == (True, columns > 40) for text in training)
    assert columns == 20 or all(re.search(rb" loss \d+\.\d{4}( |$)", text) for text in training)


# ---- sizes at the edge ----


@pytest.mark.parametrize("count", [1, 3, 8, 9])
def test_few_examples(count, fake, folder):
    for split in ("train", "test"):
        image, label = examples(count)
        folder.write(f"{split}-images", idx_bytes(image))
        folder.write(f"{split}-labels", idx_bytes(label))
    text = fake(folder, "--epochs", "40", "--save", "w")
    assert f"{40 * (count // 9 + 1)} steps in" in text
    assert fake(folder, "eval", "--load", "w").startswith(f"test: {count} examples ")
    assert len(fake(folder, "predict", "--load", "w").splitlines()) == 1 + count


def test_steps_beyond_the_epochs(fake, folder):
    assert "\n78 steps in" in fake(folder, "--limit-steps", "1000")


# ---- outputs that fail ----


def test_log_in_no_folder(fake, folder):
    assert "nowhere/log: cannot write: there is no folder 'nowhere'" in fake(folder, "--log", "nowhere/log", code=CANT_CREATE)


def test_weights_are_saved_when_the_log_cannot_be_written(fake, folder):
    message = fake(folder, "--log", "/dev/full", "--save", "w", "--quiet", code=IO)
    assert message.count("warning: the log is incomplete from here on: /dev/full: cannot write: No space left on device") == 1
    assert message.count("error: /dev/full: cannot write: No space left on device") == 1
    assert fake(folder, "eval", "--load", "w").startswith("test: 50 examples")


def test_file_size_limit(fake, folder):
    """A full disk: the old checkpoint stays, nothing else is left behind."""
    fake(folder, "--save", "w", "--quiet")
    before, names = (folder / "w").read_bytes(), sorted(os.listdir(folder.path))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = subprocess.run([fake.program, "--save", "w", "--seed", "9", "--quiet"], cwd=folder.path, capture_output=True, text=True,
                          preexec_fn=limit)
    assert done.returncode == IO and "w: cannot write: File too large" in done.stderr and done.stdout == ""
    assert (folder / "w").read_bytes() == before and sorted(os.listdir(folder.path)) == names
