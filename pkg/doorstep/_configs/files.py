"""Dictionaries as text: JSON, and YAML with PyYAML."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from doorstep._arguments import refuse
from doorstep._optional import import_optional
from doorstep.errors import ArgumentError


def to_json(values: dict[str, Any], indent: int | None = None) -> str:
    import json  # here, as it would cost a tenth of the time that `import doorstep` takes

    return json.dumps(values, indent=indent)


def from_json(text: str | bytes) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ArgumentError(f"text is not JSON: {error}", argument="text") from error


def to_yaml(values: dict[str, Any]) -> str:
    return str(_load_yaml().safe_dump(values, sort_keys=False))


def from_yaml(text: str | bytes) -> Any:
    yaml = _load_yaml()
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError) as error:
        raise ArgumentError(f"text is not YAML: {error}", argument="text") from error


def load(path: str | PathLike[str]) -> Any:
    """What a file says, by the ending of its name."""
    readers = {".json": from_json, ".yaml": from_yaml, ".yml": from_yaml}
    ending = Path(path).suffix.lower()
    if ending not in readers:
        refuse("path", f"a file whose name ends in {', '.join(readers)}", Path(path).name)
    return readers[ending](Path(path).read_bytes())


@contextlib.contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Errors about the contents name the file."""
    try:
        yield
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error.args[0]}", argument=error.argument, hint=error.hint) from error


def _load_yaml() -> Any:
    return import_optional("yaml", "YAML needs PyYAML", 'pip install "doorstep[yaml]", or use JSON')
