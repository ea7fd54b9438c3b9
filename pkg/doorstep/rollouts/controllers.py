"""How requests reach the replicas of an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, final

from doorstep._arguments import refuse
from doorstep._configs import Implementations
from doorstep.errors import ClosedError
from doorstep.rollouts.config import ControllerConfig, PullController, RoundRobinController
from doorstep.rollouts.queues import OutputQueue, RequestQueue

_MOST_MOVED = 1024  # at a time
_SLICE_SECONDS = 0.05  # of a wait for requests, after which the thread looks whether it shall end


class Controller(Protocol):
    """Gives every replica the queue that it takes requests from.

    The class is called with its config, the engine's queue of waiting requests, that of outputs, and the number of
    replicas.
    """

    @property
    def queues(self) -> Sequence[RequestQueue]:
        """By replica: the engine's, or branches of it."""

    def replica_ended(self, number: int) -> None:
        """The replica plays no more, while others do."""

    def end(self) -> None:
        """Ends soon; takes no lock, and does not wait."""

    def join(self, timeout: float | None) -> None:
        """Waits for the end."""


MakeController = TypeVar("MakeController", bound="Callable[[Any, RequestQueue, OutputQueue, int], Controller]")

_CONTROLLERS: Implementations[Callable[[Any, RequestQueue, OutputQueue, int], Controller]] = Implementations(
    ControllerConfig, "doorstep.rollouts"
)


def register_controller(config: type[ControllerConfig]) -> Callable[[MakeController], MakeController]:
    """A class decorator: engines with this controller config use the class. The config has a type tag of its own, by
    which files and options name it.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import doorstep
    >>> from doorstep.rollouts import ControllerConfig, RolloutConfig, register_controller
    >>> @dataclass(frozen=True)
    ... class FirstReplicaConfig(ControllerConfig):
    ...     type: ClassVar[str] = "first_replica"
    >>> @register_controller(FirstReplicaConfig)
    ... class FirstReplica:
    ...     def __init__(self, config, waiting, outputs, num_replicas):
    ...         self.queues = [waiting, *(waiting.branch(1) for _ in range(num_replicas - 1))]
    ...     def replica_ended(self, number): ...
    ...     def end(self): ...
    ...     def join(self, timeout): ...
    >>> config = RolloutConfig(doorstep.SimulatorConfig(4), devices=("cpu", "cpu"), controller=FirstReplicaConfig())
    >>> with doorstep.RolloutEngine(config) as engine:
    ...     ids = engine.submit_batch(range(20), max_steps=3)
    ...     {result.replica for result in engine}
    {0}
    >>> config.to_dict()["controller"]
    {'type': 'first_replica'}

    Raises:
        ArgumentError: the config has no tag, or that of another one.
    """
    return _CONTROLLERS.register(config)


def make_controller(
    config: ControllerConfig, waiting: RequestQueue, outputs: OutputQueue, num_replicas: int
) -> Controller:
    """The controller of a config."""
    controller = _CONTROLLERS.find(config)(config, waiting, outputs, num_replicas)
    if len(controller.queues) != num_replicas:
        refuse("queues", f"{num_replicas} queues, one for each replica", controller.queues)
    return controller


@register_controller(PullController)
@final
class Pull:
    """All replicas take from the engine's queue."""

    def __init__(
        self, config: PullController, waiting: RequestQueue, outputs: OutputQueue, num_replicas: int
    ) -> None:
        self.queues: Sequence[RequestQueue] = (waiting,) * num_replicas

    def replica_ended(self, number: int) -> None: ...

    def end(self) -> None: ...

    def join(self, timeout: float | None) -> None: ...


@register_controller(RoundRobinController)
@final
class RoundRobin:
    """Moves requests to queues of the replicas, in turn, in a thread of its own."""

    def __init__(
        self, config: RoundRobinController, waiting: RequestQueue, outputs: OutputQueue, num_replicas: int
    ) -> None:
        self._waiting = waiting
        self.queues: Sequence[RequestQueue] = [waiting.branch(config.depth) for _ in range(num_replicas)]
        self._ended = False
        self._thread = threading.Thread(target=self._distribute, name="doorstep-controller", daemon=True)
        self._thread.start()

    def replica_ended(self, number: int) -> None:
        self.queues[number].close()

    def end(self) -> None:
        self._ended = True

    def join(self, timeout: float | None) -> None:
        self._thread.join(timeout)

    def _distribute(self) -> None:
        turn = 0
        try:
            while not self._ended:
                turn += self._waiting.move_to(*self.queues, first=turn, most=_MOST_MOVED, timeout=_SLICE_SECONDS)
        except ClosedError:
            pass  # the engine has ended
