"""libdoorstep.so in Python: loads, checks and declares it, turns statuses into exceptions. All ctypes is here."""

from __future__ import annotations

from doorstep._native import process as process
from doorstep._native._generated import (
    ACTIONS,
    MAX_AGENTS,
    MAX_EPISODE_LENGTH,
    MAX_GLOBAL_WORLDS,
    MAX_LEVELS,
    MAX_SEED,
    MAX_THREADS,
    MAX_WORLDS,
    NEUTRAL_ACTION,
    STATE_FIELDS,
    STREAM_OWN,
    TENSORS,
    VERSION_STRING,
    Action,
    ActionCheck,
    DeviceKind,
    Dtype,
    EntityKind,
    KernelSource,
    TensorInfo,
    TensorRow,
)
from doorstep._native._render_generated import (
    CAMERA_TENSORS,
    MATERIAL_RENDERERS,
    MAX_RESOLUTION,
    MAX_SAMPLES,
    PictureShape,
    Renderer,
    RendererName,
)
from doorstep._native.batches import batch_info, xla_handler
from doorstep._native.c_api import capi, get_include
from doorstep._native.calls import check, fast_calls, raise_last_error
from doorstep._native.library import LIBRARY_PATH, load
from doorstep._native.memory import Memory
from doorstep._native.process import (
    cpu_features,
    cuda_architectures,
    cuda_compile,
    cuda_device,
    cuda_driver,
    default_thread_count,
    live_counts,
    stage_names,
)
from doorstep._native.render import (
    RENDER_LIBRARY_PATH,
    CameraTensors,
    camera_count,
    describe_renderer,
    draw_picture,
    give_cameras,
)
from doorstep._native.resources import Resource, resource_counts
from doorstep._native.session import EventHandle, Place, Session
from doorstep._native.simulator_stream import SimulatorStream
from doorstep._native.world_fields import WorldFields

__all__ = [
    "ACTIONS",
    "CAMERA_TENSORS",
    "LIBRARY_PATH",
    "MATERIAL_RENDERERS",
    "MAX_AGENTS",
    "MAX_EPISODE_LENGTH",
    "MAX_GLOBAL_WORLDS",
    "MAX_LEVELS",
    "MAX_RESOLUTION",
    "MAX_SAMPLES",
    "MAX_SEED",
    "MAX_THREADS",
    "MAX_WORLDS",
    "NEUTRAL_ACTION",
    "RENDER_LIBRARY_PATH",
    "STATE_FIELDS",
    "STREAM_OWN",
    "TENSORS",
    "VERSION_STRING",
    "Action",
    "ActionCheck",
    "CameraTensors",
    "DeviceKind",
    "Dtype",
    "EntityKind",
    "EventHandle",
    "KernelSource",
    "Memory",
    "PictureShape",
    "Place",
    "Renderer",
    "RendererName",
    "Resource",
    "Session",
    "SimulatorStream",
    "TensorInfo",
    "TensorRow",
    "WorldFields",
    "batch_info",
    "camera_count",
    "capi",
    "check",
    "cpu_features",
    "cuda_architectures",
    "cuda_compile",
    "cuda_device",
    "cuda_driver",
    "default_thread_count",
    "describe_renderer",
    "draw_picture",
    "fast_calls",
    "get_include",
    "give_cameras",
    "live_counts",
    "load",
    "raise_last_error",
    "resource_counts",
    "stage_names",
    "xla_handler",
]
