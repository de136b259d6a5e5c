"""Legion's API on this server: scripts written for Legion run with their import unchanged.

>>> from legion import Client
>>> client = Client()
>>> client.create_if_not_already_created("my_matrix", A)
>>> client.push_full("my_matrix", A, alpha, beta)

The client of :mod:`pserver` can do more: optimizers, sparse rows, steps, asyncio.
"""

from .blocks_extensions import (
    SharedParamsAutoSync,
    SharedParamsRateLimited,
    StopAfterTimeElapsed,
    Timestamp,
)
from .client import Client

__all__ = [
    "Client",
    "SharedParamsAutoSync",
    "SharedParamsRateLimited",
    "StopAfterTimeElapsed",
    "Timestamp",
]
