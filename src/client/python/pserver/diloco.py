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
from ._exchange import Contribution, Exchange
from ._rounds import balance, whole
from .client import Client
from .config import with_keywords
from .records import ParameterInfo, PulledFragment

__all__ = ["Learner", "balanced_fragments"]

#: The outer rule of DiLoCo (Douillard et al., 2023).
OUTER: Final[Mapping[str, Any]] = {
    "optimizer": {"name": "nesterov", "momentum": 0.9},
    "learningRate": 0.7,
}

#: Fragments of a model, as published, unless it is exchanged more often than in so many steps.
_FRAGMENTS: Final = 24

#: Seconds in which an initialization that has failed is given up.
_ABORT_TIMEOUT: Final = 10.0

#: Arrays that an error about the division names.
_NAMED_MAX: Final = 8

#: Seconds for which all results that are under way are waited for.
_WAIT: Final = 600.0

#: The fragment of each parameter; or how many there shall be.
Division = Union[int, Mapping[str, str]]

#: The outer rule of all parameters, or a function that returns it for a name.
Outer = Union[Mapping[str, Any], Callable[[str], Mapping[str, Any]], None]

#: Returns the present values of arrays by name.
Read = Callable[[Sequence[str]], Mapping[str, Array]]


def balanced_fragments(
    params: Mapping[str, Any], count: int, *, embeddings: Collection[str] = ()
) -> Dict[str, str]:
    """Divides whole arrays among at most ``count`` fragments of nearly the same size, ``"f0"``, ``"f1"`` and so on;
    those named in ``embeddings`` go into one more, ``"embeddings"``. Returns the fragment of each by name; all
    clients, in every language, compute the same. Raises BadValue for another ``count``."""
    arrays = {name: to_array(value, f'"{name}"') for name, value in items_of(params, "params")}
    _check_names("embeddings", embeddings, arrays)
    tensors = (
        (to_bytes(name, "name"), array.nbytes, name in embeddings) for name, array in arrays.items()
    )
    return dict(zip(arrays, balance(tensors, whole(count, "count"))))


class _Part:
    """A fragment as a learner has it. Only the training thread changes it."""

    def __init__(self, names: Sequence[str], offset: int, exchange: Exchange) -> None:
        self.names = list(names)
        #: After which inner steps of each period it is sent.
        self.offset = offset
        #: What was received last, and of which version.
        self.version = 0
        self.begin: Dict[str, Array] = {}
        #: Inner steps and tokens since, and the time.
        self.steps = 0
        self.tokens = 0
        self.received_at: Optional[float] = None
        #: How it is exchanged, the inner step after which it was sent, and the result until it is mixed in.
        self.exchange = exchange
        self.sent_at = 0
        self.arrived: Optional[PulledFragment] = None

    def receive(self, version: int, values: Mapping[str, Array]) -> None:
        """Begins anew from a version of the fragment."""
        self.version = version
        self.begin = dict(values)
        self.steps = self.tokens = 0
        self.received_at = time.monotonic()
        self.arrived = None

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
    :meth:`step` after each step of the inner optimizer, and go on with the arrays that it returns. ``others`` has arrays
    of any type that the job holds besides, which are not exchanged; :attr:`others` has the job's.

    The model is divided into fragments. ``fragments`` is their number, the arrays then being divided evenly with those
    named in ``embeddings`` apart, if it is above 1; or the fragment of each array by name. By default it is as the job is
    divided, or 24 fragments, ``sync_every`` if that is less. Of P fragments number i, from 0, is due after the inner
    steps s with s ≡ ⌊(i+1)·H/P⌋ modulo H, ``sync_every``: so each is due once in H steps, and one about every H/P steps.

    What has changed in a fragment that is due, what was received less what is there now, is contributed to the
    fragment's round by a thread of its own, which then waits for the result. From ``delay`` inner steps later on, the
    first call of :meth:`step` that finds the result there mixes it in: ``alpha`` · own + (1 − ``alpha``) · received,
    rounded in the arrays' type after each operation. Until then training goes on; :meth:`step` never waits for anybody,
    also while no host or broker can be reached. With a ``delay`` of 0 it waits instead, up to ``timeout`` seconds, 600 by
    default, for all results that are under way: with one fragment, and all learners as quorum of the job, that is DiLoCo
    with a barrier. A fragment whose result has not come is not sent again. Steps and tokens of a fragment are counted
    from when it was received.

    ``tokens`` is how many tokens or examples an inner step takes, or a function that returns it after each.
    ``encoding`` is how changes of float32 are sent, ``pull_encoding`` how values of float32 are read: give all learners
    the same. Arrays of other types, and those that ``exact`` names, are sent and read as they are; it is a list, or a
    function that returns it when a fragment is due. With ``error_feedback`` what rounding to "int8" or "e3m0" leaves out
    is added to the next contribution.

    ``outer`` is the configuration of the parameters with the outer rule, or a function that returns it for a name; by
    default Nesterov's momentum, 0.9, at a rate of 0.7. Embeddings are merged by the mean. The quorum, grace and weights
    of rounds are settings of the job; ``quorum``, and ``grace`` in seconds, are only compared with them. ``timeout`` is
    also that of each call to the server while the learner is made, and how long a call in the background may take before
    it is made again.

    Raises BadValue unless the job is of ``pserver up --sync diloco``, and for another quorum, grace, division, or other
    arrays than the job has.
    """

    def __init__(
        self,
        ps: Client,
        params: Mapping[str, Any],
        *,
        fragments: Optional[Division] = None,
        embeddings: Collection[str] = (),
        quorum: Optional[int] = None,
        grace: Optional[float] = None,
        sync_every: int = 24,
        tokens: Union[int, Callable[[], int]] = 1,
        encoding: Optional[Encoding] = "bfloat16",
        error_feedback: bool = True,
        pull_encoding: Optional[Encoding] = None,
        exact: Union[Collection[str], Callable[[], Collection[str]]] = (),
        delay: int = 2,
        alpha: float = 0.0,
        outer: Outer = None,
        others: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> None:
        arrays = _floats_of(params)
        given = items_of({} if others is None else others, "others")
        besides = {name: to_array(each, f'"{name}"') for name, each in given}
        _check_names("embeddings", embeddings, arrays)
        if not callable(exact):
            _check_names("exact", exact, arrays)
        for each in encoding, pull_encoding:
            encoding_number(each)
        if not 0 <= to_number(alpha) <= 1:
            raise unexpected(errors.BadValue, "alpha", "0 to 1", shown(alpha))
        self._ps = ps
        self._period = _from_one(sync_every, "sync_every")
        self._delay = whole(delay, "delay")
        self._alpha = float(alpha)
        self._tokens = tokens
        self._encoding = encoding
        self._error_feedback = error_feedback
        self._pull_encoding = pull_encoding
        self._exact = exact
        self._timeout = timeout
        self._forms = _forms_of(arrays)
        self._is_closed = False
        self._arrival = threading.Event()
        self._steps = 0
        self._received = 0
        _check_rounds(ps, quorum, grace)
        division = self._join(arrays, besides, fragments, embeddings, outer)
        #: The job's values of what nobody exchanges, as they were when this learner was made.
        self.others: Mapping[str, Array] = {}
        if besides:
            self.others = dict(ps.get_params(list(besides), timeout=timeout))
        self._parts = self._parts_of(division)
        self._pull_all()
        ps.enter_rounds(timeout=timeout)

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
        return {
            name: array.copy()
            for part in self._parts.values()
            for name, array in part.begin.items()
        }

    @property
    def steps(self) -> int:
        """Inner steps so far."""
        return self._steps

    @property
    def received(self) -> int:
        """Results of rounds that were received so far."""
        return self._received

    @property
    def versions(self) -> Dict[str, int]:
        """The version of each fragment that was received last."""
        return {name: part.version for name, part in self._parts.items()}

    @property
    def obstacle(self) -> Optional[Error]:
        """Why the last attempt to exchange a fragment has failed, which is made again; None if no exchange under way
        has failed."""
        found = (part.exchange.obstacle for part in self._parts.values())
        return next((each for each in found if each is not None), None)

    def step(self, params: Mapping[str, Any]) -> Dict[str, Any]:
        """Counts an inner step, after which the parameters are ``params``; returns those to go on with: the given arrays
        but for new ones of the fragments whose results have come.

        Sends the fragments that are due. The given arrays may be changed after the call. Never waits, unless ``delay`` is
        0. Raises BadValue, BadDtype or BadShape for other arrays than the learner was made with, and the error of an
        exchange in the background that making it again cannot mend; the fragment is sent again when it is due. With a
        ``delay`` of 0 also Timeout: the next step goes on to wait for what was sent.
        """
        arrays = self._arrays_of(params)
        adopted = self._advance(_reading(arrays))
        return {**params, **{name: value.copy() for name, value in adopted.items()}}

    def finish(
        self, params: Mapping[str, Any], *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Contributes what is left of each fragment, waits for all results, and returns the job's values. For the end of
        the training. Raises Timeout if they have not come within ``timeout`` seconds, 600 by default.
        """
        self._finish(_reading(self._arrays_of(params)), timeout)
        return self.params

    def state_dict(self) -> Dict[str, Any]:
        """Returns the learner's position, plain numbers: save them together with the parameters and the state of the
        inner optimizer."""
        return {
            "steps": self._steps,
            "fragments": {
                name: {"version": part.version, "steps": part.steps, "tokens": part.tokens}
                for name, part in self._parts.items()
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
        return {**self.params, **{name: arrays[name] for name in self._restore(state)}}

    def close(self) -> None:
        """Ends the exchanges that are under way, each of which counts once or not at all, and leaves the rounds, so that
        nobody waits for this trainer. May be called again."""
        if not self._is_closed:
            self._end()
            self._ps.exit_steps(timeout=self._timeout)

    def _end(self) -> None:
        """Ends the threads, and the calls that they make."""
        self._is_closed = True
        for part in self._parts.values():
            part.exchange.end()

    # What follows is in terms of functions that read values: pserver.torch reads only those that it has to.

    def _advance(self, read: Read) -> Dict[str, Array]:
        """Counts an inner step; returns new values of the fragments whose results have come, not to be changed. Reads the
        values of those that are due, and of those that are mixed with their results."""
        tokens = self._tokens() if callable(self._tokens) else self._tokens
        self._steps += 1
        for part in self._parts.values():
            part.steps += 1
            part.tokens += tokens
        self._collect()
        adopted = {} if self._delay == 0 else self._adopt(read)
        for part in self._parts.values():
            if self._steps % self._period == part.offset:
                self._send(part, read)
        if self._delay > 0:
            return adopted
        # Nothing is received before all are there: after an error the caller's values are those that it had.
        self._await_all("step", self._timeout)
        return self._adopt(read)

    def _finish(self, read: Read, timeout: Optional[float]) -> None:
        """Contributes what is left of each fragment, and receives all results."""
        deadline = time.monotonic() + (_WAIT if timeout is None else timeout)
        self._await_all("finish", deadline - time.monotonic())
        for part in self._parts.values():
            self._send(part, read)
        self._await_all("finish", deadline - time.monotonic())
        # Not before, as in a step that waits.
        for part in self._parts.values():
            self._receive(part)

    def _restore(self, state: Mapping[str, Any]) -> List[str]:
        """Goes on from a saved position; returns the names of the arrays whose saved values are to be kept."""
        saved: Mapping[str, Any] = state["fragments"]
        if set(saved) != set(self._parts) or self._steps > 0:
            expected = f"before the first step, the state of a learner of {sorted(self._parts)}"
            raise unexpected(errors.BadValue, "load_state_dict", expected, str(sorted(saved)))
        self._steps = int(state["steps"])
        kept: List[str] = []
        for name, part in self._parts.items():
            position = saved[name]
            if position["version"] == part.version:
                part.steps, part.tokens = int(position["steps"]), int(position["tokens"])
                part.received_at = None
                kept += part.names
            part.sent_at = self._steps
        return kept

    def _change_of(self, name: str, begin: Array, now: Array) -> Array:
        """Returns how an array has changed since it was received: what the learner contributes."""
        return np.asarray(begin - now, begin.dtype)

    def _as_kept(self, values: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns received values as the learner has them if it adopts them, in arrays that only this class has."""
        return values

    def _adopt(self, read: Read) -> Dict[str, Array]:
        """Mixes in the results that have come and whose delay is over."""
        ready = [
            part
            for part in self._parts.values()
            if part.arrived is not None and self._steps >= part.sent_at + self._delay
        ]
        adopted: Dict[str, Array] = {}
        for part in ready:
            own = read(part.names) if self._alpha > 0 else {}
            self._receive(part)
            for name, received in part.begin.items():
                adopted[name] = self._mixed(own[name], received) if own else received
        return adopted

    def _receive(self, part: _Part) -> bool:
        """Begins anew from the result that has come; returns whether there is one."""
        if part.arrived is None:
            return False
        part.receive(part.arrived.version, self._as_kept(part.arrived.params))
        self._received += 1
        return True

    def _mixed(self, own: Array, received: Array) -> Array:
        kind = own.dtype.type
        return np.asarray(own * kind(self._alpha) + received * kind(1 - self._alpha), own.dtype)

    def _send(self, part: _Part, read: Read) -> None:
        """Has the change of a fragment contributed, unless an exchange of it is under way or there is none."""
        is_busy = part.exchange.is_under_way or part.arrived is not None
        if is_busy or part.steps == 0 or self._is_closed:
            return
        now = read(part.names)
        changes = {name: self._change_of(name, part.begin[name], now[name]) for name in part.names}
        exact = self._exact_of(part.names)
        part.sent_at = self._steps
        part.exchange.begin(
            Contribution(
                changes=changes,
                base=part.version,
                steps=part.steps,
                tokens=part.tokens,
                step_time=part.step_time,
                # No change at all is exact in every encoding.
                sent_exactly=[each for each in exact if self._is_wide(each) or changes[each].any()],
                read_exactly=exact,
            )
        )

    def _is_wide(self, name: str) -> bool:
        """Whether an array is of a type that has no encodings."""
        return self._forms[name][0] != np.float32

    def _exact_of(self, names: Sequence[str]) -> List[str]:
        """Returns those of the arrays that are not encoded."""
        exact = self._exact() if callable(self._exact) else self._exact
        return [name for name in names if name in exact or self._is_wide(name)]

    def _collect(self) -> None:
        """Takes the results that have come; raises the error of an exchange that has failed."""
        failure: Optional[Error] = None
        for part in self._parts.values():
            if not part.exchange.is_done:
                continue
            try:
                part.arrived = part.exchange.take()
            except Error as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _await_all(self, what: str, timeout: Optional[float]) -> None:
        """Waits for the exchanges that are under way, and takes their results."""
        deadline = time.monotonic() + (_WAIT if timeout is None else timeout)
        while True:
            self._arrival.clear()
            missing = [
                name
                for name, part in self._parts.items()
                if part.exchange.is_under_way and not part.exchange.is_done
            ]
            left = deadline - time.monotonic()
            if not missing:
                break
            if left <= 0:
                why = "" if self.obstacle is None else f"; last: {self.obstacle}"
                raise errors.Timeout(
                    f"{what}: expected the results of {', '.join(missing)}; none has come{why}"
                )
            self._arrival.wait(left)
        self._collect()

    def _parts_of(self, division: Mapping[str, str]) -> Dict[str, _Part]:
        """Orders the fragments, "f2" before "f10", and gives each its place in the period."""
        members: Dict[str, List[str]] = {}
        for name, fragment in division.items():
            members.setdefault(fragment, []).append(name)
        fragments = sorted(members, key=lambda name: (len(name), name))
        return {
            fragment: _Part(
                members[fragment],
                (i + 1) * self._period // len(fragments) % self._period,
                Exchange(
                    self._ps,
                    fragment,
                    encoding=self._encoding,
                    error_feedback=self._error_feedback,
                    pull_encoding=self._pull_encoding,
                    timeout=self._timeout,
                    on_done=self._arrival.set,
                ),
            )
            for i, fragment in enumerate(fragments)
        }

    def _pull_all(self) -> None:
        """Receives all fragments: together, and then one by one those of which a round has closed meanwhile."""
        exact = self._exact_of(list(self._forms))
        encoded = [name for name in self._forms if name not in exact]
        before = self._ps.fragments(timeout=self._timeout).versions
        values: Dict[str, Array] = {}
        for names, encoding in (encoded, self._pull_encoding), (exact, None):
            if names:
                values.update(self._ps.get_params(names, encoding=encoding, timeout=self._timeout))
        after = self._ps.fragments(timeout=self._timeout).versions
        for fragment, part in self._parts.items():
            if fragment in after and before.get(fragment) == after[fragment]:
                version, params = after[fragment], {name: values[name] for name in part.names}
            else:
                pulled = self._ps.pull_fragment(
                    fragment,
                    encoding=self._pull_encoding,
                    exact=[name for name in part.names if name in exact],
                    timeout=self._timeout,
                )
                version, params = pulled.version, dict(pulled.params)
            part.receive(version, self._as_kept(params))

    def _join(
        self,
        arrays: Mapping[str, Array],
        others: Mapping[str, Array],
        fragments: Optional[Division],
        embeddings: Collection[str],
        outer: Outer,
    ) -> Dict[str, str]:
        """Initializes the job with these values unless another learner does; returns the fragment of each parameter."""
        wanted = fragments
        if wanted is None or isinstance(wanted, int):
            count = min(self._period, _FRAGMENTS) if wanted is None else wanted
            wanted = balanced_fragments(arrays, count, embeddings=() if count == 1 else embeddings)
        _check_division(wanted, arrays)
        if self._ps.begin_init(timeout=self._timeout):
            self._initialize(arrays, others, wanted, embeddings, OUTER if outer is None else outer)
            return dict(wanted)
        held = self._ps.list_params(timeout=self._timeout)
        divided = {info.name: info for info in held if "fragment" in info.config}
        plain = {info.name: info for info in held if info.name in others}
        _check_held(self._ps.job, self._forms, divided)
        _check_held(self._ps.job, _forms_of(others), plain)
        found = {name: str(info.config["fragment"]) for name, info in divided.items()}
        if fragments is not None:
            _check_same_division(wanted, found)
        return {name: found[name] for name in arrays}

    def _initialize(
        self,
        arrays: Mapping[str, Array],
        others: Mapping[str, Array],
        division: Mapping[str, str],
        embeddings: Collection[str],
        outer: Union[Mapping[str, Any], Callable[[str], Mapping[str, Any]]],
    ) -> None:
        """Gives the job its first values. After an error another learner can be selected."""

        def config(name: str) -> Any:
            if name in others:
                return {"optimizer": "none", "allowNonFinite": True}
            rule = with_keywords(outer(name) if callable(outer) else outer, {})
            if name in embeddings and isinstance(rule, Mapping):
                rule = {"merge": "mean", **rule}
            return with_keywords(rule, {"fragment": division[name]})

        try:
            self._ps.init_params({**arrays, **others}, config, timeout=self._timeout)
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


def _reading(arrays: Mapping[str, Array]) -> Read:
    return lambda names: {name: arrays[name] for name in names}


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


def _forms_of(arrays: Mapping[str, Array]) -> Dict[str, Tuple[Any, Tuple[int, ...]]]:
    return {name: (array.dtype, array.shape) for name, array in arrays.items()}


def _check_names(what: str, names: Collection[str], arrays: Mapping[str, Array]) -> None:
    unknown = [] if isinstance(names, str) else [each for each in names if each not in arrays]
    if isinstance(names, str) or unknown:
        received = shown(names if isinstance(names, str) else unknown)
        raise unexpected(errors.BadValue, what, "a list of names in params", received)


def _check_division(division: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    if not isinstance(division, Mapping) or set(division) != set(arrays):
        expected = "a number, or the fragment of each array by its name"
        raise unexpected(errors.BadValue, "fragments", expected, shown(division))


def _check_same_division(wanted: Mapping[str, str], found: Mapping[str, str]) -> None:
    wrong = [f"{name!r} in {found[name]!r}" for name in wanted if found[name] != wanted[name]]
    if wrong:
        received = f"another, which differs in {len(wrong)} of {len(wanted)} arrays"
        expected = f"that of the job, which has {', '.join(wrong[:_NAMED_MAX])}"
        raise unexpected(errors.BadValue, "fragments", expected, received)


def _check_rounds(ps: Client, quorum: Optional[int], grace: Optional[float]) -> None:
    kind = ps.synchronization
    if kind.mode != "diloco":
        raise errors.BadValue(
            "Learner: expected a job whose trainers contribute to rounds of fragments, as of `pserver up --sync diloco`; "
            f"received job {ps.job!r}, which is {kind.mode}",
            {"expected": "diloco", "received": kind.mode},
        )
    if quorum is not None and quorum != kind.quorum:
        raise unexpected(errors.BadValue, "quorum", f"the job's, {kind.quorum}", shown(quorum))
    if grace is not None and to_number(grace) != kind.grace:
        raise unexpected(
            errors.BadValue, "grace", f"the job's longest, {kind.grace} s", f"{shown(grace)} s"
        )


def _check_held(
    job: str, forms: Mapping[str, Tuple[Any, Tuple[int, ...]]], held: Mapping[str, ParameterInfo]
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


def _check_forms(
    forms: Mapping[str, Tuple[Any, Tuple[int, ...]]], arrays: Mapping[str, Array]
) -> None:
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
