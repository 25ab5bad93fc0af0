"""mtc weights: files of torch.save as safetensors. They are written by Python's zipfile and pickle (torch_files.py), and by PyTorch where it
is installed."""

import argparse
import collections
import datetime
import enum
import io
import os
import pathlib
import pickle
import resource
import struct
import subprocess
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

from conftest import MTC
from fake_data import pack, unpack
from torch_files import PARAMETER, REBUILD, Built, Call, Name, Storage, archive, members_of, parameter, pickled, saved, tensor, view

pytestmark = pytest.mark.quick
USAGE, BAD_DATA, NO_INPUT, CANT_CREATE = 64, 65, 66, 73
TYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
         "BOOL": "?"}
MEMORY = 1 << 30  # of the process: more than any file here may ask for


def call(folder, *args):
    def bounded():
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    return subprocess.run([MTC, "weights", *map(str, args)], cwd=folder, env={**os.environ, "NO_COLOR": "1"}, capture_output=True,
                          text=True, timeout=60, preexec_fn=bounded)


def read(path):
    header, data = unpack(path.read_bytes())
    assert header.pop("__metadata__") == {"format": "pt"}
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


def convert(folder, content, *flags):
    """The tensors, and what was said."""
    (folder / "m.pt").write_bytes(content)
    done = call(folder, "m.pt", "-o", "m.safetensors", *flags)
    assert done.returncode == 0, done.stderr
    return read(folder / "m.safetensors"), done.stderr


def refused(folder, content, *flags, code=BAD_DATA):
    (folder / "m.pt").write_bytes(content)
    done = call(folder, "m.pt", "-o", "m.safetensors", *flags)
    assert done.returncode == code and not done.stdout, done
    assert os.listdir(folder) == ["m.pt"] or flags  # nothing is left of writing
    assert not (folder / "m.safetensors").exists()
    return done.stderr


def same(got, expected):
    assert list(got) == list(expected)
    for name, array in expected.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape and got[name].tobytes() == array.tobytes(), name


def numbers(*shape, kind="f4", seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 50).astype(kind)


WEIGHTS = OrderedDict([("fc.weight", numbers(3, 4)), ("fc.bias", numbers(3, seed=1)), ("norm.count", np.int64(7).reshape(()))])


def as_tensors(arrays):
    return OrderedDict((name, tensor(array)) for name, array in arrays.items())


# ---- tensors ----


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_state_dict(tmp_path, protocol):
    got, said = convert(tmp_path, saved(as_tensors(WEIGHTS), protocol))
    same(got, WEIGHTS)
    assert said == "m.safetensors: 3 tensors, 68 bytes\n"


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "b1"])
def test_types(tmp_path, kind):
    arrays = {"a": numbers(5, 3, kind=kind), "b": numbers(1, kind=kind)}
    same(convert(tmp_path, saved(as_tensors(arrays)))[0], arrays)


def test_bfloat16(tmp_path):
    bits = np.arange(6, dtype="<u2").reshape(2, 3) + 0x3f80
    same(convert(tmp_path, saved({"a": tensor(bits, "bf16")}))[0], {"a": bits})
    assert unpack((tmp_path / "m.safetensors").read_bytes())[0]["a"]["dtype"] == "BF16"


def test_parameters_and_attributes(tmp_path):
    """A state dict carries the versions of its modules as an attribute; a parameter wraps its tensor."""
    made = Built(Name("collections", "OrderedDict"), state={"_metadata": OrderedDict([("", {"version": 1})])})
    same(convert(tmp_path, saved({"a": parameter(WEIGHTS["fc.weight"])}))[0], {"a": WEIGHTS["fc.weight"]})
    state = {"empty": made, "model": as_tensors(WEIGHTS)}
    same(convert(tmp_path, saved(state))[0], WEIGHTS)


def test_views(tmp_path):
    """Slices, transposed and repeated rows of one storage, which others share; the file's order is that of the storages."""
    base, other = numbers(6, 8), numbers(4, seed=3)
    storage = Storage(base)
    state = OrderedDict([("whole", view(storage, 0, (6, 8), (8, 1))), ("other", tensor(other)), ("columns", view(storage, 2, (6, 3), (8, 1))),
                         ("turned", view(storage, 0, (8, 6), (1, 8))), ("every", view(storage, 9, (2, 3), (16, 2))),
                         ("repeated", view(storage, 5, (3, 4), (0, 1))), ("one", view(storage, 47, (), ())),
                         ("thick", view(storage, 0, (1, 6, 1, 8), (99, 8, 77, 1))), ("none", view(storage, 48, (0, 8), (8, 1)))])
    same(convert(tmp_path, saved(state))[0],
         {"whole": base, "columns": base[:, 2:5], "turned": base.T, 
          "every": np.array([[base.reshape(-1)[9 + 16 * i + 2 * j] for j in range(3)] for i in range(2)]),
          "repeated": np.broadcast_to(base.reshape(-1)[5:9], (3, 4)), "one": base.reshape(-1)[47].reshape(()), "thick": base.reshape(1, 6, 1, 8),
          "none": base[:0], "other": other})


def test_large_views(tmp_path):
    """Rows of more than a buffer, and single elements over more than one."""
    base = numbers(90, 700)
    storage = Storage(base)
    state = {"turned": view(storage, 0, (700, 90), (1, 700)), "rows": view(storage, 0, (2, 20000), (30000, 1)),
             "halves": view(storage, 350, (90, 350), (700, 1))}
    flat = base.reshape(-1)
    same(convert(tmp_path, saved(state))[0], {"turned": base.T.copy(), "rows": np.stack([flat[:20000], flat[30000:50000]]),
                                             "halves": base[:, 350:].copy()})


@pytest.mark.parametrize("how", [{"compression": zipfile.ZIP_DEFLATED}, {"folder": "été"}])
def test_archives(tmp_path, how):
    same(convert(tmp_path, saved(as_tensors(WEIGHTS), **how))[0], WEIGHTS)


def test_zip64(tmp_path):
    """Sizes and places of 64 bits, as in files of 4 GB."""
    with zipfile.ZipFile(tmp_path / "z", "w") as written:
        for name, content in members_of(as_tensors(WEIGHTS)).items():
            with written.open(f"a/{name}", "w", force_zip64=True) as member:
                member.write(content)
    same(convert(tmp_path, (tmp_path / "z").read_bytes())[0], WEIGHTS)


def test_many_tensors(tmp_path):
    arrays = {f"layers.{i}.weight": numbers(2, 3, seed=i) for i in range(1100)}  # batches of 1000 items
    same(convert(tmp_path, saved(as_tensors(arrays)))[0], arrays)


# ---- checkpoints ----


CHECKPOINT = {"epoch": 3, "lr": 0.1, "big": 1 << 100, "args": {"name": "r18", "sizes": [1, 2, (3, None)], "on": True},
              "model": as_tensors(WEIGHTS), "optimizer": {"state": {0: {"exp_avg": tensor(numbers(3, 4))}}, "param_groups": [{"lr": 0.1}]}}


def test_the_member_with_tensors_is_found(tmp_path):
    got, said = convert(tmp_path, saved(CHECKPOINT))
    same(got, WEIGHTS)
    assert "3 tensors, 68 bytes, of 'model'\n" in said


def test_members_by_key(tmp_path):
    twice = {**CHECKPOINT, "ema": {"a.b": tensor(numbers(2))}, "outer": {"inner": {"w": tensor(numbers(3))}}}
    message = refused(tmp_path, saved(twice))
    assert "m.pt: several of its members hold tensors: --key says which" in message
    assert "it holds 'epoch' (an int), 'lr' (a number), 'big' (a number), 'args' (a dict), 'model' (tensors), 'optimizer' (a dict)" in message
    same(convert(tmp_path, saved(twice), "--key", "ema")[0], {"a.b": numbers(2)})
    same(convert(tmp_path, saved(twice), "--key", "outer.inner")[0], {"w": numbers(3)})
    (tmp_path / "m.safetensors").unlink()
    assert "m.pt: has no member 'modle'\n  it holds 'epoch'" in refused(tmp_path, saved(twice), "--key", "modle")
    assert "m.pt: 'outer' holds no tensors\n  it holds 'inner' (tensors)" in refused(tmp_path, saved(twice), "--key", "outer")
    assert "m.pt: 'epoch' holds no tensors" in refused(tmp_path, saved(twice), "--key", "epoch")


def test_what_is_no_tensor_is_named(tmp_path):
    got, said = convert(tmp_path, saved({**as_tensors(WEIGHTS), "extra": [1], "version": 2, 7: None}))
    same(got, WEIGHTS)
    assert "not among them, since they are no tensors: extra (a list), version (an int), an int (None)\n" in said


# ---- names ----


def test_rules(tmp_path):
    names = ["module.layers.0.fc.weight", "module.layers.12.fc.weight", "module.head.bias", "module.mean", "n.num_batches_tracked"]
    (tmp_path / "rules").write_text("# names\n\n  *.num_batches_tracked ->   # counts\n"
                                    "module.layers.*.fc.* -> h.*.linear.*\r\nmodule.head.* -> out.*\nmodule.*->*\nmodule.none -> x\n")
    arrays = {name: numbers(2, seed=i) for i, name in enumerate(names)}
    got, said = convert(tmp_path, saved(as_tensors(arrays)), "--rename", "rules")
    same(got, dict(zip(["h.0.linear.weight", "h.12.linear.weight", "out.bias", "mean"], arrays.values())))
    assert "rules:7:1: warning: the rule matches no tensor that rules before it left\n" in said and said.count("warning") == 1
    assert "4 tensors, 32 bytes; 1 left out\n" in said


@pytest.mark.parametrize("rules, says", [
    ("a b\n", "rules:1:1: error: expected a rule: pattern -> replacement"),
    ("a -> b\n -> b\n", "rules:2:2: error: the rule has no pattern before ->"),
    ("*.a -> *.*\n", "rules:1:8: error: the replacement has 2 '*', and the pattern 1"),
    ("* -> same\n", "'fc.bias' and 'fc.weight' would both be called 'same'"),
    ("* ->\n", "m.pt: the rules leave every tensor out"),
    ("fc.bias -> __metadata__\n", "no tensor of safetensors can be called '__metadata__'"),
    ("a -> b\0", "'rules' is no text of rules"),
    (None, "cannot read 'rules'"),
])
def test_rules_that_are_wrong(tmp_path, rules, says):
    if rules is not None:
        (tmp_path / "rules").write_text(rules)
    (tmp_path / "m.pt").write_bytes(saved({"fc.weight": tensor(WEIGHTS["fc.weight"]), "fc.bias": tensor(WEIGHTS["fc.bias"])}))
    done = call(tmp_path, "m.pt", "-o", "m.safetensors", "--rename", "rules")
    assert done.returncode == BAD_DATA and says in done.stderr and not (tmp_path / "m.safetensors").exists(), done.stderr


# ---- what is refused ----


def with_pickle(description):
    return archive({**members_of(as_tensors(WEIGHTS)), "data.pkl": description})


def program(module, name):
    return saved({"a": Call(Name(module, name), "touch ran")})


ALONE = "what is read are tensors by their names: torch.save(model.state_dict()"


@pytest.mark.parametrize("content, says", [
    (program("os", "system"), "m.pt: holds no tensors\n  it holds 'a' (os.system)\n"),
    (program("builtins", "eval"), "'a' (builtins.eval)"),
    (saved({"epoch": 1, "net": Call(Name("mymodule", "Net"), tensor([1.0]))}, 4), f"'epoch' (an int), 'net' (mymodule.Net)\n  {ALONE}"),
    (saved(Built(Name("mymodule", "Net"), state={"weight": tensor([1.0])})), f"m.pt: holds mymodule.Net, not tensors by their names\n  {ALONE}"),
    (saved({"a": Call(Name("torch", "FloatStorage"), 3)}), f"REDUCE: it calls what is only to be named\n  {ALONE}"),
    (with_pickle(b"\x80\x02cos\x1b[31m\nx\n."), r"m.pt: holds os\x1b[31m.x, not"),
    (with_pickle(b"\x80\x02c__builtin__\n" + b"e" * 5000 + b"\n."), "holds __builtin__." + "e" * 100 + ","),
    (with_pickle(b"\x80\x02ccollections\nOrderedDict\n)\x81."), "at byte 28, NEWOBJ: no weights that torch.save writes need an object"),
    (with_pickle(b"\x80\x02(ios\nsystem\n."), "at byte 3, INST: no weights"),
])
def test_programs_are_not_run(tmp_path, content, says):
    assert says in refused(tmp_path, content)
    assert not (tmp_path / "ran").exists()


class Level(enum.Enum):
    HIGH = 1


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_stands_beside_weights(tmp_path, protocol):
    """Objects of any class are known by their names, and never made; what they hold is nobody's."""
    class_of = dict(args=argparse.Namespace(lr=0.1, state=tensor(numbers(2))), best=np.float64(0.5), history=np.arange(3), level=Level.HIGH,
                    counts=collections.Counter("aab"), table=collections.defaultdict(list, a=[tensor(numbers(2))]), queue=collections.deque([1]),
                    path=pathlib.PurePosixPath("/tmp/x"), when=datetime.date(2026, 1, 2), shape=Call(Name("torch", "Size"), (2, 3)),
                    dtype=Name("torch", "float32"), bomb=Call(Name("os", "system"), "touch ran"),
                    twice=Call(Call(Name("functools", "partial"), Name("os", "system")), "touch ran"),
                    config=Built(Name("omegaconf", "DictConfig"), state={"x": 1}))
    same(convert(tmp_path, saved({**class_of, "model": as_tensors(WEIGHTS)}, protocol))[0], WEIGHTS)
    few = {key: class_of[key] for key in ("args", "best", "counts", "bomb")}
    few["args"] = argparse.Namespace(lr=0.1)
    got, said = convert(tmp_path, saved({**few, **as_tensors(WEIGHTS)}, protocol))
    same(got, WEIGHTS)
    assert "no tensors: args (argparse.Namespace), best (numpy." in said and "counts (collections.Counter), bomb (os.system)\n" in said
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("value, says", [
    (Call(Name("torch._utils", "_rebuild_sparse_tensor"), (tensor([1.0]),)), "'b' is what torch._utils._rebuild_sparse_tensor makes of numbers in the"),
    (Call(PARAMETER, Call(Name("torch._utils", "_rebuild_qtensor"), Storage(np.zeros(4, "u1"))), True, {}), "'b' is what torch._utils._rebuild_qtensor makes"),
    (Built(Name("mine", "Scaled"), state={"x": tensor([1.0])}), "'b' is what mine.Scaled makes"),
    (view(Call(Name("mine", "storage"), Storage(np.zeros(4, "f4"))), 0, (4,), (1,)), "tensor 'b': its storage is not described as torch.save does it"),
])
def test_tensors_of_other_classes(tmp_path, value, says):
    message = refused(tmp_path, saved({"a": tensor([1.0]), "b": value}))
    assert f"m.pt: {says}" in message
    assert "storage" in says or "save it as a plain tensor: x.to_dense(), x.dequantize()" in message


def test_storages_of_other_types(tmp_path):
    complex_one = Storage(np.zeros(4, "f4"))
    complex_one.name = Name("torch", "ComplexFloatStorage")
    message = refused(tmp_path, saved({"a": view(complex_one, 0, (2,), (1,))}))
    assert "tensor 'a': its numbers are those of torch.ComplexFloatStorage, which are not read" in message


def without_checksums(content, but=()):
    """As torch.serialization.set_crc32_options(False) has them: 0."""
    content = bytearray(content)
    for info in zipfile.ZipFile(io.BytesIO(content)).infolist():
        if info.filename not in but:
            content[info.header_offset + 14:info.header_offset + 18] = bytes(4)
            entry = content.rindex(info.filename.encode()) - 46
            assert content[entry:entry + 4] == b"PK\1\2"
            content[entry + 16:entry + 20] = bytes(4)
    return bytes(content)


def test_archives_without_checksums(tmp_path):
    content = saved(as_tensors(WEIGHTS))
    same(convert(tmp_path, without_checksums(content))[0], WEIGHTS)
    (tmp_path / "m.safetensors").unlink()
    assert "is damaged: its checksum is another one" in refused(tmp_path, without_checksums(content, but=["archive/version"]))


DEEP = 200_000


@pytest.mark.parametrize("description, says", [
    (b"", "the pickle ends without STOP, after 0 bytes"),
    (b"\x80\x02}", "the pickle ends without STOP, after 3 bytes"),
    (b"\x80\x09}.", "at byte 0, PROTO: protocols go to 5"),
    (b"\xff.", "at byte 0: 0xff is no opcode of a pickle"),
    (b"].", "holds a list, not tensors by their names"),
    (b"}}.", "at byte 2, STOP: more than one value is left on the stack"),
    (b"(}.", "more than one value is left on the stack"),
    (b".", "at byte 0, STOP: the stack holds nothing that it could take"),
    (b"}(0.", "at byte 2, POP: the stack holds nothing"),
    (b"}s.", "SETITEM: the stack holds nothing"),
    (b"}]a.", "at byte 2, APPEND: what it adds to is of another kind"),
    (b"}(K\1u.", "SETITEMS: the last key has no value"),
    (b"(K\1d.", "DICT: the last key has no value"),
    (b"}u.", "SETITEMS: there is no MARK before it"),
    (b"\x86.", "TUPLE2: the stack holds nothing"),
    (b"h\x07.", "at byte 0, BINGET: it asks for what was not remembered"),
    (b"}r\xff\xff\xff\xff.", "LONG_BINPUT: the number of what is remembered is beyond 4 million"),
    (b"X\xff\xff\xff\xffabc", "at byte 0, BINUNICODE: the pickle ends within what belongs to it"),
    (b"\x8d" + b"\xff" * 8 + b"abc", "BINUNICODE8: the pickle ends within what belongs to it"),
    (b"\x8e" + b"\xff" * 7 + b"\x7fabc", "BINBYTES8: the pickle ends within what belongs to it"),
    (b"\x95" + b"\xff" * 8 + b"}.", "FRAME: the frame is longer than the pickle"),
    (b"\x8b" + struct.pack("<I", 4000) + bytes(4000) + b".", "LONG4: it is an integer of more than 255 bytes"),
    (b"\x8b\xff\xff\xff\xff.", "LONG4: it is an integer of more than 255 bytes"),
    (b"I1\n.", "INT: no weights that torch.save writes need this opcode"),
    (b"cos", "GLOBAL: the pickle ends within what belongs to it"),
    (b"cos\nsystem\n\x81.", "NEWOBJ: the stack holds nothing that it could take"),
    (b"cos\nsystem\n)\x92.", "NEWOBJ_EX: the stack holds nothing that it could take"),
    (b"cos\nsystem\n(K\1u.", "SETITEMS: the last key has no value"),
    (b"cos\nsystem\nq\0" + b"h\0)R0" * (4 << 20), "makes more than 4 million values"),
    (b"K\x01K\x02\x93.", "STACK_GLOBAL: module and name are no texts"),
    (b"K\x01)R.", "REDUCE: what it calls is no name with a tuple of arguments"),
    (b"ccollections\nOrderedDict\n]\x85R.", "REDUCE: an OrderedDict begins with arguments"),
    (b"K\x01}b.", "BUILD: it gives attributes to what has none"),
    (b"(" * DEEP * 6, "nested a million deep"),
    (b"]" * DEEP * 6, "the stack holds a million values"),
    (b"}" + b"]0" * (5 << 20), "makes more than 4 million values"),
    (b"](" + (b"(" + b"K\0" * 900_000 + b"t") + b"h\0", "BINGET: it asks for what was not remembered"),
    (b"}q\0]" + (b"(" + b"h\0" * 900_000 + b"e") * 10, "makes more than 8 million items"),
    (b"]" + b"\x85" * DEEP + b".", "holds a tuple, not tensors"),
    (b"]q\0" + (b"]h\0h\0\x86aq\0" * DEEP) + b".", "STOP: more than one value"),
], ids=lambda value: value[:12].hex() if isinstance(value, bytes) else "")
def test_pickles_that_are_wrong(tmp_path, description, says):
    message = refused(tmp_path, with_pickle(description))
    assert says in message and "m.pt:" in message


def test_cycles(tmp_path):
    """A dict that holds itself, beside tensors: it is none, and nothing walks into it."""
    state = {**as_tensors(WEIGHTS)}
    state["self"] = state
    got, said = convert(tmp_path, saved(state))
    same(got, WEIGHTS)
    assert "self (a dict)" in said
    state = {"a": {}}
    state["a"]["b"] = state
    (tmp_path / "m.safetensors").unlink()
    assert "'a.b.a' holds no tensors" in refused(tmp_path, saved(state), "--key", "a.b.a")


def doubled(levels):
    """Lists of two of the one before: 2^levels, for who walks through them."""
    value = []
    for _ in range(levels):
        value = [value, value]
    return value


def test_memo_bombs(tmp_path):
    same(convert(tmp_path, saved({"model": as_tensors(WEIGHTS), "x": doubled(80)}))[0], WEIGHTS)
    shared = {i: None for i in range(20000)}
    same(convert(tmp_path, saved({"model": as_tensors(WEIGHTS), **{f"{i}": shared for i in range(20000)}}))[0], WEIGHTS)
    long = "n" * 1_000_000
    text = pickle.dumps(long, 2)[2:-1]
    one = pickled(tensor(numbers(1)))[0][2:-1]
    bomb = b"\x80\2}(" + text + one + (b"h\0" + one) * 300 + b"u."
    (tmp_path / "m.safetensors").unlink()
    assert "a tensor has no name" in refused(tmp_path, archive({"data.pkl": bomb, "data/0": bytes(4)}))


FOUR = Storage(np.zeros(4, "f4"))


def rebuilt(*args):
    return {"a": Call(REBUILD, *args)}


@pytest.mark.parametrize("state, says", [
    (rebuilt(FOUR, 0, (5,), (1,), False, {}), "tensor 'a': it reaches beyond its storage"),
    (rebuilt(FOUR, 4, (1,), (1,), False, {}), "it reaches beyond its storage"),
    (rebuilt(FOUR, 0, (2, 2), (3, 1), False, {}), "it reaches beyond its storage"),
    (rebuilt(FOUR, 0, (1 << 62, 1 << 62), (1, 1), False, {}), "it reaches beyond its storage"),
    (rebuilt(FOUR, 0, (1 << 40, 1 << 40), (0, 0), False, {}), "it has more elements than a file can"),
    (rebuilt(FOUR, 0, (1 << 40,), (0,), False, {}), "its tensors would be more than 1.1 GB: they repeat what is stored"),
    (rebuilt(FOUR, 0, (2,), (1 << 63,), False, {}), "a size or a stride is no number from 0 on"),
    (rebuilt(FOUR, 0, (2,), (-1,), False, {}), "a size or a stride is no number from 0 on"),
    (rebuilt(FOUR, -1, (2,), (1,), False, {}), "it has no offset in its storage"),
    (rebuilt(FOUR, 0, (2, 2), (1,), False, {}), "it has no tuples of sizes and of strides"),
    (rebuilt(FOUR, 0, [2], [1], False, {}), "it has no tuples of sizes and of strides"),
    (rebuilt(FOUR, 0, (1,) * 9, (1,) * 9, False, {}), "it has more than 8 dimensions"),
    (rebuilt(FOUR, 0, (2.0,), (1,), False, {}), "a size or a stride is no number from 0 on"),
    (rebuilt(FOUR), "it has no offset in its storage"),
    (rebuilt(FOUR, 0, (2,), (1,), False, {}, {"neg": True}), "it is the negative or the conjugate of what is stored"),
    (rebuilt(None, 0, (2,), (1,), False, {}), "its storage is not described as torch.save does it"),
    ({None: tensor([1.0])}, "a tensor has no name: its key is None"),
    ({1: tensor([1.0])}, "a tensor has no name: its key is an int"),
    ({"a\0b": tensor([1.0])}, "a tensor has no name"),
    ({"\ud800": tensor([1.0])}, "a tensor has no name"),
    ({"a": Call(PARAMETER)}, "m.pt: holds no tensors"),
    ({}, "m.pt: holds no tensors"),
])
def test_tensors_that_are_wrong(tmp_path, state, says):
    assert says in refused(tmp_path, saved(state))


def test_storages_that_are_wrong(tmp_path):
    members = members_of(as_tensors(WEIGHTS))
    assert "tensor 'fc.weight': its storage archive/data/0 is missing" in refused(
        tmp_path, archive({name: content for name, content in members.items() if name != "data/0"}))
    assert "tensor 'fc.weight': its storage is to have 12 elements of 4 bytes, and has 40 bytes" in refused(
        tmp_path, archive({**members, "data/0": members["data/0"][:40]}))
    assert "numbers begin with the highest byte" in refused(tmp_path, archive({**members, "byteorder": b"big"}))
    whole = archive(members)
    at = whole.index(members["data/0"])
    assert "'archive/data/0' is damaged: its checksum is another one" in refused(tmp_path, whole[:at] + b"\xff" + whole[at + 1:])
    assert "archive/data.pkl has 81.0 MB, and needs 67.1 MB at most" in refused(
        tmp_path, archive({**members, "data.pkl": bytes(81_000_000)}, compression=zipfile.ZIP_DEFLATED))


def test_files_that_are_cut_off(tmp_path):
    whole = saved(as_tensors({"a": numbers(2)}))
    for size in range(0, len(whole), 37):
        assert "m.pt: is not a" in refused(tmp_path, whole[:size])


@pytest.mark.parametrize("content, says", [
    (pickle.dumps({"a": 1}, 2), "but a Python pickle, as older versions of torch.save write it (.pt, .pth)\n"
     '  with PyTorch 1.6 or later: torch.save(torch.load("old.pt", map_location="cpu"), "new.pt")'),
    (b"./".ljust(257, b"\0") + b"ustar  ".ljust(255, b"\0"), "a tar archive, as PyTorch wrote before 0.1.10\n  with PyTorch 1.6 or later"),
    (pack({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)), "is a safetensors file already"),
    (b"\x89HDF\r\n\x1a\n" + bytes(50), "but an HDF5 file"),
    (b"", "is not a file of torch.save\n"),
    (b"text", "is not a file of torch.save\n"),
    (archive({"x.npy": b""}), "is a zip archive, but not one of torch.save: it has no data.pkl"),
    (archive({**members_of({}), "constants.pkl": b""}), "is a program of TorchScript, as torch.jit.save writes it\n"
     '  its weights: torch.save(torch.jit.load("old.pt").state_dict(), "new.pt")'),
])
def test_other_files(tmp_path, content, says):
    assert says in refused(tmp_path, content)


# ---- the command ----


def test_what_may_be_replaced(tmp_path):
    content = saved(as_tensors(WEIGHTS))
    convert(tmp_path, content)
    convert(tmp_path, content)  # of its own kind
    checkpoint = pack({"__metadata__": {"format": "pt", "mtc.checksum": "0" * 16}}, b"")
    for kept in (checkpoint, b"something else"):
        (tmp_path / "m.safetensors").write_bytes(kept)
        done = call(tmp_path, "m.pt", "-o", "m.safetensors")
        assert done.returncode == CANT_CREATE and "it would replace a checkpoint of a training, or a file that is no safetensors" in done.stderr
        assert (tmp_path / "m.safetensors").read_bytes() == kept
    assert call(tmp_path, "m.pt", "-o", "x.pt").returncode == USAGE
    (tmp_path / "plain").write_bytes(content)
    assert "it is the input" in call(tmp_path, "plain", "-o", "plain").stderr


@pytest.mark.parametrize("args, says", [
    ([], "weights takes one file of torch.save"), (["a", "b", "-o", "c"], "weights takes one file of torch.save"),
    (["a"], "-o FILE.safetensors says where the weights are written"), (["a", "-o", "c", "--learn", "3"], "weights has no option --learn"),
    (["a", "-o", "c", "--target", "cpu"], "weights has no option --target; 'mtc weights --help' lists its options"),
    (["a", "-o", "c.npz"], "the name promises an archive of NumPy; what can be written is weights (.safetensors)"),
])
def test_wrong_calls(tmp_path, args, says):
    done = call(tmp_path, *args)
    assert done.returncode == USAGE and says in done.stderr


def test_a_missing_file_and_a_pipe(tmp_path):
    done = call(tmp_path, "none.pt", "-o", "m.safetensors")
    assert done.returncode == NO_INPUT and "none.pt" in done.stderr
    (tmp_path / "m.pt").write_bytes(saved(as_tensors(WEIGHTS)))
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([MTC, "weights", "m.pt", "-o", "/dev/stdout"], cwd=tmp_path, stdout=out, check=True)
    same(read(tmp_path / "out"), WEIGHTS)


# ---- PyTorch ----


def test_what_torch_saves(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 4, bias=False))
    net[2].weight = torch.nn.Parameter(net[0].weight.t())  # shares its storage
    state = {**net.state_dict(), "half": torch.arange(6).to(torch.bfloat16).reshape(2, 3)[:, 1:]}
    for saved_as in (state, {"epoch": 1, "model": state}):
        torch.save(saved_as, tmp_path / "m.pt")
        got, _ = convert(tmp_path, (tmp_path / "m.pt").read_bytes())
        expected = {name: value.contiguous().view(torch.uint16).numpy() if name == "half" else value.contiguous().numpy()
                    for name, value in state.items()}
        same(dict(sorted(got.items())), dict(sorted(expected.items())))
