"""Files as torch.save writes them, without PyTorch: a zip archive of a pickle and of storages. The pickle has the opcodes that PyTorch's
has, since what it names is written by name alone."""

import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np

STORAGES = {"f4": "FloatStorage", "f8": "DoubleStorage", "f2": "HalfStorage", "bf16": "BFloat16Storage", "i8": "LongStorage",
            "i4": "IntStorage", "i2": "ShortStorage", "i1": "CharStorage", "u1": "ByteStorage", "b1": "BoolStorage"}


class Name:
    """A function or class, which need not exist."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    def __init__(self, name, *args):
        self.name, self.args = name, args


class Built(Call):
    """The same, with attributes."""

    def __init__(self, name, *args, state):
        super().__init__(name, *args)
        self.state = state


class Storage:
    """A row of elements; bf16 as the 16 bits of each."""

    def __init__(self, elements, kind=None):
        self.elements = np.ascontiguousarray(elements).reshape(-1)
        self.name = Name("torch", STORAGES[kind or self.elements.dtype.str[1:]])


REBUILD, PARAMETER = Name("torch._utils", "_rebuild_tensor_v2"), Name("torch._utils", "_rebuild_parameter")


def view(storage, offset, shape, strides, *rest):
    return Call(REBUILD, storage, offset, tuple(shape), tuple(strides), False, OrderedDict(), *rest)


def tensor(array, kind=None):
    array = np.array(array, order="C")
    return view(Storage(array, kind), 0, array.shape, [step // array.itemsize for step in array.strides])


def parameter(array):
    return Call(PARAMETER, tensor(array), True, OrderedDict())


class Pickler(pickle._Pickler):  # the one in Python, whose parts can be replaced
    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file, protocol):
        super().__init__(file, protocol)
        self.storages = {}

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        key = str(self.storages.setdefault(id(value), (len(self.storages), value))[0])
        return "storage", value.name, key, "cpu", len(value.elements)

    def save_name(self, name):
        if id(name) in self.memo:
            self.write(self.get(self.memo[id(name)][0]))
            return
        if self.proto >= 4:
            self.save(name.module)
            self.save(name.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())
        self.memoize(name)

    def save_call(self, call):
        if id(call) in self.memo:
            self.write(self.get(self.memo[id(call)][0]))
            return
        self.save(call.name)
        self.save(call.args)
        self.write(pickle.REDUCE)
        self.memoize(call)
        if isinstance(call, Built):
            self.save(call.state)
            self.write(pickle.BUILD)

    dispatch[Name], dispatch[Call], dispatch[Built] = save_name, save_call, save_call


def pickled(value, protocol=2):
    """The pickle, and the bytes of each storage by its key."""
    file = io.BytesIO()
    pickler = Pickler(file, protocol)
    pickler.dump(value)
    return file.getvalue(), {str(key): storage.elements.tobytes() for key, storage in pickler.storages.values()}


def archive(members, folder="archive", compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as written:
        for name, content in members.items():
            written.writestr(f"{folder}/{name}", content)
    return file.getvalue()


def members_of(value, protocol=2):
    description, storages = pickled(value, protocol)
    return {"data.pkl": description, "byteorder": b"little", **{f"data/{key}": content for key, content in storages.items()}, "version": b"3\n"}


def saved(value, protocol=2, **how):
    return archive(members_of(value, protocol), **how)
