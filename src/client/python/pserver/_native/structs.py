"""The structs of ``pserver.h``, entry by entry: ``GradOptions`` is ``pserver_grad_options``.

A test compares them with the layout that a C compiler gives them.
"""

from __future__ import annotations

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
    _fields_ = [
        ("dtype", c_int),
        ("rank", c_int32),
        ("shape", c_uint64 * RANK_MAX),
        ("data", c_void_p),
        ("bytes", c_uint64),
    ]


class Config(Structure):
    _fields_ = [
        ("text", c_char_p),
        ("optimizer_config", c_char_p),
        ("optimizer_config_bytes", c_size_t),
        ("parameter_config", c_char_p),
        ("parameter_config_bytes", c_size_t),
    ]


class NewParameter(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("value", Tensor),
        ("config", POINTER(Config)),
    ]


class Options(Structure):
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
    _fields_ = [
        ("name", c_char_p),
        ("values", Tensor),
        ("rows", POINTER(c_int64)),
        ("row_count", c_size_t),
    ]


class NoteEntry(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("number", c_double),
        ("text", c_char_p),
        ("flag", c_bool),
    ]


class GradOptions(Structure):
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
    _fields_ = [
        ("struct_size", c_size_t),
        ("encoding", c_int),
        ("stored_is_enough", c_bool),
    ]


class ReadOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("encoding", c_int),
        ("versions", POINTER(c_uint64)),
    ]


class Known(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("origins", c_void_p),
        ("index", c_size_t),
    ]


class Indices(Structure):
    _fields_ = [("values", POINTER(c_int64)), ("count", c_size_t)]


class JobInfo(Structure):
    _fields_ = [
        ("state", c_int),
        ("epoch", c_uint64),
        ("shards", c_uint32),
        ("by", c_char * 65),
        ("session", c_uint64),
    ]


class Position(Structure):
    _fields_ = [("generation", c_uint64), ("seq", c_uint64)]


class ParameterInfo(Structure):
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
    _fields_ = [
        ("info", ParameterInfo),
        ("config", c_char_p),
        ("block_elements", c_uint64),
        ("first_shard", c_uint32),
        ("shards", c_uint32),
    ]


class Fallback(Structure):
    _fields_ = [
        ("shard", c_uint32),
        ("generation", c_uint64),
        ("from", c_uint64),
        ("to", c_uint64),
    ]


class SavedModel(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("file", c_char * 4097),
        ("bytes", c_uint64),
        ("format", c_char * 65),
        ("host", c_char * 65),
    ]


#: ``pserver_on_progress``.
OnProgress: Final = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64)
