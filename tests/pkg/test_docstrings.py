"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest

MODULES = [
    "doorstep.cameras",
    "doorstep.compat.madrona_escape_room.action_dump",
    "doorstep.envs.asynchronous",
    "doorstep.envs.distributions",
    "doorstep.envs.jax",
    "doorstep.envs.pettingzoo",
    "doorstep.envs.rsl_rl",
    "doorstep.envs.single",
    "doorstep.envs.skrl",
    "doorstep.envs.stable_baselines3",
    "doorstep.envs.torchrl",
    "doorstep.envs.vector",
    "doorstep.event",
    "doorstep.interop",
    "doorstep.levels.curated",
    "doorstep.levels.files",
    "doorstep.levels.generated",
    "doorstep.levels.level",
    "doorstep.levels.parts",
    "doorstep.levels.rules",
    "doorstep.notebook",
    "doorstep.planner.paths",
    "doorstep.planner.policy",
    "doorstep.policies",
    "doorstep.recording.reader",
    "doorstep.recording.replaying",
    "doorstep.recording.writer",
    "doorstep.render.camera",
    "doorstep.render.png",
    "doorstep.replay",
    "doorstep.simulator",
    "doorstep.state",
    "doorstep.tensor",
    "doorstep.video",
    "doorstep._native.c_api",
    "doorstep._native.process",
]
# What a module's examples need.
NEEDED = {
    "doorstep.envs.asynchronous": "gymnasium",
    "doorstep.envs.distributions": "torch",
    "doorstep.envs.jax": "jax",
    "doorstep.envs.pettingzoo": "pettingzoo",
    "doorstep.envs.rsl_rl": "rsl_rl",
    "doorstep.envs.single": "gymnasium",
    "doorstep.envs.skrl": "skrl",
    "doorstep.envs.stable_baselines3": "stable_baselines3",
    "doorstep.envs.torchrl": "torchrl",
    "doorstep.envs.vector": "gymnasium",
    "doorstep.video": "av",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0
