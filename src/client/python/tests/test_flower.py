"""The example of a Flower strategy, on a real host: its server is killed in the middle of a round, nothing is lost and nothing
counts twice; and the strategy drives Flower's surface as documented, of which this test has what it needs.
"""

from __future__ import annotations

import os
import signal
import sys
import types
from pathlib import Path
from typing import Any, Iterable, Iterator, List

import numpy as np
import pytest

import pserver
from programs import StartPython
from serving import ROOT, Broker, StartHost

EXAMPLE = ROOT / "examples" / "flower"
SETTINGS = ("--sync", "diloco", "--preset", "fedavg", "--quorum", "4")
SERVER = Path(__file__).with_name("flower_server.py")


@pytest.fixture
def job(job_name: str, start_host: StartHost) -> str:
    start_host(job_name, *SETTINGS)
    return job_name


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the modules of the example be imported, with stand-ins for those of Flower."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    for name, module in flower().items():
        monkeypatch.setitem(sys.modules, name, module)
    yield
    for name in [each for each in sys.modules if each.split(".")[0] == "federated"]:
        del sys.modules[name]


def test_a_server_that_is_killed_loses_nothing_and_counts_nothing_twice(
    broker: Broker, job: str, example: None, start_python: StartPython
) -> None:
    from federated.rounds import KeptRounds

    paths = os.pathsep.join([str(EXAMPLE), *filter(None, sys.path)])
    killed = start_python(str(SERVER), broker.url, job, "1", "2", PYTHONPATH=paths)
    assert killed.stdout is not None and killed.stdout.readline() == "sent\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    rounds = KeptRounds(broker.url, job)
    arrays = rounds.begin({"w": np.full(2, 99, np.float32)})
    began = rounds.version
    rounds.enter(range(4))
    # It does not know whom the other one has asked, and asks all again.
    counted = [rounds.take(node, {"w": arrays["w"] + np.float32(node)}, 10) for node in range(4)]
    value = rounds.finish()["w"][0]
    rounds.close()
    merged = []
    for node in range(4):
        with pserver.connect(broker.url, job=job, trainer=f"node-{node}") as own:
            merged.append(own.fragments().account.merged.contributions)
    # What the killed server has sent counts, and nothing of the same round twice.
    assert merged == [count + (node in (1, 2)) for node, count in enumerate(counted)]
    assert (began, counted, float(value)) in (
        # The round was still open: each node counts in it once, whoever has sent for it.
        (0, [True, False, False, True], 1.5),
        # It had closed when the leases of the killed server ran out, and this was the next one.
        (1, [True] * 4, 3.0),
        # It closed in between, and what was learned for it came too late.
        (0, [False] * 4, 1.5),
    )


def test_the_strategy_runs_the_rounds_that_are_left(
    broker: Broker, job: str, example: None
) -> None:
    from federated.records import from_record, to_record
    from federated.rounds import KeptRounds
    from federated.strategy import PserverFedAvg

    asked: List[int] = []
    for total, failing in (2, None), (5, 3):
        rounds = KeptRounds(broker.url, job)
        grid = Grid(failing, asked)
        result = PserverFedAvg(rounds).start(grid, to_record({"w": np.zeros(2)}), total)
        assert rounds.version == total
        rounds.close()
    # Rounds are numbered on, and the second run had only three.
    assert asked == [1, 2, 3, 4, 5]
    # Node n adds n: 1.5 a round, 1 where node 3 fails.
    np.testing.assert_allclose(from_record(result.arrays)["w"], np.full(2, 6.0))
    with pserver.connect(broker.url, job=job, trainer="node-3") as ps:
        assert ps.fragments().account.merged.contributions == 2


class Array:
    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value, np.float32)

    def numpy(self) -> Any:
        return self.value


class Record(dict):  # type: ignore[type-arg]
    """Stands for ArrayRecord, MetricRecord and ConfigRecord, which are mappings."""


class Content:
    def __init__(self, arrays: Record, metrics: Record) -> None:
        self.array_records = {"arrays": arrays}
        self.metric_records = {"metrics": metrics}


class Message:
    """A message, or the reply to one."""

    def __init__(self, node: int, content: Any, reply_to: str = "", failed: bool = False) -> None:
        self.content = content
        self.metadata = types.SimpleNamespace(
            dst_node_id=node,
            src_node_id=node,
            message_type="train",
            message_id=f"m{node}",
            reply_to_message_id=reply_to,
        )
        self._failed = failed

    def has_error(self) -> bool:
        return self._failed


class FedAvg:
    """What the strategy takes from Flower's: `start` asks, sends, and aggregates, round after round."""

    weighted_by_key = "num-examples"

    def train_metrics_aggr_fn(self, contents: List[Content], key: str) -> Record:
        return Record({key: sum(next(iter(c.metric_records.values()))[key] for c in contents)})

    def _check_and_log_replies(self, replies: Iterable[Message], is_train: bool) -> Any:
        all_replies = list(replies)
        return [each for each in all_replies if not each.has_error()], []

    def configure_train(self, number: int, arrays: Record, config: Record, grid: Any) -> Any:
        config["server-round"] = number
        return [Message(node, (arrays, dict(config))) for node in range(4)]

    def start(self, grid: Any, initial_arrays: Record, num_rounds: int = 3) -> Any:
        result = types.SimpleNamespace(arrays=initial_arrays)
        for number in range(1, num_rounds + 1):
            messages = self.configure_train(number, result.arrays, Record(), grid)
            replies = grid.send_and_receive(messages=messages, timeout=400)
            result.arrays, _ = self.aggregate_train(number, replies)  # type: ignore[attr-defined]
        return result


class Grid:
    """Nodes of which each adds its number; one may fail."""

    def __init__(self, failing: Any, asked: List[int]) -> None:
        self._failing = failing
        self._asked = asked
        self._replies: List[Message] = []

    def push_messages(self, messages: Iterable[Message]) -> List[str]:
        ids = []
        for message in messages:
            node = message.metadata.dst_node_id
            arrays, config = message.content
            if node == 0:
                self._asked.append(config["server-round"])
            learned = Record({"w": Array(arrays["w"].numpy() + np.float32(node))})
            content = Content(learned, Record({"num-examples": 10}))
            reply = Message(node, content, message.metadata.message_id, node == self._failing)
            self._replies.append(reply)
            ids.append(message.metadata.message_id)
        return ids

    def pull_messages(self, ids: Iterable[str]) -> List[Message]:
        """One reply at a time, as they come."""
        return [self._replies.pop()] if self._replies else []


def flower() -> dict[str, types.ModuleType]:
    app, serverapp, strategy = (
        types.ModuleType(f"flwr.{name}") for name in ("app", "serverapp", "serverapp.strategy")
    )
    app.__dict__.update(
        Array=Array,
        ArrayRecord=Record,
        ConfigRecord=Record,
        MetricRecord=Record,
        Message=Message,
        MessageType=types.SimpleNamespace(TRAIN="train"),
    )
    serverapp.__dict__.update(Grid=Grid)
    strategy.__dict__.update(FedAvg=FedAvg, Result=types.SimpleNamespace)
    modules = [types.ModuleType("flwr"), app, serverapp, strategy]
    return {module.__name__: module for module in modules}
