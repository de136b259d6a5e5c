"""The examples in the guides are run: each block of Python, and what is written within sentences."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

torch = pytest.importorskip("torch")


import pserver  # noqa: E402
import pserver.torch  # noqa: E402
from serving import ROOT, StartHost  # noqa: E402
from torch_jobs import Job, NewJob, new_job  # noqa: E402

GUIDES = ROOT / "docs" / "guides"
nn: Any = torch.nn


def text_of(guide: str) -> str:
    return (GUIDES / guide).read_text()


def blocks(guide: str) -> List[str]:
    return re.findall(r"^```python\n(.*?)^```", text_of(guide), re.MULTILINE | re.DOTALL)


def run(block: str, job: Job, monkeypatch: pytest.MonkeyPatch, **names: Any) -> Dict[str, Any]:
    """Runs a block as the one trainer of a job, with these names."""
    for name, value in job.variables("guide").items():
        monkeypatch.setenv(name, value)
    scope: Dict[str, Any] = dict(names)
    exec(compile(block, "guide", "exec"), scope)
    return scope


def test_no_block_is_left_out() -> None:
    found = {path.name: len(blocks(path.name)) for path in GUIDES.glob("*.md")}
    assert {name: count for name, count in found.items() if count} == {
        "python.md": 2,
        "federated.md": 1,
        "pytorch.md": 3,
        "legion.md": 1,
    }


def test_a_trainer(new_job: NewJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = new_job()
    run(
        blocks("python.md")[0],
        job,
        monkeypatch,
        batches=range(3),
        gradient=lambda w, batch: np.ones_like(w),
    )
    assert (job.models / "model.safetensors").exists()


def test_a_learner(new_job: NewJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = new_job("--sync", "diloco", "--grace-cap-ms", "0")
    block = blocks("python.md")[1]
    params = {"w": np.ones(300, np.float32), "b": np.ones((), np.float32)}
    learned = run(
        block,
        job,
        monkeypatch,
        params=params,
        batches=range(30),
        train=lambda params, batch: {name: each - np.float32(1) for name, each in params.items()},
    )
    assert learned["learner"].steps == 30 and min(learned["learner"].versions.values()) >= 1
    assert learned["params"]["b"] < -10


def test_a_federation(new_job: NewJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = new_job("--sync", "diloco", "--preset", "fedavg", "--sample", "1")
    params = {"w": np.zeros(3, np.float32)}
    learned = run(
        blocks("federated.md")[0],
        job,
        monkeypatch,
        params=params,
        rounds=3,
        train=lambda params: ({"w": params["w"] + np.float32(1)}, 50),
    )
    assert learned["version"] == 3 and learned["drawn"].is_sampled
    with job.connect("reader") as ps:
        pulled = ps.pull_fragment("model", min_version=3)
        np.testing.assert_array_equal(pulled.params["w"], np.full(3, 3, np.float32))


@pytest.mark.parametrize("places", ["keywords", "a dict", "JSON", "YAML"])
def test_configurations(new_job: NewJob, places: str) -> None:
    (keywords,) = re.findall(r"`(optimizer=[^`]*beta1[^`]*)`", text_of("python.md"))
    settings = eval(f"dict({keywords.replace('…', '1e-3')})")
    lines = "\n".join(f"{name}: {value}" for name, value in settings.items())
    given: Dict[str, Any] = {
        "a dict": dict(config=settings),
        "JSON": dict(config=str(settings).replace("'", '"')),
        "YAML": dict(config=lines),
        "keywords": settings,
    }
    with new_job().connect("one") as ps:
        assert ps.begin_init()
        ps.init_param("w", np.zeros(2, np.float32), **given[places])
        ps.finish_init()
        (info,) = ps.list_params()
        rule = {"name": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
        assert info.config["optimizer"] == rule
        assert info.config["learningRate"] == {"schedule": "constant", "rate": 1e-3}


def test_a_module_is_trained(
    new_job: NewJob, monkeypatch: pytest.MonkeyPatch, start_host: StartHost
) -> None:
    job = new_job()._replace(name="digits")
    models = str(job.models)
    start_host("digits", "--shards", "1", "--model-dir", models)
    batches = [(torch.randn(4, 3), torch.tensor([0, 1, 1, 0])) for _ in range(2)]
    run(
        blocks("pytorch.md")[0],
        job,
        monkeypatch,
        model=nn.Linear(3, 2),
        batches=batches,
        cross_entropy=nn.functional.cross_entropy,
    )
    assert (job.models / "digits.safetensors").exists()


def test_each_parameter_has_its_own_configuration(
    new_job: NewJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job()
    with job.connect("one") as ps:
        names = dict(sync=pserver.torch.sync, ps=ps, model=nn.Linear(3, 2))
        run(blocks("pytorch.md")[1], job, monkeypatch, **names)
        assert {info.name: info.config["l2"] for info in ps.list_params()} == {
            "bias": 0.0,
            "weight": 0.1,
        }


def test_diloco(new_job: NewJob, monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Linear(3, 2)

    def train(module: Any, optimizer: Any) -> None:
        for _ in range(3):
            module(torch.ones(1, 3)).sum().backward()
            optimizer.step()

    names = dict(torch=torch, pserver=pserver, DiLoCo=pserver.torch.DiLoCo)
    job = new_job("--sync", "diloco", "--grace-cap-ms", "0")
    run(blocks("pytorch.md")[2], job, monkeypatch, model=model, train=train, **names)
    with job.connect("other") as ps:
        assert torch.equal(torch.from_numpy(ps.pull("bias")), model.bias.detach())


OUTER = re.findall(r"^\|.*?`(dict\([^`]*\))` \|", text_of("pytorch.md"), re.MULTILINE)


@pytest.mark.parametrize("outer", OUTER)
def test_outer_rules(new_job: NewJob, outer: str) -> None:
    model = nn.Linear(3, 2)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    with new_job("--sync", "diloco", "--grace-cap-ms", "0").connect("one") as ps:
        with pserver.torch.DiLoCo(ps, model, inner, sync_every=1, outer=eval(outer)):
            model(torch.ones(1, 3)).sum().backward()
            inner.step()


def test_legion(new_job: NewJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    scope = run(blocks("legion.md")[0], new_job(), monkeypatch, A=np.ones((2, 2)))
    scope["client"].close()
    assert os.path.exists("model.h5")
