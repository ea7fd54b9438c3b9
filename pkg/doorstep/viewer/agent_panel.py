"""What the page shows of one agent: its rewards, its observations as numbers and plots, and its camera's picture."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from doorstep._native import EntityKind
from doorstep.cameras import Cameras
from doorstep.levels.generated import ROOM_LENGTH
from doorstep.simulator import Simulator
from doorstep.viewer.world_arrays import DISTANCE_UNIT, lidar_readings, read

STEPS_KEPT = 300  # in the history of rewards

_OBSERVATIONS = ("self_observations", "partner_observations", "room_entity_observations", "door_observations")
_IMAGE_WIDTH, _IMAGE_HEIGHT = 256, 192  # pixels


# ---- Rewards ----


@dataclass(frozen=True)
class StepReward:
    """What one step gave an agent."""

    reward: float
    total: float  # sum of rewards since the episode began, or since the page began to show this agent


class RewardHistory:
    """The rewards of an agent in the last `STEPS_KEPT` steps."""

    def __init__(self) -> None:
        self._rows = np.zeros((STEPS_KEPT, 2))  # rewards and totals, the last step at the end
        self._count = 0
        self._total = 0.0

    def clear(self) -> None:
        """Forgets all steps: the page shows another agent or another time."""
        self._rows[:] = 0
        self._count = 0
        self._total = 0.0

    def add(self, reward: float, done: bool) -> None:
        """Adds a step. done: the episode ended with it."""
        self._total += reward
        self._rows[:-1] = self._rows[1:]
        self._rows[-1] = reward, self._total
        self._count = min(self._count + 1, STEPS_KEPT)
        if done:
            self._total = 0.0

    @property
    def last(self) -> StepReward | None:
        """The last step, if there was one."""
        return StepReward(*self._rows[-1].tolist()) if self._count else None

    def curves(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Steps counted back from the last one (..., -1, 0), rewards, totals. Without any step: one of zeros."""
        count = max(self._count, 1)
        rewards, totals = self._rows[-count:].T.copy()
        return np.arange(1.0 - count, 1.0), rewards, totals


# ---- Numbers ----


@dataclass(frozen=True)
class _Row:
    name: str
    value: str
    unit: str = ""


def table(sim: Simulator, world: int, agent: int, last: StepReward | None) -> str:
    """The numbers of an agent with their units, as HTML: the episode on the left, the agent's place on the right."""
    own = read(sim.self_observations)[world, agent].tolist()
    pairs = itertools.zip_longest(_episode(sim, world, agent, own, last), _place(own), fillvalue=_Row("", ""))
    lines = [f"<tr>{_cells(left)}<td style='width: 0.8em'></td>{_cells(right)}</tr>" for left, right in pairs]
    return f'<table style="width: 100%; font-size: 0.75em; padding: 0 0.6em">{"".join(lines)}</table>'


def _episode(sim: Simulator, world: int, agent: int, own: list[float], last: StepReward | None) -> list[_Row]:
    *_, grabbing = own
    return [
        _Row("episode", str(read(sim.state.episode_index)[world])),
        _Row("remaining", str(read(sim.steps_remaining)[world, agent, 0]), "steps"),
        _Row("reward", "" if last is None else f"{last.reward:+.4f}"),
        _Row("return", "" if last is None else f"{last.total:+.3f}"),
        _Row("grabbing", "yes" if grabbing else "no"),
    ]


def _place(own: list[float]) -> list[_Row]:
    """From the agent's observations of itself. Its x in its room equals its x."""
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


# ---- Plots ----
# Every x axis has a fixed range. Without one, the browser's plots take x for seconds since 1970, and a plot that is
# created while data arrive may keep the range of its first points.

_HEIGHT = 130  # pixels
_LIDAR_KINDS = (EntityKind.CUBE, EntityKind.WALL, EntityKind.AGENT, EntityKind.DOOR)
_KIND_AXES = ({"ticks": {"show": False}}, {"ticks": {"show": False}, "incrs": (1,), "space": 8})
_DOTS = {"width": 0, "points": {"show": True, "size": 5}}  # instead of a line: there is nothing between two kinds


class Plots:
    """Plots of an agent's rewards, observations and lidar."""

    def __init__(self, gui: viser.GuiApi, sim: Simulator) -> None:
        self._sim = sim
        self._features = np.arange(len(observations(sim, 0, 0)), dtype=np.float64)
        rays = sim.lidar.shape[2]
        self._angles = np.arange(rays) * 360 / rays
        self._rewards = _add_plot(
            gui,
            "reward and return of the last steps",
            ("steps ago", -STEPS_KEPT, 0),
            (
                {"label": "reward", "stroke": "#e8590c", "width": 1},
                {"label": "return", "stroke": "#1c7ed6", "width": 2},
            ),
        )
        self._observations = _add_plot(
            gui,
            "observations except lidar, scaled",
            ("feature", 0, len(self._features) - 1),
            ({"label": "value", "stroke": "#2f9e44", "width": 1},),
        )
        around = ("degrees to the left", 0, 360)
        self._distances = _add_plot(
            gui, "lidar: distance in metres", around, ({"label": "metres", "stroke": "#22b8cf", "width": 1},)
        )
        self._kinds = _add_plot(
            gui,
            f"lidar: {', '.join(f'{kind.value} {kind.name.lower()}' for kind in _LIDAR_KINDS)}",
            around,
            ({"label": "kind (0 nothing)", "stroke": "#fab005", **_DOTS},),
            kinds=True,
        )

    def show(self, world: int, agent: int, history: RewardHistory) -> None:
        """Shows the curves of one agent."""
        distances, kinds = lidar_readings(self._sim, world)
        self._rewards.data = history.curves()
        self._observations.data = (self._features, observations(self._sim, world, agent))
        self._distances.data = (self._angles, distances[agent])
        self._kinds.data = (self._angles, kinds[agent])


def observations(sim: Simulator, world: int, agent: int) -> NDArray[np.float64]:
    """All observations of an agent except lidar, concatenated in the order of the documentation."""
    parts = [read(sim.tensors[name])[world, agent].reshape(-1) for name in _OBSERVATIONS]
    return np.concatenate(parts).astype(np.float64)


def _add_plot(
    gui: viser.GuiApi,
    title: str,
    x: tuple[str, float, float],
    curves: tuple[dict[str, Any], ...],
    kinds: bool = False,
) -> viser.GuiUplotHandle:
    """x: label and range of the x axis. kinds: y is a kind of entity; otherwise the range of y follows the curves."""
    label, low, high = x
    scales: dict[str, Any] = {"x": {"time": False, "range": (low, high)}}
    if kinds:
        scales["y"] = {"range": (-0.5, max(_LIDAR_KINDS) + 0.5)}
    return gui.add_uplot(
        (np.full(1, high), *(np.zeros(1) for _ in curves)),
        ({"label": label}, *curves),
        scales=scales,
        axes=_KIND_AXES if kinds else None,
        title=title,
        height=_HEIGHT,
    )


# ---- Picture ----


class AgentCamera:
    """Draws what an agent sees, in a simulator of one world with cameras into which the agent's world is copied."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._copy = Simulator(
            1,
            num_agents=sim.num_agents,
            episode_length=sim.episode_length,
            num_threads=1,
            max_levels=min(1, sim.config.max_levels),
            cameras=Cameras(width=_IMAGE_WIDTH, height=_IMAGE_HEIGHT, depth=False),
        )

    def draw(self, world: int, agent: int) -> NDArray[np.uint8]:
        """The agent's picture, uint8 [height, width, 3]."""
        self._copy.restore(self._sim.save([world]))
        return np.array(self._copy.rgb.to_numpy()[0, agent, :, :, :3], np.uint8)

    def close(self) -> None:
        """Closes the simulator with the cameras."""
        self._copy.close()
