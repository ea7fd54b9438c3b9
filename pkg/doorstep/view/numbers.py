"""The numbers of one agent as HTML, and its observations as one row."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.view.history import Moment
from doorstep.view.reading import read

_OBSERVATIONS = (
    "self_observations",
    "partner_observations",
    "room_entity_observations",
    "door_observations",
    "lidar",
)
_SELF = ("room x", "room y", "x", "y", "z", "largest y", "yaw", "grabbing")


def observations(sim: Simulator, world: int, agent: int) -> NDArray[np.float64]:
    """What an agent observes, side by side in the order of the documentation."""
    parts = [read(sim.tensors[name])[world, agent].reshape(-1) for name in _OBSERVATIONS]
    return np.concatenate(parts).astype(np.float64)


def table(sim: Simulator, world: int, agent: int, last: Moment | None) -> str:
    """HTML."""
    own = read(sim.self_observations)[world, agent]
    rows: list[tuple[str, Any]] = [
        ("episode", int(read(sim.state.episode_index)[world])),
        ("steps remaining", int(read(sim.steps_remaining)[world, 0, 0])),
        ("reward", "" if last is None else f"{last.reward:+.4f}"),
        ("return", "" if last is None else f"{last.total:+.3f}"),
        *((name, f"{value:.3f}") for name, value in zip(_SELF, own, strict=True)),
    ]
    cells = [f"<td>{html.escape(name)}</td><td align=right>{html.escape(str(value))}</td>" for name, value in rows]
    half = (len(cells) + 1) // 2
    lines = [f"<tr>{left}<td></td>{right}</tr>" for left, right in zip(cells[:half], cells[half:], strict=True)]
    return f'<table style="width: 100%; font-size: 0.75em; padding: 0 0.6em">{"".join(lines)}</table>'
