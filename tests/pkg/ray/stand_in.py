"""A stand-in for Ray: actors in this thread, which live, die and raise as a test says."""

from concurrent.futures import Future
from types import SimpleNamespace

import doorstep
from doorstep import EpisodeRequest
from doorstep.ray.pool import MOST_CALLS
from doorstep.rollouts.result import make_unplayed


class RayError(Exception):
    """Of Ray: an actor is lost."""


class RayTaskError(RayError):
    """Of Ray: an actor has raised."""

    def __init__(self, cause):
        super().__init__("raised in an actor")
        self.cause = cause


def played(requests):
    """What an actor answers that does its work."""
    return [make_unplayed(-1, EpisodeRequest(), 0, "time", 2, "") for _ in requests]


class Actor:
    """An actor, and Ray's handle of it.

    Attributes:
        number: counts the actors from 0.
        is_dead: what it is asked is never answered, but by a RayError.
        version: of doorstep on its machine.
    """

    def __init__(self, ray, number):
        self.ray, self.number = ray, number
        self.is_ready, self.is_dead, self.outstanding, self.version = False, False, 0, doorstep.__version__
        self.ready = SimpleNamespace(remote=self._ready)
        self.play = SimpleNamespace(remote=self._play)

    def _ready(self):
        self.ray.check_runs()
        self.is_ready = False

        def become_ready():
            self.is_ready = True
            return self.version

        return self.ray.promise(self, become_ready)

    def _play(self, requests, continuations):
        self.ray.check_runs()
        assert len(continuations) == len(requests)
        assert self.is_ready, "it has not said that it is ready"
        assert self.outstanding < MOST_CALLS
        answer = self.ray.behave(self, requests)
        self.outstanding += 1

        def answer_once():
            self.outstanding -= 1
            return answer(requests)

        return self.ray.promise(self, answer_once)


class Call(Future):
    """A call of an actor, which answers when it is looked at and is the first one."""

    def __init__(self, ray, actor, answer):
        super().__init__()
        self._ray, self.actor, self._answer = ray, actor, answer

    def done(self):
        if not super().done() and self is self._ray.calls[0] and not self._ray.is_over:
            self._ray.calls.remove(self)
            try:
                if self.actor.is_dead:
                    raise RayError("the actor is dead\nand much more")
                self.set_result(self._answer())
            except Exception as error:
                self.set_exception(error)
        return super().done()


class StandIn:
    """The functions of Ray that a pool calls.

    Args:
        behave: called when an actor is sent requests. May raise, let the actor die, and returns what will answer.

    Attributes:
        is_over: after ray.shutdown(): no call is answered any more, and Ray's functions would begin a new cluster.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, behave):
        self.behave, self.on_kill, self.is_over = behave, lambda: None, False
        self.actors, self.calls = [], []  # calls: in the order in which they are answered

    def get_runtime_context(self):
        self.check_runs()

        def worker_id():
            if self.is_over:
                raise RuntimeError("Ray has not been initialized")
            return "a worker"

        return SimpleNamespace(get_worker_id=worker_id)

    def check_runs(self):
        assert not self.is_over, "Ray would begin a new cluster"

    def remote(self, cls):
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=self._start))

    def _start(self, config):
        self.check_runs()
        self.actors.append(Actor(self, len(self.actors)))
        return self.actors[-1]

    def promise(self, actor, answer):
        call = Call(self, actor, answer)
        self.calls.append(call)
        return SimpleNamespace(future=lambda: call)

    def kill(self, actor):
        self.check_runs()
        actor.is_dead = True
        self.calls = [call for call in self.calls if call.actor is not actor]
        self.on_kill()
