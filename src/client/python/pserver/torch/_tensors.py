"""Tensors of modules and their gradients, in CPU memory, where the client reads and writes them."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, MutableMapping, Optional, Set, Tuple, Union
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from .._arguments import Encoding
from ..client import Client
from ..errors import BadValue
from ..records import Rows

#: The element type in which the server holds a tensor. Half precision is good enough for computing and
#: for sending, but small updates of a half-precision value would round to nothing.
HELD_AS = {
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.int32: torch.int32,
    torch.int64: torch.int64,
}


class HostMemory:
    """CPU memory for one tensor, in the element type of the server's parameter.

    It is the tensor's own memory if that is on the CPU, contiguous and of that type. Otherwise it is a copy
    in C order, made once and reused; pinned if the tensor is on a GPU.
    """

    def __init__(self) -> None:
        self._copy: Optional[torch.Tensor] = None

    def read(self, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """Returns the tensor's values, valid until the tensor or this memory is written."""
        held = self.of(tensor)
        if held is self._copy:
            held.copy_(tensor.detach())
        return _as_array(held)

    def receive(self, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """Returns memory for the tensor's new values; ``received`` gives them to the tensor."""
        return _as_array(self.of(tensor))

    def received(self, tensor: torch.Tensor) -> None:
        """Gives the tensor the values that were written since ``receive``, and informs autograd."""
        with torch.no_grad():
            values = tensor.detach()
            held = self.of(tensor)
            if held is self._copy:
                values.copy_(held)
            else:
                # Autograd does not see writes through numpy, but it counts an in-place operation on no
                # elements.
                values.view(-1)[:0].zero_()

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the memory as a tensor. It is looked up each time, because a module may be moved or
        converted."""
        dtype = HELD_AS[tensor.dtype]
        if tensor.device.type == "cpu" and tensor.dtype is dtype and tensor.is_contiguous():
            return tensor.detach()
        pinned = tensor.device.type == "cuda"
        copy = self._copy
        if copy is None or copy.shape != tensor.shape or copy.dtype is not dtype:
            copy = torch.empty(tensor.shape, dtype=dtype, pin_memory=pinned)
            self._copy = copy
        return copy


def pull_into(
    ps: Client,
    tensors: Mapping[str, torch.Tensor],
    memory: Optional[Mapping[str, HostMemory]] = None,
    *,
    timeout: Optional[float] = None,
) -> None:
    """Reads parameters into tensors of the same shapes, without a copy where the tensors' memory allows
    it.

    ``memory`` is reused if given. After an error, tensors that are written in place may hold any mixture of
    old and new values; the next pull repairs that.
    """
    places = {name: HostMemory() for name in tensors} if memory is None else memory
    out = {name: places[name].receive(tensor) for name, tensor in tensors.items()}
    ps.get_params(list(tensors), out=out, timeout=timeout)
    for name, tensor in tensors.items():
        places[name].received(tensor)


def _as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


# The references are weak on both sides, so that this keeps neither a client nor a module alive.
_synced: MutableMapping[Client, MutableMapping[str, torch.Tensor]] = WeakKeyDictionary()


def module_tensors(module: nn.Module) -> Dict[str, torch.Tensor]:
    """Returns the tensors of a module that a job holds, by their names in ``state_dict()``.

    Those are its parameters and persistent buffers of floats and of 32 or 64 bit integers, each once: a
    tied weight has its first name. Buffers of other element types and tensors without elements stay in the
    module. Raises BadValue naming every tensor that cannot be held: on the meta device or without a shape
    yet, sparse or quantized, parameters of other element types, two that share memory.
    """
    held: Dict[str, torch.Tensor] = {}
    seen: Set[int] = set()
    refused: List[str] = []
    for name, tensor in module.state_dict(keep_vars=True).items():
        if not isinstance(tensor, torch.Tensor) or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        reason = _refusal(tensor)
        if reason is not None:
            refused.append(f"{name!r} is {reason}")
        elif tensor.dtype in HELD_AS and tensor.numel() > 0:
            held[name] = tensor
    refused.extend(_sharing(held))
    if refused:
        raise BadValue("module: expected tensors that a job can hold; " + "; ".join(refused))
    if not held:
        raise BadValue("module: expected at least one parameter; received none")
    return held


def remember(ps: Client, tensors: Mapping[str, torch.Tensor]) -> None:
    """Remembers the names of a module's tensors in the client's job."""
    _synced.setdefault(ps, WeakValueDictionary()).update(tensors)


def names_by_id(ps: Client) -> Dict[int, str]:
    """Returns the names of all tensors that were synchronized and still exist, by the tensors'
    ``id``."""
    return {id(tensor): name for name, tensor in _synced.get(ps, {}).items()}


def sparse_weights(module: nn.Module) -> Set[int]:
    """Returns the ``id`` of the weight of each embedding whose gradients are sparse."""
    return {
        id(part.weight)
        for part in module.modules()
        if isinstance(part, (nn.Embedding, nn.EmbeddingBag)) and part.sparse
    }


def _refusal(tensor: torch.Tensor) -> Optional[str]:
    if is_lazy(tensor):
        return "without a shape: run the module once before"
    if tensor.device.type == "meta":
        return "on the meta device, without values"
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return "sparse or quantized: expected a dense tensor"
    if isinstance(tensor, nn.Parameter) and tensor.dtype not in HELD_AS:
        expected = ", ".join(_short(dtype) for dtype in HELD_AS)
        return f"of {_short(tensor.dtype)}: expected {expected}"
    return None


def _sharing(held: Dict[str, torch.Tensor]) -> List[str]:
    """Describes tensors that share memory: pulled values of one would overwrite those of the other."""
    owners: Dict[Tuple[torch.device, int], str] = {}
    shared: List[str] = []
    for name, tensor in held.items():
        owner = owners.setdefault((tensor.device, tensor.data_ptr()), name)
        if owner != name:
            shared.append(f"{name!r} shares memory with {owner!r}: use one Parameter for both")
    return shared


def _short(dtype: torch.dtype) -> str:
    return str(dtype).replace("torch.", "")


#: A gradient of all of a parameter, or of some of its rows.
Gradient = Union["np.ndarray[Any, Any]", Rows]


def to_gradient(grad: torch.Tensor, memory: HostMemory) -> Optional[Gradient]:
    """Copies a gradient to host memory, in the element type of the server's parameter.

    A gradient that is sparse in its first dimension, such as that of an embedding, becomes rows, each
    once with its values added up. Returns None if it has no rows.
    """
    if grad.layout is not torch.sparse_coo:
        return memory.read(grad if grad.layout is torch.strided else grad.to_dense())
    if grad.sparse_dim() != 1:
        return memory.read(grad.to_dense())
    rows = grad.detach().coalesce()
    if rows.indices().numel() == 0:
        return None
    ids: np.ndarray[Any, Any] = rows.indices()[0].cpu().numpy()
    return Rows(ids, HostMemory().read(rows.values()))


class StepCalls:
    """The calls that send the gradients of one step. There is one call for each learning rate and,
    because only float32 is encoded, one for each encoding. The last call ends the step."""

    def __init__(self, encoding: Optional[Encoding]) -> None:
        self._encoding = encoding
        self._calls: Dict[Tuple[Optional[float], Optional[Encoding]], Dict[str, Gradient]] = {}

    def add(self, name: str, gradient: Gradient, learning_rate: Optional[float] = None) -> None:
        values = gradient.values if isinstance(gradient, Rows) else gradient
        encoding = self._encoding if values.dtype == np.float32 else None
        self._calls.setdefault((learning_rate, encoding), {})[name] = gradient

    def send(
        self, ps: Client, *, stored_is_enough: bool = False, timeout: Optional[float] = None
    ) -> int:
        """Sends everything and ends the trainer's step; only ends the step if there is nothing to send.

        Returns the number of blocks whose gradients came too late for their step. Calls before one that
        fails have taken effect.
        """
        calls: List[Tuple[Tuple[Optional[float], Optional[Encoding]], Mapping[str, Gradient]]]
        calls = list(self._calls.items())
        late = 0
        for place, ((learning_rate, encoding), grads) in enumerate(calls, start=1):
            result = ps.send_grads(
                grads,
                learning_rate=learning_rate,
                encoding=encoding,
                stored_is_enough=stored_is_enough,
                end_step=place == len(calls),
                timeout=timeout,
            )
            late += result.late_blocks
        if not calls:
            ps.end_step(timeout=timeout)
        return late
