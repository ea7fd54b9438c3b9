"""Episodes that give their worlds to earlier ones, and go on where they were."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.pkg.rollouts.playing import assert_equal_results, results_of, walk

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams
from doorstep.rollouts import EarliestDeadlineScheduler, FairShareScheduler, FixedChunkScheduler, PriorityScheduler


def config_of(scheduler: Any, num_worlds: int = 3, **fields: Any) -> RolloutConfig:
    return RolloutConfig(SimulatorConfig(num_worlds, num_threads=1), scheduler=scheduler, **fields)


def wait_until_playing(engine: RolloutEngine, steps: int = 1) -> None:
    assert engine.metrics is not None
    before = engine.metrics.total("steps").value
    while engine.metrics.total("steps").value < before + steps:
        time.sleep(0.0005)


def played_in_waves(engine: RolloutEngine, waves: list[list[EpisodeRequest]]) -> tuple[list[EpisodeResult], list[int]]:
    """The results in the order of the requests, and their places there as they came."""
    ids = []
    for wave in waves:
        ids += engine.submit(wave)
        wait_until_playing(engine)
    came = {result.id: result for result in engine}
    return [came[one] for one in ids], [ids.index(one) for one in came]


def test_a_request_of_higher_priority_takes_the_world_of_a_lower_one() -> None:
    waves = [[EpisodeRequest(seed=seed, policy="idle") for seed in range(60)], [EpisodeRequest(seed=9, priority=1)]]
    with RolloutEngine(config_of(PriorityScheduler(preempts=True), num_worlds=1)) as engine:
        results, order = played_in_waves(engine, waves)
    assert order[0] == 60  # before the one that was being played, which then goes on first
    assert order[1] == 0
    assert [result.length for result in results] == [200] * 61


def recurrent() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    return doorstep.load_policy([torch.nn.GRU(94, 8), torch.nn.Linear(8, 19)])


@pytest.mark.parametrize(
    "config",
    [
        config_of(PriorityScheduler(preempts=True)),
        config_of(PriorityScheduler(preempts=True, max_chunk=1)),
        config_of(PriorityScheduler(preempts=True), devices=("cpu", "cpu")),
        config_of(
            PriorityScheduler(preempts=True),
            devices=("cpu", "cpu"),
            controller=doorstep.rollouts.RoundRobinController(depth=3),
        ),
        config_of(EarliestDeadlineScheduler(preempts=True)),
    ],
)
def test_interrupted_episodes_have_the_results_of_others(config: RolloutConfig) -> None:
    policies = ("random", recurrent(), ("idle", walk), walk)
    sim = doorstep.Simulator(1, seed=4)
    waves = [
        [
            EpisodeRequest(
                seed=8 * wave + index if index % 3 else 0,
                state=None if index % 3 else sim.save(),
                policy=policies[index % 4],
                sampling=SamplingParams(temperature=0.5),
                max_steps=40 + index,
                priority=wave,
                deadline=1000.0 - wave,
                record="observations",
            )
            for index in range(8)
        ]
        for wave in range(6)
    ]
    with RolloutEngine(SimulatorConfig(1)) as engine:
        expected = results_of(engine, [request for wave in waves for request in wave])
    with RolloutEngine(config) as engine:
        results, order = played_in_waves(engine, waves)
    assert order != sorted(order)
    assert_equal_results(results, expected)
    for result, other in zip(results, expected, strict=True):
        assert result.actions is not None
        assert (result.actions == other.actions).all()
        assert (result.observations == other.observations).all()
        assert (result.rewards == other.rewards).all()
        assert (result.last_observations == other.last_observations).all()


def test_an_interrupted_episode_that_is_cancelled_says_how_far_it_was() -> None:
    with RolloutEngine(config_of(PriorityScheduler(preempts=True), num_worlds=1)) as engine:
        low = engine.submit(EpisodeRequest(policy="random", max_steps=200, record="stream"))
        wait_until_playing(engine, 20)
        high = engine.submit([EpisodeRequest(policy="idle", priority=1, seed=seed) for seed in range(300)])
        wait_until_playing(engine, 20)
        assert engine.cancel(low)
        for one in high:
            engine.cancel(one)
        outputs = []
        while some := engine.get_outputs():
            outputs += some
    (result,) = [one for one in outputs if isinstance(one, EpisodeResult) and one.id == low]
    steps = [one.step for one in outputs if not isinstance(one, EpisodeResult)]
    assert result.reason == "cancelled"
    assert 20 <= result.length < 200
    assert result.state_hash != 0
    assert steps == list(range(1, result.length + 1))


def test_a_closed_engine_answers_interrupted_episodes() -> None:
    engine = RolloutEngine(config_of(PriorityScheduler(preempts=True)), on_error="return")
    engine.submit([EpisodeRequest(seed=seed, n=5) for seed in range(20)])
    wait_until_playing(engine)
    engine.submit([EpisodeRequest(seed=seed, priority=1) for seed in range(2000)])
    wait_until_playing(engine)
    engine.close()
    assert len(list(engine)) == 2100


@pytest.mark.parametrize("scheduler", [FixedChunkScheduler, doorstep.rollouts.DynamicChunkScheduler, FairShareScheduler])
def test_schedulers_without_an_order_refuse_to_preempt(scheduler: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match="preempts is True"):
        scheduler(preempts=True)
