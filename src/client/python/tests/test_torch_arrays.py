"""PyTorch tensors as arguments and as `out`, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pserver
from pserver._arrays import to_array, to_out
from programs import run_python
from serving import HANG, Broker, Unique


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0),
        torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
        torch.arange(24).reshape(4, 6)[::2, 1:],
        torch.tensor(1.5, dtype=torch.float64),
        torch.zeros(0, 3),
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2, 2)),
        torch.ones(1).expand(4, 4),
        torch.ones(2, dtype=torch.float16),
        torch.tensor([True, False]),
        torch.tensor([0, 255], dtype=torch.uint8),
        torch.tensor([-128, 127], dtype=torch.int8),
    ],
)
def test_tensors_are_taken(tensor: Any) -> None:
    array = to_array(tensor, "w")
    expected = tensor.detach().numpy()
    assert array.dtype == expected.dtype and array.shape == expected.shape
    np.testing.assert_array_equal(array, expected)
    if tensor.is_contiguous() and array.size > 0:
        assert array.ctypes.data == tensor.data_ptr()


@pytest.mark.parametrize(
    ("tensor", "error", "text"),
    [
        (torch.ones(2, dtype=torch.int16), pserver.BadDtype, "torch.int16"),
        (torch.ones(2, dtype=torch.complex64), pserver.BadDtype, "torch.complex64"),
        (torch.ones(2, device="meta"), pserver.Error, "meta"),
        (torch.ones(2).to_sparse(), pserver.Error, "torch.Tensor"),
    ],
)
def test_others_are_refused(tensor: Any, error: type[pserver.Error], text: str) -> None:
    with pytest.raises(error, match=text):
        to_array(tensor, "w")


@pytest.mark.parametrize("transposed", [False, True])
def test_bfloat16_is_viewed_by_its_bits(transposed: bool) -> None:
    tensor = torch.nn.Parameter(torch.tensor([[1.5, -2.0, 3.0], [0.0, -0.0, 1e-40]]).bfloat16())
    given = tensor.t() if transposed else tensor
    array = to_array(given, "w")
    bits = given.detach().contiguous().view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(array.view(np.uint16), bits)
    assert array.dtype == pserver.bfloat16
    if transposed:
        return
    assert array.ctypes.data == tensor.data_ptr()
    to_out(tensor, "out").view(np.uint16)[...] = 0x3F80
    assert tensor.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_tensors_are_read_into() -> None:
    tensor = torch.zeros(2, 3)
    parameter = torch.nn.Parameter(torch.zeros(2, 3))
    for each in (tensor, parameter):
        to_out(each, "out")[...] = 4
        assert each.tolist() == [[4, 4, 4], [4, 4, 4]]
    for wrong in (tensor.T, torch.zeros(2, dtype=torch.int16), torch.zeros(2, device="meta")):
        with pytest.raises(pserver.Error, match="^out: expected"):
            to_out(wrong, "out")


def test_a_round_trip(broker: Broker, unique: Unique) -> None:
    name = unique("w")
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    with pserver.connect(broker.url, job=broker.job) as ps:
        ps.create_if_not_already_created(name, weight)
        ps.push(name, torch.ones(3, 2).T, 1, 1)
        ps.pull(name, out=weight)
    assert torch.equal(weight.detach(), torch.arange(6.0).reshape(2, 3) + 1)


class Pulling(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """A data set that reads a parameter for each item, in the worker process of the loader."""

    def __init__(self, ps: pserver.Client, name: str) -> None:
        self._ps = ps
        self._name = name

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self._ps.pull(self._name)) + index


# Only one worker is spawned: each imports PyTorch, which is slow.
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("spawn", 1)])
def test_in_the_workers_of_a_data_loader(
    broker: Broker, unique: Unique, method: str, workers: int
) -> None:
    name = unique("w")
    with pserver.connect(broker.url, job=broker.job) as ps:
        ps.create_if_not_already_created(name, np.zeros(2))
        loader: Any = torch.utils.data.DataLoader(
            Pulling(ps, name), num_workers=workers, multiprocessing_context=method, timeout=HANG
        )
        assert [float(batch[0, 0]) for batch in loader] == [0, 1, 2, 3]
        ps.push(name, np.ones(2), 1, 1)
        assert ps.pull(name).tolist() == [1, 1]


def test_torch_is_not_imported_by_the_package() -> None:
    program = "import sys, pserver, pserver.aio\nassert 'torch' not in sys.modules"
    assert run_python(program).returncode == 0
