"""Type tags and the classes that they choose; controllers of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest

import doorstep
from doorstep import EpisodeRequest, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep._configs import Integer
from doorstep._native import _generated as native
from doorstep.errors import ArgumentError
from doorstep.policy.sampling import SamplerConfig, SamplingParams
from doorstep.rollouts import ControllerConfig, register_controller
from doorstep.rollouts.config import SchedulerConfig
from doorstep.rollouts.queues import OutputQueue, RequestQueue

pytestmark = pytest.mark.usefixtures("undone_registrations")


def test_every_scheduler_and_controller_of_the_library_has_a_class() -> None:
    assert list(SchedulerConfig.registry) == [member.name.lower() for member in native.Scheduler]
    assert list(ControllerConfig.registry) == ["pull", "round_robin"]
    assert list(SamplerConfig.registry) == ["categorical"]
    assert SamplerConfig.from_dict({"type": "categorical", "top_p": 0.5}) == SamplingParams(top_p=0.5)


def test_a_controller_of_the_users_distributes_requests() -> None:
    @dataclass(frozen=True)
    class AlternatingConfig(ControllerConfig):
        type: ClassVar[str] = "alternating"
        depth: Annotated[int, Integer(1, 100), "Requests that wait for a replica."] = 5

    made: list[Alternating] = []

    @register_controller(AlternatingConfig)
    class Alternating:
        """All to the last replica; the config, and both queues of the engine are given."""

        def __init__(
            self, config: AlternatingConfig, waiting: RequestQueue, outputs: OutputQueue, num_replicas: int
        ) -> None:
            made.append(self)
            self.config, self.outputs, self.ended = config, outputs, 0
            branches = [waiting.branch(config.depth) for _ in range(num_replicas - 1)]
            self.queues: Sequence[RequestQueue] = [*branches, waiting]

        def replica_ended(self, number: int) -> None: ...

        def end(self) -> None:
            self.ended += 1

        def join(self, timeout: float | None) -> None: ...

    config = RolloutConfig.from_dict(
        {
            "simulator": {"num_worlds": 2},
            "devices": ["cpu", "cpu", "cpu"],
            "controller": {"type": "alternating", "depth": 7},
        }
    )
    assert config.controller == AlternatingConfig(depth=7)
    part = config._handle().part(native.ConfigKind.CONTROLLER)
    assert part.struct().type == native.Controller.CALLER
    with RolloutEngine(config) as engine:
        ids = engine.submit([EpisodeRequest(seed=seed, max_steps=5) for seed in range(30)])
        results = {result.id: result for result in engine}
        assert sorted(results) == sorted(ids)
        assert {result.replica for result in results.values()} == {2}
        (controller,) = made
        assert controller.config == config.controller
        assert len(controller.outputs) == 0
    assert controller.ended >= 1
    made.clear()  # the registry keeps the class, which refers to the list


def test_controllers_must_fit() -> None:
    @dataclass(frozen=True)
    class Unregistered(ControllerConfig):
        type: ClassVar[str] = "unregistered"

    with pytest.raises(ArgumentError, match="no class is registered for"):
        RolloutEngine(RolloutConfig(SimulatorConfig(1), controller=Unregistered()))

    @register_controller(Unregistered)
    class TooFew:
        def __init__(self, config: object, waiting: RequestQueue, outputs: object, num_replicas: int) -> None:
            self.queues = [waiting]

        def replica_ended(self, number: int) -> None: ...
        def end(self) -> None: ...
        def join(self, timeout: float | None) -> None: ...

    with pytest.raises(ArgumentError, match="it must be 2 queues, one for each replica"):
        RolloutEngine(RolloutConfig(SimulatorConfig(1), devices=("cpu", "cpu"), controller=Unregistered()))


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


def test_branches_are_checked() -> None:
    with RolloutEngine(SimulatorConfig(1)) as engine:
        for capacity in (0, 2**24 + 1, 1.5):
            with pytest.raises(doorstep.ArgumentError, match=r"^capacity is "):
                engine.waiting_queue.branch(capacity)  # type: ignore[arg-type]
