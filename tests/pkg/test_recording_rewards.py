"""Recordings of worlds with a reward: the file says which, and they replay bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.pkg import recording_files as files
from tests.pkg.recording_files import random_actions

import doorstep
from doorstep import Rewards, Simulator
from doorstep.recording import Recording, RecordingWriter

REWARD = Rewards(progress=0.3, idle=-0.1, cube_approach=0.5, exit=2.0)


def record(path: Path, **options: Any) -> Any:
    """Two episodes of five worlds; returns the hashes at the end."""
    options.update(seed=3, episode_length=20)
    with Simulator(5, **options) as sim, RecordingWriter(path, sim, hash_interval=8) as writer:
        for actions in random_actions(45):
            sim.actions = actions
            writer.step()
        return sim.world_hashes()


@pytest.mark.parametrize("levels", ["reference", "curated"])
@pytest.mark.parametrize("reward", [REWARD, Rewards(), None])
def test_a_replay_comes_out_the_same(reward: Rewards | None, levels: str, path: Path) -> None:
    hashes = record(path, reward=reward, levels=levels)
    with Recording(path) as recording:
        assert recording.reward == reward
        recording.replay()  # raises where a world differs
        with Simulator.from_config(recording.config, reward=recording.reward) as sim:
            recording.replay(sim)
            assert (sim.world_hashes() == hashes).all()


def test_worlds_of_a_reward_have_other_returns(path: Path) -> None:
    assert (record(path, reward=REWARD) != record(path)).all()


@pytest.mark.parametrize("given", [None, Rewards(goal=3)])
def test_a_simulator_with_another_reward_is_refused(given: Rewards | None, path: Path) -> None:
    record(path, reward=REWARD)
    with Recording(path) as recording, Simulator.from_config(recording.config, reward=given) as sim:
        with pytest.raises(doorstep.ArgumentError) as caught:
            recording.replay(sim)
        assert f"sim has reward {given!r}, but {path} was recorded with {REWARD!r}" in str(caught.value)
        assert sim.step_count == 0


def test_a_reward_that_this_version_does_not_know_is_refused(path: Path) -> None:
    record(path, reward=REWARD)
    (config,) = [chunk for chunk in files.parse(path.read_bytes()) if chunk.kind == "CONF"]
    files.put(path, "CONF", 0, config.payload.replace(b'"cube_approach"', b'"cube_kisses"'))
    with pytest.raises(doorstep.StateError, match=r"reward: 'cube_kisses' is not a field of Rewards"):
        Recording(path)


def test_worlds_are_played_and_recorded_with_a_reward(path: Path) -> None:
    with doorstep.record(path, reward=REWARD, steps=5, seed=2) as recording:
        assert recording.reward == REWARD
        recording.replay()
