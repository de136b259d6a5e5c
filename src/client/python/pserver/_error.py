"""The base of every exception that this package raises."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping, Optional


class Error(Exception):
    """Anything that went wrong: the class, or its ``code``, is for programs, the text for people.

    There is one subclass for each code of the protocol, in ``pserver.errors`` and in ``pserver``.
    """

    #: The code's name in the protocol, such as ``"BAD_NAME"``.
    code: ClassVar[str] = "INTERNAL"
    #: Whether the same call, unchanged, can succeed later.
    retryable: ClassVar[bool] = False
    #: What the error is about: ``parameter``, ``expected``, ``received`` and the like, by name.
    details: Mapping[str, Any]

    def __init__(self, message: str = "", details: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.details = {} if details is None else dict(details)

    def __str__(self) -> str:
        # KeyError would print the message in quotes.
        return str(self.args[0]) if self.args else ""


def shown(value: Any) -> str:
    """The beginning of a value's text, for messages; Python refuses to print huge numbers."""
    try:
        return repr(value)[:80]
    except ValueError:
        return f"{type(value).__qualname__} of too many digits"


class LibraryError(Error, ImportError):
    """The C library of this package is missing, or has another version."""

    code = "IO"
