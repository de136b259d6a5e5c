"""`sync` and `push_buffers` on real servers: trainers that start at once, late, or again after one has died,
and modules that do not fit the job."""

from __future__ import annotations

import threading
from typing import Any, List

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from serving import HANG  # noqa: E402
from torch_jobs import NewJob, has_state, new_job, ps, run_threads, state_of  # noqa: E402

nn: Any = torch.nn


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


def test_half_precision_is_held_as_float32(ps: pserver.Client) -> None:
    model, other = network(1).bfloat16(), network(2)
    pserver.torch.sync(ps, model)
    assert ps.pull("0.weight").dtype == np.float32
    pserver.torch.sync(ps, other)
    assert has_state(other.bfloat16(), model.state_dict())


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
