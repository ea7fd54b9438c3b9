"""Levels as dictionaries, JSON and files. A document says what it is and which version of the format it has."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from doorstep._arguments import nearest, refuse, shown
from doorstep._documents import body_of, from_json, read
from doorstep._files import replaced_file
from doorstep.errors import ArgumentError

if TYPE_CHECKING:
    from typing_extensions import Self  # known to type checkers; not needed to run

VERSION = 1


class Document:
    """A dataclass that can be stored. Fields that hold other dataclasses are in the tables."""

    _kind: ClassVar[str]
    _lists: ClassVar[Mapping[str, type]] = {}  # fields that are sequences of a dataclass
    _capacities: ClassVar[Mapping[str, int]] = {}  # of these fields
    _values: ClassVar[Mapping[str, type]] = {}  # fields that are one, or None

    def replace(self, **changes: Any) -> Self:
        """A level with other values of some fields.

        Raises:
            ArgumentError: a name is not a field, or a value is refused.
        """
        _check_names(type(self), "", changes)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, in values that JSON can hold, after what the document is and its version."""
        return {"doorstep": self._kind, "version": VERSION, **_plain(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The level of a dictionary as `to_dict()` makes it. Absent fields have their defaults.

        Raises:
            ArgumentError: it is another document or of a later version, or a field is unknown, absent or refused; the
                message names it, as in `walls[3].size_x`.
        """
        hint = "levels.load_levels() reads files with any kind of levels"
        fields = body_of("values", values, cls._kind, VERSION, hint)
        _check_names(cls, "", fields)
        for name, part in cls._lists.items():
            if name in fields:
                entries = _entries(name, fields[name], cls._capacities[name])
                fields[name] = [made(part, f"{name}[{i}]", entry) for i, entry in enumerate(entries)]
        for name, part in cls._values.items():
            if fields.get(name) is not None:
                fields[name] = made(part, name, fields[name])
        _check_presence(cls, "", fields)
        return cls(**fields)

    def to_json(self) -> str:
        """`to_dict()` as JSON, with a line for each part."""
        return written(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The level of a JSON text as `to_json()` makes it.

        Raises:
            ArgumentError: as `from_dict()`, or the text is not JSON.
        """
        return cls.from_dict(from_json(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `to_json()` to a file, which is replaced whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        with replaced_file(path) as file:
            file.write(self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The level of a file that `save()` wrote.

        Raises:
            ArgumentError: as `from_json()`; the message begins with the path.
            OSError: the file cannot be read.
        """
        return read(path, cls.from_json)


# ---- Text ----


def written(document: Mapping[str, Any]) -> str:
    """JSON with a line for each field, and for each part of a list: people edit and compare these files."""
    import json  # here: `import doorstep` does not pay for it

    def value_of(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n    " + ",\n    ".join(map(json.dumps, value)) + "\n  ]"
        return json.dumps(value)

    return (
        "{\n  " + ",\n  ".join(f"{json.dumps(name)}: {value_of(value)}" for name, value in document.items()) + "\n}\n"
    )


# ---- Fields ----


def made(cls: type, path: str, values: object) -> Any:
    """The dataclass of a dictionary of its fields. Errors name the path of the field."""
    if not isinstance(values, Mapping):
        refuse(path, f"a dictionary of the fields of {cls.__name__}", values)
    _check_names(cls, f"{path}.", values)
    _check_presence(cls, f"{path}.", values)
    try:
        return cls(**values)
    except ArgumentError as error:
        raise prefixed(f"{path}.", error) from None


def prefixed(prefix: str, error: ArgumentError) -> ArgumentError:
    """The error of a field of a part; prefix: the path of the part and a point."""
    return ArgumentError(f"{prefix}{error.args[0]}", argument=f"{prefix}{error.argument}", hint=error.hint)


def check_capacity(name: str, count: int, capacity: int, of_what: str = "", hint: str = "") -> None:
    if count > capacity:
        message = f"{of_what or name} are {count}; a level has at most {capacity}"
        raise ArgumentError(message, argument=name, hint=hint)


def _entries(name: str, values: object, capacity: int) -> Sequence[Any]:
    """They are counted before any is made: a file may have millions."""
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        refuse(name, "a list", values)
    check_capacity(name, len(values), capacity)
    return values


def _check_names(cls: Any, prefix: str, values: Mapping[str, Any]) -> None:
    known = [field.name for field in dataclasses.fields(cls)]
    for name in values:
        if name not in known:
            path = f"{prefix}{name}"
            hint = nearest(str(name), known) or f"the fields are {', '.join(known)}"
            raise ArgumentError(f"{shown(path)} is not a field of {cls.__name__}", argument=path, hint=hint)


def _check_presence(cls: Any, prefix: str, values: Mapping[str, Any]) -> None:
    for field in dataclasses.fields(cls):
        has_default = not (field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING)
        if not has_default and field.name not in values:
            path = f"{prefix}{field.name}"
            raise ArgumentError(f"{path} is absent; it must be given", argument=path)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return list(map(_plain, value)) if isinstance(value, (tuple, list)) else value
