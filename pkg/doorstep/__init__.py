"""doorstep: thousands of 3D escape rooms, stepped at once, with tensors read in place."""

from __future__ import annotations

from doorstep._native import ACTIONS, NEUTRAL_ACTION, Action, EntityKind, capi, get_include, live_counts
from doorstep._native import VERSION_STRING as _VERSION
from doorstep.cameras import Cameras
from doorstep.config import SimulatorConfig
from doorstep.errors import (
    AbsentTensorError,
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
    ReplayError,
    ShaderError,
    SimulationError,
    StateError,
    Status,
)
from doorstep.event import StepEvent
from doorstep.health import Health
from doorstep.levels import Level
from doorstep.render.camera import CameraPose
from doorstep.simulator import Simulator
from doorstep.state import StateFields
from doorstep.tensor import Tensor

__version__ = _VERSION

__all__ = [
    "ACTIONS",
    "NEUTRAL_ACTION",
    "AbsentTensorError",
    "Action",
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
    "Health",
    "Level",
    "LibraryError",
    "NoDeviceError",
    "NoDriverError",
    "OutOfMemoryError",
    "RendererError",
    "ReplayError",
    "ShaderError",
    "SimulationError",
    "Simulator",
    "SimulatorConfig",
    "StateError",
    "StateFields",
    "Status",
    "StepEvent",
    "Tensor",
    "__version__",
    "capi",
    "get_include",
    "live_counts",
]
