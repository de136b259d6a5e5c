"""Which tensors of this process stand for which parameters of a job."""

from __future__ import annotations

from typing import Dict, Mapping, MutableMapping
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from ..client import Client

# Weak on both sides: neither a client nor a module lives longer for having been synchronized.
_synced: MutableMapping[Client, MutableMapping[str, torch.Tensor]] = WeakKeyDictionary()


def remember(ps: Client, tensors: Mapping[str, torch.Tensor]) -> None:
    """Notes the names of a module's tensors in the client's job."""
    _synced.setdefault(ps, WeakValueDictionary()).update(tensors)


def names_by_id(ps: Client) -> Dict[int, str]:
    """The names of all tensors that were synchronized and still exist, by the tensors' ``id``."""
    return {id(tensor): name for name, tensor in _synced.get(ps, {}).items()}
