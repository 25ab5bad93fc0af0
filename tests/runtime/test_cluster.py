"""The scripts of docs/cluster.md, with a stand-in for srun and on two hosts that are none; and who meets whom at a port."""

import os
import re
import resource
import shutil
import subprocess
import sys
import time

import pytest
from conftest import ROOT
from fake_data import unpack
from test_ranks import SETTINGS
from test_shards import MODELS, folder  # noqa: F401: a fixture
from test_sockets import HOST, UNAVAILABLE, begun, ended, free_port, torchrun

pytestmark = pytest.mark.quick
TIMEOUT, IO, RANK_LOST = 120, 74, 80


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def script(title):
    """The one below a title of docs/cluster.md."""
    section = (ROOT / "docs/cluster.md").read_text().partition(f"## {title}\n")[2]
    return re.search(r"^```sh\n(.*?)^```", section, re.M | re.S)[1]


@pytest.fixture
def place(compile_model, folder):  # noqa: F811
    """What the scripts begin with: ./mnist and data; and what one process makes of them."""
    program = compile_model(MODELS["updates"], "--shards", 4)
    shutil.copy(program.path, folder / "mnist")
    (folder / "data").mkdir()
    shutil.move(folder / "d.npz", folder / "data/d.npz")
    program("--data", "data", "--save", "alone", "--quiet", cwd=folder)
    return folder


def done(place, words, **more):
    environment = {**os.environ, "PATH": f"{ROOT}/tests/runtime:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "HOSTS": HOST, "SLURM_NTASKS": "4",
                   "SLURM_JOB_ID": str(free_port()), **more}
    return subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, timeout=TIMEOUT)


def run(place, words, **more):
    job = done(place, words, **more)
    assert job.returncode == 0 and job.stdout.count("steps in") == 1 and "error" not in job.stderr, job.stdout + job.stderr
    assert (place / "mnist.safetensors").read_bytes() == (place / "alone").read_bytes()


def test_the_script_of_slurm(place):
    """Submitted once and, with what it saved after 30 steps, once more."""
    subprocess.run(["./mnist", "--data", "data", "--save", "mnist.safetensors", "--limit-steps", "30", "--quiet"], cwd=place, check=True)
    run(place, ["bash", "-c", script("Slurm")])


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun: tools/install-deps --all")
def test_the_script_of_mpi(place):
    (place / "hosts").write_text("localhost slots=4\n")
    run(place, ["bash", "-c", script("MPI").replace("OMP_NUM_THREADS=8", "OMP_NUM_THREADS=1")], **SETTINGS)


def two_hosts(place, *words):
    """The command that has two hosts, or a skip."""
    alone = ["unshare", "-rnmu", "--fork", "--kill-child"]
    if not shutil.which("ip") or not os.path.exists("/etc/hosts"):
        pytest.skip("no ip (tools/install-deps --all), or no /etc/hosts")
    if subprocess.run([*alone, "sh", "-c", "ip link add veth0 type veth peer name veth1 && mount --bind /etc/hosts /etc/hosts"], capture_output=True,
                      check=False).returncode:
        pytest.skip("no networks of its own")
    return [*alone, sys.executable, ROOT / "tests/runtime/two_hosts.py", place, *words]


@pytest.mark.parametrize("more", [{}, {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29500"}], ids=["name", "number"])
def test_two_hosts_train_together(place, more):
    """Ranks 0 and 1 are on alpha, which calls itself 127.0.1.1; 2 and 3, on beta, must reach both. Rank 0 was once found, and 1 never."""
    run(place, two_hosts(place, "bash", "-c", script("Slurm")), **more)


CUT = """srun ./mnist --data data --epochs 100000000 --save w --save-every 5 --quiet --rank-timeout 5 & job=$!
until [ -e w ] || ! kill -0 $job; do sleep 0.05; done
beta=${HOSTS##*=}
nsenter -t $beta -n ip link set veth0 down
began=$SECONDS
wait $job
code=$?
echo $code after $((SECONDS - began)) s
exit $code
"""


def test_a_network_that_fails_ends_all(place):
    """Nobody is told of it: on each host one waits in vain and says so, or is told by its system, which asks after the other host, that the
    connection ended, whichever is first; it may wait for a neighbour that waits itself. What was saved can be read."""
    job = done(place, two_hosts(place, "bash", "-c", CUT))
    after = int(re.search(r"^80 after (\d+) s$", job.stdout, re.M)[1])
    assert job.returncode == RANK_LOST and after < 100, job.stdout + job.stderr
    for ranks, host in ("[01]", "alpha"), ("[23]", "beta"):
        assert re.search(rf"error: rank {ranks} of 4 \({host}\) (waits for|lost) rank \d \(", job.stderr), job.stderr
    assert "--resume goes on" in job.stderr, job.stderr
    assert unpack((place / "w").read_bytes())


def test_a_full_disk_of_rank_0_is_a_fault_of_all(compile_model, folder):  # noqa: F811
    """No file may be longer than 1 KB there: each save fails, which is said once; the others end with it."""
    program = compile_model(MODELS["updates"], "--shards", 2)
    words = [program.path, "--data", folder, "--limit-steps", "30", "--save", "w", "--save-every", "5", "--quiet"]
    port = free_port()
    codes, _, told = ended([subprocess.Popen([*map(str, words)], cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", **torchrun(rank, 2, port)},
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=None if rank else small_files)
                            for rank in range(2)])
    assert codes[0] == IO and codes[1] in (0, RANK_LOST) and told.count("error: ") == 1 and "File too large" in told, (codes, told)
    assert not (folder / "w").exists() and not list(folder.glob("*.tmp"))


def test_nobody_listens_where_nobody_asks(compile_model, folder):  # noqa: F811
    """At a number, rank 0 listens at that alone."""
    port = free_port()
    first = begun(compile_model(MODELS["updates"], "--shards", 2), folder, 1, launcher=lambda *_: {**torchrun(0, 2, port), "MASTER_ADDR": "127.0.0.1"})
    until, listens = time.monotonic() + 60, []
    while not listens and time.monotonic() < until:
        with open("/proc/net/tcp") as table:
            listens = [row.split()[1] for row in table if f":{port:04X} 00000000:0000 0A" in row]
        time.sleep(0.02)
    first[0].kill()
    ended(first)
    assert listens == [f"0100007F:{port:04X}"]


@pytest.mark.parametrize("first, second, met", [
    ({}, {"WORLD_SIZE": "3"}, "rank 0 of 2 other processes"),
    ({"TORCHELASTIC_RUN_ID": "a"}, {"TORCHELASTIC_RUN_ID": "b"}, "rank 0 of another job"),
    ({"TORCHELASTIC_RUN_ID": "a"}, {}, "rank 0 of another job"),
], ids=["count", "job", "no job"])
def test_who_meets_another_job_is_told_so(compile_model, folder, first, second, met):  # noqa: F811
    """And that one goes on."""
    program, port = compile_model(MODELS["updates"], "--shards", 6, "--batch", 12), free_port()

    def started(rank, more):
        return begun(program, folder, 1, "--limit-steps", 2, "--quiet", launcher=lambda *_: {**torchrun(rank, 2, port), **more})

    waits = started(0, first)
    codes, _, told = ended(started(1, second))
    assert codes == [UNAVAILABLE] and f", port {port}, {met}: two trainings at a time need two ports" in told, told
    codes, _, told = ended([*waits, *started(1, first)])
    assert codes == [0, 0] and not told, told


def test_two_of_one_rank(compile_model, folder):  # noqa: F811
    program, port = compile_model(MODELS["updates"], "--shards", 6, "--batch", 12), free_port()
    flags = ["--limit-steps", 2, "--quiet"]
    first, *twins = [begun(program, folder, 1, *flags, launcher=lambda *_, rank=rank: torchrun(rank, 3, port))[0] for rank in (0, 1, 1)]
    while all(twin.poll() is None for twin in twins):
        time.sleep(0.02)
    refused, taken = sorted(twins, key=lambda twin: twin.poll() is None)
    codes, _, told = ended([refused])
    assert codes == [UNAVAILABLE] and "of processes that have another rank 1 already" in told, told
    codes, _, told = ended([first, taken, *begun(program, folder, 1, *flags, launcher=lambda *_: torchrun(2, 3, port))])
    assert codes == [0, 0, 0] and not told, told
