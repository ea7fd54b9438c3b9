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
from typing import TYPE_CHECKING, Any

from doorstep._optional import Lazy, lazy_names
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

_GYMNASIUM = ("gymnasium", ("gymnasium",))
_ENVIRONMENTS = {
    name: Lazy(f"doorstep.envs.{module}", extra, packages)
    for name, module, (extra, packages) in (
        ("AsyncEscapeRooms", "asynchronous", _GYMNASIUM),
        ("EscapeRoomEnv", "single", _GYMNASIUM),
        ("EscapeRoomJaxEnv", "jax", ("jax", ("jax",))),
        ("EscapeRoomJaxMARLEnv", "jaxmarl", ("jax", ("jax",))),
        ("EscapeRoomParallelEnv", "pettingzoo", ("pettingzoo", ("gymnasium", "pettingzoo"))),
        # PufferLib brings an older gymnasium, of which spaces suffice.
        ("EscapeRoomPufferEnv", "pufferlib", ("pufferlib", ("pufferlib",))),
        ("EscapeRoomRLlibEnv", "rllib", ("rllib", ("gymnasium", "ray"))),
        ("EscapeRoomRslRlEnv", "rsl_rl", ("rsl-rl", ("gymnasium", "rsl_rl"))),
        ("EscapeRoomSkrlEnv", "skrl", ("skrl", ("gymnasium", "skrl", "torch"))),
        ("EscapeRoomSkrlMultiAgentEnv", "skrl", ("skrl", ("gymnasium", "skrl", "torch"))),
        ("EscapeRoomTorchRLEnv", "torchrl", ("torchrl", ("torchrl",))),
        ("EscapeRoomVecEnv", "stable_baselines3", ("stable-baselines3", ("gymnasium", "stable_baselines3"))),
        ("EscapeRoomVectorEnv", "vector", _GYMNASIUM),
        ("JaxMultiDiscrete", "jax_distributions", ("jax", ("jax",))),
        ("MultiDiscrete", "distributions", ("torch", ("torch",))),
        ("MultiDiscreteDistribution", "rsl_rl", ("rsl-rl", ("gymnasium", "rsl_rl"))),
        ("TorchEscapeRoomVectorEnv", "vector", ("gymnasium", ("gymnasium", "torch"))),
    )
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


_OVER_GYMNASIUM = {name for name, lazy in _ENVIRONMENTS.items() if "gymnasium" in lazy.packages}
_find, __dir__ = lazy_names(__name__, __all__, _ENVIRONMENTS)


def __getattr__(name: str) -> Any:
    if name in _OVER_GYMNASIUM and _is_old:  # importing it would fail at the first missing name
        oldest = ".".join(map(str, OLDEST_GYMNASIUM))
        raise LibraryError(
            f"doorstep.envs.{name} needs gymnasium {oldest} or newer; {_gymnasium.__version__} is installed",
            hint=f'pip install --upgrade "gymnasium>={oldest}"',
        )
    return _find(name)


_gymnasium: Any = None
with contextlib.suppress(Exception):  # some environments do not need it, and the others raise its error
    _gymnasium = importlib.import_module("gymnasium")
_is_old = _gymnasium is not None and tuple(map(int, _gymnasium.__version__.split(".")[:2])) < OLDEST_GYMNASIUM
if _gymnasium is None or _is_old:
    __all__[:] = [name for name in __all__ if name not in _OVER_GYMNASIUM]
if _gymnasium is not None and ENVIRONMENT_ID not in _gymnasium.registry:
    _gymnasium.register(
        ENVIRONMENT_ID,
        entry_point="doorstep.envs:EscapeRoomEnv",
        vector_entry_point="doorstep.envs:EscapeRoomVectorEnv",
    )
