"""How rounds are merged and applied: learners with a barrier and decoupled ones, against the formulas in numpy, bit for bit.

The reference gets nothing from the server but the first values: what the learners have received before a round, less what
they have then, is what they contribute; from all that it computes the values that they have to receive.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import pytest

from pserver.diloco import Learner
from programs import arrived, until
from serving import Broker, StartHost
from test_diloco import connect

Arrays = Dict[str, Any]

#: Tokens of an inner step of each learner, which so weigh differently.
TOKENS = (7, 11, 5)
PERIOD = 5
ROUNDS = 4
EMBEDDINGS = ["table"]


def model() -> Arrays:
    random = np.random.default_rng(3)
    shapes = {"table": (9, 4), "a": (7, 3), "b": (11,), "scalar": (), "still": (5, 2)}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def inner(params: Arrays, learner: int, step: int) -> Arrays:
    """An inner step of a learner: others learn other things. `still` does not move for the first learner."""
    random = np.random.default_rng([learner, step])
    found = dict(params)
    for name, value in params.items():
        if name != "still" or learner > 0:
            found[name] = value - np.asarray(random.normal(scale=0.1, size=value.shape), np.float32)
    return found


class Outer:
    """The values of a fragment and their outer momentum; merges displacements in float32, with norms in float64."""

    def __init__(self, params: Arrays, merge: str) -> None:
        self.values = {name: value.copy() for name, value in params.items()}
        self._momentum = {name: np.zeros_like(value) for name, value in params.items()}
        self._merge = merge

    def close(self, displacements: Sequence[Arrays], weights: Sequence[float]) -> None:
        """Applies a round of contributions in their order."""
        rate, keep = np.float32(0.7), np.float32(0.9)
        for name, value in self.values.items():
            gradient = self._merged([each[name] for each in displacements], weights, name)
            push = rate * gradient
            self._momentum[name] = keep * self._momentum[name] - push
            self.values[name] = value - (push - keep * self._momentum[name])

    def _merged(self, displacements: Sequence[Any], weights: Sequence[float], name: str) -> Any:
        total, radius = 0.0, 0.0
        mean = direction = np.zeros_like(displacements[0])
        for displacement, weight in zip(displacements, weights):
            before, own = total / (total + weight), weight / (total + weight)
            norm = length(displacement)
            toward = np.float32(0 if norm == 0 else own / norm)
            mean = np.float32(before) * mean + np.float32(own) * displacement
            direction = np.float32(before) * direction + toward * displacement
            radius = radius * before + norm * own
            total += weight
        if self._merge == "mean" or name in EMBEDDINGS or length(direction) == 0:
            return mean
        return np.float32(radius / length(direction)) * direction


def length(array: Any) -> float:
    return float(np.sqrt(np.sum(np.square(array, dtype=np.float64))))


class Reference:
    """What the job has to come to: computed from what the learners contribute, in the order in which they do."""

    def __init__(self, division: Dict[str, str], merge: str) -> None:
        values = model()
        self.names: Dict[str, List[str]] = {}
        for name, fragment in division.items():
            self.names.setdefault(fragment, []).append(name)
        self.outer = {
            fragment: Outer({name: values[name] for name in names}, merge)
            for fragment, names in self.names.items()
        }
        self._rounds: Dict[str, List[Tuple[Arrays, float]]] = {name: [] for name in self.names}
        self.closed = {name: 0 for name in self.names}

    def contribute(self, fragment: str, displacement: Arrays, tokens: int, steps: int) -> None:
        """Takes a contribution, which weighs tokens² / steps; the third one closes the round."""
        taken = self._rounds[fragment]
        taken.append((displacement, tokens * (tokens / steps)))
        if len(taken) == len(TOKENS):
            self.outer[fragment].close([each for each, _ in taken], [weight for _, weight in taken])
            taken.clear()
            self.closed[fragment] += 1

    @property
    def values(self) -> Arrays:
        return {name: value for each in self.outer.values() for name, value in each.values.items()}


class Trained:
    """A learner, what it has now, what it has received last, and its steps since."""

    def __init__(self, learner: Learner, number: int, reference: Reference) -> None:
        self.learner, self._number, self._reference = learner, number, reference
        self.own = learner.params
        self._received = learner.params
        self._versions = learner.versions
        self._steps = {fragment: 0 for fragment in learner.versions}
        self.contributions = 0

    def step(self) -> None:
        """Makes an inner step, and adopts what has come."""
        self.own = self.learner.step(inner(self.own, self._number, self.learner.steps))
        self._notice()
        for fragment, names in self._reference.names.items():
            if self.learner.steps % PERIOD == self._due(fragment):
                change = {name: self._received[name] - self.own[name] for name in names}
                steps = self._steps[fragment]
                self._reference.contribute(fragment, change, TOKENS[self._number] * steps, steps)
                self.contributions += 1

    def finish(self) -> None:
        """Waits for the result of the round."""
        self.own = self.learner.finish(self.own)
        self._notice()

    def _notice(self) -> None:
        """Notes what has been received, from which on steps are counted."""
        for fragment, version in self.learner.versions.items():
            is_new = version != self._versions[fragment]
            self._steps[fragment] = 0 if is_new else self._steps[fragment] + 1
            if is_new:
                names = self._reference.names[fragment]
                self._received.update({name: self.learner.params[name] for name in names})
        self._versions = self.learner.versions

    def _due(self, fragment: str) -> int:
        place, count = int(fragment[1:]), len(self._reference.names)
        return (place + 1) * PERIOD // count % PERIOD


def assert_same(found: Arrays, expected: Arrays) -> None:
    for name, value in expected.items():
        assert np.asarray(found[name]).tobytes() == np.asarray(value).tobytes(), name


@pytest.mark.parametrize("merge", ["mean", "rda"])
@pytest.mark.parametrize(
    "fragments, has_barrier",
    [(1, True), (1, False), (2, False)],
    ids=["with a barrier", "decoupled", "decoupled, two fragments"],
)
def test_rounds_are_those_of_numpy(
    broker: Broker,
    job_name: str,
    start_host: StartHost,
    merge: str,
    fragments: int,
    has_barrier: bool,
) -> None:
    division = {name: f"f{i % fragments}" for i, name in enumerate(model())}
    settings = ("--sync", "diloco", "--grace-cap-ms", "0", "--quorum", "3", "--merge", merge)
    start_host(job_name, *settings)
    reference = Reference(division, merge)
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(broker, job_name, trainer)) for trainer in "abc"]
        team: List[Trained] = []
        for number, ps in enumerate(clients):
            learner = Learner(
                ps,
                model(),
                fragments=division,
                embeddings=EMBEDDINGS,
                sync_every=PERIOD,
                tokens=TOKENS[number],
                encoding=None,
                delay=1,
            )
            team.append(Trained(stack.enter_context(learner), number, reference))
        for step in range(1, ROUNDS * PERIOD + 1):
            for ps, trained in zip(clients, team):
                trained.step()
                # One after the other, so that their order in the journal is known.
                until(lambda: processed(ps) == trained.contributions)
            if has_barrier and step % PERIOD == 0:
                for trained in team:
                    trained.finish()
                    assert_same(trained.own, reference.values)
            # What has been sent is there one step later.
            until(lambda: all(arrived(trained.learner) for trained in team))
        assert set(reference.closed.values()) == {ROUNDS}
        assert_same(clients[0].get_params(list(division)), reference.values)


def processed(ps: Any) -> int:
    return int(ps.fragments().account.processed.contributions)
