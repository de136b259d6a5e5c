"""The base of every exception that this package raises."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Final, Mapping, Optional, Type, TypeVar

#: The exceptions by the number of their code, which is the C library's status.
ERRORS: Final[Dict[int, Type[Error]]] = {}


class Error(Exception):
    """The base of every error: the class and its ``code`` are for programs, the text is for people.

    There is one subclass for each code of the protocol, in ``pserver.errors`` and in ``pserver``.
    """

    #: The code's name in the protocol, such as ``"BAD_NAME"``.
    code: ClassVar[str] = "INTERNAL"
    #: Whether the same call, unchanged, can succeed later.
    retryable: ClassVar[bool] = False
    #: What the error is about: ``parameter``, ``expected``, ``received`` and the like, by name.
    details: Mapping[str, Any]

    def __init_subclass__(
        cls, *, code: Optional[str] = None, number: int = 0, retryable: bool = False
    ) -> None:
        """Registers the exception for a code and number of the protocol; without them it keeps its
        base's code."""
        super().__init_subclass__()
        if code is not None:
            cls.code = code
            cls.retryable = retryable
            ERRORS[number] = cls

    def __init__(self, message: str = "", details: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.details = {} if details is None else dict(details)

    def __str__(self) -> str:
        # KeyError would print the message in quotes.
        return str(self.args[0]) if self.args else ""


_Kind = TypeVar("_Kind", bound=Error)


def unexpected(kind: Type[_Kind], what: str, expected: str, received: str, **details: Any) -> _Kind:
    """Makes the error for an argument, ``what``, that is not as expected; ``details`` are added to its
    own."""
    return kind(
        f"{what}: expected {expected}; received {received}",
        {**details, "expected": expected, "received": received},
    )


def shown(value: Any) -> str:
    """Returns the beginning of a value's text, for messages; Python refuses to print huge numbers."""
    try:
        return repr(value)[:80]
    except ValueError:
        return f"{type(value).__qualname__} of too many digits"


class LibraryError(Error, ImportError):
    """A library that is needed, above all this package's own C library, is missing or has another version."""

    code = "IO"
