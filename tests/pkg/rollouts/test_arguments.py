"""Arguments that are refused, and the messages that say what they must be."""

import functools
import math
import sys

import numpy as np
import pytest
from tests.pkg.rollouts.playing import info_of, walk
from tests.refuses import assert_refused

import doorstep
from doorstep import Cameras, EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig, levels
from doorstep.planner import ScriptedPolicy
from doorstep.rollouts import ControllerConfig, EpisodeColumns, SchedulerConfig

SIMULATOR = SimulatorConfig(2)

REQUESTS = [
    ({"seed": -1}, "seed is -1; it must be an integer, 0 to 4294967295"),
    ({"seed": 2**32}, "seed is 4294967296"),
    ({"max_steps": 0}, "max_steps is 0; it must be an integer, 1 to"),
    ({"priority": 2**62 + 1}, "priority is 4611686018427387905"),
    ({"tag": 2**64}, "tag is 18446744073709551616"),
    ({"n": 0}, "n is 0"),
    ({"deadline": 0}, "deadline is 0; it must be None or a number of seconds, more than 0"),
    ({"deadline": math.nan}, "deadline is nan"),
    ({"deadline": 1e300}, "deadline is 1e+300; it must be None or a number of seconds, more than 0 and at most"),
    ({"record": "rewards"}, "record is 'rewards'; it must be some of 'actions', 'observations', 'log_probs'"),
    ({"level": "one door"}, "level is 'one door'; it must be a doorstep.Level, a GeneratedLevel or None"),
    ({"state": "x"}, "state is 'x'"),
    ({"level": levels.reference(), "state": b""}, "level is"),
    ({"sampling": {"temperature": 1}}, "sampling is"),
    ({"policy": ["idle", "idle"]}, "policy is ['idle', 'idle']"),
    ({"policy": ("idle", 5)}, "policy is 5"),
    ({"policy": ScriptedPolicy()}, 'it must be one that observes "flat" and not "simulator"'),
]
CONFIGS = [
    ({"simulator": 3}, "simulator is 3; it must be a doorstep.SimulatorConfig"),
    ({"simulator": SimulatorConfig(2, cameras=Cameras(width=32, height=32))}, "without cameras"),
    ({"devices": "cpu"}, "devices is 'cpu'; it must be a sequence of one or more devices"),
    ({"devices": ("gpu",)}, "device is 'gpu'"),
    ({"scheduler": "priorities"}, "is 'priorities' ... dynamic_chunk"),
    ({"controller": SIMULATOR}, "controller is"),
    ({"queue_capacity": 0}, "queue_capacity is 0; it must be an integer, 1 to 16777216"),
    ({"output_capacity": 2**60}, "output_capacity is"),
    ({"output_bytes": 0}, "output_bytes is 0"),
    ({"max_policies": 1025}, "max_policies is 1025; it must be an integer, 1 to 1024"),
]


def test_requests_and_configs_are_checked():
    assert_refused(EpisodeRequest, REQUESTS)
    assert_refused(lambda simulator=SIMULATOR, **fields: RolloutConfig(simulator, **fields), CONFIGS)
    assert_refused(functools.partial(SchedulerConfig.of, "fixed_chunk"), [({"max_chunk": 0}, "max_chunk is 0")])
    fractions = [({"begin_fraction": one}, "begin_fraction is") for one in (0, 1.5, "x", True)]
    assert_refused(functools.partial(SchedulerConfig.of, "dynamic_chunk"), fractions)
    for kind, tag in ((SchedulerConfig, "pull"), (ControllerConfig, "priority")):
        with pytest.raises(doorstep.ArgumentError, match=f"'{tag}'"):
            kind.of(tag)


def test_requests_have_named_fields_only_and_are_frozen():
    with pytest.raises(TypeError):
        EpisodeRequest(3)
    with pytest.raises(AttributeError):
        EpisodeRequest().seed = 3
    assert EpisodeRequest(record=["stream", "actions"]).record == ("actions", "stream")
    assert EpisodeRequest(seed=np.int64(3)) == EpisodeRequest(seed=3)
    for limits in ({"seed": 2**32 - 1}, {"tag": 2**64 - 1}, {"priority": -(2**62)}, {"n": 2**24}, {"max_steps": 1}):
        EpisodeRequest(**limits)


def test_what_is_submitted_is_checked_and_changes_nothing():
    cases = [
        (3, "requests is 3; it must be a doorstep.EpisodeRequest, a sequence of them, or EpisodeColumns"),
        ([EpisodeRequest(), "x"], "requests is 'x'"),
        ([EpisodeRequest(n=2**24), EpisodeRequest()], "at most 16777216 episodes"),
        (EpisodeRequest(policy=None), "policy is None"),
        (EpisodeRequest(policy=("idle",)), "policy is ('idle',); it must be one policy, or a tuple of 2"),
        (EpisodeRequest(policy="walk"), "policy is 'walk'; it must be 'random', 'idle', "),
        (EpisodeRequest(policy="no_such_module:walk"), "policy is 'no_such_module:walk'; there is no module"),
        (EpisodeRequest(level=levels.reference()), "create the engine with max_levels"),
    ]
    with RolloutEngine(SIMULATOR) as engine:
        assert_refused(engine.submit, cases)
        assert_refused(engine.run, cases)
        assert_refused(engine.future, cases)
        assert (engine.outstanding, info_of(engine).submitted) == (0, 0)
        assert engine.submit([EpisodeRequest(max_steps=1)]) == [result.id for result in engine]
        assert len(engine.submit([])) == len(engine.submit(EpisodeColumns([]))) == len(engine.run([])) == 0


def test_calls_are_checked():
    with RolloutEngine(SIMULATOR) as engine:
        assert_refused(lambda timeout: engine.submit(EpisodeRequest(), timeout=timeout), [("x", "timeout is 'x'")])
        wrong = {"timeout": (-1, math.nan, 1e300), "most": (0, 1.5), "block": (2,)}
        rows = [({name: value}, f"{name} is") for name, values in wrong.items() for value in values]
        assert_refused(engine.get_outputs, rows)
        assert_refused(engine.close, [({"timeout": -1}, "timeout is")])
        assert_refused(engine.cancel, [(-1, "request_id is -1")])
    assert_refused(
        RolloutEngine, [({"config": 3}, "config is 3"), ({"config": SIMULATOR, "metrics": {}}, "metrics is")]
    )


def test_requests_that_are_refused_leave_nothing():
    def plays(rows):
        return walk(rows)

    with RolloutEngine(RolloutConfig(SIMULATOR, max_policies=2)) as engine:
        before = sys.getrefcount(plays)
        for _ in range(100):
            with pytest.raises(doorstep.ArgumentError, match="policy is 3"):
                engine.submit(EpisodeRequest(policy=(lambda rows: walk(rows), 3)))
            with pytest.raises(doorstep.ArgumentError, match="max_levels"):
                engine.submit(EpisodeRequest(policy=plays, level=levels.reference()))
        engine.submit(EpisodeRequest(policy=(lambda rows: walk(rows), "idle"), max_steps=2))
        assert next(iter(engine)).finished
        assert sys.getrefcount(plays) <= before + 1  # which the table keeps until its number is needed
