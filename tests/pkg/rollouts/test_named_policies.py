"""Policies that requests name: what is played under a name, and from when on."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import results_of, some_requests

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig

SIMULATOR = SimulatorConfig(4, num_threads=1)


def acting(*action: int) -> Any:
    """A policy whose agents always do this."""
    return lambda observations: np.tile(np.array(action, np.int32), (len(observations), 1))


class Gate:
    """An idle policy that waits until it may act."""

    def __init__(self) -> None:
        self.acts, self.may_act = threading.Event(), threading.Event()

    def __call__(self, observations: NDArray[Any]) -> NDArray[Any]:
        self.acts.set()
        assert self.may_act.wait(20)
        actions: NDArray[Any] = acting(0, 0, 2, 0)(observations)
        return actions


def hashes(results: list[Any]) -> list[int]:
    return [result.state_hash for result in results]


def test_a_name_plays_what_it_stands_for() -> None:
    with RolloutEngine(SIMULATOR) as engine:
        engine.policies["first"] = "random"
        engine.policies["second"] = acting(3, 0, 2, 0)
        assert dict(engine.policies).keys() == {"first", "second"}
        assert engine.policies["first"] == "random"
        for names, objects in (("first", "random"), (("first", "second"), ("random", engine.policies["second"]))):
            named = results_of(engine, some_requests(10, policy=names))
            assert [result.request.policy for result in named] == [names] * 10
            assert hashes(named) == hashes(results_of(engine, some_requests(10, policy=objects)))
        batch = engine.submit_batch(range(3), policy="second", max_steps=2)
        assert [result.request.policy for result in engine] == ["second"] * len(batch)
        assert engine.metrics is not None
        assert 'policy="second"' in engine.metrics.to_prometheus()


@pytest.mark.parametrize("num_replicas", [1, 3])
@pytest.mark.parametrize("other", ["random", acting(3, 0, 2, 0)], ids=["native", "callable"])
def test_another_policy_plays_the_episodes_that_begin_later(num_replicas: int, other: Any) -> None:
    config = RolloutConfig(SimulatorConfig(1, num_threads=1), devices=("cpu",) * num_replicas)
    gate = Gate()
    with RolloutEngine(config) as engine:
        engine.policies["it"] = gate
        fields: dict[str, Any] = {"policy": "it", "max_steps": 30}
        playing = engine.submit([EpisodeRequest(seed=seed, **fields) for seed in range(num_replicas)])
        waiting = engine.submit([EpisodeRequest(seed=seed, **fields) for seed in range(100, 108)])
        assert gate.acts.wait(20)
        while engine.num_waiting > len(waiting):
            pass
        engine.policies["it"] = "idle"
        engine.policies["it"] = other  # before anything has begun with that
        gate.may_act.set()
        results = {result.id: result for result in engine}
        idle = engine.run([EpisodeRequest(seed=seed, policy="idle", max_steps=30) for seed in range(num_replicas)])
        later = engine.run([
            EpisodeRequest(seed=seed, policy=other, max_steps=30) for seed in [*range(100, 108), 200]
        ])
        assert hashes([results[request_id] for request_id in playing]) == hashes(idle)
        assert hashes([results[request_id] for request_id in waiting]) == hashes(later[:-1])
        assert hashes(engine.run([EpisodeRequest(seed=200, **fields)])) == hashes(later[-1:])


def test_policies_that_were_replaced_are_forgotten() -> None:
    with RolloutEngine(RolloutConfig(SIMULATOR, max_policies=3)) as engine:
        for turn in range(20):
            engine.policies["it"] = acting(turn % 4, 0, 2, 0)
            engine.run([EpisodeRequest(policy="it", max_steps=1)])
            assert engine.drain(20)  # a run has its results a moment before its requests are counted
        gate = Gate()
        engine.policies["it"] = gate
        engine.submit([EpisodeRequest(policy="it", max_steps=1)] * 9)
        assert gate.acts.wait(20)
        engine.policies["it"] = "idle"
        engine.policies["it"] = "random"
        with pytest.raises(doorstep.ArgumentError, match="as many as max_policies allows"):
            engine.policies["it"] = acting(0, 0, 2, 0)
        assert engine.policies["it"] == "random"
        gate.may_act.set()
        assert len(list(engine)) == 9


def test_unknown_names_are_refused_with_those_that_are_known() -> None:
    with RolloutEngine(SIMULATOR) as engine:
        with pytest.raises(doorstep.ArgumentError, match=r"policy is 'oponent'; it must be 'random', 'idle'"):
            engine.submit(EpisodeRequest(policy="oponent"))
        engine.policies["opponent"] = "idle"
        engine.policies["other"] = "idle"
        with pytest.raises(doorstep.ArgumentError) as caught:
            engine.submit(EpisodeRequest(policy=("oponent", "other")))
        assert "it must be 'opponent', 'other', 'random', 'idle'" in str(caught.value)
        assert "'opponent'?" in str(caught.value)
        del engine.policies["opponent"]
        with pytest.raises(doorstep.ArgumentError, match=r"it must be 'other', 'random'"):
            engine.submit(EpisodeRequest(policy="opponent"))
        with pytest.raises(KeyError):
            del engine.policies["opponent"]
        refused = [(1, "idle"), ("", "idle"), ("it", 5), ("it", "scripted"), ("it", "randm"), ("it", ("idle", "idle"))]
        for name, policy in refused:
            with pytest.raises(doorstep.ArgumentError):
                engine.policies[name] = policy  # type: ignore[index]
        assert dict(engine.policies) == {"other": "idle"}
        assert engine.outstanding == 0
    with pytest.raises(doorstep.ClosedError):
        engine.policies["late"] = "idle"


def test_requests_that_wait_keep_a_policy_whose_name_is_deleted() -> None:
    gate = Gate()
    with RolloutEngine(SimulatorConfig(1, num_threads=1)) as engine:
        engine.policies["it"] = gate
        engine.submit([EpisodeRequest(policy="it", max_steps=2)] * 3)
        del engine.policies["it"]
        gate.may_act.set()
        assert [result.length for result in engine] == [2, 2, 2]


def test_a_name_that_is_given_as_a_policy_is_not_what_is_asked_for() -> None:
    with RolloutEngine(SIMULATOR) as engine:
        engine.policies["c1"] = "idle"
        with pytest.raises(doorstep.ArgumentError) as caught:
            engine.policies["c2"] = "c1"
        message = str(caught.value)
        assert "must be 'random'" in message
        assert "did you mean" not in message
        assert caught.value.hint == "give what this name stands for: policies['c1']"
        engine.policies["c2"] = engine.policies["c1"]
        assert dict(engine.policies) == {"c1": "idle", "c2": "idle"}
