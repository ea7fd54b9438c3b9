"""The numbers of an engine's policies, by which its requests name them."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, final

from doorstep._arguments import refuse
from doorstep._files import printable
from doorstep._native._generated import PolicyKind
from doorstep._observations import or_default
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError
from doorstep.policy import Policy, load_policy
from doorstep.policy.built_in import IdlePolicy, RandomPolicy
from doorstep.policy.loading import check_name, check_observations
from doorstep.rollouts.request import check_policy

BUILT_IN = {RandomPolicy: PolicyKind.RANDOM, IdlePolicy: PolicyKind.IDLE}

_UNUSED = object()
_NAME_LETTERS = 60


@final
@dataclass(frozen=True, eq=False)
class NamedPolicy:
    """What a name stands for, from one assignment to the next."""

    name: str
    given: Any
    loaded: Any


@final
class PolicyTable:
    """A number for each policy, which is loaded then. A policy that no unanswered request has is dropped, and its
    number may pass to another.

    Args:
        most: how many there may be.
        simulator: the rules of the engine's simulators.
        in_use: the numbers that unanswered requests have.
        tell: told a number, the policy that gets it, and what it is called; or None when its policy has it no longer.
        load: makes a policy of what requests have; None: `load_policy()`.
    """

    def __init__(
        self,
        most: int,
        simulator: SimulatorConfig,
        in_use: Callable[[], AbstractSet[int]],
        tell: Callable[[int, Any, str], None],
        load: Callable[[Any], Any] | None = None,
    ) -> None:
        self._num_agents, self._in_use, self._tell = simulator.num_agents, in_use, tell
        self._observations = or_default(simulator.observations)
        self._load = load or _load
        self._policies: list[Any] = [_UNUSED] * most
        self._given: list[Any] = [_UNUSED] * most  # what requests have; kept, so that no other object has its identity
        self._numbers: dict[Any, int] = {}  # by identity
        self.named: Mapping[str, NamedPolicy] = {}

    def __getitem__(self, number: int) -> Any:
        return self._policies[number]

    def numbers_of(self, policy: Any, held: set[int]) -> list[int]:
        """The number of each agent's policy. held: gets them; the numbers in it pass to no other policy."""
        if not isinstance(policy, tuple):
            return [self._number_of(policy, held)] * self._num_agents
        if len(policy) != self._num_agents:
            refuse("policy", f"one policy, or a tuple of {self._num_agents}, one for each agent", policy)
        return [self._number_of(one, held) for one in policy]

    def _number_of(self, policy: Any, held: set[int]) -> int:
        named = self.named.get(policy) if isinstance(policy, str) else None
        key = named or _identity(policy)
        number = self._numbers.get(key)
        if number is None:
            number = self._give_number(key, policy, named.loaded if named else self.load(policy), held)
        held.add(number)
        return number

    def load(self, given: Any) -> Any:
        """The policy of what requests have, unless it is a name."""
        if isinstance(given, str):
            check_name(given, self.named)
        loaded = self._load(given)
        check_observations(loaded, str(given), self._observations)
        return loaded

    def set_name(self, named: NamedPolicy, replace: Callable[[int, int], None]) -> None:
        """The name stands for this policy, also in requests that wait. replace: told the number that these have, and
        that of the policy which plays them instead."""
        in_use = self._in_use()
        before = {
            number
            for key, number in self._numbers.items()
            if isinstance(key, NamedPolicy) and key.name == named.name and number in in_use
        }
        if before:
            number = self._give_number(named, named.name, named.loaded, before)
            for other in before:
                replace(other, number)
        self.named = {**self.named, named.name: named}

    def _give_number(self, key: Any, given: Any, policy: Any, held: set[int]) -> int:
        """Ctrl-C may end it anywhere: then the policy has no number, or this one."""
        number = self._find_free(held)
        for other, its in list(self._numbers.items()):
            if its == number:
                self._drop(other, number)
        self._tell(number, policy, _name_of(given))
        numbers = {**self._numbers, key: number}
        self._given[number], self._policies[number], self._numbers = given, policy, numbers
        return number

    def _drop(self, key: Any, number: int) -> None:
        numbers = {other: its for other, its in self._numbers.items() if other != key}
        self._numbers, self._given[number], self._policies[number] = numbers, _UNUSED, _UNUSED
        self._tell(number, None, "")

    def forget_name(self, name: str) -> None:
        """Requests that wait keep the policy.

        Raises:
            KeyError: there is no such name.
        """
        others = dict(self.named)
        del others[name]
        self.named = others

    def drop_unused(self) -> None:
        """Refers no longer to policies that no unanswered request has, but for names."""
        in_use = self._in_use()
        for key, number in list(self._numbers.items()):
            if number not in in_use and not isinstance(key, str):
                self._drop(key, number)

    def _find_free(self, held: set[int]) -> int:
        for number, policy in enumerate(self._policies):
            if policy is _UNUSED:
                return number
        taken = held | self._in_use()
        for number in self._numbers.values():
            if number not in taken:
                return number
        raise ArgumentError(
            f"unanswered requests have {len(self._policies)} policies already, as many as max_policies allows",
            argument="policy",
            hint="create the engine with a larger max_policies, or give requests one object instead of equal ones",
        )


def is_callable(policy: Any) -> bool:
    """Whether a loaded policy acts in Python."""
    return not isinstance(policy, Policy) and type(policy) not in BUILT_IN


def _load(given: Any) -> Any:
    policy = load_policy(given)
    check_policy(policy)
    return policy


def _name_of(policy: Any) -> str:
    """What metrics call it: the text that requests have, the policy's `name`, or that of the function or class. At most
    60 letters, the last ones."""
    names = [os.fspath(policy)] if isinstance(policy, (str, os.PathLike)) else []
    names += [getattr(policy, "name", None), getattr(policy, "__name__", None), type(policy).__name__]
    name = next(name for name in names if isinstance(name, str) and name)
    return printable(name).replace("\0", "\\0")[-_NAME_LETTERS:]


def _identity(policy: Any) -> Any:
    """Policies that are equal may act differently. Methods of one object are one policy, although Python makes a new
    object each time. The table keeps these objects alive: no other one has their addresses meanwhile."""
    if isinstance(policy, (str, os.PathLike)):
        return os.fspath(policy)
    if type(policy) in BUILT_IN:
        return type(policy)
    if isinstance(policy, types.MethodType):
        return id(policy.__self__), id(policy.__func__)
    if isinstance(policy, (types.BuiltinMethodType, types.MethodWrapperType)):
        return id(policy.__self__), policy.__name__
    return id(policy)
