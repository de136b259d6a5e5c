"""Trains PyTorch modules with a parameter server.

``sync`` brings a module and the job together, ``Optimizer`` steps on the server, ``DiLoCo`` lets an
optimizer of PyTorch's own run here and averages now and then. See docs/python.md.
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
