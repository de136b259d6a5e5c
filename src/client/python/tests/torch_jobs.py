"""Jobs and trainers in threads for the tests of PyTorch."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import pytest

import pserver
from serving import HANG, Broker, StartHost

#: Limits so small that the broker's storage suffices for many jobs.
_SMALL = ("--shards", "2", "--journal-limit", "32MiB", "--retain", "8MiB")


#: Flags of a job whose learners contribute to rounds; the merge is left to each parameter.
ROUNDS = ("--sync", "diloco", "--grace-cap-ms", "0")

#: Options of DiLoCo with a barrier, in a job of `barrier`.
AT_ONCE: Dict[str, Any] = dict(fragments=1, delay=0)


def barrier(learners: int) -> Tuple[str, ...]:
    """Flags of a job whose rounds apply the mean of so many learners."""
    return (*ROUNDS, "--quorum", str(learners), "--weights", "uniform", "--merge", "mean")


class Job(NamedTuple):
    """A job, how to reach it, and where its host saves models."""

    url: str
    name: str
    models: Path

    def connect(self, trainer: str) -> pserver.Client:
        return pserver.connect(self.url, job=self.name, trainer=trainer, timeout=HANG)

    def variables(self, trainer: str) -> Dict[str, str]:
        """The environment that leads a process to the job, as this trainer."""
        return {"PSERVER_URL": self.url, "PSERVER_JOB": self.name, "PSERVER_TRAINER": trainer}


#: Makes the job of a test; takes flags of `pserver host`, such as those for how trainers keep step.
NewJob = Callable[..., Job]


@pytest.fixture
def new_job(broker: Broker, job_name: str, models: Path, start_host: StartHost) -> NewJob:
    """Makes a job with one host, which ends with the test."""

    def start(*flags: str) -> Job:
        start_host(job_name, *_SMALL, *flags)
        return Job(broker.url, job_name, models)

    return start


@pytest.fixture
def ps(new_job: NewJob) -> Iterator[pserver.Client]:
    """The only trainer of a new job, whose trainers do not keep step."""
    with new_job().connect("one") as client:
        yield client


def state_of(module: Any) -> Dict[str, Any]:
    """A copy of a module's parameters and buffers."""
    return {name: value.clone() for name, value in module.state_dict().items()}


def has_state(module: Any, state: Dict[str, Any]) -> bool:
    """Whether these are the module's parameters and buffers, bit by bit."""
    found = module.state_dict()
    return list(found) == list(state) and all(found[name].equal(state[name]) for name in state)


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
        thread.join(HANG)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)
