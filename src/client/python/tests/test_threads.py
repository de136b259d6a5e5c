"""Calls from several threads, and calls that are ended by signals."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pserver
from programs import run_python
from serving import HANG, Broker, Unique

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_several_threads_call_at_once(ps: pserver.Client, unique: Unique) -> None:
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
        # Returns at once although the other thread waits inside the library.
        ps.status()
        assert not done.is_set()
        waiting.close(timeout=0.1)
        assert done.wait(HANG)
        thread.join()


#: A program that is interrupted by Ctrl-C in a call of its main thread, and goes on using the client.
INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import pserver
from pserver import _threads
from pserver._link import Settings

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
    "wait for a connection": lambda: connecting.status(),
    "push": lambda: [ps.push("large", large, 1, 1, timeout=400) for _ in range(1000)],
}

if what == "wait for a connection":
    connecting = pserver.Client(Settings.of({"url": "nats://127.0.0.1:1", "connect_timeout": 400}))
    threading.Thread(target=connecting.open, daemon=True).start()
    while not connecting._link._lock.locked():
        time.sleep(0.001)

def interrupt():
    global began
    while not _threads._main.worker.is_busy:
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


@pytest.mark.parametrize("what", ["pull", "begin_init", "connect", "wait for a connection", "push"])
def test_ctrl_c_ends_a_call(broker: Broker, uninitialized: str, what: str) -> None:
    ended = run_python(INTERRUPTED, broker.url, uninitialized, what)
    assert ended.stderr.startswith("interrupted"), ended.stderr
    took, closed = ended.stdout.split()
    # Only a hang takes so long: the calls themselves would wait for 400 s.
    assert float(took) < HANG / 4 and closed == "closed"


#: A program in which a signal handler runs during a call and returns, so that the call goes on.
HANDLED = """
import os, signal, sys, threading
import numpy as np
import pserver
from pserver import _threads

with pserver.connect(sys.argv[1], job=sys.argv[2]) as ps, pserver.connect(sys.argv[1], job=sys.argv[2]) as other:
    assert ps.begin_init()
    handled = threading.Event()

    def handle(*_):
        # A handler may make calls while the call that it interrupts waits.
        assert ps.status().state == "initializing"
        handled.set()

    signal.signal(signal.SIGUSR1, handle)

    def go_on():
        while not _threads._main.worker.is_busy:
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


#: A program in which signal handlers raise one right after the other, the next ones while the first
#: exception is still being handled.
TOGETHER = """
import os, signal, sys, threading, time
import pserver
from pserver import _threads

def handle(number, frame):
    raise InterruptedError(number)

numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1][:int(sys.argv[3])]
for number in numbers:
    signal.signal(number, handle)
ps = pserver.connect(sys.argv[1], job=sys.argv[2])

def interrupt():
    while not _threads._main.worker.is_busy:
        time.sleep(0.001)
    for number in numbers:
        os.kill(os.getpid(), number)

threading.Thread(target=interrupt).start()
try:
    try:
        try:
            ps.pull("never made", timeout=4000)
        except InterruptedError:
            pass
    except InterruptedError:
        pass
except InterruptedError:
    pass
while _threads._main.worker.is_busy:
    time.sleep(0.001)
ps.close()
print("ended")
"""


@pytest.mark.parametrize("count", ["2", "3"])
def test_several_signals_at_once_end_a_call(broker: Broker, uninitialized: str, count: str) -> None:
    ended = run_python(TOGETHER, broker.url, uninitialized, count)
    assert ended.stdout == "ended\n", ended.stderr


#: A program that is interrupted while a result is freed. Exceptions raised in code that frees objects are
#: dropped by Python; this one must not be.
DROPPED = """
import collections, ctypes, operator, sys
import numpy as np
import pserver

with pserver.connect(sys.argv[1], job=sys.argv[2]) as ps:
    results = [ps.create_if_not_already_created("w", np.ones(3))]
    steps = [ctypes.pythonapi.PyErr_SetInterrupt, results.clear]
    try:
        # Both steps are C functions, called with no Python code between them.
        collections.deque(map(operator.methodcaller("__call__"), steps))
        for _ in range(1000):
            pass
        print("nothing")
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_no_ctrl_c_is_lost_while_a_result_is_freed(broker: Broker) -> None:
    ended = run_python(DROPPED, broker.url, broker.job)
    assert ended.stdout == "interrupted\n" and "ignored" not in ended.stderr, ended.stderr
