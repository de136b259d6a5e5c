"""Loads the C library a second time, for a process that was forked from one that had used it.

The libraries hold threads, locks and connections of their process. After a fork their memory is there,
but their threads are not, and locks may be held for ever. Copies under other names begin without them; the
parent's state stays as it is, and is never touched again.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
from contextlib import ExitStack
from typing import Final, Iterator

from .._error import LibraryError

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


_PT_LOAD: Final = 1
_PT_DYNAMIC: Final = 2
_DT_NEEDED: Final = 1
_DT_STRTAB: Final = 5
_DT_SONAME: Final = 14
_ELF64_LITTLE_ENDIAN: Final = b"\x7fELF\x02\x01"


class SharedObject:
    """A shared library's file in memory, whose name and needed names can be replaced in place."""

    def __init__(self, content: bytes) -> None:
        """Raises ValueError if it is not such a file."""
        if content[:6] != _ELF64_LITTLE_ENDIAN:
            raise ValueError("expected a shared library of 64 bits, little-endian")
        self.content = bytearray(content)
        try:
            self._read_dynamic()
        except struct.error as error:
            raise ValueError(f"the file is cut off: {error}") from error

    @property
    def names(self) -> list[str]:
        """Returns the names of the libraries that this one needs, and its own if it has one."""
        return [self._text(at) for at in self._names]

    def rename(self, old: str, new: str) -> None:
        """Replaces one of the names by one of equal length."""
        if len(old.encode()) != len(new.encode()):
            raise ValueError(f"expected a name as long as {old}; received {new}")
        for at in self._names:
            if self._text(at) == old:
                self.content[at : at + len(new.encode())] = new.encode()

    def _read_dynamic(self) -> None:
        segments = list(self._segments())
        dynamic = [(at, size) for kind, at, _, size in segments if kind == _PT_DYNAMIC]
        if not dynamic:
            raise ValueError("expected a shared library; it has no dynamic section")
        entries = list(self._entries(*dynamic[0]))
        addresses = [value for tag, value in entries if tag == _DT_STRTAB]
        loads = [segment for segment in segments if segment[0] == _PT_LOAD]
        strings = next(
            address - start + at
            for address in addresses
            for _, at, start, size in loads
            if start <= address < start + size
        )
        named = (_DT_NEEDED, _DT_SONAME)
        self._names = [strings + value for tag, value in entries if tag in named]

    def _segments(self) -> Iterator[tuple[int, int, int, int]]:
        """Reads kind, offset in the file, address and bytes in the file of each segment."""
        (first,) = struct.unpack_from("<Q", self.content, 32)
        entry_bytes, count = struct.unpack_from("<HH", self.content, 54)
        for index in range(count):
            kind, _, at, address, _, size = struct.unpack_from(
                "<IIQQQQ", self.content, first + index * entry_bytes
            )
            yield kind, at, address, size

    def _entries(self, at: int, size: int) -> Iterator[tuple[int, int]]:
        for place in range(at, at + size, 16):
            tag, value = struct.unpack_from("<qQ", self.content, place)
            if tag == 0:
                return
            yield tag, value

    def _text(self, at: int) -> str:
        return self.content[at : self.content.index(b"\0", at)].decode()
