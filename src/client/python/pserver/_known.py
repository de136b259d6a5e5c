"""The element types and shapes of parameters that a client knows."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ._arrays import Array
from ._results import check_shape, fits, to_out
from .records import ParameterInfo

Form = Tuple["np.dtype[Any]", Tuple[int, ...]]


class KnownForms:
    """Element types and shapes by parameter name, as far as this client knows them."""

    def __init__(self, ask: Callable[[int], List[ParameterInfo]]) -> None:
        self._ask = ask
        self._forms: Dict[str, Form] = {}

    def learn(self, name: str, array: Array) -> None:
        """Remembers that the parameter has the type and shape of this array."""
        self._forms[name] = (array.dtype, array.shape)

    def learn_all(self, parameters: Iterable[ParameterInfo]) -> None:
        """Remembers the types and shapes that the job has told."""
        self._forms.update({each.name: (each.dtype, each.shape) for each in parameters})

    def of(self, name: str, timeout_ms: int) -> Optional[Form]:
        """Returns type and shape, and asks the job if they are not known yet; None if there is no such
        parameter."""
        if name not in self._forms:
            self.learn_all(self._ask(timeout_ms))
        return self._forms.get(name)

    def check(self, name: str, array: Array, timeout_ms: int) -> None:
        """Raises BAD_DTYPE or BAD_SHAPE if the array does not fit the parameter; does nothing if that
        does not exist yet."""
        known = self._forms.get(name)
        if known is not None and fits(array, *known):
            return
        # The parameter may have been initialized anew, with another type or shape.
        self._forms.pop(name, None)
        form = self.of(name, timeout_ms)
        if form is not None:
            check_shape(name, array, *form)

    def part_target(
        self, name: str, out: Any, lists: Sequence[Array], timeout_ms: int
    ) -> Optional[Array]:
        """``out`` as an array for the elements at these lists; None without one. BAD_DTYPE or BAD_SHAPE if it
        does not fit."""
        if out is None:
            return None
        array = to_out(out, f'out["{name}"]')
        shape = tuple(len(each) for each in lists)
        known = self._forms.get(name)
        if known is None or not fits(array, known[0], shape):
            # It may have been initialized anew, with another type.
            self._forms.pop(name, None)
            form = self.of(name, timeout_ms)
            if form is not None:
                check_shape(name, array, form[0], shape)
        return array
