"""A peer of the parameter server, driven by lines: makes the training steps that it is told to make.

Its argument is the name of the peer. Each line of the input is a command with blanks between its words;
each is answered by a line, ``ok`` and values or ``error`` and why. It ends when its input does.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from typing import Callable, Dict, List

import numpy as np

from steps import DenseStep, Peer, RowStep

#: Modules of the peers by the names in the tables, and the modules that each needs.
PEERS: Dict[str, str] = {
    "redis": "redis_peer",
    "ray": "ray_peer",
    "torch-shared-memory": "torch_peer",
    "torch-tcp": "torch_peer",
    "tensorflow": "tensorflow_peer",
}
#: Sets of rows that the steps use in turn.
ROW_SETS = 16


class Driver:
    """The peer and the step that was created last."""

    def __init__(self, name: str) -> None:
        self.name = name

    def open(self) -> str:
        """Starts the peer's servers; its versions."""
        self.peer: Peer = importlib.import_module(PEERS[self.name]).open_peer(self.name)
        return self.peer.versions().replace(" ", "_")

    def create_dense(self, parameters: str, elements: str) -> str:
        """Creates the parameters of a step of whole tensors."""
        step = DenseStep(int(parameters), int(elements))
        self.peer.create_dense(step)
        gradients = [floats(step.elements) for _ in range(step.parameters)]
        self.step: Callable[[], None] = lambda: self.peer.step_dense(gradients)
        return ""

    def create_rows(self, table_rows: str, row_elements: str, rows: str) -> str:
        """Creates the table of a step of some rows."""
        step = RowStep(int(table_rows), int(row_elements), int(rows))
        self.peer.create_rows(step)
        sets: List[np.ndarray] = []
        for seed in range(ROW_SETS):
            chosen = np.random.default_rng(seed).choice(step.table_rows, step.rows, replace=False)
            sets.append(np.sort(chosen).astype(np.int64))
        values = floats(step.rows * step.row_elements).reshape(step.rows, step.row_elements)
        turn = iter(range(sys.maxsize))
        self.step = lambda: self.peer.step_rows(sets[next(turn) % ROW_SETS], values)
        return ""

    def run(self, duration_ms: str) -> str:
        """Makes one step after the other for so long: steps, ms of the beginning and of the end."""
        start = time.monotonic()
        steps = 0
        while steps == 0 or (time.monotonic() - start) * 1e3 < float(duration_ms):
            self.step()
            steps += 1
        return f"{steps} {start * 1e3:.6f} {time.monotonic() * 1e3:.6f}"

    def close(self) -> str:
        """Ends the peer's servers."""
        self.peer.close()
        return ""


def floats(count: int) -> np.ndarray:
    """Makes small values of both signs, none of them denormal."""
    return ((np.arange(count) % 2001 - 1000.5) / 1e6).astype(np.float32)


def main() -> None:
    """Runs the commands that come until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What a peer prints goes to the errors; the answers keep the original output for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    driver = Driver(sys.argv[1])
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            answer = f"ok {getattr(driver, command)(*arguments)}"
        except Exception as error:
            answer = f"error {type(error).__name__}: {error}".replace("\n", " ")
        print(answer, file=answers, flush=True)


main()
