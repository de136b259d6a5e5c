"""Calls of the main thread, which signals can interrupt.

Python runs the handlers of signals in the main thread, and only between its own instructions: a call of
the C library would hold them up until it is over. So the calls of the main thread are made by another
one that belongs to it, while the main thread waits in a way that handlers interrupt.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Final, Optional, TypeVar

from ._native.library import library
from ._workers import Job, Worker

Result = TypeVar("Result")

#: Interval of checks while waiting for the end of a call. A signal that comes just before
#: the main thread begins to wait does not interrupt it: its handler runs after this time.
_LOOK_SECONDS: Final = 0.05

#: How long an interrupted call may take to end; most take a millisecond.
_LEAVE_SECONDS: Final = 0.15


class _MainThread:
    """State of the main thread of a process."""

    def __init__(self, worker: Worker) -> None:
        self.pid = os.getpid()
        self.worker = worker
        #: The call that the worker was given last.
        self.job: Optional[Job[Any]] = None


_main: Optional[_MainThread] = None


def run(work: Callable[[], Result]) -> Result:
    """What ``work`` gives. If a handler of a signal raises, as that of Ctrl-C does, the call is ended, and
    what the handler has raised goes on once it has."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    main = _main_thread()
    if main is None:
        return work()
    if main.job is None or main.job.is_done:
        return _run_on(main.worker, work, main)
    # The worker is busy: this is a signal handler that runs during the call, or the call was abandoned.
    worker = _start_worker()
    return work() if worker is None else _run_on(worker, work)


def _main_thread() -> Optional[_MainThread]:
    global _main
    if _main is None or _main.pid != os.getpid():
        worker = _start_worker()
        _main = None if worker is None else _MainThread(worker)
    return _main


def _start_worker() -> Optional[Worker]:
    """None if the interpreter is shutting down and starts no threads."""
    try:
        return Worker(library(), "pserver-main")
    except RuntimeError:
        return None


def _run_on(
    worker: Worker, work: Callable[[], Result], main: Optional[_MainThread] = None
) -> Result:
    done = threading.Lock()
    done.acquire()
    job = Job(work, done.release)
    cancel, canceller = worker.cancel_function, worker.canceller
    if main is not None:
        main.job = job
    try:
        worker.post(job)
        while not done.acquire(timeout=_LOOK_SECONDS):
            pass
    except BaseException:
        # Of signals that come together each handler may raise, the next one as soon as a function of
        # Python's begins. So the call is ended by one of C's first, and only then waited for.
        job.is_cancelled = True
        try:
            cancel(canceller)
            _end(worker, job, done)
        except BaseException:
            _end(worker, job, done)
        raise
    return job.result()


def _end(worker: Worker, job: Job[Result], done: threading.Lock) -> None:
    """Waits until the call is over; further signals do not end this wait.

    A call that just sends to a broker that takes nothing cannot be ended until it gives up. It is left
    behind then: it keeps its arrays, of which it sends no more, and later calls are made by other threads.
    """
    leaves_at = time.monotonic() + _LEAVE_SECONDS
    while True:
        try:
            worker.cancel(job)
            # It may have been posted before; a second time does nothing.
            worker.post(job)
            while not job.is_done and time.monotonic() < leaves_at:
                done.acquire(timeout=_LOOK_SECONDS)
            return
        except BaseException:
            continue
