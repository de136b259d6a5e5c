"""Python programs that tests run as separate processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

from pserver.diloco import Learner
from serving import HANG

#: Starts a Python program, `start_python(*arguments, **variables)`, which ends with the test.
StartPython = Callable[..., "subprocess.Popen[str]"]


def output_of(process: subprocess.Popen[str]) -> str:
    """Waits for the end of a program; returns what it wrote. Fails unless it succeeded."""
    text = process.communicate(timeout=HANG)[0]
    assert process.returncode == 0
    return text


def run_python(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, with this Python and the modules that it finds; `variables` are added to
    the environment. Warns on standard error of objects that were not closed."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables},
        capture_output=True,
        text=True,
        timeout=HANG,
    )


def until(holds: Callable[[], bool]) -> None:
    """Waits until a condition holds; fails after HANG seconds."""
    deadline = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def arrived(learner: Learner) -> bool:
    """Whether no exchange of the learner is under way."""
    exchanges = [part.exchange for part in learner._parts.values()]
    return all(each.is_done or not each.is_under_way for each in exchanges)


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Keeps a process from running, its connections open. The signal alone takes effect later: a thread that
    runs on another core may still answer."""
    tasks = Path(f"/proc/{pid}/task")
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: all(_is_stopped(task / "stat") for task in tasks.iterdir()))
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _is_stopped(stat: Path) -> bool:
    """Whether a thread is stopped; the state follows the name, which is in parentheses."""
    return stat.read_text().rpartition(")")[2].lstrip().startswith("T")
