"""Arguments and results of calls other than arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

from ._arrays import Array, Origins


@dataclass(frozen=True, eq=False)
class Rows:
    """A gradient of some rows of a parameter that is configured ``sparse``.

    ``ids`` are indices of the first dimension; negative ones count from its end, and the values of
    repeated ones are added up, in order. ``values`` has a row of elements for each id.
    """

    ids: Any
    values: Any


class Params(Dict[str, Array]):
    """The values of parameters by name, as :meth:`pserver.Client.get_params` reads them."""

    #: The number of changes of each parameter, by name: 1 for its initialization, and 1 for each update
    #: or, in a ``sync`` job, each step. For a parameter of several blocks, which are not read at one
    #: moment, the number of the block that was changed most.
    versions: Mapping[str, int]
    #: The states from which the arrays were read; None after unpickling, in another process for
    #: instance.
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

    #: Blocks whose step had closed before the gradient came, so that it was left out. This happens in a
    #: job with backup trainers, and in the first step after this trainer has entered the job's steps.
    late_blocks: int


@dataclass(frozen=True)
class Synchronization:
    """How the trainers of a job keep step."""

    #: ``"async"``: they do not; ``"sync"``: one gradient of each is applied together; ``"ssp"``: a
    #: trainer may be ahead of the slowest by a bounded number of steps; ``"diloco"``: each trains by itself and
    #: contributes to rounds of fragments.
    mode: str
    #: In ``sync`` and ``ssp`` jobs: trainers that must have entered before any step ends. 0 in others, as is each
    #: of the following numbers where it means nothing.
    trainers: int
    #: In ``sync`` jobs: additional trainers; a step does not wait for so many of the last ones.
    backups: int
    #: In ``sync`` jobs: ``"mean"`` or ``"sum"``.
    reduce: Optional[str]
    #: In ``ssp`` jobs: steps that a trainer may be ahead of the slowest.
    staleness: int
    #: In ``diloco`` jobs: trainers that must have contributed before a round closes, or all members if these
    #: are fewer.
    quorum: int = 0
    #: In ``diloco`` jobs: for how many seconds a round that has its quorum waits for others at most.
    grace: float = 0.0


@dataclass(frozen=True)
class Tally:
    """Contributions, with the inner steps and tokens that went into them."""

    contributions: int
    steps: int
    tokens: int


@dataclass(frozen=True)
class ContributionAccount:
    """What became of a trainer's contributions. Those that are not named below are in open rounds."""

    #: All that were complete.
    processed: Tally
    merged: Tally
    #: Merged although they were made from an earlier version.
    late: Tally
    dropped: Tally


@dataclass(frozen=True)
class Fragments:
    """The fragments of a job, and what became of this trainer's contributions to them."""

    #: How many rounds of each fragment have closed, by its name.
    versions: Mapping[str, int]
    #: The names of each fragment's parameters.
    parameters: Mapping[str, Tuple[str, ...]]
    account: ContributionAccount


@dataclass(frozen=True)
class Sampling:
    """Whether this trainer may contribute to a round of a fragment."""

    #: The round: the version that the fragment gets when it closes.
    round: int
    is_sampled: bool


@dataclass(frozen=True)
class PulledFragment:
    """The values of a fragment's parameters by name, all of one version."""

    version: int
    params: Mapping[str, Array]


@dataclass(frozen=True)
class Position:
    """A place in the journal of a shard."""

    generation: int
    seq: int


@dataclass(frozen=True)
class ClientStats:
    """What a client has done since it joined. Bytes are of messages, without subjects and what NATS adds."""

    #: Calls that have ended.
    calls: int
    #: Of these, the calls that have failed, by the codes of their errors.
    failed: Mapping[str, int]
    #: Records that were sent, each counted once.
    records: int
    #: How often a record was sent again.
    resent: int
    #: Records of which a guard has clipped a gradient or tensor, and that one has set aside: they were not applied.
    clipped: int
    set_aside: int
    #: Requests for values.
    reads: int
    sent_bytes: int
    received_bytes: int
    #: How often a connection was lost and came back; a client has two.
    reconnects: int


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
    #: The number of blocks, and the elements of each block but the last.
    blocks: int
    block_elements: int
    #: Number of its initialization, and whether that is finished.
    epoch: int
    ready: bool


@dataclass(frozen=True)
class Fallback:
    """Records of a shard's journal that were lost, and with them updates that had been acknowledged."""

    shard: int
    #: Generation of the abandoned journal.
    generation: int
    #: The first and the last record of that journal known to have been lost.
    first: int
    last: int


@dataclass(frozen=True)
class SavedModel:
    """A model file that a host has written."""

    #: Absolute path of the file on the machine of the host.
    file: str
    bytes: int
    format: str
    #: Id of that host.
    host: str
