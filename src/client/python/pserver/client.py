"""The client: one trainer of a job."""

from __future__ import annotations

import os
import warnings
from ctypes import byref, c_bool, sizeof
from typing import (
    Any,
    Callable,
    Collection,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from . import _calls, _rounds, errors
from ._arguments import (
    Encoding,
    KnownForms,
    NoteValue,
    Out,
    encoding_number,
    factor_of,
    first_value,
    items_of,
    known_of,
    names_of,
    targets_of,
    to_bytes,
    to_indices,
    to_ms,
    to_note_entries,
    to_numbers,
)
from ._arrays import Array, from_number, is_number, to_array
from ._error import Error
from ._link import Link, Path, Settings, Url
from ._native.declarations import GradOptions
from ._native.library import Connection
from ._threads import run
from .config import ConfigInput, to_config
from .records import (
    ClientStats,
    Fallback,
    Fragments,
    GradResult,
    JobStatus,
    ParameterInfo,
    Params,
    PulledFragment,
    Rows,
    Sampling,
    SavedModel,
    Synchronization,
)

Result = TypeVar("Result")


class Client:
    """A trainer of a job, made by :func:`pserver.connect`.

    Every call takes ``timeout`` in seconds: that of the whole call or, if None, the time without progress
    that the client was made with. It raises a subclass of :class:`pserver.Error`. Calls may be made from
    any thread, several at once, and let other threads run while they wait; an exception of a signal
    handler, such as KeyboardInterrupt, ends the main thread's current call. Each block that is then being updated is updated once or not at all. Arrays given to a call must not
    change until it ends.

    A forked process gets a connection of its own at its first call, under an id of its own that begins with
    this one's. So does a client that was unpickled.
    """

    def __init__(self, settings: Settings) -> None:
        self._link = Link(settings)
        self._known = KnownForms(lambda timeout_ms: self._call(_calls.list_params, timeout_ms))
        #: The parameters of each fragment, as they were listed last.
        self._fragments: Mapping[str, Tuple[str, ...]] = {}

    def __repr__(self) -> str:
        state = " closed" if self._link.is_closed else ""
        return f"<pserver.Client job={self.job!r} trainer={self.trainer!r}{state}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        link = getattr(self, "_link", None)
        if link is not None and link.is_open:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            self._discard()

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Client:
        """Returns this client: copies of what uses it are trainers of the same connection."""
        return self

    def __reduce__(self) -> Tuple[Any, ...]:
        return _unpickle, (self._link.settings, self._link.is_closed)

    @property
    def job(self) -> str:
        """Name of the job."""
        return self._link.settings.job

    @property
    def trainer(self) -> str:
        """Id of this client."""
        return self._link.settings.trainer

    @property
    def session(self) -> int:
        """Number of the trainer's session. Connects if this process has not."""
        return int(self._call(_calls.describe).session)

    @property
    def synchronization(self) -> Synchronization:
        """How the trainers of the job keep step. Connects if this process has not."""
        return _calls.synchronization(self._call(_calls.describe))

    @property
    def steps_ended(self) -> int:
        """Steps that this trainer has ended, including those that closed before it entered."""
        return int(self._call(_calls.describe).steps_ended)

    def stats(self) -> ClientStats:
        """Returns what this client has done in this process since it joined, without a request to hosts.
        Connects if this process has not."""
        return self._call(_calls.stats)

    def open(self) -> None:
        """Connects unless this process has already; :func:`pserver.connect` and the first call do so, too.

        Raises what :func:`pserver.connect` raises; Closed after :meth:`close`.
        """
        run(self._link.open)

    def begin_init(self, wait: bool = True, *, timeout: Optional[float] = None) -> bool:
        """Asks to initialize the job.

        Returns True if this trainer is selected: it must call :meth:`init_params`, or :meth:`init_param` for
        every parameter, and then :meth:`finish_init`. Returns False if another trainer has initialized the job
        or, with ``wait=False``, is doing so. If the selected trainer dies, one that waits takes its place.
        Timeout names the selected trainer.
        """
        selected = c_bool()
        self._call(
            Connection.call, "pserver_begin_init", bool(wait), to_ms(timeout), byref(selected)
        )
        return selected.value

    def init_param(
        self,
        /,
        name: str,
        value: Any,
        config: Optional[ConfigInput] = None,
        *,
        timeout: Optional[float] = None,
        **settings: Any,
    ) -> None:
        """Declares a parameter and stores its first values.

        A parameter has at least one element; one of shape ``()`` is a single number. ``config`` or
        ``settings`` say how it is updated, for instance ``optimizer="adam", learning_rate=1e-3``. A call that
        has failed may be repeated with the same values. Raises NotSelected unless :meth:`begin_init` returned
        True; BadName, BadDtype, BadShape, BadConfig, NonFinite.
        """
        array = first_value(name, value)
        native_config = to_config(config, settings)
        self._call(_calls.init_param, to_bytes(name, "name"), array, native_config, to_ms(timeout))
        self._known.learn(name, array)

    def init_params(
        self,
        /,
        values: Mapping[str, Any],
        config: Union[ConfigInput, Callable[[str], Optional[ConfigInput]], None] = None,
        *,
        timeout: Optional[float] = None,
        **settings: Any,
    ) -> None:
        """Declares parameters by name and stores their first values, with far fewer messages than one call of
        :meth:`init_param` for each.

        ``config`` and ``settings`` apply to all parameters. If ``config`` is a function, it returns the
        configuration of a name, to which ``settings`` are added. All values are checked before anything is
        sent. A call that has failed may be repeated with the same values, in whole or in part. Raises Empty
        without values, and what :meth:`init_param` raises.
        """
        given = [
            (name, first_value(name, value)) for name, value in items_of(values, "init_params")
        ]
        same = None if callable(config) else to_config(config, settings)
        parameters = [
            (
                to_bytes(name, "name"),
                array,
                to_config(config(name), settings) if callable(config) else same,
            )
            for name, array in given
        ]
        self._call(_calls.init_params, parameters, to_ms(timeout))
        for name, array in given:
            self._known.learn(name, array)

    def finish_init(self, *, timeout: Optional[float] = None) -> None:
        """Ends the initialization: from now on the parameters can be read and updated.

        Raises Incomplete, naming blocks that are not stored; NoSpace if the broker cannot hold the job.
        """
        self._call(Connection.call, "pserver_finish_init", to_ms(timeout))

    def abort_init(self, *, timeout: Optional[float] = None) -> None:
        """Gives up the initialization for which this trainer is selected: another one that waits is selected, or
        this one if it asks again.

        What has been initialized meanwhile is dropped. Does nothing if the job is initialized. For a trainer that
        has failed to initialize the job and goes on; :meth:`close` does the same. Raises NotSelected unless
        :meth:`begin_init` returned True.
        """
        self._call(Connection.call, "pserver_abort_init", to_ms(timeout))

    def create_if_not_already_created(
        self,
        /,
        name: str,
        value: Any,
        config: Optional[ConfigInput] = None,
        *,
        timeout: Optional[float] = None,
        **settings: Any,
    ) -> Array:
        """Creates a parameter with this value, unless it exists; returns its value.

        If several trainers call it at once, one is selected and the others wait for it. A selected one whose
        call fails gives that up, for which the call may take 2 s longer, and another one is selected. Raises
        BadDtype or BadShape if it exists with another type or shape, BadShape also without elements.
        """
        array = first_value(name, value)
        native_config = to_config(config, settings)
        settled = self._call(
            _calls.create, to_bytes(name, "name"), array, native_config, to_ms(timeout)
        )
        self._known.learn(name, settled)
        return settled

    def send_grads(
        self,
        grads: Mapping[str, Any],
        *,
        learning_rate: Optional[float] = None,
        encoding: Optional[Encoding] = None,
        error_feedback: bool = True,
        stored_is_enough: bool = False,
        end_step: bool = True,
        timeout: Optional[float] = None,
    ) -> GradResult:
        """Makes one step of each parameter's optimizer with these gradients, given by parameter name.

        A gradient is of the whole parameter, or of some :class:`Rows` if the parameter is configured
        ``sparse``. ``learning_rate`` overrides that of every parameter in the call. With ``encoding`` float32
        elements are sent in fewer bytes. With ``stored_is_enough`` the call returns when the journal has
        stored everything; it does not report a block's update that is rejected later.

        What rounding to "int8" or "e3m0" leaves out of a gradient is added to the client's next gradient of
        these elements in one of the two, unless ``error_feedback`` is False. That takes as much memory as the
        parameter. It is kept from when the gradient is first sent, whatever becomes of it, and dropped when the
        parameter is initialized again, or the journal of any shard is replaced.

        In a ``sync`` job the gradients are added to those of the other trainers and applied when the step
        closes; the call waits until the previous step has closed. In a ``sync`` or ``ssp`` job the call ends
        the trainer's step, unless ``end_step`` is False.

        Everything is checked before anything is sent. Raises OutcomeUnknown at the deadline: each block's
        update was applied once or not at all. A trainer that has lost its place in the steps, because it was
        paused, enters again and sends in the step that is open then; NotMember or Late if the step that closed
        without it had taken some of the blocks, which the error names.
        """
        has_rate = learning_rate is not None
        options = GradOptions(
            struct_size=sizeof(GradOptions),
            has_learning_rate=has_rate,
            learning_rate=factor_of(learning_rate, "learning_rate") if has_rate else 0.0,
            encoding=encoding_number(encoding),
            stored_is_enough=stored_is_enough,
            end_step=end_step,
            no_error_feedback=not error_feedback,
        )
        items = [
            self._gradient(name, grad, timeout) for name, grad in items_of(grads, "send_grads")
        ]
        return GradResult(self._call(_calls.send_grads, items, options, to_ms(timeout)))

    def end_step(self, *, timeout: Optional[float] = None) -> None:
        """Ends this trainer's step, once the gradients it has sent are stored.

        For a step of several calls of :meth:`send_grads`, or of none. Does nothing in an ``async`` job.
        """
        self._call(Connection.call, "pserver_end_step", to_ms(timeout))

    def note(self, note: Mapping[str, NoteValue], *, timeout: Optional[float] = None) -> None:
        """Writes a remark into the journal: ``ps.note({"loss": 0.3, "step": 12})``.

        A note has up to 64 entries, 4 KiB together: names with numbers, texts or booleans; arrays of
        one element count as numbers. A number that is not finite is kept as the text ``NaN``, ``Infinity``
        or ``-Infinity``; a whole number above 2^53 is refused, and can be given as text. It changes no parameter. ``pserver log`` shows it in its place and
        ``pserver plot`` draws its numbers. The text of an entry ``mark`` names the note. Returns when the note
        is acknowledged, like an update. Raises BadValue or TooLarge before anything is sent.
        """
        entries, count = to_note_entries(note)
        self._call(_calls.send_note, entries, count, to_ms(timeout))

    def exit_steps(self, *, timeout: Optional[float] = None) -> None:
        """Leaves the steps or rounds of the job, so that the other trainers no longer wait for this one.

        Its next gradient or contribution enters again. :meth:`close` does the same. Does nothing in an ``async`` job.
        """
        self._call(Connection.call, "pserver_exit_steps", to_ms(timeout))

    def enter_rounds(self, *, timeout: Optional[float] = None) -> None:
        """Makes this trainer one that the rounds of a ``diloco`` job may wait for, before its first contribution,
        which does the same.

        No round closes before so many have entered as the job's quorum says; :meth:`exit_steps` and
        :meth:`close` end it. Raises Unsupported in any other job.
        """
        self._call(Connection.call, "pserver_enter_rounds", to_ms(timeout))

    def contribute(
        self,
        fragment: str,
        values: Mapping[str, Any],
        *,
        base: int,
        steps: int,
        tokens: int,
        step_time: Optional[float] = None,
        form: _rounds.Form = "displacement",
        encoding: Optional[Encoding] = None,
        exact: Collection[str] = (),
        error_feedback: bool = True,
        timeout: Optional[float] = None,
    ) -> Optional[int]:
        """Contributes to a fragment of a ``diloco`` job what this trainer has learned since it pulled version ``base``
        of it, in so many inner ``steps`` with so many ``tokens``, or examples, together.

        ``values`` has an array for each parameter of the fragment: its ``"displacement"``, what was pulled less what
        was learned, or in the ``form`` ``"parameters"`` what was learned; hosts then compute the displacement if no
        later version has come meanwhile. ``step_time`` is how long an inner step took, in seconds; by it hosts decide
        how long others may be waited for. ``encoding`` and ``error_feedback`` are as for :meth:`send_grads`; the arrays
        named in ``exact`` are sent as they are.

        The contribution is one transaction and counts once. Returns the round that it counts in, which is the version
        that the fragment will have; :meth:`pull_fragment` waits for that. Returns None if it came too late: the trainer
        has contributed from this version before, or a later one is there and the job drops what is late. Everything is
        checked before anything is sent. Raises Unsupported in any other job; BadLength unless all parameters of the
        fragment are there; Busy; NotSampled, see :meth:`sampling`; OutcomeUnknown at the deadline if it counts once or
        not at all; and what :meth:`send_grads` raises.
        """
        struct = _rounds.contribution(
            to_bytes(fragment, "fragment"),
            {"base": base, "steps": steps, "tokens": tokens},
            step_time,
            form,
            encoding,
            error_feedback,
        )
        items = [
            (to_bytes(name, "name"), self._value(name, value, timeout))
            for name, value in items_of(values, "contribute")
        ]
        _rounds.set_exact(struct, values, exact)
        try:
            return self._call(_rounds.contribute, items, struct, to_ms(timeout))
        except Error:
            # The parameters of the fragment may have changed.
            self._fragments = {}
            raise

    def fragments(self, *, timeout: Optional[float] = None) -> Fragments:
        """Returns the fragments of a ``diloco`` job with their parameters and present versions, and what became of
        this trainer's contributions. Raises Unsupported in any other job."""
        found = self._call(_rounds.fragments, to_ms(timeout))
        self._fragments = found.parameters
        return found

    def sampling(
        self, fragment: str, *, min_version: int = 0, timeout: Optional[float] = None
    ) -> Sampling:
        """Returns whether this trainer may contribute to the open round of a fragment of a ``diloco`` job, or to the
        first after ``min_version``, for which it waits. The trainer becomes a member of rounds for that.

        Everybody may unless the job draws samples of its members (``pserver up --sample``): then a contribution of
        anybody else raises NotSampled, so ask before training. Raises Unsupported in any other job;
        UnknownParameter if no parameter belongs to the fragment; Timeout.
        """
        name, *_ = self._names_of(fragment, timeout)
        wanted = _rounds.whole(min_version, "min_version")
        encoded = [to_bytes(fragment, "fragment"), to_bytes(name, "name")]
        return self._call(_rounds.sampling, *encoded, wanted, to_ms(timeout))

    def _names_of(self, fragment: str, timeout: Optional[float]) -> Tuple[str, ...]:
        """Returns the parameters of a fragment, as they were listed last. UNKNOWN_PARAMETER if there are none."""
        if fragment not in self._fragments:
            self.fragments(timeout=timeout)
        names = self._fragments.get(fragment, ())
        if names:
            return names
        text = f'no parameter belongs to fragment "{fragment}"'
        raise errors.UnknownParameter(text, {"fragment": fragment})

    def pull_fragment(
        self,
        fragment: str,
        *,
        min_version: int = 0,
        encoding: Optional[Encoding] = None,
        exact: Collection[str] = (),
        timeout: Optional[float] = None,
    ) -> PulledFragment:
        """Reads all parameters of a fragment of a ``diloco`` job at one version: the present one, or the first from
        ``min_version`` on, for which it waits. ``encoding`` is as for :meth:`get_params`; the parameters named in
        ``exact`` are read as they are.

        Raises Unsupported in any other job; UnknownParameter if no parameter belongs to the fragment; Timeout; and
        what :meth:`get_params` raises.
        """
        names = self._names_of(fragment, timeout)
        wanted = _rounds.whole(min_version, "min_version")
        _rounds.check_exact(names, exact)
        numbers = [encoding_number(None if name in exact else encoding) for name in names]
        name = to_bytes(fragment, "fragment")
        try:
            return self._call(_rounds.pull, name, names, numbers, wanted, to_ms(timeout))
        except Error:
            self._fragments = {}
            raise

    def set_params(
        self,
        values: Mapping[str, Any],
        *,
        stored_is_enough: bool = False,
        timeout: Optional[float] = None,
    ) -> None:
        """Overwrites the values of parameters. Raises what :meth:`send_grads` raises."""
        items = [
            (to_bytes(name, "name"), self._value(name, value, timeout))
            for name, value in items_of(values, "set_params")
        ]
        options = _calls.update_options(None, stored_is_enough)
        self._call(_calls.set_params, items, options, to_ms(timeout))

    def push(
        self,
        name: str,
        value: Any,
        alpha: float,
        beta: float,
        *,
        encoding: Optional[Encoding] = None,
        stored_is_enough: bool = False,
        timeout: Optional[float] = None,
    ) -> None:
        """Sets parameter = alpha · parameter + beta · value. Raises what :meth:`send_grads` raises."""
        self._call(
            _calls.push,
            to_bytes(name, "name"),
            self._value(name, value, timeout),
            (factor_of(alpha, "alpha"), factor_of(beta, "beta")),
            _calls.update_options(encoding, stored_is_enough),
            to_ms(timeout),
        )

    def push_part(
        self,
        name: str,
        part: Any,
        indices: Sequence[Any],
        alpha: float,
        beta: float,
        *,
        encoding: Optional[Encoding] = None,
        stored_is_enough: bool = False,
        timeout: Optional[float] = None,
    ) -> None:
        """Sets the elements that :meth:`pull_part` would give to alpha · element + beta · part.

        If an element is named repeatedly, the last value counts; with an empty list nothing is sent. Only
        these elements are sent. Raises BadIndex as :meth:`pull_part` does, and what :meth:`send_grads` raises.
        """
        self._call(
            _calls.push_part,
            to_bytes(name, "name"),
            self._value(name, part, timeout),
            to_indices(name, indices),
            (factor_of(alpha, "alpha"), factor_of(beta, "beta")),
            _calls.update_options(encoding, stored_is_enough),
            to_ms(timeout),
        )

    def get_params(
        self,
        names: Sequence[str],
        *,
        out: Optional[Out] = None,
        known: Optional[Params] = None,
        encoding: Optional[Encoding] = None,
        timeout: Optional[float] = None,
    ) -> Params:
        """Returns the values of parameters by name; waits until the job is initialized.

        They are in new arrays, or in those of ``out`` (a dict, or a sequence as long as ``names``), without a
        copy. If the call fails after it has begun to read, the contents of these arrays are undefined. The
        values include every acknowledged update of this client, and are never older than those of an earlier
        read. A member of a ``sync`` job waits until all steps that it has ended have closed, a member of an
        ``ssp`` job until all but the last ``staleness`` of them have. The ``versions`` of the result say how
        often each has been changed.

        ``known`` is an earlier result of this client, whose arrays must not have been modified since: values
        that have not changed are not sent again. If nothing of a parameter has changed, the result has the
        array of ``known``, unless ``out`` has one; ``known`` itself is not modified. Values that were read
        with another ``encoding`` are read again.

        Raises UnknownParameter; Empty without names; NotInitialized at the deadline, or Timeout, naming
        trainers; before anything is read, BadDtype, BadShape or BadValue for an array of ``out`` that does not
        fit.
        """
        listed = names_of(names)
        encoded = [to_bytes(name, "name") for name in listed]
        targets = targets_of(listed, out, known_of(known))
        for name, target in targets.items():
            self._known.check(name, target, to_ms(timeout))
        params = self._call(
            _calls.get, listed, encoded, targets, known, encoding_number(encoding), to_ms(timeout)
        )
        for name, array in params.items():
            self._known.learn(name, array)
        return params

    def pull(
        self,
        name: str,
        *,
        out: Any = None,
        encoding: Optional[Encoding] = None,
        timeout: Optional[float] = None,
    ) -> Array:
        """Returns the values of one parameter, as :meth:`get_params` does; ``out`` is the array itself."""
        into = None if out is None else {name: out}
        return self.get_params([name], out=into, encoding=encoding, timeout=timeout)[name]

    def pull_part(
        self,
        name: str,
        indices: Sequence[Any],
        *,
        out: Any = None,
        encoding: Optional[Encoding] = None,
        timeout: Optional[float] = None,
    ) -> Array:
        """Returns the elements at the product of index lists, as numpy's ``a[np.ix_(…)]`` does.

        ``indices`` has one list for each dimension, in any order; numbers may be repeated, and negative ones
        count from the dimension's end. It may also be what ``np.ix_`` returns. Only these elements are sent.
        They are in a new array, or in ``out``. Raises BadIndex for an index out of range or a wrong number of
        lists, else as :meth:`get_params`.
        """
        lists = to_indices(name, indices)
        target = self._known.part_target(name, out, lists, to_ms(timeout))
        return self._call(
            _calls.pull_part,
            to_bytes(name, "name"),
            lists,
            target,
            encoding_number(encoding),
            to_ms(timeout),
        )

    def save(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        on_progress: Optional[Callable[[int, int], object]] = None,
        timeout: Optional[float] = None,
    ) -> SavedModel:
        """Asks a host to write the model to a file below its model directory; takes up to 10 minutes.

        The ending chooses the format: ``.safetensors``, ``.npz``, ``.tar``; a name that ends in ``/`` or
        has no ending is a directory. ``on_progress`` gets, about twice a second, the bytes of values written
        and those of all values; it must make no calls. Raises BadPath, Io or DiskFull as the host reports.
        If the call ends early, the host stops writing, and an earlier file of that name stays.
        """
        text = to_bytes(os.fspath(path) if isinstance(path, os.PathLike) else path, "path")
        return self._call(_calls.save, text, on_progress, to_ms(timeout))

    def status(self, *, timeout: Optional[float] = None) -> JobStatus:
        """Returns the job's state: whether it is initialized, by whom, and where its journals stood then."""
        return self._call(_calls.status, to_ms(timeout))

    def list_params(self, *, timeout: Optional[float] = None) -> List[ParameterInfo]:
        """Returns every parameter of the job, in the order of names, whether it is ready or not."""
        found = self._call(_calls.list_params, to_ms(timeout))
        self._known.learn_all(found)
        return found

    def fallbacks(self, *, timeout: Optional[float] = None) -> List[Fallback]:
        """Returns what shards have lost, since the last such call, of what this client wrote or read.

        A shard falls back when its journal is replaced, as by ``pserver recover``. While none has, this call
        costs nothing, so make it after any error, or once in a while. If it fails, the next asks again.
        """
        return self._call(_calls.fallbacks, to_ms(timeout))

    def close(self, *, timeout: Optional[float] = None) -> None:
        """Waits for calls under way (10 s unless ``timeout`` says otherwise), ends the remaining ones with
        Closed, releases the lease and closes the connection. May be called again."""
        timeout_ms = to_ms(timeout)
        if self._link.is_open:
            run(lambda: self._link.close(timeout_ms))
        else:
            self._link.close(timeout_ms)

    def _discard(self) -> None:
        """Closes the client without waiting for calls or raising, where nobody could handle an error."""
        try:
            self._link.close(1)
        except Error:
            # The rest of the session expires.
            pass

    def _call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Calls the function with this client's connection, in a way that signals can interrupt."""
        return run(lambda: function(self._link.open(), *arguments))

    def _value(self, name: str, value: Any, timeout: Optional[float]) -> Array:
        """Converts a caller's value for a parameter to an array; a Python number gets the parameter's element type."""
        what = f'"{name}"'
        if not is_number(value):
            return to_array(value, what)
        form = self._known.of(name, to_ms(timeout))
        return from_number(value, what, None if form is None else form[0])

    def _gradient(self, name: str, grad: Any, timeout: Optional[float]) -> _calls.NamedGradient:
        encoded = to_bytes(name, "name")
        if not isinstance(grad, Rows):
            return encoded, self._value(name, grad, timeout), None
        rows = to_numbers(f'"{name}": rows', grad.ids)
        return encoded, self._value(name, grad.values, timeout), rows


def _unpickle(settings: Settings, is_closed: bool) -> Client:
    client = Client(settings.for_another_process())
    if is_closed:
        client.close()
    return client


def connect(
    url: Optional[Url] = None,
    *,
    job: Optional[str] = None,
    trainer: Optional[str] = None,
    user: Optional[str] = None,
    password: Optional[str] = None,
    token: Optional[str] = None,
    creds_file: Optional[Path] = None,
    nkey_file: Optional[Path] = None,
    nkey_public: Optional[str] = None,
    tls_ca: Optional[Path] = None,
    tls_cert: Optional[Path] = None,
    tls_key: Optional[Path] = None,
    connect_timeout: float = 10.0,
    attempt_timeout: float = 5.0,
    timeout: float = 30.0,
    in_flight_bytes: Optional[int] = None,
) -> Client:
    """Connects to the broker and joins a job as a trainer. Close the client, or use it in a ``with``
    block.

    ``url`` is one address, several separated by commas, or a list: ``nats://host:port``, ``tls://…`` or
    ``host:port``, with credentials before an ``@``. The default is ``PSERVER_URL``, else ``NATS_URL``,
    else ``nats://127.0.0.1:4222``. ``job`` is by default ``PSERVER_JOB``, else ``default``. ``trainer``
    is by default ``PSERVER_TRAINER``, else an id that is used only once. Give each process its own id,
    and the same id again after a restart, so that it continues what it was doing. Two processes with
    the same id end each other's sessions; therefore an id from the environment is extended in processes
    that multiprocessing starts, and in processes forked from one that has connected under it.

    Credentials come from the first source that has any: the address; these arguments (a user and its
    password, a token, the file of a JWT user, or the file of an nkey's seed with its public key);
    ``NATS_USER``, ``NATS_PASSWORD``, ``NATS_TOKEN``, ``NATS_CREDS``, ``NATS_NKEY`` and
    ``NATS_NKEY_PUBLIC``. The PEM files for TLS are those of the arguments, else of ``NATS_CA``,
    ``NATS_CERT`` and ``NATS_KEY``.

    Times are in seconds: ``connect_timeout`` is for all attempts to connect together,
    ``attempt_timeout`` for one attempt; it tries again also where every address refuses, so that broker,
    host and trainers can be started in any order. ``timeout`` is how long calls without a timeout of
    their own may make no progress: bytes that leave or come, acknowledgements and answers are progress.
    At most ``in_flight_bytes`` are in flight to the journals, and as many from the hosts, 16 MiB by
    default; on a slow link fewer are. The client has two connections: renewals of its lease do not wait
    behind values.

    Raises BadName, BadValue or Io for wrong arguments; NoBroker; Denied; NoTls if TLS is asked for and
    the broker offers none, or its certificate is refused; NoHost if no host answers in time;
    LibraryError if ``libpserver`` is missing or of another version.
    """
    client = Client(Settings.of(dict(locals())))
    try:
        client.open()
    except BaseException:
        # A signal may have come just after the client had connected.
        client._discard()
        raise
    return client
