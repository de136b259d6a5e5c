"""The structs and functions of ``pserver.h``, for ctypes: ``GradOptions`` is ``pserver_grad_options``.

A test compares them with the header, and with the layout that a C compiler gives the structs.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure
from typing import Any, Final

RANK_MAX: Final = 32
SHARDS_MAX: Final = 256
TIMEOUT_DEFAULT: Final = -1

_TYPES: Final[dict[str, Any]] = {
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "pointer": ctypes.c_void_p,
    "size": ctypes.c_size_t,
    "text": ctypes.c_char_p,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
}


def _type(name: str) -> Any:
    """Returns a type by its name above, that of a struct, ``type*`` or ``type[number]``."""
    if name.endswith("*"):
        return POINTER(_type(name[:-1]))
    if name.endswith("]"):
        entry, _, count = name[:-1].partition("[")
        return _type(entry) * int(count)
    return _TYPES.get(name) or globals()[name]


def _fields(text: str) -> list[tuple[str, Any]]:
    """Reads the entries of a struct: ``name type``, with commas between them."""
    return [(name, _type(kind)) for name, kind in (each.split() for each in text.split(","))]


class Tensor(Structure):
    _fields_ = _fields("dtype int, rank int32, shape uint64[32], data pointer, bytes uint64")


class Config(Structure):
    _fields_ = _fields(
        "text text, optimizer_config text, optimizer_config_bytes size, "
        "parameter_config text, parameter_config_bytes size"
    )


class NewParameter(Structure):
    _fields_ = _fields("name text, value Tensor, config Config*")


class Options(Structure):
    _fields_ = _fields(
        "struct_size size, url text, user text, password text, token text, creds_file text, "
        "nkey_file text, nkey_public text, tls_ca text, tls_cert text, tls_key text, job text, "
        "trainer text, inbox_token text, connect_timeout_ms int64, attempt_timeout_ms int64, "
        "call_timeout_ms int64, in_flight_bytes size"
    )


class ClientInfo(Structure):
    _fields_ = _fields(
        "struct_size size, job char[41], trainer char[65], session uint64, synchronization int, "
        "trainers uint64, backups uint64, sums bool, staleness uint64, quorum uint64, "
        "grace_cap_ms uint64, steps_ended uint64"
    )


class ClientStats(Structure):
    _fields_ = _fields(
        "struct_size size, calls uint64, failed uint64[100], records uint64, resent uint64, "
        "clipped uint64, set_aside uint64, reads uint64, sent_bytes uint64, received_bytes uint64, "
        "reconnects uint64"
    )


class Gradient(Structure):
    _fields_ = _fields("name text, values Tensor, rows int64*, row_count size")


class NoteEntry(Structure):
    _fields_ = _fields("name text, kind int, number double, text text, flag bool")


class GradOptions(Structure):
    _fields_ = _fields(
        "struct_size size, has_learning_rate bool, learning_rate double, encoding int, "
        "stored_is_enough bool, end_step bool, late_blocks size*, no_error_feedback bool"
    )


class UpdateOptions(Structure):
    _fields_ = _fields("struct_size size, encoding int, stored_is_enough bool")


class ReadOptions(Structure):
    _fields_ = _fields("struct_size size, encoding int, versions uint64*")


class Known(Structure):
    _fields_ = _fields("data pointer, origins pointer, index size")


class Indices(Structure):
    _fields_ = _fields("values int64*, count size")


class Contribution(Structure):
    _fields_ = _fields(
        "struct_size size, fragment text, base uint64, steps uint64, tokens uint64, "
        "step_ms double, form int, encoding int, no_error_feedback bool, exact bool*"
    )


class Fragment(Structure):
    _fields_ = _fields("name text, version uint64, parameters text*, parameter_count size")


class Tally(Structure):
    _fields_ = _fields("contributions uint64, steps uint64, tokens uint64")


class Account(Structure):
    _fields_ = _fields("processed Tally, merged Tally, late Tally, dropped Tally")


class BalancedTensor(Structure):
    _fields_ = _fields("name text, bytes uint64, is_embedding bool, fragment char[24]")


class JobInfo(Structure):
    _fields_ = _fields("state int, epoch uint64, shards uint32, by char[65], session uint64")


class Position(Structure):
    _fields_ = _fields("generation uint64, seq uint64")


class ParameterInfo(Structure):
    _fields_ = _fields(
        "name text, dtype int, rank int32, shape uint64[32], elements uint64, blocks uint64, "
        "epoch uint64, ready bool"
    )


class ParameterDetails(Structure):
    _fields_ = _fields(
        "info ParameterInfo, config text, block_elements uint64, first_shard uint32, "
        "shards uint32, pinned bool"
    )


class Fallback(Structure):
    _fields_ = _fields("shard uint32, generation uint64, from uint64, to uint64")


class SavedModel(Structure):
    _fields_ = _fields(
        "struct_size size, file char[4097], bytes uint64, format char[65], host char[65]"
    )


#: ``pserver_on_progress``.
OnProgress: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)

#: The functions that return a status, with the types of their arguments.
CALLS: Final = {
    "pserver_connect": "Options* pointer*",
    "pserver_close": "pointer int64",
    "pserver_describe": "pointer ClientInfo*",
    "pserver_stats": "pointer ClientStats*",
    "pserver_canceller_new": "pointer*",
    "pserver_begin_init": "pointer bool int64 bool*",
    "pserver_init_param": "pointer text Tensor* Config* int64",
    "pserver_init_params": "pointer NewParameter* size int64",
    "pserver_finish_init": "pointer int64",
    "pserver_abort_init": "pointer int64",
    "pserver_create": "pointer text Tensor* Config* int64 Tensor*",
    "pserver_send_grads": "pointer Gradient* size GradOptions* int64",
    "pserver_end_step": "pointer int64",
    "pserver_exit_steps": "pointer int64",
    "pserver_enter_rounds": "pointer int64",
    "pserver_contribute": "pointer text* Tensor* size Contribution* int64 uint64*",
    "pserver_sampling": "pointer text text uint64 int64 uint64* bool*",
    "pserver_fragments": "pointer Fragment** size* Account* int64",
    "pserver_pull_fragment": "pointer text text* Tensor* size uint64 int int64 uint64*",
    "pserver_balance_fragments": "BalancedTensor* size size",
    "pserver_note": "pointer NoteEntry* size int64",
    "pserver_set_with": "pointer text* Tensor* size UpdateOptions* int64",
    "pserver_push_with": "pointer text Tensor* double double UpdateOptions* int64",
    "pserver_get_known": "pointer text* Tensor* size Known* pointer* ReadOptions* int64",
    "pserver_pull_part_with": "pointer text Indices* size Tensor* ReadOptions* int64",
    "pserver_push_part_with": (
        "pointer text Tensor* Indices* size double double UpdateOptions* int64"
    ),
    "pserver_job_positions": "pointer JobInfo* Position* size* int64",
    "pserver_list_details": "pointer ParameterDetails** size* int64",
    "pserver_fallbacks": "pointer Fallback** size* int64",
    "pserver_save_model": "pointer text OnProgress pointer SavedModel* int64",
    "pserver_last_error": "text*",
}

#: The functions that return nothing, with the types of their arguments.
PROCEDURES: Final = {
    "pserver_options_init": "Options*",
    "pserver_canceller_free": "pointer",
    "pserver_cancel": "pointer",
    "pserver_canceller_rearm": "pointer",
    "pserver_use_canceller": "pointer",
    "pserver_tensor_release": "Tensor*",
    "pserver_origins_free": "pointer",
    "pserver_fragments_release": "Fragment* size",
    "pserver_list_details_release": "ParameterDetails* size",
    "pserver_fallbacks_release": "Fallback*",
}

#: The functions that return a text, with the types of their arguments.
TEXTS: Final = {"pserver_last_error_details": "", "pserver_version": ""}


def declare(library: ctypes.CDLL) -> None:
    """Tells ctypes the types of the library's functions. AttributeError names one that the library
    lacks."""
    results = (CALLS, ctypes.c_int), (PROCEDURES, None), (TEXTS, ctypes.c_char_p)
    for functions, result in results:
        for name, arguments in functions.items():
            function = getattr(library, name)
            function.argtypes = [_type(each) for each in arguments.split()]
            function.restype = result
