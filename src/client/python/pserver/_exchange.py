"""The exchange of one fragment in the background: contributes to it, and gets the result of the round."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Callable, Collection, Final, Mapping, Optional

from . import errors
from ._arguments import Encoding
from ._arrays import Array
from ._error import Error
from ._native.library import library
from ._threads import Job, Worker
from .client import Client
from .records import PulledFragment

#: Seconds between attempts to exchange a fragment.
_PAUSE: Final = 0.5


@dataclass(frozen=True)
class Contribution:
    """What a learner has to say about a fragment: how each array has changed, since which version, in how many steps
    with how many tokens; and the names of arrays that are sent, or read, as they are."""

    changes: Mapping[str, Array]
    base: int
    steps: int
    tokens: int
    step_time: Optional[float]
    sent_exactly: Collection[str]
    read_exactly: Collection[str]


class Exchange:
    """Exchanges a fragment in a thread of its own, as often as it takes. One contribution is under way at a time; before it
    is given, the thread waits until others have contributed."""

    def __init__(
        self,
        ps: Client,
        fragment: str,
        *,
        encoding: Optional[Encoding],
        error_feedback: bool,
        pull_encoding: Optional[Encoding],
        timeout: Optional[float],
        on_done: Callable[[], object],
    ) -> None:
        """``timeout``, in seconds, is how long a call may take before it is made again. ``on_done`` is called in the
        thread when a result, or an error that making the exchange again cannot mend, is there."""
        self._ps = ps
        self._fragment = fragment
        self._encoding = encoding
        self._error_feedback = error_feedback
        self._pull_encoding = pull_encoding
        self._timeout = timeout
        self._on_done = on_done
        #: Whether it is known that the job draws who may contribute to a round.
        self._asks = False
        self._closed = threading.Event()
        self._worker: Optional[Worker] = None
        self._wait: Optional[Job[None]] = None
        self._job: Optional[Job[PulledFragment]] = None
        #: Why the last attempt has failed, which is made again.
        self.obstacle: Optional[Error] = None

    @property
    def is_under_way(self) -> bool:
        """Whether a contribution was given whose result was not taken."""
        return self._job is not None

    @property
    def is_done(self) -> bool:
        """Whether there is something to take."""
        return self._job is not None and self._job.is_done

    @property
    def has_begun(self) -> bool:
        """Whether somebody has contributed to the round that is waited for, or there is no such round any more."""
        return self._wait is not None and self._wait.is_done

    def await_round(self, version: int) -> None:
        """Has the thread wait until the round after a version has begun."""
        self._wait = Job(lambda: self._await_round(version), lambda: None)
        self._thread().post(self._wait)

    def begin(self, contribution: Contribution) -> None:
        """Has the thread contribute. The arrays must not change any more."""
        worker = self._thread()
        if self._wait is not None:
            worker.cancel(self._wait)
            self._wait = None
        self._job = Job(lambda: self._exchange(contribution), self._on_done)
        worker.post(self._job)

    def take(self) -> PulledFragment:
        """Returns the result that is there; raises the error that has ended the exchange."""
        job, self._job = self._job, None
        assert job is not None
        self.obstacle = None
        return job.result()

    def end(self) -> None:
        """Ends the thread, and the call that it makes: what it contributes counts once or not at all."""
        self._closed.set()
        if self._worker is not None:
            for job in (self._job, self._wait):
                if job is not None:
                    self._worker.cancel(job)
            self._worker.end()
        self._worker = self._job = self._wait = None

    def _thread(self) -> Worker:
        if self._worker is None:
            self._worker = Worker(library(), f"pserver-diloco-{self._fragment}")
        return self._worker

    def _await_round(self, version: int) -> None:
        """Returns when the round after a version has begun or has closed; also after an error that cannot pass, which the
        exchange then meets, and tells."""
        while True:
            try:
                self._ps.await_round(self._fragment, version, timeout=self._timeout)
                return
            except errors.Timeout:
                # Nobody has contributed meanwhile.
                if self._closed.is_set():
                    return
            except Error as error:
                if self._closed.is_set() or not _can_pass(error):
                    return
                self._closed.wait(_PAUSE)

    def _exchange(self, contribution: Contribution) -> PulledFragment:
        """Contributes, and returns the fragment once the contribution's round has closed. From each version only one
        contribution of a trainer counts, so it may be sent again."""
        feeds_back = self._error_feedback
        patience = 1
        while True:
            try:
                return self._attempt(contribution, feeds_back, patience)
            except Error as error:
                if self._closed.is_set() or not _can_pass(error):
                    raise
                self.obstacle = error
            # What rounding has left out of the first attempt must not be added to the same change again.
            feeds_back = False
            # Where a round only waits for its quorum, the contribution is sent again ever more rarely.
            patience *= 2
            self._closed.wait(_PAUSE)

    def _attempt(
        self, contribution: Contribution, feeds_back: bool, patience: int
    ) -> PulledFragment:
        """Contributes, and asks for the result so many times. The contribution may be lost meanwhile, if the journal of its
        shard is replaced."""
        base = contribution.base
        counted: Optional[int] = None
        try:
            if not self._asks or self._is_drawn(base):
                counted = self._ps.contribute(
                    self._fragment,
                    contribution.changes,
                    base=base,
                    steps=contribution.steps,
                    tokens=contribution.tokens,
                    step_time=contribution.step_time,
                    encoding=self._encoding,
                    exact=contribution.sent_exactly,
                    error_feedback=feeds_back,
                    timeout=self._timeout,
                )
        except errors.NotSampled:
            # The round is one of others. From now on nothing is sent before it is known who is drawn.
            self._asks = True
        except errors.Guarded:
            # No round has it: what the job has now is adopted, and training goes on from there.
            return self._pull(contribution, 0)
        except errors.BadValue:
            # A shard that has fallen back does not know the version: what the job has now is adopted.
            present = self._pull(contribution, 0)
            if present.version >= base:
                raise
            return present
        wanted = base + 1 if counted is None else counted
        while True:
            patience -= 1
            try:
                return self._pull(contribution, wanted)
            except errors.Timeout as error:
                if patience == 0 or self._closed.is_set():
                    raise
                self.obstacle = error

    def _is_drawn(self, version: int) -> bool:
        drawn = self._ps.sampling(self._fragment, min_version=version, timeout=self._timeout)
        return drawn.is_sampled

    def _pull(self, contribution: Contribution, min_version: int) -> PulledFragment:
        return self._ps.pull_fragment(
            self._fragment,
            min_version=min_version,
            encoding=self._pull_encoding,
            exact=contribution.read_exactly,
            timeout=self._timeout,
        )


def _can_pass(error: Error) -> bool:
    """Whether the same exchange can succeed later. What became of its contribution does not matter: it counts once."""
    return error.retryable or isinstance(error, (errors.OutcomeUnknown, errors.JournalReplaced))
