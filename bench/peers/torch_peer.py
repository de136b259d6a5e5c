"""PyTorch RPC: a process that holds tensors, called by torch.distributed.rpc.

Through shared memory a step is two calls with all tensors. Over TCP every tensor is a call of its own, as in
programs that keep a remote reference to each parameter; the calls of a step are under way together.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import List

import numpy as np
import torch
import torch.distributed.rpc as rpc

from steps import RATE, DenseStep, RowStep, free_port

SERVER, TRAINER = "server", "trainer"
TIMEOUT_SECONDS = 100

VALUES: List[torch.Tensor] = []


def create(count: int, shape: List[int]) -> None:
    """Replaces the values of the server by zeros."""
    VALUES[:] = [torch.zeros(shape) for _ in range(count)]


def push_all(gradients: List[torch.Tensor]) -> None:
    for value, gradient in zip(VALUES, gradients):
        value.sub_(gradient, alpha=float(RATE))


def pull_all() -> List[torch.Tensor]:
    return VALUES


def push_one(index: int, gradient: torch.Tensor) -> None:
    VALUES[index].sub_(gradient, alpha=float(RATE))


def pull_one(index: int) -> torch.Tensor:
    return VALUES[index]


def push_rows(rows: torch.Tensor, values: torch.Tensor) -> None:
    VALUES[0].index_add_(0, rows, values, alpha=-float(RATE))


def pull_rows(rows: torch.Tensor) -> torch.Tensor:
    return VALUES[0].index_select(0, rows)


def join(name: str, rank: int, transport: str) -> None:
    """Connects the two processes; both wait for each other."""
    options = rpc.TensorPipeRpcBackendOptions(
        rpc_timeout=TIMEOUT_SECONDS,
        _transports=None if transport == "shared-memory" else ["uv"],
        _channels=None if transport == "shared-memory" else ["basic"],
    )
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=options)


class TorchPeer:
    """A server in a process of its own."""

    def __init__(self, transport: str) -> None:
        self.is_one_by_one = transport == "tcp"
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        self.server = subprocess.Popen([sys.executable, __file__, transport])
        join(TRAINER, 1, transport)

    def versions(self) -> str:
        return f"PyTorch {torch.__version__}"

    def create_dense(self, step: DenseStep) -> None:
        self.step = step
        rpc.rpc_sync(SERVER, create, (step.parameters, [step.elements]))

    def step_dense(self, gradients: List[np.ndarray]) -> None:
        tensors = [torch.from_numpy(gradient) for gradient in gradients]
        if not self.is_one_by_one:
            rpc.rpc_sync(SERVER, push_all, (tensors,))
            rpc.rpc_sync(SERVER, pull_all)
            return
        torch.futures.wait_all(
            [rpc.rpc_async(SERVER, push_one, each) for each in enumerate(tensors)]
        )
        torch.futures.wait_all([rpc.rpc_async(SERVER, pull_one, (i,)) for i in range(len(tensors))])

    def create_rows(self, step: RowStep) -> None:
        rpc.rpc_sync(SERVER, create, (1, [step.table_rows, step.row_elements]))

    def step_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        named = torch.from_numpy(rows)
        rpc.rpc_sync(SERVER, push_rows, (named, torch.from_numpy(values)))
        rpc.rpc_sync(SERVER, pull_rows, (named,))

    def close(self) -> None:
        rpc.shutdown()
        self.server.wait()


def open_peer(name: str) -> TorchPeer:
    return TorchPeer(name.replace("torch-", ""))


if __name__ == "__main__":
    # Pickled calls name this module as the trainer imports it.
    import torch_peer

    torch_peer.join(SERVER, 0, sys.argv[1])
    rpc.shutdown()
