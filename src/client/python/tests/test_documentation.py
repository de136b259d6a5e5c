"""Everything public has a docstring, because `make docs` makes the reference of the Python packages from them."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Iterator, Tuple

import pytest

import legion
import pserver
import pserver.aio
import pserver.diloco


def public(module: ModuleType) -> Iterator[Tuple[str, object]]:
    """What users of a module call: its functions, its classes, and the methods and properties of these."""
    for name in getattr(module, "__all__", ["connect", "AsyncClient"]):
        value = getattr(module, name)
        if not inspect.isclass(value) and not inspect.isfunction(value):
            continue
        yield name, value
        if inspect.isclass(value):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_") and (
                    inspect.isfunction(member) or isinstance(member, property)
                ):
                    yield f"{name}.{attribute}", member


@pytest.mark.parametrize("module", [pserver, pserver.aio, pserver.diloco, legion])
def test_everything_public_has_a_docstring(module: ModuleType) -> None:
    found = dict(public(module))
    assert len(found) > 3
    assert [name for name, value in found.items() if not inspect.getdoc(value)] == []


def test_every_argument_of_connect_is_described() -> None:
    text = pserver.connect.__doc__ or ""
    described = {
        name for name in inspect.signature(pserver.connect).parameters if f"``{name}``" in text
    }
    assert {"url", "job", "trainer", "timeout", "in_flight_bytes"} <= described
