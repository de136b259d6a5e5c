"""A learner of the storm: trains a tiny model until it is killed, gets SIGTERM or has had so many rounds, and writes down
what it was told.

    python3 storm_learner.py SETTINGS

SETTINGS is JSON; see `startLearner` in bench/storm/storm-place.ts. The log has one JSON object a line, each written by one call,
so that a kill leaves whole lines: `own` with the checksum of its first values of each fragment, `begun` before a
contribution is sent, `acknowledged` with the round that it counts in, `adopted` with the checksum of what training goes on
with, `steps` once in each period, and `account` at the end.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import sys
import time
from typing import Any, Dict, Mapping, Optional, Sequence

import numpy as np

import pserver
from pserver.diloco import Learner, balanced_fragments

#: Seconds in which a broker and a host must be found: a learner may be started while there are none.
FIND_TIMEOUT = 120.0

Arrays = Dict[str, Any]


class Log:
    """Lines about one process of a learner, appended to a file."""

    def __init__(self, path: str, life: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._life = life

    def write(self, event: str, **entries: Any) -> None:
        line = {"event": event, "life": self._life, "timeMs": time.time() * 1e3, **entries}
        os.write(self._file, (json.dumps(line) + "\n").encode())


class Recorded:
    """A client that notes each contribution before it is sent, and what was answered."""

    def __init__(self, ps: pserver.Client, log: Log) -> None:
        self._ps = ps
        self._log = log
        #: Inner steps of the learner so far.
        self.at = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ps, name)

    def contribute(self, fragment: str, values: Mapping[str, Any], **work: Any) -> Optional[int]:
        what = {"fragment": fragment, **{key: work[key] for key in ("base", "steps", "tokens")}}
        self._log.write("begun", **what, at=self.at)
        round_ = self._ps.contribute(fragment, values, **work)
        self._log.write("acknowledged", **what, round=round_)
        return round_


def checksum(arrays: Mapping[str, Any], names: Sequence[str]) -> str:
    """The SHA-256 of the elements of these arrays, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def train(settings: Mapping[str, Any], log: Log) -> None:
    # A learner that is started again has other first values and makes other steps.
    random = np.random.default_rng([settings["seed"], settings["life"]])
    shape = tuple(settings["shape"])
    first = {
        f"w{i}": random.normal(size=shape).astype(np.float32) for i in range(settings["tensors"])
    }
    fragments: Dict[str, list[str]] = {}
    for name, fragment in balanced_fragments(first, settings["fragments"]).items():
        fragments.setdefault(fragment, []).append(name)
    log.write("own", sums={name: checksum(first, names) for name, names in fragments.items()})

    def adopted(fragment: str, version: int, arrays: Arrays) -> None:
        found = checksum(arrays, fragments[fragment])
        log.write("adopted", fragment=fragment, version=version, sum=found, at=recorded.at)

    ps = pserver.connect(
        settings["url"],
        job=settings["job"],
        trainer=settings["trainer"],
        connect_timeout=FIND_TIMEOUT,
    )
    recorded: Any = Recorded(ps, log)
    with (
        ps,
        Learner(
            recorded,
            first,
            fragments=settings["fragments"],
            sync_every=settings["syncEvery"],
            # Differs from life to life, so that no two contributions of a trainer are alike.
            tokens=100 + settings["life"],
            encoding=settings["encoding"],
            timeout=settings["timeout"],
        ) as learner,
    ):
        params = learner.params
        versions = learner.versions
        for fragment, version in versions.items():
            adopted(fragment, version, params)
        rounds = settings.get("rounds", 0)
        while not (ended or rounds and min(versions.values()) >= rounds):
            time.sleep(settings["stepTime"])
            noise = np.float32(0.01) * random.normal(size=shape).astype(np.float32)
            params = learner.step({name: value - noise for name, value in params.items()})
            recorded.at = learner.steps
            present = learner.versions
            for fragment, version in present.items():
                if version != versions[fragment]:
                    adopted(fragment, version, params)
            versions = present
            if learner.steps % settings["syncEvery"] == 0:
                log.write("steps", steps=learner.steps)
        account = ps.fragments().account
        log.write("account", **dataclasses.asdict(account))


ended = False


def end(_number: int, _frame: object) -> None:
    global ended
    ended = True


signal.signal(signal.SIGTERM, end)
settings = json.loads(sys.argv[1])
train(settings, Log(settings["log"], settings["life"]))
