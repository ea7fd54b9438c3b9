"""`RolloutEngine.run()`, and the levels of an engine."""

import pytest
from tests.pkg.rollouts.playing import Gate, assert_equal_results, divides, in_order, results_of, some_requests

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, StateError

CURATED = doorstep.levels.curated()
TWO = [CURATED["one door"], CURATED["slalom"]]


def test_results_have_the_order_of_their_requests():
    requests = some_requests(60)  # of different lengths
    with RolloutEngine(num_worlds=8) as engine:
        others = engine.submit(some_requests(20))
        results = engine.run(request for request in requests)
        assert [result.request for result in results] == requests
        assert engine.run([]) == []
        assert sorted(result.id for result in engine) == sorted(others)
        assert_equal_results(results, results_of(engine, requests))


def test_a_run_with_a_failure_raises_and_cancels_the_others():
    gate = Gate()
    with RolloutEngine(num_worlds=1) as engine:
        with pytest.raises(StateError, match="ZeroDivisionError"):
            engine.run([EpisodeRequest(policy=divides), *[EpisodeRequest(policy=gate)] * 20])
        gate.open.set()
        assert engine.drain(20)
        assert (engine.metrics.total("requests_answered", reason="cancelled").value, engine.outstanding) == (20, 0)


def test_requests_without_a_level_play_those_of_the_engine_by_their_seeds():
    own = CURATED["two rooms"]
    requests = [EpisodeRequest(seed=seed, max_steps=8) for seed in range(7)]
    with RolloutEngine(num_worlds=4, levels=TWO) as engine:
        results = engine.run([*requests, EpisodeRequest(level=own, max_steps=8)])
        batch = in_order(engine, engine.submit_batch([3, 4], max_steps=8).tolist())
    for request, result in zip(requests, results, strict=False):
        assert result.request.level is TWO[request.seed % 2]
    assert results[-1].request.level is own
    assert_equal_results(batch, results[3:5])
    assert [one.request.level for one in batch] == TWO[::-1]
    with RolloutEngine(num_worlds=4, max_levels=1) as engine:
        given = [EpisodeRequest(seed=seed, level=TWO[seed % 2], max_steps=8) for seed in range(7)]
        assert_equal_results(engine.run(given), results[:7])


def test_levels_are_given_as_to_a_simulator():
    for levels, names in (
        ("reference", [None]),
        (["reference"], ["reference"]),
        (TWO[0], ["one door"]),
        ("curated", [level.name for level in CURATED.values()]),
        ({"a": TWO[1]}, ["slalom"]),
    ):
        with RolloutEngine(num_worlds=8, levels=levels) as engine:
            results = engine.run([EpisodeRequest(seed=seed, max_steps=1) for seed in range(len(names))])
        assert [result.request.level and result.request.level.name for result in results] == names


def test_a_config_keeps_its_other_rules():
    config = RolloutConfig(SimulatorConfig(3, episode_length=7), devices=("cpu", "cpu"))
    with RolloutEngine(config, levels=TWO) as engine:
        assert engine.config == config.replace(simulator=config.simulator.replace(max_levels=1))
    with RolloutEngine(num_worlds=3, episode_length=7) as engine:
        assert engine.config == RolloutConfig(SimulatorConfig(3, episode_length=7))
        assert [result.length for result in engine.run([EpisodeRequest(policy="idle")])] == [7]


ALONE = doorstep.Level(walls=[], rooms=[doorstep.levels.Room(0, 20)], spawns=[doorstep.levels.Spawn(0, 2)])


def test_wrong_levels_and_rules_are_refused():
    for make, message in (
        (lambda: RolloutEngine(num_worlds=2, levels="curatde"), "levels is 'curatde'"),
        (lambda: RolloutEngine(num_worlds=2, levels=[]), "levels is"),
        (lambda: RolloutEngine(num_worlds=2, levels=[TWO[0], ALONE]), "has 1 spawns; it must have at least 2"),
        (lambda: RolloutEngine(num_worlds=0), "num_worlds is 0"),
        (lambda: RolloutEngine(SimulatorConfig(2), num_worlds=3), "None where rules of the simulator are given"),
        (lambda: RolloutEngine(), "num_worlds"),
    ):
        with pytest.raises((doorstep.ArgumentError, TypeError), match=message):
            make()
