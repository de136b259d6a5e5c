"""The local values of parameters: arrays, tensors or shared variables, read and overwritten in place."""

from __future__ import annotations

from typing import Any, Dict, Mapping

import numpy as np

import pserver


class SharedValues:
    """Local values by name, kept equal with parameters of the same names.

    ``params``: a mapping to numpy arrays, tensors or shared variables, or something with a
    ``state_dict()`` of them, such as a ``torch.nn.Module``, of which the floating point entries are shared.
    Raises BadDtype for a value that could not be overwritten in place.
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
        """Creates missing parameters, and adopts the values of existing ones."""
        for name, value in self._params.items():
            _set(value, ps.create_if_not_already_created(name, _get(value)))

    def push(self, ps: pserver.Client, alpha: float, beta: float) -> None:
        """parameter = alpha · parameter + beta · local value, for each."""
        for name, value in self._params.items():
            ps.push(name, _get(value), alpha, beta)

    def adopt(self, ps: pserver.Client) -> None:
        """local value = parameter, for each; all are read before the first is overwritten."""
        if not self._params:
            return
        for name, settled in ps.get_params(list(self._params)).items():
            _set(self._params[name], settled)


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
    """The memory of an array or a CPU tensor as an array; any other object unchanged."""
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
