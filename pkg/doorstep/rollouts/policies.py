"""The policies of an engine: numbers, by which the library knows them, and names, by which requests may call them."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from doorstep._arguments import check_text, refuse
from doorstep._files import printable
from doorstep._native._generated import PolicyKind
from doorstep._observations import or_default
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError
from doorstep.policy import Policy, load_policy
from doorstep.policy.built_in import IdlePolicy, RandomPolicy
from doorstep.policy.loading import AnyPolicy, check_name, check_observations
from doorstep.rollouts.request import check_policy

# Tells the numbers of the policies that unanswered requests have.
InUse: TypeAlias = Callable[[], AbstractSet[int]]

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
    number may pass to another. Its user guards it with a lock.

    Args:
        most: how many there may be.
        simulator: the rules of the engine's simulators.
        tell: told a number, the policy that gets it, and what it is called; or None when its policy has it no longer.
    """

    def __init__(self, most: int, simulator: SimulatorConfig, tell: Callable[[int, Any, str], None]) -> None:
        self._num_agents, self._tell = simulator.num_agents, tell
        self._observations = or_default(simulator.observations)
        self._policies: list[Any] = [_UNUSED] * most
        self._given: list[Any] = [_UNUSED] * most  # what requests have; kept, so that no other object has its identity
        self._numbers: dict[Any, int] = {}  # by identity
        self.named: Mapping[str, NamedPolicy] = {}

    def __getitem__(self, number: int) -> Any:
        return self._policies[number]

    def numbers_of(self, policy: Any, held: set[int], in_use: InUse) -> list[int]:
        """The number of each agent's policy. held: gets them; the numbers in it pass to no other policy."""
        if not isinstance(policy, tuple):
            return [self._number_of(policy, held, in_use)] * self._num_agents
        if len(policy) != self._num_agents:
            refuse("policy", f"one policy, or a tuple of {self._num_agents}, one for each agent", policy)
        return [self._number_of(one, held, in_use) for one in policy]

    def _number_of(self, policy: Any, held: set[int], in_use: InUse) -> int:
        named = self.named.get(policy) if isinstance(policy, str) else None
        key = named or _identity(policy)
        number = self._numbers.get(key)
        if number is None:
            number = self._give_number(key, policy, named.loaded if named else self.load(policy), held, in_use)
        held.add(number)
        return number

    def load(self, given: Any) -> Any:
        """The policy of what requests have, unless it is a name."""
        if isinstance(given, str):
            check_name(given, self.named)
        loaded = load_policy(given)
        check_policy(loaded)
        check_observations(loaded, str(given), self._observations)
        return loaded

    def set_name(self, named: NamedPolicy, in_use: InUse, replace: Callable[[int, int], None]) -> None:
        """The name stands for this policy, also in requests that wait. replace: told the number that these have, and
        that of the policy which plays them instead."""
        used = in_use()
        before = {
            number
            for key, number in self._numbers.items()
            if isinstance(key, NamedPolicy) and key.name == named.name and number in used
        }
        if before:
            number = self._give_number(named, named.name, named.loaded, before, in_use)
            for other in before:
                replace(other, number)
        self.named = {**self.named, named.name: named}

    def forget_name(self, name: str) -> None:
        """Requests that wait keep the policy.

        Raises:
            KeyError: there is no such name.
        """
        others = dict(self.named)
        del others[name]
        self.named = others

    def drop_unused(self, in_use: AbstractSet[int]) -> None:
        """Refers no longer to policies that no unanswered request has, but for names."""
        for key, number in list(self._numbers.items()):
            if number not in in_use and not isinstance(key, str):
                self._drop(key, number)

    def _give_number(self, key: Any, given: Any, policy: Any, held: set[int], in_use: InUse) -> int:
        """Ctrl-C may end it anywhere: then the policy has no number, or this one."""
        number = self._find_free(held, in_use)
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

    def _find_free(self, held: set[int], in_use: InUse) -> int:
        if _UNUSED in self._policies:
            return self._policies.index(_UNUSED)
        taken = held | in_use()
        for number in self._numbers.values():
            if number not in taken:
                return number
        raise ArgumentError(
            f"unanswered requests have {len(self._policies)} policies already, as many as max_policies allows",
            argument="policy",
            hint="create the engine with a larger max_policies, or give requests one object instead of equal ones",
        )


@final
class NamedPolicies(MutableMapping[str, AnyPolicy]):
    """Policies by their names, in the order in which the names were first given.

    Args:
        table: has the names; the lock guards it.
        give: gives a policy a name.
    """

    def __init__(self, table: PolicyTable, lock: Any, give: Callable[[str, AnyPolicy], None]) -> None:
        self._table, self._lock, self._give = table, lock, give

    def __getitem__(self, name: str) -> AnyPolicy:
        return self._table.named[name].given

    def __setitem__(self, name: str, policy: AnyPolicy) -> None:
        if not check_text("name", name):
            refuse("name", "a text that is not empty", name)
        self._give(name, policy)

    def __delitem__(self, name: str) -> None:
        with self._lock:
            self._table.forget_name(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.named)

    def __len__(self) -> int:
        return len(self._table.named)

    def __repr__(self) -> str:
        return repr(dict(self))


def is_callable(policy: Any) -> bool:
    """Whether a loaded policy acts in Python."""
    return not isinstance(policy, Policy) and type(policy) not in BUILT_IN


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
