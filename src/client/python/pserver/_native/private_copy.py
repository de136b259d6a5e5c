"""Loads the C library a second time, for a process that was forked from one that had used it.

The libraries hold threads, locks and connections of their process. After a fork their memory is there,
but their threads are not, and locks may be held for ever. Copies under other names begin anew; the
parent's state stays as it is, and is never touched again.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from contextlib import ExitStack
from typing import Final

from .._error import LibraryError
from .elf import SharedObject

_MFD_CLOEXEC: Final = 1

#: Numbers the copies made by this process and by those from which it was forked.
_copies: Final = itertools.count(1)


def load_copy(path: str) -> ctypes.CDLL:
    """Loads a copy of the library at ``path``, which was loaded before, with a copy of NATS's
    client."""
    try:
        with ExitStack() as files:
            library = _read(path if os.path.isabs(path) else _mapped_file(path))
            for needed in library.names:
                if needed.startswith("libnats"):
                    dependency = _read(_mapped_file(needed))
                    name = f"l{next(_copies):06}{needed[7:]}"
                    dependency.rename(needed, name)
                    library.rename(needed, name)
                    # The loader finds this library by its name when it loads the other one.
                    _load(dependency, files)
            loaded = _load(library, files)
        return loaded
    except (OSError, ValueError) as error:
        raise LibraryError(
            f"{path}: cannot be loaded once more after a fork: {error}. Connect after the fork, or "
            "start processes with the method spawn"
        ) from error


def _read(path: str) -> SharedObject:
    with open(path, "rb") as file:
        return SharedObject(file.read())


def _load(library: SharedObject, files: ExitStack) -> ctypes.CDLL:
    """Loads it from memory: directories for temporary files may forbid execution.

    The loader knows libraries by path. So the file stays open until all libraries are loaded; otherwise
    another one could get its number. The path contains the process's number, because a process forked
    from this one uses the same file numbers again.
    """
    system = ctypes.CDLL(None, use_errno=True)
    # Not every build of Python has os.memfd_create, but the system's C library has it.
    number = system.memfd_create(b"libpserver", _MFD_CLOEXEC)
    if number < 0:
        raise OSError(ctypes.get_errno(), "no file in memory can be made")
    file = files.enter_context(open(number, "wb"))
    file.write(library.content)
    file.flush()
    return ctypes.CDLL(f"/proc/{os.getpid()}/fd/{number}")


def _mapped_file(needed: str) -> str:
    """Returns the file from which a library of this process was loaded."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            name = os.path.basename(path)
            # libnats.so.3.4 is a link to libnats.so.3.4.1.
            if name == needed or name.startswith(f"{needed}."):
                return f"/{path}"
    raise LibraryError(f"{needed}: expected it among the libraries of this process")
