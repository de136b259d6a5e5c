"""The client for asyncio: calls are awaited, and cancelling a task ends its call.

::

    async with await pserver.aio.connect() as ps:
        params = await ps.get_params(["w"])
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Coroutine, List, Optional, TypeVar

from . import averaging
from ._threads import Pool
from .client import Client, connect as _connect
from .records import ClientStats, Synchronization

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    Arguments = ParamSpec("Arguments")

Result = TypeVar("Result")


def _awaited(
    method: Callable[Concatenate[Client, Arguments], Result],
) -> Callable[Concatenate[AsyncClient, Arguments], Coroutine[Any, Any, Result]]:
    """Turns a method of :class:`pserver.Client` into one of :class:`AsyncClient`."""

    @functools.wraps(method)
    async def call(
        self: AsyncClient, /, *arguments: Arguments.args, **keywords: Arguments.kwargs
    ) -> Result:
        return await self._pool.run(lambda: method(self._client, *arguments, **keywords))

    return call


class AsyncClient:
    """A :class:`pserver.Client` whose calls are awaited; made by :func:`pserver.aio.connect`.

    Calls run in the client's own threads, at most 16 at the same time. Cancelling a task ends its call
    within a tenth of a second; each block that is then being updated is updated once or not at all.
    Properties that may have to connect are awaited calls here, such as ``await ps.session()``.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pool = Pool()

    def __repr__(self) -> str:
        return f"<pserver.aio.AsyncClient of {self._client!r}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __reduce__(self) -> Any:
        return AsyncClient, (self._client,)

    @property
    def job(self) -> str:
        """Name of the job."""
        return self._client.job

    @property
    def trainer(self) -> str:
        """Id of this client."""
        return self._client.trainer

    async def session(self) -> int:
        """Number of the trainer's session. Connects if this process has not."""
        return await self._pool.run(lambda: self._client.session)

    async def synchronization(self) -> Synchronization:
        """How the trainers of the job keep step. Connects if this process has not."""
        return await self._pool.run(lambda: self._client.synchronization)

    async def stats(self) -> ClientStats:
        """Returns what this client has done in this process since it joined, without a request to hosts.
        Connects if this process has not."""
        return await self._pool.run(self._client.stats)

    async def steps_ended(self) -> int:
        """Steps that this trainer has ended, including those that closed before it entered. Connects if this
        process has not."""
        return await self._pool.run(lambda: self._client.steps_ended)

    open = _awaited(Client.open)
    begin_init = _awaited(Client.begin_init)
    init_param = _awaited(Client.init_param)
    init_params = _awaited(Client.init_params)
    finish_init = _awaited(Client.finish_init)
    abort_init = _awaited(Client.abort_init)
    create_if_not_already_created = _awaited(Client.create_if_not_already_created)
    send_grads = _awaited(Client.send_grads)
    end_step = _awaited(Client.end_step)
    exit_steps = _awaited(Client.exit_steps)
    enter_rounds = _awaited(Client.enter_rounds)
    contribute = _awaited(Client.contribute)
    fragments = _awaited(Client.fragments)
    sampling = _awaited(Client.sampling)
    pull_fragment = _awaited(Client.pull_fragment)
    note = _awaited(Client.note)
    set_params = _awaited(Client.set_params)
    push = _awaited(Client.push)
    push_part = _awaited(Client.push_part)
    get_params = _awaited(Client.get_params)
    pull = _awaited(Client.pull)
    pull_part = _awaited(Client.pull_part)
    save = _awaited(Client.save)
    status = _awaited(Client.status)
    list_params = _awaited(Client.list_params)
    fallbacks = _awaited(Client.fallbacks)
    elastic_average = _awaited(averaging.elastic_average)

    async def close(self, *, timeout: Optional[float] = None) -> None:
        """Closes the client as :meth:`pserver.Client.close` does, and ends the threads."""
        try:
            await self._pool.run(lambda: self._client.close(timeout=timeout))
        finally:
            self._pool.close()


def _connecting(
    function: Callable[Arguments, Client],
) -> Callable[Arguments, Coroutine[Any, Any, AsyncClient]]:
    @functools.wraps(function)
    async def call(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> AsyncClient:
        pool = Pool()
        made: List[Client] = []
        try:
            await pool.run(lambda: made.append(function(*arguments, **keywords)))
        except BaseException:
            # The task may have been cancelled just after the client had connected.
            for client in made:
                client._discard()
            raise
        finally:
            pool.close()
        return AsyncClient(made[0])

    return call


connect = _connecting(_connect)
