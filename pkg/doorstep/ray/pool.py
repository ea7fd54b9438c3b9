"""The actors of an engine, and the thread that serves them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, final

from doorstep._native import VERSION_STRING
from doorstep.errors import ClosedError
from doorstep.ray.config import ActorsLostError, RayConfig
from doorstep.ray.player import Player
from doorstep.ray.requests import Chunk, Requests
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.failures import describe

MOST_CALLS = 2  # chunks that an actor has: while it plays the end of one, the other keeps its worlds busy
MOST_LOSSES = 3  # of actors that had the same chunk, which then fails
_SLICE_SECONDS = 0.05  # of a wait, after which the end is seen


@final
@dataclass(eq=False)
class _Actor:
    """An actor as its engine sees it.

    Attributes:
        handle: Ray's.
        ready: of a call that the actor has to answer before it gets work; None: it has answered.
        calls: the chunks that it plays, by what gets their results.
    """

    handle: Any
    ready: Future[Any] | None = None
    calls: dict[Future[Any], Chunk] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        return self.ready is None and not self.calls

    @property
    def has_room(self) -> bool:
        plays_alone = any(chunk.losses for chunk in self.calls.values())
        return self.ready is None and len(self.calls) < MOST_CALLS and not plays_alone


@final
class Pool:
    """Gives requests to actors, and starts others in place of those that are lost. It does not know its engine, which
    ends when nobody refers to it any more.

    Its thread never waits within Ray: `ray.wait()` and `ray.get()` do not return if another thread calls
    `ray.shutdown()` meanwhile. Ray's own threads complete the futures of calls.

    Attributes:
        ending: set it, and the thread ends soon.
    """

    def __init__(self, ray: Any, config: RolloutConfig, settings: RayConfig, requests: Requests) -> None:
        self._ray, self._settings, self._requests = ray, settings, requests
        self._config = _config_of_actors(config, settings).to_json()
        self._context = ray.get_runtime_context()
        self._session = self._current_session()
        self._class = ray.remote(Player).options(
            num_cpus=settings.cpus_per_actor,
            num_gpus=settings.gpus_per_actor,
            max_concurrency=MOST_CALLS,
            scheduling_strategy="SPREAD",
        )
        self._losses = 0  # since the last results
        self._last_ready = time.monotonic()  # when an actor was ready last
        self.ending = False
        self._actors = [self._start_actor() for _ in range(settings.num_actors)]

    def run(self) -> None:
        """The thread: until `ending`, or until the actors are lost."""
        end = ClosedError("this engine was closed", hint="make a new one")
        try:
            while not self.ending:
                before = self._requests.changes.count
                self._check_session()
                self._send()
                has_received = self._receive()
                self._check_start()
                if not has_received:
                    self._requests.changes.wait(before, _SLICE_SECONDS)
        except BaseException as error:  # whatever it is, callers wait for results
            end = self._failure(error)
        self._requests.end(end)
        for actor in self._actors:
            self._kill(actor)

    def _failure(self, error: BaseException) -> ActorsLostError:
        """What callers are told."""
        if isinstance(error, ActorsLostError):
            return error
        if self._current_session() != self._session:
            return _session_lost()
        failure = ActorsLostError(f"the actors cannot be served any more: {describe(error)}", hint="make a new engine")
        failure.__cause__ = error
        return failure

    # ---- Sending

    def _send(self) -> None:
        """Gives chunks to the actors with the fewest, as long as they have room."""
        while free := [actor for actor in self._actors if actor.has_room]:
            actor = min(free, key=lambda one: len(one.calls))
            chunk = self._requests.take_chunk(self._settings.chunk, is_idle=actor.is_idle)
            if chunk is None:
                return
            try:
                actor.calls[self._called(actor.handle.play, chunk.requests, chunk.continuations)] = chunk
            except (self._ray.exceptions.RayError, ActorsLostError):
                self._requests.put_back(chunk)
                raise
            except Exception as error:  # such as one of pickle
                self._requests.fail(chunk, describe(error))

    # ---- Receiving

    def _receive(self) -> bool:
        """What one call of an actor has given; False if none has ended."""
        call, actor = next(((call, actor) for call, actor in self._awaited() if call.done()), (None, None))
        if call is None or actor is None:
            return False
        try:
            answer = call.result()
        except Exception as error:
            self._failed(actor, call, error)
        else:
            self._answered(actor, call, answer)
        return True

    def _awaited(self) -> Iterator[tuple[Future[Any], _Actor]]:
        for actor in self._actors:
            if actor.ready is not None:
                yield actor.ready, actor
            for call in actor.calls:
                yield call, actor

    def _answered(self, actor: _Actor, call: Future[Any], answer: Any) -> None:
        if call is actor.ready:
            _check_version(answer)
            actor.ready = None
        else:
            self._requests.answer(actor.calls.pop(call), answer)
            self._losses = 0

    def _failed(self, actor: _Actor, call: Future[Any], error: Any) -> None:
        self._check_session()
        is_raised_there = isinstance(error, self._ray.exceptions.RayTaskError)
        if is_raised_there and call in actor.calls and not isinstance(error.cause, ClosedError):
            self._requests.fail(actor.calls.pop(call), self._describe(error))
        else:
            self._replace(actor, error)

    # ---- Losing actors

    def _replace(self, lost: _Actor, error: Exception) -> None:
        """Starts another actor; what the lost one has not answered waits again."""
        text = self._describe(error)
        while lost.calls:
            _, chunk = lost.calls.popitem()
            chunk.losses += 1
            if chunk.losses < MOST_LOSSES:
                self._requests.put_back(chunk)
            else:
                self._requests.fail(chunk, f"{MOST_LOSSES} actors were lost while they played it, the last by {text}")
        self._losses += 1
        if self._losses >= self._settings.max_losses * self._settings.num_actors:
            message = f"{self._losses} actors were lost one after the other, the last by {text}"
            raise ActorsLostError(message, hint="see Ray's logs of the workers") from error
        self._actors.remove(lost)
        self._kill(lost)
        for actor in self._actors:  # lost along with it, perhaps: that shall not cost chunks their attempts
            if actor.is_idle:
                actor.ready = self._called(actor.handle.ready)
        self._actors.append(self._start_actor())

    def _describe(self, error: Any) -> str:
        """What an actor raised, or what Ray says first about its loss."""
        is_raised_there = isinstance(error, self._ray.exceptions.RayTaskError)
        return describe(error.cause if is_raised_there else error).partition("\n")[0]

    def _start_actor(self) -> _Actor:
        self._check_session()
        handle = self._class.remote(self._config)
        return _Actor(handle, self._called(handle.ready))

    def _called(self, method: Any, *arguments: Any) -> Future[Any]:
        """A call of an actor, whose end wakes the thread. Ray may keep the future of a call that has no end."""
        self._check_session()
        future: Future[Any] = method.remote(*arguments).future()
        changes = self._requests.changes
        future.add_done_callback(lambda _: changes.tell())
        return future

    def _kill(self, actor: _Actor) -> None:
        """Also one that is lost, as it may live where it cannot be reached."""
        if self._current_session() == self._session:
            with contextlib.suppress(Exception):  # it cannot be told, and ends when Ray does
                self._ray.kill(actor.handle)

    # ---- Checks

    def _check_start(self) -> None:
        """A cluster without free cores never starts an actor, and says nothing."""
        now, limit = time.monotonic(), self._settings.start_timeout
        if any(actor.ready is None for actor in self._actors):
            self._last_ready = now
        elif now - self._last_ready > limit:
            hint = "add machines with free cores or GPUs, or allow a longer start_timeout"
            raise ActorsLostError(f"no actor was ready for {limit:g} seconds", hint=hint)

    def _check_session(self) -> None:
        """Ray's functions would silently start a new cluster where there is none any more."""
        if self._current_session() != self._session:
            raise _session_lost()

    def _current_session(self) -> str | None:
        """What is different each time that Ray is initialised; None while it is not."""
        try:
            session: str = self._context.get_worker_id()
        except Exception:  # of several kinds where another thread ends Ray
            return None
        return session


def _session_lost() -> ActorsLostError:
    return ActorsLostError("ray.shutdown() was called before this engine was closed", hint="make a new engine")


def _check_version(version: str) -> None:
    """Results of another version may have other bits."""
    if version != VERSION_STRING:
        message = f"a machine of the cluster has doorstep {version}, this one {VERSION_STRING}"
        raise ActorsLostError(message, hint="install the same version on all of them")


def _config_of_actors(config: RolloutConfig, settings: RayConfig) -> RolloutConfig:
    """The simulators of an actor have the cores that Ray sets aside for it, not all of their machine."""
    if config.simulator.num_threads is not None:
        return config
    return config.replace(simulator=config.simulator.replace(num_threads=max(1, int(settings.cpus_per_actor))))
