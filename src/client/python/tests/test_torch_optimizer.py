"""The server's optimizers give the weights that PyTorch's give, in jobs of every kind, on real servers."""

from __future__ import annotations

import copy
import pickle
from typing import Any, List

import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from torch_jobs import NewJob, has_state, new_job, ps, run_threads, state_of  # noqa: E402

nn: Any = torch.nn
cross_entropy: Any = torch.nn.functional.cross_entropy


def network(seed: int = 1) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def train(model: Any, optimizer: Any, steps: int, scheduler: Any = None) -> None:
    """Trains with batches that are the same in each call."""
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        images = torch.randn(16, 6, generator=generator)
        labels = torch.randint(3, (16,), generator=generator)
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def assert_same(one: Any, other: Any, tolerance: float = 1e-6) -> None:
    for name, value in other.state_dict().items():
        found = one.state_dict()[name]
        torch.testing.assert_close(found, value, rtol=0, atol=tolerance, msg=name)


RULES = {
    "sgd": (dict(optimizer="sgd", learning_rate=0.1), torch.optim.SGD, dict(lr=0.1)),
    "nesterov": (
        dict(optimizer={"name": "nesterov", "momentum": 0.8}, learning_rate=0.1),
        torch.optim.SGD,
        dict(lr=0.1, momentum=0.8, nesterov=True),
    ),
    "adamw": (
        dict(optimizer="adamw", learning_rate=0.01, l2=0.1),
        torch.optim.AdamW,
        dict(lr=0.01, weight_decay=0.1),
    ),
    "weight-decay": (
        dict(optimizer="momentum", learning_rate=0.1, l2=0.05),
        torch.optim.SGD,
        dict(lr=0.1, momentum=0.9, weight_decay=0.05),
    ),
}


def test_one_trainer_steps_as_pytorch_does(ps: pserver.Client) -> None:
    models = nn.ModuleDict({rule: network() for rule in RULES})
    pserver.torch.sync(ps, models, lambda name, _: RULES[name.split(".")[0]][0])
    places = [parameter.data_ptr() for parameter in models.parameters()]
    for rule, (_, kind, settings) in RULES.items():
        local = network()
        train(models[rule], pserver.torch.Optimizer(ps, models[rule].parameters()), 20)
        train(local, kind(local.parameters(), **settings), 20)
        assert_same(models[rule], local, 1e-5)
    assert [parameter.data_ptr() for parameter in models.parameters()] == places


def test_schedulers_of_pytorch_set_the_rate(ps: pserver.Client) -> None:
    model, local = network(), network()
    pserver.torch.sync(ps, model)
    for each in (model, local):
        if each is model:
            optimizer: Any = pserver.torch.Optimizer(ps, model.parameters(), lr=0.4)
        else:
            optimizer = torch.optim.SGD(local.parameters(), lr=0.4)
        train(each, optimizer, 12, torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5))
    assert_same(model, local)


def groups(module: Any) -> List[Any]:
    """Two groups of parameters, the first with a learning rate of its own."""
    return [{"params": module[0].parameters(), "lr": 0.3}, {"params": [*module[2].parameters()]}]


def test_groups_have_rates_of_their_own(ps: pserver.Client) -> None:
    model, local = network(), network()
    pserver.torch.sync(ps, model, learning_rate=0.05)
    train(model, pserver.torch.Optimizer(ps, groups(model)), 10)
    train(local, torch.optim.SGD(groups(local), lr=0.05), 10)
    assert_same(model, local)


def test_the_state_is_the_servers_alone(ps: pserver.Client) -> None:
    model = network()
    pserver.torch.sync(ps, model, optimizer="adam")
    optimizer = pserver.torch.Optimizer(ps, model.named_parameters(), lr=0.1)
    train(model, optimizer, 2)
    optimizer.param_groups[0]["lr"] = 0.05
    saved = optimizer.state_dict()
    assert saved["state"] == {}
    assert saved["param_groups"] == [{"lr": 0.05, "params": [0, 1, 2, 3]}]
    again = pserver.torch.Optimizer(ps, model.named_parameters(), lr=0.1)
    again.load_state_dict(saved)
    train(model, again, 1)
    assert again.param_groups[0]["lr"] == 0.05


def test_a_tensor_without_gradient_is_left_out(ps: pserver.Client) -> None:
    model = network()
    before = model[0].weight.detach().clone()
    pserver.torch.sync(ps, model, optimizer="momentum", learning_rate=0.1)
    optimizer = pserver.torch.Optimizer(ps, model.parameters())
    ps.push("0.weight", torch.ones(8, 6), 1, 1)
    model[2].bias.grad = torch.ones(3)
    bias = model[2].bias.detach().clone()
    optimizer.step()
    torch.testing.assert_close(model[2].bias, bias - 0.1)
    assert torch.equal(model[0].weight, before + 1), "the updates of other trainers are taken over"
    optimizer.zero_grad(set_to_none=True)
    optimizer.step()
    assert torch.equal(model[0].weight, before + 1)


def test_a_closure_computes_the_gradients(ps: pserver.Client) -> None:
    model = network()
    pserver.torch.sync(ps, model, learning_rate=0.1)
    optimizer = pserver.torch.Optimizer(ps, model.parameters())
    images, labels = torch.ones(4, 6), torch.tensor([0, 1, 2, 0])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        return loss

    losses: List[Any] = [optimizer.step(closure) for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]


def test_sparse_embeddings_send_rows(ps: pserver.Client) -> None:
    rules = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}

    def words(sparse: bool) -> Any:
        torch.manual_seed(1)
        return nn.Sequential(nn.Embedding(50, 4, sparse=sparse), nn.Flatten(), nn.Linear(12, 2))

    models = nn.ModuleDict({rule: words(sparse=True) for rule in rules})
    # PyTorch adds epsilon to the root, the server to what the root is taken of: with 1e-20 both are 1e-10.
    adagrad = {"name": "adagrad", "epsilon": 1e-20}
    pserver.torch.sync(
        ps,
        models,
        lambda name, _: (
            {"sparse": True, "optimizer": "sgd"} if "sgd" in name else {"optimizer": adagrad}
        ),
    )
    batch = torch.tensor([[3, 3, 7], [49, 0, 3]])
    for rule, kind in rules.items():
        model, local = models[rule], words(sparse=False)
        optimizer = pserver.torch.Optimizer(ps, model.parameters(), lr=0.1)
        other = kind(local.parameters(), lr=0.1)
        for _ in range(4):
            for each, own in ((model, optimizer), (local, other)):
                own.zero_grad(set_to_none=True)
                each(batch).square().sum().backward()
                assert each[0].weight.grad.is_sparse == (each is model)
                own.step()
        assert_same(model, local, 1e-5)


def test_other_precisions_are_trained(ps: pserver.Client) -> None:
    dtypes = {"wide": torch.float64, "narrow": torch.bfloat16}
    models = nn.ModuleDict({name: network().to(dtype) for name, dtype in dtypes.items()})
    pserver.torch.sync(ps, models, learning_rate=0.5)
    optimizer = pserver.torch.Optimizer(ps, models.parameters(), encoding="bfloat16")
    images = torch.randn(32, 6, generator=torch.Generator().manual_seed(2))
    labels = images[:, :3].argmax(dim=1)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        each = [cross_entropy(models[name](images.to(dtypes[name])), labels) for name in dtypes]
        torch.stack([loss.float() for loss in each]).sum().backward()
        optimizer.step()
        losses.append([loss.item() for loss in each])
    assert all(last < first / 2 for first, last in zip(losses[0], losses[-1]))
    assert [p.dtype for p in models.parameters()] == [torch.float64] * 4 + [torch.bfloat16] * 4


def test_tensors_that_are_not_in_the_job_are_refused(ps: pserver.Client) -> None:
    model = network()
    with pytest.raises(pserver.BadValue, match=r"shape \(8, 6\) has no name .* call sync\(\)"):
        pserver.torch.Optimizer(ps, model.parameters())
    pserver.torch.sync(ps, model)
    with pytest.raises(pserver.UnknownParameter, match="'other' is not in job"):
        pserver.torch.Optimizer(ps, [("other", model[0].weight)])
    with pytest.raises(pserver.BadShape, match=r"'0.weight': expected \(8, 6\)"):
        pserver.torch.Optimizer(ps, [("0.weight", model[0].bias)])


def test_a_gradient_that_is_not_finite_changes_nothing(ps: pserver.Client) -> None:
    model = network()
    pserver.torch.sync(ps, model, learning_rate=0.1)
    optimizer = pserver.torch.Optimizer(ps, model.parameters())
    before = state_of(model)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, float("nan"))
    with pytest.raises(pserver.NonFinite):
        optimizer.step()
    optimizer.pull()
    assert has_state(model, before)


def test_trainers_of_a_sync_job_step_as_one_on_all_samples(new_job: NewJob) -> None:
    job = new_job("--sync", "sync", "--trainers", "3")
    alone, images = network(), torch.randn(30, 6, generator=torch.Generator().manual_seed(3))
    labels = images[:, :3].argmax(dim=1)
    local = torch.optim.SGD(groups(alone), lr=0.2)
    for _ in range(10):
        local.zero_grad()
        cross_entropy(alone(images), labels).backward()
        local.step()
    models = [network(seed) for seed in (1, 1, 1)]

    def work(rank: int) -> None:
        model = models[rank]
        with job.connect(f"trainer-{rank}") as ps:
            pserver.torch.sync(ps, model)
            optimizer = pserver.torch.Optimizer(ps, groups(model), lr=0.2)
            part = slice(10 * rank, 10 * rank + 10)
            for _ in range(10):
                optimizer.zero_grad()
                cross_entropy(model(images[part]), labels[part]).backward()
                optimizer.step()
                assert optimizer.late_blocks == 0
            assert ps.steps_ended == 10

    run_threads(work, 3)
    for model in models:
        assert_same(model, alone, 1e-5)


def test_trainers_of_an_ssp_job_all_finish(new_job: NewJob) -> None:
    job = new_job("--sync", "ssp", "--trainers", "2", "--staleness", "1")
    models = [network(seed) for seed in (1, 2)]

    def work(rank: int) -> None:
        with job.connect(f"trainer-{rank}") as ps:
            pserver.torch.sync(ps, models[rank], learning_rate=0.1)
            optimizer = pserver.torch.Optimizer(ps, models[rank].parameters())
            # The second one ends earlier; the first does not wait for a trainer that has left.
            train(models[rank], optimizer, 12 - 6 * rank)
            ps.exit_steps()

    run_threads(work, 2)
    with job.connect("observer") as ps:
        final = network(3)
        pserver.torch.sync(ps, final)
    assert_same(models[0], final)


@pytest.mark.parametrize("option", ["weight_decay", "momentum", "betas", "eps", "maximize"])
def test_options_of_other_optimizers_are_refused(ps: pserver.Client, option: str) -> None:
    model = network()
    pserver.torch.sync(ps, model, learning_rate=0.1)
    group = {"params": [model[0].weight], option: 0.5}
    with pytest.raises(pserver.BadValue, match=f"received {option}: .* of the job's configuration"):
        pserver.torch.Optimizer(ps, [group])
    optimizer = pserver.torch.Optimizer(ps, [model[0].bias])
    with pytest.raises(pserver.BadValue, match=option):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1
    optimizer.param_groups[0][option] = 0.5
    model[0].bias.grad = torch.ones(8)
    before = state_of(model)
    with pytest.raises(pserver.BadValue, match=option):
        optimizer.step()
    pserver.torch.sync(ps, model)
    assert has_state(model, before)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD])
def test_the_state_of_another_optimizer_is_refused(ps: pserver.Client, kind: Any) -> None:
    model = network()
    pserver.torch.sync(ps, model, learning_rate=0.1)
    other = kind(network().parameters(), lr=0.5)
    optimizer = pserver.torch.Optimizer(ps, model.parameters(), lr=0.1)
    with pytest.raises(pserver.BadValue, match="group: expected lr alone"):
        optimizer.load_state_dict(other.state_dict())
    trained = network()
    adam = torch.optim.Adam(trained.parameters())
    train(trained, adam, 1)
    with pytest.raises(pserver.BadValue, match="received the state of 4 tensors"):
        optimizer.load_state_dict(adam.state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_what_schedulers_note_in_groups_is_kept(ps: pserver.Client) -> None:
    model = network()
    pserver.torch.sync(ps, model)
    optimizer = pserver.torch.Optimizer(ps, model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.4, total_steps=9, cycle_momentum=False
    )
    train(model, optimizer, 3, scheduler)
    again = pserver.torch.Optimizer(ps, model.parameters(), lr=0.1)
    again.load_state_dict(optimizer.state_dict())
    assert again.param_groups[0]["max_lr"] == 0.4


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))]
)
def test_copies_step_on_their_own_tensors(ps: pserver.Client, duplicate: Any) -> None:
    model = network()
    pserver.torch.sync(ps, model, learning_rate=0.5)
    optimizer = pserver.torch.Optimizer(ps, model.parameters())
    train(model, optimizer, 1)
    other, copied = duplicate((model, optimizer))
    before = model[2].bias.detach().clone()
    copied.zero_grad(set_to_none=True)
    other[2].bias.grad = torch.ones(3)
    copied.step()
    assert torch.equal(other[2].bias, before - 0.5) and torch.equal(model[2].bias, before)
    optimizer.pull()
    assert has_state(model, other.state_dict())
    is_same = copied._ps is ps
    assert is_same == (duplicate is copy.deepcopy)
    if not is_same:
        copied._ps.close()


class Tagged(nn.Module):  # type: ignore[misc]
    """A layer and a parameter without elements."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.tag = nn.Parameter(torch.empty(0))


def test_a_parameter_without_elements_is_left_out(ps: pserver.Client) -> None:
    model = Tagged()
    pserver.torch.sync(ps, model, learning_rate=0.5)
    for parameters in (model.parameters(), model.named_parameters()):
        optimizer = pserver.torch.Optimizer(ps, parameters)
        before = model.layer.bias.detach().clone()
        model.layer.bias.grad = torch.ones(2)
        model.tag.grad = torch.empty(0)
        optimizer.step()
        assert torch.equal(model.layer.bias, before - 0.5)
    with pytest.raises(pserver.BadValue, match="expected tensors with a shape"):
        pserver.torch.Optimizer(ps, nn.LazyLinear(2).parameters())


def test_two_modules_may_have_the_same_names(ps: pserver.Client) -> None:
    model, evaluated = network(1), network(2)
    pserver.torch.sync(ps, model, learning_rate=0.5)
    pserver.torch.sync(ps, evaluated)
    first = pserver.torch.Optimizer(ps, model.parameters())
    second = pserver.torch.Optimizer(ps, evaluated.parameters())
    model[2].bias.grad = torch.ones(3)
    first.step()
    second.pull()
    assert has_state(evaluated, model.state_dict())
    whole = nn.ModuleDict({"part": model})
    with pytest.raises(pserver.UnknownParameter):
        pserver.torch.sync(ps, whole)
    again = pserver.torch.Optimizer(ps, model.parameters())
    again.step()
