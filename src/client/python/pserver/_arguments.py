"""Arguments of calls, checked before anything is sent."""

from __future__ import annotations

import ctypes
import json
import math
from ctypes import POINTER, c_int64
from numbers import Real
from typing import (
    Any,
    Callable,
    Dict,
    Final,
    Iterable,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    SupportsFloat,
    Tuple,
    Union,
)

import numpy as np

from . import errors
from ._arrays import Array, check_shape, fits, from_number, is_number, to_array, to_out
from ._error import shown, unexpected
from ._native.declarations import TIMEOUT_DEFAULT, Indices, NoteEntry
from .records import ParameterInfo, Params

#: Arrays to read into, by name, or in the order of the names; None in the place of an array means a new
#: one.
Out = Union[Mapping[str, Any], Sequence[Any]]

#: How float32 elements are sent: in two bytes each, rounded to nearest; or in one byte ("int8") or half a byte
#: ("e3m0") each, with a scale for each 256 of them; None: as they are.
Encoding = Literal["bfloat16", "float16", "int8", "e3m0"]

_ENCODINGS: Final = {None: 0, "bfloat16": 1, "float16": 2, "int8": 3, "e3m0": 4}


Form = Tuple["np.dtype[Any]", Tuple[int, ...]]


def to_bytes(text: Any, what: str) -> bytes:
    """Encodes a text for the C library, with C0 80 for a NUL. BAD_NAME if it is not a text."""
    if isinstance(text, str):
        try:
            return text.encode().replace(b"\0", b"\xc0\x80")
        except UnicodeEncodeError:
            pass
    raise unexpected(errors.BadName, what, "well-formed text that is not empty", shown(text))


def to_number(value: Any) -> float:
    """Converts a Python or numpy number to a float; NaN for anything else."""
    try:
        return math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def to_ms(timeout: Optional[float], what: str = "timeout") -> int:
    """Converts seconds to whole milliseconds, at least 1; None means the client's own timeout.

    BAD_VALUE unless ``timeout`` is a number above 0.
    """
    if timeout is None:
        return TIMEOUT_DEFAULT
    seconds = to_number(timeout)
    if not 0 < seconds < 1e9:
        raise unexpected(errors.BadValue, what, "seconds, more than 0", shown(timeout))
    return max(1, round(seconds * 1000))


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
        expected = "bfloat16, float16, int8 or e3m0"
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


def to_indices(name: str, indices: Any) -> List[Array]:
    """Converts lists of indices, or the result of ``numpy.ix_``, to one array for each dimension.
    BAD_INDEX."""
    if isinstance(indices, np.ndarray) or not isinstance(indices, Sequence):
        expected = "one list of numbers for each dimension"
        raise unexpected(errors.BadIndex, name, expected, type(indices).__qualname__)
    return [
        to_numbers(f'"{name}": indices of dimension {i}', each) for i, each in enumerate(indices)
    ]


def to_numbers(what: str, numbers: Any) -> Array:
    """Converts a list of whole numbers to an array that the C library can read. BAD_INDEX."""
    expected = "a list of whole numbers"
    if isinstance(numbers, (str, bytes)):
        raise unexpected(errors.BadIndex, what, expected, type(numbers).__qualname__)
    try:
        array = np.asarray(numbers)
    except (TypeError, ValueError) as error:
        raise unexpected(errors.BadIndex, what, expected, str(error)) from error
    if array.ndim == 0:
        raise unexpected(errors.BadIndex, what, expected, shown(numbers))
    if sum(side != 1 for side in array.shape) > 1:
        raise unexpected(errors.BadIndex, what, expected, f"an array of shape {list(array.shape)}")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise unexpected(errors.BadIndex, what, expected, array.dtype.name)
    if array.dtype.kind == "u" and int(array.max()) >= 2**63:
        raise unexpected(errors.BadIndex, what, "numbers below 2^63", str(array.max()))
    return np.ascontiguousarray(array.reshape(-1), np.int64)


def pointer_to(numbers: Array) -> Any:
    """Returns a pointer to the numbers; the caller must keep the array alive."""
    return numbers.ctypes.data_as(POINTER(c_int64))


def structs_of(indices: Sequence[Array]) -> Any:
    """Returns the C library's structs for the lists; the caller must keep the arrays alive."""
    structs = (Indices * len(indices))()
    for struct, numbers in zip(structs, indices):
        struct.values, struct.count = pointer_to(numbers), numbers.size
    return structs


#: The value of an entry: a number (of numpy, too, or a tensor of one element), a text or a boolean.
NoteValue = Union[SupportsFloat, str, np.bool_]

_NUMBER: Final = 0
_TEXT: Final = 1
_FLAG: Final = 2

#: The largest whole number up to which a float holds each.
_WHOLE_MAX: Final = 2**53


def to_note_entries(note: Mapping[str, Any]) -> Tuple[ctypes.Array[NoteEntry], int]:
    """Converts a note to the C library's structs, and their number. BAD_VALUE for what no note can
    contain."""
    if not isinstance(note, Mapping):
        raise unexpected(errors.BadValue, "note", "a mapping of names to values", shown(note))
    entries = [_entry(name, value) for name, value in note.items()]
    return (NoteEntry * len(entries))(*entries), len(entries)


def _entry(name: Any, value: Any) -> NoteEntry:
    if not isinstance(name, str):
        raise unexpected(errors.BadValue, "note", "names that are texts", shown(name))
    key = to_bytes(name, "note")
    if isinstance(value, (bool, np.bool_)):
        return NoteEntry(name=key, kind=_FLAG, flag=bool(value))
    if isinstance(value, str):
        return NoteEntry(name=key, kind=_TEXT, text=_note_text(name, value))
    scalar = getattr(value, "item", None)
    if callable(scalar) and getattr(value, "size", None) in (1, None):
        value = scalar()
    if isinstance(value, (Real, np.number)) and not isinstance(value, np.complexfloating):
        return NoteEntry(name=key, kind=_NUMBER, number=_note_number(name, value))
    raise unexpected(errors.BadValue, f'note: "{name}"', "a number, text or boolean", shown(value))


def _note_number(name: str, value: SupportsFloat) -> float:
    if isinstance(value, (int, np.integer)) and abs(int(value)) > _WHOLE_MAX:
        expected = "a whole number of at most 2^53, or the number as text"
        raise unexpected(errors.BadValue, f'note: "{name}"', expected, shown(value))
    return float(value)


def _note_text(name: str, value: str) -> bytes:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise unexpected(
            errors.BadValue, f'note: "{name}"', "well-formed text without a NUL", shown(value)
        )
    return encoded


class KnownForms:
    """Element types and shapes by parameter name, as far as this client knows them."""

    def __init__(self, ask: Callable[[int], List[ParameterInfo]]) -> None:
        self._ask = ask
        self._forms: Dict[str, Form] = {}

    def learn(self, name: str, array: Array) -> None:
        """Remembers that the parameter has the type and shape of this array."""
        self._forms[name] = (array.dtype, array.shape)

    def learn_all(self, parameters: Iterable[ParameterInfo]) -> None:
        """Remembers the types and shapes in an answer of the job."""
        self._forms.update({each.name: (each.dtype, each.shape) for each in parameters})

    def of(self, name: str, timeout_ms: int) -> Optional[Form]:
        """Returns type and shape, and asks the job if they are not known yet; None if there is no such
        parameter."""
        if name not in self._forms:
            self.learn_all(self._ask(timeout_ms))
        return self._forms.get(name)

    def check(self, name: str, array: Array, timeout_ms: int) -> None:
        """Raises BAD_DTYPE or BAD_SHAPE if the array does not fit the parameter; does nothing if that
        does not exist yet."""
        known = self._forms.get(name)
        if known is not None and fits(array, *known):
            return
        # The parameter may have been initialized again, with another type or shape.
        self._forms.pop(name, None)
        form = self.of(name, timeout_ms)
        if form is not None:
            check_shape(name, array, *form)

    def part_target(
        self, name: str, out: Any, lists: Sequence[Array], timeout_ms: int
    ) -> Optional[Array]:
        """Views ``out`` as an array for the elements at these lists; returns None without one. BAD_DTYPE or BAD_SHAPE if it
        does not fit."""
        if out is None:
            return None
        array = to_out(out, f'out["{name}"]')
        shape = tuple(len(each) for each in lists)
        known = self._forms.get(name)
        if known is None or not fits(array, known[0], shape):
            # It may have been initialized again, with another type.
            self._forms.pop(name, None)
            form = self.of(name, timeout_ms)
            if form is not None:
                check_shape(name, array, form[0], shape)
        return array
