"""Averaging through the server, against numbers computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pserver
from serving import Unique


def test_elastic_averaging_moves_both_towards_each_other(
    ps: pserver.Client, unique: Unique
) -> None:
    name = unique("center")
    ps.create_if_not_already_created(name, np.array([10, -2], np.float32))
    local = np.array([2, 6], np.float32)
    # diff = 0.25 · (local − center) = (−2, 2)
    pserver.elastic_average(ps, name, local, 0.25)
    np.testing.assert_array_equal(local, [4, 4])
    np.testing.assert_array_equal(ps.pull(name), [8, 0])
    pserver.elastic_average(ps, name, local, 0.25)
    np.testing.assert_array_equal(local, [5, 3])
    np.testing.assert_array_equal(ps.pull(name), [7, 1])


def test_each_difference_is_rounded_once(ps: pserver.Client, unique: Unique) -> None:
    name = unique("center")
    center, alpha = np.float32(0.1), 1 / 3
    local = np.array([0.7], np.float32)
    ps.create_if_not_already_created(name, np.array([center]))
    diff = np.float32(alpha * (float(local[0]) - float(center)))
    pserver.elastic_average(ps, name, local, alpha)
    assert local[0] == np.float32(0.7) - diff
    assert ps.pull(name)[0] == np.float32(1 * float(center) + 1 * float(diff))


@pytest.mark.parametrize("alpha", [-0.1, 1.5, np.nan, "half"])
def test_another_alpha_is_refused(ps: pserver.Client, alpha: float) -> None:
    with pytest.raises(pserver.BadValue, match="alpha: expected 0 to 1"):
        pserver.elastic_average(ps, "w", np.zeros(2), alpha)


def test_nothing_changes_if_local_is_not_as_the_center(ps: pserver.Client, unique: Unique) -> None:
    name = unique("center")
    ps.create_if_not_already_created(name, np.ones(2))
    wrong: list[Any] = [np.zeros(3), np.zeros(2, np.float32), np.zeros(2, np.int64)]
    for local in wrong:
        with pytest.raises((pserver.BadShape, pserver.BadDtype)):
            pserver.elastic_average(ps, name, local, 0.5)
        assert not local.any()
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.raises(pserver.BadValue, match="read-only"):
        pserver.elastic_average(ps, name, frozen, 0.5)
    np.testing.assert_array_equal(ps.pull(name), [1, 1])


def test_differences_of_two_trainers_add_up(ps: pserver.Client, unique: Unique) -> None:
    name = unique("master")
    ps.create_if_not_already_created(name, np.array([1, 2], np.float32))
    a, b = pserver.AsyncDifference(ps, name), pserver.AsyncDifference(ps, name)
    a.local[:] = [3, 2]
    b.local[:] = [1, -2]
    a.exchange()
    np.testing.assert_array_equal(ps.pull(name), [3, 2])
    b.exchange()
    np.testing.assert_array_equal(ps.pull(name), [3, -2])
    np.testing.assert_array_equal(b.local, [3, -2])
    np.testing.assert_array_equal(a.local, [3, 2])
    a.exchange()
    np.testing.assert_array_equal(a.local, [3, -2])
    assert name in repr(a)


def test_differences_are_for_floats(ps: pserver.Client, unique: Unique) -> None:
    name = unique("master")
    ps.create_if_not_already_created(name, np.zeros(2, np.int32))
    with pytest.raises(pserver.BadDtype, match="float32, float64; received int32"):
        pserver.AsyncDifference(ps, name)


def test_local_values_of_another_shape_are_refused(ps: pserver.Client, unique: Unique) -> None:
    name = unique("master")
    ps.create_if_not_already_created(name, np.zeros(2, np.float32))
    difference = pserver.AsyncDifference(ps, name)
    difference.local = np.ones(3, np.float32)
    with pytest.raises(pserver.BadShape, match=r"expected local of shape \(2,\).*received \(3,\)"):
        difference.exchange()
    assert not ps.pull(name).any()
