"""The examples of PyTorch and the smallest one, run as their heads say, but for the broker."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Callable

import pytest

pytest.importorskip("torch")

from programs import StartPython, output_of  # noqa: E402
from serving import ROOT  # noqa: E402
from torch_jobs import NewJob, new_job  # noqa: E402

EXAMPLES = ROOT / "examples" / "python"


#: Starts a script of the examples, with arguments, on a job.
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(start_python: StartPython) -> Start:
    return lambda job, script, *arguments: start_python(
        str(EXAMPLES / script), *arguments, **job.variables("")
    )


def last_percentage(output: str) -> float:
    return float(output.split()[-1].rstrip("%"))


def test_minimal(new_job: NewJob, start: Start) -> None:
    output = output_of(start(new_job(), "minimal.py"))
    slope, offset = (float(word) for word in output.strip("[]\n").split())
    assert abs(slope - 2) < 0.3 and abs(offset - 1) < 0.3


def test_pytorch(new_job: NewJob, start: Start) -> None:
    output = output_of(start(new_job(), "pytorch.py"))
    assert last_percentage(output) > 85


def test_diloco(new_job: NewJob, start: Start) -> None:
    job = new_job("--sync", "diloco")
    trainers = [start(job, "diloco.py") for _ in range(2)]
    first, second = [output_of(trainer) for trainer in trainers]
    assert last_percentage(first) > 85 and last_percentage(second) > 85
    assert "500 steps, " in first


def test_plot(new_job: NewJob, start: Start, tmp_path: Path) -> None:
    out = tmp_path / "workers.svg"
    arguments = ["--seconds", "1", "--workers", "1", "--out", str(out)]
    output = output_of(start(new_job(), "plot_workers.py", *arguments))
    assert output.startswith("1 worker: loss ")
    assert "<polyline" in out.read_text() and "1 worker" in out.read_text()
