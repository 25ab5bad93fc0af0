"""Trains neural networks that the ahead-of-time compiler mtc made.

    import mtc

    model = mtc.compile("models/mnist.mt")
    history = model.fit(X_train, y_train, epochs=10, validation_data=(X_test, y_test))
    model.predict(X_test), model.evaluate(X_test, y_test), model.save("m.safetensors")

Importing takes no time: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_MODULES = {
    "model": "Model compile",
    "training": "Callback EarlyStopping History",
    "errors": "CompileError CompilerMissing CompileWarning ConversionNotice TrainingWarning DataError DeviceError DivergedError "
    "FileError FileInUse InternalError MtcError ProcessError UsageError",
    "parameters": "Parameter Parameters",
    "dlpack": "DeviceArray from_dlpack",
    "sequential": "Sequential",
    "network": "NeuralNetworkGPU",
    "estimators": "Classifier Regressor",
    "plotting": "plot",
    "idxfile": "read_idx",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}
_LISTS = ("layers", "losses", "optimizers")  # modules whose __all__ is offered here too

__version__: str

if TYPE_CHECKING:
    from .dlpack import DeviceArray as DeviceArray
    from .dlpack import from_dlpack as from_dlpack
    from .errors import *  # noqa: F403
    from .estimators import Classifier as Classifier
    from .estimators import Regressor as Regressor
    from .idxfile import read_idx as read_idx
    from .layers import *  # noqa: F403
    from .losses import *  # noqa: F403
    from .model import Model as Model
    from .model import compile as compile
    from .network import NeuralNetworkGPU as NeuralNetworkGPU
    from .optimizers import *  # noqa: F403
    from .parameters import Parameter as Parameter
    from .parameters import Parameters as Parameters
    from .plotting import plot as plot
    from .sequential import Sequential as Sequential
    from .training import Callback as Callback
    from .training import EarlyStopping as EarlyStopping
    from .training import History as History


def __getattr__(name: str) -> Any:
    value = _find(name)
    globals()[name] = value
    return value


def _find(name: str) -> Any:
    if name == "__version__":
        return _module("toolchain").version()
    if name in _HOME:
        return getattr(_module(_HOME[name]), name)
    if name.islower() and not name.startswith("_"):  # `from . import name` asks for it too
        try:
            return _module(name)
        except ModuleNotFoundError as missing:
            if missing.name != f"{__name__}.{name}":  # NumPy, say
                raise
    elif not name.startswith("_"):
        for module in _LISTS:
            if name in _module(module).__all__:
                return getattr(_module(module), name)
    raise AttributeError(f"module 'mtc' has no attribute '{name}'{_nearest(name)}")


def _nearest(name: str) -> str:
    if name.startswith("_"):  # what packages ask every module for
        return ""
    habits = _module("habits")
    return habits.hint(name, habits.MODULE, ()) or habits.of_language(name) or habits.hint(name, {}, __dir__())


def _module(name: str) -> Any:
    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    """What users need, without what this file imports."""
    return sorted({"__doc__", "__version__", *_HOME, *(name for module in _LISTS for name in _module(module).__all__)})
