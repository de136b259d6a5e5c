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
    """Converts lists of indices, or the result of ``numpy.ix_``, to one array for each dimension.
    BAD_INDEX."""
    if isinstance(indices, np.ndarray) or not isinstance(indices, Sequence):
        expected = "one list of numbers for each dimension"
        raise unexpected(errors.BadIndex, name, expected, type(indices).__qualname__)
    return [
        to_numbers(f'"{name}": indices of dimension {i}', each) for i, each in enumerate(indices)
    ]


def to_numbers(what: str, numbers: Any) -> Array:
    """Converts a list of whole numbers to an array that the C library can read. BAD_INDEX."""
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
    """Returns a pointer to the numbers; the caller must keep the array alive."""
    return numbers.ctypes.data_as(POINTER(c_int64))


def structs_of(indices: Sequence[Array]) -> Any:
    """Returns the C library's structs for the lists; the caller must keep the arrays alive."""
    structs = (Indices * len(indices))()
    for struct, numbers in zip(structs, indices):
        struct.values, struct.count = pointer_to(numbers), numbers.size
    return structs
