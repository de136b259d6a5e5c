"""Converts files of ``torch.save`` into safetensors, which ``pserver load`` reads."""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, Mapping, Tuple

import torch

from .. import errors
from .._error import shown, unexpected
from .._files import replacing

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

#: Where checkpoints of training programs keep the state of the module.
_NESTED = ("state_dict", "model_state_dict", "model")

_ALIGNMENT = 8


def convert(source: str, target: str) -> Tuple[int, int]:
    """Writes the tensors of a file of ``torch.save`` into a safetensors file, and returns how many, and their
    bytes.

    ``source`` holds a state dictionary, or a checkpoint with one under ``state_dict``, ``model_state_dict`` or
    ``model``. It is read with ``weights_only=True``, which runs no code of the file. Tied weights are written
    once, with their other names in the metadata. Memory holds the whole file. The new file appears whole or not at
    all. Raises ``BadFile`` for a file that PyTorch cannot read so or that holds no tensors, ``BadDtype`` for a
    tensor that safetensors has no type or no layout for, ``BadPath`` for another ending of ``target``.
    """
    if not target.endswith(".safetensors"):
        raise unexpected(errors.BadPath, "target", "a path that ends in .safetensors", repr(target))
    tensors = _tensors_of(source)
    distinct, aliases = _without_aliases(tensors)
    for name, tensor in distinct.items():
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.dtype not in _DTYPES:
            received = f"{tensor.dtype}, {tensor.layout}"
            raise unexpected(errors.BadDtype, f"{source}: {name}", "plain numbers", received)
    sizes = {name: each.numel() * each.element_size() for name, each in distinct.items()}
    # Elements of 8 bytes come first, so that with the padded header all elements are aligned.
    order = sorted(distinct, key=lambda name: -distinct[name].element_size())
    fields: Dict[str, Any] = {"__metadata__": {"format": "pt", **aliases}}
    offset = 0
    for name in order:
        tensor = distinct[name]
        end = offset + sizes[name]
        fields[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    header = json.dumps(fields, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _ALIGNMENT)
    with replacing(target) as partial:
        with open(partial, "wb") as file:
            file.write(struct.pack("<Q", len(header)))
            file.write(header)
            for name in order:
                if sizes[name] > 0:
                    flat = distinct[name].detach().resolve_neg().contiguous().reshape(-1)
                    file.write(flat.view(torch.uint8).numpy().data)
    return len(distinct), offset


def main(arguments: List[str]) -> str:
    """Converts as the command line says, and returns a line that says what was written."""
    if len(arguments) != 2:
        usage = "python -m pserver convert MODEL.pt MODEL.safetensors"
        raise unexpected(errors.BadValue, "convert", usage, f"{len(arguments)} arguments")
    source, target = arguments
    count, size = convert(source, target)
    return f"wrote {count} tensors, {size} bytes: {target}"


def _tensors_of(source: str) -> Dict[str, torch.Tensor]:
    """Reads the tensors of a file by name."""
    try:
        content = torch.load(source, map_location="cpu", weights_only=True)
    except OSError as error:
        raise errors.Io(f"cannot read {source}: {error}", {"path": source}) from error
    except Exception as error:
        # PyTorch raises errors of many kinds for a file that is no such file.
        raise errors.BadFile(
            f"{source}: expected a file of torch.save that weights_only=True reads; received: {error}",
            {"path": source},
        ) from error
    nested = [key for key in _NESTED if isinstance(content, Mapping) and _holds(content.get(key))]
    state = content[nested[0]] if nested else content
    if not _holds(state):
        raise unexpected(
            errors.BadFile, source, "a dictionary of tensors by name", type(content).__name__
        )
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            received = f"{shown(name)}, a {type(value).__name__}"
            raise unexpected(errors.BadFile, source, "tensors by name", received)
    if "__metadata__" in state:
        raise unexpected(
            errors.BadName, source, "any name but the format's own key", "__metadata__"
        )
    return dict(state)


def _holds(value: Any) -> bool:
    """Whether a value is a dictionary with tensors."""
    return isinstance(value, Mapping) and any(
        isinstance(each, torch.Tensor) for each in value.values()
    )


def _without_aliases(
    tensors: Mapping[str, torch.Tensor],
) -> Tuple[Dict[str, torch.Tensor], Dict[str, str]]:
    """Separates the tensors from the other names of the same ones."""
    first: Dict[Tuple[Any, ...], str] = {}
    aliases: Dict[str, str] = {}
    for name, tensor in tensors.items():
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.numel() == 0:
            continue
        place = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        known = first.setdefault(place, name)
        if known != name:
            aliases[name] = known
    return {name: each for name, each in tensors.items() if name not in aliases}, aliases
