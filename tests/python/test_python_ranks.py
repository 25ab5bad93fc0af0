"""Several processes that train one model from Python: the bytes of one process, callbacks as ever, and nothing left behind, whatever ends them."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from python_package import BLOBS, blobs

import mtc
from conftest import MTC, ROOT

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]

DATA, VALIDATION = blobs(203), blobs(100, 1)
SOON = 10  # seconds, in which a lost process must be told


def compiled(**options):
    return mtc.compile(BLOBS, target="cpu", seed=3, **options)


def workers():
    """The processes that this one has started as ranks, also those that have ended and were not waited for."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            zombie = not (folder / "cmdline").read_bytes()
            if parent == os.getpid() and (zombie or b"mtc.rank" in (folder / "cmdline").read_bytes()):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def open_files():
    """Sockets, pipes and memory that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # that of the listing
            continue
    return sorted(each for each in found if each.startswith(("socket:", "pipe:", "/memfd:mtc")))


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = open_files()
    yield
    assert not workers() and open_files() == before


def fitted(options, **more):
    """A model that was trained, its history, and its checkpoint."""
    with compiled(**options) as model:
        history = model.fit(*DATA, **{"epochs": 3, "validation_data": VALIDATION, "verbose": 0, **more})
        return dict(history), model.dumps(), model.evaluate(*VALIDATION), model.predict(VALIDATION[0])


def same(*results):
    return all(first[:3] == results[0][:3] and np.array_equal(first[3], results[0][3]) for first in results)


@pytest.mark.parametrize("shards", [2, 4])
def test_processes_train_to_the_bytes_of_one(shards):
    assert same(*(fitted({"shards": shards, **count}) for count in ({}, {"processes": 1}, {"processes": 2})))


def test_another_fit_goes_on(tmp_path):
    results = []
    for options in {"shards": 2}, {"processes": 2}:
        with compiled(**options) as model:
            model.fit(*DATA, epochs=1, verbose=0)
            assert model.predict(DATA[0]).shape == (203,)
            model.fit(*DATA, epochs=2, verbose=0, checkpoint=tmp_path / "c.safetensors")
            results.append(model.dumps())
        os.remove(tmp_path / "c.safetensors")
    assert results[0] == results[1]


class Meddler(mtc.Callback):
    """Does in a pause what a callback may do."""

    def __init__(self):
        self.seen = []

    def on_epoch(self, model, epoch, logs):
        self.seen += [model.evaluate(*DATA), model.evaluate(split="validation"), model.predict(DATA[0][:20]).tolist()]
        if epoch == 1:
            model.set(lr=0.02)
        if epoch == 2:
            model.load_state_dict({"h.bias": np.full(8, 0.1, "f4")}, strict=False)
        if epoch == 3:
            model.params["scores.bias"][:] = 0.5  # where it lies


def test_what_a_callback_changes_all_ranks_get():
    alone, together = Meddler(), Meddler()
    assert same(fitted({"shards": 2}, epochs=5, callbacks=alone), fitted({"processes": 2}, epochs=5, callbacks=together))
    assert alone.seen == together.seen and len(alone.seen) == 15


def test_early_stopping_gives_the_best_weights_back():
    rule = {"epochs": 40, "early_stopping": mtc.EarlyStopping(monitor="val_loss", patience=2)}
    alone, together = fitted({"shards": 2}, **rule), fitted({"processes": 2}, **rule)
    assert len(alone[0]["loss"]) < 40 and same(alone, together)


def test_the_models_own_files(tmp_path):
    for name, (x, y) in ("train", DATA), ("test", VALIDATION):
        np.savez(tmp_path / f"{name}.npz", x=x, y=y)
    results = []
    for options in {"shards": 2}, {"processes": 2}:
        with compiled(**options) as model:
            results.append((dict(model.fit(epochs=2, data=tmp_path, verbose=0)), model.dumps()))
    assert results[0] == results[1] and "val_loss" in results[0][0]


def test_an_exception_of_a_callback_is_raised():
    began = []

    def fails(model, epoch, logs):
        began.extend(workers())
        raise LookupError("of the callback")

    with compiled(processes=2) as model:
        with pytest.raises(LookupError, match="of the callback"):
            model.fit(*DATA, epochs=3, verbose=0, callbacks=fails)
        assert len(began) == 1 and not workers()
        assert model.fit(*DATA, epochs=1, verbose=0).epochs == [2]


def test_ctrl_c(hears_ctrl_c):
    def interrupts(model, epoch, logs):
        signal.raise_signal(signal.SIGINT)

    with compiled(processes=2) as model:
        with pytest.raises(KeyboardInterrupt, match="at the end of epoch 1"):
            model.fit(*DATA, epochs=3, verbose=0, callbacks=interrupts)
        assert not workers() and model.history.stopped == "interrupted"


def test_a_process_that_is_killed_is_told():
    killed = []

    def kills(model, epoch, logs):
        if not killed:
            killed.extend([time.monotonic(), *workers()])
            os.kill(killed[1], signal.SIGKILL)

    with compiled(processes=2) as model:
        with pytest.raises(mtc.ProcessError, match="rank 1 of 2 was ended by SIGKILL"):
            model.fit(*DATA, epochs=1000000, verbose=0, callbacks=kills)
        assert time.monotonic() - killed[0] < SOON and not workers()
        model.fit(*DATA, epochs=1000000, verbose=0, callbacks=lambda *_: True)


def test_a_process_that_is_killed_in_the_midst_of_steps():
    def kill():
        while not workers():
            time.sleep(0.01)
        os.kill(workers()[0], signal.SIGKILL)

    with compiled(processes=2) as model:
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(mtc.ProcessError, match="rank 1 of 2 was ended by SIGKILL"):
            model.fit(*DATA, epochs=1000000, verbose=0)
        killer.join()


def test_a_process_that_hangs_is_told(monkeypatch):
    from mtc import ranks

    monkeypatch.setitem(ranks._HANGS_SECONDS, "cpu", 0.5)
    monkeypatch.setattr(ranks, "_END_SECONDS", 0.2)
    with compiled(processes=2) as model:
        with pytest.raises(mtc.ProcessError, match="(?s)rank 0 of 2 .* waits for rank 1 .*nothing came.*resume=FILE"):
            model.fit(*DATA, epochs=1000000, verbose=0, callbacks=lambda *_: os.kill(workers()[0], signal.SIGSTOP))
        assert not workers()


def test_a_resumed_training_goes_on(tmp_path):
    """As it would on one, from a checkpoint of several or of one."""
    with compiled(shards=2) as first:
        first.fit(*DATA, epochs=1, verbose=0)
        whole = first.dumps()
    results = []
    for options in {"shards": 2}, {"processes": 2}:
        with compiled(**options) as model:
            model.loads(whole)
            model.fit(*DATA, epochs=2, verbose=0, callbacks=lambda model, epoch, logs: epoch == 2, checkpoint=tmp_path / "c.safetensors")
            results.append(model.fit(*DATA, epochs=4, verbose=0, resume=tmp_path / "c.safetensors").epochs)
            results.append(model.dumps())
        os.remove(tmp_path / "c.safetensors")
    assert results[:2] == results[2:] and results[0] == [3, 4]


def test_none_outlives_the_one_that_started_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(paths=[str(ROOT / "python"), str(ROOT / "tests" / "support"), str(ROOT / "tests")], epochs=1000000, verbose=2))
    job = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert "begins" in job.stdout.readline() and "epoch" in job.stdout.readline()
    ranks = [int(each) for each in subprocess.run(["pgrep", "-P", str(job.pid), "-f", "mtc.rank"], capture_output=True, text=True).stdout.split()]
    job.kill()
    job.communicate(timeout=60)
    until = time.monotonic() + SOON
    while any(Path(f"/proc/{pid}").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text() for pid in ranks) and time.monotonic() < until:
        time.sleep(0.02)
    assert len(ranks) == 1 and time.monotonic() < until


SCRIPT = """
import sys
sys.path[:0] = {paths}
import mtc
from python_package import BLOBS, blobs
print("it begins", flush=True)
with mtc.compile(BLOBS, target="cpu", processes=2) as model:
    history = model.fit(*blobs(203), epochs={epochs}, verbose={verbose})
print("loss", history["loss"][-1] < 1)
"""


def test_a_script_needs_no_guard(tmp_path):
    """Nothing of the user's program is run again, and what lies in its folder is not taken for a module of Python."""
    (tmp_path / "json.py").write_text("raise ImportError('of the user')")
    script = tmp_path / "sub" / "script.py"
    script.parent.mkdir()
    script.write_text(SCRIPT.format(paths=[str(ROOT / "python"), str(ROOT / "tests" / "support"), str(ROOT / "tests")], epochs=1, verbose=0))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "it begins\nloss True\n"), done.stderr


def test_what_the_others_cannot_do_is_told(monkeypatch):
    """A fault of another rank is the exception that it would be here."""
    from mtc import ranks

    monkeypatch.setattr(ranks, "_START", "import sys; sys.stderr.write('no such device'); sys.exit(69)")
    with compiled(processes=2) as model:
        with pytest.raises(mtc.DeviceError, match="rank 1 of 2: no such device"):
            model.fit(*DATA, epochs=1, verbose=0)
        assert not workers()


def test_training_that_diverges_is_told_once():
    with compiled(processes=2) as model:
        model.load_state_dict({"scores.weight": np.full((3, 8), 3e38, "f4")}, strict=False)
        with pytest.raises(mtc.DivergedError, match="^training diverged"):
            model.fit(*DATA, epochs=1, verbose=0)


def test_two_models_at_once_in_threads():
    """Of one library: what ranks have joined is their thread's."""
    results = {}

    def run(name, options):
        results[name] = fitted(options, epochs=4)

    threads = [threading.Thread(target=run, args=each) for each in (("a", {"processes": 2}), ("b", {"processes": 2}), ("c", {"shards": 2}))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert same(*results.values()) and len(results) == 3


@pytest.mark.parametrize("options, message", [
    ({"gpus": 2}, "gpus=2 is of the target 'cuda'.*processes=2"),
    ({"gpus": 2, "processes": 2}, "give one of them"),
    ({"processes": 2, "shards": 3}, "2 processes cannot have equally many of 3 shards"),
    ({"processes": 0}, "processes"),
    ({"processes": 2, "sums": "nccl"}, "gpus says how many"),
    ({"sums": "mpi"}, "sums is 'peers', 'nccl' or 'host'"),
    ({"target": "cuda", "processes": 2}, "gpus=2 trains"),
    ({"target": "cuda", "gpus": 2, "device": 1}, "CUDA_VISIBLE_DEVICES"),
])
def test_what_no_model_has(options, message):
    with pytest.raises(mtc.UsageError, match=message):
        mtc.compile(BLOBS, **{"target": "cpu", **options})


def test_fit_says_where_they_are_chosen():
    with compiled(shards=2) as model, pytest.raises(TypeError, match="said when a model is made.*gpus=2"):
        model.fit(*DATA, gpus=2)


def test_networks_have_them_too():
    results = []
    for options in {"shards": 2}, {"processes": 2}:
        network = mtc.Sequential([mtc.Linear(6, 8), mtc.ReLU(), mtc.Linear(8, 3)], batch=16, target="cpu", seed=1, **options)
        network.fit(DATA[0].reshape(203, 6), DATA[1], epochs=2, verbose=0)
        results.append(network.dumps())
        network.close()
    with mtc.NeuralNetworkGPU(6, 8, 3, target="cpu", seed=1, processes=2) as network:
        network.fit(DATA[0].reshape(203, 6), DATA[1], epochs=1, verbose=0)
    assert results[0] == results[1]


def test_estimators_have_them_too():
    """With what one process comes to, to rounding; they go where the estimator goes."""
    X, y = DATA[0].reshape(203, 6), DATA[1]
    alone, together = (mtc.Classifier(8, target="cpu", random_state=1, epochs=3, **options).fit(X, y) for options in ({}, {"processes": 2}))
    assert together.get_params()["processes"] == 2 and pickle.loads(pickle.dumps(together))._trained.plan.processes == 2
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-5)
    with pytest.raises(mtc.UsageError, match="gpus=2 is of the target 'cuda'"):
        mtc.Regressor(8, target="cpu", gpus=2).fit(X, y)
