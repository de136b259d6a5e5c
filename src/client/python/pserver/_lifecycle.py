"""Initialization, as calls of the C library."""

from __future__ import annotations

from ctypes import byref, c_bool, c_void_p
from typing import Optional

from ._arrays import Array, tensor_of
from ._native.library import Library
from ._native.structs import Config, Tensor
from ._results import take


def begin_init(native: Library, handle: c_void_p, wait: bool, timeout_ms: int) -> bool:
    """Whether this trainer is selected."""
    selected = c_bool()
    native.check(native.functions.pserver_begin_init(handle, wait, timeout_ms, byref(selected)))
    return selected.value


def init_param(
    native: Library,
    handle: c_void_p,
    name: bytes,
    value: Array,
    config: Optional[Config],
    timeout_ms: int,
) -> None:
    """Declares a parameter and stores its values."""
    tensor = tensor_of(value)
    native.check(
        native.functions.pserver_init_param(handle, name, byref(tensor), config, timeout_ms)
    )


def create(
    native: Library,
    handle: c_void_p,
    name: bytes,
    value: Array,
    config: Optional[Config],
    timeout_ms: int,
) -> Array:
    """The parameter's value once it exists."""
    tensor, settled = tensor_of(value), Tensor()
    native.check(
        native.functions.pserver_create(
            handle, name, byref(tensor), config, timeout_ms, byref(settled)
        )
    )
    return take(native, settled)


def finish_init(native: Library, handle: c_void_p, timeout_ms: int) -> None:
    """Ends the initialization."""
    native.check(native.functions.pserver_finish_init(handle, timeout_ms))


def end_step(native: Library, handle: c_void_p, timeout_ms: int) -> None:
    """Ends the trainer's step."""
    native.check(native.functions.pserver_end_step(handle, timeout_ms))


def exit_steps(native: Library, handle: c_void_p, timeout_ms: int) -> None:
    """Leaves the job's steps."""
    native.check(native.functions.pserver_exit_steps(handle, timeout_ms))
