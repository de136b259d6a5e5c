"""The local values of parameters: arrays, tensors or shared variables, read and overwritten in place."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

import pserver

#: How many calls are under way at a time while parameters are created.
_CALLS_MAX = 8


class SharedValues:
    """Local values by name, kept equal with parameters of the same names.

    ``params`` is a mapping to numpy arrays, tensors or shared variables; a ``torch.nn.Module``, of which the
    floating point parameters and buffers are shared, as ``pserver.torch`` names and holds them; or another
    object with a ``state_dict()``, of which the floating point entries are. What it has is looked at in each
    call: names or shapes that have changed since are refused with BadValue, because other trainers would not
    know them. Vectors of spectral norms are computed from the adopted weights. Raises BadDtype for a value that
    could not be overwritten in place.
    """

    def __init__(self, params: Any) -> None:
        self._params = params
        entries = _entries(params)
        for name, value in entries.items():
            if not (_is_variable(value) or isinstance(_view(value), np.ndarray)):
                expected = "an array, a tensor or a shared variable"
                raise pserver.errors.BadDtype(
                    f'"{name}": expected {expected}; received {type(value).__qualname__}',
                    {"parameter": name, "expected": expected, "received": repr(type(value))},
                )
        self._shapes = {name: _shape(value) for name, value in entries.items()}

    def __len__(self) -> int:
        return len(self._shapes)

    def create(self, ps: pserver.Client) -> None:
        """Creates missing parameters, and adopts the values of existing ones.

        Existing ones are read by one call; the others are created several at a time.
        """
        entries = self._entries()
        values = {name: _get(value) for name, value in entries.items()}
        existing = _existing(ps, values)
        settled = dict(ps.get_params(existing)) if existing else {}
        missing = [name for name in values if name not in settled]
        settled.update(_create_all(ps, {name: values[name] for name in missing}))
        for name, value in entries.items():
            _set(value, settled[name])

    def push(self, ps: pserver.Client, alpha: float, beta: float) -> None:
        """Sets parameter = alpha · parameter + beta · local value, for each parameter."""
        followers = _followers(self._params)
        for name, value in self._entries().items():
            if name not in followers.names:
                ps.push(name, _get(value), alpha, beta)

    def adopt(self, ps: pserver.Client) -> None:
        """Sets local value = parameter, for each parameter; all are read before the first is
        overwritten."""
        followers = _followers(self._params)
        entries = self._entries()
        read = [name for name in entries if name not in followers.names]
        if not read:
            return
        for name, settled in ps.get_params(read).items():
            _set(entries[name], settled)
        followers.follow()
        if followers.names:
            ps.set_params({name: _get(entries[name]) for name in followers.names})

    def _entries(self) -> Dict[str, Any]:
        """Returns the present values. BadValue if their names or shapes are others than at the beginning."""
        entries = _entries(self._params)
        shapes = {name: _shape(value) for name, value in entries.items()}
        wrong = [f'"{name}" is new' for name in shapes if name not in self._shapes]
        wrong += [f'"{name}" is gone' for name in self._shapes if name not in shapes]
        wrong += [
            f'"{name}" had shape {self._shapes[name]} and has {shape}'
            for name, shape in shapes.items()
            if self._shapes.get(name, shape) != shape
        ]
        if wrong:
            raise pserver.errors.BadValue(
                "params: expected the names and shapes that the extension was made with; received others: "
                f"{'; '.join(wrong)}"
            )
        return entries


class _Followers:
    """Values of a module that follow from its others and cannot be averaged: the vectors of its spectral
    norms."""

    def __init__(self, vectors: Sequence[Any] = ()) -> None:
        self._vectors = vectors
        self.names = {name for each in vectors for name in (each.u_name, each.v_name)}

    def follow(self) -> None:
        """Computes them from the module's present values."""
        for each in self._vectors:
            each.compute()


def _is_module(params: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(params, torch.nn.Module)


def _followers(params: Any) -> _Followers:
    if not _is_module(params):
        return _Followers()
    from pserver.torch._spectral import spectral_vectors

    return _Followers(spectral_vectors(params))


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
    if _is_module(params):
        from pserver.torch._modules import module_tensors

        found: Mapping[str, Any] = module_tensors(params)
    elif hasattr(params, "state_dict"):
        found = params.state_dict()
    elif isinstance(params, Mapping):
        return dict(params)
    else:
        expected = "a dict of arrays, or a module with a state_dict()"
        raise TypeError(f"params: expected {expected}; received {type(params).__qualname__}")
    return {name: value for name, value in found.items() if _is_float(value)}


def _shape(value: Any) -> Tuple[int, ...]:
    return tuple(np.shape(value.get_value()) if _is_variable(value) else value.shape)


def _is_float(tensor: Any) -> bool:
    return bool(tensor.is_floating_point())


def _is_variable(value: Any) -> bool:
    return hasattr(value, "get_value") and hasattr(value, "set_value")


def _view(value: Any) -> Any:
    """Returns the memory of an array or a CPU tensor as an array, or a copy in float32 of a tensor of half
    precision, in which small changes would round to nothing; any other object unchanged."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    is_half = str(tensor.dtype) in ("torch.bfloat16", "torch.float16")
    return (tensor.float() if is_half else tensor).numpy()


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
