"""Rewards as a field of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from doorstep._configs import Rule
from doorstep._documents import from_json
from doorstep.levels.document import made
from doorstep.levels.rules import Rewards


@final
class RewardTerms(Rule):
    """`Rewards`; as an option "cube_approach=0.25,goal=2", or JSON. Terms that are absent have the defaults."""

    @property
    def requirement(self) -> str:
        return "doorstep.levels.Rewards"

    def suits(self, value: Any) -> bool:
        return isinstance(value, Rewards)

    def to_plain(self, value: Any) -> Any:
        return dict(vars(value))

    def from_plain(self, name: str, value: Any) -> Any:
        return made(Rewards, name, value) if isinstance(value, Mapping) else value

    def to_text(self, plain: Any) -> str:
        return ",".join(f"{name}={number!r}" for name, number in plain.items())

    def from_text(self, text: str) -> Any:
        if text.startswith("{"):
            return from_json(text)
        pairs = [term.partition("=") for term in text.split(",")]
        if not all(equals for _, equals, _ in pairs):
            return text  # which is refused by its field's name
        return {name.strip(): _number(number) for name, _, number in pairs}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
