"""Training: what is printed, logged and saved; the same seed gives the same bytes; a NaN is traced to its tensor."""

import json
import os
import pty
import signal
import subprocess
import time

import numpy as np
import pytest

pytest_plugins = ["fake_model"]

BAD_DATA, UNAVAILABLE = 65, 69


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
    text = fake(folder, "--steps", "30")
    assert text.splitlines()[-1].startswith("30 steps") and "epoch 2/3" in text and "epoch 3" not in text


def test_every(fake, folder):
    text = fake(folder, "--epochs", "10", "--every", "4")
    assert [line.split()[1] for line in text.splitlines()[:-1]] == ["4/10", "8/10", "10/10"]


def test_many_epochs_are_summarised(fake, folder):
    lines = fake(folder, "--epochs", "1000").splitlines()
    assert len(lines) == 11 and lines[-2].startswith("epoch 1000/1000")


def read_log(folder):
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def test_log(fake, folder):
    fake(folder, "--epochs", "2", "--log", "log", "--lr", "0.25", "--quiet")
    log = read_log(folder)
    assert [line["event"] for line in log].count("train") == 17
    config, end = log[0], log[-1]
    assert config["event"] == "config" and config["params"] == {"side": 4, "lr": 0.25, "warmup": 0, "poison": 0}
    assert config["train_examples"] == 203 and config["test_examples"] == 50 and config["model_hash"] == "0123abcd"
    epochs = [line for line in log if line["event"] == "epoch"]
    assert [(line["epoch"], line["step"]) for line in epochs] == [(1, 26), (2, 52)]
    assert epochs[1]["test_accuracy"] == 1 and end["event"] == "end" and end["steps"] == 52


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
    lines = fake(folder, "predict", "--load", "w").splitlines()
    fake(folder, "predict", "--load", "w", "--output", "p.npy")
    p = np.load(folder / "p.npy")
    assert p.shape == (50, 3) and p.dtype == np.float32 and np.allclose(p.sum(1), 1, atol=1e-5)
    assert [int(line.split("\t")[0]) for line in lines] == list(p.argmax(1))
    assert np.allclose([float(line.split("\t")[1]) for line in lines], p.max(1), rtol=1e-5)


def test_predict_from_a_file(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    images = np.frombuffer(folder.file("test-images").read_bytes()[16:], "u1").reshape(50, 4, 4)
    np.save(folder / "x.npy", images[:11])
    expected = fake(folder, "predict", "--load", "w").splitlines()
    assert fake(folder, "predict", "--load", "w", "--input", "x.npy").splitlines() == expected[:11]
    assert fake(folder, "predict", "--load", "w", "--input", "fake/test-images").splitlines() == expected


# ---- what stops a training ----


def test_overflow_names_the_value(fake, folder):
    message = fake(folder, "--lr", "1e38", "--save", "w", code=BAD_DATA)
    assert "training diverged: the loss of step 2 (epoch 1) is NaN" in message
    assert "first bad tensor is the value 'logits': element [" in message and "in step 2" in message
    assert "fake.mt:9: logits = linear(image / 255, 3)" in message and "--lr 1e+37" in message
    assert not (folder / "w").exists()


@pytest.mark.parametrize("step", [1, 5, 16, 17, 26, 27, 40])
def test_bad_update_names_the_weight_and_its_step(step, fake, folder):
    message = fake(folder, "--poison", step, "--save", "w", code=BAD_DATA)
    assert f"the loss of step {step + 1} " in message
    assert f"first bad tensor is the weight 'logits.weight': element [1, 5] is NaN, in step {step}" in message
    assert not (folder / "w").exists()


def test_nan_keeps_the_old_checkpoint(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    before = (folder / "w").read_bytes()
    fake(folder, "--save", "w", "--poison", "5", "--quiet", code=BAD_DATA)
    assert (folder / "w").read_bytes() == before


def test_too_little_memory(fake_huge, folder):
    message = fake_huge(folder, code=UNAVAILABLE)
    assert "not enough memory: the model needs 1.1 PB" in message and "free of" in message


def test_interrupt_saves(fake, folder):
    program = subprocess.Popen([fake.program, "--epochs", "1000000", "--save", "w"], cwd=folder.path, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=30)
    assert program.returncode == 130 and "interrupted after" in errors and (folder / "w").exists()


def test_bar_on_a_terminal(fake, folder):
    terminal, end = pty.openpty()
    program = subprocess.Popen([fake.program, "--epochs", "30000", "--every", "30000"], cwd=folder.path, stdout=subprocess.DEVNULL, stderr=end)
    os.close(end)
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:
        pass
    assert program.wait() == 0
    assert b"\repoch " in shown and b"examples/s" in shown and b" left\033[K" in shown and shown.endswith(b"\r\033[K")
