"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Iterator


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Gives the name of a file beside ``path`` to write, which takes the place of ``path`` at the end of the
    block, once it is on disk; it is removed if the block fails. Directories on the way are made."""
    directory = os.path.dirname(os.path.abspath(path))
    os.makedirs(directory, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(".tmp", ".pserver-save-", directory)
    try:
        os.close(descriptor)
        yield partial
        _to_disk(partial)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
    _to_disk(directory)


def _to_disk(path: str) -> None:
    """Waits until a file, or the names in a directory, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
