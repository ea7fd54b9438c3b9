"""libdoorstep_render.so: loaded on first use, it draws what cameras of a simulator see, and single pictures.

Values come here checked.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doorstep._native._generated import VERSION_STRING, TensorInfo
from doorstep._native._render_generated import (
    CAMERA_TENSORS,
    STRUCTURES,
    CamerasConfig,
    CamerasInfo,
    Functions,
    PictureConfig,
    PictureObject,
    Renderer,
    RendererInfo,
)
from doorstep._native.c_api import function_table
from doorstep._native.calls import check, read_struct, read_value, sized
from doorstep._native.handle import new_handle
from doorstep._native.library import LIBRARY_PATH, PACKAGE_PATH, REINSTALL, check_layout, load, open_library
from doorstep._native.memory import Memory
from doorstep._native.process import default_thread_count
from doorstep._native.session import Session
from doorstep.errors import LibraryError

RENDER_LIBRARY_PATH = os.path.join(os.path.dirname(LIBRARY_PATH), "libdoorstep_render.so")
CAMERA_TENSOR_INDEX = {row.name: index for index, row in enumerate(CAMERA_TENSORS)}


# ---- The library ----


@functools.cache
def load_render() -> Functions:
    """The functions of the rendering library, loaded and checked once.

    Raises:
        LibraryError: the file, or a library that it needs, is missing, damaged, or of another version.
        DeviceError: this CPU lacks an instruction set the library needs.
    """
    load()
    library = open_library(RENDER_LIBRARY_PATH)
    try:
        functions = Functions(library)
    except AttributeError as error:
        raise LibraryError(f"{RENDER_LIBRARY_PATH} is stale: {error}", hint=REINSTALL) from error
    if functions.ds_render_open(function_table(), VERSION_STRING.encode()):
        raise LibraryError(
            f"{RENDER_LIBRARY_PATH} is stale: it is not of version {VERSION_STRING}, as {PACKAGE_PATH} is",
            hint=REINSTALL,
        )
    check_layout(RENDER_LIBRARY_PATH, functions.ds_render_layout, STRUCTURES)
    return functions


def describe_renderer(renderer: Renderer) -> str:
    """Describes a renderer; RendererError, with the reason, if it cannot be used in this process."""
    info = read_struct(load_render().ds_renderer_get_info, RendererInfo, renderer)
    return str(info.description.decode("utf-8", "replace"))


# ---- Cameras ----


class CameraTensors(NamedTuple):
    """The tensors that cameras of a simulator write.

    Attributes:
        tensors: description and memory of each, by name.
        renderer: the renderer in use, never AUTO.
        device: the name of its device.
    """

    tensors: Mapping[str, tuple[TensorInfo, Memory]]
    renderer: Renderer
    device: str


def give_cameras(session: Session, settings: Mapping[str, Any], names: tuple[str, ...]) -> CameraTensors:
    """Gives a simulator cameras until it is closed.

    Args:
        session: the simulator.
        settings: fields of ds_cameras_config; position and rotation are tuples.
        names: of the tensors to make.
    """
    functions = load_render()
    config = sized(CamerasConfig, **settings)
    config.outputs = sum(1 << CAMERA_TENSOR_INDEX[name] for name in names)
    with session.turn:
        cameras = new_handle(functions.ds_cameras_create, session.handle, ctypes.byref(config))
    try:
        info = read_struct(functions.ds_cameras_get_info, CamerasInfo, cameras)
        tensors = {name: _tensor(cameras, CAMERA_TENSOR_INDEX[name], session) for name in names}
        return CameraTensors(tensors, Renderer(info.renderer), info.device.decode("utf-8", "replace"))
    finally:
        functions.ds_cameras_close(cameras)  # they end with the simulator


def _tensor(cameras: int, index: int, session: Session) -> tuple[TensorInfo, Memory]:
    info = sized(TensorInfo)
    memory = new_handle(load_render().ds_cameras_get_tensor, cameras, index, ctypes.byref(info))
    return info, Memory(memory, session.stream)


def camera_count() -> int:
    """Sets of cameras alive in this process."""
    count: int = read_value(load_render().ds_cameras_count, ctypes.c_int64)
    return count


# ---- Pictures ----


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
        settings: the other fields of ds_picture_config; arrays are sequences.
    """
    if objects.dtype.itemsize != ctypes.sizeof(PictureObject):
        raise AssertionError("the dtype of the objects is not ds_picture_object")
    draw = load_render().ds_picture_draw
    packed = np.ascontiguousarray(objects)
    pointer = packed.ctypes.data_as(ctypes.POINTER(PictureObject))
    config = sized(PictureConfig, width=width, height=height, samples=samples)
    for name, value in settings.items():
        setattr(config, name, tuple(value) if isinstance(value, Sequence) else value)
    rgb = np.empty((height, width, 3), np.uint8)
    rows = max(1, _RAYS_PER_CALL * default_thread_count() // (width * samples * samples))
    for first_row in range(0, height, rows):
        config.first_row, config.num_rows = first_row, min(rows, height - first_row)
        check(draw(pointer, packed.size, ctypes.byref(config), rgb.ctypes.data, rgb.nbytes))
    return rgb
