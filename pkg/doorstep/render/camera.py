"""Where a picture is taken from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_between, check_rotation, check_vector, refuse

Vector = NDArray[np.float64]

UNIT_TOLERANCE = 1e-3  # of a quaternion's length
_POINT = "3 finite numbers (x, y, z)"


@dataclass(frozen=True)
class CameraPose:
    """A camera for `Simulator.render`: where it stands and what it sees.

    >>> import doorstep
    >>> pose = doorstep.CameraPose.look_at((14.0, -8.0, 12.0), (0.0, 8.0, 0.0))
    >>> sim = doorstep.Simulator(1)
    >>> sim.render(camera=pose, width=320, height=240).shape
    (240, 320, 3)

    Args:
        position: of the eye, (x, y, z), metres.
        rotation: unit quaternion (w, x, y, z). (1, 0, 0, 0) looks along +y, with +z up and +x to the right.
        fov: vertical field of view in degrees, more than 0, less than 180.
        view_height: metres that the picture is high: the view is orthographic then, and `fov` has no meaning. None:
            perspective.

    Raises:
        ArgumentError: a value is out of range.
    """

    position: Sequence[float] | NDArray[Any]
    rotation: Sequence[float] | NDArray[Any] = (1.0, 0.0, 0.0, 0.0)
    fov: float = 60.0
    view_height: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", check_vector("position", self.position, 3, _POINT))
        object.__setattr__(self, "rotation", check_rotation("rotation", self.rotation, 2 * UNIT_TOLERANCE))
        object.__setattr__(self, "fov", check_between("fov", self.fov, 180, "degrees"))
        if self.view_height is not None:
            object.__setattr__(self, "view_height", check_between("view_height", self.view_height, 1e6, "metres"))

    @classmethod
    def look_at(
        cls,
        position: Sequence[float] | NDArray[Any],
        target: Sequence[float] | NDArray[Any],
        *,
        fov: float = 60.0,
        view_height: float | None = None,
    ) -> CameraPose:
        """A camera at `position` with `target` in the middle of the picture and +z up; looking straight down, +y up.

        Raises:
            ArgumentError: a value is out of range, or the target is where the camera is.
        """
        eye = np.array(check_vector("position", position, 3, _POINT))
        middle = np.array(check_vector("target", target, 3, _POINT))
        if np.linalg.norm(middle - eye) < 1e-6:
            refuse("target", "apart from the position of the camera", target)
        return cls(position, _rotation_towards(middle - eye), fov, view_height)


# ---- Rotations


def _rotation_towards(direction: Vector) -> list[float]:
    straight = float(np.hypot(direction[0], direction[1])) < 1e-6 * abs(float(direction[2]))
    return quaternion_of(*camera_axes(direction, (0.0, 1.0, 0.0) if straight else (0.0, 0.0, 1.0)))


def camera_axes(forward: Any, up: Any) -> tuple[Vector, Vector, Vector]:
    """The camera's right, forward and up, of which the last is as near as can be to the one given."""
    ahead = np.asarray(forward, np.float64) / np.linalg.norm(forward)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    return right, ahead, np.cross(right, ahead)


def quaternion_of(right: Vector, forward: Vector, up: Vector) -> list[float]:
    """Of the rotation that takes x, y, z to these axes.

    4 q q^T is linear in the matrix: the column of the largest component of q gives the others without cancellation.
    """
    (a, d, g), (b, e, h), (c, f, i) = right, forward, up
    products = np.array(
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, b + d, c + g],
            [c - g, b + d, 1 - a + e - i, f + h],
            [d - b, c + g, f + h, 1 - a - e + i],
        ]
    )
    column = products[int(np.argmax(np.diag(products)))]
    return (column / np.linalg.norm(column)).tolist()  # type: ignore[no-any-return]
