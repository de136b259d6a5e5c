"""What DiLoCo exchanges of a module: buffers of every kind, layers that are frozen, unfrozen, added or replaced,
and spectral norms. With a barrier all learners have the same values after each exchange, or an error says why not.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from pserver.torch import DiLoCo  # noqa: E402
from pserver.torch._diloco import change_of_buffer  # noqa: E402
from diloco_reference import weighted_mean  # noqa: E402
from programs import until  # noqa: E402
from serving import HANG  # noqa: E402
from torch_jobs import (  # noqa: E402
    AT_ONCE,
    ROUNDS,
    NewJob,
    barrier,
    has_state,
    new_job,
    run_threads,
    state_of,
)

nn: Any = torch.nn

FEDAVG = dict(optimizer="sgd", lr=1.0)


@pytest.fixture
def ps(new_job: NewJob) -> Iterator[pserver.Client]:
    """The only learner of a new job."""
    with new_job(*barrier(1)).connect("one") as client:
        yield client


#: What a trainer does before its step: gets the number of the step, its rank and its module.
Before = Callable[[int, int, Any], None]


def train_team(
    new_job: NewJob,
    build: Callable[[], Any],
    *,
    before: Before = lambda step, rank, module: None,
    steps: int = 8,
    trainers: int = 2,
    **options: Any,
) -> List[Any]:
    """Trains equal modules on different targets, with an exchange after every second step; returns them."""
    job = new_job(*barrier(trainers))
    modules = []
    for _ in range(trainers):
        torch.manual_seed(0)
        modules.append(build())

    def work(rank: int) -> None:
        module = modules[rank]
        inner = torch.optim.SGD(module.parameters(), lr=0.05)
        generator = torch.Generator().manual_seed(rank)
        with job.connect(f"trainer-{rank}") as ps:
            with DiLoCo(ps, [module], inner, sync_every=2, **AT_ONCE, **options):
                for step in range(steps):
                    before(step, rank, module)
                    inputs = torch.randn(8, 4, generator=generator)
                    inner.zero_grad()
                    wanted = inputs.sum(1, keepdim=True) * (1 - 2 * rank)
                    (module(inputs) - wanted).square().mean().backward()
                    inner.step()

    run_threads(work, trainers)
    return modules


def two_layers() -> Any:
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))


def frozen_first() -> Any:
    module = two_layers()
    module[0].requires_grad_(False)
    return module


@pytest.mark.parametrize("ranks", [(0, 1), (0,)], ids=["in all", "in one"])
def test_a_layer_that_is_unfrozen_is_exchanged_from_then_on(new_job: NewJob, ranks: Any) -> None:
    begin: Dict[str, Any] = {}

    def unfreeze(step: int, rank: int, module: Any) -> None:
        if step == 0 and rank == 0:
            begin.update(state_of(module))
        if step == 4 and rank in ranks:
            module[0].requires_grad_(True)

    first, second = train_team(new_job, frozen_first, before=unfreeze)
    assert has_state(second, first.state_dict())
    assert not torch.equal(first[0].weight, begin["0.weight"])


def test_a_layer_that_is_frozen_between_exchanges_keeps_what_it_has_learned(
    new_job: NewJob,
) -> None:
    at_exchange: Dict[int, Any] = {}

    def freeze(step: int, rank: int, module: Any) -> None:
        if step == 4:
            at_exchange[rank] = module[0].weight.detach().clone()
        if step == 5:
            module[0].requires_grad_(False)

    first, second = train_team(new_job, two_layers, before=freeze, steps=8)
    assert has_state(second, first.state_dict())
    assert torch.equal(at_exchange[0], at_exchange[1])
    assert not torch.equal(first[0].weight, at_exchange[0])


def test_a_frozen_layer_changes_only_by_what_another_learner_has_learned(new_job: NewJob) -> None:
    def unfreeze(step: int, rank: int, module: Any) -> None:
        if rank == 1:
            module[0].requires_grad_(True)

    torch.manual_seed(0)
    before = frozen_first()[0].weight.detach().clone()
    first, second = train_team(new_job, frozen_first, before=unfreeze, encoding="int8")
    assert has_state(second, first.state_dict())
    assert not first[0].weight.requires_grad and not torch.equal(first[0].weight, before)


def adapter_added(module: Any) -> None:
    module[1].adapter = nn.Linear(1, 1)


def layer_removed(module: Any) -> None:
    module[0].bias = None


def buffer_added(module: Any) -> None:
    module[0].register_buffer("scale", torch.ones(3))


def weight_resized(module: Any) -> None:
    module[0].weight = nn.Parameter(torch.ones(5, 4))


def layer_widened(module: Any) -> None:
    module[0].double()


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize(
    "change, told",
    [
        (adapter_added, "'1.adapter.weight' is new; '1.adapter.bias' is new"),
        (buffer_added, "'0.scale' is new"),
        (layer_removed, "'0.bias' is gone"),
        (weight_resized, "'0.weight' was float32 of shape (4, 4) and is float32 of shape (5, 4)"),
        (layer_widened, "'0.bias' was float32 of shape (4,) and is float64 of shape (4,)"),
    ],
)
def test_another_set_of_tensors_is_refused(
    ps: pserver.Client, change: Any, told: str, delay: int
) -> None:
    module = two_layers()
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(pserver.BadValue) as caught:
        with DiLoCo(ps, module, inner, sync_every=1, delay=delay) as diloco:
            change(module)
            before = state_of(module)
            inner.step()
    assert told in str(caught.value)
    assert diloco.outer_steps == 0 and has_state(module, before)
    assert torch.equal(torch.from_numpy(ps.pull("1.weight")), before["1.weight"])


def test_another_set_of_tensors_is_refused_at_the_end_too(ps: pserver.Client) -> None:
    module = two_layers()
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(pserver.BadValue, match="'0.scale' is new"):
        with DiLoCo(ps, module, inner, sync_every=1, **AT_ONCE):
            inner.step()
            buffer_added(module)


def test_a_module_that_was_replaced_by_an_equal_one_is_exchanged(ps: pserver.Client) -> None:
    module = two_layers()
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    with DiLoCo(ps, module, inner, sync_every=1, outer=FEDAVG, encoding=None, **AT_ONCE):
        other = nn.Linear(4, 4)
        module[0] = other
        inner.step()
        torch.testing.assert_close(torch.from_numpy(ps.pull("0.weight")), other.weight.detach())


def test_no_variance_becomes_negative(new_job: NewJob) -> None:
    """The variance falls from 9 to some millionths, which is less than what 9 can be rounded by."""
    job = new_job(*barrier(3))
    modules = [nn.BatchNorm1d(64) for _ in range(3)]

    def work(rank: int) -> None:
        module = modules[rank]
        inner = torch.optim.SGD(module.parameters(), lr=0.0)
        generator = torch.Generator().manual_seed(rank)
        with job.connect(f"trainer-{rank}") as ps:
            with DiLoCo(ps, [module], inner, sync_every=100, **AT_ONCE):
                for step in range(200):
                    scale = 3 if step < 100 else 0.02
                    inner.zero_grad()
                    module(torch.randn(32, 64, generator=generator) * scale).sum().backward()
                    inner.step()

    run_threads(work, 3)
    for module in modules:
        assert has_state(module, {**modules[0].state_dict()})
        # 9 · 0.9^100 of the first hundred steps, and 0.02² of the others.
        assert 4e-4 < module.running_var.min() and module.running_var.max() < 1e-3
        assert not torch.isnan(module.eval()(torch.randn(5, 64))).any()


@pytest.mark.parametrize("learners", [1, 2, 3, 256])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("last", [0.0, 1e-30, 3e-7])
def test_the_mean_of_numbers_of_one_sign_has_that_sign(
    last: float, sign: int, learners: int
) -> None:
    """As the server computes it: in float32, one contribution after the other mixed in."""
    random = np.random.default_rng(learners)
    begin = (sign * (random.random(2_000) + 0.1) * 100).astype(np.float32)
    change = change_of_buffer(begin, np.full_like(begin, sign * last))
    weights = random.random(learners) + 0.01
    mean = weighted_mean([(float(weight), change) for weight in weights])
    assert mean.dtype == np.float32 and ((begin - mean) * sign >= 0).all()
    assert abs((begin - mean)).max() < 0.02
    free = change_of_buffer(begin, np.full_like(begin, -sign * 5.0))
    assert np.array_equal(free, begin + np.float32(sign * 5.0))


def test_what_does_not_change_is_no_change_even_if_infinite() -> None:
    mask = np.array([float("-inf"), 0.0, 3.0], np.float32)
    assert change_of_buffer(mask, mask.copy()).tolist() == [0.0, 0.0, 0.0]


def test_the_mean_of_buffers_is_that_of_float64(new_job: NewJob) -> None:
    """Of two learners of unequal weight, to the last bits of float32."""
    job = new_job(*ROUNDS, "--quorum", "2", "--weights", "tokens")
    modules = [nn.BatchNorm1d(64), nn.BatchNorm1d(64)]
    own: List[Any] = [None, None]

    def work(rank: int) -> None:
        module = modules[rank]
        inner = torch.optim.SGD(module.parameters(), lr=0.0)
        generator = torch.Generator().manual_seed(rank)
        options: Any = dict(AT_ONCE, sync_every=2, encoding="e3m0", tokens=1 + 2 * rank)
        with job.connect(f"learner-{rank}") as ps, DiLoCo(ps, module, inner, **options):
            module(torch.randn(8, 64, generator=generator) * (1 + rank)).sum().backward()
            inner.step()
            module(torch.randn(8, 64, generator=generator) * (1 + rank)).sum().backward()
            own[rank] = state_of(module)
            inner.step()

    run_threads(work, 2)
    for name in ("running_mean", "running_var"):
        expected = 0.25 * own[0][name].double() + 0.75 * own[1][name].double()
        for module in modules:
            found = module.state_dict()[name].double()
            torch.testing.assert_close(found, expected, rtol=2e-7, atol=2e-7)


class Forms(nn.Module):  # type: ignore[misc]
    """A layer with buffers of several forms: infinite, expanded, of half precision, a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))
        self.register_buffer("expanded", torch.ones(1, 3).expand(5, 3))
        self.register_buffer("halves", torch.ones(4).bfloat16())
        self.register_buffer("count", torch.tensor(0.0))

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs)


@pytest.mark.parametrize("buffers", ["mean", "first"])
def test_buffers_of_several_forms_are_exchanged(new_job: NewJob, buffers: Any) -> None:
    def count(step: int, rank: int, module: Any) -> None:
        module.count.add_(1 + 2 * rank)
        module.halves.mul_(1 + rank)
        module.expanded[0, 0] = float(step + rank)

    mask = Forms().mask
    first, second = train_team(new_job, Forms, before=count, steps=2, buffers=buffers)
    assert has_state(second, first.state_dict())
    assert torch.equal(first.mask, mask)
    averaged = buffers == "mean"
    assert first.count == (4.0 if averaged else 0.0)
    assert first.halves.tolist() == [2.5 if averaged else 1.0] * 4
    assert first.expanded.tolist() == [[1.5 if averaged else 1.0, 1.0, 1.0]] * 5


@pytest.mark.parametrize("buffers", ["first", "skip"])
def test_buffers_that_are_not_averaged(new_job: NewJob, buffers: Any) -> None:
    job = new_job(*barrier(2))
    modules = [nn.BatchNorm1d(3), nn.BatchNorm1d(3)]
    begun = threading.Barrier(2)

    def work(rank: int) -> None:
        module = modules[rank]
        module.running_mean.fill_(10.0 + rank)
        inner = torch.optim.SGD(module.parameters(), lr=0.1)
        with job.connect(f"learner-{rank}") as ps:
            with DiLoCo(ps, module, inner, sync_every=2, buffers=buffers, **AT_ONCE):
                begun.wait(HANG)
                for _ in range(4):
                    module.running_mean.add_(1)
                    module.weight.grad = torch.full((3,), float(rank))
                    inner.step()

    run_threads(work, 2)
    assert torch.equal(modules[0].weight, modules[1].weight)
    with job.connect("reader") as reader:
        held = reader.pull("running_mean").tolist()
    found = [module.running_mean.tolist() for module in modules]
    if buffers == "first":
        assert held in ([10.0] * 3, [11.0] * 3) and found == [held, held]
    else:
        assert found == [[14.0] * 3, [15.0] * 3] and held in found


def test_buffers_are_sent_as_they_are(ps: pserver.Client) -> None:
    module = nn.BatchNorm1d(5)
    inner = torch.optim.SGD(module.parameters(), lr=0.0)
    with DiLoCo(ps, module, inner, sync_every=1, encoding="e3m0", pull_encoding="int8", delay=0):
        module.running_mean.copy_(torch.tensor([0.1, 1 / 3, -2.7, 1e-5, 123.456]))
        expected = module.running_mean.clone()
        inner.step()
    torch.testing.assert_close(module.running_mean, expected, rtol=1e-6, atol=1e-7)


def hooked() -> Any:
    norm = nn.utils.spectral_norm
    return nn.Sequential(norm(nn.Linear(4, 16)), nn.ReLU(), norm(nn.Linear(16, 1)))


def parametrized() -> Any:
    norm = nn.utils.parametrizations.spectral_norm
    return nn.Sequential(norm(nn.Linear(4, 16)), nn.ReLU(), norm(nn.Linear(16, 1)))


def convolution() -> Any:
    """A spectral norm along another dimension."""
    norm = nn.utils.spectral_norm
    layers = [nn.Unflatten(1, (4, 1)), norm(nn.ConvTranspose1d(4, 6, 1), dim=1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(6, 1))


@pytest.mark.parametrize("build", [hooked, parametrized, convolution])
def test_spectral_norms_are_1_after_an_exchange(new_job: NewJob, build: Any) -> None:
    modules = train_team(new_job, build, steps=24)
    assert has_state(modules[1], modules[0].state_dict())
    for module in modules:
        module.eval()
        module(torch.zeros(1, 4))
        for layer in module:
            if any(name.endswith("_u") for name, _ in layer.named_buffers()):
                weight = layer.weight.detach()
                matrix = weight.transpose(0, 1) if layer is module[1] else weight
                norm = torch.linalg.matrix_norm(matrix.flatten(1), 2)
                torch.testing.assert_close(norm, torch.tensor(1.0), rtol=0, atol=1e-3)
        for name, buffer in module.named_buffers():
            if name.endswith(("_u", "_v")):
                torch.testing.assert_close(buffer.norm(), torch.tensor(1.0), rtol=0, atol=1e-5)


def test_learners_that_exchange_other_tensors_are_refused(new_job: NewJob) -> None:
    job = new_job(*barrier(1))
    module = nn.BatchNorm1d(3)
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    with job.connect("one") as one, DiLoCo(one, module, inner):
        with job.connect("two") as two:
            for options, told in (
                (dict(buffers="skip"), "it also has 'running_mean'; it also has 'running_var'"),
                (dict(exclude="weight"), "it also has 'weight'"),
            ):
                other: Any = dict(options)
                with pytest.raises(pserver.BadValue, match=told):
                    DiLoCo(two, nn.BatchNorm1d(3), inner, **other).__enter__()
            with pytest.raises(pserver.BadValue, match="'0.weight' is not in it"):
                DiLoCo(two, two_layers(), inner).__enter__()


class Turned(nn.Module):  # type: ignore[misc]
    """A layer behind a direction of its own, whose mean over the trainers would be no direction."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.register_buffer("direction", nn.functional.normalize(torch.randn(4), dim=0))


def test_what_is_excluded_stays_with_each_trainer(new_job: NewJob) -> None:
    job = new_job(*barrier(2))
    directions = [torch.eye(4)[0], torch.eye(4)[1]]
    modules = [Turned(), Turned()]

    def train(place: int) -> None:
        module = modules[place]
        inner = torch.optim.SGD(module.parameters(), lr=0.1)
        with job.connect(f"t{place}") as client:
            options: Any = dict(AT_ONCE, outer=FEDAVG, exclude="dir*")
            with DiLoCo(client, module, inner, sync_every=1, **options):
                for _ in range(2):
                    module.direction.copy_(directions[place])
                    module.layer.weight.grad = torch.full((1, 4), float(place))
                    inner.step()
                    assert torch.equal(module.direction, directions[place])

    run_threads(train, 2)
    assert torch.equal(modules[0].layer.weight, modules[1].layer.weight)
    with job.connect("reader") as reader:
        held = torch.from_numpy(reader.pull("direction"))
        assert any(torch.equal(held, direction) for direction in directions)


def test_a_name_to_exclude_that_no_tensor_has_is_refused(ps: pserver.Client) -> None:
    module = Turned()
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(pserver.BadValue, match="exclude: .*direction.*; received 'directoin'"):
        DiLoCo(ps, module, inner, exclude=["direction", "directoin"]).__enter__()
    assert ps.status().state == "uninitialized"


def test_the_job_gets_the_vectors_of_the_new_weights(ps: pserver.Client) -> None:
    module = hooked()
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    names = ("0.weight_u", "0.weight_v", "2.weight_v")

    def job_has_them() -> bool:
        held = {name: torch.from_numpy(ps.pull(name)) for name in names}
        return all(torch.equal(held[name], module.state_dict()[name]) for name in names)

    def train() -> None:
        for parameter in module.parameters():
            parameter.grad = torch.randn_like(parameter)
        inner.step()

    with DiLoCo(ps, module, inner, sync_every=1, **AT_ONCE):
        train()
        # In the background, while the training goes on.
        until(job_has_them)
        train()
    assert job_has_them()


def test_buffers_are_given_to_the_job_with_whole_vectors(ps: pserver.Client) -> None:
    module = hooked()
    pserver.torch.sync(ps, module)
    for _ in range(3):
        module(torch.randn(8, 4))
    pserver.torch.push_buffers(ps, module, weight=0.25)
    assert torch.equal(torch.from_numpy(ps.pull("0.weight_u")), module[0].weight_u)
    for weight in (-0.5, 1.5, float("nan")):
        with pytest.raises(pserver.BadValue, match="weight: expected 0 to 1"):
            pserver.torch.push_buffers(ps, module, weight=weight)


def test_a_step_outside_of_the_block_says_that_nothing_is_exchanged(ps: pserver.Client) -> None:
    module = two_layers()
    inner = torch.optim.SGD(module.parameters(), lr=0.1)
    diloco = DiLoCo(ps, module, inner, sync_every=1)
    with pytest.warns(RuntimeWarning, match="nothing is exchanged before its `with` block"):
        inner.step()
    with pytest.raises(pserver.BadValue, match="nothing is exchanged outside"):
        diloco.sync()
    assert ps.status().state == "uninitialized"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with diloco:
            inner.step()
        inner.step()
    assert diloco.inner_steps == 1
    with pytest.raises(pserver.BadValue, match="nothing is exchanged outside"):
        diloco.sync()
