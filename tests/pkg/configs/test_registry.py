"""Type tags and the classes that they choose; schedulers and controllers of users."""

import threading
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pytest
from tests.pkg.rollouts.playing import end_replica
from tests.refuses import refuses

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep._configs import Integer
from doorstep._native import _generated as native
from doorstep.policy.sampling import SamplerConfig, SamplingParams
from doorstep.rollouts import ControllerConfig, EpisodeColumns, SchedulerConfig, register

pytestmark = pytest.mark.usefixtures("undone_registrations")


def test_tags_choose_the_classes_of_the_library():
    of_library = [member.name.lower() for member in native.Scheduler if member != native.Scheduler.CALLER]
    assert list(SchedulerConfig.registry) == of_library
    assert list(ControllerConfig.registry) == ["pull", "round_robin"]
    config = RolloutConfig(SimulatorConfig(1), scheduler="fair_share", controller="round_robin")
    assert (config.scheduler, config.controller.type) == (SchedulerConfig.of("fair_share"), "round_robin")
    refuses("'pull'", SchedulerConfig.of, "pull")
    assert list(SamplerConfig.registry) == ["categorical"]
    assert SamplerConfig.from_dict({"type": "categorical", "top_p": 0.5}) == SamplingParams(top_p=0.5)


def test_a_scheduler_of_the_users_orders_requests():
    @dataclass(frozen=True)
    class TagsConfig(SchedulerConfig):
        type: ClassVar[str] = "tags"
        sign: Annotated[int, Integer(-1, 1), "1: the smallest tag first."] = 1

    keys = []

    @register(TagsConfig)
    class Tags:
        def __init__(self, config):
            self.config = config

        def __call__(self, request):
            keys.append(request.tag)
            return self.config.sign * request.tag / 1000

    config = RolloutConfig.from_dict({"simulator": {"num_worlds": 1}, "scheduler": {"type": "tags", "sign": -1}})
    assert config.scheduler == TagsConfig(sign=-1)
    tags, all_wait = [3, 1, 4, 1, 5, 9, 2, 6], threading.Event()

    def hold(observations):
        all_wait.wait()
        return np.zeros((len(observations), 4), np.int32)

    with RolloutEngine(config) as engine:
        engine.submit(EpisodeRequest(policy=hold, tag=100, max_steps=1))
        ids = engine.submit([EpisodeRequest(tag=tag, max_steps=2) for tag in tags])
        ids += engine.submit(EpisodeColumns(range(3), tag=4, max_steps=2)).tolist()
        assert keys == [100, *tags, 4, 4, 4]  # once each
        all_wait.set()
        results = list(engine)
    assert [result.request.tag for result in results[1:]] == [9, 6, 5, 4, 4, 4, 4, 3, 2, 1, 1]
    equal = [result.id for result in results if result.request.tag == 4]
    assert equal == [ids[2], *ids[8:]]  # in the order of their submission


def test_a_controller_of_the_users_chooses_replicas():
    @dataclass(frozen=True)
    class LastConfig(ControllerConfig):
        type: ClassVar[str] = "last"
        every: Annotated[int, Integer(1, 100), "Requests of which one may be played anywhere."] = 5

    made = []

    @register(LastConfig)
    class Last:
        """All but some to the last replica."""

        def __init__(self, config, num_replicas):
            made.append(self)
            self.config, self.num_replicas, self.asked = config, num_replicas, 0

        def __call__(self, request):
            self.asked += 1
            return None if request.seed % self.config.every == 0 else self.num_replicas - 1

    config = RolloutConfig.from_dict(
        {"simulator": {"num_worlds": 2}, "devices": ["cpu", "cpu", "cpu"], "controller": {"type": "last", "every": 7}}
    )
    assert config.controller == LastConfig(every=7)
    with RolloutEngine(config) as engine:
        ids = engine.submit([EpisodeRequest(seed=seed, max_steps=5) for seed in range(30)])
        ids += engine.submit(EpisodeColumns(range(30), max_steps=5)).tolist()
        results = {result.id: result for result in engine}
        assert sorted(results) == sorted(ids)
        for result in results.values():
            assert result.replica == 2 or result.request.seed % 7 == 0
        (controller,) = made
        assert (controller.config, controller.asked) == (config.controller, 60)
        end_replica(engine, 2)
        engine.run([EpisodeRequest(seed=1)] * 10)
        assert {result.replica for result in engine.run([EpisodeRequest(seed=1)] * 10)} <= {0, 1}  # others play on
    made.clear()  # the registry keeps the class, which refers to the list


@pytest.mark.parametrize("part", ["scheduler", "controller"])
def test_schedulers_and_controllers_must_fit(part):
    base = SchedulerConfig if part == "scheduler" else ControllerConfig
    answers, says = (2, -1, "first", True), "^replica is .*it must be 0 to 1 or None"
    if part == "scheduler":
        answers, says = (None, float("nan"), "first", True, 10**400, float("inf")), "^key is .*must be a finite number"

    @dataclass(frozen=True)
    class Unregistered(base):
        type: ClassVar[str] = "unregistered"

    config = RolloutConfig(SimulatorConfig(1), devices=("cpu", "cpu"), **{part: Unregistered()})
    refuses(r"no class is registered for.*doorstep\.rollouts\.register", RolloutEngine, config)

    @register(Unregistered)
    class SeedChooses:
        def __init__(self, *_): ...
        def __call__(self, request):
            return answers[request.seed]

    with RolloutEngine(config) as engine:
        for seed in range(len(answers)):
            refuses(says, engine.submit, [EpisodeRequest(seed=seed)])
        refuses(None, engine.submit, EpisodeRequest(seed=len(answers)), error=IndexError)
        assert engine.outstanding == 0


def test_tags_are_of_one_class():
    @dataclass(frozen=True)
    class Thief(ControllerConfig):
        type: ClassVar[str] = "pull"

    refuses(r"type is 'pull'; it must be another tag than that of PullController", register, Thief)

    @dataclass(frozen=True)
    class Nameless(ControllerConfig):
        pass

    refuses("it must be the tag of the", register, Nameless)
    refuses(r"it must be a subclass of doorstep.rollouts.SchedulerConfig or ", register, SimulatorConfig)
