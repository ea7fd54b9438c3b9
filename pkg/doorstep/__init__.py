"""doorstep: thousands of 3D escape rooms, stepped at once, with tensors read in place."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from doorstep._native import ACTIONS, NEUTRAL_ACTION, Action, EntityKind, capi, get_include, live_counts
from doorstep._native import VERSION_STRING as _VERSION
from doorstep._observations import OBSERVATIONS
from doorstep.cameras import Cameras
from doorstep.config import SimulatorConfig
from doorstep.errors import (
    AbsentTensorError,
    ArgumentError,
    ClosedError,
    CopyError,
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
)
from doorstep.simulator import Simulator
from doorstep.tensor import Tensor

if _TYPE_CHECKING:
    from doorstep.evaluation import Evaluation, evaluate
    from doorstep.levels import Level, Rewards
    from doorstep.policy import Policy, load_policy
    from doorstep.recording import record
    from doorstep.render.camera import CameraPose
    from doorstep.rollouts import EpisodeRequest, EpisodeResult, RolloutConfig, RolloutEngine
    from doorstep.training import resume, train
    from doorstep.viewer import view

__version__ = _VERSION

__all__ = [
    "ACTIONS",
    "NEUTRAL_ACTION",
    "OBSERVATIONS",
    "AbsentTensorError",
    "Action",
    "ArgumentError",
    "CameraPose",
    "Cameras",
    "ClosedError",
    "CopyError",
    "DeviceBusyError",
    "DeviceError",
    "DoorstepError",
    "DriverFunctionError",
    "DriverVersionError",
    "EntityKind",
    "EpisodeRequest",
    "EpisodeResult",
    "Evaluation",
    "Level",
    "LibraryError",
    "NoDeviceError",
    "NoDriverError",
    "OutOfMemoryError",
    "Policy",
    "RendererError",
    "ReplayError",
    "Rewards",
    "RolloutConfig",
    "RolloutEngine",
    "ShaderError",
    "SimulationError",
    "Simulator",
    "SimulatorConfig",
    "StateError",
    "Tensor",
    "__version__",
    "capi",
    "evaluate",
    "get_include",
    "live_counts",
    "load_policy",
    "record",
    "resume",
    "train",
    "view",
]


# Simulators do not need these: they are imported when they are first used.
_LATER = {
    "CameraPose": "doorstep.render.camera",
    "EpisodeRequest": "doorstep.rollouts",
    "EpisodeResult": "doorstep.rollouts",
    "Evaluation": "doorstep.evaluation",
    "Level": "doorstep.levels",
    "Policy": "doorstep.policy",
    "Rewards": "doorstep.levels",
    "RolloutConfig": "doorstep.rollouts",
    "RolloutEngine": "doorstep.rollouts",
    "evaluate": "doorstep.evaluation",
    "load_policy": "doorstep.policy",
    "record": "doorstep.recording",
    "resume": "doorstep.training",
    "train": "doorstep.training",
    "view": "doorstep.viewer",
}
# `doorstep.levels.curated()` works without an import of `doorstep.levels`.
_PACKAGES = ("levels", "render")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_PACKAGES})


def __getattr__(name: str) -> object:
    import importlib

    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
