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
| JAX, with those of JaxMARL | `EscapeRoomJaxMARLEnv` |
| RLlib | `EscapeRoomRLlibEnv` |
| PufferLib | `EscapeRoomPufferEnv` |
| TorchRL | `EscapeRoomTorchRLEnv` |
| skrl | `EscapeRoomSkrlEnv` |
| skrl, multi-agent algorithms | `EscapeRoomSkrlMultiAgentEnv` |
| rsl_rl | `EscapeRoomRslRlEnv`, with actions of `MultiDiscreteDistribution` |
| trainers with a class of torch.distributions | `MultiDiscrete` |
| JAX programs with a distribution of distrax | `JaxMultiDiscrete` |
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from doorstep._optional import missing
from doorstep.errors import LibraryError

if TYPE_CHECKING:
    from doorstep.envs.asynchronous import AsyncEscapeRooms
    from doorstep.envs.distributions import MultiDiscrete
    from doorstep.envs.jax import EscapeRoomJaxEnv
    from doorstep.envs.jax_distributions import JaxMultiDiscrete
    from doorstep.envs.jaxmarl import EscapeRoomJaxMARLEnv
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

OLDEST_GYMNASIUM = (1, 1)
WITHOUT_GYMNASIUM = ("jax", "torch", "torchrl", "pufferlib")  # PufferLib brings an older one, of which spaces suffice

# name: (module, the framework that it imports, the extra that installs it)
_ENVIRONMENTS = {
    "AsyncEscapeRooms": ("asynchronous", "gymnasium"),
    "EscapeRoomEnv": ("single", "gymnasium"),
    "EscapeRoomJaxEnv": ("jax", "jax"),
    "EscapeRoomJaxMARLEnv": ("jaxmarl", "jax"),
    "EscapeRoomParallelEnv": ("pettingzoo", "pettingzoo"),
    "EscapeRoomPufferEnv": ("pufferlib", "pufferlib"),
    "EscapeRoomRLlibEnv": ("rllib", "rllib"),
    "EscapeRoomRslRlEnv": ("rsl_rl", "rsl-rl"),
    "EscapeRoomSkrlEnv": ("skrl", "skrl"),
    "EscapeRoomSkrlMultiAgentEnv": ("skrl", "skrl"),
    "EscapeRoomTorchRLEnv": ("torchrl", "torchrl"),
    "EscapeRoomVecEnv": ("stable_baselines3", "stable-baselines3"),
    "EscapeRoomVectorEnv": ("vector", "gymnasium"),
    "JaxMultiDiscrete": ("jax_distributions", "jax"),
    "MultiDiscrete": ("distributions", "torch"),
    "MultiDiscreteDistribution": ("rsl_rl", "rsl-rl"),
    "TorchEscapeRoomVectorEnv": ("vector", "gymnasium"),
}

__all__ = [
    "ENVIRONMENT_ID",
    "AsyncEscapeRooms",
    "EscapeRoomEnv",
    "EscapeRoomJaxEnv",
    "EscapeRoomJaxMARLEnv",
    "EscapeRoomParallelEnv",
    "EscapeRoomPufferEnv",
    "EscapeRoomRLlibEnv",
    "EscapeRoomRslRlEnv",
    "EscapeRoomSkrlEnv",
    "EscapeRoomSkrlMultiAgentEnv",
    "EscapeRoomTorchRLEnv",
    "EscapeRoomVecEnv",
    "EscapeRoomVectorEnv",
    "JaxMultiDiscrete",
    "MultiDiscrete",
    "MultiDiscreteDistribution",
    "TorchEscapeRoomVectorEnv",
]


def __getattr__(name: str) -> Any:
    if name not in _ENVIRONMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _ENVIRONMENTS[name]
    _check_gymnasium(name, extra)
    try:
        found = importlib.import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("doorstep"):
            raise
        raise missing(f"doorstep.envs.{name} needs {error.name}", extra, error) from error
    return getattr(found, name)


def _check_gymnasium(name: str, extra: str) -> None:
    """Refuses a version that lacks what environments need: importing them would fail at the first missing name."""
    if extra in WITHOUT_GYMNASIUM or importlib.util.find_spec("gymnasium") is None:
        return
    installed: str = importlib.import_module("gymnasium").__version__
    if tuple(map(int, installed.split(".")[:2])) < OLDEST_GYMNASIUM:
        oldest = ".".join(map(str, OLDEST_GYMNASIUM))
        raise LibraryError(
            f"doorstep.envs.{name} needs gymnasium {oldest} or newer; {installed} is installed",
            hint=f'pip install --upgrade "gymnasium>={oldest}"',
        )


def __dir__() -> list[str]:
    return sorted(__all__)


def _register() -> None:
    import gymnasium

    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(
            ENVIRONMENT_ID,
            entry_point="doorstep.envs:EscapeRoomEnv",
            vector_entry_point="doorstep.envs:EscapeRoomVectorEnv",
        )


with contextlib.suppress(ModuleNotFoundError):
    _register()
