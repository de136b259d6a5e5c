"""Threads that make the calls of an asynchronous client."""

from __future__ import annotations

import asyncio
import os
from typing import Callable, Final, List, Optional, TypeVar

from ._native.library import library
from ._workers import Job, Worker

Result = TypeVar("Result")

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
                return await _run_on(worker, work)
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


async def _run_on(worker: Worker, work: Callable[[], Result]) -> Result:
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
