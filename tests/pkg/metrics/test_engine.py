"""What engines measure: every request is accounted for, whatever becomes of it. Traces are well-formed, and tell what
was done."""

import functools
import json
import re
import shutil
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from tests.pkg.metrics.test_series import parsed
from tests.pkg.rollouts.playing import Gate, assert_equal_results, divides, is_soon, results_of, some_requests, walk
from tests.refuses import raising, refuses

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep._native._generated import MAX_POLICY_SERIES
from doorstep.metrics import MetricsConfig, MetricsStore
from doorstep.rollouts import EpisodeColumns

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
    controller = "pull" if replicas == 1 else "round_robin"
    config = RolloutConfig(SimulatorConfig(8, num_threads=1), devices=("cpu",) * replicas, controller=controller)
    with RolloutEngine(config, on_error="return") as engine:
        ids = engine.submit(some_requests(300))
        engine.submit(some_requests(100, policy=walk))
        engine.submit(some_requests(60, policy=divides))
        engine.submit(some_requests(100, deadline=0.01))
        for request_id in ids[::3]:
            engine.cancel(request_id)
        results = list(engine)
        assert_accounted_for(engine, results, 560)
        assert count(engine, "requests_answered", reason="failed", cause="caller") == 60
        played = [engine._engine.replica(number) for number in range(replicas)]
        for name in ("steps", "step_seconds", "batch_fill"):
            assert count(engine, name) == sum(info.steps for info in played), name
        assert count(engine, "episodes_begun") == sum(info.episodes for info in played)
        assert count(engine, "episode_steps") == sum(info.world_steps for info in played)
        assert count(engine, "world_steps") == sum(info.steps * info.num_worlds for info in played)
        assert sum(parsed(engine.metrics.to_prometheus())["doorstep_requests_submitted_total"].values()) == 560


def test_worlds_are_never_idle_while_requests_wait():
    config = RolloutConfig(SimulatorConfig(8, num_threads=1), scheduler="fixed_chunk")
    with RolloutEngine(config) as engine:
        engine.run(EpisodeColumns(range(64), max_steps=5))  # which come at once
        for name, expected in (("steps", 40), ("world_steps", 320), ("episode_steps", 320), ("episodes_begun", 64)):
            assert count(engine, name) == expected, name
        fill = engine.metrics.total("batch_fill")
        assert fill.minimum == fill.maximum == 1


def test_times_are_those_of_the_results():
    with RolloutEngine(SimulatorConfig(2, num_threads=1)) as engine:
        results = results_of(engine, some_requests(200))
        fractions = np.linspace(0, 1, 21)
        waits, latencies = (engine.metrics.total(name) for name in ("queue_wait_seconds", "latency_seconds"))
        queued = [result.queued_seconds for result in results]
        took = [result.queued_seconds + result.played_seconds for result in results]
        for series, seconds in ((waits, queued), (latencies, took)):
            exact = np.sort(seconds)[(fractions * (len(results) - 1)).astype(int)]
            np.testing.assert_allclose(series.quantiles(fractions), exact, rtol=0.0101)
        assert waits.sum < engine.metrics.total("first_step_seconds").sum <= latencies.sum


class Named:
    name = 'my "policy"'

    def __call__(self, rows):
        time.sleep(0.02)
        return walk(rows)


def named(name):
    """A function of this name."""

    def policy(rows):
        return walk(rows)

    policy.__name__ = name
    return policy


def test_policies_are_told_by_their_names(tmp_path):
    odd = named("\0" + "ü" * 100 + "\ud800")
    nameless = type("Nameless", (Named,), {"name": property(raising(ValueError, "no name"))})
    path = tmp_path / "stored.safetensors"
    shutil.copy(Path(doorstep.policy.__file__).with_name("trained.safetensors"), path)
    with RolloutEngine(SIMULATOR) as engine:
        refuses("no name", engine.submit, EpisodeRequest(policy=nameless()), error=ValueError)  # others play
        for policy in ("random", "trained", str(path), walk, Named(), functools.partial(walk), odd):
            assert len(results_of(engine, some_requests(3, policy=policy))) == 3
        names = {one.labels["policy"]: one.labels["kind"] for one in engine.metrics if "policy" in one.labels}
        assert engine.metrics.total("policy_seconds", policy=Named.name).minimum >= 0.02
        assert engine.metrics.total("policy_seconds", policy="random").quantile(0.5) < 0.02
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


def test_policies_beyond_the_last_number_are_recorded_together():
    store = MetricsStore()
    numbers = [store.series_of_policy(f"policy {index}") for index in range(1100)]
    assert numbers == [min(index, MAX_POLICY_SERIES - 1) for index in range(1100)]
    assert store.series_of_policy("policy 7") == 7
    with RolloutEngine(SIMULATOR, metrics=store) as engine:
        for policy in (named("policy 1022"), named("policy 1023"), named("policy 1024")):
            engine.run(EpisodeRequest(policy=policy, max_steps=2))
    assert count(engine, "policy_seconds", policy="others") == 2 * count(engine, "policy_seconds", policy="policy 1022")


def test_a_picture_is_drawn_of_what_was_recorded(tmp_path):
    pytest.importorskip("matplotlib")
    with RolloutEngine(SIMULATOR) as engine:
        with pytest.raises(doorstep.StateError, match="no time series"):
            MetricsStore().plot(tmp_path / "empty.svg")
        results_of(engine, [*some_requests(5), *some_requests(5, policy=walk)])
        engine.metrics.plot(tmp_path / "metrics.svg")
        shown = {series.name for series in engine.metrics if series.count}
    texts = set(re.findall(r"<!-- (.*?) -->", (tmp_path / "metrics.svg").read_text("utf-8")))
    assert {name for name in shown if name.endswith("_seconds")} <= texts
    assert any("requests_answered 10;" in text for text in texts)


def test_series_tell_replica_and_scheduler_and_are_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "metrics.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    config = RolloutConfig(SIMULATOR, devices=("cpu",) * 2, scheduler="priority")
    with RolloutEngine(config) as engine:
        engine.run(some_requests(10))
        assert {series.labels["scheduler"] for series in engine.metrics} == {"priority"}
        replicas = {series.labels.get("replica") for series in engine.metrics if series.name == "steps"}
        assert replicas == {"0", "1"}
        assert {series.name: series.description for series in engine.metrics} == rows


def test_engines_may_share_a_store():
    """One after another goes on with the series, with policies that are called otherwise; two at once add up."""
    shared = MetricsStore(trace=10)
    for policy in ("random", "idle", "random"):
        with RolloutEngine(SIMULATOR, metrics=shared) as engine:
            assert engine.metrics is shared
            engine.run(some_requests(10, policy=policy))
    names = [(series.name, series.labels) for series in shared]
    with RolloutEngine(SIMULATOR, metrics=shared) as one, RolloutEngine(SIMULATOR, metrics=shared) as other:
        for engine in (one, other, one):
            engine.run(some_requests(10, policy="idle"))
    assert (shared.total("requests_answered").count, shared.total("latency_seconds").count) == (60, 60)
    assert shared.total("policy_seconds", policy="random").count < shared.total("policy_seconds").count
    assert [(series.name, series.labels) for series in shared] == names
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


# ---- Traces


def trace_of(engine, folder):
    engine.metrics.write_trace(folder / "trace.json")
    return json.loads((folder / "trace.json").read_text())["traceEvents"]


def assert_well_formed(events):
    """Times ascend, spans of a track nest, tracks have names, arrows begin once, and end once behind that.

    The file has microseconds. In whole nanoseconds, a span that begins as another one ends is never within it.
    """
    timed = [event for event in events if event["ph"] != "M"]
    assert [event["ts"] for event in timed] == sorted(event["ts"] for event in timed)
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert {event["tid"] for event in timed} <= named
    open_spans = defaultdict(list)  # ends, by track
    arrows = defaultdict(str)
    for event in timed:
        ends = open_spans[event["tid"]]
        start = round(event["ts"] * 1000)
        while ends and ends[-1] <= start and event["ph"] == "X":
            ends.pop()
        if event["ph"] == "X":
            assert event["dur"] >= 0
            end = start + round(event["dur"] * 1000)
            assert not ends or end <= ends[-1], event
            ends.append(end)
        else:
            assert any(start <= end for end in ends), event  # within a span of its track
            arrows[event["id"]] += event["ph"]
    for phases in arrows.values():
        assert (phases[0], phases.count("s")) == ("s", 1)
        assert "f" not in phases[:-1]


def test_a_trace_tells_every_step_and_the_way_of_chosen_requests(tmp_path):
    metrics = MetricsConfig(trace=100_000)
    config = RolloutConfig(SimulatorConfig(8, num_threads=1), devices=("cpu", "cpu"), metrics=metrics)
    with RolloutEngine(config) as engine:
        engine.submit(some_requests(100, policy="idle"))
        engine.submit(some_requests(20, policy=(gate := Gate())))
        chosen = engine.submit(some_requests(10, record=("trace",)))
        cancelled = engine.submit(EpisodeRequest(seed=3, policy=gate, record=("trace", "actions")))
        engine.cancel(cancelled)
        gate.open.set()
        results = list(engine)
        # Idle replicas note a wait when it ends
        assert is_soon(lambda: len({one["tid"] for one in trace_of(engine, tmp_path) if one["name"] == "wait"}) == 2)
        events = trace_of(engine, tmp_path)
        steps = count(engine, "steps")
        assert all(result.actions is result.observations is None for result in results)  # it records nothing else
    assert_well_formed(events)
    spans = [event for event in events if event["ph"] == "X"]
    worlds = [event["args"]["worlds"] for event in spans if event["name"] == "step"]
    assert (len(worlds), sum(event["args"]["requests"] for event in spans if event["name"] == "submit")) == (steps, 131)
    ended = sum(event["args"]["episodes"] for event in spans if event["name"] == "end")
    assert ended + sum(event["args"]["requests"] for event in spans if event["name"] == "answer") == 131
    assert {event["name"] for event in spans} >= {"submit", "take", "begin", "act 0", "act 1", "step", "end", "wait"}
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert tracks == {"requests", "replica 0", "replica 1"}
    flows = [event for event in events if event["name"] == "request"]
    for request_id in chosen:
        assert [flow["ph"] for flow in flows if flow["id"] == request_id] == ["s", "t", "f"]
    assert {flow["id"] for flow in flows} == {*chosen, cancelled}
    assert [flow["args"]["reason"] for flow in flows if flow["id"] == cancelled and flow["ph"] == "f"] == ["cancelled"]


def test_a_full_trace_keeps_the_latest_events(tmp_path):
    """It has no end of a request whose beginning it has forgotten."""
    gate = Gate()
    config = RolloutConfig(SimulatorConfig(2, num_threads=1), metrics=MetricsConfig(trace=50))
    with RolloutEngine(config) as engine:
        engine.run(some_requests(10, record=("trace",)))
        engine.submit(some_requests(100, record=("trace",), policy=gate))
        for _ in range(2):
            events = trace_of(engine, tmp_path)
            assert_well_formed(events)
            assert 50 <= sum(event["ph"] != "M" for event in events) <= 100
            gate.open.set()
            timed = [event["ts"] for event in trace_of(engine, tmp_path) if event["ph"] != "M"]  # while it plays
            assert timed == sorted(timed)
    assert "step" in {event["name"] for event in events}


def test_a_trace_that_was_not_asked_for_is_refused_and_an_empty_one_written(tmp_path):
    with pytest.raises(doorstep.StateError, match="MetricsConfig"):
        MetricsStore().write_trace(tmp_path / "trace.json")
    MetricsStore(trace=10).write_trace(tmp_path / "empty.json")
    json.loads((tmp_path / "empty.json").read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["empty.json"]
