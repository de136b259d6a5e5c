"""The asynchronous client: the same calls, awaited; a cancelled task ends its call."""

from __future__ import annotations

import asyncio
import gc
import inspect
import pickle
import threading
from typing import Any, Awaitable, Callable

import numpy as np
import pytest

import pserver
import pserver.aio
from pserver._threads import CALLS_MAX
from programs import run_python, until
from serving import HANG, Broker, Unique

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def run(work: Callable[[pserver.aio.AsyncClient], Awaitable[Any]], broker: Broker, job: str) -> Any:
    async def main() -> Any:
        async with await pserver.aio.connect(broker.url, job=job, trainer="a") as ps:
            return await asyncio.wait_for(work(ps), HANG)

    return asyncio.run(main())


def test_has_every_name_of_the_client() -> None:
    for name, _ in inspect.getmembers(pserver.Client):
        if not name.startswith("_"):
            other = getattr(pserver.aio.AsyncClient, name)
            # Only these two never have to connect.
            assert isinstance(other, property) == (name in ("job", "trainer")), name
            assert isinstance(other, property) or asyncio.iscoroutinefunction(other), name
            assert other.__doc__, name


def test_makes_calls_at_the_same_time(broker: Broker, uninitialized: str, unique: Unique) -> None:
    async def work(ps: pserver.aio.AsyncClient) -> None:
        assert (ps.job, ps.trainer, await ps.steps_ended()) == (uninitialized, "a", 0)
        assert await ps.session() > 0 and (await ps.synchronization()).mode == "async"
        name = unique("w")
        await ps.create_if_not_already_created(name, W, learning_rate=1)
        await asyncio.gather(*(ps.push(name, W, 1, 1) for _ in range(40)))
        into = np.empty_like(W)
        assert await ps.pull(name, out=into) is into
        np.testing.assert_array_equal(into, 41 * W)
        await ps.send_grads({name: W})
        np.testing.assert_array_equal((await ps.get_params([name]))[name], 40 * W)
        np.testing.assert_array_equal(await ps.pull_part(name, [[0], [1]]), [[40]])
        await ps.elastic_average(name, into, 1.0)
        assert [each.name for each in await ps.list_params()].count(name) == 1
        with pytest.raises(pserver.BadShape):
            await ps.push(name, W.T, 1, 1)

    before = threading.active_count()
    run(work, broker, uninitialized)
    until(lambda: threading.active_count() <= before)


def test_cancelling_a_task_ends_its_call_alone(broker: Broker, uninitialized: str) -> None:
    async def work(ps: pserver.aio.AsyncClient) -> None:
        tasks = [asyncio.ensure_future(ps.pull("never made", timeout=HANG)) for _ in range(20)]
        while sum(each.name == "pserver-aio" for each in threading.enumerate()) < CALLS_MAX:
            await asyncio.sleep(0.01)
        for task in tasks[:18]:
            task.cancel()
        results = await asyncio.gather(*tasks[:18], return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        # New calls find a free thread, and the calls that were not cancelled continue.
        assert (await ps.status()).state != "ready"
        assert not tasks[18].done() and not tasks[19].done()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ps.pull("never made", timeout=HANG), 0.05)
        for task in tasks[18:]:
            task.cancel()
        await asyncio.gather(*tasks[18:], return_exceptions=True)

    run(work, broker, uninitialized)


def test_continues_in_another_event_loop(broker: Broker, uninitialized: str) -> None:
    ps = asyncio.run(pserver.aio.connect(broker.url, job=uninitialized))
    assert asyncio.run(ps.status()).state != "ready"
    other = pickle.loads(pickle.dumps(ps))
    assert asyncio.run(other.status()).state != "ready"
    assert asyncio.run(other.session()) != asyncio.run(ps.session())
    asyncio.run(other.close())
    asyncio.run(ps.close())
    with pytest.raises(pserver.Closed):
        asyncio.run(ps.status())


@pytest.mark.parametrize("name", ["session", "synchronization", "steps_ended"])
def test_connecting_leaves_the_loop_free(
    broker: Broker, job_name: str, start_host: Any, name: str
) -> None:
    async def work() -> None:
        host = start_host(job_name)
        ps = await pserver.aio.connect(broker.url, job=job_name, connect_timeout=HANG)
        other = pickle.loads(pickle.dumps(ps))
        await ps.close()
        host.kill()
        # No host answers it. If it blocked the loop, it would end with an error before it is cancelled.
        waiting = asyncio.ensure_future(getattr(other, name)())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await other.close()

    asyncio.run(work())


def test_errors_of_connecting_are_raised() -> None:
    with pytest.raises(pserver.NoBroker):
        asyncio.run(pserver.aio.connect("nats://127.0.0.1:1", connect_timeout=0.1))


#: A program that is interrupted by Ctrl-C while a task waits for a call.
INTERRUPTED = """
import asyncio, os, signal, sys, threading
import pserver.aio

async def main():
    async with await pserver.aio.connect(sys.argv[1], job=sys.argv[2]) as ps:
        task = asyncio.ensure_future(ps.pull("never made", timeout=400))
        while not any(each.name == "pserver-aio" for each in threading.enumerate()):
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        await task

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_the_loop_and_its_calls(broker: Broker, uninitialized: str) -> None:
    ended = run_python(INTERRUPTED, broker.url, uninitialized)
    assert ended.stdout == "interrupted\n", ended.stderr


def test_threads_end_with_the_client_however_it_goes(broker: Broker) -> None:
    before = threading.active_count()

    async def call_often(ps: pserver.aio.AsyncClient) -> None:
        await asyncio.gather(*(ps.status() for _ in range(CALLS_MAX)))

    async def use_after_close(ps: pserver.aio.AsyncClient) -> None:
        await ps.close()
        with pytest.raises(pserver.Closed):
            await ps.status()

    async def leave_a_call(ps: pserver.aio.AsyncClient) -> None:
        asyncio.get_running_loop().create_task(ps.begin_init(timeout=HANG))
        await asyncio.sleep(0)

    ps = asyncio.run(pserver.aio.connect(broker.url, job=broker.job))
    # Each asyncio.run makes an event loop of its own.
    for _ in range(3):
        asyncio.run(call_often(ps))
    assert threading.active_count() <= before + CALLS_MAX
    asyncio.run(leave_a_call(ps))
    asyncio.run(use_after_close(ps))
    until(lambda: threading.active_count() <= before)
    ps = asyncio.run(pserver.aio.connect(broker.url, job=broker.job))
    asyncio.run(call_often(ps))
    with pytest.warns(ResourceWarning, match="was not closed"):
        del ps
        gc.collect()
    until(lambda: threading.active_count() <= before)
