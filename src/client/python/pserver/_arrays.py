"""Arrays of callers and results, as the C library reads and writes them."""

from __future__ import annotations

import math
import sys
import weakref
from ctypes import byref, c_void_p
from importlib import import_module
from typing import Any, Final, Mapping, Sequence, Tuple, Optional

import numpy as np

from . import errors
from ._error import Error, shown, unexpected
from ._native.declarations import RANK_MAX, Tensor
from ._native.library import Library

Array = np.ndarray[Any, np.dtype[Any]]

try:
    ml_dtypes: Any = import_module("ml_dtypes")
except ImportError:
    ml_dtypes = None

_BITS: Final[np.dtype[Any]] = np.dtype("<u2")

#: The type of arrays of bfloat16, which numpy itself has not: that of ``ml_dtypes`` if it is installed, else uint16
#: with a mark, of the elements' bits. ``bits.view(pserver.bfloat16)`` marks an array of bits without a copy.
bfloat16: Final[np.dtype[Any]] = (
    np.dtype(_BITS, metadata={"pserver": "bfloat16"})  # type: ignore[call-overload, unused-ignore]
    if ml_dtypes is None
    else np.dtype(ml_dtypes.bfloat16)
)

#: Names of the element types, in the order of ``pserver_dtype``.
NAMES: Final = (
    *("int32", "uint32", "int64", "uint64", "float32", "float64"),
    *("bool", "uint8", "int8", "float16", "bfloat16"),
)
#: Element types in the order of ``pserver_dtype``.
DTYPES: Final[Tuple[np.dtype[Any], ...]] = tuple(
    bfloat16 if name == "bfloat16" else np.dtype(name).newbyteorder("<") for name in NAMES
)
_NUMBERS: Final = {dtype: number for number, dtype in enumerate(DTYPES) if dtype != bfloat16}
_BFLOAT16: Final = NAMES.index("bfloat16")

#: Kinds of DLPack devices whose memory the processor can read: its own, and memory pinned for CUDA or
#: ROCm.
_READABLE_DEVICES: Final = {1, 3, 11}
_DEVICE_NAMES: Final = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA"}

_EXPECTED: Final = "a number, or an array of numpy, a buffer, or a tensor on the CPU"


def number_of(dtype: np.dtype[Any]) -> Optional[int]:
    """Returns the number of an element type; None if it is none, such as uint16 without the mark of bfloat16."""
    if dtype == bfloat16:
        marks: Any = dtype.metadata or {}
        is_marked = ml_dtypes is not None or marks.get("pserver") == "bfloat16"
        return _BFLOAT16 if is_marked else None
    return _NUMBERS.get(dtype)


def name_of(dtype: np.dtype[Any]) -> str:
    """Returns the name of an element type as the server has it, or numpy's name of another one."""
    number = number_of(dtype)
    return dtype.name if number is None else NAMES[number]


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
    if dtype.kind == "b":
        raise bad_dtype(what, "bool", f"a number of {type(value).__name__}")
    if isinstance(value, float) and dtype.kind != "f" and dtype != bfloat16:
        raise bad_dtype(what, dtype.name, "a float")
    if not _fits(value, dtype):
        raise unexpected(
            errors.BadValue, what, f"a number that fits {name_of(dtype)}", shown(value)
        )
    return _to_bfloat16(value) if dtype == bfloat16 else np.array(value, dtype)


#: The largest finite bfloat16.
_BFLOAT16_MAX: Final = 2.0**128 - 2.0**120


def _fits(value: Any, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f" or dtype == bfloat16:
        # The type has infinities, but no finite numbers beyond its largest.
        largest = _BFLOAT16_MAX if dtype == bfloat16 else float(np.finfo(dtype).max)
        return abs(value) <= largest or value in (math.inf, -math.inf) or value != value
    return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)


def _to_bfloat16(value: Any) -> Array:
    """Rounds a number to nearest, ties to even."""
    bits = int(np.float32(value).view(np.uint32))
    half = 0x7FC0 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.array(half, _BITS).view(bfloat16)


def to_array(value: Any, what: str) -> Array:
    """Returns the elements of ``value`` in C order and little-endian; copied only if necessary.

    BAD_DTYPE for elements of a type that no parameter has, BAD_VALUE for anything that is
    not an array or lies on another device, BAD_SHAPE for too many dimensions. ``what`` is named in the
    message.
    """
    array = _view(value, what)
    # The bits of bfloat16 are in the order of this machine, which is little-endian.
    dtype = array.dtype if array.dtype == bfloat16 else array.dtype.newbyteorder("<")
    if number_of(dtype) is None:
        raise bad_dtype(what, list(NAMES), _type_name(value, array))
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
        dtype=number_of(array.dtype),
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
    """Returns the value as a numpy array, without a copy if possible."""
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
        bits = _bits_of(value)
        if bits is not None:
            return np.asarray(bits).view(bfloat16)
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value)
        if hasattr(value, "__array__"):
            return np.asarray(value)
        return np.asarray(memoryview(value))
    except Exception as error:  # As above.
        raise _refusal(value, what, error) from error


def _bits_of(value: Any) -> Any:
    """Returns a view of the bits of a PyTorch tensor of bfloat16, as int16; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or value.dtype != torch.bfloat16:
        return None
    return value.view(torch.int16)


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
        return bad_dtype(what, list(NAMES), f"{received} of {dtype} ({cause})")
    if isinstance(value, (list, tuple)):
        received += ": make an array of it, with numpy.asarray()"
    return unexpected(errors.BadValue, what, _EXPECTED, received)


def _type_name(value: Any, array: Array) -> str:
    own = getattr(value, "dtype", None)
    if array.dtype == _BITS:
        return "uint16; bits of bfloat16 are marked by .view(pserver.bfloat16)"
    return str(array.dtype if own is None else own)


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
    typestr = _BITS.str if dtype == bfloat16 else dtype.str
    array = np.asarray(_Memory(library, own, typestr, shape))
    return array.view(bfloat16) if dtype == bfloat16 else array


def to_out(value: Any, what: str) -> Array:
    """Views the caller's memory as an array to read into; never copies it.

    BAD_DTYPE unless the element type is one of the protocol's and little-endian; BAD_VALUE unless the
    memory is writable and in C order.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise unexpected(errors.BadValue, what, "an array without a mask", "a masked one")
    array = _shared_view(value, what)
    if number_of(array.dtype) is None:
        raise bad_dtype(what, list(NAMES), str(array.dtype))
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
        raise bad_dtype(f'out["{name}"]', name_of(dtype), name_of(array.dtype))
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
        value = value.detach()
        bits = _bits_of(value)
        array = np.asarray(value) if bits is None else np.asarray(bits).view(bfloat16)
        is_shared = array.size == 0 or array.ctypes.data == address()
    except Exception as error:  # Tensor libraries raise their own types here.
        raise unexpected(errors.BadValue, what, expected, full_name(value)) from error
    if is_shared:
        return array
    raise unexpected(
        errors.BadValue, what, expected, f"{full_name(value)}, of which numpy makes a copy"
    )


class Origins:
    """The states from which the arrays of one call were read; kept by the C library."""

    def __init__(
        self, library: Library, handle: c_void_p, names: Sequence[str], arrays: Sequence[Array]
    ) -> None:
        self.library = library
        self.handle = handle
        # The references are weak, so that an array that a caller removes from the result is freed.
        self._places = {
            name: (index, weakref.ref(array))
            for index, (name, array) in enumerate(zip(names, arrays))
        }
        self._release = Release(self, library.free_origins)
        self._release._as_parameter_ = handle

    def of(self, arrays: Mapping[str, Array]) -> Mapping[str, Tuple[int, Array]]:
        """Returns, by name, those of these arrays that the call has returned, each with its index in
        the call."""
        return {
            name: (index, array)
            for name, (index, given) in self._places.items()
            if (array := given()) is not None and arrays.get(name) is array
        }
