"""Rewards as a field of a configuration, and as an option."""

from __future__ import annotations

from typing import Any, final

from doorstep._configs import Part, Rule
from doorstep._documents import from_json, load
from doorstep.levels.rules import Rewards

_FILES = (".json", ".yaml", ".yml")


@final
class RewardTerms(Rule):
    """`Rewards`; as an option "cube_approach=0.25,goal=2", JSON, or the path of a file of JSON or YAML. Terms that are
    absent have the defaults."""

    @property
    def requirement(self) -> str:
        return "doorstep.Rewards, or its terms, such as goal=5,cube_approach=0.25"

    def suits(self, value: Any) -> bool:
        return isinstance(value, Rewards)

    def to_plain(self, value: Any) -> Any:
        return value.to_dict()

    def from_plain(self, name: str, value: Any) -> Any:
        return Part(Rewards).from_plain(name, value)

    def to_text(self, plain: Any) -> str:
        return ",".join(f"{name}={number!r}" for name, number in plain.items())

    def from_text(self, text: str) -> Any:
        if text.startswith("{"):
            return from_json(text)
        if text.lower().endswith(_FILES):
            return load(text, lambda terms: Part(Rewards).from_plain("reward", terms))
        pairs = [term.partition("=") for term in text.split(",")]
        if not all(equals for _, equals, _ in pairs):
            return text  # which is refused by its field's name
        return {name.strip(): _number(number) for name, _, number in pairs}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
