"""Tensors in the device's memory that a model reads where they lie, and results that stay there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from .dlpack import ALIGNMENT, CPU, CUDA, Device, DeviceArray, device_of, from_dlpack, has_dlpack, like, to_host
from .errors import DataError, InternalError

if TYPE_CHECKING:
    import numpy as np

    from .library import Handle, Session


def memory_device(session: "Session") -> Device:
    """The device whose memory the session's weights and data are in."""
    return Device(CUDA, session.device) if session.description["target"] == "cuda" else Device(CPU, 0)


class _Reach:
    """A session's memory: as long as this lives, it can be read, also after the session was closed.
    Raises UsageError where that is so before."""

    def __init__(self, session: "Session") -> None:
        self.functions, self.session = session.library.functions, session.pointer
        self.handle: Handle = session.handle  # type: ignore[assignment]

    def read(self, host: int, memory: int, size: int) -> None:
        """Copies from the device to the host."""
        if self.functions.mtc_memory_read(self.session, host, memory, size):
            raise InternalError(f"{size} bytes of the device's memory cannot be read")


class _Memory(_Reach):
    """Memory of the device, freed when nobody has it any more, by whichever thread; a fork's belongs to its parent."""

    pointer = 0
    own_process = staticmethod(os.getpid)

    def __init__(self, session: "Session", size: int) -> None:
        super().__init__(session)
        self.process = self.own_process()
        self.pointer = session.memory_new(size)
        self.handle.memories.add(self.pointer)

    def __del__(self) -> None:
        if self.pointer and self.process == self.own_process() and self.pointer in self.handle.memories:
            self.handle.memories.discard(self.pointer)
            self.functions.mtc_memory_free(self.session, self.pointer)


def session_array(session: "Session", pointer: int, shape: Sequence[int], dtype: str, *,
                  strides: Optional[Sequence[int]] = None) -> DeviceArray:
    """An array in the session's memory, which stays at least as long as the array and what shares it."""
    reach = _Reach(session)
    return DeviceArray(pointer, shape, dtype, memory_device(session), reach, strides=strides, read=reach.read)


def new_array(session: "Session", shape: Sequence[int], dtype: str = "f32") -> DeviceArray:
    """An array in new memory of the session's device; what is in it is not defined."""
    array = DeviceArray(0, shape, dtype, memory_device(session))
    memory = _Memory(session, max(array.nbytes, 1))
    array.pointer, array.owner, array.read = memory.pointer, memory, memory.read
    return array


def as_given(session: "Session", values: "np.ndarray", example: Any) -> Any:
    """Results on the host, in f32, as the type of tensor that `example` is; on the session's device where that is."""
    if not has_dlpack(example) or device_of(example).is_host or _distance(session, device_of(example)):
        return like(values, example)
    array = new_array(session, values.shape)
    session.memory_write(array.pointer, values.ctypes.data, values.nbytes)
    return like(array, example)


def borrow(session: "Session", field: Mapping[str, Any], value: Any, what: str) -> Union[DeviceArray, "np.ndarray"]:
    """A tensor of another library (what has `__dlpack__`), for a field of a model.

    A DeviceArray where the program can read it in a GPU's memory as it lies: on the session's device, of the field's
    type, the elements one behind the other, from an address that is a multiple of 16 on. Else a NumPy array for the
    checks and conversions of such: of a tensor in the host's memory its own memory; of others a copy, with a
    ConversionNotice that says why. `what` names the value in messages. Raises DataError where it cannot be read."""
    try:
        if device_of(value).is_host:
            return from_dlpack(value).numpy()
        why_not = _distance(session, device_of(value))
        if why_not:
            return _fetched(to_host(value), why_not, what)
        array = from_dlpack(value)
        why_not = _obstacle(field, array)
        if why_not and field.get("classes"):  # labels are int64 everywhere
            return _read(session, array)
        return _fetched(_read(session, array), why_not, what) if why_not else array
    except (BufferError, TypeError) as error:
        raise DataError(f"{what}: {error}") from None


def _distance(session: "Session", device: Device) -> str:
    """Why the session's device cannot reach memory of another; "" if it can."""
    own = memory_device(session)
    return "" if own.reaches(device) else f"it is on {device}, the model on {'the host' if own.is_host else own}"


def _obstacle(field: Mapping[str, Any], array: DeviceArray) -> str:
    """Why the program cannot read an array in its device's memory where it lies; "" if it can."""
    if array.dtype != field["type"]:
        return f"it is {array.dtype}, the field '{field['name']}' {field['type']}"
    if not array.is_contiguous:
        return f"its strides {list(array.strides)} are not those of elements one behind the other"
    if not array.is_aligned:
        return f"its address 0x{array.pointer:x} is not a multiple of {ALIGNMENT}"
    return ""


def _read(session: "Session", array: DeviceArray) -> "np.ndarray":
    return DeviceArray(array.pointer, array.shape, array.dtype, array.device, array, strides=array.strides,
                       read=_Reach(session).read).numpy()


def _fetched(values: "np.ndarray", reason: str, what: str) -> "np.ndarray":
    from .arrays import notice, size_text

    notice(f"{what}: {reason}; {size_text(values.nbytes)} were copied to the host", f"{what} {reason}")
    return values
