"""An engine with a reward: returns, trajectories and recordings are of it."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from tests.pkg.rollouts.playing import all_outputs, play_again, results_of
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
    for max_levels, devices in ((0, None), (1, ("cpu", "cpu"))):
        config = RolloutConfig(SIMULATOR.replace(max_levels=max_levels), devices=devices)
        with RolloutEngine(config, reward=REWARD) as engine:
            assert engine.config.reward == REWARD
            results = results_of(engine, [one for one in REQUESTS if (one.level is not None) == max_levels])
        assert results
        for result in results:
            play_again(result, reward=REWARD, episode_length=40).close()  # compares rewards, returns and worlds


def test_a_reward_is_a_field_of_the_config():
    config = RolloutConfig(SIMULATOR, reward=REWARD)
    assert RolloutConfig.from_json(config.to_json()) == config
    returns = []
    for given in (config, RolloutConfig(SIMULATOR)):
        with RolloutEngine(given) as engine:
            returns.append([result.returns.tolist() for result in engine.run(REQUESTS)])
    with RolloutEngine(config, reward=Rewards()) as engine:  # the argument counts
        again = [result.returns.tolist() for result in engine.run(REQUESTS)]
    assert returns[0] != returns[1]
    assert again != returns[0]
    assert again[::3] == returns[1][::3]  # the reference's levels have these


def test_steps_are_streamed_with_the_reward():
    with RolloutEngine(SIMULATOR, reward=Rewards(progress=0, idle=2, bonus_factor=1, max_y=0)) as engine:
        engine.submit(EpisodeRequest(max_steps=3, record=("stream", "observations")))
        outputs = all_outputs(engine, most=1)
    assert [output.rewards.tolist() for output in outputs[:3]] == [[2, 2]] * 3
    assert outputs[3].returns.tolist() == [6, 6]


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


def test_trajectories_have_the_reward():
    pytest.importorskip("torch")
    from doorstep.rollouts import TrajectoryDataset

    config = RolloutConfig(SIMULATOR, reward=Rewards(progress=0, idle=2, bonus_factor=1, max_y=0))
    (trajectory,) = TrajectoryDataset(config, [EpisodeRequest(max_steps=5)])
    np.testing.assert_array_equal(trajectory["rewards"], np.full((5, 2), 2))
