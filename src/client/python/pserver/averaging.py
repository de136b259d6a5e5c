"""Averaging for trainers that each train a copy of the model, through the server."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import errors
from ._arguments import to_number
from ._arrays import Array, bad_dtype, name_of, to_out
from ._error import shown, unexpected
from .client import Client


def elastic_average(
    ps: Client, name: str, local: Any, alpha: float, *, timeout: Optional[float] = None
) -> None:
    """Makes one exchange of elastic averaging SGD (EASGD; Zhang, Choromanska and LeCun, 2015).

    The parameter is the center. With diff = alpha · (local − center), diff is subtracted from
    ``local``, in place, and added to the center. Each difference is computed in float64 and rounded
    once to the element type. Between reading and adding, other trainers may add their own differences:
    none is lost, but the center may pass beyond all of them. That is harmless to weights; a number that must not
    become negative, such as a variance, is averaged by ``push(name, local, 1 - alpha, alpha)`` instead.
    ``local`` is changed only after the center has been. ``alpha`` is from 0 to 1; Platoon
    advises 1 / trainers. ``timeout`` is for each of the two calls, in seconds.

    Raises BadValue for another alpha or an array that cannot be written; BadDtype or BadShape if it
    does not fit the parameter.
    """
    if not 0 <= to_number(alpha) <= 1:
        raise unexpected(errors.BadValue, "elastic_average: alpha", "0 to 1", shown(alpha))
    values = _floats(name, to_out(local, "local"))
    center = ps.pull(name, out=np.empty_like(values), timeout=timeout)
    diff = (alpha * (values.astype(np.float64) - center)).astype(values.dtype)
    ps.push(name, diff, 1, 1, timeout=timeout)
    np.subtract(values, diff, out=values)


class AsyncDifference:
    """Exchanges of asynchronous SGD by differences, as Platoon's ``ASGD``.

    The parameter is the master. A trainer trains ``local`` alone; :meth:`exchange` adds its changes
    since the last exchange to the master, and then copies the master, with the changes of the others,
    to ``local``. Changes of several trainers add up, which is for weights, not for averages such as running
    statistics.
    """

    def __init__(self, ps: Client, name: str, *, timeout: Optional[float] = None) -> None:
        """Begins with the master's values. Raises BadDtype unless they are floating point numbers."""
        self._ps = ps
        self._name = name
        #: The trainer's own values, to be trained in place.
        self.local: Array = _floats(name, ps.pull(name, timeout=timeout))
        self._old = self.local.copy()

    def __repr__(self) -> str:
        return f"<pserver.AsyncDifference {self._name!r} of {self._ps!r}>"

    def exchange(self, *, timeout: Optional[float] = None) -> None:
        """Does master += local − old, then local = old = master. ``timeout`` is for each of the two
        calls, in seconds.

        Changes that were added are never added again, even if reading the master fails afterwards. Only
        after OutcomeUnknown they may have been added already, and are added with the next exchange.
        After any other error ``local`` is unchanged. Raises BadShape if ``local`` was replaced by an array of
        another shape.
        """
        if self.local.shape != self._old.shape:
            raise errors.BadShape(
                f'AsyncDifference: "{self._name}": expected local of shape {self._old.shape}, to be trained in '
                f"place; received {self.local.shape}"
            )
        self._ps.push(self._name, self.local - self._old, 1, 1, timeout=timeout)
        self._old[...] = self.local
        master = self._ps.pull(self._name, out=np.empty_like(self.local), timeout=timeout)
        self.local[...] = master
        self._old[...] = master


def _floats(name: str, values: Array) -> Array:
    if values.dtype in (np.dtype("<f4"), np.dtype("<f8")):
        return values
    raise bad_dtype(f'"{name}"', ["float32", "float64"], name_of(values.dtype))
