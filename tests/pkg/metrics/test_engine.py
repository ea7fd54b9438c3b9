"""What engines measure: every request is accounted for, whatever becomes of it."""

from __future__ import annotations

import gc
import re
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pkg.metrics.test_series import parsed
from tests.pkg.rollouts.playing import NUM_INPUTS, assert_equal_results, results_of, some_requests, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.metrics import MetricsConfig, MetricsStore
from doorstep.rollouts import PriorityScheduler, PullController, RoundRobinController

REASONS = ("goal", "time", "cancelled", "expired", "failed")


def raising(rows: Any) -> Any:
    raise ValueError("a policy that fails")


def count(engine: RolloutEngine, name: str, **labels: object) -> int:
    assert engine.metrics is not None
    return int(engine.metrics.total(name, **labels).count)


def assert_accounted_for(engine: RolloutEngine, results: list[Any], submitted: int) -> None:
    """The counters agree with the results, one by one."""
    assert len(results) == submitted
    assert count(engine, "requests_submitted") == submitted
    for reason in REASONS:
        expected = sum(result.reason == reason for result in results)
        assert count(engine, "requests_answered", reason=reason) == expected, reason
        assert count(engine, "latency_seconds", reason=reason) == expected, reason
    played = [result for result in results if result.replica >= 0]
    assert count(engine, "queue_wait_seconds") == count(engine, "episodes_begun") == len(played)
    assert count(engine, "first_step_seconds") == sum(result.length > 0 for result in played)
    assert count(engine, "episode_steps") == sum(result.length for result in played)


@pytest.mark.parametrize("controller", [PullController(), RoundRobinController(depth=50)])
@pytest.mark.parametrize("replicas", [1, 3])
def test_every_request_is_accounted_for(controller: Any, replicas: int) -> None:
    config = RolloutConfig(
        SimulatorConfig(8, num_threads=1), devices=("cpu",) * replicas, controller=controller
    )
    with RolloutEngine(config, on_error="return") as engine:
        results: list[Any] = []
        taker = threading.Thread(target=lambda: results.extend(take(engine, 560)))
        ids = engine.submit(some_requests(300))
        engine.submit(some_requests(100, policy=walk))
        engine.submit(some_requests(60, policy=raising))
        engine.submit(some_requests(100, deadline=0.01))
        taker.start()
        for request_id in ids[::3]:
            engine.cancel(request_id)
        taker.join()
        assert engine.drain(10)
        assert_accounted_for(engine, results, 560)
        assert count(engine, "requests_answered", reason="failed", cause="caller") == 60
        played = [engine._core.handle.replica(number) for number in range(replicas)]
        for name in ("steps", "step_seconds", "batch_fill"):
            assert count(engine, name) == sum(info.steps for info in played), name
        assert count(engine, "episodes_begun") == sum(info.episodes for info in played)
        assert count(engine, "episode_steps") == sum(info.world_steps for info in played)
        assert count(engine, "world_steps") == sum(info.steps * info.num_worlds for info in played)
        assert isinstance(engine.metrics, MetricsStore)
        parsed(engine.metrics.to_prometheus())


def take(engine: RolloutEngine, expected: int) -> list[Any]:
    results: list[Any] = []
    while len(results) < expected:
        results += engine.get_outputs(timeout=1)
    return results


def test_requests_of_an_engine_that_is_closed_are_accounted_for() -> None:
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        engine.submit(some_requests(500, max_steps=None))
        first = take(engine, 1)
    results = first + list(engine)
    assert len(results) == 500
    assert engine.metrics is not None
    by_reason = {reason: engine.metrics.total("requests_answered", reason=reason).count for reason in REASONS}
    assert by_reason == {reason: sum(result.reason == reason for result in results) for reason in REASONS}
    # Those that were being played began, and were given back
    assert engine.metrics.total("active_worlds").last == 0


def test_a_replica_that_dies_leaves_no_request_uncounted() -> None:
    config = RolloutConfig(SimulatorConfig(8, num_threads=1), devices=("cpu", "cpu"))
    with RolloutEngine(config) as engine:
        ids = engine.submit(some_requests(200))
        while not count(engine, "steps"):
            pass
        engine._core.handle.end_replica(0)
        results = list(engine)
        assert len(ids) == 200
        assert engine.drain(10)
        assert count(engine, "requests_answered") == count(engine, "requests_submitted") == len(results) == 200
        assert count(engine, "episodes_begun") >= 200  # given back, and begun again


def test_times_are_those_of_the_results() -> None:
    with RolloutEngine(SimulatorConfig(2, num_threads=1)) as engine:
        results = results_of(engine, some_requests(200))
        engine.drain()
        assert engine.metrics is not None
        fractions = np.linspace(0, 1, 21)
        places = (fractions * (len(results) - 1)).astype(int)
        waits = engine.metrics.total("queue_wait_seconds")
        latencies = engine.metrics.total("latency_seconds")
        queued = np.sort([result.queued_seconds for result in results])
        np.testing.assert_allclose(waits.quantiles(fractions), queued[places], rtol=0.0101)
        took = np.sort([result.queued_seconds + result.played_seconds for result in results])
        np.testing.assert_allclose(latencies.quantiles(fractions), took[places], rtol=0.0101)
        first = engine.metrics.total("first_step_seconds")
        assert waits.sum < first.sum <= latencies.sum


def test_the_time_of_a_policy_is_told_by_its_kind() -> None:
    def slow(rows: Any) -> Any:
        time.sleep(0.02)
        return walk(rows)

    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        engine.submit([EpisodeRequest(seed=seed, policy=slow, max_steps=5) for seed in range(4)])
        engine.submit([EpisodeRequest(seed=seed, policy="idle", max_steps=5) for seed in range(4)])
        engine.drain()
        assert engine.metrics is not None
        called = engine.metrics.total("policy_seconds", kind="caller")
        idle = engine.metrics.total("policy_seconds", kind="idle")
        assert called.minimum >= 0.02
        assert 5 <= called.count <= 20
        assert 0 <= idle.quantile(0.5) < 0.02


class Named:
    name = 'my "policy"'

    def __call__(self, rows: Any) -> Any:
        return walk(rows)


class Nameless:
    def __call__(self, rows: Any) -> Any:
        return walk(rows)


def test_policies_are_told_by_their_names(tmp_path: Path) -> None:
    def odd(rows: Any) -> Any:
        return walk(rows)

    odd.__name__ = "\0" + "ü" * 100 + "\ud800"
    path = tmp_path / "stored.safetensors"
    shutil.copy(Path(doorstep.policy.__file__).with_name("trained.safetensors"), path)
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        for policy in ("random", "trained", str(path), walk, Named(), Nameless(), odd):
            assert len(results_of(engine, some_requests(3, policy=policy))) == 3
        assert engine.metrics is not None
        names = {one.labels["policy"]: one.labels["kind"] for one in engine.metrics if "policy" in one.labels}
    kinds = {"random": "random", "trained": "native", str(path)[-60:]: "native"}
    called = ("walk", 'my "policy"', "Nameless", "ü" * 54 + "\\ud800")
    assert names == kinds | dict.fromkeys(called, "caller")


def test_a_policy_that_gets_the_number_of_another_has_its_own_name() -> None:
    def first(rows: Any) -> Any:
        return walk(rows)

    def second(rows: Any) -> Any:
        return walk(rows)

    config = RolloutConfig(SimulatorConfig(4, num_threads=1), max_policies=1)
    with RolloutEngine(config) as engine:
        for policy in (first, second, first):
            results_of(engine, [EpisodeRequest(policy=policy, max_steps=3)])
        assert engine.metrics is not None
        assert count(engine, "policy_seconds", policy="first") == 6
        assert count(engine, "policy_seconds", policy="second") == 3


def test_a_name_that_raises_is_raised_at_once_and_ends_no_replica() -> None:
    class Raising(Nameless):
        @property
        def name(self) -> str:
            raise ValueError("no name")

    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        with pytest.raises(ValueError, match="no name"):
            engine.submit(EpisodeRequest(policy=Raising(), max_steps=3))
        assert len(results_of(engine, some_requests(3))) == 3


@pytest.mark.slow
def test_policies_without_room_for_their_series_are_played_and_counted() -> None:
    store = MetricsStore()
    with RolloutEngine(SimulatorConfig(4, num_threads=1), metrics=store) as engine:
        for number in range(16384 - len(list(store))):
            store.counter(f"n{number}")
        with pytest.raises(doorstep.ArgumentError, match="16384 series"):
            store.counter("one_more")
        for policy in ("random", "idle", walk):
            assert {result.reason for result in results_of(engine, some_requests(5, policy=policy))} == {"time"}
    counted = {series.name: series.count for series in store if series.name in ("dropped_series", "requests_answered")}
    assert counted["dropped_series"] == 3
    assert "policy_seconds" not in {series.name for series in store}


def test_actions_of_logits_that_are_not_finite_are_counted() -> None:
    torch = pytest.importorskip("torch")
    broken = torch.nn.Linear(NUM_INPUTS, 19)
    policy = doorstep.load_policy(broken)
    torch.nn.init.constant_(broken.weight, float("nan"))
    with RolloutEngine(SimulatorConfig(4, num_threads=1), on_error="return") as engine:
        failed = results_of(engine, [EpisodeRequest(policy=(policy, "idle")) for _ in range(3)])
        assert {result.reason for result in failed} == {"failed"}
        results_of(engine, some_requests(3))
        assert count(engine, "nonfinite_actions") == 3


def test_a_picture_is_drawn_of_what_was_recorded(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        assert engine.metrics is not None
        with pytest.raises(doorstep.StateError, match="no time series"):
            MetricsStore().plot(tmp_path / "empty.svg")
        results_of(engine, [*some_requests(5), *some_requests(5, policy=walk)])
        engine.drain()
        engine.metrics.plot(tmp_path / "metrics.svg")
        with pytest.raises(doorstep.ArgumentError, match=r"\.png"):
            engine.metrics.plot(tmp_path / "metrics.txt")
        shown = {series.name for series in engine.metrics if series.count}
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.svg"]
    texts = set(re.findall(r"<!-- (.*?) -->", (tmp_path / "metrics.svg").read_text("utf-8")))
    assert {name for name in shown if name.endswith("_seconds")} <= texts
    assert any("requests_answered 10;" in text for text in texts)


def test_labels_tell_replica_and_scheduler() -> None:
    config = RolloutConfig(SimulatorConfig(4, num_threads=1), devices=("cpu",) * 2, scheduler=PriorityScheduler())
    with RolloutEngine(config) as engine:
        engine.submit(some_requests(10))
        engine.drain()
        assert engine.metrics is not None
        assert {series.labels["scheduler"] for series in engine.metrics} == {"priority"}
        replicas = {series.labels.get("replica") for series in engine.metrics if series.name == "steps"}
        assert replicas == {"0", "1"}
        assert all(series.description for series in engine.metrics)


def test_the_page_lists_every_series() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "metrics.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
        engine.submit(some_requests(1))
        engine.drain()
        assert engine.metrics is not None
        assert {series.name: series.description for series in engine.metrics} == rows


def test_engines_may_share_a_store_and_stores_add_up() -> None:
    shared, separate = MetricsStore(), MetricsStore()
    for _ in range(2):
        with RolloutEngine(SimulatorConfig(4, num_threads=1), metrics=shared) as engine:
            assert engine.metrics is shared
            engine.submit(some_requests(10))
            engine.drain()
        with RolloutEngine(SimulatorConfig(4, num_threads=1)) as engine:
            engine.submit(some_requests(10))
            engine.drain()
            assert engine.metrics is not None
            separate.merge(engine.metrics)
    for store in (shared, separate):
        assert store.total("requests_answered").count == 20
        assert store.total("latency_seconds").count == 20
    with pytest.raises(doorstep.ArgumentError, match="metrics"):
        RolloutEngine(SimulatorConfig(4), metrics={})  # type: ignore[arg-type]


def test_without_metrics_there_is_no_store_and_results_are_equal() -> None:
    stores = doorstep.live_counts()["metrics"]
    simulator = SimulatorConfig(8, num_threads=1)
    traced = RolloutConfig(simulator, metrics=MetricsConfig(trace=1000))
    with RolloutEngine(RolloutConfig(simulator, metrics=MetricsConfig(enabled=False))) as engine:
        assert engine.metrics is None
        assert doorstep.live_counts()["metrics"] == stores
        expected = results_of(engine, some_requests(60))
    for config in (RolloutConfig(simulator), traced):
        with RolloutEngine(config) as engine:
            assert_equal_results(results_of(engine, some_requests(60)), expected)


def test_the_store_ends_with_its_last_user() -> None:
    before = doorstep.live_counts()["metrics"]
    engine = RolloutEngine(SimulatorConfig(4, num_threads=1))
    metrics = engine.metrics
    assert doorstep.live_counts()["metrics"] == before + 1
    engine.submit(some_requests(5))
    engine.drain()
    engine.close()
    del engine
    assert metrics is not None
    counter = metrics.total("requests_answered")
    assert counter.value == 5
    del metrics
    gc.collect()  # the parts of an engine refer to each other
    assert doorstep.live_counts()["metrics"] == before
