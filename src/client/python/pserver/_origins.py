"""The states from which arrays were read, so that only values that have changed since are read
again."""

from __future__ import annotations

import weakref
from ctypes import c_void_p
from typing import Mapping, Sequence, Tuple

from ._arrays import Array
from ._native.library import Library
from ._results import Release


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
