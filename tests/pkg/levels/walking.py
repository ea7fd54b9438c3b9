"""Plays plans in a simulator: agents walk along their ways, one after the other."""

from __future__ import annotations

import math

import numpy as np
from tests.pkg.levels.solving import AGENT_HALF, CELL, CUBE_HALF, Move, Place, Planner

import doorstep
from doorstep.levels import Level

NEUTRAL = (0, 0, 2, 0)
CLOSE = 0.35  # metres: a place is reached
DOOR_STEPS = 5  # until a door has begun to move and has sunk
CUBE_CLOSE = 0.7  # metres: a cube is where it was to go
HOLD = 2.9  # metres between the centres of a cube and of the agent that holds it
PATIENCE = 80  # steps for one straight part of a way
QUARTER = math.pi / 2


class StuckError(Exception):
    """An agent or a cube does not get where it is to go."""


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
        try:
            for move in plan:
                self.carry_out(move)
        except StuckError as error:
            print(error)
        return bool(self.sim.terminations.to_numpy().all())

    def carry_out(self, move: Move) -> None:
        if move.cube is None:
            self.go(move.agent, move.doors, move.end)
        else:
            self.carry(move.agent, move.cube, move.doors, move.end)
        for _ in range(DOOR_STEPS):
            self.step(move.agent, NEUTRAL)

    def go(self, agent: int, doors: frozenset[int], end: Place) -> None:
        """Walks around the others."""
        path = self.planner.path(AGENT_HALF, doors, self.pose(agent)[:2], end, self.others(agent))
        for place in path:
            self.walk(agent, place)

    def carry(self, agent: int, cube: int, doors: frozenset[int], end: Place) -> None:
        """Pushes or pulls a cube along the straight parts of its way; after each part the way is found anew."""
        body = self.sim.num_agents + cube
        for _ in range(60):
            path = self.planner.path(CUBE_HALF, doors, self.at(body), end, self.others(body, agent))
            if math.dist(self.at(body), path[-1]) < CUBE_CLOSE:
                return
            place = next(corner for corner in path if math.dist(self.at(body), corner) >= CUBE_CLOSE)
            self.carry_straight(agent, body, doors, place)
        raise StuckError(f"cube {cube} is stuck at {self.at(body)} on its way to {end}")

    def carry_straight(self, agent: int, body: int, doors: frozenset[int], end: Place) -> None:
        x, y = self.at(body)
        is_across = abs(end[0] - x) > abs(end[1] - y)
        sign = math.copysign(1, end[0] - x if is_across else end[1] - y)
        along = (sign, 0.0) if is_across else (0.0, sign)
        behind, ahead = ((x + side * along[0] * HOLD, y + side * along[1] * HOLD) for side in (-1, 1))
        is_pushed = self.can_go(agent, doors, behind)
        self.go(agent, doors, behind if is_pushed else ahead)
        self.face(agent, math.atan2(-along[0], along[1]) if is_pushed else math.atan2(along[0], -along[1]))
        while math.dist(self.at(agent), self.at(body)) > HOLD and not self.ended:
            self.step(agent, (1, 0, 2, 0))
        self.step(agent, (0, 0, 2, 1))
        if not self.ended and self.sim.state.agent_grabs.to_numpy()[0, agent] != body:
            raise StuckError(f"agent {agent} does not reach the cube at {self.at(body)}")
        for _ in range(PATIENCE):
            to_go = sum((to - at) * part for to, at, part in zip(end, self.at(body), along, strict=True))
            velocity = self.sim.state.body_linear_velocities.to_numpy()[0, body]
            speed = float(velocity[0] * along[0] + velocity[1] * along[1])
            if abs(to_go) < CUBE_CLOSE / 2 or self.ended:
                break
            wanted = max(-4.0, min(4.0, 3 * to_go))  # metres per second
            forward = 0 if is_pushed else 4
            amount = min(3, round(abs(wanted - speed)))
            self.step(agent, (amount, forward if wanted > speed else 4 - forward, 2, 0))
        for _ in range(5):
            self.step(agent, NEUTRAL)
        self.step(agent, (0, 0, 2, 1))

    def face(self, agent: int, yaw: float) -> None:
        for _ in range(20):
            off = math.remainder(self.pose(agent)[2] - yaw, 2 * math.pi)
            if abs(off) < 0.13:
                return
            hard = abs(off) > 0.4
            self.step(agent, (0, 0, (0 if hard else 1) if off > 0 else (4 if hard else 3), 0))

    def can_go(self, agent: int, doors: frozenset[int], end: Place) -> bool:
        path = self.planner.path(AGENT_HALF, doors, self.pose(agent)[:2], end, self.others(agent))
        return math.dist(path[-1], end) < CELL

    def at(self, body: int) -> Place:
        x, y, _ = self.sim.state.body_positions.to_numpy()[0, body].tolist()
        return x, y

    def others(self, *bodies: int) -> list[tuple[Place, float]]:
        """Where all but some bodies are, with half of their sizes."""
        num_agents = self.sim.num_agents
        count = num_agents + len(self.planner.level.cubes)
        halves = [AGENT_HALF] * num_agents + [CUBE_HALF] * (count - num_agents)
        return [(self.at(i), halves[i]) for i in range(count) if i not in bodies]

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
        raise StuckError(f"agent {agent} is stuck at {x:.2f}, {y:.2f} on its way to {place}")

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
