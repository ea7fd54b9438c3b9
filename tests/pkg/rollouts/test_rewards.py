"""An engine with a reward: returns, trajectories and recordings are of it."""

import functools
from dataclasses import replace

import pytest
from tests.pkg.rollouts.playing import play_again, results_of
from tests.refuses import assert_refused

import doorstep
from doorstep import EpisodeRequest, Rewards, RolloutConfig, RolloutEngine, SimulatorConfig
from doorstep.levels import curated, reference

SIMULATOR = SimulatorConfig(4, num_threads=1, max_levels=1, episode_length=40)
REWARD = Rewards(progress=0.3, idle=-0.1, cube_approach=0.5, exit=2.0)
REQUESTS = [
    EpisodeRequest(seed=seed, level=level, record=("observations",))
    for seed in range(4)
    for level in (None, reference().replace(rewards=Rewards(idle=9.0)), curated()["one door"])
]


def test_episodes_are_those_of_simulators_with_the_reward():
    """Whether the config or the argument has it, which counts if both have one."""
    for max_levels, devices, of_config, given in (
        (0, None, None, REWARD),
        (1, ("cpu", "cpu"), Rewards(), REWARD),
        (1, None, REWARD, None),
        (1, None, REWARD, Rewards()),
    ):
        config = RolloutConfig(SIMULATOR.replace(max_levels=max_levels), devices=devices, reward=of_config)
        with RolloutEngine(config, reward=given) as engine:
            assert engine.config.reward == (given or of_config)
            results = results_of(engine, [one for one in REQUESTS if (one.level is not None) == max_levels])
        assert results
        for result in results:
            play_again(result, reward=engine.config.reward, episode_length=40).close()  # compares rewards and worlds


def test_an_episode_is_recorded_with_the_reward(tmp_path):
    requests = [REQUESTS[0], replace(REQUESTS[0], max_steps=7), replace(REQUESTS[2], max_steps=7)]
    with RolloutEngine(SIMULATOR, reward=REWARD) as engine:
        for result in engine.run(requests):
            with result.record(tmp_path / "episode.rec", engine.config) as recording:
                assert (recording.reward, recording.num_steps) == (REWARD, result.length)
                recording.replay()
            with pytest.raises(doorstep.ReplayError, match=r"comes out differently.*pass engine.config of the engine"):
                result.record(tmp_path / "other.rec", SIMULATOR)
    assert not (tmp_path / "other.rec").exists()


def test_anything_else_is_refused():
    wrong = [({"reward": one}, "reward") for one in ([1], "goal=1", len)]
    for make in (RolloutEngine, RolloutConfig):
        assert_refused(functools.partial(make, SIMULATOR), wrong)
    says = "let requests record observations, and compute rewards of the results"
    assert_refused(functools.partial(RolloutEngine, SIMULATOR), [({"reward": lambda step: step.rewards}, says)])
