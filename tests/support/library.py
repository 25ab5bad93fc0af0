"""A compiled model (`mtc --shared`) through the C interface of runtime/mtc.h."""

import ctypes

import numpy as np


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Library:
    def __init__(self, path, real=np.float32, seed=1):
        self.real = real
        self.library = ctypes.CDLL(str(path))
        self.library.mtc_error.restype = ctypes.c_char_p
        self.session = ctypes.c_void_p()
        model = ctypes.c_char.in_dll(self.library, "mtc_model")
        self.call("create", ctypes.byref(model), ctypes.c_uint64(seed), 0, ctypes.byref(self.session), session=False)

    def call(self, name, *args, session=True):
        args = (self.session, *args) if session else args
        code = getattr(self.library, f"mtc_{name}")(*args)
        assert code == 0, self.library.mtc_error(self.session).decode()

    def close(self):
        self.library.mtc_destroy(self.session)

    def get(self, name, shape):
        values = np.empty(shape, self.real)
        self.call("get", name.encode(), pointer(values), ctypes.c_size_t(values.nbytes))
        return values.astype(np.float64)

    def set(self, name, values):
        values = np.ascontiguousarray(values, self.real)
        self.call("set", name.encode(), pointer(values), ctypes.c_size_t(values.nbytes))

    def set_knob(self, name, value):
        self.call("set_knob", name.encode(), ctypes.c_double(value))

    def set_data(self, fields):
        arrays = [np.ascontiguousarray(field) for field in fields]
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        self.call("set_data", 0, ctypes.c_int64(len(arrays[0])), pointers)

    def train(self, steps, reports):
        out = np.empty((steps, reports))
        self.call("train", ctypes.c_int64(steps), pointer(out))
        return out

    def evaluate(self, reports):
        out = np.empty(reports)
        self.call("evaluate", 0, pointer(out))
        return out

    def predict(self, fields, width):
        arrays = [np.ascontiguousarray(field) for field in fields]
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        out = np.empty((len(arrays[0]), width), np.float32)
        self.call("predict", ctypes.c_int64(len(arrays[0])), pointers, pointer(out))
        return out.astype(np.float64)
