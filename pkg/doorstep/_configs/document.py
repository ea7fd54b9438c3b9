"""`Document`: what is stored by itself. It says what it is, and which version of the format it has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from doorstep._configs.checked import Checked
from doorstep._documents import body_of, from_json, read
from doorstep._files import write_text

Self = TypeVar("Self", bound="Document")

VERSION = 1


@dataclass(frozen=True)
class Document(Checked):
    """Values that are checked when the object is made, and cannot be changed. JSON and its files hold them.

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, in values that JSON can hold, after what the document is and its version."""
        return document_of(self.kind, super().to_dict())

    @classmethod
    def from_dict(cls: type[Self], values: Mapping[str, Any]) -> Self:
        """What `to_dict()` made a dictionary of. Absent fields have their defaults.

        Raises:
            ArgumentError: it is another document or of a later version, or a field is unknown, absent or refused; the
                message names it, as in `walls[3].size_x`.
        """
        return super().from_dict(body_of("values", values, cls.kind, VERSION))

    def to_json(self) -> str:
        """`to_dict()` as JSON, with a line for each part."""
        return written(self.to_dict())

    @classmethod
    def from_json(cls: type[Self], text: str | bytes) -> Self:
        """What `to_json()` made a text of.

        Raises:
            ArgumentError: as `from_dict()`, or the text is not JSON.
        """
        return cls.from_dict(from_json(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `to_json()` to a file, which is replaced whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        write_text(path, self.to_json())

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """What `save()` wrote to a file.

        Raises:
            ArgumentError: as `from_json()`; the message begins with the path.
            OSError: the file cannot be read.
        """
        return read(path, cls.from_json)


def document_of(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"doorstep": kind, "version": VERSION, **fields}


def written(document: Mapping[str, Any]) -> str:
    """JSON with a line for each field, and for each part of a list: people edit and compare these files."""
    import json  # here: `import doorstep` does not pay for it

    def value_of(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n    " + ",\n    ".join(map(json.dumps, value)) + "\n  ]"
        return json.dumps(value)

    lines = (f"{json.dumps(name)}: {value_of(value)}" for name, value in document.items())
    return "{\n  " + ",\n  ".join(lines) + "\n}\n"
