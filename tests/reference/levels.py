"""Level generation: 25 uniforms become a level of two agents; other numbers of agents follow doorstep's own rules."""

from dataclasses import dataclass

import numpy as np
from tests.reference import constants as c
from tests.reference.threefry import episode_key, uniforms

SPAWN_ROW = 2.625  # metres; a little more than the widest agent (2.6131) seen along an axis
HELPER_CUBE = (-3.5, 1.6)
HELPER_CUBE_ELSEWHERE = (-8.0, 1.6)


@dataclass(frozen=True)
class Levels:
    """Levels of N worlds with A agents. Boxes have their bottom centre as position, cubes their centre."""

    agent_positions: np.ndarray  # [N, A, 3]
    agent_yaws: np.ndarray  # [N, A]
    door_positions: np.ndarray  # [N, 3, 3]
    button_positions: np.ndarray  # [N, 6, 3]
    cube_positions: np.ndarray  # [N, C, 3]: second room, third room, then a lone agent's in the first
    wall_positions: np.ndarray  # [N, 9, 3]: behind, right, left, then left and right of each door
    wall_sizes: np.ndarray  # [N, 9, 3]
    undecided: np.ndarray  # [N]: a comparison so close that float32 may decide it otherwise


def cubes_of_room(num_agents, room):
    """Numbers of the cubes a level puts into a room; a lone agent's extra cube comes last."""
    return (range(5, 6 if num_agents == 1 else 5), range(3), range(3, 5))[room]


def num_cubes(num_agents):
    return 6 if num_agents == 1 else 5


def generate(seed, worlds, episodes, num_agents=2):
    """The levels of (world, episode) pairs; worlds and episodes broadcast to [N]."""
    world_ids, episode_ids = np.broadcast_arrays(np.atleast_1d(worlds), np.atleast_1d(episodes))
    draws = uniforms(episode_key(seed, world_ids, episode_ids), 3 * num_agents + 19)
    agents, yaws, undecided = _spawn(draws[:, : 3 * num_agents].reshape(-1, num_agents, 3))
    doors, buttons, cubes = _rooms(draws[:, 3 * num_agents :])
    if num_agents == 1:
        helper, unsure = _helper_cube(buttons[:, 0])
        cubes = np.concatenate([cubes, helper[:, None]], axis=1)
        undecided = undecided | unsure
    walls, sizes = _walls(doors[:, :, 0])
    return Levels(agents, yaws, doors, buttons, cubes, walls, sizes, undecided)


def _between(uniform, low, high):
    return uniform * (high - low) + low


def _spawn(draws):
    count, num_agents, _ = draws.shape
    x = draws[:, :, 0] * 7.5 - 3.75 + np.where(np.arange(num_agents) % 2 == 0, 5.0, -5.0)
    y, yaw = _between(draws[:, :, 1], 1.1, 2.0), draws[:, :, 2] * (np.pi / 4) - np.pi / 8
    extent, undecided = np.abs(np.cos(yaw)) + np.abs(np.sin(yaw)), np.zeros(count, dtype=bool)
    if num_agents != 2:
        for world in range(count):
            undecided[world] = _spread(x[world], y[world], extent[world])
    return np.stack([x, y, np.zeros_like(x)], axis=-1), yaw, undecided


def _spread(x, y, extent):
    """Moves agents that would overlap an earlier one to later rows, in place; True if a comparison was close."""
    close = False
    for agent in range(1, len(x)):
        for row in range(4):
            candidate = y[agent] if row == 0 else 2.0 + SPAWN_ROW * row
            reach = extent[:agent] + extent[agent]
            gap = np.maximum(np.abs(x[:agent] - x[agent]), np.abs(y[:agent] - candidate)) - reach
            close = close or bool(np.any(np.abs(gap) < 1e-5))
            if np.all(gap >= 0):
                break
        y[agent] = candidate
    return close


def _rooms(draws):
    """Doors, buttons and cubes from 19 draws: 5 of two buttons, 5 of cubes before the door, 9 of free cubes."""
    ends = c.ROOM_LENGTH * np.arange(1, c.ROOMS + 1)
    starts = ends - c.ROOM_LENGTH
    door_x = _between(draws[:, [0, 5, 10]], 0.75 * c.DOOR_SLOT, c.WORLD_WIDTH - 0.75 * c.DOOR_SLOT) - c.WORLD_WIDTH / 2
    doors = np.zeros((len(draws), 3, 3))
    doors[:, :, 0], doors[:, :, 1] = door_x, ends - 0.5

    buttons = np.zeros((len(draws), 6, 3))
    ranges = (
        ((-8.7, -1.3), (1.3, 8.7), (starts[0] + c.ROOM_LENGTH / 4, ends[0] - 1 - c.BUTTON_SIDE / 2)),
        ((-8.7, -6.3), (6.3, 8.7), (starts[1] + 1.3, ends[1] - c.ROOM_LENGTH / 4)),
        ((-8.7, -6.3), (6.3, 8.7), (starts[2] + 1.3, ends[2] - c.ROOM_LENGTH / 4)),
    )
    for room, (left, right, along) in enumerate(ranges):
        for which, across in enumerate((left, right)):
            first = 5 * room + 1 + 2 * which
            buttons[:, 2 * room + which, 0] = _between(draws[:, first], *across)
            buttons[:, 2 * room + which, 1] = _between(draws[:, first + 1], *along)

    cubes = np.zeros((len(draws), 5, 3))
    cubes[:, :, 2] = c.CUBE_SIDE / 2
    cubes[:, :3, 0] = door_x[:, 1, None] + np.array([-3.0, 0.0, 3.0])
    cubes[:, :3, 1] = ends[1] - 2.5
    for which, across in enumerate(((-5.0, -1.5), (1.5, 5.0))):
        cubes[:, 3 + which, 0] = _between(draws[:, 15 + 2 * which], *across)
        cubes[:, 3 + which, 1] = _between(draws[:, 16 + 2 * which], starts[2] + 2, ends[2] - 3)
    return doors, buttons, cubes


def _helper_cube(first_button):
    """One agent cannot press two buttons: it finds a cube, beside the first button if that lies under the cube."""
    reach = (c.CUBE_SIDE + c.BUTTON_SIDE) / 2
    gap = np.max(np.abs(first_button[:, :2] - np.array(HELPER_CUBE)), axis=1) - reach
    place = np.where((gap < 0)[:, None], np.array(HELPER_CUBE_ELSEWHERE), np.array(HELPER_CUBE))
    return np.concatenate([place, np.full((len(place), 1), c.CUBE_SIDE / 2)], axis=1), np.abs(gap) < 1e-5


def _walls(door_x):
    positions, sizes = np.zeros((len(door_x), 9, 3)), np.zeros((len(door_x), 9, 3))
    positions[:, 0], sizes[:, 0] = (0, -0.5, 0), (22, 1, c.WALL_HEIGHT)
    positions[:, 1], sizes[:, 1] = (10.5, 20, 0), (1, 40, c.WALL_HEIGHT)
    positions[:, 2], sizes[:, 2] = (-10.5, 20, 0), (1, 40, c.WALL_HEIGHT)
    for room in range(c.ROOMS):
        from_left = door_x[:, room] + c.WORLD_WIDTH / 2
        for which, length in enumerate((from_left - c.DOOR_SLOT / 2, c.WORLD_WIDTH - from_left - c.DOOR_SLOT / 2)):
            slot = 3 + 2 * room + which
            positions[:, slot, 0] = (length - c.WORLD_WIDTH) / 2 * (1 if which == 0 else -1)
            positions[:, slot, 1] = c.ROOM_LENGTH * (room + 1) - 0.5
            sizes[:, slot] = np.stack([length, np.ones_like(length), np.full_like(length, c.END_WALL_HEIGHT)], axis=-1)
    return positions, sizes
