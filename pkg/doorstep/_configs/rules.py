"""What values a field may have, and how they are written: in Python, in JSON and as text of the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from doorstep._arguments import check_choice, check_device, check_flag, check_integer, is_number, refuse, to_single
from doorstep._documents import from_json
from doorstep.errors import ArgumentError


class Rule:
    """Any value. Subclasses say which ones."""

    @property
    def requirement(self) -> str:
        """What its kind of value is, where None may be another."""
        return ""

    def suits(self, value: Any) -> bool:
        """Whether a value is of that kind."""
        return True

    def check(self, name: str, value: Any) -> Any:
        """The value as the config keeps it.

        Raises:
            ArgumentError: it is refused.
        """
        return value

    def to_plain(self, value: Any) -> Any:
        """A value that JSON can hold."""
        return value

    def from_plain(self, name: str, value: Any) -> Any:
        """The value for check() of one that to_plain() made, or of anything else."""
        return value

    def to_text(self, plain: Any) -> str:
        """A value of to_plain() as a text of the command line."""
        return _json(plain)

    def from_text(self, text: str) -> Any:
        """A value for from_plain(): the text itself if it is not understood, so that check() refuses it."""
        try:
            return from_json(text)
        except ArgumentError:
            return text


@final
@dataclass(frozen=True)
class Integer(Rule):
    """An integer, low to high."""

    low: int = -(2**63)
    high: int = 2**63 - 1

    def check(self, name: str, value: Any) -> int:
        return check_integer(name, value, self.low, self.high)

    def from_text(self, text: str) -> Any:
        try:
            return int(text)
        except ValueError:
            return text


@final
@dataclass(frozen=True)
class Number(Rule):
    """A finite number of single precision: at least `low` or above `above`, and at most `high`."""

    low: float | None = None
    above: float | None = None
    high: float | None = None

    def check(self, name: str, value: Any) -> float:
        if not is_number(value):
            refuse(name, self._requirement(), value)
        single = to_single(value)
        is_allowed = (
            math.isfinite(single)
            and (self.low is None or single >= self.low)
            and (self.above is None or single > self.above)
            and (self.high is None or single <= self.high)
        )
        if not is_allowed:
            refuse(name, self._requirement(), value)
        return float(value)

    def _requirement(self) -> str:
        limits = []
        if self.low is not None:
            limits.append(f"at least {self.low:g}")
        if self.above is not None:
            limits.append(f"more than {self.above:g}")
        if self.high is not None:
            limits.append(f"at most {self.high:g}")
        return ", ".join(["a number", " and ".join(limits)]) if limits else "a finite number"

    def from_text(self, text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text


@final
@dataclass(frozen=True)
class Flag(Rule):
    """True or False."""

    def check(self, name: str, value: Any) -> bool:
        return check_flag(name, value)

    def from_text(self, text: str) -> Any:
        return {"true": True, "false": False}.get(text.lower(), text)


class Text(Rule):
    """Text, which options have as it is; in quotation marks if it could be taken for something else."""

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            refuse(name, "text", value)
        return value

    def to_text(self, plain: Any) -> str:
        return _json(plain) if plain.lower() == "none" or plain[:1] in ('"', "[") else str(plain)

    def from_text(self, text: str) -> Any:
        return super().from_text(text) if text[:1] == '"' else text


@final
@dataclass(frozen=True)
class Choice(Text):
    """One of some names."""

    names: tuple[str, ...]

    def check(self, name: str, value: Any) -> str:
        return check_choice(name, value, self.names)


@final
@dataclass(frozen=True)
class Device(Text):
    """The name of a device."""

    def check(self, name: str, value: Any) -> str:
        check_device(value)
        return str(value)


@final
@dataclass(frozen=True)
class Anything(Rule):
    """What the config itself checks. In JSON a path is {"file": path}, and a tuple a list."""

    def to_plain(self, value: Any) -> Any:
        if isinstance(value, Path):
            return {"file": str(value)}
        return list(value) if isinstance(value, tuple) else value

    def from_plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            if list(value) != ["file"] or not isinstance(value["file"], str):
                refuse(name, 'a value, or {"file": path}', value)
            return Path(value["file"])
        return tuple(value) if isinstance(value, list) else value


@final
@dataclass(frozen=True)
class Items(Rule):
    """A tuple of at least one value, all of the same rule."""

    item: Rule
    what: str  # one of them is, in the plural

    @property
    def requirement(self) -> str:
        return f"a tuple of {self.what}"

    def suits(self, value: Any) -> bool:
        return isinstance(value, tuple) and bool(value)

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        if not self.suits(value):
            refuse(name, self.requirement, value)
        return tuple(self.item.check(name, item) for item in value)

    def to_plain(self, value: Any) -> Any:
        return [self.item.to_plain(item) for item in value]

    def from_plain(self, name: str, value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return value
        return tuple(self.item.from_plain(f"{name}[{index}]", item) for index, item in enumerate(value))

    def to_text(self, plain: Any) -> str:
        are_simple = all(isinstance(item, str) and item.strip() == item != "" for item in plain)
        are_simple = are_simple and not any(set(item) & set(',["') for item in plain)
        return ",".join(plain) if are_simple else _json(plain)

    def from_text(self, text: str) -> Any:
        if text.startswith("["):
            return super().from_text(text)
        return [self.item.from_text(part.strip()) for part in text.split(",")]


@final
@dataclass(frozen=True)
class Optional(Rule):
    """None, or what another rule allows."""

    rule: Rule

    def check(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if not self.rule.suits(value):
            refuse(name, f"{self.rule.requirement} or None", value)
        return self.rule.check(name, value)

    def to_plain(self, value: Any) -> Any:
        return None if value is None else self.rule.to_plain(value)

    def from_plain(self, name: str, value: Any) -> Any:
        return None if value is None else self.rule.from_plain(name, value)

    def to_text(self, plain: Any) -> str:
        return "none" if plain is None else self.rule.to_text(plain)

    def from_text(self, text: str) -> Any:
        return None if text.lower() == "none" else self.rule.from_text(text)


def _json(plain: Any) -> str:
    import json  # here: `import doorstep` does not pay for it

    return json.dumps(plain)
