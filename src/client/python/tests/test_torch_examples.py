"""The examples of PyTorch and the smallest one, run as their heads say, but for the broker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

pytest.importorskip("torch")

from serving import HANG, ROOT  # noqa: E402
from torch_jobs import Job, NewJob, new_job  # noqa: E402

EXAMPLES = ROOT / "examples" / "python"


def start(job: Job, *command: str) -> Any:
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / command[0]), *command[1:]],
        env=job.environment(""),
        stdout=subprocess.PIPE,
        text=True,
    )


def outputs(processes: List[Any]) -> List[str]:
    try:
        found = [process.communicate(timeout=HANG)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait(HANG)
    assert [process.returncode for process in processes] == [0] * len(processes)
    return found


def last_percentage(output: str) -> float:
    return float(output.split()[-1].rstrip("%"))


def test_minimal(new_job: NewJob) -> None:
    job = new_job()
    (output,) = outputs([start(job, "minimal.py")])
    slope, offset = (float(word) for word in output.strip("[]\n").split())
    assert abs(slope - 2) < 0.3 and abs(offset - 1) < 0.3


def test_pytorch(new_job: NewJob) -> None:
    (output,) = outputs([start(new_job(), "pytorch.py")])
    assert last_percentage(output) > 85


def test_diloco(new_job: NewJob) -> None:
    job = new_job("--sync", "sync", "--trainers", "2")
    first, second = outputs([start(job, "diloco.py"), start(job, "diloco.py")])
    assert last_percentage(first) > 85 and last_percentage(second) > 85
    assert "exchange 10: " in first


def test_plot(new_job: NewJob, tmp_path: Path) -> None:
    out = tmp_path / "workers.svg"
    plot = ["plot_workers.py", "--seconds", "1", "--workers", "1", "--out", str(out)]
    (output,) = outputs([start(new_job(), *plot)])
    assert output.startswith("1 worker: loss ")
    assert "<polyline" in out.read_text() and "1 worker" in out.read_text()
