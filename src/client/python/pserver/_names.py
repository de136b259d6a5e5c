"""Names and ids within the limits of the protocol."""

from __future__ import annotations

import os
import re
import secrets
import socket
from typing import Any, Final

from . import errors
from ._error import shown, unexpected

#: The most bytes of an id in a subject, where every byte except ``[A-Za-z0-9_-]`` takes three.
_ID_BYTES_MAX: Final = 64
_NOT_PLAIN: Final = re.compile(rb"[^A-Za-z0-9_-]")


def to_bytes(text: Any, what: str) -> bytes:
    """Encodes a text for the C library, with C0 80 for a NUL. BAD_NAME if it is not a text."""
    if isinstance(text, str):
        try:
            return text.encode().replace(b"\0", b"\xc0\x80")
        except UnicodeEncodeError:
            pass
    raise unexpected(errors.BadName, what, "well-formed text that is not empty", shown(text))


def unique_id() -> str:
    """Makes an id that is used only once, from the machine's name, the process and a random part."""
    tail = f"-{os.getpid()}-{secrets.token_hex(4)}"
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
    return host[: _ID_BYTES_MAX - len(tail)] + tail


def extended_id(trainer: str) -> str:
    """Makes a new id that begins with ``trainer``, as far as the maximal length allows."""
    tail = f"-{secrets.token_hex(4)}"
    while _escaped_bytes(trainer + tail) > _ID_BYTES_MAX:
        trainer = trainer[:-1]
    return trainer + tail


def _escaped_bytes(text: str) -> int:
    plain = text.encode("utf-8", "surrogatepass")
    return len(plain) + 2 * len(_NOT_PLAIN.findall(plain))
