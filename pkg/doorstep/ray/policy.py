"""Policies in Ray's object store, from where all machines take them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from doorstep._arguments import refuse
from doorstep.rollouts.failures import describe
from doorstep.rollouts.policies import BUILT_IN, check_policy


@final
@dataclass(frozen=True)
class RayPolicy:
    """A policy for requests to a `RayRolloutEngine`, whose `publish()` makes it.

    Attributes:
        make: the `ray.ObjectRef` of the function that makes the policy in each actor.
    """

    make: Any


def publish(ray: Any, make: Callable[[], Any]) -> RayPolicy:
    """Puts a function that makes a policy into the object store, once it has made one here."""
    requirement = "a function without arguments that returns a doorstep.Policy or a callable, and that Ray can pickle"
    if not callable(make):
        refuse("make", requirement, make)
    try:
        weakref.ref(_made_by(make))  # actors need one; names such as "random" have none, and need no publishing
        return RayPolicy(ray.put(make))
    except ray.exceptions.RayError:
        raise
    except Exception as error:
        refuse("make", requirement, make, describe(error).partition("\n")[0])  # Ray tells more in the next ones


def _made_by(make: Callable[[], Any]) -> Any:
    made = make()
    check_policy(made)
    return made


def check_ray_policy(policy: Any) -> None:
    """Refuses what actors cannot play."""
    if not isinstance(policy, RayPolicy) and not (isinstance(policy, str) and policy in BUILT_IN):
        names = ", ".join(map(repr, BUILT_IN))
        refuse("policy", f"{names}, or what publish() returned", policy, "publish() a function that makes the policy")


@final
class MadePolicies:
    """The policies that an actor has made. Its engine keeps those in use. Any thread may use it."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        """get: takes a function from the object store."""
        self._get = get
        self._lock = threading.Lock()
        self._made: weakref.WeakValueDictionary[RayPolicy, Any] = weakref.WeakValueDictionary()

    def __call__(self, policy: Any) -> Any:
        """What the actor's engine plays for the policy of a request."""
        if isinstance(policy, tuple):
            return tuple(map(self, policy))
        if not isinstance(policy, RayPolicy):
            return policy
        with self._lock:
            made = self._made.get(policy)
            if made is None:
                made = self._made[policy] = _made_by(self._get(policy.make))
            return made
