"""Trains with the Python client as bench/c/trainer.c does with the C library, driven by lines.

Each line of the input is a command with blanks between its words; each is answered by a line, ``ok`` and
values or ``error`` and why.
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

#: Passes over the model at one time, the first in the main thread: none waits for the end of another.
PASSES = 2
TIMEOUT = 100.0


@dataclass
class Model:
    """Parameters of one shape."""

    names: List[str]
    #: What is pushed: small values of both signs, none of them denormal.
    value: pserver.Array
    #: What is read into, pull after pull, as a training loop does.
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
        """Creates the parameters of a model unless they exist, for the runs to come."""
        sides = [int(side) for side in shape.split(",")]
        numbers = np.arange(np.prod(sides), dtype=np.uint64) * np.uint64(2654435761)
        value = ((numbers % np.uint64(2001)).astype(np.float32) - np.float32(1000.5)) / 1e6
        value = value.astype(np.float32).reshape(sides)
        names = [f"{prefix}.{i}" for i in range(int(parameters))]
        # Filled: pages that nobody has written to are all one page.
        targets = [{name: np.ones_like(value) for name in names} for _ in range(PASSES)]
        for name in names:
            self.ps.create_if_not_already_created(name, value, learning_rate=0.001)
        self.model = Model(names, value, targets)
        return ""

    def run(self, operation: str, duration_ms: str) -> str:
        """Bytes that were moved, ms of the beginning and of the end."""
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
        # A thread that has failed has told its error on stderr.
        if 0 in counts:
            raise RuntimeError("a thread has failed")
        end = time.monotonic()
        moved = sum(counts) * len(self.model.names) * self.model.value.nbytes
        return f"{moved} {start * 1e3:.6f} {end * 1e3:.6f}"

    def repeat(self, operation: str, count: str, thread: str) -> str:
        """Ms of the beginning and of the end of so many passes, in the ``main`` thread or ``another``."""
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
        """What makes one pass over the model, the ``number``-th at the same time."""
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
    """Runs the commands that come until the input ends."""
    # Ctrl-C is for the benchmark, too: this ends at once, without a word, as the programs in C do.
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
