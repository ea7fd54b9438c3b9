"""Plots of the documentation: curves of runs that are too long to repeat, where agents go, and an evaluation.

docs/images/learning_curves.csv has the logs of three runs of `doorstep train`, seeds 0 to 2: a row for 40 updates, with
the means over their episodes. Seconds are of CPU time. Doors are those of the reference's levels.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import doorstep
from doorstep.plots import plot_evaluation, plot_positions, plot_runs

TABLE = Path(__file__).parent / "images" / "learning_curves.csv"
UPDATES_OF_A_ROW = 40
LEVELS = ("one door", "slalom", "side chambers", "everything", "carry", "spiral")


def learning_curves(path: Path) -> None:
    """Draws the runs of the table."""
    runs: dict[str, list[dict[str, str]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault(row["seed"], []).append(row)
    with tempfile.TemporaryDirectory() as folder:
        folders = []
        for seed, rows in runs.items():
            folders.append(Path(folder, f"default preset seed{seed}"))
            folders[-1].mkdir()
            (folders[-1] / "config.json").write_text(json.dumps({"seed": int(seed)}), encoding="utf-8")
            lines = [json.dumps(record) for record in _records(rows)]
            (folders[-1] / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
        plot_runs(folders, path)


def _records(rows: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    """A record for each update, as in the log of a run; those of a row are alike."""
    steps = seconds = 0.0
    for row in rows:
        longer, later = float(row["world_steps"]) - steps, float(row["seconds"]) - seconds
        for number in range(1, UPDATES_OF_A_ROW + 1):
            yield {
                "update": int(row["update"]) - UPDATES_OF_A_ROW + number,
                "world_steps": steps + longer * number / UPDATES_OF_A_ROW,
                "seconds": seconds + later * number / UPDATES_OF_A_ROW,
                "world_steps_per_second": longer / later,
                "episodes": float(row["episodes"]) / UPDATES_OF_A_ROW,
                "mean_return": float(row["mean_return"]),
                "success": float(row["success"]),
                "rooms_one": [float(row[f"one_{door}"]) for door in (1, 2, 3)],
                "rooms_all": [float(row[f"all_{door}"]) for door in (1, 2, 3)],
            }
        steps, seconds = float(row["world_steps"]), float(row["seconds"])


def positions(path: Path) -> None:
    """Draws where agents of three policies go in the reference's levels."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{policy}.rec") for policy in ("random", "scripted", "trained")]
        for file in files:
            doorstep.record(file, policy=file.stem, num_worlds=64, seed=5).close()
        plot_positions(files, path)


def evaluation(path: Path) -> None:
    """Draws how well three policies do in some of the curated levels."""
    levels = [doorstep.levels.curated()[name] for name in LEVELS]
    plot_evaluation(doorstep.evaluate(["random", "scripted", "general"], levels=levels, episodes=24, seed=1), path)
