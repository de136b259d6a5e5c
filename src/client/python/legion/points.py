"""Groups single points of an array for calls that take products of indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import numpy as np

import pserver
from pserver._error import unexpected


@dataclass(frozen=True)
class Group:
    """Points that are the product of lists of indices."""

    #: One list of indices for each dimension.
    lists: List[List[int]]
    #: For each element of the product, in C order, the index of its point.
    order: "np.ndarray[Any, np.dtype[np.int64]]"


class Points:
    """Points of a parameter, each named once; a point has an index for each dimension.

    Raises BadIndex unless ``indices`` is a list of points within ``shape``: whole numbers, one for each
    dimension, negative ones counted from its end.
    """

    def __init__(self, name: str, shape: Tuple[int, ...], indices: Any) -> None:
        self._name = name
        try:
            array = np.asarray(indices)
        except ValueError as error:
            raise self._bad_index(shape, str(error)) from error
        if array.size == 0 and array.ndim < 3:
            array = np.empty((0, len(shape)), np.int64)
        if array.ndim != 2 or array.shape[1] != len(shape) or array.dtype.kind not in "iu":
            raise self._bad_index(
                shape, f"an array of {array.dtype.name}, shape {list(array.shape)}"
            )
        outside = (array < -np.asarray(shape, np.int64)) | (array >= np.asarray(shape, np.int64))
        if outside.any():
            raise self._bad_index(shape, str(array[outside.any(axis=1)][0].tolist()))
        given = np.where(array < 0, array + np.asarray(shape, np.int64), array).astype(np.int64)
        self._given = len(given)
        # Points are sorted, so that neighbours share their first indices. `_where` has the index of
        # each given point among them.
        self._points, where = np.unique(given, axis=0, return_inverse=True)
        self._where = where.reshape(-1)

    @property
    def rank(self) -> int:
        """Number of indices of a point."""
        return int(self._points.shape[1])

    @property
    def count(self) -> int:
        """Number of different points."""
        return len(self._points)

    def hull(self) -> "Tuple[List[List[int]], Tuple[Any, ...]]":
        """Returns the smallest product that contains all points, and where in it the given points
        are."""
        lists, inverse = [], []
        for column in self._points.T:
            numbers, where = np.unique(column, return_inverse=True)
            lists.append(numbers.tolist())
            inverse.append(where.reshape(-1)[self._where])
        return lists, tuple(inverse)

    def groups(self) -> List[Group]:
        """Returns products that together contain each point once; joining lists axis by axis keeps them
        few."""
        products: List[_Product] = [
            (tuple((index,) for index in point), [i])
            for i, point in enumerate(self._points.tolist())
        ]
        for axis in reversed(range(self.rank)):
            products = _join(products, axis)
        return [
            Group([list(numbers) for numbers in lists], np.asarray(order, np.int64))
            for lists, order in products
        ]

    def spread(self, values: Any) -> pserver.Array:
        """Converts values of the different points to values of the given points."""
        return np.asarray(values[self._where])

    def settled(self, arr: Any) -> pserver.Array:
        """Returns the last value given for each different point. BadShape unless there is one value for
        each given point."""
        values = np.asarray(arr)
        if values.shape != (self._given,):
            raise pserver.errors.BadShape(
                f'"{self._name}": expected {self._given} numbers, one for each point; '
                f"received shape {list(values.shape)}",
                {
                    "parameter": self._name,
                    "expected": [self._given],
                    "received": list(values.shape),
                },
            )
        last = np.empty(self.count, np.int64)
        last[self._where] = np.arange(self._given)
        return np.asarray(values[last])

    def _bad_index(self, shape: Tuple[int, ...], received: str) -> pserver.errors.BadIndex:
        expected = f"a list of points within shape {list(shape)}"
        what = f'"{self._name}"'
        return unexpected(pserver.BadIndex, what, expected, received, parameter=self._name)


_Product = Tuple[Tuple[Tuple[int, ...], ...], List[int]]


def _join(products: List[_Product], axis: int) -> List[_Product]:
    """Joins products that differ only in the indices of one axis."""
    alike: Dict[Any, List[_Product]] = {}
    for lists, order in products:
        alike.setdefault(lists[:axis] + lists[axis + 1 :], []).append((lists, order))
    joined: List[_Product] = []
    for same in alike.values():
        first = same[0][0]
        numbers = tuple(number for lists, _ in same for number in lists[axis])
        shapes = [[len(each) for each in lists] for lists, _ in same]
        orders = [np.reshape(order, shape) for (_, order), shape in zip(same, shapes)]
        order = np.concatenate(orders, axis).reshape(-1).tolist()
        joined.append((first[:axis] + (numbers,) + first[axis + 1 :], order))
    return joined
