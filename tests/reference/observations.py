"""What agents are told about themselves, their partners, their room and its door."""

from dataclasses import dataclass

import numpy as np
from tests.reference import constants as c
from tests.reference.boxes import yaw_of
from tests.reference.rules import Terms


@dataclass(frozen=True)
class Situation:
    """The part of N worlds' state that observations depend on."""

    agent_positions: np.ndarray  # [N, A, 3]
    agent_rotations: np.ndarray  # [N, A, 4]
    agent_max_y: np.ndarray  # [N, A]
    agent_grabs: np.ndarray  # [N, A], -1: nothing
    cube_positions: np.ndarray  # [N, C, 3]
    button_positions: np.ndarray  # [N, K, 3]
    door_positions: np.ndarray  # [N, D, 3]
    door_open: np.ndarray  # [N, D]
    terms: Terms | None = None  # None: the reference's

    @property
    def rules(self):
        return self.terms or Terms(*self.agent_positions.shape[:2])

    @property
    def rooms(self):
        """The room each agent is in, [N, A]."""
        return self.rules.room_of(self.agent_positions[:, :, 1])


def polar(situation, agent, targets):
    """Distance / 40 and bearing / pi (clockwise from forward) of targets [N, ..., 3], [N, ..., 2]."""
    shape = (len(targets), *(1,) * (targets.ndim - 2))
    yaw = yaw_of(situation.agent_rotations[:, agent]).reshape(shape)
    offset = targets - situation.agent_positions[:, agent].reshape((*shape, 3))
    right = np.cos(yaw) * offset[..., 0] + np.sin(yaw) * offset[..., 1]
    forward = -np.sin(yaw) * offset[..., 0] + np.cos(yaw) * offset[..., 1]
    return np.stack([np.hypot(right, forward) / c.WORLD_LENGTH, np.arctan2(right, forward) / np.pi], axis=-1)


def self_observations(situation):
    position, rooms, rules = situation.agent_positions, situation.rooms, situation.rules
    start, end = rules.of_rooms(rules.starts, rooms), rules.of_rooms(rules.ends, rooms)
    columns = [
        position[:, :, 0] / (c.WORLD_WIDTH / 2), (position[:, :, 1] - start) / (end - start),
        position[:, :, 0] / c.WORLD_LENGTH, position[:, :, 1] / c.WORLD_LENGTH, position[:, :, 2] / c.WORLD_LENGTH,
        situation.agent_max_y / c.WORLD_LENGTH, yaw_of(situation.agent_rotations) / np.pi, situation.agent_grabs >= 0,
    ]  # fmt: skip
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)


def partner_observations(situation):
    count, num_agents, _ = situation.agent_positions.shape
    result = np.zeros((count, num_agents, num_agents - 1, 3))
    for agent in range(num_agents):
        others = [other for other in range(num_agents) if other != agent]
        result[:, agent, :, :2] = polar(situation, agent, situation.agent_positions[:, others])
        result[:, agent, :, 2] = situation.agent_grabs[:, others] >= 0
    return result


def _seen(situation, choices, targets, flags):
    """Of each agent's choices [N, A, S] among targets [N, T, 3]: distance, bearing and flag; (0, 1, 0) for -1."""
    worlds, result = np.arange(len(choices))[:, None], np.zeros((*choices.shape, 3))
    for agent in range(choices.shape[1]):
        chosen = choices[:, agent]
        result[:, agent, :, :2] = polar(situation, agent, targets[worlds, chosen])
        result[:, agent, :, 2] = flags[worlds, chosen]
    result[choices < 0] = (0.0, 1.0, 0.0)
    return result


def room_entity_observations(situation):
    buttons, cubes = situation.button_positions, situation.cube_positions
    targets = np.concatenate([buttons, cubes], axis=1)
    kinds = np.array([c.BUTTON] * buttons.shape[1] + [c.CUBE] * cubes.shape[1]) / 6
    choices = situation.rules.of_rooms(situation.rules.things, situation.rooms)
    return _seen(situation, choices, targets, np.broadcast_to(kinds, targets.shape[:2]))


def door_observations(situation):
    choices = situation.rules.of_rooms(situation.rules.room_doors, situation.rooms)[:, :, None]
    return _seen(situation, choices, situation.door_positions, situation.door_open.astype(np.float64))[:, :, 0]


def flat_size(num_agents):
    return 8 + 3 * (num_agents - 1) + 3 * c.ROOM_SLOTS + 3 + 2 * c.LIDAR_RAYS + 1 + 1
