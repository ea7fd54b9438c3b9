"""The agents of one world over time: when they get new duties, and what is remembered of the old ones."""

from __future__ import annotations

import math
from typing import final

from doorstep.planner.actions import STAY, SWITCH_GRAB, Action
from doorstep.planner.cube_moves import name_of
from doorstep.planner.duties import Duty, Haul, Traffic, Wait
from doorstep.planner.geometry import Point
from doorstep.planner.goal import GoalArea
from doorstep.planner.plan import Plan
from doorstep.planner.scene import Scene

_THINK_EVERY = 40  # steps after which duties are given anew even if nothing has happened
_AFTER_FAILURE = 4  # steps until a duty that came to nothing is replaced
_STILL = 3  # steps without moving, of an agent that others go around


@final
class Crew:
    """The agents of one world: gives them duties when something has happened, and asks the duties for actions.

    Args:
        num_agents: in the world.
        goal: where agents are to go; None: to the largest y.
    """

    def __init__(self, num_agents: int, goal: GoalArea | None = None) -> None:
        self._goal = goal
        self._duties: list[Duty] = [Wait() for _ in range(num_agents)]
        self._refused: set[tuple[object, ...]] = set()  # moves of cubes that did not work
        self._seen: object = None
        self._age = 0
        self._places: list[Point] = [(math.inf, math.inf)] * num_agents
        self._rest = [0] * num_agents
        self._traffic = Traffic()

    def act(self, scene: Scene) -> list[Action]:
        """The agents' next actions."""
        self._note_who_moves(scene)
        if self._something_happened(scene):
            self._give_duties(scene)
        self._traffic.still = [agent for agent, rest in enumerate(self._rest) if rest >= _STILL]
        return [self._act_of(scene, agent) for agent in range(len(scene.agents))]

    def _note_who_moves(self, scene: Scene) -> None:
        for agent, body in enumerate(scene.agents):
            if body is not None:
                moved = math.dist(body.at, self._places[agent]) > 0.1
                self._rest[agent] = 0 if moved else self._rest[agent] + 1
                self._places[agent] = body.at

    def _something_happened(self, scene: Scene) -> bool:
        seen = scene.is_open, scene.pressed
        self._age += 1
        happened = (
            seen != self._seen
            or self._age > _THINK_EVERY
            or any(duty.over and (self._age > _AFTER_FAILURE or not duty.failed) for duty in self._duties)
        )
        self._seen = seen
        return happened

    def _act_of(self, scene: Scene, agent: int) -> Action:
        if scene.agents[agent] is None:
            return STAY
        duty = self._duties[agent]
        if duty.over:
            return STAY
        if scene.holds[agent] >= 0 and not isinstance(duty, Haul):
            return SWITCH_GRAB
        self._traffic.corners.pop(agent, None)
        self._traffic.hauls.pop(agent, None)
        if isinstance(duty, Haul) and duty.holding:
            self._traffic.hauls[agent] = duty.move.cube, duty.move.target
        return duty.act(scene, agent, self._traffic)

    # ---- Giving duties ----

    def _give_duties(self, scene: Scene) -> None:
        self._age = 0
        old = self._duties
        for duty in old:
            if isinstance(duty, Haul) and duty.failed:
                self._refused.add(name_of(duty.move))
        self._duties = Plan(scene, old, self._refused, self._goal).duties
