"""Legion's own examples, on several workers; results are checked against numpy."""

from __future__ import annotations

import os
import re
import runpy
import signal
import subprocess
from typing import Callable, Dict, Tuple

import numpy as np
import pytest

import pserver
from programs import StartPython, output_of
from serving import HANG, ROOT, Broker

EXAMPLES = ROOT / "examples" / "python" / "legion"

#: Starts a script with its rank among the workers; further variables are for the script.
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(broker: Broker, job: str, start_python: StartPython) -> Start:
    """Starts workers of the job."""
    # One thread each: the workers share the cores.
    where = {"PSERVER_URL": broker.url, "PSERVER_JOB": job, "OPENBLAS_NUM_THREADS": "1"}
    return lambda script, rank, **variables: start_python(
        str(EXAMPLES / script), PSERVER_RANK=str(rank), **where, **variables
    )


def test_the_first_example_moves_a_part(broker: Broker, job: str, start: Start) -> None:
    runs = [output_of(start("example_user_script.py", rank)) for rank in range(2)]
    expected = np.full((10, 20, 30), -1, np.float32)
    expected[2:5, 2:5, 2:5] = 0
    where: Tuple[pserver.Array, ...] = np.ix_([0], [1, 4], [1, 6])
    for run in runs:
        before = expected[where].copy()
        expected[where] = 0.5 * before + 0.5 * 7
        assert f"before: {before.ravel()}" in run and f"after:  {expected[where].ravel()}" in run
    with pserver.connect(broker.url, job=job) as ps:
        assert np.array_equal(ps.pull("array"), expected)


def test_workers_find_the_inverse_of_a_matrix(broker: Broker, job: str, start: Start) -> None:
    for worker in [start("matrix_inverse.py", rank) for rank in range(3)]:
        output_of(worker)
    size = 4
    matrix = np.random.default_rng(1).normal(size=(size, size)) + 3 * np.eye(size)
    with pserver.connect(broker.url, job=job) as ps:
        found = ps.pull("inverse")
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=0.05)


Accuracy = Callable[[Broker, str], float]


@pytest.fixture(scope="module")
def accuracy_of() -> Accuracy:
    """Computes the share of test images that the parameters on the server recognize."""
    example = runpy.run_path(str(EXAMPLES / "digits.py"))
    images, labels = example["load_digits"]()
    tests = len(labels) * 15 // 100

    def accuracy(broker: Broker, job: str) -> float:
        with pserver.connect(broker.url, job=job) as ps:
            params = ps.get_params(["W1", "b1", "W2", "b2"])
        return float(example["accuracy"](params, images[:tests], labels[:tests]))

    return accuracy


def test_one_worker_learns_the_digits(
    broker: Broker, job: str, start: Start, accuracy_of: Accuracy
) -> None:
    text = output_of(start("digits.py", 0))
    told = re.fullmatch(r"accuracy (\d\.\d+)\n", text)
    assert told is not None and float(told[1]) > 0.85
    assert accuracy_of(broker, job) == pytest.approx(float(told[1]), abs=0.05)


def test_workers_learn_the_digits_one_late_and_one_killed(
    broker: Broker, job: str, start: Start, accuracy_of: Accuracy
) -> None:
    count = 4
    told: Dict[str, str] = {"BATCHES": str(600 // count), "legion_instances": str(count)}
    killed = start("digits.py", count, BATCHES="1000000", legion_instances=str(count))
    with pserver.connect(broker.url, job=job) as ps:
        # Returns once that worker has created the parameters.
        ps.pull("W1", timeout=HANG)
        started = [start("digits.py", rank, **told) for rank in range(1, count)]
        first = ps.pull("W1")
        while np.array_equal(ps.pull("W1"), first):
            pass
        os.kill(killed.pid, signal.SIGKILL)
    late = start("digits.py", 0, **told)
    for worker in [*started, late]:
        output_of(worker)
    assert accuracy_of(broker, job) > 0.8
