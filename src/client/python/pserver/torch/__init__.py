"""Trains PyTorch modules with a parameter server.

``sync`` connects a module with the job, ``Optimizer`` runs the optimizer on the server, ``DiLoCo`` runs a
PyTorch optimizer here and exchanges what it has learned from time to time. See docs/guides/pytorch.md.
"""

try:
    import torch as _torch  # noqa: F401  (the only thing checked here is that it is there)
except ImportError as error:
    raise ImportError(
        "pserver.torch: expected PyTorch 1.13 or newer; received none that can be imported: "
        "install Debian's python3-torch, or with pip the package torch"
    ) from error

from ._diloco import DiLoCo
from ._optimizer import Optimizer
from ._sync import push_buffers, sync

__all__ = ["DiLoCo", "Optimizer", "push_buffers", "sync"]
