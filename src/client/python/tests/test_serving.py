"""The fixtures that start hosts: for the job that all tests share, and for the job of one test."""

from __future__ import annotations


from serving import Broker, StartHost


def test_a_host_of_a_job_of_its_own_serves_it(broker: Broker, job: str) -> None:
    assert job != broker.job
    assert broker.url.startswith("nats://127.0.0.1:")


def test_a_host_can_be_killed_and_another_started(job_name: str, start_host: StartHost) -> None:
    first = start_host(job_name)
    first.kill()
    first.kill()
    assert start_host(job_name).ready["job"] == job_name
