"""Tables of the configs that are Python's alone, from the annotations of their fields."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent / "pkg"
sys.path.insert(0, str(PACKAGE))

from doorstep._configs import Config, Device, Integer, Number, PolymorphicConfig, Rule, Text  # noqa: E402
from doorstep._configs.annotations import field_rules  # noqa: E402
from doorstep._configs.checked import Part  # noqa: E402
from doorstep._configs.polymorphic import PolymorphicPart  # noqa: E402
from doorstep._configs.rules import Choice, Flag, Items, Optional  # noqa: E402
from doorstep._observations import PartsRule  # noqa: E402
from doorstep.levels.field import PlayedLevels  # noqa: E402
from doorstep.levels.reward_terms import RewardTerms  # noqa: E402

HEAD = ("field", "values", "default", "is")

Row = tuple[str, str, str, str]


def training_configs() -> ModuleType:
    """The module doorstep.training.config by itself, as its package needs PyTorch."""
    spec = importlib.util.spec_from_file_location("training_config", PACKAGE / "doorstep" / "training" / "config.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(cls: type[Config]) -> Iterator[Row]:
    """A row for every field."""
    for field in dataclasses.fields(cls):
        rule, sentence = field_rules(cls)[field.name]
        yield f"`{field.name}`", allowed(rule), default(field), sentence


def rows_of_types(cls: type[PolymorphicConfig], default_type: str) -> Iterator[Row]:
    """The type, the fields of all types, and those of one, which have its name behind theirs."""
    yield "`type`", ", ".join(f"`{tag}`" for tag in cls.registry), f"`{default_type}`", "Which one it is."
    common = list(rows_of(cls))
    yield from common
    for one in cls.registry.classes():
        for name, *rest in rows_of(one):
            if name not in [row[0] for row in common]:
                yield (f"{name} (`{one.type}`)", *rest)  # type: ignore[misc]


def allowed(rule: Rule) -> str:
    match rule:
        case Optional(rule=Items()):
            return f"none, or {allowed(rule.rule)}"
        case Optional():
            return f"{allowed(rule.rule)}, or none"
        case Items():
            return f"a list; each {allowed(rule.item)}"
        case Flag():
            return "true, false"
        case Choice():
            return ", ".join(f"`{name}`" for name in rule.names)
        case Integer():
            return f"{rule.low:,} to {rule.high:,}"
        case Number():
            low = f"above {rule.above:g}" if rule.low is None else f"at least {rule.low:g}"
            return low if rule.high is None else f"{low}, at most {rule.high:g}"
        case Device():
            return "a device"
        case PlayedLevels():
            return "a name, a path, or a list of levels"
        case PartsRule():
            return "parts, such as `physics`"
        case RewardTerms():
            return "terms, such as `goal=2`"
        case Text():
            return "text"
        case PolymorphicPart():
            return f"a {rule.cls.registry.sort}"
        case Part():
            return f"a {rule.cls.__name__}"
    raise ValueError(f"no words for {rule}")


def default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    elif field.default is dataclasses.MISSING:
        return "must be given"
    else:
        value = field.default
    return text_of(value)


def text_of(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:,}"
        case tuple():
            return ", ".join(map(text_of, value))
        case PolymorphicConfig():
            return f"`{value.type}`"
        case Config():
            return "its default"
    return f"`{value}`"
