"""Makes a module and the parameters of a job equal."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, Final, List, Mapping, Optional, Type, Union

import torch
from torch import nn

from .._arguments import to_number
from .._arrays import name_of
from .._error import Error
from ..client import Client
from ..config import ConfigInput, to_config, with_keywords
from ..errors import BadDtype, BadShape, BadValue, UnknownParameter
from ..records import ParameterInfo
from ._modules import (
    fits_dtype,
    held_dtype,
    held_in,
    module_tensors,
    names_by_id,
    remember,
    short,
    sparse_weights,
    torch_dtype,
)
from ._spectral import overwrite, spectral_vectors, vector_names
from ._tensors import HostMemory, pull_into

#: How parameters are updated, in any form that ``Client.init_params`` takes, or a function that returns
#: it for each parameter.
Config = Union[ConfigInput, Callable[[str, torch.Tensor], ConfigInput], None]

#: The rule for buffers, on which trainers agree by averaging: it adds differences.
_BUFFER_CONFIG: Final = {"optimizer": "sgd", "learningRate": 1.0}
_INTEGER_CONFIG: Final = {"optimizer": "none"}

#: Seconds in which an initialization that has failed is given up.
_ABORT_TIMEOUT: Final = 10.0


def sync(
    ps: Client,
    model: nn.Module,
    config: Config = None,
    *,
    timeout: Optional[float] = None,
    **keywords: Any,
) -> bool:
    """Gives the job the module's values if it has none yet, and the module the job's values.

    If several trainers call this at once, one is selected to initialize the job; the others wait for
    it, and one takes its place if it dies. Later trainers adopt the job's values. The job holds the
    module's parameters and its persistent buffers of floats, of bools, and of integers except those of 16 bits, by their
    names in the module, which are those of ``state_dict()`` without what ``torch.compile`` and
    ``DataParallel`` add; a tied weight has its first name, or the one that a job has for it which was
    loaded from a file. A job that gets its values here holds tensors of half precision as float32, because small
    updates of half floats would round to nothing; those of frozen parameters as they are. A job that was loaded from
    a file holds what the file has, and computes with half floats as float32.

    ``config`` and ``keywords`` say how each parameter is updated, as for ``Client.init_params``; only
    those of the first trainer count. If ``config`` is a function, it gets each parameter's name and
    tensor. The weight of an embedding with sparse gradients is also configured ``sparse``, unless its
    configuration is text, bytes or Paddle's. ``timeout`` is for each call, in seconds.

    Returns whether this trainer has given the values. Raises BadValue if the job cannot hold the
    module; UnknownParameter, BadDtype or BadShape, naming every tensor that does not fit, if the
    job was initialized from another one. The module is then unchanged. If this trainer is selected and fails,
    it gives up the initialization, and another trainer can be selected.
    """
    tensors = module_tensors(model)
    memory = {name: HostMemory(held_dtype(tensor)) for name, tensor in tensors.items()}
    # Whatever can fail in this process does so before the job knows of this trainer.
    values = {name: memory[name].read(tensor) for name, tensor in tensors.items()}
    configs = _configs_of(model, tensors, config, keywords)
    selected = ps.begin_init(timeout=timeout)
    if selected:
        _initialize(ps, values, configs, timeout)
    else:
        held = {info.name: info for info in ps.list_params(timeout=timeout)}
        tensors = module_tensors(model, held)
        _check(ps, tensors, held)
        memory = {name: HostMemory(torch_dtype(held[name])) for name in tensors}
    pull_into(ps, tensors, memory, timeout=timeout)
    remember(ps, tensors, {name: place.dtype for name, place in memory.items() if place.dtype})
    return selected


def _initialize(
    ps: Client,
    values: Mapping[str, Any],
    configs: Mapping[str, Optional[ConfigInput]],
    timeout: Optional[float],
) -> None:
    """Initializes the job. After an error another trainer can be selected."""
    try:
        ps.init_params(values, configs.get, timeout=timeout)
        ps.finish_init(timeout=timeout)
    except BaseException:
        try:
            ps.abort_init(timeout=_ABORT_TIMEOUT)
        except Error as error:
            warnings.warn(
                f"sync: another trainer can initialize job {ps.job!r} only after this client is closed, because "
                f"the initialization could not be given up: {error}",
                RuntimeWarning,
                stacklevel=3,
            )
        raise


def push_buffers(
    ps: Client, model: nn.Module, weight: float = 1.0, *, timeout: Optional[float] = None
) -> None:
    """Sends the module's buffers, such as the running statistics of a batch norm, to the job.

    Buffers of floats become (1 − weight) · the job's + weight · the module's; those of integers and bools, those with
    infinities, and the vectors of spectral norms are overwritten. ``Optimizer`` does not send buffers, so call this before a
    model is saved: at the end in one trainer, or from time to time in each of n trainers with weight 1/n.
    ``timeout`` is for each call, in seconds. Raises BadValue for a weight outside of 0 to 1.
    """
    if not 0 <= to_number(weight) <= 1:
        raise BadValue(f"push_buffers: weight: expected 0 to 1; received {weight!r}")
    vectors = vector_names(spectral_vectors(model))
    whole: Dict[str, torch.Tensor] = {}
    for name, tensor in module_tensors(model, set(names_by_id(ps).values())).items():
        if isinstance(tensor, nn.Parameter):
            continue
        if tensor.is_floating_point() and name not in vectors and _is_finite(tensor):
            value = HostMemory(held_in(ps, name, tensor)).read(tensor)
            ps.push(name, value, 1.0 - weight, weight, timeout=timeout)
        else:
            whole[name] = tensor
    overwrite(ps, whole, timeout=timeout)


def _configs_of(
    model: nn.Module,
    tensors: Mapping[str, torch.Tensor],
    config: Config,
    keywords: Mapping[str, Any],
) -> Dict[str, Optional[ConfigInput]]:
    """Returns the configuration of each tensor, in a form that can be sent."""
    sparse = sparse_weights(model)
    configs = {
        name: _config_of(name, tensor, config, keywords, id(tensor) in sparse)
        for name, tensor in tensors.items()
    }
    for each in configs.values():
        to_config(each, {})
    return configs


def _config_of(
    name: str,
    tensor: torch.Tensor,
    config: Config,
    keywords: Mapping[str, Any],
    sparse: bool,
) -> Optional[ConfigInput]:
    """Returns the configuration of one tensor."""
    if not isinstance(tensor, nn.Parameter):
        return buffer_config(tensor)
    own = config(name, tensor) if callable(config) else config
    settings = dict(keywords)
    if sparse and (own is None or isinstance(own, Mapping) and "sparse" not in own):
        settings["sparse"] = True
    return with_keywords(own, settings)


def buffer_config(tensor: torch.Tensor) -> Dict[str, Any]:
    """Returns the configuration of a buffer. One that has infinities, such as a mask, may keep them."""
    if not tensor.is_floating_point():
        return dict(_INTEGER_CONFIG)
    if _is_finite(tensor):
        return dict(_BUFFER_CONFIG)
    return {**_BUFFER_CONFIG, "allowNonFinite": True}


def _is_finite(tensor: torch.Tensor) -> bool:
    return bool(torch.isfinite(tensor).all())


def _check(
    ps: Client, tensors: Mapping[str, torch.Tensor], held: Mapping[str, ParameterInfo]
) -> None:
    """Raises the error that names every tensor that does not fit the job's parameters."""
    wrong: List[str] = []
    errors: List[Type[Error]] = []
    for name, tensor in tensors.items():
        info = held.get(name)
        shape, dtype = tuple(tensor.shape), short(tensor.dtype)
        if info is None:
            errors.append(UnknownParameter)
            wrong.append(f"{name!r} is not in the job")
        elif tuple(info.shape) != shape:
            errors.append(BadShape)
            wrong.append(f"{name!r} has {tuple(info.shape)} in the job, {shape} in the module")
        elif not fits_dtype(tensor, name_of(info.dtype)):
            errors.append(BadDtype)
            wrong.append(f"{name!r} holds {name_of(info.dtype)} in the job, {dtype} in the module")
    if wrong:
        text = f"expected a module that fits job {ps.job!r}, which is initialized, or another job; "
        raise errors[0](text + "received one of which " + "; ".join(wrong))
