"""Legion's client: the calls in Legion's documentation, single points, and errors for bad input."""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any, List

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import legion
import pserver
from legion.hdf5 import dataset_path
from programs import StartPython, frozen, output_of, run_python
from serving import Broker, StartHost, Unique

#: The example in Legion's documentation, completed to a program.
DOCUMENT = """
import numpy as np
from legion import Client

client = Client()
alpha = 0.5
beta = 0.5

A = np.random.rand(5,5)
# Notice the pattern of respecting the possibility
# that this parameter already exists on the server
# and that you should start from that existing value.
client.create_if_not_already_created("my_matrix", A)
A = client.pull_full("my_matrix")

for i in range(20):
    A = client.pull_full("my_matrix")
    ## do some work here with `A` ##
    client.push_full("my_matrix", A, alpha, beta)
"""


def test_the_example_of_the_document_runs_verbatim(broker: Broker, job: str) -> None:
    host, port = broker.url.rpartition("//")[2].split(":")
    old = {"legion_server_ip": host, "legion_server_port": port, "PSERVER_JOB": job}
    runs = [run_python(DOCUMENT, **old) for _ in range(2)]
    assert [(run.returncode, run.stderr) for run in runs] == [(0, ""), (0, "")]
    with pserver.connect(broker.url, job=job) as ps:
        settled = ps.pull("my_matrix")
    assert settled.shape == (5, 5) and settled.dtype == np.float64 and (settled != 0).all()


def test_one_of_several_that_create_a_name_at_once_decides_its_value(
    broker: Broker, unique: Unique, start_python: StartPython
) -> None:
    name = unique("race")
    script = f"""
import os, sys
import numpy as np
from legion import Client
mine = np.full(3, float(os.getpid()))
sys.stdout.write(repr(Client().create_if_not_already_created({name!r}, mine).tolist()))
"""
    where = {"PSERVER_URL": broker.url, "PSERVER_JOB": broker.job}
    racers = [start_python("-c", script, **where) for _ in range(4)]
    told = [output_of(racer) for racer in racers]
    assert len(set(told)) == 1
    assert told[0] in [repr([float(racer.pid)] * 3) for racer in racers]


def test_pushes_mix_and_parts_are_products(client: legion.Client, unique: Unique) -> None:
    name = unique("cube")
    expected = np.full((10, 20, 30), -1, np.float32)
    expected[2:5, 2:5, 2:5] = 0
    assert np.array_equal(client.create_if_not_already_created(name, expected), expected)
    part = [[0], [1, 4], [1, 6]]
    values = np.arange(4, dtype=np.float32).reshape(1, 2, 2)
    client.push_as_part(name, values, part, 0.5, 0.5)
    expected[np.ix_(*part)] = 0.5 * expected[np.ix_(*part)] + 0.5 * values
    assert np.array_equal(client.pull_part(name, part), expected[np.ix_(*part)])
    client.push_full(name, expected, 1.0, 0.25)
    pulled = client.pull_full(name)
    assert np.array_equal(pulled, expected + np.float32(0.25) * expected)
    pulled[:] = 3
    assert pulled.flags.owndata or pulled.base is not None


numbers = itertools.count(1)

points = st.integers(1, 3).flatmap(
    lambda rank: st.lists(st.tuples(*[st.integers(-4, 3)] * rank), max_size=30).map(
        lambda chosen: (rank, chosen)
    )
)


@settings(max_examples=60)
@given(points, st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))
def test_points_are_read_and_mixed_as_numpy_does(
    client: legion.Client,
    chosen: "tuple[int, List[tuple[int, ...]]]",
    alpha: float,
    beta: float,
) -> None:
    rank, indices = chosen
    name = f"points.{next(numbers)}"
    local = np.arange(4**rank, dtype=np.float64).reshape((4,) * rank)
    client.create_if_not_already_created(name, local)
    listed = np.asarray(indices, np.int64).reshape(-1, rank)
    where = tuple(listed.T)
    values = np.linspace(1, 2, len(listed))
    client.push_from_indices(name, values, listed, alpha, beta)
    # One number for each element: the last one that was given for it.
    last = {tuple(point): value for point, value in zip((listed % 4).tolist(), values)}
    for point, value in last.items():
        local[point] = alpha * local[point] + beta * value
    np.testing.assert_allclose(client.pull_full(name), local, rtol=1e-12)
    np.testing.assert_array_equal(
        client.pull_from_indices(name, listed), client.pull_full(name)[where]
    )


def test_reading_points_far_apart_does_not_read_all_between_them(
    client: legion.Client, unique: Unique
) -> None:
    name = unique("wide")
    local = np.arange(1000 * 1000, dtype=np.float32).reshape(1000, 1000)
    client.create_if_not_already_created(name, local)
    read: List[int] = []
    whole = client.ps.pull_part

    class Counting:
        def list_params(self) -> Any:
            return client.ps.list_params()

        def pull_part(self, name: str, lists: Any) -> Any:
            part = whole(name, lists)
            read.append(part.size)
            return part

    diagonal = np.stack([np.arange(0, 1000, 10)] * 2, axis=1)
    counted = legion.Client(ps=Counting())  # type: ignore[arg-type]
    assert np.array_equal(
        counted.pull_from_indices(name, diagonal), local[diagonal[:, 0], diagonal[:, 1]]
    )
    assert sum(read) == len(diagonal)


@pytest.mark.parametrize(
    ("indices", "error"),
    [
        ([[0, 0, 0]], pserver.errors.BadIndex),
        ([[9, 0]], pserver.errors.BadIndex),
        ([0, 1], pserver.errors.BadIndex),
        ([[0.5, 1]], pserver.errors.BadIndex),
        ([[0], [1, 2]], pserver.errors.BadIndex),
    ],
)
def test_impossible_points_are_refused(
    client: legion.Client, unique: Unique, indices: Any, error: Any
) -> None:
    name = unique("refused")
    client.create_if_not_already_created(name, np.zeros((2, 2)))
    with pytest.raises(error):
        client.pull_from_indices(name, indices)
    with pytest.raises(error):
        client.push_from_indices(name, np.ones(len(indices)), indices, 1, 1)
    assert not client.pull_full(name).any()


def test_as_many_values_as_points_are_expected(client: legion.Client, unique: Unique) -> None:
    name = unique("counts")
    client.create_if_not_already_created(name, np.zeros(4))
    with pytest.raises(pserver.errors.BadShape, match="expected 2 numbers"):
        client.push_from_indices(name, np.ones(3), [[0], [1]], 1, 1)
    assert not client.pull_full(name).any()


def test_a_name_that_nobody_has_created_is_said_to_be_unknown(client: legion.Client) -> None:
    client.create_if_not_already_created("known", np.zeros(1))
    with pytest.raises(pserver.errors.UnknownParameter, match="nobody-made-it"):
        client.pull_full("nobody-made-it")
    with pytest.raises(KeyError):
        client.push_full("nobody-made-it", np.zeros(1), 1, 1)


def test_a_shape_that_does_not_fit_is_refused(client: legion.Client, unique: Unique) -> None:
    name = unique("shape")
    client.create_if_not_already_created(name, np.zeros((2, 3)))
    with pytest.raises(pserver.errors.BadShape, match=r"expected shape \[2,3\]; received \[3,2\]"):
        client.create_if_not_already_created(name, np.zeros((3, 2)))
    with pytest.raises(pserver.errors.BadShape, match=r"expected shape \[2,3\]; received \[3,2\]"):
        client.push_full(name, np.zeros((3, 2)), 1, 1)


def test_a_path_with_another_ending_is_refused(client: legion.Client) -> None:
    with pytest.raises(pserver.errors.BadPath, match="ends in .h5 or .hdf5; received 'model.npz'"):
        client.server_save_to_hdf5("model.npz")


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_an_invalid_port_is_named(monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.setenv("legion_server_ip", "127.0.0.1")
    monkeypatch.setenv("legion_server_port", port)
    with pytest.raises(pserver.errors.BadValue, match=f"legion_server_port.*{port}"):
        legion.Client()


def test_a_server_that_is_gone_is_an_error_at_the_deadline(
    job_name: str, start_host: StartHost, broker: Broker
) -> None:
    host = start_host(job_name)
    hurried = pserver.connect(broker.url, job=job_name, timeout=1)
    with legion.Client(ps=pserver.connect(broker.url, job=job_name)) as patient:
        patient.create_if_not_already_created("w", np.zeros(2))
        with legion.Client(ps=hurried) as client, frozen(host.pid):
            with pytest.raises(pserver.Error) as told:
                client.pull_full("w")
        assert told.value.retryable
        assert np.array_equal(patient.pull_full("w"), np.zeros(2))


def test_saves_all_parameters_as_hdf5(broker: Broker, job: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with legion.Client(ps=pserver.connect(broker.url, job=job)) as client:
        random = np.random.default_rng(1)
        values = {"W": random.normal(size=(3, 4)), "n": np.arange(5, dtype="i4"), "n/a": np.ones(2)}
        values = {**values, "layer/w": np.ones((2, 3)), "100%": np.zeros(()), "x//y": np.zeros(1)}
        for name, value in values.items():
            client.create_if_not_already_created(name, value)
        path = tmp_path / "run 1" / "saved.h5"
        client.server_save_to_hdf5(str(path))
        client.push_full("n", np.ones(5, dtype="i4"), 1, 1)
        client.server_save_to_hdf5(str(path))
    values["n"] = values["n"] + 1
    assert os.listdir(path.parent) == ["saved.h5"]
    assert path.stat().st_mode & 0o077 == 0
    with h5py.File(path) as file:
        assert set(file) == {"W", "n", "n%2Fa", "layer", "100%25", "x%2F%2Fy"}
        for name, value in values.items():
            dataset = file[dataset_path(name, values)]
            assert dataset.dtype == value.dtype and np.array_equal(dataset, value)
            assert json.loads(dataset.attrs.get("PSERVER.name", json.dumps(name))) == name


def test_a_save_that_fails_leaves_the_earlier_file(
    client: legion.Client, unique: Unique, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("h5py")
    client.create_if_not_already_created(unique("saved"), np.zeros(2))
    path = tmp_path / "model.hdf5"
    path.write_text("earlier")

    def fail(*_: Any) -> Any:
        raise pserver.errors.Timeout("no values")

    monkeypatch.setattr(client.ps, "pull", fail)
    with pytest.raises(pserver.errors.Timeout):
        client.server_save_to_hdf5(str(path))
    assert path.read_text() == "earlier" and os.listdir(tmp_path) == ["model.hdf5"]


def test_without_h5py_a_save_says_what_to_install(
    client: legion.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python imports nothing under a name that is None here.
    absent: Any = None
    monkeypatch.setitem(sys.modules, "h5py", absent)
    with pytest.raises(pserver.LibraryError, match="install Debian's python3-h5py, or with pip"):
        client.server_save_to_hdf5(str(tmp_path / "model.h5"))
    assert os.listdir(tmp_path) == []


@given(st.lists(st.text("ab/.%\0", min_size=1, max_size=6), max_size=12, unique=True))
def test_datasets_never_meet_and_never_lead_through_each_other(names: List[str]) -> None:
    paths = [dataset_path(name, names) for name in names]
    assert len(set(paths)) == len(names)
    for path in paths:
        parts = path.split("/")
        assert not {"", ".", ".."}.intersection(parts) and "\0" not in path
        assert not any("/".join(parts[:count]) in paths for count in range(1, len(parts)))
