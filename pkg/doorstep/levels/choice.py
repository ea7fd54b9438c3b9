"""What may be given as levels, wherever worlds are made: names, files, levels, and several of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from doorstep._arguments import check_text, nearest, refuse
from doorstep._level_table import REFERENCE, is_reference
from doorstep.levels.curated import curated
from doorstep.levels.files import AnyLevel, load_levels
from doorstep.levels.generated import ROOM_ENDS, ROOM_TYPES, GeneratedLevel, reference
from doorstep.levels.level import Level

_OneOrMore: TypeAlias = "str | os.PathLike[str] | AnyLevel"
# What may be given as levels, wherever worlds are made.
AnyLevels: TypeAlias = "_OneOrMore | Sequence[_OneOrMore] | Mapping[str, AnyLevel]"

NAMES_OF_LEVELS = (REFERENCE, "room_types", "curated")
_NAMES = ", ".join(map(repr, NAMES_OF_LEVELS))
_REQUIREMENT = (
    f"{_NAMES}, the name of a curated level, the path of a file, a level, a sequence of these or a mapping of names to "
    "levels"
)


def table_levels(levels: object) -> list[AnyLevel]:
    """The levels of an argument that need a table: none if they are the reference's alone.

    Raises:
        ArgumentError, OSError: as `find_levels()`.
    """
    return [] if is_reference(levels) else [*find_levels(levels).values()]


def find_levels(levels: object) -> dict[str, AnyLevel]:
    """The levels of an argument by name. Equal names get a number, levels without one are "level 1", "level 2", ...

    >>> import doorstep
    >>> from doorstep.levels.choice import find_levels
    >>> list(find_levels(["reference", "slalom", doorstep.levels.curated()["one door"]]))
    ['reference', 'slalom', 'one door']

    Args:
        levels: "reference"; "room_types", a level for each type of the reference's rooms; "curated", those that come
            with doorstep, or the name of one of them; the path of a file of `save_levels()`; a level; a sequence of
            these; or a mapping of names to levels.

    Raises:
        ArgumentError: the argument is empty, or has something that is not a level.
        OSError: a file cannot be read.
    """
    found = _named(levels)
    if not found:
        refuse("levels", _REQUIREMENT, levels)
    named: dict[str, AnyLevel] = {}
    times: Counter[str] = Counter()
    for number, (name, level) in enumerate(found, 1):
        if not isinstance(level, (Level, GeneratedLevel)):
            refuse("levels", _REQUIREMENT, level)
        named[_distinct(name or f"level {number}", named, times)] = level
    return named


def _named(levels: object) -> list[tuple[str, object]]:
    if isinstance(levels, (Level, GeneratedLevel)):
        return [(levels.name, levels)]
    if isinstance(levels, (str, os.PathLike)):
        return _of_text(levels)
    if isinstance(levels, Mapping):
        return [(_check_name(name), level) for name, level in levels.items()]
    if not isinstance(levels, Sequence):
        refuse("levels", _REQUIREMENT, levels)
    nested = [each for each in levels if isinstance(each, Sequence) and not isinstance(each, str)]
    if nested:
        refuse("levels", _REQUIREMENT, nested[0])
    return [pair for each in levels for pair in _named(each)]


def _of_text(text: str | os.PathLike[str]) -> list[tuple[str, object]]:
    if text == REFERENCE:
        return [(REFERENCE, reference())]
    if text == "curated":
        return [*curated().items()]
    if text == "room_types":
        return [(name, GeneratedLevel(room_types=(name,) * len(ROOM_ENDS))) for name in ROOM_TYPES if name != "any"]
    if isinstance(text, str) and not os.path.splitext(text)[1] and not os.path.exists(text):
        named = curated()  # rather a name than a path
        if text not in named:
            refuse("levels", _REQUIREMENT, text, nearest(text, (*NAMES_OF_LEVELS, *named)))
        return [(text, named[text])]
    try:
        return [(level.name, level) for level in load_levels(text)]
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, f"there is no such file; levels are {_REQUIREMENT}", text) from None


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        refuse("levels", "a mapping with texts as names", name)
    check_text("levels", name)
    return name


def _distinct(name: str, taken: Mapping[str, AnyLevel], times: Counter[str]) -> str:
    """The name, or with the first number that makes it another. times: how often it has been asked for."""
    distinct = name
    while distinct in taken:
        times[name] += 1
        distinct = f"{name} ({times[name] + 1})"
    return distinct
