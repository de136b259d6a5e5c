"""The unit vectors of spectral norms, which follow a weight and cannot be averaged."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Callable, Dict, Final, Iterator, List, Mapping, Sequence, Set

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import _SpectralNorm

from ..client import Client
from ._modules import HELD_AS, held_in, parts
from ._tensors import HostMemory

# In the package the function of this name hides the module.
_Hook: Final[Any] = import_module("torch.nn.utils.spectral_norm").SpectralNorm

#: Rounds of the power iteration at most. From the vectors of a similar weight a few are enough, unless its
#: two largest singular values are nearly equal, and then the norm is right all the same.
_ROUNDS_MAX: Final = 100
_SETTLED: Final = 1e-6


@dataclass(frozen=True)
class SpectralVectors:
    """The approximations of the first singular vectors of one weight: u, v and the names of their buffers."""

    u_name: str
    v_name: str
    u: torch.Tensor
    v: torch.Tensor
    #: Computes the weight as the matrix whose vectors these are.
    matrix: Callable[[], torch.Tensor]
    eps: float

    def compute(self) -> None:
        """Computes the vectors of the present weight, in place, beginning with the ones they are."""
        with torch.no_grad():
            # PyTorch multiplies no half precision on every processor.
            held = HELD_AS[self.u.dtype]
            matrix, u = self.matrix().to(held), self.u.to(held)
            for _ in range(_ROUNDS_MAX):
                v = nn.functional.normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps)
                before, u = u, nn.functional.normalize(torch.mv(matrix, v), dim=0, eps=self.eps)
                if float((u - before).abs().max()) < _SETTLED:
                    break
            self.v.copy_(v)
            self.u.copy_(u)


def spectral_vectors(module: nn.Module) -> List[SpectralVectors]:
    """Returns the vectors of all spectral norms in a module, of both of PyTorch's functions for them."""
    return [vectors for prefix, part in parts(module) for vectors in _vectors_of(prefix, part)]


def vector_names(vectors: Sequence[SpectralVectors]) -> Set[str]:
    """Returns the names of the buffers."""
    return {name for each in vectors for name in (each.u_name, each.v_name)}


def overwrite(ps: Client, tensors: Mapping[str, torch.Tensor], **options: Any) -> None:
    """Gives the job these values, by one call; does nothing without any."""
    values: Dict[str, Any] = {
        name: HostMemory(held_in(ps, name, tensor)).read(tensor) for name, tensor in tensors.items()
    }
    if values:
        ps.set_params(values, **options)


def _vectors_of(prefix: str, part: nn.Module) -> Iterator[SpectralVectors]:
    for hook in part._forward_pre_hooks.values():
        if isinstance(hook, _Hook):
            yield _of_hook(prefix, part, hook)
    if isinstance(part, parametrize.ParametrizationList):
        for place, norm in enumerate(part):
            # The norm of a weight of one dimension is computed without vectors.
            if isinstance(norm, _SpectralNorm) and "_u" in norm._buffers:
                yield _of_parametrization(f"{prefix}{place}.", part, place, norm)


def _of_hook(prefix: str, part: nn.Module, hook: Any) -> SpectralVectors:
    u, v = f"{hook.name}_u", f"{hook.name}_v"
    return SpectralVectors(
        prefix + u,
        prefix + v,
        getattr(part, u),
        getattr(part, v),
        lambda: hook.reshape_weight_to_matrix(getattr(part, f"{hook.name}_orig")),
        hook.eps,
    )


def _of_parametrization(
    prefix: str, parametrizations: Any, place: int, norm: Any
) -> SpectralVectors:
    def matrix() -> torch.Tensor:
        if parametrizations.is_tensor:
            inputs = [parametrizations.original]
        else:
            count = parametrizations.ntensors
            inputs = [getattr(parametrizations, f"original{i}") for i in range(count)]
        for earlier in list(parametrizations)[:place]:
            inputs = [earlier(*inputs)]
        found: torch.Tensor = norm._reshape_weight_to_matrix(*inputs)
        return found

    return SpectralVectors(f"{prefix}_u", f"{prefix}_v", norm._u, norm._v, matrix, norm.eps)
