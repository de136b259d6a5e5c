"""Threads that make calls for others, which can leave a call, and have it ended, at any time."""

from __future__ import annotations

import queue
import threading
from ctypes import byref, c_void_p
from typing import Any, Callable, Generic, Optional, TypeVar

from ._native.library import Library

Result = TypeVar("Result")


class Job(Generic[Result]):
    """A call that a worker makes once, and what came of it."""

    def __init__(self, work: Callable[[], Result], on_done: Callable[[], object]) -> None:
        self._work: Optional[Callable[[], Result]] = work
        self._on_done = on_done
        self._value: Optional[Result] = None
        self._error: Optional[BaseException] = None
        self.is_done = False
        self.is_cancelled = False

    def run(self) -> None:
        """Makes the call, unless it was cancelled before."""
        work, self._work = self._work, None
        if work is None:
            return
        try:
            if not self.is_cancelled:
                self._value = work()
        except BaseException as error:  # Whoever waits for the call gets it.
            self._error = error
        del work
        self.is_done = True
        self._on_done()

    def result(self) -> Result:
        """What the call gave; raises what it raised."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                # Its traceback leads back to this job.
                self._error = None
        return self._value  # type: ignore[return-value]


class Worker:
    """A thread that makes calls, one after the other, through a library that can end them."""

    def __init__(self, library: Library, name: str) -> None:
        """RuntimeError if the interpreter is about to end and starts no threads."""
        self._library = library
        self._jobs: queue.SimpleQueue[Optional[Job[Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._current: Optional[Job[Any]] = None
        self._canceller = c_void_p()
        library.check(library.functions.pserver_canceller_new(byref(self._canceller)))
        # A daemon: the interpreter's end does not wait for it.
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            library.functions.pserver_canceller_free(self._canceller)
            raise

    def post(self, job: Job[Any]) -> None:
        """Makes the call when those before it are done. May be called twice for the same job."""
        self._jobs.put(job)

    def cancel(self, job: Job[Any]) -> None:
        """Ends the call within a tenth of a second if it is under way, or never makes it."""
        job.is_cancelled = True
        with self._lock:
            if self._current is job:
                self._library.functions.pserver_cancel(self._canceller)

    def end(self) -> None:
        """Ends the thread when the calls before are done."""
        self._jobs.put(None)

    def _serve(self) -> None:
        functions = self._library.functions
        functions.pserver_use_canceller(self._canceller)
        while True:
            job = self._jobs.get()
            if job is None:
                break
            self._run(job)
            del job  # It would keep its arrays until the next one comes.
        functions.pserver_use_canceller(None)
        functions.pserver_canceller_free(self._canceller)

    def _run(self, job: Job[Any]) -> None:
        with self._lock:
            self._current = job
        try:
            job.run()
        finally:
            with self._lock:
                self._current = None
                if job.is_cancelled:
                    self._library.functions.pserver_canceller_rearm(self._canceller)
