"""Which requests are played first, and by which replica, where you decide it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from doorstep._arguments import is_number, refuse
from doorstep.rollouts.config import ControllerConfig, SchedulerConfig
from doorstep.rollouts.request import EpisodeRequest


class Scheduler(Protocol):
    """Gives every request a key, when it is submitted; its `n` episodes have the same.

    The class is called with its config. Its object is called by one thread at a time.
    """

    def __call__(self, request: EpisodeRequest, /) -> float:
        """The key of the request, a finite number. The smallest is played first, equal ones in the order of their
        submission."""


class Controller(Protocol):
    """Chooses a replica for every request, when it is submitted; for all of its `n` episodes.

    The class is called with its config and the number of replicas that the engine has at first. Its object is called by
    one thread at a time.
    """

    def __call__(self, request: EpisodeRequest, /) -> int | None:
        """The number of the replica that plays the request; None: any."""


Implementation = TypeVar("Implementation", bound="Callable[..., Scheduler] | Callable[..., Controller]")

_BASES: tuple[type[SchedulerConfig] | type[ControllerConfig], ...] = SchedulerConfig, ControllerConfig
_OF_LIBRARY = tuple(known for base in _BASES for known in base.registry.classes())


def register(config: type[SchedulerConfig] | type[ControllerConfig]) -> Callable[[Implementation], Implementation]:
    """A class decorator: engines with this scheduler or controller config use the class, see `Scheduler` and
    `Controller`. The config has a type tag of its own, by which files and options name it, and the fields of every
    scheduler if it is one.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import doorstep
    >>> from doorstep.rollouts import ControllerConfig, EpisodeColumns, RolloutConfig, SchedulerConfig, register
    >>> @dataclass(frozen=True)
    ... class LastSeedConfig(SchedulerConfig):
    ...     type: ClassVar[str] = "last_seed"
    >>> @register(LastSeedConfig)
    ... class LastSeed:
    ...     def __init__(self, config):
    ...         pass
    ...     def __call__(self, request):
    ...         return -request.seed
    >>> config = RolloutConfig(doorstep.SimulatorConfig(1), scheduler="last_seed")
    >>> with doorstep.RolloutEngine(config) as engine:
    ...     ids = engine.submit(EpisodeColumns([1, 2, 3, 1, 2, 3], max_steps=10))
    ...     [result.request.seed for result in engine]
    [3, 3, 2, 2, 1, 1]

    >>> @dataclass(frozen=True)
    ... class BySeedConfig(ControllerConfig):
    ...     type: ClassVar[str] = "by_seed"
    >>> @register(BySeedConfig)
    ... class BySeed:
    ...     def __init__(self, config, num_replicas):
    ...         self.num_replicas = num_replicas
    ...     def __call__(self, request):
    ...         return request.seed % self.num_replicas
    >>> config = RolloutConfig(doorstep.SimulatorConfig(4), devices=("cpu", "cpu"), controller="by_seed")
    >>> with doorstep.RolloutEngine(config) as engine:
    ...     results = engine.run(EpisodeColumns(range(20), max_steps=3))
    >>> (results.replica == [result.request.seed % 2 for result in results]).all()
    np.True_

    A key does not change while its request waits. The requests of a replica that has ended are played by others. An
    exception of the class goes to the submission, of which no request is played.

    Raises:
        ArgumentError: it is no such config, or it has no tag, or that of another one.
    """
    base = next((base for base in _BASES if isinstance(config, type) and issubclass(config, base)), None)
    if base is None:
        refuse("config", "a subclass of doorstep.rollouts.SchedulerConfig or ControllerConfig", config)
    return base.implement(config)


def make_scheduler(config: SchedulerConfig) -> Callable[[EpisodeRequest], float] | None:
    """What gives a request its key; None for the library's own schedulers."""
    if isinstance(config, _OF_LIBRARY):
        return None
    scheduler: Scheduler = config.make()

    def key_of(request: EpisodeRequest) -> float:
        key = scheduler(request)
        if not is_number(key) or not abs(key) <= sys.float_info.max:
            refuse("key", "a finite number, as the scheduler gives it", key)
        return key

    return key_of


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
        is_integer = isinstance(number, int) and not isinstance(number, bool)
        if not is_integer or (not 0 <= number < num_replicas and not 0 <= number < num_now()):
            refuse("replica", f"0 to {num_now() - 1} or None, as the controller chooses it", number)
        return number

    return choose
