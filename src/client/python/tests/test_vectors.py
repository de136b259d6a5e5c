"""The test vectors that all implementations share: names, points, encodings, parts, refused calls."""

from __future__ import annotations

import json
import struct
from typing import Any, Callable

import numpy as np
import pytest

import pserver
from legion.points import Points
from serving import ROOT, Broker, Unique

VECTORS = ROOT / "test" / "vectors"
PARTS = ROOT / "test" / "fixtures" / "parts"


def read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


def test_names(ps: pserver.Client) -> None:
    names = read("names.json")
    taken = [each["name"] for each in names["names"]]
    for name in taken:
        ps.create_if_not_already_created(name, 1.0)
    listed = [each.name for each in ps.list_params()]
    assert set(taken) <= set(listed)
    for each in names["refusedNames"]:
        with pytest.raises(pserver.Error) as raised:
            ps.create_if_not_already_created(each["name"], 1.0)
        assert raised.value.code == each["code"]


@pytest.mark.parametrize("each", read("points.json")["cases"], ids=lambda each: str(each["points"]))
def test_points(each: Any) -> None:
    rank = len(each["points"][0]) if each["points"] else 1
    points = Points("w", (8,) * rank, each["points"])
    places = points.settled(np.arange(len(each["points"])))
    found = [(group.lists, places[group.order].tolist()) for group in points.groups()]
    expected = [(product["lists"], product["places"]) for product in each["products"]]
    assert sorted(found) == sorted(expected)


def test_ids_and_jobs(broker: Broker) -> None:
    names = read("names.json")
    for each in names["ids"]:
        if "code" not in each:
            with pserver.connect(broker.url, job=broker.job, trainer=each["id"]) as ps:
                assert ps.trainer == each["id"]
            continue
        with pytest.raises(pserver.Error) as raised:
            pserver.connect(broker.url, job=broker.job, trainer=each["id"])
        assert raised.value.code == each["code"]
    for each in names["jobs"]:
        with pytest.raises(pserver.Error) as raised:
            pserver.connect(broker.url, job=each["job"], connect_timeout=0.1)
        # A job of a valid name is looked for; on a busy machine the time is over before the broker answers.
        assert raised.value.code in ([each["code"]] if each["code"] else ["NO_HOST", "NO_BROKER"])


@pytest.mark.parametrize("encoding", ["bfloat16", "float16"])
def test_encodings(ps: pserver.Client, unique: Unique, encoding: Any) -> None:
    vectors = read("encodings.json")
    bits = {each["hex"]: each[encoding] for each in vectors["decoded"]}
    cases = vectors["encoded"]
    plain = np.frombuffer(bytes.fromhex("".join(each["float32"] for each in cases)), "<f4")
    name = unique("encoded")
    ps.create_if_not_already_created(name, np.zeros(len(plain), "f4"), allow_non_finite=True)
    ps.push(name, plain, 0, 1, encoding=encoding)
    pushed = ps.pull(name)
    if encoding == "float16":
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(pushed, plain.astype(np.float16).astype(np.float32))
    known = [i for i, each in enumerate(cases) if each[encoding] in bits]
    assert len(known) > 5
    for i in known:
        (value,) = struct.unpack("<f", bytes.fromhex(bits[cases[i][encoding]]))
        np.testing.assert_array_equal(pushed[i], np.float32(value))
    ps.set_params({name: plain})
    np.testing.assert_array_equal(ps.pull(name, encoding=encoding), pushed)
    np.testing.assert_array_equal(
        ps.pull_part(name, [range(len(plain))], encoding=encoding), pushed
    )


def test_refusals(broker: Broker, job: str) -> None:
    vectors = read("refusals.json")
    with pserver.connect(broker.url, job=job, trainer="first") as first:
        assert first.begin_init()
        for each in vectors["parameters"]:
            first.init_param(each["name"], tensor(each["tensor"]), each.get("config"))
        first.finish_init()
        before = first.get_params([each["name"] for each in vectors["parameters"]])
        with pserver.connect(broker.url, job=job, trainer="refused") as ps:
            for case in vectors["calls"]:
                with pytest.raises(pserver.Error) as raised:
                    make(ps, case)
                told = (case["what"], raised.value.code, raised.value.details)
                assert told == (case["what"], case["code"], case["details"])
        after = first.get_params(list(before))
        assert after.versions == before.versions
        for name, values in before.items():
            np.testing.assert_array_equal(after[name], values)
        assert {each.name for each in first.list_params()} == set(before)


def make(ps: pserver.Client, case: Any) -> None:
    name, indices = case.get("name"), case.get("indices")
    value = tensor(case["tensor"]) if "tensor" in case else None
    factors = float(case.get("alpha", 0)), float(case.get("beta", 0))
    encoding = case.get("encoding")
    rate = None if "learningRate" not in case else float(case["learningRate"])
    grad = pserver.Rows(case["rows"], value) if "rows" in case else value
    calls: dict[str, Callable[[], object]] = {
        "pull": lambda: ps.pull(name, encoding=encoding),
        "set": lambda: ps.set_params({name: value}),
        "push": lambda: ps.push(name, value, *factors, encoding=encoding),
        "sendGrads": lambda: ps.send_grads({name: grad}, learning_rate=rate, encoding=encoding),
        "pullPart": lambda: ps.pull_part(name, indices, encoding=encoding),
        "pushPart": lambda: ps.push_part(name, value, indices, *factors, encoding=encoding),
        "create": lambda: ps.create_if_not_already_created(name, value, case.get("config")),
        "initParam": lambda: ps.init_param(name, value, case.get("config")),
        "save": lambda: ps.save(case["path"]),
    }
    calls[case["call"]]()


def tensor(vector: Any) -> Any:
    dtype = np.dtype(vector["dtype"])
    return numbers(vector["values"], dtype).reshape(vector["shape"])


@pytest.mark.parametrize("path", sorted(PARTS.glob("*.json")), ids=lambda path: str(path.stem))
def test_parts(ps: pserver.Client, unique: Unique, path: Any) -> None:
    dtype = np.dtype(path.stem)
    for array in json.loads(path.read_text())["arrays"]:
        name = unique("part")
        values = numbers(array["array"], dtype).reshape(array["shape"])
        ps.create_if_not_already_created(name, values)
        for case in array["cases"]:
            pulled = ps.pull_part(name, case["indices"])
            assert pulled.shape == tuple(case["pulledShape"])
            np.testing.assert_array_equal(pulled.reshape(-1), numbers(case["pulled"], dtype))
            part = numbers(case["new"], dtype).reshape(case["pulledShape"])
            ps.push_part(name, part, case["indices"], case["alpha"], case["beta"])
            np.testing.assert_array_equal(ps.pull(name).reshape(-1), numbers(case["pushed"], dtype))
            ps.set_params({name: values})
        for case in array["refused"]:
            with pytest.raises(pserver.BadIndex):
                ps.pull_part(name, case["indices"])


def numbers(texts: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers of the vectors, which write as text those that JSON cannot hold."""
    convert: Any = int if dtype.kind in "iu" else float
    return np.array([convert(each) for each in texts], dtype)
