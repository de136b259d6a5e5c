"""Calls of the main thread, which signals can end.

Python runs the handlers of signals in the main thread, and only between its own instructions: a call of
the C library would hold them up until it is over. So the calls of the main thread are made by another
one that belongs to it, while the main thread waits in a way that handlers interrupt.
"""

from __future__ import annotations

import os
import threading
from typing import Callable, Optional, Tuple, TypeVar

from ._native.library import library
from ._workers import Job, Worker

Result = TypeVar("Result")

#: The main thread's worker, and the process it was started in.
_worker: Optional[Tuple[int, Worker]] = None

#: How long the wait for the end of a call goes on before it looks again.
_LOOK_SECONDS = 0.05


def run(work: Callable[[], Result]) -> Result:
    """What ``work`` gives. If a handler of a signal raises, as that of Ctrl-C does, the call is ended, and
    what the handler has raised goes on once it has."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    try:
        worker = _main_worker()
    except RuntimeError:
        # The interpreter is about to end and starts no threads.
        return work()
    return _run_on(worker, work)


def _main_worker() -> Worker:
    global _worker
    if _worker is None or _worker[0] != os.getpid():
        _worker = (os.getpid(), Worker(library(), "pserver-main"))
    return _worker[1]


def _run_on(worker: Worker, work: Callable[[], Result]) -> Result:
    done = threading.Lock()
    done.acquire()
    job = Job(work, done.release)
    try:
        worker.post(job)
        done.acquire()
    except BaseException:
        _end(worker, job, done)
        raise
    return job.result()


def _end(worker: Worker, job: Job[Result], done: threading.Lock) -> None:
    """Waits until the call is over; further signals do not end this wait."""
    while True:
        try:
            worker.cancel(job)
            # Whether it was posted before is not known; a second time does nothing.
            worker.post(job)
            while not job.is_done:
                done.acquire(timeout=_LOOK_SECONDS)
            return
        except BaseException:
            continue
