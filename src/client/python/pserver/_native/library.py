"""The C library, loaded once in each process."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import re
import threading
from pathlib import Path
from typing import Any, Final, NamedTuple, Optional

from .. import errors
from .._error import ERRORS, Error, LibraryError
from .._version import VERSION
from .declarations import CALLS, declare
from .private_copy import load_copy

#: Methods of the client whose names differ from those of their functions.
_METHODS: Final = {
    "create": "create_if_not_already_created",
    "set_with": "set_params",
    "push_with": "push",
    "get_known": "get_params",
    "pull_part_with": "pull_part",
    "push_part_with": "push_part",
    "job_positions": "status",
    "list_details": "list_params",
    "save_model": "save",
}
_FUNCTION: Final = re.compile(r'(?<!")\b(' + "|".join(CALLS) + r")\b")


def in_python(message: str) -> str:
    """Replaces function names in a message of the C library by those of this package's methods."""

    def method(match: re.Match[str]) -> str:
        name = match[1][len("pserver_") :]
        return _METHODS.get(name, name)

    return _FUNCTION.sub(method, message)


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


#: Reentrant: a signal handler may take it while the library is being loaded.
_lock = threading.RLock()
_loaded: Optional[Library] = None


class Library:
    """The functions of a loaded library. They release the interpreter's lock while they run."""

    def __init__(self, path: str, functions: ctypes.CDLL) -> None:
        """Raises LibraryError for a library of another version."""
        self.path = path
        self.pid = os.getpid()
        try:
            functions.pserver_version.restype = ctypes.c_char_p
            version = functions.pserver_version().decode()
            if version != VERSION:
                raise LibraryError(
                    f"{path}: expected libpserver {VERSION}; found {version}: install the same version "
                    "of both, or name the right file in PSERVER_LIBRARY"
                )
            declare(functions)
        except AttributeError as error:
            raise LibraryError(
                f"{path}: expected libpserver {VERSION}; {error}: build it anew with `make build`, or "
                "name another file in PSERVER_LIBRARY"
            ) from error
        self.functions: Any = functions
        #: ``pserver_tensor_release`` without argument types, for objects with ``_as_parameter_``;
        #: likewise below.
        self.release = functions["pserver_tensor_release"]
        self.release.restype = None
        self.free_origins = functions["pserver_origins_free"]
        self.free_origins.restype = None

    def check(self, status: int) -> None:
        """Raises the error of this thread's last call if ``status`` says that it has failed."""
        if status != 0:
            raise self._last_error(status)

    def _last_error(self, status: int) -> Error:
        message = ctypes.c_char_p()
        self.functions.pserver_last_error(ctypes.byref(message))
        text = in_python((message.value or b"").decode("utf-8", "replace"))
        details = json.loads(self.functions.pserver_last_error_details() or b"{}")
        return ERRORS.get(status, errors.Internal)(text, details)


class Connection(NamedTuple):
    """A connected client of the C library."""

    native: Library
    handle: ctypes.c_void_p

    def call(self, function: str, *arguments: Any) -> None:
        """Calls the function of ``pserver.h`` for this client; raises the error that it reports."""
        self.native.check(getattr(self.native.functions, function)(self.handle, *arguments))


def library() -> Library:
    """Returns the library, which is loaded at its first use. A forked process gets a copy of its
    own."""
    global _loaded
    known = _loaded
    if known is not None and known.pid == os.getpid():
        return known
    with _lock:
        if _loaded is None:
            path = find_library()
            _loaded = Library(path, _load(path))
        elif _loaded.pid != os.getpid():
            _loaded = Library(_loaded.path, load_copy(_loaded.path))
        return _loaded


def _load(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(f"{path}: cannot be loaded: {error}") from error


def _renew_lock() -> None:
    # Another thread of the parent may have held the lock at the fork.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
