"""Episodes on request, played by actors of Ray on all machines of a cluster; needs Ray: pip install "doorstep[ray]".

    with RayRolloutEngine(doorstep.SimulatorConfig(1024), RayConfig(num_actors=8)) as engine:
        engine.submit([doorstep.EpisodeRequest(seed=seed) for seed in range(10_000)])
        for result in engine:
            print(result.request.seed, result.returns)
"""

from __future__ import annotations

import collections
import functools
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, final

import numpy as np

from doorstep._arguments import check_integer, check_timeout, refuse
from doorstep._configs import Config, Integer, Number
from doorstep._optional import import_optional
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError, DoorstepError
from doorstep.policy import Policy
from doorstep.rollouts import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine

_SLICE_SECONDS = 0.1  # of a wait for actors, after which new requests and the end are seen
_CALLS = 2  # chunks that an actor has: it plays one while the results of the other travel
_BUILT_IN = ("random", "idle")
_NO_REQUEST = EpisodeRequest()  # in what travels back


class ActorsLostError(DoorstepError, RuntimeError):
    """All actors of Ray have died, and no more may be started."""


@final
@dataclass(frozen=True, kw_only=True)
class RayConfig(Config):
    """The actors of a `RayRolloutEngine`.

    >>> from doorstep.ray import RayConfig
    >>> RayConfig(num_actors=4).cpus_per_actor
    1.0

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    num_actors: Annotated[int, Integer(1, 4096), "Actors, each with a RolloutEngine of its own."] = 1
    cpus_per_actor: Annotated[float, Number(low=0), "Cores that Ray sets aside for each."] = 1.0
    gpus_per_actor: Annotated[float, Number(low=0), "GPUs that Ray sets aside for each."] = 0.0
    chunk: Annotated[int, Integer(1, 65536), "Requests that an actor is sent at a time; it has up to two chunks."] = 256
    queue_capacity: Annotated[int, Integer(1, 16777216), "Requests that wait at most."] = 1048576
    max_restarts: Annotated[int, Integer(0, 65536), "Actors that are started in place of lost ones, in all."] = 8
    start_timeout: Annotated[float, Number(above=0), "Seconds without a ready actor until the engine fails."] = 300.0


@final
@dataclass(frozen=True)
class RayPolicy:
    """A version of a network in the object store of Ray, as the policy of requests; `publish()` makes it.

    Attributes:
        name: of the policy.
        version: 1 for the first that was published under the name.
        modules: the reference to the copy of its modules.
    """

    name: str
    version: int
    modules: Any


@final
class RayRolloutEngine:
    """Plays requested episodes on actors of Ray. Each result has the bits that a `RolloutEngine` gives it, whatever
    the number of actors, and also after some of them were lost.

    A request is answered once: those of a lost actor are played by others, as long as fewer than `max_restarts` were
    replaced or an actor is left. Requests are played in the order of their arrival. Any thread may call anything.

    Args:
        config: of the `RolloutEngine` in each actor; a `SimulatorConfig` for the defaults.
        ray: the actors. `ray.init()` has been called before.

    Raises:
        LibraryError: Ray is missing.
    """

    def __init__(self, config: RolloutConfig | SimulatorConfig, ray: RayConfig | None = None) -> None:
        config = RolloutConfig(config) if isinstance(config, SimulatorConfig) else config
        if not isinstance(config, RolloutConfig):
            refuse("config", "a doorstep.RolloutConfig or SimulatorConfig", config)
        self._config, self._settings = config, ray or RayConfig()
        self._ray = import_optional("ray", "actors need Ray", 'pip install "doorstep[ray]"')
        self._changed = threading.Condition()
        self._waiting: collections.deque[tuple[int, EpisodeRequest]] = collections.deque()
        self._answers: collections.deque[EpisodeResult] = collections.deque()
        self._calls: dict[Any, tuple[Any, list[tuple[int, EpisodeRequest]]]] = {}  # by reference; only the thread's
        self._load: dict[Any, int] = {}  # calls of each actor that is ready
        self._starting: dict[Any, Any] = {}  # actors by the reference that tells that they are ready
        self._versions: dict[str, int] = {}
        self._next_id = 1
        self._last_ready = time.monotonic()  # when an actor was ready last
        self._unanswered = self._untaken = self._restarts = 0
        self._closing = False
        self._failure: ActorsLostError | None = None
        for _ in range(self._settings.num_actors):
            self._start_actor()
        self._thread = threading.Thread(target=self._run, name="doorstep-ray", daemon=True)
        self._thread.start()

    # ---- Requests

    def publish(self, name: str, module: Any) -> RayPolicy:
        """Copies a network into the object store of Ray, from where every machine fetches it once. Later changes of
        the module are seen when it is published again, as the next version.

        Args:
            name: of the policy.
            module: on the CPU, as for `Policy.from_torch()`.

        Raises:
            ArgumentError: as `Policy.from_torch()`.
        """
        Policy.from_torch(module)  # refuses here, not in the actors, what they cannot play
        with self._changed:
            version = self._versions[name] = self._versions.get(name, 0) + 1
        return RayPolicy(name, version, self._ray.put(module))

    def submit(self, request: EpisodeRequest | Sequence[EpisodeRequest], *, timeout: float | None = None) -> Any:
        """Submits a request, or several at once; returns their ids. Waits while the queue is full.

        Raises:
            ArgumentError: a policy is neither built in nor a `RayPolicy`, or a request streams or has a deadline.
            ClosedError: the engine was closed.
            ActorsLostError: no actor is left.
            TimeoutError: there was no room for all; its `ids` are those of the requests that were submitted.
        """
        requests = [request] if isinstance(request, EpisodeRequest) else list(request)
        for one in requests:
            _check(one)
        timeout = check_timeout(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        ids: list[int] = []
        with self._changed:
            for one in requests:
                left = None if end is None else max(end - time.monotonic(), 0)
                has_room = self._changed.wait_for(self._has_room_or_ended, left)
                self._check_open()
                if not has_room:
                    error = TimeoutError(f"{len(ids)} of {len(requests)} requests found room in the queue")
                    error.ids = ids  # type: ignore[attr-defined]
                    raise error
                ids.append(self._next_id)
                self._waiting.append((self._next_id, one))
                self._next_id += 1
                self._unanswered += 1
        return ids[0] if isinstance(request, EpisodeRequest) else ids

    def cancel(self, request_id: int) -> bool:
        """Cancels a request that waits; its result, "cancelled", follows. False if an actor has it, or it has ended."""
        check_integer("request_id", request_id, 0, 2**64 - 1)
        with self._changed:
            for place, (number, request) in enumerate(self._waiting):
                if number == request_id:
                    del self._waiting[place]
                    self._answer(self._unplayed(number, request, "cancelled", ""))
                    return True
        return False

    # ---- Results

    @property
    def outstanding(self) -> int:
        """Requests whose result has not been taken."""
        return self._unanswered + len(self._answers)

    def get_outputs(self, timeout: float | None = None, most: int = 4096) -> list[EpisodeResult]:
        """The results that have come: at least one, unless nothing is outstanding or the timeout, in seconds, is over.

        Raises:
            ActorsLostError: no actor is left; then all results have been taken.
        """
        check_integer("most", most, 1, 1 << 20)
        with self._changed:
            self._changed.wait_for(lambda: self._answers or not self._unanswered, check_timeout(timeout))
            if not self._answers and self._failure is not None:
                raise self._failure
            return [self._answers.popleft() for _ in range(min(most, len(self._answers)))]

    def __iter__(self) -> Iterator[EpisodeResult]:
        """Results until nothing is outstanding."""
        while outputs := self.get_outputs():
            yield from outputs

    def drain(self, timeout: float | None = None) -> bool:
        """Waits until every request has its result; takes none. False if the timeout, in seconds, has passed before.

        Raises:
            ActorsLostError: no actor is left.
        """
        with self._changed:
            drained = self._changed.wait_for(lambda: not self._unanswered, check_timeout(timeout))
            if self._failure is not None:
                raise self._failure
            return drained

    # ---- The end

    def close(self) -> None:
        """Ends actors and engine: requests without a result get one, "failed". Results can still be taken."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def __enter__(self) -> RayRolloutEngine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- Waiting; with the lock

    def _has_room_or_ended(self) -> bool:
        return self._closing or self._failure is not None or len(self._waiting) < self._settings.queue_capacity

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise ClosedError("this engine was closed", hint="make a new one")

    def _answer(self, result: EpisodeResult) -> None:
        self._unanswered -= 1
        self._answers.append(result)
        self._changed.notify_all()

    # ---- The thread: sends chunks to actors that have room, and takes what they return

    def _run(self) -> None:
        text = "the engine was closed"
        try:
            while not self._closing:
                self._send()
                self._receive()
                self._check_ready()
        except BaseException as error:
            lost = error if isinstance(error, ActorsLostError) else ActorsLostError(f"Ray has failed: {error}")
            self._failure, text = lost, str(lost)
        finally:
            self._end(text)

    def _check_ready(self) -> None:
        """A cluster without room leaves actors pending for ever."""
        now = time.monotonic()
        if self._load:
            self._last_ready = now
        elif now - self._last_ready > self._settings.start_timeout:
            hint = "add nodes with free cores, or allow a longer start_timeout"
            raise ActorsLostError(f"no actor was ready for {self._settings.start_timeout:g} seconds", hint=hint)

    def _start_actor(self) -> None:
        settings = self._settings
        made = self._ray.remote(_Player).options(
            num_cpus=settings.cpus_per_actor,
            num_gpus=settings.gpus_per_actor,
            max_concurrency=_CALLS,
            scheduling_strategy="SPREAD",
        )
        actor = made.remote(self._config.to_json())
        self._starting[actor.ready.remote()] = actor

    def _send(self) -> None:
        while self._load:
            actor = min(self._load, key=lambda one: self._load[one])
            with self._changed:
                if self._load[actor] == _CALLS or not self._waiting:
                    return
                count = min(self._settings.chunk, len(self._waiting))
                chunk = [self._waiting.popleft() for _ in range(count)]
                self._changed.notify_all()
            self._load[actor] += 1
            self._calls[actor.play.remote([request for _, request in chunk])] = actor, chunk

    def _receive(self) -> None:
        references = [*self._calls, *self._starting]
        if not self._calls and not self._starting:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing, _SLICE_SECONDS)
            return
        done, _ = self._ray.wait(references, num_returns=1, timeout=_SLICE_SECONDS)
        for reference in done:
            if reference in self._starting:
                self._started(reference)
            elif reference in self._calls:  # not those of an actor that an earlier one has shown to be lost
                self._take(reference)

    def _started(self, reference: Any) -> None:
        actor = self._starting.pop(reference)
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayActorError as error:
            self._replace(error)
        else:
            self._load[actor] = 0

    def _take(self, reference: Any) -> None:
        actor, chunk = self._calls[reference]
        try:
            results = self._ray.get(reference)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError) as error:
            self._lost(actor, error)
            return
        del self._calls[reference]
        self._load[actor] -= 1
        with self._changed:
            for (number, request), result in zip(chunk, results, strict=True):
                self._answer(replace(result, id=number, request=request))

    def _lost(self, actor: Any, error: BaseException) -> None:
        """Its chunks, which no one has answered, wait again, before all others."""
        del self._load[actor]
        self._ray.kill(actor)  # one that cannot be reached may live
        mine = [reference for reference, (owner, _) in self._calls.items() if owner is actor]
        with self._changed:
            for reference in reversed(mine):
                self._waiting.extendleft(reversed(self._calls.pop(reference)[1]))
        self._replace(error)

    def _replace(self, error: BaseException) -> None:
        if self._restarts < self._settings.max_restarts:
            self._restarts += 1
            self._start_actor()
        elif not self._load and not self._starting:
            hint = "see Ray's logs of the workers, or allow more max_restarts"
            raise ActorsLostError(f"all actors are lost after {self._restarts} restarts: {error}", hint=hint)

    def _end(self, text: str) -> None:
        for actor in [*self._load, *self._starting.values()]:
            self._ray.kill(actor)
        with self._changed:
            self._closing = True
            rest = [request for _, chunk in self._calls.values() for request in chunk] + list(self._waiting)
            self._waiting.clear()
            for number, request in rest:
                self._answer(self._unplayed(number, request, "failed", text))
        self._calls.clear()

    def _unplayed(self, number: int, request: EpisodeRequest, reason: Any, error: str) -> EpisodeResult:
        agents = self._config.simulator.num_agents
        zero = np.zeros(agents, np.float32)
        return EpisodeResult(
            number, request, reason, zero, 0, zero.copy(), 0, None, None, None, None, 0.0, 0.0, -1, error
        )


class _Player:
    """The actor: an engine, and the policies that it has built."""

    def __init__(self, config: str) -> None:
        self._engine = RolloutEngine(RolloutConfig.from_json(config))
        self._policy = functools.lru_cache(maxsize=64)(_policy_of)

    def ready(self) -> None:
        """Returns once the engine is made."""

    def play(self, requests: list[EpisodeRequest]) -> list[EpisodeResult]:
        """The results in the order of the requests, which do not travel back."""
        futures = [self._engine.future(replace(one, policy=self._resolved(one.policy))) for one in requests]
        return [replace(future.result(), request=_NO_REQUEST) for future in futures]

    def _resolved(self, policy: Any) -> Any:
        if isinstance(policy, tuple):
            return tuple(map(self._resolved, policy))
        return self._policy(policy) if isinstance(policy, RayPolicy) else policy


def _policy_of(policy: RayPolicy) -> Policy:
    import ray

    return Policy.from_torch(ray.get(policy.modules))


def _check(request: Any) -> None:
    if not isinstance(request, EpisodeRequest):
        refuse("request", "a doorstep.EpisodeRequest, or a sequence of them", request)
    for policy in request.policy if isinstance(request.policy, tuple) else (request.policy,):
        if not isinstance(policy, RayPolicy) and policy not in _BUILT_IN:
            refuse("policy", "'random', 'idle' or what publish() returned", policy, "live objects stay on a machine")
    if "stream" in request.record or request.deadline is not None:
        refuse("request", "one without 'stream' and without a deadline", request)
