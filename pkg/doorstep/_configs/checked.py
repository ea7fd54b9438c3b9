"""`Checked`: the base of all dataclasses whose fields follow rules."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from doorstep._arguments import nearest, refuse, refuse_keywords, shown
from doorstep._configs.annotations import field_rules
from doorstep._configs.rules import Rule
from doorstep.errors import ArgumentError

Self = TypeVar("Self", bound="Checked")


@dataclass(frozen=True)
class Checked:
    """Values that are checked when the object is made, and cannot be changed.

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    def __new__(cls: type[Self], *arguments: Any, **fields: Any) -> Self:
        refuse_keywords(f"{cls.__name__}.__init__", fields, field_rules(cls))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, (rule, _) in field_rules(type(self)).items():
            rule, value = self._rule_here(name, rule), getattr(self, name)
            if isinstance(value, (Mapping, str)):
                value = rule.from_plain(name, value)  # of a part its fields or its tag, as in files
            object.__setattr__(self, name, rule.check(name, value))
        self._check()

    def _rule_here(self, name: str, rule: Rule) -> Rule:
        """The rule of a field if earlier fields, which are checked already, decide about it."""
        return rule

    def _check(self) -> None:
        """Rules about several fields together."""

    def replace(self: Self, **changes: Any) -> Self:
        """The same with other values of some fields.

        Raises:
            ArgumentError: a name is not a field, or a value is out of range.
        """
        self.check_names(changes)
        return dataclasses.replace(self, **changes)

    @classmethod
    def check_names(cls, values: Mapping[str, Any]) -> None:
        """Refuses names that are not fields."""
        known = list(field_rules(cls))
        for name in values:
            if name not in known:
                hint = nearest(name, known, "the fields are")
                raise ArgumentError(f"{shown(name)} is not a field of {cls.__name__}", argument=str(name), hint=hint)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in values that JSON can hold; a part is a dictionary of its fields."""
        return {name: rule.to_plain(getattr(self, name)) for name, (rule, _) in field_rules(type(self)).items()}

    @classmethod
    def from_dict(cls: type[Self], values: Mapping[str, Any]) -> Self:
        """What `to_dict()` made a dictionary of. Absent fields have their defaults.

        Raises:
            ArgumentError: a name is not a field, a field without a default is absent, or a value is out of range. The
                message names the field with its path: "scheduler.max_chunk", "walls[3].size_x".
        """
        if not isinstance(values, Mapping):
            refuse("values", f"a dictionary of the fields of {cls.__name__}", values)
        cls.check_names(values)
        for field in dataclasses.fields(cls):
            is_needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if is_needed and field.name not in values:
                raise ArgumentError(f"{field.name} is absent; it must be given", argument=field.name)
        rules = field_rules(cls)
        return cls(**{name: rules[name].rule.from_plain(name, value) for name, value in values.items()})

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether only objects of its subclasses are used."""
        return False

    @classmethod
    def rule_of_part(cls) -> Rule:
        """The rule of fields of this type."""
        return Part(cls)


@dataclass(frozen=True)
class Part(Rule):
    """Something `Checked` within another one."""

    cls: type[Checked]

    @property
    def requirement(self) -> str:
        package = self.cls.__module__.rpartition(".")[0]  # exports what its modules define
        return f"a {package}.{self.cls.__name__}" if package else f"a {self.cls.__name__}"

    def suits(self, value: Any) -> bool:
        return isinstance(value, self.cls) and not value.is_abstract()

    def to_plain(self, value: Any) -> Any:
        return value.to_dict()

    def from_plain(self, name: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        with within(name):
            return self.cls.from_dict(value)


@contextlib.contextmanager
def within(name: str) -> Iterator[None]:
    """Errors name the field with its path."""
    try:
        yield
    except ArgumentError as error:
        message, argument = str(error.args[0]), error.argument
        text = f"{name}.{message}" if argument and message.startswith(argument) else f"{name}: {message}"
        raise ArgumentError(text, argument=f"{name}.{argument}", hint=error.hint) from None
