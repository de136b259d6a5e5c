"""Trains with the Python client, as bench/c/trainer.c does with the C library.

It reads commands from standard input, one in each line, with blanks between its words, and answers each
with a line: ``ok`` and values, or ``error`` and the reason.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Callable, Dict, List

import numpy as np

import pserver

#: Threads that pass over the model at the same time; the first is the main thread.
PASSES = 2
TIMEOUT = 100.0


@dataclass
class Model:
    """Parameters of one shape."""

    names: List[str]
    #: The values that are pushed: small, of both signs, none of them denormal.
    value: pserver.Array
    #: The arrays of each thread that pulls read into, every time the same, as in a training loop.
    targets: List[Dict[str, pserver.Array]]


class Trainer:
    """A trainer and the model that was created last."""

    def open(self, url: str, job: str, trainer: str) -> str:
        """Connects."""
        self.ps = pserver.connect(
            url, job=job, trainer=trainer, connect_timeout=TIMEOUT, timeout=TIMEOUT
        )
        return ""

    def create(self, prefix: str, parameters: str, shape: str) -> str:
        """Creates the parameters of a model unless they exist; further commands use this model."""
        sides = [int(side) for side in shape.split(",")]
        numbers = np.arange(np.prod(sides), dtype=np.uint64) * np.uint64(2654435761)
        value = ((numbers % np.uint64(2001)).astype(np.float32) - np.float32(1000.5)) / 1e6
        value = value.astype(np.float32).reshape(sides)
        names = [f"{prefix}.{i}" for i in range(int(parameters))]
        # Filled, because pages that were never written to share one page of memory.
        targets = [{name: np.ones_like(value) for name in names} for _ in range(PASSES)]
        for name in names:
            self.ps.create_if_not_already_created(name, value, learning_rate=0.001)
        self.model = Model(names, value, targets)
        return ""

    def run(self, operation: str, duration_ms: str) -> str:
        """Makes passes for so long; answers the bytes moved, and when it began and ended in ms."""
        counts = [0] * PASSES
        start = time.monotonic()

        def make_passes(number: int) -> None:
            one = self._operation(operation, number)
            while True:
                one()
                counts[number] += 1
                if (time.monotonic() - start) * 1e3 >= float(duration_ms):
                    return

        others = [threading.Thread(target=make_passes, args=(i,)) for i in range(1, PASSES)]
        for thread in others:
            thread.start()
        make_passes(0)
        for thread in others:
            thread.join()
        # The thread that has failed has written its error to stderr.
        if 0 in counts:
            raise RuntimeError("a thread has failed")
        end = time.monotonic()
        moved = sum(counts) * len(self.model.names) * self.model.value.nbytes
        return f"{moved} {start * 1e3:.6f} {end * 1e3:.6f}"

    def repeat(self, operation: str, count: str, thread: str) -> str:
        """Makes so many passes in the ``main`` thread or ``another``; answers when it began and ended in ms."""
        times: List[float] = []

        def make_passes() -> None:
            one = self._operation(operation, 0)
            start = time.monotonic()
            for _ in range(int(count)):
                one()
            times.extend((start, time.monotonic()))

        if thread == "main":
            make_passes()
        else:
            other = threading.Thread(target=make_passes)
            other.start()
            other.join()
        start, end = times
        return f"{start * 1e3:.6f} {end * 1e3:.6f}"

    def _operation(self, name: str, number: int) -> Callable[[], object]:
        """Returns the function that makes one pass over the model in the thread of this number."""
        ps, model = self.ps, self.model
        if name == "pull":
            return lambda: ps.get_params(model.names, out=model.targets[number])
        if name == "new":
            return lambda: ps.get_params(model.names)
        if name == "mix":
            return self._push_mix
        if name == "grad":
            return lambda: ps.send_grads({each: model.value for each in model.names})
        raise ValueError(f"expected grad, mix, pull or new; received {name}")

    def _push_mix(self) -> None:
        for name in self.model.names:
            self.ps.push(name, self.model.value, 0.5, 0.5)


def main() -> None:
    """Runs commands until the input ends."""
    # Ctrl-C also reaches the benchmark, which reports it; this program ends silently, as those in C do.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    trainer = Trainer()
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            answer = f"ok {getattr(trainer, command)(*arguments)}"
        except Exception as error:
            answer = f"error {type(error).__name__}: {error}".replace("\n", " ")
        print(answer, flush=True)
    trainer.ps.close()


main()
