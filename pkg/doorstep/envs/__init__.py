"""Environments for the frameworks that people train with. Each imports its framework when it is first used.

| framework | environment |
|---|---|
| gymnasium, one world | `EscapeRoomEnv`, `gymnasium.make("doorstep/EscapeRoom-v0")` |
| gymnasium, many worlds | `EscapeRoomVectorEnv`, `gymnasium.make_vec("doorstep/EscapeRoom-v0", num_envs=...)` |
| gymnasium with tensors of PyTorch | `TorchEscapeRoomVectorEnv` |
| PettingZoo, one world | `EscapeRoomParallelEnv` |
| TorchRL | `EscapeRoomTorchRLEnv` |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from doorstep.errors import LibraryError

if TYPE_CHECKING:
    from doorstep.envs.pettingzoo import EscapeRoomParallelEnv
    from doorstep.envs.single import EscapeRoomEnv
    from doorstep.envs.torchrl import EscapeRoomTorchRLEnv
    from doorstep.envs.vector import EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv

# name: (module, the framework that it imports, the extra that installs it)
_ENVIRONMENTS = {
    "EscapeRoomEnv": ("single", "gymnasium"),
    "EscapeRoomParallelEnv": ("pettingzoo", "pettingzoo"),
    "EscapeRoomTorchRLEnv": ("torchrl", "torchrl"),
    "EscapeRoomVectorEnv": ("vector", "gymnasium"),
    "TorchEscapeRoomVectorEnv": ("vector", "gymnasium"),
}

__all__ = [
    "EscapeRoomEnv",
    "EscapeRoomParallelEnv",
    "EscapeRoomTorchRLEnv",
    "EscapeRoomVectorEnv",
    "TorchEscapeRoomVectorEnv",
]


def __getattr__(name: str) -> Any:
    if name not in _ENVIRONMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _ENVIRONMENTS[name]
    try:
        found = importlib.import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("doorstep"):
            raise
        raise LibraryError(
            f"doorstep.envs.{name} needs {error.name}, which is not installed", hint=f'pip install "doorstep[{extra}]"'
        ) from error
    return getattr(found, name)


def __dir__() -> list[str]:
    return sorted(__all__)
