"""Training runs in folders: their records as arrays, and which of them differ only in seeds."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from doorstep._arguments import is_number
from doorstep._files import checked_path, printable
from doorstep._run_log import CONFIG, LOG, read_log
from doorstep.errors import ArgumentError
from doorstep.levels.generated import ROOM_ENDS
from doorstep.plots.figures import Floats

_FEW = 3  # letters that names must share to be called by them


@final
@dataclass(frozen=True, eq=False)
class Run:
    """A run with U updates.

    Attributes:
        folder: of the run.
        rules: its config without seeds; None: it has none that can be read.
        updates, world_steps, seconds: at each update, float64 [U], ascending.
        episodes: that ended in each update, float64 [U].
        returns: their means, float64 [U]; NaN if none ended.
        rooms_one, rooms_all: shares of episodes in which one agent, or all, passed each of D doors, float64 [D, U]; NaN
            likewise.
        speed: world-steps per second, float64 [U].
        success: the mean of the levels' success rates, float64 [U]; NaN if the run has no table of levels.
        levels: episodes that ended in each level of the table, and how many of them succeeded, float64 [2, U] by name.
    """

    folder: Path
    rules: str | None
    updates: Floats
    world_steps: Floats
    seconds: Floats
    episodes: Floats
    returns: Floats
    rooms_one: Floats
    rooms_all: Floats
    speed: Floats
    success: Floats
    levels: Mapping[str, Floats]

    def along(self, x: str) -> Floats:
        """The axis of a name in `figures.AXES`."""
        return {"steps": self.world_steps, "seconds": self.seconds, "updates": self.updates}[x]


def read_run(folder: str | os.PathLike[str]) -> Run:
    """The run of a folder.

    Raises:
        ArgumentError: the folder has no log, or the log no complete record.
        OSError: the log cannot be read.
    """
    path = Path(checked_path(folder))
    if not (path / LOG).is_file():
        hint = "name the folder of --run-dir of doorstep train"
        raise ArgumentError(f"{path} has no {LOG}; it must be the folder of a run", argument="runs", hint=hint)
    records = [record for record in read_log(path / LOG) if _is_complete(record)]
    if not records:
        hint = "wait until the run has made its first update"
        raise ArgumentError(f"{path / LOG} has no complete record", argument="runs", hint=hint)

    def column(value_of: Callable[[Mapping[str, Any]], Any]) -> Floats:
        return np.array([value_of(record) for record in records], np.float64)

    def doors(name: str) -> Floats:
        missing = [None] * len(ROOM_ENDS)
        return column(lambda record: record[name] or missing).T  # type: ignore[no-any-return]

    def level(name: str) -> Floats:
        none = {"episodes": 0, "successes": 0}
        counts = [record.get("levels", {}).get(name, none) for record in records]
        return np.array([[count["episodes"], count["successes"]] for count in counts], np.float64).T  # type: ignore[no-any-return]

    return Run(
        folder=path,
        rules=_rules_of(path / CONFIG),
        updates=column(lambda record: record["update"]),
        world_steps=column(lambda record: record["world_steps"]),
        seconds=column(lambda record: record["seconds"]),
        episodes=column(lambda record: record["episodes"]),
        returns=column(lambda record: record.get("mean_return")),
        rooms_one=doors("rooms_one"),
        rooms_all=doors("rooms_all"),
        speed=column(lambda record: record["world_steps_per_second"]),
        success=column(lambda record: record.get("success")),
        levels={name: level(name) for name in dict.fromkeys(name for one in records for name in one.get("levels", {}))},
    )


def _is_complete(record: Mapping[str, Any]) -> bool:
    numbers = ("update", "world_steps", "seconds", "episodes", "world_steps_per_second")
    shares: list[Any] = [record.get(name) for name in ("rooms_one", "rooms_all")]
    levels = record.get("levels", {})
    return (
        all(_is_finite(record.get(name)) for name in numbers)
        and all(record.get(name) is None or _is_finite(record[name]) for name in ("mean_return", "success"))
        and all(isinstance(share, list) and len(share) in (0, len(ROOM_ENDS)) for share in shares)
        and all(_is_finite(value) for share in shares for value in share)
        and isinstance(levels, dict)
        and all(printable(name) == name for name in levels)  # JSON can have lone surrogates, names of levels cannot
        and all(isinstance(level, dict) and _has_counts(level) for level in levels.values())
    )


def _has_counts(level: Mapping[str, Any]) -> bool:
    return all(_is_finite(level.get(name)) for name in ("episodes", "successes"))


def _is_finite(value: object) -> bool:
    return is_number(value) and abs(value) <= sys.float_info.max


def _rules_of(path: Path) -> str | None:
    """The config as text without seeds, and without how long it trains, which a resumed run may change."""
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    for name in ("seed", "num_updates"):
        values.pop(name, None)
    if isinstance(values.get("simulator"), dict):
        values["simulator"].pop("seed", None)
    return json.dumps(values, sort_keys=True)


def grouped(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs whose configs differ only in seeds, by the label of their curve, in the order of the argument."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.rules or os.fspath(run.folder), []).append(run)
    labels: dict[str, list[Run]] = {}
    for members in groups.values():
        label = _label_of(members)
        labels[label if label not in labels else f"{label}: {printable(members[0].folder)}"] = members
    return labels


def _label_of(runs: Sequence[Run]) -> str:
    names = [printable(run.folder.resolve().name) for run in runs]
    if len(names) == 1:
        return names[0]
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    shared = "".join(letters[0] for letters in alike).rstrip("-_. ").removesuffix("seed").rstrip("-_. ")
    return f"{shared if len(shared) >= _FEW else names[0] + ', ...'} ({len(names)} runs)"
