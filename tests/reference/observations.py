"""What agents are told about themselves, their partners, their room and its door."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tests.reference import constants as c
from tests.reference.boxes import yaw_of
from tests.reference.levels import cubes_of_room

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Situation:
    """The part of N worlds' state that observations depend on."""

    agent_positions: Floats  # [N, A, 3]
    agent_rotations: Floats  # [N, A, 4]
    agent_max_y: Floats  # [N, A]
    agent_grabs: Integers  # [N, A], -1: nothing
    cube_positions: Floats  # [N, C, 3]
    button_positions: Floats  # [N, 6, 3]
    door_positions: Floats  # [N, 3, 3]
    door_open: Integers  # [N, 3]

    @property
    def rooms(self) -> Integers:
        """The room each agent is in, [N, A]."""
        return np.clip(np.trunc(self.agent_positions[:, :, 1] / c.ROOM_LENGTH), 0, c.ROOMS - 1).astype(np.int64)


def polar(situation: Situation, agent: int, targets: Floats) -> Floats:
    """Distance / 40 and bearing / pi (clockwise from forward) of targets [N, ..., 3], [N, ..., 2]."""
    shape = (len(targets), *(1,) * (targets.ndim - 2))
    yaw = yaw_of(situation.agent_rotations[:, agent]).reshape(shape)
    offset = targets - situation.agent_positions[:, agent].reshape((*shape, 3))
    right = np.cos(yaw) * offset[..., 0] + np.sin(yaw) * offset[..., 1]
    forward = -np.sin(yaw) * offset[..., 0] + np.cos(yaw) * offset[..., 1]
    return np.stack([np.hypot(right, forward) / c.WORLD_LENGTH, np.arctan2(right, forward) / np.pi], axis=-1)


def self_observations(situation: Situation) -> Floats:
    position, room = situation.agent_positions, situation.rooms
    columns = [
        position[:, :, 0] / (c.WORLD_WIDTH / 2),
        (position[:, :, 1] - room * c.ROOM_LENGTH) / c.ROOM_LENGTH,
        position[:, :, 0] / c.WORLD_LENGTH,
        position[:, :, 1] / c.WORLD_LENGTH,
        position[:, :, 2] / c.WORLD_LENGTH,
        situation.agent_max_y / c.WORLD_LENGTH,
        yaw_of(situation.agent_rotations) / np.pi,
        situation.agent_grabs >= 0,
    ]
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)


def partner_observations(situation: Situation) -> Floats:
    count, num_agents, _ = situation.agent_positions.shape
    result = np.zeros((count, num_agents, num_agents - 1, 3))
    for agent in range(num_agents):
        others = [other for other in range(num_agents) if other != agent]
        result[:, agent, :, :2] = polar(situation, agent, situation.agent_positions[:, others])
        result[:, agent, :, 2] = situation.agent_grabs[:, others] >= 0
    return result


def room_entity_observations(situation: Situation) -> Floats:
    count, num_agents, _ = situation.agent_positions.shape
    result = np.tile(np.array([0.0, 1.0, 0.0]), (count, num_agents, c.ROOM_SLOTS, 1))
    for agent in range(num_agents):
        for room in range(c.ROOMS):
            here = situation.rooms[:, agent] == room
            numbers = list(cubes_of_room(num_agents, room))
            buttons = situation.button_positions[:, 2 * room : 2 * room + 2]
            cubes = situation.cube_positions[:, numbers]
            seen = polar(situation, agent, np.concatenate([buttons, cubes], axis=1))
            kinds = np.array([c.BUTTON, c.BUTTON] + [c.CUBE] * len(numbers)) / 6
            result[here, agent, : len(kinds), :2] = seen[here]
            result[here, agent, : len(kinds), 2] = kinds
    return result


def door_observations(situation: Situation) -> Floats:
    count, num_agents, _ = situation.agent_positions.shape
    result = np.zeros((count, num_agents, 3))
    rows = np.arange(count)
    for agent in range(num_agents):
        room = situation.rooms[:, agent]
        result[:, agent, :2] = polar(situation, agent, situation.door_positions[rows, room])
        result[:, agent, 2] = situation.door_open[rows, room]
    return result


def flat_size(num_agents: int) -> int:
    return 8 + 3 * (num_agents - 1) + 3 * c.ROOM_SLOTS + 3 + 2 * c.LIDAR_RAYS + 1 + 1
