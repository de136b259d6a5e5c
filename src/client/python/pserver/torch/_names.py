"""Which tensors of this process stand for which parameters of a job."""

from __future__ import annotations

from typing import Mapping, MutableMapping, Optional
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from ..client import Client

# Weak on both sides: neither a client nor a module lives longer for having been synchronized.
_synced: MutableMapping[Client, MutableMapping[str, torch.Tensor]] = WeakKeyDictionary()


def remember(ps: Client, tensors: Mapping[str, torch.Tensor]) -> None:
    """Notes the names of a module's tensors in the client's job."""
    _synced.setdefault(ps, WeakValueDictionary()).update(tensors)


def name_of(ps: Client, tensor: torch.Tensor) -> Optional[str]:
    """The name under which a tensor was synchronized; None if it was not."""
    for name, known in _synced.get(ps, {}).items():
        if known is tensor:
            return name
    return None
