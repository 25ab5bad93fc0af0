"""Event files for TensorBoard, read by a decoder of our own: records with checksums, protocol buffers in them."""

import json
import re
import resource
import signal
import socket
import struct
import subprocess
import time

import pytest

pytest_plugins = ["fake_model"]

CANT_CREATE, IO = 73, 74
POLYNOMIAL = 0x11EDC6F41  # Castagnoli's


def reflected(value, bits):
    return int(f"{value:0{bits}b}"[::-1], 2)


def crc32c(data):
    """Division of polynomials as the definition has it: of the reflected bits, inverted before and after."""
    bits = int.from_bytes(bytes(reflected(byte, 8) for byte in data), "big") << 32
    bits ^= 0xFFFFFFFF << (8 * len(data))
    for position in range(8 * len(data) - 1, -1, -1):
        if bits >> (position + 32) & 1:
            bits ^= POLYNOMIAL << position
    return reflected(bits, 32) ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        length, crc = struct.unpack_from("<QI", data)
        assert crc == masked(data[:8])
        body, end = data[12:12 + length], 12 + length + 4
        assert len(data) >= end and struct.unpack_from("<I", data, 12 + length)[0] == masked(body)
        yield body
        data = data[end:]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) of a message: integers, eight or four bytes, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def read_events(path):
    events = []
    for body in records(path.read_bytes()):
        event = dict(fields(body))
        values = {}
        for _, value in fields(event.get(5, b"")):
            value = dict(fields(value))
            values[value[1].decode()] = struct.unpack("<f", value[2])[0]
        events.append((struct.unpack("<d", event[1])[0], event.get(2), event.get(3), values))
    return events


def event_file(folder):
    path, = folder.iterdir()
    return path


def test_checksum():
    assert crc32c(b"123456789") == 0xE3069283


def test_events(fake, folder):
    before = time.time()
    fake(folder, "--epochs", "2", "--log-every", "5", "--log", "log", "--tensorboard", "runs/one", "--quiet")
    path = event_file(folder / "runs/one")
    name = re.fullmatch(r"events\.out\.tfevents\.(\d+)\.(.+)\.\d+", path.name)
    assert before - 1 <= int(name[1]) <= time.time() and name[2] == socket.gethostname()
    first, *events = read_events(path)
    assert first[1:] == (None, b"brain.Event:2", {})
    assert all(before <= event[0] <= time.time() for event in (first, *events))
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    lines = [line for line in lines if line["event"] in ("train", "epoch")]
    assert [step for _, step, _, _ in events] == [line["step"] for line in lines]
    for (_, _, _, values), line in zip(events, lines):
        group = "train" if line["event"] == "train" else "train_epoch"
        expected = {f"{group}/{name}": line[name] for name in ("loss", "accuracy")}
        if line["event"] == "epoch":
            expected |= {f"test/{name}": line[f"test_{name}"] for name in ("loss", "accuracy")}
        assert values == pytest.approx(expected, rel=1e-6)


def test_without_a_log(fake, folder):
    fake(folder, "--epochs", "1", "--tensorboard", "runs", "--quiet")
    assert len(read_events(event_file(folder / "runs"))) == 10


def test_steps_beyond_one_byte(fake, folder):
    fake(folder, "--epochs", "20", "--tensorboard", "runs/", "--log-every", "400", "--quiet")
    assert 400 in [step for _, step, _, _ in read_events(event_file(folder / "runs"))]


def test_folder_that_cannot_be_made(fake, folder):
    (folder / "file").write_text("")
    message = fake(folder, "--tensorboard", "file/runs", code=CANT_CREATE)
    assert "file/runs/events.out.tfevents" in message and "cannot write: Not a directory" in message


def test_disk_full(fake, folder):
    """The weights are saved all the same."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    command = [fake.program, "--tensorboard", "runs", "--log-every", "1", "--save", "w", "--quiet"]
    done = subprocess.run(command, cwd=folder.path, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == IO and "cannot write: File too large" in done.stderr and "events.out.tfevents" in done.stderr
    assert done.stderr.count("warning: the events are incomplete from here on") == 1
    assert fake(folder, "eval", "--load", "w").startswith("test: 50 examples")


def test_diverged_training_keeps_its_events(fake, folder):
    fake(folder, "--tensorboard", "runs", "--poison", "30", code=65)
    assert read_events(event_file(folder / "runs"))
