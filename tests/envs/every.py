"""Every environment by name, as far as its framework is installed: what all of them do in the same way.

PufferLib's has tests of its own (test_pufferlib.py), as it is tested with a stand-in.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import doorstep.envs

# name: the module of its framework, and how many rows have two worlds of two agents
FRAMEWORKS = {
    "AsyncEscapeRooms": ("gymnasium", 2),
    "EscapeRoomEnv": ("gymnasium", None),
    "EscapeRoomParallelEnv": ("pettingzoo", None),
    "EscapeRoomRLlibEnv": ("ray", 4),
    "EscapeRoomRslRlEnv": ("rsl_rl", 4),
    "EscapeRoomSkrlEnv": ("skrl", 4),
    "EscapeRoomSkrlMultiAgentEnv": ("skrl", 2),
    "EscapeRoomTorchRLEnv": ("torchrl", 2),
    "EscapeRoomVecEnv": ("stable_baselines3", 4),
    "EscapeRoomVectorEnv": ("gymnasium", 2),
    "TorchEscapeRoomVectorEnv": ("torch", 2),
}
ENVIRONMENTS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"could not import {module!r}"),
    )
    for name, (module, _) in FRAMEWORKS.items()
]
RULES = {"episode_length": 4, "num_threads": 1}


def make(name: str, **arguments: Any) -> Any:
    """Two worlds, or the one that it has."""
    kind, rows = getattr(doorstep.envs, name), FRAMEWORKS[name][1]
    arguments = {**RULES, **arguments}
    if name == "EscapeRoomRLlibEnv":
        return kind({"num_envs": rows, **arguments})
    return kind(**arguments) if rows is None else kind(rows, **arguments)


def begin(env: Any, seed: int | None = None) -> None:
    """Begins episodes in all worlds."""
    kind = type(env).__name__
    if kind == "AsyncEscapeRooms":
        env.async_reset(seed=seed)
        _received(env)
    elif kind in ("EscapeRoomVecEnv", "EscapeRoomTorchRLEnv"):
        if seed is not None:
            getattr(env, "set_seed" if kind == "EscapeRoomTorchRLEnv" else "seed")(seed)
        env.reset()
    else:
        env.reset(seed=seed)


def step(env: Any) -> Any:
    """A step in which all agents walk ahead; what it returned, or for TorchRL a tensordict."""
    return STEPS.get(type(env).__name__, _step_rows)(env)


def simulators(env: Any) -> tuple[Any, ...]:
    return tuple(env.simulators) if hasattr(env, "simulators") else (env.simulator,)


def tensors(env: Any) -> list[np.ndarray[Any, Any]]:
    """What the simulators show, without the observations of episodes that are over."""
    return [
        tensor.copy_to_host()
        for simulator in simulators(env)
        for name, tensor in simulator.tensors.items()
        if not name.startswith("final_")
    ]


def same_everywhere(one: Any, other: Any) -> bool:
    """Whether two outcomes are equal, but for the seconds that a Monitor tells."""
    if hasattr(one, "keys"):
        return set(one.keys()) == set(other.keys()) and all(
            same_everywhere(one[key], other[key])
            for key in list(one.keys())
            if key != "t"
        )
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same_everywhere, one, other))
    return np.array_equal(np.asarray(one), np.asarray(other))


def _walk(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.tile(np.array((3, 0, 2, 0)), (*shape[:-1], shape[-1] // 4))


def _step_rows(env: Any) -> Any:
    return env.step(_walk(env.action_space.shape))


def _step_vec_env(env: Any) -> Any:
    return env.step(_walk((env.num_envs, 4)))


def _step_groups(env: Any) -> Any:
    for ids in np.arange(env.num_envs).reshape(env.num_groups, -1):
        env.send(_walk(env.action_space.shape), ids)
    return _received(env)


def _received(env: Any) -> list[Any]:
    """Of all groups, in their order."""
    return sorted((env.recv() for _ in range(env.num_groups)), key=lambda received: int(received[4]["env_id"][0]))


def _step_agents(env: Any) -> Any:
    return env.step({agent: _walk((4,)) for agent in env.agents})


def _step_rsl_rl(env: Any) -> Any:
    import torch

    return env.step(torch.from_numpy(_walk((env.num_envs, env.num_actions))))


def _step_skrl(env: Any) -> Any:
    import torch

    return env.step(torch.from_numpy(_walk((env.num_envs, 4))))


def _step_skrl_agents(env: Any) -> Any:
    import torch

    return env.step({agent: torch.from_numpy(_walk((env.num_envs, 4))) for agent in env.agents})


def _step_torchrl(env: Any) -> Any:
    import torch

    data = env.rand_action()
    data["agents", "action"] = torch.from_numpy(_walk((*env.batch_size, 2, 4)))
    return env.step(data)


STEPS: dict[str, Callable[[Any], Any]] = {
    "AsyncEscapeRooms": _step_groups,
    "EscapeRoomParallelEnv": _step_agents,
    "EscapeRoomRslRlEnv": _step_rsl_rl,
    "EscapeRoomSkrlEnv": _step_skrl,
    "EscapeRoomSkrlMultiAgentEnv": _step_skrl_agents,
    "EscapeRoomTorchRLEnv": _step_torchrl,
    "EscapeRoomVecEnv": _step_vec_env,
}
