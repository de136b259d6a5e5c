"""Rounds of fragments by the client's calls: contributions, versions and accounts, against a real host."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pserver
import pserver.aio
from pserver.diloco import balanced_fragments
from serving import HANG, ROOT, Broker, StartHost

#: Elements of a parameter that takes several records.
LARGE = 600_000
WORK: dict[str, Any] = {"steps": 10, "tokens": 100}
ROUNDS = ("--sync", "diloco", "--grace-cap-ms", "0", "--weights", "uniform", "--merge", "mean")

NewJob = Callable[..., str]


@pytest.fixture
def new_job(job_name: str, start_host: StartHost) -> NewJob:
    """Starts a host of a `diloco` job with more options."""

    def start(*options: str) -> str:
        start_host(job_name, *ROUNDS, *options)
        return job_name

    return start


def initialize(ps: pserver.Client, **values: Any) -> None:
    """Initializes parameters, each in the fragment of its name's first letter, updated by plain descent."""
    assert ps.begin_init()
    ps.init_params(values, lambda name: {"fragment": name[0]}, optimizer="sgd", learning_rate=1)
    ps.finish_init()


def ones(size: int, value: float = 1) -> Any:
    return np.full(size, value, np.float32)


def test_contributions_are_merged_and_accounted_for(broker: Broker, new_job: NewJob) -> None:
    job = new_job("--quorum", "2")
    with pserver.connect(broker.url, job=job, trainer="a") as a:
        with pserver.connect(broker.url, job=job, trainer="b") as b:
            assert a.synchronization.mode == "diloco" and a.synchronization.quorum == 2
            initialize(a, f1=ones(LARGE, 0), f2=ones(3, 0), g=ones(2, 0))
            a.enter_rounds()
            b.enter_rounds()
            assert a.pull_fragment("f").version == 0
            for ps, value in (a, 1), (b, 3):
                values = {"f1": ones(LARGE, value), "f2": ones(3, value)}
                assert ps.contribute("f", values, base=0, step_time=0.5, **WORK) == 1
            for ps in a, b:
                pulled = ps.pull_fragment("f", min_version=1)
                assert pulled.version == 1 and list(pulled.params) == ["f1", "f2"]
                np.testing.assert_array_equal(pulled.params["f1"], ones(LARGE, -2))
                np.testing.assert_array_equal(pulled.params["f2"], ones(3, -2))
            # What was made from an earlier version is too late.
            assert b.contribute("f", values, base=0, **WORK) is None
            found = b.fragments()
            assert found.versions == {"f": 1, "g": 0}
            assert found.parameters == {"f": ("f1", "f2"), "g": ("g",)}
            once = pserver.Tally(contributions=1, **WORK)
            assert found.account.merged == once and found.account.dropped == once
            assert found.account.processed == pserver.Tally(2, 20, 200)
            assert a.fragments().account.processed == once


def test_contributions_of_threads_to_one_shard_count_each(broker: Broker, new_job: NewJob) -> None:
    job = new_job()
    # On one shard of four.
    names = "fjnr"
    with pserver.connect(broker.url, job=job, trainer="a") as ps:
        # Each of several records, of which the shard keeps those of one contribution at a time.
        initialize(ps, **{name: ones(LARGE, 0) for name in names})
        ps.enter_rounds()
        counted: dict[str, Any] = {}

        def contribute(name: str) -> None:
            counted[name] = ps.contribute(name, {name: ones(LARGE)}, base=0, **WORK)

        threads = [threading.Thread(target=contribute, args=name) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        assert counted == {name: 1 for name in names}
        for name in names:
            pulled = ps.pull_fragment(name, min_version=1)
            np.testing.assert_array_equal(pulled.params[name], ones(LARGE, -1))
        assert ps.fragments().account.merged.contributions == 4


@pytest.mark.parametrize("encoding", ["bfloat16", "float16", "int8", "e3m0"])
def test_encodings_and_forms(broker: Broker, new_job: NewJob, encoding: Any) -> None:
    job = new_job()
    # Powers of two are the same in every encoding.
    sent = np.array([1, 0.5, -0.25, 0.125], np.float32)
    if encoding == "int8":
        sent = np.array([127, -64, 1, 0], np.float32)
    with pserver.connect(broker.url, job=job, trainer="a") as ps:
        initialize(ps, f=ones(4, 0))
        ps.contribute("f", {"f": sent}, base=0, encoding=encoding, **WORK)
        np.testing.assert_array_equal(ps.pull_fragment("f", min_version=1).params["f"], -sent)
        # What was learned: the displacement is what was received less this.
        ps.contribute("f", {"f": sent}, base=1, encoding=encoding, form="parameters", **WORK)
        np.testing.assert_array_equal(ps.pull_fragment("f", min_version=2).params["f"], sent)


@pytest.mark.parametrize("encoding", ["bfloat16", "e3m0"])
def test_some_arrays_of_a_contribution_are_exact(
    broker: Broker, new_job: NewJob, encoding: Any
) -> None:
    job = new_job()
    sent = np.array([1, 1 / 3], np.float32)
    wide = np.array([1 / 3], np.float64)
    with pserver.connect(broker.url, job=job, trainer="a") as ps:
        initialize(ps, f1=ones(2, 0), f2=ones(2, 0), f3=np.zeros(1))
        values = {"f1": sent, "f2": sent, "f3": wide}
        exact = ["f2", "f3"]
        ps.contribute("f", values, base=0, encoding=encoding, exact=exact, **WORK)
        held = ps.pull_fragment("f", min_version=1)
        assert held.params["f1"][1] != -sent[1]
        np.testing.assert_array_equal(held.params["f2"], -sent)
        np.testing.assert_array_equal(held.params["f3"], -wide)
        # Of the job's exact values, one is rounded on its way.
        ps.contribute("f", {**values, "f1": sent + held.params["f1"]}, base=1, **WORK)
        exactly = ps.pull_fragment("f", min_version=2)
        pulled = ps.pull_fragment("f", encoding=encoding, exact=exact)
        assert list(pulled.params) == ["f1", "f2", "f3"] and pulled.version == 2
        assert pulled.params["f1"][1] != exactly.params["f1"][1]
        for name in exact:
            np.testing.assert_array_equal(pulled.params[name], exactly.params[name])
        with pytest.raises(pserver.BadValue, match="exact: .*received.*z"):
            ps.contribute("f", values, base=2, exact=["z"], **WORK)
        with pytest.raises(pserver.BadValue, match="exact"):
            ps.pull_fragment("f", exact="f1")


def test_what_rounding_leaves_out_is_contributed_later(broker: Broker, new_job: NewJob) -> None:
    job = new_job()
    with pserver.connect(broker.url, job=job, trainer="a") as ps:
        initialize(ps, f=ones(2, 0))
        sent = np.array([1, 0.3], np.float32)
        rounds = 8
        for base in range(rounds):
            ps.contribute("f", {"f": sent}, base=base, encoding="e3m0", **WORK)
            found = ps.pull_fragment("f", min_version=base + 1).params["f"]
        # Alone, each 0.3 would be 0.25.
        assert abs(found[1] + rounds * 0.3) < 0.2


def test_calls_are_awaited_in_asyncio(broker: Broker, new_job: NewJob) -> None:
    job = new_job()

    async def main() -> None:
        async with await pserver.aio.connect(broker.url, job=job, trainer="a") as ps:
            assert await ps.begin_init()
            await ps.init_params({"f": ones(2, 0)}, fragment="f", optimizer="sgd", learning_rate=1)
            await ps.finish_init()
            await ps.enter_rounds()
            assert await ps.contribute("f", {"f": ones(2)}, base=0, **WORK) == 1
            pulled = await ps.pull_fragment("f", min_version=1)
            np.testing.assert_array_equal(pulled.params["f"], ones(2, -1))
            assert (await ps.fragments()).versions == {"f": 1}
            # A version that never comes is waited for until the task is cancelled.
            waiting = asyncio.ensure_future(ps.pull_fragment("f", min_version=9))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(asyncio.wait_for(main(), HANG))


def test_wrong_calls_are_refused_by_name(broker: Broker, new_job: NewJob) -> None:
    job = new_job()
    with pserver.connect(broker.url, job=job, trainer="a") as ps:
        initialize(ps, f1=ones(2, 0), f2=ones(2, 0))
        values = {"f1": ones(2), "f2": ones(2)}
        with pytest.raises(pserver.UnknownParameter, match='belongs to fragment "g"'):
            ps.pull_fragment("g")
        with pytest.raises(pserver.BadValue, match='expected a parameter of fragment "g"'):
            ps.contribute("g", values, base=0, **WORK)
        with pytest.raises(pserver.BadLength):
            ps.contribute("f", {"f1": ones(2)}, base=0, **WORK)
        with pytest.raises(pserver.BadValue, match="base"):
            ps.contribute("f", values, base=7, **WORK)
        wrong: Iterator[dict[str, Any]] = iter(
            [{"base": -1}, {"steps": 1.5}, {"tokens": "x"}, {"tokens": 2**41}, {"form": "gradient"}]
        )
        for each in [*wrong, {"step_time": -1}, {"step_time": np.nan}, {"encoding": "int4"}]:
            with pytest.raises(pserver.BadValue):
                ps.contribute("f", values, **{"base": 0, **WORK, **each})
        with pytest.raises(pserver.Empty):
            ps.contribute("f", {}, base=0, **WORK)
        assert ps.fragments().account.processed.contributions == 0


def test_other_jobs_have_no_rounds(ps: pserver.Client) -> None:
    for call in (
        ps.enter_rounds,
        ps.fragments,
        lambda: ps.contribute("f", {"f": ones(1)}, base=0, **WORK),
        lambda: ps.pull_fragment("f"),
    ):
        with pytest.raises(pserver.Unsupported, match="expected a job with synchronization diloco"):
            call()


@pytest.mark.parametrize(
    "case",
    json.loads((ROOT / "test" / "vectors" / "fragments.json").read_text())["balanced"],
    ids=lambda case: str(case["about"]),
)
def test_balanced_fragments_are_those_of_the_vectors(case: Any) -> None:
    tensors = case["tensors"]
    # Vectors have bytes from 0 on, arrays of int8 as many.
    params = {each["name"]: np.zeros(each["bytes"], np.int8) for each in tensors}
    embeddings = [each["name"] for each in tensors if each.get("isEmbedding")]
    assert balanced_fragments(params, case["count"], embeddings=embeddings) == case["fragments"]


def test_nothing_is_divided_wrongly() -> None:
    with pytest.raises(pserver.BadValue, match="1 on"):
        balanced_fragments({"w": ones(1)}, 0)
    with pytest.raises(pserver.BadValue, match="embeddings"):
        balanced_fragments({"w": ones(1)}, 1, embeddings=["v"])


VECTORS: Any = json.loads((ROOT / "test" / "vectors" / "fragments.json").read_text())


def drawn(job: str, fragment: str, number: int, members: list[str], sample: float) -> list[str]:
    """Returns who may contribute to a round, as docs/reference/protocol.md says."""
    count = int(sample) if sample >= 1 else max(1, int(sample * len(members) + 0.5))

    def hashed(trainer: str) -> str:
        return hashlib.sha256("\n".join([job, fragment, str(number), trainer]).encode()).hexdigest()

    return sorted(sorted(members, key=hashed)[:count])


@pytest.mark.parametrize("case", VECTORS["sampled"], ids=lambda case: str(case["about"]))
def test_samples_are_those_of_the_vectors(case: Any) -> None:
    arguments = case["job"], case["fragment"], case["round"], case["members"], case["sample"]
    assert drawn(*arguments) == case["trainers"]


def test_a_trainer_is_told_whether_it_is_drawn(broker: Broker, new_job: NewJob) -> None:
    job = new_job("--sample", "1", "--quorum", "1")
    members = ["a", "b", "c"]
    clients = [pserver.connect(broker.url, job=job, trainer=each) for each in members]
    try:
        initialize(clients[0], f=ones(2, 0))
        for ps in clients:
            ps.enter_rounds()
        for number in 1, 2, 3:
            (expected,) = drawn(job, "f", number, members, 1)
            for trainer, ps in zip(members, clients):
                found = ps.sampling("f", min_version=number - 1)
                assert found == pserver.Sampling(number, trainer == expected)
            for trainer, ps in zip(members, clients):
                if trainer != expected:
                    with pytest.raises(pserver.NotSampled, match="one of the 1 trainers drawn"):
                        ps.contribute("f", {"f": ones(2)}, base=number - 1, **WORK)
            chosen = clients[members.index(expected)]
            assert chosen.contribute("f", {"f": ones(2)}, base=number - 1, **WORK) == number
        # What was made in vain is in the account.
        accounts = [ps.fragments().account for ps in clients]
        assert sum(each.dropped.contributions for each in accounts) == 6
        assert sum(each.processed.contributions for each in accounts) == 9
        with pytest.raises(pserver.UnknownParameter):
            clients[0].sampling("g")
    finally:
        for ps in clients:
            ps.close()
