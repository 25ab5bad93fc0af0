"""Data for tests/runtime/fake.c, and the IDX format."""

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
