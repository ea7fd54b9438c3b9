"""What results are: those of simulators that play the same episode, whatever the engine is made of."""

from __future__ import annotations

import itertools
import pickle
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import assert_equal_results, play_again, results_of, some_requests, walk

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, levels, rollouts
from doorstep.levels.files import AnyLevel
from doorstep.rollouts.result import REASONS

SCHEDULERS = (
    rollouts.FixedChunkScheduler(max_chunk=3),
    rollouts.DynamicChunkScheduler(),
    rollouts.DynamicChunkScheduler(begin_fraction=0.01),
    rollouts.PriorityScheduler(),
    rollouts.PriorityScheduler(preempts=True),
    rollouts.EarliestDeadlineScheduler(),
    rollouts.LeastRemainingStepsScheduler(max_chunk=5),
    rollouts.FairShareScheduler(),
)
CONTROLLERS = (rollouts.PullController(), rollouts.RoundRobinController(depth=3))


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_an_episode_is_the_first_of_a_simulator_with_its_seed(num_agents: int) -> None:
    with RolloutEngine(SimulatorConfig(8, num_agents=num_agents)) as engine:
        requests = [
            *some_requests(20, record="observations"),
            EpisodeRequest(seed=2**32 - 1, record=("observations",)),
            EpisodeRequest(policy="idle", record=("actions",)),
        ]
        for result in results_of(engine, requests):
            assert result.reason == "time"
            assert result.finished
            assert result.length == (result.request.max_steps or 200)
            with play_again(result) as sim:
                assert sim.truncations.to_numpy().all()


def test_the_length_of_episodes_is_the_simulators_at_most() -> None:
    with RolloutEngine(SimulatorConfig(4, episode_length=30)) as engine:
        requests = [EpisodeRequest(seed=seed, max_steps=steps) for seed, steps in enumerate((None, 10, 30, 1000))]
        assert [result.length for result in results_of(engine, requests)] == [30, 10, 30, 30]


def test_random_actions_are_legal_uniform_and_follow_from_the_seed() -> None:
    fields: dict[str, Any] = {"max_steps": 100, "record": "actions"}
    sampled = doorstep.policy.SamplingParams(seed=5)
    requests = [
        EpisodeRequest(seed=1, **fields),
        EpisodeRequest(seed=1, **fields),
        EpisodeRequest(seed=2, **fields),
        EpisodeRequest(seed=1, sampling=sampled, **fields),
        EpisodeRequest(seed=2, sampling=sampled, **fields),
    ]
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


def test_idle_agents_do_nothing() -> None:
    with RolloutEngine(SimulatorConfig(2)) as engine:
        (result,) = results_of(engine, [EpisodeRequest(policy="idle", max_steps=10, record="actions")])
    assert (result.actions == doorstep.NEUTRAL_ACTION).all()


def _mixed_requests() -> list[EpisodeRequest]:
    requests = []
    for index, request in enumerate(some_requests(60)):
        policy = ("random", walk, ("idle", walk), "idle")[index % 4]
        requests.append(
            doorstep.EpisodeRequest(
                seed=request.seed,
                max_steps=request.max_steps,
                policy=policy,
                priority=index * 7 % 5,
                deadline=None if index % 3 else 1000.0 - index,
                tag=index,
            )
        )
    return requests


@pytest.fixture(scope="module")
def expected() -> list[doorstep.EpisodeResult]:
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        return results_of(engine, _mixed_requests())


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda controller: controller.type)
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda one: one.type + "-preempts" * one.preempts)
@pytest.mark.parametrize(("num_replicas", "num_worlds", "num_threads"), [(1, 7, 2), (3, 16, 1)])
def test_results_do_not_depend_on_the_engine(
    scheduler: Any,
    controller: Any,
    num_replicas: int,
    num_worlds: int,
    num_threads: int,
    expected: list[doorstep.EpisodeResult],
) -> None:
    config = RolloutConfig(
        SimulatorConfig(num_worlds, num_threads=num_threads),
        devices=("cpu",) * num_replicas,
        scheduler=scheduler,
        controller=controller,
    )
    with RolloutEngine(config) as engine:
        results = results_of(engine, _mixed_requests())
    assert_equal_results(results, expected)
    assert [result.request.tag for result in results] == list(range(60))


def test_results_do_not_depend_on_the_order_of_arrival(expected: list[doorstep.EpisodeResult]) -> None:
    requests = _mixed_requests()
    random.Random(1).shuffle(requests)
    with RolloutEngine(SimulatorConfig(5)) as engine:
        results = sorted(results_of(engine, requests), key=lambda result: result.request.tag)
    assert_equal_results(results, expected)


def test_strict_engines_play_the_same_episodes(expected: list[doorstep.EpisodeResult]) -> None:
    with RolloutEngine(SimulatorConfig(5, strict=True)) as engine:
        assert_equal_results(results_of(engine, _mixed_requests()), expected)


def test_batches_are_as_their_requests() -> None:
    seeds, steps = np.arange(50) * 3, 1 + np.arange(50) % 9
    with RolloutEngine(SimulatorConfig(8)) as engine:
        ids = engine.submit_batch(seeds, max_steps=steps, policy="idle", tag=77)
        results = {result.id: result for result in engine}
        pairs = zip(seeds.tolist(), steps.tolist(), strict=True)
        alone = results_of(engine, [EpisodeRequest(seed=seed, max_steps=most, policy="idle") for seed, most in pairs])
        ordered = [results[request_id] for request_id in ids.tolist()]
        assert_equal_results(ordered, alone)
        assert [result.request.seed for result in ordered] == seeds.tolist()
        assert {result.request.tag for result in ordered} == {77}
        assert ordered[0].request.sampling is None
        assert len(engine.submit_batch([])) == 0
        assert engine.submit([]) == []


def test_records_are_the_numbers_of_results() -> None:
    with RolloutEngine(SimulatorConfig(8)) as engine:
        ids = engine.submit_batch(range(30), max_steps=5, tag=9).tolist()
        ids += engine.submit([EpisodeRequest(seed=seed, max_steps=6, tag=seed, record="actions") for seed in range(20)])
        records = np.concatenate(_all_records(engine))
        assert engine.outstanding == 0
        assert len(engine.get_records()) == 0
    assert sorted(records["id"].tolist()) == sorted(ids)
    tags = dict(zip(records["id"].tolist(), records["tag"].tolist(), strict=True))
    assert [tags[request_id] for request_id in ids] == [9] * 30 + list(range(20))
    assert set(records["length"].tolist()) == {5, 6}
    assert (records["ended_ns"] > records["started_ns"]).all()


def _all_records(engine: RolloutEngine) -> list[Any]:
    records = []
    while engine.outstanding:
        records.append(engine.get_records())
    return records


# ---- Levels

_GENERATED = levels.GeneratedLevel(room_types=("any", "any", "any"), episode_length=(5, 30))


@pytest.mark.parametrize("level", [levels.reference(), *list(levels.curated().values())[:4], _GENERATED], ids=range(6))
def test_requests_have_levels_of_their_own(level: AnyLevel) -> None:
    with RolloutEngine(SimulatorConfig(4, max_levels=1)) as engine:
        requests = [EpisodeRequest(seed=seed, level=level, record="observations") for seed in range(4)]
        for result in results_of(engine, requests):
            assert result.reason in ("time", "goal")
            play_again(result).close()


def test_levels_mix_with_the_reference() -> None:
    table = [None, *levels.curated().values(), _GENERATED]
    requests = [
        EpisodeRequest(seed=seed, level=table[seed % len(table)], max_steps=1 + seed % 20) for seed in range(100)
    ]
    with RolloutEngine(SimulatorConfig(1, num_threads=1, max_levels=1)) as engine:
        alone = results_of(engine, requests)
    with RolloutEngine(SimulatorConfig(16, max_levels=1)) as engine:
        assert_equal_results(results_of(engine, requests), alone)
    with RolloutEngine(SimulatorConfig(16)) as engine:  # the reference's level has the bits that it has elsewhere
        reference = [index for index, request in enumerate(requests) if request.level is None]
        others = results_of(engine, [requests[index] for index in reference])
        for result, index in zip(others, reference, strict=True):
            assert (result.returns == alone[index].returns).all()


def test_a_goal_ends_an_episode() -> None:
    level = levels.Level(
        walls=[],
        rooms=[levels.Room(0, 20)],
        spawns=[levels.Spawn(0, 2), levels.Spawn(2, 2)],
        goal=levels.Goal(-15, 15, 0, 30, "any"),
    )
    with RolloutEngine(SimulatorConfig(4, max_levels=1)) as engine:
        (result,) = results_of(engine, [EpisodeRequest(level=level, policy="idle")])
    assert (result.reason, result.length) == ("goal", 1)


def test_rooms_that_agents_passed() -> None:
    level = doorstep.levels.curated()["two rooms"]
    with RolloutEngine(SimulatorConfig(16, max_levels=1)) as engine:
        requests = [EpisodeRequest(seed=seed, policy=walk_north) for seed in range(8)]
        requests += [EpisodeRequest(seed=0, policy=walk_north, level=level)]
        *results, of_level = results_of(engine, requests)
    for result in results:
        assert result.passed_rooms.tolist() == [[bool(y > 40 / 3 * room) for y in result.max_y] for room in (1, 2, 3)]
    assert of_level.passed_rooms.shape == (len(level.rooms), 2)
    assert of_level.passed_rooms.tolist() == [[bool(y > room.end) for y in of_level.max_y] for room in level.rooms]


def walk_north(observations: NDArray[np.float32]) -> NDArray[np.int32]:
    return np.tile(np.array([3, 0, 2, 0], np.int32), (len(observations), 1))


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("random", "random"),
        (("idle", "random"), ("idle", "random")),
        (walk, None),
        (("idle", lambda rows: walk(rows)), ("idle", None)),
    ],
    ids=["a name", "names", "a function", "a function of a tuple"],
)
def test_results_and_steps_pickle_without_functions(policy: Any, kept: Any) -> None:
    request = EpisodeRequest(
        policy=policy, level=levels.curated()["slalom"], max_steps=3, record=("observations", "stream"), tag=7
    )
    with RolloutEngine(SimulatorConfig(2, max_levels=1)) as engine:
        engine.submit(request)
        assert engine.drain(30)
        outputs = engine.get_outputs()
    copies = pickle.loads(pickle.dumps(outputs))
    assert len(copies) == len(outputs) == 4
    for output, copy in zip(outputs, copies, strict=True):
        assert type(copy) is type(output)
        assert copy.request == replace(request, policy=kept)
        assert output.request == request
        for name in set(vars(output)) - {"request"}:
            np.testing.assert_array_equal(getattr(copy, name), getattr(output, name))


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_records_are_columns_of_what_results_tell(num_agents: int) -> None:
    requests = some_requests(20, tag=9)
    with RolloutEngine(num_worlds=4, num_agents=num_agents) as engine:
        played = sorted(engine.run(requests), key=lambda one: one.state_hash)
        empty = engine.get_records().dtype
        engine.submit(requests)
        assert engine.drain(60)
        records = np.sort(engine.get_records(), order="state_hash")
        assert len(records) == 20
        assert empty == records.dtype
        names: Any = records.dtype.names
        assert all(records.dtype[name].shape == () for name in names)
        for name in ("continuation", "length", "replica", "state_hash"):
            assert records[name].tolist() == [getattr(one, name) for one in played], name
        assert [REASONS[reason] for reason in records["reason"].tolist()] == [one.reason for one in played]
        assert set(records["tag"].tolist()) == {9}
        for name in ("returns", "max_y"):
            columns = [records[f"{name}_{agent}"] for agent in range(num_agents)]
            np.testing.assert_array_equal(np.stack(columns, 1), [getattr(one, name) for one in played])
            assert f"{name}_{num_agents}" not in names
