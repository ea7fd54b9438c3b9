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


def step(env: Any, actions: Any = (3, 0, 2, 0), form: str = "multi_discrete") -> Any:
    """A step with actions [worlds, 2, 4], by default all agents walk ahead, in a form of the environment's; what it
    returned, or for TorchRL a tensordict."""
    given = np.broadcast_to(actions, (1 if FRAMEWORKS[type(env).__name__][1] is None else 2, 2, 4))
    if form == "discrete":
        given = np.ravel_multi_index(tuple(np.moveaxis(given, -1, 0)), doorstep.ACTIONS)[..., None]
    return STEPS.get(type(env).__name__, _step_rows)(env, given, form)


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


def _of_rows(rows: Any, form: str) -> Any:
    """Rows of components [R, C], as spaces of gymnasium have them."""
    if form == "tuple":
        return tuple(rows.T)
    return rows[:, 0] if rows.shape[1] == 1 else rows


def _step_rows(env: Any, actions: Any, form: str) -> Any:
    return env.step(_of_rows(actions.reshape(env.num_envs, -1), form))


def _step_single(env: Any, actions: Any, form: str) -> Any:
    return env.step(tuple(actions.ravel()) if form == "tuple" else actions.ravel())


def _step_groups(env: Any, actions: Any, form: str) -> Any:
    rows = actions.reshape(env.num_envs, -1)
    for ids in np.arange(env.num_envs).reshape(env.num_groups, -1):
        env.send(_of_rows(rows[ids], form), ids)
    return _received(env)


def _received(env: Any) -> list[Any]:
    """Of all groups, in their order."""
    return sorted((env.recv() for _ in range(env.num_groups)), key=lambda received: int(received[4]["env_id"][0]))


def _step_agents(env: Any, actions: Any, form: str) -> Any:
    rows = [tuple(row) if form == "tuple" else row[0] if form == "discrete" else row for row in actions[0]]
    return env.step(dict(zip(env.agents, rows, strict=True)))


def _step_tensors(env: Any, actions: Any, form: str) -> Any:
    import torch

    return env.step(torch.from_numpy(np.array(actions.reshape(env.num_envs, -1))))


def _step_skrl_agents(env: Any, actions: Any, form: str) -> Any:
    import torch

    return env.step({agent: torch.from_numpy(np.array(actions[:, index])) for index, agent in enumerate(env.agents)})


def _step_torchrl(env: Any, actions: Any, form: str) -> Any:
    import torch

    data = env.rand_action()
    data["agents", "action"] = torch.from_numpy(np.array(actions if form == "multi_discrete" else actions[..., 0]))
    return env.step(data)


STEPS: dict[str, Callable[[Any, Any, str], Any]] = {
    "AsyncEscapeRooms": _step_groups,
    "EscapeRoomEnv": _step_single,
    "EscapeRoomParallelEnv": _step_agents,
    "EscapeRoomRslRlEnv": _step_tensors,
    "EscapeRoomSkrlEnv": _step_tensors,
    "EscapeRoomSkrlMultiAgentEnv": _step_skrl_agents,
    "EscapeRoomTorchRLEnv": _step_torchrl,
}
