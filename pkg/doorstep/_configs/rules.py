"""What values a field may have, and how they are written: in Python, in JSON and as text of the command line."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from doorstep._arguments import (
    check_choice,
    check_device,
    check_flag,
    check_integer,
    check_text,
    is_number,
    refuse,
    to_single,
)
from doorstep._documents import from_json
from doorstep._files import printable
from doorstep.errors import ArgumentError


class Rule:
    """Any value. Subclasses say which ones."""

    @property
    def requirement(self) -> str:
        """What its kind of value is."""
        return ""

    def suits(self, value: Any) -> bool:
        """Whether a value is of that kind."""
        return True

    def check(self, name: str, value: Any) -> Any:
        """The value as the config keeps it.

        Raises:
            ArgumentError: it is refused.
        """
        if not self.suits(value):
            refuse(name, self.requirement, value)
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
    """A finite number of single precision: at least `low` or more than `above`, and at most `high`."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    unit: str = ""
    hint: str = ""

    def check(self, name: str, value: Any) -> float:
        if not self.allows(value):
            refuse(name, f"{self.what}{self.range}", value, self.hint)
        return float(value)

    def allows(self, value: Any) -> bool:
        if not is_number(value):
            return False
        single = to_single(value)
        return (
            math.isfinite(single)
            and (self.low is None or single >= to_single(self.low))
            and (self.above is None or single > to_single(self.above))
            and (self.high is None or single <= to_single(self.high))
        )

    @property
    def what(self) -> str:
        if self.unit:
            return f"a number of {self.unit}"
        return "a finite number" if self.low is self.above is self.high is None else "a number"

    @property
    def range(self) -> str:
        """What follows `what` in messages."""
        if self.low is not None and self.high is not None:
            return f", {self.low:g} to {self.high:g}"
        limits = [
            f"{words} {limit:g}"
            for words, limit in (("at least", self.low), ("more than", self.above), ("at most", self.high))
            if limit is not None
        ]
        return f", {' and '.join(limits)}" if limits else ""

    def from_text(self, text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text


@final
@dataclass(frozen=True)
class Range(Rule):
    """What another rule allows, or a pair (low, high) of it, from which something is drawn."""

    number: Integer | Number

    def check(self, name: str, value: Any) -> Any:
        if not isinstance(value, (tuple, list)):
            return self.number.check(name, value)
        if len(value) != 2:
            refuse(name, "one value or a range (low, high)", value)
        low, high = (self.number.check(f"{name}[{index}]", end) for index, end in enumerate(value))
        if low > high:
            refuse(name, "a range (low, high) with low <= high", value, "exchange the two")
        return low, high

    def to_plain(self, value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value


@final
class Flag(Rule):
    """True or False."""

    def check(self, name: str, value: Any) -> bool:
        return check_flag(name, value)

    def from_text(self, text: str) -> Any:
        return {"true": True, "false": False}.get(text.lower(), text)


class Text(Rule):
    """Text, which options have as it is; in quotation marks if it could be taken for something else."""

    def check(self, name: str, value: Any) -> str:
        return check_text(name, value)

    def to_text(self, plain: Any) -> str:
        return _json(plain) if plain.lower() == "none" or plain[:1] in ('"', "[") else str(plain)

    def from_text(self, text: str) -> Any:
        return super().from_text(text) if text[:1] == '"' else text


@final
class PathText(Text):
    """Text that may be a path, whose bytes need not be UTF-8."""

    def check(self, name: str, value: Any) -> str:
        check_text(name, printable(value) if isinstance(value, str) else value)
        return str(value)


@final
@dataclass(frozen=True)
class Choice(Text):
    """One of some names."""

    names: tuple[str, ...]

    def check(self, name: str, value: Any) -> str:
        return check_choice(name, value, self.names)


@final
class Device(Text):
    """The name of a device."""

    def check(self, name: str, value: Any) -> str:
        check_device(value)
        return str(value)


@final
class Anything(Rule):
    """What the config itself checks. In JSON a path is {"file": path}, and a tuple a list."""

    def to_plain(self, value: Any) -> Any:
        if isinstance(value, os.PathLike):
            return {"file": os.fspath(value)}
        return list(value) if isinstance(value, tuple) else value

    def from_plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            if list(value) != ["file"] or not isinstance(value["file"], str):
                refuse(name, 'a value, or {"file": path}', value)
            from pathlib import Path  # here: `import doorstep` does not pay for it

            return Path(value["file"])
        return tuple(value) if isinstance(value, list) else value


@final
@dataclass(frozen=True)
class Items(Rule):
    """A sequence of values of one rule, kept as a tuple."""

    item: Rule
    what: str = "values"  # what they are, in the plural
    least: int = 0  # or 1 where there is no `most`
    most: int | None = None

    @property
    def requirement(self) -> str:
        if self.most is None:
            return f"a sequence of {'one or more ' if self.least else ''}{self.what}"
        if self.least == self.most:
            return f"a sequence of {self.most} {self.what}"
        return f"a sequence of {self.least} to {self.most} {self.what}"

    def suits(self, value: Any) -> bool:
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes))

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        self._check_count(name, value)
        return tuple(self.item.check(f"{name}[{index}]", item) for index, item in enumerate(value))

    def to_plain(self, value: Any) -> Any:
        return [self.item.to_plain(item) for item in value]

    def from_plain(self, name: str, value: Any) -> Any:
        """They are counted before any is made: a file may have millions."""
        self._check_count(name, value)
        return tuple(self.item.from_plain(f"{name}[{index}]", item) for index, item in enumerate(value))

    def _check_count(self, name: str, value: Any) -> None:
        if not self.suits(value) or len(value) < self.least:
            refuse(name, self.requirement, value)
        if self.most is not None and len(value) > self.most:
            refuse(name, self.requirement, value, f"there are {len(value)}")

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
