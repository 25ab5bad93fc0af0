"""Data for tests/runtime/fake.c, and the formats IDX and safetensors."""

import json
import struct

import numpy as np

BATCH, SIDE, CLASSES = 8, 4, 3
IDX_CODE = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_bytes(array):
    array = np.asarray(array)
    code = IDX_CODE[array.dtype.str[1:]]
    header = bytes([0, 0, code, array.ndim]) + b"".join(struct.pack(">I", size) for size in array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def examples(count, seed=0):
    """Images of three classes: one row of the image is brighter."""
    random = np.random.default_rng(seed)
    label = random.integers(0, CLASSES, count).astype(np.uint8)
    image = random.integers(0, 100, (count, SIDE, SIDE)).astype(np.uint8)
    image[np.arange(count), label, :] += 120
    return image, label


def pack(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def unpack(content):
    length = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:8 + length]), content[8 + length:]


def tensors(content):
    header, data = unpack(content)
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"]) for name, entry in header.items()}


def weights_alone(content):
    """The first tensors of a checkpoint, as many as are weights, in a file as others write it."""
    header, data = unpack(content)
    count = int(header.pop("__metadata__")["mtc.weights"])
    entries = sorted(header.items(), key=lambda item: item[1]["data_offsets"])[:count]
    end = entries[-1][1]["data_offsets"][1]
    text = json.dumps({"__metadata__": {"format": "pt"}, **dict(entries)}, separators=(",", ":")).encode()
    return pack(text + b" " * (-(8 + len(text)) % 64), data[:end])
