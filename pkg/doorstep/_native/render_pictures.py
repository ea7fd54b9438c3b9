"""Single pictures of the C API in Python's types. Values come here checked."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._native._render_generated import PictureConfig, PictureObject
from doorstep._native.render_library import load_render
from doorstep._native.status import check


def draw_picture(objects: NDArray[Any], *, width: int, height: int, **settings: Any) -> NDArray[np.uint8]:
    """Draws on the CPU, on all threads that the process may use. uint8 [height, width, 3].

    Args:
        objects: ds_picture_object as a structured array.
        width: pixels.
        height: pixels.
        settings: the other fields of ds_picture_config; position and rotation are sequences.
    """
    if objects.dtype.itemsize != ctypes.sizeof(PictureObject):
        raise AssertionError("the dtype of the objects is not ds_picture_object")
    packed = np.ascontiguousarray(objects)
    config = PictureConfig(struct_size=ctypes.sizeof(PictureConfig), width=width, height=height)
    for name, value in settings.items():
        setattr(config, name, tuple(value) if name in ("position", "rotation") else value)
    rgb = np.empty((height, width, 3), np.uint8)
    pointer = packed.ctypes.data_as(ctypes.POINTER(PictureObject))
    check(
        load_render().ds_picture_draw(pointer, packed.size, ctypes.byref(config), rgb.ctypes.data, rgb.nbytes)
    )
    return rgb
