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
    "doorstep.evaluation.episodes",
    "doorstep.evaluation.run",
    "doorstep.event",
    "doorstep.interop",
    "doorstep.levels.curated",
    "doorstep.levels.files",
    "doorstep.levels.generated",
    "doorstep.levels.level",
    "doorstep.levels.parts",
    "doorstep.levels.rules",
    "doorstep.metrics.store",
    "doorstep.notebook",
    "doorstep.planner.paths",
    "doorstep.planner.policy",
    "doorstep.policies",
    "doorstep.policy.heads",
    "doorstep.policy.policy",
    "doorstep.policy.sampling",
    "doorstep.recording.reader",
    "doorstep.recording.replaying",
    "doorstep.recording.writer",
    "doorstep.render.camera",
    "doorstep.render.png",
    "doorstep.replay",
    "doorstep.rollouts.asynchronous",
    "doorstep.rollouts.dataset",
    "doorstep.rollouts.recorded",
    "doorstep.rollouts.shards.writer",
    "doorstep.simulator",
    "doorstep.state",
    "doorstep.tensor",
    "doorstep.training.config",
    "doorstep.training.presets",
    "doorstep.training.run",
    "doorstep.training.trained",
    "doorstep.training.trainer",
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
    "doorstep.policy.heads": "torch",
    "doorstep.policy.policy": "torch",
    "doorstep.rollouts.dataset": "torch",
    "doorstep.training.config": "torch",
    "doorstep.training.presets": "torch",
    "doorstep.training.run": "safetensors",
    "doorstep.training.trained": "safetensors",
    "doorstep.training.trainer": "torch",
    "doorstep.video": "av",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0
