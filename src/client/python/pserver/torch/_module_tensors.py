"""The tensors of a module that a job holds, and their names."""

from __future__ import annotations

from typing import Dict, List, Mapping, MutableMapping, Optional, Set, Tuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from ..client import Client
from ..errors import BadValue
from ._host_memory import HELD_AS

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
