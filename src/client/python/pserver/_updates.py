"""Changes of parameters, as calls of the C library."""

from __future__ import annotations

from ctypes import byref, c_char_p, c_size_t, c_void_p, pointer
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

from ._arrays import Array, tensor_of
from ._indices import pointer_to, structs_of
from ._native.library import Library
from ._native.structs import GradOptions, Gradient, Tensor, UpdateOptions


@dataclass(frozen=True)
class GradCall:
    """How gradients are sent."""

    learning_rate: Optional[float]
    encoding: int
    stored_is_enough: bool
    end_step: bool


#: Name, values and, for some rows, their numbers.
NamedGradient = Tuple[bytes, Array, Optional[Array]]


def send_grads(
    native: Library,
    handle: c_void_p,
    grads: Sequence[NamedGradient],
    call: GradCall,
    timeout_ms: int,
) -> int:
    """Number of blocks whose gradients came too late."""
    structs = (Gradient * len(grads))()
    for struct, (name, values, rows) in zip(structs, grads):
        struct.name, struct.values = name, tensor_of(values)
        if rows is not None:
            struct.rows, struct.row_count = pointer_to(rows), rows.size
    late_blocks = c_size_t()
    options = GradOptions()
    native.functions.pserver_grad_options_init(byref(options))
    options.has_learning_rate = call.learning_rate is not None
    options.learning_rate = call.learning_rate or 0.0
    options.encoding = call.encoding
    options.stored_is_enough = call.stored_is_enough
    options.end_step = call.end_step
    options.late_blocks = pointer(late_blocks)
    native.check(
        native.functions.pserver_send_grads(handle, structs, len(grads), byref(options), timeout_ms)
    )
    return late_blocks.value


def set_params(
    native: Library,
    handle: c_void_p,
    values: Sequence[Tuple[bytes, Array]],
    stored_is_enough: bool,
    timeout_ms: int,
) -> None:
    """Overwrites parameters."""
    count = len(values)
    native.check(
        native.functions.pserver_set_with(
            handle,
            (c_char_p * count)(*(name for name, _ in values)),
            (Tensor * count)(*(tensor_of(value) for _, value in values)),
            count,
            _options(native, 0, stored_is_enough),
            timeout_ms,
        )
    )


def push(
    native: Library,
    handle: c_void_p,
    name: bytes,
    value: Array,
    factors: Tuple[float, float],
    encoding: int,
    stored_is_enough: bool,
    timeout_ms: int,
) -> None:
    """alpha · value + beta · tensor, for all elements."""
    native.check(
        native.functions.pserver_push_with(
            handle,
            name,
            byref(tensor_of(value)),
            *factors,
            _options(native, encoding, stored_is_enough),
            timeout_ms,
        )
    )


def push_part(
    native: Library,
    handle: c_void_p,
    name: bytes,
    part: Array,
    indices: List[Array],
    factors: Tuple[float, float],
    encoding: int,
    stored_is_enough: bool,
    timeout_ms: int,
) -> None:
    """The same for the elements at the product of the lists."""
    native.check(
        native.functions.pserver_push_part_with(
            handle,
            name,
            byref(tensor_of(part)),
            structs_of(indices),
            len(indices),
            *factors,
            _options(native, encoding, stored_is_enough),
            timeout_ms,
        )
    )


def _options(native: Library, encoding: int, stored_is_enough: bool) -> Any:
    options = UpdateOptions()
    native.functions.pserver_update_options_init(byref(options))
    options.encoding, options.stored_is_enough = encoding, stored_is_enough
    return byref(options)
