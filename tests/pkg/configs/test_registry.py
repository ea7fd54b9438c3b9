"""Type tags and the classes that they choose; controllers of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest

from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep._configs import Integer
from doorstep._native import _generated as native
from doorstep.errors import ArgumentError
from doorstep.policy.sampling import SamplerConfig, SamplingParams
from doorstep.rollouts import ControllerConfig, register_controller
from doorstep.rollouts.config import SchedulerConfig

pytestmark = pytest.mark.usefixtures("undone_registrations")


def test_every_scheduler_and_controller_of_the_library_has_a_class() -> None:
    assert list(SchedulerConfig.registry) == [member.name.lower() for member in native.Scheduler]
    assert list(ControllerConfig.registry) == ["pull", "round_robin"]
    assert list(SamplerConfig.registry) == ["categorical"]
    assert SamplerConfig.from_dict({"type": "categorical", "top_p": 0.5}) == SamplingParams(top_p=0.5)


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
