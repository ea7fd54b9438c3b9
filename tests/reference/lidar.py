"""Lidar by brute force: every ray against every box, in the box's own frame."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tests.reference import constants as c
from tests.reference.boxes import rotation_matrices, yaw_of

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Boxes:
    """M solid boxes in each of N worlds; kind 0 is no box."""

    centres: Floats  # [N, M, 3]
    rotations: Floats  # [N, M, 4]
    sizes: Floats  # [N, M, 3]
    kinds: npt.NDArray[np.int64]  # [N, M]


@dataclass(frozen=True)
class Hits:
    distances: Floats  # [N, A, 30], 0 for a miss
    kinds: npt.NDArray[np.int64]  # [N, A, 30]


def cast(agent_positions: Floats, agent_rotations: Floats, boxes: Boxes, growth: float = 0.0) -> Hits:
    """Casts every agent's 30 rays. Every box is first grown by `growth` on each side, to find close calls."""
    count, num_agents, _ = agent_positions.shape
    axes = rotation_matrices(boxes.rotations)
    half = boxes.sizes / 2 + growth
    distances = np.zeros((count, num_agents, c.LIDAR_RAYS))
    kinds = np.zeros((count, num_agents, c.LIDAR_RAYS), dtype=np.int64)
    angles = 2 * np.pi * np.arange(c.LIDAR_RAYS) / c.LIDAR_RAYS + np.pi / 2
    for agent in range(num_agents):
        heading = yaw_of(agent_rotations[:, agent])[:, None] + angles
        directions = np.stack([np.cos(heading), np.sin(heading), np.zeros_like(heading)], axis=-1)
        origins = agent_positions[:, agent] + np.array([0.0, 0.0, c.EYE_HEIGHT])
        entry = _entry_distances(origins, directions, boxes.centres, axes, half)
        entry = np.where((boxes.kinds > 0)[:, None, :], entry, np.inf)
        nearest = np.argmin(entry, axis=-1)
        distance = np.take_along_axis(entry, nearest[..., None], axis=-1)[..., 0]
        hit = distance <= c.LIDAR_RANGE
        distances[:, agent] = np.where(hit, distance, 0.0)
        kinds[:, agent] = np.where(hit, np.take_along_axis(boxes.kinds, nearest, axis=1), 0)
    return Hits(distances, kinds)


def _entry_distances(origins: Floats, directions: Floats, centres: Floats, axes: Floats, half: Floats) -> Floats:
    """Where rays enter boxes, [N, rays, boxes]; infinite for a miss and for a ray that starts inside."""
    local_origin = np.einsum("nmij,nmi->nmj", axes, origins[:, None] - centres)[:, None]
    local_direction = np.einsum("nmij,nri->nrmj", axes, directions)
    parallel = np.abs(local_direction) < 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (-half[:, None] - local_origin) / local_direction
        second = (half[:, None] - local_origin) / local_direction
    inside_slab = np.abs(local_origin) < half[:, None]
    near = np.where(parallel, np.where(inside_slab, -np.inf, np.inf), np.minimum(first, second))
    far = np.where(parallel, np.where(inside_slab, np.inf, -np.inf), np.maximum(first, second))
    enter, leave = near.max(axis=-1), far.min(axis=-1)
    return np.where((enter <= leave) & (enter > 0), enter, np.inf)
