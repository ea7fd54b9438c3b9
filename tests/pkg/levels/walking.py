"""Plays plans in a simulator: agents walk along their ways, one after the other."""

from __future__ import annotations

import math

import numpy as np
from tests.pkg.levels.solving import AGENT_HALF, CUBE_HALF, Move, Place, Planner

import doorstep
from doorstep.levels import Level

NEUTRAL = (0, 0, 2, 0)
CLOSE = 0.35  # metres: a place is reached
DOOR_STEPS = 5  # until a door has begun to move and has sunk
PATIENCE = 80  # steps for one straight part of a way
QUARTER = math.pi / 2


class Walker:
    """World 0 of a simulator that plays one level."""

    def __init__(self, level: Level, num_agents: int, seed: int) -> None:
        self.planner = Planner(level)
        self.sim = doorstep.Simulator(1, num_agents=num_agents, seed=seed, auto_reset=False, strict=True, max_levels=1)
        self.sim.set_levels([level])
        self.sim.reset()
        self.ended = False

    def play(self, plan: list[Move]) -> bool:
        """Whether the goal ended the episode."""
        for move in plan:
            self.go(move.agent, move.doors, move.end)
            for _ in range(DOOR_STEPS):
                self.step(move.agent, NEUTRAL)
        return bool(self.sim.terminations.to_numpy().all())

    def go(self, agent: int, doors: frozenset[int], end: Place) -> None:
        """Walks around the others."""
        bodies = self.sim.state.body_positions.to_numpy()[0, :, :2].tolist()
        agents, cubes = bodies[: self.sim.num_agents], bodies[self.sim.num_agents :][: len(self.planner.level.cubes)]
        others = [((x, y), AGENT_HALF) for i, (x, y) in enumerate(agents) if i != agent]
        others += [((x, y), CUBE_HALF) for x, y in cubes]
        for place in self.planner.path(AGENT_HALF, doors, tuple(agents[agent]), end, others):
            self.walk(agent, place)

    def walk(self, agent: int, place: Place) -> None:
        """Straight ahead, to the sides or back: agents turn first until their sides are about parallel to the walls."""
        for _ in range(PATIENCE):
            x, y, yaw = self.pose(agent)
            distance = math.dist((x, y), place)
            if distance < CLOSE or self.ended:
                return
            off = yaw - round(yaw / QUARTER) * QUARTER
            if abs(off) > 0.13:  # more than half of the smallest turn
                self.step(agent, (0, 0, 1 if off > 0 else 3, 0))
                continue
            bearing = math.atan2(place[0] - x, place[1] - y) + yaw  # clockwise from where the agent looks
            self.step(agent, (min(3, max(1, int(3 * distance))), round(bearing / (math.pi / 4)) % 8, 2, 0))
        raise AssertionError(f"agent {agent} is stuck at {x:.2f}, {y:.2f} on its way to {place}")

    def step(self, agent: int, action: tuple[int, int, int, int]) -> None:
        """Does nothing after the end of the episode."""
        if self.ended:
            return
        actions = np.tile(NEUTRAL, (1, self.sim.num_agents, 1))
        actions[0, agent] = action
        self.sim.actions = actions
        self.sim.step()
        self.ended = bool(self.sim.dones.to_numpy().any())

    def pose(self, agent: int) -> tuple[float, float, float]:
        """x, y and yaw."""
        x, y, _ = self.sim.state.body_positions.to_numpy()[0, agent].tolist()
        w, _, _, z = self.sim.state.body_rotations.to_numpy()[0, agent].tolist()
        return x, y, 2 * math.atan2(z, w)
