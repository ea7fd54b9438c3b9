"""The numbers of an engine's policies, by which its requests name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

from doorstep._arguments import refuse
from doorstep._native._generated import PolicyKind
from doorstep.errors import ArgumentError

BUILT_IN = {"random": PolicyKind.RANDOM, "idle": PolicyKind.IDLE}

_UNUSED = object()


@final
class PolicyTable:
    """A number for each policy. The number of one that no unanswered request has may pass to another policy.

    Args:
        most: how many there may be.
        num_agents: of an episode.
        passed_on: told a number that another policy has now.
        check: refuses what is no policy; None: `check_policy`.
    """

    def __init__(
        self,
        most: int,
        num_agents: int,
        passed_on: Callable[[int], None],
        check: Callable[[Any], None] | None = None,
    ) -> None:
        self._num_agents, self._passed_on = num_agents, passed_on
        self._check = check or check_policy
        self._policies: list[Any] = [_UNUSED] * most
        self._numbers: dict[Any, int] = {}  # by what stands for a policy
        self._uses = [0] * most  # by submissions
        self._next = 0  # of those that were never given

    def __getitem__(self, number: int) -> Any:
        return self._policies[number]

    def numbers_of(self, policy: Any) -> list[int]:
        """The number of each agent's policy."""
        if not isinstance(policy, tuple):
            return [self._number_of(policy)] * self._num_agents
        if len(policy) != self._num_agents:
            refuse("policy", f"one policy, or a tuple of {self._num_agents}, one for each agent", policy)
        numbers = []
        for one in policy:  # each is in use while the next looks for a number
            numbers.append(self._number_of(one))
            self._uses[numbers[-1]] += 1
        self.release(numbers)
        return numbers

    def use(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._uses[number] += 1

    def release(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._uses[number] -= 1

    def _number_of(self, policy: Any) -> int:
        self._check(policy)
        key = _key_of(policy)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._find_free()
            self._policies[number] = policy
        return number

    def _find_free(self) -> int:
        if self._next < len(self._policies):
            self._next += 1
            return self._next - 1
        for key, number in self._numbers.items():
            if not self._uses[number]:
                del self._numbers[key]
                self._passed_on(number)
                return number
        raise ArgumentError(
            f"unanswered requests have {len(self._policies)} policies already, as many as max_policies allows",
            argument="policy",
            hint="create the engine with a larger max_policies",
        )


def check_policy(policy: Any) -> None:
    """Refuses what no engine can play."""
    is_known = policy in BUILT_IN if isinstance(policy, str) else callable(policy) or hasattr(policy, "native_handle")
    if not is_known:
        refuse("policy", f"{', '.join(map(repr, BUILT_IN))}, a doorstep.Policy or a callable", policy)


def _key_of(policy: Any) -> Any:
    """Equal for equal methods of one object, of which Python makes a new one each time."""
    try:
        hash(policy)
    except TypeError:
        return id(policy)  # the table keeps it alive
    return policy
