"""Initialization and changes of parameters, as calls of the C library."""

from __future__ import annotations

from ctypes import byref, c_char_p, c_size_t, pointer, sizeof
from typing import List, Optional, Sequence, Tuple

from ._arguments import Encoding, encoding_number
from ._arrays import Array, tensor_of
from ._indices import pointer_to, structs_of
from ._native.library import Connection
from ._native.structs import Config, GradOptions, Gradient, NewParameter, Tensor, UpdateOptions
from ._results import take

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
