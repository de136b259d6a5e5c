"""Converts gradients of tensors to what the client sends."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np
import torch

from .._arguments import Encoding
from ..client import Client
from ..records import Rows
from ._host_memory import HostMemory

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
