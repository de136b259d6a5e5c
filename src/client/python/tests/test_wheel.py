"""The installed wheel brings everything that it needs but numpy, whatever the system has."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from serving import HANG, ROOT, Broker

pytestmark = pytest.mark.skipif(
    sys.prefix == sys.base_prefix, reason="needs a virtual environment with the wheel"
)

_ROUND_TRIP = """
import sys
import numpy as np
import pserver

with pserver.connect(sys.argv[1], job=sys.argv[2], trainer="installed") as ps:
    assert ps.begin_init()
    ps.init_param("w", np.arange(5, dtype=np.float32))
    ps.finish_init()
    ps.push("w", np.ones(5, dtype=np.float32), 2.0, 1.0)
    print(ps.pull("w").tolist())
with open("/proc/self/maps") as maps:
    print("\\n".join({line.split()[5] for line in maps if ".so" in line}))
"""


def test_makes_a_round_trip_with_the_libraries_that_it_carries(broker: Broker, job: str) -> None:
    # No module but the installed ones, no program on the PATH; variables only to find the token.
    names = ("HOME", "XDG_STATE_HOME")
    variables = {name: os.environ[name] for name in names if name in os.environ}
    command = [sys.executable, "-I", "-c", _ROUND_TRIP, broker.url, job]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=HANG)
    assert ended.returncode == 0, ended.stderr
    values, *mapped = ended.stdout.splitlines()
    assert json.loads(values) == [1.0, 3.0, 5.0, 7.0, 9.0]
    for name in ("libpserver", "libnats", "libprotobuf-c"):
        (path,) = [path for path in mapped if Path(path).name.startswith(name)]
        assert path.startswith(sys.prefix)
    crypto = [path for path in mapped if Path(path).name.startswith("libcrypto")]
    assert any(path.startswith(sys.prefix) for path in crypto)


def test_has_the_version_of_the_project_and_needs_numpy_alone() -> None:
    installed = importlib.metadata.distribution("nats-pserver")
    assert installed.version == json.loads((ROOT / "package.json").read_text())["version"]
    requirements = installed.requires or []
    assert [name.startswith("numpy") for name in requirements] == [True]


def test_carries_licences_and_types() -> None:
    files = [str(path) for path in importlib.metadata.files("nats-pserver") or []]
    # Debian 13 calls the package libssl3t64.
    for part in ("licenses/LICENSE", "licenses/carried/libssl3", "pserver/py.typed"):
        assert any(part in path for path in files), part
