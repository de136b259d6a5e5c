"""Wrong arguments and settings raise one exception that names them, and change nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pserver
from programs import run_python
from serving import HANG, Broker

W = np.arange(12, dtype=np.float32).reshape(3, 4)
Refusal = tuple[Callable[[Any], Any], type[pserver.Error], str]


class OnGpu:
    """Looks like a tensor in CUDA memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **_: object) -> object:
        raise AssertionError("its values were asked for")


ON_GPU: Any = OnGpu()


@pytest.fixture(scope="module")
def ps(broker: Broker) -> Iterator[pserver.Client]:
    with pserver.connect(broker.url, job=broker.job) as client:
        if client.begin_init():
            client.init_param("ready", W)
            client.finish_init()
        client.create_if_not_already_created("bad", W)
        client.create_if_not_already_created("int", np.zeros(3, np.int32))
        yield client


REFUSED: list[Refusal] = [
    (lambda ps: ps.push("bad", W[0], 1, 1), pserver.BadShape, '"bad": expected .*shape'),
    (lambda ps: ps.push("bad", W.astype("f8"), 1, 1), pserver.BadDtype, "float32.*float64"),
    (
        lambda ps: ps.push("bad", W.astype("f2"), 1, 1),
        pserver.BadDtype,
        "float32; received float16",
    ),
    (lambda ps: ps.push("bad", [1.0], 1, 1), pserver.BadValue, "received list"),
    (lambda ps: ps.push("bad", W, np.nan, 1), pserver.BadValue, "alpha: .* finite"),
    (lambda ps: ps.push("bad", W, 1, "b"), pserver.BadValue, "beta: .* finite"),
    (lambda ps: ps.push("bad", W, 1, 1, encoding="int4"), pserver.BadValue, "encoding: .*int4"),
    (lambda ps: ps.push("int", [0], 1, 1), pserver.BadValue, "received list"),
    (lambda ps: ps.push("bad", ON_GPU, 1, 1), pserver.BadValue, r"CUDA: copy it first, .*cpu\(\)"),
    (lambda ps: ps.send_grads({"bad": ON_GPU}), pserver.BadValue, '"bad": .*CUDA'),
    (
        lambda ps: ps.send_grads({"bad": pserver.Rows([0], ON_GPU)}),
        pserver.BadValue,
        '"bad": .*CUDA',
    ),
    (lambda ps: ps.set_params({"int": W[0], "bad": ON_GPU}), pserver.BadValue, "CUDA"),
    (lambda ps: ps.push_part("bad", ON_GPU, [[0], [0]], 1, 1), pserver.BadValue, "CUDA"),
    (lambda ps: ps.pull("bad", out=ON_GPU), pserver.BadValue, "CUDA"),
    (lambda ps: ps.create_if_not_already_created("x", ON_GPU), pserver.BadValue, '"x": .*CUDA'),
    (lambda ps: ps.send_grads({"never made": W}), pserver.UnknownParameter, '"never made"'),
    (lambda ps: ps.set_params({"never made": W}), pserver.UnknownParameter, '"never made"'),
    (lambda ps: ps.push("never made", 1, 1, 1), pserver.UnknownParameter, '"never made"'),
    (lambda ps: ps.pull_part("never made", [[0]]), pserver.UnknownParameter, '"never made"'),
    (
        lambda ps: ps.push_part("never made", W, [[0], [0]], 1, 1),
        pserver.UnknownParameter,
        '"never made"',
    ),
    (lambda ps: ps.push("int", 1.5, 1, 1), pserver.BadDtype, "expected int32; received a float"),
    (lambda ps: ps.push("int", 2**40, 1, 1), pserver.BadValue, "a number that fits int32"),
    (lambda ps: ps.push("bad", W * np.nan, 1, 1), pserver.NonFinite, "finite"),
    (lambda ps: ps.push("never made", W, 1, 1), pserver.UnknownParameter, '"never made"'),
    (lambda ps: ps.push("", W, 1, 1), pserver.BadName, "not empty"),
    (lambda ps: ps.push(5, W, 1, 1), pserver.BadName, "name: .*text.*; received 5"),
    (lambda ps: ps.push("\ud800", W, 1, 1), pserver.BadName, "well-formed"),
    (lambda ps: ps.push("bad", W, 1, 1, timeout=0), pserver.BadValue, "timeout: .* received 0"),
    (lambda ps: ps.push("bad", W, 1, 1, timeout=np.nan), pserver.BadValue, "timeout"),
    (lambda ps: ps.push("bad", W, 1, 1, timeout="1"), pserver.BadValue, "'1'"),
    (lambda ps: ps.send_grads({"bad": W}), pserver.NoLearningRate, "rate"),
    (lambda ps: ps.send_grads({"bad": W}, learning_rate=np.inf), pserver.BadValue, "learning_rate"),
    (lambda ps: ps.send_grads({"int": np.ones(3, "i4")}, learning_rate=1), pserver.Unsupported, ""),
    (lambda ps: ps.send_grads({}), pserver.Empty, "send_grads"),
    (lambda ps: ps.send_grads([W]), pserver.BadValue, "a dict by parameter name"),
    (
        lambda ps: ps.send_grads({"bad": pserver.Rows([0], W[:1])}, learning_rate=1),
        pserver.Unsupported,
        "sparse",
    ),
    (lambda ps: ps.send_grads({"bad": pserver.Rows([0.5], W)}), pserver.BadIndex, "whole numbers"),
    (lambda ps: ps.set_params({"bad": W, "int": W}), pserver.BadDtype, '"int"'),
    (lambda ps: ps.get_params("bad"), pserver.BadValue, "a list of names"),
    (lambda ps: ps.get_params([]), pserver.Empty, "^get_params"),
    (lambda ps: ps.get_params(["never made"]), pserver.UnknownParameter, '"never made"'),
    (lambda ps: ps.pull("int", encoding="bfloat16"), pserver.Unsupported, "float32"),
    (lambda ps: ps.pull("bad", out=np.empty((4, 3), "f4")), pserver.BadShape, r"\[3, 4\]"),
    (lambda ps: ps.pull("bad", out=np.empty((3, 4))), pserver.BadDtype, "float64"),
    (
        lambda ps: ps.pull_part("bad", [[0], [1, 2]], out=np.empty((2, 1), "f4")),
        pserver.BadShape,
        r"\[1, 2\].*\[2, 1\]",
    ),
    (
        lambda ps: ps.pull_part("bad", [[0], [1, 2]], out=np.empty((1, 2))),
        pserver.BadDtype,
        "float64",
    ),
    (lambda ps: ps.pull("bad", out=np.ma.zeros((3, 4), "f4")), pserver.BadValue, "mask"),
    (
        lambda ps: ps.get_params(["bad", "worse"], out=[W, W[1:]]),
        pserver.BadValue,
        'share no memory; received those of "bad" and "worse"',
    ),
    (lambda ps: ps.push("bad", 10**5000, 1, 1), pserver.BadValue, "too many digits"),
    (lambda ps: ps.push("bad", W, 10**5000, 1), pserver.BadValue, "alpha: .* too many digits"),
    (lambda ps: ps.status(timeout=10**5000), pserver.BadValue, "timeout: .* too many digits"),
    (lambda ps: ps.pull_part("bad", [10**5000, [0]]), pserver.BadIndex, "too many digits"),
    (lambda ps: ps.save(7), pserver.BadName, "path: .* 7"),
    (lambda ps: ps.pull("bad", out=W.T), pserver.BadValue, "C order"),
    (lambda ps: ps.get_params(["bad"], out=W), pserver.BadValue, "sequence of 1 arrays"),
    (lambda ps: ps.get_params(["bad"], out=[W, W]), pserver.BadValue, "sequence of 1 arrays"),
    (lambda ps: ps.get_params(["bad"], out={"dab": W}), pserver.BadValue, "'dab'"),
    (lambda ps: ps.pull_part("bad", [[0]]), pserver.BadIndex, "each of 2 dimensions; received 1"),
    (lambda ps: ps.pull_part("bad", [[0], [4]]), pserver.BadIndex, "from -4 to 3; received 4"),
    (lambda ps: ps.pull_part("bad", [[0], [2**63]]), pserver.BadIndex, "9223372036854775808"),
    (lambda ps: ps.pull_part("bad", [0, 1]), pserver.BadIndex, "a list of whole numbers"),
    (lambda ps: ps.pull_part("bad", [[True], [0]]), pserver.BadIndex, "bool"),
    (lambda ps: ps.pull_part("bad", [["0"], [0]]), pserver.BadIndex, "whole numbers"),
    (lambda ps: ps.pull_part("bad", ["01", [0]]), pserver.BadIndex, "received str"),
    (lambda ps: ps.pull_part("bad", [np.zeros((2, 2), int), [0]]), pserver.BadIndex, r"\[2, 2\]"),
    (lambda ps: ps.pull_part("bad", np.zeros((2, 2), int)), pserver.BadIndex, "ndarray"),
    (lambda ps: ps.push_part("bad", W, [[0], [0]], 1, 1), pserver.BadShape, '"bad"'),
    (lambda ps: ps.init_param("x", W), pserver.NotSelected, "^init_param: .*begin_init"),
    (
        lambda ps: ps.create_if_not_already_created("x", W, optimizer="adamm"),
        pserver.BadConfig,
        "adamm",
    ),
    (
        lambda ps: ps.create_if_not_already_created("x", W, learning_rate=object()),
        pserver.BadConfig,
        "config: .*a object",
    ),
    (
        lambda ps: ps.create_if_not_already_created("x", W, {"l1": 1}, l1=2),
        pserver.BadConfig,
        "l1 once",
    ),
    (
        lambda ps: ps.create_if_not_already_created("x", W, 5),
        pserver.BadConfig,
        "received int",
    ),
    (lambda ps: ps.save("../model.npz"), pserver.BadPath, r"\.\."),
    (lambda ps: ps.save("model.h6"), pserver.BadPath, "h6"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_is_refused_and_changes_nothing(
    ps: pserver.Client, call: Callable[[Any], Any], error: type[pserver.Error], text: str
) -> None:
    before = ps.get_params(["bad", "int"])
    with pytest.raises(error, match=text) as raised:
        call(ps)
    assert type(raised.value) is error
    after = ps.get_params(["bad", "int"])
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values)
    assert "x" not in [each.name for each in ps.list_params()]


def test_a_job_without_hosts_or_broker_is_an_error_that_says_so(broker: Broker) -> None:
    with pytest.raises(pserver.NoHost, match="nobody") as no_host:
        pserver.connect(broker.url, job="nobody", connect_timeout=0.5)
    assert isinstance(no_host.value, ConnectionError) and no_host.value.retryable
    with pytest.raises(pserver.NoBroker, match="127.0.0.1:1") as no_broker:
        pserver.connect("nats://127.0.0.1:1", connect_timeout=0.5)
    assert isinstance(no_broker.value, ConnectionError)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"job": "a b"}, pserver.BadName),
        ({"job": ""}, pserver.BadName),
        ({"trainer": ""}, pserver.BadName),
        ({"trainer": "t" * 65}, pserver.BadName),
        ({"url": "http://localhost"}, pserver.BadValue),
        ({"url": 5}, pserver.BadName),
        ({"url": ["localhost", 5]}, pserver.BadName),
        ({"timeout": -1}, pserver.BadValue),
        ({"connect_timeout": "soon"}, pserver.BadValue),
        ({"in_flight_bytes": 0}, pserver.BadValue),
        ({"in_flight_bytes": 1.5}, pserver.BadValue),
        ({"creds_file": Path("no such file")}, pserver.Io),
    ],
)
def test_wrong_settings_are_named(
    broker: Broker, settings: dict[str, Any], error: type[pserver.Error]
) -> None:
    with pytest.raises(error):
        connect: Any = pserver.connect
        connect(**{"url": broker.url, **settings})


def connect_with(**variables: str) -> str:
    """The last line on standard error of a program that cannot load the library."""
    program = "import pserver\npserver.connect('nats://127.0.0.1:1', connect_timeout=0.1)\n"
    ended = run_python(program, **variables)
    assert ended.returncode == 1
    return ended.stderr.strip().splitlines()[-1]


def test_a_missing_library_is_reported_in_one_line() -> None:
    line = connect_with(PSERVER_LIBRARY="no/such/libpserver.so")
    assert line.startswith("pserver._error.LibraryError: PSERVER_LIBRARY: expected the file")


def test_a_file_that_is_not_a_library_is_reported(tmp_path: Path) -> None:
    library = tmp_path / "libpserver.so"
    library.write_text("nothing")
    assert "cannot be loaded" in connect_with(PSERVER_LIBRARY=str(library))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            'const char *pserver_version(void) { return "0.0.1"; }',
            "expected libpserver .* found 0.0.1",
        ),
        ("int other;", "pserver_version"),
    ],
)
def test_a_library_of_another_version_is_reported(tmp_path: Path, source: str, text: str) -> None:
    library = tmp_path / "libpserver.so"
    subprocess.run(
        ["cc", "-shared", "-x", "c", "-", "-o", str(library)],
        input=source.encode(),
        check=True,
        timeout=HANG,
    )
    line = connect_with(PSERVER_LIBRARY=str(library))
    assert line.startswith("pserver._error.LibraryError") and str(library) in line
    assert re.search(text, line)


def test_a_server_that_ends_is_an_error_at_the_deadline(
    broker: Broker, job_name: str, start_host: Any
) -> None:
    host = start_host(job_name)
    with pserver.connect(broker.url, job=job_name) as ps:
        ps.create_if_not_already_created("w", W)
        host.kill()
        with pytest.raises((TimeoutError, ConnectionError)) as raised:
            ps.pull("w", timeout=0.5)
        assert isinstance(raised.value, pserver.Error) and raised.value.retryable
        with pytest.raises(pserver.OutcomeUnknown) as unknown:
            ps.push("w", W, 1, 1, timeout=0.5)
        assert not unknown.value.retryable
        start_host(job_name)
        assert ps.pull("w").shape == (3, 4)
