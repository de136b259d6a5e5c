"""Which values are taken as arrays, and what the errors for all others say."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy as np
import pytest

import pserver
from pserver._arrays import DTYPES, from_number, to_array, to_out

MASKED: Any = np.ma
VALUES: Any = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


class Device:
    """A tensor on a device with this number in DLPack."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._kind, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return VALUES.__dlpack__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError("a copy was made")


class Exchanged:
    """A tensor in CPU memory that can be read only through DLPack."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        return VALUES.__dlpack__()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (VALUES, VALUES),
        (VALUES.T, VALUES.T),
        (VALUES[:, ::-2, 1:3], VALUES[:, ::-2, 1:3]),
        (np.asfortranarray(VALUES), VALUES),
        (VALUES.astype(">f4"), VALUES),
        (np.broadcast_to(np.float64(2), (2, 2)), np.full((2, 2), 2.0)),
        (np.float32(1.5), np.float32(1.5)),
        (np.array(7, np.uint64), np.array(7, np.uint64)),
        (np.empty((0, 3), np.int32), np.empty((0, 3), np.int32)),
        (memoryview(VALUES), VALUES),
        (memoryview(VALUES[:, 1]), VALUES[:, 1]),
        (array.array("d", [1, 2]), np.array([1.0, 2.0])),
        ((ctypes.c_int64 * 3)(1, 2, 3), np.array([1, 2, 3])),
        (Exchanged(), VALUES),
        (VALUES.astype(">f2"), VALUES.astype("<f2")),
        (VALUES > 3, VALUES > 3),
        (VALUES.astype(np.int8), VALUES.astype(np.int8)),
        (b"abcd", np.frombuffer(b"abcd", np.uint8)),
        (np.frombuffer(b"\0" + VALUES.tobytes(), np.float32, offset=1), VALUES.reshape(-1)),
    ],
)
def test_takes_arrays_of_any_order(given: Any, expected: Any) -> None:
    taken = to_array(given, "w")
    assert taken.flags.c_contiguous and taken.dtype in DTYPES and taken.shape == expected.shape
    np.testing.assert_array_equal(taken, expected)
    assert taken.dtype == np.asarray(expected).dtype.newbyteorder("<")


@pytest.mark.parametrize("given", [VALUES, VALUES[1], memoryview(VALUES), Exchanged()])
def test_copies_nothing_that_is_in_order(given: Any) -> None:
    assert np.shares_memory(to_array(given, "w"), VALUES)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (VALUES.astype(np.uint16), pserver.BadDtype, r"uint16; bits .* \.view\(pserver.bfloat16\)"),
        (VALUES.astype(np.int16), pserver.BadDtype, "int16"),
        (VALUES.astype(np.complex64), pserver.BadDtype, "complex64"),
        (np.array([None, 1]), pserver.BadDtype, "object"),
        (np.array(["a"]), pserver.BadDtype, "<U1"),
        (np.zeros(2, [("a", "f4")]), pserver.BadDtype, "'a'"),
        (
            [1.0, 2.0],
            pserver.BadValue,
            r"received list: make an array of it, with numpy.asarray\(\)",
        ),
        ((1.0,), pserver.BadValue, "received tuple"),
        ("text", pserver.BadValue, "received str"),
        (None, pserver.BadValue, "received NoneType"),
        (True, pserver.BadValue, "received bool"),
        (1j, pserver.BadValue, "received complex"),
        (object(), pserver.BadValue, "received object"),
        (MASKED.array([1.0, 2.0], mask=[True, False]), pserver.BadValue, r"filled\(\)"),
        (Device(2), pserver.BadValue, r"received one on CUDA: copy it first, .* cpu\(\)"),
        (Device(10), pserver.BadValue, "ROCm"),
        (Device(99), pserver.BadValue, "device of kind 99"),
    ],
)
def test_refuses_the_rest_by_name(given: Any, error: type[pserver.Error], text: str) -> None:
    with pytest.raises(error, match=f'^"w": expected .*{text}') as raised:
        to_array(given, '"w"')
    assert raised.value.details["received"]


def test_refuses_more_dimensions_than_the_protocol_has() -> None:
    deepest = np.zeros((1,) * 32, np.float32)
    assert to_array(deepest, "w").ndim == 32
    if int(np.__version__.split(".")[0]) >= 2:
        with pytest.raises(pserver.BadShape, match="at most 32 dimensions; received 33"):
            to_array(deepest[None], "w")


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (1, None, np.int64(1)),
        (1.5, None, np.float64(1.5)),
        (1, np.dtype("<f4"), np.float32(1)),
        (0.1, np.dtype("<f4"), np.float32(0.1)),
        (2**64 - 1, np.dtype("<u8"), np.uint64(2**64 - 1)),
        (float("nan"), np.dtype("<f4"), np.float32("nan")),
        (0.1, np.dtype("<f2"), np.float16(0.1)),
        (255, np.dtype("u1"), np.uint8(255)),
    ],
)
def test_a_number_takes_the_type_of_its_parameter(number: Any, dtype: Any, expected: Any) -> None:
    made = from_number(number, "w", dtype)
    assert made.shape == () and made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    ("number", "dtype", "error"),
    [
        (1.5, "<i4", pserver.BadDtype),
        (2**31, "<i4", pserver.BadValue),
        (-1, "<u4", pserver.BadValue),
        (2**63, None, pserver.BadValue),
        (1e39, "<f4", pserver.BadValue),
        (65536, "<f2", pserver.BadValue),
        (1.5, "u1", pserver.BadDtype),
        (-129, "i1", pserver.BadValue),
        (1, "?", pserver.BadDtype),
        (10**400, "<f4", pserver.BadValue),
    ],
)
def test_a_number_that_does_not_fit_is_refused(
    number: Any, dtype: Any, error: type[pserver.Error]
) -> None:
    with pytest.raises(error, match="^w: expected"):
        from_number(number, "w", None if dtype is None else np.dtype(dtype))


@pytest.mark.parametrize("out", [VALUES.copy(), memoryview(VALUES.copy()), array.array("d", [1])])
def test_reads_into_memory_of_the_caller(out: Any) -> None:
    view = to_out(out, "out")
    view[...] = 5
    assert (np.asarray(out) == 5).all()


def read_only() -> Any:
    frozen = VALUES.copy()
    frozen.flags.writeable = False
    return frozen


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (VALUES.T, pserver.BadValue, "C order"),
        (VALUES[:, ::2], pserver.BadValue, "C order"),
        (read_only(), pserver.BadValue, "read-only"),
        (memoryview(VALUES.tobytes()).cast("f"), pserver.BadValue, "read-only"),
        (VALUES.astype(">f4"), pserver.BadDtype, ">f4"),
        (VALUES.astype(np.uint16), pserver.BadDtype, "uint16"),
        ([1.0], pserver.BadValue, "received list"),
        (3.0, pserver.BadValue, "received float"),
        (Device(2), pserver.BadValue, "CUDA"),
    ],
)
def test_refuses_memory_it_cannot_read_into(
    out: Any, error: type[pserver.Error], text: str
) -> None:
    with pytest.raises(error, match=f"^out: expected .*{text}"):
        to_out(out, "out")
