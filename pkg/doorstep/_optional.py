"""Packages that only parts of doorstep need, and that may be absent. Each is installed by an extra."""

from __future__ import annotations

import importlib
from typing import Any

from doorstep.errors import LibraryError


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
