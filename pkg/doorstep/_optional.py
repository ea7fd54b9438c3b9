"""Packages that only parts of doorstep need, and that may be absent. Each is installed by an extra."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from doorstep.errors import LibraryError


class Lazy(NamedTuple):
    """Where a public name is imported from when it is first used, and the packages that this needs."""

    module: str
    extra: str = ""  # of doorstep, which installs the packages
    packages: tuple[str, ...] = ()


def lazy_names(
    module: str, public: list[str], names: Mapping[str, Lazy]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module that imports some of its names when they are first used.

    Those whose packages are not installed are removed from `public`, the module's `__all__`: `help()`, completion and
    `import *` work without them. Using such a name raises a LibraryError that names the extra to install.
    """
    for name, lazy in names.items():
        if name in public and not all(map(_is_installed, lazy.packages)):
            public.remove(name)

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        lazy = names[name]
        try:
            return getattr(importlib.import_module(lazy.module), name)
        except ModuleNotFoundError as error:
            if not lazy.packages or (error.name or "").startswith("doorstep"):
                raise
            raise missing(f"{module}.{name} needs {error.name}", lazy.extra, error) from error

    def listed() -> list[str]:
        return sorted({*public, *(name for name in vars(sys.modules[module]) if name.startswith("__"))})

    return find, listed


def _is_installed(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False


def import_optional(module: str, need: str, extra: str) -> Any:
    """The module.

    Args:
        module: its name.
        need: the beginning of the error's message: "videos need PyAV".
        extra: of doorstep, which installs it.

    Raises:
        LibraryError: it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(need, extra, error) from error


def missing(need: str, extra: str, error: ImportError) -> LibraryError:
    """The error of a package that cannot be imported, for import statements."""
    message = f"{need}, which cannot be imported: {error}"
    return LibraryError(message, hint=f'pip install "doorstep[{extra}]"')
