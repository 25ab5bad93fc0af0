"""Where the search for a bad number goes back to: copies on the device, one on the host, or the weights drawn again."""

import ctypes

import pytest

from fake_data import examples
from test_runtime_abi import BAD_DATA, TRAIN, Session

pytest_plugins = ["fake_model"]

NONE, FROM_THE_DRAWN, EACH_CHUNK = None, "1e9", "0"  # on the device; on the host, once in so many seconds


@pytest.fixture(params=[NONE, FROM_THE_DRAWN, EACH_CHUNK, "0.0001"], ids=str)
def kept(request, monkeypatch):
    if request.param:
        monkeypatch.setenv("MTC_SNAPSHOT_SECONDS", request.param)
    return {"MTC_SNAPSHOT_SECONDS": request.param} if request.param else {}


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 16, 27, 40])
def test_the_step_of_a_bad_update(step, kept, fake, folder):
    message = fake(folder, "--poison", step, code=BAD_DATA, env=kept)
    assert f"the loss of step {step + 1} " in message
    assert f"first bad tensor is the weight 'logits.weight': element [1, 5] is NaN, in step {step}\n" in message


def test_the_value_that_overflows(kept, fake, folder):
    message = fake(folder, "--lr", "1e38", code=BAD_DATA, env=kept)
    assert "first bad tensor is the value 'logits': element [" in message and "in step 2\n" in message


def test_a_training_that_was_resumed(kept, fake, folder):
    fake(folder, "--limit-steps", 30, "--save", "w", "--quiet")
    message = fake(folder, "--resume", "w", "--poison", 35, "--limit-steps", 50, code=BAD_DATA, env=kept)
    assert "first bad tensor is the weight 'logits.weight': element [1, 5] is NaN, in step 35\n" in message


def begun(library, seed=1):
    session = Session(library, seed)
    assert session.code == 0 and session.give(TRAIN, *examples(203)) == 0
    return session


def test_params_of_each_step(kept, fake_library):
    """Steps that are repeated have the params that they had: with the last ones, all would have gone otherwise."""
    session = begun(fake_library)
    for _ in range(3):
        assert session.steps(9)[0] == 0
    assert session.set_knob(b"lr", ctypes.c_double(1e38)) == 0
    assert session.steps(9)[0] == BAD_DATA
    assert "first bad tensor is the value 'logits': element [" in session.message() and "in step 29\n" in session.message()
    session.destroy()


def test_params_behind_a_checkpoint_of_before(kept, fake_library, tmp_path):
    """What steps had that a session has gone back from says nothing of the same steps done anew."""
    session, file = begun(fake_library), str(tmp_path / "w").encode()
    assert session.set_knob(b"lr", ctypes.c_double(0)) == 0 and session.steps(9)[0] == 0 and session.save(file) == 0
    assert session.steps(9)[0] == 0 and session.set_knob(b"lr", ctypes.c_double(0.01)) == 0 and session.steps(9)[0] == 0
    assert session.resume(file) == 0 and session.set_knob(b"lr", ctypes.c_double(1e38)) == 0
    assert session.steps(5)[0] == BAD_DATA
    assert "first bad tensor is the value 'logits': element [" in session.message() and "in step 11\n" in session.message()
    session.destroy()


def test_weights_that_were_set(kept, fake_library):
    """What a copy has is of no use once somebody has written other weights."""
    session = begun(fake_library)
    assert session.steps(9)[0] == 0
    weight = session.tensor("logits.weight", 3, 16)
    weight[2, 7] = 3e38
    assert session.set(b"logits.weight", weight.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(weight.nbytes)) == 0
    assert session.steps(9)[0] == BAD_DATA
    assert "first bad tensor is the value 'logits': element [" in session.message() and "in step 10\n" in session.message()
    session.destroy()


def test_same_bytes_wherever_copies_are(fake, folder):
    for i, seconds in enumerate((NONE, FROM_THE_DRAWN, EACH_CHUNK)):
        fake(folder, "--save", f"w{i}", "--quiet", env={"MTC_SNAPSHOT_SECONDS": seconds} if seconds else {})
    assert len({(folder / f"w{i}").read_bytes() for i in range(3)}) == 1
