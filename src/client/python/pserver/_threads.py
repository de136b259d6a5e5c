"""Threads that make calls for other threads, which can end a call at any time.

Python runs signal handlers in the main thread, and only between its own instructions, so a call of the C
library would delay them until it is over. Therefore a second thread makes the calls of the main thread,
while the main thread waits in a way that handlers can interrupt. The calls of an asynchronous client are made
by threads, too.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from contextlib import contextmanager
from ctypes import byref, c_void_p
from typing import Any, Callable, Final, Generic, Iterator, List, Optional, TypeVar

from . import errors
from ._native.library import Library, library

Result = TypeVar("Result")

#: Interval of checks while waiting: whether a call was cancelled, or is over. A signal that comes just before
#: the main thread begins to wait does not interrupt the wait: its handler runs after this time.
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
        """Returns the call's result; raises what it raised."""
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


#: How many calls of one client run at the same time; others wait for their turn.
CALLS_MAX: Final = 16


class Pool:
    """The threads of an asynchronous client: one for each call that is under way; new ones after a
    fork."""

    def __init__(self) -> None:
        self._pid = 0
        self._idle: List[Worker] = []
        self._is_closed = False
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._room: asyncio.Semaphore

    async def run(self, work: Callable[[], Result]) -> Result:
        """Runs ``work`` in a thread and returns its result. If the task is cancelled, this waits until
        the call has ended, which takes a tenth of a second at most."""
        if self._pid != os.getpid():
            self._pid, self._idle = os.getpid(), []
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._room = loop, asyncio.Semaphore(CALLS_MAX)
        async with self._room:
            idle = self._idle
            worker = idle.pop() if idle else Worker(library(), "pserver-aio")
            try:
                return await _run_for_task(worker, work)
            finally:
                if self._is_closed:
                    worker.end()
                else:
                    idle.append(worker)

    def close(self) -> None:
        """Ends the idle threads; a thread that is making a call ends after it, and so does that of a
        later call."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().end()


async def _run_for_task(worker: Worker, work: Callable[[], Result]) -> Result:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:
            # The loop was closed before the task had ended, so nobody waits.
            pass

    job = Job(work, tell)
    worker.post(job)
    try:
        await done.wait()
    except asyncio.CancelledError:
        worker.cancel(job)
        await _until(done)
        raise
    except BaseException:  # The loop was closed before the task had ended.
        worker.cancel(job)
        raise
    return job.result()


async def _until(done: asyncio.Event) -> None:
    """Waits for the event even if the task is cancelled again, because the call still uses its
    arrays."""
    while not done.is_set():
        try:
            await done.wait()
        except asyncio.CancelledError:
            continue
