"""The peer of the renderers: every view through a scene of its own, built and thrown away (plain_embree.cpp)."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.cuda.stand_in_driver import FOLDER

from doorstep import Simulator

LIBRARY = FOLDER.parents[1] / "native" / "libplain_embree.so"  # as `make bench-render` builds it

FIELDS = (
    "body_positions",
    "body_rotations",
    "body_sizes",
    "body_kinds",
    "static_positions",
    "static_sizes",
    "static_kinds",
    "button_positions",
    "button_pressed",
)


class _PlainWorlds(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("num_agents", "num_bodies", "num_statics", "num_buttons")] + [
        (name, ctypes.c_void_p) for name in FIELDS
    ]


class PlainEmbree:
    """Draws the worlds of a simulator as they are now, on the calling thread.

    Attributes:
        rgb: uint8 [worlds, agents, height, width, 4].
        depth: float32 [worlds, agents, height, width, 1].
    """

    def __init__(self, sim: Simulator, *, width: int = 64, height: int = 64, fov: float = 100.0) -> None:
        self._draw = ctypes.CDLL(str(LIBRARY)).plain_embree_draw
        self._draw.argtypes = [
            ctypes.POINTER(_PlainWorlds),
            ctypes.c_int64,
            ctypes.c_int32,
            ctypes.c_int32,
            ctypes.c_float,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        self._sim = sim
        self._size = (width, height, math.tan(math.radians(fov) / 2))
        self.rgb = np.zeros((sim.num_worlds, sim.num_agents, height, width, 4), np.uint8)
        self.depth = np.zeros((sim.num_worlds, sim.num_agents, height, width, 1), np.float32)
        self.read()

    def read(self) -> None:
        """Takes the worlds as they are now; not part of what is measured."""
        self._fields: list[NDArray[Any]] = [
            np.array(np.asarray(getattr(self._sim.state, name)), order="C") for name in FIELDS
        ]
        counts = (self._sim.num_agents, *(self._fields[i].shape[1] for i in (0, 4, 7)))
        self._worlds = _PlainWorlds(*counts, *(field.ctypes.data for field in self._fields))

    def draw(self) -> None:
        error = self._draw(
            ctypes.byref(self._worlds), len(self.rgb), *self._size, self.rgb.ctypes.data, self.depth.ctypes.data
        )
        if error != 0:
            raise RuntimeError(f"Embree failed with error {error}")
