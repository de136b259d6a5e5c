"""Trains numpy arrays with a parameter server on NATS.

::

    with pserver.connect() as ps:
        if ps.begin_init():
            ps.init_param("w", np.zeros((3, 4), np.float32), optimizer="adam", learning_rate=1e-3)
            ps.finish_init()
        ps.send_grads({"w": gradient})
        w = ps.pull("w")
"""

from . import errors
from ._arrays import Array, bfloat16
from ._error import Error, LibraryError
from ._version import VERSION as __version__
from .averaging import AsyncDifference, elastic_average
from .client import Client, connect
from .config import ConfigInput, PaddleConfigs
from .errors import *
from .records import (
    ClientStats,
    ContributionAccount,
    Fallback,
    Fragments,
    GradResult,
    JobStatus,
    ParameterInfo,
    Params,
    Position,
    PulledFragment,
    Rows,
    Sampling,
    SavedModel,
    Synchronization,
    Tally,
)

__all__ = [
    "Array",
    "AsyncDifference",
    "Client",
    "ClientStats",
    "ConfigInput",
    "ContributionAccount",
    "Error",
    "Fallback",
    "Fragments",
    "GradResult",
    "JobStatus",
    "LibraryError",
    "PaddleConfigs",
    "ParameterInfo",
    "Params",
    "Position",
    "PulledFragment",
    "Rows",
    "Sampling",
    "SavedModel",
    "Synchronization",
    "Tally",
    "__version__",
    "bfloat16",
    "connect",
    "elastic_average",
    "errors",
]
__all__ += errors.__all__
