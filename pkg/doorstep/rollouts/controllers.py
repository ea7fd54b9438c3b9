"""Which replica plays a request, where you decide it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from doorstep._arguments import refuse
from doorstep.rollouts.config import ControllerConfig
from doorstep.rollouts.request import EpisodeRequest


class Controller(Protocol):
    """Chooses a replica for every request, when it is submitted; for all of its `n` episodes.

    The class is called with its config and the number of replicas that the engine has at first. Its object is called by
    one thread at a time.
    """

    def __call__(self, request: EpisodeRequest, /) -> int | None:
        """The number of the replica that plays the request; None: any."""


MakeController = TypeVar("MakeController", bound="Callable[[Any, int], Controller]")

_OF_LIBRARY = ControllerConfig.registry.classes()


def register_controller(config: type[ControllerConfig]) -> Callable[[MakeController], MakeController]:
    """A class decorator: engines with this controller config use the class. The config has a type tag of its own, by
    which files and options name it.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import doorstep
    >>> from doorstep.rollouts import ControllerConfig, RolloutConfig, register_controller
    >>> @dataclass(frozen=True)
    ... class BySeedConfig(ControllerConfig):
    ...     type: ClassVar[str] = "by_seed"
    >>> @register_controller(BySeedConfig)
    ... class BySeed:
    ...     def __init__(self, config, num_replicas):
    ...         self.num_replicas = num_replicas
    ...     def __call__(self, request):
    ...         return request.seed % self.num_replicas
    >>> config = RolloutConfig(doorstep.SimulatorConfig(4), devices=("cpu", "cpu"), controller=BySeedConfig())
    >>> with doorstep.RolloutEngine(config) as engine:
    ...     ids = engine.submit_batch(range(20), max_steps=3)
    ...     all(result.replica == result.request.seed % 2 for result in engine)
    True
    >>> config.to_dict()["controller"]
    {'type': 'by_seed'}

    Each replica has a queue for its requests. If it is full, others wait behind its next request. The requests of a
    replica that has ended are played by others.

    Raises:
        ArgumentError: the config has no tag, or that of another one.
    """
    return ControllerConfig.implement(config)


def make_controller(
    config: ControllerConfig, num_replicas: int, num_now: Callable[[], int]
) -> Callable[[EpisodeRequest], int] | None:
    """What chooses a replica, or -1, for a request; None for the library's own controllers.

    Args:
        num_replicas: that the engine has at first.
        num_now: tells how many numbers replicas have had.
    """
    if isinstance(config, _OF_LIBRARY):
        return None
    controller: Controller = config.make(num_replicas)

    def choose(request: EpisodeRequest) -> int:
        number = controller(request)
        if number is None:
            return -1
        is_number = isinstance(number, int) and not isinstance(number, bool)
        if not is_number or (not 0 <= number < num_replicas and not 0 <= number < num_now()):
            refuse("replica", f"0 to {num_now() - 1} or None, as the controller chooses it", number)
        return number

    return choose
