"""Queries about a job and its parameters, as calls of the C library."""

from __future__ import annotations

import json
from ctypes import POINTER, byref, c_size_t, sizeof
from typing import Any, Callable, Final, List, Optional

from ._arrays import DTYPES
from ._native import structs
from ._native.library import Connection
from ._results import shape_of
from .records import Fallback, JobStatus, ParameterInfo, Position, SavedModel, Synchronization

_STATES: Final = ("uninitialized", "initializing", "ready")
_MODES: Final = ("async", "sync", "ssp")


def describe(connection: Connection) -> structs.ClientInfo:
    """Returns what the C client knows about itself."""
    info = structs.ClientInfo(struct_size=sizeof(structs.ClientInfo))
    connection.call("pserver_describe", byref(info))
    return info


def synchronization(info: structs.ClientInfo) -> Synchronization:
    """How the trainers of the job keep step."""
    mode = _MODES[info.synchronization]
    return Synchronization(
        mode=mode,
        trainers=info.trainers,
        backups=info.backups,
        reduce=("sum" if info.sums else "mean") if mode == "sync" else None,
        staleness=info.staleness,
    )


def status(connection: Connection, timeout_ms: int) -> JobStatus:
    """The state of the job."""
    info = structs.JobInfo()
    positions = (structs.Position * structs.SHARDS_MAX)()
    count = c_size_t()
    connection.call("pserver_job_positions", byref(info), positions, byref(count), timeout_ms)
    return JobStatus(
        state=_STATES[info.state],
        epoch=info.epoch,
        by=to_text(info.by),
        shards=info.shards,
        at=tuple(Position(at.generation, at.seq) for at in positions[: count.value]),
    )


def list_params(connection: Connection, timeout_ms: int) -> List[ParameterInfo]:
    """Every parameter in the order of names."""
    found = POINTER(structs.ParameterDetails)()
    count = c_size_t()
    connection.call("pserver_list_details", byref(found), byref(count), timeout_ms)
    try:
        return [_parameter(found[i]) for i in range(count.value)]
    finally:
        connection.native.functions.pserver_list_details_release(found, count)


def _parameter(details: structs.ParameterDetails) -> ParameterInfo:
    info = details.info
    return ParameterInfo(
        name=to_text(info.name),
        dtype=DTYPES[info.dtype],
        shape=shape_of(info),
        config=json.loads(details.config),
        elements=info.elements,
        blocks=info.blocks,
        block_elements=details.block_elements,
        epoch=info.epoch,
        ready=info.ready,
    )


def fallbacks(connection: Connection, timeout_ms: int) -> List[Fallback]:
    """Returns what shards have lost since the last such call."""
    found = POINTER(structs.Fallback)()
    count = c_size_t()
    connection.call("pserver_fallbacks", byref(found), byref(count), timeout_ms)
    try:
        return [_fallback(found[i]) for i in range(count.value)]
    finally:
        connection.native.functions.pserver_fallbacks_release(found)


def _fallback(found: structs.Fallback) -> Fallback:
    return Fallback(
        shard=found.shard,
        generation=found.generation,
        first=getattr(found, "from"),
        last=found.to,
    )


def save(
    connection: Connection,
    path: bytes,
    on_progress: Optional[Callable[[int, int], object]],
    timeout_ms: int,
) -> SavedModel:
    """Asks a host to save the model; returns the file that it has written."""
    raised: List[BaseException] = []

    def tell(_context: Any, done_bytes: int, total_bytes: int) -> None:
        try:
            if on_progress is not None and not raised:
                on_progress(done_bytes, total_bytes)
        except BaseException as error:  # An exception cannot pass through the C library.
            raised.append(error)

    saved = structs.SavedModel(struct_size=sizeof(structs.SavedModel))
    callback = structs.OnProgress(0) if on_progress is None else structs.OnProgress(tell)
    connection.call("pserver_save_model", path, callback, None, byref(saved), timeout_ms)
    if raised:
        raise raised[0]
    return SavedModel(
        file=to_text(saved.file),
        bytes=saved.bytes,
        format=to_text(saved.format),
        host=to_text(saved.host),
    )


def to_text(name: bytes) -> str:
    """Decodes a name that the C library has written, with C0 80 for a NUL."""
    return name.replace(b"\xc0\x80", b"\0").decode("utf-8", "replace")
