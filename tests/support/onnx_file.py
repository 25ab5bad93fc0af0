"""Writes ONNX files, right and wrong ones, without the package onnx: protocol buffers by hand, as far as tests need them.

    model([node("Relu", ["x"], ["y"])], [value("x", ["N", 3])], [value("y", ["N", 3])])
"""

import struct

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(field, number):
    return varint(field << 3) + varint(number)


def bytes_field(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def float_field(field, number):
    return varint(field << 3 | 5) + struct.pack("<f", number)


def raw_tensor(name, kind, dims, raw, *more):
    """A tensor of whatever is said."""
    content = b"".join(number_field(1, size) for size in dims) + number_field(2, kind) + bytes_field(8, name)
    return content + (b"" if raw is None else bytes_field(9, raw)) + b"".join(more)


def tensor(name, numbers):
    array = np.asarray(numbers)
    return raw_tensor(name, TYPES[str(array.dtype)], array.shape, array.tobytes())


def external(name, dims, **entries):
    """A float32 tensor whose data are in another file."""
    more = [bytes_field(13, bytes_field(1, key) + bytes_field(2, str(item))) for key, item in entries.items()]
    return raw_tensor(name, 1, dims, None, *more, number_field(14, 1))


def value(name, dims, kind=1):
    axes = [bytes_field(2, size) if isinstance(size, str) else number_field(1, size) for size in dims]
    shape = b"".join(bytes_field(1, axis) for axis in axes)
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, number_field(1, kind) + bytes_field(2, shape)))


def attribute(name, item):
    head = bytes_field(1, name)
    if isinstance(item, float):
        return head + float_field(2, item) + number_field(20, 1)
    if isinstance(item, int):
        return head + number_field(3, item) + number_field(20, 2)
    if isinstance(item, str):
        return head + bytes_field(4, item) + number_field(20, 3)
    if isinstance(item, bytes):
        return head + bytes_field(5, item) + number_field(20, 4)
    return head + b"".join(number_field(8, number) for number in item) + number_field(20, 7)


def node(op, inputs, outputs, name="", domain="", **attributes):
    content = b"".join(bytes_field(1, item) for item in inputs) + b"".join(bytes_field(2, item) for item in outputs)
    content += bytes_field(3, name) + bytes_field(4, op) + (bytes_field(7, domain) if domain else b"")
    return content + b"".join(bytes_field(5, attribute(key, item)) for key, item in attributes.items())


def model(nodes, inputs, outputs, initializers=(), version=20):
    graph = b"".join(bytes_field(1, item) for item in nodes) + bytes_field(2, "graph")
    graph += b"".join(bytes_field(5, item) for item in initializers) + b"".join(bytes_field(11, item) for item in inputs)
    graph += b"".join(bytes_field(12, item) for item in outputs)
    return number_field(1, 9) + bytes_field(2, "tests") + bytes_field(3, "1") + bytes_field(7, graph) + bytes_field(8, number_field(2, version))
