"""What clients send and get: requests and results as JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np

from doorstep._arguments import nearest, refuse, shown
from doorstep._configs.checked import within
from doorstep._documents import from_json, to_json
from doorstep.errors import ArgumentError, DoorstepError
from doorstep.levels.files import level_from
from doorstep.policy.sampling import SamplingParams
from doorstep.rollouts import EpisodeResult
from doorstep.rollouts.request import RECORDED, EpisodeRequest

_FIELDS = ("seed", "level", "state", "policy", "sampling", "max_steps", "priority", "deadline", "record", "tag")
_RECORDED = tuple(name for name in RECORDED if name != "stream")  # results alone are sent
_STEPS = ("actions", "observations", "rewards", "log_probs", "versions", "values", "states")
_ARRAYS = ("returns", "max_y", *_STEPS, "last_observations", "last_states")
_MOST_SAID = 1000  # characters of an error
_NUMBERS = ("id", "reason", "length", "queued_seconds", "played_seconds", "replica", "error")


# ---- Requests


def requests_of(text: bytes, policies: Sequence[str], most: int) -> list[EpisodeRequest]:
    """The requests of a list, each an object with the fields of an `EpisodeRequest`. policies: their names.

    Raises:
        ArgumentError: names the entry and the field, as `requests[3].seed`.
    """
    entries = from_json(text)
    if not isinstance(entries, list) or not 1 <= len(entries) <= most:
        refuse("requests", f"a list of 1 to {most} objects", entries)
    return [_request_of(f"requests[{i}]", entry, policies) for i, entry in enumerate(entries)]


def _request_of(name: str, entry: Any, policies: Sequence[str]) -> EpisodeRequest:
    if not isinstance(entry, dict):
        refuse(name, "an object with fields of a doorstep.EpisodeRequest", entry)
    with within(name):
        for field in entry:
            if field not in _FIELDS:
                hint = nearest(field, _FIELDS, "the fields are")
                raise ArgumentError(f"{shown(field)} is not a field of a request", argument=field, hint=hint)
        return EpisodeRequest(**{**entry, **_objects_of(entry, policies)})


def _objects_of(entry: dict[str, Any], policies: Sequence[str]) -> dict[str, Any]:
    """The fields that are no numbers."""
    objects: dict[str, Any] = {"policy": _policy_of(entry.get("policy", next(iter(policies), None)), policies)}
    if entry.get("level") is not None:
        objects["level"] = level_from("level", entry["level"])
    if entry.get("state") is not None:
        objects["state"] = _bytes_of(entry["state"])
    if entry.get("sampling") is not None:
        with within("sampling"):
            objects["sampling"] = SamplingParams.from_dict(entry["sampling"])
    recorded = entry.get("record", ())
    names = [recorded] if isinstance(recorded, str) else recorded
    if not isinstance(names, (list, tuple)) or not all(name in _RECORDED for name in names):
        refuse("record", "some of " + ", ".join(map(repr, _RECORDED)), recorded)
    return {**objects, "record": tuple(names)}


def _bytes_of(state: Any) -> bytes:
    try:
        return base64.b64decode(state, validate=True)
    except (TypeError, ValueError, binascii.Error):
        refuse("state", "a text: the bytes of sim.save([world]) in base64", state)


def _policy_of(named: Any, policies: Sequence[str]) -> Any:
    if isinstance(named, list):
        return tuple(_policy_of(one, policies) if isinstance(one, str) else _refuse(one, policies) for one in named)
    return named if isinstance(named, str) and named in policies else _refuse(named, policies)


def _refuse(named: Any, policies: Sequence[str]) -> Any:
    refuse("policy", f"{', '.join(map(repr, policies))}, or a list of these, one for each agent", named)


# ---- Answers


def result_line(index: int, result: EpisodeResult) -> bytes:
    """A line with the result of request `index` of the list. Numbers that are not finite are null; the hash, which has
    64 bits, is hexadecimal."""
    arrays = {name: _plain(array) for name in _ARRAYS if (array := getattr(result, name)) is not None}
    fields = {name: getattr(result, name) for name in _NUMBERS}
    answer = {"index": index, "tag": result.request.tag, **fields, "state_hash": f"{result.state_hash:016x}", **arrays}
    return to_json(answer).encode() + b"\n"


def error_line(error: Exception) -> bytes:
    return to_json(error_of(error)).encode() + b"\n"


def error_of(error: Exception) -> dict[str, Any]:
    argument = error.argument if isinstance(error, DoorstepError) else ""
    return {"error": {"type": type(error).__name__, "message": _cut(str(error)), "argument": _cut(argument)}}


def _cut(text: str) -> str:
    """Clients get no more of what they have sent."""
    return text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}..."


def _plain(array: Any) -> Any:
    if not np.isfinite(array).all():
        array = np.where(np.isfinite(array), array, None)
    return array.tolist()
