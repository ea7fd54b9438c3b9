"""The policies that requests of an engine name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Protocol, final

from doorstep._arguments import check_text, refuse
from doorstep.policy.loading import AnyPolicy
from doorstep.rollouts.policies import NamedPolicy


class NamesPolicies(Protocol):
    """What an engine knows of names."""

    @property
    def named_policies(self) -> Mapping[str, NamedPolicy]: ...

    def name_policy(self, name: str, policy: AnyPolicy) -> None:
        """The name stands for this policy, also in requests that wait."""

    def forget_name(self, name: str) -> None:
        """Requests that wait keep the policy. KeyError."""


@final
class NamedPolicies(MutableMapping[str, AnyPolicy]):
    """Policies by their names, in the order in which the names were first given."""

    def __init__(self, engine: NamesPolicies) -> None:
        self._engine = engine

    def __getitem__(self, name: str) -> AnyPolicy:
        return self._engine.named_policies[name].given

    def __setitem__(self, name: str, policy: AnyPolicy) -> None:
        if not check_text("name", name):
            refuse("name", "a text that is not empty", name)
        self._engine.name_policy(name, policy)

    def __delitem__(self, name: str) -> None:
        self._engine.forget_name(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._engine.named_policies)

    def __len__(self) -> int:
        return len(self._engine.named_policies)

    def __repr__(self) -> str:
        return repr(dict(self))
