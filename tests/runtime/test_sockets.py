"""Trainings in several processes over sockets, started by no more than an environment: as over MPI, the bytes of one process."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import ROOT
from test_checkpoint import load_tool
from test_shards import MODELS, folder, values  # noqa: F401: a fixture

pytestmark = pytest.mark.quick
STEPS, UNAVAILABLE, RANK_LOST = 12, 69, 80


def own_host():
    """localhost, where the machine has that name: a root without /etc/hosts has none."""
    try:
        socket.getaddrinfo("localhost", None, socket.AF_INET)
        return "localhost"
    except socket.gaierror:
        return "127.0.0.1"


HOST = own_host()


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


def torchrun(rank, count, port, **more):
    return {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": HOST, "MASTER_PORT": str(port), **more}


def srun(rank, count, port):
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(count), "SLURM_STEP_NODELIST": f"{HOST},n[03-07]",
            "SLURM_JOB_ID": str(port), "SLURM_STEP_ID": "0"}


def agent(rank, count, port):
    """torchrun listens at the port itself."""
    return torchrun(rank, count, port, TORCHELASTIC_USE_AGENT_STORE="True")


def begun(program, folder, count, *flags, command="train", launcher=torchrun, port=None):  # noqa: F811
    port = port or free_port()
    words = [str(program.path), command, "--data", str(folder), *map(str, flags)]
    return [subprocess.Popen(words, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", **launcher(rank, count, port)},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(count)]


def ended(processes):
    told = [process.communicate(timeout=60) for process in processes]
    return [process.returncode for process in processes], "".join(out for out, _ in told), "".join(err for _, err in told)


@pytest.mark.parametrize("launcher, count", [(torchrun, 4), (agent, 3), (srun, 2)])
def test_bytes_are_those_of_one_process(compile_model, folder, launcher, count):  # noqa: F811
    program = compile_model(MODELS["updates"], "--shards", 12 if count == 3 else 4, *(["--batch", 12] if count == 3 else []))
    saved = []
    for processes in 1, count, count:
        flags = ["--limit-steps", STEPS, "--save", "w"]
        if processes == 1:
            program("--data", ".", *flags, cwd=folder)
        else:
            codes, out, told = ended(begun(program, folder, processes, *flags, launcher=launcher))
            assert not any(codes) and out.count("steps in") == 1 and not told, told
        saved.append((folder / "w").read_bytes())
    assert saved[1] == saved[2] and (count == 3 or saved[0] == saved[1])


def digits(folder):  # noqa: F811
    subprocess.run([sys.executable, ROOT / "tools/make_digits.py", folder / "mnist", "--train", "100", "--test", "20"], check=True)


def letters(folder):  # noqa: F811
    """65 of them, in lines that repeat."""
    (folder / "tinyshakespeare").mkdir()
    kinds = [chr(48 + i) for i in range(64)] + ["\n"]
    (folder / "tinyshakespeare/input.txt").write_text("".join(kinds[i * i % 31 + i % 35] for i in range(2600)) + "".join(kinds))


@pytest.mark.parametrize("name, data, flags", [
    ("cnn", digits, ["--batch", 16]),
    ("char_gpt", letters, ["--set", "layers=1", "--set", "width=16", "--set", "context=16", "--set", "examples=8"]),
])
def test_models_train_alike_on_any_number(compile_model, tmp_path, name, data, flags):
    """A convolution and a transformer: of 1, 2 and 4 processes, and of 4 that 2 go on from."""
    data(tmp_path)
    program, saved = compile_model(ROOT / f"models/{name}.mt", "--shards", 4, *flags), []
    for processes, steps, *more in (1, 6), (2, 6), (4, 4), (2, 6, "--resume", "w"):
        words = ["--limit-steps", steps, "--save", "w", "--quiet", *more]
        codes, _, told = ended(begun(program, tmp_path, processes, *words)) if processes > 1 else ([program(
            "--data", ".", *words, cwd=tmp_path).returncode], "", "")
        assert not any(codes), told
        saved.append((tmp_path / "w").read_bytes())
    assert saved[0] == saved[1] == saved[3] != saved[2]


@pytest.mark.parametrize("count, shards, flags", [(2, 2, []), (3, 6, ["--batch", 12])])
def test_sums_that_take_several_turns(compile_model, folder, count, shards, flags):  # noqa: F811
    """What comes is added 4 MB at a time."""
    program = compile_model(MODELS["lookup"].replace("weight([5, 192])", "slice(weight([13000, 192]), 0, 0, 5)"), "--shards", shards, *flags)
    saved = []
    for processes in 1, count:
        codes, _, told = ended(begun(program, folder, processes, "--limit-steps", 2, "--save", "w", "--quiet"))
        assert not any(codes), told
        saved.append(values((folder / "w").read_bytes()))
    assert all(np.allclose(saved[0][name], saved[1][name], rtol=1e-5, atol=1e-7) for name in saved[0])
    assert count == 3 or all(np.array_equal(saved[0][name], saved[1][name]) for name in saved[0])


def test_strangers_are_not_listened_to(compile_model, folder):  # noqa: F811
    """One that says nothing, one that says what is none of it, and a rank that is there already."""
    program, port = compile_model(MODELS["updates"], "--shards", 2), free_port()
    flags, environment = ["--limit-steps", 2, "--quiet"], {**os.environ, **torchrun(0, 2, port)}
    first = subprocess.Popen([program.path, "--data", folder, *map(str, flags)], env=environment, stderr=subprocess.PIPE, text=True)
    strangers, until = [], time.monotonic() + 30
    for word in b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"1CTM" + b"\0" * 20:
        while time.monotonic() < until:
            try:
                strangers.append(socket.create_connection((HOST, port)))
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        strangers[-1].sendall(word)
    second = subprocess.Popen([program.path, "--data", folder, *map(str, flags)], env={**environment, "RANK": "1"}, text=True)
    _, told = first.communicate(timeout=60)
    assert len(strangers) == 3 and first.returncode == second.wait(60) == 0, told


def test_a_rank_that_ends_while_all_meet_is_told_of(compile_model, folder):  # noqa: F811
    """It was killed behind its first word; nobody is waited for then."""
    program, port = compile_model(MODELS["updates"], "--shards", 2), free_port()
    first = begun(program, folder, 1, port=port, launcher=lambda rank, _, port: torchrun(rank, 2, port))
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            with socket.create_connection((HOST, port)) as second:
                second.sendall(struct.pack("=IIQQ", 0x4D544331, 1, 2, 0))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    codes, _, told = ended(first)
    assert codes == [UNAVAILABLE] and "rank 0 of 2 lost another rank, or cannot reach it, while all met" in told, told


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_all_end_with_one(compile_model, folder, how):  # noqa: F811
    program = compile_model(MODELS["convolution"], "--shards", 4)
    patience = 5 if how == signal.SIGSTOP else 60  # on a busy machine a rank says nothing for seconds
    processes = begun(program, folder, 4, "--epochs", 100000000, "--save", "w", "--save-every", 5, "--quiet", "--rank-timeout", patience)
    until = time.monotonic() + 30
    while not (folder / "w").exists() and time.monotonic() < until:
        time.sleep(0.01)
    processes[2].send_signal(how)
    stopped = time.monotonic()
    codes, _, told = ended([process for process in processes if process != processes[2]])
    assert codes == [RANK_LOST] * 3 and time.monotonic() - stopped < 50, told
    found = told.count("waits for rank 2 (" if how == signal.SIGSTOP else "lost rank 2 (")
    assert found == told.count("error: ") > 0 and "--resume goes on" in told, told  # nobody else is blamed
    processes[2].kill()
    processes[2].communicate()


def test_a_profile_ends_where_a_rank_is_stopped(compile_model, folder):  # noqa: F811
    """Whoever has lost another does not ask it whether it is ready."""
    program = compile_model(MODELS["convolution"], "--shards", 2)
    first, second = begun(program, folder, 2, "--runs", 10000, "--rank-timeout", 5, command="profile")
    assert any("measuring runs" in line for line in first.stderr)
    second.send_signal(signal.SIGSTOP)
    codes, _, told = ended([first])
    assert codes == [RANK_LOST] and "waits for rank 1 (" in told, told
    second.kill()
    second.communicate()


@pytest.mark.vectors  # trainings of seconds
def test_killed_ranks_leave_what_goes_on(compile_model, folder):  # noqa: F811
    program = compile_model(MODELS["updates"], "--shards", 4)
    flags = ["--data", str(folder), "--epochs", "4000"]
    assert load_tool("kill_test").kill_test(program.path, 5, "500", 0.3, flags, folder, ranks=2) >= 3


def test_who_fails_is_told_once(compile_model, folder):  # noqa: F811
    done = begun(compile_model(MODELS["updates"], "--shards", 4), folder, 3)
    codes, _, told = ended(done)
    assert set(codes) == {64} and told.count("error: ") == 1 and "3 processes cannot have equally many" in told, told


ALONE = """import fcntl, os, socket, struct, subprocess, sys, time
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x41))  # SIOCSIFFLAGS: up
with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as file:
    file.write("40000 40003")
start = lambda rank: subprocess.Popen(sys.argv[1:], env={**os.environ, "RANK": rank})
other = start("1")
time.sleep(0.6)
sys.exit(start("0").wait(30) or other.wait(30))
"""


def test_nobody_takes_itself_for_rank_0(compile_model, folder):  # noqa: F811
    """Who asks for a port again and again is given it for its own end, where it is one of those that the system gives."""
    if subprocess.run(["unshare", "-rn", "true"], check=False).returncode:
        pytest.skip("no network of its own")
    program, settings = compile_model(MODELS["updates"], "--shards", 2), {**torchrun(0, 2, 40002), "MASTER_ADDR": "127.0.0.1"}
    subprocess.run(["unshare", "-rn", sys.executable, "-c", ALONE, program.path, "--data", folder, "--limit-steps", "2", "--quiet"],
                   env={**os.environ, **settings}, timeout=60, check=True)


@pytest.mark.parametrize("port", ["29500x", "-1", "65535"])
def test_a_port_is_a_number(compile_model, folder, port):  # noqa: F811
    codes, _, told = ended(begun(compile_model(MODELS["updates"], "--shards", 2), folder, 1, launcher=lambda *_: torchrun(0, 2, port)))
    assert codes == [UNAVAILABLE] and "a host and a port that is free there" in told, told


def test_an_address_is_needed(compile_model, folder):  # noqa: F811
    codes, _, told = ended(begun(compile_model(MODELS["updates"], "--shards", 2), folder, 2, launcher=lambda rank, count, port: {
        "PMI_RANK": str(rank), "PMI_SIZE": str(count)}))
    assert codes == [UNAVAILABLE] * 2 and "started by mpiexec as rank 0 of 2: MASTER_ADDR and MASTER_PORT must say" in told, told


@pytest.mark.parametrize("wrong", [{"RANK": "2"}, {"RANK": "-1"}, {"RANK": None}, {"MASTER_ADDR": None}, {"WORLD_SIZE": "two"}, {"WORLD_SIZE": None},
                                   {"RANK": ""}, {"RANK": "0x"}, {"WORLD_SIZE": "2.5"}])
def test_who_is_told_half_does_not_train_alone(compile_model, folder, wrong):  # noqa: F811
    """Ranks that are counted from 1, a variable that was not exported: each process would be a training of its own."""
    told = {**torchrun(0, 2, 1), **wrong}
    env = {**os.environ, **{name: text for name, text in told.items() if text is not None}}
    program = compile_model(MODELS["updates"], "--shards", 2)
    done = subprocess.run([program.path, "--data", folder, "--limit-steps", "1"], env=env, capture_output=True, text=True, timeout=60)
    name, text = next(iter(wrong.items()))
    assert done.returncode == UNAVAILABLE and f"{name} {'says ' * (name == 'RANK')}{'nothing' if text is None else text}" in done.stderr, done.stderr
    assert "RANK of its own, from 0 to WORLD_SIZE - 1, and all have MASTER_ADDR; without WORLD_SIZE" in done.stderr
    assert subprocess.run([program.path, "info"], env=env, capture_output=True, timeout=60).returncode == 0


def test_steps_of_all_are_measured(compile_model, folder):  # noqa: F811
    """By rank 0's clock, which decides how many they are; a forward pass has nothing to add up."""
    program = compile_model(MODELS["updates"], "--shards", 4)
    codes, out, told = ended(begun(program, folder, 4, "--runs", 2, command="bench"))
    line, = map(json.loads, out.splitlines())
    assert not any(codes) and not told and line["ranks"] == 4 and line["batch"] == 10 and line["data"] == "train", told
    assert line["examples_per_second"] == pytest.approx(10 * line["steps_per_second"], rel=1e-5)
    codes, out, told = ended(begun(program, folder, 2, "--forward", command="bench"))
    assert set(codes) == {64} and not out and told.count("bench --forward is of one process, and this one is one of 2") == 1, told


def test_rank_0_alone_does_what_is_no_training(compile_model, folder):  # noqa: F811
    codes, out, told = ended([subprocess.Popen([compile_model(MODELS["updates"], "--shards", 2).path, "info"],
                              env={**os.environ, **torchrun(rank, 2, 1)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                              for rank in range(2)])
    assert codes == [0, 0] and out.count("compiled by mtc") == 1 and not told, out + told
