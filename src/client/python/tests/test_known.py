"""What a reader has already is not read again, and stays where it is; many parameters by one call."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pserver

from serving import Broker, Unique

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def created(ps: pserver.Client, unique: Unique, count: int = 3) -> list[str]:
    names = [unique("known") for _ in range(count)]
    for name in names:
        ps.create_if_not_already_created(name, W)
    return names


def test_what_has_not_changed_is_the_known_array(ps: pserver.Client, unique: Unique) -> None:
    names = created(ps, unique)
    known = ps.get_params(names)
    before = known[names[1]]
    ps.push(names[1], W, 1, 1)
    params = ps.get_params(names, known=known)
    assert [params[name] is known[name] for name in names] == [True, False, True]
    np.testing.assert_array_equal(params[names[1]], W + W)
    np.testing.assert_array_equal(before, W)
    assert [params.versions[name] for name in names] == [1, 2, 1]
    # The next read goes on from what both have brought.
    again = ps.get_params(names, known=params)
    assert all(again[name] is params[name] for name in names)
    assert again.versions == params.versions


def test_an_array_that_the_caller_put_there_is_not_used(ps: pserver.Client, unique: Unique) -> None:
    names = created(ps, unique)
    known = ps.get_params(names)
    mine = np.zeros_like(W)
    known[names[0]] = mine
    del known[names[1]]
    # This is how one sees that the others are not sent again.
    known[names[2]][...] = 7
    params = ps.get_params(names, known=known)
    np.testing.assert_array_equal(params[names[0]], W)
    np.testing.assert_array_equal(params[names[1]], W)
    assert params[names[2]] is known[names[2]] and (params[names[2]] == 7).all()
    np.testing.assert_array_equal(mine, 0)


def test_out_gets_known_values(ps: pserver.Client, unique: Unique) -> None:
    names = created(ps, unique)
    known = ps.get_params(names)
    into = np.zeros_like(W)
    params = ps.get_params(names, out={names[0]: into, names[1]: known[names[1]]}, known=known)
    assert params[names[0]] is into and params[names[1]] is known[names[1]]
    np.testing.assert_array_equal(into, W)
    ps.push(names[1], W, 1, 1)
    params = ps.get_params(names[1:], out=[known[names[1]], None], known=params)
    np.testing.assert_array_equal(params[names[1]], W + W)
    assert params[names[2]] is known[names[2]]
    with pytest.raises(pserver.BadValue, match="share no memory"):
        ps.get_params(names, out={names[0]: known[names[1]]}, known=known)


def test_values_of_another_encoding_client_or_process_are_not_known(
    ps: pserver.Client, broker: Broker, unique: Unique
) -> None:
    names = created(ps, unique)
    known = ps.get_params(names)
    for array in known.values():
        array[...] = 7
    encoded = ps.get_params(names, known=known, encoding="bfloat16")
    copied = ps.get_params(names, known=pickle.loads(pickle.dumps(known)))
    with pserver.connect(broker.url, job=broker.job) as other:
        others = other.get_params(names, known=known)
    for params in (encoded, copied, others):
        for name in names:
            np.testing.assert_array_equal(params[name], W)
    with pytest.raises(pserver.BadValue, match="known"):
        ps.get_params(names, known={names[0]: W})  # type: ignore[arg-type]


def test_only_changed_blocks_of_a_large_parameter_are_read(
    ps: pserver.Client, unique: Unique
) -> None:
    name = unique("large")
    large = np.zeros((3_000, 1_024), np.float32)
    ps.create_if_not_already_created(name, large)
    known = ps.get_params([name])
    ps.push_part(name, np.ones((1, 1_024), np.float32), [[0], range(1_024)], 0, 1)
    # What is put into blocks that have not changed shows that these are kept.
    known[name][-1] = 7
    params = ps.get_params([name], known=known)
    assert params[name] is not known[name]
    assert (params[name][0] == 1).all() and (params[name][1] == 0).all()
    assert (params[name][-1] == 7).all() and (known[name][0] == 0).all()


def test_initializes_many_parameters_by_one_call(broker: Broker, job: str) -> None:
    values: dict[str, Any] = {
        f"layer.{i}": np.full((2, i % 5 + 1), i, np.float32) for i in range(600)
    }
    values["count"] = np.arange(3)
    values["scale"] = 2.5
    with pserver.connect(broker.url, job=job) as ps:
        with pytest.raises(pserver.NotSelected):
            ps.init_params(values)
        assert ps.begin_init()
        with pytest.raises(pserver.Empty):
            ps.init_params({})
        with pytest.raises(pserver.NonFinite):
            ps.init_params({**values, "bad": np.float32("nan")})
        with pytest.raises(pserver.BadConfig):
            ps.init_params({"layer.0": W}, optimizer="no such rule")
        floats = {name: value for name, value in values.items() if name.startswith("layer")}
        ps.init_params(floats, lambda name: {"sparse": name == "layer.7"}, learning_rate=1.0)
        rest = {name: value for name, value in values.items() if name not in floats}
        ps.init_params(rest, optimizer="none")
        ps.finish_init()
        configs = {each.name: each.config for each in ps.list_params()}
        assert configs.keys() == values.keys()
        assert [name for name, config in configs.items() if config["sparse"]] == ["layer.7"]
        assert configs["count"]["optimizer"] == {"name": "none"}
        for name, array in ps.get_params(list(values)).items():
            np.testing.assert_array_equal(array, values[name])
        ps.send_grads({name: np.ones_like(value) for name, value in floats.items()})
        for name, array in ps.get_params(list(floats)).items():
            np.testing.assert_array_equal(array, floats[name] - 1)
