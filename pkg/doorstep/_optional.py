"""Packages that only parts of doorstep need, and that may be absent."""

from __future__ import annotations

import importlib
from typing import Any

from doorstep.errors import LibraryError


def import_optional(module: str, need: str, remedy: str) -> Any:
    """The module.

    Args:
        module: its name.
        need: the beginning of the error's message: "videos need PyAV".
        remedy: what to do where it is missing.

    Raises:
        LibraryError: it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise LibraryError(f"{need}, which cannot be imported: {error}", hint=remedy) from error
