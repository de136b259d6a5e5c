"""The local values of parameters: arrays, tensors or shared variables, read and overwritten in place."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Mapping

import numpy as np

import pserver

#: How many calls are under way at a time while parameters are created.
_CALLS_MAX = 8


class SharedValues:
    """Local values by name, kept equal with parameters of the same names.

    ``params`` is a mapping to numpy arrays, tensors or shared variables, or an object with a
    ``state_dict()`` of them, such as a ``torch.nn.Module``, of which the floating point entries are
    shared. Raises BadDtype for a value that could not be overwritten in place.
    """

    def __init__(self, params: Any) -> None:
        self._params: Dict[str, Any] = _entries(params)
        for name, value in self._params.items():
            if not (_is_variable(value) or isinstance(_view(value), np.ndarray)):
                expected = "an array, a tensor or a shared variable"
                raise pserver.errors.BadDtype(
                    f'"{name}": expected {expected}; received {type(value).__qualname__}',
                    {"parameter": name, "expected": expected, "received": repr(type(value))},
                )

    def __len__(self) -> int:
        return len(self._params)

    def create(self, ps: pserver.Client) -> None:
        """Creates missing parameters, and adopts the values of existing ones.

        Existing ones are read by one call; the others are created several at a time.
        """
        values = {name: _get(value) for name, value in self._params.items()}
        existing = _existing(ps, values)
        settled = dict(ps.get_params(existing)) if existing else {}
        missing = [name for name in values if name not in settled]
        settled.update(_create_all(ps, {name: values[name] for name in missing}))
        for name, value in self._params.items():
            _set(value, settled[name])

    def push(self, ps: pserver.Client, alpha: float, beta: float) -> None:
        """Sets parameter = alpha · parameter + beta · local value, for each parameter."""
        for name, value in self._params.items():
            ps.push(name, _get(value), alpha, beta)

    def adopt(self, ps: pserver.Client) -> None:
        """Sets local value = parameter, for each parameter; all are read before the first is
        overwritten."""
        if not self._params:
            return
        for name, settled in ps.get_params(list(self._params)).items():
            _set(self._params[name], settled)


def _existing(ps: pserver.Client, values: Mapping[str, Any]) -> List[str]:
    """Returns the names of parameters that can be read. One of another type or shape is left out:
    creating it raises the error."""
    known = {info.name: info for info in ps.list_params() if info.ready}

    def fits(name: str) -> bool:
        info = known.get(name)
        array = np.asarray(values[name])
        return info is not None and info.dtype == array.dtype and info.shape == array.shape

    return [name for name in values if fits(name)]


def _create_all(ps: pserver.Client, values: Mapping[str, Any]) -> Dict[str, pserver.Array]:
    """Creates parameters, several at a time, and returns their values; after an error no further ones
    are begun."""
    if not values:
        return {}
    pool = ThreadPoolExecutor(max_workers=min(_CALLS_MAX, len(values)))
    try:
        calls = {
            name: pool.submit(ps.create_if_not_already_created, name, value)
            for name, value in values.items()
        }
        return {name: call.result() for name, call in calls.items()}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _entries(params: Any) -> Dict[str, Any]:
    if hasattr(params, "state_dict"):
        return {name: value for name, value in params.state_dict().items() if _is_float(value)}
    if isinstance(params, Mapping):
        return dict(params)
    expected = "a dict of arrays, or a module with a state_dict()"
    raise TypeError(f"params: expected {expected}; received {type(params).__qualname__}")


def _is_float(tensor: Any) -> bool:
    return bool(tensor.is_floating_point())


def _is_variable(value: Any) -> bool:
    return hasattr(value, "get_value") and hasattr(value, "set_value")


def _view(value: Any) -> Any:
    """Returns the memory of an array or a CPU tensor as an array; any other object unchanged."""
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return value


def _get(value: Any) -> Any:
    return np.asarray(value.get_value()) if _is_variable(value) else _view(value)


def _set(value: Any, settled: pserver.Array) -> None:
    if _is_variable(value):
        value.set_value(settled)
    elif hasattr(value, "copy_"):
        detached = value.detach()
        detached.copy_(detached.new_tensor(settled))
    else:
        value[...] = settled
