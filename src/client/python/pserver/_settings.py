"""How to reach the broker and the job."""

from __future__ import annotations

import math
import os
import sys
from ctypes import byref, c_char_p, sizeof
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Final, Optional, Sequence, Union

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

#: Processes by the ids they have connected under, those this one was forked from included.
_users: Final[Dict[str, int]] = {}


def note_use(trainer: str) -> None:
    """Notes that this process has connected under the id."""
    _users[trainer] = os.getpid()


def _is_of_parent(trainer: str) -> bool:
    """Whether an id in the environment is that of the process that started this one."""
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return True
    return _users.get(trainer, os.getpid()) != os.getpid()


@dataclass(frozen=True)
class Settings:
    """The arguments of ``pserver.connect``; None where the C library has a default or looks into the
    environment. Job and trainer are decided here."""

    url: Optional[Url] = None
    job: Optional[str] = None
    trainer: Optional[str] = None
    user: Optional[str] = None
    password: Optional[str] = field(default=None, repr=False)
    token: Optional[str] = field(default=None, repr=False)
    creds_file: Optional[Path] = None
    nkey_file: Optional[Path] = None
    nkey_public: Optional[str] = None
    tls_ca: Optional[Path] = None
    tls_cert: Optional[Path] = None
    tls_key: Optional[Path] = None
    connect_timeout: float = 10.0
    attempt_timeout: float = 5.0
    timeout: float = 30.0
    in_flight_bytes: Optional[int] = None
    #: The id asked for, which those of other processes begin with; None for one that is used once.
    asked_trainer: Optional[str] = None

    @staticmethod
    def of(settings: Settings) -> Settings:
        """The settings, with job and trainer from the environment if not given."""
        from_environment = os.environ.get("PSERVER_TRAINER") or None
        asked = from_environment if settings.trainer is None else settings.trainer
        job = os.environ.get("PSERVER_JOB") or "default" if settings.job is None else settings.job
        here = replace(settings, job=job, trainer=asked, asked_trainer=asked)
        if asked is None or (settings.trainer is None and _is_of_parent(asked)):
            return here.for_another_process()
        return here

    def for_another_process(self) -> Settings:
        """The same settings with an id that no other client has."""
        asked = self.asked_trainer
        return replace(self, trainer=unique_id() if asked is None else extended_id(asked))

    def options(self, library: Library) -> Options:
        """The C library's struct. BAD_NAME or BAD_VALUE for what it cannot express."""
        options = Options()
        library.functions.pserver_options_init(byref(options))
        if options.struct_size != sizeof(Options):
            raise errors.Internal(f"{library.path}: its pserver_options is of another version")
        for name, kind in Options._fields_:
            value = getattr(self, name, None)
            if kind is c_char_p and value is not None:
                setattr(options, name, _text(value, name))
        for name, entry in _TIMEOUTS.items():
            setattr(options, entry, to_ms(getattr(self, name), name))
        if self.in_flight_bytes is not None:
            options.in_flight_bytes = _positive(self.in_flight_bytes, "in_flight_bytes")
        return options


def to_number(value: Any) -> float:
    """A Python or numpy number as a float; NaN for anything else."""
    try:
        return math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def to_ms(timeout: Optional[float], what: str = "timeout") -> int:
    """Seconds as the C library takes them, at least a millisecond; None: the client's own.

    BAD_VALUE unless it is a number above 0.
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
