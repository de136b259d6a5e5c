"""Values that learners give to the job as they are, in the background."""

from __future__ import annotations

import threading
from typing import Any, Final, Mapping, Optional

from .._error import Error
from .._native.library import library
from .._threads import Job, Worker
from ..client import Client

#: Seconds between looks at a call that is waited for: whether the waiting thread was interrupted.
_LOOK: Final = 0.05


class Overwrites:
    """Overwrites parameters in a thread of its own, one call after the other."""

    def __init__(self, ps: Client, timeout: Optional[float]) -> None:
        """``timeout`` is that of each call, in seconds; None for the client's."""
        self._ps = ps
        self._timeout = timeout
        self._worker: Optional[Worker] = None
        self._job: Optional[Job[None]] = None

    def give(self, values: Mapping[str, Any]) -> None:
        """Gives the job these values, unless earlier ones are on their way: newer ones follow. Raises the error of the call
        before, if making it again cannot mend it."""
        job = self._job
        if not values or job is not None and not job.is_done:
            return
        if job is not None:
            try:
                job.result()
            except Error as error:
                if not error.retryable:
                    raise
        self._post(values, threading.Event())

    def give_last(self, values: Mapping[str, Any]) -> None:
        """Gives the job these values after all others, and waits for that. Raises what ``Client.set_params`` raises."""
        if not values:
            return
        is_done = threading.Event()
        job = self._post(values, is_done)
        # The calls have timeouts of their own.
        while not is_done.wait(_LOOK):
            pass
        job.result()

    def end(self) -> None:
        """Ends the thread, and the call that it makes."""
        if self._worker is not None:
            if self._job is not None:
                self._worker.cancel(self._job)
            self._worker.end()
        self._worker = self._job = None

    def _post(self, values: Mapping[str, Any], is_done: threading.Event) -> Job[None]:
        if self._worker is None:
            self._worker = Worker(library(), "pserver-overwrites")
        job = Job(lambda: self._ps.set_params(values, timeout=self._timeout), is_done.set)
        self._job = job
        self._worker.post(job)
        return job
