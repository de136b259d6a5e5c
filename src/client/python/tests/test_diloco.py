"""Learners of Decoupled DiLoCo: the schedule and the mixing against numpy, bit for bit, that a step never waits, and that
learners recover by themselves."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

import pserver
from pserver.diloco import Learner
from diloco_reference import Arrays, Outer, Reference, weighted_mean
from programs import StartPython, arrived, frozen, until
from serving import HANG, Broker, Process, StartHost

ROUNDS = ("--sync", "diloco", "--grace-cap-ms", "0")


@pytest.fixture
def host(job_name: str, start_host: StartHost) -> Callable[..., Process]:
    """Starts a host of a new `diloco` job with more options."""
    return lambda *options: start_host(job_name, *ROUNDS, *options)


def connect(broker: Broker, job: str, trainer: str = "a") -> pserver.Client:
    return pserver.connect(broker.url, job=job, trainer=trainer)


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
            reference = Reference(params, groups, period, alpha, inner)
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
            assert all(part.exchange.is_under_way for part in own._parts.values())
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


def run_threads(work: Callable[[int], None], count: int) -> None:
    """Runs `work(0)`, `work(1)`, … at once; raises the first of their errors."""
    with ThreadPoolExecutor(count) as threads:
        for each in [threads.submit(work, rank) for rank in range(count)]:
            each.result(HANG)


def test_a_barrier_is_numpys_bit_for_bit(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    """One fragment, no delay and all learners as quorum: two of unequal weight have equal values after each exchange."""
    host("--quorum", "2", "--weights", "tokens", "--merge", "mean")
    params, period, rounds = model(), 3, 4
    received: List[List[Arrays]] = [[], []]
    sent: List[List[Arrays]] = [[], []]

    def train(rank: int) -> None:
        with connect(broker, job_name, f"learner-{rank}") as ps:
            options: Dict[str, Any] = dict(fragments=1, sync_every=period, delay=0, encoding=None)
            with Learner(ps, params, tokens=1 + rank, embeddings=["a"], **options) as learner:
                assert list(learner.versions) == ["f0"]
                own = learner.params
                for number in range(1, rounds * period + 1):
                    own = inner(own, number + 10 * rank)
                    sent[rank].append(own)
                    own = learner.step(own)
                    if number % period == 0:
                        received[rank].append(own)
                        assert learner.versions == {"f0": number // period}

    run_threads(train, 2)
    outer = Outer(params)
    for round in range(rounds):
        learned = [each[(round + 1) * period - 1] for each in sent]
        for name in params:
            changes = [outer.values[name] - own[name] for own in learned]
            outer.apply(name, weighted_mean([(3.0, changes[0]), (6.0, changes[1])]))
        for rank in range(2):
            for name, value in outer.values.items():
                found = np.asarray(received[rank][round][name])
                assert found.tobytes() == np.asarray(value).tobytes(), (round, name)


def test_a_step_of_a_barrier_ends_at_its_timeout_and_the_next_goes_on_to_wait(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host("--quorum", "2", "--weights", "uniform", "--merge", "mean")
    first = {"w": np.ones(3, np.float32)}
    options: Dict[str, Any] = dict(fragments=1, sync_every=1, delay=0, encoding=None)
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        learner = Learner(a, first, timeout=1.0, **options)
        b.enter_rounds()
        with pytest.raises(pserver.Timeout, match="step: expected the results of f0"):
            learner.step({"w": np.zeros(3, np.float32)})
        assert learner.versions == {"f0": 0}
        b.contribute("f0", {"w": np.zeros(3, np.float32)}, base=0, steps=1, tokens=1)
        until(lambda: arrived(learner))
        # What was sent counts once, and this step is not in it.
        params = learner.step({"w": np.full(3, 9, np.float32)})
        np.testing.assert_allclose(params["w"], 1 - 0.7 * 1.9 * 0.5, rtol=1e-6)
        assert a.fragments().account.merged == pserver.Tally(1, 1, 1)
        learner.close()


def test_a_step_of_a_barrier_receives_nothing_before_all_is_there(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host("--quorum", "2", "--weights", "uniform", "--merge", "mean")
    first = {"v": np.ones(2, np.float32), "w": np.ones(3, np.float32)}
    options: Dict[str, Any] = dict(fragments=2, sync_every=2, delay=0, encoding=None)
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        learner = Learner(a, first, timeout=1.0, **options)
        b.enter_rounds()
        own = {name: value - np.float32(1) for name, value in first.items()}
        for fragment, (name,) in sorted(a.fragments().parameters.items()):
            with pytest.raises(pserver.Timeout, match=f"step: expected the results of {fragment};"):
                learner.step(own)
            b.contribute(fragment, {name: own[name]}, base=0, steps=1, tokens=1)
            until(lambda: arrived(learner))
        assert learner.versions == {"f0": 0, "f1": 0}
        own = learner.step(own)
        assert learner.versions == {"f0": 1, "f1": 1}
        for name, value in own.items():
            np.testing.assert_array_equal(value, b.pull(name))
        learner.close()


def test_exact_arrays_are_neither_sent_nor_read_in_an_encoding(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host()
    third = np.float32(1 / 3)
    params: Arrays = {name: np.zeros(3, np.float32) for name in ("w", "mean")}
    params["wide"] = np.zeros(3)
    descent = {"optimizer": "sgd", "learning_rate": 1.0}
    with connect(broker, job_name) as ps:
        with Learner(
            ps,
            params,
            fragments=1,
            sync_every=1,
            delay=0,
            encoding="e3m0",
            pull_encoding="bfloat16",
            exact=lambda: ["mean"],
            outer=lambda name: {**descent, "l1": 0.0} if name == "w" else descent,
        ) as learner:
            sent = {name: np.array([1, third, 0], value.dtype) for name, value in params.items()}
            own = learner.step(sent)
            for name in "mean", "wide":
                np.testing.assert_array_equal(own[name], sent[name])
            held = ps.pull("w")
            assert held[1] != third and own["w"][1] == held[1]
            # The job's value has more bits than bfloat16.
            ps.set_params({name: np.full(3, third, value.dtype) for name, value in own.items()})
            own = learner.step(own)
            assert own["mean"][0] == third and own["wide"][0] == third
            assert own["w"][0] != ps.pull("w")[0]
            assert "l1" in str(ps.list_params()[1].config)


def test_the_job_holds_other_arrays_besides(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host()
    first = {"w": np.ones(3, np.float32)}
    ids = np.arange(4, dtype=np.int64)
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        with Learner(a, first, others={"ids": ids}) as one:
            np.testing.assert_array_equal(one.others["ids"], ids)
            with Learner(b, first, others={"ids": ids * 2}) as other:
                np.testing.assert_array_equal(other.others["ids"], ids)
                assert list(other.params) == ["w"]
            with pytest.raises(pserver.BadValue, match="'ids' is int64 of shape"):
                Learner(b, first, others={"ids": ids[:2]})
            with pytest.raises(pserver.BadValue, match="'mask' is not in it"):
                Learner(b, first, others={"mask": ids})


def test_a_learner_receives_all_fragments_by_one_call_when_it_begins(
    broker: Broker, job_name: str, host: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    host()
    params = model()
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        Learner(a, params, fragments=3).close()
        moved = a.fragments().parameters["f1"]
        get_params = b.get_params

        def moving(names: Any, **options: Any) -> Any:
            """Closes a round while the fragments are read."""
            found = get_params(names, **options)
            change = {name: np.ones_like(params[name]) for name in moved}
            a.contribute("f1", change, base=0, steps=1, tokens=1)
            a.pull_fragment("f1", min_version=1)
            return found

        pulled: List[str] = []
        pull_fragment = b.pull_fragment

        def noting(fragment: str, **options: Any) -> Any:
            pulled.append(fragment)
            return pull_fragment(fragment, **options)

        monkeypatch.setattr(b, "get_params", moving)
        monkeypatch.setattr(b, "pull_fragment", noting)
        with Learner(b, params) as learner:
            assert learner.versions == {"f0": 0, "f1": 1, "f2": 0}
            assert pulled == ["f1"]
            for name, value in learner.params.items():
                assert np.array_equal(value, params[name]) == (name not in moved)


def test_values_are_as_they_were_if_the_end_does_not_come_in_time(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host("--quorum", "2")
    first = {"v": np.ones(2, np.float32), "w": np.ones(3, np.float32)}
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        learner = Learner(a, first, fragments=2, sync_every=100, encoding=None)
        b.enter_rounds()
        own = learner.step({name: value - np.float32(1) for name, value in first.items()})
        (done,) = a.fragments().parameters["f0"]
        b.contribute("f0", {done: np.ones_like(first[done])}, base=0, steps=1, tokens=1)
        with pytest.raises(pserver.Timeout, match="finish: expected the results of f1"):
            learner.finish(own, timeout=2.0)
        assert learner.versions == {"f0": 0, "f1": 0}
        b.exit_steps()
        assert min(learner.finish(own)["w"]) < 1 and set(learner.versions.values()) == {1}
        learner.close()


def test_what_no_attempt_can_mend_is_raised_by_a_step(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host()
    ps = connect(broker, job_name)
    learner = Learner(ps, model(), sync_every=1, fragments=1)
    ps.close()
    learner.step(learner.params)
    until(lambda: arrived(learner))
    with pytest.raises(pserver.Closed):
        learner.step(learner.params)
    assert learner.steps == 2
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
            assert not slow._parts["f0"].exchange.is_under_way
            own = fast.step(inner(own, 4))
            until(lambda: slow._parts["f0"].exchange.has_begun)
            other = slow.step(inner(other, 2))
            until(lambda: arrived(fast) and arrived(slow))
            account = a.fragments().account, b.fragments().account
            assert [each.merged.steps for each in account] == [4, 2]
            assert [each.dropped.contributions for each in account] == [0, 0]
            # The next round begins a period of the fast one later, however far the slow one has come.
            for _ in range(3):
                own, other = fast.step(own), slow.step(other)
            assert fast.versions == slow.versions == {"f0": 1}
            assert fast._parts["f0"].due == 8
            assert not slow._parts["f0"].exchange.is_under_way


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
            until(lambda: other._parts["f0"].exchange.has_begun)
            for number in range(1, 4):
                params = other.step(inner(params, number))
                until(lambda: arrived(other))
            assert other.versions == {"f0": 1}
            assert b.fragments().account.dropped.contributions == 1


@pytest.mark.parametrize("action", ["reject", "set-aside"])
def test_a_learner_whose_contribution_a_guard_holds_back_goes_on_from_the_jobs_values(
    broker: Broker, job_name: str, host: Callable[..., Process], action: str
) -> None:
    guard = {"factor": 2, "window": 8, "warmup": 2, "history": "cohort", "action": action}
    host("--guard", json.dumps(guard))
    outer = {"optimizer": "sgd", "learningRate": 1}
    with (
        connect(broker, job_name) as ps,
        Learner(
            ps, {"w": np.zeros(4, np.float32)}, sync_every=1, delay=1, encoding=None, outer=outer
        ) as learner,
    ):
        for size, expected in ((1, 1), (1, 2), (1000, 2), (1, 3)):
            learner.step({"w": learner.params["w"] + np.float32(size)})
            until(lambda: arrived(learner))
            learner.step(learner.params)
            np.testing.assert_array_equal(learner.params["w"], np.full(4, expected, np.float32))
        account = ps.fragments().account
        assert (account.merged.contributions, account.dropped.contributions) == (3, 1)
        assert ps.stats().failed["GUARDED"] == 1


def test_learners_that_are_not_drawn_for_a_round_adopt_what_others_have_learned(
    broker: Broker, job_name: str, host: Callable[..., Process]
) -> None:
    host("--sample", "1", "--quorum", "1")
    with connect(broker, job_name, "a") as a, connect(broker, job_name, "b") as b:
        with (
            Learner(a, model(), fragments=1, sync_every=1, delay=1, encoding=None) as one,
            Learner(b, model(), fragments=1, sync_every=1, delay=1, encoding=None) as two,
        ):
            clients = {"a": (a, one, one.params), "b": (b, two, two.params)}
            for number in range(1, 200):
                for name, (ps, learner, params) in clients.items():
                    clients[name] = (ps, learner, learner.step(inner(params, number)))
                merged = [
                    ps.fragments().account.merged.contributions for ps, *_ in clients.values()
                ]
                if min(merged) >= 2:
                    break
                until(lambda: arrived(one) or arrived(two))
            assert min(merged) >= 2
            # Neither sends to rounds of others, once it knows that the job draws.
            assert all(ps.stats().failed.get("NOT_SAMPLED", 0) <= 1 for ps, *_ in clients.values())


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
            {"delay": -1},
            {"grace": 1.5},
            {"exact": ["z"]},
            {"pull_encoding": "int4"},
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
        with pytest.raises(
            pserver.BadValue, match="that of the job, which has 'a' in 'embeddings'"
        ):
            Learner(own, model(), fragments=2)
        with pytest.raises(
            pserver.BadValue, match="grace: expected the job's longest, 0.0 s; .* 2"
        ):
            Learner(own, model(), grace=2)
        Learner(own, model(), grace=0).close()
        with pytest.raises(pserver.BadValue, match="'b' is not in it.*|it also has"):
            Learner(own, {"a": model()["a"]})
