"""Indices of rows and elements, as the C library reads them."""

from __future__ import annotations

from ctypes import POINTER, c_int64
from typing import Any, List, Sequence

import numpy as np

from . import errors
from ._arrays import Array
from ._error import shown, unexpected
from ._native.structs import Indices


def to_indices(name: str, indices: Any) -> List[Array]:
    """One array of numbers for each dimension, from lists of them or from ``numpy.ix_``. BAD_INDEX."""
    if isinstance(indices, np.ndarray) or not isinstance(indices, Sequence):
        expected = "one list of numbers for each dimension"
        raise unexpected(errors.BadIndex, name, expected, type(indices).__qualname__)
    return [
        to_numbers(f'"{name}": indices of dimension {i}', each) for i, each in enumerate(indices)
    ]


def to_numbers(what: str, numbers: Any) -> Array:
    """One list of whole numbers, in memory as the C library reads it. BAD_INDEX."""
    expected = "a list of whole numbers"
    if isinstance(numbers, (str, bytes)):
        raise unexpected(errors.BadIndex, what, expected, type(numbers).__qualname__)
    try:
        array = np.asarray(numbers)
    except (TypeError, ValueError) as error:
        raise unexpected(errors.BadIndex, what, expected, str(error)) from error
    if array.ndim == 0:
        raise unexpected(errors.BadIndex, what, expected, shown(numbers))
    if sum(side != 1 for side in array.shape) > 1:
        raise unexpected(errors.BadIndex, what, expected, f"an array of shape {list(array.shape)}")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise unexpected(errors.BadIndex, what, expected, array.dtype.name)
    if array.dtype.kind == "u" and int(array.max()) >= 2**63:
        raise unexpected(errors.BadIndex, what, "numbers below 2^63", str(array.max()))
    return np.ascontiguousarray(array.reshape(-1), np.int64)


def pointer_to(numbers: Array) -> Any:
    """A pointer to the numbers; the caller keeps the array."""
    return numbers.ctypes.data_as(POINTER(c_int64))


def structs_of(indices: Sequence[Array]) -> Any:
    """The C library's view of the lists; the caller keeps the arrays."""
    structs = (Indices * len(indices))()
    for struct, numbers in zip(structs, indices):
        struct.values, struct.count = pointer_to(numbers), numbers.size
    return structs
