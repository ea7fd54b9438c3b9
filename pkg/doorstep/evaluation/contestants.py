"""The policies of an evaluation: their names, and what plays them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from doorstep._arguments import check_text, refuse, shown
from doorstep._files import printable
from doorstep._observations import Parts, or_default
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError
from doorstep.policy import Policy, SamplingParams, load_policy
from doorstep.policy.built_in import IdlePolicy, RandomPolicy

_REQUIREMENT = "what load_policy() takes, a sequence of it, or a mapping of names to it; at least one"
_PLAYED_BY_ENGINE = (Policy, RandomPolicy, IdlePolicy)


class Contestant(NamedTuple):
    """A policy and its name in the results."""

    name: str
    policy: Any

    @property
    def is_native(self) -> bool:
        """Whether a `RolloutEngine` plays it without Python."""
        return isinstance(self.policy, _PLAYED_BY_ENGINE)

    def observations_in(self, config: SimulatorConfig) -> Parts:
        """What it observes: as it was trained, or, if that is not known, what worlds of these rules have."""
        return getattr(self.policy, "observations", None) or or_default(config.observations)


def find_contestants(policies: object, sampling: SamplingParams | None) -> list[Contestant]:
    """The policies of an argument.

    Raises:
        ArgumentError: there is none, two have one name, or one is refused.
    """
    named = policies.items() if isinstance(policies, Mapping) else ((_name_of(one), one) for one in _listed(policies))
    contestants = [_contestant(name, policy, sampling) for name, policy in named]
    if not contestants:
        refuse("policies", _REQUIREMENT, policies)
    _check_names(contestant.name for contestant in contestants)
    return contestants


def _listed(policies: object) -> Sequence[Any]:
    is_one = isinstance(policies, (str, os.PathLike)) or callable(policies)
    if not is_one and not isinstance(policies, Sequence):
        refuse("policies", _REQUIREMENT, policies)
    return [policies] if is_one else policies  # type: ignore[return-value]


def _contestant(name: object, policy: Any, sampling: SamplingParams | None) -> Contestant:
    if not isinstance(name, str) or not name:
        refuse("policies", "a mapping with texts as names", name)
    check_text("policies", name)
    return Contestant(name, load_policy(policy, sampling=sampling))


def _name_of(policy: Any) -> str:
    if isinstance(policy, (str, os.PathLike)):
        return printable(os.fspath(policy))
    return str(getattr(policy, "__name__", type(policy).__name__))


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ArgumentError(
                f"policies has two of the name {shown(name)}; names must differ",
                argument="policies",
                hint="pass a mapping of names to policies: {'before': policy, 'after': other}",
            )
        seen.add(name)
