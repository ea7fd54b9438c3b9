"""Actions that bring an agent, or an agent with the cube that it holds, towards where it should be."""

from __future__ import annotations

import math

from doorstep.planner.geometry import Point, facing, wrapped, yaw_towards
from doorstep.planner.scene import Body

Action = tuple[int, int, int, int]  # move amount, move angle, turn, grab

STAY: Action = (0, 0, 2, 0)
SWITCH_GRAB: Action = (0, 0, 2, 1)
FINEST_TURN = 0.2394  # radians per step at turn 1 and 3; twice that at 0 and 4
_QUARTER = math.pi / 2


def walk(agent: Body, target: Point, yaw: float | None = None) -> Action:
    """Goes towards a point, and turns towards a yaw; without one, to the next multiple of 90 degrees.

    An agent that is along the axes needs the least room, and goes in any direction without turning.
    """
    if yaw is None:
        yaw = round(agent.yaw / _QUARTER) * _QUARTER
    ahead, right = _in_frame_of(agent, target[0] - agent.x, target[1] - agent.y)
    amount, angle = _move(3 * ahead, 3 * right)
    return amount, angle, _turn(wrapped(yaw - agent.yaw) / FINEST_TURN), 0


def _in_frame_of(agent: Body, x: float, y: float) -> Point:
    """A vector's parts ahead of an agent and to its right."""
    fx, fy = facing(agent.yaw)
    return x * fx + y * fy, x * fy - y * fx


def _move(ahead: float, right: float) -> tuple[int, int]:
    """Amount and angle of the move nearest to one that is given in amounts."""
    amount = min(round(math.hypot(ahead, right)), 3)
    return amount, (round(math.atan2(right, ahead) / (math.pi / 4)) % 8 if amount else 0)


def _turn(left: float) -> int:
    return 2 + min(max(round(left), -2), 2)


# ---- With a cube ----
# An agent that holds a cube is the handle of a heavy thing with momentum. Force along the handle moves the cube, force
# across it swings the handle around the cube. Measured on a free floor: amount 3 adds 1.8 m/s a step along the handle,
# up to 17 m/s; with the friction of the floor it takes away 4 m/s a step. Across, it adds 0.1 radians per step a step.

_FASTEST = 12.0  # m/s
_BRAKING = 70.0  # m/s^2: less than the deceleration, as force across the handle takes from it
_SPEED_PER_AMOUNT = 0.7  # m/s
_ACROSS = {True: 2.5, False: 5.0}  # amount per radian that the handle is off; a pushed cube evades
_SLACK = {True: 0.1, False: 0.06}  # radians
_NEAR = 1.2  # metres; nearer, the direction of the way there says nothing
_ASKEW = 0.7  # radians, that the handle is off: it is swung into line first


def haul(agent: Body, cube: Body, target: Point, *, push: bool) -> Action:
    """Moves a cube that the agent holds towards a point, and the handle into line with the way there.

    Args:
        agent: who holds the cube.
        cube: its velocity decides when to brake.
        target: of the cube.
        push: the agent is behind the cube; otherwise before it.
    """
    x, y = target[0] - cube.x, target[1] - cube.y
    sign = 1 if push else -1
    off = wrapped(yaw_towards(sign * x, sign * y) - agent.yaw) if math.hypot(x, y) > _NEAR else 0.0
    left, _ = _in_frame_of(agent, x, y)
    speed = 0.0 if abs(off) > _ASKEW else min(_FASTEST, math.sqrt(_BRAKING * max(abs(left) - 0.1, 0)))
    current, _ = _in_frame_of(agent, *cube.velocity)
    ahead = _limited((math.copysign(speed, left) - current) / _SPEED_PER_AMOUNT)
    across = _limited(_ACROSS[push] * off) if abs(off) > _SLACK[push] else 0.0
    amount, angle = _move(ahead, across)
    return amount, angle, _turn(20 * off), 0


def _limited(amount: float) -> float:
    return min(max(amount, -3.0), 3.0)
