"""Configurations of parameters, in the forms in which callers give them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union

import numpy as np

from . import errors
from ._error import unexpected
from ._native.declarations import Config


@dataclass(frozen=True)
class PaddleConfigs:
    """PaddlePaddle's serialized messages: ``OptimizerConfig`` and ``ParameterConfig``."""

    optimizer: Optional[bytes] = None
    parameter: Optional[bytes] = None


#: Settings by name, as a dict or as JSON or YAML text, or PaddlePaddle's messages; bytes alone are an
#: ``OptimizerConfig``. In a dict, names are written as in Python, ``learning_rate``, or as in the
#: texts, ``learningRate``.
ConfigInput = Union[Mapping[str, Any], str, bytes, PaddleConfigs]


def to_config(config: Optional[ConfigInput], keywords: Mapping[str, Any]) -> Optional[Config]:
    """Converts a configuration to the C library's struct; None for all defaults. The C library checks
    the values.

    BAD_CONFIG for keywords together with a text or messages, for settings given twice, and for values that
    JSON cannot hold.
    """
    config = with_keywords(config, keywords)
    if isinstance(config, (bytes, bytearray, memoryview)):
        config = PaddleConfigs(optimizer=bytes(config))
    if config is None or isinstance(config, Mapping):
        return Config(text=_to_json(config)) if config else None
    if isinstance(config, str):
        return Config(text=_to_text(config))
    if isinstance(config, PaddleConfigs):
        optimizer, parameter = config.optimizer, config.parameter
        return Config(
            optimizer_config=optimizer,
            optimizer_config_bytes=len(optimizer or b""),
            parameter_config=parameter,
            parameter_config_bytes=len(parameter or b""),
        )
    raise _bad_config(
        "a dict, text, bytes of an OptimizerConfig, or PaddleConfigs", type(config).__qualname__
    )


def with_keywords(
    config: Optional[ConfigInput], keywords: Mapping[str, Any]
) -> Optional[ConfigInput]:
    """Adds further settings to a configuration; names become those of the texts.

    BAD_CONFIG for keywords together with a text or messages, and for settings given twice.
    """
    if config is None or isinstance(config, Mapping):
        return _merge(config or {}, keywords)
    if keywords:
        raise _bad_config("keywords, or a text or messages alone", "both")
    return config


def _merge(config: Mapping[str, Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    settings = _camel_keys(config)
    for key, value in _camel_keys(keywords).items():
        if key in settings:
            raise _bad_config(f"{key} once", "it in the dict and as a keyword")
        settings[key] = value
    return settings


def _camel_keys(settings: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = _camel(key) if isinstance(key, str) else str(key)
        if name in found:
            raise _bad_config(f"{name} once", "it in two spellings")
        found[name] = _camel_keys(value) if isinstance(value, Mapping) else value
    return found


def _camel(name: str) -> str:
    return re.sub(r"(?<=[A-Za-z0-9])_([a-z0-9])", lambda match: match[1].upper(), name)


def _to_json(settings: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(settings, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise _bad_config("numbers, texts, lists and dicts", str(error)) from error


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a {type(value).__qualname__}")


def _to_text(text: str) -> bytes:
    if "\0" in text:
        raise _bad_config("JSON or YAML", "text with a NUL")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _bad_config("well-formed text", str(error)) from error


def _bad_config(expected: str, received: str) -> errors.BadConfig:
    return unexpected(errors.BadConfig, "config", expected, received)
