"""Element types of one and two bytes: bit for bit, and computed with as the documents say."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np
import pytest

import pserver
from pserver._arrays import DTYPES, NAMES
from serving import Unique

#: All bits of each type, of bools those that they have.
ALL_BITS: Dict[str, Any] = {
    "bool": np.array([True, False, False, True]),
    "uint8": np.arange(256, dtype=np.uint8),
    "int8": np.arange(256, dtype=np.uint8).view(np.int8),
    "float16": np.arange(65_536, dtype=np.uint16).view(np.float16),
    "bfloat16": np.arange(65_536, dtype=np.uint16).view(pserver.bfloat16),
}
ANY = {"allowNonFinite": True}


def bits_of(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def bfloat16(*values: float) -> Any:
    """Numbers that bfloat16 holds exactly."""
    return (
        (np.array(values, np.float32).view(np.uint32) >> 16)
        .astype(np.uint16)
        .view(pserver.bfloat16)
    )


@pytest.mark.parametrize("name", ALL_BITS)
def test_every_bit_is_kept(ps: pserver.Client, unique: Unique, name: str) -> None:
    parameter, values = unique(name), ALL_BITS[name]
    settled = ps.create_if_not_already_created(parameter, values, ANY)
    assert settled.dtype == DTYPES[NAMES.index(name)]
    np.testing.assert_array_equal(bits_of(settled), bits_of(values))
    back = values[::-1]
    ps.set_params({parameter: back})
    into = np.empty_like(np.ascontiguousarray(back))
    assert ps.pull(parameter, out=into) is into
    np.testing.assert_array_equal(bits_of(into), bits_of(back))
    # What was pulled can be given again, with its type.
    ps.set_params({parameter: ps.pull(parameter)})
    part = ps.pull_part(parameter, [[3, 0]])
    np.testing.assert_array_equal(bits_of(part), bits_of(back[[3, 0]]))
    assert [info.dtype for info in ps.list_params() if info.name == parameter] == [settled.dtype]


def test_integers_of_8_bits_wrap_and_are_held(ps: pserver.Client, unique: Unique) -> None:
    for dtype, first, low, high in ((np.uint8, 250, 0, 255), (np.int8, 120, -128, 127)):
        name = unique(np.dtype(dtype).name)
        ps.create_if_not_already_created(name, np.array([first, 1], dtype), optimizer="none")
        ps.push(name, np.array([100, 100], dtype), 1, 1)
        assert ps.pull(name).tolist() == [high, 101]
        ps.push(name, np.array([100, 100], dtype), 1, -3)
        assert ps.pull(name).tolist() == [max(low, high - 300), max(low, 101 - 300)]
        ps.set_params({name: np.array([high, 1], dtype)})
        ps.send_grads({name: np.array([2, 3], dtype)})
        assert ps.pull(name).tolist() == [low + 1, 4]


def test_half_floats_are_rounded_once(ps: pserver.Client, unique: Unique) -> None:
    name = unique("f2")
    values, other = np.array([1, 2048, -0.1], np.float16), np.array([0.001, 3, 0.7], np.float16)
    ps.create_if_not_already_created(name, values)
    ps.push(name, other, 0.3, 1.7)
    wide = [each.astype(np.float32) for each in (values, other)]
    expected = np.float32(0.3) * wide[0] + np.float32(1.7) * wide[1]
    np.testing.assert_array_equal(ps.pull(name), expected.astype(np.float16))
    name = unique("bf16")
    ps.create_if_not_already_created(name, bfloat16(256, 1, 0))
    # 257 is between 256 and 258, and goes to the even one; 258.5 goes to 258.
    ps.push(name, bfloat16(1, 0.5, 0), 1, 1)
    np.testing.assert_array_equal(bits_of(ps.pull(name)), bits_of(bfloat16(256, 1.5, 0)))
    ps.push(name, bfloat16(2.5, 2.5, 2.5), 1, 1)
    np.testing.assert_array_equal(bits_of(ps.pull(name)), bits_of(bfloat16(258, 4, 2.5)))


def test_repeated_rows_of_half_floats_are_rounded_once(ps: pserver.Client, unique: Unique) -> None:
    name = unique("rows")
    ps.create_if_not_already_created(
        name, bfloat16(0, 0, 0, 0).reshape(2, 2), optimizer="none", sparse=True
    )
    given = bfloat16(256, 8, 1, 16, 1, 32).reshape(3, 2)
    ps.send_grads({name: pserver.Rows([1, 1, 1], given)})
    expected = bfloat16(0, 0, 258, 56).reshape(2, 2)
    np.testing.assert_array_equal(bits_of(ps.pull(name)), bits_of(expected))


def test_bools_are_only_set(ps: pserver.Client, unique: Unique) -> None:
    name, flags = unique("flags"), np.array([True, False])
    ps.create_if_not_already_created(name, flags)
    with pytest.raises(pserver.Unsupported, match="bool, which is only set"):
        ps.push(name, flags, 1, 1)
    with pytest.raises(pserver.Unsupported, match="bool, which is only set"):
        ps.push_part(name, flags[:1], [[0]], 1, 1)
    with pytest.raises(pserver.Unsupported, match="bool, which is only set"):
        ps.send_grads({name: flags})
    with pytest.raises(pserver.BadValue, match="bools as 0 and 1; received 2 as element 1"):
        ps.set_params({name: np.array([1, 2], np.uint8).view(bool)})
    with pytest.raises(pserver.BadDtype, match="bool"):
        ps.set_params({name: 1})
    assert ps.pull(name).tolist() == [True, False]


def test_bits_of_bfloat16_must_be_marked(ps: pserver.Client, unique: Unique) -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    with pytest.raises(pserver.BadDtype, match=r"\.view\(pserver.bfloat16\)"):
        ps.create_if_not_already_created(unique("w"), bits)
    with pytest.raises(pserver.NonFinite, match="inf as element 1"):
        infinite = np.array([0x3F80, 0x7F80], np.uint16).view(pserver.bfloat16)
        ps.create_if_not_already_created(unique("w"), infinite)
