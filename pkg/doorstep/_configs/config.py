"""`Config`: the base of all configurations."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TypeVar

from doorstep import _documents
from doorstep._configs.checked import Checked

Self = TypeVar("Self", bound="Config")


@dataclass(frozen=True)
class Config(Checked):
    """Values that are checked when the config is made, and cannot be changed. JSON, YAML and their files describe them.

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict()` as JSON on one line, or indented by so many spaces."""
        return _documents.to_json(self.to_dict(), indent)

    @classmethod
    def from_json(cls: type[Self], text: str | bytes) -> Self:
        """The config of a JSON text as `to_json()` makes it.

        Raises:
            ArgumentError: as `from_dict()`, or the text is not a JSON object.
        """
        return cls.from_dict(_documents.from_json(text))

    def to_yaml(self) -> str:
        """`to_dict()` as YAML; needs the extra `doorstep[yaml]`.

        Raises:
            LibraryError: PyYAML is not installed.
        """
        return _documents.to_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls: type[Self], text: str | bytes) -> Self:
        """The config of a YAML text; needs the extra `doorstep[yaml]`.

        Raises:
            ArgumentError: as `from_dict()`, or the text is not YAML.
            LibraryError: PyYAML is not installed.
        """
        return cls.from_dict(_documents.from_yaml(text))

    @classmethod
    def load(cls: type[Self], path: str | PathLike[str]) -> Self:
        """The config of a file, whose name ends in .json, .yaml or .yml.

        Raises:
            ArgumentError: as `from_json()` and `from_yaml()`, or the name ends otherwise.
            LibraryError: PyYAML is not installed.
            OSError: the file cannot be read.
        """
        return _documents.load(path, cls.from_dict)
