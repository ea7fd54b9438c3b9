"""Cameras that every agent of a simulator carries: their views are tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from numpy.typing import NDArray

from doorstep._arguments import (
    check_between,
    check_choice,
    check_flag,
    check_integer,
    check_rotation,
    check_vector,
    refuse,
    to_single,
)
from doorstep._configs import Anything, Config
from doorstep._native import CAMERA_TENSORS, MATERIAL_RENDERERS, MAX_RESOLUTION, Renderer, RendererName
from doorstep.errors import ArgumentError

OUTPUTS = tuple(row.name for row in CAMERA_TENSORS)
RENDERERS = tuple(renderer.name.lower() for renderer in Renderer)
UNIT_TOLERANCE = 5e-4  # of a quaternion's squared length; half of the library's, which computes in single precision
MIN_FOV = 0.1  # degrees; below, single precision decides what is seen, and renderers differ


@dataclass(frozen=True, kw_only=True)
class Cameras(Config):
    """The cameras of all agents, alike: `doorstep.Simulator(..., cameras=doorstep.Cameras(...))`.

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
        fov: vertical angle of the view in degrees, at least 0.1 and less than 180.
        rgb: make `rgb`, uint8 [N, A, H, W, 4]: red, green, blue, 255.
        depth: make `depth`, float32 [N, A, H, W, 1]: metres along the camera's forward axis; 0 for the sky.
        segmentation: make `segmentation`, uint8 [N, A, H, W, 2]: entity kind (0 sky, 6 floor) and slot.
        normals: make `normals`, float32 [N, A, H, W, 3]: unit normals of the surfaces in world axes; 0 for the sky.
        position: of the camera in the agent's frame, metres: x to its right, y forward, z up from the floor.
        rotation: unit quaternion (w, x, y, z) relative to the agent; (1, 0, 0, 0) looks along its forward axis.
        renderer: draws the views. "raycast": doorstep's own ray caster, the same bits on the CPU and on GPUs; "embree":
            Intel Embree, on the CPU; "vulkan": a rasteriser on any Vulkan device. "auto" is "raycast".
        material: HLSL source of a material (str), or the path of its file (pathlib.Path); for "vulkan" only.

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
    position: Annotated[Sequence[float] | NDArray[Any], Anything()] = (0.0, 0.0, 1.5)
    rotation: Annotated[Sequence[float] | NDArray[Any], Anything()] = (1.0, 0.0, 0.0, 0.0)
    renderer: RendererName = "auto"
    material: Annotated[str | os.PathLike[str] | None, Anything()] = None

    def __post_init__(self) -> None:
        checked = {
            "width": check_integer("width", self.width, 1, MAX_RESOLUTION),
            "height": check_integer("height", self.height, 1, MAX_RESOLUTION),
            "fov": _check_fov(self.fov),
            **{name: check_flag(name, getattr(self, name)) for name in OUTPUTS},
            "position": check_vector("position", self.position, 3, "3 finite numbers (x, y, z)"),
            "rotation": check_rotation("rotation", self.rotation, UNIT_TOLERANCE),
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
            refuse("material", "HLSL source (str), the path of a file with it (pathlib.Path), or None", self.material)
        if self.renderer not in MATERIAL_RENDERERS:
            raise ArgumentError(
                f"a material is given with renderer={self.renderer!r}; only {MATERIAL_RENDERERS[0]!r} has materials",
                argument="material",
                hint=f'pass renderer="{MATERIAL_RENDERERS[0]}"',
            )
        if isinstance(self.material, str):
            _check_source(self.material)


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
            source = file.read()
    except (OSError, ValueError) as error:  # ValueError: no file can have that name
        reason = error.strerror if isinstance(error, OSError) else error
        raise ArgumentError(f"material {path!r} cannot be read: {reason}", argument="material") from error
    if b"\0" in source:
        raise ArgumentError(f"material {path!r} is not text: it has a byte 0", argument="material")
    return source, os.fsencode(path)


def _check_fov(value: object) -> float:
    fov = check_between("fov", value, 180, "degrees")
    if to_single(fov) < to_single(MIN_FOV):  # the library computes in single precision
        refuse("fov", f"a number of degrees, at least {MIN_FOV:g} and less than 180", value)
    return fov


def _check_source(text: str) -> None:
    """Refuses source that cannot be compiled, without a compiler."""
    if text.endswith(".hlsl") and "\n" not in text and "(" not in text:  # a source has a function
        refuse("material", "HLSL source, if it is a str", text, "a file is given as pathlib.Path(...)")
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        refuse("material", "text that can be written as UTF-8", text)
    if b"\0" in encoded:
        refuse("material", "text without the character 0", text)
