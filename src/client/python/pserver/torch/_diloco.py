"""DiLoCo: learners that train alone, and exchange what they have learned from time to time."""

from __future__ import annotations

import fnmatch
import warnings
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Final,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

import numpy as np
import torch
from torch import nn

from .._arguments import Encoding
from .._arrays import Array
from .._error import Error, shown, unexpected
from ..client import Client
from ..diloco import Division, Learner
from ..errors import BadValue
from ._modules import HELD_AS, held_dtype, is_frozen, module_tensors, parts, short
from ._outer import check_rule, outer_config
from ._overwrites import Overwrites
from ._spectral import spectral_vectors, vector_names
from ._step_hook import StepHook
from ._sync import buffer_config
from ._tensors import HostMemory

#: What becomes of buffers of floats: they are averaged, are those of the first learner, or stay with each learner.
Buffers = Literal["mean", "first", "skip"]

_BUFFERS: Final = ("mean", "first", "skip")

#: Shape of a tensor, and the element type in which it is updated.
Form = Tuple[Tuple[int, ...], str]


class DiLoCo:
    """Trains modules with an optimizer in this process, as a :class:`pserver.diloco.Learner` of a ``diloco`` job.

    The job's weights are divided into fragments. One after the other is due, each once in ``sync_every`` steps of
    ``inner_optimizer``; what this learner has changed in it is then contributed in the background. The server merges the
    contributions of a round and applies them with the outer rule; the result is adopted ``delay`` steps later, or when it
    comes, and until then training goes on. Any loop may call the optimizer::

        with DiLoCo(ps, model, inner_optimizer, tokens=4096):
            train(model, inner_optimizer)

    Nothing is exchanged outside of the ``with`` block; a step before it emits a warning.

    ``modules`` is a module, whose tensors are divided evenly into ``fragments``, by default 24 (``sync_every`` if that is
    less), or as the job is divided; or several modules, each of which is a fragment. ``embeddings`` names parameters that
    have a fragment of their own, unless there is only one, and are merged by the mean: by default the weights of
    ``nn.Embedding`` and ``nn.EmbeddingBag``.

    ``fragments=1, delay=0`` is DiLoCo with a barrier, if all learners are the quorum of the job: a step in which the
    exchange is due waits until all have made theirs, for ``timeout`` seconds at most, 600 by default.

    ``outer`` is the outer rule, by default Nesterov's momentum as in the paper: ``lr=0.7`` and ``momentum=0.9``.
    ``dict(optimizer="sgd", lr=1.0)`` gives FedAvg, ``dict(optimizer="adam", lr=0.01)`` FedAdam. Alternatively
    ``outer_optimizer`` takes a ``torch.optim.SGD``, whose settings are used. The rule becomes the configuration of the
    job's parameters, and so applies to all learners. ``tokens``, ``quorum``, ``grace``, ``alpha``, ``delay``,
    ``encoding``, ``error_feedback`` and ``pull_encoding`` are as for :class:`pserver.diloco.Learner`; buffers, frozen
    parameters and float64 are not encoded.

    The job holds tensors of floats as float32 or float64; a parameter is trained from when it requires gradients. Floats
    in ``buffers`` are averaged ("mean"), all learners keep those of the first one ("first"), or each keeps its own
    ("skip"). The vectors of a spectral norm are computed from the new weights. Integers and bools are adopted from the
    first learner, and not exchanged. ``exclude`` names tensors that are not exchanged and stay with each learner, such as
    unit vectors of a module of one's own. It is a name, or several, in which ``*``, ``?`` and ``[…]`` stand for what they
    do in :mod:`fnmatch`. Of what stays with each learner, the job has that of the one which has ended last.

    A learner may come at any time and adopts the job's weights; one that was killed is started again. ``timeout`` is also
    that of each call, in seconds, by default the client's. The states of the module and of the inner optimizer stay in this process, and are saved by
    their own ``state_dict()``.
    """

    def __init__(
        self,
        ps: Client,
        modules: Union[nn.Module, Sequence[nn.Module]],
        inner_optimizer: torch.optim.Optimizer,
        outer_optimizer: Optional[torch.optim.Optimizer] = None,
        sync_every: int = 24,
        *,
        fragments: Optional[int] = None,
        embeddings: Optional[Collection[str]] = None,
        quorum: Optional[int] = None,
        grace: Optional[float] = None,
        tokens: Union[int, Callable[[], int]] = 1,
        encoding: Optional[Encoding] = "bfloat16",
        error_feedback: bool = True,
        pull_encoding: Optional[Encoding] = None,
        delay: int = 2,
        alpha: float = 0.0,
        outer: Optional[Mapping[str, Any]] = None,
        exclude: Union[str, Sequence[str]] = (),
        buffers: Buffers = "mean",
        timeout: Optional[float] = None,
    ) -> None:
        if buffers not in _BUFFERS:
            raise unexpected(BadValue, "DiLoCo: buffers", ", ".join(_BUFFERS), shown(buffers))
        self._ps = ps
        self._model, self._count = _one_module(modules)
        self._inner_optimizer = inner_optimizer
        self._outer = outer_config(outer, outer_optimizer)
        self._fragments = fragments
        self._embeddings = embeddings
        self._exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        self._buffers = buffers
        self._timeout = timeout
        self._options = dict(
            quorum=quorum,
            grace=grace,
            sync_every=sync_every,
            tokens=tokens,
            encoding=encoding,
            error_feedback=error_feedback,
            pull_encoding=pull_encoding,
            delay=delay,
            alpha=alpha,
            timeout=timeout,
        )
        self._hook = StepHook(inner_optimizer, self._warn_of_step)
        self._is_entered = False
        self._learner: Optional[_ModuleLearner] = None
        self._state: Optional[Mapping[str, Any]] = None
        self._overwrites = Overwrites(ps, timeout)
        #: What stays with each learner, and what all learners have of the first one, after the names of the tensors.
        self._own: Set[str] = set()
        self._first: Dict[str, Array] = {}
        #: The vectors of spectral norms as they were computed last.
        self._vectors: Dict[str, torch.Tensor] = {}

    def __enter__(self) -> DiLoCo:
        """Initializes the job with the modules or adopts the job's values, and begins to count steps.

        Raises BadValue, BadConfig and BadDtype for settings, modules or an outer rule that do not fit the job, and for a name
        in ``exclude`` that no tensor of floats has; and what the calls of the client raise.
        """
        self._hook.remove()
        known = {info.name for info in self._ps.list_params(timeout=self._timeout)}
        tensors = module_tensors(self._model, known)
        floats = [name for name, tensor in tensors.items() if tensor.is_floating_point()]
        excluded = _matching(floats, self._exclude)
        vectors = vector_names(spectral_vectors(self._model))
        kept = set() if self._buffers == "mean" else _buffers_of(tensors)
        exchanged = [name for name in floats if name not in excluded | vectors | kept]
        self._own = (excluded | (kept if self._buffers == "skip" else set())) - vectors
        # Any of what is exchanged may be trained one day, and small changes of half floats would round to nothing.
        dtypes = {
            name: HELD_AS[tensor.dtype] if name in exchanged else held_dtype(tensor)
            for name, tensor in tensors.items()
        }
        module = _ModuleValues(self._ps, self._model, tensors, dtypes)
        learner = _ModuleLearner(
            module,
            self._ps,
            module.read(exchanged),
            others=module.read([name for name in tensors if name not in exchanged]),
            fragments=self._division(exchanged),
            embeddings=self._embeddings_in(tensors, exchanged),
            outer=lambda name: self._config_of(tensors[name]),
            **self._options,
        )
        try:
            self._begin(learner, tensors, kept - vectors)
        except BaseException:
            # Nobody shall wait for a learner that does not begin.
            learner.close()
            raise
        self._learner = learner
        self._hook = StepHook(self._inner_optimizer, self._after_step)
        self._is_entered = True
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Stops counting steps. At a regular end, contributes what is left, adopts the results, and leaves the rounds. After
        an exception, others wait for this learner until its client is closed."""
        self._hook.remove()
        learner = self._entered()
        try:
            if error is None:
                self.sync()
                learner.close()
        finally:
            learner._end()
            self._overwrites.end()
            self._is_entered = False

    @property
    def inner_steps(self) -> int:
        """Steps of the inner optimizer so far."""
        return 0 if self._learner is None else self._learner.steps

    @property
    def outer_steps(self) -> int:
        """Results of rounds that this learner has received so far, of all fragments together."""
        return 0 if self._learner is None else self._learner.received

    @property
    def versions(self) -> Dict[str, int]:
        """The version of each fragment that was received last: how many of its rounds have closed."""
        return {} if self._learner is None else self._learner.versions

    @property
    def obstacle(self) -> Optional[Error]:
        """Why the last attempt to exchange a fragment has failed, which is made again; None if none has."""
        return None if self._learner is None else self._learner.obstacle

    def sync(self) -> None:
        """Contributes what is left of each fragment, waits for all results, and adopts them.

        Raises BadValue, naming every tensor, if the modules have other tensors than the job got from them, and outside of
        the ``with`` block; Timeout; and what ``Client.contribute`` and ``Client.pull_fragment`` raise. The modules are then
        as they were.
        """
        learner = self._entered()
        learner.module.forget()
        held = learner.module.look()
        learner._finish(learner.module.read, self._timeout)
        self._adopt(
            {name: value for part in learner._parts.values() for name, value in part.begin.items()}
        )
        given = self._own | set(self._vectors)
        self._overwrites.give_last(
            learner.module.copies([name for name in given if not is_frozen(held[name])])
        )

    def state_dict(self) -> Dict[str, Any]:
        """Returns this learner's position, plain numbers: save it together with the states of the modules and of the inner
        optimizer. Raises BadValue before the ``with`` block."""
        if self._learner is None:
            raise BadValue("DiLoCo: state_dict: expected a call within the `with` block or after")
        return self._learner.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved position when the ``with`` block is entered, after the modules have loaded what was saved
        with it.

        Fragments of which the job has still the version that their values were learned from keep these values; of any
        other the job's present values are adopted. Raises BadValue within the block.
        """
        if self._is_entered:
            raise BadValue("DiLoCo: load_state_dict: expected a call before the `with` block")
        self._state = dict(state)

    def _entered(self) -> _ModuleLearner:
        if self._learner is None or not self._is_entered:
            raise BadValue(
                "DiLoCo: nothing is exchanged outside of its `with` block: expected a call within"
            )
        return self._learner

    def _begin(
        self, learner: _ModuleLearner, tensors: Mapping[str, torch.Tensor], kept: Set[str]
    ) -> None:
        """Checks the job's rule, and gives the modules the job's values."""
        trained = {name for name, tensor in tensors.items() if is_trained(tensor)}
        check_rule(self._ps, trained & set(learner._forms), self._outer)
        saved = set() if self._state is None else set(learner._restore(self._state))
        self._state = None
        self._first = {name: learner.others[name] for name in kept if self._buffers == "first"}
        values = {**learner.params, **learner.others}
        learner.module.write({n: v for n, v in values.items() if n not in saved | self._own})
        self._vectors = {
            name: tensors[name].detach().clone()
            for name in vector_names(spectral_vectors(self._model))
        }
        self._compute_vectors()

    def _division(self, exchanged: Sequence[str]) -> Optional[Division]:
        if self._fragments is not None or self._count == 1:
            return self._fragments
        return {name: f"f{name.split('.')[0]}" for name in exchanged}

    def _embeddings_in(
        self, tensors: Mapping[str, torch.Tensor], exchanged: Collection[str]
    ) -> Collection[str]:
        if self._embeddings is not None:
            return self._embeddings
        found = {
            id(part.weight)
            for _, part in parts(self._model)
            if isinstance(part, (nn.Embedding, nn.EmbeddingBag))
        }
        return [name for name in exchanged if id(tensors[name]) in found]

    def _config_of(self, tensor: torch.Tensor) -> Mapping[str, Any]:
        is_buffer = not isinstance(tensor, nn.Parameter)
        return {**buffer_config(tensor), "merge": "mean"} if is_buffer else self._outer

    def _warn_of_step(self) -> None:
        self._hook.remove()
        warnings.warn(
            "DiLoCo: nothing is exchanged before its `with` block is entered, but the inner optimizer has "
            "made a step: expected `with DiLoCo(…):` around the training",
            RuntimeWarning,
            stacklevel=2,
        )

    def _after_step(self) -> None:
        learner = self._entered()
        learner.module.forget()
        adopted = learner._advance(learner.module.read)
        if adopted:
            self._adopt(adopted)
            self._overwrites.give(learner.module.copies(list(self._vectors)))

    def _adopt(self, values: Mapping[str, Array]) -> None:
        """Gives the modules values of the job, and what follows from them."""
        module = self._entered().module
        module.write({**values, **self._first})
        self._compute_vectors()

    def _compute_vectors(self) -> None:
        """Computes the vectors of spectral norms from those that were computed last: learners with equal weights then have
        equal ones, whatever their own forward passes have made of them."""
        with torch.no_grad():
            for each in spectral_vectors(self._model):
                for name, vector in (each.u_name, each.u), (each.v_name, each.v):
                    vector.copy_(self._vectors[name])
                each.compute()
                for name, vector in (each.u_name, each.u), (each.v_name, each.v):
                    self._vectors[name] = vector.detach().clone()


class _ModuleValues:
    """The values of a module's tensors, as arrays that the job can hold."""

    def __init__(
        self,
        ps: Client,
        model: nn.Module,
        tensors: Mapping[str, torch.Tensor],
        dtypes: Mapping[str, torch.dtype],
    ) -> None:
        """``dtypes``: the element types in which the job holds the tensors."""
        self._ps = ps
        self._model = model
        self._forms = _forms_of(tensors)
        self._memory = {name: HostMemory(dtype) for name, dtype in dtypes.items()}
        self._tensors: Optional[Mapping[str, torch.Tensor]] = tensors

    def forget(self) -> None:
        """Has the tensors looked up when they are needed next: a training loop may have replaced them."""
        self._tensors = None

    def look(self) -> Mapping[str, torch.Tensor]:
        """Returns the module's tensors as they are now. Raises the error that names every one which is new, gone or of
        another form: learners could not agree on it any more."""
        if self._tensors is None:
            tensors = module_tensors(self._model, self._forms)
            self._check(_forms_of(tensors))
            self._tensors = tensors
        return self._tensors

    def read(self, names: Sequence[str]) -> Dict[str, Array]:
        """Returns values, which are valid until the module changes."""
        tensors = self.look()
        return {name: self._memory[name].read(tensors[name]) for name in names}

    def copies(self, names: Sequence[str]) -> Dict[str, Array]:
        """Returns copies of values."""
        return {name: value.copy() for name, value in self.read(names).items()}

    def write(self, values: Mapping[str, Array]) -> None:
        """Gives the module these values."""
        tensors = self.look()
        for name, value in values.items():
            memory = self._memory[name]
            np.copyto(memory.receive(tensors[name]), value)
            memory.received(tensors[name])

    def rounded(self, name: str, value: Array) -> Array:
        """Returns a value as the module's tensor has it."""
        tensor = self.look()[name]
        if HELD_AS[tensor.dtype] is tensor.dtype:
            return value
        held = torch.from_numpy(value).to(tensor.dtype).to(HELD_AS[tensor.dtype])
        array: Array = held.numpy()
        return array

    def _check(self, forms: Mapping[str, Form]) -> None:
        wrong = [f"{name!r} is new" for name in forms if name not in self._forms]
        wrong += [f"{name!r} is gone" for name in self._forms if name not in forms]
        wrong += [
            f"{name!r} was {_described(self._forms[name])} and is {_described(form)}"
            for name, form in forms.items()
            if self._forms.get(name, form) != form
        ]
        if wrong:
            raise BadValue(
                "DiLoCo: expected the tensors that the module had when the `with` block was entered, "
                f"which job {self._ps.job!r} holds; {'; '.join(wrong)}: change the module before, for "
                "another job"
            )


class _ModuleLearner(Learner):
    """A learner whose arrays are the tensors of a module."""

    def __init__(self, module: _ModuleValues, *arguments: Any, **options: Any) -> None:
        self.module = module
        super().__init__(*arguments, exact=self._unencoded, **options)

    def _unencoded(self) -> List[str]:
        """Names of buffers and frozen parameters: what nobody trains must not be rounded."""
        return [name for name, tensor in self.module.look().items() if not is_trained(tensor)]

    def _change_of(self, name: str, begin: Array, now: Array) -> Array:
        if isinstance(self.module.look()[name], nn.Parameter):
            return super()._change_of(name, begin, now)
        return change_of_buffer(begin, now)

    def _as_kept(self, values: Mapping[str, Array]) -> Mapping[str, Array]:
        # What is lost by rounding to half precision must not count as a change by this learner.
        return {name: self.module.rounded(name, value) for name, value in values.items()}


def is_trained(tensor: torch.Tensor) -> bool:
    """Whether it is a parameter that optimizers change."""
    return isinstance(tensor, nn.Parameter) and tensor.requires_grad


#: Contributions in a round up to which rounding makes no number negative that is not negative in any learner.
_CONTRIBUTIONS: Final = 256


def change_of_buffer(begin: Array, now: Array) -> Array:
    """Returns how a buffer has changed: what a learner contributes, so that the mean of all is computed.

    The mean of numbers that are not negative, such as variances, would become negative by rounding where they are much
    smaller than the number before. So where both numbers are of one sign, the change is limited to a little less than the
    number before. Adding one contribution to the mean of those before rounds three times in a row, each time by half of
    the type's epsilon at most. What has not changed, such as an infinity, has the change 0.
    """
    kind = begin.dtype.type
    limit = np.abs(begin) * kind(1 - 1.5 * _CONTRIBUTIONS * np.finfo(begin.dtype).eps)
    change = np.zeros_like(begin)
    np.subtract(begin, now, out=change, where=begin != now)
    change = np.where((begin >= 0) & (now >= 0), np.minimum(change, limit), change)
    return np.where((begin <= 0) & (now <= 0), np.maximum(change, -limit), change)


def _forms_of(tensors: Mapping[str, torch.Tensor]) -> Dict[str, Form]:
    return {
        name: (tuple(tensor.shape), short(HELD_AS[tensor.dtype]))
        for name, tensor in tensors.items()
    }


def _described(form: Form) -> str:
    shape, dtype = form
    return f"{dtype} of shape {shape}"


def _buffers_of(tensors: Mapping[str, torch.Tensor]) -> Set[str]:
    """Returns the names of buffers of floats."""
    return {
        name
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and not isinstance(tensor, nn.Parameter)
    }


def _matching(names: Collection[str], patterns: Sequence[str]) -> Set[str]:
    """Returns the names that match one of the patterns. BadValue for a pattern that none matches."""
    found = {pattern: fnmatch.filter(names, pattern) for pattern in patterns}
    unknown = [repr(pattern) for pattern in patterns if not found[pattern]]
    if unknown:
        raise BadValue(
            f"DiLoCo: exclude: expected names of tensors of floats, or patterns that such match: {sorted(names)}; "
            f"received {', '.join(unknown)}"
        )
    return {name for matching in found.values() for name in matching}


def _one_module(modules: Union[nn.Module, Sequence[nn.Module]]) -> Tuple[nn.Module, int]:
    """Returns one module with all of them, and how many they are."""
    if isinstance(modules, nn.Module):
        return modules, 1
    given = list(modules)
    return (given[0] if len(given) == 1 else nn.ModuleList(given)), len(given)
