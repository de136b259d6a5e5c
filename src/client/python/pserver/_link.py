"""The connection of a client: a separate one in each process that uses the client."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from ctypes import byref, c_void_p
from typing import Any, Final, Optional

from . import errors
from ._error import Error
from ._native.library import Connection, library
from ._settings import Settings, note_use
from ._workers import hold

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
        """The settings of this process."""
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
