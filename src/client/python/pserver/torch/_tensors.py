"""Tensors and their gradients in CPU memory, where the client reads and writes them."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np
import torch

from .._arguments import Encoding
from .._arrays import bfloat16
from ..client import Client
from ..records import Rows
from ._modules import distinct, held_dtype, held_in


class HostMemory:
    """CPU memory for one tensor, in the element type of the server's parameter.

    It is the tensor's own memory if that is on the CPU, contiguous and of that type. Otherwise it is a copy
    in C order, made once and reused; pinned if the tensor is on a GPU.
    """

    def __init__(self, dtype: Optional[torch.dtype] = None) -> None:
        """``dtype``: the element type of the parameter; None stands for that of ``held_dtype``."""
        self.dtype = dtype
        self._copy: Optional[torch.Tensor] = None

    def read(self, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """Returns the tensor's values, valid until the tensor or this memory is written."""
        held = self.of(tensor)
        if held is self._copy:
            held.copy_(tensor.detach())
        return as_array(held)

    def receive(self, tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        """Returns memory for the tensor's new values; ``received`` gives them to the tensor."""
        return as_array(self.of(tensor))

    def received(self, tensor: torch.Tensor) -> None:
        """Gives the tensor the values that were written since ``receive``, and informs autograd."""
        with torch.no_grad():
            values = tensor.detach()
            held = self.of(tensor)
            if held is self._copy:
                # An expanded tensor cannot be written as a whole: its elements are there several times.
                places = distinct(values)
                places.copy_(held[tuple(slice(size) for size in places.shape)])
            else:
                # Autograd does not see writes through numpy, but it counts an in-place operation on no
                # elements.
                values.view(-1)[:0].zero_()

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the memory as a tensor. It is looked up each time, because a module may be moved or
        converted."""
        dtype = self.dtype or held_dtype(tensor)
        is_own = tensor.device.type == "cpu" and tensor.dtype is dtype
        # numpy cannot view a tensor whose memory has the opposite sign.
        if is_own and tensor.is_contiguous() and not tensor.is_neg():
            return tensor.detach()
        pinned = tensor.device.type == "cuda"
        copy = self._copy
        if copy is None or copy.shape != tensor.shape or copy.dtype is not dtype:
            # The device is named because a program may have set another one as the default.
            copy = torch.empty(tensor.shape, dtype=dtype, device="cpu", pin_memory=pinned)
            self._copy = copy
        return copy


def pull_into(
    ps: Client,
    tensors: Mapping[str, torch.Tensor],
    memory: Optional[Mapping[str, HostMemory]] = None,
    *,
    encoding: Optional[Encoding] = None,
    timeout: Optional[float] = None,
) -> None:
    """Reads parameters into tensors of the same shapes, without a copy where the tensors' memory allows
    it.

    ``encoding`` applies to those that the job holds as float32. ``memory`` is reused if given. After an error,
    tensors that are written in place may hold any mixture of old and new values; the next pull repairs that.
    """
    places = (
        {name: HostMemory(held_in(ps, name, tensor)) for name, tensor in tensors.items()}
        if memory is None
        else memory
    )
    out = {name: places[name].receive(tensor) for name, tensor in tensors.items()}
    wide = {name: array for name, array in out.items() if array.dtype != np.float32}
    if encoding is None or not out.keys() - wide.keys():
        ps.get_params(list(out), out=out, timeout=timeout)
    else:
        narrow = {name: array for name, array in out.items() if name not in wide}
        ps.get_params(list(narrow), out=narrow, encoding=encoding, timeout=timeout)
        if wide:
            ps.get_params(list(wide), out=wide, timeout=timeout)
    for name, tensor in tensors.items():
        places[name].received(tensor)


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Views a tensor on the CPU as an array; one of bfloat16, which numpy has not, by its bits."""
    if tensor.dtype is torch.bfloat16:
        bits: np.ndarray[Any, Any] = tensor.view(torch.int16).numpy()
        return bits.view(bfloat16)
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


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
    return Rows(ids, HostMemory(memory.dtype).read(rows.values()))


class StepCalls:
    """The calls that send the gradients of one step. There is one call for each learning rate and,
    because only some gradients are encoded, one for each encoding. The last call ends the step."""

    def __init__(self, encoding: Optional[Encoding], error_feedback: bool) -> None:
        """Encodes float32 gradients."""
        self._encoding = encoding
        self._error_feedback = error_feedback
        self._calls: Dict[Tuple[Optional[float], Optional[Encoding]], Dict[str, Gradient]] = {}

    def add(self, name: str, gradient: Gradient, learning_rate: Optional[float] = None) -> None:
        """Adds a gradient to the call that it belongs to."""
        values = gradient.values if isinstance(gradient, Rows) else gradient
        encoding = None if values.dtype != np.float32 else self._encoding
        self._calls.setdefault((learning_rate, encoding), {})[name] = gradient

    def send(
        self, ps: Client, *, stored_is_enough: bool = False, timeout: Optional[float] = None
    ) -> int:
        """Sends everything and ends the trainer's step; only ends the step if there is nothing to send.

        Returns the number of blocks whose gradients came too late for their step. Calls before one that
        fails have taken effect.
        """
        calls = list(self._calls.items())
        late = 0
        for place, ((learning_rate, encoding), grads) in enumerate(calls, start=1):
            result = ps.send_grads(
                grads,
                learning_rate=learning_rate,
                encoding=encoding,
                error_feedback=self._error_feedback,
                stored_is_enough=stored_is_enough,
                end_step=place == len(calls),
                timeout=timeout,
            )
            late += result.late_blocks
        if not calls:
            ps.end_step(timeout=timeout)
        return late
