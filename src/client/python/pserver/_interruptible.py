"""Calls of the main thread, which signals can interrupt.

Python runs signal handlers in the main thread, and only between its own instructions, so a call of the
C library would delay them until it is over. Therefore a second thread makes the calls of the main
thread, while the main thread waits in a way that handlers can interrupt.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Final, Optional, TypeVar

from ._native.library import library
from ._workers import Job, Worker

Result = TypeVar("Result")

#: Interval of checks while waiting for the end of a call. A signal that comes just before the main
#: thread begins to wait does not interrupt the wait: its handler runs after this time.
_LOOK_SECONDS: Final = 0.05

#: How long an interrupted call may take to end; most take a millisecond.
_LEAVE_SECONDS: Final = 0.15


class _MainThread:
    """State of the main thread of a process."""

    def __init__(self, worker: Worker) -> None:
        self.pid = os.getpid()
        self.worker = worker
        #: The last call that the worker was given.
        self.job: Optional[Job[Any]] = None


_main: Optional[_MainThread] = None


def run(work: Callable[[], Result]) -> Result:
    """Runs ``work`` and returns its result. If a signal handler raises, as that of Ctrl-C does, the
    call is ended, and then the handler's exception is raised here."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    main = _main_thread()
    if main is None:
        return work()
    if main.job is None or main.job.is_done:
        return _run_on(main.worker, work, main)
    # The worker is busy: either this is a signal handler that runs during its call, or its call was
    # abandoned.
    worker = _start_worker()
    return work() if worker is None else _run_on(worker, work)


def _main_thread() -> Optional[_MainThread]:
    global _main
    if _main is None or _main.pid != os.getpid():
        worker = _start_worker()
        _main = None if worker is None else _MainThread(worker)
    return _main


def _start_worker() -> Optional[Worker]:
    """Starts a worker; None if the interpreter is shutting down and starts no threads."""
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
        # If several signals come together, each handler may raise, the next one as soon as a Python
        # function begins. So the call is first ended by a C function, and only then waited for.
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

    A call that is sending to a broker that reads nothing cannot be ended until it gives up by itself.
    Such a call is abandoned: it keeps its arrays alive but sends no more of them, and other threads
    make later calls.
    """
    leaves_at = time.monotonic() + _LEAVE_SECONDS
    while True:
        try:
            worker.cancel(job)
            # The job may have been posted before; posting it again does nothing.
            worker.post(job)
            while not job.is_done and time.monotonic() < leaves_at:
                done.acquire(timeout=_LOOK_SECONDS)
            return
        except BaseException:
            continue
