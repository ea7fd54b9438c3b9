"""doorstep: thousands of 3D escape rooms, stepped at once, with tensors read in place."""

from __future__ import annotations

from doorstep._native import VERSION_STRING as _VERSION
from doorstep._native import EntityKind, capi, get_include, live_counts
from doorstep.cameras import Cameras
from doorstep.errors import (
    ArgumentError,
    ClosedError,
    DeviceBusyError,
    DeviceError,
    DoorstepError,
    DriverFunctionError,
    DriverVersionError,
    LibraryError,
    NoDeviceError,
    NoDriverError,
    OutOfMemoryError,
    RendererError,
    ShaderError,
    SimulationError,
    StateError,
    Status,
)
from doorstep.event import Event
from doorstep.health import Health
from doorstep.render.camera import CameraPose
from doorstep.simulator import Simulator
from doorstep.state import State
from doorstep.tensor import Tensor

__version__ = _VERSION

__all__ = [
    "ArgumentError",
    "CameraPose",
    "Cameras",
    "ClosedError",
    "DeviceBusyError",
    "DeviceError",
    "DoorstepError",
    "DriverFunctionError",
    "DriverVersionError",
    "EntityKind",
    "Event",
    "Health",
    "LibraryError",
    "NoDeviceError",
    "NoDriverError",
    "OutOfMemoryError",
    "RendererError",
    "ShaderError",
    "SimulationError",
    "Simulator",
    "State",
    "StateError",
    "Status",
    "Tensor",
    "__version__",
    "capi",
    "get_include",
    "live_counts",
]
