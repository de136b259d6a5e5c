"""Reads of parameters, as calls of the C library."""

from __future__ import annotations

from ctypes import byref, c_char_p, c_uint64, sizeof
from typing import Any, Mapping, Sequence

from ._arrays import DTYPES, Array, tensor_of
from ._indices import structs_of
from ._native.library import Connection, Library
from ._native.structs import ReadOptions, Tensor
from ._results import check_shape, shape_of, take
from .records import Params


def get(
    connection: Connection,
    names: Sequence[str],
    encoded: Sequence[bytes],
    out: Mapping[str, Array],
    encoding: int,
    timeout_ms: int,
) -> Params:
    """The values by name, in the arrays of ``out`` where it has one."""
    versions = (c_uint64 * len(names))()
    tensors = (Tensor * len(names))()
    for tensor, name in zip(tensors, names):
        if name in out:
            _aim(tensor, out[name])
    options = ReadOptions(struct_size=sizeof(ReadOptions), encoding=encoding, versions=versions)
    c_names = (c_char_p * len(names))(*encoded)
    connection.call("pserver_get_with", c_names, tensors, len(names), byref(options), timeout_ms)
    arrays = [_result(connection.native, tensor, name, out) for tensor, name in zip(tensors, names)]
    return Params(dict(zip(names, arrays)), dict(zip(names, versions)))


def pull_part(
    connection: Connection,
    name: bytes,
    indices: Sequence[Array],
    encoding: int,
    timeout_ms: int,
) -> Array:
    """The elements at the product of the lists."""
    part = Tensor()
    options = ReadOptions(struct_size=sizeof(ReadOptions), encoding=encoding)
    connection.call(
        "pserver_pull_part_with",
        name,
        structs_of(indices),
        len(indices),
        byref(part),
        byref(options),
        timeout_ms,
    )
    return take(connection.native, part)


def _aim(tensor: Tensor, array: Array) -> None:
    aimed = tensor_of(array)
    tensor.dtype, tensor.data, tensor.bytes = aimed.dtype, aimed.data, aimed.bytes


def _result(native: Library, tensor: Any, name: str, out: Mapping[str, Array]) -> Array:
    if name not in out:
        return take(native, tensor)
    check_shape(name, out[name], DTYPES[tensor.dtype], shape_of(tensor))
    return out[name]
