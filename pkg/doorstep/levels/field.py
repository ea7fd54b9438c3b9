"""Levels as fields of configurations and documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, final

from doorstep._arguments import refuse
from doorstep._configs import Items, Rule, Text
from doorstep._documents import from_json
from doorstep.levels.choice import NAMES_OF_LEVELS, find_levels
from doorstep.levels.files import level_from
from doorstep.levels.generated import GeneratedLevel
from doorstep.levels.level import Level


@final
class OneLevel(Rule):
    """A level of either kind."""

    @property
    def requirement(self) -> str:
        return "a doorstep.Level or a doorstep.levels.GeneratedLevel"

    def suits(self, value: Any) -> bool:
        return isinstance(value, (Level, GeneratedLevel))

    def to_plain(self, value: Any) -> Any:
        return value.to_dict()

    def from_plain(self, name: str, value: Any) -> Any:
        return level_from(name, value) if isinstance(value, Mapping) else value


LEVELS = Items(OneLevel(), "levels")


@final
class PlayedLevels(Text):
    """What `doorstep.Simulator(levels=...)` takes. Files are read at once, so that a config has the levels themselves:
    it is the name of some that come with doorstep, or a tuple of levels with different names."""

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in NAMES_OF_LEVELS:
            return value
        try:
            found = find_levels(value)
        except OSError as error:
            refuse(name, "levels, or the path of a file that can be read", value, str(error))
        return tuple(level.replace(name=title) for title, level in found.items())

    def to_plain(self, value: Any) -> Any:
        return value if isinstance(value, str) else LEVELS.to_plain(value)

    def from_plain(self, name: str, value: Any) -> Any:
        return LEVELS.from_plain(name, value) if LEVELS.suits(value) else value

    def to_text(self, plain: Any) -> str:
        return super().to_text(plain) if isinstance(plain, str) else json.dumps(plain)

    def from_text(self, text: str) -> Any:
        return from_json(text) if text.startswith("[") else super().from_text(text)

