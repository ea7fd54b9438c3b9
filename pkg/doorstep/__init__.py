"""doorstep: thousands of 3D escape rooms, stepped at once, with tensors read in place."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from doorstep._native import ACTIONS, NEUTRAL_ACTION, Action, EntityKind, capi, get_include, live_counts
from doorstep._native import VERSION_STRING as _VERSION
from doorstep._observations import OBSERVATIONS
from doorstep._optional import Lazy as _Lazy
from doorstep._optional import lazy_names as _lazy_names
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


_LATER = {
    **dict.fromkeys(("EpisodeRequest", "EpisodeResult", "RolloutConfig", "RolloutEngine"), _Lazy("doorstep.rollouts")),
    **dict.fromkeys(("Evaluation", "evaluate"), _Lazy("doorstep.evaluation")),
    **dict.fromkeys(("Level", "Rewards"), _Lazy("doorstep.levels")),
    **dict.fromkeys(("Policy", "load_policy"), _Lazy("doorstep.policy")),
    **dict.fromkeys(("resume", "train"), _Lazy("doorstep.training", "train", ("torch",))),
    "CameraPose": _Lazy("doorstep.render.camera"),
    "record": _Lazy("doorstep.recording"),
    "view": _Lazy("doorstep.viewer"),
}
_find, __dir__ = _lazy_names(__name__, __all__, _LATER)


def __getattr__(name: str) -> object:
    if name in ("levels", "render"):  # doorstep.levels.curated() works without an import of doorstep.levels
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _find(name)
