"""An optimizer whose rule and state are on the server."""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Dict,
    Final,
    Iterable,
    Mapping,
    Optional,
    Tuple,
    Union,
    cast,
    overload,
)

import torch
from torch.nn.parameter import is_lazy

from .._arguments import Encoding
from ..client import Client
from ..errors import BadShape, BadValue, UnknownParameter
from ._modules import names_by_id, torch_dtype, without_wrappers
from ._tensors import HostMemory, StepCalls, pull_into, to_gradient

#: What a group may have: its tensors, their names and its rate, and what schedulers note there. Everything else
#: of an optimizer is in the job's configuration.
_OPTIONS: Final = {
    "params",
    "param_names",
    "name",
    "lr",
    "initial_lr",
    "max_lr",
    "min_lr",
    "swa_lr",
    "lr_scale",
}

#: The parameters of an optimizer: tensors that were synchronized, names with tensors, or groups of
#: these.
Parameters = Union[
    Iterable[torch.Tensor], Iterable[Tuple[str, torch.Tensor]], Iterable[Mapping[str, Any]]
]


class Optimizer(torch.optim.Optimizer):
    """An optimizer on the server: ``step`` sends the gradients and adopts the new weights.

    The rule, its numbers, weight decay and clipping are those of the configuration with which the job's
    parameters were created (see ``sync``), and only the server holds momenta and counts: ``state_dict``
    has the groups and no state. All trainers update the same weights.

    ``params`` are tensors of a module for which ``sync`` has been called, a module's
    ``named_parameters()``, or groups with either under ``params``. A group's ``lr`` overrides the
    learning rate of the configuration, so that PyTorch's schedulers work; None, the default, leaves it
    to the configuration, which can hold a schedule that counts the updates of all trainers. In a
    ``sync`` job all trainers must give the same rate for a step.

    ``encoding`` applies to float32 gradients: "bfloat16", "float16", "int8" or "e3m0", or None; what rounding to
    the last two leaves out is added to the next gradient, unless ``error_feedback`` is False (see
    ``Client.send_grads``). ``pull_encoding`` applies in the same way to float32 weights that are read: the server
    keeps the exact ones. With ``stored_is_enough`` a step waits only for the journal's acknowledgement. ``timeout`` is for each
    call, in seconds; in a ``sync`` or ``ssp`` job a step waits for other trainers.

    A copy of an optimizer, by ``copy.deepcopy``, uses the same client; one that was pickled gets its own.

    Raises BadValue for a tensor without a name, and for options of a group that only the configuration can
    have, such as ``weight_decay``; UnknownParameter for a tensor that is not in the job, BadShape for one that
    has another shape there. A tensor without elements, which no job holds, is left out.
    """

    def __init__(
        self,
        ps: Client,
        params: Parameters,
        lr: Optional[float] = None,
        *,
        encoding: Optional[Encoding] = None,
        error_feedback: bool = True,
        pull_encoding: Optional[Encoding] = None,
        stored_is_enough: bool = False,
        timeout: Optional[float] = None,
    ) -> None:
        self._ps = ps
        self._encoding = encoding
        self._error_feedback = error_feedback
        self._pull_encoding = pull_encoding
        self._stored_is_enough = stored_is_enough
        self._timeout = timeout
        held = ps.list_params(timeout=timeout)
        self._shapes = {info.name: tuple(info.shape) for info in held}
        self._dtypes = {info.name: torch_dtype(info) for info in held}
        self._names: Dict[torch.Tensor, str] = {}
        self._gradients: Dict[str, HostMemory] = {}
        self._values: Dict[str, HostMemory] = {}
        #: Blocks whose gradient of the last step came after that step had closed: see
        #: ``Client.send_grads``.
        self.late_blocks = 0
        super().__init__(cast(Any, params), {"lr": lr})

    def __getstate__(self) -> Dict[str, Any]:
        """Returns what a copy needs, without the memory in which values are sent and received."""
        own = (
            "_ps",
            "_encoding",
            "_error_feedback",
            "_pull_encoding",
            "_stored_is_enough",
            "_timeout",
            "_shapes",
            "_dtypes",
            "_names",
            "late_blocks",
        )
        groups = {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}
        return {**groups, **{name: getattr(self, name) for name in own}}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._gradients = {name: self._memory(name) for name in self._names.values()}
        self._values = {name: self._memory(name) for name in self._names.values()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes the groups' rates of an optimizer of this class.

        Raises BadValue, and changes nothing, for those of another optimizer: its momenta and counts would be
        on the server.
        """
        if state_dict["state"]:
            raise BadValue(
                "Optimizer: expected groups without state, because momenta and counts are on the server; received "
                f"the state of {len(state_dict['state'])} tensors, as another optimizer saves it"
            )
        for group in state_dict["param_groups"]:
            _check_options(group)
        super().load_state_dict(state_dict)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Adds a group, as PyTorch's optimizers do; raises what the constructor raises."""
        _check_options(param_group)
        given = param_group["params"]
        entries = [given] if isinstance(given, torch.Tensor) else list(given)
        known = names_by_id(self._ps)
        names: Dict[torch.Tensor, Optional[str]] = {}
        for entry in entries:
            tensor = entry[1] if isinstance(entry, tuple) else entry
            names[tensor] = self._name_of(entry, known)
        super().add_param_group({**param_group, "params": list(names)})
        for tensor, name in names.items():
            if name is not None:
                self._names[tensor] = name
                self._gradients[name] = self._memory(name)
                self._values[name] = self._memory(name)

    @overload
    def step(self, closure: None = ...) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @overload
    def step(self, closure: Optional[Callable[[], float]] = ...) -> Optional[float]: ...

    def step(self, closure: Optional[Callable[[], float]] = None) -> Optional[float]:
        """Sends all gradients that are not None, ends the trainer's step, and adopts the new weights.

        ``closure``, if given, is called first; it computes the gradients and returns the loss, which
        ``step`` returns. A tensor whose gradient is None still gets its new weights. Raises what
        ``Client.send_grads`` and ``Client.get_params`` raise. If only the latter has failed, the
        gradients have been applied, and ``pull`` repeats the reading.
        """
        loss = None
        if closure is not None:
            with torch.set_grad_enabled(True):
                loss = closure()
        calls = StepCalls(self._encoding, self._error_feedback)
        for group in self.param_groups:
            _check_options(group)
            lr = group["lr"]
            rate = None if lr is None else float(lr)
            for tensor in group["params"]:
                name = self._names.get(tensor)
                if tensor.grad is None or name is None:
                    continue
                gradient = to_gradient(tensor.grad, self._gradients[name])
                if gradient is not None:
                    calls.add(name, gradient, rate)
        self.late_blocks = calls.send(
            self._ps, stored_is_enough=self._stored_is_enough, timeout=self._timeout
        )
        self.pull()
        return loss

    def pull(self) -> None:
        """Reads the present weights of the server into the tensors, in the ``pull_encoding``."""
        tensors = {name: tensor for tensor, name in self._names.items()}
        pull_into(
            self._ps, tensors, self._values, encoding=self._pull_encoding, timeout=self._timeout
        )

    def _memory(self, name: str) -> HostMemory:
        return HostMemory(self._dtypes.get(name))

    def _name_of(
        self, entry: Union[torch.Tensor, Tuple[str, torch.Tensor]], known: Mapping[int, str]
    ) -> Optional[str]:
        """Returns the tensor's name in the job; None if it has no elements."""
        name, tensor = entry if isinstance(entry, tuple) else (known.get(id(entry)), entry)
        if is_lazy(tensor):
            raise BadValue(
                "Optimizer: expected tensors with a shape; received a lazy one: run the module once before"
            )
        shape = tuple(tensor.shape)
        if tensor.numel() == 0:
            return None
        if name is None:
            raise BadValue(
                f"Optimizer: a tensor of shape {shape} has no name in the job: call sync() with "
                "its module before, or give the module's named_parameters()"
            )
        if name not in self._shapes:
            short = without_wrappers(name)
            if short not in self._shapes:
                raise UnknownParameter(f"Optimizer: {name!r} is not in job {self._ps.job!r}")
            name = short
        if self._shapes[name] != shape:
            raise BadShape(
                f"Optimizer: {name!r}: expected {self._shapes[name]}, as in the job; "
                f"received {shape}"
            )
        return name


def _check_options(group: Mapping[str, Any]) -> None:
    """Raises BadValue if a group has options that would have no effect."""
    others = sorted(str(name) for name in group if name not in _OPTIONS)
    if others:
        raise BadValue(
            f"Optimizer: group: expected lr alone; received {', '.join(others)}: rule, momenta and weight decay "
            "are those of the job's configuration, which sync() takes (optimizer, beta1, l2, …)"
        )
