"""What every peer can do: the steps of bench/steps/training-step.ts."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import List, Protocol

import numpy as np

#: Learning rate of all gradients, where a peer computes at all.
RATE = np.float32(1e-3)


@dataclass(frozen=True)
class DenseStep:
    """Gradients of whole float32 parameters of one length."""

    parameters: int
    elements: int


@dataclass(frozen=True)
class RowStep:
    """Gradients of some rows of a float32 table."""

    table_rows: int
    row_elements: int
    rows: int


class Peer(Protocol):
    """A running peer. A step sends gradients, and then reads the same elements into arrays."""

    def versions(self) -> str:
        """Returns names and versions of the programs that run."""

    def create_dense(self, step: DenseStep) -> None:
        """Creates parameters of zeros."""

    def step_dense(self, gradients: List[np.ndarray]) -> None:
        """Applies a gradient to each parameter and reads all of them."""

    def create_rows(self, step: RowStep) -> None:
        """Creates a table of zeros."""

    def step_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Applies gradients to these rows and reads them."""

    def close(self) -> None:
        """Ends its servers."""


def free_port() -> int:
    """Finds a TCP port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
