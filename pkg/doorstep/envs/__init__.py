"""Environments for the frameworks that people train with. Each imports its framework when it is first used.

Importing this module registers `doorstep/EscapeRoom-v0` with gymnasium, if that is installed. Gymnasium reads no entry
points of installed packages: either import `doorstep.envs`, or let gymnasium do so by the name
"doorstep.envs:doorstep/EscapeRoom-v0".

| framework | environment |
|---|---|
| gymnasium, one world | `EscapeRoomEnv`, `gymnasium.make("doorstep/EscapeRoom-v0")` |
| gymnasium, many worlds | `EscapeRoomVectorEnv`, and `gymnasium.make_vec` with that name |
| gymnasium with tensors of PyTorch | `TorchEscapeRoomVectorEnv` |
| numpy, stepped in groups that overlap, as with EnvPool | `AsyncEscapeRooms` |
| PettingZoo, one world | `EscapeRoomParallelEnv` |
| Stable-Baselines3 | `EscapeRoomVecEnv` |
| JAX, with the functions of gymnax | `EscapeRoomJaxEnv` |
| RLlib | `EscapeRoomRLlibEnv` |
| PufferLib | `EscapeRoomPufferEnv` |
| TorchRL | `EscapeRoomTorchRLEnv` |
| skrl | `EscapeRoomSkrlEnv` |
| skrl, multi-agent algorithms | `EscapeRoomSkrlMultiAgentEnv` |
| rsl_rl | `EscapeRoomRslRlEnv`, with actions of `MultiDiscreteDistribution` |
| trainers with a class of torch.distributions | `MultiDiscrete` |
"""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

from doorstep.errors import LibraryError

if TYPE_CHECKING:
    from doorstep.envs.asynchronous import AsyncEscapeRooms
    from doorstep.envs.distributions import MultiDiscrete
    from doorstep.envs.jax import EscapeRoomJaxEnv
    from doorstep.envs.pettingzoo import EscapeRoomParallelEnv
    from doorstep.envs.pufferlib import EscapeRoomPufferEnv
    from doorstep.envs.rllib import EscapeRoomRLlibEnv
    from doorstep.envs.rsl_rl import EscapeRoomRslRlEnv, MultiDiscreteDistribution
    from doorstep.envs.single import EscapeRoomEnv
    from doorstep.envs.skrl import EscapeRoomSkrlEnv, EscapeRoomSkrlMultiAgentEnv
    from doorstep.envs.stable_baselines3 import EscapeRoomVecEnv
    from doorstep.envs.torchrl import EscapeRoomTorchRLEnv
    from doorstep.envs.vector import EscapeRoomVectorEnv, TorchEscapeRoomVectorEnv

# What gymnasium calls the environment.
ENVIRONMENT_ID = "doorstep/EscapeRoom-v0"

# name: (module, the framework that it imports, the extra that installs it)
_ENVIRONMENTS = {
    "AsyncEscapeRooms": ("asynchronous", "gymnasium"),
    "EscapeRoomEnv": ("single", "gymnasium"),
    "EscapeRoomJaxEnv": ("jax", "jax"),
    "EscapeRoomParallelEnv": ("pettingzoo", "pettingzoo"),
    "EscapeRoomPufferEnv": ("pufferlib", "pufferlib"),
    "EscapeRoomRLlibEnv": ("rllib", "rllib"),
    "EscapeRoomRslRlEnv": ("rsl_rl", "rsl-rl"),
    "EscapeRoomSkrlEnv": ("skrl", "skrl"),
    "EscapeRoomSkrlMultiAgentEnv": ("skrl", "skrl"),
    "EscapeRoomTorchRLEnv": ("torchrl", "torchrl"),
    "EscapeRoomVecEnv": ("stable_baselines3", "stable-baselines3"),
    "EscapeRoomVectorEnv": ("vector", "gymnasium"),
    "MultiDiscrete": ("distributions", "torch"),
    "MultiDiscreteDistribution": ("rsl_rl", "rsl-rl"),
    "TorchEscapeRoomVectorEnv": ("vector", "gymnasium"),
}

__all__ = [
    "ENVIRONMENT_ID",
    "AsyncEscapeRooms",
    "EscapeRoomEnv",
    "EscapeRoomJaxEnv",
    "EscapeRoomParallelEnv",
    "EscapeRoomPufferEnv",
    "EscapeRoomRLlibEnv",
    "EscapeRoomRslRlEnv",
    "EscapeRoomSkrlEnv",
    "EscapeRoomSkrlMultiAgentEnv",
    "EscapeRoomTorchRLEnv",
    "EscapeRoomVecEnv",
    "EscapeRoomVectorEnv",
    "MultiDiscrete",
    "MultiDiscreteDistribution",
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


def _register() -> None:
    import gymnasium

    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(
            ENVIRONMENT_ID,
            entry_point="doorstep.envs.single:EscapeRoomEnv",
            vector_entry_point="doorstep.envs.vector:EscapeRoomVectorEnv",
        )


with contextlib.suppress(ModuleNotFoundError):
    _register()
