"""Evaluations as dictionaries and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from doorstep._arguments import check_integer, refuse
from doorstep.errors import ArgumentError
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.comparison import METHOD, Aggregate, Improvement
from doorstep.evaluation.scores import RoomScore, Score
from doorstep.evaluation.statistics import CONFIDENCE, MEAN_METHOD, SHARE_METHOD, Estimate
from doorstep.levels import AnyLevel, GeneratedLevel, Level
from doorstep.levels.document import made

__all__ = ["aggregates_of", "arenas_of", "improvements_of", "made", "parsed", "scores_of", "to_dict", "written"]

VERSION = 1
_KIND = "evaluation"
_FIELDS = ("rules", "intervals", "policies", "levels", "scores", "aggregates", "improvements")
_INTERVALS = {"confidence": CONFIDENCE, "means": MEAN_METHOD, "shares": SHARE_METHOD, "comparisons": METHOD}
_LEVEL_CLASSES: dict[str, type[Level] | type[GeneratedLevel]] = {cls._kind: cls for cls in (Level, GeneratedLevel)}


@dataclass(frozen=True)
class _NamedDocument:
    """An entry of "levels"."""

    name: str
    level: Any


def to_dict(
    rules: Any,
    policies: Sequence[str],
    levels: Sequence[Arena],
    scores: Sequence[Score],
    aggregates: Sequence[Aggregate],
    improvements: Sequence[Improvement],
) -> dict[str, Any]:
    return {
        "doorstep": _KIND,
        "version": VERSION,
        "rules": asdict(rules),
        "intervals": dict(_INTERVALS),
        "policies": list(policies),
        "levels": [
            {"name": arena.name, "level": None if arena.level is None else arena.level.to_dict()} for arena in levels
        ],
        "scores": [_plain(asdict(score)) for score in scores],
        "aggregates": [asdict(aggregate) for aggregate in aggregates],
        "improvements": [asdict(improvement) for improvement in improvements],
    }


def written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def parsed(text: str | bytes) -> dict[str, Any]:
    """The fields of a document, which are all there.

    Raises:
        ArgumentError: it is not such a document.
    """
    try:
        values = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ArgumentError(f"text is not JSON: {error}", argument="text") from error
    if not isinstance(values, dict) or values.get("doorstep") != _KIND:
        refuse("text", f'a document with "doorstep": "{_KIND}"', text)
    if check_integer("version", values.get("version"), 1, 2**31) > VERSION:
        message = f"version is {values['version']}; this release of doorstep reads version {VERSION}"
        raise ArgumentError(message, argument="version", hint="install a later doorstep")
    for name in _FIELDS:
        if name not in values:
            raise ArgumentError(f"{name} is absent; it must be given", argument=name)
    return values


def arenas_of(entries: object) -> tuple[Arena, ...]:
    """The levels of a document."""
    arenas = []
    for index, entry in enumerate(_list("levels", entries)):
        arena = made(_NamedDocument, f"levels[{index}]", entry)
        arenas.append(Arena(arena.name, None if arena.level is None else _level_of(index, arena.level)))
    return tuple(arenas)


def scores_of(entries: object) -> tuple[Score, ...]:
    """The scores of a document."""
    scores = []
    for index, entry in enumerate(_list("scores", entries)):
        path = f"scores[{index}]"
        fields = asdict(made(Score, path, entry))
        fields["mean_return"] = made(Estimate, f"{path}.mean_return", fields["mean_return"])
        fields["mean_length"] = made(Estimate, f"{path}.mean_length", fields["mean_length"])
        if fields["success"] is not None:
            fields["success"] = made(Estimate, f"{path}.success", fields["success"])
        fields["rooms"] = tuple(
            _room_of(f"{path}.rooms[{number}]", room) for number, room in enumerate(_list("rooms", fields["rooms"]))
        )
        scores.append(Score(**fields))
    return tuple(scores)


def aggregates_of(entries: object) -> tuple[Aggregate, ...]:
    """The policies of a document over all levels."""
    found = []
    for index, entry in enumerate(_list("aggregates", entries)):
        path = f"aggregates[{index}]"
        made_of = made(Aggregate, path, entry)
        mean = made(Estimate, f"{path}.interquartile_mean", made_of.interquartile_mean)
        found.append(Aggregate(made_of.policy, mean))
    return tuple(found)


def improvements_of(entries: object) -> tuple[Improvement, ...]:
    """The comparisons of a document."""
    found = []
    for index, entry in enumerate(_list("improvements", entries)):
        path = f"improvements[{index}]"
        made_of = made(Improvement, path, entry)
        found.append(
            Improvement(made_of.policy, made_of.over, made(Estimate, f"{path}.probability", made_of.probability))
        )
    return tuple(found)


def _room_of(path: str, entry: object) -> RoomScore:
    room = made(RoomScore, path, entry)
    return RoomScore(room.room, made(Estimate, f"{path}.one", room.one), made(Estimate, f"{path}.all", room.all))


def _level_of(index: int, values: object) -> AnyLevel:
    kind = values.get("doorstep") if isinstance(values, dict) else None
    if kind not in _LEVEL_CLASSES:
        refuse(f"levels[{index}].level.doorstep", "one of " + ", ".join(map(repr, _LEVEL_CLASSES)), kind)
    assert isinstance(values, dict)
    return _LEVEL_CLASSES[str(kind)].from_dict(values)


def _list(name: str, values: object) -> list[Any]:
    if not isinstance(values, list):
        refuse(name, "a list", values)
    return values


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "rooms": list(values["rooms"])}
