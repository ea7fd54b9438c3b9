"""The scripted policy: a crew for every world, over copies of the simulator's state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import WorldSelection, check_slots, refuse, showing
from doorstep._beginnings import Beginnings
from doorstep._native import EntityKind
from doorstep.planner.crew import Crew
from doorstep.planner.geometry import Bounds
from doorstep.planner.goal import GoalArea
from doorstep.planner.level import Level
from doorstep.planner.reader import StateReader, differing_worlds
from doorstep.planner.scene import Body, Scene
from doorstep.simulator import Simulator

_LEVEL = 0.05  # half the sine of the tilt of a cube that lies on the face that it began on


@final
class ScriptedPolicy:
    """Plans the actions of all agents of a simulator from its state, without learning and without randomness.

    The actions of a world depend on that world alone, and on what the policy has seen of its episode: the same levels
    are played the same way, whatever the number of worlds. The simulator is only read; somebody else may edit it, act
    for some of the agents, or reset worlds. A policy plans for one simulator at a time; another one is planned anew.

    >>> import doorstep
    >>> from doorstep.planner import ScriptedPolicy
    >>> policy = ScriptedPolicy()
    >>> with doorstep.Simulator(2, seed=3, auto_reset=False) as sim:
    ...     for _ in range(40):
    ...         sim.actions = policy(sim)
    ...         sim.step()
    ...     print((sim.state.agent_max_y.to_numpy() > 40 / 3).tolist())    # metres: all are in the second room
    [[True, True], [True, True]]

    Args:
        goal: a rectangle that all agents are to go to: its low x, low y, high x and high y, metres. None: the goal of
            the level that a world plays; without one, to the largest y that can be reached, and on from there if that
            is outside of the walls.

    Raises:
        ArgumentError: the goal is not four numbers in this order.
    """

    observes = "simulator"

    __repr__ = showing("_goal")

    def __init__(self, *, goal: Sequence[float] | None = None) -> None:
        self._goal = None if goal is None else _checked_goal(goal)
        self._plans: _Plans | None = None

    def __call__(self, sim: Simulator) -> NDArray[np.int32]:
        """int32 [N, A, 4]: the actions of the next step; call it once before each step.

        Raises:
            ArgumentError: it is no simulator.
        """
        if not isinstance(sim, Simulator):
            refuse("sim", "a doorstep.Simulator", sim)
        if self._plans is None or self._plans.sim is not sim:
            self._plans = _Plans(sim, self._goal)
        return self._plans.actions()

    def forget(self, worlds: WorldSelection = None) -> None:
        """Plans worlds anew: those in which something was restored that looks like the episode before.

        Args:
            worlds: a boolean mask [N], distinct slots, or None for all.

        Raises:
            ArgumentError: `worlds` is of another kind.
        """
        if self._plans is not None:
            self._plans.forget(worlds)


class _Plans:
    """What is planned for the worlds of a simulator."""

    def __init__(self, sim: Simulator, goal: Bounds | None) -> None:
        self.sim = sim
        self._reader = StateReader(sim)
        self._began = Beginnings(sim)
        self._num_agents = sim.num_agents
        self._goal = goal
        self._worlds: list[_World | None] = [None] * sim.num_worlds
        self._last: dict[str, NDArray[Any]] | None = None

    def actions(self) -> NDArray[np.int32]:
        fields = self._reader.read()
        self._forget_other_episodes(fields)
        if self.sim.config.max_levels:
            fields["level_indices"] = self.sim.level_indices.copy_to_host()[:, 0]
        rows = _Rows(fields)
        return np.array([self._act(world, rows) for world in range(len(self._worlds))], np.int32)

    def forget(self, worlds: WorldSelection) -> None:
        count = len(self._worlds)
        for world in range(count) if worlds is None else check_slots(worlds, count).tolist():
            self._worlds[world] = None

    def _forget_other_episodes(self, fields: dict[str, NDArray[Any]]) -> None:
        """Worlds that have begun an episode, or whose level was edited, are planned anew."""
        differs = self._began()
        if self._last is not None:
            differs |= differing_worlds(self._last, fields) | (self._last["episode_index"] != fields["episode_index"])
        self._last = fields
        self.forget(differs)

    def _act(self, index: int, rows: _Rows) -> list[tuple[int, int, int, int]]:
        world = self._worlds[index]
        if world is None:
            level = _level(rows.fields, index)
            crew = Crew(self._num_agents, self._goal_area(level, rows.fields, index))
            world = self._worlds[index] = _World(level, crew, rows.fields, index)
        return world.crew.act(self._scene(world, index, rows))

    def _goal_area(self, level: Level, fields: dict[str, NDArray[Any]], index: int) -> GoalArea | None:
        if self._goal is not None:
            return GoalArea(level, self._goal, for_all=True)
        if "level_indices" not in fields:
            return None
        goal = self.sim.levels[fields["level_indices"][index]].goal
        if goal is None:
            return None
        return GoalArea(level, Bounds(goal.min_x, goal.min_y, goal.max_x, goal.max_y), for_all=goal.agents == "all")

    def _scene(self, world: _World, index: int, rows: _Rows) -> Scene:
        positions, rotations, velocities = rows.positions[index], rows.rotations[index], rows.velocities[index]
        cubes = set(world.cubes)
        bodies = [
            _body(*values, lies=index in cubes)
            for index, values in enumerate(zip(positions, rotations, velocities, strict=True))
        ]
        slots = {body: cube for cube, body in enumerate(world.cubes)}
        return Scene(
            level=world.level,
            agents=bodies[: self._num_agents],
            cubes=[bodies[body] for body in world.cubes],
            holds=[slots.get(body, -1) for body in rows.holds[index]],
            is_open=rows.is_open[index],
            pressed=rows.pressed[index],
            lasting=world.lasting,
        )


def _checked_goal(goal: Sequence[float]) -> Bounds:
    try:
        low_x, low_y, high_x, high_y = map(float, goal)
    except (TypeError, ValueError):
        refuse("goal", "four numbers: low x, low y, high x, high y", goal)
    if not (-math.inf < low_x <= high_x < math.inf and -math.inf < low_y <= high_y < math.inf):
        refuse("goal", "finite, and low x and y at most high x and y", goal)
    return Bounds(low_x, low_y, high_x, high_y)


class _Rows:
    """The moving fields as nested lists: elements of arrays are slow."""

    def __init__(self, fields: dict[str, NDArray[Any]]) -> None:
        self.fields = fields
        self.positions: list[Any] = fields["body_positions"].tolist()
        self.rotations: list[Any] = fields["body_rotations"].tolist()
        self.velocities: list[Any] = fields["body_linear_velocities"].tolist()
        self.is_open: list[list[int]] = fields["door_open"].tolist()
        self.pressed: list[list[int]] = fields["button_pressed"].tolist()
        self.holds: list[list[int]] = fields["agent_grabs"].tolist()


class _World:
    """What is remembered of a world."""

    def __init__(self, level: Level, crew: Crew, fields: dict[str, NDArray[Any]], index: int) -> None:
        self.level = level
        self.crew = crew
        self.lasting = [bool(stays) for stays in fields["door_persistent"][index]]
        self.cubes = [int(body) for body in np.flatnonzero(fields["body_kinds"][index] == EntityKind.CUBE)]


def _level(fields: dict[str, NDArray[Any]], world: int) -> Level:
    return Level(
        (fields["static_positions"][world], fields["static_sizes"][world], fields["static_kinds"][world]),
        fields["door_static"][world].tolist(),
        fields["button_positions"][world].tolist(),
        fields["button_doors"][world].tolist(),
    )


def _body(position: list[float], rotation: list[float], velocity: list[float], *, lies: bool) -> Body | None:
    """An agent, or a cube, which may lie on any of its faces."""
    x, y, _ = position
    yaw = _footprint_yaw(*rotation) if lies else _yaw(*rotation)
    vx, vy, _ = velocity
    if not all(map(math.isfinite, (x, y, yaw, vx, vy))):
        return None
    return Body(x, y, yaw, (vx, vy))


def _yaw(w: float, i: float, j: float, k: float) -> float:
    return math.atan2(2 * (w * k + i * j), 1 - 2 * (j * j + k * k))


def _footprint_yaw(w: float, i: float, j: float, k: float) -> float:
    """The yaw of the footprint of a cube, up to right angles: of that of its edges which is the most level."""
    if abs(i * k - w * j) <= _LEVEL and abs(j * k + w * i) <= _LEVEL:
        return _yaw(w, i, j, k)
    axes = (
        (1 - 2 * (j * j + k * k), 2 * (i * j + w * k), 2 * (i * k - w * j)),
        (2 * (i * j - w * k), 1 - 2 * (i * i + k * k), 2 * (j * k + w * i)),
        (2 * (i * k + w * j), 2 * (j * k - w * i), 1 - 2 * (i * i + j * j)),
    )
    x, y, _ = min(axes, key=lambda axis: abs(axis[2]))
    return math.atan2(y, x)
