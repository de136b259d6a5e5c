"""Legion's client."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

import pserver

from .hdf5 import save_hdf5
from .points import Points

#: How many elements may be read for each requested one in order to read all points with one call.
_READ_AT_MOST = 16


class Client:
    """A client of one job, like Legion's: ``Client()`` finds the server through the environment.

    The address is ``PSERVER_URL``, else ``legion_server_ip`` and ``legion_server_port``, else the
    default of :func:`pserver.connect`; job, id and credentials come from the environment as for that
    function. ``ps`` is the underlying client of :mod:`pserver`.

    It differs from Legion's client where that had known faults: pushes are acknowledged; an unknown
    name or a dead server raises a :class:`pserver.Error`; if several clients create a name at once,
    exactly one does; trainers may join at any time; and a client may use a parameter that it has not
    created.
    """

    def __init__(self, verbose: bool = False, *, ps: Optional[pserver.Client] = None) -> None:
        self.verbose = verbose
        self.ps = pserver.connect(_address()) if ps is None else ps
        # Shapes of parameters that are known to exist; the server never removes one.
        self._shapes: Dict[str, Tuple[int, ...]] = {}

    def __repr__(self) -> str:
        return f"<legion.Client of {self.ps!r}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. Need not be called: the connection ends with the process."""
        self.ps.close()

    def create_if_not_already_created(self, name: str, arr: Any) -> pserver.Array:
        """Creates a parameter with this value unless it exists; returns its value.

        Raises BadDtype or BadShape if it exists with another type or shape.
        """
        settled = self.ps.create_if_not_already_created(name, arr)
        self._shapes[name] = settled.shape
        return settled

    def pull_full(self, name: str) -> pserver.Array:
        """Returns the value of a parameter, in a new array."""
        self._shape(name)
        return self.ps.pull(name)

    def push_full(self, name: str, arr: Any, alpha: float, beta: float) -> None:
        """Sets value = alpha · value + beta · arr for the whole parameter, one transaction for each
        block."""
        self._shape(name)
        self.ps.push(name, arr, alpha, beta)

    def pull_part(self, name: str, axis_numbers: Sequence[Any]) -> pserver.Array:
        """Returns the elements at the product of lists of indices, one for each dimension."""
        self._shape(name)
        return self.ps.pull_part(name, axis_numbers)

    def push_as_part(
        self, name: str, arr: Any, axis_numbers: Sequence[Any], alpha: float, beta: float
    ) -> None:
        """Sets value = alpha · value + beta · arr for the elements that :meth:`pull_part` would return.

        ``arr`` has their shape. Other elements stay as they are.
        """
        self._shape(name)
        self.ps.push_part(name, arr, axis_numbers, alpha, beta)

    def pull_from_indices(self, name: str, indices: Any) -> pserver.Array:
        """Returns the elements at single points, in their order; each point has an index for each
        dimension.

        Points that lie far apart are read with one call for each group of them that is a product of
        indices, one after the other: a change between two calls shows only in the later one.
        """
        points = Points(name, self._shape(name), indices)
        if points.count == 0:
            return self.ps.pull_part(name, [[]] * points.rank).reshape(0)
        lists, inverse = points.hull()
        if int(np.prod([len(numbers) for numbers in lists])) <= _READ_AT_MOST * points.count:
            return np.asarray(self.ps.pull_part(name, lists)[inverse])
        values: Optional[pserver.Array] = None
        for group in points.groups():
            part = self.ps.pull_part(name, group.lists)
            if values is None:
                values = np.empty(points.count, part.dtype)
            values[group.order] = part.reshape(-1)
        return points.spread(values)

    def push_from_indices(
        self, name: str, arr: Any, indices: Any, alpha: float, beta: float
    ) -> None:
        """Sets value = alpha · value + beta · arr at single points; ``arr`` has a number for each
        point.

        If a point is named repeatedly, the last number counts. Points that do not form a product of
        indices are pushed as several updates, each a transaction of its own.
        """
        points = Points(name, self._shape(name), indices)
        values = points.settled(arr)
        for group in points.groups():
            shape = [len(numbers) for numbers in group.lists]
            self.ps.push_part(name, values[group.order].reshape(shape), group.lists, alpha, beta)

    def server_save_to_hdf5(self, path: str) -> None:
        """Writes all parameters that are ready to an HDF5 file on this machine, one dataset for each.

        Despite its name the call pulls the values and writes them here, with the module h5py. They hold
        every update that was acknowledged before; updates of others during the call may be in some and not in
        others. The file appears whole or not at all, and only its user can read it. Raises LibraryError
        without h5py, BadPath unless ``path`` ends in ``.h5`` or ``.hdf5``, NotInitialized if no parameter
        is ready, OSError as Python's files do.
        """
        save_hdf5(self.ps, path)

    def _shape(self, name: str) -> Tuple[int, ...]:
        """Returns the shape of a parameter. Raises UnknownParameter at once if it does not exist,
        because it may never be created."""
        if name not in self._shapes:
            self._shapes.update((info.name, info.shape) for info in self.ps.list_params())
        if name not in self._shapes:
            raise pserver.errors.UnknownParameter(
                f'"{name}": expected a name that was created, with create_if_not_already_created',
                {"parameter": name},
            )
        return self._shapes[name]


def _address() -> Optional[str]:
    """Returns the address that Legion's launcher has set; None if ``PSERVER_URL`` is set or there is
    none."""
    host, port = os.environ.get("legion_server_ip"), os.environ.get("legion_server_port")
    if os.environ.get("PSERVER_URL") or not host:
        return None
    if not port:
        return host
    if not (port.isdecimal() and 0 < int(port) < 65_536):
        expected = "a port, 1 to 65535"
        raise pserver.errors.BadValue(
            f"legion_server_port: expected {expected}; received {port!r}",
            {"expected": expected, "received": port},
        )
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
