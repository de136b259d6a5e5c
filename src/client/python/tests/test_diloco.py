"""Learners of Decoupled DiLoCo: the schedule and the mixing against numpy, bit for bit, that a step never waits, and that
learners recover by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

import pserver
from pserver.diloco import Learner
from programs import StartPython, frozen, until
from serving import HANG, Broker, Process, StartHost

ROUNDS = ("--sync", "diloco", "--grace-cap-ms", "0")

Arrays = Dict[str, Any]


@pytest.fixture
def host(job_name: str, start_host: StartHost) -> Callable[..., Process]:
    """Starts a host of a new `diloco` job with more options."""
    return lambda *options: start_host(job_name, *ROUNDS, *options)


def connect(broker: Broker, job: str, trainer: str = "a") -> pserver.Client:
    return pserver.connect(broker.url, job=job, trainer=trainer)


def arrived(learner: Learner) -> bool:
    """Whether no exchange of the learner is under way."""
    return all(part.exchange is None or part.exchange.is_done for part in learner._parts)


def model() -> Arrays:
    random = np.random.default_rng(5)
    shapes = {"a": (7, 3), "b": (11,), "c": (), "d": (5, 2), "e": (13,)}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def inner(params: Arrays, step: int) -> Arrays:
    """An inner step whose arithmetic is float32."""
    return {
        name: np.asarray(value * np.float32(0.9) - np.float32(0.01 * step), np.float32)
        for name, value in params.items()
    }


class Reference:
    """A learner and its server, alone with each other, in numpy."""

    def __init__(self, params: Arrays, groups: List[List[str]], period: int, alpha: float) -> None:
        self.own = {name: value.copy() for name, value in params.items()}
        self.held = {name: value.copy() for name, value in params.items()}
        self.slots = {name: np.zeros_like(value) for name, value in params.items()}
        self.groups, self.period, self.alpha = groups, period, np.float32(alpha)
        self.due = [(i + 1) * period // len(groups) % period for i in range(len(groups))]
        self.sent: Dict[int, int] = {}
        self.versions = [0] * len(groups)

    def step(self, number: int, delay: int) -> None:
        self.own = inner(self.own, number)
        for i, sent in list(self.sent.items()):
            if number >= sent + delay:
                del self.sent[i]
                self.versions[i] += 1
                for name in self.groups[i]:
                    mixed = self.own[name] * self.alpha
                    self.own[name] = mixed + self.held[name] * (np.float32(1) - self.alpha)
        for i, names in enumerate(self.groups):
            if number % self.period == self.due[i] and i not in self.sent:
                self.sent[i] = number
                for name in names:
                    self.outer(name, self.held[name] - self.own[name])

    def outer(self, name: str, gradient: Any) -> None:
        rate, momentum = np.float32(0.7), np.float32(0.9)
        self.slots[name] = momentum * self.slots[name] - rate * gradient
        self.held[name] = self.held[name] + (momentum * self.slots[name] - rate * gradient)


@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_schedule_mixing_and_outer_rule_are_those_of_numpy(
    broker: Broker, job_name: str, host: Callable[..., Process], alpha: float
) -> None:
    host()
    params, period, delay = model(), 6, 2
    with connect(broker, job_name) as ps:
        with Learner(
            ps, params, fragments=3, sync_every=period, delay=delay, alpha=alpha, encoding=None
        ) as learner:
            fragments = ps.fragments().parameters
            groups = [list(fragments[name]) for name in ("f0", "f1", "f2")]
            reference = Reference(params, groups, period, alpha)
            own = learner.params
            for number in range(1, 4 * period + 1):
                own = learner.step(inner(own, number))
                # So what has been sent is always there one step later, and is mixed in when the delay is over.
                until(lambda: arrived(learner))
                reference.step(number, delay)
                for name, value in reference.own.items():
                    assert np.asarray(own[name]).tobytes() == np.asarray(value).tobytes(), name
            assert list(learner.versions.values()) == reference.versions
            assert min(reference.versions) >= 3
            account = ps.fragments().account
            # Counted from when a fragment was received, so the first ones have fewer steps than a period.
            assert account.merged.steps == account.merged.tokens > 0


def test_a_step_never_waits_while_no_host_answers(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    process = host()
    with (
        connect(broker, job_name) as ps,
        Learner(ps, model(), sync_every=4, encoding="int8") as own,
    ):
        params = own.params
        with frozen(process.pid):
            for number in range(1, 101):
                params = own.step(inner(params, number))
            # Nothing could come, so nothing was received; and what is due is sent once.
            assert set(own.versions.values()) == {0} and own.steps == 100
            assert all(part.exchange is not None for part in own._parts)
        until(lambda: arrived(own))
        params = own.step(params)
        assert set(own.versions.values()) == {1}
        processed = ps.fragments().account.processed
        assert processed.contributions == len(own.versions)


def test_a_fresh_learner_adopts_the_jobs_values(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host()
    first = {"w": np.ones(4, np.float32), "v": np.ones(2, np.float32)}
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        with Learner(a, first, fragments=2, sync_every=2, encoding=None) as one:
            params = {name: value - np.float32(1) for name, value in one.params.items()}
            final = one.finish(one.step(params))
            assert set(one.versions.values()) == {1}
            random = {name: value * np.float32(9) for name, value in first.items()}
            with Learner(b, random) as other:
                assert other.versions == one.versions
                for name, value in final.items():
                    np.testing.assert_array_equal(other.params[name], value)
                    assert value[0] < 0


def test_a_killed_learner_that_is_started_again_contributes_again(
    broker: Broker, job_name: str, host: Callable[..., Process], start_python: StartPython
) -> None:
    host()
    arguments = (
        str(Path(__file__).with_name("diloco_learner.py")),
        broker.url,
        job_name,
        "learner",
    )
    killed = start_python(*arguments, "0")
    assert killed.stdout is not None
    begun = killed.stdout.readline().split()
    assert begun == ["0", "0.0"]
    while int(killed.stdout.readline()) < 3:
        pass
    killed.kill()
    killed.wait()
    again = start_python(*arguments, "1000")
    assert again.stdout is not None
    version, element = again.stdout.readline().split()
    # Not its own values, but what the job had come to.
    assert int(version) >= 3 and float(element) < 0
    while int(again.stdout.readline()) < int(version) + 3:
        pass
    with connect(broker, job_name, "reader") as ps:
        assert ps.fragments().versions["f0"] >= int(version) + 3


def test_a_saved_position_is_kept_where_the_job_has_not_moved_on(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host("--weights", "uniform")
    with connect(broker, job_name, "a") as ps:
        options: Dict[str, Any] = dict(fragments=2, sync_every=50, encoding=None, tokens=7)
        params: Arrays = {"w": np.ones(4, np.float32), "v": np.ones(3, np.float32)}
        with Learner(ps, params, **options) as learner:
            for number in range(3):
                params = learner.step(inner(params, number))
            state = learner.state_dict()
        assert state["steps"] == 3
        assert state["fragments"]["f0"] == {"version": 0, "steps": 3, "tokens": 21}
        # Another learner moves one of the fragments on.
        moved, kept = ps.fragments().parameters["f0"], ps.fragments().parameters["f1"]
        change = {name: np.ones_like(params[name]) for name in moved}
        ps.contribute("f0", change, base=0, steps=1, tokens=1)
        ps.pull_fragment("f0", min_version=1)
        with Learner(ps, params, **options) as learner:
            found = learner.load_state_dict(state, params)
            assert learner.steps == 3
            assert learner.state_dict()["fragments"] == {
                "f0": {"version": 1, "steps": 0, "tokens": 0},
                "f1": state["fragments"]["f1"],
            }
            for name in kept:
                np.testing.assert_array_equal(found[name], params[name])
            for name in moved:
                np.testing.assert_array_equal(found[name], learner.params[name])
            with pytest.raises(pserver.BadValue, match="load_state_dict"):
                learner.load_state_dict({"steps": 1, "fragments": {"g": {}}}, params)


def test_what_no_attempt_can_mend_is_raised_by_a_step(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host()
    ps = connect(broker, job_name)
    learner = Learner(ps, model(), sync_every=1, fragments=1)
    ps.close()
    # First the wait for others fails, then the exchange of what is due.
    until(lambda: learner._parts[0].watch.is_done)  # type: ignore[union-attr]
    with pytest.raises(pserver.Closed):
        learner.step(learner.params)
    learner.step(learner.params)
    until(lambda: arrived(learner))
    with pytest.raises(pserver.Closed):
        learner.step(learner.params)
    assert learner.steps == 3
    learner._end()


def test_learners_out_of_step_take_part_in_the_same_rounds(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    # Rounds close a while after the first contribution: whoever is not due by itself by then would be late.
    host("--grace-cap-ms", "60000", "--grace-steps", "1000000", "--weights", "uniform")
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        options: Dict[str, Any] = dict(fragments=1, encoding=None, timeout=HANG)
        with (
            Learner(a, model(), sync_every=4, **options) as fast,
            Learner(b, model(), sync_every=1000, **options) as slow,
        ):
            own, other = fast.params, slow.params
            for number in range(1, 4):
                own = fast.step(inner(own, number))
            other = slow.step(inner(other, 1))
            assert slow._parts[0].exchange is None
            own = fast.step(inner(own, 4))
            until(lambda: slow._parts[0].watch.is_done)  # type: ignore[union-attr]
            other = slow.step(inner(other, 2))
            until(lambda: arrived(fast) and arrived(slow))
            account = a.fragments().account, b.fragments().account
            assert [each.merged.steps for each in account] == [4, 2]
            assert [each.dropped.contributions for each in account] == [0, 0]
            # The next round begins a period of the fast one later, however far the slow one has come.
            for _ in range(3):
                own, other = fast.step(own), slow.step(other)
            assert fast.versions == slow.versions == {"f0": 1}
            assert fast._parts[0].due == 8
            assert slow._parts[0].exchange is None


def test_a_learner_that_was_left_out_of_a_round_takes_part_in_the_next(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host("--weights", "uniform")
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        options: Dict[str, Any] = dict(fragments=1, encoding=None, timeout=HANG)
        with (
            Learner(a, model(), sync_every=1, **options) as one,
            Learner(b, model(), sync_every=1000, **options) as other,
        ):
            own, params = one.step(inner(one.params, 1)), other.params
            until(lambda: arrived(one))
            until(lambda: other._parts[0].watch.is_done)  # type: ignore[union-attr]
            for number in range(1, 4):
                params = other.step(inner(params, number))
                until(lambda: arrived(other))
            assert other.versions == {"f0": 1}
            assert b.fragments().account.dropped.contributions == 1


def test_other_jobs_and_arrays_are_refused(
    broker: Broker, ps: pserver.Client, job_name: str, host: Callable[..., Process]
) -> None:
    with pytest.raises(pserver.BadValue, match="--sync diloco"):
        Learner(ps, model())
    host("--quorum", "1")
    with connect(broker, job_name) as own:
        wrong: List[Dict[str, Any]] = [
            {"quorum": 2},
            {"alpha": 1.5},
            {"delay": 0},
            {"sync_every": 0},
            {"fragments": {"a": "f"}},
            {"embeddings": ["z"]},
            {"encoding": "int4"},
        ]
        for options in wrong:
            with pytest.raises(pserver.BadValue):
                Learner(own, model(), **options)
        with pytest.raises(pserver.BadDtype):
            Learner(own, {"w": np.zeros(3, np.int32)})
        with pytest.raises(pserver.Empty):
            Learner(own, {})
        assert own.status().state == "uninitialized"
        with Learner(own, model(), quorum=1, embeddings=["a"]) as learner:
            assert "embeddings" in learner.versions
            params = learner.params
            for changed, error in (
                ({"a": params["a"]}, pserver.BadValue),
                ({**params, "b": np.zeros(2, np.float32)}, pserver.BadShape),
                ({**params, "b": np.zeros(11)}, pserver.BadDtype),
            ):
                with pytest.raises(error):
                    learner.step(changed)
            assert learner.steps == 0
        with pytest.raises(pserver.BadValue, match="fragments"):
            Learner(own, model(), fragments=2)
        with pytest.raises(pserver.BadValue, match="'b' is not in it.*|it also has"):
            Learner(own, {"a": model()["a"]})
