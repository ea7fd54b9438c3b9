"""Changes of configs, written KEY=VALUE on the command line: KEY is the path of a field, as in
`scheduler.max_chunk=8`, or its name alone. A type tag is the field `scheduler.type`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from doorstep._arguments import meant, refuse, shown
from doorstep._configs.annotations import FieldRule, field_rules
from doorstep._configs.checked import Checked, Part
from doorstep._configs.config import Config
from doorstep._configs.polymorphic import PolymorphicConfig, PolymorphicPart
from doorstep._configs.rules import Optional, Rule, Text
from doorstep.errors import ArgumentError

AnyConfig = TypeVar("AnyConfig", bound=Config)


def split_changes(changes: Iterable[str]) -> dict[str, str]:
    """Changes written KEY=VALUE, such as "scheduler.max_chunk=8", as texts by KEY; of two the later counts.

    Raises:
        ArgumentError: a change has no "=".
    """
    values: dict[str, str] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            refuse("change", "KEY=VALUE, where KEY is the name of a field", change)
        values.pop(key, None)
        values[key] = text
    return values


def apply_changes(config: AnyConfig, changes: Mapping[str, Any]) -> AnyConfig:
    """The config with other values of some fields, made all at once; later ones count more.

    Args:
        changes: values, or texts of the command line, by the paths of fields, or their names alone if no others have
            them; of a part also a dictionary of some of its fields, as files have it, its type, or another one.

    Raises:
        ArgumentError: a key names no field, or its value is refused.
    """
    cls = type(config)
    paths = [*_paths(cls)]
    given: dict[str, Any] = {}
    for key, value in changes.items():
        is_part = key not in paths and any(path.startswith(f"{key}.") for path in paths)
        if is_part and isinstance(value, Checked):
            value = value.to_dict()
        elif is_part and isinstance(value, str) and f"{key}.type" in paths:
            value = {"type": value}
        path = key if is_part and isinstance(value, Mapping) else _path_of(cls, key, paths)
        _put(given, path.split("."), value)
    return cls.from_dict(_merged(cls, config.to_dict(), given))


def to_changes(config: Config) -> dict[str, str]:
    """The changes that describe a config completely: texts by paths."""
    return {path: rule.to_text(plain) for path, rule, plain in _leaves(type(config), config.to_dict())}


# ---- Paths


def _paths(cls: type[Checked], prefix: str = "") -> Iterator[str]:
    """Of all values that a change may give."""
    for name, field in field_rules(cls).items():
        yield from _paths_of_field(prefix + name, field)


def _paths_of_field(path: str, field: FieldRule) -> Iterator[str]:
    inner = field.rule.rule if isinstance(field.rule, Optional) else field.rule
    is_part = isinstance(inner, (Part, PolymorphicPart))
    if not is_part or inner is not field.rule:  # an optional part can itself be set to none
        yield path
    if isinstance(inner, PolymorphicPart):
        yield f"{path}.type"
        fields = {name: one for cls in inner.cls.registry.classes() for name, one in field_rules(cls).items()}
        for name, one in fields.items():
            yield from _paths_of_field(f"{path}.{name}", one)
    elif isinstance(inner, Part):
        yield from _paths(inner.cls, f"{path}.")


# ---- Reading


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    """A config that is none as a whole, and of which a field is given too, has the field."""
    if isinstance(value, Mapping) and value:
        for name, one in value.items():
            _put(tree, [*path, name], one)
        return
    *parents, last = path
    for parent in parents:
        if not isinstance(tree.get(parent), dict):
            tree[parent] = {}
        tree = tree[parent]
    if not isinstance(tree.get(last), dict):
        tree[last] = value


def _path_of(cls: type[Checked], key: str, paths: list[str]) -> str:
    """The path of the field that a key names: the path itself, or its last name."""
    if key in paths:
        return key
    within = [path for path in paths if path.startswith(f"{key}.") or key.startswith(f"{path}.")]
    having = [path for path in paths if _last(path) == key]
    if len(having) == 1 and not within:
        return having[0]
    if within:
        hint = "it is " + ", ".join(within)
    elif having:
        hint = "it may be " + " or ".join(having)
    else:
        names = meant(_last(key), map(_last, paths))
        likely = min((path for path in paths if _last(path) in names), key=len, default="")
        hint = f"did you mean {likely!r}?" if likely else f"the fields are {', '.join(paths)}"
    raise ArgumentError(f"{shown(key)} is not the name of a single value of {cls.__name__}", argument=key, hint=hint)


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _merged(cls: type[Checked], base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    rules = field_rules(cls)
    merged = dict(base)
    for name, value in given.items():
        if name in rules:
            merged[name] = _read(cls, name, rules[name].rule, base.get(name), value)
        else:
            merged[name] = value  # refused by its name
    return merged


def _read(cls: type[Checked], name: str, rule: Rule, base: Any, given: Any) -> Any:
    inner = rule.rule if isinstance(rule, Optional) else rule
    if not isinstance(given, dict) or not isinstance(inner, (Part, PolymorphicPart)):
        return rule.from_text(given) if isinstance(given, str) else given
    if isinstance(base, str):
        base = {"type": base}
    if base is None:
        base = _default_of(cls, name)
    if isinstance(inner, PolymorphicPart):
        return _merged_polymorphic(inner.cls, base, given)
    return _merged(inner.cls, base, given)


def _merged_polymorphic(
    cls: type[PolymorphicConfig], base: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    tag = given.get("type", base.get("type"))
    kept = base if tag == base.get("type") else {}
    fields = {name: value for name, value in given.items() if name != "type"}
    if tag not in cls.registry:
        return {**kept, **fields, "type": tag}  # refused
    return {"type": tag, **_merged(cls.registry.find(tag), _without_type(kept), fields)}


def _without_type(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "type"}


def _default_of(cls: type[Checked], name: str) -> Mapping[str, Any]:
    """The dictionary of a part that a config has if nothing is said about it."""
    field = cls.__dataclass_fields__[name]
    default = field.default_factory() if callable(field.default_factory) else field.default
    return default.to_dict() if isinstance(default, Checked) else {}


# ---- Writing


def _leaves(cls: type[Checked], values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Rule, Any]]:
    for name, (rule, _) in field_rules(cls).items():
        yield from _leaves_of_field(prefix + name, rule, values[name])


def _leaves_of_field(path: str, rule: Rule, plain: Any) -> Iterator[tuple[str, Rule, Any]]:
    inner = rule.rule if isinstance(rule, Optional) else rule
    if isinstance(plain, dict) and isinstance(inner, PolymorphicPart):
        cls = inner.cls.registry.find(plain["type"])
        yield f"{path}.type", Text(), plain["type"]
        yield from _leaves(cls, plain, f"{path}.")
    elif isinstance(plain, dict) and isinstance(inner, Part):
        yield from _leaves(inner.cls, plain, f"{path}.")
    else:
        yield path, rule, plain
