"""`RayRolloutEngine`: plays requested episodes on the machines of a Ray cluster."""

from __future__ import annotations

import collections
import contextlib
import copy
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, final, overload

from doorstep._arguments import check_choice, check_flag, check_integer, check_text, check_timeout, refuse, showing
from doorstep._copies import ClosingOwner
from doorstep._native import VERSION_STRING
from doorstep._optional import import_optional
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError, StateError
from doorstep.levels.rules import Rewards
from doorstep.policy.loading import AnyPolicy, check_name
from doorstep.ray.config import RayConfig
from doorstep.ray.player import Player, RayPolicy, policies_of, publish
from doorstep.ray.work import CLOSED, Asked, Chunk, Work, has_failed, in_chunks
from doorstep.rollouts import EpisodeRequest, EpisodeResult, RolloutConfig
from doorstep.rollouts.config import PullController, RoundRobinController, with_reward
from doorstep.rollouts.failures import describe, error_of
from doorstep.rollouts.request import requests_of

_MOST_OUTPUTS = 4096  # taken at a time
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
        heard: when it has answered last.
        asked: since when it does not answer whether it lives; None: it does, and is sent requests; -inf: it is dead.
    """

    handle: Any
    heard: float
    asked: float | None


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
        self._end: ClosedError | None = None
        self._lock = threading.Lock()
        self._ids = itertools.count()
        self._names: dict[str, Any] = {}
        self._submitted = Work()
        self._waiting: collections.deque[Chunk] = collections.deque()  # for room
        self._sent: dict[Any, Chunk] = {}  # by Ray's reference to its answer
        self._pings: dict[Any, _Actor] = {}  # likewise
        self._given: dict[int, list[EpisodeResult]] = {}  # to threads, by their numbers, on their way to the caller
        self._pumped = 0.0  # when
        lives = {"max_restarts": -1, "max_task_retries": settings.max_task_retries, "scheduling_strategy": "SPREAD"}
        needs = {"num_cpus": settings.cpus_per_actor, "num_gpus": settings.gpus_per_actor}
        threads = _MOST_CHUNKS + 1  # one says that it lives
        kind = self._ray.remote(Player).options(**lives, **needs, max_concurrency=threads)
        self._lost = f"none has answered for {settings.start_timeout:g} seconds"  # how the last one was
        now, its_config = time.monotonic(), _config_of_actors(config, settings).to_json()
        self._actors = [_Actor(kind.remote(its_config, VERSION_STRING), now, now) for _ in range(settings.num_actors)]
        self._watch()

    @property
    def config(self) -> RolloutConfig:
        return self._config

    @property
    def outstanding(self) -> int:
        """Episodes of `submit()` whose result has not been taken."""
        given = sum(map(len, list(self._given.values())))
        return self._submitted.expected - self._submitted.taken + given

    # ---- Policies

    def publish(self, policy: AnyPolicy) -> RayPolicy:
        """Makes a policy of an object for requests, which have texts without it. What the object refers to is copied
        now, with its weights, and each actor that plays it loads it once:

            request = doorstep.EpisodeRequest(policy=engine.publish(net))

        Args:
            policy: what `load_policy()` takes: a module, a function, ...

        Raises:
            ArgumentError: it is nothing of this, or cannot be pickled.
            ClosedError: the engine was closed.
        """
        self._check_open()
        return publish(self._ray, policy)

    @property
    def policies(self) -> MutableMapping[str, AnyPolicy]:
        """Policies that requests name: set, replace and delete them by their names. Each is a text that `load_policy()`
        takes on the actors' machines, what `publish()` returned, or an object, in whose place there is then what
        `publish()` made of it. Unlike in a `RolloutEngine`, a request is played by the policies that its names stand
        for when it is submitted.

        Raises:
            ArgumentError: on assignment: as `publish()`.
            KeyError: there is no such name.
            ClosedError: on assignment: the engine was closed.
        """
        return _Names(self)

    # ---- Requests

    @overload
    def submit(self, requests: EpisodeRequest) -> int: ...
    @overload
    def submit(self, requests: Iterable[EpisodeRequest]) -> list[int]: ...
    def submit(self, requests: EpisodeRequest | Iterable[EpisodeRequest]) -> int | list[int]:
        """Submits a request, or several at once, and returns their ids. Waits for nothing: requests wait in this
        process until actors have room for them.

        Args:
            requests: one, or several. Their policies are names in `policies`, texts that `load_policy()` takes on the
                actors' machines, or what `publish()` returned; they have no deadline, and do not record "stream". What
                an actor's engine refuses beyond that, such as a level for more agents, fails there.

        Raises:
            ArgumentError: for what is said above; then none was submitted.
            ClosedError: the engine was closed, or has ended.
        """
        asked = self._asked(requests)
        self._add(self._submitted, asked)
        self._pump(0.0)
        return asked[0].id if isinstance(requests, EpisodeRequest) else [one.id for one in asked]

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
            self._wait(lambda: len(work.arrived) == work.expected or (self._raises and work.failed is not None), None)
        finally:
            with self._lock:
                self._waiting = collections.deque(chunk for chunk in self._waiting if chunk.work is not work)
        self._check_open()
        if self._raises and work.failed is not None:
            raise error_of(work.failed)
        return sorted(work.arrived, key=lambda result: (result.id, result.continuation))

    def _asked(self, requests: Any) -> list[Asked]:
        asked, num_agents = [], self._config.simulator.num_agents
        for request in requests_of(requests):
            if "stream" in request.record:
                refuse("record", "without 'stream'", request.record, "steps do not leave their actor")
            if request.deadline is not None:
                refuse("deadline", "None", request.deadline, "clocks of machines differ; use max_steps")
            if isinstance(request.policy, tuple) and len(request.policy) != num_agents:
                refuse("policy", f"one policy, or a tuple of {num_agents}, one for each agent", request.policy)
            given = policies_of(request)
            sent = tuple(_checked(policy, self._names) for policy in given)
            policy = sent if isinstance(request.policy, tuple) else sent[0]
            asked.append(Asked(next(self._ids), request, request if sent == given else replace(request, policy=policy)))
        return asked

    def _add(self, work: Work, asked: list[Asked]) -> None:
        """Few requests are sent together with those before them."""
        most = self._settings.chunk
        chunks = in_chunks(work, asked, most)
        size = sum(chunk.size for chunk in chunks)
        with self._lock:
            self._check_open()
            last = self._waiting[-1] if self._waiting else None
            if last is not None and last.work is work and last.size + size <= most:
                work.expected, last.size = work.expected + size, last.size + size
                last.asked.extend(asked)
            else:
                work.expected += size
                self._waiting.extend(chunks)

    # ---- Results

    def get_outputs(
        self, block: bool = True, timeout: float | None = None, most: int = _MOST_OUTPUTS
    ) -> list[EpisodeResult]:
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
        reader, results = self._give(check_integer("most", most, 1, 1 << 20), limit)
        if not results and not self.outstanding:
            self._check_open()
        self._given[reader] = self._given[reader][len(results) :]
        return results

    def __iter__(self) -> Iterator[EpisodeResult]:
        """Results until nothing is outstanding. Raises StateError for an episode that failed; another loop then goes
        on. Raises ClosedError after the last one if the engine has ended by itself."""
        while True:
            reader, results = self._give(1, None)
            if not results:
                break
            self._given[reader] = self._given[reader][1:]
            yield results[0]
        if self._end is not None and self._end.args[0] != CLOSED:
            self._check_open()

    def _give(self, most: int, timeout: float | None) -> tuple[int, list[EpisodeResult]]:
        """The number of this thread, and results that it gets once the caller has taken them out of `_given`: what
        Ctrl-C keeps from it is there in the next call."""
        reader = threading.get_ident()
        self._given.setdefault(reader, [])
        self._wait(lambda: self._take(reader, most), timeout)
        results = self._given[reader][:most]
        if self._raises and results:
            results = list(itertools.takewhile(lambda result: not has_failed(result), results))
            if not results:
                error = error_of(self._given[reader][0])
                self._given[reader] = self._given[reader][1:]
                raise error
        return reader, results

    def _take(self, reader: int, most: int) -> bool:
        """Whether there is nothing to wait for."""
        work = self._submitted
        if not self._given[reader]:
            results = work.next_results(most)
            place, taken = len(results), work.taken + len(results)
            self._given[reader], work.place, work.taken = results, place, taken
        return bool(self._given[reader]) or work.taken == work.expected

    # ---- The actors

    def _wait(self, is_there: Callable[[], bool], timeout: float | None) -> None:
        """Until this is so, which is asked with the lock held, or so many seconds have passed."""
        end = inf if timeout is None else time.monotonic() + timeout
        self._pump(0.0)
        while True:
            with self._lock:
                if is_there():
                    return
            left = min(_SLICE_SECONDS, end - time.monotonic())
            if left <= 0:
                return
            self._pump(left)

    def _pump(self, seconds: float) -> None:
        """Sends what actors have room for, and receives what they answer within these seconds."""
        if seconds == 0 and time.monotonic() - self._pumped < _PAUSE_SECONDS:
            return
        self._pumped, ready = time.monotonic(), []
        try:
            with self._lock:
                self._check_open()
                self._send()
                awaited = [*self._sent, *self._pings]
            if not awaited:
                time.sleep(seconds)
            elif self._ray.wait(awaited, timeout=seconds)[0]:
                ready = self._ray.wait(awaited, num_returns=len(awaited), timeout=0)[0]
            with self._lock:
                self._check_open()
                for reference in ready:
                    self._receive(reference)
                self._watch()
                self._send()
        except (Exception, SystemExit) as error:  # Ray raises SystemExit where another thread ends it
            with self._lock:
                self._finish(error)

    def _send(self) -> None:
        """Chunks to the actors with the fewest, as long as they have room."""
        loads = collections.Counter(chunk.actor for chunk in self._sent.values())
        while self._waiting:
            actors = (actor for actor in self._actors if actor.asked is None and loads[actor] < _MOST_CHUNKS)
            actor = min(actors, key=loads.__getitem__, default=None)
            if actor is None:
                return
            chunk = self._waiting[0]
            reference = actor.handle.play.remote([one.sent for one in chunk.asked])
            loads[actor] += 1
            chunk.actor, self._sent[reference] = actor, chunk
            del self._waiting[0]

    def _receive(self, reference: Any) -> None:
        """The answer of an actor."""
        chunk, errors = self._sent.get(reference), self._ray.exceptions
        actor = chunk.actor if chunk else self._pings.get(reference)
        if actor is None:  # another thread has received it, or the actor does not have it any more
            return
        heard, asked = time.monotonic(), None
        try:
            answer = self._ray.get(reference)
        except errors.RayTaskError as error:
            answer = describe(error.cause).partition("\n")[0]
        except errors.ActorDiedError as error:  # Ray does not start it again
            said = [line for line in str(error).splitlines() if line.strip()]
            self._lost = said[-1 if error.actor_init_failed else 0]  # the last line is what it has raised
            actor.asked = -inf  # `_watch()` lets others play what it has
            self._pings.pop(reference, None)
            return
        except errors.RayError as error:  # it was lost, also when Ray tried again
            answer, heard, asked = describe(error).partition("\n")[0], actor.heard, actor.asked or heard
        results = chunk.results(answer, self._config.simulator.num_agents) if chunk else []
        actor.heard, actor.asked = heard, asked
        if chunk:
            del self._sent[reference]
            chunk.work.arrived.extend(results)
        else:
            del self._pings[reference]

    def _watch(self) -> None:
        """Asks actors whether they live, if they have not answered for some time. A cluster without free cores never
        starts an actor, or a lost one again, and says nothing: then others play what it has."""
        now, pinged = time.monotonic(), set(self._pings.values())
        for actor in self._actors:
            if actor.asked is None and now - actor.heard > _QUIET_SECONDS:
                actor.asked = now
            if actor.asked is not None and actor.asked > -inf and actor not in pinged:
                self._pings[actor.handle.ping.remote()] = actor
        since = now - self._settings.start_timeout
        silent = [actor for actor in self._actors if actor.asked is not None and actor.asked < since]
        if len(silent) == len(self._actors):
            hint = "see Ray's logs; add machines with free cores or GPUs, or allow a longer start_timeout"
            raise ClosedError(f"no actor is ready: {self._lost}", hint=hint)
        its = [chunk for chunk in self._sent.values() if chunk.actor in silent]
        self._sent = {reference: chunk for reference, chunk in self._sent.items() if chunk.actor not in silent}
        self._waiting.extendleft(its)

    # ---- The end

    def close(self) -> None:
        """Ends the engine and its actors: requests without a result get one, "failed". Results can still be taken."""
        with self._lock:
            self._finish(ClosedError(CLOSED, hint="make a new one"))

    def _finish(self, error: BaseException) -> None:
        """No request is taken any more, and those without a result fail. What Ctrl-C keeps it from doing it does when
        it is called again."""
        with contextlib.suppress(ClosedError):
            self._check_open()
            text = f"the actors cannot be served any more: {describe(error)}"
            self._end = error if isinstance(error, ClosedError) else ClosedError(text, hint="make a new engine")
        assert self._end is not None
        its = list(self._sent.values())
        self._sent = {}
        self._waiting.extendleft(its)
        while self._waiting:
            chunk = self._waiting[0]
            results = chunk.results(str(self._end.args[0]), self._config.simulator.num_agents)
            del self._waiting[0]
            chunk.work.arrived.extend(results)
        actors, self._actors = self._actors, []
        for actor in actors if self._current_session() == self._session else []:
            with contextlib.suppress(Exception):  # it cannot be told, and ends when Ray does
                self._ray.kill(actor.handle)

    def _check_open(self) -> None:
        """Raises if Ray was shut down: its functions would start a new cluster in silence."""
        if self._end is None and self._current_session() != self._session:
            message = "Ray was shut down, or this process was forked, before this engine was closed"
            self._end = ClosedError(message, hint="make a new engine")
        if self._end is not None:
            raise copy.copy(self._end)

    def _current_session(self) -> Any:
        """What is different each time that Ray is initialised, and in a process that was forked."""
        try:
            return os.getpid(), self._context.get_worker_id()
        except Exception:  # of several kinds, after a shutdown
            return None


@final
class _Names(collections.UserDict[str, Any]):
    """The policies that requests name. Objects are published when they get a name."""

    def __init__(self, engine: RayRolloutEngine) -> None:
        self._engine, self.data = engine, engine._names

    def __setitem__(self, name: str, policy: AnyPolicy) -> None:
        if not check_text("name", name):
            refuse("name", "a text that is not empty", name)
        self._engine._check_open()
        is_sent = isinstance(policy, (RayPolicy, str, os.PathLike))
        self.data[name] = _checked(policy, {}) if is_sent else self._engine.publish(policy)


def _checked(policy: Any, names: Mapping[str, Any]) -> Any:
    """A policy as actors know it, which is not an object of this process. names: what these texts stand for."""
    if isinstance(policy, (str, os.PathLike)):
        if policy in names:
            return names[os.fspath(policy)]
        check_name(os.fspath(policy), names)
    elif not isinstance(policy, RayPolicy):
        hint = "publish() it: its weights are copied then"
        refuse("policy", "a text that load_policy() takes, or what publish() returned", policy, hint)
    return policy


def _config_of_actors(config: RolloutConfig, settings: RayConfig) -> RolloutConfig:
    """The simulators of an actor have the cores that Ray sets aside for it, not all of their machine."""
    if config.simulator.num_threads is not None:
        return config
    return config.replace(simulator=config.simulator.replace(num_threads=max(1, int(settings.cpus_per_actor))))
