"""Proves that notes reach the journal with every kind of value, and that what no note can carry is refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import numpy as np
import pytest

import pserver
import pserver.aio
from serving import Broker, command


def _notes(broker: Broker, trainer: str) -> list[dict[str, Any]]:
    """The notes of a trainer in the journal."""
    which = ["--url", broker.url, "--job", broker.job, "--trainer", trainer]
    done = subprocess.run(
        [*command(), "log", *which, "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line["note"] for line in lines if line["verb"] == "note"]


def test_every_kind_of_value_reaches_the_journal(broker: Broker) -> None:
    with pserver.connect(broker.url, job=broker.job) as ps:
        ps.note({"loss": 0.25, "step": 12, "mark": "before", "good": True})
        ps.note({"loss": np.float32(0.5), "step": np.int64(13), "good": np.bool_(False)})
        ps.note({"loss": np.array([1.5]), "größe": "über"})
        trainer = ps.trainer
    assert _notes(broker, trainer) == [
        {"loss": 0.25, "step": 12, "mark": "before", "good": True},
        {"loss": 0.5, "step": 13, "good": False},
        {"loss": 1.5, "größe": "über"},
    ]


def test_what_is_not_finite_is_kept_as_a_word(broker: Broker) -> None:
    with pserver.connect(broker.url, job=broker.job) as ps:
        ps.note({"loss": float("nan"), "norm": float("inf"), "least": -np.inf, "step": 2**53})
        ps.note({"loss": np.float32("nan"), "norm": np.array([np.inf]), "big": 1e300})
        trainer = ps.trainer
    assert _notes(broker, trainer) == [
        {"loss": "NaN", "norm": "Infinity", "least": "-Infinity", "step": 2**53},
        {"loss": "NaN", "norm": "Infinity", "big": 1e300},
    ]


def test_with_asyncio(broker: Broker) -> None:
    async def noted() -> str:
        async with await pserver.aio.connect(broker.url, job=broker.job) as ps:
            await ps.note({"loss": 2.0})
            return ps.trainer

    assert _notes(broker, asyncio.run(noted())) == [{"loss": 2.0}]


@pytest.mark.parametrize(
    "note",
    [
        {},
        {"loss": [1.0]},
        {"step": 2**53 + 1},
        {"step": -(2**60)},
        {"step": np.int64(2**53 + 2)},
        {"step": np.array([2**62])},
        {"loss": None},
        {"loss": np.zeros(2)},
        {"": 1},
        {"x" * 129: 1},
        {"text": "a\0b"},
        {"text": "\ud800"},
        {1: 1},
        7,
    ],
)
def test_values_that_no_note_can_contain_are_refused(ps: pserver.Client, note: Any) -> None:
    with pytest.raises(pserver.errors.BadValue):
        ps.note(note)


def test_notes_that_are_too_large_are_refused(ps: pserver.Client) -> None:
    with pytest.raises(pserver.errors.TooLarge):
        ps.note({"text": "x" * 4096})
    with pytest.raises(pserver.errors.TooLarge):
        ps.note({f"e{i}": i for i in range(65)})
