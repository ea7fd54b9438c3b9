"""What replicas are told of the policies of an engine, whose weights may change or move while episodes are played.

Weights of modules on the CPU are copied: replicas read the copies without Python's lock, and a module may free its
memory at any time. Copies are renewed with every submission, and now and then in calls that wait; so are checks of
weights on a GPU, which are read in place.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, final

from doorstep._native._generated import PolicyKind
from doorstep._native.rollouts import EngineHandle
from doorstep.errors import ArgumentError
from doorstep.metrics.series import labels_text
from doorstep.policy import Policy
from doorstep.rollouts.failures import FailureTexts
from doorstep.rollouts.policies import BUILT_IN

if TYPE_CHECKING:
    from doorstep.policy.torch_weights import ModuleWeights, WeightCopy

RENEWAL_SECONDS = 0.05
REMEMBERED = 4096  # weights of dropped policies


@final
class NativePolicies:
    """Any thread may use it.

    Args:
        in_use: the numbers that unanswered requests have.
        failures: get why policies cannot be played.
    """

    def __init__(self, engine: EngineHandle, in_use: Callable[[], AbstractSet[int]], failures: FailureTexts) -> None:
        self._engine, self._in_use, self._failures = engine, in_use, failures
        self._lock = threading.Lock()
        self._with_weights: dict[int, Any] = {}  # policies whose modules may change
        self._copies: dict[int, WeightCopy] = {}
        self._versions = Versions()
        self._failing: set[int] = set()
        self._next_renewal = 0.0

    def give(self, number: int, policy: Any, name: str) -> None:
        """The number stands for this policy, which metrics call so.

        Raises:
            StateError: the module's weights are elsewhere.
        """
        with self._lock:
            self._engine.label_policy(number, labels_text({"policy": name}))
            if not isinstance(policy, Policy):
                self._engine.set_policy(number, BUILT_IN.get(type(policy), PolicyKind.CALLER))
                return
            if policy._weights is not None:
                self._with_weights[number] = policy
            self._give(number, policy)

    def take_back(self, number: int) -> None:
        """The number stands for no policy; replicas refer to it no longer."""
        with self._lock:
            self._with_weights.pop(number, None)
            self._versions.drop(number, self._copies.pop(number, None))
            self._failing.discard(number)
            self._engine.replace_policy(number, number)
            self._engine.set_policy(number, PolicyKind.CALLER)

    def renew(self, policies: Mapping[int, Any]) -> None:
        """Replicas read the weights of these, by their numbers, as they are now.

        Raises:
            StateError: the weights of a module are elsewhere.
        """
        with self._lock:
            for number, policy in policies.items():
                if number in self._with_weights:
                    self._renew(number, policy)

    def renew_sometimes(self) -> bool:
        """The same for the policies of unanswered requests, if that was not done lately; whether it was done now.
        Episodes whose policy's weights are elsewhere fail."""
        if time.monotonic() < self._next_renewal:
            return False
        in_use = self._in_use()  # before the lock, which those who submit take with that of the requests held
        with self._lock:
            self._next_renewal = time.monotonic() + RENEWAL_SECONDS
            for number, policy in list(self._with_weights.items()):
                if number in in_use:
                    try:
                        self._renew(number, policy)
                    except Exception as error:  # whatever it is, the engine goes on
                        self._fail(number, error)
        return True

    # ---- With the lock held

    def _renew(self, number: int, policy: Any) -> None:
        policy._weights.check()
        copy = self._copies.get(number)
        if number in self._failing or (copy is not None and not copy.is_current()):
            self._give(number, policy)

    def _give(self, number: int, policy: Policy) -> None:
        weights: ModuleWeights | None = policy._weights
        if weights is not None:
            weights.check()
        self._failing.discard(number)
        handle: int = policy.native_handle
        version = 0
        if weights is not None and weights.device == "cpu":
            from doorstep.policy.torch_weights import WeightCopy  # here: it imports torch

            copy = self._copies[number] = WeightCopy(weights)
            handle, version = copy.policy.value, self._versions.give(number, copy)
        try:
            self._engine.set_policy(number, PolicyKind.NATIVE, handle, version)
        except ArgumentError as error:  # it does not fit
            self._fail(number, error)

    def _fail(self, number: int, error: Exception) -> None:
        if number not in self._failing:
            self._versions.drop(number, self._copies.pop(number, None))
            self._failing.add(number)
            self._engine.set_policy(number, PolicyKind.FAILING, self._failures.number_of(error))


@final
class Versions:
    """Numbers the weights that replicas play with, in the order in which they come. A policy that is dropped and given
    again with the same weights, as between two submissions, keeps its number."""

    def __init__(self) -> None:
        self._count = itertools.count()
        self._of_numbers: dict[int, int] = {}
        self._of_dropped: dict[bytes, int] = {}  # the latest ones

    def give(self, number: int, weights: WeightCopy) -> int:
        """The version of a policy that gets a number, or other weights."""
        version = None if number in self._of_numbers else self._of_dropped.get(weights.digest())
        self._of_numbers[number] = next(self._count) if version is None else version
        return self._of_numbers[number]

    def drop(self, number: int, weights: WeightCopy | None) -> None:
        """weights: those that it had; None: none that are counted."""
        version = self._of_numbers.pop(number, None)
        if weights is None or version is None:
            return
        self._of_dropped[weights.digest()] = version
        if len(self._of_dropped) > REMEMBERED:
            del self._of_dropped[next(iter(self._of_dropped))]
