"""What replicas are told of the policies of an engine, whose weights may change or move while episodes are played.

Weights of modules on the CPU are copied: replicas read the copies without Python's lock, and a module may free its
memory at any time. Copies are renewed with every submission, and now and then in calls that wait; so are checks of
weights on a GPU, which are read in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, final

from doorstep._native._generated import PolicyKind
from doorstep._native.rollouts import EngineHandle
from doorstep.errors import ArgumentError
from doorstep.metrics.store import MetricsStore
from doorstep.policy import Policy
from doorstep.rollouts.failures import FailureTexts
from doorstep.rollouts.policies import BUILT_IN

if TYPE_CHECKING:
    from doorstep.policy.torch_weights import WeightCopy

_REMEMBERED = 4096  # versions of dropped policies


@final
class NativePolicies:
    """Its user guards it with a lock.

    Args:
        failures: get why policies cannot be played.
        metrics: where the engine records; None: nowhere.
    """

    def __init__(self, engine: EngineHandle, failures: FailureTexts, metrics: MetricsStore | None) -> None:
        self._engine, self._failures, self._metrics = engine, failures, metrics
        self._with_weights: dict[int, Any] = {}  # policies whose modules may change
        self._series: dict[int, int] = {}
        self._copies: dict[int, WeightCopy] = {}
        self._failing: set[int] = set()
        # Weights are numbered in the order in which they come. A policy that is dropped and given again with the same
        # weights, as between two submissions, keeps its version.
        self._next_version = itertools.count()
        self._versions: dict[int, int] = {}
        self._versions_of_dropped: dict[bytes, int] = {}  # by their weights

    def give(self, number: int, policy: Any, name: str) -> None:
        """The number stands for this policy, which metrics call so.

        Raises:
            StateError: the module's weights are elsewhere.
        """
        self._series[number] = 0 if self._metrics is None else self._metrics.series_of_policy(name)
        if not isinstance(policy, Policy):
            kind = BUILT_IN.get(type(policy), PolicyKind.CALLER)
            self._engine.set_policy(number, kind, series=self._series[number])
            return
        if policy._weights is not None:
            self._with_weights[number] = policy
        self._give(number, policy)

    def take_back(self, number: int) -> None:
        """The number stands for no policy; replicas refer to it no longer."""
        self._with_weights.pop(number, None)
        self._drop(number)
        self._failing.discard(number)
        self._engine.replace_policy(number, number)
        self._engine.set_policy(number, PolicyKind.CALLER)

    def renew(self, numbers: AbstractSet[int]) -> None:
        """Replicas read the weights of these as they are now.

        Raises:
            StateError: the weights of a module are elsewhere.
        """
        for number in numbers & self._with_weights.keys():
            self._renew(number)

    def renew_or_fail(self, numbers: AbstractSet[int]) -> None:
        """The same, but episodes whose policy's weights are elsewhere fail."""
        for number in numbers & self._with_weights.keys():
            try:
                self._renew(number)
            except Exception as error:  # noqa: PERF203 - whatever it is, the engine goes on
                self._fail(number, error)

    def _renew(self, number: int) -> None:
        policy, copy = self._with_weights[number], self._copies.get(number)
        policy._weights.check()
        if number in self._failing or (copy is not None and not copy.is_current()):
            self._give(number, policy)

    def _give(self, number: int, policy: Policy) -> None:
        weights = policy._weights
        if weights is not None:
            weights.check()
        self._failing.discard(number)
        handle: int = policy.native_handle
        version = 0
        if weights is not None and weights.device == "cpu":
            from doorstep.policy.torch_weights import WeightCopy  # here: it imports torch

            copy = self._copies[number] = WeightCopy(weights)
            known = None if number in self._versions else self._versions_of_dropped.get(copy.digest())
            version = self._versions[number] = next(self._next_version) if known is None else known
            handle = copy.policy.value
        try:
            self._engine.set_policy(
                number, PolicyKind.NATIVE, handle, version=version, series=self._series[number]
            )
        except ArgumentError as error:  # it does not fit
            self._fail(number, error)

    def _fail(self, number: int, error: Exception) -> None:
        if number not in self._failing:
            self._drop(number)
            self._failing.add(number)
            cause = self._failures.number_of(error)
            self._engine.set_policy(number, PolicyKind.FAILING, cause=cause, series=self._series[number])

    def _drop(self, number: int) -> None:
        """Its weights, whose version is remembered."""
        copy, version = self._copies.pop(number, None), self._versions.pop(number, None)
        if copy is not None and version is not None:
            self._versions_of_dropped[copy.digest()] = version
            if len(self._versions_of_dropped) > _REMEMBERED:
                del self._versions_of_dropped[next(iter(self._versions_of_dropped))]
