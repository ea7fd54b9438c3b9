"""A stand-in for Ray: actors in this thread, which live, die and raise as a test says."""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
    return [make_unplayed(-1, EpisodeRequest(), "time", 2, "") for _ in requests]


class Actor:
    """An actor, and Ray's handle of it.

    Attributes:
        number: counts the actors from 0.
        is_dead: what it is asked is never answered, but by a RayError.
        version: of doorstep on its machine.
    """

    def __init__(self, ray: StandIn, number: int) -> None:
        self._stand_in, self.number = ray, number
        self.is_ready = self.is_dead = False
        self.version = doorstep.__version__
        self.outstanding = 0
        self.ready = SimpleNamespace(remote=self._ready)
        self.play = SimpleNamespace(remote=self._play)

    def _ready(self) -> Any:
        self.is_ready = False
        return self._stand_in.promise(self, self._become_ready)

    def _become_ready(self) -> str:
        self.is_ready = True
        return self.version

    def _play(self, requests: list[EpisodeRequest]) -> Any:
        assert self.is_ready, "it has not said that it is ready"
        assert self.outstanding < MOST_CALLS
        answer = self._stand_in.behave(self, requests)
        self.outstanding += 1
        return self._stand_in.promise(self, lambda: self._answer(answer, requests))

    def _answer(self, answer: Callable[[list[EpisodeRequest]], Answers], requests: list[EpisodeRequest]) -> Answers:
        self.outstanding -= 1
        return answer(requests)


class StandIn:
    """The functions of Ray that a pool calls.

    Args:
        behave: called when an actor is sent requests. May raise, let the actor die, and returns what will answer.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, behave: Callable[[Actor, list[EpisodeRequest]], Callable[[list[EpisodeRequest]], Answers]]):
        self.behave = behave
        self.actors: list[Actor] = []
        self.on_kill: Callable[[], None] = lambda: None
        self._promises: dict[int, tuple[Actor, Callable[[], Any]]] = {}
        self._numbers = itertools.count()

    def is_initialized(self) -> bool:
        return True

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_worker_id=lambda: "a worker")

    def remote(self, cls: type) -> Any:
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=self._start))

    def _start(self, config: str) -> Actor:
        self.actors.append(Actor(self, len(self.actors)))
        return self.actors[-1]

    def promise(self, actor: Actor, answer: Callable[[], Any]) -> int:
        number = next(self._numbers)
        self._promises[number] = actor, answer
        return number

    def wait(self, references: list[int], *, num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        return [min(references)], []

    def get(self, reference: int) -> Any:
        actor, answer = self._promises.pop(reference)
        if actor.is_dead:
            raise RayError("the actor is dead\nand much more")
        return answer()

    def kill(self, actor: Actor) -> None:
        actor.is_dead = True
        self.on_kill()
