"""Reads of parameters, as calls of the C library."""

from __future__ import annotations

from ctypes import byref, c_char_p, c_uint64, c_void_p
from typing import Any, Mapping, Sequence

from ._arrays import DTYPES, Array, tensor_of
from ._indices import structs_of
from ._native.library import Library
from ._native.structs import ReadOptions, Tensor
from ._results import check_shape, shape_of, take
from .records import Params


def get(
    native: Library,
    handle: c_void_p,
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
    native.check(
        native.functions.pserver_get_with(
            handle,
            (c_char_p * len(names))(*encoded),
            tensors,
            len(names),
            _options(native, encoding, versions),
            timeout_ms,
        )
    )
    arrays = [_result(native, tensor, name, out) for tensor, name in zip(tensors, names)]
    return Params(dict(zip(names, arrays)), dict(zip(names, versions)))


def pull_part(
    native: Library,
    handle: c_void_p,
    name: bytes,
    indices: Sequence[Array],
    encoding: int,
    timeout_ms: int,
) -> Array:
    """The elements at the product of the lists."""
    part = Tensor()
    native.check(
        native.functions.pserver_pull_part_with(
            handle,
            name,
            structs_of(indices),
            len(indices),
            byref(part),
            _options(native, encoding),
            timeout_ms,
        )
    )
    return take(native, part)


def _aim(tensor: Tensor, array: Array) -> None:
    aimed = tensor_of(array)
    tensor.dtype, tensor.data, tensor.bytes = aimed.dtype, aimed.data, aimed.bytes


def _result(native: Library, tensor: Any, name: str, out: Mapping[str, Array]) -> Array:
    if name not in out:
        return take(native, tensor)
    check_shape(name, out[name], DTYPES[tensor.dtype], shape_of(tensor))
    return out[name]


def _options(native: Library, encoding: int, versions: Any = None) -> Any:
    options = ReadOptions()
    native.functions.pserver_read_options_init(byref(options))
    options.encoding, options.versions = encoding, versions
    return byref(options)
