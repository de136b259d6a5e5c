"""What the nodes learn: a linear model of their own noisy data, which stays with them."""

from __future__ import annotations

from typing import Dict, Tuple

import numpy as np
from numpy.typing import NDArray

Arrays = Dict[str, NDArray[np.float32]]

#: What all nodes together should find.
SLOPES = np.array([2, -1, 0.5], np.float32)


def initial() -> Arrays:
    """Returns the model before the first round."""
    return {"slopes": np.zeros(3, np.float32), "intercept": np.zeros(1, np.float32)}


def samples(node: int, count: int = 100) -> Tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Makes the data of a node."""
    random = np.random.default_rng(node)
    inputs = random.normal(size=(count, 3)).astype(np.float32)
    noise = random.normal(scale=0.1, size=count).astype(np.float32)
    return inputs, inputs @ SLOPES + np.float32(1) + noise


def train(
    arrays: Arrays, node: int, epochs: int = 5, rate: float = 0.1
) -> Tuple[Arrays, int, float]:
    """Learns from a node's data; returns the new model, the number of examples and the loss before."""
    inputs, targets = samples(node)
    slopes, intercept = arrays["slopes"].copy(), arrays["intercept"].copy()
    loss = float(np.mean((inputs @ slopes + intercept - targets) ** 2))
    for _ in range(epochs):
        errors = inputs @ slopes + intercept - targets
        slopes -= np.float32(rate) * (errors @ inputs) / np.float32(len(targets))
        intercept -= np.float32(rate) * errors.mean()
    return {"slopes": slopes, "intercept": intercept}, len(targets), loss
