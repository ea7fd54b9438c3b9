"""Cameras that every agent of a simulator carries: what they see becomes tensors."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from doorstep._arguments import check_choice, check_flag, check_integer, refuse
from doorstep._native import CAMERA_TENSORS, MAX_RESOLUTION, Renderer
from doorstep.errors import ArgumentError

RendererName: TypeAlias = Literal["auto", "raycast", "embree", "vulkan"]

OUTPUTS = tuple(row.name for row in CAMERA_TENSORS)
RENDERERS = tuple(renderer.name.lower() for renderer in Renderer)
LARGEST = float(np.finfo(np.float32).max)
UNIT_TOLERANCE = 1e-3  # of a quaternion's squared length


@dataclass(frozen=True, kw_only=True)
class Cameras:
    """How every agent sees its world: `doorstep.Simulator(..., cameras=doorstep.Cameras(...))`.

    The views are drawn at the end of every step, reset, refresh and restore, into tensors of the simulator: `sim.rgb`,
    `sim.depth`, `sim.segmentation` and `sim.normals`, each [N, A, height, width, ...].

    >>> import doorstep
    >>> sim = doorstep.Simulator(2, cameras=doorstep.Cameras(width=32, height=24, segmentation=True))
    >>> sim.rgb
    Tensor(rgb, uint8 [2, 2, 24, 32, 4], cpu, read-only)
    >>> sim.depth.shape, sim.segmentation.shape
    ((2, 2, 24, 32, 1), (2, 2, 24, 32, 2))
    >>> sim.step()
    >>> bool((sim.rgb.to_numpy()[..., 3] == 255).all())
    True

    Attributes:
        width: columns of pixels, 1 to 4096.
        height: rows of pixels, 1 to 4096.
        fov: vertical angle of the view in degrees, more than 0 and less than 180.
        rgb: make `rgb`, uint8 [N, A, H, W, 4]: red, green, blue, 255.
        depth: make `depth`, float32 [N, A, H, W, 1]: metres along the camera's forward axis; 0 where there is sky.
        segmentation: make `segmentation`, uint8 [N, A, H, W, 2]: entity kind (0 sky, 6 floor) and slot.
        normals: make `normals`, float32 [N, A, H, W, 3]: unit normals of the surfaces in world axes; 0 for the sky.
        position: of the camera in the agent's frame, metres: x to its right, y forward, z up from the floor.
        rotation: unit quaternion (w, x, y, z) relative to the agent; (1, 0, 0, 0) looks along its forward axis.
        renderer: what draws. "raycast": doorstep's own ray caster, the same bits on the CPU and on GPUs; "embree":
            Intel Embree, on the CPU; "vulkan": a rasteriser on any Vulkan device. "auto" is "raycast".
        material: HLSL source of a material, or the path of a file with it; for "vulkan" only.

    Raises:
        ArgumentError: a value is out of range; the message names it, its value and the range.
    """

    width: int = 64
    height: int = 64
    fov: float = 100.0
    rgb: bool = True
    depth: bool = True
    segmentation: bool = False
    normals: bool = False
    position: Sequence[float] = (0.0, 0.0, 1.5)
    rotation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    renderer: RendererName = "auto"
    material: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        checked = {
            "width": check_integer("width", self.width, 1, MAX_RESOLUTION),
            "height": check_integer("height", self.height, 1, MAX_RESOLUTION),
            "fov": _check_fov(self.fov),
            **{name: check_flag(name, getattr(self, name)) for name in OUTPUTS},
            "position": _check_numbers("position", self.position, 3, "finite numbers (x, y, z)"),
            "rotation": _check_rotation(self.rotation),
            "renderer": check_choice("renderer", self.renderer, RENDERERS),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not self.outputs:
            refuse("rgb", "True, or depth, segmentation or normals", False, "cameras make at least one tensor")
        self._check_material()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tensors that these cameras make."""
        return tuple(name for name in OUTPUTS if getattr(self, name))

    def _check_material(self) -> None:
        if self.material is None:
            return
        if not isinstance(self.material, (str, os.PathLike)):
            refuse("material", "HLSL source (str), the path of a file with it, or None", self.material)
        if self.renderer != "vulkan":
            raise ArgumentError(
                f"a material is given with renderer={self.renderer!r}; only 'vulkan' takes one",
                argument="material",
                hint='pass renderer="vulkan"',
            )


def settings_of(cameras: Cameras) -> dict[str, Any]:
    """The fields of ds_cameras_config."""
    source, name = _read_material(cameras.material)
    return {
        "renderer": Renderer[cameras.renderer.upper()],
        "width": cameras.width,
        "height": cameras.height,
        "vertical_fov": cameras.fov,
        "position": tuple(cameras.position),
        "rotation": tuple(cameras.rotation),
        "material": source,
        "material_name": name,
    }


def _read_material(material: str | os.PathLike[str] | None) -> tuple[bytes | None, bytes | None]:
    """Source and name, as UTF-8."""
    if material is None:
        return None, None
    if isinstance(material, str):
        return material.encode(), None
    path = os.fspath(material)
    try:
        with open(path, "rb") as file:
            return file.read(), os.fsencode(path)
    except OSError as error:
        raise ArgumentError(f"material {path!r} cannot be read: {error.strerror}", argument="material") from error


def _check_fov(value: object) -> float:
    requirement = "a number of degrees, more than 0 and less than 180"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        refuse("fov", requirement, value)
    if not (0 < value < 180 and 0 < np.float32(value) < 180):
        refuse("fov", requirement, value)
    return float(value)


def _check_numbers(name: str, value: object, count: int, requirement: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(number) for number in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        refuse(name, requirement, value)
    if len(numbers) != count or not all(abs(number) <= LARGEST for number in numbers):
        refuse(name, requirement, value)
    return numbers


def _check_rotation(value: object) -> tuple[float, ...]:
    requirement = "a unit quaternion (w, x, y, z)"
    numbers = _check_numbers("rotation", value, 4, requirement)
    squared = math.fsum(number * number for number in numbers)
    if abs(squared - 1) > UNIT_TOLERANCE / 2:  # the library looks again, in single precision
        refuse("rotation", requirement, value, "divide it by its length")
    return tuple(number / math.sqrt(squared) for number in numbers)
