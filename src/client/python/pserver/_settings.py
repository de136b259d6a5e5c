"""The settings with which a client reaches the broker and its job."""

from __future__ import annotations

import math
import os
import sys
from ctypes import byref, c_char_p, sizeof
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Final, Mapping, Optional, Sequence, Union

from . import errors
from ._error import shown, unexpected
from ._names import extended_id, to_bytes, unique_id
from ._native.library import Library
from ._native.structs import TIMEOUT_DEFAULT, Options

_TIMEOUTS: Final = {
    "connect_timeout": "connect_timeout_ms",
    "attempt_timeout": "attempt_timeout_ms",
    "timeout": "call_timeout_ms",
}

#: One address, several separated by commas, or a list of them.
Url = Union[str, Sequence[str]]
#: The path of a file.
Path = Union[str, "os.PathLike[str]"]

#: The process that has connected last under each id; includes the processes from which this one was
#: forked.
_users: Final[Dict[str, int]] = {}


def note_use(trainer: str) -> None:
    """Remembers that this process has connected under the id."""
    _users[trainer] = os.getpid()


def _is_of_parent(trainer: str) -> bool:
    """Whether an id in the environment belongs to the process that started this one."""
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return True
    return _users.get(trainer, os.getpid()) != os.getpid()


def _another_id(asked: Optional[str]) -> str:
    """An id that no other client has, which begins with the one that was asked for."""
    return unique_id() if asked is None else extended_id(asked)


@dataclass(frozen=True)
class Settings:
    """The settings with which one client reaches its job."""

    #: The arguments of ``pserver.connect``; the C library decides about those that are None or absent.
    arguments: Mapping[str, Any] = field(repr=False)
    job: str
    trainer: str
    #: The id asked for, with which the ids of other processes begin; None if the id is used only once.
    asked_trainer: Optional[str]

    @staticmethod
    def of(arguments: Mapping[str, Any]) -> Settings:
        """Makes settings from arguments, with job and trainer from the environment if they are not
        given."""
        given, job = arguments.get("trainer"), arguments.get("job")
        if job is None:
            job = os.environ.get("PSERVER_JOB") or "default"
        if given is not None:
            return Settings(arguments, job, given, given)
        asked = os.environ.get("PSERVER_TRAINER") or None
        if asked is None or _is_of_parent(asked):
            return Settings(arguments, job, _another_id(asked), asked)
        return Settings(arguments, job, asked, asked)

    def for_another_process(self) -> Settings:
        """Returns the same settings with an id that no other client has."""
        return replace(self, trainer=_another_id(self.asked_trainer))

    def options(self, library: Library) -> Options:
        """Converts the settings to the C library's struct. BAD_NAME or BAD_VALUE for what it cannot
        express."""
        options = Options()
        library.functions.pserver_options_init(byref(options))
        if options.struct_size != sizeof(Options):
            raise errors.Internal(f"{library.path}: its pserver_options is of another version")
        given: Dict[str, Any] = {**self.arguments, "job": self.job, "trainer": self.trainer}
        for name, kind, *_ in Options._fields_:
            if kind is c_char_p and given.get(name) is not None:
                setattr(options, name, _text(given[name], name))
        for name, entry in _TIMEOUTS.items():
            if name in given:
                setattr(options, entry, to_ms(given[name], name))
        if given.get("in_flight_bytes") is not None:
            options.in_flight_bytes = _positive(given["in_flight_bytes"], "in_flight_bytes")
        return options


def to_number(value: Any) -> float:
    """A Python or numpy number as a float; NaN for anything else."""
    try:
        return math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def to_ms(timeout: Optional[float], what: str = "timeout") -> int:
    """Converts seconds to whole milliseconds, at least 1; None means the client's own timeout.

    BAD_VALUE unless ``timeout`` is a number above 0.
    """
    if timeout is None:
        return TIMEOUT_DEFAULT
    seconds = to_number(timeout)
    if not 0 < seconds < 1e9:
        raise unexpected(errors.BadValue, what, "seconds, more than 0", shown(timeout))
    return max(1, round(seconds * 1000))


def _text(value: Any, what: str) -> bytes:
    if isinstance(value, (list, tuple)):
        return b",".join(to_bytes(each, what) for each in value)
    return to_bytes(os.fspath(value) if isinstance(value, os.PathLike) else value, what)


def _positive(number: Any, what: str) -> int:
    if isinstance(number, int) and 0 < number < 2**63:
        return number
    raise unexpected(errors.BadValue, what, "a whole number of more than 0", shown(number))
