"""What results are: those of simulators that play the same episode, whatever the engine is made of."""

import itertools
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest
from tests.pkg.rollouts import playing
from tests.pkg.rollouts.playing import assert_equal_results, play_again, results_of, some_requests, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, levels
from doorstep.rollouts import EpisodeColumns, SchedulerConfig

SCHEDULERS = (
    SchedulerConfig.of("fixed_chunk", max_chunk=3),
    SchedulerConfig.of("dynamic_chunk", begin_fraction=0.01),
    *("dynamic_chunk", "priority", "earliest_deadline"),
    SchedulerConfig.of("least_remaining_steps", max_chunk=5),
    "fair_share",
)


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_an_episode_is_the_first_of_a_simulator_with_its_seed(num_agents):
    with RolloutEngine(SimulatorConfig(8, num_agents=num_agents)) as engine:
        requests = some_requests(20, record="observations")
        requests += [EpisodeRequest(seed=2**32 - 1, record="observations")]
        requests += [EpisodeRequest(policy="idle", record="actions")]
        for result in results_of(engine, requests):
            assert (result.reason, result.finished) == ("time", True)
            assert result.length == (result.request.max_steps or 200)
            with play_again(result) as sim:
                assert sim.truncations.to_numpy().all()


def test_the_length_of_episodes_is_the_simulators_at_most():
    with RolloutEngine(SimulatorConfig(4, episode_length=30)) as engine:
        requests = [EpisodeRequest(seed=seed, max_steps=steps) for seed, steps in enumerate((None, 10, 30, 1000))]
        assert [result.length for result in results_of(engine, requests)] == [30, 10, 30, 30]
    level = replace(_GENERATED, episode_length=(9, 9))
    with RolloutEngine(SimulatorConfig(4, episode_length=30, max_levels=1)) as engine:
        requests = [EpisodeRequest(level=level, max_steps=steps, record="actions") for steps in (None, 4, 9, 1000)]
        results = results_of(engine, requests)
        assert [(result.length, len(result.actions)) for result in results] == [(9, 9), (4, 4), (9, 9), (9, 9)]
        assert results[0].state_hash == results[2].state_hash == results[3].state_hash


def test_random_actions_are_legal_uniform_and_follow_from_the_seed():
    fields, sampled = {"max_steps": 100, "record": "actions"}, doorstep.policy.SamplingParams(seed=5)
    asked = ((1, None), (1, None), (2, None), (1, sampled), (2, sampled))
    requests = [EpisodeRequest(seed=seed, sampling=sampling, **fields) for seed, sampling in asked]
    with RolloutEngine(SimulatorConfig(2)) as engine:
        actions = [result.actions for result in results_of(engine, requests)]
    assert (actions[0] == actions[1]).all()
    assert (actions[3] == actions[4]).all()  # those of other seeds in other episodes
    for one, other in itertools.combinations((0, 2, 3), 2):
        assert (actions[one] != actions[other]).any()
    assert (actions[0][:, 0] != actions[0][:, 1]).any()  # agents differ
    for component, size in enumerate(doorstep.ACTIONS):
        counts = np.bincount(np.concatenate(actions)[..., component].ravel(), minlength=size)
        assert len(counts) == size
        assert counts.min() > 0.6 * counts.mean()


def _mixed_requests():
    policies = ("random", walk, ("idle", walk), "idle")
    fields = [{"policy": policies[i % 4], "priority": i * 7 % 5, "tag": i} for i in range(60)]
    late = [None if i % 3 else 1000.0 - i for i in range(60)]
    return [replace(one, deadline=late[i], **fields[i]) for i, one in enumerate(some_requests(60))]


@pytest.fixture(scope="module")
def expected():
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        return results_of(engine, _mixed_requests())


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=str)
def test_results_do_not_depend_on_the_engine(scheduler, expected):
    """Nor on the order of arrival, nor on whether episodes are asked for alone, or as many of one request."""
    shuffled = _mixed_requests()
    random.Random(1).shuffle(shuffled)
    for controller, num_replicas, num_worlds, num_threads, strict in (
        ("pull", 3, 16, 1, False),
        ("round_robin", 1, 7, 2, True),
        ("round_robin", 3, 5, 1, False),
    ):
        simulator = SimulatorConfig(num_worlds, num_threads=num_threads, strict=strict)
        parts = {"scheduler": scheduler, "controller": controller}
        config = RolloutConfig(simulator, devices=("cpu",) * num_replicas, **parts)
        with RolloutEngine(config) as engine:
            assert_equal_results(results_of(engine, _mixed_requests()), expected)
            results = sorted(results_of(engine, shuffled), key=lambda result: result.request.tag)
            some = engine.run([replace(one, n=3) for one in _mixed_requests()[:20]])
        assert_equal_results(results, expected)
        assert_equal_results([some[place] for place in range(0, 60, 3)], expected[:20])
        assert [result.request.tag for result in results] == list(range(60))


# ---- Levels

CURATED = levels.curated()
TWO = [CURATED["one door"], CURATED["slalom"]]
ALONE = levels.Level(walls=[], rooms=[levels.Room(0, 20)], spawns=[levels.Spawn(0, 2)])
_GENERATED = levels.GeneratedLevel(room_types=("any", "any", "any"), episode_length=(5, 30))


def test_requests_have_levels_of_their_own():
    with RolloutEngine(SimulatorConfig(4, max_levels=1)) as engine:
        for level in (levels.reference(), *list(CURATED.values())[:4], _GENERATED):
            requests = [EpisodeRequest(seed=seed, level=level, record="observations") for seed in range(4)]
            for result in results_of(engine, requests):
                assert result.reason in ("time", "goal")
                play_again(result).close()
        with pytest.raises(doorstep.ArgumentError, match="num_agents is 1; it must be 2"):
            engine.submit(EpisodeRequest(level=ALONE))


def test_requests_without_a_level_play_those_of_the_engine_by_their_seeds():
    own = CURATED["two rooms"]
    requests = [EpisodeRequest(seed=seed, max_steps=8) for seed in range(7)]
    with RolloutEngine(num_worlds=4, levels=TWO) as engine:
        others = engine.submit([EpisodeRequest(max_steps=1)] * 9)
        results = engine.run([*requests, EpisodeRequest(level=own, max_steps=8)])
        assert sorted(result.id for result in engine) == others  # which a run leaves
        batch = playing.in_order(engine, engine.submit(EpisodeColumns([3, 4], max_steps=8)).tolist())
    for request, result in zip(requests, results, strict=False):
        assert result.request.level is TWO[request.seed % 2]
    assert results[-1].request.level is own
    assert_equal_results(batch, results[3:5])
    assert [one.request.level for one in batch] == TWO[::-1]
    with RolloutEngine(num_worlds=4, max_levels=1) as engine:
        given = [EpisodeRequest(seed=seed, level=TWO[seed % 2], max_steps=8) for seed in range(7)]
        assert_equal_results(engine.run(given), results[:7])


def test_a_config_keeps_its_other_rules():
    config = RolloutConfig(SimulatorConfig(3, episode_length=7), devices=("cpu", "cpu"))
    with RolloutEngine(config, levels=TWO) as engine:
        assert engine.config == config.replace(simulator=config.simulator.replace(max_levels=1))
    with RolloutEngine(num_worlds=3, episode_length=7) as engine:
        assert engine.config == RolloutConfig(SimulatorConfig(3, episode_length=7))
        assert [result.length for result in engine.run([EpisodeRequest(policy="idle")])] == [7]


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


def test_rooms_that_agents_passed():
    own = [CURATED["one door"], CURATED["everything"]]
    with RolloutEngine(SimulatorConfig(16, max_levels=1)) as engine:
        asked = {"policy": playing.acting(3, 0, 2, 0), "max_steps": 150}  # north
        requests = [EpisodeRequest(seed=seed, level=level, **asked) for seed in range(8) for level in (None, *own)]
        for result in results_of(engine, requests):
            level = result.request.level
            ends = [40 / 3 * room for room in (1, 2, 3)] if level is None else [room.end for room in level.rooms]
            assert result.passed_rooms.tolist() == [[bool(y > end) for y in result.max_y] for end in ends]


def test_results_and_steps_pickle_without_functions():
    fields = {"level": CURATED["slalom"], "max_steps": 3, "record": ("observations", "stream"), "tag": 7}
    own = "idle", lambda rows: walk(rows)
    for policy, kept in ((("idle", "random"), ("idle", "random")), (walk, None), (own, ("idle", None))):
        request = EpisodeRequest(policy=policy, **fields)
        with RolloutEngine(SimulatorConfig(2, max_levels=1)) as engine:
            engine.submit(request)
            outputs = playing.all_outputs(engine)
        copies = pickle.loads(pickle.dumps(outputs))
        assert len(copies) == len(outputs) == 4
        for output, copy in zip(outputs, copies, strict=True):
            assert type(copy) is type(output)
            assert (copy.request, output.request) == (replace(request, policy=kept), request)
            for name in set(vars(output)) - {"request"}:
                np.testing.assert_array_equal(getattr(copy, name), getattr(output, name))
