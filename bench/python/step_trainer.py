"""Makes training steps with the Python client, as bench/c/step-trainer.c does with the C library.

It reads commands from standard input, one in each line, with blanks between its words, and answers each
with a line: ``ok`` and values, or ``error`` and the reason.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Callable, Dict, List

import numpy as np

import pserver

TIMEOUT = 100.0
#: Sets of rows that the steps use in turn.
ROW_SETS = 16


class StepTrainer:
    """A trainer, and the step that was prepared last."""

    push: Callable[[int], object]
    pull: Callable[[int], object]

    def open(self, url: str, job: str, trainer: str) -> str:
        """Connects."""
        self.ps = pserver.connect(
            url, job=job, trainer=trainer, connect_timeout=TIMEOUT, timeout=TIMEOUT
        )
        return ""

    def dense(self, prefix: str, parameters: str, elements: str) -> str:
        """Prepares steps of whole parameters."""
        names = [f"{prefix}.{i}" for i in range(int(parameters))]
        gradients = {name: floats(int(elements)) for name in names}
        targets = {name: floats(int(elements)) for name in names}
        self.push = lambda turn: self.ps.send_grads(gradients)
        self.pull = lambda turn: self.ps.get_params(names, out=targets)
        return ""

    def rows(self, name: str, table_rows: str, width: str, count: str) -> str:
        """Prepares steps of rows of a table."""
        values = floats(int(count) * int(width)).reshape(int(count), int(width))
        columns = np.arange(int(width))
        sets = [
            np.sort(np.random.default_rng(seed).choice(int(table_rows), int(count), replace=False))
            for seed in range(ROW_SETS)
        ]
        self.push = lambda turn: self.ps.send_grads({name: pserver.Rows(sets[turn], values)})
        target = np.empty_like(values)
        self.pull = lambda turn: self.ps.pull_part(name, [sets[turn], columns], out=target)
        return ""

    def run(self, operation: str, duration_ms: str) -> str:
        """Makes one step after the other for so long, at least one, or only their pushes or pulls; answers
        how many, and when it began and ended in ms."""
        steps = 0
        start = time.monotonic()
        while True:
            turn = steps % ROW_SETS
            if operation != "pull":
                self.push(turn)
            if operation != "push":
                self.pull(turn)
            steps += 1
            if (time.monotonic() - start) * 1e3 >= float(duration_ms):
                return f"{steps} {start * 1e3:.6f} {time.monotonic() * 1e3:.6f}"


def floats(count: int) -> pserver.Array:
    """Makes small values of both signs, none of them denormal."""
    values: pserver.Array = (np.arange(count) % 2001).astype(np.float32)
    return (values - np.float32(1000.5)) / np.float32(1e6)


def main() -> None:
    """Runs commands until the input ends."""
    # Ctrl-C also reaches the benchmark, which reports it; this program ends silently, as those in C do.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    trainer = StepTrainer()
    commands: Dict[str, Callable[..., str]] = {
        "open": trainer.open,
        "dense": trainer.dense,
        "rows": trainer.rows,
        "run": trainer.run,
    }
    for line in sys.stdin:
        words: List[str] = line.split()
        try:
            answer = f"ok {commands[words[0]](*words[1:])}"
        except Exception as error:
            answer = f"error {type(error).__name__}: {error}".replace("\n", " ")
        print(answer, flush=True)
    trainer.ps.close()


main()
