"""The commands of the npm package, found from the Python package."""

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
    """The program ``name`` and its first arguments: the one on the PATH, else ``file`` among those
    that ``make build`` has left in the tree around this package. None if there is neither."""
    installed = shutil.which(name)
    if installed is not None:
        return [installed]
    node = shutil.which("node")
    # An installed package may have fewer parent directories.
    for tree in list(Path(__file__).resolve().parents)[4:5]:
        main = tree / "dist" / file
        if node is not None and main.is_file():
            return [node, str(main)]
    return None


def become(name: str, file: str) -> NoReturn:
    """Replaces this process by the command, with the same arguments, so that signals and exit code are
    its own. Says how to get it if there is none."""
    command = find_command(name, file)
    if command is None:
        print(f"{name}: {_HOW_TO_GET_IT}", file=sys.stderr)
        sys.exit(_NOT_FOUND)
    os.execv(command[0], [*command, *sys.argv[1:]])
