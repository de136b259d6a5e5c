"""Converts arrays that callers pass in to what the C library reads."""

from __future__ import annotations

import math
from typing import Any, Final, Optional, Tuple

import numpy as np

from . import errors
from ._error import Error, shown, unexpected
from ._native.structs import RANK_MAX, Tensor

Array = np.ndarray[Any, np.dtype[Any]]

#: Element types in the order of ``pserver_dtype``.
DTYPES: Final[Tuple[np.dtype[Any], ...]] = tuple(
    np.dtype(name).newbyteorder("<")
    for name in ("int32", "uint32", "int64", "uint64", "float32", "float64")
)
_NUMBERS: Final = {dtype: number for number, dtype in enumerate(DTYPES)}
_SUPPORTED: Final = [dtype.name for dtype in DTYPES]

#: Kinds of DLPack devices whose memory the processor can read: its own, and memory pinned for CUDA or
#: ROCm.
_READABLE_DEVICES: Final = {1, 3, 11}
_DEVICE_NAMES: Final = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA"}

_EXPECTED: Final = "a number, or an array of numpy, a buffer, or a tensor on the CPU"


def is_number(value: object) -> bool:
    """Whether it is a plain Python number, which takes the parameter's element type."""
    return isinstance(value, (int, float)) and not isinstance(value, (bool, np.generic))


def from_number(value: Any, what: str, dtype: Optional[np.dtype[Any]]) -> Array:
    """Converts a Python number to a 0-d array of ``dtype``; of int64 or float64 if that is None.

    BAD_DTYPE for a float where the type is an integer, BAD_VALUE for a number that does not fit the
    type.
    """
    if dtype is None:
        dtype = np.dtype("<f8" if isinstance(value, float) else "<i8")
    if isinstance(value, float) and dtype.kind != "f":
        raise bad_dtype(what, dtype.name, "a float")
    if not _fits(value, dtype):
        raise unexpected(errors.BadValue, what, f"a number that fits {dtype.name}", shown(value))
    return np.array(value, dtype)


def _fits(value: Any, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        # The type has infinities, but no finite numbers beyond its largest.
        return (
            abs(value) <= float(np.finfo(dtype).max)
            or value in (math.inf, -math.inf)
            or value != value
        )
    return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)


def to_array(value: Any, what: str) -> Array:
    """The elements of ``value`` in C order and little-endian; copied only if necessary.

    BAD_DTYPE for elements of another type than the six of the protocol, BAD_VALUE for anything that is
    not an array or lies on another device, BAD_SHAPE for too many dimensions. ``what`` is named in the
    message.
    """
    array = _view(value, what)
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _NUMBERS:
        raise bad_dtype(what, _SUPPORTED, _type_name(value, array))
    if array.ndim > RANK_MAX:
        raise errors.BadShape(
            f"{what}: expected at most {RANK_MAX} dimensions; received {array.ndim}",
            {"expected": RANK_MAX, "received": array.ndim},
        )
    # Unlike numpy.ascontiguousarray, this keeps 0-d arrays 0-d.
    return np.asarray(array, dtype, order="C")


def tensor_of(array: Array) -> Tensor:
    """Returns the C library's struct for an array of :func:`to_array`; the caller must keep the array
    alive."""
    tensor = Tensor(
        dtype=_NUMBERS[array.dtype],
        rank=array.ndim,
        # This is much faster than array.ctypes.data.
        data=array.__array_interface__["data"][0],
        bytes=array.nbytes,
    )
    tensor.shape[: array.ndim] = array.shape
    return tensor


def bad_dtype(what: str, expected: Any, received: str) -> errors.BadDtype:
    """Makes an error that names both element types."""
    text = expected if isinstance(expected, str) else f"one of {', '.join(expected)}"
    return errors.BadDtype(
        f"{what}: expected {text}; received {received}",
        {"expected": expected, "received": received},
    )


def check_device(value: Any, what: str) -> None:
    """Raises BAD_VALUE for a tensor that is not in CPU memory."""
    device = getattr(value, "__dlpack_device__", None)
    if device is None:
        return
    try:
        kind = int(device()[0])
    except Exception as error:  # Tensor libraries raise their own types here.
        raise _refusal(value, what, error) from error
    if kind not in _READABLE_DEVICES:
        name = _DEVICE_NAMES.get(kind, f"device of kind {kind}")
        raise errors.BadValue(
            f"{what}: expected a tensor on the CPU; received one on {name}: copy it first, as with "
            "its method cpu()",
            {"expected": "CPU", "received": name},
        )


def full_name(value: Any) -> str:
    """Returns the full name of a value's type, for messages."""
    kind = type(value)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _view(value: Any, what: str) -> Array:
    """The value as a numpy array, without a copy if possible."""
    if isinstance(value, np.ma.MaskedArray):
        received = "a masked one: fill it first, with filled()"
        raise unexpected(errors.BadValue, what, "an array without a mask", received)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    check_device(value, what)
    if hasattr(value, "requires_grad") and callable(getattr(value, "detach", None)):
        # A PyTorch tensor that records gradients cannot be viewed; only its values are needed.
        value = value.detach()
    try:
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value)
        if hasattr(value, "__array__"):
            return np.asarray(value)
        return np.asarray(memoryview(value))
    except Exception as error:  # As above.
        raise _refusal(value, what, error) from error


def _from_dlpack(value: Any) -> Array:
    try:
        return np.from_dlpack(value)
    except Exception:
        # An object that cannot be exchanged by DLPack, such as a read-only array, may offer
        # ``__array__``.
        if not hasattr(value, "__array__"):
            raise
        return np.asarray(value)


def _refusal(value: Any, what: str, cause: Exception) -> Error:
    received = full_name(value)
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return bad_dtype(what, _SUPPORTED, f"{received} of {dtype} ({cause})")
    if isinstance(value, (list, tuple)):
        received += ": make an array of it, with numpy.asarray()"
    return unexpected(errors.BadValue, what, _EXPECTED, received)


def _type_name(value: Any, array: Array) -> str:
    own = getattr(value, "dtype", None)
    return str(array.dtype if own is None else own)
