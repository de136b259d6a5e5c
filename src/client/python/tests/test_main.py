"""``python -m pserver`` and ``python -m legion``: the commands of the PATH, or how to get them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

_COMMAND = """#!/bin/sh
echo "$$"
for word in "$@"; do echo "<$word>"; done
exit 37
"""


def _environment(path: Path) -> Dict[str, str]:
    return {**os.environ, "PATH": str(path)}


def _python(*arguments: str, module: str = "pserver") -> List[str]:
    return [sys.executable, "-m", module, *arguments]


@pytest.fixture(name="directory")
def _directory(tmp_path: Path) -> Path:
    """A directory with commands ``pserver`` and ``legion`` that tell what they are given."""
    for name in ("pserver", "legion"):
        command = tmp_path / name
        command.write_text(_COMMAND)
        command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("module", ["pserver", "legion"])
def test_becomes_the_command_of_the_path(directory: Path, module: str) -> None:
    words = ["run", "-n", "2", "--", "a b", "it's", ""]
    (directory / ("legion" if module == "pserver" else "pserver")).unlink()
    with subprocess.Popen(
        _python(*words, module=module),
        env=_environment(directory),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 37
    # The same process: whoever signals it signals the command.
    assert told.splitlines() == [str(process.pid), *(f"<{word}>" for word in words)]


def test_a_signal_ends_the_command(directory: Path) -> None:
    (directory / "pserver").write_text("#!/bin/sh\necho ready\nexec sleep 600\n")
    path = Path(f"{directory}:/usr/bin:/bin")
    with subprocess.Popen(
        _python("up"), env=_environment(path), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == -signal.SIGTERM


@pytest.mark.parametrize("module", ["pserver", "legion"])
def test_says_how_to_get_it(tmp_path: Path, module: str) -> None:
    ended = subprocess.run(
        _python("run", "--", "x", module=module),
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 127
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"{module}: ")
    assert "make install in a clone" in ended.stderr
