"""What calls take and tell besides arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

from ._arrays import Array
from ._origins import Origins


@dataclass(frozen=True, eq=False)
class Rows:
    """A gradient of some rows of a parameter that is configured ``sparse``.

    ``ids`` are indices of the first dimension, negative ones count from its end; the values of repeated
    ones are added up, in order. ``values`` has a row of elements for each of them.
    """

    ids: Any
    values: Any


class Params(Dict[str, Array]):
    """The values of parameters by name, as :meth:`pserver.Client.get_params` reads them."""

    #: By name, the changes of the parameter since it was initialized, which counts as the first: each update
    #: adds 1, in a ``sync`` job each step. Of a parameter of several blocks, which are not read at one
    #: moment, that of the block changed most.
    versions: Mapping[str, int]
    #: What the arrays were read from; None after pickling, as of a result of another process.
    _origins: Optional[Origins] = None

    def __init__(
        self,
        values: Mapping[str, Array],
        versions: Mapping[str, int],
        origins: Optional[Origins] = None,
    ) -> None:
        super().__init__(values)
        self.versions = versions
        self._origins = origins

    def __getstate__(self) -> Dict[str, Any]:
        return {"versions": self.versions}


@dataclass(frozen=True)
class GradResult:
    """What became of the gradients of one call."""

    #: Blocks whose step had closed before the gradient came, which was then left out: in a job with
    #: backup trainers, or in the first step after this trainer has entered the job's steps.
    late_blocks: int


@dataclass(frozen=True)
class Synchronization:
    """How the trainers of a job keep step."""

    #: ``"async"``: not at all; ``"sync"``: one gradient of each is applied together; ``"ssp"``: one is
    #: ahead of the slowest by a bounded number of steps.
    mode: str
    #: Trainers that must have entered before a step ends; 0 in ``async`` jobs, as the next are.
    trainers: int
    #: Of ``sync``: trainers beyond those, of whom the last of a step are left out.
    backups: int
    #: Of ``sync``: ``"mean"`` or ``"sum"``.
    reduce: Optional[str]
    #: Of ``ssp``: steps that a trainer may be ahead of the slowest.
    staleness: int


@dataclass(frozen=True)
class Position:
    """A place in the journal of a shard."""

    generation: int
    seq: int


@dataclass(frozen=True)
class JobStatus:
    """The state of a job."""

    #: ``"uninitialized"``, ``"initializing"`` or ``"ready"``.
    state: str
    #: Number of the present or last initialization.
    epoch: int
    #: The trainer that initializes or initialized; ``""`` if none.
    by: str
    shards: int
    #: Where the journals of the shards stood when the job became ready; empty before.
    at: Tuple[Position, ...]


@dataclass(frozen=True)
class ParameterInfo:
    """A parameter of a job."""

    name: str
    dtype: np.dtype[Any]
    shape: Tuple[int, ...]
    #: How it is updated, with all defaults written out; names as in JSON, such as ``learningRate``.
    config: Mapping[str, Any]
    elements: int
    #: The pieces it is cut into, and the elements of each but the last.
    blocks: int
    block_elements: int
    #: Number of its initialization, and whether that is finished.
    epoch: int
    ready: bool


@dataclass(frozen=True)
class Fallback:
    """Records of a shard's journal that were lost, and with them updates that had been acknowledged."""

    shard: int
    #: Generation of the journal that was left.
    generation: int
    #: The first and the last record of that journal known to have been lost.
    first: int
    last: int


@dataclass(frozen=True)
class SavedModel:
    """A model file that a host has written."""

    #: Path of the file below the model directory of the host.
    file: str
    bytes: int
    format: str
    #: Id of that host; None of one that is older than this client.
    host: Optional[str]
