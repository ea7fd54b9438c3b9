"""Traces in the JSON format of Chrome and Perfetto."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._files import replaced_file
from doorstep._native._generated import EpisodeReason, TraceKind

_PROCESS = 1
# What `count` of an event of each kind is.
_COUNTS = {
    TraceKind.SUBMIT: "requests",
    TraceKind.ANSWER: "requests",
    TraceKind.TAKE: "requests",
    TraceKind.BEGIN: "episodes",
    TraceKind.ACT: "rows",
    TraceKind.STEP: "worlds",
    TraceKind.END: "episodes",
}
# Arrows between the events of a request: start, step, finish.
_FLOW_PHASES = {TraceKind.REQUEST_SUBMITTED: "s", TraceKind.REQUEST_BEGUN: "t", TraceKind.REQUEST_ENDED: "f"}


def write_events(path: str | os.PathLike[str], events: NDArray[Any]) -> None:
    """events: records of the library."""
    with replaced_file(path) as file:
        file.write(b'{"displayTimeUnit": "ms", "traceEvents": [\n')
        lines = map(json.dumps, (*_names(events), *_events(events)))
        file.write(",\n".join(lines).encode())
        file.write(b"\n]}\n")


def _names(events: NDArray[Any]) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": _PROCESS, "tid": 0, "args": {"name": "doorstep"}}
    for track, replica in sorted(set(zip(events["track"].tolist(), events["replica"].tolist(), strict=True))):
        name = "requests" if replica < 0 else f"replica {replica}"
        yield {"ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _events(events: NDArray[Any]) -> Iterator[dict[str, Any]]:
    """In the order of time; where several begin at once, the longer ones first, and points of time last."""
    known = events[events["kind"] == TraceKind.REQUEST_SUBMITTED]["request"]
    is_point = np.isin(events["kind"], list(_FLOW_PHASES))
    shown = events[~is_point | np.isin(events["request"], known)]  # no arrow without its start
    is_point = np.isin(shown["kind"], list(_FLOW_PHASES))
    order = np.lexsort((-shown["duration_ns"], is_point, shown["start_ns"]))
    origin = int(shown["start_ns"].min()) if len(shown) else 0
    for event in shown[order]:
        kind = TraceKind(int(event["kind"]))
        place = {"pid": _PROCESS, "tid": int(event["track"]), "ts": (int(event["start_ns"]) - origin) / 1e3}
        yield {**place, **(_point(kind, event) if kind in _FLOW_PHASES else _span(kind, event))}


def _span(kind: TraceKind, event: Any) -> dict[str, Any]:
    name = f"act {event['detail']}" if kind == TraceKind.ACT else kind.name.lower()
    arguments = {_COUNTS[kind]: int(event["count"])} if kind in _COUNTS else {}
    return {"ph": "X", "name": name, "cat": "rollout", "dur": int(event["duration_ns"]) / 1e3, "args": arguments}


def _point(kind: TraceKind, event: Any) -> dict[str, Any]:
    flow: dict[str, Any] = {"ph": _FLOW_PHASES[kind], "name": "request", "cat": "request", "id": int(event["request"])}
    if kind == TraceKind.REQUEST_ENDED:
        flow |= {"bp": "e", "args": {"reason": EpisodeReason(int(event["detail"])).name.lower()}}
    return flow
