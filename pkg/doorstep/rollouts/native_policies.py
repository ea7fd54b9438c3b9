"""What replicas read of the native policies of an engine, whose weights may change or move while episodes are played.

Weights of modules on the CPU are copied: replicas read the copies without Python's lock, and a module may free its
memory at any time. Copies are renewed with every submission, and now and then while replicas play; so are checks of
weights on a GPU, which are read in place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, final

from doorstep.policy import Policy

if TYPE_CHECKING:
    from doorstep.policy.torch_weights import ModuleWeights, WeightCopy

RENEWAL_SECONDS = 0.05


@final
class NativePolicies:
    """The handles of native policies by their numbers. Any thread may use it.

    Args:
        in_use: the numbers that unanswered requests have.
        ask_again: told a number whose handle is out of date; replicas then call give().
    """

    def __init__(self, in_use: Callable[[], AbstractSet[int]], ask_again: Callable[[int], None]) -> None:
        self._in_use, self._ask_again = in_use, ask_again
        self._lock = threading.Lock()  # handles do not change while replicas get them
        self._copies: dict[int, WeightCopy] = {}
        self._given: dict[int, Any] = {}  # policies
        self._next_renewal = 0.0

    def give(self, number: int, policy: Any, use: Callable[[int], None]) -> None:
        """Calls `use` with the handle of the policy that has this number.

        Raises:
            StateError: the module's weights are elsewhere.
        """
        with self._lock:
            use(self._handle(number, policy))
            self._given[number] = policy

    def renew(self, policies: Mapping[int, Any]) -> None:
        """Replicas read the weights of these, by their numbers, as they are now.

        Raises:
            StateError: the weights of a module are elsewhere.
        """
        with self._lock:
            for number, policy in policies.items():
                self._renew(number, policy)

    def renew_sometimes(self) -> bool:
        """The same for the policies of unanswered requests, if that was not done lately; whether it was done now.
        Replicas are told the error of one when they ask for its handle."""
        if time.monotonic() < self._next_renewal:
            return False
        in_use = self._in_use()  # before the lock, which those who submit take with that of the requests held
        with self._lock:
            self._next_renewal = time.monotonic() + RENEWAL_SECONDS
            for number, policy in list(self._given.items()):
                if number in in_use:
                    self._renew_or_take_back(number, policy)
        return True

    def forget(self, number: int) -> None:
        """The number passes to another policy."""
        with self._lock:
            self._take_back(number)

    # ---- With the lock held

    def _handle(self, number: int, policy: Any) -> int:
        weights = _weights_of(policy)
        if weights is not None:
            weights.check()
        if weights is None or weights.device != "cpu":
            handle: int = policy.native_handle
            return handle
        from doorstep.policy.torch_weights import WeightCopy  # here: it imports torch

        copy = self._copies[number] = WeightCopy(weights)
        return copy.policy.value

    def _renew(self, number: int, policy: Any) -> None:
        weights = _weights_of(policy)
        if weights is None:
            return
        weights.check()
        if number in self._copies and not self._copies[number].is_current():
            self._take_back(number)

    def _renew_or_take_back(self, number: int, policy: Any) -> None:
        try:
            self._renew(number, policy)
        except Exception:  # whatever it is, give() meets it too
            self._take_back(number)

    def _take_back(self, number: int) -> None:
        self._copies.pop(number, None)
        self._given.pop(number, None)
        self._ask_again(number)


def _weights_of(policy: Any) -> ModuleWeights | None:
    return policy._weights if isinstance(policy, Policy) else None
