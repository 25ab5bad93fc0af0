"""A model as a library, through the C interface that ends runtime/mtc.h, as another language uses it."""

import ctypes
import json
import os
from ctypes import c_bool, c_char_p, c_double, c_int64, c_size_t, c_uint64, c_void_p

import numpy as np

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # which OpenMP reads when the first library brings it

TRAIN, TEST, VALIDATION = 0, 1, 2
USAGE, BAD_DATA, UNAVAILABLE = 64, 65, 69
TYPES = {"f32": np.float32, "i32": np.int32, "u8": np.uint8, "u16": np.uint16, "f64": np.float64}

Steps = ctypes.CFUNCTYPE(c_bool, c_void_p, c_int64, ctypes.POINTER(c_double))
Epoch = ctypes.CFUNCTYPE(c_bool, c_void_p, c_int64, ctypes.POINTER(c_double), ctypes.POINTER(c_double))


class Fitting(ctypes.Structure):
    _fields_ = [("epochs", c_int64), ("every", c_int64), ("pauses", c_bool), ("user", c_void_p), ("steps", Steps),
                ("epoch", Epoch), ("warn", c_void_p)]


class Failed(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Model:
    """The library at `path`."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.mtc_error.restype = c_char_p
        self.library.mtc_describe.restype = self.library.mtc_status.restype = c_void_p
        self.pointer = ctypes.byref(ctypes.c_char.in_dll(self.library, "mtc_model"))
        self.description = self.json("describe", self.pointer)
        self.fields = self.description["fields"]
        self.reports = len(self.description["reports"])

    def json(self, function, argument):
        text = getattr(self.library, f"mtc_{function}")(argument)
        value = json.loads(ctypes.string_at(text))
        self.library.mtc_free(c_void_p(text))
        return value


class Session:
    def __init__(self, model, seed=1, device=0):
        self.model, self.handle = model, c_void_p()
        try:
            self.call("create", model.pointer, c_uint64(seed), device, ctypes.byref(self.handle), session=False)
        except Failed:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self.model.library.mtc_destroy(self.handle)
        self.handle = c_void_p()

    def call(self, name, *args, session=True):
        args = (self.handle, *args) if session else args
        code = getattr(self.model.library, f"mtc_{name}")(*args)
        if code:
            raise Failed(code, self.model.library.mtc_error(self.handle).decode())

    @property
    def status(self):
        return self.model.json("status", self.handle)

    # ---- data: an array for each field; an integer is the address of lent memory ----

    def pointers(self, arrays):
        kept = [value if value is None or isinstance(value, int) else np.ascontiguousarray(value, TYPES[field["type"]])
                for field, value in zip(self.model.fields, arrays)]
        places = [value.ctypes.data if isinstance(value, np.ndarray) else value for value in kept]
        return kept, (c_void_p * len(kept))(*places), (c_bool * len(kept))(*(isinstance(v, int) for v in kept))

    def set_data(self, which, arrays):
        kept, places, _ = self.pointers(arrays)
        self.call("set_data", which, c_int64(len(kept[0])), places)

    def lend_data(self, which, examples, arrays):
        _, places, lent = self.pointers(arrays)
        self.call("lend_data", which, c_int64(examples), places, lent)

    def load_data(self, which, folder=None):
        self.call("load_data", which, folder and str(folder).encode())

    def drop_data(self, which):
        self.call("drop_data", which)

    # ---- training ----

    def fit(self, epochs, every=1, pauses=False, steps=None, epoch=None):
        """steps(step, means), epoch(epoch, means, watched): true ends training."""
        row = slice(self.model.reports)
        on_steps = Steps((lambda _, step, means: bool(steps(step, means[row]))) if steps else 0)
        on_epoch = Epoch((lambda _, number, means, watched: bool(epoch(number, means[row], watched[row] if watched else None)))
                         if epoch else 0)
        self.call("fit", ctypes.byref(Fitting(epochs, every, pauses, None, on_steps, on_epoch)))

    def train(self, steps):
        reports = np.empty((steps, self.model.reports))
        self.call("train", c_int64(steps), c_void_p(reports.ctypes.data))
        return reports

    def set_knob(self, name, value):
        self.call("set_knob", name.encode(), c_double(value))

    def save(self, path):
        self.call("save", str(path).encode())

    def load(self, path):
        self.call("load", str(path).encode())

    def resume(self, path):
        self.call("resume", str(path).encode())

    # ---- answers ----

    def evaluate(self, which):
        reports = np.empty(self.model.reports)
        self.call("evaluate", which, c_void_p(reports.ctypes.data))
        return reports

    def predict(self, arrays, out=None, examples=None):
        """A host array; or, with `out`, in that memory of the device."""
        _, places, lent = self.pointers(arrays)
        count = examples or len(next(array for array in arrays if array is not None))
        result = np.empty((count, *self.model.description["prediction"]["shape"]), np.float32)
        to = c_void_p(result.ctypes.data if out is None else out)
        self.call("predict_lent", c_int64(count), places, lent, to, c_bool(out is not None))
        return result if out is None else None

    def tensor(self, name):
        entry = next(entry for entry in self.model.description["tensors"] if entry["name"] == name)
        values = np.empty(entry["shape"], TYPES[entry["type"]])
        self.call("get", name.encode(), c_void_p(values.ctypes.data), c_size_t(values.nbytes))
        return values

    def weights(self):
        """All that training changes, as bytes."""
        return b"".join(self.tensor(entry["name"]).tobytes() for entry in self.model.description["tensors"]
                        if entry["role"] != "value")

    # ---- memory of the device ----

    def locate(self, name):
        place = c_void_p()
        self.call("locate", name.encode(), ctypes.byref(place))
        return place.value

    def memory_new(self, size):
        memory = c_void_p()
        self.call("memory_new", c_size_t(size), ctypes.byref(memory))
        return memory.value

    def memory_of(self, array):
        memory = self.memory_new(array.nbytes)
        self.call("memory_write", c_void_p(memory), c_void_p(array.ctypes.data), c_size_t(array.nbytes))
        return memory

    def memory_read(self, memory, like):
        array = np.empty_like(like)
        self.call("memory_read", c_void_p(array.ctypes.data), c_void_p(memory), c_size_t(array.nbytes))
        return array

    def memory_free(self, memory):
        self.call("memory_free", c_void_p(memory))
