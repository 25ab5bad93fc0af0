"""Files that a program writes are none that it reads, not itself, and not one another: refused before anything is done."""

import os
import shutil
import subprocess
import time

import pytest

from fake_data import pack, unpack

pytest_plugins = ["fake_model"]

CANT_CREATE = 73
DATA = "fake/train-images"


def refused(fake, folder, *args):
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    message = fake(folder, *args, code=CANT_CREATE)
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before
    return message


@pytest.mark.parametrize("link", [None, os.symlink, os.link], ids=["path", "symbolic", "hard"])
@pytest.mark.parametrize("flag", ["--log", "--save"])
def test_data(flag, link, fake, folder):
    path = f"{folder.path}/fake/../{DATA}"
    if link:
        link(folder / DATA, folder / "other")
        path = "other"
    message = refused(fake, folder, flag, path)
    assert f"fake/train-images, data of the model, and {flag} {path} are the same file: it would be overwritten" in message


@pytest.mark.parametrize("keep", [[], ["--save-every", 20, "--keep", 3]], ids=["best", "numbered"])
def test_links_beside_the_checkpoint_are_followed(keep, fake, folder):
    """As the one that --save names: of the best weights, also where these are the last, and of numbered ones."""
    (folder / "plain").mkdir()
    (folder / "there").mkdir()
    fake(folder, "--save", "plain/w.safetensors", "--quiet", *keep)
    names = sorted(path.name for path in (folder / "plain").iterdir())
    assert "w-best.safetensors" in names and (len(names) > 3 if keep else len(names) == 2)
    for name in names:
        (folder / name).symlink_to(f"there/{name}")
    fake(folder, "--save", "w.safetensors", "--quiet", *keep)
    assert sorted(path.name for path in (folder / "there").iterdir()) == names
    for name in names:
        assert (folder / name).is_symlink() and not (folder / "there" / name).is_symlink(), name
        assert (folder / "there" / name).stat().st_size == (folder / "plain" / name).stat().st_size, name


def test_data_that_best_weights_would_replace(fake, folder):
    (folder / "w-best.safetensors").symlink_to(DATA)
    message = refused(fake, folder, "--save", "w.safetensors")
    assert "data of the model" in message and "w-best.safetensors, the best weights beside --save" in message


def test_weights_of_others_are_not_replaced(fake, folder):
    """As mtc import and PyTorch write them: no training would bring them back. One that begins with them may save there."""
    fake(folder, "--save", "w.safetensors", "--quiet")
    header, numbers = unpack((folder / "w.safetensors").read_bytes())
    weights = {name: entry for name, entry in header.items() if name != "__metadata__" and not name.endswith(".momentum")}
    end = max(entry["data_offsets"][1] for entry in weights.values())
    (folder / "theirs.safetensors").write_bytes(pack({**weights, "__metadata__": {"format": "pt"}}, numbers[:end]))
    message = refused(fake, folder, "--save", "theirs.safetensors")
    assert "--save theirs.safetensors would replace weights that no training of mtc has written" in message
    assert "--init-from theirs.safetensors begins with them, and may save there" in message
    fake(folder, "--init-from", "theirs.safetensors", "--save", "theirs.safetensors", "--quiet")
    fake(folder, "--save", "theirs.safetensors", "--quiet")


def test_log_of_the_name_of_a_numbered_checkpoint(fake, folder):
    (folder / "w-26.safetensors").write_text("")
    message = refused(fake, folder, "--save", "w.safetensors", "--keep", 2, "--log", "w-26.safetensors")
    assert "--log w-26.safetensors has the name of a numbered checkpoint of --save w.safetensors" in message


@pytest.mark.parametrize("flag", ["--resume", "--init-from"])
def test_weights_that_training_begins_with(flag, fake, folder):
    fake(folder, "--save", "w", "--quiet")
    assert f"{flag} w and --log w are the same file" in refused(fake, folder, flag, "w", "--log", "w")
    fake(folder, flag, "w", "--save", "w", "--quiet")


def test_predict(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    os.link(folder / "w", folder / "v")
    for path, other in (("v", "--load w"), (DATA, "data of the model"), ("fake/test-images", "fake/test-images")):
        assert other in refused(fake, folder, "predict", "--load", "w", "--input", "fake/test-images", "--output", path)


def test_the_program_and_its_model(fake, folder):
    shutil.copy(fake.program, folder / "prog")
    (folder / "fake.mt").write_text("data")
    program = type(fake)(folder / "prog")
    for flag in ("--log", "--save"):
        assert "prog, the running program, and" in refused(program, folder, flag, "prog")
        assert "the model fake.mt and" in refused(program, folder, flag, "fake.mt")


def test_two_outputs(fake, folder):
    (folder / "here").symlink_to(".")
    for log, save in (("a", "./a"), ("here/a", "a"), ("a-best.safetensors", "a")):
        assert "each would overwrite the other" in refused(fake, folder, "--log", log, "--save", save)
    (folder / "b").write_text("")
    (folder / "c").symlink_to("b")
    assert "--log b and --save c are the same file" in refused(fake, folder, "--log", "b", "--save", "c")


def test_what_is_no_file_is_not_destroyed(fake, folder):
    fake(folder, "--log", "/dev/null", "--save", "/dev/null", "--quiet")


@pytest.mark.parametrize("flag, kind", [("--save", "no checkpoint (safetensors)"), ("--log", "no log of a run (JSON lines)")])
@pytest.mark.parametrize("content", ["notes, and more notes\n", "{}", "x"])
def test_files_of_another_kind(content, flag, kind, fake, folder):
    (folder / "notes.txt").write_text(content)
    message = refused(fake, folder, flag, "notes.txt")
    assert f"{flag} notes.txt would replace a file that is {kind}" in message and "choose another name" in message
    (folder / "empty").write_text("")
    fake(folder, flag, "empty", "--quiet")
    fake(folder, flag, "empty", "--quiet")  # what it wrote itself


def test_a_log_that_is_no_checkpoint_and_the_other_way_round(fake, folder):
    fake(folder, "--log", "a", "--save", "b", "--quiet")
    assert "--save a would replace" in refused(fake, folder, "--save", "a")
    assert "--log b would replace" in refused(fake, folder, "--log", "b")
    (folder / "w-best.safetensors").write_text("no weights")
    assert "its best weights w-best.safetensors would replace" in refused(fake, folder, "--save", "w")


def test_predictions_replace_predictions_only(fake, folder):
    fake(folder, "--save", "w", "--quiet")
    (folder / "p.txt").write_text("0.5 0.5")
    assert "is no array of predictions (npy)" in refused(fake, folder, "predict", "--load", "w", "--output", "p.txt")
    for _ in range(2):
        fake(folder, "predict", "--load", "w", "--output", "p.npy")


# ---- two trainings at a time ----


@pytest.fixture
def training(fake, folder):
    """training(*args): one that goes on until it is killed, when its lock is there."""
    started = []

    def start(*args):
        started.append(subprocess.Popen([fake.program, "--epochs", "10000000", "--quiet", *args], cwd=folder.path))
        end = time.monotonic() + 60
        while not all((folder / f".{name}.mtc-lock").exists() for name in args[1::2]):
            assert time.monotonic() < end and started[-1].poll() is None
            time.sleep(0.01)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("link", [False, True], ids=["path", "link"])
@pytest.mark.parametrize("flag, name", [("--save", "w.safetensors"), ("--log", "l.jsonl")])
def test_another_training_that_writes_it(flag, name, link, training, fake, folder):
    if link:
        (folder / "link").symlink_to(name)
    first = training(flag, name)
    message = fake(folder, flag, "link" if link else name, code=CANT_CREATE)
    assert f"{flag} {'link' if link else name}: another training writes it: process {first.pid} of {os.uname().nodename}" in message
    assert "choose another name, or wait until that one has ended" in message
    fake(folder, "--quiet", flag, f"other-{name}")
    first.kill()
    first.wait()
    assert (folder / f".{name}.mtc-lock").exists()  # which locks nothing any more
    fake(folder, "--quiet", flag, name)
    assert not list(folder.path.glob(".*.mtc-lock"))


def test_another_training_whose_best_checkpoint_it_is(training, fake, folder):
    """Both ways round: a.safetensors beside one that writes a-best.safetensors, and that one beside a.safetensors."""
    for one, other, who in [("a", "a-best", "--save"), ("a-best", "a", "the best weights of --save,")]:
        first = training("--save", f"{one}.safetensors")
        message = fake(folder, "--save", f"{other}.safetensors", code=CANT_CREATE)
        assert f"{who} " in message and f"a-best.safetensors: another training writes it: process {first.pid}" in message
        first.terminate()
        first.wait()


def test_a_training_that_is_stopped_leaves_no_lock(training, folder):
    first = training("--save", "w.safetensors", "--log", "l.jsonl")
    first.terminate()
    assert first.wait(60) == 143 and not list(folder.path.glob(".*.mtc-lock"))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/proc/none", path)], ids=["pipe", "folder", "link"])
def test_where_no_lock_can_be_had_a_training_goes_on(make, fake, folder):
    make(folder / ".w.safetensors.mtc-lock")
    fake(folder, "--quiet", "--save", "w.safetensors")
    assert (folder / "w.safetensors").exists() and os.path.lexists(folder / ".w.safetensors.mtc-lock")
