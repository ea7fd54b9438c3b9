"""Single pictures of the C API in Python's types. Values come here checked."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._native._render_generated import PictureConfig, PictureObject
from doorstep._native.process import default_thread_count
from doorstep._native.render_library import load_render
from doorstep._native.status import check

# Signals (Ctrl-C) are handled only between two calls, so a call draws only as many rows as take some 30 ms.
_RAYS_PER_CALL = 1 << 18  # of each thread


def draw_picture(
    objects: NDArray[Any], *, width: int, height: int, samples: int, **settings: Any
) -> NDArray[np.uint8]:
    """Draws on the CPU, on all threads that the process may use. uint8 [height, width, 3].

    Args:
        objects: ds_picture_object as a structured array.
        width: pixels.
        height: pixels.
        samples: a pixel is the mean of samples * samples rays.
        settings: the other fields of ds_picture_config; position and rotation are sequences.
    """
    if objects.dtype.itemsize != ctypes.sizeof(PictureObject):
        raise AssertionError("the dtype of the objects is not ds_picture_object")
    draw = load_render().ds_picture_draw
    packed = np.ascontiguousarray(objects)
    pointer = packed.ctypes.data_as(ctypes.POINTER(PictureObject))
    config = PictureConfig(struct_size=ctypes.sizeof(PictureConfig), width=width, height=height, samples=samples)
    for name, value in settings.items():
        setattr(config, name, tuple(value) if name in ("position", "rotation") else value)
    rgb = np.empty((height, width, 3), np.uint8)
    rows = max(1, _RAYS_PER_CALL * default_thread_count() // (width * samples * samples))
    for first_row in range(0, height, rows):
        config.first_row, config.num_rows = first_row, min(rows, height - first_row)
        check(draw(pointer, packed.size, ctypes.byref(config), rgb.ctypes.data, rgb.nbytes))
    return rgb
