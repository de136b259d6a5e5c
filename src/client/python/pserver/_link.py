"""Settings and connection of a client: a separate connection in each process that uses the client."""

from __future__ import annotations

import atexit
import os
import re
import secrets
import socket
import sys
import threading
import weakref
from ctypes import byref, c_char_p, c_void_p, sizeof
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Final, Mapping, Optional, Sequence, Union

from . import errors
from ._arguments import to_bytes, to_ms
from ._error import Error, shown, unexpected
from ._native.declarations import Options
from ._native.library import Connection, Library, library
from ._threads import hold

#: The most bytes of an id in a subject, where every byte except ``[A-Za-z0-9_-]`` takes three.
_ID_BYTES_MAX: Final = 64
_NOT_PLAIN: Final = re.compile(rb"[^A-Za-z0-9_-]")


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
    """Makes an id that no other client has, which begins with the one that was asked for."""
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


def _text(value: Any, what: str) -> bytes:
    if isinstance(value, (list, tuple)):
        return b",".join(to_bytes(each, what) for each in value)
    return to_bytes(os.fspath(value) if isinstance(value, os.PathLike) else value, what)


def _positive(number: Any, what: str) -> int:
    if isinstance(number, int) and 0 < number < 2**63:
        return number
    raise unexpected(errors.BadValue, what, "a whole number of more than 0", shown(number))


#: How long calls of other threads may take to end when the interpreter ends.
_EXIT_MS: Final = 500

_renewal = threading.Lock()
_open_links: Final[weakref.WeakSet[Link]] = weakref.WeakSet()
_process_that_closes: Optional[int] = None


class Link:
    """A connection that is made at its first use, and never again after :meth:`close`.

    A forked process gets another connection, of another trainer; the parent's connection is left alone.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._opened: Optional[Connection] = None
        self._is_closed = False

    @property
    def settings(self) -> Settings:
        """Returns the settings of this process."""
        self._follow_fork()
        return self._settings

    @property
    def is_open(self) -> bool:
        """Whether this process has connected and not closed."""
        return self._opened is not None and self._pid == os.getpid()

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed, in this process or before a fork."""
        return self._is_closed

    def open(self) -> Connection:
        """Returns the connection, made at the first use in this process; CLOSED after :meth:`close`."""
        self._follow_fork()
        opened = self._opened
        if opened is not None:
            return opened
        with hold(self._lock):
            if self._is_closed:
                raise errors.Closed("the client is closed")
            if self._opened is None:
                self._opened = self._connect()
            return self._opened

    def close(self, timeout_ms: int) -> None:
        """Ends the connection if there is one; does nothing the second time."""
        self._follow_fork()
        with hold(self._lock):
            opened, self._opened, self._is_closed = self._opened, None, True
        if opened is not None:
            opened.call("pserver_close", timeout_ms)

    def _follow_fork(self) -> None:
        if self._pid == os.getpid():
            return
        with _renewal:
            if self._pid != os.getpid():
                self._settings = self._settings.for_another_process()
                self._lock = threading.Lock()
                self._opened = None
                self._pid = os.getpid()

    def _connect(self) -> Connection:
        native = library()
        handle = c_void_p()
        options = self._settings.options(native)
        native.check(native.functions.pserver_connect(byref(options), byref(handle)))
        note_use(self._settings.trainer)
        _close_at_exit(self)
        return Connection(native, handle)


def _close_at_exit(link: Link) -> None:
    global _process_that_closes
    _open_links.add(link)
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None and _process_that_closes != os.getpid():
        # Processes of multiprocessing end without calling the functions of atexit. A priority below 0
        # is called after the processes that this one has started have ended.
        util.Finalize(None, _close_all, exitpriority=-1)
        _process_that_closes = os.getpid()


def _close_all() -> None:
    for link in list(_open_links):
        if not link.is_open:
            continue
        try:
            link.close(_EXIT_MS)
        except Error:
            # The interpreter ends; the rest of the session expires.
            pass


def _renew_lock() -> None:
    # Another thread of the parent may have held the lock at the fork.
    global _renewal
    _renewal = threading.Lock()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_renew_lock)
