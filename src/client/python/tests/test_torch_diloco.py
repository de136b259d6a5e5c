"""DiLoCo of PyTorch on real servers: with a barrier, FedAvg and FedAdam too, it gives the weights that one process computes
by PyTorch or numpy; without one, the schedule and the mixing are numpy's, and no step waits."""

from __future__ import annotations

import threading
from typing import Any, Dict, Iterator, List

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from pserver.torch import DiLoCo  # noqa: E402
from diloco_reference import Outer, Reference, weighted_mean  # noqa: E402
from programs import arrived, frozen, until  # noqa: E402
from serving import HANG, Broker, StartHost  # noqa: E402
from torch_jobs import (  # noqa: E402
    AT_ONCE,
    ROUNDS,
    NewJob,
    barrier,
    new_job,
    run_threads,
)

nn: Any = torch.nn
cross_entropy: Any = torch.nn.functional.cross_entropy


@pytest.fixture
def ps(new_job: NewJob) -> Iterator[pserver.Client]:
    """The only learner of a new job."""
    with new_job(*barrier(1)).connect("one") as client:
        yield client


def network(seed: int = 1) -> Any:
    torch.manual_seed(seed)
    # With a bias, whose true gradient is 0, Adam would take noise for a direction.
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.Linear(8, 3))


def train(model: Any, optimizer: Any, steps: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        images = torch.randn(16, 6, generator=generator)
        optimizer.zero_grad()
        cross_entropy(model(images), images[:, :3].argmax(dim=1)).backward()
        optimizer.step()


def values(model: Any) -> Dict[str, Any]:
    """A copy of the floating point tensors, which are what is exchanged."""
    state = model.state_dict().items()
    return {name: value.clone() for name, value in state if value.is_floating_point()}


class OneProcess:
    """Trainers in one process: PyTorch's outer optimizer on the mean of their pseudo-gradients."""

    def __init__(self, trainers: int, outer: Any) -> None:
        self.models = [network() for _ in range(trainers)]
        self.inner = [torch.optim.Adam(model.parameters(), lr=0.01) for model in self.models]
        self.weights = {name: nn.Parameter(value) for name, value in values(network()).items()}
        trained = [name for name, _ in self.models[0].named_parameters()]
        self.buffers = [name for name in self.weights if name not in trained]
        self.outer = outer([self.weights[name] for name in trained])

    def exchange(self, steps: int, seeds: List[int]) -> None:
        for model, inner, seed in zip(self.models, self.inner, seeds):
            train(model, inner, steps, seed)
        states = [values(model) for model in self.models]
        for name, weight in self.weights.items():
            mean = torch.stack([state[name] for state in states]).mean(dim=0)
            weight.grad = weight.detach() - mean
            if name in self.buffers:
                weight.data.copy_(mean)
        self.outer.step()
        for model in self.models:
            model.load_state_dict(self.weights, strict=False)


RULES = {
    "DiLoCo": (None, lambda ps: torch.optim.SGD(ps, lr=0.7, momentum=0.9, nesterov=True)),
    "FedAvg": (dict(optimizer="sgd", lr=1.0), lambda ps: torch.optim.SGD(ps, lr=1.0)),
    "FedAdam": (
        # The server adds epsilon before it takes the root, PyTorch after it; the roots are about 1e-3.
        dict(optimizer="adam", lr=0.01, epsilon=1e-16),
        lambda ps: torch.optim.Adam(ps, lr=0.01, eps=1e-8),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_trainers_agree_as_if_they_were_one_process(new_job: NewJob, rule: str) -> None:
    outer, reference_outer = RULES[rule]
    job = new_job(*barrier(2))
    models = [network(), network()]

    def work(rank: int) -> None:
        inner = torch.optim.Adam(models[rank].parameters(), lr=0.01)
        options: Any = dict(AT_ONCE, sync_every=5, outer=outer, encoding=None)
        with job.connect(f"trainer-{rank}") as ps:
            with DiLoCo(ps, [models[rank]], inner, **options) as diloco:
                for round in range(4):
                    train(models[rank], inner, 5, seed=10 * round + rank)
                    assert (diloco.inner_steps, diloco.outer_steps) == (5 * round + 5, round + 1)
                    assert diloco.versions == {"f0": round + 1} and diloco.obstacle is None

    run_threads(work, 2)
    reference = OneProcess(2, reference_outer)
    for round in range(4):
        reference.exchange(5, [10 * round, 10 * round + 1])
    for model in models:
        for name, value in values(model).items():
            torch.testing.assert_close(value, reference.weights[name].data, rtol=0, atol=1e-5)


class Known(nn.Module):  # type: ignore[misc]
    """Weights of several shapes that an inner step changes by known numbers."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        for name, shape in {"a": (7, 3), "b": (11,), "c": (5, 2), "d": (13,)}.items():
            setattr(self, name, nn.Parameter(torch.randn(shape, generator=generator)))

    def arrays(self) -> Dict[str, Any]:
        return {name: p.detach().numpy().copy() for name, p in self.named_parameters()}


def change(name: str, value: Any, number: int) -> Any:
    """What an inner step subtracts from a weight."""
    return (value * np.float32(0.1) + np.float32(0.01 * number)).astype(np.float32)


def step(model: Any, inner: Any, number: int) -> None:
    for name, parameter in model.named_parameters():
        gradient = change(name, parameter.detach().numpy(), number)
        parameter.grad = torch.from_numpy(gradient)
    inner.step()


def stepped(arrays: Dict[str, Any], number: int) -> Dict[str, Any]:
    return {name: value - change(name, value, number) for name, value in arrays.items()}


def test_a_barrier_is_numpys_bit_for_bit(new_job: NewJob) -> None:
    job = new_job(*ROUNDS, "--quorum", "2", "--weights", "tokens", "--merge", "mean")
    period, rounds = 3, 4
    models = [Known(), Known()]
    found: List[List[Any]] = [[], []]

    def work(rank: int) -> None:
        inner = torch.optim.SGD(models[rank].parameters(), lr=1.0)
        options: Any = dict(AT_ONCE, sync_every=period, encoding=None, tokens=lambda: 1 + rank)
        with job.connect(f"learner-{rank}") as ps, DiLoCo(ps, models[rank], inner, **options):
            for number in range(1, rounds * period + 1):
                step(models[rank], inner, number + 10 * rank)
                if number % period == 0:
                    found[rank].append(models[rank].arrays())

    run_threads(work, 2)
    outer = Outer(Known().arrays())
    for round in range(rounds):
        learned = [dict(outer.values), dict(outer.values)]
        for number in range(round * period + 1, (round + 1) * period + 1):
            learned = [stepped(each, number + 10 * rank) for rank, each in enumerate(learned)]
        for name, value in list(outer.values.items()):
            changes = [value - own[name] for own in learned]
            outer.apply(name, weighted_mean([(3.0, changes[0]), (6.0, changes[1])]))
        for rank in range(2):
            for name, value in outer.values.items():
                assert found[rank][round][name].tobytes() == value.tobytes(), (round, name)


@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_schedule_mixing_and_outer_rule_are_those_of_numpy(new_job: NewJob, alpha: float) -> None:
    model, period, delay = Known(), 6, 2
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    options: Any = dict(fragments=3, sync_every=period, delay=delay, alpha=alpha, encoding=None)
    first = model.arrays()
    with new_job(*ROUNDS).connect("one") as ps, DiLoCo(ps, model, inner, **options) as diloco:
        fragments = ps.fragments().parameters
        groups = [list(fragments[name]) for name in ("f0", "f1", "f2")]
        reference = Reference(first, groups, period, alpha, stepped)
        for number in range(1, 4 * period + 1):
            step(model, inner, number)
            # So what has been sent is always there one step later, and is mixed in when the delay is over.
            until(lambda: nothing_is_under_way(diloco))
            reference.step(number, delay)
            for name, value in model.arrays().items():
                assert value.tobytes() == reference.own[name].tobytes(), (number, name)
        assert list(diloco.versions.values()) == reference.versions
        assert diloco.outer_steps == sum(reference.versions) >= 9


def nothing_is_under_way(diloco: DiLoCo) -> bool:
    learner = diloco._learner
    assert learner is not None
    return arrived(learner)


def test_a_step_never_waits_while_no_host_answers(
    broker: Broker, job_name: str, start_host: StartHost
) -> None:
    host = start_host(job_name, *ROUNDS)
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with pserver.connect(broker.url, job=job_name, trainer="one") as ps:
        with DiLoCo(ps, model, inner, sync_every=4, encoding="int8") as diloco:
            with frozen(host.pid):
                train(model, inner, 50, seed=1)
                # Nothing could come, so nothing was received; and what is due is sent once.
                assert set(diloco.versions.values()) == {0} and diloco.inner_steps == 50
            until(lambda: nothing_is_under_way(diloco))
            train(model, inner, 1, seed=2)
            assert set(diloco.versions.values()) == {1}
            processed = ps.fragments().account.processed
            assert processed.contributions == len(diloco.versions) == diloco.outer_steps


def test_what_is_sent_is_what_was_there_when_it_was_due(
    broker: Broker, job_name: str, start_host: StartHost
) -> None:
    """The training goes on in the same memory before the contribution has left."""
    host = start_host(job_name, *ROUNDS)
    model = Known()
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    outer = dict(optimizer="sgd", lr=1.0)
    options: Any = dict(fragments=1, sync_every=2, encoding=None, outer=outer)
    first = due = model.arrays()
    with pserver.connect(broker.url, job=job_name, trainer="one") as ps:
        with DiLoCo(ps, model, inner, **options) as diloco:
            with frozen(host.pid):
                for number in range(1, 8):
                    step(model, inner, number)
                    due = model.arrays() if number == 2 else due
            until(lambda: nothing_is_under_way(diloco))
            for name, value in due.items():
                expected = first[name] - (first[name] - value)
                np.testing.assert_array_equal(ps.pull(name), expected)


def test_training_goes_on_while_the_host_is_dead(
    broker: Broker, job_name: str, start_host: StartHost
) -> None:
    host = start_host(job_name, *ROUNDS)
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with pserver.connect(broker.url, job=job_name, trainer="one") as ps:
        with DiLoCo(ps, model, inner, sync_every=4) as diloco:
            host.kill()
            train(model, inner, 30, seed=1)
            assert diloco.inner_steps == 30 and diloco.outer_steps == 0
            start_host(job_name, *ROUNDS)
            until(lambda: nothing_is_under_way(diloco))
            train(model, inner, 1, seed=2)
            assert set(diloco.versions.values()) == {1}
        assert_held(ps, values(model))


def test_a_fresh_learner_adopts_the_jobs_weights(new_job: NewJob) -> None:
    job = new_job(*barrier(1))
    first, second = network(seed=1), network(seed=2)
    with job.connect("one") as ps:
        inner = torch.optim.SGD(first.parameters(), lr=0.1)
        with DiLoCo(ps, first, inner, sync_every=2):
            train(first, inner, 5, seed=1)
    with job.connect("two") as ps:
        inner = torch.optim.SGD(second.parameters(), lr=0.1)
        with DiLoCo(ps, second, inner, sync_every=2) as diloco:
            assert min(diloco.versions.values()) > 0
            assert all(
                torch.equal(value, values(first)[name]) for name, value in values(second).items()
            )


def test_a_learner_goes_on_from_its_saved_position(new_job: NewJob) -> None:
    job = new_job(*barrier(1))
    options: Any = dict(sync_every=50, fragments=2, encoding=None, tokens=7)
    model = Known()
    inner = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    with job.connect("one") as ps:
        diloco = DiLoCo(ps, model, inner, **options)
        with pytest.raises(pserver.BadValue, match="state_dict"):
            diloco.state_dict()
        with pytest.raises(ZeroDivisionError), diloco:
            for number in range(3):
                step(model, inner, number)
            state = diloco.state_dict()
            saved = model.arrays()
            with pytest.raises(pserver.BadValue, match="load_state_dict"):
                diloco.load_state_dict(state)
            raise ZeroDivisionError
        # Another learner moves one of the fragments on.
        moved = ps.fragments().parameters["f0"]
        ones = {name: np.ones_like(saved[name]) for name in moved}
        ps.contribute("f0", ones, base=0, steps=1, tokens=1)
        ps.pull_fragment("f0", min_version=1)
    again = Known()
    again.load_state_dict(model.state_dict())
    with job.connect("one") as ps:
        diloco = DiLoCo(ps, again, torch.optim.SGD(again.parameters(), lr=1.0), **options)
        diloco.load_state_dict(state)
        with diloco:
            assert diloco.inner_steps == 3
            assert diloco.state_dict()["fragments"] == {
                "f0": {"version": 1, "steps": 0, "tokens": 0},
                "f1": {"version": 0, "steps": 3, "tokens": 21},
            }
            for name, value in again.arrays().items():
                expected = ps.pull(name) if name in moved else saved[name]
                np.testing.assert_array_equal(value, expected)
        merged = ps.fragments().account.merged
        assert merged.steps == 1 + 3 and merged.tokens == 1 + 21
    with job.connect("two") as ps:
        other = DiLoCo(ps, [network()], torch.optim.SGD(network().parameters(), lr=1.0))
        other.load_state_dict(state)
        with pytest.raises(pserver.BadValue):
            other.__enter__()


def test_the_servers_nesterov_is_pytorchs(ps: pserver.Client) -> None:
    """The weights differ by 1e-6 at most after the same pseudo-gradients."""
    generator = torch.Generator().manual_seed(4)
    start = torch.randn(300, generator=generator)
    weight = nn.Parameter(start.clone())
    outer = torch.optim.SGD([weight], lr=0.7, momentum=0.9, nesterov=True)
    model = nn.Module()
    model.weight = nn.Parameter(start.clone())
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    with DiLoCo(ps, model, inner, sync_every=1, encoding=None, **AT_ONCE):
        for step in range(1, 31):
            # Decays, as pseudo-gradients do: the sums stay near 1, where 1e-6 is a few ulps.
            change = torch.randn(300, generator=generator) / (10 * step)
            before = model.weight.detach().clone()
            model.weight.grad = change
            # What rounding leaves of the change is the pseudo-gradient of both.
            weight.grad = before - (before - change)
            inner.step()
            outer.step()
            torch.testing.assert_close(model.weight, weight, rtol=0, atol=1e-6)


def test_bfloat16_rounds_only_what_is_sent(ps: pserver.Client) -> None:
    model = nn.Linear(40, 5)
    before = model.weight.detach().clone()
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    outer = dict(optimizer="sgd", lr=1.0)
    with DiLoCo(ps, [model], inner, sync_every=1, outer=outer, **AT_ONCE):
        change = torch.randn(5, 40)
        model.weight.grad = change
        inner.step()
        sent = (before - (before - change)).bfloat16().float()
        torch.testing.assert_close(model.weight.detach(), before - sent, rtol=0, atol=1e-6)
        assert not torch.equal(model.weight.detach(), before - change)


def test_remaining_steps_are_exchanged_at_the_end(ps: pserver.Client) -> None:
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with DiLoCo(ps, [model], inner, sync_every=10, **AT_ONCE) as diloco:
        train(model, inner, 13, seed=1)
        assert (diloco.inner_steps, diloco.outer_steps) == (13, 1)
    assert (diloco.inner_steps, diloco.outer_steps) == (13, 2)
    after = values(model)
    train(model, inner, 10, seed=2)
    assert diloco.inner_steps == 13, "nothing is counted after the end"
    assert_held(ps, after)


def assert_held(ps: pserver.Client, expected: Dict[str, Any]) -> None:
    """Checks that the job has these values, bit for bit."""
    held = ps.get_params(list(expected))
    for name, value in expected.items():
        assert torch.equal(torch.from_numpy(held[name]), value.detach()), name


def test_a_tied_weight_is_exchanged_under_the_name_that_the_job_has(ps: pserver.Client) -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(6, 4), "a_head": nn.Linear(4, 6, bias=False)})
    model["a_head"].weight = model["embed"].weight
    begin = torch.arange(24.0).reshape(6, 4)
    assert ps.begin_init()
    config = {"fragment": "f0", "optimizer": "sgd", "learningRate": 1.0}
    ps.init_params({"a_head.weight": begin.numpy()}, config)
    ps.finish_init()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    outer = dict(optimizer="sgd", lr=1.0)
    with DiLoCo(ps, [model], inner, sync_every=1, outer=outer, **AT_ONCE):
        inner.zero_grad()
        model["a_head"](model["embed"](torch.arange(6))).sum().backward()
        inner.step()
        after = ps.pull("a_head.weight")
    assert not torch.equal(torch.from_numpy(after), begin)
    assert torch.equal(model["embed"].weight.detach(), torch.from_numpy(after))


def test_a_trainer_that_fails_sends_nothing_more(ps: pserver.Client) -> None:
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ZeroDivisionError):
        # No fragment is due within three steps.
        with DiLoCo(ps, [model], inner, sync_every=1_000) as diloco:
            train(model, inner, 3, seed=1)
            raise ZeroDivisionError
    assert diloco.outer_steps == 0
    assert_held(ps, values(network()))


def test_a_barrier_that_was_waited_for_in_vain_is_waited_for_again(new_job: NewJob) -> None:
    job = new_job(*barrier(2))
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with job.connect("one") as ps, job.connect("two") as other:
        other.enter_rounds()
        with DiLoCo(ps, [model], inner, sync_every=5, timeout=4.0, **AT_ONCE) as diloco:
            begin = values(model)
            with pytest.raises(pserver.Timeout, match="expected the results of f0"):
                train(model, inner, 5, seed=1)
            end = values(model)
            assert diloco.outer_steps == 0
            # The other learner has learned nothing.
            zeros = {name: np.zeros_like(value) for name, value in begin.items()}
            assert other.contribute("f0", zeros, base=0, steps=5, tokens=5) == 1
            diloco.sync()
            assert diloco.outer_steps == 1
            mean = 0.5 * (begin["2.bias"] - end["2.bias"]).bfloat16().float()
            expected = begin["2.bias"] - 0.7 * 1.9 * mean
            torch.testing.assert_close(model[2].bias.detach(), expected, rtol=0, atol=1e-5)


def test_frozen_parameters_and_integers_are_left_alone(ps: pserver.Client) -> None:
    model = network()
    model[0].requires_grad_(False)
    inner = torch.optim.SGD(model[2].parameters(), lr=0.1)
    with DiLoCo(ps, [model], inner, sync_every=4, **AT_ONCE):
        train(model, inner, 4, seed=1)
    assert torch.equal(model[0].weight, network()[0].weight)
    assert_held(ps, {"0.weight": network()[0].weight, "2.weight": model[2].weight})
    assert model[1].num_batches_tracked == 4 and ps.pull("1.num_batches_tracked") == 0


def test_half_precision_keeps_the_jobs_precision(new_job: NewJob) -> None:
    """A rounded weight that nobody trains stays what it was in the job."""
    exact, rounded = nn.Linear(6, 3), nn.Linear(6, 3).bfloat16()
    with new_job(*barrier(1)).connect("one") as ps:
        with DiLoCo(ps, exact, torch.optim.SGD(exact.parameters(), lr=0.1)):
            pass
        inner = torch.optim.SGD(rounded.parameters(), lr=0.1)
        with DiLoCo(ps, [rounded], inner, sync_every=1, encoding=None, delay=0):
            rounded.bias.grad = torch.ones(3).bfloat16()
            inner.step()
            inner.step()
        assert_held(ps, {"weight": exact.weight})
        assert torch.equal(exact.weight.bfloat16(), rounded.weight)
        held = torch.from_numpy(ps.pull("bias"))
        assert torch.equal(held.bfloat16(), rounded.bias) and not torch.equal(held, exact.bias)


def test_bools_and_integers_are_those_of_the_first_learner(new_job: NewJob) -> None:
    def build() -> Any:
        model = nn.Linear(2, 2)
        model.register_buffer("mask", torch.tensor([True, False]))
        model.register_buffer("codes", torch.tensor([3, 255], dtype=torch.uint8))
        return model

    job, first, second = new_job(*barrier(1)), build(), build()
    second.mask.logical_not_()
    second.codes.zero_()
    for rank, model in enumerate([first, second]):
        with job.connect(f"learner-{rank}") as ps:
            with DiLoCo(ps, model, torch.optim.SGD(model.parameters(), lr=0.1)):
                assert model.mask.tolist() == [True, False] and model.codes.tolist() == [3, 255]


def test_each_of_several_modules_is_a_fragment(new_job: NewJob) -> None:
    modules = [nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))]
    inner = torch.optim.SGD([p for part in modules for p in part.parameters()], lr=0.1)
    with new_job(*ROUNDS).connect("one") as ps:
        with DiLoCo(ps, modules, inner, sync_every=2):
            assert ps.fragments().parameters == {
                "f0": ("0.bias", "0.weight"),
                "f1": ("1.0.bias", "1.0.weight")
                + tuple(
                    f"1.1.{name}" for name in ("bias", "running_mean", "running_var", "weight")
                ),
            }


@pytest.mark.parametrize(
    "options, fragments, embeddings",
    [
        (dict(fragments=2), ["embeddings", "f0", "f1"], ["0.weight"]),
        (dict(fragments=1), ["f0"], ["0.weight"]),
        (dict(fragments=2, embeddings=["1.weight"]), ["embeddings", "f0", "f1"], ["1.weight"]),
        (dict(fragments=2, embeddings=()), ["f0", "f1"], []),
    ],
)
def test_embeddings_have_a_fragment_of_their_own_and_are_merged_by_the_mean(
    new_job: NewJob, options: Any, fragments: List[str], embeddings: List[str]
) -> None:
    model = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 3), nn.Linear(3, 3))
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with new_job(*ROUNDS).connect("one") as ps, DiLoCo(ps, model, inner, **options):
        assert sorted(ps.fragments().versions) == fragments
        merged = {info.name: info.config.get("merge") for info in ps.list_params()}
        assert [name for name, merge in merged.items() if merge == "mean"] == embeddings


def test_a_job_of_another_kind_is_refused(new_job: NewJob) -> None:
    model = network()
    with new_job("--sync", "sync", "--trainers", "1").connect("one") as ps:
        diloco = DiLoCo(ps, [model], torch.optim.SGD(model.parameters(), lr=0.1))
        with pytest.raises(pserver.BadValue, match="--sync diloco.*which is sync"):
            diloco.__enter__()
        assert ps.status().state == "uninitialized"


@pytest.mark.parametrize(
    "options, told",
    [
        (dict(quorum=3), "quorum: expected the job's, 2; received 3"),
        (dict(grace=0.5), "grace: expected the job's longest, 0.0 s; received 0.5 s"),
        (dict(delay=-1), "delay"),
        (dict(sync_every=0), "sync_every: expected 1 or more"),
        (dict(alpha=2), "alpha: expected 0 to 1"),
        (dict(buffers="sum"), "buffers: expected mean, first, skip; received"),
        (dict(embeddings=["2.wait"]), "embeddings"),
    ],
)
def test_settings_that_do_not_fit_are_refused(new_job: NewJob, options: Any, told: str) -> None:
    model = network()
    with new_job(*barrier(2)).connect("one") as ps:
        with pytest.raises(pserver.BadValue, match=told):
            DiLoCo(ps, model, torch.optim.SGD(model.parameters(), lr=0.1), **options).__enter__()
        assert ps.status().state == "uninitialized"


def test_a_job_with_another_outer_rule_is_refused(ps: pserver.Client) -> None:
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with DiLoCo(ps, [model], inner):
        pass
    with DiLoCo(ps, [model], inner, outer=dict(lr=0.7)):
        pass
    with pytest.raises(pserver.BadConfig) as caught:
        with DiLoCo(ps, [model], inner, outer=dict(lr=0.7, momentum=0.8)):
            pass
    message = str(caught.value)
    assert "updates by nesterov (lr 0.7, momentum 0.8)" in message
    assert "'0.weight' by nesterov (lr 0.7, momentum 0.9)" in message
    assert "running_mean" not in message


def test_an_outer_rule_may_be_written_like_any_configuration(ps: pserver.Client) -> None:
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    ways: List[Any] = [
        dict(optimizer="adam", lr=0.01, beta1=0.8),
        dict(optimizer="adam", learning_rate=0.01, beta1=0.8),
        dict(optimizer={"name": "adam", "beta1": 0.8}, learningRate=0.01),
    ]
    for outer in ways:
        with DiLoCo(ps, [model], inner, outer=outer):
            pass
    with pytest.raises(pserver.BadConfig, match=r"by adam \(lr 0.02"):
        with DiLoCo(ps, [model], inner, outer=dict(ways[1], learning_rate=0.02)):
            pass
    with pytest.raises(pserver.BadConfig, match="received both"):
        DiLoCo(ps, [model], inner, outer=dict(ways[1], lr=0.02))


def test_a_trainer_that_has_finished_is_not_waited_for(new_job: NewJob) -> None:
    job = new_job(*barrier(2))
    models = [network(), network()]
    finished = threading.Event()

    def work(rank: int) -> None:
        inner = torch.optim.SGD(models[rank].parameters(), lr=0.1)
        with job.connect(f"trainer-{rank}") as ps:
            options: Any = dict(AT_ONCE, sync_every=2, timeout=HANG / 2)
            with DiLoCo(ps, [models[rank]], inner, **options) as diloco:
                train(models[rank], inner, 2 + 4 * rank, seed=rank)
                assert diloco.outer_steps == 1 + 2 * rank
            # The first trainer to finish keeps its lease until the other one has finished, too.
            if rank == 1:
                finished.set()
            assert finished.wait(HANG)

    run_threads(work, 2)
