"""An optimizer whose rule and state are on the server."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple, Union, cast, overload

import torch

from .._arguments import Encoding
from ..client import Client
from ..errors import BadShape, BadValue, UnknownParameter
from ._tensors import HostMemory, StepCalls, names_by_id, pull_into, to_gradient

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

    ``encoding`` applies to float32 gradients: "bfloat16" or "float16", or None. With
    ``stored_is_enough`` a step waits only for the journal's acknowledgement. ``timeout`` is for each
    call, in seconds; in a ``sync`` or ``ssp`` job a step waits for other trainers.

    Raises BadValue for a tensor without a name, UnknownParameter for one that is not in the job,
    BadShape for one that has another shape there.
    """

    def __init__(
        self,
        ps: Client,
        params: Parameters,
        lr: Optional[float] = None,
        *,
        encoding: Optional[Encoding] = None,
        stored_is_enough: bool = False,
        timeout: Optional[float] = None,
    ) -> None:
        self._ps = ps
        self._encoding = encoding
        self._stored_is_enough = stored_is_enough
        self._timeout = timeout
        self._shapes = {info.name: tuple(info.shape) for info in ps.list_params(timeout=timeout)}
        self._names: Dict[torch.Tensor, str] = {}
        self._gradients: Dict[str, HostMemory] = {}
        self._values: Dict[str, HostMemory] = {}
        #: Blocks whose gradient of the last step came after that step had closed: see
        #: ``Client.send_grads``.
        self.late_blocks = 0
        super().__init__(cast(Any, params), {"lr": lr})

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Adds a group, as PyTorch's optimizers do; raises what the constructor raises."""
        given = param_group["params"]
        entries = [given] if isinstance(given, torch.Tensor) else list(given)
        known = names_by_id(self._ps)
        names = {tensor: name for name, tensor in (self._named(each, known) for each in entries)}
        super().add_param_group({**param_group, "params": list(names)})
        for tensor, name in names.items():
            self._names[tensor] = name
            self._gradients[name] = HostMemory()
            self._values[name] = HostMemory()

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
        calls = StepCalls(self._encoding)
        for group in self.param_groups:
            lr = group["lr"]
            rate = None if lr is None else float(lr)
            for tensor in group["params"]:
                if tensor.grad is None:
                    continue
                name = self._names[tensor]
                gradient = to_gradient(tensor.grad, self._gradients[name])
                if gradient is not None:
                    calls.add(name, gradient, rate)
        self.late_blocks = calls.send(
            self._ps, stored_is_enough=self._stored_is_enough, timeout=self._timeout
        )
        self.pull()
        return loss

    def pull(self) -> None:
        """Reads the present weights of the server into the tensors."""
        tensors = {name: tensor for tensor, name in self._names.items()}
        pull_into(self._ps, tensors, self._values, timeout=self._timeout)

    def _named(
        self, entry: Union[torch.Tensor, Tuple[str, torch.Tensor]], known: Mapping[int, str]
    ) -> Tuple[str, Any]:
        name, tensor = entry if isinstance(entry, tuple) else (known.get(id(entry)), entry)
        shape = tuple(tensor.shape)
        if name is None:
            raise BadValue(
                f"Optimizer: a tensor of shape {shape} has no name in the job: call sync() with "
                "its module before, or give the module's named_parameters()"
            )
        if name not in self._shapes:
            raise UnknownParameter(f"Optimizer: {name!r} is not in job {self._ps.job!r}")
        if self._shapes[name] != shape:
            raise BadShape(
                f"Optimizer: {name!r}: expected {self._shapes[name]}, as in the job; "
                f"received {shape}"
            )
        return name, tensor
