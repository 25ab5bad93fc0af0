"""A library of `mtc --shared --predict-only` from Python, with ctypes and NumPy alone."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_void_p

import numpy as np

TYPES = {"f32": np.float32, "i32": np.int32, "u16": np.uint16, "u8": np.uint8}


class Array(ctypes.Structure):  # MtcNetArray
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("rank", c_int32), ("classes", c_int32), ("dim", c_int64 * 8), ("elements", c_int64)]

    @property
    def shape(self):
        return tuple(self.dim[:self.rank])


class Net:
    """One thread uses it at a time; `share` makes another one of the same weights."""

    def __init__(self, library, weights=None):
        self.library, self.handle = ctypes.CDLL(str(library)), c_void_p()
        self.library.mtc_net_error.restype = self.library.mtc_net_class.restype = c_char_p
        self.library.mtc_net_input.restype = self.library.mtc_net_output.restype = POINTER(Array)
        self.check(self.library.mtc_net_open(weights and str(weights).encode(), byref(self.handle)))
        self.describe()

    def describe(self):
        self.inputs = [self.library.mtc_net_input(self.handle, i).contents for i in range(self.library.mtc_net_inputs(self.handle))]
        self.output = self.library.mtc_net_output(self.handle).contents

    def check(self, code):
        if code:
            raise RuntimeError(self.library.mtc_net_error().decode())

    def share(self):
        other = object.__new__(Net)
        other.library, other.handle = self.library, c_void_p()
        self.check(self.library.mtc_net_share(self.handle, byref(other.handle)))
        other.describe()
        return other

    def class_name(self, number, field=-1):
        word = self.library.mtc_net_class(self.handle, c_int(field), c_int64(number))
        return word.decode() if word else str(number)

    def __call__(self, *arrays):
        """Of each input an array of examples; the outputs of all of them."""
        kept = [np.ascontiguousarray(array, TYPES[field.type.decode()]).reshape(-1, *field.shape)
                for array, field in zip(arrays, self.inputs, strict=True)]
        if len({len(array) for array in kept}) != 1:
            raise ValueError("the inputs have different numbers of examples")
        outputs = np.empty((len(kept[0]), *self.output.shape), np.float32)
        places = (c_void_p * len(kept))(*(array.ctypes.data for array in kept))
        self.check(self.library.mtc_net_run(self.handle, c_int64(len(outputs)), places, outputs.ctypes.data_as(POINTER(c_float))))
        return outputs

    def close(self):
        self.library.mtc_net_close(self.handle)
        self.handle = c_void_p()
