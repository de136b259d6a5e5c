"""DiLoCo, FedAvg and FedAdam on real servers give the weights that one process computes by PyTorch."""

from __future__ import annotations

import threading
from typing import Any, Dict, Iterator, List

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from pserver.torch import DiLoCo  # noqa: E402
from serving import HANG  # noqa: E402
from torch_jobs import NewJob, new_job, run_threads  # noqa: E402

nn: Any = torch.nn
cross_entropy: Any = torch.nn.functional.cross_entropy


SYNC = ("--sync", "sync", "--trainers")


@pytest.fixture
def ps(new_job: NewJob) -> Iterator[pserver.Client]:
    """The only trainer of a new job whose trainers keep step."""
    with new_job(*SYNC, "1").connect("one") as client:
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


def test_half_floats_of_a_job_and_bools_are_exchanged_as_they_are(ps: pserver.Client) -> None:
    model = network().bfloat16()
    model.register_buffer("mask", torch.tensor([True, False]))
    model.register_buffer("codes", torch.tensor([3, 255], dtype=torch.uint8))
    assert ps.begin_init()
    ps.init_params(model.state_dict(), optimizer="sgd", learning_rate=1.0)
    ps.finish_init()
    inner = torch.optim.SGD(model.parameters(), lr=0.5)
    outer = dict(optimizer="sgd", lr=1.0)
    with pserver.torch.DiLoCo(ps, model, inner, sync_every=3, outer=outer, encoding=None):
        for step in range(6):
            inner.zero_grad()
            model[0](torch.ones(2, 6).bfloat16()).sum().backward()
            inner.step()
            model.mask.logical_not_()
    weight = ps.pull("0.weight")
    assert weight.dtype == pserver.bfloat16
    bits = model[0].weight.detach().view(torch.int16).numpy()
    np.testing.assert_array_equal(weight.view(np.int16), bits)
    assert not torch.equal(model[0].weight, network().bfloat16()[0].weight)
    assert model.mask.tolist() == [True, False] and ps.pull("codes").tolist() == [3, 255]


class Reference:
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
    job = new_job(*SYNC, "2")
    models = [network(), network()]

    def work(rank: int) -> None:
        inner = torch.optim.Adam(models[rank].parameters(), lr=0.01)
        with job.connect(f"trainer-{rank}") as ps:
            with DiLoCo(
                ps, [models[rank]], inner, sync_every=5, outer=outer, encoding=None
            ) as diloco:
                for round in range(4):
                    train(models[rank], inner, 5, seed=10 * round + rank)
                    assert (diloco.inner_steps, diloco.outer_steps) == (0, round + 1)
                    assert diloco.late_blocks == 0

    run_threads(work, 2)
    reference = Reference(2, reference_outer)
    for round in range(4):
        reference.exchange(5, [10 * round, 10 * round + 1])
    for model in models:
        for name, value in values(model).items():
            torch.testing.assert_close(value, reference.weights[name].data, rtol=0, atol=1e-5)


def test_the_servers_nesterov_is_pytorchs(ps: pserver.Client) -> None:
    """The weights differ by 1e-6 at most after the same pseudo-gradients."""
    generator = torch.Generator().manual_seed(4)
    start = torch.randn(300, generator=generator)
    weight = nn.Parameter(start.clone())
    outer = torch.optim.SGD([weight], lr=0.7, momentum=0.9, nesterov=True)
    model = nn.Module()
    model.weight = nn.Parameter(start.clone())
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    with DiLoCo(ps, model, inner, sync_every=1, encoding=None):
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
    with DiLoCo(ps, [model], inner, sync_every=1, outer=dict(optimizer="sgd", lr=1.0)):
        change = torch.randn(5, 40)
        model.weight.grad = change
        inner.step()
        sent = (before - (before - change)).bfloat16().float()
        torch.testing.assert_close(model.weight.detach(), before - sent, rtol=0, atol=1e-6)
        assert not torch.equal(model.weight.detach(), before - change)


def test_remaining_steps_are_exchanged_at_the_end(ps: pserver.Client) -> None:
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with DiLoCo(ps, [model], inner, sync_every=10) as diloco:
        train(model, inner, 13, seed=1)
        assert (diloco.inner_steps, diloco.outer_steps) == (3, 1)
    assert (diloco.inner_steps, diloco.outer_steps) == (0, 2)
    after = values(model)
    train(model, inner, 10, seed=2)
    assert diloco.outer_steps == 2, "nothing is counted after the end"
    pserver.torch.sync(ps, model)
    assert all(torch.equal(value, after[name]) for name, value in values(model).items())


def test_a_tied_weight_is_exchanged_under_the_name_that_the_job_has(ps: pserver.Client) -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(6, 4), "a_head": nn.Linear(4, 6, bias=False)})
    model["a_head"].weight = model["embed"].weight
    begin = torch.arange(24.0).reshape(6, 4)
    assert ps.begin_init()
    ps.init_params({"a_head.weight": begin.numpy()}, lambda name: {"learningRate": 1.0})
    ps.finish_init()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with DiLoCo(ps, [model], inner, sync_every=1, outer=dict(optimizer="sgd", lr=1.0)):
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
        with DiLoCo(ps, [model], inner, sync_every=10) as diloco:
            train(model, inner, 3, seed=1)
            raise ZeroDivisionError
    assert diloco.outer_steps == 0
    pserver.torch.sync(ps, model)
    begin = values(network())
    assert all(torch.equal(value, begin[name]) for name, value in values(model).items())


def test_an_exchange_that_failed_is_tried_again(new_job: NewJob) -> None:
    job = new_job(*SYNC, "2")
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with job.connect("one") as ps, job.connect("two") as other:
        with DiLoCo(ps, [model], inner, sync_every=5, timeout=4.0) as diloco:
            begin = values(model)
            with pytest.raises(pserver.Timeout):
                train(model, inner, 5, seed=1)
            end = values(model)
            assert diloco.outer_steps == 0
            # The second trainer ends its step without a gradient, so that the step closes.
            other.end_step(timeout=HANG)
            other.exit_steps(timeout=HANG)
            diloco.sync()
            assert diloco.outer_steps == 1
            mean = 0.5 * (begin["2.bias"] - end["2.bias"]).bfloat16().float()
            expected = begin["2.bias"] - 0.7 * 1.9 * mean
            torch.testing.assert_close(model[2].bias.detach(), expected, rtol=0, atol=1e-5)


def test_frozen_parameters_and_integers_are_left_alone(ps: pserver.Client) -> None:
    model = network()
    model[0].requires_grad_(False)
    inner = torch.optim.SGD(model[2].parameters(), lr=0.1)
    with DiLoCo(ps, [model], inner, sync_every=4):
        train(model, inner, 4, seed=1)
    assert torch.equal(model[0].weight, network()[0].weight)
    assert ps.get_params(["0.weight"]).versions["0.weight"] == 1
    assert model[1].num_batches_tracked == 4 and ps.pull("1.num_batches_tracked") == 0


def test_half_precision_keeps_the_jobs_precision(ps: pserver.Client) -> None:
    """A rounded weight that nobody trains stays what it was in the job."""
    exact, rounded = nn.Linear(6, 3), nn.Linear(6, 3).bfloat16()
    pserver.torch.sync(ps, exact, optimizer="nesterov", learning_rate=0.7)
    inner = torch.optim.SGD(rounded.parameters(), lr=0.1)
    with DiLoCo(ps, [rounded], inner, sync_every=1):
        rounded.bias.grad = torch.ones(3).bfloat16()
        inner.step()
        inner.step()
    before = exact.weight.detach().clone()
    pserver.torch.sync(ps, exact)
    assert torch.equal(exact.weight, before) and torch.equal(rounded.weight, before.bfloat16())
    assert torch.equal(exact.bias.bfloat16(), rounded.bias)


def test_several_fragments_go_together(ps: pserver.Client) -> None:
    fragments = [nn.Linear(3, 2), nn.Linear(2, 1)]
    inner = torch.optim.SGD([p for part in fragments for p in part.parameters()], lr=0.1)
    with DiLoCo(ps, model_fragments=fragments, inner_optimizer=inner, sync_every=2):
        names = [info.name for info in ps.list_params()]
    assert names == ["0.bias", "0.weight", "1.bias", "1.weight"]


@pytest.mark.parametrize(
    "flags, received",
    [((), "async"), ((*SYNC, "1", "--reduce", "sum"), "sync that applies the sum")],
)
def test_a_job_of_another_kind_is_refused(new_job: NewJob, flags: Any, received: str) -> None:
    model = network()
    with new_job(*flags).connect("one") as ps:
        diloco = DiLoCo(ps, [model], torch.optim.SGD(model.parameters(), lr=0.1))
        with pytest.raises(pserver.BadValue, match=f"which is {received}"):
            diloco.__enter__()
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
    job = new_job(*SYNC, "2")
    models = [network(), network()]
    finished = threading.Event()

    def work(rank: int) -> None:
        inner = torch.optim.SGD(models[rank].parameters(), lr=0.1)
        with job.connect(f"trainer-{rank}") as ps:
            with DiLoCo(ps, [models[rank]], inner, sync_every=2, timeout=HANG / 2) as diloco:
                train(models[rank], inner, 2 + 4 * rank, seed=rank)
                assert diloco.outer_steps == 1 + 2 * rank
            # The first trainer to finish keeps its lease until the other one has finished, too.
            if rank == 1:
                finished.set()
            assert finished.wait(HANG)

    run_threads(work, 2)
