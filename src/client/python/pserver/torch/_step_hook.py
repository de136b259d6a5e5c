"""A function that is called after each step of an optimizer."""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any, Callable

import torch


class StepHook:
    """Calls a function after each step of an optimizer, until it is removed."""

    def __init__(self, optimizer: torch.optim.Optimizer, after_step: Callable[[], None]) -> None:
        self._after_step = after_step
        register = getattr(optimizer, "register_step_post_hook", None)
        self._attached = True
        self._handle = None if register is None else register(lambda *_: self._after_step())
        if register is None:
            self._wrap(optimizer)

    def remove(self) -> None:
        """Removes the hook: the function is not called any more."""
        self._attached = False
        if self._handle is not None:
            self._handle.remove()

    def _wrap(self, optimizer: Any) -> None:
        """Replaces ``step`` by a method that also calls the function: PyTorch before 2.0 has no hooks
        of steps.

        The replacement is a method, too, and has the attributes of the original, because schedulers of
        these versions wrap it in turn and look for both. For the same reason it stays when the hook is
        removed, and then calls nothing.
        """
        inner = optimizer.step

        @functools.wraps(inner)
        def step(_: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            loss = inner(*args, **kwargs)
            if self._attached:
                self._after_step()
            return loss

        optimizer.step = MethodType(step, optimizer)
