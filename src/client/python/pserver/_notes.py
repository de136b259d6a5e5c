"""Notes: remarks of a trainer in the journal."""

from __future__ import annotations

import numbers
from ctypes import Array
from typing import Any, Final, Mapping, SupportsFloat, Tuple, Union

import numpy as np

from . import errors
from ._error import shown, unexpected
from ._names import to_bytes
from ._native.library import Connection
from ._native.structs import NoteEntry

#: The value of an entry: a number (of numpy, too, or a tensor of one element), a text or a boolean.
NoteValue = Union[SupportsFloat, str, np.bool_]

_NUMBER: Final = 0
_TEXT: Final = 1
_FLAG: Final = 2


def to_entries(note: Mapping[str, Any]) -> Tuple[Array[NoteEntry], int]:
    """Converts a note to the C library's structs, and their number. BAD_VALUE for what no note can
    contain."""
    if not isinstance(note, Mapping):
        raise unexpected(errors.BadValue, "note", "a mapping of names to values", shown(note))
    entries = [_entry(name, value) for name, value in note.items()]
    return (NoteEntry * len(entries))(*entries), len(entries)


def send(connection: Connection, entries: Array[NoteEntry], count: int, timeout_ms: int) -> None:
    """Writes a note; see :meth:`pserver.Client.note`."""
    connection.call("pserver_note", entries, count, timeout_ms)


def _entry(name: Any, value: Any) -> NoteEntry:
    if not isinstance(name, str):
        raise unexpected(errors.BadValue, "note", "names that are texts", shown(name))
    key = to_bytes(name, "note")
    if isinstance(value, (bool, np.bool_)):
        return NoteEntry(name=key, kind=_FLAG, flag=bool(value))
    if isinstance(value, str):
        return NoteEntry(name=key, kind=_TEXT, text=_text(name, value))
    if isinstance(value, (numbers.Real, np.number)) and not isinstance(value, np.complexfloating):
        return NoteEntry(name=key, kind=_NUMBER, number=float(value))
    scalar = getattr(value, "item", None)
    if callable(scalar) and getattr(value, "size", None) in (1, None):
        return NoteEntry(name=key, kind=_NUMBER, number=float(scalar()))
    raise unexpected(
        errors.BadValue, f'note: "{name}"', "a finite number, text or boolean", shown(value)
    )


def _text(name: str, value: str) -> bytes:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise unexpected(
            errors.BadValue, f'note: "{name}"', "well-formed text without a NUL", shown(value)
        )
    return encoded
