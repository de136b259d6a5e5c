"""Fixtures of all tests: a broker with a job, further jobs, programs; and settings of hypothesis."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import hypothesis
import pytest

import legion
import pserver
from programs import StartPython
from serving import Broker, Process, StartHost, Unique, clean_environment

# Shared machines are slow at times, and a database would carry failures from run to run.
hypothesis.settings.register_profile("pserver", deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("pserver")

_numbers = itertools.count(1)


def pytest_report_header() -> list[str]:
    return [f"pserver: {pserver.__file__}"]


def pytest_configure() -> None:
    """Fails unless `make test` tests the installed wheel, not the sources."""
    # A shell has what it runs in the background ignore it, and so would the programs that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("PSERVER_TEST_INSTALLED") and sys.prefix not in str(pserver.__file__):
        raise pytest.UsageError(
            f"expected pserver below {sys.prefix}; it was imported from {pserver.__file__}"
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails `make test` if it has skipped a test, because nothing else runs that test."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("PSERVER_TEST_INSTALLED") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def _no_server_outside() -> None:
    """Removes the variables that could lead a test to another server than its own."""
    for name in set(os.environ) - set(clean_environment()):
        del os.environ[name]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with one host, whose job `broker.job` all tests of a run share."""
    started = Broker(tmp_path_factory.mktemp("broker"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def ps(broker: Broker) -> Iterator[pserver.Client]:
    """A client of the job that all tests share."""
    with pserver.connect(broker.url, job=broker.job) as client:
        yield client


@pytest.fixture(scope="module")
def client(ps: pserver.Client) -> legion.Client:
    """Legion's client of the same job."""
    return legion.Client(ps=ps)


@pytest.fixture(scope="session")
def uninitialized(broker: Broker) -> Iterator[str]:
    """A job that nobody initializes, so that reads of unknown parameters wait."""
    host = broker.host("uninitialized")
    yield "uninitialized"
    host.stop()


@pytest.fixture
def job_name() -> str:
    """The name of a job that no other test uses."""
    return f"job-{next(_numbers)}"


@pytest.fixture
def unique() -> Unique:
    """Makes names of parameters that no other test uses."""
    return lambda name: f"{name}.{next(_numbers)}"


@pytest.fixture
def start_host(broker: Broker) -> Iterator[StartHost]:
    """Starts hosts of a job, `start_host(job, *options)`, which are killed at the end of the test."""
    hosts: list[Process] = []

    def start(job: str, *options: str) -> Process:
        hosts.append(broker.host(job, *options))
        return hosts[-1]

    yield start
    for host in hosts:
        host.kill()


@pytest.fixture
def job(job_name: str, start_host: StartHost) -> str:
    """A new `async` job with one host. For jobs of other kinds call `start_host` with `job_name`."""
    start_host(job_name)
    return job_name


@pytest.fixture
def start_python() -> Iterator[StartPython]:
    """Starts programs with this Python; those that still run at the end of the test are killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
        command, environment = [sys.executable, *arguments], {**os.environ, **variables}
        started.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def models(broker: Broker, job_name: str) -> Path:
    """The directory where the hosts of `job_name` save models."""
    return broker.directory / "models" / job_name
