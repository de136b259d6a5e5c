"""What learners and their server compute, written in numpy: each operation is rounded once, in float32."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np

Arrays = Dict[str, Any]


class Outer:
    """The values that a job holds, updated by Nesterov's rule at a rate of 0.7 and a momentum of 0.9."""

    def __init__(self, params: Arrays) -> None:
        self.values = {name: value.copy() for name, value in params.items()}
        self.slots = {name: np.zeros_like(value) for name, value in params.items()}

    def apply(self, name: str, gradient: Any) -> None:
        rate, momentum = np.float32(0.7), np.float32(0.9)
        self.slots[name] = momentum * self.slots[name] - rate * gradient
        self.values[name] = self.values[name] + (momentum * self.slots[name] - rate * gradient)


def weighted_mean(contributions: Sequence[Tuple[float, Any]]) -> Any:
    """The mean of displacements, given with their weights, as the fold mixes them in."""
    (total, mean), *others = contributions
    for weight, own in others:
        before, share = total / (total + weight), weight / (total + weight)
        mean = np.float32(before) * mean + np.float32(share) * own
        total += weight
    return mean


class Reference:
    """A learner and its server, alone with each other, in numpy."""

    def __init__(
        self,
        params: Arrays,
        groups: List[List[str]],
        period: int,
        alpha: float,
        inner: Callable[[Arrays, int], Arrays],
    ) -> None:
        """``groups``: the names of each fragment's arrays; ``inner``: an inner step, by its number."""
        self.own = {name: value.copy() for name, value in params.items()}
        self.outer = Outer(params)
        self.groups, self.period, self.alpha, self.inner = groups, period, np.float32(alpha), inner
        self.due = [(i + 1) * period // len(groups) % period for i in range(len(groups))]
        self.sent: Dict[int, int] = {}
        self.versions = [0] * len(groups)

    def step(self, number: int, delay: int) -> None:
        self.own = self.inner(self.own, number)
        for i, sent in list(self.sent.items()):
            if number >= sent + delay:
                del self.sent[i]
                self.versions[i] += 1
                for name in self.groups[i]:
                    mixed = self.own[name] * self.alpha
                    self.own[name] = mixed + self.outer.values[name] * (np.float32(1) - self.alpha)
        for i, names in enumerate(self.groups):
            if number % self.period == self.due[i] and i not in self.sent:
                self.sent[i] = number
                for name in names:
                    change = self.outer.values[name] - self.own[name]
                    self.outer.apply(name, change)
