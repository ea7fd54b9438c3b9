"""The policies that requests of an engine name."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, final

from doorstep.policy.loading import AnyPolicy

if TYPE_CHECKING:
    from doorstep.rollouts.core import Core


@final
class NamedPolicies(MutableMapping[str, AnyPolicy]):
    """Policies by their names, in the order in which the names were first given."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def __getitem__(self, name: str) -> AnyPolicy:
        return self._core.named_policies[name].given

    def __setitem__(self, name: str, policy: AnyPolicy) -> None:
        self._core.name_policy(name, policy)

    def __delitem__(self, name: str) -> None:
        self._core.forget_name(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._core.named_policies)

    def __len__(self) -> int:
        return len(self._core.named_policies)

    def __repr__(self) -> str:
        return repr(dict(self))
