"""What engines measure: every request is accounted for, whatever becomes of it."""

import functools
import gc
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from tests.pkg.metrics.test_series import parsed
from tests.pkg.rollouts.playing import assert_equal_results, divides, results_of, some_requests, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.metrics import MetricsConfig, MetricsStore
from doorstep.rollouts import FixedChunkScheduler, PriorityScheduler, PullController, RoundRobinController

SIMULATOR = SimulatorConfig(4, num_threads=1)
REASONS = ("goal", "time", "cancelled", "expired", "failed")


def count(engine, name, **labels):
    return int(engine.metrics.total(name, **labels).count)


def assert_accounted_for(engine, results, submitted):
    """The counters agree with the results, one by one."""
    assert (len(results), count(engine, "requests_submitted")) == (submitted, submitted)
    for reason in REASONS:
        expected = sum(result.reason == reason for result in results)
        assert count(engine, "requests_answered", reason=reason) == expected, reason
        assert count(engine, "latency_seconds", reason=reason) == expected, reason
    played = [result for result in results if result.replica >= 0]
    assert count(engine, "queue_wait_seconds") == count(engine, "episodes_begun") == len(played)
    assert count(engine, "first_step_seconds") == sum(result.length > 0 for result in played)
    assert count(engine, "episode_steps") == sum(result.length for result in played)


@pytest.mark.parametrize("replicas", [1, 3])
def test_every_request_is_accounted_for(replicas):
    controller = PullController() if replicas == 1 else RoundRobinController(depth=50)
    config = RolloutConfig(SimulatorConfig(8, num_threads=1), devices=("cpu",) * replicas, controller=controller)
    with RolloutEngine(config, on_error="return") as engine:
        ids = engine.submit(some_requests(300))
        engine.submit(some_requests(100, policy=walk))
        engine.submit(some_requests(60, policy=divides))
        engine.submit(some_requests(100, deadline=0.01))
        for request_id in ids[::3]:
            engine.cancel(request_id)
        results = list(engine)
        assert engine.drain(10)
        assert_accounted_for(engine, results, 560)
        assert count(engine, "requests_answered", reason="failed", cause="caller") == 60
        played = [engine._core.handle.replica(number) for number in range(replicas)]
        for name in ("steps", "step_seconds", "batch_fill"):
            assert count(engine, name) == sum(info.steps for info in played), name
        assert count(engine, "episodes_begun") == sum(info.episodes for info in played)
        assert count(engine, "episode_steps") == sum(info.world_steps for info in played)
        assert count(engine, "world_steps") == sum(info.steps * info.num_worlds for info in played)
        assert sum(parsed(engine.metrics.to_prometheus())["doorstep_requests_submitted_total"].values()) == 560


def test_worlds_are_never_idle_while_requests_wait():
    config = RolloutConfig(SimulatorConfig(8, num_threads=1), scheduler=FixedChunkScheduler())
    with RolloutEngine(config) as engine:
        engine.submit_batch(range(64), max_steps=5)  # which come at once
        assert engine.drain(30)
        for name, expected in (("steps", 40), ("world_steps", 320), ("episode_steps", 320), ("episodes_begun", 64)):
            assert count(engine, name) == expected, name
        fill = engine.metrics.total("batch_fill")
        assert fill.minimum == fill.maximum == 1


def test_times_are_those_of_the_results():
    with RolloutEngine(SimulatorConfig(2, num_threads=1)) as engine:
        results = results_of(engine, some_requests(200))
        engine.drain()
        fractions = np.linspace(0, 1, 21)
        waits, latencies = (engine.metrics.total(name) for name in ("queue_wait_seconds", "latency_seconds"))
        queued = [result.queued_seconds for result in results]
        took = [result.queued_seconds + result.played_seconds for result in results]
        for series, seconds in ((waits, queued), (latencies, took)):
            exact = np.sort(seconds)[(fractions * (len(results) - 1)).astype(int)]
            np.testing.assert_allclose(series.quantiles(fractions), exact, rtol=0.0101)
        assert waits.sum < engine.metrics.total("first_step_seconds").sum <= latencies.sum


def test_the_time_of_a_policy_is_told_by_its_kind():
    def slow(rows):
        time.sleep(0.02)
        return walk(rows)

    with RolloutEngine(SIMULATOR) as engine:
        for policy in (slow, "idle"):
            engine.submit_batch(range(4), policy=policy, max_steps=5)
        engine.drain()
        called = engine.metrics.total("policy_seconds", kind="caller")
        idle = engine.metrics.total("policy_seconds", kind="idle")
        assert called.minimum >= 0.02
        assert 5 <= called.count <= 20
        assert 0 <= idle.quantile(0.5) < 0.02


class Named:
    name = 'my "policy"'

    def __call__(self, rows):
        return walk(rows)


def named(name):
    """A function of this name."""

    def policy(rows):
        return walk(rows)

    policy.__name__ = name
    return policy


def test_policies_are_told_by_their_names(tmp_path):
    odd = named("\0" + "ü" * 100 + "\ud800")
    path = tmp_path / "stored.safetensors"
    shutil.copy(Path(doorstep.policy.__file__).with_name("trained.safetensors"), path)
    with RolloutEngine(SIMULATOR) as engine:
        for policy in ("random", "trained", str(path), walk, Named(), functools.partial(walk), odd):
            assert len(results_of(engine, some_requests(3, policy=policy))) == 3
        names = {one.labels["policy"]: one.labels["kind"] for one in engine.metrics if "policy" in one.labels}
    kinds = {"random": "random", "trained": "native", str(path)[-60:]: "native"}
    called = ("walk", 'my "policy"', "partial", "ü" * 54 + "\\ud800")
    assert names == kinds | dict.fromkeys(called, "caller")


def test_a_policy_that_gets_the_number_of_another_has_its_own_name():
    first, second = named("first"), named("second")
    with RolloutEngine(RolloutConfig(SIMULATOR, max_policies=1)) as engine:
        for policy in (first, second, first):
            results_of(engine, [EpisodeRequest(policy=policy, max_steps=3)])
        assert count(engine, "policy_seconds", policy="first") == 6
        assert count(engine, "policy_seconds", policy="second") == 3


def test_a_name_that_raises_is_raised_at_once_and_ends_no_replica():
    class Raising(Named):
        @property
        def name(self):
            raise ValueError("no name")

    with RolloutEngine(SIMULATOR) as engine:
        with pytest.raises(ValueError, match="no name"):
            engine.submit(EpisodeRequest(policy=Raising(), max_steps=3))
        assert len(results_of(engine, some_requests(3))) == 3


def test_a_picture_is_drawn_of_what_was_recorded(tmp_path):
    pytest.importorskip("matplotlib")
    with RolloutEngine(SIMULATOR) as engine:
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


def test_series_tell_replica_and_scheduler_and_are_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "metrics.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    config = RolloutConfig(SIMULATOR, devices=("cpu",) * 2, scheduler=PriorityScheduler())
    with RolloutEngine(config) as engine:
        engine.submit(some_requests(10))
        engine.drain()
        assert {series.labels["scheduler"] for series in engine.metrics} == {"priority"}
        replicas = {series.labels.get("replica") for series in engine.metrics if series.name == "steps"}
        assert replicas == {"0", "1"}
        assert {series.name: series.description for series in engine.metrics} == rows


def test_engines_may_share_a_store_and_stores_add_up():
    shared, separate = MetricsStore(), MetricsStore()
    for _ in range(2):
        with RolloutEngine(SIMULATOR, metrics=shared) as engine:
            assert engine.metrics is shared
            engine.submit(some_requests(10))
            engine.drain()
        with RolloutEngine(SIMULATOR) as engine:
            engine.submit(some_requests(10))
            engine.drain()
            separate.merge(engine.metrics)
    for store in (shared, separate):
        assert (store.total("requests_answered").count, store.total("latency_seconds").count) == (20, 20)
    with pytest.raises(doorstep.ArgumentError, match="metrics"):
        RolloutEngine(SimulatorConfig(4), metrics={})


def test_without_metrics_there_is_no_store_and_results_are_equal():
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


def test_the_store_ends_with_its_last_user():
    before = doorstep.live_counts()["metrics"]
    engine = RolloutEngine(SIMULATOR)
    metrics = engine.metrics
    assert doorstep.live_counts()["metrics"] == before + 1
    engine.submit(some_requests(5))
    engine.drain()
    engine.close()
    del engine
    counter = metrics.total("requests_answered")
    assert counter.value == 5
    del metrics
    gc.collect()  # the parts of an engine refer to each other
    assert doorstep.live_counts()["metrics"] == before
