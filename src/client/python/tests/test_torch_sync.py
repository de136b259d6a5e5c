"""`sync` and `push_buffers` on real servers: trainers that start at once, late, or again after one has died,
and modules that do not fit the job."""

from __future__ import annotations

import threading
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from serving import HANG  # noqa: E402
from torch_jobs import NewJob, has_state, new_job, ps, run_threads, state_of  # noqa: E402

nn: Any = torch.nn
FunctionMode: Any = torch.overrides.TorchFunctionMode
inference_mode: Any = torch.inference_mode


def network(seed: int, width: int = 4) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.Linear(width, 2))


def test_trainers_that_begin_at_once_get_the_values_of_one(new_job: NewJob) -> None:
    job = new_job()
    models = [network(seed) for seed in range(4)]
    given = [state_of(model) for model in models]
    selected: List[int] = []

    def begin(place: int) -> None:
        with job.connect(f"trainer-{place}") as ps:
            if pserver.torch.sync(ps, models[place], optimizer="adam", learning_rate=0.1):
                selected.append(place)

    run_threads(begin, 4)
    assert len(selected) == 1
    assert all(has_state(model, given[selected[0]]) for model in models)


def test_the_job_holds_the_names_of_state_dict(ps: pserver.Client) -> None:
    model = network(1).double()
    pserver.torch.sync(ps, model, learning_rate=0.1)
    infos = {info.name: info for info in ps.list_params()}
    state = model.state_dict()
    assert sorted(infos) == sorted(state)
    for name, tensor in state.items():
        assert infos[name].shape == tuple(tensor.shape)
        np.testing.assert_array_equal(ps.pull(name), tensor.numpy())


def test_a_late_trainer_gets_the_present_values(new_job: NewJob) -> None:
    job = new_job()
    first, late = network(1), network(2)
    with job.connect("first") as ps:
        assert pserver.torch.sync(ps, first, learning_rate=0.5)
        ps.send_grads({"0.weight": np.ones((4, 3), np.float32)})
        ps.push("1.running_mean", np.full(4, 3, np.float32), 0.0, 1.0)
        with job.connect("late") as other:
            assert not pserver.torch.sync(other, late)
    assert torch.equal(late[0].weight, first[0].weight - 0.5)
    assert torch.equal(late[1].running_mean, torch.full((4,), 3.0))
    assert torch.equal(late[2].weight, first[2].weight)


def test_a_selected_trainer_that_dies_is_replaced(new_job: NewJob) -> None:
    job = new_job()
    dead, model = job.connect("dead"), network(1)
    assert dead.begin_init()
    dead.init_param("0.weight", np.zeros((4, 3), np.float32))
    before = model[0].weight.detach().clone()
    result: List[bool] = []

    def wait() -> None:
        with job.connect("next") as ps:
            result.append(pserver.torch.sync(ps, model, timeout=HANG))

    waiting = threading.Thread(target=wait)
    waiting.start()
    dead.close()
    waiting.join(HANG)
    assert result == [True]
    assert torch.equal(model[0].weight, before)


def test_every_tensor_that_does_not_fit_is_named(ps: pserver.Client) -> None:
    pserver.torch.sync(ps, network(1, width=4))
    wider = network(2, width=5)
    before = state_of(wider)
    with pytest.raises(pserver.BadShape) as caught:
        pserver.torch.sync(ps, wider)
    for name in ("0.weight", "0.bias", "1.running_var", "2.weight"):
        assert f"'{name}'" in str(caught.value)
    assert "2.bias" not in str(caught.value)
    assert "(4, 3) in the job, (5, 3) in the module" in str(caught.value)
    assert has_state(wider, before)
    with pytest.raises(pserver.BadDtype, match="float32 in the job, float64 in the module"):
        pserver.torch.sync(ps, network(1).double())
    with pytest.raises(pserver.UnknownParameter, match="'3.bias' is not in the job"):
        pserver.torch.sync(ps, network(1).append(nn.Linear(2, 1)))


def tied() -> Any:
    """A module whose first name of the tied weight is not the first in the alphabet."""
    torch.manual_seed(1)
    model = nn.ModuleDict({"embed": nn.Embedding(6, 4), "a_head": nn.Linear(4, 6, bias=False)})
    model["a_head"].weight = model["embed"].weight
    return model


def step(model: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    model["a_head"](model["embed"](torch.arange(6))).sum().backward()
    optimizer.step()


def test_a_job_may_hold_a_tied_weight_under_any_of_its_names(new_job: NewJob) -> None:
    job = new_job()
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    with job.connect("loads") as ps:
        # What `save_model` of safetensors keeps of the names, and so `pserver load` gives to the job.
        assert ps.begin_init()
        ps.init_params({"a_head.weight": values}, lambda name: {"learningRate": 0.5})
        ps.finish_init()
    model = tied()
    with job.connect("trains") as ps:
        assert not pserver.torch.sync(ps, model)
        np.testing.assert_array_equal(model["embed"].weight.detach().numpy(), values)
        step(model, pserver.torch.Optimizer(ps, model.parameters()))
        pserver.torch.push_buffers(ps, model)
        after = ps.pull("a_head.weight")
    assert not np.array_equal(after, values)
    np.testing.assert_array_equal(model["embed"].weight.detach().numpy(), after)


def test_half_precision_that_is_trained_is_held_as_float32(ps: pserver.Client) -> None:
    model, other = network(1).bfloat16(), network(2)
    model[0].weight.requires_grad_(False)
    pserver.torch.sync(ps, model)
    assert ps.pull("0.bias").dtype == np.float32
    # Nothing rounds what is not updated.
    assert ps.pull("0.weight").dtype == pserver.bfloat16
    pserver.torch.sync(ps, other.bfloat16())
    assert has_state(other, model.state_dict())


class Kinds(nn.Module):  # type: ignore[misc]
    """A layer with buffers of every kind that is not averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("mask", torch.tensor([True, False]))
        self.register_buffer("codes", torch.tensor([0, 255], dtype=torch.uint8))
        self.scale = nn.Parameter(torch.tensor([-128, 127], dtype=torch.int8), requires_grad=False)


def test_bools_and_integers_of_8_bits_are_held_as_they_are(ps: pserver.Client) -> None:
    model, other = Kinds(), Kinds()
    pserver.torch.sync(ps, model, optimizer="sgd", learning_rate=0.1)
    assert [ps.pull(name).dtype for name in ("mask", "codes", "scale")] == ["?", "u1", "i1"]
    optimizer = pserver.torch.Optimizer(ps, model.parameters())
    model.layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    model.mask.logical_not_()
    model.codes.fill_(7)
    pserver.torch.push_buffers(ps, model)
    assert not pserver.torch.sync(ps, other)
    assert has_state(other, model.state_dict())
    assert other.mask.tolist() == [False, True] and other.scale.tolist() == [-128, 127]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_job_that_holds_half_floats_is_adopted_and_trained(
    ps: pserver.Client, dtype: Any
) -> None:
    values = network(3).to(dtype).state_dict()
    if ps.begin_init():
        ps.init_params(values, optimizer="sgd", learning_rate=0.5)
        ps.finish_init()
    model = network(1).to(dtype)
    assert not pserver.torch.sync(ps, model)
    assert has_state(model, values)
    optimizer = pserver.torch.Optimizer(ps, model.parameters())
    # PyTorch multiplies no float16 on every processor.
    gradient = model[0].bias.grad = torch.tensor([0.1, -0.3, 7.0, 1e-3], dtype=dtype)
    optimizer.step()
    # In float32, rounded once.
    expected = (values["0.bias"].float() - 0.5 * gradient.float()).to(dtype)
    assert torch.equal(model[0].bias, expected)
    with pytest.raises(pserver.BadDtype, match=f"{str(dtype)[6:]} in the job, float32 in"):
        pserver.torch.sync(ps, network(1))


def test_each_parameter_can_have_a_configuration_of_its_own(ps: pserver.Client) -> None:
    model = network(1)
    before = state_of(model)

    def config(name: str, tensor: Any) -> Any:
        return {"optimizer": "sgd", "learning_rate": 1.0 if tensor.dim() > 1 else 2.0}

    pserver.torch.sync(ps, model, config)
    names = ["0.weight", "0.bias"]
    ps.send_grads({name: np.ones(before[name].shape, np.float32) for name in names})
    pserver.torch.sync(ps, model)
    assert torch.equal(model[0].weight, before["0.weight"] - 1)
    assert torch.equal(model[0].bias, before["0.bias"] - 2)


def test_buffers_are_given_to_the_job_when_asked(ps: pserver.Client) -> None:
    model, other = network(1), network(2)
    pserver.torch.sync(ps, model)
    for _ in range(3):
        model(torch.randn(8, 3))
    pserver.torch.push_buffers(ps, model)
    pserver.torch.sync(ps, other)
    assert has_state(other, model.state_dict()) and other[1].num_batches_tracked == 3
    mean = model[1].running_mean.clone()
    model[1].running_mean.fill_(1)
    pserver.torch.push_buffers(ps, model, weight=0.25)
    pserver.torch.sync(ps, other)
    torch.testing.assert_close(other[1].running_mean, 0.75 * mean + 0.25)


def test_buffers_with_infinities_are_held_and_overwritten(ps: pserver.Client) -> None:
    model = nn.Linear(2, 2)
    mask = torch.full((3, 3), float("-inf")).triu(1)
    model.register_buffer("mask", mask.clone())
    pserver.torch.sync(ps, model)
    pserver.torch.push_buffers(ps, model)
    pserver.torch.push_buffers(ps, model, weight=0.5)
    assert torch.equal(torch.from_numpy(ps.pull("mask")), mask)
    model.mask.zero_()
    pserver.torch.sync(ps, model)
    assert torch.equal(model.mask, mask)


def test_a_saved_model_is_the_modules(new_job: NewJob) -> None:
    model = network(1)
    job = new_job()
    with job.connect("one") as ps:
        pserver.torch.sync(ps, model)
        ps.save("model.npz")
    saved = np.load(job.models / "model.npz")
    other = network(2)
    other.load_state_dict({name: torch.from_numpy(saved[name]) for name in saved.files})
    assert has_state(other, model.state_dict())


class Broken(nn.Module):  # type: ignore[misc]
    """A layer with a buffer that may be of any kind."""

    def __init__(self, buffer: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("buffer", buffer)


def test_an_expanded_buffer_is_held_and_adopted(ps: pserver.Client) -> None:
    first = Broken(torch.arange(6).expand(4, -1))
    assert pserver.torch.sync(ps, first, learning_rate=0.1)
    assert ps.pull("buffer").tolist() == [[0, 1, 2, 3, 4, 5]] * 4
    ps.set_params({"buffer": np.tile(np.arange(6) + 7, (4, 1))})
    other = Broken(torch.zeros(1).long().expand(4, 6))
    pserver.torch.sync(ps, first)
    assert first.buffer.stride() == (0, 1)
    assert first.buffer.tolist() == [[7, 8, 9, 10, 11, 12]] * 4
    pserver.torch.sync(ps, other.to(torch.float32))


def inference_layer() -> Any:
    with inference_mode():
        return nn.Linear(3, 2)


def same_memory() -> Any:
    storage = torch.zeros(8)
    module = nn.Module()
    module.one = nn.Parameter(storage[:5])
    module.two = nn.Parameter(storage[3:])
    return module


REFUSED: Dict[str, Tuple[Any, str]] = {
    "overlapping windows": (
        lambda: Broken(torch.arange(6.0).unfold(0, 3, 1)),
        "'buffer' is a view",
    ),
    "an expanded parameter": (
        lambda: nn.ParameterDict({"w": nn.Parameter(torch.zeros(1).expand(3))}),
        "'w' is a view whose elements share memory",
    ),
    "of inference mode": (inference_layer, "'weight' is of the inference mode"),
    "parts of one storage": (same_memory, "'two' shares memory with 'one'"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_written_is_refused_before_the_job_is_asked(
    ps: pserver.Client, kind: str
) -> None:
    make, told = REFUSED[kind]
    with pytest.raises(pserver.BadValue, match=told):
        pserver.torch.sync(ps, make())
    assert ps.status().state == "uninitialized"


class OnMeta(FunctionMode):  # type: ignore[misc]
    """Makes tensors on another device than the CPU, as `torch.set_default_device` of PyTorch 2 does."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if function is torch.empty and "device" not in given:
            given = {**given, "device": "meta"}
        return function(*args, **given)


def test_copies_are_in_cpu_memory_whatever_the_default_device_is(ps: pserver.Client) -> None:
    module = nn.Linear(3, 1).bfloat16()
    before = state_of(module)
    with OnMeta():
        assert torch.empty(1).is_meta
        pserver.torch.sync(ps, module, learning_rate=0.1)
    assert has_state(module, before)


def raising(name: str, tensor: Any) -> Any:
    raise ZeroDivisionError(name)


@pytest.mark.parametrize(
    "config, error",
    [
        (raising, ZeroDivisionError),
        (lambda name, tensor: {"optimizer": object()}, pserver.BadConfig),
        (lambda name, tensor: {"optimizer": "adamm"}, pserver.BadConfig),
        ({"optimiser": "adam"}, pserver.BadConfig),
    ],
)
def test_a_selected_trainer_that_fails_lets_another_one_initialize(
    new_job: NewJob, config: Any, error: Any
) -> None:
    job = new_job()
    with job.connect("a") as a, job.connect("b") as b:
        with pytest.raises(error):
            pserver.torch.sync(a, network(1), config)
        assert a.status().state == "uninitialized"
        assert pserver.torch.sync(b, network(2), optimizer="adam", learning_rate=0.1)
        model = network(1)
        assert not pserver.torch.sync(a, model)
        assert has_state(model, network(2).state_dict())


def test_one_that_waits_is_selected_when_another_gives_up(new_job: NewJob) -> None:
    job = new_job()
    result: List[bool] = []

    def wait() -> None:
        with job.connect("next") as ps:
            result.append(pserver.torch.sync(ps, network(1), learning_rate=0.1, timeout=HANG))

    with job.connect("first") as first:
        assert first.begin_init()
        waiting = threading.Thread(target=wait)
        waiting.start()
        first.init_param("0.weight", np.zeros((4, 3), np.float32))
        first.abort_init()
        waiting.join(HANG)
        assert result == [True]
        with pytest.raises(pserver.NotSelected):
            first.abort_init()


@pytest.mark.parametrize(
    "keywords, meant",
    [
        ({"lr": 0.1}, "learningRate"),
        ({"optimiser": "adam"}, "optimizer"),
        ({"weight_decay": 0.1}, "l2"),
    ],
)
def test_keywords_of_other_libraries_are_recognized(
    ps: pserver.Client, keywords: Any, meant: str
) -> None:
    with pytest.raises(pserver.BadConfig, match=f"did you mean {meant}"):
        pserver.torch.sync(ps, nn.Linear(3, 1), **keywords)


def compiled(module: Any) -> Any:
    """The module as `torch.compile` gives it; PyTorch 1 has none, and its wrapper is made here."""
    if hasattr(torch, "compile"):
        return torch.compile(module, backend="eager")
    wrapper = nn.Module()
    wrapper._orig_mod = module
    return wrapper


def half_wrapped(module: Any) -> Any:
    return nn.Sequential(compiled(module[0]), nn.DataParallel(module[1]), module[2])


@pytest.mark.parametrize(
    "wrap",
    [compiled, nn.DataParallel, lambda module: nn.DataParallel(compiled(module)), half_wrapped],
)
def test_wrappers_do_not_change_names(ps: pserver.Client, wrap: Any) -> None:
    model, other = network(1), network(2)
    wrapped = wrap(model)
    assert pserver.torch.sync(ps, wrapped, learning_rate=0.5)
    assert [info.name for info in ps.list_params()] == sorted(model.state_dict())
    assert not pserver.torch.sync(ps, other)
    assert has_state(other, model.state_dict())
    for parameters in (wrapped.parameters(), wrapped.named_parameters()):
        optimizer = pserver.torch.Optimizer(ps, parameters)
        before = model[0].bias.detach().clone()
        model[0].bias.grad = torch.ones(4)
        optimizer.step()
        assert torch.equal(model[0].bias, before - 0.5)


class Filtered(nn.Module):  # type: ignore[misc]
    """A module that saves only a part of what it trains, under another name, as adapters do."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(3, 3)
        self.adapter = nn.Linear(3, 1)

    def state_dict(self, *arguments: Any, **keywords: Any) -> Any:
        whole = super().state_dict(*arguments, **keywords)
        kept = whole.items()
        return {k.replace("adapter.", ""): v.clone() for k, v in kept if "adapter" in k}


def test_what_state_dict_leaves_out_is_in_the_job(ps: pserver.Client) -> None:
    first, second = Filtered(), Filtered()
    pserver.torch.sync(ps, first, learning_rate=0.5)
    pserver.torch.sync(ps, second)
    names = [name for name, _ in first.named_parameters()]
    assert [info.name for info in ps.list_params()] == sorted(names)
    found = dict(second.named_parameters())
    assert all(torch.equal(value, found[name]) for name, value in first.named_parameters())
    before = first.base.weight.detach().clone()
    optimizer = pserver.torch.Optimizer(ps, first.parameters())
    first.base.weight.grad = torch.ones(3, 3)
    optimizer.step()
    assert torch.equal(first.base.weight, before - 0.5)
