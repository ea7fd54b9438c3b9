"""Writes an episode that an engine has played as a recording."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep.config import SimulatorConfig
from doorstep.errors import ReplayError
from doorstep.recording import Recording
from doorstep.recording.writer import whole_recording
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.request import EpisodeRequest
from doorstep.simulator import Simulator


def record_episode(
    path: str | os.PathLike[str],
    request: EpisodeRequest,
    actions: NDArray[np.int32],
    state_hash: int,
    config: RolloutConfig | SimulatorConfig,
) -> Recording:
    """Writes the recording of an episode that was played with these actions; see `EpisodeResult.record()`."""
    if not isinstance(config, (RolloutConfig, SimulatorConfig)):
        refuse("config", "a doorstep.RolloutConfig or SimulatorConfig", config)
    played = config if isinstance(config, RolloutConfig) else RolloutConfig(config)
    with _new_world(request, played) as sim, whole_recording(path, sim) as writer:
        for step_actions in actions:
            sim.actions = step_actions[None]
            writer.step()
        if int(sim.world_hashes()[0]) != state_hash:
            raise _other_end(request, len(actions))
    return Recording(path)


def _new_world(request: EpisodeRequest, played: RolloutConfig) -> Simulator:
    """A world at the beginning of what was played."""
    config = played.simulator
    limit = None if request.state is not None else request.max_steps  # of the level
    sim = Simulator(
        1,
        seed=request.seed,
        num_agents=config.num_agents,
        episode_length=min(limit or config.episode_length, config.episode_length),
        auto_reset=False,
        action_check=config.action_check,
        num_threads=1,
        reward=played.reward,
        max_levels=min(config.max_levels, 1),  # hashes are those of worlds that can play levels, or not
    )
    if request.state is not None:
        sim._resume(0, request.state)
    elif request.level is not None:
        sim.set_levels([request.level])
        sim._begin(np.array([0]), np.array([request.seed]), request.max_steps or 0)
    return sim


def _other_end(request: EpisodeRequest, num_steps: int) -> ReplayError:
    error = ReplayError(
        f"the episode of seed {request.seed} comes out differently; nothing was written",
        argument="config",
        hint="pass engine.config of the engine that played it",
    )
    error.different_step, error.worlds = num_steps, (0,)
    return error
