"""Gradients and values in int8 and e3m0 are what numpy computes, with what rounding has left out before; small
models learn with them what they learn with float32."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np
import pytest

import pserver
from serving import Unique

GROUP = 256
GROUPED = ["int8", "e3m0"]
F = np.float32


def rounded(encoding: str, entry: Any) -> Any:
    """What the elements of one entry become: computed in float32, by the definition in the protocol."""
    flat = np.asarray(entry, F).reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, GROUP):
        group = flat[start : start + GROUP]
        largest = np.abs(group).max()
        scale = F(largest / F(127)) if encoding == "int8" else largest
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(scale > 0, group / scale, F(0)).astype(F)
        if encoding == "int8":
            factor = np.clip(np.rint(ratio), -127, 127).astype(F)
        else:
            size = np.abs(ratio)
            thresholds = [F(2.0**-7)] + [F(1.5 * 2.0 ** (level - 8)) for level in range(2, 8)]
            level = sum((size >= threshold).astype(int) for threshold in thresholds)
            factor = np.where(level > 0, np.sign(ratio) * F(2) ** (level - 7), F(0)).astype(F)
        result[start : start + GROUP] = factor * scale
    return result.reshape(np.shape(entry))


def rounded_blocks(encoding: str, array: Any) -> Any:
    """The same for a parameter, which is one block up to 4 MiB, and else in blocks of whole rows up to 1 MiB."""
    if array.nbytes <= 4 * 2**20:
        return rounded(encoding, array)
    rows = 2**20 // array[0].nbytes
    blocks = [array[i : i + rows] for i in range(0, len(array), rows)]
    return np.concatenate([rounded(encoding, block) for block in blocks])


@pytest.mark.parametrize("encoding", GROUPED)
def test_values_are_rounded_by_groups(ps: pserver.Client, unique: Unique, encoding: Any) -> None:
    random = np.random.default_rng(1)
    shapes = {unique("v"): shape for shape in [(), (3,), (256,), (7, 111), (1300, 1025)]}
    values = {name: random.normal(size=shape).astype(F) for name, shape in shapes.items()}
    for name, value in values.items():
        ps.create_if_not_already_created(name, np.zeros_like(value))
        # The last one, of more than 4 MiB, has several blocks of whole rows.
        ps.push(name, value, 0, 1, encoding=encoding)
    expected: Dict[str, Any] = {}
    for name, value in values.items():
        expected[name] = rounded_blocks(encoding, value)
        np.testing.assert_array_equal(ps.pull(name), expected[name])
    ps.set_params(values)
    read = ps.get_params(list(values), encoding=encoding)
    for name in values:
        np.testing.assert_array_equal(read[name], expected[name])
    name = list(values)[3]
    part = ps.pull_part(name, [[5, 1], range(0, 111, 2)], encoding=encoding)
    # The elements of a part are encoded in the order of the block.
    whole = rounded(encoding, values[name][np.ix_([1, 5], range(0, 111, 2))])
    np.testing.assert_array_equal(part, whole[::-1])


@pytest.mark.parametrize("encoding", GROUPED)
def test_what_is_left_out_is_added_to_the_next_gradient(
    ps: pserver.Client, unique: Unique, encoding: Any
) -> None:
    random = np.random.default_rng(2)
    # One alone, others in a batch.
    shapes = {unique("g"): shape for shape in [(300, 400), (5,), (40, 30), (257,)]}
    expected = {name: np.zeros(shape, F) for name, shape in shapes.items()}
    left_out = {name: np.zeros(shape, F) for name, shape in shapes.items()}
    for name, value in expected.items():
        ps.create_if_not_already_created(name, value, learning_rate=0.5)
    for _ in range(4):
        grads = {name: random.normal(size=shape).astype(F) for name, shape in shapes.items()}
        ps.send_grads(grads, encoding=encoding)
        for name, grad in grads.items():
            wanted = grad + left_out[name]
            sent = rounded(encoding, wanted)
            left_out[name] = wanted - sent
            expected[name] = expected[name] - F(0.5) * sent
    read = ps.get_params(list(shapes))
    for name in shapes:
        np.testing.assert_array_equal(read[name], expected[name])
        assert left_out[name].any()
    # Without feedback, nothing is added, and nothing is kept.
    grads = {name: random.normal(size=shape).astype(F) for name, shape in shapes.items()}
    ps.send_grads(grads, encoding=encoding, error_feedback=False)
    read = ps.get_params(list(shapes))
    for name, grad in grads.items():
        expected[name] = expected[name] - F(0.5) * rounded(encoding, grad)
        np.testing.assert_array_equal(read[name], expected[name])


@pytest.mark.parametrize("encoding", GROUPED)
def test_rows_keep_what_is_left_out_of_them(
    ps: pserver.Client, unique: Unique, encoding: Any
) -> None:
    random = np.random.default_rng(3)
    name, width = unique("rows"), 50
    expected, left_out = np.zeros((20, width), F), np.zeros((20, width), F)
    ps.create_if_not_already_created(name, expected, learning_rate=1, sparse=True)
    lists: List[List[int]] = [[3, 4, 17], [17, 2, 3], [4, -1, 4], [3]]
    for rows in lists:
        values = random.normal(size=(len(rows), width)).astype(F)
        ps.send_grads({name: pserver.Rows(rows, values)}, encoding=encoding)
        numbers = sorted({row % 20 for row in rows})
        sums = [
            np.add.reduce([v for row, v in zip(rows, values) if row % 20 == number], dtype=F)
            for number in numbers
        ]
        wanted = np.array(sums) + left_out[numbers]
        sent = rounded(encoding, wanted)
        left_out[numbers] = wanted - sent
        expected[numbers] = expected[numbers] - sent
    np.testing.assert_array_equal(ps.pull(name), expected)


def _learned(ps: pserver.Client, name: str, seed: int, encoding: Any, feedback: bool) -> float:
    """How far weights are from the right ones after training with noisy gradients.

    One of 64 elements has gradients of much noise, so that beside it those of the others round to nothing.
    """
    random = np.random.default_rng(seed)
    right = random.normal(size=2000).astype(F)
    is_loud = np.arange(2000) % 64 == 0
    ps.create_if_not_already_created(name, np.zeros(2000, F), learning_rate=0.02)
    learned = np.empty(2000, F)
    for _ in range(600):
        ps.pull(name, out=learned)
        noise = random.normal(size=2000).astype(F) * np.where(is_loud, F(100), F(0.1))
        ps.send_grads({name: learned - right + noise}, encoding=encoding, error_feedback=feedback)
    return float(np.sqrt(np.mean((ps.pull(name) - right)[~is_loud] ** 2)))


@pytest.mark.parametrize("seed", [1, 2])
def test_weights_are_learned_as_with_float32(ps: pserver.Client, unique: Unique, seed: int) -> None:
    exact = _learned(ps, unique("exact"), seed, None, True)
    assert exact < 0.012
    for encoding in GROUPED:
        assert _learned(ps, unique(encoding), seed, encoding, True) < 1.5 * exact
        # Without error feedback, what rounds to nothing is never learned.
        assert _learned(ps, unique("without"), seed, encoding, False) > 5 * exact


def test_gradients_that_are_not_finite_are_refused(ps: pserver.Client, unique: Unique) -> None:
    name = unique("finite")
    ps.create_if_not_already_created(name, np.zeros(300, F), learning_rate=1)
    for encoding in GROUPED:
        grad = np.ones(300, F)
        grad[299] = np.inf
        with pytest.raises(pserver.NonFinite):
            ps.send_grads({name: grad}, encoding=encoding)  # type: ignore[arg-type]
    np.testing.assert_array_equal(ps.pull(name), np.zeros(300, F))


def test_values_that_are_not_finite_are_read_as_whole_groups(
    ps: pserver.Client, unique: Unique
) -> None:
    name = unique("diverged")
    values = np.arange(600, dtype=F)
    values[3], values[300] = np.inf, np.nan
    ps.create_if_not_already_created(name, values, allow_non_finite=True)
    for encoding in GROUPED:
        read = ps.pull(name, encoding=encoding)  # type: ignore[arg-type]
        assert np.isposinf(read[:256]).all() and np.isnan(read[256:512]).all()
        assert np.isfinite(read[512:]).all()
