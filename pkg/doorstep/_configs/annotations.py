"""The rules of fields from their annotations."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Annotated, Any, Literal, NamedTuple

from doorstep._configs.rules import Anything, Choice, Flag, Integer, Items, Number, Optional, Rule, Text

_OF_TYPES: dict[Any, Rule] = {bool: Flag(), int: Integer(), float: Number(), str: Text()}


class FieldRule(NamedTuple):
    """What a field allows, and a sentence about it."""

    rule: Rule
    sentence: str


def field_rules(cls: type) -> dict[str, FieldRule]:
    """By the names of the fields of a dataclass, in order."""
    return _read_annotations(cls)


@functools.cache
def _read_annotations(cls: Any) -> dict[str, FieldRule]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {field.name: _field_rule(hints[field.name]) for field in dataclasses.fields(cls)}


def _field_rule(annotation: Any) -> FieldRule:
    said = typing.get_args(annotation) if typing.get_origin(annotation) is Annotated else ()
    return FieldRule(_rule_of(annotation, None), next((one for one in said if isinstance(one, str)), ""))


def _rule_of(hint: Any, given: Rule | None) -> Rule:
    """given: that of the value, or of the values in a tuple."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _rule_of(arguments[0], next((one for one in arguments[1:] if isinstance(one, Rule)), None))
    if origin in (typing.Union, types.UnionType) and type(None) in arguments and not isinstance(given, Anything):
        others = [argument for argument in arguments if argument is not type(None)]
        return Optional(_rule_of(typing.Union[tuple(others)], given))  # noqa: UP007
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis and not isinstance(given, Items):
        return Items(_rule_of(arguments[0], given), _plural(arguments[0], given), least=1)
    if given is not None:
        return given
    if origin is Literal:
        return Choice(arguments)
    part = getattr(hint, "rule_of_part", None)
    return part() if part is not None else _OF_TYPES.get(hint, Anything())


def _plural(hint: Any, given: Rule | None) -> str:
    return f"{type(given or hint).__name__.lower()}s" if given else getattr(hint, "__name__", "value") + "s"
