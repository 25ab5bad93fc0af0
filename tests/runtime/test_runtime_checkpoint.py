"""Checkpoints: safetensors files that others read, and that are refused whole when anything about them is wrong."""

import os
import struct

import numpy as np
import pytest

from fake_data import pack, tensors, unpack, weights_alone

pytest_plugins = ["fake_model"]

BAD_DATA, NO_INPUT, CANT_CREATE = 65, 66, 73


@pytest.fixture
def saved(fake, folder):
    """saved: the bytes of a checkpoint, also in the folder as `good`."""
    fake(folder, "--save", "good", "--quiet")
    return (folder / "good").read_bytes()


@pytest.fixture
def theirs(saved, folder):
    """The weights alone, as others write them: without a checksum, so that every other check has its turn."""
    (folder / "theirs").write_bytes(weights_alone(saved))
    return weights_alone(saved)


def test_form(saved):
    header, data = unpack(saved)
    metadata = header.pop("__metadata__")
    assert metadata["format"] == "pt" and metadata["mtc.model_hash"] == "0123abcd" and metadata["mtc.step"] == "78"
    assert metadata["mtc.param.lr"] == "0.5" and metadata["mtc.param.side"] == "4" and metadata["mtc.weights"] == "2"
    assert all(isinstance(value, str) for value in metadata.values())
    assert header == {"logits.weight": {"dtype": "F32", "shape": [3, 16], "data_offsets": [0, 192]},
                      "logits.bias": {"dtype": "F32", "shape": [3], "data_offsets": [192, 204]},
                      "logits.weight.momentum": {"dtype": "F32", "shape": [3, 16], "data_offsets": [204, 396]}}
    assert len(data) == 396 and (len(saved) - 396) % 64 == 0


def test_others_read_it(saved, folder):
    safetensors = pytest.importorskip("safetensors.numpy")
    read, own = safetensors.load_file(folder / "good"), tensors(saved)
    assert read.keys() == own.keys() and all(np.array_equal(read[name], own[name]) for name in own)


def test_it_reads_what_others_write(saved, fake, folder):
    safetensors = pytest.importorskip("safetensors.numpy")
    expected = fake(folder, "eval", "--load", "good")
    weights = {name: values for name, values in tensors(saved).items() if "momentum" not in name}
    safetensors.save_file(weights, folder / "others")
    assert fake(folder, "eval", "--load", "others") == expected


def test_round_trip(saved, fake, folder):
    fake(folder, "--init-from", "good", "--save", "again", "--lr", "0", "--limit-steps", "1", "--quiet")
    assert unpack((folder / "again").read_bytes())[1][:192] == unpack(saved)[1][:192]


def test_order_of_the_header_does_not_matter(theirs, fake, folder):
    header, data = unpack(theirs)
    (folder / "turned").write_bytes(pack(dict(reversed(header.items())), data))
    assert fake(folder, "eval", "--load", "turned") == fake(folder, "eval", "--load", "good")


def test_double_program(fake, fake_double, folder):
    fake(folder, "--save", "single", "--quiet")
    fake_double(folder, "--save", "double", "--quiet")
    header, data = unpack((folder / "double").read_bytes())
    assert header["logits.weight"]["dtype"] == "F64" and len(data) == 792
    assert fake_double(folder, "eval", "--load", "double").split()[5] == fake(folder, "eval", "--load", "single").split()[5]
    assert "accuracy" in fake_double(folder, "eval", "--load", "single")
    assert fake(folder, "eval", "--load", "double").split()[5] == fake(folder, "eval", "--load", "single").split()[5]


def test_predictions_of_a_double_program(fake_double, fake, folder):
    fake(folder, "--save", "w", "--quiet")
    for program, name in ((fake, "single.npy"), (fake_double, "double.npy")):
        program(folder, "predict", "--load", "w", "--output", name)
    single, double = np.load(folder / "single.npy"), np.load(folder / "double.npy")
    assert single.shape == double.shape == (50, 3) and np.allclose(single, double, atol=1e-6)


# ---- what is wrong with a file -> what the message says ----


def entry(change):
    def damage(content):
        header, data = unpack(content)
        change(header)
        return pack(header, data)

    return damage


def put(name, key, value):
    return entry(lambda header: header[name].__setitem__(key, value))


def text(old, new):
    def damage(content):
        length = struct.unpack("<Q", content[:8])[0]
        header = content[8:8 + length].replace(old, new, 1)
        return pack(header, content[8 + length:])

    return damage


def rename(old, new):
    return entry(lambda header: header.__setitem__(new, header.pop(old)))


BAD = {
    "empty": (lambda content: b"", ["0 bytes, fewer than the 8"]),
    "seven bytes": (lambda content: content[:7], ["7 bytes, fewer than the 8"]),
    "pickle": (lambda content: b"\x80\x02}q\x00X\x0d\x00" + content, ["not a safetensors file, but a Python pickle"]),
    "header over 100 MB": (lambda content: struct.pack("<Q", 100000001) + content[8:], ["100000001 bytes", "at most 100000000"]),
    "header cut off": (lambda content: content[:60], ["cut off", "its header has"]),
    "data cut off": (lambda content: content[:-1], ["cut off", "'logits.bias' ends at byte 204 of the data, which has 203"]),
    "trailing bytes": (lambda content: content + b"abc", ["3 bytes at its end belong to no tensor"]),
    "no JSON": (lambda content: pack(b"hello" + b" " * 59, content[-204:]), ["bad JSON at byte 0"]),
    "header is a list": (lambda content: pack(b"[]", content[-204:]), ["not a JSON object"]),
    "unclosed object": (lambda content: pack(b'{"a":', content[-204:]), ["bad JSON at byte 5", "expected a value"]),
    "unclosed string": (text(b'"logits.bias":{"dtype":"F32","shape":[3],"data_offsets":[192,204]}}', b'"logits.bias'), ["a string without end"]),
    "bad escape": (text(b"pt", b"\\x"), ["unknown escape"]),
    "bad number": (text(b"[3,16]", b"[03,16]"), ["malformed number"]),
    "NUL in a name": (text(b"pt", b"\\u0000"), ["not a character that a name can hold"]),
    "not UTF-8": (text(b"pt", b"\xff\xff"), ["not UTF-8"]),
    "control character": (text(b"pt", b"p\n"), ["control character"]),
    "deep": (lambda content: pack(b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", b""), ["nested too deeply"]),
    "duplicate name": (text(b"logits.bias", b"logits.weight"), ['"logits.weight" occurs twice']),
    "after the end": (text(b"204]}}", b"204]}},"), ["more after the end"]),
    "no dtype": (entry(lambda header: header["logits.bias"].pop("dtype")), ["'logits.bias'", 'no "dtype"']),
    "unknown dtype": (put("logits.bias", "dtype", "F33"), ["'logits.bias'", 'no "dtype" of the format']),
    "no shape": (entry(lambda header: header["logits.bias"].pop("shape")), ['no "shape"']),
    "negative size": (put("logits.bias", "shape", [-3]), ["no size"]),
    "fractional size": (put("logits.bias", "shape", [3.0]), ["no size"]),
    "rank 9": (put("logits.bias", "shape", [1] * 9), ["more than 8 dimensions"]),
    "overflowing shape": (put("logits.bias", "shape", [2**62, 2**62]), ["larger than the file"]),
    "no offsets": (entry(lambda header: header["logits.bias"].pop("data_offsets")), ["data_offsets"]),
    "one offset": (put("logits.bias", "data_offsets", [192]), ["data_offsets"]),
    "three offsets": (put("logits.bias", "data_offsets", [192, 204, 204]), ["data_offsets"]),
    "offsets reversed": (put("logits.bias", "data_offsets", [204, 192]), ["data_offsets"]),
    "offset past the end": (put("logits.bias", "data_offsets", [192, 2**40]), ["cut off"]),
    "size and offsets differ": (put("logits.bias", "shape", [2]), ["[2] of type F32 needs 8 bytes", "span 12"]),
    "overlap": (put("logits.bias", "data_offsets", [180, 192]), ["'logits.weight' and 'logits.bias' overlap"]),
    "hole": (lambda content: entry(lambda header: header["logits.bias"].__setitem__("data_offsets", [196, 208]))(content) + b"1234",
             ["4 bytes before tensor 'logits.bias'"]),
    "not an object": (entry(lambda header: header.__setitem__("logits.bias", 3)), ["not described by an object"]),
    "missing tensor": (lambda content: pack({"logits.weight": unpack(content)[0]["logits.weight"]}, unpack(content)[1][:192]),
                       ["does not hold the weights of this model", "logits.bias: is missing"]),
    "other name": (rename("logits.bias", "logit.bias"), ["logits.bias: is missing", "logit.bias: is no weight of this model"]),
    "a state's name": (rename("logits.bias", "logits.weight.momentum"), ["logits.weight.momentum: is a state of the training, where weights alone are taken"]),
    "another optimizer's state": (rename("logits.bias", "logits.weight.square"),
                                  ["logits.weight.square: is no weight of this model, but a state of one, by its name"]),
    "other shape": (put("logits.weight", "shape", [16, 3]), ["logits.weight: expected [3, 16] of type F32, found [16, 3] of type F32"]),
    "other type": (put("logits.weight", "dtype", "I32"), ["found [3, 16] of type I32"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_checkpoint(case, theirs, fake, folder):
    damage, says = BAD[case]
    (folder / "bad").write_bytes(damage(theirs))
    message = fake(folder, "--init-from", "bad", "--save", "out", "--epochs", "1", code=BAD_DATA)
    assert "bad" in message
    for part in says:
        assert part in message
    assert not (folder / "out").exists()


@pytest.mark.parametrize("begin, name", [
    (b"PK\3\4\0\0\10\10", "a zip archive, as torch.save writes it (.pt, .pth)"),
    (b"\x80\2\x8a\nl\xfc\x9cF\xf9", "a Python pickle, as older versions of torch.save write it (.pt, .pth)"),
    (b"\x80\4\x95\0\0\0\0\1", "a Python pickle"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes it (.h5)"),
    (b"\x08\x08\x12\x07pytorch", "a network of ONNX (.onnx)"),
])
def test_weights_in_another_format(begin, name, fake, folder):
    (folder / "m.pth").write_bytes(begin + bytes(100))
    message = fake(folder, "eval", "--load", "m.pth", code=BAD_DATA)
    assert f"m.pth: is not a safetensors file, but {name}\n" in message
    torch = 'from PyTorch: safetensors.torch.save_file(model.state_dict(), "x.safetensors")'
    others = {b"P": "mtc weights m.pth -o x.safetensors makes one of it",
              b"\x08": "mtc import m.pth -o x.mt writes a model of it, and beside that its weights, x.safetensors"}
    assert others.get(begin[:1], torch) in message


def test_doubles_become_floats(theirs, fake, folder):
    header, data = unpack(theirs)
    header["logits.bias"].update(dtype="F64", data_offsets=[192, 216])
    bias = np.frombuffer(data[192:204], "<f4")
    (folder / "wide").write_bytes(pack(header, data[:192] + bias.astype("<f8").tobytes()))
    assert fake(folder, "eval", "--load", "wide") == fake(folder, "eval", "--load", "good")
    fake(folder, "--init-from", "wide", "--quiet")


def renamed(theirs, change):
    header, data = unpack(theirs)
    return pack({change(name) if name != "__metadata__" else name: entry for name, entry in header.items()}, data)


@pytest.mark.parametrize("flags", [[], ["--partial"]])
def test_names_with_a_prefix(flags, theirs, fake, folder):
    (folder / "module").write_bytes(renamed(theirs, lambda name: f"net.model.{name}"))
    message = fake(folder, "--init-from", "module", *flags, code=BAD_DATA)
    assert "this model: 2 missing, 2 unexpected\n" in message
    assert "logits.bias: is missing" in message and "net.model.logits.bias: is no weight of this model" in message
    assert "the file's names begin with 'net.model.': without it, 2 of them fit" in message
    assert ("nothing of module fits this model" in message) == bool(flags)


def test_many_differences(theirs, fake, folder):
    header, data = unpack(theirs)
    header.update({f"other.{i:02}": {"dtype": "F32", "shape": [0], "data_offsets": [204, 204]} for i in range(12)})
    (folder / "many").write_bytes(pack(header, data))
    message = fake(folder, "eval", "--load", "many", code=BAD_DATA)
    assert "12 unexpected\n" in message and message.count("is no weight") == 5 and "  and 7 more that are unexpected\n" in message
    assert "begin with" not in message


def test_missing_checkpoint(fake, folder):
    assert "none: cannot open: No such file" in fake(folder, "eval", "--load", "none", code=NO_INPUT)


# ---- writing ----


def test_unwritable_is_found_before_training(fake, folder):
    for path, why in (("no/such/folder", "there is no folder 'no/such'"), ("fake", "Is a directory")):
        message = fake(folder, "--save", path, "--epochs", "1", code=CANT_CREATE)
        assert f"{path}: cannot write: {why}" in message and "epoch" not in message


def test_full_disk_keeps_the_old_file(fake, folder):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    assert "/dev/full: cannot write: No space left" in fake(folder, "--save", "/dev/full", "--quiet", code=74)


def test_links_are_followed(fake, folder, saved):
    (folder / "link").symlink_to("target")
    (folder / "target").write_bytes(b"")
    fake(folder, "--save", "link", "--quiet")
    assert (folder / "link").is_symlink() and (folder / "target").read_bytes() == saved


def test_no_temporary_files_stay(fake, folder, saved):
    assert sorted(path.name for path in folder.path.iterdir()) == ["fake", "good", "good-best.safetensors"]


def test_a_link_stays_and_its_file_is_replaced(saved, fake, folder):
    (folder / "link").symlink_to("good")
    old = (folder / "good").stat().st_ino
    fake(folder, "--save", "link", "--seed", "5", "--quiet")
    assert (folder / "link").is_symlink() and (folder / "good").read_bytes() != saved
    assert (folder / "good").stat().st_ino != old  # a new file, never one half written
