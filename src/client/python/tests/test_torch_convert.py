"""Files of ``torch.save`` as safetensors: every type bit for bit, tied weights once, and what is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest
import torch

import pserver
from pserver.torch._convert import convert
from programs import StartPython
from serving import HANG

_ALL = {
    "f64": torch.tensor([[1.5, -2.5]], dtype=torch.float64),
    "f32": torch.arange(6.0).reshape(2, 3).t(),
    "f16": torch.tensor([1.5, float("inf")], dtype=torch.float16),
    "bf16": torch.tensor([1.5, -3.0], dtype=torch.bfloat16),
    "i64": torch.tensor(2**40),
    "bool": torch.tensor([True, False, True]),
    "u8": torch.tensor([0, 255], dtype=torch.uint8),
    "empty": torch.zeros(0, 3),
}


def _read(path: Path) -> Tuple[Dict[str, Any], bytes]:
    """The header of a safetensors file, and the bytes after it."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _element_bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() > 0 else b""


@pytest.mark.parametrize("nested", [None, "state_dict", "model"])
def test_every_type_is_kept(tmp_path: Path, nested: Any) -> None:
    source, target = tmp_path / "m.pt", tmp_path / "new" / "m.safetensors"
    wrapped: Any = {"epoch": 3, nested: _ALL}
    torch.save(_ALL if nested is None else wrapped, source)
    assert convert(str(source), str(target)) == (8, 16 + 24 + 4 + 4 + 8 + 3 + 2)
    header, data = _read(target)
    assert header.pop("__metadata__") == {"format": "pt"}
    assert set(header) == set(_ALL)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["shape"] == list(_ALL[name].shape)
        assert data[begin:end] == _element_bytes(_ALL[name])
    assert list(tmp_path.glob("new/*")) == [target]


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    source, target = tmp_path / "m.pt", tmp_path / "m.safetensors"
    weight = torch.ones(2, 2)
    torch.save({"encoder": weight, "decoder": weight, "other": weight.clone()}, source)
    convert(str(source), str(target))
    header, _ = _read(target)
    assert header.pop("__metadata__") == {"format": "pt", "decoder": "encoder"}
    assert set(header) == {"encoder", "other"}


class _Module:
    """A class of a program, which weights_only=True does not load."""


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"w": _Module()}, pserver.errors.BadFile),
        ([torch.ones(1)], pserver.errors.BadFile),
        ({"lr": 0.1}, pserver.errors.BadFile),
        ({"w": torch.ones(1), "lr": 0.1}, pserver.errors.BadFile),
        ({"w": torch.ones(2, dtype=torch.complex64)}, pserver.errors.BadDtype),
        ({"w": torch.ones(2, 2).to_sparse()}, pserver.errors.BadDtype),
    ],
)
def test_what_is_no_state_is_refused(tmp_path: Path, content: Any, error: Any) -> None:
    source, target = tmp_path / "m.pt", tmp_path / "m.safetensors"
    torch.save(content, source)
    target.write_bytes(b"earlier")
    with pytest.raises(error):
        convert(str(source), str(target))
    assert target.read_bytes() == b"earlier"
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_a_file_that_was_cut_off_and_another_ending_are_refused(tmp_path: Path) -> None:
    source, target = tmp_path / "m.pt", tmp_path / "m.safetensors"
    torch.save(_ALL, source)
    with pytest.raises(pserver.errors.BadPath):
        convert(str(source), str(tmp_path / "m.npz"))
    source.write_bytes(source.read_bytes()[:-100])
    with pytest.raises(pserver.errors.BadFile):
        convert(str(source), str(target))
    with pytest.raises(pserver.errors.Io):
        convert(str(tmp_path / "none.pt"), str(target))


def test_the_command(tmp_path: Path, start_python: StartPython) -> None:
    source, target = tmp_path / "m.pt", tmp_path / "m.safetensors"
    torch.save(_ALL, source)
    process = start_python("-m", "pserver", "convert", str(source), str(target))
    told, _ = process.communicate(timeout=HANG)
    assert (process.returncode, told) == (0, f"wrote 8 tensors, 61 bytes: {target}\n")
    failed = start_python("-m", "pserver", "convert", str(source))
    failed.communicate(timeout=HANG)
    assert failed.returncode == 1
