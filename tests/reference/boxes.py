"""Boxes in space: rotations, corners, bounds, and how deep two of them overlap."""

import numpy as np

CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


def rotation_matrices(quaternions):
    """[..., 4] unit quaternions (w, x, y, z) to [..., 3, 3]; the columns are the box's axes in the world."""
    w, x, y, z = np.moveaxis(np.asarray(quaternions, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def yaw_of(quaternions):
    """Yaw of a rotation about +z, in (-pi, pi]."""
    rotation = np.asarray(quaternions, dtype=np.float64)
    return np.asarray(np.pi - (np.pi - 2 * np.arctan2(rotation[..., 3], rotation[..., 0])) % (2 * np.pi))


def yaw_quaternion(yaw):
    half = np.asarray(yaw, dtype=np.float64) / 2
    return np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=-1)


def random_quaternions(generator, shape):
    """Rotations drawn evenly from all rotations."""
    raw = generator.normal(size=(*shape, 4))
    return np.asarray(raw / np.linalg.norm(raw, axis=-1, keepdims=True))


def corners(centres, quaternions, sizes):
    """The 8 corners of each box, [..., 8, 3]."""
    local = np.asarray(sizes, dtype=np.float64)[..., None, :] * CORNERS
    turned = local @ np.swapaxes(rotation_matrices(quaternions), -1, -2)
    return np.asarray(turned + np.asarray(centres, dtype=np.float64)[..., None, :])


def overlap_depth(centre_a, rotation_a, size_a, centre_b, rotation_b, size_b):
    """Depth of the overlap of two boxes by the separating axis theorem; negative when apart. Broadcasts."""
    offset = np.asarray(centre_b, dtype=np.float64) - np.asarray(centre_a, dtype=np.float64)
    axes_a, axes_b = rotation_matrices(rotation_a), rotation_matrices(rotation_b)
    half_a, half_b = np.asarray(size_a, dtype=np.float64) / 2, np.asarray(size_b, dtype=np.float64) / 2
    candidates = [axes_a[..., i] for i in range(3)] + [axes_b[..., i] for i in range(3)]
    candidates += [np.cross(axes_a[..., i], axes_b[..., j]) for i in range(3) for j in range(3)]
    depth = np.inf
    for axis in candidates:
        length = np.linalg.norm(axis, axis=-1)
        reach = sum(np.abs(np.sum(axes_a[..., i] * axis, axis=-1)) * half_a[..., i] for i in range(3))
        reach = reach + sum(np.abs(np.sum(axes_b[..., i] * axis, axis=-1)) * half_b[..., i] for i in range(3))
        gap = np.abs(np.sum(offset * axis, axis=-1))
        usable = length > 1e-6  # parallel edges span no axis of their own
        depth = np.minimum(depth, np.where(usable, (reach - gap) / np.where(usable, length, 1.0), np.inf))
    return np.asarray(depth)
