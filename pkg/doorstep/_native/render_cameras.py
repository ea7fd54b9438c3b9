"""Cameras of the C API in Python's types. Values come here checked."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple

from doorstep._native._generated import TensorInfo
from doorstep._native._render_generated import CAMERA_TENSORS, CamerasConfig, CamerasInfo, Renderer, RendererInfo
from doorstep._native.memory import Memory
from doorstep._native.render_library import load_render
from doorstep._native.session import Session
from doorstep._native.status import check

CAMERA_TENSOR_INDEX = {row.name: index for index, row in enumerate(CAMERA_TENSORS)}


class CameraTensors(NamedTuple):
    """What cameras made of a simulator.

    Attributes:
        tensors: where each lies, by name; the memory is held.
        renderer: what draws, never AUTO.
        device: its name.
    """

    tensors: Mapping[str, tuple[TensorInfo, Memory]]
    renderer: Renderer
    device: str


def give_cameras(session: Session, settings: Mapping[str, Any], names: tuple[str, ...]) -> CameraTensors:
    """Gives a simulator cameras for the rest of its life.

    Args:
        session: the simulator.
        settings: fields of ds_cameras_config; position and rotation are tuples.
        names: of the tensors wanted.
    """
    functions = load_render()
    config = CamerasConfig(struct_size=ctypes.sizeof(CamerasConfig), **settings)
    config.outputs = sum(1 << CAMERA_TENSOR_INDEX[name] for name in names)
    cameras = ctypes.c_uint64()
    with session.turn:
        check(functions.ds_cameras_create(session.handle, ctypes.byref(config), ctypes.byref(cameras)))
    try:
        info = CamerasInfo(struct_size=ctypes.sizeof(CamerasInfo))
        check(functions.ds_cameras_get_info(cameras.value, ctypes.byref(info)))
        tensors = {name: _tensor(cameras.value, CAMERA_TENSOR_INDEX[name], session) for name in names}
        return CameraTensors(tensors, Renderer(info.renderer), info.device.decode("utf-8", "replace"))
    finally:
        functions.ds_cameras_close(cameras.value)  # they end with the simulator


def _tensor(cameras: int, index: int, session: Session) -> tuple[TensorInfo, Memory]:
    info, memory = TensorInfo(struct_size=ctypes.sizeof(TensorInfo)), ctypes.c_uint64()
    check(load_render().ds_cameras_get_tensor(cameras, index, ctypes.byref(info), ctypes.byref(memory)))
    return info, Memory(memory.value, session.stream)


def camera_count() -> int:
    """Sets of cameras alive in this process."""
    count = ctypes.c_int64()
    check(load_render().ds_cameras_count(ctypes.byref(count)))
    return count.value


def describe_renderer(renderer: Renderer) -> str:
    """What a renderer is; RendererError, with the reason, if it cannot be used in this process."""
    info = RendererInfo(struct_size=ctypes.sizeof(RendererInfo))
    check(load_render().ds_renderer_get_info(renderer, ctypes.byref(info)))
    return str(info.description.decode("utf-8", "replace"))
