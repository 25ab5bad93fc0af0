"""What programs of GPUs do with several processes, on a device that is not there: one whose memory the host does not see."""

import filecmp
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT, Program
from runtime_library import build_program
from test_ranks import children, runs
from test_shards import IN_TURNS, MODELS, folder  # noqa: F401: a fixture
from test_sockets import RANK_LOST, STEPS, begun, ended, torchrun

pytestmark = pytest.mark.quick
USAGE, UNAVAILABLE = 64, 69


def build_apart(mtc, place, name, *flags, model=MODELS["updates"]):
    (place / "m.mt").write_text(model)
    source = mtc(place / "m.mt", "--target", "cpu", "--emit=c", "--shards", 4).stdout
    peers = "const char *add_peers(const MtcPeers *, size_t, size_t);\nconst char *train_peers(const MtcRun *, const MtcPeers *, int64_t);\n"
    source = source.replace('.target = "cpu"', '.target = "cuda"').replace("const MtcModel mtc_model = {", peers + "const MtcModel mtc_model = {")
    (place / "m.c").write_text(source.replace(".add_sums = add_sums,", ".add_sums = add_sums, .add_over_peers = add_peers, .train_among = train_peers,"))
    replaced = ("device_open", "device_count", "device_alloc", "device_free", "device_offer", "device_reach", "device_leave", "event_pending",
                "host_view", "ranks_sum")
    wrapped = [f"-Wl,--wrap=mtc_{name}" for name in replaced]
    sources = [place / "m.c", ROOT / "tests/runtime/apart.c", ROOT / "runtime/base/device_cpu.c"]
    return build_program(place / name, sources, "-Wno-unknown-pragmas", *wrapped, *flags)


@pytest.fixture(scope="module")
def apart(mtc, tmp_path_factory):
    """A program of the CPU target that takes itself for one of GPUs, $DEVICES of them (apart.c)."""
    return Program(build_apart(mtc, tmp_path_factory.mktemp("apart"), "apart"))


def test_devices_are_dealt_out_and_sums_are_staged(apart, folder):  # noqa: F811
    """The host adds up copies of what the device has."""
    saved = {}
    for count, devices, shares in (1, 2, ""), (4, 2, "4 processes share 2 GPUs"), (2, 1, "2 processes share 1 GPU"), (2, 2, ""):
        codes, _, told = ended(begun(apart, folder, count, "--limit-steps", STEPS, "--save", "w",
                                     launcher=lambda *which: {**(torchrun(*which) if count > 1 else {}), **NO_NCCL, "DEVICES": str(devices)}))
        said = [line for line in told.splitlines() if not line.startswith("device ")]
        assert not any(codes) and sorted(re.findall(r"^device (\d)$", told, re.M)) == sorted(str(n % devices) for n in range(count)), told
        assert len(said) == bool(shares) and shares in "".join(said), told
        saved[count] = (folder / "w").read_bytes()
    assert saved[1] == saved[2] == saved[4]


def test_processes_that_see_one_device_each_share_none(apart, folder):  # noqa: F811
    codes, _, told = ended(begun(apart, folder, 2, "--limit-steps", 2, "--quiet", launcher=lambda *which: {
        **torchrun(*which), **NO_NCCL, "DEVICES": "1", "CUDA_VISIBLE_DEVICES": str(which[0])}))
    assert not any(codes) and "share" not in told, told


def test_the_system_asks_after_ranks_that_say_nothing(apart, folder):  # noqa: F811
    """Of a stopped one, connections are idle: the kernel's timer of each is that of keepalive, 02."""
    job = started(apart, folder, "--gpus", 2, "--epochs", 10000000, "--save-every", 5, "--save", "w", "--quiet")
    until = time.monotonic() + 60
    while not (folder / "w").exists() and time.monotonic() < until:
        time.sleep(0.02)
    first, second = children(job.pid)
    os.kill(first, signal.SIGSTOP)
    sockets = {os.readlink(fd)[8:-1] for fd in Path(f"/proc/{second}/fd").iterdir() if os.readlink(fd).startswith("socket:")}
    timers, until = [], time.monotonic() + 60
    while timers != ["02"] and time.monotonic() < until:
        time.sleep(0.1)
        rows = [line.split() for line in Path(f"/proc/{second}/net/tcp").read_text().splitlines()[1:]]
        timers = [row[5][:2] for row in rows if row[9] in sockets]
    os.kill(job.pid, signal.SIGKILL)
    os.kill(first, signal.SIGKILL)
    job.communicate(timeout=60)
    assert timers == ["02"]


NO_NCCL = {"MTC_NCCL": "/nowhere/libnccl.so.2"}  # whatever this machine has


def started(apart, folder, *flags, **more):  # noqa: F811
    words = [str(apart.path), "--data", str(folder), *map(str, flags)]
    return subprocess.Popen(words, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", "DEVICES": "2", **NO_NCCL, **more}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def test_a_program_starts_itself(apart, folder):  # noqa: F811
    for count in 1, 4:
        job = started(apart, folder, "--gpus", count, "--limit-steps", STEPS, "--save", f"w{count}")
        out, told = job.communicate(timeout=60)
        assert job.returncode == 0 and out.count("steps in") == 1, told
    assert (folder / "w1").read_bytes() == (folder / "w4").read_bytes()
    assert sorted(re.findall(r"^device (\d)$", told, re.M)) == ["0", "0", "1", "1"]


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    library = tmp_path_factory.mktemp("stub") / "libnccl.so.2"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", ROOT / "tests/runtime/stub_nccl.c", "-o", library], check=True)
    return {"MTC_NCCL": str(library)}


def test_sums_in_the_midst_of_a_step_go_the_same_ways(mtc, tmp_path_factory, stub, folder):  # noqa: F811
    program = Program(build_apart(mtc, tmp_path_factory.mktemp("whole"), "whole", model=MODELS["whole statistics"]))
    saved = []
    for count, ways in (1, ["host"]), (2, ["host", "nccl", "peers"]), (4, ["host", "nccl"]):
        for way in ways:
            more = {"PEERS": "yes", "DEVICES": "4"} if way == "peers" else {**stub, "STUB": str(folder), "DEVICES": "4"}
            job = started(program, folder, "--gpus", count, "--sums", way, "--limit-steps", STEPS, "--save", "w", **more)
            _, told = job.communicate(timeout=60)
            assert job.returncode == 0 and "error" not in told, told
            saved.append((folder / "w").read_bytes())
    assert len(set(saved)) == 1


def test_nccl_adds_up_to_the_same_bytes(apart, stub, folder):  # noqa: F811
    for count in 1, 2, 4:
        job = started(apart, folder, "--gpus", count, "--sums", "nccl", "--limit-steps", STEPS, "--save", f"w{count}", **stub, STUB=str(folder))
        _, told = job.communicate(timeout=60)
        assert job.returncode == 0 and "error" not in told, told
    assert (folder / "w1").read_bytes() == (folder / "w2").read_bytes() == (folder / "w4").read_bytes()
    assert not [path for path in folder.iterdir() if re.fullmatch(r"\d-\d-\d+", path.name)]


def test_sums_that_the_room_cannot_hold_go_in_turns(mtc, tmp_path_factory, stub, folder):  # noqa: F811
    """Of two ranks each gives the other half of the sums, through room of 64 MiB."""
    program = Program(build_apart(mtc, tmp_path_factory.mktemp("turns"), "turns", "-O3", "-march=native", "-fopenmp-simd", "-ffp-contract=off",
                                  model=IN_TURNS))
    for count in 1, 2:
        job = started(program, folder, "--gpus", count, "--sums", "nccl", "--limit-steps", 2, "--save", f"w{count}", **stub, STUB=str(folder))
        _, told = job.communicate(timeout=120)
        assert job.returncode == 0 and "error" not in told, told
    saved = [folder / f"w{count}" for count in (1, 2)]
    assert saved[0].stat().st_size > 128 << 20 and filecmp.cmp(*saved, shallow=False)


@pytest.mark.parametrize("more, patience, code, messages", [
    ({"STUB_FAULT": "5"}, 60, RANK_LOST, ["NCCL cannot send and receive: remote process exited", "NCCL_SOCKET_IFNAME"]),
    ({"HANGS": "1"}, 3, RANK_LOST, ["waits for the others' sums: nothing came by NCCL for 3", "--resume goes on"]),
    ({"MTC_NCCL": "/nowhere/libnccl.so.2"}, 60, UNAVAILABLE, ["NCCL cannot be loaded: /nowhere", "nvidia-nccl-cu13", "--sums host needs none"]),
], ids=["fault", "hangs", "missing"])
def test_what_nccl_ends(apart, stub, folder, more, patience, code, messages):  # noqa: F811
    flags = ["--gpus", 2, "--sums", "nccl", "--limit-steps", STEPS, "--save", "w", "--rank-timeout", patience]
    job = started(apart, folder, *flags, **{**stub, "STUB": str(folder), **more})
    _, told = job.communicate(timeout=60)
    assert job.returncode == code and all(message in told for message in messages), told


def test_a_killed_rank_is_missed_while_nccl_waits(apart, stub, folder):  # noqa: F811
    """Its connection has ended, long before the patience with what NCCL owes has."""
    job = started(apart, folder, "--gpus", 2, "--sums", "nccl", "--epochs", 10, "--quiet", "--rank-timeout", 50, **{**stub, "STUB": str(folder), "HANGS": "1"})
    while len(children(job.pid)) < 2 and job.poll() is None:
        time.sleep(0.02)
    time.sleep(1)  # most are in their first step by then; before, sockets say the same
    struck = time.monotonic()
    os.kill(children(job.pid)[1], signal.SIGKILL)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 128 + signal.SIGKILL and "lost rank 1" in told and "its connection ended" in told and time.monotonic() - struck < 40, told


def test_gpus_add_up_in_each_others_memory(apart, folder):  # noqa: F811
    """Of themselves where each rank has a GPU of its own, one shard each or several; the bytes are those of one process."""
    for count, devices, flags in (1, 1, []), (2, 2, []), (4, 4, []), (4, 2, ["--sums", "peers"]):
        job = started(apart, folder, "--gpus", count, *flags, "--limit-steps", STEPS, "--save", f"w{count}", DEVICES=str(devices), PEERS="yes")
        _, told = job.communicate(timeout=60)
        assert job.returncode == 0 and "error" not in told, told
        assert told.count("peers\n") == (count if count > 1 else 0), told
        assert (folder / "w1").read_bytes() == (folder / f"w{count}").read_bytes(), (count, devices)


def test_nobody_reaches_what_one_cannot(apart, stub, folder):  # noqa: F811
    """Then NCCL adds up where all have it, else the host; a way that was asked for is refused by its name."""
    for how, flags in (stub, ["--limit-steps", STEPS]), ({}, ["--limit-steps", STEPS]), ({}, ["--sums", "peers"]):
        job = started(apart, folder, "--gpus", 2, *flags, "--save", "w", PEERS="2", STUB=str(folder), **how)
        _, told = job.communicate(timeout=60)
        expected = UNAVAILABLE if "--sums" in flags else 0
        assert job.returncode == expected and ("GPUs do not reach each other's memory" in told) == bool(expected), told
    assert told.count("error:") == 1 and "--sums nccl needs NCCL, --sums host nothing" in told, told


def test_a_peer_that_stops_is_named(apart, folder):  # noqa: F811
    job = started(apart, folder, "--gpus", 2, "--epochs", 10000000, "--save-every", 5, "--save", "w", "--quiet", "--rank-timeout", 1, PEERS="yes")
    until = time.monotonic() + 60
    while not (folder / "w").exists() and time.monotonic() < until:
        time.sleep(0.02)
    _, second = children(job.pid)
    os.kill(second, signal.SIGSTOP)
    _, told = job.communicate(timeout=60)
    assert job.returncode == RANK_LOST and "peers\n" in told and "waits for rank 1" in told and "--resume goes on" in told, told
    assert not Path(f"/proc/{second}").exists()


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {paths}
import numpy as np
import mtc
from mtc import ranks, toolchain
from test_shards import MODELS

toolchain.compile_library = lambda *_, **__: Path("m.so").absolute()
begun, started = ranks.Ranks._start_one, []
ranks.Ranks._start_one = lambda self, rank, order, files: (started.append(order["device"]), begun(self, rank, order, files))
given = np.load("d.npz")
with mtc.compile(MODELS["updates"], target="cuda", shards=4, seed=1, gpus=int(sys.argv[1]), sums=sys.argv[2]) as model:
    model.fit(given["image"], given["label"], epochs=2, verbose=0)
    model.save(sys.argv[3])
print(started)
"""


def test_python_trains_on_several(mtc, stub, folder):  # noqa: F811
    """gpus=N, each rank with a device of its own, whichever way sums go."""
    build_apart(mtc, folder, "m.so", "-shared")
    (folder / "script.py").write_text(SCRIPT.format(paths=[str(ROOT / name) for name in ("python", "tests/support", "tests", "tests/runtime")]))
    for count, sums in (1, "host"), (2, "host"), (4, "host"), (2, "nccl"), (2, "peers"):
        environment = {**os.environ, **stub, "STUB": str(folder), "DEVICES": "4", "PEERS": "yes"}
        done = subprocess.run([sys.executable, "script.py", str(count), sums, f"w{count}{sums}"], cwd=folder, env=environment, capture_output=True,
                              text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, f"{list(range(1, count))}\n"), done.stderr
    assert len({path.read_bytes() for path in folder.glob("w*")}) == 1 and len(list(folder.glob("w*"))) == 5
    assert not [path for path in folder.iterdir() if re.fullmatch(r"\d-\d-\d+", path.name)]


@pytest.mark.parametrize("words, message", [(["--sums", "nvlink"], "--sums is peers, nccl or host, not 'nvlink'"),
                                            (["--sums", "peers"], "--sums peers is of programs for GPUs"),
                                            (["--sums", "nccl"], "--sums nccl is of programs for GPUs")])
def test_sums_are_added_up_somewhere(compile_model, folder, words, message):  # noqa: F811
    done = compile_model(MODELS["updates"], "--shards", 4)("--data", ".", *words, cwd=folder, check=False)
    assert done.returncode == USAGE and message in done.stderr


@pytest.mark.parametrize("flags, more, message", [
    (["--gpus", "3"], {}, "3 processes cannot have equally many of this program's 4 shards"),
    (["--gpus", "2"], torchrun(0, 2, 1), "this is one of several that were started already"),
    (["--gpus", "2", "--device", "1"], {}, "--device names one: which?"),
], ids=["shards", "started", "device"])
def test_what_no_program_starts(apart, folder, flags, more, message):  # noqa: F811
    job = started(apart, folder, *flags, **more)
    _, told = job.communicate(timeout=60)
    assert job.returncode == USAGE and told.count("error:") == 1 and message in told, told


def test_programs_for_the_processor_have_no_gpus(compile_model, folder):  # noqa: F811
    done = compile_model(MODELS["updates"], "--shards", 4)("--data", ".", "--gpus", 2, cwd=folder, check=False)
    assert done.returncode == USAGE and "--gpus is of programs for GPUs" in done.stderr and "mpirun -n 2" in done.stderr


@pytest.mark.parametrize("whom, how, code", [("a rank", signal.SIGKILL, {128 + signal.SIGKILL, RANK_LOST}), ("a rank", signal.SIGSTOP, {RANK_LOST}),
                                             ("all", signal.SIGTERM, {128 + signal.SIGTERM}), ("the first", signal.SIGKILL, {-signal.SIGKILL})])
def test_all_that_were_started_end_together(apart, folder, whom, how, code):  # noqa: F811
    patience = 5 if how == signal.SIGSTOP else 60  # on a busy machine a rank says nothing for seconds
    job = started(apart, folder, "--gpus", 4, "--epochs", 10000000, "--save-every", 5, "--save", "w", "--quiet", "--rank-timeout", patience)
    until = time.monotonic() + 60
    while not (folder / "w").exists() and time.monotonic() < until:
        time.sleep(0.02)
    ranks = children(job.pid)
    assert len(ranks) == 4
    os.kill(ranks[2] if whom == "a rank" else job.pid, how)
    job.communicate(timeout=60)
    until = time.monotonic() + 60
    while any(runs(pid) for pid in ranks) and time.monotonic() < until:
        time.sleep(0.02)
    assert job.returncode in code and not any(runs(pid) for pid in ranks)
