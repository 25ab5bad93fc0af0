"""Tensors of other libraries in mtc, and mtc's in other libraries, without a copy: DLPack, by ctypes alone.

A consumer takes a capsule, renames it to "used_dltensor", and calls the deleter in it once when it needs the memory no
more, from whichever thread. A capsule that nobody took calls it in its destructor. Both versions of the protocol are
spoken: the one without a number ("dltensor") and 1.x ("dltensor_versioned"), which also says whether memory may be
written to.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple, Union

if TYPE_CHECKING:
    import numpy as np

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
LEGACY_DEFAULT_STREAM = 1  # as DLPack numbers the streams of CUDA; mtc's work is on it
ALIGNMENT = 16  # MTC_LENT_ALIGNMENT: of memory that the program reads where it lies

_VERSION = (1, 0)
_READ_ONLY, _IS_COPIED = 1, 2
_DEVICE_NAMES = {CPU: "cpu", CUDA: "cuda", CUDA_HOST: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm",
                 11: "rocm_host", CUDA_MANAGED: "cuda_managed", 14: "oneapi"}
# Kinds of numbers as DLPack has them (its code, bits), and as NumPy has them where it does.
_TYPES = {"bool": (6, 8), "u8": (1, 8), "u16": (1, 16), "u32": (1, 32), "u64": (1, 64), "i8": (0, 8), "i16": (0, 16),
          "i32": (0, 32), "i64": (0, 64), "f16": (2, 16), "bf16": (4, 16), "f32": (2, 32), "f64": (2, 64)}
_TYPE_OF_CODE = {code: name for name, code in _TYPES.items()}
_FAMILIES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}


class Device(NamedTuple):
    """Where memory is: DLPack's number of a kind of device, and which of them."""

    type: int
    number: int

    def __str__(self) -> str:
        name = _DEVICE_NAMES.get(self.type, f"device type {self.type}")
        return name if self.type in (CPU, CUDA_HOST) else f"{name}:{self.number}"

    @property
    def is_host(self) -> bool:
        """Whether this process reads and writes the memory directly."""
        return self.type in (CPU, CUDA_HOST)

    def reaches(self, other: "Device") -> bool:
        """Whether a program on this device reads memory of the other where it lies."""
        if self.type == CUDA:
            return other.type == CUDA_MANAGED or other == self
        return self.is_host and other.is_host


# ---- The structs of dlpack.h ----


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _DLDevice), ("ndim", ctypes.c_int32), ("dtype", _DLDataType),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


# ---- C functions, and what stays for ever because C keeps pointers to it ----


def _c_function(library: Any, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, library))


_python, _c = ctypes.pythonapi, ctypes.CDLL(None)
_py, _pointer = ctypes.py_object, ctypes.c_void_p
_increment = _c_function(_python, "Py_IncRef", None, _py)
_capsule_new = _c_function(_python, "PyCapsule_New", _py, _pointer, _pointer, _pointer)
_capsule_valid = _c_function(_python, "PyCapsule_IsValid", ctypes.c_int, _py, _pointer)
_capsule_pointer = _c_function(_python, "PyCapsule_GetPointer", _pointer, _py, _pointer)
_capsule_rename = _c_function(_python, "PyCapsule_SetName", ctypes.c_int, _py, _pointer)
_malloc = _c_function(_c, "malloc", _pointer, ctypes.c_size_t)
_free = _c_function(_c, "free", None, _pointer)
_copy_of_text = _c_function(_c, "strdup", _pointer, ctypes.c_char_p)
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # as C calls ours: with or without the interpreter's lock
_CALLED_DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # as we call others': NumPy too holds the lock then

# A capsule refers to its name; so the names outlive the interpreter. In order: version 0, version 1.
_NAMES = tuple(_copy_of_text(name) for name in (b"dltensor", b"dltensor_versioned"))
_USED_NAMES = tuple(_copy_of_text(name) for name in (b"used_dltensor", b"used_dltensor_versioned"))
_LAYOUTS: Tuple[Any, Any] = (_Managed, _ManagedVersioned)


def _for_ever(value: Any) -> Any:
    """The same object, which is never freed."""
    _increment(value)
    return value


# What was given away and not yet deleted: address of the struct -> (its layout, what owns the memory).
_given: Dict[int, Tuple[Any, Any]] = _for_ever({})


def _make_callbacks() -> Tuple[Any, Any]:
    """The deleter, and the destructor of capsules. They use no names of this module, which go while Python ends."""
    given, free, names, layouts = _given, _free, _NAMES, _LAYOUTS
    called_deleter, exact = _CALLED_DELETER, ctypes.pythonapi
    # The capsule is being freed: it is passed as an address, since a reference would bring it back to life.
    valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(("PyCapsule_IsValid", exact))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(("PyCapsule_GetPointer", exact))

    def delete(address: int) -> None:
        if given.pop(address, None) is not None:
            free(address)

    def destroy(capsule: int) -> None:
        for name, layout in zip(names, layouts):
            if valid(capsule, name):
                address = pointer(capsule, name)
                called_deleter(layout.from_address(address).deleter)(address)

    return _for_ever(_DELETER(delete)), _for_ever(_DELETER(destroy))


_delete, _destroy = _make_callbacks()
_deleter_address = ctypes.cast(_delete, _pointer).value
_DESTROY_ADDRESS = ctypes.cast(_destroy, _pointer).value


@atexit.register
def _leave_to_c() -> None:
    """From here on consumers free a struct by C's free: they may do so when there is no interpreter any more. What owns
    the memory stays until the process ends."""
    global _deleter_address
    _deleter_address = ctypes.cast(_c.free, _pointer).value
    for address, (layout, _) in list(_given.items()):
        layout.from_address(address).deleter = _deleter_address


# ---- Producing ----


def row_major(shape: Sequence[int]) -> Tuple[int, ...]:
    """The strides, in elements, of numbers that lie one behind the other, the last axis fastest."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def item_bytes(dtype: str) -> int:
    """The bytes of a number."""
    return _TYPES[dtype][1] // 8


def to_capsule(pointer: int, shape: Sequence[int], strides: Sequence[int], dtype: str, device: Tuple[int, int],
               owner: object, *, versioned: bool = False, read_only: bool = False, copied: bool = False) -> Any:
    """A capsule for a consumer. `strides` in elements; `dtype` is a name such as "f32"; `owner` lives as long as the
    consumer needs the memory, or the capsule lives where nobody takes it."""
    layout, rank = _LAYOUTS[versioned], len(shape)
    head = ctypes.sizeof(layout)
    address = _malloc(head + 16 * max(rank, 1))
    if not address:
        raise MemoryError("no memory for a DLPack tensor")
    (ctypes.c_int64 * (2 * rank)).from_address(address + head)[:] = [*shape, *strides]
    managed = layout.from_address(address)
    managed.tensor = _DLTensor(pointer, _DLDevice(*device), rank, _DLDataType(*_TYPES[dtype], 1), address + head,
                               address + head + 8 * rank, 0)
    managed.context, managed.deleter = None, _deleter_address
    if versioned:
        managed.major, managed.minor = _VERSION
        managed.flags = _READ_ONLY * read_only | _IS_COPIED * copied
    _given[address] = (layout, owner)
    return _capsule_new(address, _NAMES[versioned], _DESTROY_ADDRESS)


class _HostMemory:
    """Numbers in the host's memory, as NumPy takes them; the array that it makes keeps this, and this the owner."""

    def __init__(self, array: "DeviceArray", typestr: str) -> None:
        item = array.item_bytes
        self.owner = array
        self.__array_interface__ = {"version": 3, "data": (array.pointer, array.read_only), "shape": array.shape,
                                    "strides": tuple(step * item for step in array.strides), "typestr": typestr}


def _numpy_type(dtype: str) -> str:
    code, bits = _TYPES[dtype]
    return "|b1" if dtype == "bool" else f"<{'iuf?u'[code]}{bits // 8}"


def from_bits(values: "np.ndarray", dtype: str) -> "np.ndarray":
    """bf16 as f32, since NumPy has none; other numbers as they are."""
    import numpy as np

    return (values.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else values


class DeviceArray:
    """An array in some device's memory, of whichever library: it consumes what has `__dlpack__` and has it itself, so
    `torch.from_dlpack(array)`, `cupy.from_dlpack(array)`, `jax.dlpack.from_dlpack(array)` and, in the host's memory,
    `numpy.from_dlpack(array)` share its memory.

    pointer    the address of its first element
    shape, strides    tuples; strides count elements
    dtype      "f32", "f64", "f16", "bf16", "i8" ... "i64", "u8" ... "u64" or "bool"
    device     (DLPack's type of device, number)
    owner      lives as long as this array and all that share its memory
    read       read(host address, address, bytes) copies from the device, where this process cannot read it directly
    """

    def __init__(self, pointer: int, shape: Sequence[int], dtype: str, device: Tuple[int, int], owner: object = None, *,
                 strides: Optional[Sequence[int]] = None, read_only: bool = False,
                 read: Optional[Callable[[int, int, int], None]] = None) -> None:
        self.pointer, self.shape, self.dtype = pointer, tuple(shape), dtype
        self.strides = row_major(self.shape) if strides is None else tuple(strides)
        self.device, self.owner, self.read_only = Device(*device), owner, read_only
        self.read = read

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)} on {self.device} at 0x{self.pointer:x})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def item_bytes(self) -> int:
        """The bytes of an element."""
        return item_bytes(self.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.item_bytes

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one behind the other, the last axis fastest."""
        return self.size == 0 or all(extent == 1 or step == dense
                                     for extent, step, dense in zip(self.shape, self.strides, row_major(self.shape)))

    @property
    def is_aligned(self) -> bool:
        """Whether the program can read it where it lies."""
        return self.pointer % ALIGNMENT == 0

    def reshape(self, *shape: int) -> "DeviceArray":
        """The same memory of a contiguous array with another shape of as many elements."""
        new = DeviceArray(self.pointer, shape, self.dtype, self.device, self, read_only=self.read_only, read=self.read)
        if not self.is_contiguous or new.size != self.size:
            raise ValueError(f"{self!r} with strides {list(self.strides)} has no view of the shape {list(shape)}")
        return new

    def numpy(self) -> "np.ndarray":
        """The numbers as a NumPy array: the memory itself where it is the host's, else a copy; bf16 as float32."""
        return from_bits(self._host_view() if self.device.is_host else self._read_all(), self.dtype)

    def _host_view(self) -> "np.ndarray":
        import numpy as np

        if self.size == 0:  # NumPy takes no null pointer
            return np.empty(self.shape, _numpy_type(self.dtype))
        return np.asarray(_HostMemory(self, _numpy_type(self.dtype)))

    def _read_all(self) -> "np.ndarray":
        """Everything from the first element to the last, and a view of it with the strides."""
        import numpy as np

        if self.read is None:
            raise BufferError(f"an array on {self.device} cannot be read from here: its own library copies it")
        reach = [(extent - 1) * step for extent, step in zip(self.shape, self.strides)] if self.size else []
        first, last = sum(step for step in reach if step < 0), sum(step for step in reach if step > 0)
        span = np.empty(last - first + 1 if self.size else 0, _numpy_type(self.dtype))
        if self.size:
            self.read(span.ctypes.data, self.pointer + first * self.item_bytes, span.nbytes)
        byte_strides = [step * self.item_bytes for step in self.strides]
        return np.lib.stride_tricks.as_strided(span[-first:], self.shape, byte_strides)

    def argmax(self, axis: Optional[int] = None) -> Any:
        """The index of the largest element along an axis, as a NumPy array."""
        return self.numpy().argmax(axis)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "np.ndarray":
        if copy is False and (not self.device.is_host or self.dtype == "bf16"):
            raise ValueError(f"{self!r} has no NumPy array without a copy")
        values = self.numpy()
        converted = values if dtype is None else values.astype(dtype, copy=False)
        return converted.copy() if copy and converted.base is not None else converted

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (self.device.type, self.device.number)

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """A capsule; whichever stream the consumer names, the numbers are there by then."""
        del stream  # all work is done
        source = self
        if dl_device is not None and tuple(dl_device) != tuple(self.device):
            source = self._moved(Device(*dl_device), copy)
        elif copy:
            source = self._copied()
        return source._capsule(max_version is not None and max_version[0] >= 1, source is not self)

    def _capsule(self, versioned: bool, copied: bool) -> Any:
        if self.read_only and not versioned:
            raise BufferError(f"{self!r} is read-only, which the consumer's DLPack has no word for: give a copy")
        return to_capsule(self.pointer, self.shape, self.strides, self.dtype, self.device, self, versioned=versioned,
                          read_only=self.read_only, copied=copied)

    def _moved(self, device: Device, copy: Optional[bool]) -> "DeviceArray":
        if device.type != CPU or copy is False:
            how = "without a copy " if copy is False else ""
            raise BufferError(f"{self!r} cannot be had {how}on {device}")
        return self._copied()

    def _copied(self) -> "DeviceArray":
        """The same numbers in new memory of the host."""
        bits = (self._host_view() if self.device.is_host else self._read_all()).copy()
        return DeviceArray(bits.ctypes.data, self.shape, self.dtype, (CPU, 0), bits)


# ---- Consuming ----


class _Taken:
    """A struct that a producer gave us: deleted once, when the last that uses the memory is gone."""

    def __init__(self, address: int, deleter: Optional[int]) -> None:
        self.address = address
        self.delete = _CALLED_DELETER(deleter) if deleter else None

    def __del__(self) -> None:
        if self.delete:
            self.delete(self.address)


def has_dlpack(value: object) -> bool:
    """Whether an object gives its memory away by DLPack."""
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def device_of(value: Any) -> Device:
    """Where the memory of an object with `__dlpack_device__` is."""
    kind, number = value.__dlpack_device__()
    return Device(int(kind), int(number))


def from_dlpack(source: Any) -> DeviceArray:
    """The memory of a tensor that has `__dlpack__`, or that a capsule names, without a copy; it lives as long as the
    result.

    What the producer enqueued on a GPU before is done when the legacy default stream, which mtc uses, comes to what
    follows. Raises TypeError where there is no DLPack, BufferError where the tensor cannot be shared: complex numbers,
    vectors."""
    if isinstance(source, DeviceArray):
        return source
    if not has_dlpack(source):
        return _take(source)
    if getattr(source, "requires_grad", False):  # PyTorch would refuse: what others do to the numbers has no gradient
        source = source.detach()
    arguments = {"stream": LEGACY_DEFAULT_STREAM} if device_of(source).type in (CUDA, CUDA_MANAGED) else {}
    try:
        capsule = source.__dlpack__(max_version=_VERSION, **arguments)
    except TypeError:  # a producer from before versions had numbers
        capsule = source.__dlpack__(**arguments)
    return _take(capsule)


def _take(capsule: Any) -> DeviceArray:
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"an array with __dlpack__ is expected, not {type(capsule).__name__}")
    for version in (1, 0):
        if _capsule_valid(capsule, _NAMES[version]):
            return _take_version(capsule, version)
    raise BufferError("this DLPack capsule was consumed before, or it is of another kind")


def _take_version(capsule: Any, version: int) -> DeviceArray:
    address = _capsule_pointer(capsule, _NAMES[version])
    managed = _LAYOUTS[version].from_address(address)
    _capsule_rename(capsule, _USED_NAMES[version])
    taken = _Taken(address, managed.deleter)
    if version and managed.major != _VERSION[0]:
        raise BufferError(f"the tensor speaks version {managed.major} of DLPack, mtc {_VERSION[0]}")
    return _array_of(managed.tensor, taken, bool(version and managed.flags & _READ_ONLY))


def _array_of(tensor: _DLTensor, taken: _Taken, read_only: bool) -> DeviceArray:
    kind = (tensor.dtype.code, tensor.dtype.bits)
    if kind not in _TYPE_OF_CODE or tensor.dtype.lanes != 1:
        lanes = f" in vectors of {tensor.dtype.lanes}" if tensor.dtype.lanes != 1 else ""
        family = _FAMILIES.get(kind[0], "unknown type ")
        raise BufferError(f"a tensor of {family}{kind[1]}{lanes}, which mtc does not take")
    extents = ctypes.c_int64 * tensor.ndim
    shape = tuple(extents.from_address(tensor.shape)) if tensor.ndim else ()
    strides = tuple(extents.from_address(tensor.strides)) if tensor.ndim and tensor.strides else None
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, _TYPE_OF_CODE[kind],
                       (tensor.device.type, tensor.device.index), taken, strides=strides, read_only=read_only)


# ---- The library that a tensor is of ----


def _library_of(value: object) -> str:
    """The name of the first package among a type's bases that we know."""
    packages = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    known = {"torch": "torch", "cupy": "cupy", "jaxlib": "jax", "jax": "jax", "numpy": "numpy"}
    return next((known[package] for package in packages if package in known), "")


def like(array: Union[DeviceArray, "np.ndarray"], example: object) -> Any:
    """The array as the type of tensor that `example` is, without a copy; where its library is not known, as it is. CuPy
    has no arrays in the host's memory: it copies such."""
    name = _library_of(example)
    module = sys.modules.get("jax.dlpack" if name == "jax" else name)
    if name == "numpy" or module is None:
        return array
    if name == "cupy" and device_of(array).is_host:
        return module.asarray(to_host(array))
    return module.from_dlpack(array)


def to_host(value: Any) -> "np.ndarray":
    """A NumPy array of a tensor that its own library copies from its device; raises TypeError where none is known."""
    import numpy as np

    if isinstance(value, DeviceArray):
        return value.numpy()
    if device_of(value).is_host:
        return from_dlpack(value).numpy()
    name = _library_of(value)
    if name == "torch":
        return from_dlpack(value.detach().cpu()).numpy()
    if name == "cupy":
        return np.asarray(value.get())
    if name == "jax":
        return np.asarray(value)
    raise TypeError(f"a {type(value).__name__} on {device_of(value)} cannot be read from here: copy it to the host")
