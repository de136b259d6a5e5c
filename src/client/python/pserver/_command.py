"""Finds the commands of the npm package and runs them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import List, NoReturn, Optional

_NOT_FOUND = 127
"""The exit code of shells for a missing command."""

_HOW_TO_GET_IT = (
    "the command is not found: install Node.js 20.19 or newer, then the npm package nats-pserver, "
    "by make install in a clone"
)


def find_command(name: str, file: str) -> Optional[List[str]]:
    """Returns the command ``name`` as a program with its first arguments: the one on the PATH, else
    ``file`` as ``make build`` has left it in the checkout around this package. None if there is
    neither."""
    installed = shutil.which(name)
    if installed is not None:
        return [installed]
    # An installed package may have fewer parent directories.
    for tree in list(Path(__file__).resolve().parents)[4:5]:
        main = tree / "dist" / file
        # The file starts Node.js itself, after it has noted which signals it was started to ignore.
        if shutil.which("node") is not None and main.is_file():
            return [str(main)]
    return None


def become(name: str, file: str) -> NoReturn:
    """Replaces this process by the command, with the same arguments, so that signals reach the command
    and its exit code is the process's. Says how to get the command if there is none."""
    command = find_command(name, file)
    if command is None:
        print(f"{name}: {_HOW_TO_GET_IT}", file=sys.stderr)
        sys.exit(_NOT_FOUND)
    os.execv(command[0], [*command, *sys.argv[1:]])
