"""Ray: an actor that holds numpy arrays, as in Ray's own example of a parameter server."""

from __future__ import annotations

from typing import List

import numpy as np
import ray

from steps import RATE, DenseStep, RowStep


@ray.remote
class Server:
    """The parameters, in the memory of one process."""

    def create_dense(self, parameters: int, elements: int) -> None:
        self.values = [np.zeros(elements, np.float32) for _ in range(parameters)]

    def push_dense(self, gradients: List[np.ndarray]) -> None:
        for value, gradient in zip(self.values, gradients):
            value -= RATE * gradient

    def pull_dense(self) -> List[np.ndarray]:
        return self.values

    def create_rows(self, rows: int, elements: int) -> None:
        self.table = np.zeros((rows, elements), np.float32)

    def push_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        self.table[rows] -= RATE * values

    def pull_rows(self, rows: np.ndarray) -> np.ndarray:
        return self.table[rows]


class RayPeer:
    """A local cluster with one actor."""

    def __init__(self) -> None:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        self.server = Server.remote()

    def versions(self) -> str:
        return f"Ray {ray.__version__}, numpy {np.__version__}"

    def create_dense(self, step: DenseStep) -> None:
        ray.get(self.server.create_dense.remote(step.parameters, step.elements))

    def step_dense(self, gradients: List[np.ndarray]) -> None:
        ray.get(self.server.push_dense.remote(gradients))
        ray.get(self.server.pull_dense.remote())

    def create_rows(self, step: RowStep) -> None:
        ray.get(self.server.create_rows.remote(step.table_rows, step.row_elements))

    def step_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        ray.get(self.server.push_rows.remote(rows, values))
        ray.get(self.server.pull_rows.remote(rows))

    def close(self) -> None:
        ray.shutdown()


def open_peer(_: str) -> RayPeer:
    return RayPeer()
