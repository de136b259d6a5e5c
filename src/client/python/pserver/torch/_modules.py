"""The tensors of a module that a job holds, under the names that they have in it."""

from __future__ import annotations

from typing import Collection, Dict, Iterator, List, Mapping, MutableMapping, Optional, Set, Tuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parameter import is_lazy

from .._arrays import name_of
from ..client import Client
from ..errors import BadValue
from ..records import ParameterInfo

#: The element type in which the server holds a tensor that is updated. Half precision is good enough for
#: computing and for sending, but small updates of a half-precision value would round to nothing.
HELD_AS = {
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.int32: torch.int32,
    torch.int64: torch.int64,
    torch.bool: torch.bool,
    torch.uint8: torch.uint8,
    torch.int8: torch.int8,
}


def plain(module: nn.Module) -> nn.Module:
    """Returns the module inside of wrappers that compute with the same tensors under longer names: those of
    ``torch.compile``, ``DataParallel`` and ``DistributedDataParallel``."""
    while True:
        if isinstance(module, (nn.DataParallel, DistributedDataParallel)):
            inner: object = module.module
        else:
            # PyTorch names the class of compiled modules only in a private module, and 1.13 has none.
            inner = getattr(module, "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return module
        module = inner


def parts(module: nn.Module) -> Iterator[Tuple[str, nn.Module]]:
    """Yields the module and all that are in it, each once and without wrappers, with the beginning of its
    tensors' names, in the order of ``state_dict()``."""
    return _parts(module, "", set())


def _parts(module: nn.Module, prefix: str, seen: Set[nn.Module]) -> Iterator[Tuple[str, nn.Module]]:
    part = plain(module)
    if part in seen:
        return
    seen.add(part)
    yield prefix, part
    for name, child in part._modules.items():
        if child is not None:
            yield from _parts(child, f"{prefix}{name}.", seen)


def module_tensors(module: nn.Module, known: Collection[str] = ()) -> Dict[str, torch.Tensor]:
    """Returns the tensors of a module that a job holds, by the names that they have in the module.

    Those are its parameters and persistent buffers of floats, of bools, and of integers except those of 16 bits, each once: a
    tied weight has its first name, or the first of its names that is in ``known`` if that one is not: a file
    from which a job was loaded may have another of them. The names are those of ``state_dict()``, without what wrappers add; what
    an overridden ``state_dict`` leaves out is there, too, because it is trained all the same. Buffers of
    other element types and tensors without elements stay in the module. Raises BadValue naming every tensor
    that cannot be held: on the meta device or without a shape yet, sparse or quantized, parameters of other
    element types, those that cannot be written, two that share memory.
    """
    held: Dict[str, torch.Tensor] = {}
    refused: List[str] = []
    for name, tensor in _own_tensors(module):
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
    if all(name in known for name in held) or not known:
        return held
    other: Dict[int, str] = {}
    for name, tensor in _all_names(module):
        if name in known:
            other.setdefault(id(tensor), name)
    return {
        name if name in known else other.get(id(tensor), name): tensor
        for name, tensor in held.items()
    }


def _all_names(module: nn.Module, prefix: str = "") -> Iterator[Tuple[str, torch.Tensor]]:
    """Yields all parameters and buffers under each of their names, as ``state_dict()`` does."""
    part = plain(module)
    for name, tensor in [*part._parameters.items(), *part._buffers.items()]:
        if tensor is not None:
            yield prefix + name, tensor
    for name, child in part._modules.items():
        if child is not None:
            yield from _all_names(child, f"{prefix}{name}.")


def _own_tensors(module: nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Yields all parameters and persistent buffers, each once."""
    seen: Set[int] = set()
    for prefix, part in parts(module):
        buffers = part._buffers.items()
        kept = [entry for entry in buffers if entry[0] not in part._non_persistent_buffers_set]
        for name, tensor in [*part._parameters.items(), *kept]:
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                yield prefix + name, tensor


def is_frozen(tensor: torch.Tensor) -> bool:
    """Whether it is a parameter that no optimizer changes."""
    return isinstance(tensor, nn.Parameter) and not tensor.requires_grad


def held_dtype(tensor: torch.Tensor) -> torch.dtype:
    """Returns the element type in which a job holds the tensor if it gets it from this module: that of a frozen
    parameter, which no update rounds, is its own."""
    return tensor.dtype if is_frozen(tensor) else HELD_AS[tensor.dtype]


def fits_dtype(tensor: torch.Tensor, held: str) -> bool:
    """Whether a job that holds parameters of this element type can hold the tensor."""
    return held in (short(tensor.dtype), short(HELD_AS[tensor.dtype]))


def torch_dtype(info: ParameterInfo) -> Optional[torch.dtype]:
    """Returns the element type of a parameter of a job; None if no module has it."""
    found = getattr(torch, name_of(info.dtype), None)
    return found if isinstance(found, torch.dtype) else None


def sparse_weights(module: nn.Module) -> Set[int]:
    """Returns the ``id`` of the weight of each embedding whose gradients are sparse."""
    return {
        id(part.weight)
        for part in module.modules()
        if isinstance(part, (nn.Embedding, nn.EmbeddingBag)) and part.sparse
    }


def short(dtype: torch.dtype) -> str:
    """Returns the name of an element type as numpy has it."""
    return str(dtype).replace("torch.", "")


def _refusal(tensor: torch.Tensor) -> Optional[str]:
    if is_lazy(tensor):
        return "without a shape: run the module once before"
    if tensor.device.type == "meta":
        return "on the meta device, without values"
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return "sparse or quantized: expected a dense tensor"
    if isinstance(tensor, nn.Parameter) and tensor.dtype not in HELD_AS:
        expected = ", ".join(short(dtype) for dtype in HELD_AS)
        return f"of {short(tensor.dtype)}: expected {expected}"
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        return "of the inference mode, and cannot be written: make the module outside of it"
    if _overlaps(tensor if isinstance(tensor, nn.Parameter) else distinct(tensor)):
        return "a view whose elements share memory: replace it by its clone()"
    return None


def distinct(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor without the repetitions that ``expand`` makes: of each expanded dimension the
    first element."""
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride())):
        if size > 1 and stride == 0:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def _overlaps(tensor: torch.Tensor) -> bool:
    """Whether elements may share memory with each other."""
    end = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1 and stride <= end:
            return True
        end += stride * (size - 1)
    return False


def _sharing(held: Dict[str, torch.Tensor]) -> List[str]:
    """Describes tensors that share memory: pulled values of one would overwrite those of the other."""
    owners: Dict[Tuple[torch.device, int], str] = {}
    shared: List[str] = []
    for name, tensor in held.items():
        owner = owners.setdefault((tensor.device, tensor.data_ptr()), name)
        if owner != name:
            shared.append(_shares(name, owner))
    # Views that are not contiguous, such as columns, may lie among each other without sharing an element.
    spans = sorted(
        (str(tensor.device), tensor.data_ptr(), tensor.numel() * tensor.element_size(), name)
        for name, tensor in held.items()
        if tensor.is_contiguous()
    )
    for (device, start, size, name), (other, following, _, next_name) in zip(spans, spans[1:]):
        if device == other and start < following < start + size:
            shared.append(_shares(next_name, name))
    return shared


def _shares(name: str, owner: str) -> str:
    return f"{name!r} shares memory with {owner!r}: use one Parameter for both"


# The references are weak on both sides, so that this keeps neither a client nor a module alive. Two modules
# may have tensors of the same names.
#: The element types in which jobs hold what was synchronized, by name.
_held: MutableMapping[Client, Dict[str, torch.dtype]] = WeakKeyDictionary()
_synced: MutableMapping[Client, MutableMapping[Tuple[str, int], torch.Tensor]] = WeakKeyDictionary()


def remember(ps: Client, tensors: Dict[str, torch.Tensor], held: Mapping[str, torch.dtype]) -> None:
    """Remembers the names of a module's tensors in the client's job, and the element types that they have there."""
    _held.setdefault(ps, {}).update(held)
    known = _synced.setdefault(ps, WeakValueDictionary())
    for name, tensor in tensors.items():
        # The name under which a tensor was synchronized last is to be the last one.
        known.pop((name, id(tensor)), None)
        known[name, id(tensor)] = tensor


def held_in(ps: Client, name: str, tensor: torch.Tensor) -> torch.dtype:
    """Returns the element type in which the client's job holds a tensor of this name."""
    return _held.get(ps, {}).get(name) or held_dtype(tensor)


def names_by_id(ps: Client) -> Dict[int, str]:
    """Returns the names of all tensors that were synchronized and still exist, by the tensors'
    ``id``."""
    return {id(tensor): name for (name, _), tensor in _synced.get(ps, {}).items()}


def without_wrappers(name: str) -> str:
    """Returns the name that a tensor has in the plain module, of one that ``named_parameters()`` of a wrapper
    gives."""
    return ".".join(part for part in name.split(".") if part not in ("_orig_mod", "module"))
