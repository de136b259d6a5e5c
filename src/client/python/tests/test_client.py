"""Every call of the client, against a real server."""

from __future__ import annotations

import json
import pickle
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pserver
from serving import HANG, Broker, StartHost, Unique, clean_environment, command

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_initializes_a_job_trains_it_and_saves_it(broker: Broker, job: str, models: Path) -> None:
    with pserver.connect(broker.url, job=job, trainer="a") as ps:
        assert (ps.job, ps.trainer, ps.steps_ended) == (job, "a", 0)
        assert ps.synchronization.mode == "async" and ps.session > 0
        assert repr(ps) == f"<pserver.Client job='{job}' trainer='a'>"
        assert ps.status().state == "uninitialized" and ps.status().at == ()
        assert ps.begin_init()
        with pserver.connect(broker.url, job=job, trainer="b") as other:
            assert not other.begin_init(wait=False)
            with pytest.raises(pserver.Timeout, match='"a"'):
                other.begin_init(timeout=5)
        ps.init_param("w", W, optimizer="sgd", learning_rate=0.5)
        settings = {"optimizer": {"name": "adam", "beta1": 0.5}, "learning_rate": 1.0}
        ps.init_param("emb", np.zeros((5, 2)), settings, sparse=True)
        ps.init_param("text", 1.5, "optimizer: none\n")
        ps.finish_init()
        assert not ps.begin_init()

        grads = {"w": np.ones((3, 4), np.float32), "emb": pserver.Rows([0, -1, 0], np.ones((3, 2)))}
        assert ps.send_grads(grads) == pserver.GradResult(late_blocks=0)
        got = ps.get_params(["emb", "w"])
        assert list(got) == ["emb", "w"]
        np.testing.assert_array_equal(got["w"], W - 0.5)
        np.testing.assert_allclose(got["emb"][:, 0], [-1, 0, 0, 0, -1], atol=1e-4)
        ps.send_grads({"w": W}, learning_rate=1, encoding="bfloat16", stored_is_enough=True)
        np.testing.assert_array_equal(ps.pull("w"), np.full((3, 4), -0.5))
        ps.end_step()
        ps.exit_steps()

        told: list[tuple[int, int]] = []
        saved = ps.save("model.npz", on_progress=lambda done, total: told.append((done, total)))
        assert (saved.file, saved.format) == (str(models / "model.npz"), "npz") and saved.host
        assert saved.bytes == (models / "model.npz").stat().st_size
        assert all(0 <= done <= total for done, total in told)
        with np.load(models / "model.npz") as model:
            np.testing.assert_array_equal(model["w"], ps.pull("w"))

        status = ps.status()
        assert (status.state, status.epoch, status.by) == ("ready", 1, "a")
        assert len(status.at) == status.shards == 4
        assert [each.name for each in ps.list_params()] == ["emb", "text", "w"]
        emb = ps.list_params()[0]
        assert (emb.dtype, emb.shape, emb.elements, emb.ready) == (np.dtype("f8"), (5, 2), 10, True)
        assert emb.config["sparse"] and emb.config["optimizer"]["beta1"] == 0.5
        assert ps.fallbacks() == []
    ps.close()
    assert "closed" in repr(ps)
    with pytest.raises(pserver.Closed):
        ps.pull("w")
    with pytest.raises(pserver.Closed):
        ps.open()


def test_creates_once_and_returns_the_value(
    ps: pserver.Client, broker: Broker, unique: Unique
) -> None:
    name = unique("w")
    np.testing.assert_array_equal(ps.create_if_not_already_created(name, W), W)
    with pserver.connect(broker.url, job=broker.job) as other:
        np.testing.assert_array_equal(other.create_if_not_already_created(name, W * 2), W)
        with pytest.raises(pserver.BadShape):
            other.create_if_not_already_created(name, W.T)
        with pytest.raises(pserver.BadDtype):
            other.create_if_not_already_created(name, W.astype(np.float64))


def test_pushes_and_overwrites(ps: pserver.Client, unique: Unique) -> None:
    name, other = unique("w"), unique("w")
    ps.create_if_not_already_created(name, W)
    ps.create_if_not_already_created(other, np.int64(3))
    ps.push(name, W, 0.5, 2)
    np.testing.assert_array_equal(ps.pull(name), 2.5 * W)
    ps.push(name, W, 0, 1, encoding="float16", stored_is_enough=True)
    np.testing.assert_array_equal(ps.pull(name), W)
    ps.set_params({name: W.T.copy().T[::-1], other: 7}, stored_is_enough=True)
    np.testing.assert_array_equal(ps.pull(name), W[::-1])
    assert ps.pull(other) == 7 and ps.pull(other).shape == ()


def test_counts_what_it_does(
    broker: Broker, job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSERVER_STATS_DIR", str(tmp_path))
    with pserver.connect(broker.url, job=job, trainer="a", timeout=HANG) as ps:
        assert ps.stats().calls == 0
        assert ps.begin_init()
        ps.init_param("w", W)
        ps.finish_init()
        before = ps.stats()
        ps.push("w", W, 1, 1)
        ps.pull("w")
        with pytest.raises(pserver.UnknownParameter):
            ps.pull("nothing")
        after = ps.stats()
        assert after.calls == before.calls + 3
        assert after.failed == {"UNKNOWN_PARAMETER": 1}
        assert (after.records, after.reads) == (before.records + 1, before.reads + 1)
        assert (after.resent, after.reconnects) == (0, 0)
        assert after.sent_bytes >= before.sent_bytes + W.nbytes
        assert after.received_bytes >= before.received_bytes + W.nbytes
    # For the launcher, under the names that the TypeScript client gives them.
    (file,) = tmp_path.iterdir()
    left = json.loads(file.read_text())
    assert (left["trainer"], left["calls"], left["failed"]) == ("a", after.calls, after.failed)
    assert set(left) == {
        *("trainer", "calls", "failed", "records", "resent", "reads"),
        *("clipped", "setAside", "sentBytes", "receivedBytes", "reconnects"),
    }


def test_parts_are_those_of_numpy(ps: pserver.Client, unique: Unique) -> None:
    name = unique("w")
    ps.create_if_not_already_created(name, W)
    rows, columns = np.array([2, 0, -1]), np.array([3, 1], np.uint8)
    where = np.ix_(rows, columns)
    np.testing.assert_array_equal(ps.pull_part(name, where), W[where])
    np.testing.assert_array_equal(ps.pull_part(name, [rows, columns]), W[where])
    np.testing.assert_array_equal(
        ps.pull_part(name, (range(3), [1]), encoding="bfloat16"), W[:, [1]]
    )
    assert ps.pull_part(name, [[], [1]]).shape == (0, 1)
    part = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    ps.push_part(name, part, where, 0.5, 1)
    expected = W.copy()
    expected[where] = 0.5 * expected[where] + part
    np.testing.assert_array_equal(ps.pull(name), expected)
    ps.push_part(name, np.empty((0, 1), np.float32), [[], [1]], 0.5, 1)
    ps.push_part(name, W[:1, :1], [[0], [0]], 1, 1, encoding="float16", stored_is_enough=True)
    np.testing.assert_array_equal(ps.pull(name), expected)


def test_reads_into_arrays_of_the_caller(ps: pserver.Client, unique: Unique) -> None:
    one, two = unique("w"), unique("w")
    ps.create_if_not_already_created(one, W)
    ps.create_if_not_already_created(two, W[0])
    into, bytes_of_two = np.empty_like(W), bytearray(16)
    assert ps.pull(one, out=into) is into
    np.testing.assert_array_equal(into, W)
    got = ps.get_params([two, one], out=[memoryview(bytes_of_two).cast("f"), None])
    assert np.shares_memory(got[two], np.frombuffer(bytes_of_two, np.uint8))
    np.testing.assert_array_equal(np.frombuffer(bytes_of_two, np.float32), W[0])
    np.testing.assert_array_equal(got[one], W)
    into[...] = 0
    assert ps.get_params([one, two], out={one: into})[one] is into
    np.testing.assert_array_equal(into, W)


def test_results_own_their_memory(ps: pserver.Client, unique: Unique) -> None:
    name = unique("w")
    ps.create_if_not_already_created(name, W)
    first, second = ps.pull(name), ps.pull(name)
    assert first.flags.writeable and not np.shares_memory(first, second)
    part = first[1:, ::2]
    first[...] = 9
    del first, second
    np.testing.assert_array_equal(part, np.full((2, 2), 9))


def test_names_may_be_anything(ps: pserver.Client, unique: Unique) -> None:
    for name in (unique("層/ü 🙂"), unique("a\0b"), unique("\ufeffw"), unique('"')):
        ps.create_if_not_already_created(name, W)
        np.testing.assert_array_equal(ps.pull(name), W)
        assert name in [each.name for each in ps.list_params()]
        with pytest.raises(pserver.BadShape) as raised:
            ps.push(name, W.T, 1, 1)
        assert raised.value.details["parameter"] == name


def test_takes_the_bytes_of_paddle(ps: pserver.Client, unique: Unique) -> None:
    # OptimizerConfig { optimizer: Adam const_lr { learning_rate: 0.5 } }
    adam = b"\x08\x04\x62\x09\x09" + struct.pack("<d", 0.5)
    # ParameterConfig { name: "w" size: 12 sparse_remote_update: true }
    sparse = b"\x0a\x01w\x10\x0c\x80\x01\x01"
    names = unique("w"), unique("w")
    ps.create_if_not_already_created(names[0], W, adam)
    ps.create_if_not_already_created(names[1], W, pserver.PaddleConfigs(adam, sparse))
    configs = [each.config for each in ps.list_params() if each.name in names]
    assert [config["optimizer"]["name"] for config in configs] == ["adam", "adam"]
    assert [config["learningRate"]["rate"] for config in configs] == [0.5, 0.5]
    assert [config["sparse"] for config in configs] == [False, True]
    with pytest.raises(pserver.BadConfig):
        ps.create_if_not_already_created(unique("w"), W, b"\xff\0 no message")
    with pytest.raises(pserver.BadConfig, match="received both"):
        ps.create_if_not_already_created(unique("w"), W, "optimizer: sgd", l1=0.5)


def test_configuration_in_any_form_is_the_same(ps: pserver.Client, unique: Unique) -> None:
    settings: dict[str, Any] = {
        "optimizer": {"name": "momentum", "momentum": np.float64(0.5)},
        "clipNorm": 2,
    }
    names = [unique("c") for _ in range(4)]
    ps.create_if_not_already_created(names[0], W, settings, learning_rate=np.float32(0.5))
    ps.create_if_not_already_created(names[1], W, **settings, learning_rate=0.5)
    text = json.dumps({"optimizer": {"name": "momentum", "momentum": 0.5}, "clipNorm": 2})
    ps.create_if_not_already_created(names[2], W, text[:-1] + ', "learningRate": 0.5}')
    yaml = "optimizer: {name: momentum, momentum: 0.5}\nclipNorm: 2\nlearningRate: 0.5"
    ps.create_if_not_already_created(names[3], W, yaml)
    configs = [each.config for each in ps.list_params() if each.name in names]
    assert len(configs) == 4 and all(config == configs[0] for config in configs)
    assert configs[0]["learningRate"] == {"schedule": "constant", "rate": 0.5}


def test_keeps_step_with_other_trainers(
    broker: Broker, job_name: str, start_host: StartHost
) -> None:
    start_host(job_name, "--sync", "sync", "--trainers", "2", "--reduce", "sum")
    with (
        pserver.connect(broker.url, job=job_name) as a,
        pserver.connect(broker.url, job=job_name) as b,
    ):
        expected = pserver.Synchronization("sync", trainers=2, backups=0, reduce="sum", staleness=0)
        assert a.synchronization == expected
        a.create_if_not_already_created("w", W, learning_rate=1)
        a.send_grads({"w": np.ones_like(W)}, end_step=False)
        a.end_step()
        b.send_grads({"w": np.ones_like(W)})
        np.testing.assert_array_equal(b.pull("w"), W - 2)
        np.testing.assert_array_equal(a.pull("w"), W - 2)
        assert (a.steps_ended, b.steps_ended) == (1, 1)
        b.exit_steps()


def test_reads_tell_how_often_parameters_were_changed(
    ps: pserver.Client, broker: Broker, unique: Unique
) -> None:
    changed, other = unique("changed"), unique("other")
    for name in (changed, other):
        ps.create_if_not_already_created(name, W)
    into = np.empty_like(W)
    assert ps.get_params([changed, other], out=[into, None]).versions == {changed: 1, other: 1}
    ps.push(changed, W, 1, 1)
    ps.set_params({changed: W})
    params = ps.get_params([other, changed])
    assert params.versions == {other: 1, changed: 3}
    copy = pickle.loads(pickle.dumps(params))
    assert copy.versions == params.versions and copy.keys() == params.keys()
    with pserver.connect(broker.url, job=broker.job) as reader:
        assert reader.get_params([changed]).versions == {changed: 3}


def test_zero_size_arrays_are_no_parameters(ps: pserver.Client, unique: Unique) -> None:
    for shape in [(0,), (3, 0)]:
        with pytest.raises(pserver.BadShape, match=r"expected .*; received") as raised:
            ps.create_if_not_already_created(unique("none"), np.empty(shape, "f4"))
        assert raised.value.details["received"] == list(shape)
    name = unique("single")
    assert ps.create_if_not_already_created(name, np.float32(2)).shape == ()


def test_large_values_are_cut_and_joined(ps: pserver.Client, unique: Unique) -> None:
    name = unique("large")
    values = np.random.default_rng(1).standard_normal((2050, 1031), np.float32)
    np.testing.assert_array_equal(ps.create_if_not_already_created(name, values), values)
    transposed = np.asfortranarray(values)
    ps.push(name, transposed, 1, 1)
    into = np.empty_like(values)
    np.testing.assert_array_equal(ps.pull(name, out=into), values + values)
    (info,) = [each for each in ps.list_params() if each.name == name]
    assert info.blocks > 1 and info.block_elements * info.blocks >= info.elements


def test_settings_come_from_the_environment(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSERVER_URL", broker.url)
    monkeypatch.setenv("PSERVER_JOB", broker.job)
    monkeypatch.setenv("PSERVER_TRAINER", "from-the-environment")
    with pserver.connect() as ps:
        assert (ps.job, ps.trainer) == (broker.job, "from-the-environment")
        ps.status()
    with pserver.connect([broker.url, broker.url], trainer="given") as ps:
        assert ps.trainer == "given"


def test_a_trainer_of_a_former_job_is_told_that_the_job_was_made_anew(
    broker: Broker, job_name: str, start_host: StartHost
) -> None:
    former = start_host(job_name)
    with pserver.connect(broker.url, job=job_name, trainer="old") as old:
        old.create_if_not_already_created("w", W)
        former.stop()
        removal = [*command(), "remove", job_name, "--yes", "--url", broker.url]
        subprocess.run(removal, env=clean_environment(), check=True, timeout=HANG)
        start_host(job_name)
        with pserver.connect(broker.url, job=job_name, trainer="new") as new:
            new.create_if_not_already_created("w", W)
            for _ in range(2):
                with pytest.raises(pserver.errors.JobReplaced, match="connect it anew"):
                    old.begin_init()
            with pytest.raises(pserver.errors.JobReplaced, match="connect it anew"):
                old.push("w", W, 1, 1)
            np.testing.assert_array_equal(new.pull("w"), W)
