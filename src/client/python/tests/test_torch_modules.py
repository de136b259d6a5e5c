"""Which tensors of a module a job holds, and how their memory is read and written. Needs no server."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
from pserver.torch._modules import module_tensors  # noqa: E402
from pserver.torch._tensors import HostMemory  # noqa: E402
from programs import run_python  # noqa: E402

nn: Any = torch.nn


def test_without_pytorch_the_import_says_what_to_do() -> None:
    program = "import sys; sys.modules['torch'] = None; import pserver.torch"
    ended = run_python(program)
    assert ended.returncode == 1
    assert "ImportError: pserver.torch: expected PyTorch 1.13 or newer" in ended.stderr


def test_names_are_those_of_state_dict() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    assert list(module_tensors(module)) == list(module.state_dict())


def test_a_tied_weight_is_held_once() -> None:
    module = nn.ModuleDict({"input": nn.Embedding(5, 3), "output": nn.Linear(3, 5, bias=False)})
    module["output"].weight = module["input"].weight
    assert list(module_tensors(module)) == ["input.weight"]


def test_a_tied_weight_has_the_name_that_is_known() -> None:
    module = nn.ModuleDict({"input": nn.Embedding(5, 3), "output": nn.Linear(3, 5, bias=False)})
    module["output"].weight = module["input"].weight
    module["again"] = module["input"]
    module["own"] = nn.Linear(2, 2, bias=False)
    for tied in ("input.weight", "output.weight", "again.weight"):
        held = module_tensors(module, ["own.weight", "other", tied])
        assert list(held) == [tied, "own.weight"]
        assert held[tied] is module["input"].weight
    assert list(module_tensors(module, ["other"])) == ["input.weight", "own.weight"]
    both = ["again.weight", "input.weight"]
    assert list(module_tensors(module, both)) == ["input.weight", "own.weight"]


def test_buffers_that_no_job_can_hold_are_left_out() -> None:
    module = nn.Linear(2, 2)
    module.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    module.register_buffer("short", torch.ones(2, dtype=torch.int16))
    module.register_buffer("empty", torch.ones(0))
    module.register_buffer("cache", torch.ones(2), persistent=False)
    assert list(module_tensors(module)) == ["weight", "bias", "mask"]


def test_every_refused_tensor_is_named() -> None:
    module = nn.Module()
    module.lazy = nn.LazyLinear(2)
    module.phase = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    module.far = nn.Linear(2, 2, bias=False, device="meta")
    module.first = nn.Linear(2, 2, bias=False)
    module.second = nn.Linear(2, 2, bias=False)
    module.second.weight.data = module.first.weight.data
    with pytest.raises(pserver.BadValue) as caught:
        module_tensors(module)
    message = str(caught.value)
    for part in ("'lazy.weight'", "'phase' is of complex64", "'far.weight'", "'second.weight'"):
        assert part in message
    assert "first.weight" in message and "'first.weight' is" not in message


def test_a_module_without_parameters_is_refused() -> None:
    with pytest.raises(pserver.BadValue, match="at least one parameter"):
        module_tensors(nn.ReLU())


@pytest.mark.parametrize(
    "tensor",
    [torch.arange(6.0).reshape(2, 3), torch.arange(3.0, dtype=torch.float64), torch.tensor(4)],
    ids=["float32", "float64", "a scalar"],
)
def test_memory_is_the_tensors_own(tensor: Any) -> None:
    memory = HostMemory()
    assert memory.read(tensor).ctypes.data == tensor.data_ptr()
    memory.receive(tensor)[...] = 7
    memory.received(tensor)
    assert torch.equal(tensor, torch.full_like(tensor, 7))


@pytest.mark.parametrize(
    "tensor",
    [torch.arange(6.0).reshape(2, 3).t(), torch.arange(3.0).bfloat16(), torch.arange(3.0).half()],
    ids=["other strides", "bfloat16", "float16"],
)
def test_tensors_that_the_server_holds_differently_are_copied(tensor: Any) -> None:
    memory = HostMemory()
    values = memory.read(tensor)
    assert values.dtype == "float32" and values.tolist() == tensor.tolist()
    memory.receive(tensor)[...] = 7.5
    memory.received(tensor)
    assert torch.equal(tensor, torch.full_like(tensor, 7.5))
    tensor.fill_(1)
    assert memory.read(tensor).ctypes.data == values.ctypes.data


def test_autograd_notices_new_values() -> None:
    weight = nn.Parameter(torch.ones(2))
    loss = (weight * weight).sum()
    memory = HostMemory()
    memory.receive(weight)[...] = 5
    memory.received(weight)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
