"""The extensions: what triggers them, what they exchange, and how often with a limited rate."""

from __future__ import annotations

import re
import threading
from typing import Any, Dict, List

import numpy as np
import pytest

import legion
import pserver
from legion.shared_values import SharedValues
from serving import Unique

#: Only a hang takes so long.
HANG_S = 400


class SharedVariable:
    """Like a shared variable of Theano."""

    def __init__(self, value: Any) -> None:
        self._value = np.array(value)

    def get_value(self) -> Any:
        return self._value

    def set_value(self, value: Any) -> None:
        self._value = value


def test_values_are_created_adopted_and_exchanged_in_place(
    client: legion.Client, unique: Unique
) -> None:
    w, v = unique("w"), unique("v")
    first: Dict[str, Any] = {w: np.ones(4), v: SharedVariable(np.zeros(2))}
    second: Dict[str, Any] = {w: np.full(4, 9.0), v: SharedVariable(np.full(2, 9.0))}
    here = legion.SharedParamsAutoSync(first, 0.5, 0.5, client, every_n_batches=2)
    there = legion.SharedParamsAutoSync(second, 0.5, 0.5, client=client)
    assert np.array_equal(second[w], np.ones(4)), "the later one adopts the value"
    memory = first[w]
    memory[:] = 3
    first[v].set_value(np.full(2, 4.0))
    here.after_batch()
    assert np.array_equal(memory, np.full(4, 3.0)), "not due yet"
    here.after_batch()
    assert first[w] is memory and np.array_equal(memory, np.full(4, 2.0))
    assert np.array_equal(first[v].get_value(), np.full(2, 2.0))
    there.sync()
    assert np.array_equal(second[w], np.full(4, 1.5))


def test_many_values_are_adopted_by_one_read(
    client: legion.Client, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [unique(f"w{i}") for i in range(300)]
    legion.SharedParamsAutoSync(
        {name: np.full(3, float(i)) for i, name in enumerate(names)}, 1, 0, client
    )
    created: List[str] = []

    def create(name: str, value: Any) -> Any:
        created.append(name)
        return np.asarray(value)

    monkeypatch.setattr(client.ps, "create_if_not_already_created", create)
    local: Dict[str, Any] = {name: np.zeros(3) for name in [*names, "new"]}
    legion.SharedParamsAutoSync(local, 1, 0, client)
    assert created == ["new"]
    assert all(np.array_equal(local[name], np.full(3, float(i))) for i, name in enumerate(names))


def test_one_of_another_shape_is_an_error_and_nothing_is_overwritten(
    client: legion.Client, unique: Unique
) -> None:
    names = [unique("w"), unique("v")]
    legion.SharedParamsAutoSync({name: np.ones(3) for name in names}, 1, 0, client)
    local: Dict[str, Any] = {names[0]: np.zeros(3), names[1]: np.zeros((2, 3))}
    with pytest.raises(pserver.errors.BadShape, match=re.escape(names[1])):
        legion.SharedParamsAutoSync(local, 1, 0, client)
    assert not local[names[0]].any() and not local[names[1]].any()


class CreatingTogether:
    """A job without parameters. Calls that create one wait until as many as there are threads do."""

    def __init__(self) -> None:
        self._together = threading.Barrier(8)

    def list_params(self) -> List[Any]:
        return []

    def create_if_not_already_created(self, name: str, value: Any) -> Any:
        self._together.wait(HANG_S)
        if name == "bad":
            raise pserver.errors.Quota("none left", {})
        return value + 1


def test_many_values_are_created_some_at_a_time() -> None:
    values = {f"w{i}": np.full(2, float(i)) for i in range(16)}
    SharedValues(values).create(CreatingTogether())  # type: ignore[arg-type]
    assert all(np.array_equal(values[f"w{i}"], np.full(2, i + 1.0)) for i in range(16))


def test_one_that_cannot_be_created_leaves_all_local_values() -> None:
    values = {"bad" if i == 0 else f"w{i}": np.zeros(2) for i in range(8)}
    with pytest.raises(pserver.errors.Quota):
        SharedValues(values).create(CreatingTogether())  # type: ignore[arg-type]
    assert not any(value.any() for value in values.values())


def test_a_module_shares_its_floating_point_entries(client: legion.Client, unique: Unique) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential()
    module.add_module(unique("bn").replace(".", "_"), torch.nn.BatchNorm1d(3))
    name = next(iter(dict(module.named_parameters())))
    weight = dict(module.named_parameters())[name]
    sync = legion.SharedParamsAutoSync(module, 0.5, 0.5, client, before_training=True)
    with torch.no_grad():
        weight.fill_(3)
    sync.before_training()
    assert torch.equal(weight.detach(), torch.full((3,), 2.0)) and weight.requires_grad
    shared = {info.name for info in client.ps.list_params()}
    assert {key for key in module.state_dict() if key in shared} == {
        key for key, value in module.state_dict().items() if value.is_floating_point()
    }


def named(unique: Unique, module: Any) -> Any:
    """Puts a module into another one, under a name of its own."""
    torch = pytest.importorskip("torch")
    outer = torch.nn.Sequential()
    outer.add_module(unique("m").replace(".", "_"), module)
    return outer


@pytest.mark.parametrize("kind", ["parametrized", "hooked"])
def test_vectors_of_spectral_norms_follow_the_adopted_weights(
    client: legion.Client, unique: Unique, kind: str
) -> None:
    torch = pytest.importorskip("torch")
    utils = torch.nn.utils
    norm = utils.spectral_norm if kind == "hooked" else utils.parametrizations.spectral_norm
    module = named(unique, norm(torch.nn.Linear(4, 6)))
    (layer,) = module
    sync = legion.SharedParamsAutoSync(module, 0.5, 0.5, client)
    with torch.no_grad():
        next(p for p in layer.parameters() if p.dim() == 2).normal_()
    sync.sync()
    module.eval()
    module(torch.zeros(1, 4))
    matrix = torch.linalg.matrix_norm(layer.weight.detach(), 2)
    torch.testing.assert_close(matrix, torch.tensor(1.0), rtol=0, atol=1e-3)
    vectors = [name for name, _ in module.named_buffers()]
    assert len(vectors) == 2
    for name in vectors:
        assert torch.equal(torch.from_numpy(client.ps.pull(name)), module.state_dict()[name])


def test_a_module_that_has_changed_is_refused(client: legion.Client, unique: Unique) -> None:
    torch = pytest.importorskip("torch")
    module = named(unique, torch.nn.Linear(2, 2))
    (layer,) = module
    sync = legion.SharedParamsAutoSync(module, 0.5, 0.5, client)
    layer.weight = torch.nn.Parameter(torch.full((2, 2), 8.0))
    sync.sync()
    (name,) = (name for name, p in module.named_parameters() if p is layer.weight)
    assert torch.equal(torch.from_numpy(client.ps.pull(name)), layer.weight.detach())
    layer.adapter = torch.nn.Linear(1, 1, bias=False)
    layer.weight = torch.nn.Parameter(torch.ones(3, 2))
    before = client.ps.pull(name)
    with pytest.raises(pserver.BadValue) as caught:
        sync.sync()
    assert f'"{name}" had shape (2, 2) and has (3, 2)' in str(caught.value)
    assert 'adapter.weight" is new' in str(caught.value)
    np.testing.assert_array_equal(client.ps.pull(name), before)


def test_entries_that_come_and_go_in_a_dict_are_refused(
    client: legion.Client, unique: Unique
) -> None:
    kept, gone, new = unique("kept"), unique("gone"), unique("new")
    values = {kept: np.zeros(2), gone: np.zeros(2)}
    sync = legion.SharedParamsAutoSync(values, 0.5, 0.5, client)
    values[kept] = np.full(2, 6.0)
    sync.sync()
    np.testing.assert_array_equal(values[kept], np.full(2, 3.0))
    del values[gone]
    values[new] = np.zeros(2)
    with pytest.raises(pserver.BadValue, match=f'"{new}" is new; "{gone}" is gone'):
        sync.sync()


def test_modules_of_half_precision_and_compiled_ones_are_shared(
    client: legion.Client, unique: Unique
) -> None:
    torch = pytest.importorskip("torch")
    module = named(unique, torch.nn.Linear(2, 2)).bfloat16()
    module[0].register_buffer("empty", torch.empty(0))
    plain = [name for name, _ in module.named_parameters()]
    sync = legion.SharedParamsAutoSync(torch.nn.DataParallel(module), 0.5, 0.5, client)
    with torch.no_grad():
        module[0].bias.fill_(4.0)
    before = client.ps.pull(plain[1])
    sync.sync()
    expected = (0.5 * torch.from_numpy(before) + 2.0).bfloat16()
    assert torch.equal(module[0].bias.detach(), expected)
    assert set(plain) <= {info.name for info in client.ps.list_params()}


def test_exchanges_are_timed_in_the_log(client: legion.Client, unique: Unique) -> None:
    log: Dict[str, Any] = {}
    sync = legion.SharedParamsAutoSync(
        {unique("w"): np.zeros(1)}, 1, 0, client, want_sync_timing_log=True, log=log
    )
    sync.sync()
    assert log["param_sync_end"] - log["param_sync_start"] == pytest.approx(
        log["param_sync_duration"], abs=1e-3
    )


class FakeClock:
    """A clock that a test moves on by adding to `now`, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_limited_rate_keeps_exchanges_to_a_share_of_the_time(
    client: legion.Client, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    ends = []

    def exchange(self: legion.SharedParamsAutoSync) -> None:
        clock.now += 1.0
        ends.append(clock.now)

    limited = legion.SharedParamsRateLimited(
        {unique("w"): np.zeros(1)}, 0.5, 0.5, 0.5, clock=clock, client=client, every_n_batches=1
    )
    monkeypatch.setattr(legion.SharedParamsAutoSync, "sync", exchange)
    for _ in range(200):
        limited.after_batch()
        clock.now += 0.1
    # By the rule: mean = 0.2 · last + 0.8 · mean, and an exchange unless mean >= 0.5 · (now - end).
    mean, end, now, expected = 0.0, -np.inf, 1000.0, []
    for _ in range(200):
        if mean < 0.5 * (now - end):
            now += 1.0
            mean, end = 0.2 * 1.0 + 0.8 * mean, now
            expected.append(now)
        now += 0.1
    assert ends == pytest.approx(expected)
    # Each exchange of one second is followed by nearly two seconds without one.
    assert np.diff(ends)[-1] == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_an_invalid_rate_is_refused(client: legion.Client, unique: Unique, rate: float) -> None:
    with pytest.raises(ValueError, match="maximum_rate"):
        legion.SharedParamsRateLimited({unique("w"): np.zeros(1)}, 1, 0, rate, client=client)


def test_a_timestamp_is_logged() -> None:
    stamp = legion.Timestamp(every_n_epochs=1)
    stamp.after_batch()
    assert stamp.log == {}
    stamp.after_epoch()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", stamp.log["datestamp"])
    assert stamp.log["timestamp"] > 1e9


def test_time_that_has_elapsed_ends_the_process_in_order() -> None:
    clock = FakeClock()
    stop = legion.StopAfterTimeElapsed(60, clock=clock, every_n_batches=1)
    clock.now += 59.9
    stop.after_batch()
    clock.now += 0.1
    with pytest.raises(SystemExit) as ended:
        stop.after_batch()
    assert ended.value.code == 0


@pytest.mark.parametrize("every", [0, -1, 1.5])
def test_an_invalid_number_of_batches_is_refused(every: Any) -> None:
    with pytest.raises(ValueError, match="every_n_batches"):
        legion.Timestamp(every_n_batches=every)


def test_what_cannot_be_shared_is_named(client: legion.Client) -> None:
    with pytest.raises(pserver.errors.BadDtype, match='"w".*float'):
        legion.SharedParamsAutoSync({"w": 1.5}, 0.5, 0.5, client)
    with pytest.raises(TypeError, match="dict of arrays"):
        legion.SharedParamsAutoSync([1.5], 0.5, 0.5, client)
