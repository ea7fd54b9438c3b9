"""The actor: a process with a `RolloutEngine`, which plays chunks of requests; and the policies that it is sent."""

from __future__ import annotations

import functools
import os
import threading
from dataclasses import dataclass, replace
from typing import Any, final

from doorstep._native import VERSION_STRING
from doorstep._optional import import_optional
from doorstep.errors import StateError
from doorstep.policy import load_policy
from doorstep.rollouts import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine
from doorstep.rollouts.failures import describe

_NO_REQUEST = EpisodeRequest()  # of results on their way: the engine that asked has the requests


@final
@dataclass(frozen=True)
class RayPolicy:
    """A policy for requests to a `RayRolloutEngine`, whose `publish()` makes it.

    Attributes:
        given: the `ray.ObjectRef` of what `load_policy()` makes the policy of, in each actor.
    """

    given: Any

    def __call__(self, observations: Any) -> Any:
        """Only actors of Ray play it."""
        raise TypeError("a RayPolicy is played by the engine that published it")


@final
class Player:
    """Made by Ray, which calls it in several threads."""

    def __init__(self, config: str, version: str) -> None:
        """
        Args:
            config: of the engine, in JSON.
            version: of doorstep where the requests come from: results of another one may have other bits.
        """
        if version != VERSION_STRING:
            message = f"a machine of the cluster has doorstep {VERSION_STRING}, the program {version}"
            raise StateError(message, hint="install the same version on all of them")
        made = RolloutConfig.from_json(config)
        self._engine = RolloutEngine(made, on_error="return")
        self._lock = threading.Lock()  # so that a policy is made once
        ray = import_optional("ray", "actors need Ray", "ray")
        self._made = functools.lru_cache(made.max_policies)(lambda policy: load_policy(ray.get(policy.given)))

    def ping(self) -> list[EpisodeResult | str]:
        """Shows that this lives: the results of no requests."""
        return []

    def play(self, requests: list[EpisodeRequest]) -> list[EpisodeResult | str]:
        """The results in the order of the requests, `n` for each; of one that cannot be played, the reason."""
        try:
            results = self._engine.run([self._with_policies(one) for one in requests])
            answers: list[EpisodeResult | str] = [replace(result, request=_NO_REQUEST) for result in results]
        except Exception as error:  # of one of them: the others are played without it
            if middle := len(requests) // 2:
                return self.play(requests[:middle]) + self.play(requests[middle:])
            answers = [describe(error)] * requests[0].n
        if not self._engine.replicas:
            os._exit(1)  # this actor can play nothing any more: Ray starts another one, and plays the chunk again
        return answers

    def _with_policies(self, request: EpisodeRequest) -> EpisodeRequest:
        """The request for the engine here, which loads texts itself."""
        with self._lock:
            policies = tuple(self._made(one) if isinstance(one, RayPolicy) else one for one in policies_of(request))
        return replace(request, policy=policies if isinstance(request.policy, tuple) else policies[0])


def policies_of(request: EpisodeRequest) -> tuple[Any, ...]:
    return request.policy if isinstance(request.policy, tuple) else (request.policy,)
