"""Flower's federated averaging with everything that must last in a parameter server."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterable, List, Optional, Tuple

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result

from .records import from_record, to_record
from .rounds import KeptRounds

#: Seconds between two looks for replies.
_PAUSE = 0.2


class TellingGrid:
    """A grid that tells of each reply as it comes, not when all have come."""

    def __init__(self, grid: Grid, on_reply: Callable[[Message], None]) -> None:
        self._grid = grid
        self._on_reply = on_reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: Optional[float] = None
    ) -> List[Message]:
        """Sends messages and returns the replies that come in time."""
        waiting = set(self._grid.push_messages(messages))
        ends_at = None if timeout is None else time.monotonic() + timeout
        replies: List[Message] = []
        while waiting and (ends_at is None or time.monotonic() < ends_at):
            for reply in self._grid.pull_messages(waiting):
                waiting.discard(reply.metadata.reply_to_message_id)
                self._on_reply(reply)
                replies.append(reply)
            if waiting:
                time.sleep(_PAUSE)
        return replies


class PserverFedAvg(FedAvg):
    """Federated averaging that survives its server: each reply is contributed when it comes, and the server merges them.

    A run that begins while the job has a model continues with its arrays, in the round after those that have closed;
    ``num_rounds`` counts these, too.
    """

    def __init__(self, rounds: KeptRounds, **settings: Any) -> None:
        super().__init__(**settings)
        self._rounds = rounds
        self._before = 0
        self._asked: set[int] = set()

    def start(
        self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, **options: Any
    ) -> Result:
        """Runs the rounds that are left of ``num_rounds``."""
        arrays = to_record(self._rounds.begin(from_record(initial_arrays)))
        self._before = self._rounds.version
        left = max(0, num_rounds - self._before)
        result = super().start(TellingGrid(grid, self._take), arrays, left, **options)
        if left == 0:
            result.arrays = arrays
        return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> List[Message]:
        """Chooses the nodes of a round, which waits for them."""
        number = self._before + server_round
        messages = list(super().configure_train(number, arrays, config, grid))
        self._asked = {message.metadata.dst_node_id for message in messages}
        self._rounds.enter(self._asked)
        return messages

    def _take(self, reply: Message) -> None:
        """Contributes a reply of training; the round does not wait for a node that has failed."""
        node = reply.metadata.src_node_id
        if reply.metadata.message_type != MessageType.TRAIN:
            return
        self._asked.discard(node)
        if reply.has_error():
            self._rounds.leave(node)
            return
        arrays = next(iter(reply.content.array_records.values()))
        metrics = next(iter(reply.content.metric_records.values()))
        self._rounds.take(node, from_record(arrays), int(metrics[self.weighted_by_key]))

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> Tuple[Optional[ArrayRecord], Optional[MetricRecord]]:
        """Returns what the server has merged; it does not wait for those that have not replied in time."""
        valid, _ = self._check_and_log_replies(replies, is_train=True)
        for node in self._asked:
            self._rounds.leave(node)
        self._asked = set()
        arrays = to_record(self._rounds.finish())
        if not valid:
            return arrays, None
        contents = [message.content for message in valid]
        return arrays, self.train_metrics_aggr_fn(contents, self.weighted_by_key)
