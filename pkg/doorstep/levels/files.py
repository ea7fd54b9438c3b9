"""Files with several levels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

from doorstep._arguments import refuse
from doorstep._configs.checked import within
from doorstep._configs.document import VERSION, document_of, written
from doorstep._documents import body_of, from_json, read
from doorstep._files import write_text
from doorstep.levels.generated import GeneratedLevel
from doorstep.levels.level import Level

# A level of either kind.
AnyLevel: TypeAlias = Level | GeneratedLevel

_KIND = "levels"
_CLASSES: dict[str, type[Level] | type[GeneratedLevel]] = {cls.kind: cls for cls in (Level, GeneratedLevel)}


def save_levels(path: str | os.PathLike[str], levels: Sequence[AnyLevel]) -> None:
    """Writes levels to a file of JSON, a line for each. The file is replaced whole or not at all.

    Raises:
        ArgumentError: there is no level, or one is something else.
        OSError: the file cannot be written.
    """
    check_levels(levels)
    write_text(path, written(document_of(_KIND, {"levels": [level.to_dict() for level in levels]})))


def load_levels(path: str | os.PathLike[str]) -> list[AnyLevel]:
    """The levels of a file that `save_levels()` or `save()` wrote.

    >>> import tempfile
    >>> from doorstep import levels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     levels.save_levels(f"{folder}/mine.json", [levels.reference()])
    ...     levels.load_levels(f"{folder}/mine.json") == [levels.reference()]
    True

    Raises:
        ArgumentError: the file has no levels, those of a later version, or one is refused; the message begins with the
            path and names the field, as in `levels[2].walls[3].size_x`.
        OSError: the file cannot be read.
    """
    return read(path, lambda text: _levels_of(from_json(text)))


def check_levels(levels: object) -> None:
    """Refuses all but sequences of levels with at least one.

    Raises:
        ArgumentError: names the index.
    """
    if not isinstance(levels, Sequence) or isinstance(levels, str) or not levels:
        refuse("levels", "a sequence of doorstep.Level or doorstep.levels.GeneratedLevel, at least one", levels)
    for i, level in enumerate(levels):
        if not isinstance(level, (Level, GeneratedLevel)):
            refuse(f"levels[{i}]", "a doorstep.Level or a doorstep.levels.GeneratedLevel", level)


def _levels_of(document: object) -> list[AnyLevel]:
    cls = _class_of(document)
    if cls is not None:
        return [cls.from_dict(document)]  # type: ignore[arg-type]
    entries = body_of("the file", document, _KIND, VERSION).get("levels")
    if not isinstance(entries, list) or not entries:
        refuse("levels", "a list of levels, at least one", entries)
    return [level_from(f"levels[{i}]", entry) for i, entry in enumerate(entries)]


def level_from(name: str, entry: object) -> AnyLevel:
    """The level of a dictionary of either kind.

    Raises:
        ArgumentError: the text is not a level, of a later version, or refused; `name` is put before the names of
            fields.
    """
    cls = _class_of(entry)
    if cls is None:
        kind = entry.get("doorstep") if isinstance(entry, dict) else None
        refuse(f"{name}.doorstep", "one of " + ", ".join(map(repr, _CLASSES)), kind)
    with within(name):
        return cls.from_dict(entry)  # type: ignore[arg-type]


def _class_of(document: object) -> type[Level] | type[GeneratedLevel] | None:
    kind = document.get("doorstep") if isinstance(document, dict) else None
    return _CLASSES.get(kind) if isinstance(kind, str) else None
