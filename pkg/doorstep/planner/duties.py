"""What one agent does: stand on a button, haul a cube, go somewhere, or wait.

A duty is given once, and acts step by step until it is over.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol, final

from doorstep.planner.actions import STAY, SWITCH_GRAB, Action, haul, walk
from doorstep.planner.cube_moves import CubeMove, handle_length
from doorstep.planner.geometry import Bounds, Point, facing, sees, wrapped, yaw_towards
from doorstep.planner.level import BUTTON_HALF
from doorstep.planner.scene import CUBE_HALF, Body, Scene

_STAND_ON = BUTTON_HALF + 0.3  # metres that the centre of an agent on a button may be off; 1.65 is the most
_LOOK_EVERY = 4  # steps between looks at whether the way is still free
_STALL = 6  # steps in which an agent that walks must get somewhere
_STALL_LENGTH = 0.5  # metres
_SIDESTEP = 4  # steps
_CLOSE = 2.9  # metres between the centres of agents that may get in each other's way
_COMES = 4.5  # metres from which an agent is let pass
_WAY = 2.2  # metres to both sides that an agent takes which passes
_CUBE_COMES = 6.0  # metres from which a cube is let pass
_WAY_OF_CUBE = 2.8  # metres to both sides that a cube takes
_LONGEST_YIELD = 8  # steps; an agent that has given way for so long goes on
_YIELDS_FORGOTTEN = 0.5  # of those, in each step that it goes on
_SAME_PLACE = 2.5  # metres between corners that only one agent can be at
_ROOM_TO_PASS = 2.6  # metres from a corner at which an agent leaves it to another one
_LONGEST_HAUL = 60  # steps
_PRECISION = 0.35  # metres along the way of a cube
_SLOW = 2.5  # m/s: a cube that is released at that speed slides 0.6 m
_FAR_OFF = 1.5  # metres from its target: a cube that ends there has not been moved as planned
_LONGEST_APPROACH = 60  # steps


@dataclass
class Traffic:
    """Where agents are going, so that they can give way.

    Attributes:
        still: agents that have not moved for a while.
        corners: the next corner of the path of each agent that walks, metres.
        hauls: by agents that hold a cube, which one, and its target.
    """

    still: list[int] = field(default_factory=list)
    corners: dict[int, Point] = field(default_factory=dict)
    hauls: dict[int, tuple[int, Point]] = field(default_factory=dict)


class Duty(Protocol):
    """What an agent does until it is `over`; `failed` says that it came to nothing."""

    over: bool
    failed: bool

    def act(self, scene: Scene, agent: int, traffic: Traffic) -> Action:
        """The agent's next action."""


@final
class Walk:
    """Walks to points, around what is in the way, and around other agents if that fails."""

    def __init__(self) -> None:
        self.lost = False  # no way was found
        self._path: list[Point] = []
        self._goal: Point | None = None
        self._steps = 0
        self._stalls = 0
        self._sidestep = 0
        self._yields = 0.0  # of late
        self._insists = False
        self._mark: tuple[int, Point] = (0, (math.inf, math.inf))

    def towards(
        self,
        scene: Scene,
        agent: int,
        goal: Point,
        traffic: Traffic,
        *,
        yaw: float | None = None,
        tolerance: float = 1.0,
    ) -> Action:
        """The next action on the way to a point, which may move."""
        body = scene.agents[agent]
        assert body is not None
        self._steps += 1
        still = traffic.still
        if self._is_stalled(body):
            self._stalls += 1
            self._path = []
            self._sidestep = _SIDESTEP if self._stalls % 2 == 0 else 0
            still = [other for other in range(len(scene.agents)) if other != agent]
        if self._sidestep:
            self._sidestep -= 1
            x, y = facing(math.pi / 4 + math.pi / 2 * (agent + self._stalls // 2))
            return walk(body, (body.x + x, body.y + y), yaw)
        if self._goal is None or math.dist(self._goal, goal) > 0.3 or self._is_blocked(scene, body):
            self._path = []
        if not self._path:
            self._plan(scene, agent, body, goal, still, tolerance)
        while len(self._path) > 1 and math.dist(body.at, self._path[0]) < 0.3:
            self._path.pop(0)
        if not self._path:
            return STAY
        traffic.corners[agent] = self._path[0]
        if not self._insists and self._yields_to_anyone(scene, agent, body, traffic):
            self._yields += 1
            self._insists = self._yields >= _LONGEST_YIELD
            self.rests(body)
            return walk(body, self._out_of_the_way(body), yaw)
        self._yields = max(self._yields - _YIELDS_FORGOTTEN, 0.0)
        self._insists = self._insists and self._yields > 0.0
        return walk(body, self._path[0], yaw)

    def _yields_to_anyone(self, scene: Scene, agent: int, body: Body, traffic: Traffic) -> bool:
        """Whether another agent is close and ahead, and goes first: to the same place who is nearer to their own
        corner there, else who comes first. So of two agents never both give way."""
        corner = self._path[0]
        for index, other in enumerate(scene.agents):
            towards = traffic.corners.get(index)
            if index == agent or other is None or towards is None or math.dist(other.at, body.at) > _CLOSE:
                continue
            if not _is_ahead(body.at, corner, other.at):
                continue
            if math.dist(corner, towards) < _SAME_PLACE:
                if (math.dist(other.at, towards), index) < (math.dist(body.at, corner), agent):
                    return True
            elif index < agent and _is_ahead(other.at, towards, body.at):
                return True
        return False

    def _out_of_the_way(self, body: Body) -> Point:
        """Where an agent waits for another one to go through the next corner of its path."""
        (x, y), distance = self._path[0], math.dist(body.at, self._path[0])
        if distance > _ROOM_TO_PASS or distance < 0.1:
            return body.at
        return body.x + (body.x - x) / distance, body.y + (body.y - y) / distance

    def _plan(
        self, scene: Scene, agent: int, body: Body, goal: Point, still: Collection[int], tolerance: float
    ) -> None:
        others = [other.at for index in still if index != agent and (other := scene.agents[index])]
        self._goal = goal
        self._path = scene.find_path(body.at, goal, others=others, tolerance=tolerance)
        if not self._path and others:
            self._path = scene.find_path(body.at, goal, tolerance=tolerance)
        self.lost = not self._path

    def _is_blocked(self, scene: Scene, body: Body) -> bool:
        look = self._steps % _LOOK_EVERY == 0 and self._path
        return bool(look) and not sees(body.at, self._path[0], scene.obstacles())

    def _is_stalled(self, body: Body) -> bool:
        since, place = self._mark
        if math.dist(place, body.at) > _STALL_LENGTH:
            self._mark = self._steps, body.at
            return False
        if self._steps - since < _STALL:
            return False
        self._mark = self._steps, body.at
        return True

    def has_arrived(self, agent: Body) -> bool:
        """Whether the agent is where its path ends, which may be beside its goal."""
        return len(self._path) == 1 and math.dist(agent.at, self._path[0]) < 0.3

    def rests(self, agent: Body) -> None:
        """Tells that the agent stands where it is on purpose."""
        self._mark = self._steps, agent.at


@final
class Wait:
    """Stands still, but lets others pass."""

    over = failed = False

    def act(self, scene: Scene, agent: int, traffic: Traffic) -> Action:
        """Steps aside if another agent comes."""
        return _step_aside(scene, agent, traffic)


@final
class Stand:
    """Goes to a button and stays on it, until a cube comes that is put there."""

    over = failed = False

    def __init__(self, button: int) -> None:
        self.button = button
        self._walk = Walk()

    def act(self, scene: Scene, agent: int, traffic: Traffic) -> Action:
        """Goes to the nearest place on the button."""
        body = scene.agents[agent]
        assert body is not None
        x, y = scene.level.buttons[self.button]
        place = Bounds(x - _STAND_ON, y - _STAND_ON, x + _STAND_ON, y + _STAND_ON)
        if place.contains(*body.at):
            self._walk.rests(body)
            is_relieved = any(place.grown(BUTTON_HALF).contains(*target) for _, target in traffic.hauls.values())
            return _step_aside(scene, agent, traffic) if is_relieved else STAY
        inner = place.grown(-0.2)
        action = self._walk.towards(scene, agent, inner.nearest(*body.at), traffic, tolerance=0.6)
        if self._walk.lost:
            action = self._walk.towards(scene, agent, (x, y), traffic, tolerance=1.2)
        self.failed = self.over = self._walk.lost
        return action


@final
class Go:
    """Goes to a goal and stays there, or goes on in the direction of +y once it is beyond the level."""

    over = failed = False

    def __init__(self, goal: Point, *, onwards: bool) -> None:
        self.goal = goal
        self._onwards = onwards
        self._walk = Walk()

    def act(self, scene: Scene, agent: int, traffic: Traffic) -> Action:
        """Walks."""
        body = scene.agents[agent]
        assert body is not None
        if self._onwards and body.y > scene.level.highest + 1.0:
            return walk(body, (body.x, body.y + 2.0))
        if math.dist(body.at, self.goal) < 0.3:
            self._walk.rests(body)
            return _step_aside(scene, agent, traffic)
        action = self._walk.towards(scene, agent, self.goal, traffic)
        self.failed = self.over = self._walk.lost
        return action


@final
class Haul:
    """Moves a cube: goes to where it is to be grabbed, grabs it, hauls it to its target, releases it."""

    def __init__(self, move: CubeMove, button: int | None) -> None:
        self.move = move
        self.button = button
        self.over = self.failed = False
        self.holding = False
        self._walk = Walk()
        self._steps = 0
        self._grabs = 0
        self._mark: tuple[int, float] = (0, math.inf)

    def act(self, scene: Scene, agent: int, traffic: Traffic) -> Action:
        """Approaches the cube, or hauls it."""
        self._steps += 1
        body, cube = scene.agents[agent], scene.cubes[self.move.cube]
        assert body is not None
        if cube is None:
            return self._end(scene, agent, failed=True)
        if scene.holds[agent] == self.move.cube:
            if not self.holding:
                self.holding, self._steps, self._mark = True, 0, (0, math.inf)
            return self._haul(scene, agent, body, cube)
        if self.holding:  # released by someone else
            return self._end(scene, agent, failed=True)
        return self._approach(scene, agent, body, cube, traffic)

    def _approach(self, scene: Scene, agent: int, body: Body, cube: Body, traffic: Traffic) -> Action:
        length = math.dist(cube.at, self.move.target)
        if length < 0.2 or self._steps > _LONGEST_APPROACH:
            return self._end(scene, agent, failed=self._steps > _LONGEST_APPROACH)
        x, y = (self.move.target[0] - cube.x) / length, (self.move.target[1] - cube.y) / length
        sign = 1 if self.move.push else -1
        handle, yaw = handle_length(cube, (x, y)), yaw_towards(sign * x, sign * y)
        stand = cube.x - sign * handle * x, cube.y - sign * handle * y
        if _can_grab(body, cube, yaw):
            self._grabs += 1
            if self._grabs <= 4:
                return SWITCH_GRAB
            return self._end(scene, agent, failed=True)
        distance = math.dist(body.at, stand)
        if distance < 0.9 or (distance < 1.6 and self._walk.has_arrived(body)):
            closer = 0.0 if distance > 0.25 else 0.2  # the lattice of steps may leave it too far away to grab
            stand = stand[0] + closer * sign * x, stand[1] + closer * sign * y
            return walk(body, stand, yaw)
        action = self._walk.towards(scene, agent, stand, traffic, yaw=yaw if distance < 2.0 else None, tolerance=1.2)
        if self._walk.lost:
            return self._end(scene, agent, failed=True)
        return action

    def _haul(self, scene: Scene, agent: int, body: Body, cube: Body) -> Action:
        speed = math.hypot(*cube.velocity)
        rest = _ahead(body, self.move.target[0] - cube.x, self.move.target[1] - cube.y)
        since, best = self._mark
        if rest < best - 0.2:
            since = self._steps
            self._mark = since, rest
        stuck = self._steps - since > 14
        if self._has_arrived(scene, cube, rest, speed) or stuck or self._steps > _LONGEST_HAUL:
            return self._end(scene, agent, failed=math.dist(cube.at, self.move.target) > _FAR_OFF)
        return haul(body, cube, self.move.target, push=self.move.push)

    def _has_arrived(self, scene: Scene, cube: Body, rest: float, speed: float) -> bool:
        if self.button is not None and scene.covers(self.move.cube, self.button):
            return speed < _SLOW
        return rest < _PRECISION and speed < _SLOW

    def _end(self, scene: Scene, agent: int, *, failed: bool) -> Action:
        self.over, self.failed = True, failed
        return SWITCH_GRAB if scene.holds[agent] >= 0 else STAY


def _step_aside(scene: Scene, agent: int, traffic: Traffic) -> Action:
    """The action of an agent that has nothing to do: it leaves the ways of agents and of cubes that are close."""
    body = scene.agents[agent]
    assert body is not None
    ways = [
        (other.at, corner, _COMES, _WAY)
        for index, corner in traffic.corners.items()
        if index != agent and (other := scene.agents[index])
    ]
    ways += [
        (cube.at, target, _CUBE_COMES, _WAY_OF_CUBE)
        for index, (moved, target) in traffic.hauls.items()
        if index != agent and (cube := scene.cubes[moved])
    ]
    for start, end, reach, half_width in ways:
        action = _step_off(scene, body, start, end, reach, half_width)
        if action:
            return action
    return STAY


def _step_off(scene: Scene, body: Body, start: Point, end: Point, reach: float, half_width: float) -> Action | None:
    """A step across a way, if an agent is on it and there is room; to the side that it is on already if possible."""
    length = math.dist(start, end)
    if length < 0.1 or math.dist(start, body.at) > reach:
        return None
    x, y = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    along = (body.x - start[0]) * x + (body.y - start[1]) * y
    beside = (body.x - start[0]) * y - (body.y - start[1]) * x  # metres to the right of the way
    if abs(beside) > half_width or not 0 < along <= length + half_width:
        return None
    for side in (1, -1) if beside >= 0 else (-1, 1):
        place = body.x + side * y, body.y - side * x
        if sees(body.at, place, scene.obstacles()):
            return walk(body, place)
    return None


def _is_ahead(start: Point, goal: Point, other: Point) -> bool:
    """Whether something is in the half plane that a way from a start to a goal leads into."""
    return (other[0] - start[0]) * (goal[0] - start[0]) + (other[1] - start[1]) * (goal[1] - start[1]) > 0


def _ahead(agent: Body, x: float, y: float) -> float:
    """The length of a vector along the direction that an agent looks in, without its sign."""
    fx, fy = facing(agent.yaw)
    return abs(x * fx + y * fy)


def _can_grab(agent: Body, cube: Body, yaw: float) -> bool:
    """Whether an agent looks along the wanted yaw, through the middle of the cube, and is near enough."""
    if abs(wrapped(yaw - agent.yaw)) > 0.16:
        return False
    fx, fy = facing(agent.yaw)
    x, y = cube.x - agent.x, cube.y - agent.y
    ahead, aside = x * fx + y * fy, x * fy - y * fx
    angle = agent.yaw - cube.yaw
    face = ahead - CUBE_HALF / max(abs(math.cos(angle)), abs(math.sin(angle)))
    return abs(aside) < 0.4 and 0.9 < face < 1.85
