"""Clients in forked and spawned processes, clients that were pickled, and the end of the interpreter."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
from typing import Any, Iterator

import numpy as np
import pytest

import pserver
from pserver._link import extended_id
from programs import run_python
from serving import HANG, Broker

W = np.arange(3, dtype=np.float32)


@pytest.fixture(scope="module")
def ps(broker: Broker) -> Iterator[pserver.Client]:
    with pserver.connect(broker.url, job=broker.job, trainer="parent") as client:
        client.create_if_not_already_created("processes", W)
        yield client


def use(client: pserver.Client, told: Any) -> None:
    told.put((client.trainer, client.session, client.pull("processes").tolist()))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_of_multiprocessing_has_a_connection_of_its_own(
    ps: pserver.Client, method: str
) -> None:
    session = ps.session
    context: Any = multiprocessing.get_context(method)
    told = context.Queue()
    processes = [context.Process(target=use, args=(ps, told)) for _ in range(2)]
    for process in processes:
        process.start()
    answers = [told.get(timeout=HANG) for _ in processes]
    for process in processes:
        process.join(HANG)
        assert process.exitcode == 0
    trainers = {trainer for trainer, _, _ in answers}
    assert len(trainers) == 2 and "parent" not in trainers
    assert all(trainer.startswith("parent-") for trainer in trainers)
    assert len({session, *(other for _, other, _ in answers)}) == 3
    assert all(values == W.tolist() for _, _, values in answers)
    # The parent's session goes on.
    ps.push("processes", W, 0, 1)
    assert ps.session == session


#: A program that forks while its threads are inside calls, and again in the child. Parents and children use
#: the same client object.
FORKS = """
import os, sys, threading
import numpy as np
import pserver

ps = pserver.connect(sys.argv[1], job=sys.argv[2], trainer="p")
ps.create_if_not_already_created("w", np.zeros(100_000))
going = threading.Event()
def work():
    while not going.is_set():
        ps.push("w", np.ones(100_000), 1, 1)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()

def fork(depth):
    pid = os.fork()
    if pid == 0:
        assert ps.pull("w").shape == (100_000,)
        assert ps.trainer.startswith("p-"), ps.trainer
        if depth > 0:
            fork(depth - 1)
        assert ps.push("w", np.ones(100_000), 1, 0) is None
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0

for _ in range(3):
    fork(2)
session = ps.session
going.set()
for thread in threads:
    thread.join()
ps.pull("w")
print(ps.trainer, ps.session == session)
"""


def test_forks_while_other_threads_are_in_calls(broker: Broker, job: str) -> None:
    ended = run_python(FORKS, broker.url, job)
    assert ended.stdout == "p True\n", ended.stderr
    assert "Error" not in ended.stderr


def test_an_id_of_the_environment_is_extended_in_processes_of_another(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSERVER_TRAINER", "t")
    with pserver.connect(broker.url, job=broker.job) as ps:
        assert ps.trainer == "t"
        context = multiprocessing.get_context("fork")
        told = context.Queue()
        process = context.Process(target=connect_again, args=(broker.url, broker.job, told))
        process.start()
        assert told.get(timeout=HANG).startswith("t-")
        process.join(HANG)
        ps.status()


def connect_again(url: str, job: str, told: Any) -> None:
    with pserver.connect(url, job=job) as ps:
        told.put(ps.trainer)


def test_is_pickled_as_its_settings(ps: pserver.Client, broker: Broker) -> None:
    for other in (pickle.loads(pickle.dumps(ps)), copy.copy(ps)):
        with other:
            assert other.trainer.startswith("parent-")
            np.testing.assert_array_equal(other.pull("processes"), ps.pull("processes"))
            assert other.session != ps.session
    closed = pserver.connect(broker.url, job=broker.job)
    closed.close()
    with pytest.raises(pserver.Closed):
        pickle.loads(pickle.dumps(closed)).status()


@pytest.mark.parametrize("name", ["a", "worker/1", "ü" * 10, "x" * 64, "層" * 7])
def test_ids_of_other_processes_are_within_the_limits(name: str) -> None:
    extended = extended_id(name)
    escaped = "".join(
        chr(byte) if chr(byte).isalnum() or byte in b"-_" else f"={byte:02X}"
        for byte in extended.encode()
    )
    assert len(escaped) <= 64 and extended != extended_id(name)
    assert extended.startswith(name[:1])


EXITS = {
    "with an open client": "",
    "with a call of another thread": """
def wait():
    begun.set()
    try:
        ps.pull("never made", timeout=400)
    except pserver.Closed:
        pass
begun = threading.Event()
threading.Thread(target=wait, daemon=True).start()
begun.wait()
""",
    "after a fork": """
if os.fork() == 0:
    ps.status()
    sys.exit(0)
assert os.wait()[1] == 0
""",
    "in a child that never called": """
if os.fork() == 0:
    sys.exit(0)
assert os.wait()[1] == 0
""",
    "with a client in a cycle": """
ps.self = ps
results = [ps.pull("exit")]
""",
    "by an exception": "raise SystemExit(0)",
}


@pytest.mark.parametrize("how", EXITS)
def test_the_interpreter_ends(broker: Broker, uninitialized: str, how: str) -> None:
    program = f"""
import os, sys, threading
import pserver
ps = pserver.connect(sys.argv[1], job=sys.argv[2])
ps.create_if_not_already_created("exit", 1.0)
{EXITS[how]}
"""
    ended = run_python(program, broker.url, uninitialized)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    assert "Fatal" not in ended.stderr and "Traceback" not in ended.stderr, ended.stderr


def test_a_client_that_nobody_closes_warns_and_is_closed(broker: Broker) -> None:
    ps = pserver.connect(broker.url, job=broker.job)
    with pytest.warns(ResourceWarning, match="was not closed"):
        del ps
        gc.collect()
