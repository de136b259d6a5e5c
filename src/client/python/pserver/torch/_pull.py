"""The job's values into tensors."""

from __future__ import annotations

from typing import Mapping, Optional

import torch

from ..client import Client
from ._host_memory import HostMemory


def pull_into(
    ps: Client,
    tensors: Mapping[str, torch.Tensor],
    memory: Optional[Mapping[str, HostMemory]] = None,
    *,
    timeout: Optional[float] = None,
) -> None:
    """Reads parameters into tensors of their shapes, without a copy where their memory allows it.

    ``memory`` is reused if given. After an error, tensors that are written in place may hold any mixture of
    old and new values; the next pull repairs that.
    """
    places = {name: HostMemory() for name in tensors} if memory is None else memory
    out = {name: places[name].receive(tensor) for name, tensor in tensors.items()}
    ps.get_params(list(tensors), out=out, timeout=timeout)
    for name, tensor in tensors.items():
        places[name].received(tensor)
