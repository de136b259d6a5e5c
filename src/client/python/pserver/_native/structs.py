"""The structs of ``pserver.h``, entry by entry; a test compares them with what a compiler makes."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Final

RANK_MAX: Final = 32
SHARDS_MAX: Final = 256
TIMEOUT_DEFAULT: Final = -1


class Tensor(Structure):
    """``pserver_tensor``."""

    _fields_ = [
        ("dtype", c_int),
        ("rank", c_int32),
        ("shape", c_uint64 * RANK_MAX),
        ("data", c_void_p),
        ("bytes", c_uint64),
    ]


class Config(Structure):
    """``pserver_config``."""

    _fields_ = [
        ("text", c_char_p),
        ("optimizer_config", c_char_p),
        ("optimizer_config_bytes", c_size_t),
        ("parameter_config", c_char_p),
        ("parameter_config_bytes", c_size_t),
    ]


class Options(Structure):
    """``pserver_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("url", c_char_p),
        ("user", c_char_p),
        ("password", c_char_p),
        ("token", c_char_p),
        ("creds_file", c_char_p),
        ("nkey_file", c_char_p),
        ("nkey_public", c_char_p),
        ("tls_ca", c_char_p),
        ("tls_cert", c_char_p),
        ("tls_key", c_char_p),
        ("job", c_char_p),
        ("trainer", c_char_p),
        ("inbox_token", c_char_p),
        ("connect_timeout_ms", c_int64),
        ("attempt_timeout_ms", c_int64),
        ("call_timeout_ms", c_int64),
        ("in_flight_bytes", c_size_t),
    ]


class ClientInfo(Structure):
    """``pserver_client_info``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("job", c_char * 41),
        ("trainer", c_char * 65),
        ("session", c_uint64),
        ("synchronization", c_int),
        ("trainers", c_uint64),
        ("backups", c_uint64),
        ("sums", c_bool),
        ("staleness", c_uint64),
        ("steps_ended", c_uint64),
    ]


class Gradient(Structure):
    """``pserver_gradient``."""

    _fields_ = [
        ("name", c_char_p),
        ("values", Tensor),
        ("rows", POINTER(c_int64)),
        ("row_count", c_size_t),
    ]


class GradOptions(Structure):
    """``pserver_grad_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("has_learning_rate", c_bool),
        ("learning_rate", c_double),
        ("encoding", c_int),
        ("stored_is_enough", c_bool),
        ("end_step", c_bool),
        ("late_blocks", POINTER(c_size_t)),
    ]


class UpdateOptions(Structure):
    """``pserver_update_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("encoding", c_int),
        ("stored_is_enough", c_bool),
    ]


class ReadOptions(Structure):
    """``pserver_read_options``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("encoding", c_int),
        ("versions", POINTER(c_uint64)),
    ]


class Indices(Structure):
    """``pserver_indices``."""

    _fields_ = [("values", POINTER(c_int64)), ("count", c_size_t)]


class JobInfo(Structure):
    """``pserver_job_info``."""

    _fields_ = [
        ("state", c_int),
        ("epoch", c_uint64),
        ("shards", c_uint32),
        ("by", c_char * 65),
        ("session", c_uint64),
    ]


class Position(Structure):
    """``pserver_position``."""

    _fields_ = [("generation", c_uint64), ("seq", c_uint64)]


class ParameterInfo(Structure):
    """``pserver_parameter_info``."""

    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int32),
        ("shape", c_uint64 * RANK_MAX),
        ("elements", c_uint64),
        ("blocks", c_uint64),
        ("epoch", c_uint64),
        ("ready", c_bool),
    ]


class ParameterDetails(Structure):
    """``pserver_parameter_details``."""

    _fields_ = [
        ("info", ParameterInfo),
        ("config", c_char_p),
        ("block_elements", c_uint64),
        ("first_shard", c_uint32),
        ("shards", c_uint32),
    ]


class Fallback(Structure):
    """``pserver_fallback``."""

    _fields_ = [
        ("shard", c_uint32),
        ("generation", c_uint64),
        ("from", c_uint64),
        ("to", c_uint64),
    ]


class SavedModel(Structure):
    """``pserver_saved_model``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("file", c_char * 4097),
        ("bytes", c_uint64),
        ("format", c_char * 65),
        ("host", c_char * 65),
    ]


#: ``pserver_on_progress``.
OnProgress: Final = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64)

#: By the name in the header, for the test of layouts.
STRUCTS: Final[dict[str, type[ctypes.Structure]]] = {
    "pserver_tensor": Tensor,
    "pserver_config": Config,
    "pserver_options": Options,
    "pserver_client_info": ClientInfo,
    "pserver_gradient": Gradient,
    "pserver_grad_options": GradOptions,
    "pserver_update_options": UpdateOptions,
    "pserver_read_options": ReadOptions,
    "pserver_indices": Indices,
    "pserver_job_info": JobInfo,
    "pserver_position": Position,
    "pserver_parameter_info": ParameterInfo,
    "pserver_parameter_details": ParameterDetails,
    "pserver_fallback": Fallback,
    "pserver_saved_model": SavedModel,
}
