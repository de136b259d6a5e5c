"""The rounds of a federation, kept by a parameter server: whoever runs them can be killed at any moment."""

from __future__ import annotations

from typing import Dict, Iterable, Mapping, Optional

import pserver
from pserver import Array, Client

#: The fragment that the whole model is.
FRAGMENT = "model"


class KeptRounds:
    """Gives a parameter server what the nodes of a federation have learned, each under a name of its own, and takes the
    merged arrays from it.

    All that lasts is there: arrays, contributions, and how many rounds have closed. So another process can continue where
    this one was killed; what a node has contributed to the open round counts in it, and once, also if the node is asked
    again.
    """

    def __init__(self, url: Optional[str] = None, job: str = "flower") -> None:
        self._place = {"url": url, "job": job}
        self._keeper = self._connect("flower-server")
        self._nodes: Dict[int, Client] = {}
        self._has_any = False
        #: How many rounds have closed: the version from which the nodes of the open round begin.
        self.version = 0

    def _connect(self, trainer: str) -> Client:
        return pserver.connect(self._place["url"], job=self._place["job"], trainer=trainer)

    def begin(self, initial: Mapping[str, Array]) -> Mapping[str, Array]:
        """Initializes the model with these arrays, unless it is there; returns the arrays to go on with."""
        if self._keeper.begin_init():
            # The new arrays are the mean of what nodes have learned.
            self._keeper.init_params(initial, fragment=FRAGMENT, optimizer="sgd", learning_rate=1)
            self._keeper.finish_init()
        return self._pull(0)

    def enter(self, nodes: Iterable[int]) -> None:
        """Begins a round of these nodes: it waits for them, and for no others."""
        wanted = set(nodes)
        for node in set(self._nodes) - wanted:
            self.leave(node)
        for node in wanted:
            if node not in self._nodes:
                self._nodes[node] = self._connect(f"node-{node}")
            self._nodes[node].enter_rounds()
        self._has_any = False

    def take(self, node: int, learned: Mapping[str, Array], examples: int) -> bool:
        """Contributes what a node has learned; returns whether it counts: not if an earlier one of the node does."""
        work = {"base": self.version, "steps": 1, "tokens": examples}
        counted = self._nodes[node].contribute(FRAGMENT, learned, form="parameters", **work)
        self._has_any = True
        return counted is not None

    def leave(self, node: int) -> None:
        """Has the round not wait for a node that has failed, or takes no part in it."""
        self._nodes.pop(node).close()

    def finish(self) -> Mapping[str, Array]:
        """Waits until the round has closed, unless nothing was contributed to it; returns the new arrays."""
        return self._pull(self.version + 1 if self._has_any else self.version)

    def _pull(self, version: int) -> Mapping[str, Array]:
        pulled = self._keeper.pull_fragment(FRAGMENT, min_version=version)
        self.version = pulled.version
        return pulled.params

    def close(self) -> None:
        """Ends all connections."""
        for node in list(self._nodes):
            self.leave(node)
        self._keeper.close()
