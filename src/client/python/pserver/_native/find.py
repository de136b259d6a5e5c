"""Where the C library is."""

from __future__ import annotations

import ctypes.util
import os
from pathlib import Path

from .._error import LibraryError


def find_library() -> str:
    """Returns the path or name of ``libpserver``: ``PSERVER_LIBRARY``, the package's own, the one that
    ``make build`` has left in the checkout, or the system's, in this order. LibraryError if there is
    none."""
    chosen = os.environ.get("PSERVER_LIBRARY")
    if chosen:
        if not Path(chosen).is_file():
            raise LibraryError(
                f"PSERVER_LIBRARY: expected the file of libpserver; found no {chosen}"
            )
        return str(Path(chosen).resolve())
    here = Path(__file__).resolve().parent
    tree = here.parents[4]
    for directory in (here / "lib", tree / "build" / "lib"):
        # The name may end in a version.
        files = sorted(directory.glob("libpserver.so*"), key=lambda path: len(path.name))
        if files:
            return str(files[0])
    installed = ctypes.util.find_library("pserver")
    if installed is not None:
        return installed
    raise LibraryError(
        "libpserver is not found: install the wheel of nats-pserver, run `make build` in the tree, "
        "or name the file in PSERVER_LIBRARY"
    )
