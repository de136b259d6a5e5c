"""Names in the dynamic section of shared libraries (ELF, 64 bits, little-endian)."""

from __future__ import annotations

import struct
from typing import Final, Iterator

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
        """The names of the libraries that this one needs, and its own if it has one."""
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
        """Kind, offset in the file, address and bytes in the file of each segment."""
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
