"""Files as the compiler, its programs and the Python package open them: read only where they are plain files, written whole
and into place, and shown so that no terminal obeys them."""

import os
import stat
import struct
import subprocess

import pytest

from conftest import MTC

MODEL = """data {
  train = table([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
  x : f32[2]
  y : f32[1]
}
model { p = linear(x, 1) }
train {
  loss      = mse(p, y)
  optimizer = sgd(0.1)
  batch     = 4
  epochs    = 1
}
"""
IMAGES = """data {
  train = images("pictures")
  image : u8[1, 4, 4]
  label : class[2]
}
model { logits = linear(flatten(image) / 255, 2) }
train {
  loss      = cross_entropy(logits, label)
  optimizer = sgd(0.1)
  batch     = 1
}
"""
BAD_DATA, NO_INPUT, CANT_CREATE, OUTPUT_FAILED = 65, 66, 73, 74
LIMIT = 60  # seconds, of a busy machine: whoever waits for a pipe waits for ever


@pytest.fixture
def program(compile_model):
    return compile_model(MODEL)


@pytest.fixture
def write(request, mtc, program, tmp_path):
    """write(path) by one of those that write; each returns its completed process."""
    ugly = tmp_path / "ugly.mt"
    ugly.write_text(MODEL.replace("  ", "    "))

    def formatted(path):  # in place: of what is to be written, there is a model already
        if not path.exists() and path.is_symlink():
            pytest.skip("there is nothing to format")
        if path.is_file() and not path.stat().st_size:
            mode = path.stat().st_mode
            path.chmod(0o600)
            path.write_text(ugly.read_text())
            path.chmod(stat.S_IMODE(mode))
        return mtc("--format", "-i", path)

    writers = {"format": formatted,
               "dump": lambda path: mtc(ugly, "--emit=graph", "-o", path),
               "save": lambda path: program("--save", path, "--quiet", check=False),
               "predict": lambda path: program("predict", "--load", saved(), "--input", rows(), "--output", path, check=False)}

    def saved():
        program("--save", tmp_path / "w.safetensors", "--quiet")
        return tmp_path / "w.safetensors"

    def rows():
        (tmp_path / "rows.tsv").write_text("0\t1\n")
        return tmp_path / "rows.tsv"

    return writers[request.param]


everyone = pytest.mark.parametrize("write", ["format", "dump", "save", "predict"], indirect=True)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@everyone
def test_mode_stays(write, tmp_path):
    path = tmp_path / "out"
    path.touch(mode=0o600)
    path.chmod(0o640)
    assert write(path).returncode == 0
    assert mode_of(path) == 0o640 and path.stat().st_size > 0
    assert not list(tmp_path.glob("out*.tmp"))


@everyone
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_owner_stays(write, tmp_path):
    path = tmp_path / "out"
    path.touch()
    os.chown(path, 1234, 4321)
    assert write(path).returncode == 0
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@everyone
@pytest.mark.parametrize("exists", [True, False], ids=["file", "dangling"])
def test_link_stays(write, exists, tmp_path):
    (tmp_path / "there").mkdir()
    path, target = tmp_path / "link", tmp_path / "there" / "target"
    path.symlink_to("second")
    (tmp_path / "second").symlink_to("there/target")
    if exists:
        target.touch()
    assert write(path).returncode == 0
    assert path.is_symlink() and (tmp_path / "second").is_symlink()
    assert target.is_file() and target.stat().st_size > 0


@everyone
def test_read_only_is_refused(write, tmp_path):
    path = tmp_path / "out"
    path.touch()
    path.chmod(0o444)
    done = write(path)
    assert done.returncode == CANT_CREATE and "read-only" in done.stderr
    assert path.stat().st_mode & 0o777 == 0o444


def test_numbered_checkpoints_have_the_mode_of_their_file(program, tmp_path):
    path = tmp_path / "w.safetensors"
    path.touch(mode=0o600)
    program("--save", path, "--save-every", 1, "--keep", 2, "--epochs", 3, "--quiet")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w-2.safetensors", "w-3.safetensors", "w.safetensors"]
    assert {mode_of(p) for p in tmp_path.iterdir()} == {0o600}


def test_descriptors_are_written_through(program, mtc, tmp_path):
    """/dev/stdout of a shell's `>> file` goes on behind what is there."""
    (tmp_path / "m.mt").write_text(MODEL)
    with open(tmp_path / "all", "w") as out:
        out.write("before\n")
        out.flush()
        for stage in "ast", "graph":
            subprocess.run([MTC, tmp_path / "m.mt", f"--emit={stage}", "-o", "/dev/stdout"], stdout=out, check=True)
    dumps = [mtc(tmp_path / "m.mt", f"--emit={stage}").stdout for stage in ("ast", "graph")]
    assert (tmp_path / "all").read_text() == "before\n" + "".join(dumps)
    content = subprocess.run([program.path, "--quiet", "--save", "/dev/stdout"], capture_output=True, check=True).stdout
    assert content[8:9] == b"{"


def test_closed_descriptors_are_no_files(program, tmp_path):
    """Without stdout, the first file that is opened would get its number, and what is printed."""
    (tmp_path / "m.mt").write_text(MODEL)
    for closed in ">&-", "2>&-", "<&- >&- 2>&-":
        flags = "--log log --save w --epochs 20 --log-every 1"
        done = subprocess.run(["bash", "-c", f"{program.path} {flags} {closed}"], cwd=tmp_path, timeout=LIMIT)
        assert done.returncode == (0 if closed == "2>&-" else OUTPUT_FAILED)
        assert all(line.startswith("{") for line in (tmp_path / "log").read_text().splitlines())
        assert program("info", tmp_path / "w", check=False).returncode == 0
        subprocess.run(["bash", "-c", f"{MTC} --emit=graph m.mt -o dump {closed}"], cwd=tmp_path, timeout=LIMIT, check=True)
        assert (tmp_path / "dump").read_text() == run_compiler("--emit=graph", tmp_path / "m.mt").stdout


def test_program_is_no_pipe(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(MODEL)
    done = mtc(tmp_path / "m.mt", "--target", "cpu", "-o", "/dev/null")
    assert done.returncode == CANT_CREATE and "no regular file" in done.stderr


def test_program_keeps_link_and_mode(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(MODEL)
    (tmp_path / "link").symlink_to("program")
    for mode in None, 0o700:
        if mode:
            (tmp_path / "program").chmod(mode)
        done = mtc(tmp_path / "m.mt", "--target", "cpu", "-o", tmp_path / "link", "--keep", tmp_path / "k")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "link").is_symlink() and mode_of(tmp_path / "program") == (mode or 0o777 & ~umask())


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_python_writes_alike(tmp_path):
    from mtc.errors import FileError
    from mtc.outputs import LOG, write_text

    path = tmp_path / "log"
    path.touch()
    path.chmod(0o600)
    (tmp_path / "link").symlink_to("log")
    write_text(tmp_path / "link", '{"event"}', LOG)
    assert (tmp_path / "link").is_symlink() and mode_of(path) == 0o600 and path.read_text() == '{"event"}'
    path.chmod(0o400)
    with pytest.raises(FileError, match="read-only"):
        write_text(path, '{"event"}', LOG)
    write_text("/dev/null", "text", LOG)
    (tmp_path / "theirs").write_text("theirs")  # to which a link leads that somebody laid where we write
    (tmp_path / f"new.{os.getpid()}.tmp").symlink_to("theirs")
    write_text(tmp_path / "new", '{"event"}', LOG)
    assert (tmp_path / "theirs").read_text() == "theirs" and not (tmp_path / "new").is_symlink()
    assert not list(tmp_path.glob("*.tmp"))


# ---- reading ----


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def run_program(program, *args, cwd=None):
    return subprocess.run([program.path, *map(str, args)], capture_output=True, text=True, timeout=LIMIT, cwd=cwd)


def run_compiler(*args):
    return subprocess.run([MTC, *map(str, args)], capture_output=True, text=True, timeout=LIMIT)


@pytest.mark.parametrize("args", [["PIPE"], ["--format", "-i", "PIPE"], ["plot", "PIPE"]], ids=["model", "format", "plot"])
def test_compiler_does_not_wait_for_a_pipe(args, pipe):
    done = run_compiler(*[pipe if arg == "PIPE" else arg for arg in args])
    assert done.returncode in (NO_INPUT, BAD_DATA) and "it is a pipe (FIFO), not a file" in done.stderr


@pytest.mark.parametrize("args", [["eval", "--load", "PIPE"], ["predict", "--input", "PIPE"], ["--resume", "PIPE"], ["info", "PIPE"]],
                         ids=lambda args: args[0])
def test_program_does_not_wait_for_a_pipe(args, program, tmp_path):
    program("--save", tmp_path / "w.safetensors", "--quiet")
    for ending in ".safetensors", ".tsv", ".npy", ".npz":
        path = tmp_path / f"pipe{ending}"
        os.mkfifo(path)
        given = [path if arg == "PIPE" else arg for arg in args]
        if args[0] == "predict":
            given += ["--load", tmp_path / "w.safetensors"]
        done = run_program(program, *given)
        assert done.returncode == NO_INPUT and "it is a pipe (FIFO), not a file" in done.stderr, done.stderr


def test_pipe_among_images(compile_model, tmp_path):
    (tmp_path / "pictures" / "a").mkdir(parents=True)
    os.mkfifo(tmp_path / "pictures" / "a" / "1.png")
    done = run_program(compile_model(IMAGES), "--data", tmp_path, cwd=tmp_path)
    assert done.returncode and "1.png" in done.stderr and "it is a pipe (FIFO), not a file" in done.stderr


def test_leftover_that_is_a_pipe(program, tmp_path):
    """What killed programs left is removed; whatever else has such a name is neither waited for nor touched."""
    os.mkfifo(tmp_path / "w.1.tmp")
    assert run_program(program, "--save", "w", "--quiet", cwd=tmp_path).returncode == 0
    assert (tmp_path / "w.1.tmp").is_fifo()


def test_device_is_no_data(program, tmp_path):
    done = run_program(program, "eval", "--load", "/dev/zero")
    assert done.returncode == NO_INPUT and "it is a device, not a file" in done.stderr


def test_model_by_a_pipe_of_the_shell(tmp_path):
    (tmp_path / "m.mt").write_text(MODEL)
    done = subprocess.run(["bash", "-c", f"{MTC} --emit=ast <(cat m.mt)"], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and "sgd" in done.stdout, done.stderr


# ---- on the terminal ----

EVIL = "a\x1b]0;owned\x07\x9b31m\u202eb\r\n\x7f"
HARMLESS = r"a\x1b]0;owned\x07\u009b31m\u202eb\r\n\x7f"


def checkpoint(name, key="key", value="value", dtype="F32"):
    from json import dumps

    header = dumps({"__metadata__": {key: value}, name: {"dtype": dtype, "shape": [1], "data_offsets": [0, 4]}},
                   ensure_ascii=False).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


@pytest.mark.parametrize("command", [["info", "FILE"], ["eval", "--load", "FILE"], ["--init-from", "FILE", "--partial"]],
                         ids=lambda command: command[0])
def test_names_of_tensors_are_harmless(command, program, tmp_path):
    path = tmp_path / "evil.safetensors"
    path.write_bytes(checkpoint(EVIL, EVIL, EVIL))
    done = program(*[path if arg == "FILE" else arg for arg in command], check=False)
    shown = done.stdout + done.stderr
    assert not set(shown) & set("\x1b\x07\x9b\u202e\x7f\r")
    assert HARMLESS in shown or "--partial" in command or command[0] == "eval"


def test_info_shows_names_metadata_and_types(program, tmp_path):
    path = tmp_path / "evil.safetensors"
    path.write_bytes(checkpoint(EVIL, "evil" + EVIL, "value" + EVIL))
    shown = program("info", path).stdout
    assert "evil" + HARMLESS in shown and "value" + HARMLESS in shown
    assert sum(line.startswith("  " + HARMLESS) for line in shown.splitlines()) == 2  # in the list, and as no tensor of ours


def test_paths_and_lines_are_harmless(program, mtc, tmp_path):
    done = program("eval", "--load", tmp_path / "\x1b[31mred", check=False)
    assert "\x1b" not in done.stderr and r"\x1b[31mred" in done.stderr
    path = tmp_path / "\x1b[31mred.mt"
    path.write_text(MODEL.replace("linear(x, 1)", 'linear(x, "\x1b[31m")'))
    done = mtc(path)
    assert done.returncode == BAD_DATA and "\x1b" not in done.stderr and r"\x1b[31mred.mt" in done.stderr


def test_letters_of_any_script_stay(mtc, tmp_path):
    path = tmp_path / "größe-数-🙂.mt"
    path.write_text("data {")
    assert "größe-数-🙂.mt:1:7: error" in mtc(path).stderr


TABLE = MODEL.replace("table([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])", 'csv("t.csv")').replace(
    "  x : f32[2]", "  a : f32\n  b : f32").replace("linear(x, 1)", "linear(concat([reshape(a, [1]), reshape(b, [1])]), 1)")


def test_files_that_nobody_named_are_not_pipes(compile_model, monkeypatch, tmp_path):
    """A table's parsed copy goes elsewhere; weights that would go beside --save are refused; so is the picture without -o."""
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,2,3\n" * 8)
    kept, best = tmp_path / ".t.csv.mtc-cache", tmp_path / "w-best.safetensors"
    os.mkfifo(kept)
    monkeypatch.setenv("MTC_TABLE_KEPT_FROM", "0")
    program = compile_model(TABLE)
    assert run_program(program, "--data", tmp_path, "--log", "run.jsonl", "--quiet", cwd=tmp_path).returncode == 0 and kept.is_fifo()
    os.mkfifo(best)
    done = run_program(program, "--data", tmp_path, "--save", "w.safetensors", cwd=tmp_path)
    assert done.returncode == CANT_CREATE and "w-best.safetensors, where the best weights go, is no plain file" in done.stderr
    os.mkfifo(tmp_path / "curves.svg")
    done = subprocess.run([MTC, "plot", "run.jsonl"], capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == CANT_CREATE and "'curves.svg': it is no plain file; choose another name with -o" in done.stderr


def test_cells_reach_the_terminal_as_escapes(compile_model, tmp_path):
    """Of a row that is refused, of one that is left out, and of a line of names."""
    program = compile_model(TABLE)
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,3\n\x1b[31m,2,3\n" + "1,2,3\n" * 4)
    for flags in [], ["--bad-rows", "skip"]:
        said = run_program(program, "--data", tmp_path, "--quiet", *flags).stderr
        assert r"expected a number in column 'a', found '\x1b[31m'" in said and "\x1b" not in said
    (tmp_path / "t.csv").write_text("a\x1b[31m,b,y\n1,2,3\n")
    said = run_program(program, "--data", tmp_path, "--quiet").stderr
    assert r"the columns are 'a\x1b[31m', 'b', 'y'" in said and "\x1b" not in said


def test_data_beside_a_model_of_an_absolute_path(mtc, tmp_path):
    """They are found from wherever the program is started; a program of the same text in another folder has its own."""
    programs = []
    for rows in (3, 5):
        folder = tmp_path / f'of "{rows}"'
        folder.mkdir()
        (folder / "rows.csv").write_text("x,y\n" + "1,2\n" * rows)
        (folder / "place.mt").write_text(
            MODEL.replace("table([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])", 'csv("rows.csv")').replace("[2]", "[1]")
        )
        assert mtc(folder / "place.mt", "-o", folder / "m", "--target", "cpu", "--keep", tmp_path).returncode == 0
        programs.append((rows, folder))
    for rows, folder in programs:
        done = subprocess.run([folder / "m", "--dry-run"], cwd="/", capture_output=True, text=True)
        assert f"{rows} examples" in done.stdout, done.stdout + done.stderr
        done = subprocess.run([folder / "m", "--batch", "3"], cwd="/", capture_output=True, text=True)
        assert f"mtc '{folder}/place.mt' --target cpu --batch 3 -o '{folder}/m'" in done.stderr
    (folder / "rows.csv").unlink()
    done = subprocess.run([folder / "m"], cwd="/", capture_output=True, text=True)
    assert done.returncode == NO_INPUT and f"{folder}/rows.csv\n" in done.stderr
