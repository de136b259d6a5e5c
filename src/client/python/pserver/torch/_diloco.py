"""DiLoCo: trainers that train alone and exchange their changes from time to time."""

from __future__ import annotations

import fnmatch
import functools
import warnings
from types import MethodType
from typing import Any, Callable, Collection, Dict, Mapping, Optional, Sequence, Set, Tuple, Union

import numpy as np
import torch
from torch import nn

from .._arguments import Encoding
from ..client import Client
from ..config import with_keywords
from ..errors import BadConfig, BadValue
from ..records import Params
from ._modules import HELD_AS, distinct, held_in, module_tensors, names_by_id, short
from ._spectral import SpectralVectors, overwrite, spectral_vectors, vector_names
from ._sync import sync
from ._tensors import StepCalls, as_array


class DiLoCo:
    """Trains with an optimizer in this process, and averages the trainers from time to time.

    After every ``sync_every`` steps of ``inner_optimizer`` the trainer sends its change, θ_global −
    θ_local, as the gradient of one step of a ``sync`` job. The server applies the mean of all trainers'
    changes with the outer rule, and each trainer adopts the result. Any loop may call the optimizer::

        with DiLoCo(ps, [model], inner_optimizer, sync_every=100):
            train(model, inner_optimizer)

    Nothing is exchanged outside of the ``with`` block; a step before it emits a warning.

    ``outer`` is the outer rule, by default Nesterov's momentum as in the paper: ``lr=0.7`` and
    ``momentum=0.9``. ``dict(optimizer="sgd", lr=1.0)`` gives FedAvg, ``dict(optimizer="adam",
    lr=0.01)`` FedAdam. Alternatively ``outer_optimizer`` takes a ``torch.optim.SGD``, whose settings
    are used. The rule becomes the configuration of the job's parameters, and so applies to all
    trainers.

    After each exchange all tensors of floats are equal in all trainers. Which of them are trained is looked
    at in each exchange: a parameter that is frozen is sent only if it has changed, and adopted if another
    trainer has changed it. Buffers are averaged, and none gets another sign than it has in all trainers. The
    vectors of a spectral norm are computed from the new weights instead. Integers and bools do not change. Several
    fragments are exchanged together, under the names "0.…", "1.…".

    ``exclude`` names tensors that are not exchanged, such as buffers of a module of one's own whose mean means
    nothing: unit vectors, permutations. It is a name, or several, in which ``*``, ``?`` and ``[…]`` stand for what
    they do in :mod:`fnmatch`. Each trainer keeps its own; the job holds those of the trainer that has exchanged last.

    ``encoding`` applies to float32 pseudo-gradients of parameters; what rounding to "int8" or "e3m0" leaves out is
    added to the next one, unless ``error_feedback`` is False (see ``Client.send_grads``). ``pull_encoding`` applies
    to the weights of float32 parameters that this trainer trains; all trainers should give the same. Buffers and
    frozen parameters are not encoded.

    The state of the inner optimizer stays in this process and is kept at each exchange. ``timeout`` is
    for each call, in seconds: an exchange waits until the slowest trainer has made its own. Nobody
    waits for a dead trainer once its lease has run out. A late or restarted trainer begins with the
    job's values; its first exchange is computed from these, or is left out if its step had closed.
    """

    def __init__(
        self,
        ps: Client,
        model_fragments: Union[nn.Module, Sequence[nn.Module]],
        inner_optimizer: torch.optim.Optimizer,
        outer_optimizer: Optional[torch.optim.Optimizer] = None,
        sync_every: int = 500,
        *,
        outer: Optional[Mapping[str, Any]] = None,
        encoding: Optional[Encoding] = "bfloat16",
        error_feedback: bool = True,
        pull_encoding: Optional[Encoding] = None,
        timeout: float = 600.0,
        exclude: Union[str, Sequence[str]] = (),
    ) -> None:
        if sync_every < 1:
            raise BadValue(f"DiLoCo: sync_every: expected 1 or more; received {sync_every}")
        self._ps = ps
        self._model = _one_module(model_fragments)
        self._inner_optimizer = inner_optimizer
        self._outer = outer_config(outer, outer_optimizer)
        self._sync_every = sync_every
        self._encoding = encoding
        self._error_feedback = error_feedback
        self._pull_encoding = pull_encoding
        self._timeout = timeout
        self._exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        #: Names of the tensors of floats that are not exchanged.
        self._excluded: Set[str] = set()
        self._hook = StepHook(inner_optimizer, self._warn_of_step)
        self._is_entered = False
        #: What the job holds of the module.
        self._forms: Dict[str, Form] = {}
        #: The tensors' values after the last exchange, in host memory.
        self._begin: Dict[str, torch.Tensor] = {}
        #: The last results of reading into these, by encoding; what has not changed since is not sent again.
        self._read: Dict[Optional[Encoding], Params] = {}
        #: Names of the changes that have been sent since, and whether that has ended the step.
        self._sent: Set[str] = set()
        self._is_step_ended = False
        #: Steps of the inner optimizer since the last exchange.
        self.inner_steps = 0
        #: Exchanges with the job so far.
        self.outer_steps = 0
        #: Blocks whose step had closed before this trainer's change came, in the last exchange.
        self.late_blocks = 0

    def __enter__(self) -> DiLoCo:
        """Initializes the job with the module or adopts the job's values, and begins to count steps.

        Raises BadValue unless the job applies the mean of one gradient of each trainer, and for a name in
        ``exclude`` that no tensor of floats has; BadConfig
        if it was initialized with another outer rule; and what ``sync`` raises.
        """
        self._hook.remove()
        _check_steps(self._ps)
        self._excluded = _matching(_exchanged(module_tensors(self._model)), self._exclude)
        sync(self._ps, self._model, self._outer, timeout=self._timeout)
        held = module_tensors(self._model, set(names_by_id(self._ps).values()))
        self._forms = _forms_of(held)
        tensors = _exchanged(held)
        self._begin = {
            name: self._held(name, tensor, copy=True) for name, tensor in tensors.items()
        }
        self._read = {}
        self._excluded = _matching(tensors, self._exclude)
        trained = {name for name, tensor in tensors.items() if is_trained(tensor)}
        check_rule(self._ps, trained, self._outer)
        self._end_exchange()
        self._hook = StepHook(self._inner_optimizer, self._after_step)
        self._is_entered = True
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Stops counting steps. At a regular end, exchanges the changes of the remaining steps and
        leaves the job's steps. After an exception, others wait for this trainer until its client is
        closed."""
        self._hook.remove()
        try:
            if error is None:
                if self.inner_steps > 0:
                    self.sync()
                self._ps.exit_steps(timeout=self._timeout)
        finally:
            self._is_entered = False

    def sync(self) -> None:
        """Exchanges now: sends the change, waits for the others, adopts the result.

        Raises BadValue, naming every tensor, if the module has other tensors than the job got from it, and
        outside of the ``with`` block; and what ``Client.send_grads`` and ``Client.get_params`` raise. The
        module is then as it was, and the next step of the inner optimizer tries again; what was sent is not
        sent again.
        """
        if not self._is_entered:
            raise BadValue(
                "DiLoCo: nothing is exchanged outside of its `with` block: expected a call within"
            )
        held = module_tensors(self._model, self._forms)
        self._check_forms(held)
        tensors = _exchanged(held)
        vectors = spectral_vectors(self._model)
        own = vector_names(vectors) | self._excluded
        if not self._is_step_ended:
            self._send({name: tensor for name, tensor in tensors.items() if name not in own})
        self._adopt(tensors, vectors, own)
        self._end_exchange()
        self.outer_steps += 1

    def _held(self, name: str, tensor: torch.Tensor, copy: bool = False) -> torch.Tensor:
        """Returns the tensor's values in host memory, in the element type that the job holds."""
        dtype = held_in(self._ps, name, tensor)
        return tensor.detach().to("cpu", dtype, copy=copy).contiguous()

    def _warn_of_step(self) -> None:
        self._hook.remove()
        warnings.warn(
            "DiLoCo: nothing is exchanged before its `with` block is entered, but the inner optimizer has "
            "made a step: expected `with DiLoCo(…):` around the training",
            RuntimeWarning,
            stacklevel=2,
        )

    def _after_step(self) -> None:
        self.inner_steps += 1
        if self.inner_steps >= self._sync_every:
            self.sync()

    def _end_exchange(self) -> None:
        self._sent = set()
        self._is_step_ended = False
        self.inner_steps = 0

    def _check_forms(self, held: Mapping[str, torch.Tensor]) -> None:
        """Raises the error that names every tensor which is new, gone or of another form: the trainers could
        not agree on it any more."""
        forms = _forms_of(held)
        wrong = [f"{name!r} is new" for name in forms if name not in self._forms]
        wrong += [f"{name!r} is gone" for name in self._forms if name not in forms]
        wrong += [
            f"{name!r} was {_shown(self._forms[name])} and is {_shown(form)}"
            for name, form in forms.items()
            if self._forms.get(name, form) != form
        ]
        if wrong:
            raise BadValue(
                "DiLoCo: expected the tensors that the module had when the `with` block was entered, "
                f"which job {self._ps.job!r} holds; {'; '.join(wrong)}: change the module before, for "
                "another job"
            )

    def _send(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Sends the changes that have not been sent yet, and ends the step."""
        calls = StepCalls(self._encoding, self._error_feedback)
        kind = self._ps.synchronization
        for name, tensor in tensors.items():
            if name in self._sent:
                continue
            begin, now = self._begin[name], self._held(name, tensor)
            if not isinstance(tensor, nn.Parameter):
                change = change_of_buffer(begin, now, kind.trainers + kind.backups)
                calls.add(name, as_array(change), exact=True)
            elif is_trained(tensor) or not torch.equal(begin, now):
                calls.add(name, as_array(begin - now))
        late = 0 if not self._sent else self.late_blocks
        try:
            late += calls.send(self._ps, timeout=self._timeout)
        finally:
            self._sent |= calls.sent
        self.late_blocks = late
        self._is_step_ended = True

    def _adopt(
        self,
        tensors: Mapping[str, torch.Tensor],
        vectors: Sequence[SpectralVectors],
        own: Collection[str],
    ) -> None:
        """Adopts the job's values of all tensors but its own ones, which it gives to the job."""
        outs: Dict[Optional[Encoding], Dict[str, np.ndarray[Any, Any]]] = {}
        for name, tensor in tensors.items():
            if name not in own:
                values = as_array(self._begin[name])
                is_encoded = is_trained(tensor) and values.dtype == np.float32
                outs.setdefault(self._pull_encoding if is_encoded else None, {})[name] = values
        # After an error the memory holds an unknown mixture, which must be read again.
        known, self._read = self._read, {}
        results = {
            encoding: self._ps.get_params(
                list(out),
                out=out,
                known=known.get(encoding),
                encoding=encoding,
                timeout=self._timeout,
            )
            for encoding, out in outs.items()
        }
        self._read = results
        with torch.no_grad():
            # Vectors are computed from those of the last exchange, which are equal in all trainers.
            for name in tensors.keys() - self._excluded:
                places = distinct(tensors[name])
                places.copy_(self._begin[name][tuple(slice(size) for size in places.shape)])
        for each in vectors:
            each.compute()
        overwrite(self._ps, {name: tensors[name] for name in own}, timeout=self._timeout)
        # What is lost by rounding to half precision must not count as a change by this trainer.
        for name, tensor in tensors.items():
            self._begin[name].copy_(tensor.detach())


#: Shape of a tensor, and the element type in which it is updated.
Form = Tuple[Tuple[int, ...], str]


def _forms_of(tensors: Mapping[str, torch.Tensor]) -> Dict[str, Form]:
    return {
        name: (tuple(tensor.shape), short(HELD_AS[tensor.dtype]))
        for name, tensor in tensors.items()
    }


def _shown(form: Form) -> str:
    shape, dtype = form
    return f"{dtype} of shape {shape}"


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


def _exchanged(held: Mapping[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in held.items() if tensor.is_floating_point()}


def is_trained(tensor: torch.Tensor) -> bool:
    """Whether it is a parameter that optimizers change."""
    return isinstance(tensor, nn.Parameter) and tensor.requires_grad


def change_of_buffer(begin: torch.Tensor, now: torch.Tensor, trainers: int) -> torch.Tensor:
    """Returns how a buffer has changed, as the gradient from which the mean of all trainers is computed.

    The mean of numbers that are not negative, such as variances, would become negative by rounding where they
    are much smaller than the number before. So where both numbers are of one sign, the change is limited to a
    little less than the number before: by as much as the sum of all ``trainers`` may be rounded. What has not
    changed, such as an infinity, has the change 0.
    """
    margin = (trainers + 4) * torch.finfo(begin.dtype).eps
    limit = begin.abs() * (1.0 - margin)
    change = torch.where(begin.eq(now), torch.zeros_like(begin), begin - now)
    change = torch.where(begin.ge(0) & now.ge(0), torch.minimum(change, limit), change)
    return torch.where(begin.le(0) & now.le(0), torch.maximum(change, -limit), change)


def _one_module(fragments: Union[nn.Module, Sequence[nn.Module]]) -> nn.Module:
    if isinstance(fragments, nn.Module):
        return fragments
    modules = list(fragments)
    return modules[0] if len(modules) == 1 else nn.ModuleList(modules)


def _check_steps(ps: Client) -> None:
    kind = ps.synchronization
    if kind.mode == "sync" and kind.reduce == "mean":
        return
    received = kind.mode if kind.mode != "sync" else f"sync that applies the {kind.reduce}"
    raise BadValue(
        f"DiLoCo: expected a job that applies the mean of all trainers' gradients in steps, as of "
        f"`pserver up --sync sync --trainers N`; received job {ps.job!r}, which is {received}",
        {"expected": "sync, mean", "received": received},
    )


#: The outer optimizer of the DiLoCo paper (Douillard et al., 2023).
DILOCO: Mapping[str, Any] = {"optimizer": "nesterov", "lr": 0.7, "momentum": 0.9}

_NUMBERS_OF_RULES = ("momentum", "rho", "beta", "beta1", "beta2", "epsilon")


def outer_config(
    outer: Optional[Mapping[str, Any]], optimizer: Optional[torch.optim.Optimizer]
) -> Dict[str, Any]:
    """Returns the configuration of parameters that get pseudo-gradients.

    ``outer`` has the server's rule as ``optimizer`` ("nesterov" if absent), its rate as ``lr`` or
    ``learning_rate``, its numbers, and any other entry of a configuration. Alternatively ``optimizer`` is a
    ``torch.optim.SGD``, whose settings are used. Raises BadConfig if both are given, and for any other
    optimizer of PyTorch.
    """
    if optimizer is not None:
        if outer is not None:
            raise BadConfig("DiLoCo: expected outer or outer_optimizer; received both")
        outer = _of_sgd(optimizer)
    settings = with_keywords(DILOCO if outer is None else outer, {})
    if not isinstance(settings, Mapping):
        raise BadConfig(f"DiLoCo: outer: expected a dict; received {type(outer).__qualname__}")
    given = dict(settings)
    named = given.pop("optimizer", "nesterov")
    rule = dict(named) if isinstance(named, Mapping) else {"name": named}
    rule.update({key: given.pop(key) for key in _NUMBERS_OF_RULES if key in given})
    if "lr" in given:
        if "learningRate" in given:
            raise BadConfig("DiLoCo: outer: expected lr or learning_rate; received both")
        given["learningRate"] = given.pop("lr")
    rate = given.get("learningRate")
    if rate is not None and not isinstance(rate, Mapping):
        given["learningRate"] = {"schedule": "constant", "rate": rate}
    return {"optimizer": rule, **given}


def check_rule(ps: Client, names: Collection[str], config: Mapping[str, Any]) -> None:
    """Raises BadConfig, naming every parameter that has another rule or rate. In that case another
    trainer has configured the job, and that cannot be changed."""
    expected = {key: config[key] for key in ("optimizer", "learningRate") if key in config}
    others = [
        f"{info.name!r} by {_rule_of(info.config)}"
        for info in ps.list_params()
        if info.name in names and not _agrees(expected, info.config)
    ]
    if others:
        raise BadConfig(
            f"DiLoCo: expected parameters that job {ps.job!r} updates by {_rule_of(expected)}; "
            f"it updates {', '.join(others)}"
        )


def _agrees(expected: Any, found: Any) -> bool:
    """Whether a configuration has every expected entry; it may have others."""
    if not isinstance(expected, Mapping):
        return bool(expected == found)
    return isinstance(found, Mapping) and all(
        key in found and _agrees(value, found[key]) for key, value in expected.items()
    )


def _rule_of(config: Mapping[str, Any]) -> str:
    rule = config["optimizer"]
    rate = config.get("learningRate")
    if isinstance(rate, Mapping) and rate.get("schedule") == "constant":
        rate = rate["rate"]
    numbers = "".join(f", {key} {value}" for key, value in rule.items() if key != "name")
    return f"{rule['name']} (lr {rate}{numbers})"


def _of_sgd(optimizer: torch.optim.Optimizer) -> Dict[str, Any]:
    groups = optimizer.param_groups
    if not isinstance(optimizer, torch.optim.SGD) or len(groups) != 1:
        raise BadConfig(
            "DiLoCo: outer_optimizer: expected torch.optim.SGD with one group; received "
            f"{type(optimizer).__name__} with {len(groups)}: describe the rule with outer=dict(…)"
        )
    group = groups[0]
    if group["dampening"] != 0 or group["maximize"]:
        raise BadConfig("DiLoCo: outer_optimizer: expected no dampening and no maximize")
    if group["momentum"] == 0:
        rule: Dict[str, Any] = {"optimizer": "sgd"}
    else:
        name = "nesterov" if group["nesterov"] else "momentum"
        rule = {"optimizer": name, "momentum": group["momentum"]}
    return {**rule, "lr": group["lr"], "l2": group["weight_decay"]}


class StepHook:
    """Calls a function after each step of an optimizer, until it is removed."""

    def __init__(self, optimizer: torch.optim.Optimizer, after_step: Callable[[], None]) -> None:
        self._after_step = after_step
        register = getattr(optimizer, "register_step_post_hook", None)
        self._attached = True
        self._handle = None if register is None else register(lambda *_: self._after_step())
        if register is None:
            self._wrap(optimizer)

    def remove(self) -> None:
        """Removes the hook: the function is not called any more."""
        self._attached = False
        if self._handle is not None:
            self._handle.remove()

    def _wrap(self, optimizer: Any) -> None:
        """Replaces ``step`` by a method that also calls the function: PyTorch before 2.0 has no hooks
        of steps.

        The replacement is a method, too, and has the attributes of the original, because schedulers of
        these versions wrap it in turn and look for both. For the same reason it stays when the hook is
        removed, and then calls nothing.
        """
        inner = optimizer.step

        @functools.wraps(inner)
        def step(_: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            loss = inner(*args, **kwargs)
            if self._attached:
                self._after_step()
            return loss

        optimizer.step = MethodType(step, optimizer)
