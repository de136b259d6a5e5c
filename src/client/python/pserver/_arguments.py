"""Arguments other than arrays, checked before anything is sent."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Final, List, Literal, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import errors
from ._arrays import Array, from_number, is_number, to_array
from ._error import shown, unexpected
from ._names import to_bytes
from ._results import to_out
from ._settings import to_number
from .records import Params

#: Arrays to read into, by name, or in the order of the names; None in the place of an array means a new
#: one.
Out = Union[Mapping[str, Any], Sequence[Any]]

#: How float32 elements are sent: in two bytes each, rounded to nearest; None: as they are.
Encoding = Literal["bfloat16", "float16"]

_ENCODINGS: Final = {None: 0, "bfloat16": 1, "float16": 2}


def first_value(name: str, value: Any) -> Array:
    """Converts the first value of a parameter, which decides the parameter's element type, to an
    array."""
    what = f'"{name}"'
    return from_number(value, what, None) if is_number(value) else to_array(value, what)


def items_of(values: Any, what: str) -> List[Tuple[str, Any]]:
    """Returns names and values of a dict argument. BAD_VALUE for anything else."""
    if isinstance(values, Mapping):
        return list(values.items())
    raise errors.BadValue(
        f"{what}: expected a dict by parameter name; received {type(values).__qualname__}",
        {"expected": "a dict", "received": type(values).__qualname__},
    )


def names_of(names: Any) -> List[str]:
    """Returns the names of a call, each once. BAD_VALUE if ``names`` is not a list, BAD_NAME for a
    wrong name."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise unexpected(errors.BadValue, "names", "a list of names", shown(names))
    listed = list(names)
    for name in listed:
        to_bytes(name, "name")
    return list(dict.fromkeys(listed))


def known_of(known: Any) -> Mapping[str, Array]:
    """Returns the arrays of an earlier result; none for None. BAD_VALUE if it is no result of
    ``get_params``."""
    if known is None:
        return {}
    if isinstance(known, Params):
        return known
    raise unexpected(errors.BadValue, "known", "a result of get_params", shown(known))


def targets_of(
    names: List[str], out: Optional[Out], known: Mapping[str, Array]
) -> Dict[str, Array]:
    """Returns the arrays to read into, by name, as arrays of numpy.

    BAD_VALUE if they share memory with each other, or with the known arrays of other parameters.
    """
    if out is None:
        return {}
    if not isinstance(out, Mapping):
        if isinstance(out, np.ndarray) or not isinstance(out, Sequence) or len(out) != len(names):
            raise _bad_out(f"a dict, or a sequence of {len(names)} arrays", type(out).__qualname__)
        out = dict(zip(names, out))
    wanted = set(names)
    for name in out:
        if name not in wanted:
            raise _bad_out("arrays for the names that are read", shown(name))
    targets = {
        name: to_out(target, f'out["{name}"]') for name, target in out.items() if target is not None
    }
    _check_apart(targets, known)
    return targets


def _check_apart(targets: Mapping[str, Array], known: Mapping[str, Array]) -> None:
    """Raises BAD_VALUE if arrays share memory: values of one would overwrite those of another."""
    arrays = [(name, array) for name, array in targets.items() if array.size > 0]
    if arrays:
        arrays += [
            (name, array)
            for name, array in known.items()
            if name not in targets or _address(array) != _address(targets[name])
        ]
    spans = sorted((_address(array), array.nbytes, name) for name, array in arrays)
    for (start, size, name), (following, _, other) in zip(spans, spans[1:]):
        if following < start + size:
            raise _bad_out("arrays that share no memory", f'those of "{name}" and "{other}"')


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _bad_out(expected: str, received: str) -> errors.BadValue:
    return unexpected(errors.BadValue, "out", expected, received)


def encoding_number(encoding: Optional[Encoding]) -> int:
    """Returns the number of the encoding in ``pserver_encoding``. BAD_VALUE for an unknown one."""
    try:
        return _ENCODINGS[encoding]
    except (KeyError, TypeError):
        expected = "bfloat16 or float16"
        raise unexpected(errors.BadValue, "encoding", expected, shown(encoding)) from None


def factor_of(number: Any, what: str) -> float:
    """Converts a number to a float. BAD_VALUE unless it is finite."""
    factor = to_number(number)
    if math.isfinite(factor):
        return factor
    raise errors.BadValue(
        f"{what}: expected a finite number; received {shown(number)}",
        # Every client writes NaN and infinities in this form.
        {
            "expected": "a finite number",
            "received": json.dumps(number) if isinstance(number, float) else shown(number),
        },
    )
