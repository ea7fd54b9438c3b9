"""The rules of a level: what agents are rewarded for, and the constants of its physics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from doorstep._arguments import refuse
from doorstep._configs import Checked, Number, Range
from doorstep.levels.numbers import NumberOrRange

LARGEST_REWARD = 1e6  # either sign; returns are sums in single precision

Reward: TypeAlias = Annotated[float, Number(-LARGEST_REWARD, LARGEST_REWARD, unit="reward")]


@dataclass(frozen=True)
class Rewards(Checked):
    """The reward of an agent per step. The defaults are the reference's.

    >>> from doorstep.levels import Rewards
    >>> Rewards.sparse().goal
    1.0

    Attributes:
        progress: per metre beyond its largest y so far.
        idle: in a step without progress.
        bonus_factor: of progress while the largest y of all other agents is within bonus_distance of its own.
        bonus_distance: metres, not negative.
        room: for every room that it enters for the first time.
        exit: when it is beyond the end of the last room for the first time.
        cube_approach: for all agents, per metre by which cubes come nearer to the buttons of doors that close again,
            and negative when they go away. Of all ways to give each button of such a door a cube of its own, the one
            with the smallest sum of distances counts; a cube that covers its button is at distance 0.
        goal: for all agents, in the step in which the goal ends the episode.
        max_y: metres; y beyond it is no progress.

    Raises:
        ArgumentError: a number is not within +-1e6, or the distance is negative; the message names the field.
    """

    progress: Reward = 0.05
    idle: Reward = -0.005
    bonus_factor: Reward = 1.25
    bonus_distance: Annotated[float, Number(0, LARGEST_REWARD, unit="metres")] = 2.0
    room: Reward = 0.0
    exit: Reward = 0.0
    cube_approach: Reward = 0.0
    goal: Reward = 0.0
    max_y: Annotated[float, Number(-LARGEST_REWARD, LARGEST_REWARD, unit="metres")] = 80.0

    @classmethod
    def sparse(cls, goal: float = 1.0) -> Rewards:
        """Nothing but the goal is rewarded."""
        return cls(progress=0.0, idle=0.0, bonus_factor=1.0, goal=goal)


def check_reward(reward: object, instead: str = "environments and train() take functions") -> Rewards | None:
    """The argument `reward` of what makes worlds; instead: what to do with a function."""
    if reward is not None and not isinstance(reward, Rewards):
        hint = instead if callable(reward) else ""
        refuse("reward", "doorstep.levels.Rewards, or None for the rewards of the levels", reward, hint)
    return reward


@dataclass(frozen=True)
class Physics(Checked):
    """Constants of the physics: each a number, or a range (low, high) from which it is drawn at every reset.

    The defaults are the reference's.

    >>> from doorstep.levels import Physics
    >>> Physics(cube_mass=(10, 20)).cube_mass
    (10.0, 20.0)

    Attributes:
        cube_mass: kilograms, 1 to 1000. An agent has 1 kg.
        friction: factor of all coefficients of friction, 0 to 2.
        walking_force: newtons at move amount 3, 0 to 2000; 1000 moves a free agent by a metre per step.
        turning_torque: newton metres at the hardest turn, 0 to 640; 320 turns a free agent by 27.4 degrees per step.
        door_speed: metres per second, 0.1 to 100.

    Raises:
        ArgumentError: a number is out of range, or a range is reversed; the message names the field.
    """

    cube_mass: Annotated[NumberOrRange, Range(Number(1, 1000, unit="kilograms"))] = 40 / 3
    friction: Annotated[NumberOrRange, Range(Number(0, 2, unit="times the usual friction"))] = 1.0
    walking_force: Annotated[NumberOrRange, Range(Number(0, 2000, unit="newtons"))] = 1000.0
    turning_torque: Annotated[NumberOrRange, Range(Number(0, 640, unit="newton metres"))] = 320.0
    door_speed: Annotated[NumberOrRange, Range(Number(0.1, 100, unit="metres per second"))] = 30.0


# What a level has unless it says otherwise.
REFERENCE_REWARDS = Rewards()
REFERENCE_PHYSICS = Physics()
