"""Arrays that calls return: new ones, or the caller's own."""

from __future__ import annotations

import math
import weakref
from ctypes import byref
from typing import Any, Sequence, Tuple

import numpy as np

from . import errors
from ._arrays import DTYPES, Array, bad_dtype, check_device, full_name
from ._error import unexpected
from ._native.library import Library
from ._native.structs import Tensor


class _Memory:
    """Memory that the C library has allocated; released when no array uses it any more."""

    def __init__(
        self, library: Library, tensor: Tensor, dtype: str, shape: Tuple[int, ...]
    ) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype,
            "shape": shape,
            "data": (tensor.data, False),
        }
        self._release = Release(self, library.release)
        self._release._as_parameter_ = byref(tensor)


class Release(weakref.ref[Any]):
    """Calls a C function when an object is collected; ``_as_parameter_`` is the function's argument.

    A ``__del__`` method would be Python code, in which signal handlers run, and an exception that a
    handler raises there is dropped. With many Ctrl-C during a loop of reads, one of them would be lost
    in this way.
    """

    _as_parameter_: Any


def shape_of(tensor: Any) -> Tuple[int, ...]:
    """Returns the shape in a struct of the C library."""
    return tuple(tensor.shape[: tensor.rank])


def take(library: Library, tensor: Tensor) -> Array:
    """Makes an array on memory that the C library has allocated, which is freed with the array."""
    dtype, shape = DTYPES[tensor.dtype], shape_of(tensor)
    if math.prod(shape) == 0:
        library.functions.pserver_tensor_release(tensor)
        return np.empty(shape, dtype)
    # The struct is copied, because the caller's may be part of an array that is freed.
    own = Tensor.from_buffer_copy(tensor)
    return np.asarray(_Memory(library, own, dtype.str, shape))


def to_out(value: Any, what: str) -> Array:
    """Views the caller's memory as an array to read into; never copies it.

    BAD_DTYPE unless the element type is one of the protocol's and little-endian; BAD_VALUE unless the
    memory is writable and in C order.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise unexpected(errors.BadValue, what, "an array without a mask", "a masked one")
    array = _shared_view(value, what)
    if array.dtype not in DTYPES:
        raise bad_dtype(what, [dtype.name for dtype in DTYPES], str(array.dtype))
    if not array.flags.c_contiguous:
        raise unexpected(errors.BadValue, what, "memory in C order", "other strides")
    if not array.flags.writeable:
        raise unexpected(errors.BadValue, what, "a writable array", "a read-only one")
    return array


def fits(array: Array, dtype: np.dtype[Any], shape: Sequence[int]) -> bool:
    """Whether the array has this type and shape."""
    return array.dtype == dtype and array.shape == tuple(shape)


def check_shape(name: str, array: Array, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Raises BAD_DTYPE or BAD_SHAPE unless the array fits the parameter."""
    if array.dtype != dtype:
        raise bad_dtype(f'out["{name}"]', dtype.name, array.dtype.name)
    if array.shape != tuple(shape):
        expected, received = list(shape), list(array.shape)
        raise errors.BadShape(
            f'out["{name}"]: expected shape {expected}; received {received}',
            {"parameter": name, "expected": expected, "received": received},
        )


def _shared_view(value: Any, what: str) -> Array:
    if isinstance(value, np.ndarray):
        return value
    check_device(value, what)
    expected = "an array of numpy, a writable buffer, or a tensor of PyTorch on the CPU"
    address = getattr(value, "data_ptr", None)
    try:
        if address is None:
            return np.asarray(memoryview(value))
        array = np.asarray(value.detach())
        is_shared = array.size == 0 or array.ctypes.data == address()
    except Exception as error:  # Tensor libraries raise their own types here.
        raise unexpected(errors.BadValue, what, expected, full_name(value)) from error
    if is_shared:
        return array
    raise unexpected(
        errors.BadValue, what, expected, f"{full_name(value)}, of which numpy makes a copy"
    )
