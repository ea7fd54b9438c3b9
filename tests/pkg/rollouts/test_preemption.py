"""Episodes that give their worlds to earlier ones, and go on where they were."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from tests.pkg.rollouts.playing import assert_equal_results, results_of, steps_of, walk

import doorstep
from doorstep import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.policy import SamplingParams
from doorstep.rollouts import (
    DynamicChunkScheduler,
    EarliestDeadlineScheduler,
    FairShareScheduler,
    FixedChunkScheduler,
    PriorityScheduler,
    RoundRobinController,
)
from doorstep.rollouts.result import EpisodeStep


def config_of(scheduler: Any, num_worlds: int, **fields: Any) -> RolloutConfig:
    return RolloutConfig(SimulatorConfig(num_worlds, num_threads=1), scheduler=scheduler, **fields)


def make_steps(engine: RolloutEngine, steps: int) -> None:
    """Fewer if there are no more to make."""
    before = steps_of(engine)
    while steps_of(engine) < before + steps and engine.num_outputs < engine.outstanding:
        time.sleep(0.0005)


def test_a_request_of_higher_priority_takes_the_world_of_a_lower_one() -> None:
    config = config_of(PriorityScheduler(preempts=True), 8, output_capacity=16)  # replicas wait for who reads
    with RolloutEngine(config) as engine:
        engine.submit_batch(range(8), record="stream")
        make_steps(engine, 1)
        urgent = engine.submit(EpisodeRequest(priority=1, max_steps=5))
        results = [output for output in engine if isinstance(output, EpisodeResult)]
    assert results[0].id == urgent
    assert results[-1].request.seed == 7  # that came last
    assert [result.length for result in results] == [5] + [200] * 8


def recurrent() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    return doorstep.load_policy([torch.nn.GRU(94, 8), torch.nn.Linear(8, 19)])


@pytest.mark.parametrize(
    "config",
    [
        config_of(PriorityScheduler(preempts=True), 2),
        config_of(PriorityScheduler(preempts=True, max_chunk=1), 3),
        config_of(PriorityScheduler(preempts=True), 1, devices=("cpu", "cpu")),
        config_of(
            PriorityScheduler(preempts=True), 1, devices=("cpu", "cpu"), controller=RoundRobinController(depth=9)
        ),
        config_of(EarliestDeadlineScheduler(preempts=True), 2),
    ],
)
def test_interrupted_episodes_have_the_results_of_others(config: RolloutConfig) -> None:
    policies = ("random", recurrent(), ("idle", walk), "idle")
    state = doorstep.Simulator(1, seed=4, num_threads=1).save()
    requests = [
        EpisodeRequest(
            seed=index,
            state=None if index % 3 else state,
            policy=policies[index % 4],
            sampling=SamplingParams(temperature=0.5),
            max_steps=100 + index % 10,
            priority=index,
            deadline=1000.0 - index,
            record="observations" if index % 2 else (),
        )
        for index in range(40)
    ]
    with RolloutEngine(SimulatorConfig(40, num_threads=1)) as engine:
        expected = results_of(engine, requests)
    with RolloutEngine(config) as engine:
        ids = [one for request in requests for one in engine.submit([request])]  # each is the most urgent one
        results = {result.id: result for result in engine}
    assert list(results) != ids
    for result, other in zip([results[one] for one in ids], expected, strict=True):
        assert_equal_results([result], [other])
        for name in ("actions", "observations", "rewards", "last_observations"):
            assert np.array_equal(getattr(result, name), getattr(other, name))


def each_the_most_urgent(engine: RolloutEngine, requests: list[EpisodeRequest]) -> list[Any]:
    """The results, in the order of the requests, each of which takes the world of one before."""
    ids = [one for request in requests for one in engine.submit([request])]
    results = {result.id: result for result in engine}
    assert list(results) != ids
    return [results[one] for one in ids]


@pytest.mark.parametrize("is_named", [False, True])
def test_interrupted_episodes_record_what_others_record(is_named: bool) -> None:
    policies = {"it": recurrent(), "partner": "random"}
    given: dict[str, Any] = {name: name for name in policies} if is_named else policies
    players = (given["it"], (given["it"], given["partner"]), (given["partner"], given["it"]), (walk, given["it"]))
    requests = [
        EpisodeRequest(
            seed=index,
            policy=players[index % 4],
            max_steps=100 + index % 10,
            priority=index,
            record=("states", "log_probs", "stream") if index % 2 else ("states", "observations"),
        )
        for index in range(40)
    ]
    with RolloutEngine(SimulatorConfig(40, num_threads=1)) as engine:
        engine.policies.update(policies)
        expected = results_of(engine, requests)
    with RolloutEngine(config_of(PriorityScheduler(preempts=True), 3)) as engine:
        engine.policies.update(policies)
        results = each_the_most_urgent(engine, requests)
    assert_equal_results(results, expected)
    for result, other in zip(results, expected, strict=True):
        for name in ("actions", "states", "last_states", "log_probs", "versions", "observations"):
            recorded, same = getattr(result, name), getattr(other, name)
            assert (recorded is None) == (same is None)
            assert recorded is None or recorded.tobytes() == same.tobytes(), name
        assert result.states.any()


def test_interrupted_episodes_keep_the_policy_with_which_they_began() -> None:
    def requests(priority: int) -> list[EpisodeRequest]:
        return [EpisodeRequest(seed=seed, policy="it", max_steps=100, priority=priority) for seed in range(20)]

    hashes = []
    with RolloutEngine(SimulatorConfig(20, num_threads=1)) as engine:
        for policy in ("random", "idle"):
            engine.policies["it"] = policy
            hashes.append([result.state_hash for result in results_of(engine, requests(0))])
    with RolloutEngine(config_of(PriorityScheduler(preempts=True), 4)) as engine:
        engine.policies["it"] = "random"
        low = engine.submit(requests(0))
        make_steps(engine, 1)
        engine.policies["it"] = "idle"
        high = engine.submit(requests(1))
        results = {result.id: result.state_hash for result in engine}
    assert [results[one] for one in high] == hashes[1]
    for one, before, after in zip(low, *hashes, strict=True):
        assert results[one] in (before, after)
    assert [results[one] for one in low[:4]] == hashes[0][:4]  # which were played


def test_an_interrupted_episode_that_is_cancelled_says_how_far_it_was() -> None:
    low = [EpisodeRequest(seed=seed, record=("stream", "actions")) for seed in range(8)]
    config = config_of(PriorityScheduler(preempts=True), 8, output_capacity=16)  # replicas wait for who reads
    with RolloutEngine(config) as engine:
        ids = engine.submit(low)
        outputs = engine.get_outputs(most=8)
        while sum(output.step == 20 for output in outputs if isinstance(output, EpisodeStep)) < 8:
            outputs += engine.get_outputs(most=8)
        others = {*engine.submit_batch(range(500), priority=1).tolist()}
        while sum(output.id in others for output in outputs) < 8:
            outputs += engine.get_outputs(most=8)
        for one in [*ids, *others]:
            engine.cancel(one)
        while some := engine.get_outputs():
            outputs += some
    results = [one for one in outputs if isinstance(one, EpisodeResult) and one.id in ids]
    for result in results:
        steps = [one.step for one in outputs if not isinstance(one, EpisodeResult) and one.id == result.id]
        assert (result.reason, result.actions) == ("cancelled", None)
        assert 20 <= result.length < 200
        assert result.state_hash != 0
        assert steps == list(range(1, result.length + 1))
    assert len(results) == 8


def test_a_closed_engine_answers_interrupted_episodes() -> None:
    engine = RolloutEngine(config_of(PriorityScheduler(preempts=True), 40), on_error="return")
    engine.submit_batch(range(20), n=5)
    make_steps(engine, 1)
    engine.submit_batch(range(2000), priority=1)
    engine.close()
    assert len(list(engine)) == 2100


@pytest.mark.parametrize("scheduler", [FixedChunkScheduler, DynamicChunkScheduler, FairShareScheduler])
def test_schedulers_without_an_order_refuse_to_preempt(scheduler: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match="preempts is True"):
        scheduler(preempts=True)
