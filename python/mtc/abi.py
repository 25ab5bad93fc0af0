"""The C interface of a compiled model (runtime/mtc.h), as ctypes has it. It needs nothing but Python itself, so that processes which
train beside this one begin at once (rank.py)."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Optional, Sequence

STEPS = ctypes.CFUNCTYPE(c_bool, c_void_p, c_int64, POINTER(c_double))
EPOCH = ctypes.CFUNCTYPE(c_bool, c_void_p, c_int64, POINTER(c_double), POINTER(c_double))
WARN = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Fitting(ctypes.Structure):
    """MtcFitting."""

    _fields_ = [("epochs", c_int64), ("every", c_int64), ("pauses", c_bool), ("user", c_void_p), ("steps", STEPS),
                ("epoch", EPOCH), ("warn", WARN)]


class Sampling(ctypes.Structure):
    """MtcSampling."""

    _fields_ = [("repetition_penalty", c_double), ("temperature", c_double), ("top_k", c_int64), ("top_p", c_double),
                ("min_p", c_double), ("seed", c_uint64)]


class Generation(ctypes.Structure):
    """MtcGeneration."""

    _fields_ = [("sampling", Sampling), ("prompt", c_char_p), ("tokens", c_int64), ("batch", c_int64), ("beams", c_int64),
                ("stops", c_int), ("stop", POINTER(c_char_p))]

    @classmethod
    def of(cls, sampling: Sampling, prompt: bytes, tokens: int, batch: int, beams: int, stops: Sequence[bytes]) -> Generation:
        """With memory of its own for the stops."""
        return cls(sampling, prompt, tokens, batch, beams, len(stops), (c_char_p * len(stops))(*stops))


class Piece(ctypes.Structure):
    """MtcPiece."""

    _fields_ = [("text", c_int64), ("token", c_int32), ("bytes", c_void_p), ("count", c_size_t)]


class Ranks(ctypes.Structure):
    """MtcRanks."""

    _fields_ = [("rank", c_int), ("count", c_int), ("socket", POINTER(c_int)), ("timeout", c_double), ("sums", c_char_p)]


POINTERS, FLAGS = POINTER(c_void_p), POINTER(c_bool)
_WITH_SESSION: dict[str, list[Any]] = {
    "set_data": [c_int, c_int64, POINTERS],
    "lend_data": [c_int, c_int64, POINTERS, FLAGS],
    "load_data": [c_int, c_char_p],
    "drop_data": [c_int],
    "set_knob": [c_char_p, c_double],
    "train": [c_int64, c_void_p],
    "fit": [POINTER(Fitting)],
    "fit_together": [POINTER(Fitting), POINTER(Ranks)],
    "evaluate": [c_int, POINTER(c_double)],
    "confusion": [c_void_p],
    "predict": [c_int64, POINTERS, c_void_p],
    "predict_lent": [c_int64, POINTERS, FLAGS, c_void_p, c_bool],
    "decode": [c_int64, c_int32, c_void_p],
    "generator_new": [POINTER(Generation), POINTERS],
    "get": [c_char_p, c_void_p, c_size_t],
    "set": [c_char_p, c_void_p, c_size_t],
    "locate": [c_char_p, POINTERS],
    "memory_new": [c_size_t, POINTERS],
    "memory_free": [c_void_p],
    "memory_read": [c_void_p, c_void_p, c_size_t],
    "memory_write": [c_void_p, c_void_p, c_size_t],
    "save": [c_char_p],
    "export": [c_char_p],
    "load": [c_char_p],
    "resume": [c_char_p],
}


def bind(library: ctypes.CDLL) -> Optional[str]:
    """Gives the functions of a library their types. Returns the name of one that it has not; None: it has all."""
    signatures = {name: (c_int, [c_void_p, *arguments]) for name, arguments in _WITH_SESSION.items()}
    others = {"create": (c_int, [c_void_p, c_uint64, c_int, POINTERS]), "destroy": (None, [c_void_p]),
              "error": (c_char_p, [c_void_p]), "describe": (c_void_p, [c_void_p]), "status": (c_void_p, [c_void_p]),
              "free": (None, [c_void_p]), "lock_file": (c_void_p, [c_char_p, c_char_p, POINTERS]),
              "unlock_file": (None, [c_void_p]), "generator_free": (None, [c_void_p]),
              "generator_next": (c_int, [c_void_p, POINTER(Piece)])}
    for name, (result, arguments) in {**signatures, **others}.items():
        function = getattr(library, f"mtc_{name}", None)
        if function is None:
            return f"mtc_{name}"
        function.restype, function.argtypes = result, arguments
    return None
