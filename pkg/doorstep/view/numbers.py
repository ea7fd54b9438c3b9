"""The numbers of one agent, with their units, as HTML."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from doorstep.simulator import Simulator
from doorstep.view.history import Moment
from doorstep.view.reading import DISTANCE_UNIT, ROOM_LENGTH, read


@dataclass(frozen=True)
class _Row:
    name: str
    value: str
    unit: str = ""


def table(sim: Simulator, world: int, agent: int, last: Moment | None) -> str:
    """HTML: how the episode goes on the left, where the agent is on the right."""
    own = read(sim.self_observations)[world, agent].tolist()
    pairs = itertools.zip_longest(_episode(sim, world, agent, own, last), _place(own), fillvalue=_Row("", ""))
    lines = [f"<tr>{_cells(left)}<td style='width: 0.8em'></td>{_cells(right)}</tr>" for left, right in pairs]
    return f'<table style="width: 100%; font-size: 0.75em; padding: 0 0.6em">{"".join(lines)}</table>'


def _episode(sim: Simulator, world: int, agent: int, own: list[float], last: Moment | None) -> list[_Row]:
    *_, grabbing = own
    return [
        _Row("episode", str(read(sim.state.episode_index)[world])),
        _Row("remaining", str(read(sim.steps_remaining)[world, agent, 0]), "steps"),
        _Row("reward", "" if last is None else f"{last.reward:+.4f}"),
        _Row("return", "" if last is None else f"{last.total:+.3f}"),
        _Row("grabbing", "yes" if grabbing else "no"),
    ]


def _place(own: list[float]) -> list[_Row]:
    """What the agent observes of itself; x in its room is its x."""
    _, room_y, x, y, z, largest_y, yaw, _ = own
    return [
        _Row("x", _metres(x * DISTANCE_UNIT), "m"),
        _Row("y", _metres(y * DISTANCE_UNIT), "m"),
        _Row("z", _metres(z * DISTANCE_UNIT), "m"),
        _Row("y in room", _metres(room_y * ROOM_LENGTH), "m"),
        _Row("largest y", _metres(largest_y * DISTANCE_UNIT), "m"),
        _Row("yaw", str(round(yaw * 180)), "°"),
    ]


def _metres(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # + 0.0: never -0.00


def _cells(row: _Row) -> str:
    return f'<td>{row.name}</td><td align=right>{row.value}</td><td style="opacity: 0.6">{row.unit}</td>'
