"""Calls of the C library: initialization, updates, reads, and queries about a job."""

from __future__ import annotations

import ctypes
import json
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint64, c_void_p, pointer, sizeof
from typing import Any, Callable, Final, List, Mapping, Optional, Sequence, Tuple

from ._arguments import Encoding, encoding_number, pointer_to, structs_of
from ._arrays import DTYPES, Array, Origins, check_shape, shape_of, take, tensor_of
from ._error import ERRORS
from ._native import declarations
from ._native.declarations import (
    Config,
    GradOptions,
    Gradient,
    Known,
    NewParameter,
    NoteEntry,
    ReadOptions,
    Tensor,
    UpdateOptions,
)
from ._native.library import Connection, Library
from .records import (
    ClientStats,
    Fallback,
    JobStatus,
    ParameterInfo,
    Params,
    Position,
    SavedModel,
    Synchronization,
)

#: Name, values and, for a gradient of some rows, the numbers of these rows.
NamedGradient = Tuple[bytes, Array, Optional[Array]]


def init_param(
    connection: Connection, name: bytes, value: Array, config: Optional[Config], timeout_ms: int
) -> None:
    """Declares a parameter and stores its values."""
    connection.call("pserver_init_param", name, byref(tensor_of(value)), config, timeout_ms)


def init_params(
    connection: Connection,
    parameters: Sequence[Tuple[bytes, Array, Optional[Config]]],
    timeout_ms: int,
) -> None:
    """Declares parameters and stores their values."""
    structs = (NewParameter * len(parameters))()
    for struct, (name, value, config) in zip(structs, parameters):
        struct.name, struct.value = name, tensor_of(value)
        if config is not None:
            struct.config = pointer(config)
    connection.call("pserver_init_params", structs, len(parameters), timeout_ms)


def create(
    connection: Connection, name: bytes, value: Array, config: Optional[Config], timeout_ms: int
) -> Array:
    """Creates a parameter unless it exists; returns its value."""
    tensor, settled = tensor_of(value), Tensor()
    connection.call("pserver_create", name, byref(tensor), config, timeout_ms, byref(settled))
    return take(connection.native, settled)


def send_grads(
    connection: Connection, grads: Sequence[NamedGradient], options: GradOptions, timeout_ms: int
) -> int:
    """Sends gradients; returns the number of blocks whose gradients came too late."""
    structs = (Gradient * len(grads))()
    for struct, (name, values, rows) in zip(structs, grads):
        struct.name, struct.values = name, tensor_of(values)
        if rows is not None:
            struct.rows, struct.row_count = pointer_to(rows), rows.size
    late_blocks = c_size_t()
    options.late_blocks = pointer(late_blocks)
    connection.call("pserver_send_grads", structs, len(grads), byref(options), timeout_ms)
    return late_blocks.value


def update_options(encoding: Optional[Encoding], stored_is_enough: bool) -> UpdateOptions:
    """Makes the C library's struct that says how an update is sent. BAD_VALUE for an unknown
    encoding."""
    size, number = sizeof(UpdateOptions), encoding_number(encoding)
    return UpdateOptions(struct_size=size, encoding=number, stored_is_enough=stored_is_enough)


def set_params(
    connection: Connection,
    values: Sequence[Tuple[bytes, Array]],
    options: UpdateOptions,
    timeout_ms: int,
) -> None:
    """Overwrites parameters."""
    names = (c_char_p * len(values))(*(name for name, _ in values))
    tensors = (Tensor * len(values))(*(tensor_of(value) for _, value in values))
    connection.call("pserver_set_with", names, tensors, len(values), byref(options), timeout_ms)


def push(
    connection: Connection,
    name: bytes,
    value: Array,
    factors: Tuple[float, float],
    options: UpdateOptions,
    timeout_ms: int,
) -> None:
    """Sets a parameter to alpha · parameter + beta · value; ``factors`` are alpha and beta."""
    tensor = tensor_of(value)
    connection.call("pserver_push_with", name, byref(tensor), *factors, byref(options), timeout_ms)


def push_part(
    connection: Connection,
    name: bytes,
    part: Array,
    indices: List[Array],
    factors: Tuple[float, float],
    options: UpdateOptions,
    timeout_ms: int,
) -> None:
    """Does the same as :func:`push` for the elements at the product of the lists."""
    connection.call(
        "pserver_push_part_with",
        name,
        byref(tensor_of(part)),
        structs_of(indices),
        len(indices),
        *factors,
        byref(options),
        timeout_ms,
    )


def send_note(
    connection: Connection, entries: ctypes.Array[NoteEntry], count: int, timeout_ms: int
) -> None:
    """Writes a note; see :meth:`pserver.Client.note`."""
    connection.call("pserver_note", entries, count, timeout_ms)


#: The arrays that the caller already has, by name, with their index in the call that has read them.
KnownArrays = Mapping[str, Tuple[int, Array]]


def get(
    connection: Connection,
    names: Sequence[str],
    encoded: Sequence[bytes],
    out: Mapping[str, Array],
    known: Optional[Params],
    encoding: int,
    timeout_ms: int,
) -> Params:
    """Reads values by name: into the arrays of ``out`` where it has one, else those of ``known`` that
    are still up to date, else into new ones."""
    native = connection.native
    versions = (c_uint64 * len(names))()
    tensors = (Tensor * len(names))()
    for tensor, name in zip(tensors, names):
        if name in out:
            _aim(tensor, out[name])
    options = ReadOptions(struct_size=sizeof(ReadOptions), encoding=encoding, versions=versions)
    c_names = (c_char_p * len(names))(*encoded)
    origins = None if known is None else known._origins
    # The copy of the library that is loaded after a fork does not know the origins of the one before.
    usable = origins is not None and origins.library is native
    had: KnownArrays = origins.of(known) if usable and origins and known is not None else {}
    given = _known_of(names, had, origins)
    handle = c_void_p()
    connection.call(
        "pserver_get_known",
        c_names,
        tensors,
        len(names),
        given,
        byref(handle),
        byref(options),
        timeout_ms,
    )
    arrays = [_result(native, tensor, name, out, had) for tensor, name in zip(tensors, names)]
    read = Origins(native, handle, names, arrays)
    return Params(dict(zip(names, arrays)), dict(zip(names, versions)), read)


def _known_of(
    names: Sequence[str], had: KnownArrays, origins: Optional[Origins]
) -> Optional[ctypes.Array[Known]]:
    """Describes to the C library the values that the caller already has; None if there are none."""
    if not had or origins is None:
        return None
    given = (Known * len(names))()
    for each, name in zip(given, names):
        if name in had:
            each.index, array = had[name]
            each.data, each.origins = array.__array_interface__["data"][0], origins.handle
    return given


def pull_part(
    connection: Connection,
    name: bytes,
    indices: Sequence[Array],
    out: Optional[Array],
    encoding: int,
    timeout_ms: int,
) -> Array:
    """Reads the elements at the product of the lists, into ``out`` or a new array."""
    part = Tensor()
    if out is not None:
        _aim(part, out)
    options = ReadOptions(struct_size=sizeof(ReadOptions), encoding=encoding)
    connection.call(
        "pserver_pull_part_with",
        name,
        structs_of(indices),
        len(indices),
        byref(part),
        byref(options),
        timeout_ms,
    )
    return take(connection.native, part) if out is None else out


def _aim(tensor: Tensor, array: Array) -> None:
    aimed = tensor_of(array)
    tensor.dtype, tensor.data, tensor.bytes = aimed.dtype, aimed.data, aimed.bytes


def _result(
    native: Library, tensor: Any, name: str, out: Mapping[str, Array], had: KnownArrays
) -> Array:
    if name in out:
        check_shape(name, out[name], DTYPES[tensor.dtype], shape_of(tensor))
        return out[name]
    return take(native, tensor) if tensor.data else had[name][1]


_STATES: Final = ("uninitialized", "initializing", "ready")
_MODES: Final = ("async", "sync", "ssp", "diloco")


def describe(connection: Connection) -> declarations.ClientInfo:
    """Returns what the C client knows about itself."""
    info = declarations.ClientInfo(struct_size=sizeof(declarations.ClientInfo))
    connection.call("pserver_describe", byref(info))
    return info


def stats(connection: Connection) -> ClientStats:
    """Returns what the C client has done."""
    counts = declarations.ClientStats(struct_size=sizeof(declarations.ClientStats))
    connection.call("pserver_stats", byref(counts))
    failed = {ERRORS[number].code: count for number, count in enumerate(counts.failed) if count > 0}
    return ClientStats(
        calls=counts.calls,
        failed=failed,
        records=counts.records,
        resent=counts.resent,
        clipped=counts.clipped,
        set_aside=counts.set_aside,
        reads=counts.reads,
        sent_bytes=counts.sent_bytes,
        received_bytes=counts.received_bytes,
        reconnects=counts.reconnects,
    )


def synchronization(info: declarations.ClientInfo) -> Synchronization:
    """Returns how the trainers of the job keep step."""
    mode = _MODES[info.synchronization]
    return Synchronization(
        mode=mode,
        trainers=info.trainers,
        backups=info.backups,
        reduce=("sum" if info.sums else "mean") if mode == "sync" else None,
        staleness=info.staleness,
        quorum=info.quorum,
        grace=info.grace_cap_ms / 1000,
    )


def status(connection: Connection, timeout_ms: int) -> JobStatus:
    """Returns the state of the job."""
    info = declarations.JobInfo()
    positions = (declarations.Position * declarations.SHARDS_MAX)()
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
    """Returns every parameter in the order of names."""
    found = POINTER(declarations.ParameterDetails)()
    count = c_size_t()
    connection.call("pserver_list_details", byref(found), byref(count), timeout_ms)
    try:
        return [_parameter(found[i]) for i in range(count.value)]
    finally:
        connection.native.functions.pserver_list_details_release(found, count)


def _parameter(details: declarations.ParameterDetails) -> ParameterInfo:
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
    found = POINTER(declarations.Fallback)()
    count = c_size_t()
    connection.call("pserver_fallbacks", byref(found), byref(count), timeout_ms)
    try:
        return [_fallback(found[i]) for i in range(count.value)]
    finally:
        connection.native.functions.pserver_fallbacks_release(found)


def _fallback(found: declarations.Fallback) -> Fallback:
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

    saved = declarations.SavedModel(struct_size=sizeof(declarations.SavedModel))
    callback = declarations.OnProgress(0) if on_progress is None else declarations.OnProgress(tell)
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
