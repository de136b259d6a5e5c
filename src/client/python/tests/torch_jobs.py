"""A broker, and jobs with hosts of their own, for the tests of PyTorch."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple

#: Bounds a hang, on however slow a machine.
HANG_S = 120.0

PSERVER = Path(__file__).parents[4] / "dist" / "cli" / "main.js"
_SMALL = ["--workers", "1", "--shards", "2", "--journal-limit", "32MiB", "--retain", "8MiB"]


class Job(NamedTuple):
    """How to reach a job."""

    url: str
    name: str

    def environment(self, trainer: str) -> "dict[str, str]":
        """The variables that lead a process to the job, as this trainer."""
        own = {"PSERVER_URL": self.url, "PSERVER_JOB": self.name, "PSERVER_TRAINER": trainer}
        return {**os.environ, **own}


class Broker:
    """A broker on a free port. Its jobs end with it."""

    def __init__(self, url: str, processes: ExitStack) -> None:
        self._url = url
        self._processes = processes
        self._numbers = itertools.count(1)

    def job(self, *flags: str) -> Job:
        """A new job with a host; `flags` are those of `pserver host`, as how trainers keep step."""
        name = f"job-{next(self._numbers)}"
        host = ["host", "--url", self._url, "--job", name, *_SMALL, *flags]
        self._processes.enter_context(_ready(host))
        return Job(self._url, name)


@contextmanager
def running_broker(directory: Path) -> Iterator[Broker]:
    """Starts a broker that keeps its data in `directory`."""
    with ExitStack() as processes:
        up = ["up", "--port", "0", "--store", str(directory), *_SMALL]
        ready = processes.enter_context(_ready(up))
        yield Broker(ready["url"], processes)


@contextmanager
def _ready(arguments: List[str]) -> "Iterator[dict[str, str]]":
    """Runs a command of `pserver` that prints when it serves; gives what it has printed."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("NATS_")}
    with subprocess.Popen(
        ["node", str(PSERVER), *arguments, "--json"],
        env=clean,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"expected `pserver {arguments[0]}` to serve; it has ended"
            ready: "dict[str, str]" = json.loads(line)
            yield ready
        finally:
            process.terminate()
            process.wait(HANG_S)


def run_threads(work: Callable[[int], None], count: int) -> None:
    """Runs `work(0)`, `work(1)`, … at once; raises the first of their errors."""
    errors: List[BaseException] = []

    def guarded(rank: int) -> None:
        try:
            work(rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)
