"""Traces are well-formed, and tell what was done."""

import json
from collections import defaultdict

import pytest
from tests.pkg.rollouts.playing import Gate, is_soon, some_requests, steps_of

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.metrics import MetricsConfig


def trace_of(engine, folder):
    engine.metrics.write_trace(folder / "trace.json")
    return json.loads((folder / "trace.json").read_text())["traceEvents"]


def assert_well_formed(events):
    """Times ascend, spans of a track nest, tracks have names, arrows begin once, and end once behind that."""
    timed = [event for event in events if event["ph"] != "M"]
    assert [event["ts"] for event in timed] == sorted(event["ts"] for event in timed)
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert {event["tid"] for event in timed} <= named
    open_spans = defaultdict(list)  # ends, by track
    arrows = defaultdict(str)
    for event in timed:
        ends = open_spans[event["tid"]]
        while ends and ends[-1] <= event["ts"] and event["ph"] == "X":
            ends.pop()
        if event["ph"] == "X":
            assert event["dur"] >= 0
            end = event["ts"] + event["dur"]
            assert not ends or end <= ends[-1] + 1e-3, event
            ends.append(end)
        else:
            assert any(event["ts"] <= end for end in ends), event  # within a span of its track
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
        assert engine.drain(10)
        # Idle replicas note a wait when it ends
        assert is_soon(lambda: len({one["tid"] for one in trace_of(engine, tmp_path) if one["name"] == "wait"}) == 2)
        events = trace_of(engine, tmp_path)
        steps = steps_of(engine)
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
            engine.drain()
    assert "step" in {event["name"] for event in events}


def test_traces_can_be_written_while_the_engine_plays(tmp_path):
    """To trace a request records nothing else of it."""
    config = RolloutConfig(SimulatorConfig(4, num_threads=1), metrics=MetricsConfig(trace=200))
    with RolloutEngine(config) as engine:
        engine.submit(some_requests(1000, record=("trace",), policy="idle"))
        for _ in range(10):
            timed = [event["ts"] for event in trace_of(engine, tmp_path) if event["ph"] != "M"]
            assert timed == sorted(timed)
        for record in ("trace", ("trace", "actions")):
            engine.submit(EpisodeRequest(seed=1, max_steps=5, record=record, tag=1))
        first, second = sorted((one for one in engine if one.request.tag), key=lambda one: len(one.request.record))
    assert (first.actions is None, second.actions is None) == (True, False)
    assert first.state_hash == second.state_hash


def test_a_trace_that_cannot_be_written_leaves_nothing(tmp_path):
    simulator = SimulatorConfig(2, num_threads=1)
    with RolloutEngine(simulator) as engine:
        engine.run([EpisodeRequest(max_steps=2, record=("trace",))])
        with pytest.raises(doorstep.StateError, match="MetricsConfig"):
            engine.metrics.write_trace(tmp_path / "trace.json")
    with RolloutEngine(RolloutConfig(simulator, metrics=MetricsConfig(trace=10))) as engine:
        with pytest.raises(OSError, match="absent"):
            engine.metrics.write_trace(tmp_path / "absent" / "trace.json")
        engine.metrics.write_trace(tmp_path / "empty.json")
    json.loads((tmp_path / "empty.json").read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["empty.json"]
