"""`RayRolloutEngine`: plays episodes that are requested from any thread, on the machines of a Ray cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Literal, final, overload

from doorstep._arguments import check_choice, check_flag, check_integer, check_timeout, refuse, showing
from doorstep._copies import ClosingOwner
from doorstep._native.finalizer import Finalizer
from doorstep._optional import import_optional
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError, StateError
from doorstep.levels.rules import Rewards
from doorstep.policy.loading import AnyPolicy
from doorstep.ray.config import ActorsLostError, RayConfig
from doorstep.ray.policy import RayPolicy, load_for_ray, publish
from doorstep.ray.pool import Pool
from doorstep.ray.requests import Requests
from doorstep.rollouts.checks import as_list, check_all_submitted, check_single
from doorstep.rollouts.config import PullController, RolloutConfig, RoundRobinController, with_reward
from doorstep.rollouts.named_policies import NamedPolicies
from doorstep.rollouts.policies import NamedPolicy
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult

_MOST_OUTPUTS = 4096  # taken at a time
_MORE_ACTORS = "make a second engine with RayConfig(num_actors=...) for more, and close() it for fewer"


@final
class RayRolloutEngine(ClosingOwner, remedy="make another one of its config"):
    """Plays requested episodes on actors of Ray, each a process with a `RolloutEngine`. Results have the bits that a
    `RolloutEngine` here would give them, whatever the number of actors, and however many of them are lost.

    Each request is answered once. Those of a lost actor are played by others, and a new actor takes its place. A
    request that three actors were lost with fails, along with those that were sent together with it.

    Any thread may call anything. Requests are sent in the order of their arrival; the scheduler of the config decides
    among those that an actor has. `queued_seconds` and `replica` of results are those of the actor's own engine.

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
        if isinstance(config, SimulatorConfig):
            config = RolloutConfig(config)
        if not isinstance(config, RolloutConfig):
            refuse("config", "a doorstep.RolloutConfig or SimulatorConfig", config)
        if not isinstance(config.controller, (PullController, RoundRobinController)):
            refuse("config.controller", "one of doorstep's own: actors do not know others", config.controller)
        actors = RayConfig() if actors is None else actors
        if not isinstance(actors, RayConfig):
            refuse("actors", "a doorstep.ray.RayConfig or None", actors)
        raises = check_choice("on_error", on_error, ("raise", "return")) == "raise"
        self._config = config = with_reward(config, reward)
        self._ray = import_optional("ray", "actors need Ray", "ray")
        self._check_initialized()
        self._process = os.getpid()
        self._all_requests = Requests(config, raises=raises)
        self._pool = Pool(self._ray, config, actors, self._all_requests)
        self._finalizer = Finalizer(self, setattr, self._pool, "ending", True, at_exit=True)
        self._thread = threading.Thread(target=self._pool.run, name="doorstep-ray", daemon=True)
        self._thread.start()

    def _check_initialized(self) -> None:
        if not self._ray.is_initialized():
            raise StateError("Ray is not initialised", hint='call ray.init(), or ray.init(address="auto") on a cluster')

    @property
    def _requests(self) -> Requests:
        if os.getpid() != self._process:
            raise ClosedError("this engine belongs to the process that was forked", hint="make one after the fork")
        return self._all_requests

    @property
    def config(self) -> RolloutConfig:
        return self._config

    @property
    def outstanding(self) -> int:
        """Requests whose result has not been taken."""
        return self._requests.outstanding

    # ---- Requests

    def publish(self, policy: AnyPolicy) -> RayPolicy:
        """Makes a policy of an object for requests, which have texts without it. What the object refers to is copied
        now, with its weights, and each actor that plays it loads it once:

            request = doorstep.EpisodeRequest(policy=engine.publish(net))

        Args:
            policy: what `load_policy()` takes: a module, a function, ...

        Raises:
            ArgumentError: it is nothing of this, or cannot be pickled.
            StateError: Ray is not initialised.
        """
        self._check_initialized()
        return publish(self._ray, policy)

    @property
    def policies(self) -> MutableMapping[str, AnyPolicy]:
        """Policies that requests name: set, replace and delete them by their names, as those of a `RolloutEngine`. Each
        is a text that `load_policy()` takes on the actors' machines, what `publish()` returned, or an object, which is
        published then.

        Another policy under a name plays the requests that no actor has got, with its own sampling where they have
        none.

        Raises:
            ArgumentError, StateError: on assignment: as `publish()`.
            KeyError: there is no such name.
            ClosedError: on assignment: the engine was closed.
        """
        return NamedPolicies(_Names(self))

    @overload
    def submit(self, request: EpisodeRequest, *, timeout: float | None = None) -> int: ...
    @overload
    def submit(self, request: Sequence[EpisodeRequest], *, timeout: float | None = None) -> list[int]: ...
    def submit(
        self, request: EpisodeRequest | Sequence[EpisodeRequest], *, timeout: float | None = None
    ) -> int | list[int]:
        """Submits a request, or several at once, and returns the ids of their episodes: of a sequence with a larger `n`
        so many for each, in order. Waits while `config.queue_capacity` episodes wait.

        Args:
            request: one, with `n` 1, or a sequence of them. Their policies are names in `policies`, texts that
                `load_policy()` takes on the actors' machines, or what `publish()` returned; they have no deadline, and
                do not record "stream". Requests that record what their policies do not tell fail in the actor.
            timeout: seconds to wait for room; None: without limit.

        Raises:
            ArgumentError: as in a `RolloutEngine`, or for what is said above; then none was submitted.
            ClosedError: the engine was closed; `ids` as below, of requests that get their results all the same.
            ActorsLostError: the engine has ended because its actors were lost; likewise.
            TimeoutError: there was no room for all; its `ids` are those of the requests that were submitted.
        """
        requests = as_list(request)
        if isinstance(request, EpisodeRequest):
            check_single(requests, "submit([request]) returns the ids of all")
        ids = self._requests.submit(requests, check_timeout(timeout))
        check_all_submitted(ids, sum(one.n for one in requests))
        return ids[0] if isinstance(request, EpisodeRequest) else ids

    def cancel(self, request_id: int) -> bool:
        """Cancels a request that no actor has got yet; its result, "cancelled", follows.

        Returns:
            False if an actor has or had it.

        Raises:
            ArgumentError: another engine gave the id.
        """
        return self._requests.cancel(check_integer("request_id", request_id, 0, 2**64 - 1))

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
            ClosedError: the engine was closed, and all results have been taken.
            ActorsLostError: its actors were lost, and all results have been taken.
        """
        limit = check_timeout(timeout) if check_flag("block", block) else 0.0
        return self._requests.take_results(check_integer("most", most, 1, 1 << 20), limit)

    def __iter__(self) -> Iterator[EpisodeResult]:
        """Results until nothing is outstanding. Raises ActorsLostError after the last one if actors were lost."""
        try:
            while True:
                result = self._requests.take_result()
                if result is None:
                    return
                yield result  # on its way here Python does not look for signals, as it does at a jump back
        except ActorsLostError:
            raise
        except ClosedError:  # nothing comes any more
            if os.getpid() != self._process:
                raise

    def drain(self, timeout: float | None = None) -> bool:
        """Waits until every request has its result; takes none.

        Returns:
            False if the timeout, in seconds, has passed before.

        Raises:
            ActorsLostError: the engine has ended because its actors were lost.
        """
        return self._requests.drain(check_timeout(timeout))

    # ---- Replicas

    def add_replica(self, **rules: Any) -> int:
        """Refused: each actor has the replicas of the config, and another one takes the place of one that is lost.

        Raises:
            StateError: always; its hint says what to do instead.
        """
        raise StateError("the actors of an engine are given when it is made", hint=_MORE_ACTORS)

    def remove_replica(self, number: int) -> None:
        """Refused, as `add_replica()`.

        Raises:
            StateError: always.
        """
        raise StateError("the actors of an engine are given when it is made", hint=_MORE_ACTORS)

    # ---- The end

    def close(self) -> None:
        """Ends the engine and its actors: requests without a result get one, "failed". Results can still be taken."""
        if os.getpid() == self._process:
            self._pool.ending = True
            self._thread.join()


@final
class _Names:
    """The names of an engine. Objects are published when they get one."""

    def __init__(self, engine: RayRolloutEngine) -> None:
        self._engine = engine

    @property
    def named_policies(self) -> Mapping[str, NamedPolicy]:
        return self._engine._requests.named_policies

    def name_policy(self, name: str, policy: AnyPolicy) -> None:
        is_here = isinstance(policy, (RayPolicy, str, os.PathLike))
        sent = load_for_ray(policy) if is_here else self._engine.publish(policy)
        self._engine._requests.name_policy(NamedPolicy(name, policy, sent))

    def forget_name(self, name: str) -> None:
        self._engine._requests.forget_name(name)
