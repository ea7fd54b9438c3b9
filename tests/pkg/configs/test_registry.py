"""Type tags and the classes that they choose; schedulers and controllers of users."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep._configs import Integer
from doorstep._native import _generated as native
from doorstep.errors import ArgumentError
from doorstep.policy.sampling import SamplerConfig, SamplingParams
from doorstep.rollouts import ControllerConfig, SchedulerConfig, register_controller, register_scheduler

pytestmark = pytest.mark.usefixtures("undone_registrations")


def test_every_scheduler_and_controller_of_the_library_has_a_class() -> None:
    of_library = [member.name.lower() for member in native.Scheduler if member != native.Scheduler.CALLER]
    assert list(SchedulerConfig.registry) == of_library
    assert list(ControllerConfig.registry) == ["pull", "round_robin"]
    assert list(SamplerConfig.registry) == ["categorical"]
    assert SamplerConfig.from_dict({"type": "categorical", "top_p": 0.5}) == SamplingParams(top_p=0.5)


def test_a_scheduler_of_the_users_orders_requests() -> None:
    @dataclass(frozen=True)
    class TagsConfig(SchedulerConfig):
        type: ClassVar[str] = "tags"
        sign: Annotated[int, Integer(-1, 1), "1: the smallest tag first."] = 1

    keys: list[int] = []

    @register_scheduler(TagsConfig)
    class Tags:
        def __init__(self, config: TagsConfig) -> None:
            self.config = config

        def __call__(self, request: EpisodeRequest) -> float:
            keys.append(request.tag)
            return self.config.sign * request.tag / 1000

    config = RolloutConfig.from_dict({"simulator": {"num_worlds": 1}, "scheduler": {"type": "tags", "sign": -1}})
    assert config.scheduler == TagsConfig(sign=-1)
    part = config._handle().part(native.ConfigKind.SCHEDULER)
    assert part.struct().type == native.Scheduler.CALLER
    tags = [3, 1, 4, 1, 5, 9, 2, 6]
    all_wait = threading.Event()

    def hold(observations: NDArray[Any]) -> NDArray[Any]:
        all_wait.wait()
        return np.zeros((len(observations), 4), np.int32)

    with RolloutEngine(config) as engine:
        engine.submit(EpisodeRequest(policy=hold, tag=100, max_steps=1))
        ids = engine.submit([EpisodeRequest(tag=tag, max_steps=2) for tag in tags])
        ids += engine.submit_batch(range(3), tag=4, max_steps=2).tolist()
        assert keys == [100, *tags, 4, 4, 4]  # once each
        all_wait.set()
        results = list(engine)
    assert [result.request.tag for result in results[1:]] == [9, 6, 5, 4, 4, 4, 4, 3, 2, 1, 1]
    equal = [result.id for result in results if result.request.tag == 4]
    assert equal == [ids[2], *ids[8:]]  # in the order of their submission


def test_schedulers_must_fit() -> None:
    @dataclass(frozen=True)
    class Unregistered(SchedulerConfig):
        type: ClassVar[str] = "unregistered"

    with pytest.raises(ArgumentError, match=r"no class is registered for.*doorstep.rollouts.register_scheduler"):
        RolloutEngine(RolloutConfig(SimulatorConfig(1), scheduler=Unregistered()))

    @register_scheduler(Unregistered)
    class SeedChooses:
        def __init__(self, config: object) -> None: ...
        def __call__(self, request: EpisodeRequest) -> Any:
            return {0: None, 1: float("nan"), 2: "first", 3: True, 4: 10**400, 5: float("inf")}[request.seed]

    with RolloutEngine(RolloutConfig(SimulatorConfig(1), scheduler=Unregistered())) as engine:
        for seed in range(6):
            with pytest.raises(ArgumentError, match=r"^key is .*it must be a finite number"):
                engine.submit([EpisodeRequest(seed=seed)])
        with pytest.raises(KeyError):
            engine.submit(EpisodeRequest(seed=6))
        assert engine.outstanding == 0


def test_a_controller_of_the_users_chooses_replicas() -> None:
    @dataclass(frozen=True)
    class LastConfig(ControllerConfig):
        type: ClassVar[str] = "last"
        every: Annotated[int, Integer(1, 100), "Requests of which one may be played anywhere."] = 5

    made: list[Last] = []

    @register_controller(LastConfig)
    class Last:
        """All but some to the last replica."""

        def __init__(self, config: LastConfig, num_replicas: int) -> None:
            made.append(self)
            self.config, self.num_replicas, self.asked = config, num_replicas, 0

        def __call__(self, request: EpisodeRequest) -> int | None:
            self.asked += 1
            return None if request.seed % self.config.every == 0 else self.num_replicas - 1

    config = RolloutConfig.from_dict(
        {
            "simulator": {"num_worlds": 2},
            "devices": ["cpu", "cpu", "cpu"],
            "controller": {"type": "last", "every": 7},
        }
    )
    assert config.controller == LastConfig(every=7)
    part = config._handle().part(native.ConfigKind.CONTROLLER)
    assert part.struct().type == native.Controller.CALLER
    with RolloutEngine(config) as engine:
        ids = engine.submit([EpisodeRequest(seed=seed, max_steps=5) for seed in range(30)])
        ids += engine.submit_batch(range(30), max_steps=5).tolist()
        results = {result.id: result for result in engine}
        assert sorted(results) == sorted(ids)
        for result in results.values():
            assert result.replica == 2 or result.request.seed % 7 == 0
        assert {result.replica for result in results.values() if result.request.seed % 7 == 0} == {0, 1, 2}
        (controller,) = made
        assert (controller.config, controller.asked) == (config.controller, 60)
        engine._core.handle.end_replica(2)
        assert {result.replica for result in engine.run([EpisodeRequest(seed=1)] * 10)} <= {0, 1, 2}
        assert {result.replica for result in engine.run([EpisodeRequest(seed=1)] * 10)} == {0, 1}  # others play on
    made.clear()  # the registry keeps the class, which refers to the list


def test_controllers_must_fit() -> None:
    @dataclass(frozen=True)
    class Unregistered(ControllerConfig):
        type: ClassVar[str] = "unregistered"

    with pytest.raises(ArgumentError, match="no class is registered for"):
        RolloutEngine(RolloutConfig(SimulatorConfig(1), controller=Unregistered()))

    @register_controller(Unregistered)
    class SeedChooses:
        def __init__(self, config: object, num_replicas: int) -> None: ...
        def __call__(self, request: EpisodeRequest) -> Any:
            return {0: 2, 1: -1, 2: "first", 3: True}[request.seed]

    config = RolloutConfig(SimulatorConfig(1), devices=("cpu", "cpu"), controller=Unregistered())
    with RolloutEngine(config) as engine:
        for seed in range(4):
            with pytest.raises(ArgumentError, match=r"^replica is .*it must be 0 to 1 or None"):
                engine.submit(EpisodeRequest(seed=seed))
        with pytest.raises(KeyError):
            engine.submit(EpisodeRequest(seed=4))
        assert engine.outstanding == 0


def test_tags_are_of_one_class() -> None:
    @dataclass(frozen=True)
    class Thief(ControllerConfig):
        type: ClassVar[str] = "pull"

    with pytest.raises(ArgumentError, match=r"type is 'pull'; it must be another tag than that of PullController"):
        register_controller(Thief)

    @dataclass(frozen=True)
    class Nameless(ControllerConfig):
        pass

    with pytest.raises(ArgumentError, match="it must be the tag of the controller"):
        register_controller(Nameless)
    with pytest.raises(ArgumentError, match=r"it must be a subclass of doorstep.rollouts.ControllerConfig"):
        register_controller(SimulatorConfig)  # type: ignore[arg-type]
    assert list(ControllerConfig.registry) == ["pull", "round_robin"]
