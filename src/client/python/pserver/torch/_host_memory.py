"""Values of tensors in CPU memory, where the client reads and writes them."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np
import torch

from ..client import Client

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
        """The tensor's values. Valid until the tensor or this memory is written."""
        held = self.of(tensor)
        if held is self._copy:
            held.copy_(tensor.detach())
        return _as_array(held)

    def receive(self, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """Memory for the tensor's new values; ``received`` gives them to the tensor."""
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
        """Returns the memory as a tensor. Looked up anew each time, because a module may be moved or
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
