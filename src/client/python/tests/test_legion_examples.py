"""Legion's own examples, on several workers; results are checked against numpy."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import numpy as np
import pytest
from serving import HANG, ROOT, Broker, clean_environment

import pserver

EXAMPLES = ROOT / "examples" / "python" / "legion"


class Workers:
    """Processes that run one example on one job."""

    def __init__(self, broker: Broker, job: str) -> None:
        self._environment = {"PSERVER_URL": broker.url, "PSERVER_JOB": job}
        self._running: List["subprocess.Popen[str]"] = []

    def start(self, script: str, rank: int, **environment: str) -> "subprocess.Popen[str]":
        # One thread each: the workers share the cores.
        told = {"RANK": str(rank), "OPENBLAS_NUM_THREADS": "1", **environment}
        worker = subprocess.Popen(
            [sys.executable, str(EXAMPLES / script)],
            env={**clean_environment(), **self._environment, **told},
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running.append(worker)
        return worker

    def end(self) -> None:
        for worker in self._running:
            worker.kill()
            worker.communicate()


def finish(worker: "subprocess.Popen[str]") -> str:
    """What a worker has written, once it has ended well."""
    text = worker.communicate(timeout=HANG)[0]
    assert worker.returncode == 0
    return text


@pytest.fixture
def workers(broker: Broker, job: str) -> Iterator[Workers]:
    made = Workers(broker, job)
    yield made
    made.end()


def test_the_first_example_moves_a_part(broker: Broker, job: str, workers: Workers) -> None:
    runs = [finish(workers.start("example_user_script.py", rank)) for rank in range(2)]
    expected = np.full((10, 20, 30), -1, np.float32)
    expected[2:5, 2:5, 2:5] = 0
    where = np.ix_([0], [1, 4], [1, 6])
    for run in runs:
        before = expected[where].copy()
        expected[where] = 0.5 * before + 0.5 * 7
        assert f"before: {before.ravel()}" in run and f"after:  {expected[where].ravel()}" in run
    with pserver.connect(broker.url, job=job) as ps:
        assert np.array_equal(ps.pull("array"), expected)


def test_workers_find_the_inverse_of_a_matrix(broker: Broker, job: str, workers: Workers) -> None:
    for worker in [workers.start("matrix_inverse.py", rank) for rank in range(3)]:
        finish(worker)
    size = 4
    matrix = np.random.default_rng(1).normal(size=(size, size)) + 3 * np.eye(size)
    with pserver.connect(broker.url, job=job) as ps:
        found = ps.pull("inverse")
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=0.05)


def digits() -> Any:
    """The module of the example."""
    spec = importlib.util.spec_from_file_location("legion_digits", EXAMPLES / "digits.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def accuracy_of() -> Callable[[Broker, str], float]:
    """What the parameters on the server recognize of the images that nobody trains on."""
    module = digits()
    images, labels = module.load_digits()
    tests = len(labels) * 15 // 100

    def accuracy(broker: Broker, job: str) -> float:
        with pserver.connect(broker.url, job=job) as ps:
            params = ps.get_params(["W1", "b1", "W2", "b2"])
        return float(module.accuracy(params, images[:tests], labels[:tests]))

    return accuracy


def test_one_worker_learns_the_digits(
    broker: Broker, job: str, workers: Workers, accuracy_of: Callable[[Broker, str], float]
) -> None:
    text = finish(workers.start("digits.py", 0))
    told = re.fullmatch(r"accuracy (\d\.\d+)\n", text)
    assert told is not None and float(told[1]) > 0.85
    assert accuracy_of(broker, job) == pytest.approx(float(told[1]), abs=0.05)


@pytest.mark.parametrize("count", [4, 8])
def test_workers_learn_the_digits_one_late_and_one_killed(
    broker: Broker,
    job: str,
    workers: Workers,
    accuracy_of: Callable[[Broker, str], float],
    count: int,
) -> None:
    told: Dict[str, str] = {"BATCHES": str(600 // count), "legion_instances": str(count)}
    killed = workers.start("digits.py", count, BATCHES="1000000", legion_instances=str(count))
    with pserver.connect(broker.url, job=job) as ps:
        # It has created the parameters, and trains.
        ps.pull("W1", timeout=HANG)
        started = [workers.start("digits.py", rank, **told) for rank in range(1, count)]
        first = ps.pull("W1")
        while np.array_equal(ps.pull("W1"), first):
            pass
        os.kill(killed.pid, signal.SIGKILL)
    late = workers.start("digits.py", 0, **told)
    for worker in [*started, late]:
        finish(worker)
    assert accuracy_of(broker, job) > 0.8
