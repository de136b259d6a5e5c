"""Pushes and pulls of whole arrays and of parts give what numpy gives, for any type, shape and layout."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import pserver
from pserver._arrays import DTYPES

_few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
_counter = iter(range(10**9))


#: Types in which the sums and products here are exact; test_stored_types.py is about the others.
WIDE = DTYPES[:6]


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """Numbers whose sums and products are exact, so that the order of rounding does not matter."""
    whole: st.SearchStrategy[Any] = st.integers(0 if dtype.kind == "u" else -1000, 1000)
    return whole if dtype.kind != "f" else whole.map(lambda number: number / 4)


@st.composite
def arrays(draw: st.DrawFn, min_side: int = 1) -> Any:
    """An array of any wide element type, shape, memory order, strides and byte order."""
    dtype = draw(st.sampled_from(WIDE))
    shape = draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=min_side, max_side=5))
    array = draw(npst.arrays(dtype, shape, elements=elements(dtype)))
    return laid_out(draw, array)


def laid_out(draw: Callable[[Any], Any], array: Any) -> Any:
    """The same values in any memory layout."""
    how = draw(st.sampled_from(["C", "F", "reversed", "swapped", "gaps", "unaligned", "read-only"]))
    if how == "F":
        return np.array(array, order="F")
    if how == "reversed":
        return np.flip(np.flip(array).copy())
    if how == "swapped":
        return array.astype(array.dtype.newbyteorder(">"))
    if how == "gaps":
        wide = np.repeat(array[..., None], 3, axis=-1)
        return wide[..., 1]
    if how == "unaligned":
        memory = b"\0" + array.tobytes()
        return np.frombuffer(memory, array.dtype, array.size, 1).reshape(array.shape)
    if how == "read-only":
        array = np.array(array)
        array.flags.writeable = False
    return array


def create(ps: pserver.Client, array: Any) -> str:
    name = f"hypothesis.{next(_counter)}"
    settled = ps.create_if_not_already_created(name, array)
    assert settled.shape == array.shape and settled.dtype == array.dtype.newbyteorder("<")
    np.testing.assert_array_equal(settled, array)
    return name


@_few
@given(array=arrays(), data=st.data())
def test_whole_arrays(ps: pserver.Client, array: Any, data: st.DataObject) -> None:
    name = create(ps, array)
    other = laid_out(data.draw, data.draw(npst.arrays(DTYPES[0], array.shape)) % 1000)
    other = other.astype(array.dtype)
    alpha, beta = data.draw(st.sampled_from([(1, 1), (0, 1), (2, -1), (0.5, 0.25), (-1, 0)]))
    is_exact = array.dtype.kind == "f" or {alpha, beta} <= {0, 1, 2}
    if not is_exact:
        alpha, beta = 1, 1
    ps.push(name, other, alpha, beta)
    expected = (alpha * array.astype("f8") + beta * other.astype("f8")).astype(array.dtype)
    into = np.empty(array.shape, array.dtype.newbyteorder("<"))
    assert ps.pull(name, out=into) is into
    np.testing.assert_array_equal(into, expected)
    ps.set_params({name: array})
    np.testing.assert_array_equal(ps.pull(name), array)


@_few
@given(array=arrays(), data=st.data())
def test_parts(ps: pserver.Client, array: Any, data: st.DataObject) -> None:
    name = create(ps, array)
    indices = [
        data.draw(st.lists(st.integers(-size, size - 1), max_size=6)) for size in array.shape
    ]
    where = np.ix_(*[np.asarray(each, np.int64) for each in indices])
    given = where if data.draw(st.booleans()) else indices
    pulled = ps.pull_part(name, given)
    np.testing.assert_array_equal(pulled, array[where])
    assert pulled.shape == array[where].shape
    into = np.empty_like(pulled)
    assert ps.pull_part(name, given, out=into) is into
    np.testing.assert_array_equal(into, pulled)
    part = laid_out(data.draw, data.draw(npst.arrays(np.int32, pulled.shape)) % 1000)
    part = part.astype(array.dtype)
    ps.push_part(name, part, given, 1, 1)
    expected = np.array(array, array.dtype.newbyteorder("="))
    expected[where] = expected[where] + part
    np.testing.assert_array_equal(ps.pull(name), expected)


@_few
@given(array=arrays(min_side=0))
def test_arrays_without_elements_are_refused_as_parameters(ps: pserver.Client, array: Any) -> None:
    if array.size > 0:
        create(ps, array)
        return
    with pytest.raises(pserver.BadShape):
        create(ps, array)
