"""The functions of ``pserver.h`` that this package calls, and their types."""

from __future__ import annotations

import ctypes
import re
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Final

from . import structs

_NAMES: Final = POINTER(c_char_p)
_TENSOR: Final = POINTER(structs.Tensor)
_INDICES: Final = POINTER(structs.Indices)
_READ: Final = POINTER(structs.ReadOptions)
_UPDATE: Final = POINTER(structs.UpdateOptions)
_INIT: Final = [c_void_p, c_char_p, _TENSOR, POINTER(structs.Config), c_int64]
_PART: Final = [c_void_p, c_char_p, _INDICES, c_size_t, _TENSOR]

#: Types of the arguments of the functions that return a status.
CALLS: Final[dict[str, list[Any]]] = {
    "pserver_connect": [POINTER(structs.Options), POINTER(c_void_p)],
    "pserver_close": [c_void_p, c_int64],
    "pserver_describe": [c_void_p, POINTER(structs.ClientInfo)],
    "pserver_canceller_new": [POINTER(c_void_p)],
    "pserver_begin_init": [c_void_p, c_bool, c_int64, POINTER(c_bool)],
    "pserver_init_param": _INIT,
    "pserver_init_params": [c_void_p, POINTER(structs.NewParameter), c_size_t, c_int64],
    "pserver_finish_init": [c_void_p, c_int64],
    "pserver_create": [*_INIT, _TENSOR],
    "pserver_send_grads": [
        c_void_p,
        POINTER(structs.Gradient),
        c_size_t,
        POINTER(structs.GradOptions),
        c_int64,
    ],
    "pserver_end_step": [c_void_p, c_int64],
    "pserver_exit_steps": [c_void_p, c_int64],
    "pserver_note": [c_void_p, POINTER(structs.NoteEntry), c_size_t, c_int64],
    "pserver_set_with": [c_void_p, _NAMES, _TENSOR, c_size_t, _UPDATE, c_int64],
    "pserver_push_with": [c_void_p, c_char_p, _TENSOR, c_double, c_double, _UPDATE, c_int64],
    "pserver_get_known": [
        c_void_p,
        _NAMES,
        _TENSOR,
        c_size_t,
        POINTER(structs.Known),
        POINTER(c_void_p),
        _READ,
        c_int64,
    ],
    "pserver_pull_part_with": [*_PART, _READ, c_int64],
    "pserver_push_part_with": [
        c_void_p,
        c_char_p,
        _TENSOR,
        _INDICES,
        c_size_t,
        c_double,
        c_double,
        _UPDATE,
        c_int64,
    ],
    "pserver_job_positions": [
        c_void_p,
        POINTER(structs.JobInfo),
        POINTER(structs.Position),
        POINTER(c_size_t),
        c_int64,
    ],
    "pserver_list_details": [
        c_void_p,
        POINTER(POINTER(structs.ParameterDetails)),
        POINTER(c_size_t),
        c_int64,
    ],
    "pserver_fallbacks": [
        c_void_p,
        POINTER(POINTER(structs.Fallback)),
        POINTER(c_size_t),
        c_int64,
    ],
    "pserver_save_model": [
        c_void_p,
        c_char_p,
        structs.OnProgress,
        c_void_p,
        POINTER(structs.SavedModel),
        c_int64,
    ],
    "pserver_last_error": [POINTER(c_char_p)],
}

#: Types of the arguments of the functions that return nothing.
PROCEDURES: Final[dict[str, list[Any]]] = {
    "pserver_options_init": [POINTER(structs.Options)],
    "pserver_canceller_free": [c_void_p],
    "pserver_cancel": [c_void_p],
    "pserver_canceller_rearm": [c_void_p],
    "pserver_use_canceller": [c_void_p],
    "pserver_tensor_release": [_TENSOR],
    "pserver_origins_free": [c_void_p],
    "pserver_list_details_release": [POINTER(structs.ParameterDetails), c_size_t],
    "pserver_fallbacks_release": [POINTER(structs.Fallback)],
}

#: The functions that return a text.
TEXTS: Final = ("pserver_last_error_details", "pserver_version")


def declare(library: ctypes.CDLL) -> None:
    """Tells ctypes the types of the library's functions. AttributeError names one that the library
    lacks."""
    for name, arguments in CALLS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, c_int
    for name, arguments in PROCEDURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, None
    for name in TEXTS:
        function = getattr(library, name)
        function.argtypes, function.restype = [], c_char_p


#: Methods of the client whose names differ from those of their functions.
_METHODS: Final = {
    "create": "create_if_not_already_created",
    "set_with": "set_params",
    "push_with": "push",
    "get_known": "get_params",
    "pull_part_with": "pull_part",
    "push_part_with": "push_part",
    "job_positions": "status",
    "list_details": "list_params",
    "save_model": "save",
}
_FUNCTION: Final = re.compile(r'(?<!")\b(' + "|".join(CALLS) + r")\b")


def in_python(message: str) -> str:
    """Replaces function names in a message of the C library by those of this package's methods."""

    def method(match: re.Match[str]) -> str:
        name = match[1][len("pserver_") :]
        return _METHODS.get(name, name)

    return _FUNCTION.sub(method, message)
