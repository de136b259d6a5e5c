"""``python -m pserver`` and ``python -m legion`` become the command on the PATH, or say how to get it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from programs import StartPython
from serving import HANG

_COMMAND = """#!/bin/sh
echo "$$"
for word in "$@"; do echo "<$word>"; done
exit 37
"""


@pytest.fixture(name="directory")
def _directory(tmp_path: Path) -> Path:
    """A directory with commands ``pserver`` and ``legion`` that print their process id and arguments."""
    for name in ("pserver", "legion"):
        command = tmp_path / name
        command.write_text(_COMMAND)
        command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("module", ["pserver", "legion"])
def test_becomes_the_command_of_the_path(
    directory: Path, module: str, start_python: StartPython
) -> None:
    words = ["run", "-n", "2", "--", "a b", "it's", ""]
    (directory / ("legion" if module == "pserver" else "pserver")).unlink()
    process = start_python("-m", module, *words, PATH=str(directory))
    told, _ = process.communicate(timeout=HANG)
    assert process.returncode == 37
    # The same process: whoever signals it signals the command.
    assert told.splitlines() == [str(process.pid), *(f"<{word}>" for word in words)]


def test_a_signal_ends_the_command(directory: Path, start_python: StartPython) -> None:
    (directory / "pserver").write_text("#!/bin/sh\necho ready\nexec sleep 600\n")
    process = start_python("-m", "pserver", "up", PATH=f"{directory}:/usr/bin:/bin")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG) == -signal.SIGTERM


@pytest.mark.parametrize("module", ["pserver", "legion"])
def test_says_how_to_get_it(tmp_path: Path, module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", module, "run", "--", "x"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert ended.returncode == 127
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"{module}: ")
    assert "make install in a clone" in ended.stderr
