"""What a model has learned, by name: `model.params["h.weight"]` is a weight where it lies in the device's memory."""

from __future__ import annotations

import difflib
import math
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, MutableMapping, NamedTuple, Optional,
                    Sequence, Tuple, Union)

from .dlpack import DeviceArray, from_bits, has_dlpack, item_bytes, to_host
from .errors import DataError
from .habits import PARAMETER, hint
from .lending import session_array

if TYPE_CHECKING:
    import numpy as np

Rename = Union[Mapping[str, str], Callable[[str], Optional[str]], None]


class LoadResult(NamedTuple):
    """What `load_state_dict` left alone: names that only the model has, and names that only the mapping has."""

    missing: List[str]
    unexpected: List[str]


class Parameter:
    """A weight, buffer or optimizer state. `numpy()` and `p[...]` copy it to the host; `p[...] = values` writes it;
    `torch.from_dlpack(p)`, `cupy.from_dlpack(p)`, `numpy.from_dlpack(p)` share its memory.

    A tensor that shares the memory sees what training does to it, and may write to it between calls. The memory lives
    as long as such a tensor does, also where the model was closed.
    """

    __slots__ = ("_owner", "_description", "name", "role", "type", "shape", "line", "__weakref__")

    def __init__(self, owner: "Parameters", description: Mapping[str, Any]) -> None:
        self._owner, self._description = owner, description
        self.name: str = description["name"]
        self.role: str = description["role"]
        self.type: str = description["type"]
        self.shape: Tuple[int, ...] = tuple(description["shape"])
        self.line: int = description["line"]

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except AttributeError:
            raise AttributeError(f"cannot set '{name}' of a weight{hint(name, PARAMETER, ())}") from None

    @property
    def strides(self) -> Tuple[int, ...]:
        """In elements: how it lies in memory. A convolution's weights are stored in another order than users have."""
        return tuple(self._description["strides"])

    @property
    def dtype(self) -> "np.dtype[Any]":
        """NumPy's type of the numbers that are read: float32 for bf16, which NumPy does not have."""
        import numpy as np

        names = {"f32": "float32", "f64": "float64", "bf16": "float32", "f16": "float16", "i32": "int32", "u16": "uint16", "u8": "uint8"}
        return np.dtype(names.get(self.type, self.type))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes in the device's memory."""
        return self.size * item_bytes(self.type)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len() of '{self.name}', which is one number")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {self.type}{list(self.shape)}, {self.role} of line {self.line})"

    def numpy(self) -> "np.ndarray":
        """A copy in the host's memory."""
        return self._owner.read(self)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "np.ndarray":
        if copy is False:
            raise ValueError(f"np.asarray of '{self.name}' copies; numpy.from_dlpack shares memory of the host")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __setitem__(self, index: Any, values: Any) -> None:
        if index is Ellipsis:
            self._owner.write(self, values)
            return
        changed = self.numpy()
        changed[index] = _on_host(values)
        self._owner.write(self, changed)

    def device_array(self) -> DeviceArray:
        """The memory itself, all work on it done."""
        return self._owner.locate(self)

    def data_ptr(self) -> int:
        """The address of its first element in the device's memory."""
        return self.device_array().pointer

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self.device_array().__dlpack_device__()

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.device_array().__dlpack__(**arguments)


class Parameters(MutableMapping[str, Parameter]):
    """The weights and buffers of a model by name. `params[name] = values` writes one; none can be added or removed."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tensors = {entry["name"]: entry for entry in model.description["tensors"] if entry["role"] != "value"}

    def _names(self, state: bool) -> Iterator[str]:
        return (name for name, entry in self._tensors.items() if (entry["role"] == "state") == state)

    def __iter__(self) -> Iterator[str]:
        return self._names(state=False)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __getitem__(self, name: str) -> Parameter:
        if name not in self._tensors:
            raise KeyError(f"the model has no '{name}'{_nearest(name, self._tensors)}")
        return Parameter(self, self._tensors[name])

    def __setitem__(self, name: str, values: Any) -> None:
        self[name][...] = values

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"'{name}' is part of the compiled model and cannot be removed")

    def __repr__(self) -> str:
        return "Parameters(\n" + "".join(f"  {self[name]!r}\n" for name in self) + ")"

    def states(self) -> Dict[str, Parameter]:
        """What the optimizer keeps of each weight, such as "h.weight.m"."""
        return {name: self[name] for name in self._names(state=True)}

    # ---- The memory ----

    def read(self, parameter: Parameter) -> "np.ndarray":
        """A copy in the host's memory."""
        with self._model.lock:
            values: "np.ndarray" = self._model.session.get(parameter.name)
        return from_bits(values, parameter.type)

    def write(self, parameter: Parameter, values: Any) -> None:
        """Any array of the parameter's shape, or one number for all elements."""
        import numpy as np

        given = _on_host(values)
        if given.ndim and given.shape != parameter.shape:
            raise DataError(f"'{parameter.name}' has the shape {list(parameter.shape)}, the values {list(given.shape)}")
        self._write_checked(parameter, np.broadcast_to(_numbers(parameter, given), parameter.shape))

    def _write_checked(self, parameter: Parameter, values: "np.ndarray") -> None:
        with self._model.lock:
            self._model.session.set(parameter.name, values)

    def locate(self, parameter: Parameter) -> DeviceArray:
        """The memory itself: it lives as long as what shares it."""
        with self._model.lock:
            session = self._model.session
            return session_array(session, session.locate(parameter.name), parameter.shape, parameter.type,
                                 strides=parameter.strides)

    # ---- All of them ----

    def state_dict(self, rename: Rename = None) -> Dict[str, "np.ndarray"]:
        """Copies of all weights and buffers. `rename` (as for `load_state_dict`) gives them other names."""
        found = {name: self[name].numpy() for name in self}
        return _renamed(found, rename)

    def load_state_dict(self, mapping: Mapping[str, Any], rename: Rename = None, strict: bool = True) -> LoadResult:
        """Writes weights and buffers from arrays or tensors of any library: all, or, where something is wrong, none.

        rename    a dict from names of the mapping, or of modules ("fc1" for "fc1.weight" and "fc1.bias"), to the
                  model's; or a function from a name to one, where None leaves the array out
        strict    whether names that only the model, or only the mapping, has are an error; PyTorch's batch counts
                  (`num_batches_tracked`) never are
        Raises DataError with a list of all that is missing, unexpected or of another shape."""
        given = {name: value for name, value in _renamed(dict(mapping), rename).items()
                 if not name.endswith("num_batches_tracked") or name in self._tensors}
        result = LoadResult([name for name in self if name not in given],
                            [name for name in given if name not in self._tensors])
        taken = {name: value for name, value in given.items() if name in self._tensors}
        shapes = [(name, shape) for name, shape in ((name, _shape(value)) for name, value in taken.items())
                  if shape != self[name].shape]
        if shapes or strict and (result.missing or result.unexpected):
            raise DataError(self._difference(result if strict else LoadResult([], []), shapes))
        arrays = {name: _numbers(self[name], _on_host(value)) for name, value in taken.items()}
        with self._model.lock:
            for name, values in arrays.items():
                self._write_checked(self[name], values)
        return result

    def _difference(self, result: LoadResult, shapes: Sequence[Tuple[str, Tuple[int, ...]]]) -> str:
        lines = ["the arrays are not those of the model; nothing was changed"]
        lines += [f"  missing: '{name}' {list(self[name].shape)}" for name in result.missing]
        lines += [f"  unexpected: '{name}'{_nearest(name, result.missing)}" for name in result.unexpected]
        lines += [f"  another shape: '{name}' is {list(self[name].shape)} in the model, {list(shape)} here"
                  for name, shape in shapes]
        if result.missing and result.unexpected:
            lines.append("  other names: rename={'theirs': 'ours'}; only what fits: strict=False")
        return "\n".join(lines)


def _nearest(name: str, names: Any) -> str:
    found = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean '{found[0]}'?" if found else ""


def _shape(value: Any) -> Tuple[int, ...]:
    shape = getattr(value, "shape", None)
    return tuple(int(extent) for extent in (_on_host(value).shape if shape is None else shape))


def _on_host(value: Any) -> "np.ndarray":
    """The numbers of any array, tensor or nested list."""
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)) or not has_dlpack(value):
        return np.asarray(value)
    return to_host(value)


def _numbers(parameter: Parameter, values: "np.ndarray") -> "np.ndarray":
    """As the parameter's type, where nothing but digits is lost."""
    import numpy as np

    if values.dtype.kind not in "fiub":
        raise DataError(f"'{parameter.name}' is made of numbers ({parameter.type}), not of {values.dtype}")
    with np.errstate(over="ignore"):
        converted = values.astype(parameter.dtype, copy=False)
    lost = np.isinf(converted) & np.isfinite(values) if values.dtype.kind == "f" else np.zeros((), bool)
    if lost.any():
        far = values[lost].flat[0]
        raise DataError(f"'{parameter.name}' is stored as {parameter.type}, which does not reach {far:g}")
    strange = ~np.isfinite(converted)
    if strange.any():
        place = [int(i) for i in np.argwhere(strange)[0]]
        raise DataError(f"'{parameter.name}': {f'element {place}' if place else 'the value'} is "
                        f"{'NaN' if np.isnan(converted[strange][0]) else converted[strange][0]}; weights are finite "
                        "numbers; nothing was changed")
    return converted


def _renamed(arrays: Mapping[str, Any], rename: Rename) -> Dict[str, Any]:
    """The arrays by their new names."""
    found: Dict[str, Any] = {}
    for name, value in arrays.items():
        new = _new_name(name, rename)
        if new is None:
            continue
        if new in found:
            raise DataError(f"two arrays are called '{new}' after renaming; '{name}' is the second")
        found[new] = value
    return found


def _new_name(name: str, rename: Rename) -> Optional[str]:
    if rename is None:
        return name
    if callable(rename):
        return rename(name)
    module, rest = name, ""
    while module not in rename and "." in module:  # the longest part of the name that is in the dict
        module, _, last = module.rpartition(".")
        rest = f".{last}{rest}"
    return rename[module] + rest if module in rename else name
