"""Configs as options of the command line: a field of a config is an option, one of a config within it has its path,
`--scheduler.max-chunk 8`. A type tag is the option `--scheduler.type`. A change is the same as one text,
`scheduler.max_chunk=8`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from doorstep._arguments import nearest, refuse
from doorstep._configs.annotations import FieldRule, field_rules
from doorstep._configs.config import Config, Part
from doorstep._configs.polymorphic import PolymorphicConfig, PolymorphicPart
from doorstep._configs.rules import Optional, Rule
from doorstep.errors import ArgumentError

AnyConfig = TypeVar("AnyConfig", bound=Config)

_DESTINATION = "config option "  # and the path: no name of an option that is written by hand


class _Option(NamedTuple):
    path: tuple[str, ...]
    placeholder: str
    sentence: str
    is_flag: bool = False


def add_options(parser: argparse.ArgumentParser, cls: type[Config], leave_out: Collection[str] = ()) -> None:
    """Declares an option for every field; leave_out: names of fields without one."""
    group = parser.add_argument_group(cls.__name__)
    for option in _options(cls):
        if option.path[0] in leave_out:
            continue
        alone: dict[str, Any] = {"nargs": "?", "const": "true"} if option.is_flag else {}
        group.add_argument(
            option_name(option.path),
            dest=_DESTINATION + ".".join(option.path),
            default=argparse.SUPPRESS,
            metavar=option.placeholder,
            help=option.sentence.replace("%", "%%"),
            **alone,
        )


def read_options(
    arguments: argparse.Namespace,
    cls: type[Config],
    base: Mapping[str, Any] | None = None,
    short: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The dictionary of `base` with the fields for which options were given, for `cls.from_dict()`.

    An option that chooses another type than `base` has drops what `base` says about the other one.

    Args:
        short: values of other options, by the paths of their fields; None: not given.
    """
    given: dict[str, Any] = {}
    for path, value in (short or {}).items():
        if value is not None:
            _put(given, path.split("."), str(value))
    for name, text in vars(arguments).items():
        if name.startswith(_DESTINATION):
            _put(given, name.removeprefix(_DESTINATION).split("."), text)
    return _merged(cls, base or {}, given)


def apply_changes(config: AnyConfig, changes: Iterable[str]) -> AnyConfig:
    """The config with changes written KEY=VALUE, such as "scheduler.max_chunk=8", made all at once; later ones count
    more. Values are those of options.

    Raises:
        ArgumentError: a change has no "=", names no field, or its value is refused.
    """
    cls = type(config)
    paths = [".".join(option.path) for option in _options(cls)]
    given: dict[str, Any] = {}
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not path:
            refuse("change", f"KEY=VALUE, where KEY is the name of a field, such as {paths[0]}", change)
        if path not in paths:
            _refuse_path(cls, path, paths)
        _put(given, path.split("."), text)
    return cls.from_dict(_merged(cls, config.to_dict(), given))


def to_options(config: Config) -> list[str]:
    """The options that describe a config completely."""
    options: list[str] = []
    for path, rule, plain in _leaves(type(config), config.to_dict(), ()):
        options += [f"{option_name(path)}={rule.to_text(plain)}"]
    return options


def option_name(path: tuple[str, ...]) -> str:
    return "--" + ".".join(path).replace("_", "-")


# ---- Declaring


def _options(cls: type[Config], path: tuple[str, ...] = ()) -> Iterator[_Option]:
    for name, field in field_rules(cls).items():
        yield from _options_of_field((*path, name), field)


def _options_of_field(path: tuple[str, ...], field: FieldRule) -> Iterator[_Option]:
    inner = field.rule.rule if isinstance(field.rule, Optional) else field.rule
    if isinstance(inner, (Part, PolymorphicPart)) and inner is not field.rule:
        yield _Option(path, "none", field.sentence)
    if isinstance(inner, PolymorphicPart):
        yield _Option((*path, "type"), inner.placeholder(), field.sentence)
        fields = {name: one for cls in inner.cls.registry.classes() for name, one in field_rules(cls).items()}
        for name, one in fields.items():
            yield from _options_of_field((*path, name), one)
        return
    if isinstance(inner, Part):
        yield from _options(inner.cls, path)
        return
    yield _Option(path, field.rule.placeholder(), field.sentence, field.rule.placeholder() == "true|false")


# ---- Reading


def _put(tree: dict[str, Any], path: list[str], text: str) -> None:
    """A config that is none as a whole, and of which a field is given too, has the field."""
    *parents, last = path
    for parent in parents:
        if not isinstance(tree.get(parent), dict):
            tree[parent] = {}
        tree = tree[parent]
    if not isinstance(tree.get(last), dict):
        tree[last] = text


def _refuse_path(cls: type[Config], path: str, paths: list[str]) -> NoReturn:
    within = [known for known in paths if known.startswith(f"{path}.") or path.startswith(f"{known}.")]
    hint = "it is " + ", ".join(within) if within else nearest(path, paths) or f"the fields are {', '.join(paths)}"
    raise ArgumentError(f"{path!r} is not the name of a single value of {cls.__name__}", argument=path, hint=hint)


def _merged(cls: type[Config], base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    rules = field_rules(cls)
    merged = dict(base)
    for name, value in given.items():
        if name in rules:
            merged[name] = _read(cls, name, rules[name].rule, base.get(name), value)
        else:
            merged[name] = value  # refused by its name
    return merged


def _read(cls: type[Config], name: str, rule: Rule, base: Any, given: Any) -> Any:
    inner = rule.rule if isinstance(rule, Optional) else rule
    if not isinstance(given, dict) or not isinstance(inner, (Part, PolymorphicPart)):
        return rule.from_text(given)
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


def _default_of(cls: type[Config], name: str) -> Mapping[str, Any]:
    """The dictionary of a part that a config has if nothing is said about it."""
    field = cls.__dataclass_fields__[name]
    default = field.default_factory() if callable(field.default_factory) else field.default
    return default.to_dict() if isinstance(default, Config) else {}


# ---- Writing


def _leaves(
    cls: type[Config], values: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Rule, Any]]:
    for name, (rule, _) in field_rules(cls).items():
        yield from _leaves_of_field((*path, name), rule, values[name])


def _leaves_of_field(path: tuple[str, ...], rule: Rule, plain: Any) -> Iterator[tuple[tuple[str, ...], Rule, Any]]:
    inner = rule.rule if isinstance(rule, Optional) else rule
    if isinstance(plain, dict) and isinstance(inner, PolymorphicPart):
        cls = inner.cls.registry.find(plain["type"])
        yield (*path, "type"), _TAG, plain["type"]
        yield from _leaves(cls, plain, path)
    elif isinstance(plain, dict) and isinstance(inner, Part):
        yield from _leaves(inner.cls, plain, path)
    else:
        yield path, rule, plain


class _Tag(Rule):
    def to_text(self, plain: Any) -> str:
        return str(plain)


_TAG = _Tag()
