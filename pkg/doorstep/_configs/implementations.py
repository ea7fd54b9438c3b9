"""Classes that implement polymorphic configs: the library's and those that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

from doorstep._arguments import refuse
from doorstep._configs.polymorphic import PolymorphicConfig
from doorstep.errors import ArgumentError

Make = TypeVar("Make", bound="Callable[..., Any]")
Registered = TypeVar("Registered", bound="Callable[..., Any]")


@final
class Implementations(Generic[Make]):
    """What makes an object of each config below `base`. module: the public one of `base` and of its decorator
    "register_" followed by the registry's sort."""

    def __init__(self, base: type[PolymorphicConfig], module: str) -> None:
        self._base = base
        self._module = module
        self._makes: dict[type[PolymorphicConfig], Make] = {}

    def register(self, config: type[PolymorphicConfig]) -> Callable[[Registered], Registered]:
        """A class decorator: the class implements the config.

        Raises:
            ArgumentError: the config is no subclass of the base, has no tag, or that of another one.
        """
        if not (isinstance(config, type) and issubclass(config, self._base)):
            refuse("config", f"a subclass of {self._module}.{self._base.__name__}", config)
        self._base.registry.add(config)

        def add(implementation: Registered) -> Registered:
            self._makes[config] = implementation  # type: ignore[assignment]
            return implementation

        return add

    def find(self, config: PolymorphicConfig) -> Make:
        """What implements a config.

        Raises:
            ArgumentError: no class is registered for it.
        """
        make = self._makes.get(type(config))
        if make is None:
            sort = self._base.registry.sort
            raise ArgumentError(
                f"{sort} is {config}, which no class is registered for",
                argument=sort,
                hint=f"decorate the class with {self._module}.register_{sort}",
            )
        return make
