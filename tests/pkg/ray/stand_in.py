"""A stand-in for Ray: actors in this thread, which live, die and raise as a test says."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import doorstep
from doorstep import EpisodeRequest, EpisodeResult
from doorstep.ray.pool import MOST_CALLS
from doorstep.rollouts.result import make_unplayed

Answers = list[EpisodeResult | str]


class RayError(Exception):
    """Of Ray: an actor is lost."""


class RayTaskError(RayError):
    """Of Ray: an actor has raised."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("raised in an actor")
        self.cause = cause


def played(requests: list[EpisodeRequest]) -> Answers:
    """What an actor answers that does its work."""
    return [make_unplayed(-1, EpisodeRequest(), 0, "time", 2, "") for _ in requests]


class Actor:
    """An actor, and Ray's handle of it.

    Attributes:
        number: counts the actors from 0.
        is_dead: what it is asked is never answered, but by a RayError.
        version: of doorstep on its machine.
    """

    def __init__(self, ray: StandIn, number: int) -> None:
        self.ray, self.number = ray, number
        self.is_ready = self.is_dead = False
        self.version = doorstep.__version__
        self.outstanding = 0
        self.ready = SimpleNamespace(remote=self._ready)
        self.play = SimpleNamespace(remote=self._play)

    def _ready(self) -> Any:
        self.ray.check_runs()
        self.is_ready = False
        return self.ray.promise(self, self._become_ready)

    def _become_ready(self) -> str:
        self.is_ready = True
        return self.version

    def _play(self, requests: list[EpisodeRequest], continuations: list[int]) -> Any:
        self.ray.check_runs()
        assert len(continuations) == len(requests)
        assert self.is_ready, "it has not said that it is ready"
        assert self.outstanding < MOST_CALLS
        answer = self.ray.behave(self, requests)
        self.outstanding += 1
        return self.ray.promise(self, lambda: self._answer(answer, requests))

    def _answer(self, answer: Callable[[list[EpisodeRequest]], Answers], requests: list[EpisodeRequest]) -> Answers:
        self.outstanding -= 1
        return answer(requests)


class Call(Future[Any]):
    """A call of an actor, which answers when it is looked at and is the first one."""

    def __init__(self, ray: StandIn, actor: Actor, answer: Callable[[], Any]) -> None:
        super().__init__()
        self._ray, self.actor, self._answer = ray, actor, answer

    def done(self) -> bool:
        if not super().done() and self is self._ray.calls[0] and not self._ray.is_over:
            self._ray.calls.remove(self)
            self._become_done()
        return super().done()

    def _become_done(self) -> None:
        try:
            if self.actor.is_dead:
                raise RayError("the actor is dead\nand much more")
            self.set_result(self._answer())
        except Exception as error:
            self.set_exception(error)


class StandIn:
    """The functions of Ray that a pool calls.

    Args:
        behave: called when an actor is sent requests. May raise, let the actor die, and returns what will answer.

    Attributes:
        is_over: after ray.shutdown(): no call is answered any more, and Ray's functions would begin a new cluster.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, behave: Callable[[Actor, list[EpisodeRequest]], Callable[[list[EpisodeRequest]], Answers]]):
        self.behave = behave
        self.actors: list[Actor] = []
        self.on_kill: Callable[[], None] = lambda: None
        self.is_over = False
        self.calls: list[Call] = []  # in the order in which they are answered

    def get_runtime_context(self) -> Any:
        self.check_runs()
        return SimpleNamespace(get_worker_id=self._worker_id)

    def _worker_id(self) -> str:
        if self.is_over:
            raise RuntimeError("Ray has not been initialized")
        return "a worker"

    def check_runs(self) -> None:
        assert not self.is_over, "Ray would begin a new cluster"

    def remote(self, cls: type) -> Any:
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=self._start))

    def _start(self, config: str) -> Actor:
        self.check_runs()
        self.actors.append(Actor(self, len(self.actors)))
        return self.actors[-1]

    def promise(self, actor: Actor, answer: Callable[[], Any]) -> Any:
        call = Call(self, actor, answer)
        self.calls.append(call)
        return SimpleNamespace(future=lambda: call)

    def kill(self, actor: Actor) -> None:
        self.check_runs()
        actor.is_dead = True
        self.calls = [call for call in self.calls if call.actor is not actor]
        self.on_kill()
