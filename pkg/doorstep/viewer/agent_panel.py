"""What the page shows of one agent: its rewards, its place, its observations, and its camera's picture."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doorstep.cameras import Cameras
from doorstep.levels.generated import ROOM_LENGTH
from doorstep.simulator import Simulator
from doorstep.viewer.world_arrays import DISTANCE_UNIT, read

STEPS_KEPT = 300  # in the history of rewards

_IMAGE_WIDTH, _IMAGE_HEIGHT = 256, 192  # pixels


# ---- Rewards ----


class StepReward(NamedTuple):
    """What one step gave an agent."""

    reward: float
    total: float  # sum of rewards since the episode began, or since the page began to show this agent


class RewardHistory:
    """The rewards of an agent in the last `STEPS_KEPT` steps."""

    def __init__(self) -> None:
        self._steps: deque[tuple[StepReward, bool]] = deque(maxlen=STEPS_KEPT)  # and whether an episode ended

    def clear(self) -> None:
        """Forgets all steps: the page shows another agent or another time."""
        self._steps.clear()

    def add(self, reward: float, done: bool) -> None:
        """Adds a step. done: the episode ended with it."""
        before = self._steps[-1][0].total if self._steps and not self._steps[-1][1] else 0.0
        self._steps.append((StepReward(reward, before + reward), done))

    @property
    def last(self) -> StepReward | None:
        """The last step, if there was one."""
        return self._steps[-1][0] if self._steps else None

    def returns(self) -> list[NDArray[np.float64]]:
        """The sums of rewards after each step, an array for each episode, in the order of time."""
        episodes: list[list[float]] = [[]]
        for step, done in self._steps:
            episodes[-1].append(step.total)
            if done:
                episodes.append([])
        return [np.array(episode) for episode in episodes if episode]


# ---- Numbers ----


class _Row(NamedTuple):
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


# ---- Observations ----

_OWN = ("x in room", "y in room", "x", "y", "z", "largest y", "yaw", "grabbing")


def observations(sim: Simulator, world: int, agent: int) -> list[tuple[str, list[tuple[str, float]]]]:
    """All observations of an agent except lidar, as it receives them, by what they are about."""

    def rows(name: str, labels: Sequence[str]) -> list[tuple[str, float]]:
        values = read(sim.tensors[name])[world, agent].reshape(-1).tolist()
        return list(zip(labels, values, strict=True))

    def of_each(thing: str, numbers: Iterable[int], last: str) -> list[str]:
        return [f"{thing} {number}: {part}" for number in numbers for part in ("distance", "bearing", last)]

    others = [other for other in range(sim.num_agents) if other != agent]
    slots = range(sim.room_entity_observations.shape[2])
    groups = [
        ("itself", rows("self_observations", _OWN)),
        ("other agents", rows("partner_observations", of_each("agent", others, "grabbing"))),
        ("the room's buttons and cubes", rows("room_entity_observations", of_each("entity", slots, "kind"))),
        ("the room's door", rows("door_observations", ("distance", "bearing", "open"))),
    ]
    return [(title, parts) for title, parts in groups if parts]


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
