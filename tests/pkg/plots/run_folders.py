"""Folders as training leaves them, made without training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def record_of(
    update: int, episodes: int = 4, returns: float | None = 1.0, shares: Sequence[float] = (1.0, 0.5, 0.0)
) -> Any:
    """A line of a log; of an update in which no episode ended if `returns` is None."""
    has_ended = returns is not None
    return {
        "update": update,
        "world_steps": 1000 * update,
        "seconds": 0.5 * update,
        "world_steps_per_second": 2000.0,
        "episodes": episodes if has_ended else 0,
        "mean_return": returns,
        "rooms_one": list(shares) if has_ended else [],
        "rooms_all": [share / 2 for share in shares] if has_ended else [],
        "losses": {"entropy": 1.0},
    }


def level_record_of(update: int, success: float, levels: dict[str, tuple[int, int]]) -> Any:
    """A line of the log of a run with levels: their episodes and successes."""
    counts = {name: {"episodes": ended, "successes": won, "weight": 0.5} for name, (ended, won) in levels.items()}
    doors: dict[str, list[float]] = {"rooms_one": [], "rooms_all": []}
    return {**record_of(update), **doors, "success": success, "levels": counts}


def write_run(folder: Path, records: Sequence[Any], seed: int = 0, learning_rate: float = 0.001) -> Path:
    """A run's folder with config and log."""
    folder.mkdir()
    config = {"seed": seed, "simulator": {"seed": seed, "num_worlds": 4}, "ppo": {"learning_rate": learning_rate}}
    (folder / "config.json").write_text(json.dumps({**config, "num_updates": len(records)}))
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder
