"""docs/guides/python.md names every call, every argument and the built-in base classes of errors; the
README shows the program examples/python/minimal.py."""

from __future__ import annotations

import builtins
import inspect
import re

import pytest
from serving import ROOT

import legion
import pserver

TEXT = (ROOT / "docs" / "guides" / "python.md").read_text()


def documented(text: str) -> set[str]:
    """The words that a text sets as code within a line."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))


@pytest.mark.parametrize("client", [pserver.Client, legion.Client])
def test_every_call_is_there(client: type) -> None:
    public = {name for name in vars(client) if not name.startswith("_")}
    assert public - documented(TEXT) == set()


def test_every_argument_of_connect_is_there() -> None:
    assert set(inspect.signature(pserver.connect).parameters) - documented(TEXT) == set()


def test_errors_are_of_the_classes_that_it_names() -> None:
    section = TEXT.split("### Errors")[1].split("###")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    told = {base: documented(row) & set(vars(pserver)) for base, row in rows.items()}
    told["OSError"] |= told["TimeoutError"] | told["ConnectionError"] | told["PermissionError"]
    errors = {*pserver.errors.__all__, "LibraryError"}
    for base, names in told.items():
        kind = getattr(builtins, base)
        assert names == {name for name in errors if issubclass(getattr(pserver, name), kind)}


def test_the_program_of_the_readme_is_the_example() -> None:
    example = (ROOT / "examples" / "python" / "minimal.py").read_text()
    program = example.split('"""\n\n', 1)[1]
    assert f"```python\n{program}```" in (ROOT / "README.md").read_text()
