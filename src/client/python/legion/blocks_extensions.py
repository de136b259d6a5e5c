"""Legion's extensions for Blocks, for any training loop.

The loop tells an extension where it is by calling :meth:`~Extension.before_training`,
:meth:`~Extension.after_batch`, :meth:`~Extension.after_epoch` and :meth:`~Extension.after_training`.
The extension's arguments say which of these calls trigger it.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any, Callable, MutableMapping, Optional

from .client import Client
from .shared_values import SharedValues

_logger = logging.getLogger("legion")

#: Weight of the last exchange in the average time of exchanges.
_LAST_WEIGHT = 0.2


class Extension:
    """The base of the extensions: something that is done at certain moments of training.

    ``before_training`` and ``after_training`` trigger it at the beginning and at the end;
    ``every_n_batches`` and ``every_n_epochs`` after every so many batches or epochs. ``log`` receives
    its rows, as ``log[entry] = value``.
    """

    def __init__(
        self,
        *,
        every_n_batches: Optional[int] = None,
        every_n_epochs: Optional[int] = None,
        before_training: bool = False,
        after_training: bool = False,
        log: Optional[MutableMapping[str, Any]] = None,
    ) -> None:
        self.log: MutableMapping[str, Any] = {} if log is None else log
        self._batches = _Counter("every_n_batches", every_n_batches)
        self._epochs = _Counter("every_n_epochs", every_n_epochs)
        self._at_begin = before_training
        self._at_end = after_training

    def do(self, which_callback: str = "after_batch", *args: Any) -> None:
        """Does the extension's work; called when the extension is triggered."""
        raise NotImplementedError

    def before_training(self) -> None:
        """To be called when training begins."""
        if self._at_begin:
            self.do("before_training")

    def after_batch(self, *batch: Any) -> None:
        """To be called after each batch."""
        if self._batches.is_due():
            self.do("after_batch", *batch)

    def after_epoch(self) -> None:
        """To be called after each epoch."""
        if self._epochs.is_due():
            self.do("after_epoch")

    def after_training(self) -> None:
        """To be called when training has ended."""
        if self._at_end:
            self.do("after_training")


class SharedParamsAutoSync(Extension):
    """Exchanges all parameters when triggered: pushes the local values, then adopts the server's.

    ``params`` is a dict of arrays, of tensors or of shared variables (``get_value``, ``set_value``), or
    a ``torch.nn.Module``; values are adopted in place. The constructor creates parameters that do not
    exist, and adopts the server's values of those that do. ``alpha`` and ``beta`` are those of
    ``Client.push_full``; Legion advises 0.5 and 0.5. With ``want_sync_timing_log`` each exchange logs
    ``param_sync_start``, ``param_sync_end`` (seconds since the epoch) and ``param_sync_duration``.
    """

    def __init__(
        self,
        params: Any,
        alpha: float,
        beta: float,
        client: Optional[Client] = None,
        debug: bool = False,
        verbose: bool = False,
        want_sync_timing_log: bool = False,
        **when: Any,
    ) -> None:
        super().__init__(**when)
        self.alpha = alpha
        self.beta = beta
        self.client = Client(verbose) if client is None else client
        self._level = logging.INFO if debug or verbose else logging.DEBUG
        self._want_log = want_sync_timing_log
        self._values = SharedValues(params)
        self._values.create(self.client.ps)

    def do(self, which_callback: str = "after_batch", *args: Any) -> None:
        self.sync()

    def sync(self) -> None:
        """Makes one exchange."""
        start = time.time()
        began = time.monotonic()
        self._values.push(self.client.ps, self.alpha, self.beta)
        self._values.adopt(self.client.ps)
        seconds = time.monotonic() - began
        _logger.log(self._level, "exchanged %d parameters in %.3f s", len(self._values), seconds)
        if self._want_log:
            self.log["param_sync_start"] = start
            self.log["param_sync_end"] = start + seconds
            self.log["param_sync_duration"] = seconds


class SharedParamsRateLimited(SharedParamsAutoSync):
    """Exchanges when triggered, unless exchanges take more than ``maximum_rate`` of the time.

    It exchanges if the average time of an exchange, in which the last one weighs 0.2, is less than
    ``maximum_rate`` times the seconds since the last one ended. The first exchange always takes place.
    Legion advises ``every_n_batches=1`` and a rate of about 0.5 / number of workers. ``clock`` returns
    seconds.
    """

    def __init__(
        self,
        params: Any,
        alpha: float,
        beta: float,
        maximum_rate: float = 1.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        super().__init__(params, alpha, beta, **options)
        if not 0 < maximum_rate < float("inf"):
            raise ValueError(f"maximum_rate: expected a number above 0; received {maximum_rate!r}")
        self.maximum_rate = maximum_rate
        self._clock = clock
        self._mean_seconds = 0.0
        self._ended = -float("inf")

    def do(self, which_callback: str = "after_batch", *args: Any) -> None:
        began = self._clock()
        if self._mean_seconds >= self.maximum_rate * (began - self._ended):
            return
        self.sync()
        self._ended = self._clock()
        last = self._ended - began
        self._mean_seconds = _LAST_WEIGHT * last + (1 - _LAST_WEIGHT) * self._mean_seconds


class Timestamp(Extension):
    """Logs ``datestamp``, as "2026-11-22 19:26" in local time, and ``timestamp``, seconds since the epoch."""

    def do(self, which_callback: str = "after_batch", *args: Any) -> None:
        now = time.time()
        self.log["datestamp"] = time.strftime("%Y-%m-%d %H:%M", time.localtime(now))
        self.log["timestamp"] = now


class StopAfterTimeElapsed(Extension):
    """Ends the process like ``sys.exit``, with exit code 0, after ``total_duration`` seconds.

    The seconds are counted from the construction of the extension. ``clock`` returns seconds.
    """

    def __init__(
        self, total_duration: float, *, clock: Callable[[], float] = time.monotonic, **when: Any
    ) -> None:
        super().__init__(**when)
        self.total_duration = total_duration
        self._clock = clock
        self._began = clock()

    def do(self, which_callback: str = "after_batch", *args: Any) -> None:
        if self._clock() - self._began >= self.total_duration:
            sys.exit(0)


class _Counter:
    """A counter that is due at every n-th call; never without a number n."""

    def __init__(self, what: str, every: Optional[int]) -> None:
        if every is not None and (not isinstance(every, int) or every < 1):
            raise ValueError(f"{what}: expected a whole number from 1; received {every!r}")
        self._every = every
        self._count = 0

    def is_due(self) -> bool:
        if self._every is None:
            return False
        self._count = (self._count + 1) % self._every
        return self._count == 0
