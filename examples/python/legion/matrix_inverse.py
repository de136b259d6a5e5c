"""Workers look for the inverse of a matrix together, each by chance, from the best that any has found.

    legion examples/python/legion/matrix_inverse.py --instances 4

Whoever finds a better candidate pushes it; the others go on from there.
"""

import os

import numpy as np

from legion import Client

SIZE = 4
TRIES = 3_000
LOOK_EVERY = 20

matrix = np.random.default_rng(1).normal(size=(SIZE, SIZE)) + 3 * np.eye(SIZE)
random = np.random.default_rng([2, int(os.environ.get("PSERVER_RANK", os.getpid()))])


def error(candidate: np.ndarray) -> float:
    """Returns how far a candidate is from the inverse."""
    return float(np.abs(matrix @ candidate - np.eye(SIZE)).max())


client = Client()
best = client.create_if_not_already_created("inverse", np.eye(SIZE))
for attempt in range(TRIES):
    if attempt % LOOK_EVERY == 0:
        best = min(best, client.pull_full("inverse"), key=error)
    candidate = best + random.normal(scale=0.1 * min(1, error(best)), size=best.shape)
    if error(candidate) < error(best):
        best = candidate
        # Another worker may have found a better one since then.
        if error(best) < error(client.pull_full("inverse")):
            client.push_full("inverse", best, 0, 1)
print(f"largest error: {error(client.pull_full('inverse')):.4f}")
