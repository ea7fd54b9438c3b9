"""Lidar and grabbing by brute force: every ray against every box, in the box's own frame."""

from dataclasses import dataclass

import numpy as np
from tests.reference import constants as c
from tests.reference.boxes import rotation_matrices, yaw_of


@dataclass(frozen=True)
class Boxes:
    """M solid boxes in each of N worlds; kind 0 is no box."""

    centres: np.ndarray  # [N, M, 3]
    rotations: np.ndarray  # [N, M, 4]
    sizes: np.ndarray  # [N, M, 3]
    kinds: np.ndarray  # [N, M]

    def of_worlds(self, worlds):
        return Boxes(self.centres[worlds], self.rotations[worlds], self.sizes[worlds], self.kinds[worlds])


@dataclass(frozen=True)
class Hits:
    distances: np.ndarray  # [N, A, 30], 0 for a miss
    kinds: np.ndarray  # [N, A, 30]


def cast(agent_positions, agent_rotations, boxes, growth=0.0):
    """Casts every agent's 30 rays. Every box is first grown by `growth` on each side, to find close calls."""
    angles = 2 * np.pi * np.arange(c.LIDAR_RAYS) / c.LIDAR_RAYS
    distances, nearest = _first_boxes(agent_positions, agent_rotations, angles, boxes, growth)
    hit = distances <= c.LIDAR_RANGE
    kinds = boxes.kinds[np.arange(len(nearest))[:, None, None], nearest]
    return Hits(np.where(hit, distances, 0.0), np.where(hit, kinds, 0))


def cubes_ahead(agent_positions, agent_rotations, boxes, growth=0.0):
    """The cube that each agent would grab, as an index of `boxes`, [N, A]; -1: nothing within reach, or no cube."""
    distances, nearest = _first_boxes(agent_positions, agent_rotations, np.zeros(1), boxes, growth)
    is_cube = boxes.kinds[np.arange(len(nearest))[:, None, None], nearest] == c.CUBE
    return np.where(is_cube & (distances <= c.GRAB_RANGE + growth), nearest, -1)[:, :, 0]


def _first_boxes(agent_positions, agent_rotations, angles, boxes, growth):
    """How far each ray goes and into which box, [N, A, rays]; counter-clockwise from forward, infinite for a miss."""
    found = []
    for agent in range(agent_positions.shape[1]):
        heading = yaw_of(agent_rotations[:, agent])[:, None] + angles + np.pi / 2
        directions = np.stack([np.cos(heading), np.sin(heading), np.zeros_like(heading)], axis=-1)
        origins = agent_positions[:, agent] + np.array([0.0, 0.0, c.EYE_HEIGHT])
        entry = entry_distances(origins, directions, boxes, growth)
        nearest = np.argmin(entry, axis=-1)
        found.append((np.take_along_axis(entry, nearest[..., None], axis=-1)[..., 0], nearest))
    return np.stack([distances for distances, _ in found], axis=1), np.stack([nearest for _, nearest in found], axis=1)


def entry_distances(origins, directions, boxes, growth=0.0):
    """Where rays enter boxes, [N, rays, boxes]; infinite for a miss and for a ray that starts inside."""
    axes, half = rotation_matrices(boxes.rotations), boxes.sizes / 2 + growth
    local_origin = np.einsum("nmij,nmi->nmj", axes, origins[:, None] - boxes.centres)[:, None]
    local_direction = np.einsum("nmij,nri->nrmj", axes, directions)
    parallel = np.abs(local_direction) < 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (-half[:, None] - local_origin) / local_direction
        second = (half[:, None] - local_origin) / local_direction
    inside_slab = np.abs(local_origin) < half[:, None]
    near = np.where(parallel, np.where(inside_slab, -np.inf, np.inf), np.minimum(first, second))
    far = np.where(parallel, np.where(inside_slab, np.inf, -np.inf), np.maximum(first, second))
    enter, leave = near.max(axis=-1), far.min(axis=-1)
    return np.where((boxes.kinds > 0)[:, None] & (enter <= leave) & (enter > 0), enter, np.inf)
