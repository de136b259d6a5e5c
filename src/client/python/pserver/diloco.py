"""Decoupled DiLoCo (arXiv 2604.21428) for dicts of arrays: each learner trains by itself, and exchanges one fragment of
the model after the other in the background.

::

    with Learner(ps, params, tokens=4096) as learner:
        params = learner.params
        for batch in batches:
            params = learner.step(train(params, batch))
"""

from __future__ import annotations

import threading
import time
import warnings
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Final,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

from . import errors
from ._arguments import Encoding, encoding_number, items_of, to_bytes, to_number
from ._arrays import Array, bad_dtype, bfloat16, fits, ml_dtypes, name_of, to_array
from ._error import Error, shown, unexpected
from ._native.library import library
from ._rounds import balance, whole
from ._threads import Job, Worker
from .client import Client
from .config import with_keywords
from .records import ParameterInfo, PulledFragment

__all__ = ["Learner", "balanced_fragments"]

#: The outer rule of DiLoCo (Douillard et al., 2023).
OUTER: Final[Mapping[str, Any]] = {
    "optimizer": {"name": "nesterov", "momentum": 0.9},
    "learningRate": 0.7,
}

#: Seconds between attempts to exchange a fragment.
_PAUSE: Final = 0.5

#: Seconds in which an initialization that has failed is given up.
_ABORT_TIMEOUT: Final = 10.0

#: The fragment of each parameter; or how many there shall be.
Division = Union[int, Mapping[str, str]]


def balanced_fragments(
    params: Mapping[str, Any], count: int, *, embeddings: Collection[str] = ()
) -> Dict[str, str]:
    """Divides whole arrays among at most ``count`` fragments of nearly the same size, ``"f0"``, ``"f1"`` and so on;
    those named in ``embeddings`` go into one more, ``"embeddings"``. Returns the fragment of each by name; all
    clients, in every language, compute the same. Raises BadValue for another ``count``."""
    arrays = {name: to_array(value, f'"{name}"') for name, value in items_of(params, "params")}
    _check_embeddings(arrays, embeddings)
    tensors = (
        (to_bytes(name, "name"), array.nbytes, name in embeddings) for name, array in arrays.items()
    )
    return dict(zip(arrays, balance(tensors, whole(count, "count"))))


class _Part:
    """A fragment as a learner has it. Only the training thread changes it."""

    def __init__(self, name: str, names: Sequence[str], offset: int) -> None:
        self.name = name
        self.names = list(names)
        #: After which inner steps of each period it is due, if nothing else has an influence on that.
        self.offset = offset
        #: The inner step after which it is due next.
        self.due = 0
        #: What was received last, and of which version.
        self.version = 0
        self.begin: Dict[str, Array] = {}
        #: Inner steps and tokens since, and the time.
        self.steps = 0
        self.tokens = 0
        self.received_at: Optional[float] = None
        #: The wait for its round to begin, until that is known to have happened, and whether it has.
        self.watch: Optional[Job[None]] = None
        self.has_begun = False
        #: The exchange that is under way, the inner step after which it began, and its result until it is mixed in.
        self.exchange: Optional[Job[PulledFragment]] = None
        self.sent_at = 0
        self.arrived: Optional[PulledFragment] = None
        self.worker: Optional[Worker] = None

    def receive(self, pulled: PulledFragment) -> None:
        """Begins anew from a version of the fragment."""
        self.version = pulled.version
        self.begin = dict(pulled.params)
        self.steps = self.tokens = 0
        self.received_at = time.monotonic()
        self.arrived = None
        self.has_begun = False

    def put_off(self, step: int, period: int) -> None:
        """Makes it due a number of periods later, after the given step."""
        while self.due <= step:
            self.due += period

    @property
    def step_time(self) -> Optional[float]:
        """Seconds that an inner step has taken since the fragment was received; None if that was in another process."""
        if self.received_at is None:
            return None
        return (time.monotonic() - self.received_at) / self.steps


class Learner:
    """Trains the parameters of a ``diloco`` job with an optimizer of its own, on its own clock.

    ``params`` has the first values of all parameters, arrays of floats by name. The first learner gives them to the job;
    every other one, and one that is started again, adopts the job's values, which are then in :attr:`params`. Call
    :meth:`step` after each step of the inner optimizer, and go on with the arrays that it returns.

    The model is divided into fragments. ``fragments`` is their number, the arrays then being divided evenly with those
    named in ``embeddings`` apart, or the fragment of each array by name; by default as the job is divided, or into
    ``sync_every`` fragments. Of P fragments number i, from 0, is due first after inner step ⌊(i+1)·H/P⌋, with H
    ``sync_every``, and then each time H steps after it was sent: so one is sent about every H/P steps. It is also due as
    soon as another learner has contributed to its round: so learners of unequal speed, and those that were started at
    another time, take part in the same rounds.

    What has changed in a fragment that is due, what was received less what is there now, is contributed to the
    fragment's round by a thread of its own, which then waits for the result. From ``delay`` inner steps later on, the
    first call of :meth:`step` that finds the result there mixes it in: ``alpha`` · own + (1 − ``alpha``) · received,
    rounded in the arrays' type after each operation. Until then training goes on; :meth:`step` never waits for anybody,
    also while no host or broker can be reached. A fragment whose result has not come is not sent again. Steps and tokens
    of a fragment are counted from when it was received.

    ``tokens`` is how many tokens or examples an inner step takes, or a function that returns it after each.
    ``encoding`` is how changes of float32 are sent; a fragment with arrays of other types is sent as it is. With
    ``error_feedback`` what rounding to "int8" or "e3m0" leaves out is added to the next contribution. ``outer`` is the
    configuration of the parameters with the outer rule, by default Nesterov's momentum, 0.9, at a rate of 0.7. The
    quorum, grace and weights of rounds are settings of the job; ``quorum`` is only compared with them. ``timeout``, in
    seconds, is that of each call to the server while the learner is made, and how long a call in the background may take
    before it is made again.

    Raises BadValue unless the job is of ``pserver up --sync diloco``, and for another quorum, division, or other arrays
    than the job has.
    """

    def __init__(
        self,
        ps: Client,
        params: Mapping[str, Any],
        *,
        fragments: Optional[Division] = None,
        embeddings: Collection[str] = (),
        quorum: Optional[int] = None,
        sync_every: int = 24,
        tokens: Union[int, Callable[[], int]] = 1,
        encoding: Optional[Encoding] = "bfloat16",
        error_feedback: bool = True,
        delay: int = 2,
        alpha: float = 0.0,
        outer: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> None:
        arrays = _floats_of(params)
        _check_embeddings(arrays, embeddings)
        encoding_number(encoding)
        if not 0 <= to_number(alpha) <= 1:
            raise unexpected(errors.BadValue, "alpha", "0 to 1", shown(alpha))
        self._ps = ps
        self._period = _from_one(sync_every, "sync_every")
        self._delay = _from_one(delay, "delay")
        self._alpha = float(alpha)
        self._tokens = tokens
        self._encoding = encoding
        self._error_feedback = error_feedback
        self._timeout = timeout
        self._forms = {name: (array.dtype, array.shape) for name, array in arrays.items()}
        self._closed = threading.Event()
        self._obstacles: Dict[str, Error] = {}
        self._steps = 0
        _check_rounds(ps, quorum)
        division = self._join(arrays, fragments, embeddings, outer)
        self._parts = _parts_of(division, self._period)
        for part in self._parts:
            part.receive(ps.pull_fragment(part.name, timeout=timeout))
            part.due = part.offset
            part.put_off(0, self._period)
        ps.enter_rounds(timeout=timeout)
        for part in self._parts:
            self._watch(part)

    def __enter__(self) -> Learner:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Closes the learner. After an exception, rounds wait for this trainer until its client is closed."""
        if error is None:
            self.close()
        else:
            self._end()

    @property
    def params(self) -> Dict[str, Array]:
        """The values of all parameters as they were received last, in new arrays."""
        return {name: array.copy() for part in self._parts for name, array in part.begin.items()}

    @property
    def steps(self) -> int:
        """Inner steps so far."""
        return self._steps

    @property
    def versions(self) -> Dict[str, int]:
        """The version of each fragment that was received last."""
        return {part.name: part.version for part in self._parts}

    @property
    def obstacle(self) -> Optional[Error]:
        """Why the last attempt to exchange a fragment has failed, which is made again; None if no exchange under way
        has failed."""
        return next(iter(list(self._obstacles.values())), None)

    def step(self, params: Mapping[str, Any]) -> Dict[str, Any]:
        """Counts an inner step, after which the parameters are ``params``; returns those to go on with: the given arrays
        but for new ones of the fragments whose results have come.

        Sends the fragments that are due. The given arrays may be changed after the call. Never waits. Raises BadValue,
        BadDtype or BadShape for other arrays than the learner was made with, and the error of an exchange in the
        background that making it again cannot mend; the fragment is sent again when it is due.
        """
        arrays = self._arrays_of(params)
        tokens = self._tokens() if callable(self._tokens) else self._tokens
        self._steps += 1
        for part in self._parts:
            part.steps += 1
            part.tokens += tokens
        self._collect()
        given: Dict[str, Any] = dict(params)
        for part in self._parts:
            if part.arrived is not None and self._steps >= part.sent_at + self._delay:
                part.receive(part.arrived)
                self._watch(part)
                mixed = {name: self._mixed(arrays[name], part.begin[name]) for name in part.names}
                arrays.update(mixed)
                given.update(mixed)
        for part in self._parts:
            if part.steps > 0 and (part.has_begun or self._steps >= part.due):
                self._send(part, arrays)
            part.put_off(self._steps, self._period)
        return given

    def finish(
        self, params: Mapping[str, Any], *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Contributes what is left of each fragment, waits for all results, and returns the job's values. For the end of
        the training. Raises Timeout if they have not come within ``timeout`` seconds, 600 by default.
        """
        arrays = self._arrays_of(params)
        deadline = time.monotonic() + (600.0 if timeout is None else timeout)
        self._await_all(deadline)
        for part in self._parts:
            if part.arrived is not None:
                part.receive(part.arrived)
            elif part.steps > 0:
                self._send(part, arrays)
        self._await_all(deadline)
        for part in self._parts:
            if part.arrived is not None:
                part.receive(part.arrived)
        return self.params

    def state_dict(self) -> Dict[str, Any]:
        """Returns the learner's position, plain numbers: save them together with the parameters and the state of the
        inner optimizer."""
        return {
            "steps": self._steps,
            "fragments": {
                part.name: {"version": part.version, "steps": part.steps, "tokens": part.tokens}
                for part in self._parts
            },
        }

    def load_state_dict(
        self, state: Mapping[str, Any], params: Mapping[str, Any]
    ) -> Dict[str, Any]:
        """Goes on from a saved position, with the parameters that were saved with it; returns those to go on with.

        A fragment keeps its saved values and counts if the job still has the version that these were learned from; of
        any other the job's present values are adopted. For a learner that has made no step yet. Raises BadValue for the
        state of another division.
        """
        arrays = self._arrays_of(params)
        saved: Mapping[str, Any] = state["fragments"]
        if set(saved) != set(self.versions) or self._steps > 0:
            expected = f"before the first step, the state of a learner of {sorted(self.versions)}"
            raise unexpected(errors.BadValue, "load_state_dict", expected, str(sorted(saved)))
        self._steps = int(state["steps"])
        kept: Dict[str, Any] = {}
        for part in self._parts:
            position = saved[part.name]
            if position["version"] == part.version:
                part.steps, part.tokens = int(position["steps"]), int(position["tokens"])
                part.received_at = None
                kept.update({name: arrays[name] for name in part.names})
            part.sent_at = self._steps
            part.put_off(self._steps, self._period)
        return {**self.params, **kept}

    def close(self) -> None:
        """Ends the exchanges that are under way, each of which counts once or not at all, and leaves the rounds, so that
        nobody waits for this trainer. May be called again."""
        if not self._closed.is_set():
            self._end()
            self._ps.exit_steps(timeout=self._timeout)

    def _end(self) -> None:
        """Ends the threads, and the calls that they make."""
        self._closed.set()
        for part in self._parts:
            if part.worker is not None:
                for job in (part.exchange, part.watch):
                    if job is not None:
                        part.worker.cancel(job)
                part.worker.end()
            part.worker = part.exchange = part.watch = None

    def _join(
        self,
        arrays: Mapping[str, Array],
        fragments: Optional[Division],
        embeddings: Collection[str],
        outer: Optional[Mapping[str, Any]],
    ) -> Dict[str, str]:
        """Initializes the job with these values unless another learner does; returns the fragment of each parameter."""
        wanted = fragments
        if wanted is None or isinstance(wanted, int):
            count = self._period if wanted is None else wanted
            wanted = balanced_fragments(arrays, count, embeddings=embeddings)
        _check_division(wanted, arrays)
        if self._ps.begin_init(timeout=self._timeout):
            self._initialize(arrays, wanted, embeddings, OUTER if outer is None else outer)
            return dict(wanted)
        held = _divided(self._ps.list_params(timeout=self._timeout))
        _check_held(self._ps.job, self._forms, held)
        found = {name: str(info.config["fragment"]) for name, info in held.items()}
        if fragments is not None and found != dict(wanted):
            raise unexpected(
                errors.BadValue, "fragments", f"those of the job, {found}", f"{dict(wanted)}"
            )
        return found

    def _initialize(
        self,
        arrays: Mapping[str, Array],
        division: Mapping[str, str],
        embeddings: Collection[str],
        outer: Mapping[str, Any],
    ) -> None:
        """Gives the job its first values. After an error another learner can be selected."""

        def config(name: str) -> Any:
            own: Dict[str, Any] = {"fragment": division[name]}
            if name in embeddings:
                own["merge"] = "mean"
            return with_keywords(outer, own)

        try:
            self._ps.init_params(arrays, config, timeout=self._timeout)
            self._ps.finish_init(timeout=self._timeout)
        except BaseException:
            try:
                self._ps.abort_init(timeout=_ABORT_TIMEOUT)
            except Error as error:
                warnings.warn(
                    f"Learner: another trainer can initialize job {self._ps.job!r} only after this client is closed, "
                    f"because the initialization could not be given up: {error}",
                    RuntimeWarning,
                    stacklevel=4,
                )
            raise

    def _arrays_of(self, params: Mapping[str, Any]) -> Dict[str, Array]:
        arrays = {name: to_array(value, f'"{name}"') for name, value in items_of(params, "params")}
        _check_forms(self._forms, arrays)
        return arrays

    def _send(self, part: _Part, arrays: Mapping[str, Array]) -> None:
        """Has the change of a fragment contributed, unless an exchange of it is under way."""
        if part.exchange is not None or part.arrived is not None or self._closed.is_set():
            return
        changes = {name: part.begin[name] - arrays[name] for name in part.names}
        are_floats = all(change.dtype == np.float32 for change in changes.values())
        contribution = {
            "base": part.version,
            "steps": part.steps,
            "tokens": part.tokens,
            "step_time": part.step_time,
            "encoding": self._encoding if are_floats else None,
        }
        name, worker = part.name, self._worker_of(part)
        if part.watch is not None:
            worker.cancel(part.watch)
            part.watch = None
        part.has_begun = False
        part.exchange = Job(lambda: self._exchange(name, changes, contribution), lambda: None)
        part.sent_at = self._steps
        part.due = self._steps + self._period
        worker.post(part.exchange)

    def _worker_of(self, part: _Part) -> Worker:
        """The thread of a fragment, which makes one call after the other."""
        if part.worker is None:
            part.worker = Worker(library(), f"pserver-diloco-{part.name}")
        return part.worker

    def _watch(self, part: _Part) -> None:
        """Has the fragment's thread wait until the next round has begun, to which others have then contributed."""
        name, version = part.name, part.version
        part.watch = Job(lambda: self._await_round(name, version), lambda: None)
        self._worker_of(part).post(part.watch)

    def _await_round(self, name: str, base: int) -> None:
        """Returns when the round after a version has begun, or has closed. On the thread of the fragment."""
        while True:
            try:
                self._ps.await_round(name, base, timeout=self._timeout)
                return
            except Error as error:
                if self._closed.is_set() or not _can_pass(error):
                    raise
                # While nobody contributes, the wait just goes on.
                if not isinstance(error, errors.Timeout):
                    self._closed.wait(_PAUSE)

    def _exchange(
        self, name: str, changes: Mapping[str, Array], contribution: Mapping[str, Any]
    ) -> PulledFragment:
        """Contributes to a fragment, and returns its values once the contribution's round has closed. On the thread of the
        fragment, as often as it takes: from each version only one contribution counts."""
        feeds_back = self._error_feedback
        patience = 1
        while True:
            try:
                pulled = self._attempt(name, changes, contribution, feeds_back, patience)
            except Error as error:
                if self._closed.is_set() or not _can_pass(error):
                    raise
                self._obstacles[name] = error
            else:
                self._obstacles.pop(name, None)
                return pulled
            # What rounding has left out of the first attempt must not be added to the same change again.
            feeds_back = False
            # Where a round only waits for its quorum, the contribution is sent again ever more rarely.
            patience *= 2
            self._closed.wait(_PAUSE)

    def _attempt(
        self,
        name: str,
        changes: Mapping[str, Array],
        contribution: Mapping[str, Any],
        feeds_back: bool,
        patience: int,
    ) -> PulledFragment:
        """Contributes, and asks for the result so many times. The contribution may be lost meanwhile, if the journal of its
        shard is replaced."""
        base: int = contribution["base"]
        try:
            counted = self._ps.contribute(
                name, changes, error_feedback=feeds_back, timeout=self._timeout, **contribution
            )
        except errors.BadValue:
            # A shard that has fallen back does not know the version: what the job has now is adopted.
            present = self._ps.pull_fragment(name, timeout=self._timeout)
            if present.version >= base:
                raise
            return present
        wanted = base + 1 if counted is None else counted
        while True:
            patience -= 1
            try:
                return self._ps.pull_fragment(name, min_version=wanted, timeout=self._timeout)
            except errors.Timeout as error:
                if patience == 0 or self._closed.is_set():
                    raise
                self._obstacles[name] = error

    def _collect(self) -> None:
        """Takes the results that have come; raises the error of an exchange or a wait that has failed."""
        failure: Optional[Error] = None
        for part in self._parts:
            exchange, watch = part.exchange, part.watch
            try:
                if exchange is not None and exchange.is_done:
                    part.exchange = None
                    part.arrived = exchange.result()
                elif watch is not None and watch.is_done:
                    part.watch = None
                    watch.result()
                    part.has_begun = True
            except Error as error:
                self._obstacles.pop(part.name, None)
                failure = failure or error
        if failure is not None:
            raise failure

    def _mixed(self, own: Array, received: Array) -> Array:
        if self._alpha == 0:
            return received.copy()
        kind = own.dtype.type
        return np.asarray(own * kind(self._alpha) + received * kind(1 - self._alpha), own.dtype)

    def _await_all(self, deadline: float) -> None:
        """Waits for the exchanges that are under way, and takes their results."""
        for part in self._parts:
            while part.exchange is not None and not part.exchange.is_done:
                if time.monotonic() >= deadline:
                    why = "" if self.obstacle is None else f"; last: {self.obstacle}"
                    raise errors.Timeout(f"finish: fragment {part.name!r} has not come{why}")
                self._closed.wait(0.01)
        self._collect()


def _can_pass(error: Error) -> bool:
    """Whether the same exchange can succeed later. What became of its contribution does not matter: it counts once."""
    return error.retryable or isinstance(error, (errors.OutcomeUnknown, errors.JournalReplaced))


def _from_one(number: Any, what: str) -> int:
    value = whole(number, what)
    if value < 1:
        raise unexpected(errors.BadValue, what, "1 or more", shown(number))
    return value


def _floats_of(params: Mapping[str, Any]) -> Dict[str, Array]:
    """Returns the arrays of a learner. BAD_DTYPE for one whose elements are no floats to compute with."""
    arrays = {name: to_array(value, f'"{name}"') for name, value in items_of(params, "params")}
    if not arrays:
        raise errors.Empty("params: expected at least one array; received none")
    for name, array in arrays.items():
        if array.dtype.kind != "f" and (ml_dtypes is None or array.dtype != bfloat16):
            raise bad_dtype(f'"{name}"', "floats", name_of(array.dtype))
    return arrays


def _check_embeddings(arrays: Mapping[str, Array], embeddings: Collection[str]) -> None:
    unknown = [] if isinstance(embeddings, str) else [n for n in embeddings if n not in arrays]
    if isinstance(embeddings, str) or unknown:
        received = shown(embeddings if isinstance(embeddings, str) else unknown)
        raise unexpected(errors.BadValue, "embeddings", "a list of names in params", received)


def _check_division(division: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    if not isinstance(division, Mapping) or set(division) != set(arrays):
        expected = "a number, or the fragment of each array by its name"
        raise unexpected(errors.BadValue, "fragments", expected, shown(division))


def _check_rounds(ps: Client, quorum: Optional[int]) -> None:
    kind = ps.synchronization
    if kind.mode != "diloco":
        raise errors.BadValue(
            "Learner: expected a job whose trainers contribute to rounds of fragments, as of `pserver up --sync diloco`; "
            f"received job {ps.job!r}, which is {kind.mode}",
            {"expected": "diloco", "received": kind.mode},
        )
    if quorum is not None and quorum != kind.quorum:
        raise unexpected(errors.BadValue, "quorum", f"the job's, {kind.quorum}", shown(quorum))


def _divided(infos: Sequence[ParameterInfo]) -> Dict[str, ParameterInfo]:
    return {info.name: info for info in infos if "fragment" in info.config}


def _check_held(
    job: str, forms: Mapping[str, Tuple[Any, Any]], held: Mapping[str, ParameterInfo]
) -> None:
    """Raises the error that names every array which the job has not, or has in another form."""
    wrong = [f"{name!r} is not in it" for name in forms if name not in held]
    wrong += [f"it also has {name!r}" for name in held if name not in forms]
    wrong += [
        f"{name!r} is {name_of(held[name].dtype)} of shape {held[name].shape}"
        for name, (dtype, shape) in forms.items()
        if name in held and (held[name].dtype, held[name].shape) != (dtype, shape)
    ]
    if wrong:
        raise errors.BadValue(
            f"Learner: expected the arrays that fragments of job {job!r} have; {'; '.join(wrong)}"
        )


def _check_forms(forms: Mapping[str, Tuple[Any, Any]], arrays: Mapping[str, Array]) -> None:
    if forms.keys() != arrays.keys():
        differing = sorted(forms.keys() ^ arrays.keys())
        raise unexpected(
            errors.BadValue,
            "params",
            "the names that the learner was made with",
            f"others: {shown(differing)}",
        )
    for name, (dtype, shape) in forms.items():
        array = arrays[name]
        if array.dtype != dtype:
            raise bad_dtype(f'"{name}"', name_of(dtype), name_of(array.dtype))
        if not fits(array, dtype, shape):
            raise errors.BadShape(
                f'"{name}": expected shape {list(shape)}; received {list(array.shape)}',
                {"parameter": name, "expected": list(shape), "received": list(array.shape)},
            )


def _parts_of(division: Mapping[str, str], period: int) -> List[_Part]:
    """Orders the fragments, "f2" before "f10", and gives each its place in the period."""
    members: Dict[str, List[str]] = {}
    for name, fragment in division.items():
        members.setdefault(fragment, []).append(name)
    names = sorted(members, key=lambda name: (len(name), name))
    return [
        _Part(name, members[name], (i + 1) * period // len(names) % period)
        for i, name in enumerate(names)
    ]
