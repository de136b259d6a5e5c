"""Redis: stores what it is given, so the trainer computes. In memory alone, without files."""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import List

import numpy as np
import redis

from steps import RATE, DenseStep, RowStep, free_port

#: Keys in one command while a table is created.
CHUNK = 10_000


def server_program() -> str:
    """Returns the server; it is the same program as the checker of its files, which Debian has without a service."""
    for name in ("redis-server", "redis-check-rdb"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise FileNotFoundError("redis-server is not installed")


class RedisPeer:
    """A server on a free port of this machine."""

    def __init__(self) -> None:
        port = free_port()
        memory_only = ["--save", "", "--appendonly", "no"]
        self.server = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(port), *memory_only],
            executable=server_program(),
            stdout=subprocess.DEVNULL,
        )
        self.redis = redis.Redis(port=port)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.redis.ping()
                return
            except redis.exceptions.ConnectionError:
                if time.monotonic() > deadline or self.server.poll() is not None:
                    raise
                time.sleep(0.01)

    def versions(self) -> str:
        return f"Redis {self.redis.info()['redis_version']}, redis-py {redis.__version__}"

    def create_dense(self, step: DenseStep) -> None:
        self.redis.flushall()
        self.names = [f"w.{i}" for i in range(step.parameters)]
        self.values = [np.zeros(step.elements, np.float32) for _ in self.names]
        self.redis.mset({name: value.tobytes() for name, value in zip(self.names, self.values)})

    def step_dense(self, gradients: List[np.ndarray]) -> None:
        for value, gradient in zip(self.values, gradients):
            value -= RATE * gradient
        self.redis.mset({name: value.tobytes() for name, value in zip(self.names, self.values)})
        for value, read in zip(self.values, self.redis.mget(self.names)):
            value[:] = np.frombuffer(read, np.float32)

    def create_rows(self, step: RowStep) -> None:
        self.redis.flushall()
        zeros = bytes(4 * step.row_elements)
        for first in range(0, step.table_rows, CHUNK):
            last = min(first + CHUNK, step.table_rows)
            self.redis.mset({f"r{row}": zeros for row in range(first, last)})
        self.table = np.zeros((step.table_rows, step.row_elements), np.float32)

    def step_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        new = self.table[rows] - RATE * values
        names = [f"r{row}" for row in rows.tolist()]
        self.redis.mset({name: row.tobytes() for name, row in zip(names, new)})
        read = b"".join(self.redis.mget(names))
        self.table[rows] = np.frombuffer(read, np.float32).reshape(values.shape)

    def close(self) -> None:
        self.server.terminate()
        self.server.wait()


def open_peer(_: str) -> RedisPeer:
    return RedisPeer()
