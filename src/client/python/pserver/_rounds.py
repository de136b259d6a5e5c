"""Calls of the C library about rounds of fragments."""

from __future__ import annotations

import math
import time
from ctypes import POINTER, byref, c_bool, c_char_p, c_size_t, c_uint64, sizeof
from typing import (
    Any,
    Collection,
    Dict,
    Final,
    Iterable,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from . import errors
from ._arguments import Encoding, encoding_number, to_number
from ._arrays import Array, take, tensor_of
from ._calls import to_text
from ._error import shown, unexpected
from ._native import declarations
from ._native.declarations import BalancedTensor, Contribution, Tensor
from ._native.library import Connection, library
from .records import ContributionAccount, Fragments, PulledFragment, Sampling, Tally

#: What the arrays of a contribution are.
Form = Literal["displacement", "parameters"]

_FORMS: Final[Mapping[Any, int]] = {"displacement": 0, "parameters": 1}

#: Numbers that every language can hold.
_WHOLE_MAX: Final = 2**53


def whole(number: Any, what: str) -> int:
    """Returns a whole number from 0 on. BAD_VALUE for anything else."""
    value = to_number(number)
    if 0 <= value <= _WHOLE_MAX and value == math.floor(value):
        return int(value)
    raise unexpected(errors.BadValue, what, "a whole number from 0 on", shown(number))


def contribution(
    fragment: bytes,
    counts: Mapping[str, Any],
    step_time: Optional[float],
    form: Form,
    encoding: Optional[Encoding],
    error_feedback: bool,
) -> Contribution:
    """Makes the C library's struct for a contribution. BAD_VALUE for what is wrong with it."""
    if form not in _FORMS:
        raise unexpected(errors.BadValue, "form", "displacement or parameters", shown(form))
    step_ms = -1.0 if step_time is None else to_number(step_time) * 1000
    if step_time is not None and not 0 <= step_ms < math.inf:
        raise unexpected(errors.BadValue, "step_time", "seconds, 0 or more", shown(step_time))
    return Contribution(
        struct_size=sizeof(Contribution),
        fragment=fragment,
        step_ms=step_ms,
        form=_FORMS[form],
        encoding=encoding_number(encoding),
        no_error_feedback=not error_feedback,
        **{name: whole(count, name) for name, count in counts.items()},
    )


def set_exact(struct: Contribution, values: Mapping[str, Any], exact: Collection[str]) -> None:
    """Notes which of the values are sent as they are. BAD_VALUE for a name that is not among them."""
    check_exact(values, exact)
    struct.exact = (c_bool * len(values))(*(name in exact for name in values))


def check_exact(names: Collection[str], exact: Collection[str]) -> None:
    """Raises BAD_VALUE unless all of ``exact`` are among the names."""
    unknown = [exact] if isinstance(exact, str) else [each for each in exact if each not in names]
    if unknown:
        raise unexpected(
            errors.BadValue, "exact", f"a list of some of {sorted(names)}", shown(unknown)
        )


def contribute(
    connection: Connection,
    values: Sequence[Tuple[bytes, Array]],
    struct: Contribution,
    timeout_ms: int,
) -> Optional[int]:
    """Contributes; returns the round that the contribution counts in, None if it came too late."""
    names = (c_char_p * len(values))(*(name for name, _ in values))
    tensors = (Tensor * len(values))(*(tensor_of(value) for _, value in values))
    number = c_uint64()
    connection.call(
        "pserver_contribute",
        names,
        tensors,
        len(values),
        byref(struct),
        timeout_ms,
        byref(number),
    )
    return number.value or None


def fragments(connection: Connection, timeout_ms: int) -> Fragments:
    """Returns the fragments of the job."""
    found = POINTER(declarations.Fragment)()
    count, account = c_size_t(), declarations.Account()
    connection.call("pserver_fragments", byref(found), byref(count), byref(account), timeout_ms)
    try:
        listed = [found[i] for i in range(count.value)]
        parameters = {
            to_text(each.name): tuple(
                to_text(each.parameters[i]) for i in range(each.parameter_count)
            )
            for each in listed
        }
        versions = {to_text(each.name): each.version for each in listed}
    finally:
        connection.native.functions.pserver_fragments_release(found, count)
    return Fragments(versions, parameters, _account(account))


def _account(account: declarations.Account) -> ContributionAccount:
    return ContributionAccount(
        processed=_tally(account.processed),
        merged=_tally(account.merged),
        late=_tally(account.late),
        dropped=_tally(account.dropped),
    )


def _tally(tally: declarations.Tally) -> Tally:
    return Tally(tally.contributions, tally.steps, tally.tokens)


def sampling(
    connection: Connection, fragment: bytes, parameter: bytes, min_version: int, timeout_ms: int
) -> Sampling:
    """Returns whether the trainer may contribute to the open round of a fragment."""
    number, is_sampled = c_uint64(), c_bool()
    connection.call(
        "pserver_sampling",
        fragment,
        parameter,
        min_version,
        timeout_ms,
        byref(number),
        byref(is_sampled),
    )
    return Sampling(number.value, is_sampled.value)


def pull(
    connection: Connection,
    fragment: bytes,
    names: Sequence[str],
    encodings: Sequence[int],
    min_version: int,
    timeout_ms: int,
) -> PulledFragment:
    """Reads the parameters of a fragment at one version, each in its encoding."""
    deadline = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000
    found: Dict[str, Array] = {}
    version = min_version
    while len(found) < len(names):
        # All that have the encoding of the first one that is missing.
        encoding = next(e for name, e in zip(names, encodings) if name not in found)
        read = [name for name, each in zip(names, encodings) if each == encoding]
        left_ms = timeout_ms
        if deadline is not None:
            left_ms = max(0, math.ceil((deadline - time.monotonic()) * 1000))
        pulled = _pull_alike(connection, fragment, read, encoding, version, left_ms)
        if pulled.version != version:
            # A round has closed since the others were read.
            version, found = pulled.version, {}
        found.update(pulled.params)
    return PulledFragment(version, {name: found[name] for name in names})


def _pull_alike(
    connection: Connection,
    fragment: bytes,
    names: Sequence[str],
    encoding: int,
    min_version: int,
    timeout_ms: int,
) -> PulledFragment:
    """Reads parameters of a fragment at one version, all in one encoding."""
    tensors = (Tensor * len(names))()
    version = c_uint64()
    connection.call(
        "pserver_pull_fragment",
        fragment,
        (c_char_p * len(names))(*(name.encode() for name in names)),
        tensors,
        len(names),
        min_version,
        encoding,
        timeout_ms,
        byref(version),
    )
    arrays = [take(connection.native, tensor) for tensor in tensors]
    return PulledFragment(version.value, dict(zip(names, arrays)))


def balance(tensors: Iterable[Tuple[bytes, int, bool]], count: int) -> List[str]:
    """Divides tensors, given as name, bytes and whether each is an embedding, among ``count`` fragments; returns the
    fragment of each."""
    given = list(tensors)
    structs = (BalancedTensor * len(given))()
    for struct, (name, size, is_embedding) in zip(structs, given):
        struct.name, struct.bytes, struct.is_embedding = name, size, is_embedding
    native = library()
    native.check(native.functions.pserver_balance_fragments(structs, len(given), count))
    return [struct.fragment.decode() for struct in structs]
