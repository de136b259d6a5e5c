"""What arrays were read from, so that only what has changed since is read again."""

from __future__ import annotations

import weakref
from ctypes import c_void_p
from typing import Mapping, Sequence, Tuple

from ._arrays import Array
from ._native.library import Library
from ._results import Release


class Origins:
    """The states in which the arrays of one call were read; kept by the C library."""

    def __init__(
        self, library: Library, handle: c_void_p, names: Sequence[str], arrays: Sequence[Array]
    ) -> None:
        self.library = library
        self.handle = handle
        # Weak: a caller that removes an array from the result wants its memory back.
        self._places = {
            name: (index, weakref.ref(array))
            for index, (name, array) in enumerate(zip(names, arrays))
        }
        self._release = Release(self, library.free_origins)
        self._release._as_parameter_ = handle

    def of(self, arrays: Mapping[str, Array]) -> Mapping[str, Tuple[int, Array]]:
        """The place in the call of each of these arrays that the call has given."""
        return {
            name: (index, array)
            for name, (index, given) in self._places.items()
            if (array := given()) is not None and arrays.get(name) is array
        }
