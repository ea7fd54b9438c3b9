"""Which requests are played first, where you decide it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from doorstep._arguments import is_number, refuse
from doorstep.rollouts.config import SchedulerConfig
from doorstep.rollouts.request import EpisodeRequest


class Scheduler(Protocol):
    """Gives every request a key, when it is submitted; its `n` episodes have the same.

    The class is called with its config. Its object is called by one thread at a time.
    """

    def __call__(self, request: EpisodeRequest, /) -> float:
        """The key of the request, a finite number. The smallest is played first, equal ones in the order of their
        submission."""


MakeScheduler = TypeVar("MakeScheduler", bound="Callable[[Any], Scheduler]")

_OF_LIBRARY = SchedulerConfig.registry.classes()


def register_scheduler(config: type[SchedulerConfig]) -> Callable[[MakeScheduler], MakeScheduler]:
    """A class decorator: engines with this scheduler config use the class. The config has a type tag of its own, by
    which files and options name it, and the fields of every scheduler.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import doorstep
    >>> from doorstep.rollouts import RolloutConfig, SchedulerConfig, register_scheduler
    >>> @dataclass(frozen=True)
    ... class LastSeedConfig(SchedulerConfig):
    ...     type: ClassVar[str] = "last_seed"
    >>> @register_scheduler(LastSeedConfig)
    ... class LastSeed:
    ...     def __init__(self, config):
    ...         pass
    ...     def __call__(self, request):
    ...         return -request.seed
    >>> config = RolloutConfig(doorstep.SimulatorConfig(1), scheduler=LastSeedConfig())
    >>> with doorstep.RolloutEngine(config) as engine:
    ...     ids = engine.submit_batch([1, 2, 3, 1, 2, 3], max_steps=10)
    ...     [result.request.seed for result in engine]
    [3, 3, 2, 2, 1, 1]
    >>> config.to_dict()["scheduler"]
    {'type': 'last_seed', 'max_chunk': None, 'preempts': False}

    A key does not change while its request waits. An exception of the class goes to the submission, of which no request
    is played.

    Raises:
        ArgumentError: the config has no tag, or that of another one.
    """
    return SchedulerConfig.implement(config)


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
