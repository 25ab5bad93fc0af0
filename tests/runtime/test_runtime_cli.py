"""The command line of a program: help that teaches, advice for what is misspelt, codes of sysexits.h."""

import json
import re
import subprocess
from pathlib import Path

import pytest

pytest_plugins = ["fake_model"]

USAGE, NO_INPUT, UNAVAILABLE, CANT_CREATE, IO = 64, 66, 69, 73, 74

WRONG = {
    ("trian",): "unknown command 'trian'; did you mean 'train'?",
    ("fly",): "unknown command 'fly'",
    ("--epoch", "3"): "unknown flag --epoch; did you mean --epochs?",
    ("--Lr", "3"): "unknown flag --Lr; did you mean --lr?",
    ("--momentum", "1"): "unknown flag --momentum\n",
    ("--learning-rate", "3"): "unknown flag --learning-rate; did you mean --lr?",
    ("--num_epochs", "3"): "did you mean --epochs?",
    ("--weights", "w"): "train has no flag --load: --init-from FILE begins with its weights",
    ("--velocity", "3"): "the parameters of fake.mt are --lr, --warmup, --poison\n",
    ("--side", "3"): "'side' was fixed at 4 when this program was compiled: mtc fake.mt --target cpu --set side=3 -o",
    ("--epochs",): "--epochs needs a value: --epochs N",
    ("--epochs", "0"): "--epochs is from 1 to",
    ("--epochs", "ten"): "--epochs needs an integer, not 'ten'",
    ("--epochs", "3.5"): "--epochs needs an integer, not '3.5'",
    ("--epochs", "99999999999999999999"): "--epochs is from 1 to",
    ("--epochs", "9223372036854775807"): "--epochs is from 1 to 2147483647, not 9223372036854775807",
    ("--device", "4294967296"): "--device is from 0 to 2147483647",
    ("bench", "--runs", "99999999999"): "--runs is from 1 to 10000",
    ("--warmup", "1e39"): "--warmup: 1e39 is beyond f32, whose numbers end at 3.4e+38",
    ("--seed", "-1"): "--seed is from 0 to",
    ("fit",): "unknown command 'fit'; did you mean 'train'?",
    ("evaluate",): "unknown command 'evaluate'; did you mean 'eval'?",
    ("--epochs", "3", "--epochs=4"): "--epochs is given twice, as 3 and as 4: which?",
    ("--lr", "0.1", "--lr", "0.2"): "--lr is given twice, as 0.1 and as 0.2: which?",
    ("--save", "v", "--epochs", "1", "--save", "w"): "--save is given twice, as v and as w: which?",
    ("--lr",): "--lr needs a number",
    ("--lr", "fast"): "--lr needs a number, not 'fast'",
    ("--lr", "nan"): "--lr needs a number, not 'nan'",
    ("--lr", "-1"): "--lr is from 0 to 1e+38, not -1",
    ("--warmup", "2.5"): "--warmup needs an integer, not 2.5 (it is written without a fraction in the model file: write 0.0 there)",
    ("--quiet=yes",): "--quiet takes no value",
    ("--save", ""): "--save needs a value: --save FILE",
    ("--save", "--quiet"): "--save needs a value: --save FILE",
    ("--log", "--log-every", "2"): "--log needs a value: --log FILE",
    ("10",): "unknown command '10'",
    ("train", "10"): "'10' is no flag",
    ("-e", "3"): "'-e' is no flag: flags begin with --",
    ("-epochs", "3"): "'-epochs' is no flag: flags begin with two dashes, --epochs\n",
    ("epochs=3",): "'epochs=3' is no flag: flags begin with two dashes, --epochs=3\n",
    ("w.safetensors",): "'w.safetensors' is no flag; did you mean --resume w.safetensors?",
    ("eval", "w.safetensors"): "did you mean --load w.safetensors?",
    ("predict", "--load", "w", "rows.npy"): "'rows.npy' is no flag; did you mean --input rows.npy?",
    ("--lr", "0,5"): "--lr needs a number, not '0,5': decimals come after a point",
    ("--",): "'--' is no flag",
    ("eval",): "eval needs trained weights: --load FILE",
    ("predict", "--epochs", "3"): "predict has no flag --epochs",
    ("predict", "--load", "w", "--input", "a", "--input", "b", "--input", "c"): "more --input files than fields\n  give a file for each of the fields, in this order: 'image', 'label'",
    ("predict", "--load", "w", "--input="): "--input needs a value: --input FILE",
    ("info", "--lr", "3"): "info has no flag --lr",
    ("train", "--output", "x"): "train has no flag --output",
    ("eval", "--load", "w", "--split", "tset"): "the model has no data set 'tset'; did you mean 'test'?\n  it has train, test\n",
    ("predict", "--load", "w", "--input", "a", "--split", "test"): "--split takes examples of the model's data, --input those of a file: which?",
}


@pytest.mark.parametrize("args", WRONG, ids=" ".join)
def test_wrong(args, fake, folder):
    message = fake(folder, *args, code=USAGE)
    assert WRONG[args] in message and ": error: " in message


def test_both_forms_of_a_flag(fake, folder):
    fake(folder, "--save", "a", "--lr", "0.125", "--quiet")
    fake(folder, "--save=b", "--lr=0.125", "--quiet")
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


def test_help(fake, folder):
    text = fake(folder, "--help")
    for word in ("train", "eval", "predict", "info", "bench", "--epochs N", "passes over the data; 3", "--lr X",
                 "after every N-th epoch; 1, or a tenth of more than 50 epochs", "learning rate; 0.5, from 0 to 1e+38", "examples\n", "mtc fake.mt --target cpu --set side=4"):
        assert word in text
    assert "--input FILE" not in text


def test_help_as_a_command(fake, folder):
    assert fake(folder, "help") == fake(folder, "--help")


@pytest.mark.parametrize("flag", ["--save", "--log"])
def test_output_in_no_folder(flag, fake, folder):
    message = fake(folder, "--epochs", "1", flag, "none/file", code=CANT_CREATE)
    assert "none/file: cannot write: there is no folder 'none'" in message


def test_data_folder_that_is_none(fake, folder):
    assert "there is no folder 'none'; --data FOLDER says where" in fake(folder, "--data", "none", code=NO_INPUT)
    folder.write("file", b"")
    message = fake(folder, "--data", "fake/file", code=NO_INPUT)
    assert "'fake/file' is a file; --data FOLDER takes the folder that it lies in" in message


def test_data_that_are_there_and_cannot_be_read(fake, folder):
    folder.file("train-images").unlink()
    folder.file("train-images").mkdir()
    assert "/fake/train-images: is a folder\n" in fake(folder, code=NO_INPUT)


def test_help_of_a_command(fake, folder):
    text = fake(folder, "predict", "--help")
    assert "--input FILE" in text and "--epochs" not in text
    assert re.search(r"^  -o, --output FILE +predict: write", text, re.M)


def test_help_goes_before_mistakes(fake, folder):
    assert "usage:" in fake(folder, "--epoch", "--help")


@pytest.mark.parametrize("args", [["--help"], ["info"], ["--epochs", "1"], ["predict", "--load", "w"]], ids=" ".join)
def test_output_that_cannot_be_written(args, fake, folder):
    fake(folder, "--save", "w", "--quiet")
    with open("/dev/full", "w") as full:
        done = subprocess.run([fake.program, *args], cwd=folder.path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == IO and "error: cannot write the output: No space left on device" in done.stderr


def test_short_help(fake, folder):
    assert fake(folder, "-h") == fake(folder, "--help")


def test_openmp_does_not_spin(fake, folder):
    """The program begins anew with what OpenMP reads from the environment; what the user has set stays."""
    for given, expected in (({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")):
        command = [fake.program, "--epochs", "1000000", "--every", "1"]
        with subprocess.Popen(command, cwd=folder.path, stdout=subprocess.PIPE, env=given) as program:
            program.stdout.read(1)
            environment = Path(f"/proc/{program.pid}/environ").read_text().split("\0")
            name = Path(f"/proc/{program.pid}/comm").read_text().strip()
            program.kill()
        assert f"OMP_WAIT_POLICY={expected}" in environment and name == "fake"


def test_device(fake, folder):
    assert "no device 1" in fake(folder, "--device", "1", code=UNAVAILABLE)


def test_info(fake, folder):
    text = fake(folder, "info")
    for word in ("parameters  51", "target      cpu", "schedule    openmp", "model hash  0123abcd", "--lr", "side",
                 "image            u8[4, 4]", "label            u8[], 3 classes", "fake/train-images", "logits.weight.momentum",
                 "value   f32   [8, 3]", ", phase 1\n"):
        assert word in text


def test_bench(fake, folder):
    line = json.loads(fake(folder, "bench", "--steps", "100", "--runs", "3"))
    assert line["event"] == "bench" and line["steps"] == 100 and line["runs"] == 3 and line["data"] == "train"
    assert line["us_per_step_best"] <= line["us_per_step"] <= line["us_per_step_worst"]
    assert line["examples_per_second"] == pytest.approx(8 * line["steps_per_second"], rel=1e-5)


def test_bench_without_data(fake, folder):
    folder.file("train-images").unlink()
    assert '"data":"random"' in fake(folder, "bench", "--steps", "10", "--runs", "1")


def test_bench_of_the_forward_pass(fake, folder):
    line = json.loads(fake(folder, "bench", "--forward", "--batch", "3", "--steps", "10", "--runs", "1"))
    assert line["pass"] == "forward" and line["batch"] == 3 and line["data"] == "train"
    assert line["us_per_batch"] > 0 and line["examples_per_second"] > 0 and "us_per_step" not in line
    assert line["planned_bytes"] == 4096 and line["device_bytes"] > 0
    assert json.loads(fake(folder, "bench", "--forward", "--steps", "10", "--runs", "1"))["batch"] == 8
    line = json.loads(fake(folder, "bench", "--random-data", "--steps", "10", "--runs", "1"))
    assert line["data"] == "random" and line["pass"] == "training"
    assert "--batch is at most 8" in fake(folder, "bench", "--forward", "--batch", "9", code=64)
    assert "--batch is of the forward pass" in fake(folder, "bench", "--batch", "3", code=64)
