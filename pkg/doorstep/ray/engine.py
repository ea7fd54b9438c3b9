"""`RayRolloutEngine`: plays requested episodes on the machines of a Ray cluster."""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, final, overload

from doorstep._arguments import check_choice, check_flag, check_integer, check_timeout, refuse, showing
from doorstep._copies import ClosingOwner
from doorstep._native import VERSION_STRING
from doorstep._optional import import_optional
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError, StateError
from doorstep.levels.rules import Rewards
from doorstep.policy.loading import AnyPolicy, check_name, load_policy
from doorstep.ray.config import RayConfig
from doorstep.ray.player import Player, RayPolicy, policies_of
from doorstep.ray.work import CLOSED, Chunk, Work, has_failed, in_chunks
from doorstep.rollouts import EpisodeRequest, EpisodeResult, RolloutConfig
from doorstep.rollouts.config import PullController, RoundRobinController, with_reward
from doorstep.rollouts.failures import describe, error_of
from doorstep.rollouts.request import check_policy, requests_of

_MOST_CHUNKS = 2  # that an actor has: while it plays the end of one, the other keeps its worlds busy
_SLICE_SECONDS = 0.1  # of a wait, after which it is seen what other threads have done
_PAUSE_SECONDS = 0.02  # in which calls that need not wait do not ask Ray twice
_QUIET_SECONDS = 10.0  # after which an actor is asked whether it lives


@final
@dataclass(eq=False)
class _Actor:
    """An actor as its engine sees it.

    Attributes:
        handle: Ray's.
        since: when it has answered last; of one that does not live: since when it does not answer whether it does.
        lives: whether it answers, and is sent requests.
    """

    handle: Any
    since: float = field(default_factory=time.monotonic)
    lives: bool = False


@final
class RayRolloutEngine(ClosingOwner, remedy="make another one of its config"):
    """Plays requested episodes on actors of Ray, each a process with a `RolloutEngine`. Results have the bits that a
    `RolloutEngine` here would give them, whatever the number of actors, and however many of them are lost.

    Each request is answered once, with `n` results. Ray starts an actor that is lost again, where there is room, and it
    plays again what it had; see `RayConfig.max_task_retries`. A request that cannot be played, or that its actors were
    lost with, fails.

    Any thread may call anything. The engine has no thread: `submit()` sends actors what they have room for, two chunks
    each, and calls that wait or read results send the rest, in the order of arrival. The scheduler of the config
    decides among the requests that an actor has, and limits of the config are those of each actor's engine.
    `queued_seconds` and `replica` of results are those of the actor's own engine.

    Args:
        config: of the engine in each actor: a `RolloutConfig`, or a `SimulatorConfig` for one replica with the
            defaults. Devices are those of the actor's machine. Threads that are not given follow from
            `cpus_per_actor`.
        actors: None: `RayConfig()`, one actor.
        reward: as for a `RolloutEngine`.
        on_error: as for a `RolloutEngine`: "raise": reading the result of an episode that failed raises a StateError;
            "return": it is a result like others.

    Raises:
        ArgumentError: a config is of another kind, or its controller is none of doorstep's own.
        LibraryError: Ray is missing: pip install "doorstep[ray]".
        StateError: Ray is not initialised.
    """

    __repr__ = showing("_config.simulator.num_worlds", "_config.replica_devices")

    def __init__(
        self,
        config: RolloutConfig | SimulatorConfig,
        actors: RayConfig | None = None,
        *,
        reward: Rewards | None = None,
        on_error: Literal["raise", "return"] = "raise",
    ) -> None:
        config = RolloutConfig(config) if isinstance(config, SimulatorConfig) else config
        if not isinstance(config, RolloutConfig):
            refuse("config", "a doorstep.RolloutConfig or SimulatorConfig", config)
        if not isinstance(config.controller, (PullController, RoundRobinController)):
            refuse("config.controller", "one of doorstep's own: actors do not know others", config.controller)
        self._settings = settings = RayConfig() if actors is None else actors
        if not isinstance(settings, RayConfig):
            refuse("actors", "a doorstep.ray.RayConfig or None", settings)
        self._raises = check_choice("on_error", on_error, ("raise", "return")) == "raise"
        self._config = config = with_reward(config, reward)
        self._ray = import_optional("ray", "actors need Ray", "ray")
        if not self._ray.is_initialized():
            raise StateError("Ray is not initialised", hint='call ray.init(), or ray.init(address="auto") on a cluster')
        self._context = self._ray.get_runtime_context()
        self._session = self._current_session()
        self._end: tuple[str, str] | None = None  # why no request is taken any more, and a hint
        self._lock = threading.Lock()
        self._ids = itertools.count()
        self._submitted = Work()
        self._waiting: collections.deque[Chunk] = collections.deque()  # for room
        self._sent: dict[Any, Chunk] = {}  # by Ray's reference to its answer
        self._given: dict[int, list[EpisodeResult]] = {}  # to threads, by their numbers, on their way to the caller
        self._pumped = 0.0  # when
        lives = {"max_restarts": -1, "max_task_retries": settings.max_task_retries, "scheduling_strategy": "SPREAD"}
        needs = {"num_cpus": settings.cpus_per_actor, "num_gpus": settings.gpus_per_actor}
        kind = self._ray.remote(Player).options(**lives, **needs, max_concurrency=_MOST_CHUNKS + 1)  # one for ping()
        threads = config.simulator.num_threads or max(1, int(settings.cpus_per_actor))  # not all cores of its machine
        its_config = config.replace(simulator=config.simulator.replace(num_threads=threads)).to_json()
        self._lost = f"none has answered for {settings.start_timeout:g} seconds"  # how the last one was
        self._actors = [_Actor(kind.remote(its_config, VERSION_STRING)) for _ in range(settings.num_actors)]
        self._watch()

    @property
    def config(self) -> RolloutConfig:
        return self._config

    @property
    def outstanding(self) -> int:
        """Episodes of `submit()` whose result has not been taken."""
        return self._submitted.left + sum(map(len, list(self._given.values())))

    # ---- Policies

    def publish(self, policy: AnyPolicy) -> RayPolicy:
        """Makes a policy of an object for requests, which have texts without it. What the object refers to is copied
        now, with its weights, and each actor that plays it loads it once; keep it in a variable, or by a name in a
        dictionary of yours, for all requests that it shall play:

            request = doorstep.EpisodeRequest(policy=engine.publish(net))

        Args:
            policy: what `load_policy()` takes: a module, a function, ...

        Raises:
            ArgumentError: it is nothing of this, or cannot be pickled.
            ClosedError: the engine was closed.
        """
        self._check_open()
        check_policy(policy)
        check_policy(load_policy(policy))  # so that mistakes are found here
        try:
            return RayPolicy(self._ray.put(policy))
        except self._ray.exceptions.RayError:
            raise
        except Exception as error:  # Ray tells more in the next lines
            refuse("policy", "what load_policy() takes, and Ray can pickle", policy, describe(error).partition("\n")[0])

    # ---- Requests

    @overload
    def submit(self, requests: EpisodeRequest) -> int: ...
    @overload
    def submit(self, requests: Iterable[EpisodeRequest]) -> list[int]: ...
    def submit(self, requests: EpisodeRequest | Iterable[EpisodeRequest]) -> int | list[int]:
        """Submits a request, or several at once, and returns their ids. Waits for nothing: requests wait in this
        process until actors have room for them.

        Args:
            requests: one, or several. Their policies are texts that `load_policy()` takes on the actors' machines, or
                what `publish()` returned; they have no deadline, and do not record "stream". What an actor's engine
                refuses beyond that, such as a level for more agents, fails there.

        Raises:
            ArgumentError: for what is said above; then none was submitted.
            ClosedError: the engine was closed, or has ended.
        """
        asked = self._asked(requests)
        self._add(self._submitted, asked)
        self._pump(0.0)
        ids = list(asked)
        return ids[0] if isinstance(requests, EpisodeRequest) else ids

    def run(self, requests: EpisodeRequest | Iterable[EpisodeRequest]) -> list[EpisodeResult]:
        """Plays requests, as those of `submit()`, and waits for them; the results are in their order, `n` for each.
        What else was submitted does not matter.

        Raises:
            ArgumentError, ClosedError: as `submit()`.
            StateError: an episode failed. The requests that no actor has got are not played, as after Ctrl-C.
        """
        work, asked = Work(), self._asked(requests)
        try:
            self._add(work, asked)
            self._wait(lambda: len(work.arrived) == work.left or (self._raises and work.failed is not None), None)
        finally:
            with self._lock:
                self._waiting = collections.deque(chunk for chunk in self._waiting if chunk.work is not work)
        self._check_open()
        if self._raises and work.failed is not None:
            raise error_of(work.failed)
        return sorted(work.arrived, key=lambda result: (result.id, result.continuation))

    def _asked(self, requests: Any) -> dict[int, EpisodeRequest]:
        """Requests that actors can play, by their ids."""
        asked, num_agents = {}, self._config.simulator.num_agents
        for request in requests_of(requests):
            if "stream" in request.record:
                refuse("record", "without 'stream'", request.record, "steps do not leave their actor")
            if request.deadline is not None:
                refuse("deadline", "None", request.deadline, "clocks of machines differ; use max_steps")
            if isinstance(request.policy, tuple) and len(request.policy) != num_agents:
                refuse("policy", f"one policy, or a tuple of {num_agents}, one for each agent", request.policy)
            for policy in policies_of(request):
                if isinstance(policy, (str, os.PathLike)):
                    check_name(os.fspath(policy))
                elif not isinstance(policy, RayPolicy):
                    hint = "publish() it: its weights are copied then"
                    refuse("policy", "a text that load_policy() takes, or what publish() returned", policy, hint)
            asked[next(self._ids)] = request
        return asked

    def _add(self, work: Work, asked: dict[int, EpisodeRequest]) -> None:
        """Few requests are sent together with those before them."""
        chunks = in_chunks(work, asked, self._settings.chunk)
        size = sum(chunk.size for chunk in chunks)
        with self._lock:
            self._check_open()
            if self._waiting and (last := self._waiting[-1]).work is work and last.size + size <= self._settings.chunk:
                work.left, last.size = work.left + size, last.size + size
                last.asked.update(asked)
            else:
                work.left += size
                self._waiting.extend(chunks)

    # ---- Results

    def get_outputs(self, block: bool = True, timeout: float | None = None, most: int = 4096) -> list[EpisodeResult]:
        """The results that have come, at least one if `block`, unless nothing is outstanding.

        Args:
            block: whether to wait for the first.
            timeout: seconds to wait; None: without limit. After it the list is empty.
            most: results to return.

        Raises:
            StateError: the next result is that of an episode that failed.
            ClosedError: the engine was closed, or has ended, and all results have been taken.
        """
        limit = check_timeout(timeout) if check_flag("block", block) else 0.0
        given = self._give(check_integer("most", most, 1, 1 << 20), limit)
        results = given[:most]
        if not results and not self.outstanding:
            self._check_open()
        del given[:most]
        return results

    def __iter__(self) -> Iterator[EpisodeResult]:
        """Results until nothing is outstanding. Raises StateError for an episode that failed; another loop then goes
        on. Raises ClosedError after the last one if the engine has ended by itself."""
        while given := self._give(1, None):
            result = given[0]
            del given[0]
            yield result
        if self._end is not None and self._end[0] != CLOSED:
            self._check_open()

    def _give(self, most: int, timeout: float | None) -> list[EpisodeResult]:
        """Results that are this thread's. Its callers take them out of the list last of all: what Ctrl-C keeps from
        them is there in the next call."""
        given = self._given.setdefault(threading.get_ident(), [])
        self._wait(lambda: self._submitted.give(given, most, self._raises), timeout)
        if self._raises and given and has_failed(given[0]):
            error = error_of(given[0])
            del given[0]
            raise error
        return given

    # ---- The actors

    def _wait(self, is_there: Callable[[], bool], timeout: float | None) -> None:
        """Until this is so, which is asked with the lock held, or so many seconds have passed."""
        end, left = time.monotonic() + (threading.TIMEOUT_MAX if timeout is None else timeout), 0.0
        while left >= 0:
            self._pump(left)
            with self._lock:
                if is_there():
                    return
            left = min(_SLICE_SECONDS, end - time.monotonic())

    def _pump(self, seconds: float) -> None:
        """Sends what actors have room for, and receives what they answer within these seconds."""
        if seconds == 0 and time.monotonic() - self._pumped < _PAUSE_SECONDS:
            return
        self._pumped, ready = time.monotonic(), []
        try:
            with self._lock:
                self._check_open()
                self._send()
                awaited = list(self._sent)
            if self._ray.wait(awaited, timeout=seconds)[0]:  # which is over at once if nothing was sent
                ready = self._ray.wait(awaited, num_returns=len(awaited), timeout=0)[0]
            with self._lock:
                self._check_open()
                for reference in filter(self._sent.__contains__, ready):  # others may have come to another thread
                    self._receive(reference)
                self._watch()
                self._send()
        except (Exception, SystemExit) as error:  # Ray raises SystemExit where another thread ends it
            with self._lock:
                self._finish(f"the actors cannot be served any more: {describe(error)}", "make a new engine")

    def _send(self) -> None:
        """Chunks to the actors with the fewest, as long as they have room."""
        loads = collections.Counter(chunk.actor for chunk in self._sent.values())
        room = [actor for load in range(_MOST_CHUNKS) for actor in self._actors if actor.lives and loads[actor] <= load]
        for actor in room[: len(self._waiting)]:
            chunk = self._waiting[0]
            reference = actor.handle.play.remote(list(chunk.asked.values()))
            chunk.actor, self._sent[reference] = actor, chunk
            del self._waiting[0]

    def _receive(self, reference: Any) -> None:
        """The answer of an actor."""
        chunk, errors, now = self._sent[reference], self._ray.exceptions, time.monotonic()
        actor, lives = chunk.actor, True
        try:
            answer = self._ray.get(reference)
        except errors.ActorDiedError as error:  # Ray does not start it again
            said = [line for line in str(error).splitlines() if line.strip()]
            self._lost = said[-1 if error.actor_init_failed else 0]  # the last line is what it has raised
            self._actors = [one for one in self._actors if one is not actor]
            self._take_back(reference)
            return
        except errors.RayError as error:  # if it is not the actor's, this was lost, also when Ray tried again
            lives = isinstance(error, errors.RayTaskError)
            answer = describe(error.cause if lives else error).partition("\n")[0]
        results = chunk.results(answer, self._config.simulator.num_agents)
        actor.lives, actor.since = lives, (now if lives or actor.lives else actor.since)
        del self._sent[reference]
        chunk.work.arrived.extend(results)

    def _take_back(self, reference: Any) -> None:
        """Others play what an actor was sent, and has not answered."""
        chunk = self._sent[reference]
        del self._sent[reference]
        if chunk.asked:  # else it was asked whether it lives
            self._waiting.appendleft(chunk)

    def _watch(self) -> None:
        """Asks actors whether they live, by a chunk of no requests, if they have not answered for some time. A cluster
        without free cores never starts an actor, or a lost one again, and says nothing: then others play what it has.
        """
        now, asked = time.monotonic(), {chunk.actor for chunk in self._sent.values() if not chunk.asked}
        for actor in self._actors:
            if actor.lives and now - actor.since > _QUIET_SECONDS:
                actor.lives, actor.since = False, now
            if not actor.lives and actor not in asked:
                self._sent[actor.handle.ping.remote()] = Chunk(self._submitted, actor=actor)
        silent = {one for one in self._actors if not one.lives and now - one.since > self._settings.start_timeout}
        if len(silent) == len(self._actors):
            hint = "see Ray's logs; add machines with free cores or GPUs, or allow a longer start_timeout"
            self._finish(f"no actor is ready: {self._lost}", hint)
        for reference, chunk in list(self._sent.items()):
            if chunk.asked and chunk.actor in silent:
                self._take_back(reference)

    # ---- The end

    def close(self) -> None:
        """Ends the engine and its actors: requests without a result get one, "failed". Results can still be taken."""
        with self._lock:
            self._finish(CLOSED, "make a new one")

    def _finish(self, why: str, hint: str) -> None:
        """No request is taken any more, and those without a result fail. What Ctrl-C keeps it from doing it does when
        it is called again."""
        with contextlib.suppress(ClosedError):
            self._check_open()
            self._end = why, hint
        assert self._end is not None
        for reference in list(self._sent):
            self._take_back(reference)
        while self._waiting:
            chunk = self._waiting[0]
            results = chunk.results(self._end[0], self._config.simulator.num_agents)
            del self._waiting[0]
            chunk.work.arrived.extend(results)
        while self._actors and self._current_session() == self._session:
            with contextlib.suppress(Exception):  # it cannot be told, and ends when Ray does
                self._ray.kill(self._actors.pop().handle)

    def _check_open(self) -> None:
        """Raises if Ray was shut down: its functions would start a new cluster in silence."""
        if self._end is None and self._current_session() != self._session:
            why = "Ray was shut down, or this process was forked, before this engine was closed"
            self._end = why, "make a new engine"
        if self._end is not None:
            raise ClosedError(self._end[0], hint=self._end[1])

    def _current_session(self) -> Any:
        """What is different each time that Ray is initialised, and in a process that was forked."""
        with contextlib.suppress(Exception):  # of several kinds, after a shutdown
            return os.getpid(), self._context.get_worker_id()
        return None
