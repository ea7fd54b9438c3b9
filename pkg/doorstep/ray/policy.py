"""Policies in Ray's object store, from where all machines take them."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from doorstep._arguments import refuse
from doorstep.policy import load_policy
from doorstep.policy.loading import AnyPolicy, check_name
from doorstep.rollouts.failures import describe
from doorstep.rollouts.request import check_policy


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


def publish(ray: Any, policy: AnyPolicy) -> RayPolicy:
    """Puts a policy into the object store, once it was loaded here, so that mistakes are found."""
    requirement = "what load_policy() takes, and Ray can pickle"
    check_policy(policy)
    loaded = load_policy(policy)
    check_policy(loaded)
    try:
        weakref.ref(loaded)  # actors need one
        return RayPolicy(ray.put(policy))
    except ray.exceptions.RayError:
        raise
    except Exception as error:
        refuse("policy", requirement, policy, describe(error).partition("\n")[0])  # Ray tells more in the next ones


def load_for_ray(policy: Any) -> Any:
    """The policy of a request, as far as it is loaded here: actors load texts and what was published."""
    if not isinstance(policy, (RayPolicy, str, os.PathLike)):
        hint = "publish() it: its weights are copied then"
        refuse("policy", "a text that load_policy() takes, or what publish() returned", policy, hint)
    if isinstance(policy, (str, os.PathLike)):
        check_name(os.fspath(policy))
    return policy


@final
class MadePolicies:
    """The policies that an actor has made. Its engine keeps those in use. Any thread may use it."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        """get: takes an object from the object store."""
        self._get = get
        self._lock = threading.Lock()
        self._made: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

    def __call__(self, policy: Any) -> Any:
        """What the actor's engine plays for the policy of a request, a `RayPolicy` or a text."""
        with self._lock:
            made = self._made.get(policy)
            if made is None:
                given = self._get(policy.given) if isinstance(policy, RayPolicy) else policy
                made = self._made[policy] = load_policy(given)
            return made
