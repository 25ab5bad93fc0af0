"""The command line of mtc: flags, what it refuses, the compilers that it calls, the cache."""

import os
import shutil
import subprocess

import pytest

from conftest import MTC, ROOT

MODEL = """param hidden = 16
param rate = 0.1
data {
  train = idx("images", "labels")
  test  = idx("images", "labels")
  image : u8[4, 4]
  label : class[3]
}
model {
  h = tanh(linear(flatten(image) / 255, hidden))
  logits = linear(h, 3)
}
train {
  loss      = cross_entropy(logits, label)
  optimizer = sgd(rate)
  batch     = 8
}
"""
USAGE, MODEL_FAULT, NO_INPUT, TOOL, CANT_CREATE = 64, 65, 66, 69, 73


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.mt"
    path.write_text(MODEL)
    return path


@pytest.fixture
def run(tmp_path, model):
    """run(*args, **environment): mtc on the model, in an empty folder with an empty cache."""

    def call(*args, **environment):
        settings = {**os.environ, "NO_COLOR": "1", "XDG_CACHE_HOME": str(tmp_path / "cache"), **environment}
        return subprocess.run([MTC, *map(str, args)], cwd=tmp_path, env=settings, capture_output=True, text=True)

    return call


def refused(done, code, message):
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stdout == ""


# ---- flags ----


@pytest.mark.parametrize(
    "args, message",
    [
        ([], "no model file"),
        (["--hlep"], "unknown option '--hlep'; did you mean '--help'?"),
        (["-x", "small.mt"], "unknown option '-x'"),
        (["--lr", "3", "small.mt"], "unknown option '--lr'; a param of the model is set with --set lr=3"),
        (["--emit=plann", "small.mt"], "not 'plann'; did you mean 'plan'?"),
        (["--target", "tpu", "small.mt"], "--target takes cuda|cpu, not 'tpu'"),
        (["--emit"], "--emit needs a value"),
        (["-o"], "--output needs a value: FILE"),
        (["--shared=yes", "small.mt"], "--shared takes no value"),
        (["--jobs", "many", "small.mt"], "--jobs takes a number from 1 to 1024, not 'many'"),
        (["--set", "hidden", "small.mt"], "--set takes NAME=VALUE, not 'hidden'"),
        (["--set", "hidden=1", "--set", "hidden=2", "small.mt"], "--set hidden is given twice"),
        (["small.mt", "other.mt"], "two model files"),
        (["--real", "f64", "small.mt"], "--real f64 is of the cpu target"),
        (["--real", "f64", "--target", "cuda", "small.mt"], "--real f64 is of the cpu target"),
        (["--recompute", "--no-recompute", "small.mt"], "choose one of --recompute and --no-recompute"),
        (["--schedule", "graph", "--target", "cpu", "small.mt"], "--schedule is of the cuda target"),
        (["--arch", "sm_90", "--target", "cpu", "small.mt"], "--arch names GPUs"),
        (["--emit=cu", "--target", "cpu", "small.mt"], "--emit=cu is of --target cuda"),
        (["--emit=c", "--target", "cuda", "small.mt"], "--emit=c of --target cpu"),
        (["--emit=ast", "--summary", "small.mt"], "choose one of"),
        (["--summary", "small.mt", "-o", "program"], "--summary prints, and makes no program"),
        (["--in-place", "small.mt"], "--in-place goes with --format"),
        (["--check", "small.mt"], "--check goes with --format"),
        (["--format", "-i", "--check", "small.mt"], "choose one of --in-place and --check"),
    ],
)
def test_wrong_command_line(run, args, message):
    refused(run(*args), USAGE, message)


def test_missing_model(run):
    refused(run("no.mt"), NO_INPUT, "cannot read 'no.mt': No such file or directory")


def test_unknown_param(run):
    refused(run("--set", "hiden=8", "--emit=graph", "small.mt"), MODEL_FAULT, "hidden")


def test_help_and_list_name_every_option(run):
    options = [line.split("\t") for line in run("--list-options").stdout.splitlines()]
    text = run("--help").stdout
    assert len(options) > 15 and all(len(option) == 5 and option[0] in text for option in options)
    assert max(map(len, text.splitlines())) <= 100


def test_version(run):
    assert run("--version").stdout.startswith("mtc ")


def test_two_dashes_end_the_options(run):
    refused(run("--emit=ast", "--", "--help"), NO_INPUT, "cannot read '--help'")


def test_set_changes_a_shape(run):
    assert "f32[24, 16] h.weight" in run("--set", "hidden=24", "--emit=graph", "small.mt").stdout


def test_dump_to_file(run, tmp_path):
    assert run("--emit=plan", "-o", "plan.txt", "small.mt").returncode == 0
    assert (tmp_path / "plan.txt").read_text() == run("--emit=plan", "small.mt").stdout


def test_summary(run):
    text = run("--summary", "small.mt").stdout
    assert "hidden = 16, fixed when compiling" in text
    assert "rate = 0.1, a flag of the program (--rate)" in text
    assert str(16 * 16 + 16 + 16 * 3 + 3) in text


@pytest.mark.parametrize("stage", ["ast", "graph", "grad", "simple", "fused", "schedule", "plan", "plan.svg", "cu", "c"])
def test_dumps_are_deterministic(run, stage):
    first, second = run(f"--emit={stage}", "small.mt"), run(f"--emit={stage}", "small.mt")
    assert first.returncode == 0 and first.stdout and first.stdout == second.stdout


# ---- formatting ----


def test_format_in_place(run, model):
    model.write_text(MODEL.replace("hidden = 16", "hidden=16"))
    assert run("--format", "--check", "small.mt").returncode == 1
    assert run("--format", "-i", "small.mt").returncode == 0
    assert run("--format", "--check", "small.mt").returncode == 0
    assert "hidden = 16" in model.read_text()


# ---- programs ----


def test_program_and_its_source(run, tmp_path):
    done = run("--target", "cpu", "small.mt", "-o", "prog")
    assert done.returncode == 0 and done.stderr == ""
    assert os.access(tmp_path / "prog", os.X_OK)
    assert (tmp_path / "build/small.c").read_text() == run("--emit=c", "small.mt").stdout
    assert sorted(p.name for p in (tmp_path / "build").iterdir()) == ["small.c"]


def test_default_output_and_keep(run, tmp_path):
    assert run("--target", "cpu", "--keep", "a/b", "small.mt").returncode == 0
    assert (tmp_path / "small").exists() and (tmp_path / "a/b/small.c").exists()


def test_shared_library_has_the_c_interface(run, tmp_path):
    assert run("--target", "cpu", "--shared", "small.mt").returncode == 0
    names = subprocess.run(["nm", "-D", "--defined-only", tmp_path / "small.so"], capture_output=True, text=True).stdout
    assert all(f" {name}\n" in names for name in ("mtc_model", "mtc_create", "mtc_train", "mtc_predict"))


def test_standalone_needs_nothing_of_ours(run, tmp_path):
    (tmp_path / "alone.c").write_text(run("--emit=c", "--standalone", "small.mt").stdout)
    assert '#include "' not in (tmp_path / "alone.c").read_text()
    subprocess.run(["cc", "-O1", "-fopenmp", "alone.c", "-lm", "-o", "alone"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "alone", "info"], capture_output=True).returncode == 0


@pytest.mark.nvcc
def test_standalone_cuda(run, tmp_path):
    (tmp_path / "alone.cu").write_text(run("--emit=cu", "--standalone", "small.mt").stdout)
    assert '#include "' not in (tmp_path / "alone.cu").read_text()
    subprocess.run(["nvcc", "-arch=sm_90", "alone.cu", "-o", "alone"], cwd=tmp_path, check=True)


@pytest.mark.nvcc
def test_program_for_cuda(run, tmp_path):
    done = run("--target", "cuda", "--arch", "sm_90", "small.mt", "-o", "prog")
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "prog").stat().st_size < 3_000_000


@pytest.mark.nvcc
def test_shared_library_for_cuda(run, tmp_path):
    assert run("--target", "cuda", "--arch", "sm_90", "--shared", "small.mt").returncode == 0
    names = subprocess.run(["nm", "-D", "--defined-only", tmp_path / "small.so"], capture_output=True, text=True).stdout
    assert all(f" {name}\n" in names for name in ("mtc_model", "mtc_create", "mtc_train", "mtc_predict"))


@pytest.mark.nvcc
@pytest.mark.parametrize("arch, message", [("sm_12", "cannot compile for sm_12"), ("ampere", "not 'ampere'")])
def test_wrong_architecture(run, arch, message):
    refused(run("--arch", arch, "small.mt"), TOOL, message)


# ---- what is missing or cannot be written ----


def without_nvcc(tmp_path):
    """A PATH on which there is a C compiler, but no nvcc."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cc", "as", "ld"):
        (tools / name).symlink_to(shutil.which(name))
    return {"PATH": str(tools), "CUDA_HOME": str(tools)}


def test_no_nvcc_means_cpu(run, tmp_path):
    environment = without_nvcc(tmp_path)
    done = run("small.mt", "-o", "prog", **environment)
    assert done.returncode == 0 and "the program is for the CPU" in done.stderr
    assert (tmp_path / "prog").exists()
    refused(run("small.mt", "--target", "cuda", **environment), TOOL, "no nvcc")


def test_no_c_compiler(run):
    refused(run("--target", "cpu", "small.mt", CC="no-such-cc"), TOOL, "no C compiler: 'no-such-cc'")


@pytest.mark.parametrize("output, why", [("missing/prog", "No such file"), (".", "it is a folder"),
                                         ("small.mt", "it is the input"), ("/dev/null", "no regular file")])
def test_unwritable_output(run, model, output, why):
    refused(run("--target", "cpu", "small.mt", "-o", output), CANT_CREATE, why)
    refused(run("--emit=plan", "small.mt", "-o", output), CANT_CREATE, why)
    assert model.read_text() == MODEL


DUMPS = ["--emit=ast", "--emit=plan", "--emit=c"]
BUILDS = [["--target=cpu"], ["--target=cpu", "--shared"]]


def test_a_program_replaces_programs_only(run, tmp_path):
    (tmp_path / "notes.txt").write_text("thesis")
    for flags in BUILDS:
        done = run(*flags, "small.mt", "-o", "notes.txt")
        refused(done, CANT_CREATE, "cannot write 'notes.txt': it would replace a file that is no program")
        assert done.stderr.endswith("; choose another name with -o\n")
    assert (tmp_path / "notes.txt").read_text() == "thesis" and not (tmp_path / "build").exists()
    (tmp_path / "prog").write_text("")
    for _ in "empty", "a program":
        assert run("--target=cpu", "small.mt", "-o", "prog").returncode == 0
        assert (tmp_path / "prog").read_bytes().startswith(b"\x7fELF")


@pytest.mark.parametrize("flags, name", [(BUILDS[0], "small"), (BUILDS[1], "small.so")])
def test_the_name_that_a_program_has_of_itself(flags, name, run, tmp_path):
    (tmp_path / name).write_text("thesis")
    refused(run(*flags, "small.mt"), CANT_CREATE, f"'{name}': it would replace a file that is no program")
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    refused(run(*flags, "small.mt"), CANT_CREATE, f"'{name}': it is a folder; choose another name with -o")


@pytest.mark.parametrize("flag", [*DUMPS, "--help"])
@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"\x7fELF", b"x" * 5000 + b"\0"])
def test_a_dump_replaces_text_only(content, flag, run, tmp_path):
    (tmp_path / "other").write_bytes(content)
    refused(run(flag, "small.mt", "-o", "other"), CANT_CREATE, "'other': it would replace a file that is no text; choose")
    assert (tmp_path / "other").read_bytes() == content
    (tmp_path / "other").write_text("an older dump")
    assert run(flag, "small.mt", "-o", "other").returncode == 0
    assert (tmp_path / "other").read_text() == run(flag, "small.mt").stdout


READS = """include "layers.mt"
data {
  train = csv("rows.csv")
  test  = csv(path = "test.csv")
  x     : f32[2] = columns("a", "b")
  label : class[3]
}
model { logits = layer(x) }
train {
  loss      = cross_entropy(logits, label)
  optimizer = sgd(0.1)
  batch     = 8
}
"""


@pytest.mark.parametrize("flags", [*([dump] for dump in DUMPS), *BUILDS])
def test_what_is_read_is_not_overwritten(flags, run, tmp_path):
    """Files that the model includes, and its data, beside it and in the working folder, by whatever path or link."""
    data = "it is data of the model"
    files = {"net/model.mt": (READS, "it is the input"),
             "net/layers.mt": ("fn layer(x) { return linear(x, 3) }\n", "the model includes it"),
             "net/rows.csv": ("a,b,label\n", data), "rows.csv": ("a,b,label\n", data), "net/test.csv": ("a,b,label\n", data)}
    (tmp_path / "net").mkdir()
    for name, (text, _) in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to("net/rows.csv")
    for name, (text, why) in {**files, "link": files["rows.csv"], "net/../net/test.csv": files["net/test.csv"]}.items():
        refused(run(*flags, "net/model.mt", "-o", name), CANT_CREATE, f"'{name}': {why}; choose another name with -o")
        assert (tmp_path / name).read_text() == text
    (tmp_path / "other.csv").write_text("")
    assert run(*flags, "net/model.mt", "-o", "other.csv").returncode == 0


def test_unwritable_keep(run):
    refused(run("--target", "cpu", "--keep", "/proc/none", "small.mt"), CANT_CREATE, "cannot write '/proc/none/small.c'")


def test_failed_compilation_keeps_the_program(run, tmp_path):
    """A C compiler that refuses: its words are kept beside the source, what was there stays."""
    broken = tmp_path / "broken-cc"
    broken.write_text("#!/bin/sh\necho \"$0: out of luck\"\nexit 3\n")
    broken.chmod(0o755)
    (tmp_path / "prog").write_bytes(b"\x7fELF, the old one")
    done = run("--target", "cpu", "small.mt", "-o", "prog", CC=str(broken))
    refused(done, TOOL, "broken-cc: out of luck")
    assert (tmp_path / "prog").read_bytes() == b"\x7fELF, the old one"
    assert "out of luck" in (tmp_path / "build/small.c.log").read_text()
    assert sorted(p.name for p in (tmp_path / "build").iterdir()) == ["small.c", "small.c.log"]


def test_compiler_error_names_the_statement(run, tmp_path):
    """The complaint about a line of the generated code is shown with the statement that it comes from."""
    source = run("--emit=c", "small.mt").stdout.splitlines()
    line = 1 + next(i for i, text in enumerate(source) if "tanh" in text and not text.lstrip().startswith("//"))
    broken = tmp_path / "broken-cc"
    broken.write_text(f"#!/bin/sh\necho build/small.c:{line}:9: error: no such thing\nexit 1\n")
    broken.chmod(0o755)
    done = run("--target", "cpu", "small.mt", CC=str(broken))
    refused(done, TOOL, "small.mt:10:")
    assert "no such thing" in done.stderr and f"build/small.c:{line}" in done.stderr


# ---- the cache ----


def test_cache(run, tmp_path):
    log = tmp_path / "calls"
    counting = tmp_path / "counting-cc"
    counting.write_text(f'#!/bin/sh\necho x >> {log}\nexec cc "$@"\n')
    counting.chmod(0o755)

    def compiled(*flags):
        before = log.read_text().count("x") if log.exists() else 0
        assert run("--target", "cpu", "small.mt", "-o", "prog", *flags, CC=str(counting)).returncode == 0
        return log.read_text().count("x") - before

    assert compiled() == 1
    program = (tmp_path / "prog").read_bytes()
    (tmp_path / "prog").unlink()
    assert compiled() == 0
    assert (tmp_path / "prog").read_bytes() == program and os.access(tmp_path / "prog", os.X_OK)
    assert compiled("--no-cache") == 1
    assert compiled("--set", "hidden=8") == 1
    assert compiled("--shared") == 1


def test_cache_is_bounded(run, tmp_path):
    cache = tmp_path / "cache/mtc"
    cache.mkdir(parents=True)
    for i in range(80):
        entry = cache / f"{i:064x}"
        entry.write_text("old")
        os.utime(entry, (i, i))
    assert run("--target", "cpu", "small.mt").returncode == 0
    entries = {p.name for p in cache.iterdir()}
    assert len(entries) == 64 and f"{79:064x}" in entries and f"{0:064x}" not in entries


def test_cache_that_cannot_be_written_is_none(run):
    assert run("--target", "cpu", "small.mt", XDG_CACHE_HOME="/proc/none").returncode == 0


def test_runtime_is_found_or_asked_for(run, tmp_path):
    shutil.copy(MTC, tmp_path / "lonely")
    done = subprocess.run([tmp_path / "lonely", "--target", "cpu", "small.mt"], cwd=tmp_path, capture_output=True, text=True)
    refused(done, TOOL, "set MTC_HOME")
    refused(run("--target", "cpu", "small.mt", MTC_HOME="/proc"), TOOL, "MTC_HOME is '/proc'")
    assert run("--target", "cpu", "small.mt", MTC_HOME=str(ROOT)).returncode == 0


def test_install_and_uninstall(run, tmp_path):
    where = [f"DESTDIR={tmp_path}/root", "PREFIX=/usr"]
    subprocess.run(["make", "-C", ROOT, "install", *where], check=True, capture_output=True)
    installed = tmp_path / "root/usr/bin/mtc"
    command = [installed, "--target", "cpu", "small.mt", "-o", "prog"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    subprocess.run(["make", "-C", ROOT, "uninstall", *where], check=True, capture_output=True)
    assert not [path for path in (tmp_path / "root").rglob("*") if path.is_file()]
