"""Configs of which a type tag chooses the class, and what implements them: the library's and users' classes."""

from __future__ import annotations

import builtins  # `type` is an attribute of the classes below
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast, final

from doorstep._arguments import nearest, refuse
from doorstep._configs.checked import Part
from doorstep._configs.config import Config
from doorstep._configs.rules import Rule
from doorstep.errors import ArgumentError

Registered = TypeVar("Registered", bound="type[PolymorphicConfig]")
Self = TypeVar("Self", bound="PolymorphicConfig")
Implementation = TypeVar("Implementation", bound="Callable[..., Any]")
_ABSENT = object()


@final
class Registry:
    """The classes of one sort, by their type tags."""

    def __init__(self, sort: str, decorator: str = "register") -> None:
        """decorator: what users decorate their own classes with, in the package of the base."""
        self.sort, self.decorator = sort, decorator
        self.implementations: dict[type[PolymorphicConfig], Callable[..., Any]] = {}
        self._classes: dict[str, type[PolymorphicConfig]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def classes(self) -> tuple[type[PolymorphicConfig], ...]:
        return tuple(self._classes.values())

    def add(self, cls: type[PolymorphicConfig]) -> None:
        """Raises ArgumentError if the class has no tag, or one of another class."""
        tag = cls.__dict__.get("type")
        if not isinstance(tag, str) or not tag:
            refuse("type", f"the tag of the {self.sort}, a text of the class {cls.__name__}", tag)
        known = self._classes.setdefault(tag, cls)
        if known is not cls and known.__qualname__ != cls.__qualname__:
            refuse("type", f"another tag than that of {known.__name__}", tag)
        self._classes[tag] = cls  # a notebook that runs a cell again defines its class again

    def find(self, tag: Any) -> type[PolymorphicConfig]:
        """The class of a tag; ArgumentError if there is none."""
        if not isinstance(tag, str) or tag not in self._classes:
            refuse("type", f"a {self.sort}: {self.tags}", tag, nearest(tag, self._classes))
        return self._classes[tag]

    @property
    def tags(self) -> str:
        """All tags, for messages."""
        return ", ".join(map(repr, self._classes))


def registered(cls: Registered) -> Registered:
    """A class decorator: the class is found by its tag."""
    cls.registry.add(cls)
    return cls


@dataclass(frozen=True)
class PolymorphicConfig(Config):
    """A base has the attribute `registry`; its subclasses have `type`, and are `registered`."""

    registry: ClassVar[Registry]
    type: ClassVar[str]

    @classmethod
    def is_abstract(cls) -> bool:
        return not hasattr(cls, "type")

    @classmethod
    def of(cls: builtins.type[Self], tag: str, /, **fields: Any) -> Self:
        """The config of a type tag, with values of some of its fields.

        >>> from doorstep.rollouts import SchedulerConfig
        >>> SchedulerConfig.of("priority", max_chunk=8).to_dict()
        {'type': 'priority', 'max_chunk': 8}

        Raises:
            ArgumentError: the tag is unknown, or a value is out of range.
            TypeError: a name is not a field.
        """
        chosen: Any = cls._class_of(tag)
        return cast("Self", chosen(**fields))

    @classmethod
    def implement(cls, config: builtins.type[PolymorphicConfig]) -> Callable[[Implementation], Implementation]:
        """A class decorator: the class implements the config, which is below this base.

        Raises:
            ArgumentError: the config is no subclass of the base, has no tag, or that of another one.
        """
        if not (isinstance(config, builtins.type) and issubclass(config, cls)):
            refuse("config", f"a subclass of {cls.package()}.{cls.__name__}", config)
        cls.registry.add(config)

        def add(implementation: Implementation) -> Implementation:
            cls.registry.implementations[config] = implementation
            return implementation

        return add

    def make(self, *arguments: Any) -> Any:
        """What implements this config, called with it and the arguments.

        Raises:
            ArgumentError: no class is registered for it.
        """
        make = self.registry.implementations.get(builtins.type(self))
        if make is None:
            raise ArgumentError(
                f"{self.registry.sort} is {self}, which no class is registered for",
                argument=self.registry.sort,
                hint=f"decorate the class with {self.package()}.{self.registry.decorator}",
            )
        return make(self, *arguments)

    @classmethod
    def package(cls) -> str:
        """The package of the base, which exports what its modules define."""
        base = next(one for one in cls.__mro__ if "registry" in one.__dict__)
        return base.__module__.rpartition(".")[0]

    def to_dict(self) -> dict[str, Any]:
        """The type tag as "type", and the fields by name, in values that JSON can hold."""
        return {"type": self.type, **super().to_dict()}

    @classmethod
    def from_dict(cls: builtins.type[Self], values: Mapping[str, Any]) -> Self:
        """The config of a dictionary as `to_dict()` makes it: its "type" chooses the class.

        Raises:
            ArgumentError: as `Config.from_dict()`, or the type is absent or unknown.
        """
        if not isinstance(values, Mapping):
            refuse("values", "a dictionary with a type and its fields", values)
        fields = dict(values)
        chosen: Any = cls._class_of(fields.pop("type", _ABSENT))
        return cast("Self", super(PolymorphicConfig, chosen).from_dict(fields))

    @classmethod
    def _class_of(cls, tag: Any) -> builtins.type[PolymorphicConfig]:
        if not cls.is_abstract():
            if tag is not _ABSENT and (not isinstance(tag, str) or tag != cls.type):
                refuse("type", f"{cls.type!r}", tag)
            return cls
        if tag is _ABSENT:
            raise ArgumentError("type is absent; it must be given", argument="type", hint=f"one of {cls.registry.tags}")
        return cls.registry.find(tag)

    @classmethod
    def rule_of_part(cls) -> Rule:
        return PolymorphicPart(cls)


@final
@dataclass(frozen=True)
class PolymorphicPart(Part):
    """A polymorphic config within another one. Its tag alone stands for it with its defaults."""

    cls: type[PolymorphicConfig]

    @property
    def requirement(self) -> str:
        return f"{super().requirement}, or the tag of a {self.cls.registry.sort}: {self.cls.registry.tags}"

    def from_plain(self, name: str, value: Any) -> Any:
        return super().from_plain(name, {"type": value} if isinstance(value, str) else value)
