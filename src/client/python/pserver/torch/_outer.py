"""The rule by which the job updates its parameters with what learners have learned."""

from __future__ import annotations

from typing import Any, Collection, Dict, Final, Mapping, Optional

import torch

from ..client import Client
from ..config import with_keywords
from ..errors import BadConfig

#: The outer optimizer of the DiLoCo paper (Douillard et al., 2023).
DILOCO: Mapping[str, Any] = {"optimizer": "nesterov", "lr": 0.7, "momentum": 0.9}

_NUMBERS_OF_RULES: Final = ("momentum", "rho", "beta", "beta1", "beta2", "epsilon")


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
