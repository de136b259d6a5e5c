"""StepHook, with and without the hooks that PyTorch has, and the outer rules of DiLoCo. Needs no server."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Dict, List

import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
from pserver.torch._outer import outer_config  # noqa: E402
from pserver.torch._step_hook import StepHook  # noqa: E402

nn: Any = torch.nn
SGD: Any = torch.optim.SGD
RemovableHandle: Any = torch.utils.hooks.RemovableHandle


class OptimizerWithHooks(SGD):  # type: ignore[misc]
    """An optimizer with the hooks of PyTorch 2.0, also where PyTorch is older."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own_hooks: Dict[int, Callable[..., None]] = OrderedDict()

    def register_step_post_hook(self, hook: Callable[..., None]) -> Any:
        handle = RemovableHandle(self._own_hooks)
        self._own_hooks[handle.id] = hook
        return handle

    def step(self, closure: Any = None) -> Any:
        result = super().step(closure)
        for hook in self._own_hooks.values():
            hook(self, (), {})
        return result


def quadratic(kind: Any) -> Any:
    """An optimizer, and a closure whose loss falls with each step."""
    weight = nn.Parameter(torch.ones(2))
    optimizer = kind([weight], lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    return optimizer, closure


@pytest.mark.parametrize("kind", [torch.optim.SGD, OptimizerWithHooks])
def test_the_hook_is_called_at_every_step_until_it_is_removed(kind: Any) -> None:
    optimizer, closure = quadratic(kind)
    steps: List[int] = []
    hook = StepHook(optimizer, lambda: steps.append(1))
    first, second = optimizer.step(closure), optimizer.step(closure)
    assert first == 2 and second < first
    assert len(steps) == 2
    hook.remove()
    optimizer.step(closure)
    assert len(steps) == 2


@pytest.mark.parametrize("scheduler_first", [True, False])
@pytest.mark.filterwarnings("error")
def test_schedulers_count_steps_before_and_after_the_hook(scheduler_first: bool) -> None:
    optimizer, closure = quadratic(torch.optim.SGD)
    steps: List[int] = []
    scheduler_of: Any = torch.optim.lr_scheduler.StepLR
    scheduler = scheduler_of(optimizer, 1) if scheduler_first else None
    hook = StepHook(optimizer, lambda: steps.append(1))
    if scheduler is None:
        scheduler = scheduler_of(optimizer, 1)
    for _ in range(3):
        optimizer.step(closure)
        scheduler.step()
    hook.remove()
    optimizer.step(closure)
    assert len(steps) == 3


def test_the_hook_is_not_called_for_a_step_that_fails() -> None:
    optimizer, _ = quadratic(torch.optim.SGD)
    steps: List[int] = []
    StepHook(optimizer, lambda: steps.append(1))
    with pytest.raises(ZeroDivisionError):
        optimizer.step(lambda: 1 / 0)
    assert steps == []


def test_the_outer_rule_is_the_papers_unless_said_otherwise() -> None:
    nesterov = {"name": "nesterov", "momentum": 0.9}
    assert outer_config(None, None) == {
        "optimizer": nesterov,
        "learningRate": {"schedule": "constant", "rate": 0.7},
    }
    assert outer_config(dict(lr=0.5, momentum=0.8), None) == {
        "optimizer": {"name": "nesterov", "momentum": 0.8},
        "learningRate": {"schedule": "constant", "rate": 0.5},
    }


def test_an_outer_optimizer_of_pytorch_gives_its_settings() -> None:
    weights = [nn.Parameter(torch.ones(1))]
    outer = torch.optim.SGD(weights, lr=0.7, momentum=0.9, nesterov=True)
    assert outer_config(None, outer) == {**outer_config(None, None), "l2": 0}
    with pytest.raises(pserver.BadConfig, match="received both"):
        outer_config({}, outer)
    with pytest.raises(pserver.BadConfig, match="received Adam"):
        outer_config(None, torch.optim.Adam(weights))
    with pytest.raises(pserver.BadConfig, match="no dampening"):
        outer_config(None, torch.optim.SGD(weights, lr=0.1, momentum=0.9, dampening=0.5))
