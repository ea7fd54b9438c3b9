"""Arguments that are refused, and the messages that say what they must be."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.rollouts.playing import walk

import doorstep
from doorstep import Cameras, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, levels, rollouts
from doorstep.planner import ScriptedPolicy
from doorstep.rollouts.config import SchedulerConfig

SIMULATOR = SimulatorConfig(2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seed": -1}, "seed is -1; it must be an integer, 0 to 4294967295"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": True}, "seed is True"),
        ({"max_steps": 0}, "max_steps is 0; it must be an integer, 1 to"),
        ({"priority": 2**63}, "priority is 9223372036854775808"),
        ({"deadline": 0}, "deadline is 0; it must be None or a number of seconds, more than 0"),
        ({"deadline": math.nan}, "deadline is nan"),
        ({"deadline": math.inf}, "deadline is inf"),
        ({"deadline": "now"}, "deadline is 'now'"),
        ({"deadline": 1e300}, "deadline is 1e+300; it must be None or a number of seconds, more than 0 and at most"),
        ({"deadline": 10**400}, "deadline is 1000"),
        ({"record": "rewards"}, "record is 'rewards'; it must be some of 'actions', 'observations', 'log_probs'"),
        ({"record": ("actions", 3)}, "record is"),
        ({"record": 3}, "record is 3"),
        ({"tag": -1}, "tag is -1"),
        ({"tag": 2**64}, "tag is 18446744073709551616"),
        ({"level": "one door"}, "level is 'one door'; it must be a doorstep.Level, a GeneratedLevel or None"),
        ({"sampling": {"temperature": 1}}, "sampling is"),
        ({"policy": ["idle", "idle"]}, "policy is ['idle', 'idle']"),
        ({"policy": ("idle", 5)}, "policy is 5"),
        ({"policy": "scripted"}, 'it must be one that observes "flat" and not "simulator", of which an'),
        ({"policy": ScriptedPolicy()}, 'it must be one that observes "flat" and not "simulator"'),
    ],
)
def test_requests_are_checked(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        EpisodeRequest(**fields)
    assert message in str(caught.value)
    assert caught.value.argument == next(iter(fields))


def test_requests_have_named_fields_only_and_are_frozen() -> None:
    with pytest.raises(TypeError):
        EpisodeRequest(3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        EpisodeRequest().seed = 3  # type: ignore[misc]
    assert EpisodeRequest(record=["stream", "actions"]).record == ("actions", "stream")  # type: ignore[arg-type]
    assert EpisodeRequest(seed=np.int64(3)) == EpisodeRequest(seed=3)


@pytest.mark.parametrize(
    ("submitted", "message"),
    [
        (3, "request is 3; it must be a doorstep.EpisodeRequest"),
        ([EpisodeRequest(), "x"], "request is 'x'"),
        (EpisodeRequest(policy=None), "policy is None"),
        (EpisodeRequest(policy=("idle",)), "policy is ('idle',); it must be one policy, or a tuple of 2"),
        (EpisodeRequest(policy="walk"), "policy is 'walk'; it must be 'random', 'idle', "),
        (EpisodeRequest(policy="no_such_module:walk"), "policy is 'no_such_module:walk'; there is no module"),
        (EpisodeRequest(level=levels.reference()), "create the engine with max_levels"),
    ],
)
def test_submissions_are_checked(submitted: Any, message: str) -> None:
    with RolloutEngine(SIMULATOR) as engine:
        with pytest.raises(doorstep.ArgumentError) as caught:
            engine.submit(submitted)
        assert message in str(caught.value)
        assert engine.outstanding == 0
        assert engine.num_waiting == 0
        assert engine.submit([EpisodeRequest(max_steps=1)]) == [result.id for result in engine]


def test_a_level_must_suit_the_agents() -> None:
    alone = levels.Level(walls=[], rooms=[levels.Room(0, 20)], spawns=[levels.Spawn(0, 2)])
    with RolloutEngine(SimulatorConfig(2, max_levels=1)) as engine:
        with pytest.raises(doorstep.ArgumentError):
            engine.submit(EpisodeRequest(level=alone))
        assert engine.outstanding == 0
    with RolloutEngine(SimulatorConfig(2, num_agents=1, max_levels=1)) as engine:
        engine.submit(EpisodeRequest(level=alone, max_steps=1))
        assert next(iter(engine)).finished


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": 3}, "seeds is 3; it must be a sequence of integers, 0 to 4294967295"),
        ({"seeds": [[1]]}, "seeds is [[1]]"),
        ({"seeds": [0.5]}, "seeds is [0.5]"),
        ({"seeds": [1, -2]}, "seeds[1] is -2; it must be an integer, 0 to 4294967295"),
        ({"seeds": [1, 2], "max_steps": [1, 0]}, "max_steps[1] is 0; it must be an integer, 1 to"),
        ({"seeds": [1, 2], "max_steps": [1, 2, 3]}, "max_steps is [1, 2, 3]; it must be"),
        ({"seeds": [1], "max_steps": "x"}, "max_steps is"),
        ({"seeds": [1], "tag": -1}, "tag is -1"),
        ({"seeds": [1], "timeout": -1}, "timeout is -1"),
        ({"seeds": [1], "seed": 3}, "seed is 3; it must be left out: `seeds` has that of each request"),
    ],
)
def test_batches_are_checked(arguments: dict[str, Any], message: str) -> None:
    with RolloutEngine(SIMULATOR) as engine:
        with pytest.raises(doorstep.ArgumentError) as caught:
            engine.submit_batch(**arguments)
        assert message in str(caught.value)
        assert engine.outstanding == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: engine.submit(EpisodeRequest(), timeout="x"),
        lambda engine: engine.get_outputs(timeout=-1),
        lambda engine: engine.get_outputs(most=0),
        lambda engine: engine.get_outputs(block=2),
        lambda engine: engine.get_records(timeout=math.nan),
        lambda engine: engine.get_records(most=1.5),
        lambda engine: engine.drain(timeout=-1),
        lambda engine: engine.drain(timeout=1e300),
        lambda engine: engine.close(timeout=-1),
        lambda engine: engine.cancel(-1),
        lambda engine: engine.cancel("x"),
        lambda engine: RolloutEngine(3),  # type: ignore[arg-type]
        lambda engine: RolloutEngine(RolloutConfig(3)),  # type: ignore[arg-type]
    ],
)
def test_calls_are_checked(call: Any) -> None:
    with RolloutEngine(SIMULATOR) as engine, pytest.raises(doorstep.ArgumentError):
        call(engine)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"simulator": 3}, "simulator is 3; it must be a doorstep.SimulatorConfig"),
        ({"simulator": SimulatorConfig(2, cameras=Cameras(width=32, height=32))}, "without cameras"),
        ({"devices": "cpu"}, "devices is 'cpu'; it must be a sequence of one or more devices or None"),
        ({"devices": ()}, "devices is ()"),
        ({"devices": ("gpu",)}, "device is 'gpu'"),
        ({"scheduler": "priority"}, "it must be a scheduler of doorstep.rollouts: FixedChunkScheduler, "),
        ({"controller": None}, "controller is None"),
        ({"queue_capacity": 0}, "queue_capacity is 0; it must be an integer, 1 to 16777216"),
        ({"max_policies": 1025}, "max_policies is 1025; it must be an integer, 1 to 1024"),
    ],
)
def test_configs_are_checked(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        RolloutConfig(**{"simulator": SIMULATOR, **fields})
    assert message in str(caught.value)


def test_schedulers_and_controllers_are_checked() -> None:
    with pytest.raises(doorstep.ArgumentError, match="max_chunk is 0"):
        rollouts.FixedChunkScheduler(max_chunk=0)
    for fraction in (0, 1.5, "x", True):
        with pytest.raises(doorstep.ArgumentError, match="begin_fraction is"):
            rollouts.DynamicChunkScheduler(begin_fraction=fraction)  # type: ignore[arg-type]
    with pytest.raises(doorstep.ArgumentError, match="depth is 0"):
        rollouts.RoundRobinController(depth=0)
    with pytest.raises(doorstep.ArgumentError):
        RolloutConfig(SIMULATOR, scheduler=SchedulerConfig())


def test_configs_say_what_they_are() -> None:
    config = RolloutConfig(SIMULATOR, devices=("cpu", "cpu"), scheduler=rollouts.PriorityScheduler(max_chunk=3))
    assert config.scheduler.type == "priority"
    assert config.replica_devices == ("cpu", "cpu")
    assert RolloutConfig(SIMULATOR).replica_devices == (SIMULATOR.device,)
    assert "PriorityScheduler(max_chunk=3, preempts=False)" in repr(config)
    with RolloutEngine(config) as engine:
        assert engine.config is config
    with RolloutEngine(SIMULATOR) as engine:
        assert engine.config == RolloutConfig(SIMULATOR)


def test_requests_that_are_refused_take_no_number_of_a_policy() -> None:
    with RolloutEngine(RolloutConfig(SIMULATOR, max_policies=2)) as engine:
        for _ in range(9):
            with pytest.raises(doorstep.ArgumentError, match="policy is 3"):
                engine.submit(EpisodeRequest(policy=(lambda rows: walk(rows), 3)))
            with pytest.raises(doorstep.ArgumentError, match="max_levels"):
                engine.submit(EpisodeRequest(policy=lambda rows: walk(rows), level=levels.reference()))
        engine.submit(EpisodeRequest(policy=(lambda rows: walk(rows), "idle"), max_steps=2))
        assert next(iter(engine)).finished


def test_requests_that_are_refused_leave_nothing() -> None:
    def plays(rows: NDArray[np.float32]) -> NDArray[np.int32]:
        return walk(rows)

    with RolloutEngine(SIMULATOR) as engine:
        before = sys.getrefcount(plays)
        for _ in range(300):
            with pytest.raises(doorstep.ArgumentError):
                engine.submit(EpisodeRequest(policy=(plays, "no policy")))
        engine.run([EpisodeRequest(max_steps=1)])
        assert sys.getrefcount(plays) <= before + 1  # which the table keeps until its number is needed


def test_one_policy_may_be_the_only_one() -> None:
    with RolloutEngine(RolloutConfig(SIMULATOR, max_policies=1)) as engine:
        for policy in ("random", "idle", walk):
            engine.submit(EpisodeRequest(policy=policy, max_steps=2))
            assert next(iter(engine)).finished
        with pytest.raises(doorstep.ArgumentError, match="1 policies already"):
            engine.submit(EpisodeRequest(policy=("random", "idle")))
