"""Writes an episode that an engine has played as a recording."""

from __future__ import annotations

import os

import numpy as np

from doorstep._arguments import refuse
from doorstep.config import SimulatorConfig
from doorstep.errors import ReplayError
from doorstep.recording import RecordingWriter
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult
from doorstep.simulator import Simulator


def write_recording(path: str | os.PathLike[str], result: EpisodeResult, config: SimulatorConfig) -> None:
    """Writes an episode as a recording of one world, for `doorstep replay`, `render` and `view`.

    The episode is stepped again with the actions that it has recorded, and must come out the same. A recording of an
    episode without a level has no saved world, and can be replayed by later versions; one with a level begins with a
    saved world, which only the same version of doorstep can replay.

    >>> import doorstep, os, tempfile
    >>> from doorstep.recording import Recording, replay
    >>> from doorstep.rollouts import write_recording
    >>> config, path = doorstep.SimulatorConfig(8), os.path.join(tempfile.mkdtemp(), "episode.rec")
    >>> with doorstep.RolloutEngine(config) as engine:
    ...     result = engine.future(doorstep.EpisodeRequest(seed=3, record=("actions",))).result()
    >>> write_recording(path, result, config)
    >>> with Recording(path) as recording:
    ...     replay(recording)
    ...     recording.num_steps
    200

    Args:
        path: the file; one that exists is replaced.
        result: of a request that records "actions" or "observations".
        config: the engine's `config.simulator`.

    Raises:
        ArgumentError: the result has no actions, or an argument is of another kind.
        ReplayError: the episode comes out differently: `config` is not that of the engine. Nothing was written.
        OSError: the file cannot be written.
    """
    if not isinstance(result, EpisodeResult):
        refuse("result", "a doorstep.EpisodeResult", result)
    if not isinstance(config, SimulatorConfig):
        refuse("config", "a doorstep.SimulatorConfig", config)
    if result.actions is None:
        refuse("result", "of a request that records actions", result.request, 'pass record=("actions",) to the request')
    _check_end(result, config)
    with _new_world(result.request, config) as sim, RecordingWriter(path, sim) as writer:
        for actions in result.actions:
            sim.actions = actions[None]
            writer.step()


def _new_world(request: EpisodeRequest, config: SimulatorConfig) -> Simulator:
    """A world at the beginning of the episode."""
    sim = Simulator(
        1,
        seed=request.seed,
        num_agents=config.num_agents,
        episode_length=min(request.max_steps or config.episode_length, config.episode_length),
        auto_reset=False,
        action_check=config.action_check,
        num_threads=1,
        max_levels=min(config.max_levels, 1),  # hashes are those of worlds that can play levels, or not
    )
    if request.level is not None:
        sim.set_levels([request.level])
        sim._begin(np.array([0]), np.array([request.seed]), request.max_steps or 0)
    return sim


def _check_end(result: EpisodeResult, config: SimulatorConfig) -> None:
    """Plays the episode again; nothing is written if it ends otherwise."""
    assert result.actions is not None
    with _new_world(result.request, config) as sim:
        for actions in result.actions:
            sim.actions = actions[None]
            sim.step()
        if int(sim.world_hashes()[0]) == result.state_hash:
            return
    error = ReplayError(
        f"the episode of seed {result.request.seed} comes out differently; nothing was written",
        argument="config",
        hint="pass engine.config.simulator of the engine that played it",
    )
    error.different_step, error.worlds = len(result.actions), (0,)
    raise error
