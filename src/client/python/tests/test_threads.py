"""Calls from several threads, and calls that are ended by signals."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Iterator

import numpy as np
import pytest

import pserver
from programs import run_python
from serving import HANG, Broker

W = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def ps(broker: Broker) -> Iterator[pserver.Client]:
    with pserver.connect(broker.url, job=broker.job) as client:
        yield client


def test_several_threads_call_at_once(ps: pserver.Client, unique: Callable[[str], str]) -> None:
    name = unique("w")
    ps.create_if_not_already_created(name, np.zeros(1000))

    def work(_: int) -> None:
        into = np.empty(1000)
        for _ in range(10):
            ps.push(name, np.ones(1000), 1, 1)
            ps.pull(name, out=into)
            ps.pull_part(name, [[0, -1]])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    np.testing.assert_array_equal(ps.pull(name), np.full(1000, 80))


def test_other_threads_run_while_a_call_waits(
    ps: pserver.Client, broker: Broker, uninitialized: str
) -> None:
    with pserver.connect(broker.url, job=uninitialized) as waiting:
        done = threading.Event()

        def wait() -> None:
            with pytest.raises(pserver.Closed):
                waiting.pull("never", timeout=HANG)
            done.set()

        thread = threading.Thread(target=wait)
        thread.start()
        # Ends at once although the other thread is inside the library.
        ps.status()
        assert not done.is_set()
        waiting.close(timeout=0.1)
        assert done.wait(HANG)
        thread.join()


#: Ends a call of the main thread by Ctrl-C, and shows that everything goes on after it.
INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import pserver
from pserver import _interruptible

url, job, what = sys.argv[1:]
large = np.zeros(8_000_000, np.float32)
ps = pserver.connect(url, job=job)
ps.create_if_not_already_created("w", np.ones(3))
if what == "push":
    ps.create_if_not_already_created("large", large)
if what == "begin_init":
    other = pserver.connect(url, job=job, trainer="selected")
    assert other.begin_init()
calls = {
    "pull": lambda: ps.pull("never made", timeout=400),
    "begin_init": lambda: ps.begin_init(timeout=400),
    "connect": lambda: pserver.connect("nats://127.0.0.1:1", connect_timeout=400),
    "push": lambda: [ps.push("large", large, 1, 1, timeout=400) for _ in range(1000)],
}

def interrupt():
    global began
    while not _interruptible._main.worker.is_busy:
        time.sleep(0.001)
    began = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    calls[what]()
except KeyboardInterrupt:
    took = time.perf_counter() - began
    print("interrupted", ps.status().state, ps.job == job, file=sys.stderr)
    print(took)
if what != "begin_init":
    assert ps.pull("w", timeout=400).tolist() == [1.0, 1.0, 1.0]
ps.close()
print("closed")
"""


@pytest.mark.parametrize("what", ["pull", "begin_init", "connect", "push"])
def test_ctrl_c_ends_a_call(broker: Broker, uninitialized: str, what: str) -> None:
    ended = run_python(INTERRUPTED, broker.url, uninitialized, what)
    assert ended.stderr.startswith("interrupted"), ended.stderr
    took, closed = ended.stdout.split()
    # Only a hang takes so long: the calls themselves would wait for 400 s.
    assert float(took) < HANG / 4 and closed == "closed"


#: A handler that returns does not end the call that it comes into.
HANDLED = """
import os, signal, sys, threading
import numpy as np
import pserver
from pserver import _interruptible

with pserver.connect(sys.argv[1], job=sys.argv[2]) as ps, pserver.connect(sys.argv[1], job=sys.argv[2]) as other:
    assert ps.begin_init()
    handled = threading.Event()

    def handle(*_):
        # It may make calls of its own while the one it comes into waits.
        assert ps.status().state == "initializing"
        handled.set()

    signal.signal(signal.SIGUSR1, handle)

    def go_on():
        while not _interruptible._main.worker.is_busy:
            pass
        os.kill(os.getpid(), signal.SIGUSR1)
        assert handled.wait(400)
        ps.init_param("w", np.ones(3))
        ps.finish_init()

    threading.Thread(target=go_on).start()
    print(other.pull("w", timeout=400).tolist())
"""


def test_a_signal_that_is_handled_does_not_end_a_call(broker: Broker, job: str) -> None:
    ended = run_python(HANDLED, broker.url, job)
    assert ended.stdout == "[1.0, 1.0, 1.0]\n", ended.stderr
