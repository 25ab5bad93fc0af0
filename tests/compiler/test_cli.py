"""The command line of mtc: flags, what it refuses, the compilers that it calls, the cache."""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import MTC, ROOT, run_mtc

pytestmark = pytest.mark.quick

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
        (["small.mt", "program"], "the program's name comes after -o: -o program"),
        (["small.mt", "hidden=3"], "'hidden=3' is no file; a param gets another value by --set hidden=3"),
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
        (["--arch", "sm_90", "--emit=simple", "small.mt"], "this stage comes before they matter"),
        (["--arch", "sm_90", "--format", "small.mt"], "this stage comes before they matter"),
        (["--format", "-i", "--check", "small.mt"], "choose one of --in-place and --check"),
        (["--target", "gpu", "small.mt"], "--target takes cuda|cpu, not 'gpu'; did you mean 'cuda'?"),
        (["--target", "host", "small.mt"], "not 'host'; did you mean 'cpu'?"),
        (["--precision", "FP16", "small.mt"], "not 'FP16'; did you mean 'fp16'?"),
        (["--target", "CPU", "small.mt"], "not 'CPU'; did you mean 'cpu'?"),
        (["--precision", "half", "small.mt"], "not 'half'; did you mean 'fp16'?"),
        (["--batch", "0", "small.mt"], "--batch takes a number from 1 to 16777216, not '0'"),
        (["--shards", "1", "--target", "cpu", "small.mt"], "--shards 1 is a batch that is computed whole: leave it out"),
        (["--shard-optimizer", "--target", "cpu", "small.mt"], "--shard-optimizer is of processes that share a batch"),
        (["--shards", "4", "--schedule", "persistent", "small.mt"], "--schedule persistent keeps all steps in one launch"),
        (["--batch-size", "8", "small.mt"], "unknown option '--batch-size'; did you mean '--batch'?"),
        (["--epochs", "3", "small.mt"], "--epochs is a flag of the program that mtc makes: ./PROGRAM --epochs 3"),
        (["--save", "file", "small.mt"], "--save is a flag of the program that mtc makes: ./PROGRAM --save file"),
        (["--quiet", "small.mt"], "--quiet is a flag of the program that mtc makes: ./PROGRAM --quiet"),
    ],
)
def test_wrong_command_line(run, args, message):
    refused(run(*args), USAGE, message)


def test_more_shards_than_a_batch_fills(run):
    done = run("--shards", 7, "--emit=c", "small.mt")
    refused(done, MODEL_FAULT, "--shards 7: a batch of 8 examples is 4 shards of 2 and nothing is left for more")


@pytest.mark.parametrize("args", [["--taget", "cpu", "small.mt"], ["--epochs", "3", "small.mt"], ["-x", "3", "small.mt"],
                                  ["gradcheck", "--target", "cpu", "small.mt"]], ids=" ".join)
def test_one_mistake_is_one_message(args, run):
    assert run(*args).stderr.count("error:") == 1


def test_batch(run, tmp_path):
    """As if the text said so; what a training can be resumed with, likewise."""
    hashes = {}
    for batch in 4, 8:
        text = run("--emit=c", "--batch", batch, "small.mt").stdout
        assert f"BATCH = {batch}" in text and f'"batch = {batch}"' in text
        hashes[batch] = re.search(r"model_hash = (.*)", text)[1]
    assert hashes[4] != hashes[8]
    assert hashes[8] == re.search(r"model_hash = (.*)", run("--emit=c", "small.mt").stdout)[1]


def test_the_program_knows_how_it_was_made(run, tmp_path):
    """A flag of mtc is answered by the command that makes such a program, all else as it was; it makes it."""
    run("--target", "cpu", "--set", "hidden=4", "--precision", "bf16", "small.mt", "-o", "a b")

    def told(*args):
        done = subprocess.run([tmp_path / "a b", *args], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == USAGE
        return done.stderr.splitlines()[0].split(": error: ")[1]

    made = f"mtc small.mt --target cpu --precision bf16 --set hidden=4 {{}} -o '{tmp_path}/a b'"
    for name in "--batch", "--batch-size", "--batch_size":
        assert told(name, "32") == "the batch was fixed at 8 when this program was compiled: " + made.format("--batch 32")
    assert told("--recompute").endswith(made.format("--recompute"))
    assert told("--hidden", "5").endswith(made.replace(" --set hidden=4", "").format("--set hidden=5"))
    assert told("--precision=fp32").endswith(made.replace(" --precision bf16", "").format("--precision fp32"))
    run(*shlex.split(told("--batch", "32").split(": ")[1])[1:])
    assert "was fixed at 32" in told("--batch", "1")


def test_output_in_no_folder(run):
    for flags in ["--emit=c"], ["--target", "cpu"]:
        refused(run("small.mt", *flags, "-o", "none/file"), CANT_CREATE, "cannot write 'none/file': there is no folder 'none'")
    done = run("small.mt", "--target", "cpu", "--keep", "small.mt")
    refused(done, CANT_CREATE, "cannot write the generated source 'small.mt/small.c': Not a directory; --keep FOLDER says where it goes")


def test_decimal_comma(run):
    refused(run("--set", "rate=0,5", "--emit=graph", "small.mt"), MODEL_FAULT, "'0,5' is not a number; decimals come after a point")


def test_missing_model(run):
    refused(run("no.mt"), NO_INPUT, "cannot read 'no.mt': No such file or directory")


@pytest.mark.parametrize("name, content, why", [
    ("prog", b"\x7fELF\2\1\1", "cannot read 'prog': it is a program or a library, no model text: ./PROGRAM runs it"),
    ("w", b"\x10\1\0\0\0\0\0\0{}", "cannot read 'w': it is a checkpoint, no model text: ./PROGRAM info FILE shows what it holds"),
    ("w.safetensors", b"", "'w.safetensors' is no model: the name promises safetensors, and a model is a text, NAME.mt"),
    ("train.py", b"import mtc\n", "'train.py' is no model: the name promises a program of Python, and a model is a text, NAME.mt"),
])
@pytest.mark.parametrize("flags", [[], ["--format"]])
def test_what_is_no_model(flags, name, content, why, mtc, tmp_path):
    (tmp_path / name).write_bytes(content)
    done = mtc(*flags, name, cwd=tmp_path)
    assert done.returncode == 65 and done.stderr == f"mtc: error: {why}\n"


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


@pytest.fixture(scope="module")
def alone(mtc, tmp_path_factory):
    """A program of one file: the runtime is compiled with it."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "small.mt").write_text(MODEL)
    assert mtc("--emit=c", "--standalone", "small.mt", "-o", "alone.c", cwd=folder).returncode == 0
    subprocess.run(["cc", "-fopenmp", "alone.c", "-lm", "-o", "alone"], cwd=folder, check=True)
    return folder / "alone"


def test_standalone_needs_nothing_of_ours(alone):
    assert '#include "' not in alone.with_suffix(".c").read_text()
    assert subprocess.run([alone, "info"], capture_output=True).returncode == 0


def test_standalone_trains_as_the_program_does(run, alone, tmp_path):
    """Whatever the runtime keeps in lists that are included for what their macros mean there is in it: sources of data, flags."""
    (tmp_path / "images").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 16, 0, 0, 0, 4, 0, 0, 0, 4]) + bytes(range(256)))
    (tmp_path / "labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 16]) + bytes(i % 3 for i in range(16)))
    assert run("--target", "cpu", "small.mt", "-o", "small").returncode == 0
    losses = []
    for program in (alone, tmp_path / "small"):
        log = tmp_path / f"{program.name}.jsonl"
        done = subprocess.run([program, "--data", ".", "--epochs", "3", "--log", log], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        losses.append([float(re.search('"loss":([^,]*)', line)[1]) for line in log.read_text().splitlines() if '"epoch"' in line])
    assert len(losses[0]) >= 3
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def check_names_of_one_file(run, folder, model):
    run("--emit=c", "--standalone", model, "-o", "alone.c")
    subprocess.run(["cc", "-std=gnu11", "-fopenmp", "-fsyntax-only", "alone.c"], cwd=folder, check=True)


@pytest.mark.parametrize("model", ["char_gpt", "vit_tiny", "resnet18_cifar", "sales"])
def test_names_of_kernels_and_runtime_are_apart(model, run, tmp_path):
    """And those of the params of models: all are of one file."""
    check_names_of_one_file(run, tmp_path, ROOT / "models" / f"{model}.mt")


def test_names_of_what_a_model_prints_and_the_runtime_are_apart(run, tmp_path):
    (tmp_path / "printing.mt").write_text(MODEL.replace("tanh(", "print(", 1))
    check_names_of_one_file(run, tmp_path, "printing.mt")


@pytest.mark.parametrize("model, flags", [("char_gpt", ["--decode-batch", "4"]), ("mnist", ["--shards", "2", "--shard-optimizer"])],
                         ids=["generates", "shards"])
def test_standalone_has_each_name_once(run, tmp_path, model, flags):
    """Files of the runtime, whose functions are their own, are one file then; which of them a program has depends on the model."""
    (tmp_path / "alone.c").write_text(run("--emit=c", "--target", "cpu", "--standalone", *flags, ROOT / f"models/{model}.mt").stdout)
    subprocess.run(["cc", "-fsyntax-only", "-fopenmp", "-Werror", "-D_GNU_SOURCE", "alone.c"], cwd=tmp_path, check=True)


def types_of(folders, pattern):
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h", ".cuh")]
    return {name for path in files for name in re.findall(pattern, path.read_text(), re.M)}


def test_types_of_cuda_and_runtime_are_apart():
    """--standalone puts both into one file; which of them a program has depends on the model."""
    runtime = types_of(["runtime"], r"^(?:typedef |static )?(?:struct|enum) (\w+) \{")
    kernels = types_of(["kernels_lib"], r"^(?:template <.*> ?)?(?:typedef )?(?:struct|class|enum|enum class) (\w+)\b")
    assert len(runtime) > 100 and len(kernels) > 100
    assert runtime & kernels == set()


@pytest.mark.nvcc
def test_standalone_cuda(run, tmp_path):
    (tmp_path / "alone.cu").write_text(run("--emit=cu", "--standalone", "small.mt").stdout)
    assert '#include "' not in (tmp_path / "alone.cu").read_text()
    done = subprocess.run(["nvcc", "-arch=sm_90", "alone.cu", "-o", "alone"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


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


NVML = """
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = GPUS; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(long)index; return 0; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) { *major = 8, *minor = 6; return 0; }
"""
NVCC = """#!/bin/sh
case $1 in --list-gpu-arch) echo compute_86; exit ;; esac
echo "$@" > nvcc-called
for last; do :; done
cp /bin/true "$last"
"""


@pytest.fixture
def machine(tmp_path):
    """machine(gpus, nvcc): the environment of one with so many GPUs, a C compiler, and nvcc or not, whatever this one has."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cc", "as", "ld"):
        (tools / name).symlink_to(shutil.which(name))

    def make(gpus, nvcc):
        (tmp_path / "nvml.c").write_text(NVML)
        subprocess.run(["cc", f"-DGPUS={gpus}", "-shared", "-fPIC", "nvml.c", "-o", tools / "libnvidia-ml.so.1"], cwd=tmp_path, check=True)
        if nvcc:
            (tools / "nvcc").write_text(NVCC)
            (tools / "nvcc").chmod(0o755)
        return {"PATH": f"{tools}:/bin:/usr/bin" if nvcc else str(tools), "CUDA_HOME": str(tools), "LD_LIBRARY_PATH": str(tools),
                "CUDA_VISIBLE_DEVICES": "0"}

    return make


def made_for(tmp_path):
    sources = [path.suffix for path in (tmp_path / "build").iterdir()]
    shutil.rmtree(tmp_path / "build")
    return {".c": "cpu", ".cu": "cuda"}[sources[0]]


def test_no_nvcc_means_cpu(run, machine, tmp_path):
    environment = machine(gpus=1, nvcc=False)
    done = run("small.mt", "-o", "prog", **environment)
    assert done.returncode == 0 and "no nvcc in PATH" in done.stderr and "the program is for the CPU" in done.stderr
    assert made_for(tmp_path) == "cpu" and (tmp_path / "prog").exists()
    for flags in ["--target=cuda"], ["--arch=sm_86"], ["--schedule=graph"]:
        refused(run("small.mt", *flags, **environment), TOOL, "no nvcc")


def test_no_gpu_means_cpu(run, machine, tmp_path):
    """A program is made to be run here, unless something asks for CUDA. Dumps are the same everywhere."""
    environment = machine(gpus=0, nvcc=True)
    note = "mtc: note: no GPU here: the program is for the CPU; --target cuda makes one for GPUs elsewhere\n"
    done = run("small.mt", **environment)
    assert (done.returncode, done.stderr, made_for(tmp_path)) == (0, note, "cpu")
    for flags in ["--target=cuda"], ["--arch=sm_86"], ["--schedule=graph"]:
        done = run("small.mt", *flags, **environment)
        assert (done.returncode, made_for(tmp_path)) == (0, "cuda"), done.stderr
    refused(run("small.mt", "--arch=native", **environment), TOOL, "--arch native: this machine has no GPU")
    assert run("small.mt", "--summary", **environment).stdout == run("small.mt", "--summary", "--target=cuda").stdout


def test_a_gpu_of_sm_90_has_all_its_instructions(run, machine, tmp_path):
    """Whoever names it has H100 or H200: code without their own instructions is half as fast, and runs nowhere else."""
    environment = machine(gpus=0, nvcc=True)
    (tmp_path / "tools" / "nvcc").write_text(NVCC.replace("echo compute_86", "echo compute_86; echo compute_90"))
    assert run("small.mt", "--arch=sm_86,sm_90", **environment).returncode == 0
    called = (tmp_path / "nvcc-called").read_text()
    assert "code=sm_86" in called and "arch=compute_90a,code=sm_90a" in called and "code=sm_90 " not in called


@pytest.mark.parametrize("visible, target", [("0", "cuda"), ("", "cpu"), ("-1", "cpu"), ("NoDevFiles", "cpu")])
def test_a_gpu_that_may_be_seen(visible, target, run, machine, tmp_path):
    done = run("small.mt", **{**machine(gpus=1, nvcc=True), "CUDA_VISIBLE_DEVICES": visible})
    assert (done.returncode, made_for(tmp_path)) == (0, target)
    assert ("no GPU here" in done.stderr) == (target == "cpu")
    assert target == "cpu" or "arch=compute_86,code=sm_86" in (tmp_path / "nvcc-called").read_text()


def test_no_c_compiler(run):
    refused(run("--target", "cpu", "small.mt", CC="no-such-cc"), TOOL, "no C compiler: 'no-such-cc'")


@pytest.mark.parametrize("output, why", [("missing/prog", "there is no folder 'missing'"), (".", "it is a folder"),
                                         ("small", "it is the input")])
def test_unwritable_output(run, model, output, why):
    model.rename(model.with_suffix(""))
    refused(run("--target", "cpu", "small", "-o", output), CANT_CREATE, why)
    refused(run("--emit=plan", "small", "-o", output), CANT_CREATE, why)
    assert model.with_suffix("").read_text() == MODEL


PROGRAM, SOURCES = "a program, whose name needs no ending; ", "--emit prints sources"


@pytest.mark.parametrize("flags, name, format, written", [
    ([], "x.py", "a program of Python", PROGRAM + SOURCES), ([], "x.mt", "a model of mtc", PROGRAM + SOURCES),
    ([], "x.TXT", "text", PROGRAM + SOURCES), ([], "x.safetensors", "safetensors", PROGRAM + SOURCES),
    ([], "x.c", "C", PROGRAM + "--emit=c writes that"), ([], "x.so", "a shared library", PROGRAM + "--shared makes that"),
    ([], "x.svg", "SVG", PROGRAM + "--emit=plan.svg draws the plan of memory"), ([], "x.jsonl", "JSON lines", PROGRAM + SOURCES),
    (["--shared"], "x.npy", "an array of NumPy", "a shared library (.so); " + SOURCES),
    (["--shared"], "x.exe", "a program of Windows", "a shared library (.so); " + SOURCES),
    (["--emit=c"], "x.cu", "CUDA C++", ".c and .txt; --emit=cu writes that"), (["--emit=cu"], "x.c", "C", ".cu and .txt; --emit=c writes that"),
    (["--emit=c"], "x.py", "a program of Python", ".c and .txt"), (["--emit=plan"], "x.json", "one value of JSON", ".txt"),
    (["--emit=c"], "x.cc", "C++", ".c and .txt"), (["--emit=plan.svg"], "x.png", "PNG", ".svg")])
def test_a_name_that_promises_another_format(flags, name, format, written, run, model, tmp_path):
    refused(run(*flags, "small.mt", "-o", name), USAGE, f"'{name}': the name promises {format}; what can be written is {written}\n")
    assert model.read_text() == MODEL and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("flags, name", [(["--emit=plan.svg"], "x.svg"), (["--emit=plan"], "x.txt"), (["--emit=c"], "x.c"), (["--emit=c"], "x.txt"),
                                         (["--emit=graph"], "x.graph"), (["--shared", "--target=cpu"], "x.so")])
def test_a_name_that_promises_what_is_written(flags, name, run, tmp_path):
    assert run(*flags, "small.mt", "-o", name).returncode == 0 and (tmp_path / name).stat().st_size


@pytest.mark.parametrize("stage", ["plan", "c", "plan.svg"])
def test_a_dash_is_standard_output(stage, run, tmp_path):
    assert run(f"--emit={stage}", "small.mt", "-o", "-").stdout == run(f"--emit={stage}", "small.mt").stdout != ""
    refused(run("small.mt", "-o", "-"), USAGE, "-o - is standard output, where no program goes: -o NAME; --emit=cu and --emit=c print its source")
    assert not (tmp_path / "-").exists()


DUMPS = ["--emit=ast", "--emit=plan", "--emit=c"]
BUILDS = [["--target=cpu"], ["--target=cpu", "--shared"]]


def test_a_program_replaces_programs_only(run, tmp_path):
    (tmp_path / "notes").write_text("thesis")
    for flags in BUILDS:
        done = run(*flags, "small.mt", "-o", "notes")
        refused(done, CANT_CREATE, "cannot write 'notes': it would replace a file that is no program")
        assert done.stderr.endswith("; choose another name with -o\n")
    assert (tmp_path / "notes").read_text() == "thesis" and not (tmp_path / "build").exists()
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
    (tmp_path / "other").write_text("")
    assert run(*flags, "net/model.mt", "-o", "other").returncode == 0


@pytest.mark.parametrize("variable, folder", [("MTC_DATA_DIR", "data"), ("XDG_CACHE_HOME", "data/mtc")])
def test_data_found_elsewhere_are_not_overwritten(variable, folder, run, tmp_path):
    place = {variable: str(tmp_path / "data")}
    (tmp_path / "net.mt").write_text(READS.replace('include "layers.mt"\n', "").replace("layer(x)", "linear(x, 3)"))
    (tmp_path / folder).mkdir(parents=True)
    for name in "rows.csv", "test.csv":
        (tmp_path / folder / name).write_text("a,b,label\n")
        refused(run("--emit=c", "net.mt", "-o", f"{folder}/{name}", **place), CANT_CREATE, f"'{folder}/{name}': it is data of the model")
        assert (tmp_path / folder / name).read_text() == "a,b,label\n"


def test_unwritable_keep(run):
    refused(run("--target", "cpu", "--keep", "/proc/none", "small.mt"), CANT_CREATE, "cannot write the generated source '/proc/none/small.c'")


def test_pipe_in_place_of_the_generated_source(run, tmp_path):
    """Nobody reads it: it is not written to, and nothing is compiled."""
    (tmp_path / "kept").mkdir()
    os.mkfifo(tmp_path / "kept" / "small.c")
    refused(run("--target", "cpu", "--keep", "kept", "small.mt"), CANT_CREATE,
            "cannot write the generated source 'kept/small.c': it is no regular file; --keep FOLDER says where it goes")
    assert os.listdir(tmp_path / "kept") == ["small.c"]


def test_failed_compilation_keeps_the_program(run, tmp_path):
    """A C compiler that refuses: its words are kept beside the source, what was there stays; a pipe there is not waited for."""
    (tmp_path / "build").mkdir()
    os.mkfifo(tmp_path / "build" / "small.c.log")
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


@pytest.mark.parametrize("name, content, goes", [("small.c.Xa81Jb", "small.c", True), ("small.c.Xa81Jb", "program", True),
                                                 ("small.c.backup", "notes", False), ("small.c.Xa81Jbc", "small.c", False)])
def test_what_a_killed_compilation_left(name, content, goes, run, tmp_path):
    """Its folder goes with the next one; whatever else is called so stays, and so does one whose process lives."""
    left = tmp_path / "build" / name
    left.mkdir(parents=True)
    (left / content).write_text("")
    folder = os.open(left, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    assert run("--target", "cpu", "small.mt", "--no-cache").returncode == 0 and left.exists()
    os.close(folder)
    assert run("--target", "cpu", "small.mt", "--no-cache").returncode == 0 and left.exists() != goes


# ---- two at once ----


@pytest.mark.parametrize("said, why", [
    ("build/small.c:9: fatal error: error writing to /tmp/x.s: No space left on device", "No space left on device"),
    ("error: unable to make temporary file: Disk quota exceeded", "Disk quota exceeded"),
    ("build/small.c:9:2: error: cannot allocate: Cannot allocate memory", "Cannot allocate memory"),
    ("cc: fatal error: Killed signal terminated program cc1", "it was killed")])
def test_what_a_c_compiler_lacks_is_no_fault_of_mtc(said, why, run, tmp_path):
    broken = tmp_path / "broken-cc"
    broken.write_text(f"#!/bin/sh\necho '{said}'\nexit 1\n")
    broken.chmod(0o755)
    done = run("--target", "cpu", "--keep", "build", "small.mt", CC=str(broken))
    refused(done, TOOL, f"broken-cc could not compile the generated program: {why}\n")
    assert "a fault of mtc" not in done.stderr and "small.mt" not in done.stderr


@pytest.mark.parametrize("blocks, code, text", [(4, CANT_CREATE, "cannot write 'build/small.c': File too large"),
                                                (100, TOOL, "could not compile the generated program: File too large")])
def test_files_that_may_not_grow(blocks, code, text, model, tmp_path):
    settings = {**os.environ, "NO_COLOR": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = f"ulimit -f {blocks}; exec {MTC} --target cpu small.mt"
    refused(subprocess.run(["bash", "-c", command], cwd=tmp_path, env=settings, capture_output=True, text=True), code, text)


def test_a_compiler_that_makes_nothing(run):
    refused(run("--target", "cpu", "small.mt", CC="/bin/true"), TOOL, "'/bin/true' ended well, and made no program: is it a compiler?")


WAITING = """#!/bin/sh
# Compiles when two have come this far.
touch "{folder}/$$"
while [ "$(ls "{folder}" | wc -l)" -lt 2 ]; do sleep 0.01; done
exec cc "$@"
"""


@pytest.fixture
def both(tmp_path, model):
    """both(*commands): two compilations at once, each with its source in its compiler's hands when the other's is."""
    folder = tmp_path / "arrived"
    folder.mkdir()
    compiler = tmp_path / "waiting-cc"
    compiler.write_text(WAITING.format(folder=folder))
    compiler.chmod(0o755)

    def call(*commands):
        settings = {**os.environ, "NO_COLOR": "1", "XDG_CACHE_HOME": str(tmp_path / "cache"), "CC": str(compiler)}
        running = [subprocess.Popen([MTC, "--target=cpu", *command], cwd=tmp_path, env=settings, stderr=subprocess.PIPE, text=True)
                   for command in commands]
        for each in running:
            assert each.communicate(timeout=100)[1] == "" and each.returncode == 0

    return call


def hidden(program):
    """The width of a program's hidden layer."""
    text = subprocess.run([program, "info"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"h\.bias +.*?\[(\d+)\]", text)[1])


def test_two_compilations_at_once(both, tmp_path):
    """Each makes its own program, and keeps that in the cache; of the two sources the one that came last is there, whole."""
    commands = [["small.mt", "--set", f"hidden={width}", "-o", f"p{width}"] for width in (7, 8)]
    for _ in "compiled", "cached":
        both(*commands)
        assert [hidden(tmp_path / f"p{width}") for width in (7, 8)] == [7, 8]
        (tmp_path / "p7").unlink()
        (tmp_path / "p8").unlink()
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["small.c"]
    source = (tmp_path / "build/small.c").read_text()
    assert source in [run_mtc("--emit=c", *command[:3], cwd=tmp_path).stdout for command in commands]


def test_two_models_of_one_name_at_once(both, run, tmp_path):
    for folder, width in (("a", 7), ("b", 8)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.mt").write_text(MODEL.replace("hidden = 16", f"hidden = {width}"))
    both(["a/m.mt", "-o", "pa", "--keep", "kept"], ["b/m.mt", "-o", "pb", "--keep", "kept"])
    assert (hidden(tmp_path / "pa"), hidden(tmp_path / "pb")) == (7, 8)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["m.c"]
    assert (tmp_path / "kept/m.c").read_text() in [run("--emit=c", f"{folder}/m.mt").stdout for folder in "ab"]


# ---- the cache ----


@pytest.fixture
def compiled(run, tmp_path):
    """compiled(*flags): how often the C compiler was called, and what mtc said, making tmp_path/prog. That compiler's program is
    any, with the source behind it."""
    log = tmp_path / "calls"
    counting = tmp_path / "counting-cc"
    counting.write_text(f'#!/bin/sh\necho x >> {log}\nfor last; do case $last in *small.c) source=$last ;; esac; done\n'
                        'cat /bin/true "$source" > "$last"\nchmod +x "$last"\n')
    counting.chmod(0o755)

    def call(*flags, **environment):
        log.write_text("")
        done = run("--target", "cpu", "small.mt", "-o", "prog", *flags, CC=str(counting), **environment)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "prog").read_bytes() == Path("/bin/true").read_bytes() + (tmp_path / "build/small.c").read_bytes()
        return log.read_text().count("x"), done.stderr

    return call


def entries(tmp_path):
    return list((tmp_path / "cache/mtc/programs").iterdir())


def test_cache(compiled, tmp_path):
    assert compiled() == (1, "")
    program = (tmp_path / "prog").read_bytes()
    (tmp_path / "prog").unlink()
    assert compiled() == (0, "")
    assert (tmp_path / "prog").read_bytes() == program and os.access(tmp_path / "prog", os.X_OK)
    assert compiled("--no-cache") == (1, "")
    assert compiled("--set", "hidden=8") == (1, "")
    assert compiled("--shared") == (1, "")


def truncated(entry):
    entry.write_bytes(entry.read_bytes()[:-1000])


def emptied(entry):
    entry.write_bytes(b"")


def changed(entry):
    """One bit, in the middle of the program."""
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)


def replaced(entry):
    """By another program, as it is, without a digest."""
    entry.write_bytes(Path("/bin/true").read_bytes())


def exchanged(entry):
    """Whole, but of another key."""
    entry.write_bytes(next(other for other in entry.parent.iterdir() if other != entry).read_bytes())


def fifo(entry):
    entry.unlink()
    os.mkfifo(entry)


def link(entry):
    entry.rename(entry.parent.parent / "elsewhere")
    entry.symlink_to(entry.parent.parent / "elsewhere")


def writable_by_the_group(entry):
    entry.chmod(0o620)


def foreign(entry):
    os.chown(entry, 12345, 12345)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
DAMAGES = [truncated, emptied, changed, replaced, exchanged, fifo, link, writable_by_the_group, pytest.param(foreign, marks=as_root)]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_anew(damage, compiled, tmp_path):
    compiled()
    entry, = entries(tmp_path)
    compiled("--set", "hidden=8")
    damage(entry)
    calls, said = compiled()
    assert calls == 1 and said == f"mtc: note: the cache's entry '{entry}' is damaged, or somebody else's: compiling anew\n"
    assert compiled() == (0, "")


@pytest.mark.parametrize("damage", [truncated, replaced])
def test_python_is_given_no_damaged_entry(damage, tmp_path):
    """A library that is shorter than it says would end the process that loads it."""
    (tmp_path / "m.mt").write_text(MODEL)
    script = ("import mtc, sys, pathlib\n"
              "folder = pathlib.Path(sys.argv[1])\n"
              "model = mtc.compile(folder / 'm.mt', target='cpu')\n"
              "print(model.batch)\n")
    settings = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT / "python")}
    for _ in "whole", "damaged":
        done = subprocess.run([sys.executable, "-c", script, tmp_path], env=settings, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
        for entry in entries(tmp_path):
            damage(entry)


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o775), lambda path: path.chmod(0o707),
                                   pytest.param(lambda path: os.chown(path, 12345, 12345), marks=as_root)])
def test_a_folder_that_others_may_write_is_not_used(spoil, compiled, tmp_path):
    compiled()
    folder = tmp_path / "cache/mtc/programs"
    spoil(folder)
    before = [path.stat().st_mtime_ns for path in entries(tmp_path)]
    for _ in "neither read", "nor written":
        calls, said = compiled()
        assert calls == 1 and said == f"mtc: warning: the cache '{folder}' is not used: somebody else owns it or may write to it\n"
    assert [path.stat().st_mtime_ns for path in entries(tmp_path)] == before


def test_a_generous_umask_leaves_the_cache_private(compiled, tmp_path):
    before = os.umask(0o002)
    try:
        assert compiled() == (1, "") and compiled() == (0, "")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "cache/mtc/programs", *entries(tmp_path))] == [0o700, 0o600]


def test_cache_is_bounded(run, tmp_path):
    cache = tmp_path / "cache/mtc/programs"
    cache.mkdir(parents=True, mode=0o700)
    for i in range(80):
        entry = cache / (f"{i:064x}" if i % 2 else f"{i:064x}.XaY123")  # what a program that was killed left
        entry.write_text("old")
        os.utime(entry, (i, i))
    assert run("--target", "cpu", "small.mt").returncode == 0
    names = {path.name for path in entries(tmp_path)}
    assert len(names) == 64 and f"{79:064x}" in names and f"{0:064x}.XaY123" not in names


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


BOUND = """
param p  = 0.5
param q  = 0.5 in 0..1
param r  = 0.5 in 0..0.9
param lr = 0.1
param c  = 1.0
data {
  train = table([[0, 0], [1, 1]])
  x : f32[1]
  y : f32[1]
}
fn block(x, share) {
  return dropout(linear(x, 4), share)
}
model {
  h = dropout(dropout(block(x, p), q), r)
  z = linear(h, 1)
}
train {
  loss      = mse(z, y)
  optimizer = adam(cosine_lr(lr))
  clip_norm = c
}
"""


def test_a_flag_is_bound_as_what_it_is_given_to(run, tmp_path):
    (tmp_path / "bound.mt").write_text(BOUND)
    assert run("bound.mt", "--target", "cpu", "-o", "bound").returncode == 0

    def says(*flags):
        done = subprocess.run([tmp_path / "bound", *flags], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, (done.stderr.split("\n")[0] if done.returncode else done.stdout)

    part = "goes to dropout: at least 0 and below 1, not"
    for flag, value, text in (("--p", "1.5", part), ("--p", "-1", part), ("--p", "0.9999999999", part), ("--q", "1", part),
                              ("--q", "2", "is from 0 to 1, not"), ("--r", "0.95", "is from 0 to 0.9, not"),
                              ("--lr", "-0.001", "goes to cosine_lr: at least 0, not"), ("--c", "0", "goes to clip_norm: above 0, not")):
        code, message = says(flag, value)
        assert code == USAGE and message.endswith(f"error: {flag} {text} {value}")
    assert says("--p", "0", "--lr", "0", "--q", "0.999", "--epochs", "1")[0] == 0
    rows = [line.split(maxsplit=2)[2] for line in says("--help")[1].split("\n") if re.match(r"  --[pqr] ", line)]
    assert rows == ["0.5, goes to dropout: at least 0 and below 1", "0.5, from 0 to 1; goes to dropout: at least 0 and below 1",
                    "0.5, from 0 to 0.9"]


def test_numbers_are_judged_as_programs_compute_with_them(run, tmp_path):
    (tmp_path / "bound.mt").write_text(BOUND)
    (tmp_path / "large.mt").write_text(BOUND.replace("param c  = 1.0", "param c  = -4e38").replace("clip_norm = c\n", "").replace(
        "mse(z, y)", "mse(z * c, y)"))
    (tmp_path / "rate.mt").write_text(BOUND.replace("cosine_lr(lr)", "1e39"))
    for model, setting, text in (
            ("bound.mt", "p=0.99999999999", "'p' of 'dropout' is at least 0 and below 1, not 0.99999999999, which is 1 in f32"),
            ("bound.mt", "c=1e-50", "clip_norm is above 0, not 1e-50, which is 0 in f32"),
            ("bound.mt", "lr=1e39", "'lr' of 'cosine_lr' is at least 0, not 1e+39, which is inf in f32"),
            ("rate.mt", "p=0.5", "'lr' of 'adam' is at least 0, not 1e+39, which is inf in f32"),
            ("large.mt", "p=0.5", "'c' is -4e+38, and programs compute in f32, whose numbers end at 3.4e+38")):
        done = run(model, "--set", setting, "--emit=c")
        assert done.returncode == MODEL_FAULT and text in done.stderr, done.stderr
    assert run("bound.mt", "--set", "p=0.99999990", "--emit=c").returncode == 0
    assert run("bound.mt", "--target", "cpu", "-o", "bound").returncode == 0
    done = subprocess.run([tmp_path / "bound", "--lr", "1e39"], capture_output=True, text=True)
    assert done.returncode == USAGE and "--lr: 1e39 is beyond f32, whose numbers end at 3.4e+38" in done.stderr


@pytest.mark.parametrize("flags", [["--target", "cpu", "--target=cuda"], ["-o", "a", "--output", "b"], ["--batch", "4", "--batch", "8"],
                                   ["--keep", "a", "--keep", "build"], ["--emit=c", "--emit=cu"]], ids=lambda flags: flags[0])
def test_a_flag_that_is_given_twice(flags, run):
    name = "--output" if flags[0] == "-o" else flags[0].split("=")[0]
    refused(run(*flags, "small.mt"), USAGE, f"{name} is given twice, with different values: which?")


def test_commands_of_other_tools(run):
    refused(run("train", "small.mt"), USAGE, "'train' is no command of mtc: mtc small.mt -o PROGRAM makes a program, and ./PROGRAM trains")
    assert run("help").stdout == run("--help").stdout != ""


def test_a_flag_that_is_given_twice_alike(run):
    assert run("--emit=c", "--emit", "c", "--batch", "4", "--batch=4", "--recompute", "--recompute", "small.mt").returncode == 0
