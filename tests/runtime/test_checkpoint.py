"""Checkpoints: a training that goes on from one is as one that never stopped, and nothing that happens to a program or to
its disk costs more than the steps since the last one."""

import ctypes
import errno
import fcntl
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from conftest import ROOT
from fake_data import examples, idx_bytes, pack, tensors, unpack, weights_alone
from library import Library
from runtime_library import build_program

pytestmark = pytest.mark.quick

pytest_plugins = ["fake_model"]

USAGE, BAD_DATA, NO_INPUT, CANT_CREATE, IO = 64, 65, 66, 73, 74


def read(folder, name):
    return (folder / name).read_bytes()


def metadata(folder, name):
    return unpack(read(folder, name))[0]["__metadata__"]


def epoch_lines(text):
    """Without the time at their end."""
    return [line.rpartition("|")[0] for line in text.splitlines() if line.startswith("epoch")]


# ---- --resume ----


@pytest.mark.parametrize("step", [1, 13, 25, 26, 27, 52, 100, 129, 130])
def test_resume_is_bit_identical(step, fake, folder):
    whole = epoch_lines(fake(folder, "--epochs", 5, "--save", "whole.safetensors"))
    fake(folder, "--epochs", 5, "--limit-steps", step, "--save", "part.safetensors", "--quiet")
    rest = epoch_lines(fake(folder, "--resume", "part.safetensors", "--save", "part.safetensors"))
    assert read(folder, "part.safetensors") == read(folder, "whole.safetensors")
    assert read(folder, "part-best.safetensors") == read(folder, "whole-best.safetensors")
    assert rest == whole[len(whole) - len(rest):] and len(rest) == 5 - step // 26


@pytest.mark.parametrize("flags", [["--every", 2], ["--overfit-batch", "--every", 2]], ids=str)
def test_stop_where_no_summary_is_due(flags, fake, folder):
    """What is evaluated only because training stops there is no evaluation of the training."""
    flags = ["--epochs", 6, "--lr", 30, "--patience", 2, "--quiet", *flags]
    fake(folder, *flags, "--save", "whole.safetensors")
    for step in (3, 26, 78):
        fake(folder, *flags, "--save", "part.safetensors", "--limit-steps", step)
        fake(folder, *flags, "--save", "part.safetensors", "--resume", "part.safetensors")
        for name in ("{}.safetensors", "{}-best.safetensors"):
            assert read(folder, name.format("part")) == read(folder, name.format("whole")), step


def test_resume_many_times(fake, folder):
    fake(folder, "--epochs", 3, "--save", "whole", "--seed", 9, "--lr", 0.25, "--quiet")
    fake(folder, "--epochs", 3, "--save", "part", "--seed", 9, "--lr", 0.25, "--limit-steps", 5, "--quiet")
    for step in range(10, 85, 5):
        fake(folder, "--resume", "part", "--save", "part", "--limit-steps", step, "--quiet")
    assert read(folder, "part") == read(folder, "whole") and metadata(folder, "part")["mtc.param.lr"] == "0.25"


def test_more_epochs(fake, folder):
    fake(folder, "--epochs", 4, "--save", "whole", "--quiet")
    fake(folder, "--epochs", 2, "--save", "part", "--quiet")
    text = fake(folder, "--resume", "part", "--save", "part", "--epochs", 4)
    assert "epochs: 2 in the checkpoint, now 4" in text and read(folder, "part") == read(folder, "whole")
    done = fake(folder, "--resume", "part")
    assert "nothing is left to train: 4 epochs are done; --epochs 5 or more goes on" in done and "us a step" not in done
    done = fake(folder, "--resume", "part", "--epochs", 2)
    assert "nothing is left to train: 4 epochs are done; --epochs 5 or more goes on" in done
    done = fake(folder, "--resume", "part", "--epochs", 6, "--limit-steps", 104)
    assert "nothing is left to train: 104 steps are done, and --limit-steps is 104" in done


def test_what_is_restored_and_changed_is_told(fake, folder):
    fake(folder, "--save", "w", "--limit-steps", 30, "--quiet")
    lines = fake(folder, "--resume", "w", "--lr", 0.125, "--seed", 5).splitlines()
    assert lines[0] == "resumed from w: 2 weights, 1 optimizer state; step 30, epoch 2"
    assert "  lr: 0.5 in the checkpoint, now 0.125" in lines and "  seed: 1 in the checkpoint, now 5" in lines
    assert "in the checkpoint" not in fake(folder, "--resume", "w", "--lr", 0.5, "--seed", 1)


def test_log_goes_on(fake, folder):
    fake(folder, "--epochs", 2, "--log", "whole", "--log-every", 4, "--save", "a", "--quiet")
    fake(folder, "--epochs", 2, "--log", "part", "--log-every", 4, "--save", "b", "--limit-steps", 18, "--quiet")
    fake(folder, "--resume", "b", "--log", "part", "--log-every", 4, "--save", "b", "--quiet")

    def steps(name):
        lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
        return [(line["step"], line["loss"]) for line in lines if line["event"] == "train"]

    assert steps("part") == steps("whole") and read(folder, "a") == read(folder, "b")


def test_other_training_data(fake, folder):
    fake(folder, "--save", "w", "--limit-steps", 30, "--quiet")
    image, label = examples(203, 7)
    folder.write("train-images", idx_bytes(image))
    folder.write("train-labels", idx_bytes(label))
    message = fake(folder, "--resume", "w", code=BAD_DATA)
    assert "the training data are not those of the checkpoint: it has seen 203 examples, and there are 203 others" in message
    image, label = examples(100, 7)
    folder.write("train-images", idx_bytes(image))
    folder.write("train-labels", idx_bytes(label))
    assert "it has seen 203 examples, and there are 100" in fake(folder, "--resume", "w", code=BAD_DATA)
    assert "other training data: 100 examples, there were 203" in fake(folder, "--resume", "w", "--partial")


def test_params_that_are_fixed(compile_model, tmp_path):
    """A checkpoint of a program that was compiled with other ones says with which, and how one is made that reads it."""
    text = """param hidden = 4
param more = 2
data {
  train = table([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
  x : f32[2]
  y : f32[1]
}
model { p = linear(linear(linear(x, hidden), more), 1) }
train {
  loss      = mse(p, y)
  optimizer = sgd(0.1)
  epochs    = 1
}
"""
    compile_model(text)("--save", tmp_path / "w", "--quiet")
    other, both = compile_model(text, "--set", "hidden=3"), compile_model(text, "--set", "hidden=3", "--set", "more=5")
    for flags in (["eval", "--split", "train", "--load"], ["--resume"], ["--init-from"]):
        done = other(*flags, tmp_path / "w", check=False)
        assert done.returncode == BAD_DATA and "it was written with hidden = 4, here it is 3: mtc " in done.stderr
        assert f"--set hidden=4 -o {other.path}" in done.stderr and "hidden=3" not in done.stderr
    done = both("--resume", tmp_path / "w", check=False)
    assert "with hidden = 4, more = 2, here they are 3, 5: mtc --set hidden=4 --set more=2 makes a program of the same" in done.stderr


def test_other_text_of_the_model(fake, fake_other_text, folder):
    fake(folder, "--save", "w", "--limit-steps", 30, "--quiet")
    message = fake_other_text(folder, "--resume", "w", code=BAD_DATA)
    assert "the model's text has changed since: its hash was 0123abcd, and is ffff0000" in message and "--partial" in message
    assert "text has changed" in fake_other_text(folder, "--resume", "w", "--partial")
    assert "text has changed" in fake_other_text(folder, "--init-from", "w")


def test_resume_of_somebody_elses_file(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    (folder / "theirs").write_bytes(weights_alone(read(folder, "w")))
    message = fake(folder, "--resume", "theirs", code=BAD_DATA)
    assert "logits.weight.momentum: is missing" in message and "--init-from begins one with its weights" in message


def test_resume_after_another_optimizer(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    header, data = unpack(read(folder, "w"))
    header = {name.replace(".momentum", ".m"): entry for name, entry in header.items()}
    (folder / "other").write_bytes(pack(header, data))
    message = fake(folder, "--resume", "other", code=BAD_DATA)
    assert "other: does not hold the states of this model: " in message and "logits.weight.momentum: is missing" in message
    assert "its weights fit: --init-from begins a training with them" in message
    fake(folder, "--init-from", "other", "--quiet")


# ---- --init-from, --partial ----


def test_init_from_begins_anew(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    lines = fake(folder, "--init-from", "w", "--save", "v", "--limit-steps", 1, "--lr", 0).splitlines()
    assert lines[0] == "weights from w: 2 weights"
    assert metadata(folder, "v")["mtc.step"] == "1"
    old, new = tensors(read(folder, "w")), tensors(read(folder, "v"))
    assert np.array_equal(old["logits.weight"], new["logits.weight"])
    assert not np.array_equal(old["logits.weight.momentum"], new["logits.weight.momentum"])


def test_partial(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    header, data = unpack(weights_alone(read(folder, "w")))
    header["logits.offset"] = header.pop("logits.bias")
    (folder / "half").write_bytes(pack(header, data))
    message = fake(folder, "--init-from", "half", code=BAD_DATA)
    assert "logits.bias: is missing" in message and "logits.offset: is no weight of this model" in message
    text = fake(folder, "--init-from", "half", "--partial")
    assert "weights from half: 1 weight\n  not taken, or not found: 1 missing, 1 unexpected\n  logits.bias: is missing\n" in text


def test_partial_takes_whole_layers(fake, folder):
    """The bias of another head fits by chance; without its weight it says nothing. What is taken and what is not is told."""
    fake(folder, "--save", "w", "--quiet")
    header, data = unpack(read(folder, "w"))
    header["logits.weight"]["shape"] = header["logits.weight"]["shape"][::-1]
    (folder / "half").write_bytes(pack(header, data))
    message = fake(folder, "--init-from", "half", "--partial", code=BAD_DATA)
    assert "nothing of half fits this model: 1 different, 1 of a layer that differs" in message
    assert "  logits.weight: expected [3, 16] of type F32, found [16, 3] of type F32\n" in message
    assert "  logits.bias: is left out, for 'logits.weight' does not fit" in message


TWO_LAYERS = """
data {
  train = idx("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte")
  image : u8[28, 28]
  label : class[10]
}

model {
  h      = relu(linear(flatten(image) / 255, 16))
  logits = linear(h, 10)
}

train {
  loss      = cross_entropy(logits, label)
  optimizer = adam(1e-3)
  batch     = 32
  epochs    = 1
}
"""


def test_partial_of_another_head(compile_model, digits, tmp_path):
    program = compile_model(TWO_LAYERS)
    program("--data", digits, "--limit-steps", 5, "--save", tmp_path / "old", "--quiet")
    header, data = unpack((tmp_path / "old").read_bytes())
    del header["__metadata__"]
    header["logits.weight"]["shape"] = [5, 32]
    (tmp_path / "other").write_bytes(pack(header, data))
    text = program("--data", digits, "--init-from", tmp_path / "other", "--partial", "--limit-steps", 1).stdout
    assert "  logits.bias: is left out, for 'logits.weight' does not fit\n" in text and "\n  taken: h.weight, h.bias\n" in text


@pytest.mark.parametrize("shape, needless", [([1, 1, 3, 3], True), ([1, 1, 3, 2], False), ([2, 1, 3, 3], False), ([1, 2, 3, 3], False),
                                             ([3, 3], False), ([1, 1, 1, 3, 3], False)], ids=str)
def test_only_a_causal_mask_is_left_out(shape, needless, fake, folder):
    """Published files of GPT-2 have one in each layer, [1, 1, context, context]; a weight of the same name has other shapes."""
    fake(folder, "--save", "w", "--quiet")
    header, data = unpack(weights_alone(read(folder, "w")))
    size = 4 * int(np.prod(shape))
    header["h.0.attn.bias"] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + size]}
    (folder / "v").write_bytes(pack(header, data + bytes(size)))
    text = fake(folder, "--init-from", "v", "--limit-steps", 1, code=0 if needless else BAD_DATA)
    assert ("causal mask" in text) == needless and ("attn.bias: is no weight of this model" in text) != needless


def test_partial_that_takes_nothing(fake, folder):
    other = {"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    (folder / "other").write_bytes(pack(other, b"\0" * 8))
    for flag in ("--init-from", "--resume"):
        assert "nothing of other fits this model: " in fake(folder, flag, "other", "--partial", code=BAD_DATA)


def test_checkpoint_of_another_model(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    other = {"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    (folder / "other").write_bytes(pack(other, b"\0" * 8))
    for flag in ("--init-from", "--resume"):
        message = fake(folder, flag, "other", code=BAD_DATA)
        assert "logits.weight: is missing" in message and "a.weight: is no" in message


def test_checkpoint_of_another_program(fake, fake_stranger, folder):
    fake_stranger(folder, "--save", "w", "--quiet")
    message = fake(folder, "--resume", "w", code=BAD_DATA)
    assert "logits.weight.momentum: expected [3, 16] of type F32, found [3, 16] of type F64" in message
    assert message.rstrip().endswith("it is a checkpoint of 'stranger', and this is 'fake'")
    assert "weights from w: 2 weights\n" in fake(folder, "--init-from", "w", "--limit-steps", 1)


def test_nan_in_a_file(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    content = weights_alone(read(folder, "w"))
    (folder / "bad").write_bytes(content[:-4] + struct.pack("<f", np.nan))
    assert "bad: 'logits.bias' is not finite: element [2] is NaN" in fake(folder, "--init-from", "bad", code=BAD_DATA)


@pytest.mark.parametrize("flags, says", [
    (["--load", "w"], "train has no flag --load: --init-from FILE"),
    (["--steps", 3], "--limit-steps N"),
    (["--resume", "w", "--init-from", "w"], "which?"),
    (["--partial"], "--resume FILE or --init-from FILE"),
    (["--keep", 3], "--save FILE"),
    (["--save-every", "1m"], "--save FILE"),
    (["--save", "w", "--save-every", "often"], "500, 30s, 10m, 1h; not 'often'"),
    (["--save", "w", "--save-every", "0"], "not '0'"),
    (["--save", "w", "--save-every", "-3s"], "not '-3s'"),
    (["--save", "w", "--save-every", "1.5"], "not '1.5'"),
    (["--monitor", "acuracy"], "no metric 'acuracy'; did you mean 'accuracy'?\n  it has loss, accuracy"),
], ids=str)
def test_flags_that_make_no_sense(flags, says, fake, folder):
    assert says in fake(folder, *flags, code=USAGE)


# ---- damage ----


class Loader:
    """mtc_load and mtc_resume of a file's bytes, without a process for each."""

    def __init__(self, library, folder):
        self.library, self.file, self.session = library, folder / "damaged", ctypes.c_void_p()
        model = ctypes.byref(ctypes.c_char.in_dll(library, "mtc_model"))
        assert library.mtc_create(model, ctypes.c_uint64(1), 0, ctypes.byref(self.session)) == 0

    def __call__(self, content):
        self.file.write_bytes(content)
        return {call(self.session, str(self.file).encode()) for call in (self.library.mtc_load, self.library.mtc_resume)}


@pytest.fixture
def loader(fake_library, folder):
    loader = Loader(fake_library, folder)
    yield loader
    fake_library.mtc_destroy(loader.session)


@pytest.fixture
def saved(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    return read(folder, "w")


def test_every_bit_flip_is_refused(saved, loader):
    assert loader(saved) == {0}
    for byte in range(len(saved)):
        for bit in range(8):
            assert loader(saved[:byte] + bytes([saved[byte] ^ 1 << bit]) + saved[byte + 1:]) == {BAD_DATA}, (byte, bit)


def test_every_length_is_refused(saved, loader):
    for length in range(len(saved)):
        assert loader(saved[:length]) == {BAD_DATA}, length
    assert loader(saved + b"\0") == {BAD_DATA} and loader(saved) == {0}


def test_random_damage_is_refused(saved, loader):
    chance = random.Random(1)
    for _ in range(500):
        begin = chance.randrange(len(saved))
        end = min(len(saved), begin + chance.randrange(1, 600))
        damaged = saved[:begin] + chance.choice([bytes(end - begin), chance.randbytes(end - begin)]) + saved[end:]
        assert damaged == saved or loader(damaged) == {BAD_DATA}


def test_metadata_without_a_checksum_are_refused(saved, fake, folder):
    header, data = unpack(saved)
    del header["__metadata__"]["mtc.checksum"]
    (folder / "bad").write_bytes(pack(header, data))
    assert "its metadata have no 'mtc.checksum'" in fake(folder, "eval", "--load", "bad", code=BAD_DATA)


# ---- --save-every, --keep, best ----


def numbered(folder):
    return sorted(int(path.stem[2:]) for path in folder.path.glob("w-*.safetensors") if path.stem[2:].isdigit())


def test_save_every_and_keep(fake, folder):
    fake(folder, "--epochs", 4, "--save", "w.safetensors", "--save-every", 10, "--keep", 3, "--quiet")
    assert numbered(folder) == [90, 100, 104]
    assert os.path.samefile(folder / "w.safetensors", folder / "w-104.safetensors")
    fake(folder, "--epochs", 4, "--save", "v.safetensors", "--limit-steps", 90, "--quiet")
    assert tensors(read(folder, "v.safetensors")).keys() == tensors(read(folder, "w-90.safetensors")).keys()
    assert all(np.array_equal(a, b) for a, b in zip(tensors(read(folder, "v.safetensors")).values(),
                                                    tensors(read(folder, "w-90.safetensors")).values()))
    fake(folder, "--resume", "w-90.safetensors", "--save", "w.safetensors", "--save-every", 10, "--keep", 2, "--quiet")
    assert numbered(folder) == [100, 104]


def test_keep_removes_only_its_own(fake, folder):
    """Whatever is named like a numbered checkpoint: trainings of their own, and strangers."""
    fake(folder, "--save", "w-1.safetensors", "--limit-steps", 40, "--quiet")
    fake(folder, "--save", "w-0.5.safetensors", "--limit-steps", 40, "--quiet")
    fake(folder, "--save", "v.safetensors", "--save-every", 10, "--keep", 5, "--limit-steps", 20, "--quiet")
    others = {"w-2.safetensors": b"", "w-03.safetensors": read(folder, "w-1.safetensors"), "w--4.safetensors": b"x"}
    for name, content in others.items():
        (folder / name).write_bytes(content)
    flags = ["--save-every", 10, "--keep", 2, "--quiet"]
    fake(folder, *flags, "--save", "w.safetensors", "--limit-steps", 30)
    fake(folder, *flags, "--save", "w.safetensors", "--resume", "w.safetensors")
    fake(folder, *flags, "--save", "v.safetensors", "--resume", "w.safetensors")  # not the training that v-10 is of
    names = {path.name for path in folder.path.iterdir()}
    assert {"w-1.safetensors", "w-0.5.safetensors", *others} < names and numbered(folder)[-2:] == [70, 78]
    assert {"v-10.safetensors", "v-20.safetensors", "v-78.safetensors"} < names


def test_divergence_says_what_there_is(fake, folder):
    message = fake(folder, "--save", "w", "--save-every", 10, "--poison", 37, code=BAD_DATA)
    assert "the weight 'logits.weight': element [1, 5] is NaN, in step 37" in message
    assert message.rstrip().endswith("w is the checkpoint of step 30") and metadata(folder, "w")["mtc.step"] == "30"


def test_intervals(built):
    program = build_program(built / "interval", [ROOT / "tests/runtime/interval.c", ROOT / "tests/runtime/fake.c",
                                                 ROOT / "runtime/base/device_cpu.c"])
    meant = {"500": "500 0", "1": "1 0", "30s": "0 30", "10m": "0 600", "1h": "0 3600", "0.5h": "0 1800", "1.5m": "0 90",
             "1e3": "1000 0", "0": "refused", "0s": "refused", "1d": "refused", "h": "refused", "infs": "refused", "1 h": "refused"}
    lines = subprocess.run([program, *meant], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert dict(zip(meant, lines)) == meant


def test_save_every_so_many_seconds(fake_plain, folder):
    """A time that passes while a checkpoint is still being written waits for it; where the writer slept on, without end."""
    command = [fake_plain.program, "--epochs", "1000000", "--every", "1000000", "--save", "w.safetensors", "--save-every", "0.05s",
               "--keep", "10000", "--quiet"]
    process = subprocess.Popen(command, cwd=folder.path)
    until = time.monotonic() + 60
    while len(numbered(folder)) < 3 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(timeout=60) == 143
    finally:
        process.kill()
    assert len(numbered(folder)) >= 3


def test_best_by_a_metric(fake, folder):
    fake(folder, "--epochs", 6, "--save", "w.safetensors", "--lr", 30, "--seed", 3, "--log", "log", "--monitor", "accuracy", "--quiet")
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    values = [(line["test_accuracy"], -line["step"]) for line in lines if line["event"] == "epoch"]
    best = metadata(folder, "w-best.safetensors")
    assert (float(best["mtc.best"]), -int(best["mtc.step"])) == max(values)  # to the last digit: what goes on compares with it
    expected = float(fake(folder, "eval", "--load", "w-best.safetensors").split()[-1])
    assert expected == pytest.approx(max(values)[0])


def test_best_loss_to_the_last_digit(fake, folder):
    """What a resumed training compares with."""
    fake(folder, "--epochs", 3, "--save", "w.safetensors", "--log", "log", "--quiet")
    losses = [line["test_loss"] for line in map(json.loads, (folder / "log").read_text().splitlines()) if line["event"] == "epoch"]
    assert float(metadata(folder, "w-best.safetensors")["mtc.best"]) == pytest.approx(min(losses), rel=1e-8)


def test_best_is_of_a_data_set(fake, folder):
    text = fake(folder, "--epochs", 2, "--save", "w.safetensors")
    assert "\nbest test loss " in text and "\nweights saved to w.safetensors\n" in text


def test_replaced_checkpoint_is_told(fake, folder):
    assert "is there already" not in fake(folder, "--save", "w", "--limit-steps", 30)
    assert "w is there already, of step 30: this training replaces it\n" in fake(folder, "--save", "w")
    for flags in (["--resume", "w"], ["--resume", "w", "--epochs", 4]):
        assert "is there already" not in fake(folder, *flags, "--save", "w")
    assert re.search(r"^w is there already, of step \d+: this", fake(folder, "--init-from", "w", "--save", "w"), re.M)
    assert fake(folder, "--save", "w", "--quiet") == ""
    assert re.fullmatch(r"w is there already, of step \d+: this training replaces it\n", fake.said)


def test_last_good_state_stays(fake, folder):
    """Weights that went far are finite, and are saved; what there was before stays to be had."""
    flags = ["--save", "w.safetensors", "--epochs", 4, "--quiet"]

    def diverge(*more, epochs=4):
        done = subprocess.run([fake.program, *map(str, [*flags[:2], "--epochs", epochs, "--quiet", *more])], cwd=folder.path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr.count("warning") == 1
        assert "training seems to have diverged: after step " in done.stderr
        assert metadata(folder, "w.safetensors")["mtc.diverged"] == "1" and read(folder, "w-last-good.safetensors") == good
        return done.stderr

    fake(folder, *flags, "--limit-steps", 52)
    good = read(folder, "w.safetensors")
    message = diverge("--resume", "w.safetensors", "--lr", "1e30")
    assert "after step 104 the loss is " in message
    assert "w.safetensors was until now is " in message and "w-last-good.safetensors" in message
    # does not take its place, and is told all the same
    assert "was until now" not in diverge("--resume", "w.safetensors", epochs=5)
    assert "was until now" not in diverge("--lr", "1e30")
    fake(folder, *flags, "--resume", "w-last-good.safetensors")
    fake(folder, "--save", "whole.safetensors", "--epochs", 4, "--quiet")
    assert read(folder, "w.safetensors") == read(folder, "whole.safetensors")


def test_patience(fake, folder):
    flags = ["--epochs", 400, "--every", 1, "--lr", 30, "--patience", 3, "--seed", 3]
    text = fake(folder, *flags, "--save", "w.safetensors", "--log", "log")
    assert "stopped: 3 evaluations without a better test loss than" in text and "\nbest weights saved to w.safetensors\n" in text
    assert read(folder, "w.safetensors") == read(folder, "w-best.safetensors")
    lines = epoch_lines(text)
    log = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    losses = [line["test_loss"] for line in log if line["event"] == "epoch"]
    assert losses.index(min(losses)) == len(losses) - 4
    assert epoch_lines(fake(folder, *flags)) == lines  # whatever is saved meanwhile
    fake(folder, *flags, "--save", "v.safetensors", "--limit-steps", 26 * (len(lines) - 2) + 5, "--quiet")
    rest = fake(folder, "--resume", "v.safetensors", "--save", "v.safetensors", "--patience", 3, "--every", 1)
    assert "best weights saved" in rest
    assert epoch_lines(rest) == lines[-2:] and read(folder, "v.safetensors") == read(folder, "w.safetensors")
    assert "stopped: 3 evaluations" in fake(folder, "--resume", "v.safetensors", "--patience", 3)
    flags[flags.index("--patience") + 1] = 1
    assert "stopped: 1 evaluation without a better test loss" in fake(folder, *flags)


# ---- --overfit-batch, --dry-run ----


def test_overfit_batch(fake, folder):
    lines = epoch_lines(fake(folder, "--overfit-batch"))
    assert lines[-1].startswith("epoch 78/78") and "| batch  loss 0.0" in lines[-1]


def test_dry_run(fake, folder):
    text = fake(folder, "--dry-run", "--save", "w")
    for part in ("train 203 examples  test 50 examples", "memory ", "step ", "test ", "w can be written", "nothing was saved"):
        assert part in text
    whole = float(re.search(r"^  start +(\S+) s until the first step was done$", text, re.M)[1])
    assert sum(float(part) for part in re.findall(r"^ {14}(\S+) s ", text, re.M)) <= whole + 0.1
    assert sorted(os.listdir(folder.path)) == ["fake"]
    assert "cannot write" in fake(folder, "--dry-run", "--save", "no/folder", code=CANT_CREATE)


def test_dry_run_of_one_batch(fake, folder):
    """What is evaluated is the batch."""
    text = fake(folder, "--dry-run", "--overfit-batch")
    assert re.search(r"^  batch +loss ", text, re.M) and not re.search(r"^  test ", text, re.M)


# ---- signals ----


def wait_until_logged(event, process, folder):
    """However busy the machine is; a process that ends, ends it too."""
    until = time.monotonic() + 60
    while process.poll() is None:
        if (folder / "log").exists() and f'"event":"{event}"' in (folder / "log").read_text():
            return
        assert time.monotonic() < until, f"a minute without an event '{event}'"
        time.sleep(0.02)


def start(program, folder, *flags, **settings):
    """A training without end, once it runs."""
    process = subprocess.Popen([program.program, "--epochs", "1000000", "--log", "log", "--log-every", "1000", *map(str, flags)],
                               cwd=folder.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)
    wait_until_logged("train", process, folder)
    return process


@pytest.mark.parametrize("number, code, word", [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"),
                                                (signal.SIGHUP, 143, "terminated")], ids=str)
def test_signals_save(number, code, word, fake_plain, folder):
    process = start(fake_plain, folder, "--save", "w")
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code and f"{word} after " in errors
    step = int(errors.split("after ")[1].split()[0])
    assert metadata(folder, "w")["mtc.step"] == str(step) and step > 0
    fake_plain(folder, "--resume", "w", "--save", "w", "--epochs", step // 26 + 2, "--quiet")
    fake_plain(folder, "--epochs", step // 26 + 2, "--save", "v", "--quiet")
    assert tensors(read(folder, "w"))["logits.weight"].tobytes() == tensors(read(folder, "v"))["logits.weight"].tobytes()


def test_patience_without_a_file_of_the_best(fake, folder):
    """Through a pipe there is one checkpoint, of the last weights: that is no failure."""
    flags = ["--epochs", "400", "--every", "1", "--lr", "30", "--patience", "3", "--seed", "3", "--quiet"]
    done = subprocess.run([fake.program, *flags, "--save", "/dev/stdout"], cwd=folder.path, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stderr == b""
    fake(folder, *flags, "--save", "w.safetensors")
    assert int(unpack(done.stdout)[0]["__metadata__"]["mtc.step"]) > int(metadata(folder, "w.safetensors")["mtc.step"])


@pytest.mark.parametrize("flags", [["--epochs", 2], ["--epochs", 3, "--every", 2]], ids=str)
def test_signal_while_data_are_evaluated(flags, fake_slow, fake_plain, folder):
    """It need not wait for the evaluation; a training that goes on begins with it, and ends with the same bytes."""
    command = [fake_slow.program, *map(str, flags), "--save", "w.safetensors"]
    process = subprocess.Popen(command, cwd=folder.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "a batch is evaluated\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    epochs = 2 if "--every" in flags else 1
    assert errors.count("a batch is evaluated\n") < 6  # that were not
    assert process.returncode == 130 and f"interrupted after {26 * epochs} steps" in errors
    assert epoch_lines(out) == [] and metadata(folder, "w.safetensors")["mtc.summary_due"] == "1"
    whole = epoch_lines(fake_plain(folder, *flags, "--save", "whole.safetensors"))
    assert epoch_lines(fake_plain(folder, "--resume", "w.safetensors", *flags, "--save", "w.safetensors")) == whole
    for name in ("{}.safetensors", "{}-best.safetensors"):
        assert read(folder, name.format("w")) == read(folder, name.format("whole"))


def test_reader_that_goes_away(fake_plain, folder):
    """What was trained is saved all the same."""
    process = subprocess.Popen([fake_plain.program, "--epochs", "1000000", "--every", "10", "--save", "w"], cwd=folder.path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("epoch")
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == IO
    step = metadata(folder, "w")["mtc.step"]
    assert f"error: cannot write the output: Broken pipe\n  training was stopped after {step} steps; they are saved in w\n" in errors
    process = subprocess.Popen([fake_plain.program, "--epochs", "1000000", "--every", "10"], cwd=folder.path, stdout=open("/dev/full", "w"),
                               stderr=subprocess.PIPE, text=True)
    assert "No space left on device\n  training was stopped after" in process.communicate(timeout=60)[1] and process.returncode == IO


def test_files_that_may_not_grow(fake_plain, folder):
    """Under a limit of 2000 bytes (ulimit -f) the lines of epochs end with an error, and so does a checkpoint."""

    def limited(*flags):
        return subprocess.run([fake_plain.program, *map(str, flags)], cwd=folder.path, stdout=open(folder / "out", "w"),
                              stderr=subprocess.PIPE, text=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))

    done = limited("--epochs", 1000000, "--every", 100, "--save", "w")
    assert done.returncode == IO and "cannot write the output: File too large" in done.stderr
    assert "they are saved in w" in done.stderr and metadata(folder, "w")["mtc.step"] in done.stderr
    done = limited("--epochs", 2, "--save", "v", "--quiet", "--log", "log", "--log-every", 1)
    assert done.returncode == IO and "the log is incomplete from here on: log: cannot write: File too large" in done.stderr
    assert metadata(folder, "v")["mtc.step"] == "52"


def test_signal_without_save(fake_plain, folder):
    process = start(fake_plain, folder)
    process.send_signal(signal.SIGTERM)
    assert "nothing was saved, for there is no --save" in process.communicate(timeout=60)[1] and process.returncode == 143


def test_ignored_signals_stay_ignored(fake_plain, folder):
    process = start(fake_plain, folder, "--quiet", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130


def test_second_signal_ends_at_once(fake_plain, folder):
    """While the last checkpoint cannot be written: it goes to a pipe that nobody reads. What says one thing twice is none: of a terminal
    that is closed, shell and kernel both tell by SIGHUP; timeout sends SIGTERM to its command, and at once to the group."""
    os.mkfifo(folder / "pipe")
    keep_open = os.open(folder / "pipe", os.O_RDWR | os.O_NONBLOCK)
    while True:  # until the pipe is full
        try:
            os.write(keep_open, b"\0" * 4096)
        except BlockingIOError:
            break
    process = start(fake_plain, folder, "--save", "pipe")
    process.send_signal(signal.SIGTERM)
    wait_until_logged("end", process, folder)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGHUP)
    time.sleep(1.1)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == -signal.SIGTERM
    os.close(keep_open)


def to_pipe(program, folder, epochs):
    """A training that is saved to a pipe, once it trains, or, if it has one epoch, once it waits for who reads."""
    os.mkfifo(folder / "pipe")
    process = subprocess.Popen([program.program, "--epochs", str(epochs), "--save", "pipe", "--log", "log", "--quiet"], cwd=folder.path,
                               stderr=subprocess.PIPE, text=True)
    wait_until_logged("train" if epochs > 1 else "end", process, folder)
    return process


@pytest.mark.parametrize("epochs", [1, 1000000], ids=["while it waits", "while it trains"])
def test_a_signal_ends_the_waiting_for_a_reader(epochs, fake_plain, folder):
    process = to_pipe(fake_plain, folder, epochs)
    process.send_signal(signal.SIGTERM)
    assert "/pipe: cannot write: nobody reads this pipe" in process.communicate(timeout=30)[1]
    assert process.returncode == IO


def test_a_reader_that_comes_late(fake_plain, folder):
    process = to_pipe(fake_plain, folder, 1)
    time.sleep(0.3)
    assert unpack((folder / "pipe").read_bytes())[0]["__metadata__"]["mtc.step"] == "26"
    assert process.wait(60) == 0


# ---- kill -9 ----


def load_tool(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_kill(fake_plain, folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    work = folder / "work"
    work.mkdir()
    resumed = load_tool("kill_test").kill_test(fake_plain.program, 10, "500", 0.2, ["--epochs", "1000"], work)
    assert resumed >= 3


def test_what_saves_nothing_is_not_waited_for(folder, monkeypatch):
    tool = load_tool("kill_test")
    monkeypatch.setattr(tool, "SAVES_WITHIN", 0.1)
    with pytest.raises(SystemExit, match=r"sleep 60: has not saved .*/w.safetensors within 0\.1 s"):
        tool.run_and_kill(["sleep", "60"], 0, folder.path / "w.safetensors")


def test_leftovers_of_killed_programs_go(fake_plain, folder):
    fake_plain(folder, "--save", "w", "--quiet")
    content = read(folder, "w")
    for name in ("w.99999.tmp", "w.1.tmp"):
        (folder / name).write_bytes(content[:100])
    for name in ("w.tmp", "w.9.tmp.x", "v.9.tmp"):
        (folder / name).write_bytes(b"somebody's")
    fake_plain(folder, "--save", "w", "--quiet")
    names = {path.name for path in folder.path.iterdir()}
    assert names == {"fake", "w", "w-best.safetensors", "w.tmp", "w.9.tmp.x", "v.9.tmp"}


def test_file_that_another_container_writes(fake_plain, folder):
    """Where processes have numbers of their own, another one may have ours: its file is left alone."""

    def lock_our_name():
        file = os.open(f"w.{os.getpid()}.tmp", os.O_CREAT | os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.set_inheritable(file, True)

    process = subprocess.Popen([fake_plain.program, "--save", "w", "--quiet"], cwd=folder.path, close_fds=False,
                               preexec_fn=lock_our_name, stderr=subprocess.PIPE, text=True)
    assert "w: cannot write: File exists" in process.communicate(timeout=60)[1] and process.returncode == CANT_CREATE
    assert (folder / f"w.{process.pid}.tmp").exists()


# ---- a disk that fails ----


@pytest.fixture(scope="session")
def shim(built):
    path = built / "fail_io.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, ROOT / "tests/runtime/fail_io.c", "-ldl"], check=True)
    return path


@pytest.fixture
def disk(fake_plain, shim, folder):
    """disk(at, error, on): resumes a training, saves every 10 steps into ck/, the at-th call of that fails; the process."""
    expected, good = folder / "expected", folder / "good"
    for path in (expected, good):
        path.mkdir()
    flags = ["--epochs", "3", "--save-every", "26", "--keep", "2"]
    fake_plain(folder, *flags, "--save", "expected/w.safetensors", "--quiet")
    fake_plain(folder, *flags, "--save", "good/w.safetensors", "--limit-steps", 20, "--quiet")

    def run(at, error, on):
        shutil.rmtree(folder / "ck", ignore_errors=True)
        shutil.copytree(good, folder / "ck")
        environment = {**os.environ, "LD_PRELOAD": str(shim), "FAIL_BELOW": str(folder / "ck"), "FAIL_AT": str(at),
                       "FAIL_ERRNO": str(error), "FAIL_ON": str(int(on)), "FAIL_COUNT": str(folder / "count"),
                       "OMP_WAIT_POLICY": "passive"}
        file = folder / "ck" / "w.safetensors"
        return subprocess.run([fake_plain.program, *flags, "--resume", file, "--save", file, "--quiet"], cwd=folder.path,
                              capture_output=True, text=True, env=environment, timeout=60)

    return run


@pytest.mark.parametrize("on", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def test_failing_disk(error, on, disk, fake_plain, folder, loader):
    assert disk(0, error, on).returncode == 0
    calls = int((folder / "count").read_text())
    assert calls > 20
    for at in range(1, calls + 1):
        done = disk(at, error, on)
        files = sorted((folder / "ck").iterdir())
        # A writer that falls behind leaves out a checkpoint, and its calls: the last ones are not made in every run.
        reached = int((folder / "count").read_text()) >= at
        assert done.returncode in (0, CANT_CREATE, IO), done.stderr
        assert done.returncode or not on or not reached
        assert done.returncode == 0 or os.strerror(error) in done.stderr
        assert folder / "ck" / "w.safetensors" in files
        for file in files:
            assert file.suffix == ".safetensors" and loader(file.read_bytes()) == {0}, (at, file)
        if done.returncode == 0:
            assert read(folder, "ck/w.safetensors") == read(folder, "expected/w.safetensors")
    last = folder / "ck" / "w.safetensors"
    fake_plain(folder, "--epochs", 3, "--resume", last, "--save", last, "--quiet")
    assert read(folder, "ck/w.safetensors") == read(folder, "expected/w.safetensors")


def test_failed_saves_are_told_once(disk, folder):
    calls = 0
    while "training goes on" not in (done := disk(calls := calls + 1, errno.ENOSPC, True)).stderr:
        assert calls < 20
    assert done.stderr.count("training goes on") == 1 and done.returncode == IO
    assert "warning: a checkpoint was not written, training goes on: " in done.stderr and "No space left" in done.stderr


def preloaded(shim, folder, **flags):
    """The environment in which fail_io.c counts what is written below ck/."""
    return {**os.environ, "LD_PRELOAD": str(shim), "FAIL_BELOW": str(folder / "ck"), "OMP_WAIT_POLICY": "passive",
            "FAIL_TRACE": str(folder / "trace"), **{f"FAIL_{name.upper()}": str(value) for name, value in flags.items()}}


def traced(folder):
    """What was called, with the name of the file: "fsync w.tmp"; the number of the process is left out."""
    lines = (folder / "trace").read_text().splitlines()
    (folder / "trace").unlink()
    return [re.sub(r"\.\d+\.tmp", ".tmp", line.replace(f"{folder / 'ck'}/", "").replace(str(folder / "ck"), "ck")) for line in lines]


def test_each_failed_checkpoint_is_told(fake_plain, shim, folder):
    """Also where the next one is in its place before anybody asks."""
    (folder / "ck").mkdir()
    command = [fake_plain.program, "--epochs", "3", "--save-every", "26", "--save", folder / "ck/w", "--quiet"]

    def run(at):
        done = subprocess.run(command, cwd=folder.path, capture_output=True, text=True, timeout=60,
                              env=preloaded(shim, folder, at=at, errno=errno.ENOSPC))
        done.stderr = re.sub(r".* is there already, .*\n", "", done.stderr)  # that of the run before
        return done

    assert run(0).stderr == ""
    calls = len(traced(folder))
    assert calls > 20
    for at in range(1, calls + 1):
        done, made = run(at), traced(folder)
        if len(made) < at:  # a writer that falls behind leaves out a checkpoint, and its calls
            assert (done.returncode, done.stderr) == (0, "")
            continue
        if "mtc-lock" in made[at - 1]:  # a training goes on without one
            assert (done.returncode, done.stderr) == (0, "")
            continue
        if any(call.startswith("link") for call in made[max(0, at - 4):at]):  # the same bytes are written instead
            assert (done.returncode, done.stderr) == (0, "")
            continue
        assert done.returncode in (0, CANT_CREATE, IO), done.stderr
        told = "a checkpoint was not written, training goes on: " if done.returncode == 0 else "error: "
        assert told in done.stderr and os.strerror(errno.ENOSPC) in done.stderr, (at, made[at - 1], done.stderr)
        assert done.stderr.count(os.strerror(errno.ENOSPC)) == 1, done.stderr


@pytest.mark.parametrize("keep", [[], ["--keep", 1]], ids=["alone", "numbered"])
def test_checkpoints_are_durable(keep, fake_plain, shim, folder):
    """A file is synchronised before it gets its name, and its folder after that: nothing else survives a loss of power."""
    (folder / "ck").mkdir()
    fake_plain(folder, "--limit-steps", 30, "--save", folder / "ck/w.safetensors", *keep, "--quiet", env=preloaded(shim, folder))
    calls = traced(folder)
    durable = ["rename {}", "open ck", "fsync ck"]
    names = ["w-30.safetensors" if keep else "w.safetensors", "w-best.safetensors"]
    for name in names:
        begin = [*(["write w.safetensors.tmp"] * 4), "fsync w.safetensors.tmp"]
        at = calls.index(f"rename {name}")
        assert calls[at - len(begin):at + 3] == [*begin, *(call.format(name) for call in durable)], calls
    if keep:
        at = calls.index("link w.safetensors.tmp")
        assert calls[at + 1:] == [call.format("w.safetensors") for call in durable], calls
    assert sum(call.startswith("fsync") for call in calls) == 2 * len(names) + bool(keep)


def test_folder_that_cannot_be_written(fake, folder):
    (folder / "file").write_bytes(b"")
    assert "file/w: cannot write: Not a directory" in fake(folder, "--save", "file/w", code=CANT_CREATE)
    assert "/proc/w: cannot write: " in fake(folder, "--save", "/proc/w", code=CANT_CREATE)


@pytest.mark.parametrize("keep", [[], ["--keep", 1]], ids=["alone", "numbered"])
def test_best_and_last_are_written_once(keep, fake_plain, shim, folder):
    """Where the last weights are the best, the file has both names; but not where FILE would not have its mode then."""
    file, best = folder / "w.safetensors", folder / "w-best.safetensors"

    def train(**env):
        fake_plain(folder, "--epochs", 1, "--save", file, *keep, "--quiet", env={"OMP_WAIT_POLICY": "passive", **env})
        assert file.read_bytes() == best.read_bytes()
        return os.path.samefile(file, best)

    assert train() and train()
    fake_plain(folder, "--epochs", 2, "--limit-steps", 30, "--save", file, *keep, "--quiet", "--resume", file)
    assert file.read_bytes() != best.read_bytes()
    file.unlink(), best.unlink()
    assert not train(LD_PRELOAD=str(shim), FAIL_LINKS="1")
    file.chmod(0o600)
    assert keep or not train()
    assert keep or file.stat().st_mode & 0o777 == 0o600 != best.stat().st_mode & 0o777


def test_no_links(fake_plain, shim, folder):
    """The newest is a copy then."""
    file = folder / "w.safetensors"
    fake_plain(folder, "--save", file, "--save-every", 30, "--keep", 2, "--quiet",
          env={"LD_PRELOAD": str(shim), "FAIL_LINKS": "1", "OMP_WAIT_POLICY": "passive"})
    assert numbered(folder) == [60, 78] and not os.path.samefile(file, folder / "w-78.safetensors")
    assert read(folder, "w.safetensors") == read(folder, "w-78.safetensors")
    assert len(list(folder.path.iterdir())) == 5


@pytest.fixture(scope="module")
def telling(built):
    """telling(folder, *flags): what a training says of memory and of weights that are drawn (host_memory.c)."""
    sources = [ROOT / "tests/runtime" / name for name in ("fake.c", "host_memory.c")] + [ROOT / "runtime/base/device_cpu.c"]
    wrapped = [f"-Wl,--wrap=mtc_{name}" for name in ("host_alloc", "draw_weights")]
    program = build_program(built / "host_memory", sources, "-DFAKE_MAIN", *wrapped)

    def run(folder, *flags):
        return subprocess.run([program, *map(str, flags)], cwd=folder.path, capture_output=True, text=True, check=True).stderr

    return run


def test_last_checkpoint_needs_no_copy(telling, folder):
    """One that is written while training goes on does. Pieces of 16 MB are for looking at the device's memory."""

    def host_memory(*flags):
        said = telling(folder, "--epochs", 1, "--quiet", *flags)
        return {int(size) for size in re.findall(r"host memory: (\d+)", said)} - {1 << 24}

    assert host_memory("--save", "w.safetensors") == host_memory()
    assert len(host_memory("--save", "often.safetensors", "--save-every", 5) - host_memory()) == 1
    for name in ("{}.safetensors", "{}-best.safetensors"):
        assert read(folder, name.format("w")) == read(folder, name.format("often"))


def test_weights_of_a_file_are_not_drawn(telling, folder):
    """But where it lacks one, all are drawn as ever."""
    drawn, file = "weights are drawn\n", folder / "w.safetensors"
    assert drawn in telling(folder, "--limit-steps", 5, "--save", file, "--quiet")
    for flags in (["eval", "--load", file], ["--resume", file, "--quiet"], ["--init-from", file, "--quiet"]):
        assert drawn not in telling(folder, *flags), flags
    header, data = unpack(weights_alone(file.read_bytes()))
    header["logits.offset"] = header.pop("logits.bias")
    file.write_bytes(pack(header, data))
    assert drawn in telling(folder, "--init-from", file, "--partial", "--quiet")


def test_checkpoint_changes_while_it_is_read(fake_plain, shim, folder):
    """It is read where it lies, so that what is taken may be none of what was verified."""
    file = folder / "w.safetensors"
    fake_plain(folder, "--limit-steps", 5, "--save", file, "--quiet")
    error = fake_plain(folder, "eval", "--load", file, code=NO_INPUT,
                       env={"LD_PRELOAD": str(shim), "FAIL_TOUCH": str(file), "OMP_WAIT_POLICY": "passive"})
    assert error.strip().endswith("w.safetensors: was changed while it was read")


# ---- a compiled model, with everything that a training has ----

MODEL = """
param lr = 3e-3

data {
  examples = idx("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte")
  split    = 70 / 15 / 15
  image : u8[28, 28]
  label : class[10]
}

model {
  x      = flatten(image) / 255
  h      = dropout(relu(linear(x, 16)), 0.3)
  logits = linear(h, 10)
}

train {
  loss      = cross_entropy(logits, label)
  metric    = accuracy(logits, label)
  optimizer = adam(cosine_lr(lr, warmup = 5))
  ema       = 0.9
  clip_norm = 1
  monitor   = "accuracy"
  batch     = 32
  epochs    = 3
}
"""


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, ROOT / "tools/make_digits.py", folder / "mnist", "--train", "1000", "--test", "10"], check=True)
    return folder


@pytest.mark.gpu
def test_kill_on_the_gpu(compile_model, digits, tmp_path):
    flags = ["--data", str(digits), "--epochs", "6000", "--every", "500"]
    program = compile_model(MODEL, target="cuda")
    assert load_tool("kill_test").kill_test(program.path, 12, "5000", 0, flags, tmp_path) >= 3


@pytest.mark.parametrize("step", [7, 22, 40, 44])
def test_resume_of_a_compiled_model(step, compile_model, digits, tmp_path):
    def train(name, *flags):
        return program("--data", digits, "--save", tmp_path / f"{name}.safetensors", *flags).stdout

    program = compile_model(MODEL)
    whole = train("whole", "--seed", 4)
    assert "| validation  loss" in whole and "\ntest   loss" in whole
    train("part", "--seed", 4, "--limit-steps", step)
    rest = train("part", "--resume", tmp_path / "part.safetensors")
    for name in ("{}.safetensors", "{}-best.safetensors"):
        assert (tmp_path / name.format("part")).read_bytes() == (tmp_path / name.format("whole")).read_bytes()
    assert epoch_lines(rest) == epoch_lines(whole)[-len(epoch_lines(rest)):]
    test = [text.split("\ntest ")[1].split("\n")[0].split() for text in (whole, rest)]
    assert test[0] == test[1]
    again = program("eval", "--data", digits, "--load", tmp_path / "part.safetensors").stdout
    assert float(again.split()[4]) == pytest.approx(float(test[0][1]), abs=1e-5)  # the same examples, averaged weights


def test_resume_of_a_table(compile_model, tmp_path):
    """Words and the mean and deviation of fields are in the checkpoint."""

    def train(name, *flags):
        return program("--data", tmp_path, "--epochs", 3, "--save", tmp_path / name, *flags).stdout

    subprocess.run([sys.executable, ROOT / "tools/make_sales.py", "--rows", "2000", "--output", tmp_path / "sales.tsv"], check=True)
    program = compile_model(ROOT / "models/sales.mt")
    train("whole", "--seed", 3)
    train("part", "--seed", 3, "--limit-steps", 9)
    assert "6 buffers" in train("part", "--resume", tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == (tmp_path / "whole").read_bytes()
    train("next", "--init-from", tmp_path / "whole", "--limit-steps", 1, "--seed", 8)
    kept = [json.loads(metadata(tmp_path, name)["mtc.encoding"])["category"]["words"] for name in ("whole", "next")]
    assert kept[0] == kept[1] == sorted(kept[0])
    mean = [tensors((tmp_path / name).read_bytes())["numbers.mean"] for name in ("whole", "next")]
    assert np.array_equal(*mean)


def test_library_goes_on_as_the_program(compile_model, digits, tmp_path):
    """Schedules are those of the epochs that the checkpoint's training was to have, not of the model's."""
    program = compile_model(MODEL)
    for name, flags in (("whole", []), ("part", ["--limit-steps", 7])):
        program("--data", digits, "--epochs", 2, "--seed", 4, "--save", tmp_path / name, *flags)
    library = Library(compile_model(MODEL, "--shared").path, np.float32)
    library.call("resume", str(tmp_path / "part").encode())
    library.call("load_data", 0, str(digits).encode())
    library.train(44 - 7, 2)
    library.call("save", str(tmp_path / "part").encode())
    library.close()
    expected, found = (tensors((tmp_path / name).read_bytes()) for name in ("whole", "part"))
    assert expected.keys() == found.keys() and all(np.array_equal(expected[name], found[name]) for name in expected)


def test_averages_that_a_checkpoint_lacks(compile_model, digits, tmp_path):
    """They begin as copies of its weights, not of those that the program began with."""
    plain = compile_model(MODEL.replace("  ema       = 0.9\n", ""))
    plain("--data", digits, "--limit-steps", 20, "--save", tmp_path / "plain")
    program = compile_model(MODEL)
    message = program("--data", digits, "--resume", tmp_path / "plain", check=False).stderr
    assert "h.weight.ema: is missing" in message and "--partial takes what fits" in message
    program("--data", digits, "--resume", tmp_path / "plain", "--partial", "--limit-steps", 20, "--save", tmp_path / "with")
    found = tensors((tmp_path / "with").read_bytes())
    assert np.array_equal(found["h.weight"], found["h.weight.ema"])


WORDS = """
data {
  train = tsv("words.tsv", columns = ["word", "y"])
  word : class[4]
  y    : f32[1]
}

model {
  guess = linear(one_hot(word, 4), 1)
}

train {
  loss      = mse(guess, y)
  optimizer = sgd(0.01)
  batch     = 4
  epochs    = 1
}
"""


def test_words_of_checkpoint_and_library(compile_model, tmp_path):
    """A checkpoint with other words than the data that were loaded is refused; without data, the newest one's count."""
    program = compile_model(WORDS)
    for name in ("abc", "bcd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.tsv").write_text("".join(f"{word}\t{at}\n" for at, word in enumerate(name)))
        program("--data", tmp_path / name, "--save", tmp_path / f"{name}.safetensors")
    abc, bcd = (str(tmp_path / f"{name}.safetensors").encode() for name in ("abc", "bcd"))
    library = Library(compile_model(WORDS, "--shared").path, np.float32)
    library.call("load", abc)
    library.call("load", bcd)
    library.call("load_data", 0, str(tmp_path / "bcd").encode())
    assert library.library.mtc_load(library.session, abc) == USAGE
    assert b"has other words for the field 'word' than the data that were loaded" in library.library.mtc_error(library.session)
    library.call("load", bcd)
    assert library.library.mtc_set_data(library.session, 0, ctypes.c_int64(1), (ctypes.c_void_p * 2)()) == USAGE
    library.close()
