"""The rule by which a job takes up what trainers have changed on their own."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

import torch

from ..errors import BadConfig

#: The outer optimizer of the DiLoCo paper (Douillard et al., 2023).
DILOCO: Mapping[str, Any] = {"optimizer": "nesterov", "lr": 0.7, "momentum": 0.9}

_NUMBERS_OF_RULES = ("momentum", "rho", "beta", "beta1", "beta2", "epsilon")


def outer_config(
    outer: Optional[Mapping[str, Any]], optimizer: Optional[torch.optim.Optimizer]
) -> Dict[str, Any]:
    """The configuration of parameters that get pseudo-gradients.

    `outer` has the server's rule as `optimizer` ("nesterov" if absent), its rate as `lr`, its
    numbers, and any other entry of a configuration; instead of it, one of `torch.optim.SGD` gives
    its settings. Raises BadConfig for both, and for another optimizer of PyTorch's.
    """
    if optimizer is not None:
        if outer is not None:
            raise BadConfig("DiLoCo: expected outer or outer_optimizer; received both")
        outer = _of_sgd(optimizer)
    given = dict(DILOCO if outer is None else outer)
    rule = {"name": given.pop("optimizer", "nesterov")}
    rule.update({key: given.pop(key) for key in _NUMBERS_OF_RULES if key in given})
    if "lr" in given:
        given["learningRate"] = given.pop("lr")
    return {"optimizer": rule, **given}


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
