"""Reads of parameters, as calls of the C library."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_uint64, c_void_p, sizeof
from typing import Any, Mapping, Optional, Sequence, Tuple

from ._arrays import DTYPES, Array, tensor_of
from ._indices import structs_of
from ._native.library import Connection, Library
from ._native.structs import Known, ReadOptions, Tensor
from ._origins import Origins
from ._results import check_shape, shape_of, take
from .records import Params


#: The arrays that the caller already has, by name, with their index in the call that has read them.
KnownArrays = Mapping[str, Tuple[int, Array]]


def get(
    connection: Connection,
    names: Sequence[str],
    encoded: Sequence[bytes],
    out: Mapping[str, Array],
    known: Optional[Params],
    encoding: int,
    timeout_ms: int,
) -> Params:
    """Reads values by name: into the arrays of ``out`` where it has one, else those of ``known`` that
    are still up to date, else into new ones."""
    native = connection.native
    versions = (c_uint64 * len(names))()
    tensors = (Tensor * len(names))()
    for tensor, name in zip(tensors, names):
        if name in out:
            _aim(tensor, out[name])
    options = ReadOptions(struct_size=sizeof(ReadOptions), encoding=encoding, versions=versions)
    c_names = (c_char_p * len(names))(*encoded)
    origins = None if known is None else known._origins
    # The copy of the library that is loaded after a fork does not know the origins of the one before.
    usable = origins is not None and origins.library is native
    had: KnownArrays = origins.of(known) if usable and origins and known is not None else {}
    given = _known_of(names, had, origins)
    handle = c_void_p()
    connection.call(
        "pserver_get_known",
        c_names,
        tensors,
        len(names),
        given,
        byref(handle),
        byref(options),
        timeout_ms,
    )
    arrays = [_result(native, tensor, name, out, had) for tensor, name in zip(tensors, names)]
    read = Origins(native, handle, names, arrays)
    return Params(dict(zip(names, arrays)), dict(zip(names, versions)), read)


def _known_of(
    names: Sequence[str], had: KnownArrays, origins: Optional[Origins]
) -> Optional[ctypes.Array[Known]]:
    """Describes to the C library the values that the caller already has; None if there are none."""
    if not had or origins is None:
        return None
    given = (Known * len(names))()
    for each, name in zip(given, names):
        if name in had:
            each.index, array = had[name]
            each.data, each.origins = array.__array_interface__["data"][0], origins.handle
    return given


def pull_part(
    connection: Connection,
    name: bytes,
    indices: Sequence[Array],
    out: Optional[Array],
    encoding: int,
    timeout_ms: int,
) -> Array:
    """Reads the elements at the product of the lists, into ``out`` or a new array."""
    part = Tensor()
    if out is not None:
        _aim(part, out)
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
    return take(connection.native, part) if out is None else out


def _aim(tensor: Tensor, array: Array) -> None:
    aimed = tensor_of(array)
    tensor.dtype, tensor.data, tensor.bytes = aimed.dtype, aimed.data, aimed.bytes


def _result(
    native: Library, tensor: Any, name: str, out: Mapping[str, Array], had: KnownArrays
) -> Array:
    if name in out:
        check_shape(name, out[name], DTYPES[tensor.dtype], shape_of(tensor))
        return out[name]
    return take(native, tensor) if tensor.data else had[name][1]
