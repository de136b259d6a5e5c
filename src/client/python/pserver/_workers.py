"""Threads that make calls for other threads; these can end a call at any time."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from ctypes import byref, c_void_p
from typing import Any, Callable, Final, Generic, Iterator, Optional, TypeVar

from . import errors
from ._native.library import Library

Result = TypeVar("Result")

#: How often a call that waits for another thread checks whether it was cancelled.
_LOOK_SECONDS: Final = 0.05


class _Here(threading.local):
    """The job that this thread is running."""

    job: Optional[Job[Any]] = None


_here = _Here()


@contextmanager
def hold(lock: threading.Lock) -> Iterator[None]:
    """Holds a lock that another thread may hold for as long as connecting takes.

    ABORTED if the job of this thread is cancelled while it waits for the lock.
    """
    while not lock.acquire(timeout=_LOOK_SECONDS):
        job = _here.job
        if job is not None and job.is_cancelled:
            raise errors.Aborted("ended while another thread was connecting")
    try:
        yield
    finally:
        lock.release()


class Job(Generic[Result]):
    """A call that a worker makes once, and its result."""

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
        _here.job = self
        try:
            if not self.is_cancelled:
                self._value = work()
        except BaseException as error:  # Raised again where the call is awaited.
            self._error = error
        del work
        _here.job = None
        self.is_done = True
        self._on_done()

    def result(self) -> Result:
        """The call's result; raises what it raised."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                # The error's traceback refers to this job, which would then refer to itself.
                self._error = None
        # The waiting thread may keep the job, but must not keep the value alive.
        value, self._value = self._value, None
        return value  # type: ignore[return-value]


class Worker:
    """A thread that makes calls, one after the other, through a library that can end them.

    A worker has one owner at a time, which posts a call when the previous one is done, or waits for its
    turn. The thread ends when the worker is ended or dropped and all posted calls are done.
    """

    def __init__(self, library: Library, name: str) -> None:
        """Starts the thread. RuntimeError if the interpreter is shutting down and starts no threads."""
        self._line = _Line(library)
        # The thread is a daemon, so that the interpreter's end does not wait for it. It must not refer
        # to the worker, or the worker would never be dropped.
        thread = threading.Thread(target=self._line.serve, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._line.release()
            raise

    def __del__(self) -> None:
        line = getattr(self, "_line", None)
        if line is not None:
            line.jobs.put(None)

    def end(self) -> None:
        """Ends the thread after the calls that were posted, whoever still refers to the worker, such as the
        traceback of an error. No call may be posted after this."""
        self._line.jobs.put(None)

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self._line.is_busy

    @property
    def cancel_function(self) -> Callable[[c_void_p], object]:
        """The library's function that ends the call of :attr:`canceller`. :meth:`cancel` also marks the
        job."""
        return self._line.cancel

    @property
    def canceller(self) -> c_void_p:
        """The library's handle by which the call that is under way is ended."""
        return self._line.canceller

    def post(self, job: Job[Any]) -> None:
        """Makes the call after those posted before it. May be called twice for the same job."""
        self._line.jobs.put(job)

    def cancel(self, job: Job[Any]) -> None:
        """Ends a posted call within a tenth of a second if it is under way; otherwise it is never
        made."""
        job.is_cancelled = True
        self._line.cancel(self._line.canceller)


class _Line:
    """The state that a worker's thread shares with its worker."""

    def __init__(self, library: Library) -> None:
        self.jobs: queue.SimpleQueue[Optional[Job[Any]]] = queue.SimpleQueue()
        self.is_busy = False
        self.canceller = c_void_p()
        self._functions = library.functions
        self.cancel: Callable[[c_void_p], object] = self._functions.pserver_cancel
        library.check(self._functions.pserver_canceller_new(byref(self.canceller)))

    def release(self) -> None:
        """Frees the canceller, which must not be used after that."""
        self._functions.pserver_canceller_free(self.canceller)

    def serve(self) -> None:
        """Makes the calls until it gets None."""
        self._functions.pserver_use_canceller(self.canceller)
        while True:
            job = self.jobs.get()
            if job is None:
                break
            # A cancel that came too late for the previous call must not end this one. A cancel that is
            # meant for this one has marked the job before, and the job reads that mark only after this.
            self._functions.pserver_canceller_rearm(self.canceller)
            self.is_busy = True
            job.run()
            self.is_busy = False
            del job  # Otherwise its arrays would be kept until the next job comes.
        self._functions.pserver_use_canceller(None)
        self.release()
