"""The broker and the hosts of the tests: processes of the `pserver` command, compiled by `make build`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[4]

COMMAND = ROOT / "dist" / "pserver.js"

#: Seconds after which a wait is taken for a hang.
HANG = 400.0

#: Beginnings of variables that could lead a test to another server than its own.
_OUTSIDE = ("PSERVER_URL", "PSERVER_JOB", "PSERVER_TRAINER", "NATS_", "XDG_", "legion_server_")


def command() -> list[str]:
    """The `pserver` command of this checkout, to be followed by its arguments."""
    node = shutil.which("node")
    if node is None or not COMMAND.exists():
        raise RuntimeError(f"expected node on the PATH and {COMMAND}: run make build")
    return [node, str(COMMAND)]


def clean_environment() -> dict[str, str]:
    """The variables of this process, without those that say where a server is."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OUTSIDE)}


class Process:
    """A running `pserver up` or `pserver host`; `ready` is the first line it writes with `--json`."""

    def __init__(self, arguments: list[str], directory: Path) -> None:
        """Starts it in `directory` and waits until it serves.

        Raises RuntimeError with what it wrote to standard error if it ends before that.
        """
        self._errors = directory / f"{arguments[0]}-errors.txt"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command(), *arguments, "--json"],
                cwd=directory,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.ready: dict[str, Any] = json.loads(self._first_line(arguments))

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Ends it by SIGTERM, which it handles; does nothing if it has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it by SIGKILL, like a crash; does nothing if it has ended."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            self._process.wait(HANG)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            assert self._process.stdout is not None
            self._process.stdout.close()

    def _first_line(self, arguments: list[str]) -> str:
        assert self._process.stdout is not None
        limit = threading.Timer(HANG, self._process.kill)
        limit.start()
        line = self._process.stdout.readline()
        limit.cancel()
        if line == "":
            self._process.wait(HANG)
            told = self._errors.read_text()
            raise RuntimeError(f"pserver {' '.join(arguments)} ended before it served: {told}")
        return line


#: Starts one more host of a job with options of `pserver host`; it ends with the test.
StartHost = Callable[..., Process]

#: Makes a name of a parameter that no other test uses.
Unique = Callable[[str], str]


class Broker:
    """A broker on a free port that keeps its data in a directory of the tests."""

    def __init__(self, directory: Path, *options: str) -> None:
        """Starts it together with one host of the job `job`; `options` are those of `pserver up`."""
        #: Name of the job that the host started with the broker serves.
        self.job = "shared"
        self.directory = directory
        store = str(directory / "store")
        self._up = Process(
            ["up", "--port", "0", "--store", store, "--job", self.job, *_SMALL, *options], directory
        )
        self.url: str = self._up.ready["url"]
        #: Where the host of `job` saves models.
        self.model_directory = Path(self._up.ready["modelDirectory"])

    @property
    def pid(self) -> int:
        """The process of the broker itself."""
        return int(self._up.ready["brokers"][0]["pid"])

    def host(self, job: str, *options: str) -> Process:
        """Starts one more host of a job; `options` are those of `pserver host`. To be stopped by the caller."""
        models = str(self.directory / "models" / job)
        return Process(
            ["host", "--url", self.url, "--job", job, "--model-dir", models, *_SMALL, *options],
            self.directory,
        )

    def stop(self) -> None:
        self._up.stop()


#: Several shards, so that values are cut and joined, but few threads, and space for the jobs of many tests on one broker.
_SMALL = ("--shards", "4", "--workers", "1", "--journal-limit", "32MiB", "--retain", "8MiB")
