"""The policies of an evaluation: their names, and who can play them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from doorstep._arguments import check_text, refuse
from doorstep._files import printable
from doorstep.errors import ArgumentError
from doorstep.policies import find_policy
from doorstep.policy import Policy

# A text as in `doorstep.policies.find_policy()`, a `doorstep.Policy`, or a callable as in `doorstep.policies`.
AnyPolicy: TypeAlias = "str | Policy | Callable[..., Any]"

_REQUIREMENT = "policies: texts, doorstep.Policy objects, callables, or a mapping of names to them; at least one"
_PLAYED_BY_ENGINE = ("random", "idle")


class Contestant(NamedTuple):
    """A policy and its name in the results; policy: "random", "idle", "scripted", a `Policy` or a callable."""

    name: str
    policy: Any

    @property
    def is_native(self) -> bool:
        """Whether a `RolloutEngine` plays it; others need more than the rows of observations that it gives."""
        return isinstance(self.policy, Policy) or (isinstance(self.policy, str) and self.policy in _PLAYED_BY_ENGINE)


def find_contestants(policies: object) -> list[Contestant]:
    """The policies of an argument.

    Raises:
        ArgumentError: there is none, two have one name, or one is refused.
    """
    named = policies.items() if isinstance(policies, Mapping) else ((_name_of(one), one) for one in _listed(policies))
    contestants = [_contestant(name, policy) for name, policy in named]
    if not contestants:
        refuse("policies", _REQUIREMENT, policies)
    _check_names(contestant.name for contestant in contestants)
    return contestants


def _listed(policies: object) -> Sequence[Any]:
    if isinstance(policies, (str, Policy)) or callable(policies):
        return [policies]
    if not isinstance(policies, Sequence):
        refuse("policies", _REQUIREMENT, policies)
    return policies


def _contestant(name: object, policy: Any) -> Contestant:
    if not isinstance(name, str) or not name:
        refuse("policies", "a mapping with texts as names", name)
    check_text("policies", name)
    if isinstance(policy, str):
        policy = find_policy(policy)
    elif not callable(policy):
        refuse("policies", _REQUIREMENT, policy)
    return Contestant(name, policy)


def _name_of(policy: Any) -> str:
    if isinstance(policy, str):
        return printable(policy)
    return str(getattr(policy, "__name__", type(policy).__name__))


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ArgumentError(
                f"policies has two of the name {name!r}; names must differ",
                argument="policies",
                hint="pass a mapping of names to policies: {'before': policy, 'after': other}",
            )
        seen.add(name)
