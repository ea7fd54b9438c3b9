"""Evaluations as dictionaries and JSON."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from doorstep._arguments import check_integer, check_text, is_number, refuse
from doorstep._documents import body_of, from_json
from doorstep.errors import ArgumentError
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.comparison import METHOD, Aggregate, Improvement
from doorstep.evaluation.scores import ROOMS, Score
from doorstep.evaluation.statistics import CONFIDENCE, MEAN_METHOD, SHARE_METHOD
from doorstep.levels.document import made
from doorstep.levels.files import level_from

VERSION = 1
_MOST = 2**63  # of integers
_KIND = "evaluation"
_FIELDS = ("rules", "intervals", "policies", "levels", "scores", "aggregates", "improvements")
_INTERVALS = {"confidence": CONFIDENCE, "means": MEAN_METHOD, "shares": SHARE_METHOD, "comparisons": METHOD}


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
    values = body_of("text", from_json(text), _KIND, VERSION)
    for name in _FIELDS:
        if name not in values:
            raise ArgumentError(f"{name} is absent; it must be given", argument=name)
    return values


def arenas_of(entries: object) -> tuple[Arena, ...]:
    """The levels of a document."""
    named = read_as(tuple[_NamedDocument, ...], "levels", entries)
    return tuple(
        Arena(one.name, None if one.level is None else level_from(f"levels[{index}].level.", one.level))
        for index, one in enumerate(named)
    )


def scores_of(entries: object) -> tuple[Score, ...]:
    """The scores of a document."""
    scores: tuple[Score, ...] = read_as(tuple[Score, ...], "scores", entries)
    for index, score in enumerate(scores):
        rooms = tuple(room.room for room in score.rooms)
        if rooms not in ((), ROOMS):
            refuse(f"scores[{index}].rooms", f"none, or {', '.join(ROOMS)}", rooms)
    return scores


def read_as(hint: Any, path: str, value: Any) -> Any:
    """A value of a document as the type of a field: a dataclass, a tuple of one type, text or a number; or None.

    Raises:
        ArgumentError: it is not; the message names the path.
    """
    arguments = typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        part: Any = made(typing.cast("type", hint), path, value)
        hints = typing.get_type_hints(hint)
        fields = {name: read_as(of, f"{path}.{name}", getattr(part, name)) for name, of in hints.items()}
        return dataclasses.replace(part, **fields)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            refuse(path, "a list", value)
        return tuple(read_as(arguments[0], f"{path}[{index}]", one) for index, one in enumerate(value))
    if type(None) in arguments:
        return None if value is None else read_as(arguments[0], path, value)
    if hint is str:
        return check_text(path, value)
    if hint is int:
        return check_integer(path, value, 0, _MOST)
    if hint is float:
        if not is_number(value) or (isinstance(value, int) and abs(value) > _MOST):
            refuse(path, "a number", value)
        return float(value)
    return value


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "rooms": list(values["rooms"])}
